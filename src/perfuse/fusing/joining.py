"""Joins several recordings on one clock."""

import os
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike, fspath
from typing import Literal

from perfuse import _core
from perfuse.clock import Clock
from perfuse.diagnostics import Diagnostic, diagnostic
from perfuse.errors import UsageError
from perfuse.fusing.alignment import align, align_by_wall_time, align_log, needs_first_uses
from perfuse.fusing.discovery import open_inputs
from perfuse.fusing.facts import SamplingFacts
from perfuse.fusing.following import Follow, Maps, require_follow
from perfuse.fusing.matching import (
    Match,
    is_of_another_run,
    logged_by,
    match,
    open_announced_dumps,
    recorded_pid,
    sampled_by,
)
from perfuse.fusing.note import note_beside
from perfuse.input.unpacking import allowed_bytes, unpacking_at_most
from perfuse.memory import limit_memory
from perfuse.opened import OpenedRecordings
from perfuse.profile import Join, Profile, Progress
from perfuse.recording import Input, Recording
from perfuse.table import Columns
from perfuse.value_class import replace, value_class

Rate = int | Literal["auto", "header"]
"""Ticks per second, or where that rate is from."""


def fuse(
    *inputs: Input | Recording,
    symbol_dirs: Sequence[str | PathLike[str]] = (),
    debug_info: bool = True,
    strict: bool = False,
    maps: Maps | None = None,
    tsc_hz: Rate = "auto",
    follow: Follow = "all",
    debuginfod: Sequence[str] = (),
    max_unpacked: int | str | None = None,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> Profile:
    """Opens recordings and joins them on one clock.

    The dumps that the processes of a `perf.data` announced are opened as well, where they still are at their path or
    beside it. Dumps that are named, or are in a directory that is named, are matched by mapped file, then by pid. A
    file that is named more than once is counted once.

    Args:
        inputs: Paths, directories, `-`, bytes, file objects or open recordings.
        symbol_dirs: Directories to search first for the programs and libraries of the recording.
        debug_info: Use DWARF for lines and inlined calls of native code.
        strict: Refuse files that depart from their specification in more than habit.
        maps: Programs and libraries with instrumentation maps, by object number, which name the functions of XRay logs;
            0 is the program itself. As a list, the program and its libraries, which are numbered by the order of their
            constructors. Where none is given, the program that the log is named after is searched for beside the log
            and in `symbol_dirs`.
        tsc_hz: Ticks per second of the processor's counter in call traces: `auto` for the rate that the trace itself
            shows or else that of its header, `header`, or the rate.
        follow: Which files that the content of a recording names are opened: `all`; `named` for those in `symbol_dirs`,
            and by build id in this machine's directories for debug files, but never a path from the recording; `none`.
        debuginfod: Addresses of debuginfod servers, which are asked in turn for programs and debug information of
            sampled code that this machine does not have; what they send is stored in debuginfod's cache. Nothing is
            downloaded unless servers are named.
        max_unpacked: Most bytes that a compressed file, or a pipe, may become, as in `perfuse.open`.
        memory: Limit of the memory of this process, in bytes or as `4GB`, for this call and those that follow. By
            default 60 % of what the machine or its control group has.
        progress: Called with the name of each step and the part of the work that is done, from 0 to 1.

    Raises:
        UnreadableInput: A file cannot be read.
        UsageError: Nothing was given, or an argument is not valid.
        OutOfMemory: A call would use more memory than the limit.
    """
    _require_options(follow, symbol_dirs, debuginfod, tsc_hz)
    limit_memory(memory)
    report_progress = progress or (lambda _step, _share: None)
    report_progress("opening", 0.0)
    with unpacking_at_most(max_unpacked):
        limit = allowed_bytes()
        found = open_inputs(inputs, strict=strict)
    recordings = found.recordings
    if not recordings:
        raise UsageError("nothing to open", hint="give a perf.data, a jit-PID.dump, or both")
    if any(one.role == "saved_profile" for one in recordings):
        from perfuse.archive.opening import open_alone

        resolves = bool(maps or symbol_dirs) or tsc_hz != "auto" or not debug_info
        return open_alone(recordings, inputs, resolves=resolves)
    sampled = [one for one in recordings if one.role == "samples" and one.entry.clock.kinds]
    dumps = [one for one in recordings if one.role == "code_dump"]
    others = [one for one in recordings if one not in sampled and one.role != "code_dump"]
    samplings = _Samplings(sampled)
    for recording in recordings:
        recording.read_ahead()
    others, copied = _without_copies(others)
    if sampled:
        report_progress("finding dumps", 0.2)
    with unpacking_at_most(limit):
        matches, unmatched = _match_dumps(dumps, found.nearby_dumps, samplings, strict=strict, follow=follow)
    traces = [one for one in others if one.role == "call_trace"]
    objects, map_diagnostics = _find_maps(traces, maps or {}, symbol_dirs, follow)
    report_progress("joining", 0.5)
    joined = [_join_dump(one, facts) for one, facts in matches]
    joined += [_join_other(one, samplings, tsc_hz) for one in others]
    placed = [_placed(facts.recording, None, Clock(facts.clock), samplings.nth_of_pid(facts)) for facts in samplings]
    placed += [_placed(one.recording, one.pid, one.clock, _nth_of_pid(one, samplings)) for one in joined]

    def join_with(directories: Sequence[str]) -> _core.Profile:
        machine = samplings.facts[0].machine if sampled else None
        return _core.Profile(placed, directories, debug_info, machine, objects, follow, limit)

    directories = [*(fspath(path) for path in symbol_dirs), *(_kernel_copies(sampled) if follow != "none" else ())]
    fusion = join_with(directories)
    failures: tuple[str, ...] = ()
    if debuginfod and sampled:
        cache, failures = _downloaded(fusion, debuginfod, report_progress)
        fusion = join_with([*directories, cache])
    if sampled:
        fusion.join_ahead()
    joined_recordings = [*sampled, *(one.recording for one in joined)]
    return Profile(
        OpenedRecordings(joined_recordings, fusion),
        joins=[one.join for one in joined if one.match] if sampled else [],
        found=[
            *(*found.diagnostics, *copied, *unmatched, *map_diagnostics),
            *(finding for one in joined for finding in _findings(one, samplings)),
            *(diagnostic("FU022", sampled[0].path, failure) for failure in failures),
        ],
        title=samplings.title or ", ".join(one.path for one in recordings),
        owned=[one for one in joined_recordings if not any(one is given for given in inputs)],
    )


class _Samplings:
    """The recordings of samples, with which dumps, logs and traces are joined.

    Attributes:
        facts: Facts about each.
    """

    def __init__(self, sampled: Sequence[Recording]) -> None:
        self.facts = [SamplingFacts.of(one) for one in sampled]
        self._nth_of_pid: dict[SamplingFacts, dict[int, int]] = {}
        if len(sampled) > 1:
            numbers = _core.process_numbers([one._core for one in sampled])
            self._nth_of_pid = dict(zip(self.facts, numbers, strict=True))

    def __iter__(self) -> Iterator[SamplingFacts]:
        return iter(self.facts)

    @property
    def title(self) -> str:
        """The recorded command lines."""
        return " + ".join(dict.fromkeys(filter(None, (facts.command_line for facts in self))))

    def nth_of_pid(self, facts: SamplingFacts | None) -> Mapping[int, int]:
        """By pid, which of the processes with that pid one of the recordings has; 0, the first, is left out.

        Processes of two containers or machines may have one pid. They are distinguished by their programs.
        """
        return {} if facts is None else self._nth_of_pid.get(facts, {})


@value_class
class _Joined:
    """A recording that has no samples of its own clock, on the clock of the samples where that is known.

    Attributes:
        recording: The open dump, log or trace.
        clock: Its clock.
        match: The process that wrote it; None where its format names no process, or no samples have the process.
        facts: The recording of samples that has this process; None where none has.
    """

    recording: Recording
    clock: Clock
    match: Match | None
    facts: SamplingFacts | None

    @property
    def pid(self) -> int | None:
        """Its process, in the recorder's pid namespace; None where it is not known."""
        return None if self.match is None else self.match.pid

    @property
    def join(self) -> Join:
        """How it was joined with the samples."""
        assert self.match is not None
        clock = self.clock
        found_by = self.match.found_by
        return Join(self.recording.path, self.pid, found_by, clock.alignment, clock.offset_ns, clock.uncertainty_ns)


def _require_options(
    follow: Follow, symbol_dirs: Sequence[str | PathLike[str]], debuginfod: Sequence[str], tsc_hz: Rate
) -> None:
    """Raises `UsageError` for options that contradict each other, and for an invalid rate."""
    require_follow(follow, symbol_dirs)
    if debuginfod:
        from perfuse.fusing.debuginfod import require_servers

        require_servers(debuginfod, follow)
    is_rate = isinstance(tsc_hz, int) and 0 < tsc_hz < 1 << 63
    if not is_rate and tsc_hz not in ("auto", "header"):
        raise UsageError(f"tsc_hz is a number of ticks per second, not {tsc_hz}", hint="or 'auto', or 'header'")


def _without_copies(recordings: Sequence[Recording]) -> tuple[list[Recording], list[Diagnostic]]:
    """The recordings, traces without what those before them have too; and diagnostics about these."""
    found: list[Recording] = []
    traces: list[Recording] = []
    diagnostics: list[Diagnostic] = []
    for one in recordings:
        rest = one.without_copies_of(traces) if traces and one.role == "call_trace" else None
        traces += [one] if one.role == "call_trace" else []
        if rest is None:
            found.append(one)
            continue
        recording, num_copied = rest
        found.append(recording)
        message = f"{one.path}: {num_copied:,} events are those of logs before it, as fork copies them; counted once"
        diagnostics.append(diagnostic("FU024", one.path, message))
    return found, diagnostics


def _find_maps(
    traces: Sequence[Recording], given: Maps, directories: Sequence[str | PathLike[str]], follow: Follow
) -> tuple[list[tuple[int, str]], list[Diagnostic]]:
    """The files that name the functions of traces, and diagnostics about how they were found."""
    if not traces and not given:
        return [], []
    from perfuse.fusing.programs import find_maps

    return find_maps(traces, given, directories, follow)


def _kernel_copies(sampled: Sequence[Recording]) -> list[str]:
    """Where `perf record --kcore` stored the symbols of the recorded kernel, and those of guests."""
    directories = [one.path for one in sampled if os.path.isdir(one.path)]
    copies = [entry.path for one in directories for entry in os.scandir(one) if entry.name.startswith("kcore_dir")]
    return sorted(path for path in copies if os.path.isdir(path))


def _downloaded(
    fusion: _core.Profile, servers: Sequence[str], report_progress: Progress
) -> tuple[str, tuple[str, ...]]:
    """Downloads missing programs and debug information; returns the directory that has them, and failures.

    Imported here: what it needs takes longer to import than a small file to read.
    """
    from perfuse.fusing.debuginfod import cache_directory, fetch, wanted_files

    cache = cache_directory()
    return str(cache), fetch(wanted_files(fusion), servers, cache, report_progress).failures


_Matched = tuple[Match, SamplingFacts | None]
"""A dump with its process, and the recording of samples that has the process; None where no recording has it."""


def _match_dumps(
    named: Sequence[Recording], nearby: Sequence[Recording], samplings: _Samplings, *, strict: bool, follow: Follow
) -> tuple[list[_Matched], list[Diagnostic]]:
    """Matches the dumps that were named, those nearby that match, and those that processes announced.

    Returns:
        The dumps, and diagnostics about those that are missing or of no process.
    """
    matches: list[_Matched] = []
    diagnostics: list[Diagnostic] = []
    matched: set[tuple[int, int]] = set()
    left = list(named)
    of_another = _dumps_of_others(left, samplings)
    for facts in samplings:
        nth = samplings.nth_of_pid(facts).get
        candidates = [dump for dump in left if facts not in of_another.get(dump, ())]
        own = _of_a_process(match(candidates, facts, only=len(samplings.facts) == 1), facts)
        left = [dump for dump in left if all(one.dump is not dump for one in own)]
        own += _of_a_process(match(nearby, facts, only=False), facts)
        matched |= {(one.pid, nth(one.pid, 0)) for one in own if one.pid is not None}
        taken = {pid for pid, number in matched if number == nth(pid, 0)}
        announced, missing = open_announced_dumps(facts, taken, strict=strict, follow=follow)
        own += [one for one in match(announced, facts, only=False) if one.pid is not None]
        diagnostics += missing
        matches += [(one, facts) for one in own]
    if samplings.facts:
        diagnostics += [_no_process(dump) for dump in left]
    return [*matches, *((Match(dump, None, None, "unmatched"), None) for dump in left)], diagnostics


def _dumps_of_others(dumps: Sequence[Recording], samplings: _Samplings) -> dict[Recording, list[SamplingFacts]]:
    """For each dump, the recordings whose process with its pid is not the one that wrote it."""
    if not any(map(samplings.nth_of_pid, samplings)):
        return {}
    others: dict[Recording, list[SamplingFacts]] = {}
    for dump in dumps:
        first, *rest = sampled_by(dump, samplings.facts) or (None,)
        own = samplings.nth_of_pid(first)
        others[dump] = [facts for facts in rest if samplings.nth_of_pid(facts) != own]
    return others


def _of_a_process(matches: Sequence[Match], facts: SamplingFacts) -> list[Match]:
    """The matches that have a process of this recording."""
    return [one for one in matches if one.pid is not None and not is_of_another_run(one, facts)]


def _match_log(log: Recording, samplings: _Samplings) -> tuple[Match, SamplingFacts] | None:
    """The process of a runtime's log, and the likeliest of the recordings that have it; None where none has it."""
    groups = logged_by(log, samplings.facts)
    if not groups:
        return None
    found, (facts, *equal) = groups[0]
    pid = found.pid or 0
    own = samplings.nth_of_pid(facts).get(pid, 0)
    uncertain = tuple(one.path for one in equal if samplings.nth_of_pid(one).get(pid, 0) != own)
    return replace(found, other_recordings=uncertain), facts


def _join_dump(m: Match, facts: SamplingFacts | None) -> _Joined:
    if facts is None:
        return _Joined(m.dump, Clock(m.dump.summary.clock, alignment="none"), m, None)
    uses = _first_uses(m, facts, Clock()) if needs_first_uses(m, facts) else []
    return _Joined(m.dump, align(m, facts, uses), m, facts)


def _join_other(recording: Recording, samplings: _Samplings, tsc_hz: Rate) -> _Joined:
    """Puts a recording that is neither samples nor a dump on their clock, where both have a process."""
    hz = tsc_hz if isinstance(tsc_hz, int) else None
    clock = Clock(*recording._core.clock(hz, tsc_hz == "header"))
    matched = _match_log(recording, samplings) if recording.role == "runtime_log" else None
    if matched is None:
        if _is_on_another_clock(recording, clock, samplings):
            clock = _by_wall_time(clock, samplings)
        return _Joined(recording, clock, None, None)
    found, facts = matched
    uses = _first_uses(found, facts, clock) if facts.clock != clock.kind else []
    return _Joined(recording, align_log(recording, clock, facts, uses), found, facts)


def _by_wall_time(clock: Clock, samplings: _Samplings) -> Clock:
    """A clock that samples do not have: the wall clock is put on theirs where their recording has a time of both."""
    if clock.kind == "realtime" and len({facts.clock for facts in samplings}) == 1:
        for facts in samplings:
            alone = _core.Profile([_placed(facts.recording, None, Clock(facts.clock))], [], False)
            [offset] = Columns(alone.table("clocks"))["realtime_offset_ns"]
            if offset is not None:
                return align_by_wall_time(clock, facts, offset)
    return clock._replace(alignment="none") if clock.alignment == "same_clock" else clock


def _first_uses(m: Match, facts: SamplingFacts, clock: Clock) -> list[tuple[int, int]]:
    """When code of a dump or log was made, on `clock`, and when it was first sampled."""
    raw = [_placed(facts.recording, None, Clock()), _placed(m.dump, m.pid, clock)]
    return _core.Profile(raw, [], False).first_uses(0, 1)


def _is_on_another_clock(recording: Recording, clock: Clock, samplings: _Samplings) -> bool:
    """Whether a recording has times that are not on the clock of all samples."""
    return bool(recording.entry.clock.kinds) and any(facts.clock != clock.kind for facts in samplings)


def _nth_of_pid(joined: _Joined, samplings: _Samplings) -> Mapping[int, int]:
    """By pid, which of the processes with that pid a recording has: of a dump that none of them wrote, another one."""
    pid = recorded_pid(joined.recording) if joined.match else None
    if pid is None or joined.facts is not None:
        return samplings.nth_of_pid(joined.facts)
    sampled = [samplings.nth_of_pid(facts).get(pid, 0) for facts in samplings if pid in facts.pids]
    return {pid: max(sampled) + 1} if sampled else {}


def _placed(
    recording: Recording, pid: int | None, clock: Clock, nth_of_pid: Mapping[int, int] | None = None
) -> _core.Placed:
    """A recording with its clock and its process, which of those with the pid is that of its samples."""
    note = note_beside(recording.path)
    return _core.Placed(recording._core, clock, pid, None if note is None else note.definitions, nth_of_pid or {})


def _no_process(dump: Recording) -> Diagnostic:
    message = f"{dump.path} is of process {recorded_pid(dump)}, which the recording does not have, or of another time"
    return diagnostic("FU001", dump.path, message)


def _findings(joined: _Joined, samplings: _Samplings) -> list[Diagnostic]:
    """What is uncertain about the process and the clock of a dump, log or trace."""
    path, m, facts, clock = joined.recording.path, joined.match, joined.facts, joined.clock
    if m is None and _is_on_another_clock(joined.recording, clock, samplings):
        return [diagnostic("FU006", path, f"{path} is on another clock than {samplings.facts[0].path}")]
    if m is None or facts is None or m.pid is None:
        return []
    diagnostics = []
    header_pid = recorded_pid(m.dump)
    if header_pid is not None and header_pid != m.pid:
        message = f"process {m.pid} is process {header_pid} in its own pid namespace"
        diagnostics.append(diagnostic("FU004", path, message))
    if m.others:
        others = ", ".join(map(str, m.others))
        message = f"{path} is taken for that of process {m.pid}; it may be of {others}"
        diagnostics.append(diagnostic("FU023", path, message))
    if m.other_recordings:
        others = ", ".join(m.other_recordings)
        message = f"{path} is taken for that of process {m.pid} of {facts.path}; it may be of that in {others}"
        diagnostics.append(diagnostic("FU023", path, message))
    if clock.alignment == "none":
        diagnostics.append(diagnostic("FU006", path, f"{path} is on another clock than {facts.path}"))
    elif clock.alignment != "same_clock":
        rate = f", {clock.hz / 1e6:,.1f} MHz ({clock.hz_source})" if clock.kind == "tsc" and clock.hz else ""
        sure = "" if clock.uncertainty_ns is None else f", sure to {clock.uncertainty_ns / 1e6:.3f} ms"
        message = f"put on the recording's clock by its {clock.alignment.replace('_', ' ')}{rate}{sure}"
        diagnostics.append(diagnostic("FU003", path, message))
    return diagnostics
