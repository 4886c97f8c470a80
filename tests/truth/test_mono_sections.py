"""Sections of reports and facts of Mono logs, compared with a walk over the events of the log."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

import perfuse
from perfuse.analysis.facts import NotRecorded, facts_of
from perfuse.exporters.heap_dumps import selected_snapshots
from perfuse.filters.selection import Selection
from perfuse.profile import Profile
from perfuse.reports.runtime.heap import heap_report
from perfuse.reports.runtime.report import runtime_report
from perfuse.reports.runtime.sections import RuntimeRequest

from .command import command_line, json_of
from .kinds import KINDS, Kind
from .mono_walk import ASSEMBLY, CONTEXT, DOMAIN, IMAGE, KIND_NAMES, STARTING, THREAD, Lifetime, MonoWalk, header, walk
from .outside import mono_facts, perf_data


@pytest.fixture
def log(kind: Kind) -> MonoWalk:
    """The walk over the Mono log of the example."""
    return walk(kind.paths[-1])


def section(kind: Kind, name: str, *words: str) -> Any:
    """A section of the report's JSON; None where it has none."""
    return json_of("report", *kind.paths, "--section", name, "--limit", "0", *words).get(name)


@pytest.mark.truth(
    recording=["mono_*", "perf_mono"], path="report:header", source="the fields at their offsets in the file"
)
def test_header(kind: Kind) -> None:
    found = section(kind, "header")[-1]["fields"]
    expected = header(kind.paths[-1])
    for name, value in expected.items():
        ours = found[name]
        assert (int(ours, 16) if isinstance(ours, str) and ours.startswith("0x") else ours) == value, name


@pytest.mark.truth(recording=["mono_*"], path="report:records", source="events by kind: a walk over the log's buffers")
def test_records(kind: Kind, log: MonoWalk) -> None:
    assert section(kind, "records") == log.counts()


@pytest.mark.truth(
    recording=["mono_*"], path="report:records", source="events by kind and time: a walk over the log's buffers"
)
def test_records_of_a_time(log: MonoWalk, profile: Profile) -> None:
    times = sorted(event.time for event in log.events)
    first, end = times[len(times) // 3], times[2 * len(times) // 3]
    part = profile._selected(Selection(first, end))
    report = runtime_report(part, RuntimeRequest(sections=("records",)))
    expected = Counter(KIND_NAMES[event.byte] for event in log.events if first <= event.time < end)
    assert report.sections["records"] == expected


@pytest.mark.truth(
    recording="perf_mono", path="report:records", source="records by kind: walks over the perf.data and the log"
)
def test_records_of_both_files(kind: Kind, log: MonoWalk) -> None:
    found = section(kind, "records")
    perf = {name: num for name, num in found.items() if name.startswith("PERF_RECORD_")}
    assert {name: num for name, num in found.items() if name not in perf} == log.counts()
    assert Counter(perf.values()) == Counter(perf_data(kind.paths[0]).kinds.values())


@pytest.mark.truth(
    recording=["mono_*", "perf_mono"],
    path="report:threads",
    source="thread events: a walk over the log that ends a thread where its id is used again",
)
def test_threads(kind: Kind, log: MonoWalk) -> None:
    found = [one for one in section(kind, "threads") if one["native_address"] is not None]
    rows = [
        (int(one["native_address"], 16), one["names"], one["start_ns"], one["end_ns"])
        for one in found
        if one["start_ns"] is not None
    ]
    expected = [(one.address, one.names, one.start_ns, one.end_ns) for one in log.lifetimes(THREAD)]
    assert sorted(rows) == sorted(expected)
    # Others have events, but not their start.
    started = {one.address for one in log.lifetimes(THREAD)}
    others = {event.thread for event in log.events} - started
    assert {int(one["native_address"], 16) for one in found if one["start_ns"] is None} <= others


KINDS_OF_ITEMS = {"domain": DOMAIN, "context": CONTEXT, "image": IMAGE, "assembly": ASSEMBLY}


@pytest.mark.truth(
    recording=["mono_*", "perf_mono"],
    path="report:program",
    source="metadata and compilation events: a walk over the log",
)
def test_program(kind: Kind, log: MonoWalk) -> None:
    found = section(kind, "program")
    assert found["num_types"] == log.num_types()
    assert found["num_functions"] == len(log.methods()) + len(log.helpers()) + len(log.symbols())
    for name, mtype in KINDS_OF_ITEMS.items():
        rows = [one for one in found["loaded"] if one["kind"] == name]
        expected = log.lifetimes(mtype)
        assert sorted(key(one.address, one.start_ns, one.end_ns) for one in expected) == sorted(
            key(int(one["native_address"], 16), one["loaded_ns"], one["unloaded_ns"]) for one in rows
        )
        if name != "context":
            assert sorted(last_name(one) for one in expected) == sorted(one["name"] or "" for one in rows)


def key(address: int, start_ns: int | None, end_ns: int | None) -> tuple[int, int, int]:
    """A lifetime that can be sorted."""
    return address, start_ns or 0, end_ns or 0


def last_name(one: Lifetime) -> str:
    """The last name, or nothing."""
    return one.names[-1] if one.names else ""


@pytest.mark.truth(
    recording=[
        "mono_calls",
        "mono_allocations",
        "mono_heap",
        "mono_gc",
        "mono_before_15",
        "mono_coverage",
        "perf_mono",
    ],
    path=["report:jit", "assert:code"],
    source="sizes of compiled methods and of the runtime's code: a walk over the log",
)
def test_code(kind: Kind, log: MonoWalk, profile: Profile, path: str) -> None:
    sizes = [size for _, size in log.code()]
    if path == "assert:code":
        facts = facts_of(profile)
        assert (facts["code.count"](), facts["code.bytes"]()) == (len(sizes), sum(sizes))
        return
    found = section(kind, "jit")
    assert (found["num_methods"], found["bytes"]) == (len(sizes), sum(sizes))
    assert (found["num_helpers"], found["helper_bytes"]) == (len(log.helpers()), sum(log.helpers()))
    assert sorted((one["name"], one["bytes"]) for one in found["biggest"]) == sorted(log.code())


@pytest.mark.truth(
    recording=["mono_samples", "mono_locks"],
    path=["report:jit", "assert:code"],
    source="sizes of the same methods in another log of the same program, which has no invalid ones",
)
def test_code_with_invalid_sizes(kind: Kind, log: MonoWalk, profile: Profile, path: str) -> None:
    """The profiler writes sizes of freed memory: 5 % of these logs. 99 % of what is left is right, also in bytes."""
    valid: dict[str, set[int]] = {}
    for name, size in walk(KINDS["mono_gc"].paths[0]).code():
        valid.setdefault(name, set()).add(size)
    expected = [(name, size) for name, size in log.code() if size in valid.get(name, ())]
    if path == "assert:code":
        facts = facts_of(profile)
        found = (facts["code.count"](), facts["code.bytes"]())
        assert found == pytest.approx((len(expected), sum(size for _, size in expected)), rel=0.01)
        return
    biggest = Counter((one["name"], one["bytes"]) for one in section(kind, "jit")["biggest"])
    assert (biggest & Counter(expected)).total() > 0.99 * max(len(expected), biggest.total())


@pytest.mark.truth(
    recording=["mono_calls", "mono_allocations", "mono_heap", "mono_gc", "mono_before_15", "perf_mono"],
    path="assert:gc",
    source="collector events: a walk over the log",
)
@pytest.mark.truth(
    recording="perf_mono",
    path=["report:gc", "api:Profile.gc_pauses", "api:Profile.gc_activity"],
    source="collector events: a walk over the log",
)
def test_pauses_and_collections(kind: Kind, log: MonoWalk, profile: Profile, path: str) -> None:
    pauses = log.pauses()
    lengths = sorted(length for length, _ in pauses)
    if path == "api:Profile.gc_pauses":
        assert sorted(one.duration_ns for one in profile.gc_pauses()) == lengths
        return
    expected = (len(lengths), sum(lengths), lengths[0], lengths[-1])
    if path == "api:Profile.gc_activity":
        activity = profile.gc_activity()
        assert (activity.pauses.count, activity.pauses.sum, activity.pauses.min, activity.pauses.max) == expected
        assert activity.num_moves is None, "moves were not recorded"
    elif path == "report:gc":
        found = section(kind, "gc")
        assert tuple(found["pauses"][name] for name in ("count", "sum", "min", "max")) == expected
        assert found["num_resizes"] == log.counts()["GC_RESIZE"]
    else:
        facts = facts_of(profile)
        names = ("count", "sum", "min", "max")
        assert tuple(facts[f"gc.pauses.{name}"]() for name in names) == expected
        for generation, name in enumerate(("nursery", "major")):
            assert facts[f"gc.{name}.collections"]() == log.collections(generation)
            mine = [length for length, of in pauses if of == generation]
            assert (facts[f"gc.{name}.pauses.count"](), facts[f"gc.{name}.pauses.sum"]()) == (len(mine), sum(mine))
        first, last = profile.span_ns or (0, 1)
        assert facts["gc.pauses.share"]() == pytest.approx(100 * sum(lengths) / (last - first))
        if moves := log.of(0x31):
            assert facts["gc.moves"]() == sum(len(event.pairs) for event in moves)


def test_a_pause_ends_whatever_generation_was_requested(mono_corpus: Path, tmp_path: Path) -> None:
    """Of a concurrent collection, the world is stopped for one generation and started after that of the other."""
    source = mono_corpus / "v17" / "alloc.mlpd"
    content = bytearray(source.read_bytes())
    events = [one for one in perfuse.open(source).records(["GC_EVENT"]) if one.fields["event"] == STARTING]
    for one in events[::2]:
        # The generation is the last byte.
        content[one.offset + one.size - 1] ^= 1
    path = tmp_path / "changed.mlpd"
    path.write_bytes(content)
    before, pauses = walk(source).pauses(), walk(path).pauses()
    assert [length for length, _ in pauses] == [length for length, _ in before]
    assert sum(ours != theirs for (_, ours), (_, theirs) in zip(before, pauses, strict=True)) == len(events[::2])
    found = perfuse.fuse(path).gc_pauses()
    assert [(one.duration_ns, ("nursery", "major").index(one.generation)) for one in found] == pauses


@pytest.mark.truth(
    recording=["mono_calls", "mono_allocations", "mono_heap", "mono_gc", "perf_mono"],
    path="assert:heap",
    source="sizes of the heap that the collector reported: a walk over the log",
)
def test_largest_size_of_the_heap(log: MonoWalk, profile: Profile) -> None:
    assert facts_of(profile)["heap.bytes"]() == max(event.values[0] for event in log.of(0x21))


@pytest.mark.truth(
    recording=["mono_heap", "mono_before_15"],
    path="assert:heap",
    source="objects of the snapshots and their types: a walk over the log",
)
def test_live_objects(log: MonoWalk, profile: Profile) -> None:
    types, facts = log.type_names(), facts_of(profile)
    first, last = log.snapshots()[0], log.snapshots()[-1]
    assert facts["heap.live_objects"]() == len(last)
    assert facts["heap.live_bytes"]() == sum(size for _, size in last.values())
    assert facts["heap.growth.objects"]() == len(last) - len(first)
    objects, sizes, before = Counter[str](), Counter[str](), Counter[str]()
    for of, size in last.values():
        objects[types[of]] += 1
        sizes[types[of]] += size
    before.update(types[of] for of, _ in first.values())
    for name, num in objects.items():
        assert facts["heap.live_objects[]"](name) == num, name
        assert facts["heap.live_bytes[]"](name) == sizes[name], name
        assert facts["heap.growth[].objects"](name) == num - before[name], name


@pytest.mark.truth(
    recording="mono_heap", path="assert:heap", source="times of snapshots and their objects: a walk over the log"
)
def test_live_objects_of_a_time(log: MonoWalk, profile: Profile) -> None:
    """Reports, assertions and exports are about the snapshots of the selected time."""
    times = [event.time for event in log.of(0x06)]
    for number, (time, objects) in enumerate(zip(times, log.snapshots(), strict=True)):
        of_one = profile._selected(Selection(time, time + 1))
        until = profile._selected(Selection(None, time + 1))
        assert facts_of(of_one)["heap.live_objects"]() == facts_of(until)["heap.live_objects"]() == len(objects)
        report = heap_report(until)
        assert report is not None
        assert [one.snapshot.ts_ns for one in report.snapshots] == times[: number + 1]
        assert [one.snapshot_id for one in selected_snapshots(of_one)] == [number]
    nothing = profile._selected(Selection(None, times[0]))
    assert heap_report(nothing) is None
    with pytest.raises(perfuse.UsageError, match="in the selected time"):
        nothing.heap()


@pytest.mark.truth(
    recording=["mono_allocations", "mono_gc", "mono_before_15"],
    path="assert:finalizers",
    source="starts and ends of finalizers: a walk over the log",
)
def test_finalizers(log: MonoWalk, profile: Profile) -> None:
    facts, durations = facts_of(profile), log.finalizers()
    assert (facts["finalizers.sum"](), facts["finalizers.max"]()) == (sum(durations), max(durations, default=0))


OPTIONS = {
    "gc": ("gc.pauses.count", {0x11}, "gc"),
    "heap": ("heap.live_bytes", {0x06}, "heapshot"),
    "finalizers": ("finalizers.sum", {0x81, 0xA1}, "finalization"),
}
"""For each family, a fact, the events that it is made of, and the option that records them."""


@pytest.mark.truth(
    recording=["mono_samples", "mono_locks"],
    path=["assert:gc", "assert:heap", "assert:finalizers"],
    source="the options in the header, and that a walk finds no such event",
)
@pytest.mark.truth(
    recording=["mono_calls", "mono_heap", "perf_mono"],
    path="assert:finalizers",
    source="the options in the header, and that a walk finds no such event",
)
@pytest.mark.truth(
    recording="mono_gc", path="assert:heap", source="the options in the header, and that a walk finds no such event"
)
def test_a_fact_that_was_not_recorded_has_no_value(kind: Kind, log: MonoWalk, profile: Profile, path: str) -> None:
    fact, events, option = OPTIONS[path.removeprefix("assert:")]
    options = header(kind.paths[-1])["args"].removeprefix("log:").split(",")
    assert option not in options
    assert not log.of(*events)
    with pytest.raises(NotRecorded, match=f"mono --profile=log:{option}"):
        facts_of(profile)[fact]()
    done = json_of("report", *kind.paths, "--assert", f"{fact} == 0")["assertions"]
    assert [(one["value"], one["holds"]) for one in done] == [(None, False)]


@pytest.mark.truth(
    recording="mono_locks",
    path=["report:gc", "api:Profile.gc_pauses", "api:Profile.gc_activity"],
    source="the options in the header, and that a walk finds no collector event",
)
def test_collections_that_were_not_recorded(kind: Kind, log: MonoWalk, profile: Profile, path: str) -> None:
    assert not log.of(0x11, 0x21, 0x31)
    if path == "api:Profile.gc_pauses":
        assert profile.gc_pauses() == []
    elif path == "api:Profile.gc_activity":
        activity = profile.gc_activity()
        assert (activity.pauses.count, activity.max_heap_bytes, activity.num_moves) == (0, None, None)
    else:
        report = json_of("report", *kind.paths, "--section", "gc")
        assert report["not_recorded"] == {"gc": "mono --profile=log:gc"}
        assert report["empty"] == []
        assert "gc" not in report


@pytest.mark.truth(
    recording="mono_calls", path="assert:allocations", source="types and sizes of objects: a walk over the log"
)
@pytest.mark.truth(
    recording="mono_allocations", path="assert:allocations", source="types and sizes of objects: a walk over the log"
)
def test_allocated_objects(log: MonoWalk, profile: Profile) -> None:
    facts, types, sizes = facts_of(profile), log.type_names(), Counter[str]()
    counts = Counter[str]()
    for event in log.of(0x00, 0x10):
        counts[types[event.values[0]]] += 1
        sizes[types[event.values[0]]] += event.values[2]
    assert (facts["allocations.count"](), facts["allocations.bytes"]()) == (counts.total(), sizes.total())
    for name in counts:
        found = facts["allocations[].count"](name), facts["allocations[].bytes"](name)
        assert found == (counts[name], sizes[name])


@pytest.mark.truth(
    recording=["mono_samples", "mono_before_15"],
    path=["report:counters", "assert:counters"],
    source="values of counters, summed up from their differences: a walk over the log",
)
def test_counters(kind: Kind, log: MonoWalk, profile: Profile, path: str) -> None:
    expected = log.counters()
    numbers = {
        name: [value for _, value in values]
        for (_, name), values in expected.items()
        if all(isinstance(value, int | float) for _, value in values)
    }
    if path == "report:counters":
        found = section(kind, "counters")
        assert Counter(one["name"] for one in found) == Counter(name for _, name in expected)
        rows = {one["name"]: [(each["ts_ns"], each["value"]) for each in one["values"]] for one in found}
        for (_, name), values in expected.items():
            if name in numbers:
                assert [value for _, value in rows[name]] == [value for _, value in values], name
                # Mono 4.6 writes 0 for the time of the first values.
                assert all(
                    ours == theirs or not theirs for (ours, _), (theirs, _) in zip(rows[name], values, strict=True)
                )
            else:
                assert rows[name] == []
                assert next(one["text"] for one in found if one["name"] == name) == values[-1][1]
    else:
        facts = facts_of(profile)
        for name, values in numbers.items():
            found = tuple(facts[f"counters[].{what}"](name) for what in ("last", "min", "max"))
            assert found == (values[-1], min(values), max(values)), name


@pytest.mark.truth(
    recording="mono_samples",
    path=["report:samples", "assert:samples"],
    source="samples by thread and by innermost managed method of an independent reader (truth.json)",
)
def test_samples(kind: Kind, profile: Profile, path: str) -> None:
    expected = mono_facts(kind)["samples"]
    if path == "assert:samples":
        assert facts_of(profile)["samples.count"]() == expected["total"]
        return
    found = section(kind, "samples")
    assert found["count"] == expected["total"]
    self_by_name = {one["name"]: one["samples"] for one in found["top_self"]}
    name, most = next(pair for pair in expected["leaf_top"] if not pair[0].startswith("("))
    assert self_by_name[name] == most
    by_id: Counter[str] = Counter()
    ids = {one["thread_id"]: one["native_address"] for one in section(kind, "threads")}
    for one in found["threads"]:
        by_id[ids[int(one["name"].split()[-1])]] += one["samples"]
    for address, _, num in expected["by_thread"]:
        assert by_id[f"0x{address}"] == num


@pytest.mark.truth(
    recording="perf_mono",
    path=["report:samples", "assert:samples"],
    source="samples by thread id: a walk over the structures of the perf.data",
)
def test_samples_of_perf(kind: Kind, profile: Profile, path: str) -> None:
    samples = perf_data(kind.paths[0]).samples
    if path == "assert:samples":
        assert facts_of(profile)["samples.count"]() == len(samples)
        return
    found = section(kind, "samples")
    assert (found["count"], found["events"][0]["weight"]) == (len(samples), sum(one.period for one in samples))
    by_thread = {int(one["name"].split()[-1]): one["samples"] for one in found["threads"]}
    assert by_thread == Counter(one.tid for one in samples)


@pytest.mark.truth(recording="mono_coverage", path="report:coverage", source="the description of the hand-made log")
def test_coverage(kind: Kind, log: MonoWalk) -> None:
    found = section(kind, "coverage")
    ((assembly, name, method, signature, path, _, _, statements),) = [event.values for event in log.of(0x19)]
    runs = [event.values for event in log.of(0x29)]
    (one,) = found["methods"]
    assert (one["assembly"], one["class_name"], one["path"]) == (assembly, name, path)
    assert one["method"] == f"{method} ({signature})"
    assert (one["num_statements"], one["num_run"]) == (statements, sum(count > 0 for _, _, count, _, _ in runs))


WRAPPER = "(wrapper "


def shown(frames: tuple[str, ...]) -> tuple[str, ...]:
    """A backtrace without the runtime's wrappers."""
    return tuple(name for name in frames if not name.startswith(WRAPPER)) or frames


@pytest.mark.truth(
    recording=["mono_samples", "mono_calls", "mono_allocations", "mono_before_15"],
    path="report:stacks",
    source="backtraces of exceptions, calls that are open: a walk over the log",
)
def test_whole_backtraces_of_exceptions(kind: Kind, log: MonoWalk) -> None:
    text = command_line(
        "report", *kind.paths, "--section", "exceptions", "--stacks", "--frames", "0", "--limit", "0"
    ).partition("\nHandlers")[0]
    found = Counter[tuple[str, ...]]()
    for number, body in re.findall(r"^ {2,4}(\d+) \S.*\n((?: {6}\S.*\n?)*)", text, re.MULTILINE):
        frames = tuple(line.strip() for line in body.splitlines())
        found[() if frames == ("(no backtrace)",) else frames] += int(number)
    assert found == Counter(shown(frames) for _, frames in log.thrown())


MENTIONS = {0x00: "allocated", 0x10: "allocated", 0x04: "exception", 0x84: "exception", 0x14: "exception"}
MENTIONS |= dict.fromkeys((0x05, 0x85, 0x15, 0x25, 0x35, 0x95), "lock")
MENTIONS |= {0x41: "handle", 0x61: "handle", 0xA1: "finalizer", 0x26: "in heap snapshot"}
POSITIONS = {0x04: 0, 0x84: 0, 0xA1: 0, 0x26: 0, 0x14: 3, 0x41: 2, 0x61: 2}
"""Where the object is in the fields of an event, if not at 1."""


def mentions(log: MonoWalk) -> dict[int, list[tuple[int, str]]]:
    """Time and kind of the events of each object that was never moved and whose address was not used again."""
    found: dict[int, list[tuple[int, str]]] = {}
    ends = [event.time for event in log.of(0x16)]
    for event in log.ordered:
        what = MENTIONS.get(event.byte)
        # Before version 14 clauses have no object; size 0 continues an object.
        if (
            what is None
            or (event.byte == 0x14 and len(event.values) < 4)
            or (event.byte == 0x26 and not event.values[2])
        ):
            continue
        time = next(end for end in ends if end >= event.time) if event.byte == 0x26 else event.time
        found.setdefault(event.values[POSITIONS.get(event.byte, 1)], []).append((time, what))
    moved = {address for event in log.of(0x31) for pair in event.pairs for address in pair}
    return {
        address: sorted(events)
        for address, events in found.items()
        if address and address not in moved and sum(what == "allocated" for _, what in events) < 2
    }


@pytest.mark.truth(
    recording=["mono_*", "perf_mono"], path="report:objects", source="events of each object: a walk over the log"
)
def test_histories_of_objects(kind: Kind, log: MonoWalk) -> None:
    expected = mentions(log)
    by_kind = {tuple(what for _, what in events): address for address, events in expected.items()}
    addresses = [*by_kind.values(), 0x1000]
    tracked = ",".join(map(hex, addresses))
    found = section(kind, "objects", "--track", tracked)
    for address, one in zip(addresses, found, strict=True):
        events = sorted((event["ts_ns"], event["what"]) for event in one["events"])
        walked = expected.get(address, [])
        assert [what for _, what in events] == [what for _, what in walked], hex(address)
        # Before version 15 a snapshot ends with the moves that follow it.
        tolerance = 10_000 if kind.name == "mono_before_15" else 0
        assert [time for time, _ in events] == pytest.approx([time for time, _ in walked], rel=0, abs=tolerance)
        assert all(event["object_address"] == hex(address) for event in one["events"])


def test_histories_of_objects_at_one_address(mono_corpus: Path) -> None:
    """An address has the object that was allocated or moved there last: one that was freed before is not moved."""
    path = mono_corpus / "v17" / "alloc.mlpd"
    replaced = set[int]()
    arrived = defaultdict[int, list[list[tuple[int, str, str]]]](list)
    now: dict[int, list[tuple[int, str, str]]] = {}
    for event in walk(path).ordered:
        if event.byte in (0x00, 0x10):
            address = event.values[1]
            if address in now:
                replaced.add(address)
            now[address] = [(event.time, "allocated", hex(address))]
            arrived[address].append(now[address])
        elif event.byte == 0x31:
            leaving = [(new, now.pop(old)) for old, new in event.pairs if old in now]
            for new, events in leaving:
                now[new] = events
                events.append((event.time, "moved", hex(new)))
                arrived[new].append(events)
    reused = [address for address in sorted(replaced) if len(arrived[address][-1]) > 1][:4]
    assert len(reused) == 4
    tracked = ",".join(map(hex, reused))
    found = json_of("report", path, "--section", "objects", "--limit", "0", "--track", tracked)["objects"]
    histories = [
        [
            (one["ts_ns"], what, one["object_address"])
            for one in each["events"]
            if (what := one["what"]) in ("allocated", "moved")
        ]
        for each in found
    ]
    assert histories == [events for address in reused for events in arrived[address]]


def symbols(path: Path) -> Counter[tuple[str, int]]:
    """Name and size of the functions of an ELF file."""
    with path.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        functions = [one for one in table.iter_symbols() if one["st_info"]["type"] == "STT_FUNC"]
        return Counter((one.name, one["st_size"]) for one in functions)


@pytest.mark.truth(
    recording=["mono_*", "perf_mono"],
    path=["convert:elf", "api:Profile.images"],
    source="names and sizes of code: a walk over the log, and pyelftools over the symbols",
)
def test_symbols_of_elf_files(kind: Kind, log: MonoWalk, profile: Profile, path: str, tmp_path: Path) -> None:
    out = tmp_path / "out.elf"
    if path == "convert:elf":
        profile.export(out, to="elf")
    else:
        (pid,) = profile.images.pids()
        with out.open("w+b") as file:
            profile.images.write({pid: file})
    found = symbols(out)
    sizes = Counter(size for _, size in found.elements())
    if kind.name in ("mono_samples", "mono_locks"):
        # Sizes of freed memory are left out; what they are is tested with the report.
        assert sizes.total() > 0.95 * sum(0 < size < 1 << 22 for _, size in log.code())
        assert not found - Counter(log.code())
    else:
        methods = Counter(log.code())
        assert found & methods == methods
        assert Counter(size for _, size in (found - methods).elements()) == Counter(log.helpers())


@pytest.mark.truth(
    recording="mono_coverage", path="assert:duration", source="first and last event: a walk over the log"
)
def test_duration(log: MonoWalk, profile: Profile) -> None:
    assert facts_of(profile)["duration"]() == log.ordered[-1].time - log.ordered[0].time
