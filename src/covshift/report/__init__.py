"""Plain data -> figures and pages, without computation; independent of the diagnosis."""
