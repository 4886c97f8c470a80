"""Which process wrote a dump or log: by the file that the process mapped, by its header, or as the only candidate."""

import math
import os
import re
from collections.abc import Sequence

from perfuse.diagnostics import Diagnostic, diagnostic
from perfuse.errors import PerfuseError
from perfuse.fusing.facts import Marker, SamplingFacts
from perfuse.fusing.following import Follow
from perfuse.fusing.note import note_beside
from perfuse.recording import Recording, open
from perfuse.value_class import value_class

_SLACK_NS = 1_000_000_000
"""Differences below this are not taken for different runs."""

_MAPPED_NS = 100_000_000
"""A dump is mapped less than this before or after its header is written."""


@value_class
class Match:
    """A dump or log, and the process that wrote it.

    Attributes:
        dump: The open dump or log.
        pid: Process in the recorder's pid namespace; None where none was found.
        marker: The process's mapping of the file; None where there is none.
        found_by: `note`, `marker`, `header_pid`, `only_one` or `unmatched`.
        others: Other processes that mapped a file of this name and that nothing rules out.
        other_recordings: Other recordings with another process of this pid that nothing rules out.
    """

    dump: Recording
    pid: int | None
    marker: Marker | None
    found_by: str
    others: tuple[int, ...] = ()
    other_recordings: tuple[str, ...] = ()


def match(dumps: Sequence[Recording], facts: SamplingFacts, *, only: bool) -> list[Match]:
    """Finds the process that wrote each dump.

    Args:
        dumps: Open dumps.
        facts: Facts about the recording of samples.
        only: Whether a single dump may be given to a single JIT process without further proof.
    """
    found = _distinguished([_match(dump, facts) for dump in dumps], facts)
    open_markers = {m.pid: m for m in facts.markers if all(m.pid != f.pid for f in found)}
    if only and len(found) == 1 and found[0].pid is None and len(open_markers) == 1 and _overlaps(dumps[0], facts):
        ((pid, marker),) = open_markers.items()
        return [Match(found[0].dump, pid, marker, "only_one")]
    return found


def sampled_by(dump: Recording, samplings: Sequence[SamplingFacts]) -> list[SamplingFacts]:
    """The recordings that have a process of a dump, that of its process first.

    Recordings of several containers may have the same pids and dumps of the same name. The process of a dump mapped it
    when it was begun; where clocks differ, the dump is that beside the recording.
    """
    found: list[tuple[tuple[bool, bool, float], SamplingFacts]] = []
    for facts in samplings:
        matched = _match(dump, facts)
        if matched.pid is None or is_of_another_run(matched, facts):
            continue
        is_beside = _is_beside(dump, facts)
        distance = math.inf
        if matched.marker and matched.marker.ts and _on_one_clock(dump, facts):
            distance = abs(matched.marker.ts - first_ticks(dump))
        found.append(((distance >= _MAPPED_NS, not is_beside, distance), facts))
    return [facts for _, facts in sorted(found, key=lambda one: one[0])]


def logged_by(log: Recording, samplings: Sequence[SamplingFacts]) -> list[tuple[Match, list[SamplingFacts]]]:
    """The recordings that have a process of a runtime's log, in groups of those that are equally likely, the likeliest
    first, each with the match of its first.

    Recordings of two machines or containers, or of one machine at different times, may have the same pids. The log is
    of one that was written at the same time; where clocks differ, of the one beside it.
    """
    groups: dict[tuple[int, bool], list[tuple[Match, SamplingFacts]]] = {}
    for facts in samplings:
        found = match_log(log, facts)
        if found.pid is None or is_of_another_run(found, facts):
            continue
        is_timed = _on_one_clock(log, facts) is not None
        distance = 1 if not is_timed else 0 if _overlaps(log, facts) else 2
        groups.setdefault((distance, not _is_beside(log, facts)), []).append((found, facts))
    return [(found[0][0], [facts for _, facts in found]) for _, found in sorted(groups.items(), key=lambda one: one[0])]


def _is_beside(recording: Recording, facts: SamplingFacts) -> bool:
    return os.path.dirname(os.path.abspath(recording.path)) == os.path.dirname(os.path.abspath(facts.path))


def match_log(log: Recording, facts: SamplingFacts) -> Match:
    """Finds the process that wrote a runtime's log, by the pid in its header."""
    pid = recorded_pid(log)
    if pid is None:
        return Match(log, None, None, "unmatched")
    if pid in facts.pids or any(marker.pid == pid for marker in facts.markers):
        return Match(log, pid, None, "header_pid")
    # In a pid namespace, a dump of the same process is named after the pid there.
    inside = {marker.pid for marker in facts.markers if pid in _numbers(_stem(marker.path))}
    return Match(log, inside.pop(), None, "header_pid") if len(inside) == 1 else Match(log, None, None, "unmatched")


def is_of_another_run(found: Match, facts: SamplingFacts) -> bool:
    """Whether a dump is of another process than that of the recording with its pid, by its times.

    A later process begins its dump after the recording's end. An earlier one ended its before the recording, in which
    this process mapped its own; times below the recording's length may count from the start of the process instead.
    Without the mapping, a dump from before the recording may be of the same process: perf can be attached to one.
    """
    times = _on_one_clock(found.dump, facts)
    if times is None:
        return False
    (dump_first, dump_last), (first, last) = times
    mapped_ns = found.marker.ts if found.marker else 0
    is_earlier = last - first + _SLACK_NS < dump_last < first <= mapped_ns
    return is_earlier or dump_first > last + _SLACK_NS


def _overlaps(dump: Recording, facts: SamplingFacts) -> bool:
    """Whether both are on one clock and were written at the same time."""
    times = _on_one_clock(dump, facts)
    if times is None:
        return False
    (dump_first, dump_last), (first, last) = times
    return dump_first <= last + _SLACK_NS and dump_last >= first - _SLACK_NS


def _on_one_clock(dump: Recording, facts: SamplingFacts) -> tuple[tuple[int, int], tuple[int, int]] | None:
    span = dump.summary.span_ns
    if facts.clock != "monotonic" or span is None or facts.span is None:
        return None
    return span, facts.span


def recorded_pid(recording: Recording) -> int | None:
    """The id that a recorded process had in its own namespace; None where its format does not record it."""
    field = recording.entry.process_field
    value = recording.header.get(field) if field else None
    return None if value is None else int(value)


def _match(dump: Recording, facts: SamplingFacts) -> Match:
    header_pid = recorded_pid(dump)
    if header_pid is None:
        return Match(dump, None, None, "unmatched")
    noted = _noted_pid(dump)
    if noted in facts.pids or any(marker.pid == noted for marker in facts.markers):
        return Match(dump, noted, next((m for m in facts.markers if m.pid == noted), None), "note")
    if same := _same_name(dump, facts):
        marker = _nearest(dump, same, facts)
        return Match(dump, marker.pid, marker, "marker")
    # In its own pid namespace a process has another pid, after which its file is named.
    inside = [m for m in facts.markers if header_pid in _numbers(_stem(m.path))]
    if len({m.pid for m in inside}) == 1:
        return Match(dump, inside[0].pid, inside[0], "marker")
    if header_pid in facts.pids:
        return Match(dump, header_pid, None, "header_pid")
    return Match(dump, None, None, "unmatched")


def _same_name(dump: Recording, facts: SamplingFacts) -> list[Marker]:
    """The mappings of a dump: of its process, or of its name where that has the process's number."""
    name, header_pid = _stem(dump.path), recorded_pid(dump)
    is_named_by_pid = header_pid in _numbers(name)
    return [m for m in facts.markers if m.pid == header_pid or (is_named_by_pid and _stem(m.path) == name)]


def _distinguished(found: list[Match], facts: SamplingFacts) -> list[Match]:
    """The matches; dumps of one name on another clock are given to processes by the times between their starts."""
    groups: dict[tuple[Marker, ...], list[int]] = {}
    for place, one in enumerate(found):
        markers = _same_name(one.dump, facts) if one.found_by == "marker" else []
        pids = {marker.pid for marker in markers}
        if len(pids) > 1 and _on_one_clock(one.dump, facts) is None:
            groups.setdefault(tuple(markers), []).append(place)
    for markers_of_name, places in groups.items():
        dumps = [found[place].dump for place in places]
        chosen = _by_intervals(dumps, markers_of_name)
        pids = {marker.pid for marker in markers_of_name}
        if len(dumps) == 1 and recorded_pid(*dumps) in pids:
            chosen = [next(one for one in markers_of_name if one.pid == recorded_pid(*dumps))]
        for number, place in enumerate(places):
            marker = chosen[number] if chosen else markers_of_name[min(number, len(markers_of_name) - 1)]
            others = () if chosen else tuple(sorted(pids - {marker.pid}))
            found[place] = Match(found[place].dump, marker.pid, marker, "marker", others)
    return found


def _by_intervals(dumps: Sequence[Recording], markers: Sequence[Marker]) -> list[Marker] | None:
    """The mapping of each dump, where the times between the starts of dumps are those between only these mappings.

    Clocks that start at other times still have the same time between two events.
    """
    if len(dumps) < 2 or any(dump.summary.span is None for dump in dumps) or not all(one.ts for one in markers):
        return None
    starts = [first_ticks(dump) for dump in dumps]
    fitting: list[list[Marker]] = []
    for first in markers:
        chosen = [min(markers, key=lambda one: abs(one.ts - first.ts - start + starts[0])) for start in starts]
        errors = [abs(one.ts - first.ts - start + starts[0]) for one, start in zip(chosen, starts, strict=True)]
        is_one_each = len({one.record_offset for one in chosen}) == len(chosen)
        if is_one_each and max(errors) < _MAPPED_NS and chosen not in fitting:
            fitting.append(chosen)
    return fitting[0] if len(fitting) == 1 else None


def _nearest(dump: Recording, markers: Sequence[Marker], facts: SamplingFacts) -> Marker:
    """The marker whose time is nearest to the start of a dump; the first one where their times are not comparable.

    Processes of several containers have the same pid inside, and dumps of the same name.
    """
    timed = [marker for marker in markers if marker.ts]
    if _on_one_clock(dump, facts) is None or not timed:
        return markers[0]
    start = first_ticks(dump)
    return min(timed, key=lambda marker: abs(marker.ts - start))


def first_ticks(dump: Recording) -> int:
    """When a dump with records was begun: by its header where that time is on their clock, else by its first record."""
    assert dump.summary.span is not None
    first = dump.summary.span[0]
    field = dump.entry.clock.start_field
    if field is None:
        return first
    header = int(dump.header[field])
    return header if 0 <= first - header <= 60 * _SLACK_NS else first


def _noted_pid(dump: Recording) -> int | None:
    """The process that `perfuse record` noted for a dump: two containers may have written dumps of the same name."""
    note = note_beside(dump.path)
    return None if note is None else note.pids.get(os.path.basename(dump.path))


def open_announced_dumps(
    facts: SamplingFacts, taken: set[int], *, strict: bool, follow: Follow
) -> tuple[list[Recording], list[Diagnostic]]:
    """Opens the dumps that processes without one announced, where they still are at their path or beside the recording.

    Returns:
        The dumps, and diagnostics about those that are missing or of another run.
    """
    dumps: list[Recording] = []
    found: list[Diagnostic] = []
    seen: set[str] = set()
    for marker in facts.markers:
        if marker.pid in taken or marker.path in seen:
            continue
        seen.add(marker.path)
        if follow != "all":
            message = f"process {marker.pid} wrote {marker.path}, which --follow {follow} does not open"
            found.append(diagnostic("FU002", facts.path, message, marker.record_offset))
            continue
        beside = [os.path.join(os.path.dirname(facts.path), os.path.basename(marker.path)), marker.path]
        path = next((one for one in beside if os.path.isfile(one)), None)
        if path is None:
            message = f"process {marker.pid} wrote {marker.path}, which is not there"
            found.append(diagnostic("FU002", facts.path, message, marker.record_offset))
            continue
        try:
            dump = open(path, strict=strict)
        except PerfuseError as error:
            found.append(diagnostic("FU002", facts.path, f"{path}: {error}", marker.record_offset))
            continue
        header_pid = recorded_pid(dump)
        if dump.role != "code_dump" or header_pid not in {marker.pid, *_numbers(os.path.basename(marker.path))}:
            message = f"{path} has the header of process {header_pid}, not of {marker.pid}"
            found.append(diagnostic("FU005", facts.path, message, marker.record_offset))
            continue
        if is_of_another_run(Match(dump, marker.pid, marker, "marker"), facts):
            message = f"{path} was begun after the end of this recording, or ended before its start"
            found.append(diagnostic("FU005", facts.path, message, marker.record_offset))
            continue
        dumps.append(dump)
    return dumps, found


def _stem(path: str) -> str:
    """File name without the suffix of a compressed file."""
    return re.sub(r"\.(gz|zst|xz)$", "", os.path.basename(path))


def _numbers(name: str) -> set[int]:
    """The decimal numbers in a file name."""
    return {int(number) for number in re.findall(r"\d+", name)}
