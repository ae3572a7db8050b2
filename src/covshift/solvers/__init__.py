"""Minimizers of a loss with a gradient, independent of filters and networks."""
