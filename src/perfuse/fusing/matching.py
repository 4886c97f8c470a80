"""Which dump is of which process: by name given, marker, directory, header."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfuse.diagnostics import Diagnostic, diagnostic
from perfuse.errors import PerfuseError, UsageError
from perfuse.formats.perf_data import Marker, PerfFacts
from perfuse.recording import Input, Recording, open

_DUMP = re.compile(r"jit-.*\.dump(\.gz|\.zst)?$")
_SLACK_NS = 1_000_000_000
_RECORDING = re.compile(r"(perf\.data|.*\.perf\.data|xray-log\..*|.*\.xray)(\.gz|\.zst)?$")


@dataclass(frozen=True, slots=True)
class Match:
    """A dump, and the process of the recording that wrote it."""

    dump: Recording
    pid: int | None
    marker: Marker | None
    how: str


def open_inputs(inputs: Iterable["Input | Recording"], *, strict: bool) -> tuple[list[Recording], list[Recording]]:
    """Opens what was named; of a directory its recordings, and its dumps apart, to be used only where they match.

    Returns:
        Recordings named, and dumps found in directories.
    """
    named: list[Recording] = []
    beside: list[Recording] = []
    for source in inputs:
        if isinstance(source, Recording):
            named.append(source)
        elif isinstance(source, bytes) or hasattr(source, "read") or not Path(source).is_dir():
            named.append(open(source, strict=strict))
        else:
            directory = Path(source)
            files = sorted(path for path in directory.rglob("*") if path.is_file())
            named += [open(path, strict=strict) for path in files if _RECORDING.fullmatch(path.name)]
            beside += [open(path, strict=strict) for path in files if _DUMP.fullmatch(path.name)]
            if not (named or beside):
                raise UsageError(
                    f"no perf.data, jit-*.dump or xray-log.* in {directory}",
                    path=str(directory),
                    hint="name the files themselves",
                )
    if beside and not named:
        named, beside = beside, []
    return named, beside


def match(dumps: Sequence[Recording], facts: PerfFacts, *, only: bool) -> list[Match]:
    """The process of each dump.

    Args:
        dumps: Open dumps.
        facts: What the recording of samples knows.
        only: Whether a single dump may be given to a single JIT process without further proof.
    """
    found = [_match(dump, facts) for dump in dumps]
    open_markers = {m.pid: m for m in facts.markers if all(m.pid != f.pid for f in found)}
    if only and len(found) == 1 and found[0].pid is None and len(open_markers) == 1 and _overlaps(dumps[0], facts):
        ((pid, marker),) = open_markers.items()
        return [Match(found[0].dump, pid, marker, "only_one")]
    return found


def is_of_a_later_run(dump: Recording, facts: PerfFacts) -> bool:
    """Whether a dump was begun after the recording's end: the same pid came again.

    One from before its start is no other run: perf may have been attached to a process that had compiled everything.
    """
    times = _on_one_clock(dump, facts)
    return times is not None and times[0][0] > times[1][1] + _SLACK_NS


def _overlaps(dump: Recording, facts: PerfFacts) -> bool:
    """Whether both surely were written at the same time."""
    times = _on_one_clock(dump, facts)
    if times is None:
        return False
    (dump_first, dump_last), (first, last) = times
    return dump_first <= last + _SLACK_NS and dump_last >= first - _SLACK_NS


def _on_one_clock(dump: Recording, facts: PerfFacts) -> tuple[tuple[int, int], tuple[int, int]] | None:
    span = dump.summary.span_ns
    if facts.clock != "monotonic" or span is None or facts.span is None:
        return None
    return span, facts.span


def _match(dump: Recording, facts: PerfFacts) -> Match:
    header_pid = int(dump.header["pid"])
    name = _stem(dump.path)
    for marker in facts.markers:
        marker_name = _stem(marker.path)
        same_file = marker_name == name and header_pid in _numbers(marker_name)
        if same_file or marker.pid == header_pid:
            return Match(dump, marker.pid, marker, "marker")
    # In its own pid namespace the process has another pid: the one its file is named after.
    inside = [m for m in facts.markers if header_pid in _numbers(_stem(m.path))]
    if len({m.pid for m in inside}) == 1:
        return Match(dump, inside[0].pid, inside[0], "marker")
    if header_pid in facts.pids:
        return Match(dump, header_pid, None, "header_pid")
    return Match(dump, None, None, "unmatched")


def from_markers(facts: PerfFacts, taken: set[int], *, strict: bool) -> tuple[list[Recording], list[Diagnostic]]:
    """Opens the dumps the recording itself names, of processes that have none yet."""
    dumps: list[Recording] = []
    found: list[Diagnostic] = []
    seen: set[str] = set()
    for marker in facts.markers:
        if marker.pid in taken or marker.path in seen:
            continue
        seen.add(marker.path)
        beside = [Path(facts.path).parent / Path(marker.path).name, Path(marker.path)]
        path = next((p for p in beside if p.is_file()), None)
        if path is None:
            message = f"process {marker.pid} wrote {marker.path}, which is not there"
            found.append(diagnostic("FU002", facts.path, message, marker.record_offset))
            continue
        try:
            dump = open(path, strict=strict)
        except PerfuseError as error:
            found.append(diagnostic("FU002", facts.path, f"{path}: {error}", marker.record_offset))
            continue
        if dump.format != "jitdump" or int(dump.header["pid"]) not in {marker.pid, *_numbers(Path(marker.path).name)}:
            message = f"{path} has the header of process {dump.header.get('pid')}, not of {marker.pid}"
            found.append(diagnostic("FU005", facts.path, message, marker.record_offset))
            continue
        if is_of_a_later_run(dump, facts):
            message = f"{path} was begun after the end of this recording"
            found.append(diagnostic("FU005", facts.path, message, marker.record_offset))
            continue
        dumps.append(dump)
    return dumps, found


def _stem(path: str) -> str:
    return re.sub(r"\.(gz|zst)$", "", Path(path).name)


def _numbers(name: str) -> set[int]:
    return {int(number) for number in re.findall(r"\d+", name)}
