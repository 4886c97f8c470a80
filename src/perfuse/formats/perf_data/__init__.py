"""perf.data: the texts of its rules."""
