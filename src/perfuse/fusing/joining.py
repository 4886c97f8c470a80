"""Several recordings put together on one clock."""

from collections.abc import Sequence
from os import PathLike, fspath
from typing import Literal

from perfuse import _core
from perfuse.alignment import Alignment, align, needs_samples
from perfuse.diagnostics import Diagnostic, diagnostic
from perfuse.discovery import Match, from_markers, is_of_a_later_run, match, open_inputs
from perfuse.errors import UsageError
from perfuse.formats.perf_data import PerfFacts
from perfuse.profile import Join, Profile, Progress
from perfuse.programs import Maps, find_maps
from perfuse.recording import Input, Recording

Rate = int | Literal["auto", "header"]
"""Ticks a second, or where to take them from."""


def fuse(
    *inputs: "Input | Recording",
    symbol_dirs: Sequence[str | PathLike[str]] = (),
    debug_info: bool = True,
    strict: bool = False,
    maps: Maps | None = None,
    tsc_hz: Rate = "auto",
    progress: Progress | None = None,
) -> Profile:
    """Opens recordings and joins them on one clock.

    A `perf.data` brings the dumps its processes mapped, where they still are at their path or beside it; dumps that are
    named, or lie in a directory that is named, are matched by mapped file, then by pid.

    Args:
        inputs: Paths, directories, `-`, bytes, file objects or open recordings.
        symbol_dirs: Where to look for the programs and libraries of the recording, first.
        debug_info: Use DWARF for lines and inlined calls of native code.
        strict: Refuse files that depart from their specification in more than habit.
        maps: Programs and libraries with instrumentation maps, by object number, which name the functions of XRay logs;
            0 is the program itself. Where none is given, a program of the name in the log's own is looked for beside
            it and in `symbol_dirs`.
        tsc_hz: Ticks a second of the processor's counter in call traces: `auto` for what the trace itself shows, or
            else its header; `header`; or the rate.
        progress: Called with what is being done, and how much of it is.

    Raises:
        UnreadableInput: A file cannot be read.
        UsageError: Nothing was given.
    """
    say = progress or (lambda _what, _share: None)
    say("opening", 0.0)
    named, beside = open_inputs(inputs, strict=strict)
    if not named:
        raise UsageError("nothing to open", hint="give a perf.data, a jit-PID.dump, or both")
    perfs = [recording for recording in named if "callchains" in recording.fills]
    dumps = [recording for recording in named if "code_objects" in recording.fills]
    traces = [recording for recording in named if recording not in perfs and recording not in dumps]
    for recording in named:
        recording.read_ahead()
    if perfs:
        say("finding dumps", 0.2)
    matches, found = _matched(perfs, dumps, beside, strict=strict)
    numbered = [trace for trace in traces if "call_events" in trace.fills]
    objects, told = find_maps(numbered, maps or {}, symbol_dirs)
    found += told
    say("joining", 0.5)
    alignments = [_aligned(m, facts) for m, facts in matches]
    joins = [_join(m, a) for (m, _), a in zip(matches, alignments, strict=True)] if perfs else []
    for (m, its_facts), alignment in zip(matches, alignments, strict=True):
        found += _told(m, its_facts, alignment)
    recordings = [*perfs, *(m.dump for m, _ in matches), *traces]
    placed = [_placed(perf, None, _perf_clock(perf)) for perf in perfs]
    placed += [_placed(m.dump, m.pid, a) for (m, _), a in zip(matches, alignments, strict=True)]
    clocks = [_own_clock(trace, tsc_hz) for trace in traces]
    found += [d for trace, clock in zip(traces, clocks, strict=True) for d in _clock_told(trace, clock, perfs)]
    placed += [_placed(trace, None, clock) for trace, clock in zip(traces, clocks, strict=True)]
    machine = PerfFacts.of(perfs[0]).machine if perfs else None
    fusion = _core.Fusion(placed, [fspath(path) for path in symbol_dirs], debug_info, machine, objects)
    if perfs:
        fusion.join_ahead()
    titles = [PerfFacts.of(perf).command_line for perf in perfs]
    title = " + ".join(t for t in titles if t) or ", ".join(r.path for r in named)
    return Profile(recordings, fusion, joins=joins, found=found, title=title)


def _matched(
    perfs: Sequence[Recording], dumps: list[Recording], beside: Sequence[Recording], *, strict: bool
) -> tuple[list[tuple[Match, PerfFacts | None]], list[Diagnostic]]:
    """The process of each dump that was named, and the dumps that processes wrote."""
    found: list[Diagnostic] = []
    matches: list[tuple[Match, PerfFacts | None]] = []
    taken: set[int] = set()
    left = dumps
    for perf in perfs:
        facts = PerfFacts.of(perf)
        mine = [m for m in match(left, facts, only=len(perfs) == 1) if m.pid is not None]
        mine = [m for m in mine if not is_of_a_later_run(m.dump, facts)]
        left = [dump for dump in left if all(m.dump is not dump for m in mine)]
        found_beside = [m for m in match(beside, facts, only=False) if m.pid is not None]
        mine += [m for m in found_beside if not is_of_a_later_run(m.dump, facts)]
        taken |= {m.pid for m in mine if m.pid is not None}
        there, missing = from_markers(facts, taken, strict=strict)
        mine += [m for m in match(there, facts, only=False) if m.pid is not None]
        found += missing
        matches += [(m, facts) for m in mine]
    if perfs:
        found += [_no_process(dump) for dump in left]
    return [*matches, *((Match(dump, None, None, "unmatched"), None) for dump in left)], found


def _aligned(m: Match, facts: PerfFacts | None) -> Alignment:
    if facts is None:
        return Alignment(m.dump.summary.clock, how="none")
    uses: list[tuple[int, int]] = []
    if needs_samples(m, facts):
        # Both on their own clocks: only the difference is wanted.
        raw = [_placed(facts.recording, None, Alignment()), _placed(m.dump, m.pid, Alignment())]
        uses = _core.Fusion(raw, [], False).first_uses(0, 1)
    return align(m, facts, uses)


def _placed(recording: Recording, pid: int | None, a: Alignment) -> _core.Placed:
    return _core.Placed(
        recording._core,
        numerator=a.numerator,
        denominator=a.denominator,
        offset_ns=a.offset_ns,
        pid=pid,
        clock_kind=a.kind,
        hz=a.hz,
        hz_source=a.hz_source,
        stated_hz=a.stated_hz,
        uncertainty_ns=a.uncertainty_ns,
        alignment=a.how,
    )


def _own_clock(trace: Recording, tsc_hz: Rate) -> Alignment:
    hz = tsc_hz if isinstance(tsc_hz, int) else None
    return Alignment(**trace._core.clock(hz, tsc_hz == "header"))


def _clock_told(trace: Recording, clock: Alignment, perfs: list[Recording]) -> list[Diagnostic]:
    """That a trace is not on the samples' clock."""
    if all(perf.summary.clock == clock.kind for perf in perfs):
        return []
    return [diagnostic("FU006", trace.path, f"{trace.path} is on another clock than {perfs[0].path}")]


def _perf_clock(perf: Recording) -> Alignment:
    return Alignment(perf.summary.clock)


def _join(m: Match, a: Alignment) -> Join:
    return Join(m.dump.path, m.pid, m.how, a.how, a.offset_ns, a.uncertainty_ns)


def _no_process(dump: Recording) -> Diagnostic:
    message = f"{dump.path} is of process {dump.header['pid']}, which the recording does not have, or of another time"
    return diagnostic("FU001", dump.path, message)


def _told(m: Match, facts: PerfFacts | None, a: Alignment) -> list[Diagnostic]:
    """What a user should know of how a dump was put in."""
    if facts is None or m.pid is None:
        return []
    told = []
    header_pid = int(m.dump.header["pid"])
    if header_pid != m.pid:
        message = f"process {m.pid} is process {header_pid} in its own pid namespace"
        told.append(diagnostic("FU004", m.dump.path, message))
    if a.how == "none":
        told.append(diagnostic("FU006", m.dump.path, f"{m.dump.path} is on another clock than {facts.path}"))
    elif a.how != "same_clock":
        rate = f", {a.hz / 1e6:,.1f} MHz ({a.hz_source})" if a.kind == "tsc" and a.hz else ""
        sure = "" if a.uncertainty_ns is None else f", sure to {a.uncertainty_ns / 1e6:.3f} ms"
        message = f"put on the recording's clock by its {a.how.replace('_', ' ')}{rate}{sure}"
        told.append(diagnostic("FU003", m.dump.path, message))
    return told
