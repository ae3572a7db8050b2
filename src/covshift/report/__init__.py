"""Plain data -> figures and pages; computes nothing and knows no diagnosis."""
