"""How recordings were put together, and what that took."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Join:
    """How a dump was put together with the samples.

    Attributes:
        path: The dump.
        pid: Process of the recording that wrote it; None where none did.
        how: `marker` (the process mapped the file), `header_pid`, `only_one` (one dump, one JIT process) or
            `unmatched`.
        alignment: `same_clock`, `marker`, `marker_and_rate`, `time_conv` or `none`.
        offset_ns: Nanoseconds added to the dump's times.
        uncertainty_ns: How far off that may be; None where it is exact or unknown.
    """

    path: str
    pid: int | None
    how: str
    alignment: str
    offset_ns: int
    uncertainty_ns: int | None


@dataclass(frozen=True, slots=True)
class Unwinding:
    """How copies of stacks, of `perf record --call-graph dwarf`, were unwound.

    Attributes:
        num_stacks: Stacks that were unwound.
        frames: Frames by what found them, as in column `frames.unwound_by`.
        stops: Stacks by why they end where they do: `outermost` (they are whole), `cut` (the rest was not copied),
            `no_rule` (nothing tells how to leave a function), `bad_read`, `lost_register`, `not_monotonic`,
            `bad_return_address` or `depth_limit`.
        cut_bytes: Size of the copies that stacks were cut at; None where none were.
    """

    num_stacks: int
    frames: dict[str, int]
    stops: dict[str, int]
    cut_bytes: int | None
