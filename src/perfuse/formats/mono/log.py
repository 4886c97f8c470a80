"""Mono logs: converting, cutting and merging them.

import perfuse as pf

pf.mono.convert("new.mlpd", output="old.mlpd", version=12)                # for tools of that time
pf.mono.convert("run.mlpd", output="slow.mlpd", between=(2.0, 2.5))       # seconds from the first event
pf.mono.convert("run.mlpd", output="snapshots.mlpd.gz", kinds=["HEAP_*"])
pf.mono.convert("a.mlpd", "b.mlpd", output="ab.mlpd")                     # several parts of one run
"""

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from perfuse import _core
from perfuse.clock import range_ns
from perfuse.errors import UsageError, require_in_range, require_version
from perfuse.formats.mono.unsupported import UNSUPPORTED
from perfuse.output.file import output_file
from perfuse.recording import Input, Recording, open_of_format


@dataclass(frozen=True, slots=True)
class WriteSummary:
    """The content of a written log, and what it does not represent.

    Attributes:
        num_buffers: Buffers.
        num_events: Events.
        left_out: By kind, number of events that the data version does not have.
        unsupported: Number of other items that the data version cannot represent or that the inputs do not contain,
            by name; see `UNSUPPORTED`.
    """

    num_buffers: int
    num_events: int
    left_out: Mapping[str, int]
    unsupported: Mapping[str, int]

    def notes(self) -> list[str]:
        """What is not represented, a line each."""
        events = [f"{name} events that were left out: {count:,}" for name, count in self.left_out.items()]
        return events + [f"{UNSUPPORTED[name]}: {count:,}" for name, count in self.unsupported.items()]

    @classmethod
    def _from_core(cls, facts: tuple[int, int, list[tuple[str, int]], list[tuple[str, int]]]) -> "WriteSummary":
        num_buffers, num_events, left_out, unsupported = facts
        return cls(num_buffers, num_events, dict(left_out), dict(unsupported))


def match_kinds(patterns: Iterable[str]) -> list[str]:
    """Kinds of events by name or pattern: `GC_*`, `METHOD_?*LEAVE`.

    Raises:
        UsageError: A pattern matches no kind.
    """
    names = _core.mono_kinds()
    found: dict[str, None] = {}
    for pattern in patterns:
        matches = fnmatch.filter(names, pattern)
        if not matches:
            raise UsageError(
                f"there is no event {pattern!r} in a Mono log", field="kinds", hint=f"there are {', '.join(names)}"
            )
        found.update(dict.fromkeys(matches))
    return list(found)


def convert(
    *inputs: Input | Recording,
    output: str | PathLike[str],
    version: int | None = None,
    between: tuple[float, float] | None = None,
    threads: Iterable[int | str] | None = None,
    kinds: Iterable[str] | None = None,
    any_run: bool = False,
) -> WriteSummary:
    """Writes the logs of a run as one log: in another data version, or a part of them.

    Everything that no option changes stays as it is in the first log: without options the copy of a log is equal byte
    for byte. Events that name something (methods, types, threads, roots, counters) are always written, whatever is
    selected.

    Args:
        inputs: Logs of one run.
        output: The file to write, compressed where its name ends in `.gz`; it appears under its name only when it is
            complete.
        version: Data version, 1 to 17.
        between: Only events that overlap this range, in seconds from the first event. Calls and the calls around them,
            garbage collections, waits for locks, finalizers and heap snapshots are complete.
        threads: Only these threads, by name or by id (`thread_id` of `records()`).
        kinds: Only events of these names, or patterns of names; see `match_kinds`.
        any_run: Write logs of several runs as one. Their addresses are not distinguished, and only the counters of the
            first run are written.

    Returns:
        What was written, and what is not represented.

    Raises:
        UnreadableInput: An input cannot be read.
        UsageError: An input is not a Mono log, there is none, or the data version or a kind of event does not exist.
        ExportError: The logs are not of one run, or the output cannot be written.
    """
    recordings = [open_of_format(one, "mono", "a Mono log") for one in inputs]
    if not recordings:
        raise UsageError("no log to convert")
    require_version(version)
    threads = None if threads is None else list(threads)
    for one in threads or ():
        if isinstance(one, int):
            require_in_range(one, 0, 2**64 - 1, "threads")
    options: _core._MonoOptions = {
        "version": version,
        "between_ns": range_ns(between),
        "is_relative": True,
        "threads": threads,
        "kinds": None if kinds is None else match_kinds(kinds),
        "any_run": any_run,
    }
    try:
        with output_file(Path(fspath(output))) as out:
            return WriteSummary._from_core(_core.convert_mono([one._core for one in recordings], out, options))
    except (ValueError, OverflowError) as error:
        raise UsageError(str(error)) from error
