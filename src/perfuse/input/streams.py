"""Inputs that are not regular files: named pipes, which may have no writer, and devices, which are refused."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from stat import S_ISBLK, S_ISCHR, S_ISFIFO, S_ISREG, S_ISSOCK
from typing import IO

from perfuse.errors import UnreadableInput

WRITER_WAIT_S = 10.0
"""Longest time until the first data of a pipe with a name: nobody may ever write to it."""


class ReadStream:
    """A stream that keeps whether anything was read from it.

    Attributes:
        has_data: Whether it had any bytes so far.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.has_data = False

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end."""
        data = self._stream.read(size)
        self.has_data = self.has_data or bool(data)
        return data


def kind_of_stream(path: str) -> str | None:
    """`pipe`, `device` or `socket`; None for a file, a directory and for what is absent."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return None
    if S_ISREG(mode):
        return None
    kinds = {"pipe": S_ISFIFO, "device": lambda mode: S_ISCHR(mode) or S_ISBLK(mode), "socket": S_ISSOCK}
    return next((kind for kind, matches in kinds.items() if matches(mode)), None)


@contextmanager
def opened_stream(path: str, kind: str) -> Iterator[IO[bytes]]:
    """A pipe, open to read.

    Raises:
        UnreadableInput: It is a device or a socket, or nothing was written to the pipe in 10 seconds.
    """
    if kind != "pipe":
        raise UnreadableInput(
            f"cannot read {path}: it is a {kind}, not a file or a pipe",
            path=path,
            hint=f"a program that reads it can pass on a part of it: head -c SIZE {path} | perfuse ... -",
        )
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UnreadableInput(f"cannot read {path}: {error.strerror or error}", path=path) from error
    with open(descriptor, "rb") as stream:
        # A pipe of a shell, /dev/fd/63, has a writer from the start.
        if _has_a_name(descriptor):
            waiting = select.poll()
            waiting.register(descriptor, select.POLLIN)
            if not waiting.poll(WRITER_WAIT_S * 1000):
                message = f"cannot read {path}: nothing was written to this pipe for {WRITER_WAIT_S:.0f} seconds"
                raise UnreadableInput(message, path=path, hint=f"cat {path} | perfuse ... - waits longer")
        os.set_blocking(descriptor, True)
        yield stream


def _has_a_name(descriptor: int) -> bool:
    """Whether a pipe is in a directory, rather than one of those that `pipe(2)` makes, which are all on one device."""
    ends = os.pipe()
    try:
        return os.fstat(descriptor).st_dev != os.fstat(ends[0]).st_dev
    finally:
        for end in ends:
            os.close(end)
