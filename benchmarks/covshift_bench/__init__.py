"""A benchmark of adaptation without target labels."""
