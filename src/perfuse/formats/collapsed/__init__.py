"""Collapsed stacks: the texts of its rules."""
