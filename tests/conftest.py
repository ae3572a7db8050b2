"""Settings of the whole suite."""

import os
import signal

# scikit-learn's array API checks are skipped without it; SciPy reads it when imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# A shell lets programs in the background ignore Ctrl-C, and these pass that on to theirs: tests
# that interrupt a program would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
