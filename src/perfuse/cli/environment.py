"""The standard streams of a command, and the environment variables that select what it does."""

from __future__ import annotations

import contextlib
import io
import os
import sys

COMPLETION = "_PERFUSE_COMPLETE"
"""Set by a shell that completes a command line: eval "$(_PERFUSE_COMPLETE=bash_source perfuse)"."""


def prepare_streams() -> None:
    """Paths may contain bytes that are not text, and terminals may lack characters: neither is an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def forget_stdout() -> None:
    """Redirects standard output to the null device, so that the last flush does not fail on the closed pipe."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
