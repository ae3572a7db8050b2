"""Modules whose examples are not looked for where what they import is missing."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("triton") else ["src/covshift/kernels/fused_filters.py"]
