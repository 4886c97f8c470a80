"""What the kernel lets this user sample: events are opened for a moment, without perf."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from dataclasses import dataclass
from functools import lru_cache

_SYSCALL = {
    "x86_64": 298,
    "aarch64": 241,
    "riscv64": 241,
    "loongarch64": 241,
    "ppc64le": 319,
    "ppc64": 319,
    "s390x": 331,
    "armv7l": 364,
    "i686": 336,
}
"""Number of perf_event_open by machine."""
_ATTRIBUTE_BYTES = 128
_HARDWARE, _SOFTWARE = 0, 1
_CPU_CYCLES, _CPU_CLOCK = 0, 0
_DISABLED, _EXCLUDE_KERNEL, _EXCLUDE_HV, _FREQ = 1 << 0, 1 << 5, 1 << 6, 1 << 10
_CLOSE_ON_EXEC = 8
_PROBED_HZ = 999


@dataclass(frozen=True, slots=True)
class Sampling:
    """What can be sampled.

    Attributes:
        event: The event that perf is asked for: `cycles`, `cpu-clock`, or these with `:u`; None where none opens.
        error: Why not even the last one opens: an errno.
    """

    event: str | None
    error: int = 0

    @property
    def has_kernel(self) -> bool:
        """Whether functions of the kernel are sampled too."""
        return self.event is not None and not self.event.endswith(":u")


@lru_cache(maxsize=1)
def probe() -> Sampling:
    """The best event that opens on this process: cycles where the machine counts them, else the processor's time."""
    error = errno.ENOSYS
    if sys.platform != "linux" or platform.machine() not in _SYSCALL:
        return Sampling(None, error)
    for suffix, flags in (("", 0), (":u", _EXCLUDE_KERNEL)):
        for name, kind, config in (("cycles", _HARDWARE, _CPU_CYCLES), ("cpu-clock", _SOFTWARE, _CPU_CLOCK)):
            error = _open(kind, config, flags)
            if error == 0:
                return Sampling(name + suffix)
    return Sampling(None, error)


def _open(kind: int, config: int, flags: int) -> int:
    """Opens an event on this process, and closes it; returns 0 or an errno."""
    head = struct.pack(
        "=IIQQQQQ", kind, _ATTRIBUTE_BYTES, config, _PROBED_HZ, 0, 0, _DISABLED | _FREQ | _EXCLUDE_HV | flags
    )
    attribute = ctypes.create_string_buffer(head.ljust(_ATTRIBUTE_BYTES, b"\0"), _ATTRIBUTE_BYTES)
    libc = ctypes.CDLL(None, use_errno=True)
    number = _SYSCALL[platform.machine()]
    descriptor: int = libc.syscall(
        ctypes.c_long(number),
        attribute,
        ctypes.c_int(0),
        ctypes.c_int(-1),
        ctypes.c_int(-1),
        ctypes.c_ulong(_CLOSE_ON_EXEC),
    )
    if descriptor < 0:
        return ctypes.get_errno()
    os.close(descriptor)
    return 0
