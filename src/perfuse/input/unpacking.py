"""How large compressed and piped inputs may become: `--max-unpacked`, `max_unpacked=`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from perfuse.errors import UsageError

_allowed: ContextVar[int | None] = ContextVar("allowed", default=None)

_MOST = 2**63


@contextmanager
def unpacking_at_most(size: int | str | None) -> Iterator[None]:
    """Inputs that are opened in this block unpack to at most this size, in bytes or as `4GB`; None changes nothing.

    Raises:
        UsageError: It is not a size, or not a positive one.
    """
    if size is None:
        yield
        return
    num_bytes = limit_bytes(size)
    token = _allowed.set(num_bytes)
    try:
        yield
    finally:
        _allowed.reset(token)


def allowed_bytes() -> int | None:
    """Bytes that an input may unpack to; None for the usual limits, which depend on its compressed size."""
    return _allowed.get()


def limit_bytes(size: int | str) -> int:
    """A limit in bytes: a number, or text such as `800MB`, `1.5GiB`.

    Raises:
        UsageError: It is neither, or not positive.
    """
    from perfuse.memory import memory_bytes

    num_bytes = memory_bytes(size)
    if not 0 < num_bytes < _MOST:
        raise UsageError(f"{size!r} is not a positive size", hint="write it as 800MB, 4GB or 1.5GiB")
    return num_bytes
