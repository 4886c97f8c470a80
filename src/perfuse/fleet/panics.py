"""Texts that deltalake prints on the standard error output: panics of its threads, as on a full disk.

The exception that follows states what is the matter, and perfuse prints that. The text becomes a note of the exception.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

_STDERR = 2
_PANIC = re.compile(rb"\n?^thread '.*' (?:\(\d+\) )?panicked at .*:\n(?:.*\n)*?(?:note: .*\n?)+", re.MULTILINE)
"""The lines of a panic, up to the note about its backtrace, which ends them."""


class _Capture:
    """The standard error output of the process, which is a file as long as any thread writes to a dataset."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._num_users = 0
        self._file: BinaryIO | None = None
        self._terminal = -1

    def begin(self) -> None:
        with self._lock:
            self._num_users += 1
            if self._num_users > 1:
                return
            try:
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - `end` closes it
                self._terminal = os.dup(_STDERR)
                os.dup2(self._file.fileno(), _STDERR)
            except OSError:
                # Without the output, or without a file, texts are where they were.
                self._close()

    def end(self) -> str:
        """Returns the panics; everything else is printed now."""
        with self._lock:
            self._num_users -= 1
            if self._file is None:
                return ""
            self._file.seek(0)
            text = self._file.read()
            self._file.seek(0)
            self._file.truncate()
            panics = [match.strip() for match in _PANIC.findall(text)]
            rest = _PANIC.sub(b"", text)
            if rest:
                os.write(self._terminal, rest)
            if not self._num_users:
                os.dup2(self._terminal, _STDERR)
                self._close()
            return b"\n".join(panics).decode(errors="replace")

    def _close(self) -> None:
        if self._terminal >= 0:
            os.close(self._terminal)
        if self._file is not None:
            self._file.close()
        self._file, self._terminal = None, -1


_capture = _Capture()


@contextmanager
def panics_as_notes() -> Iterator[None]:
    """Adds panics of other threads to the exception that ends the block; without one they are left out."""
    _capture.begin()
    try:
        yield
    except Exception as error:
        if panics := _capture.end():
            error.add_note(panics)
        raise
    except BaseException:
        _capture.end()
        raise
    _capture.end()
