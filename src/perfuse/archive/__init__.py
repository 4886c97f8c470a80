"""Saved profiles: one file with everything that was resolved, to be opened on any machine."""
