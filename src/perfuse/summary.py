"""What one pass over a file tells of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Summary:
    """What `perfuse info` tells of a file.

    Attributes:
        version: Version as the file states it.
        endian: `little` or `big`.
        pointer_bytes: Size of a pointer on the recorded machine.
        arch: Machine, as `uname -m` spells it.
        producer: Program that wrote it, where its habits tell.
        clock: `monotonic`, `tsc`, `realtime`, `perf` or `unknown`.
        span: First and last time stamp, in the file's own units.
        records: Records by kind, every one in the file, by the specification's names.
        header: Header fields, in the order of the specification.
    """

    version: str | None
    endian: str
    pointer_bytes: int | None
    arch: str | None
    producer: str | None
    clock: str
    span: tuple[int, int] | None
    records: Mapping[str, int]
    header: Mapping[str, Any]

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """First and last time stamp in nanoseconds; None where the file's units are not nanoseconds."""
        return None if self.clock == "tsc" else self.span
