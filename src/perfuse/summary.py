"""The summary of a file: header facts and counts from one pass over its record headers."""

from collections.abc import Mapping
from typing import Any

from perfuse.value_class import value_class


@value_class
class Summary:
    """Facts about a file from its header and one pass over its record headers.

    Attributes:
        version: Version as the file states it.
        endian: `little` or `big`.
        pointer_bytes: Size of a pointer on the recorded machine.
        arch: Machine architecture, as `uname -m` spells it.
        producer: Program that wrote it, where the file states or shows it.
        clock: Clock of its time stamps: `monotonic`, `tsc`, `realtime`, `perf`, `unknown`, or another of
            `perf record -k`.
        span: First and last time stamp, in the file's own unit.
        records: Number of records by kind, named as in the specification.
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
        """First and last time stamp in nanoseconds; None where the file's unit is not the nanosecond."""
        return None if self.clock == "tsc" else self.span
