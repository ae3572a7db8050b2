"""What the solvers share."""
