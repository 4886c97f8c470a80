"""Saved profiles: the texts of their rules."""
