"""Rows, counts, facts and findings of profiles, compared with walks over the structures of the recordings."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from arro3.core import Table

import perfuse
from perfuse.analysis.facts import NotRecorded, facts_of
from perfuse.errors import UsageError
from perfuse.profile import Profile

from . import exported
from .command import command_line, run
from .kinds import Kind
from .mono_walk import walk
from .outside import CallLog, call_log, call_profile, collapsed, jitdump, perf_data
from .test_damaged_files import LOSSES, damaged, with_wrong_function


def rows(stream: Any) -> list[dict[str, Any]]:
    """The rows of an Arrow stream."""
    found: list[dict[str, Any]] = Table.from_arrow(stream).to_struct_array().to_pylist()
    return found


def tids(profile: Profile) -> dict[int, int]:
    """Thread ids by key."""
    return dict(profile.sql("SELECT thread_id, tid FROM threads").fetchall())


def events_by_kind(log: CallLog) -> Counter[str]:
    """Rows of table `call_events` that the log's records are."""
    return +Counter(
        {
            "enter": log.kinds["Entry"] + log.kinds["Entry_Args"],
            "exit": log.kinds["Exit"],
            "tail_exit": log.kinds["Tail_Exit"],
            "argument": log.kinds["CallArgument"] + log.kinds["ArgPayload"],
        }
    )


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects"],
    path=["api:Profile.selected_rows", "api:Profile.count_rows"],
    source="entries, exits and arguments by kind and thread: a walk over the log's records",
)
def test_events_of_calls(kind: Kind, profile: Profile, path: str) -> None:
    log = call_log(kind.paths[0])
    expected = events_by_kind(log)
    by_thread = Counter[tuple[int, str]]()
    if path == "api:Profile.selected_rows":
        threads = tids(profile)
        for row in rows(profile.selected_rows("call_events", ["kind", "thread_id"])):
            by_thread[threads[row["thread_id"]], row["kind"]] += 1
    else:
        for tid in log.num_calls:
            for name in expected:
                by_thread[tid, name] = profile.thread(tid).count_rows("call_events", kinds=[name])
        assert profile.count_rows("call_events") == expected.total()
    found = Counter[str]()
    for (_, name), num in by_thread.items():
        found[name] += num
    assert found == expected
    assert {tid: by_thread[tid, "enter"] for tid in log.num_calls} == log.num_calls


@pytest.mark.truth(
    recording="xray_profiling",
    path=["api:Profile.selected_rows", "api:Profile.count_rows", "api:Profile.call_statistics"],
    source="numbers of calls and ticks of each path: a walk over the profile's blocks",
)
def test_sums_of_call_paths(kind: Kind, profile: Profile, path: str) -> None:
    paths = call_profile(kind.paths[0])
    if path == "api:Profile.selected_rows":
        found = rows(profile.selected_rows("call_sums", ["num_calls", "total_ns"], time=None))
        assert [(row["num_calls"], row["total_ns"]) for row in found] == [(one.count, one.ticks) for one in paths]
    elif path == "api:Profile.count_rows":
        assert profile.count_rows("call_sums", time=None) == len(paths)
    else:
        expected = Counter[int]()
        for one in paths:
            expected[one.functions[-1]] += one.count
        numbers = dict(profile.sql("SELECT function_id, native_id FROM functions").fetchall())
        found = rows(profile.call_statistics(by="function").functions())
        assert {numbers[row["function_id"]]: row["num_calls"] for row in found} == expected


@pytest.mark.truth(
    recording="xray_profiling",
    path=["flame", "api:Profile.flame", "convert:html", "convert:svg", "convert:pprof"],
    source="ticks of the outermost path of each thread, which contain all others: a walk over the profile's blocks",
)
def test_time_inside_calls_of_a_profile_of_sums(kind: Kind, profile: Profile, path: str, tmp_path: Path) -> None:
    paths = call_profile(kind.paths[0])
    whole = sum(one.ticks for one in paths if len(one.functions) == 1)
    out = tmp_path / f"out.{path.rpartition(':')[2]}"
    if path == "flame":
        out = out.with_suffix(".html")
        command_line("flame", *kind.paths, *kind.map_options, "-o", out)
    elif path == "api:Profile.flame":
        out = out.with_suffix(".html")
        profile.flame().save(out)
    elif path == "convert:pprof":
        profile.export(out, to="pprof")
        sums = exported.pprof(out)
        assert (sums["wall-time"].total(), sums["calls"].total()) == (whole, sum(one.count for one in paths))
        return
    else:
        profile.export(out)
    if path == "convert:svg":
        box, _ = exported.svg(out)
        assert box == pytest.approx(whole, rel=0.006)
    else:
        assert exported.html(out)["wall-time"].total() == whole


@pytest.mark.truth(
    recording="collapsed",
    path=["api:Profile.selected_rows", "api:Profile.process", "api:Profile.thread"],
    source="the counts of the lines, and that no line has a process or a thread, by hand",
)
def test_counts_of_lines(kind: Kind, profile: Profile, path: str) -> None:
    expected = collapsed(kind.paths[0])
    if path == "api:Profile.selected_rows":
        found = rows(profile.selected_rows("samples", ["weight"], time=None))
        assert Counter(row["weight"] for row in found) == Counter(expected.values())
        return
    if path == "api:Profile.process":
        assert profile.process("p0").sql("SELECT sum(weight) FROM samples").fetchall() == [(expected.total(),)]
        with pytest.raises(UsageError, match="no process"):
            profile.process("main")
        return
    ((only,),) = profile.sql("SELECT thread_id FROM threads").fetchall()
    assert profile.thread(only).sql("SELECT sum(weight) FROM samples").fetchall() == [(expected.total(),)]
    with pytest.raises(UsageError, match="no thread"):
        profile.thread("main")


@pytest.mark.truth(
    recording="perf_*",
    path="api:Profile.row_counts",
    source="samples by thread id: a walk over the structures of the perf.data",
)
def test_row_counts_of_samples(kind: Kind, profile: Profile) -> None:
    found = Counter[int]()
    for event, key, num in profile.row_counts("callchains", ("event", "thread_id")):
        assert event == "cpu-clock"
        assert key is not None
        found[tids(profile)[key]] += num
    assert found == Counter(sample.tid for sample in perf_data(kind.paths[0]).samples)


@pytest.mark.truth(
    recording="jitdump",
    path=["api:Profile.row_counts", "api:Profile.count_rows"],
    source="records of code by thread id: a walk over the dump",
)
def test_row_counts_of_code(kind: Kind, profile: Profile, path: str) -> None:
    loads = jitdump(kind.paths[0]).loads
    if path == "api:Profile.count_rows":
        assert profile.count_rows("code_objects", time=None) == len(loads)
        return
    found = Counter[int]()
    for _, key, num in profile.row_counts("code_objects", ("kind", "thread_id"), time=None):
        assert key is not None
        found[tids(profile)[key]] += num
    assert found == Counter(load.tid for load in loads)


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path="api:Profile.call_trace",
    source="calls and markers by kind and thread: a walk over the log's records",
)
def test_a_trace_has_all_events(kind: Kind, profile: Profile) -> None:
    log = call_log(kind.paths[-1])
    trace = profile.call_trace()
    assert trace is not None
    assert trace.num_events == events_by_kind(log).total()
    assert trace.num_instants == log.kinds["CustomEventMarker"] + log.kinds["TypedEventMarker"]
    assert {tids(profile)[key] for key in trace.thread_ids} == set(log.calls)


@pytest.mark.truth(
    recording=["perf_[!m]*", "collapsed"],
    path="assert:samples",
    source="number of samples: a walk over the perf.data; the counts of the lines, added up by hand",
)
def test_fact_of_samples(kind: Kind, profile: Profile) -> None:
    path = kind.paths[0]
    expected = collapsed(path).total() if kind.name == "collapsed" else len(perf_data(path).samples)
    assert facts_of(profile)["samples.count"]() == expected


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path="assert:calls",
    source="calls by function number: a walk over the log's records that pairs entries and exits",
)
def test_facts_of_calls(kind: Kind, profile: Profile) -> None:
    durations = call_log(kind.paths[-1]).durations()
    facts = facts_of(profile)
    assert facts["calls.count"]() == sum(map(len, durations.values()))
    listed = profile.sql("SELECT native_id, name::VARCHAR FROM functions WHERE native_id IS NOT NULL").fetchall()
    used = Counter(name for _, name in listed)
    for number, name in listed:
        if used[name] == 1 and number in durations:
            times = durations[number]
            assert facts["calls[].count"](name) == len(times)
            assert facts["calls[].sum"](name) == pytest.approx(sum(times), rel=2e-3, abs=2 * len(times))
            assert facts["calls[].max"](name) == pytest.approx(max(times), rel=2e-3, abs=2)


@pytest.mark.truth(
    recording=["collapsed", "xray_profiling", "jitdump", "sframe_program", "sframe_object", "sframe_archive"],
    path="assert:duration",
    source="no line, path, code or unwind table has a time at which anything ran",
)
def test_a_duration_that_was_not_recorded_holds_no_assertion(kind: Kind, profile: Profile) -> None:
    assert profile.span_ns is None
    with pytest.raises(NotRecorded):
        facts_of(profile)["duration"]()
    for assertion in ("duration < 1s", "duration >= 0"):
        done = run("report", *kind.paths, *kind.map_options, "--assert", assertion)
        assert done.returncode == 1, done.stdout
        assert "not recorded" in done.stdout + done.stderr


@pytest.mark.truth(
    recording="mono_coverage", path="assert:duration", source="first and last time: a walk over the events of the log"
)
def test_duration_of_a_log_made_by_hand(kind: Kind, profile: Profile) -> None:
    times = [event.time for event in walk(kind.paths[0]).events]
    assert facts_of(profile)["duration"]() == max(times) - min(times)


@pytest.mark.truth(
    recording=["perf_*", "xray_*", "mono_*", "jitdump", "collapsed"],
    path="api:Profile.diagnostics",
    source="offset of the record that is cut: a walk over the structures of the file",
)
def test_a_profile_names_where_a_file_is_cut(kind: Kind, profile: Profile, tmp_path: Path) -> None:
    lost = [one.code for one in profile.diagnostics if one.severity in LOSSES]
    assert lost == (["ML018"] if kind.name == "mono_coverage" else [])
    for file in range(len(kind.files)):
        copy = damaged(kind, file, tmp_path, cut=True)
        found = [one for one in perfuse.fuse(*copy.files).diagnostics if one.path == str(copy.path)]
        offsets = [one.offset for one in found if one.severity in LOSSES and one.offset is not None]
        assert any(copy.place.offset <= offset <= copy.end for offset in offsets), found


@pytest.mark.truth(
    recording=["sframe_program", "sframe_object", "sframe_archive"],
    path="api:Profile.diagnostics",
    source="offset of a function entry: pyelftools' section headers and a walk over the section",
)
def test_a_profile_names_the_function_that_cannot_be_read(kind: Kind, tmp_path: Path) -> None:
    copy, place = with_wrong_function(kind, tmp_path)
    found = [one.offset for one in perfuse.fuse(copy).diagnostics if one.severity in LOSSES]
    assert any(offset is not None and place.offset <= offset < place.end for offset in found)


@pytest.mark.truth(
    recording="jitdump",
    path=["convert", "convert:perf-map", "api:Profile.export"],
    source="addresses, sizes and names of code: a walk over the dump's JIT_CODE_LOAD records",
)
@pytest.mark.truth(
    recording=["perf_[!dxm]*"],
    path="convert:perf-map",
    source="addresses, sizes and names of code: a walk over the dump's JIT_CODE_LOAD records",
)
def test_a_map_of_code(kind: Kind, profile: Profile, path: str, tmp_path: Path) -> None:
    """A line for each address: of code that was there one after the other, the last."""
    out = tmp_path / "perf-1.map"
    if path == "convert":
        command_line("convert", *kind.paths, "--to", "perf-map", "-o", out)
    else:
        profile.export(out, to="perf-map")
    last = {load.address: load for load in sorted(jitdump(kind.paths[-1]).loads, key=lambda load: load.time_ns)}
    found = {}
    for line in out.read_text(encoding="utf-8").splitlines():
        address, size, name = line.split(" ", 2)
        found[int(address, 16)] = (int(size, 16), name)
    assert found.keys() <= last.keys()
    assert {address: last[address].size for address in found} == {address: size for address, (size, _) in found.items()}
    assert {address: last[address].name for address in found} == {address: name for address, (_, name) in found.items()}
    for address in last.keys() - found.keys():
        assert any(one < address + last[address].size and address < one + size for one, (size, _) in found.items())
