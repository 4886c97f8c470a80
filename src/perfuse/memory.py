"""Sizes of memory, as text and of this process."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from perfuse import _core
from perfuse.errors import UsageError

_UNITS = {"": 1, "B": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
_UNITS |= {unit + "IB": 1 << (10 * power) for power, unit in enumerate("KMGT", 1)}
_UNITS |= {unit + "B": 1000**power for power, unit in enumerate("KMGT", 1)}


def memory_bytes(size: int | str) -> int:
    """A size in bytes: a number, or text such as `800MB`, `1.5GiB`.

    Raises:
        UsageError: It is neither.
    """
    if isinstance(size, int):
        return size
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", size, re.IGNORECASE)
    unit = _UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise UsageError(f"{size!r} is not a size of memory", hint="write it as 800MB, 4GB or 1.5GiB")
    return round(float(match[1]) * unit)


requested_limit: int | None = None
"""The limit of this process's memory in bytes, where one was requested."""


def limit_memory(size: int | str | None) -> None:
    """Limits the memory of this process, for the calls that follow; None leaves the limit as it is.

    Raises:
        UsageError: It is not a size, or 0.
    """
    if size is None:
        return
    global requested_limit  # noqa: PLW0603 - memory is that of the process
    limit = memory_bytes(size)
    if not 0 < limit < 2**63:
        raise UsageError(f"{size!r} is not a limit of memory", hint="write it as 800MB, 4GB or 1.5GiB")
    requested_limit = limit
    _core.set_memory_limit(limit)


@contextmanager
def limited_memory(size: int | str) -> Iterator[None]:
    """Limits the memory of this process in a block, as `limit_memory` does."""
    global requested_limit  # noqa: PLW0603 - memory is that of the process
    before = requested_limit
    limit_memory(size)
    try:
        yield
    finally:
        requested_limit = before
        _core.set_memory_limit(before)


def resident_bytes() -> int:
    """Memory that this process has in use; an estimate where the system does not state it."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            status = file.read()
    except OSError:
        status = ""
    found = re.search(r"^VmRSS:\s*(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else 128 << 20
