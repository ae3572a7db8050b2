"""Settings of the whole suite."""

import os

# scikit-learn's array API checks are skipped without it; SciPy reads it when imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
