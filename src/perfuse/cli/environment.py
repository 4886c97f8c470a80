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


def buffer_stdout() -> None:
    """Gives standard output a buffer, where Python was started without (`PYTHONUNBUFFERED=1`, `python -u`).

    Without one, a write may end in the middle, such as when the reader closes the pipe, and raises no error. Only for a
    process of our own: where something else has replaced `sys.stdout`, its file would be closed.
    """
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper) and isinstance(stream.buffer, io.RawIOBase):
        stream.flush()
        buffered = io.BufferedWriter(stream.buffer)
        sys.stdout = io.TextIOWrapper(buffered, stream.encoding, stream.errors, line_buffering=True)


def forget_stdout() -> None:
    """Redirects standard output to the null device, so that the last flush does not fail on the closed pipe."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
