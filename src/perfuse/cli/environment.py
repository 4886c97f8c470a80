"""The standard streams of a command, and the environment variables that select what it does."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import cast

COMPLETION = "_PERFUSE_COMPLETE"
"""Set by a shell that completes a command line: eval "$(_PERFUSE_COMPLETE=bash_source perfuse)"."""


def prepare_streams() -> None:
    """Paths may contain bytes that are not text, and terminals may lack characters: neither is an error."""
    if isinstance(sys.stdout, io.TextIOWrapper) and isinstance(sys.stdout.buffer, io.RawIOBase):
        sys.stdout = _buffered(sys.stdout)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _buffered(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """Standard output with a buffer, where Python was started without (`PYTHONUNBUFFERED=1`, `python -u`).

    Without one, a write may end in the middle, such as when the reader closes the pipe, and raises no error.
    """
    stream.flush()
    raw = cast(io.RawIOBase, stream.buffer)  # not detached: others may have the stream
    return io.TextIOWrapper(io.BufferedWriter(raw), stream.encoding, stream.errors, line_buffering=True)


def forget_stdout() -> None:
    """Redirects standard output to the null device, so that the last flush does not fail on the closed pipe."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
