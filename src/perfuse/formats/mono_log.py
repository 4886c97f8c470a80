"""Mono logs: converting, cutting and merging them.

import perfuse as pf

pf.mono.convert("new.mlpd", output="old.mlpd", version=12)                # for tools of that time
pf.mono.convert("run.mlpd", output="slow.mlpd", between=(2.0, 2.5))       # seconds from the first event
pf.mono.convert("run.mlpd", output="shots.mlpd.gz", kinds=["HEAP_*"])
pf.mono.convert("a.mlpd", "b.mlpd", output="ab.mlpd")                     # several parts of one run
"""

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from perfuse import _core
from perfuse.errors import ExportError, UsageError
from perfuse.formats.mono_unsupported import UNSUPPORTED
from perfuse.recording import Input, Recording, open
from perfuse.whole_file import new_file

_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Written:
    """What a log has, and what of the others it has not.

    Attributes:
        num_buffers: Buffers.
        num_events: Events.
        left_out: By kind, events that the data version does not have.
        misfits: How many there were of what else its data version has no place for, or what the logs do not say; see
            `UNSUPPORTED`.
    """

    num_buffers: int
    num_events: int
    left_out: Mapping[str, int]
    misfits: Mapping[str, int]

    def told(self) -> list[str]:
        """What did not fit, a line each."""
        events = [f"{name} events that were left out: {count:,}" for name, count in self.left_out.items()]
        return events + [f"{UNSUPPORTED[name]}: {count:,}" for name, count in self.misfits.items()]

    @classmethod
    def of(cls, facts: tuple[int, int, list[tuple[str, int]], list[tuple[str, int]]]) -> "Written":
        """What the core says of a log."""
        num_buffers, num_events, left_out, misfits = facts
        return cls(num_buffers, num_events, dict(left_out), dict(misfits))


def kinds_like(patterns: Iterable[str]) -> list[str]:
    """Kinds of events by their names, or by patterns of them: `GC_*`, `METHOD_?*LEAVE`.

    Raises:
        UsageError: No kind is of that name.
    """
    known = _core.mono_kinds()
    found: dict[str, None] = {}
    for pattern in patterns:
        matches = fnmatch.filter(known, pattern)
        if not matches:
            raise UsageError(
                f"there is no event {pattern!r} in a Mono log", field="kinds", hint=f"there are {', '.join(known)}"
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
) -> Written:
    """Writes one log of the logs of a run: in another data version, or a part of them.

    What is not said stays as it is in the first log: without any of the options a log comes out byte for byte. Events
    that name something (methods, types, threads, roots, counters) are always written, whatever is selected.

    Args:
        inputs: Logs of one run.
        output: The file to write, compressed where its name ends in `.gz`; it appears under its name only when it is
            complete.
        version: Data version, 1 to 17.
        between: Only what overlaps this range, in seconds from the first event. Calls, and those around them, garbage
            collections, waits for locks, finalizers and heap shots are whole.
        threads: Only these threads, by name or by id (`thread_id` of `records()`).
        kinds: Only events of these names, or patterns of names; see `kinds_like`.
        any_run: Write logs of several runs as one. Their addresses are not told apart, and the counters of the first
            run alone are written.

    Returns:
        What was written, and what did not fit.

    Raises:
        UnreadableInput: An input cannot be read.
        UsageError: An input is no Mono log, there is none, or no such data version or kind of event.
        ExportError: The logs are not of one run, or it cannot be written.
    """
    recordings = [one if isinstance(one, Recording) else open(one) for one in inputs]
    if not recordings:
        raise UsageError("no log to convert")
    for one in recordings:
        if one.format != "mono":
            raise UsageError(f"{one.path} is no Mono log, but {one.format}", path=one.path)
    wanted: _core._MonoWanted = {
        "version": version,
        "between_ns": None if between is None else (round(between[0] * _SECOND), round(between[1] * _SECOND)),
        "is_relative": True,
        "threads": None if threads is None else list(threads),
        "kinds": None if kinds is None else kinds_like(kinds),
        "any_run": any_run,
    }
    target = Path(fspath(output))
    try:
        with new_file(target) as out:
            return Written.of(_core.convert_mono([one._core for one in recordings], out, wanted))
    except OSError as error:
        raise ExportError(f"cannot write {target}: {error.strerror or error}", path=str(target)) from error
    except (ValueError, OverflowError) as error:
        raise UsageError(str(error)) from error
