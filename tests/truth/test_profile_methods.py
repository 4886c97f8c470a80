"""Methods of `Profile`, compared with walks over the recordings and with sums that another program determined."""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from arro3.core import Table

from perfuse.analysis.facts import facts_of
from perfuse.profile import Profile

from .command import command_line, json_of
from .kinds import CORPUS, Kind
from .outside import CallLog, call_log, jitdump, mono_counts, mono_facts, num_rows, outside, perf_data

NS = 1_000_000_000


def columns(stream: Any) -> dict[str, list[Any]]:
    """The columns of an Arrow stream."""
    table = Table.from_arrow(stream)
    return {name: table[name].to_pylist() for name in table.column_names}


@pytest.mark.truth(
    recording=["perf_*", "xray_*", "mono_*", "jitdump", "collapsed", "sframe_*"],
    path="api:Profile.has",
    source="tables that records of the file make rows of: a walk, another decoder of Mono logs, readelf --sframe",
)
def test_has_is_true_for_tables_that_records_fill(kind: Kind, profile: Profile) -> None:
    rows = num_rows(kind.name)
    for table in ("callchains", "unwind_functions", "unwind_rows", "allocations", "heap_snapshots"):
        if kind.name != "perf_mono" or table == "callchains":
            assert profile.has(table) == bool(rows.get(table)), table


@pytest.mark.truth(
    recording=["perf_*", "xray_*", "mono_*", "jitdump", "collapsed", "sframe_*"],
    path=["api:Profile.has_samples", "api:Profile.has_traces", "api:Profile.has_heap_snapshots"],
    source="number of samples, calls and heap snapshots: a walk over the file, another decoder of Mono logs",
)
def test_what_a_profile_has(kind: Kind, profile: Profile, path: str) -> None:
    rows = num_rows(kind.name)
    if path == "api:Profile.has_samples":
        found, expected = profile.has_samples, bool(rows.get("callchains") or rows.get("samples"))
        if kind.formats == ("mono",):
            expected = bool(mono_counts(kind).get("SAMPLE_HIT"))
    elif path == "api:Profile.has_traces":
        found, expected = profile.has_traces, bool(rows.get("call_events") or rows.get("call_sums"))
    else:
        # Handles can make a snapshot of their own.
        found, expected = profile.has_heap_snapshots, bool(rows.get("heap_snapshots") or rows.get("gc_handles"))
    assert found is expected


def span_of_calls(log: CallLog) -> int:
    """Nanoseconds from the first entry to the last exit."""
    calls = [call for listed in log.calls.values() for call in listed]
    return round((max(one.end for one in calls) - min(one.start for one in calls)) * NS / log.hz)


@pytest.mark.truth(
    recording=["perf_*", "xray_fdr", "xray_basic", "xray_shared_objects"],
    path=["api:Profile.span_ns", "assert:duration"],
    source="times of the first and last sample or call: a walk over the structures of the files",
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
    ],
    path=["api:Profile.span_ns", "assert:duration"],
    source="the span of another decoder of Mono logs",
)
def test_span(kind: Kind, profile: Profile, path: str) -> None:
    assert profile.span_ns is not None
    first, last = profile.span_ns
    if path == "assert:duration":
        assert facts_of(profile)["duration"]() == last - first
    what = outside(kind.name)
    if kind.formats[-1] == "xray" and len(kind.formats) == 1:
        assert last - first == pytest.approx(span_of_calls(call_log(kind.paths[0])), rel=2e-3)
    elif kind.formats == ("mono",):
        # Of version 13 the other decoder's span begins at 0.
        assert int(mono_span(kind)) == (last if kind.name == "mono_before_15" else last - first)
    elif len(kind.formats) == 1 or kind.formats[1] == "jitdump":
        assert (first, last) == what.span_ns
    else:
        times = [sample.time_ns for sample in perf_data(kind.paths[0]).samples]
        assert first <= min(times)
        assert last >= max(times)
        assert last - first <= 2 * (max(times) - min(times))


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects"],
    path=["api:Profile.span_ns", "assert:duration", "report"],
    source="the selected time, and the first entry and last exit of threads: a walk over the structures of the files",
)
def test_span_of_selected_calls(kind: Kind, profile: Profile, path: str) -> None:
    log = call_log(kind.paths[0])
    assert profile.span_ns is not None
    first, last = profile.span_ns
    # As long as nothing begins or ends in it, too.
    start, length = 0.4 * (last - first), 1000
    between = profile.between(start / NS, (start + length) / NS)
    if path == "report":
        options = [*kind.paths, "--between", f"{start / NS:.9f}..{(start + length) / NS:.9f}"]
        report = json_of("report", *options)
        busy = max(one["busy_ns"] for one in report["threads"])
        assert 0 < busy <= length + 1
        assert "over 1.00 µs" in command_line("report", *options)
        return
    span = between.span_ns
    assert span is not None
    assert span == pytest.approx((first + start, first + start + length), abs=1)
    if path == "assert:duration":
        assert facts_of(between)["duration"]() == pytest.approx(length, abs=1)
    for tid, calls in log.calls.items():
        span = profile.thread(tid).span_ns
        assert span is not None
        ticks = max(one.end for one in calls) - min(one.start for one in calls)
        assert span[1] - span[0] == pytest.approx(ticks * NS / log.hz, rel=2e-3, abs=200)


def mono_span(kind: Kind) -> str:
    """`span_ns` of another decoder."""
    log = kind.paths[0]
    text = (CORPUS / "mono" / "counts" / log.parent.name / f"{log.stem}.txt").read_text(encoding="utf-8")
    return text.partition("span_ns ")[2].split(" ")[0]


@pytest.mark.truth(
    recording="perf_*",
    path="api:Profile.thread",
    source="samples by thread id: a walk over the structures of the perf.data",
)
def test_samples_of_each_thread(kind: Kind, profile: Profile) -> None:
    expected = Counter(sample.tid for sample in perf_data(kind.paths[0]).samples)
    for tid, num in expected.items():
        one = profile.thread(tid)
        assert one.sql("SELECT count(*) FROM samples WHERE event = 'cpu-clock'").fetchall() == [(num,)]
        assert one.count_rows("callchains") == num


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path="api:Profile.thread",
    source="calls and times by thread id: a walk over the log's records that pairs entries and exits",
)
def test_calls_of_each_thread(kind: Kind, profile: Profile) -> None:
    log = call_log(kind.paths[-1])
    for tid, num in log.num_calls.items():
        query = "SELECT sum(weight) FROM samples WHERE event = '{}'"
        one = profile.thread(tid)
        assert one.sql(query.format("calls")).fetchall() == [(num,)]
        ((busy_ns,),) = one.sql(query.format("wall-time")).fetchall()
        assert busy_ns == pytest.approx(log.busy_ns[tid], rel=2e-3, abs=200)


@pytest.mark.truth(
    recording="perf_*",
    path="api:Profile.process",
    source="samples by pid: a walk over the structures of the perf.data",
)
def test_samples_of_each_process(kind: Kind, profile: Profile) -> None:
    expected = Counter(sample.pid for sample in perf_data(kind.paths[0]).samples)
    for pid, num in expected.items():
        one = profile.process(pid)
        assert one.sql("SELECT count(*) FROM samples WHERE event = 'cpu-clock'").fetchall() == [(num,)]
        assert one.count_rows("callchains") == num


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path="api:Profile.process",
    source="calls by thread id: a walk over the log's records that pairs entries and exits",
)
def test_calls_of_the_one_process(kind: Kind, profile: Profile) -> None:
    log = call_log(kind.paths[-1])
    ((pid,),) = profile.sql(
        "SELECT DISTINCT pid FROM call_events JOIN threads USING (thread_id) JOIN processes USING (process_id)"
    ).fetchall()
    one = profile.process(pid)
    query = "SELECT sum(weight) FROM samples WHERE event = 'calls'"
    assert one.sql(query).fetchall() == [(sum(log.num_calls.values()),)]


@pytest.mark.truth(
    recording="xray_profiling",
    path=["api:Profile.process", "api:Profile.thread"],
    source="the program's calls by construction: 1 + 10 + 10 + 20",
)
def test_calls_of_the_one_thread(profile: Profile, path: str) -> None:
    ((tid,),) = profile.sql("SELECT tid FROM threads").fetchall()
    one = profile.thread(tid) if path == "api:Profile.thread" else profile.process("p0")
    assert one.sql("SELECT sum(weight) FROM samples WHERE event = 'calls'").fetchall() == [(41,)]


@pytest.mark.truth(
    recording="mono_samples",
    path="api:Profile.thread",
    source="samples by thread of an independent reader (truth.json)",
)
def test_samples_of_each_managed_thread(kind: Kind, profile: Profile) -> None:
    by_thread = mono_facts(kind)["samples"]["by_thread"]
    used = Counter(name for _, names, _ in by_thread for name in names)
    compared = 0
    for _, names, num in by_thread:
        if all(used[name] == 1 for name in names):
            assert profile.thread(names[-1]).count_rows("samples") == num
            compared += num
    assert compared > 700


@pytest.mark.truth(
    recording="perf_*",
    path="api:Profile.between",
    source="times of samples: a walk over the structures of the perf.data",
)
def test_samples_between_two_times(kind: Kind, profile: Profile) -> None:
    times = sorted(sample.time_ns for sample in perf_data(kind.paths[0]).samples)
    assert profile.span_ns is not None
    zero = profile.span_ns[0]
    start, end = times[len(times) // 4], times[3 * len(times) // 4]
    part = profile.between((start - zero) / NS, (end - zero) / NS)
    expected = sum(start <= time_ns < end for time_ns in times)
    count = "SELECT count(*) FROM samples WHERE event = 'cpu-clock'"
    ((found,),) = part.sql(count).fetchall()
    assert found == pytest.approx(expected, abs=1)  # seconds are rounded
    assert profile.between(-float("inf"), float("inf")).sql(count).fetchall() == [(len(times),)]


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects"],
    path="api:Profile.between",
    source="times of calls, cut at both ends: a walk over the log's records that pairs entries and exits",
)
def test_calls_between_two_times(kind: Kind, profile: Profile) -> None:
    log = call_log(kind.paths[0])
    calls = [call for listed in log.calls.values() for call in listed if call.caller is None]
    first, last = min(one.start for one in calls), max(one.end for one in calls)
    start, end = first + (last - first) // 4, first + 3 * (last - first) // 4
    inside = sum(max(0, min(one.end, end) - max(one.start, start)) for one in calls) * NS / log.hz
    part = profile.between((start - first) / log.hz, (end - first) / log.hz)
    ((found,),) = part.sql("SELECT sum(weight) FROM samples WHERE event = 'wall-time'").fetchall()
    assert found == pytest.approx(inside, rel=4e-3)


@pytest.mark.truth(
    recording=["mono_samples", "mono_calls", "mono_allocations", "mono_locks"],
    path=["api:Profile.between", "api:Profile.thread"],
    source="totals of an independent reader (truth.json): parts of the time, and the threads, add up to them",
)
def test_parts_add_up_to_the_whole(kind: Kind, profile: Profile, path: str) -> None:
    facts = mono_facts(kind)
    expected = {
        "samples": facts["samples"]["total"],
        "allocations": facts["allocations"]["total_count"],
        "lock_events": sum(facts["monitor"].values()),
    }
    assert profile.span_ns is not None
    length = (profile.span_ns[1] - profile.span_ns[0]) / NS
    if path == "api:Profile.between":
        parts = [profile.between(*pair) for pair in pairwise([0.0, length / 3, length / 2, length + 1])]
    else:
        names = profile.sql("SELECT DISTINCT name::VARCHAR FROM threads WHERE name IS NOT NULL").fetchall()
        parts = [profile.thread(name) for (name,) in names]
    for table, num in expected.items():
        if num and (table != "samples" or kind.name == "mono_samples"):
            assert sum(part.count_rows(table) for part in parts) == num, table


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path="api:Profile.call_statistics",
    source="calls and durations by function number: a walk over the log's records that pairs entries and exits",
)
def test_statistics_of_each_function(kind: Kind, profile: Profile) -> None:
    expected = call_log(kind.paths[-1]).durations()
    found = columns(profile.call_statistics(by="function").functions())
    names = dict(profile.sql("SELECT function_id, native_id FROM functions WHERE native_id IS NOT NULL").fetchall())
    assert Counter({names[key]: num for key, num in zip(found["function_id"], found["num_calls"], strict=True)}) == {
        number: len(durations) for number, durations in expected.items()
    }
    for key, sum_ns in zip(found["function_id"], found["sum_ns"], strict=True):
        assert sum_ns == pytest.approx(sum(expected[names[key]]), rel=2e-3, abs=len(expected[names[key]]))


@pytest.mark.truth(
    recording="jitdump",
    path="api:Profile.selected_rows",
    source="sizes of code: a walk over the dump's JIT_CODE_LOAD records",
)
@pytest.mark.truth(
    recording="perf_[!dmx]*",
    path="api:Profile.selected_rows",
    source="sizes of code: a walk over the dump's JIT_CODE_LOAD records",
)
def test_selected_rows_of_code(kind: Kind, profile: Profile) -> None:
    loads = jitdump(kind.paths[-1]).loads
    rows = columns(profile.selected_rows("code_objects", ["size_bytes", "start_address"], time=None, thread=None))
    assert Counter(rows["size_bytes"]) == Counter(load.size for load in loads)
    assert set(rows["start_address"]) == {load.address for load in loads}


@pytest.mark.truth(
    recording=["perf_data", "perf_xray", "perf_mono"],
    path="api:Profile.selected_rows",
    source="samples by thread id and time: a walk over the structures of the perf.data",
)
def test_selected_rows_of_samples(kind: Kind, profile: Profile) -> None:
    rows = columns(profile.selected_rows("callchains", ["ts_ns", "thread_id"]))
    assert Counter(rows["ts_ns"]) == Counter(sample.time_ns for sample in perf_data(kind.paths[0]).samples)
    tids = dict(profile.sql("SELECT thread_id, tid FROM threads").fetchall())
    by_thread = Counter(tids[key] for key in rows["thread_id"])
    assert by_thread == Counter(sample.tid for sample in perf_data(kind.paths[0]).samples)


@pytest.mark.truth(
    recording=["mono_calls", "mono_allocations"],
    path=["api:Profile.selected_rows", "api:Profile.allocation_sums", "api:Profile.allocations", "report:allocations"],
    source="allocations by type of an independent reader (truth.json)",
)
def test_allocations_by_type(kind: Kind, profile: Profile, path: str) -> None:
    facts = mono_facts(kind)["allocations"]
    names = dict(profile.sql("SELECT type_id, name::VARCHAR FROM types").fetchall())
    if path == "api:Profile.selected_rows":
        each = columns(profile.selected_rows("allocations", ["type_id", "size_bytes"]))
        pairs = list(zip(each["type_id"], each["size_bytes"], strict=True))
        found = {names[key]: [0, 0] for key, _ in pairs}
        for key, size in pairs:
            found[names[key]][0] += 1
            found[names[key]][1] += size
    elif path == "api:Profile.allocation_sums":
        sums = columns(profile.allocation_sums("type"))
        rows = zip(sums["type_id"], sums["num_objects"], sums["size_bytes"], strict=True)
        found = {names[key]: [count, size] for key, count, size in rows}
    elif path == "api:Profile.allocations":
        analysis = profile.allocations()
        assert (analysis.count, analysis.bytes) == (facts["total_count"], facts["total_bytes"])
        found = {one.name: [one.count, one.bytes] for one in analysis.by_type()}
    else:
        section = json_of("report", *kind.paths, "--section", "allocations", "--limit", "0")["allocations"]
        assert (section["count"], section["bytes"]) == (facts["total_count"], facts["total_bytes"])
        found = {one["name"]: [one["count"], one["bytes"]] for one in section["by_type"]}
    assert sum(count for count, _ in found.values()) == facts["total_count"]
    for name, *expected in facts["top"]:
        assert found[name] == expected, name


@pytest.mark.truth(
    recording=["mono_calls", "mono_allocations", "mono_gc", "mono_before_15", "mono_heap"],
    path=["api:Profile.gc_pauses", "api:Profile.gc_activity", "report:gc"],
    source="lengths of all pauses of an independent reader (truth.json)",
)
def test_pauses(kind: Kind, profile: Profile, path: str) -> None:
    expected = mono_facts(kind)["gc"]["world_stopped_ns"]
    if path == "api:Profile.gc_pauses":
        assert sorted(one.duration_ns for one in profile.gc_pauses()) == sorted(expected)
        return
    if path == "api:Profile.gc_activity":
        pauses = profile.gc_activity().pauses
        found = (pauses.count, pauses.sum, pauses.min, pauses.max)
    else:
        section = json_of("report", *kind.paths, "--section", "gc")["gc"]["pauses"]
        found = (section["count"], section["sum"], section["min"], section["max"])
    assert found == (len(expected), sum(expected), min(expected), max(expected))


@pytest.mark.truth(
    recording=["mono_calls", "mono_allocations", "mono_locks", "mono_before_15"],
    path=["api:Profile.contention", "report:locks", "assert:locks"],
    source="lock events by kind of an independent reader (truth.json)",
)
def test_lock_events(kind: Kind, profile: Profile, path: str) -> None:
    events = mono_facts(kind)["monitor"]
    expected = (events.get("1", 0), events.get("3", 0))
    if path == "api:Profile.contention":
        found = profile.contention()
        assert (found.num_contentions, found.num_failed) == expected
        assert found.num_acquired == events.get("2", 0)
    elif path == "report:locks":
        section = json_of("report", *kind.paths, "--section", "locks")["locks"]
        assert (section["num_contentions"], section["num_failed"], section["num_acquired"]) == (
            *expected,
            events.get("2", 0),
        )
    else:
        facts = facts_of(profile)
        assert (facts["locks.contentions"](), facts["locks.failed"]()) == expected


@pytest.mark.truth(
    recording=["mono_calls", "mono_allocations", "mono_before_15"],
    path=["api:Profile.exceptions", "report:exceptions", "assert:exceptions"],
    source="number of thrown exceptions of an independent reader (truth.json)",
)
@pytest.mark.truth(
    recording="mono_samples",
    path=["api:Profile.exceptions", "report:exceptions", "assert:exceptions"],
    source="number of thrown exceptions of an independent reader (truth.json)",
)
def test_exceptions(kind: Kind, profile: Profile, path: str) -> None:
    expected = mono_facts(kind)["throws"]
    if path == "api:Profile.exceptions":
        found = profile.exceptions()
        assert (found.count, sum(count for _, count in found.by_type)) == (expected, expected)
    elif path == "report:exceptions":
        section = json_of("report", *kind.paths, "--section", "exceptions")["exceptions"]
        assert section["count"] == expected
    else:
        assert facts_of(profile)["exceptions.count"]() == expected


@pytest.mark.truth(
    recording=["mono_heap", "mono_before_15"],
    path=["api:Profile.heap_sizes", "api:Profile.heap", "report:heap"],
    source="objects and bytes of each snapshot of an independent reader (truth.json)",
)
def test_heap_snapshots(kind: Kind, profile: Profile, path: str) -> None:
    expected = [(one["objects"], one["bytes"]) for one in mono_facts(kind)["heapshots"]]
    if path == "api:Profile.heap_sizes":
        assert list(profile.heap_sizes().values()) == expected
    elif path == "api:Profile.heap":
        keys = [key for (key,) in profile.sql("SELECT snapshot_id FROM heap_snapshots ORDER BY 1").fetchall()]
        found = [profile.heap(key) for key in keys]
        assert [(one.num_objects, one.size_bytes) for one in found] == expected
    else:
        shots = json_of("report", *kind.paths, "--section", "heap")["heap"]["snapshots"]
        assert [(one["num_objects"], one["size_bytes"]) for one in shots] == expected


@pytest.mark.truth(
    recording=["mono_allocations", "mono_before_15"],
    path=["api:Profile.handle_sums", "report:handles", "assert:handles", "api:Profile.count_rows"],
    source="handles that were created and freed: counts of another decoder of Mono logs",
)
def test_handles(kind: Kind, profile: Profile, path: str) -> None:
    counts = mono_counts(kind)
    created = sum(num for name, num in counts.items() if name.startswith("GC_HANDLE_CREATED"))
    freed = sum(num for name, num in counts.items() if name.startswith("GC_HANDLE_DESTROYED"))
    if path == "api:Profile.handle_sums":
        rows, _ = profile.handle_sums(stacks=False)
        found = (sum(row[1] for row in rows), sum(row[2] for row in rows))
    elif path == "report:handles":
        kinds = json_of("report", *kind.paths, "--section", "handles", "--limit", "0")["handles"]["kinds"]
        found = (sum(one["num_created"] for one in kinds), sum(one["num_destroyed"] for one in kinds))
    elif path == "assert:handles":
        facts = facts_of(profile)
        found = (int(facts["handles.created"]()), created - int(facts["handles.left"]()))
    else:
        found = (profile.count_rows("gc_handles", time=None, thread=None), freed)
    assert found == (created, freed)


@pytest.mark.truth(
    recording=["mono_calls", "mono_allocations", "mono_locks", "mono_before_15"],
    path="api:Profile.row_counts",
    source="lock events by kind of an independent reader (truth.json)",
)
def test_row_counts_of_lock_events(kind: Kind, profile: Profile) -> None:
    events = mono_facts(kind)["monitor"]
    found = Counter[str]()
    for text, _, num in profile.row_counts("lock_events", ("kind", "thread_id")):
        found[text] += num
    assert sorted(found.values()) == sorted(events.values())
