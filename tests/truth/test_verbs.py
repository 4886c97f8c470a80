"""`info`, `report` and `convert` of each kind of recording, as another process, compared with walks over the files."""

import shutil
import struct
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import perf_crafting as crafting
from mlpd_events import GC, HEAP, METHOD, MONITOR, RUNTIME, SAMPLE, Event, read_events

from .command import command_line, json_of, run
from .kinds import Kind
from .outside import jitdump, mono_counts, num_records, num_rows, perf_data, read
from .test_diff_of_copies import without
from .walks import places


@pytest.mark.truth(
    recording="perf_mono",
    path="info",
    source="number of records: a walk over the perf.data, another decoder of Mono logs",
)
def test_info_counts_the_records_of_both_files(kind: Kind) -> None:
    found = json_of("info", *kind.paths)["recordings"]
    assert found[0]["records"] == num_records("perf_mono", 0)
    log = places("mono", read(kind.paths[1]))
    assert sum(found[1]["records"].values()) == len(log)


@pytest.mark.truth(
    recording="perf_*",
    path="report",
    source="samples and periods by thread: a walk over the structures of the perf.data",
)
def test_report_counts_samples_of_each_thread(kind: Kind) -> None:
    report = json_of("report", *kind.paths, *kind.map_options)
    samples = report if report["kind"] == "samples" else report["samples"]
    walked = perf_data(kind.paths[0]).samples
    (event,) = (one for one in samples["events"] if one["name"] == "cpu-clock")
    assert (event["samples"], event["weight"]) == (len(walked), sum(one.period for one in walked))
    periods = Counter[int]()
    for one in walked:
        periods[one.tid] += one.period
    numbers = Counter(one.tid for one in walked)
    found = {int(one["name"].rpartition(" ")[2]): (one["samples"], one["self_weight"]) for one in samples["threads"]}
    assert found == {tid: (numbers[tid], periods[tid]) for tid in numbers}
    by_process = Counter(one.pid for one in walked)
    assert {int(one["name"].rpartition(" ")[2]): one["samples"] for one in samples["processes"]} == by_process
    assert sum(one["self_weight"] for one in samples["top_self"]) == event["weight"]


def test_report_of_a_perf_data_without_samples(jitdump_corpus: Path, tmp_path: Path) -> None:
    """The report states that there are none, as the records show."""
    data = (jitdump_corpus / "produced" / "node20.perf.data").read_bytes()
    (tmp_path / "perf.data").write_bytes(
        without(data, [(one.offset, one.end) for one in places("perf_data", data) if one.kind == SAMPLE_RECORD])
    )
    lines = command_line("report", tmp_path / "perf.data").splitlines()
    assert "  samples  none: the program ended early, or the event did not occur" in lines
    assert not [line for line in lines if line.startswith("  code ")]


SAMPLE_RECORD, LOST_SAMPLES_RECORD, STAT_RECORD = 9, 13, 76


@pytest.mark.parametrize(
    ("record_type", "why"),
    [(LOST_SAMPLES_RECORD, "none: the kernel lost records"), (STAT_RECORD, "none: these are counts of perf stat")],
)
def test_report_of_a_perf_data_states_why_it_has_no_samples(tmp_path: Path, record_type: int, why: str) -> None:
    """The only record is that of lost samples, or of a count, as perf 7.2.13 writes them without samples."""
    attribute = crafting.Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME)
    body = struct.pack("<Q", 27601) + attribute.sample_id() if record_type == LOST_SAMPLES_RECORD else bytes(40)
    recording = crafting.PerfFile([attribute], [crafting.Record(record_type, 0, body)]).write(tmp_path / "perf.data")
    done = run("report", recording)
    (line,) = (one for one in done.stdout.splitlines() if one.startswith("  samples "))
    assert why in line


def test_a_directory_has_dumps_of_any_name(jitdump_corpus: Path, tmp_path: Path) -> None:
    """The content decides that a file is a dump, and whether it is of a process that was recorded."""
    for name in ("node20.perf.data", "node20.dump", "cpython313.dump"):
        shutil.copy(jitdump_corpus / "produced" / name, tmp_path)
    joins = json_of("report", tmp_path)["joins"]
    (pid,) = struct.unpack_from("<I", (tmp_path / "node20.dump").read_bytes(), 20)
    assert [(Path(one["path"]).name, one["pid"]) for one in joins] == [("node20.dump", pid)]


@pytest.mark.truth(recording="collapsed", path="report", source="the counts of the lines, added up by hand")
def test_report_of_collapsed_stacks(kind: Kind) -> None:
    report = json_of("report", *kind.paths)
    assert {one["name"]: one["self_weight"] for one in report["top_self"]} == {
        "lex": 170, "parse": 30, "eval": 200, "run": 7, "collect": 93,
    }  # fmt: skip
    assert {one["name"]: one["total_weight"] for one in report["top_total"]} == {
        "main": 407, "parse": 150, "lex": 170, "run": 257, "eval": 250, "worker": 93, "collect": 93,
    }  # fmt: skip
    assert [(one["samples"], one["weight"]) for one in report["events"]] == [(500, 500)]


def events_of(kind: Kind, of: int, *subtypes: int) -> list[Event]:
    """Events of a type, of some subtypes or of all."""
    found = (one for one in read_events(kind.paths[-1]) if one.byte & 15 == of)
    return [one for one in found if not subtypes or one.byte >> 4 in subtypes]


FREED_MEMORY = ("mono_samples", "mono_locks")
"""Logs with methods that have no code, whose address and size profiler 3.0 reads from freed memory."""


def is_code(kind: Kind, address: int, size: int) -> bool:
    """Whether a method surely has code: half a pointer of freed memory is at least 0x5500."""
    return 0 < size < (0x4000 if kind.name in FREED_MEMORY else 1 << 32) and address >= 1 << 16


@pytest.mark.truth(
    recording="mono_*", path="report", source="events by kind and their fields: another decoder of Mono logs"
)
def test_report_of_a_runtime(kind: Kind) -> None:
    report = json_of("report", *kind.paths)
    counts = mono_counts(kind)
    num = {name: sum(count for what, count in counts.items() if what.startswith(name)) for name in PREFIXES}

    compare_methods(kind, report["jit"])
    assert report["jit"]["num_helpers"] == counts.get("JITHELPER", 0)
    expected = {
        "samples": num["SAMPLE_HIT"],
        "exceptions": num["THROW"],
        "allocations": num["ALLOC"],
    }
    assert {name: report[name]["count"] for name in expected if name in report} == {
        name: count for name, count in expected.items() if count
    }
    if num["METHOD_ENTER"]:
        assert report["calls"]["totals"]["num_calls"] == num["METHOD_ENTER"]
    if num["ALLOC"]:
        assert report["allocations"]["bytes"] == sum(one.values[2] for one in events_of(kind, 0))
    if num["HEAP_START"]:
        assert len(report["heap"]["snapshots"]) == num["HEAP_START"]
        assert [one["num_objects"] for one in report["heap"]["snapshots"]] == num_objects(kind)
    if num["GC_HANDLE_CREATED"]:
        assert sum(one["num_created"] for one in report["handles"]["kinds"]) == num["GC_HANDLE_CREATED"]
    if num["MONITOR"]:
        locks = report["locks"]
        of = Counter(one.values[0] for one in events_of(kind, MONITOR))
        assert (locks["num_contentions"], locks["num_acquired"], locks["num_failed"]) == (of[1], of[2], of[3])
    if num["GC_EVENT"]:
        gc = report["gc"]
        assert gc["num_resizes"] == num["GC_RESIZE"]
        # None where the log was written without moves.
        assert (gc["num_moves"] or 0) == sum(len(one.pairs) for one in events_of(kind, GC, 3))
        # Each collection of a generation begins once.
        begun = Counter(one.values[1] for one in events_of(kind, GC, 1) if one.values[0] == 0)
        assert sum(one["collections"]["count"] for one in gc["generations"]) == begun.total()
    if num["COVERAGE_STATEMENT"]:
        assert [one["num_statements"] for one in report["coverage"]["methods"]] == [num["COVERAGE_STATEMENT"]]
    if num["COUNTERS_DESC"] and kind.name != "mono_coverage":  # by hand: one of its counters has no value
        described = {row[-1] for one in events_of(kind, SAMPLE, 3) for row in one.values[0]}
        assert len(report["counters"]) == len(described)


def compare_methods(kind: Kind, found: dict[str, Any]) -> None:
    """Compares numbers and sizes of methods."""
    jitted = [one.values for one in events_of(kind, METHOD, 4)]
    sizes = [size for _, address, size, _ in jitted if is_code(kind, address, size)]
    if kind.name in FREED_MEMORY:
        assert len(sizes) * 0.95 < found["num_methods"] <= len(jitted)
    else:
        assert (found["num_methods"], found["bytes"]) == (len(sizes), sum(sizes))


def num_objects(kind: Kind) -> list[int]:
    """Number of objects of each heap snapshot; an object with many references has several events."""
    found: list[set[int]] = []
    for one in events_of(kind, HEAP, 0, 2):
        if one.byte >> 4 == 0:
            found.append(set())
        else:
            found[-1].add(one.values[0])
    return [len(one) for one in found]


PREFIXES = (
    "SAMPLE_HIT",
    "THROW",
    "ALLOC",
    "METHOD_ENTER",
    "HEAP_START",
    "GC_HANDLE_CREATED",
    "MONITOR",
    "GC_EVENT",
    "GC_RESIZE",
    "COVERAGE_STATEMENT",
    "COUNTERS_DESC",
)
"""First words of the names of events."""


@pytest.mark.truth(
    recording="sframe_*", path="report", source="numbers of functions and rows that readelf --sframe printed"
)
def test_report_of_unwind_tables(kind: Kind) -> None:
    pieces = [piece for section in json_of("report", *kind.paths)["sections"] for piece in section["pieces"]]
    rows = num_rows(kind.name)
    assert sum(one["num_functions"] for one in pieces) == rows["unwind_functions"]
    assert sum(one["num_rows"] for one in pieces) == rows["unwind_rows"]


@pytest.mark.truth(
    recording="jitdump",
    path=["convert", "convert:perf-map"],
    source="address, size and name of each load: a walk over the structures of the JITDUMP",
)
@pytest.mark.truth(
    recording=[
        "mono_samples",
        "mono_calls",
        "mono_allocations",
        "mono_heap",
        "mono_locks",
        "mono_gc",
        "mono_before_15",
        "mono_coverage",
        "perf_mono",
    ],
    path=["convert", "convert:perf-map"],
    source="address, size and name of each compiled method and helper: another decoder of Mono logs",
)
def test_convert_names_all_code(kind: Kind, tmp_path: Path) -> None:
    """By the verb with the target, which are a cell each."""
    out = tmp_path / "perf-1.map"
    command_line("convert", *kind.paths, "-o", out)
    lines = [line.split(" ", 2) for line in out.read_text(encoding="utf-8").splitlines()]
    found = {(int(address, 16), int(size, 16), name) for address, size, name in lines}
    if kind.name == "jitdump":
        loads = jitdump(kind.paths[0]).loads
        assert found == {(one.address, one.size, one.name) for one in loads}
    elif kind.name in FREED_MEMORY:
        assert {one.values[1:] for one in events_of(kind, METHOD, 4)} >= found
        surely = {(address, *rest) for address, rest in code_at_end(kind).items()}
        assert len(surely & found) > 0.95 * len(surely)
    else:
        assert {one[:2] for one in found} == {(address, size) for address, (size, _) in code_at_end(kind).items()}
        methods = {(address, *rest) for address, rest in code_at_end(kind).items() if rest[1]}
        assert found >= methods


@cache
def code_at_end(kind: Kind) -> dict[int, tuple[int, str]]:
    """Size and name by address of methods and helpers (which have no name here) that no later one was written over."""
    code: dict[int, tuple[int, str]] = {}
    events = [(one.time, *one.values[1:]) for one in events_of(kind, METHOD, 4)]
    events += [(one.time, *one.values[1:3], "") for one in events_of(kind, RUNTIME)]
    for _, address, size, name in sorted(events, key=lambda one: one[0]):
        if is_code(kind, address, size):
            written_over = [at for at, (length, _) in code.items() if at < address + size and address < at + length]
            for at in written_over:
                del code[at]
            code[address] = size, name
    return code
