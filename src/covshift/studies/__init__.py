"""Studies: trials as plain data, a resumable runner, a store, summaries and reports."""
