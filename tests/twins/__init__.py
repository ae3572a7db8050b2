"""Slow, obvious twins of the formulas of the package, one file for each family."""
