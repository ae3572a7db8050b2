"""Records made by hand, of trials that were never run."""

from covshift.studies.store import Record


def record_of(trial, result, error=None):
    return Record(trial, result, error, None, [], 0.0, "2025-01-01T00:00:00+00:00")
