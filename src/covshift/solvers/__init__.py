"""Minimizers of a loss with a gradient; they know nothing of filters or networks."""
