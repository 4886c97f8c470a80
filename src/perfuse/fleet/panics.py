"""Texts that deltalake prints on the standard error output: panics of its threads, as on a full disk.

The exception that follows states what is the matter, and perfuse prints that. The text becomes a note of the exception.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

_STDERR = 2
_PANIC = re.compile(rb"\n?^thread '.*' (?:\(\d+\) )?panicked at .*:\n(?:.*\n)*?(?:note: .*\n)+", re.MULTILINE)
"""The lines of a panic, up to the note about its backtrace, which ends them."""
_BEGUN = re.compile(rb"\n?^thread '(?:.*\Z|.*' (?:\(\d+\) )?panicked at .*)", re.MULTILINE)
"""The start of a panic whose other lines are not written yet, or a line that may become one."""

_PERIOD_S = 0.05
"""Time between two looks at what was written."""


class _Capture:
    """The standard error output of the process, which is a file as long as any thread writes to a dataset.

    A thread prints what is not of a panic soon after it is written. In place of the file, a pipe could be full while
    its writer has the interpreter's lock, which the reader needs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._num_users = 0
        self._file: BinaryIO | None = None
        self._terminal = -1
        self._ended = threading.Event()
        self._num_read = 0
        self._unprinted = b""
        self._panics: list[bytes] = []

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
                return
            self._num_read, self._unprinted, self._ended = 0, b"", threading.Event()
            threading.Thread(target=self._print_until, args=(self._ended,), daemon=True).start()

    def end(self) -> str:
        """Returns the panics; everything else is printed."""
        with self._lock:
            self._num_users -= 1
            if self._file is None:
                return ""
            self._print(all_of_it=True)
            panics, self._panics = self._panics, []
            if not self._num_users:
                self._ended.set()
                os.dup2(self._terminal, _STDERR)
                self._close()
            return b"\n".join(panics).decode(errors="replace")

    def _print_until(self, ended: threading.Event) -> None:
        while not ended.wait(_PERIOD_S):
            with self._lock:
                if not ended.is_set():
                    self._print()

    def _print(self, *, all_of_it: bool = False) -> None:
        """Prints what was written since, without panics; without `all_of_it`, also without what may become one."""
        assert self._file is not None
        while written := os.pread(self._file.fileno(), 1 << 16, self._num_read):
            self._num_read += len(written)
            self._unprinted += written
        self._panics += [match.strip() for match in _PANIC.findall(self._unprinted)]
        text, self._unprinted = _PANIC.sub(b"", self._unprinted), b""
        if not all_of_it and (begun := _BEGUN.search(text)):
            text, self._unprinted = text[: begun.start()], text[begun.start() :]
        if text:
            with suppress(OSError):  # nobody reads it
                os.write(self._terminal, text)

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
