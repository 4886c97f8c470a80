"""What a command's exit code says; scripts rely on it."""

CLEAN = 0
"""Done, and nothing to complain of."""
FINDINGS = 1
"""Done, but the input has findings."""
USAGE = 2
"""The command line makes no sense, or names what does not exist."""
UNREADABLE = 3
"""An input that cannot be read."""
DEFECT = 70
"""A defect of perfuse itself."""
INTERRUPTED = 130
"""Stopped by Ctrl-C."""
CLOSED_PIPE = 141
"""The reader of our output went away: what a shell reports for SIGPIPE."""
