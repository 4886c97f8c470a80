"""How the recordings of a profile were joined, and how their stacks were unwound."""

from perfuse.value_class import value_class


@value_class
class Join:
    """How a dump or log was joined with the samples.

    Attributes:
        path: The dump or log.
        pid: Process of the samples that wrote it; None where none did.
        found_by: `note` (of `perfuse record`), `marker` (the process mapped the file), `header_pid`, `only_one` (one
            dump, one process with generated code) or `unmatched`.
        alignment: How its times were put on the samples' clock, as in column `clocks.alignment`.
        offset_ns: Nanoseconds that were added to its times.
        uncertainty_ns: How far off that may be; None where it is exact or unknown.
    """

    path: str
    pid: int | None
    found_by: str
    alignment: str
    offset_ns: int
    uncertainty_ns: int | None


@value_class
class Unwinding:
    """How the copies of stacks that `perf record --call-graph dwarf` writes were unwound.

    Attributes:
        num_stacks: Stacks of which there is a copy.
        frames: Frames by how they were found, as in column `frames.unwound_by`.
        stops: Stacks by why unwinding ended: `outermost` (the stack is complete), `cut` (the rest was not copied),
            `no_rule` (no unwinding information for a function), `bad_read`, `lost_register`, `not_monotonic`,
            `bad_return_address`, `depth_limit` or `unsupported_machine`.
        cut_bytes: Size of the copies that ended too early; None where none did.
    """

    num_stacks: int
    frames: dict[str, int]
    stops: dict[str, int]
    cut_bytes: int | None
