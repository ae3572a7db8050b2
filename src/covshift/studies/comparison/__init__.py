"""Every adapter on every pair of a collection's domains."""
