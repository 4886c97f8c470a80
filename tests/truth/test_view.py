"""Answers of `perfuse view`, compared with walks over the files, and with `perfuse report --json` of the selection."""

import json
import shlex
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from perfuse.viewer.session import Session
from service.view_page import Page, served_session

from .command import json_of
from .conftest import fused
from .kinds import CORPUS, Kind
from .outside import call_log, jitdump, num_records, outside, perf_data


@contextmanager
def page_of(kind: Kind) -> Iterator[Page]:
    """The page of a kind's example; everything is computed."""
    session = Session(lambda _progress: fused(kind.name), [str(path) for path in kind.paths], kind.map_options)
    with served_session(session) as page:
        session.start()
        session.join()
        yield page


def is_near(found: float, expected: float, tolerance: float) -> bool:
    """Whether a number differs by no more than a share."""
    return abs(found - expected) <= tolerance * abs(expected)


@pytest.mark.truth(
    recording="*",
    path="view",
    source="records, samples, periods, calls, allocations, code: walks over the files, another decoder",
)
def test_the_page_has_what_the_files_have(kind: Kind) -> None:
    with page_of(kind) as page:
        overview, files = page.get("overview"), page.get("files")["files"]
        for number, path in enumerate(kind.paths):
            if kind.formats[number] != "mono" and path.is_relative_to(CORPUS):
                assert files[number]["records"] == num_records(kind.name, number)
        events = {one["name"]: one for one in overview["events"]}
        expected = outside(kind.name).weights if kind.name != "mono_coverage" and _is_known(kind) else {}
        assert set(expected) <= set(events)
        for name, weight in expected.items():
            assert is_near(events[name]["weight"], weight.total, weight.tolerance), name
            if weight.num_samples is not None:
                assert events[name]["samples"] == weight.num_samples
            _compare_functions(page, name, weight.total, weight.tolerance)
        if kind.has("code_objects") and "jitdump" in kind.formats:
            loads = jitdump(kind.paths[kind.formats.index("jitdump")]).loads
            code = page.get("code?limit=500")
            assert sum(tier["num"] for tier in code["tiers"]) == len(loads)
            assert sum(map(sum, page.get("code/timeline")["counts"])) == len(loads)


def _is_known(kind: Kind) -> bool:
    """Whether another program's facts about the example are in the corpus."""
    return all(path.is_relative_to(CORPUS) for path in kind.paths) or kind.name in ("collapsed", "perf_xray")


def _compare_functions(page: Page, event: str, total: int, tolerance: float) -> None:
    """Functions and call tree have the whole weight."""
    answer = page.get(f"functions?event={event}&limit=5000")
    assert is_near(sum(row["self"] for row in answer["rows"]), total, tolerance)
    head, nodes = read_tree(page.request(f"/api/tree?event={event}")[2])
    assert is_near(sum(node[3] for node in nodes), total, tolerance)
    assert is_near(head["total_weight"], total, tolerance)


def read_tree(data: bytes) -> tuple[Any, list[tuple[int, int, int, float]]]:
    """Head and nodes (parent distance, symbol, thread, own weight) of a call tree."""
    (size,) = struct.unpack_from("<I", data)
    head = json.loads(data[4 : 4 + size])
    at = (4 + size + 7) // 8 * 8
    num = (len(data) - at) // 24
    columns = [struct.unpack_from(f"<{num}I", data, at + 4 * num * n) for n in range(3)]
    weights = struct.unpack_from(f"<{num}d", data, at + (16 * num + 7) // 8 * 8)
    return head, list(zip(*columns, weights, strict=True))


@pytest.mark.truth(
    recording=["perf_node", "perf_cpython", "perf_stacks"],
    path="view",
    source="samples and periods of a time and a thread: a walk over the structures of the perf.data",
)
def test_a_selection_has_the_samples_of_its_time_and_thread(kind: Kind) -> None:
    walked = perf_data(kind.paths[0]).samples
    first, last = min(s.time_ns for s in walked), max(s.time_ns for s in walked)
    quarter = (last - first) // 4
    with page_of(kind) as page:
        overview = page.get("overview")
        assert (overview["zero_ns"], overview["span_ns"]) == (str(first), last - first)
        keys = {row["tid"]: row["thread"] for row in overview["threads"]}
        tid = Counter(sample.tid for sample in walked).most_common(1)[0][0]
        for start, end, threads in ((0, quarter, None), (quarter, 3 * quarter, tid), (None, None, tid)):
            chosen = [
                s for s in walked if (start is None or start <= s.time_ns - first < end) and threads in (None, s.tid)
            ]
            query = "&".join(
                [f"from={start}&to={end}"] * (start is not None) + [f"threads={keys[tid]}"] * (threads is not None)
            )
            answer = page.get(f"functions?{query}&limit=5000")
            assert answer["empty"] == (not chosen)
            if not chosen:
                continue
            assert answer["samples"] == len(chosen)
            assert sum(row["self"] for row in answer["rows"]) == sum(s.period for s in chosen)
            head, columns = page.binary(f"heat?kind=seconds&column_ns={max(1, quarter // 50)}&{query}")
            assert head["total"] == sum(columns["cells"]) == sum(s.period for s in chosen)
            of = page.get(f"report?{query}")
            assert of["report"] == json_of(*shlex.split(of["command"])[1:])


@pytest.mark.truth(
    recording="perf_node",
    path="view",
    source="samples by offset in a column, and by thread: a walk over the structures of the perf.data",
)
def test_the_cells_of_heat_maps(kind: Kind) -> None:
    walked = perf_data(kind.paths[0]).samples
    first = min(sample.time_ns for sample in walked)
    column_ns, rows = 20_000_000, 10
    with page_of(kind) as page:
        head, columns = page.binary(f"heat?kind=seconds&column_ns={column_ns}&rows={rows}")
        expected = Counter[int]()
        for sample in walked:
            after = sample.time_ns - first
            expected[after % column_ns // (column_ns // rows) * head["columns_num"] + after // column_ns] += (
                sample.period
            )
        assert {n: value for n, value in enumerate(columns["cells"]) if value} == expected
        head, columns = page.binary(f"heat?kind=threads&column_ns={column_ns}")
        tids = {row["thread"]: row["tid"] for row in page.get("overview")["threads"]}
        found = {
            (tids[key], column): columns["cells"][row * head["columns_num"] + column]
            for row, key in enumerate(head["keys"])
            for column in range(head["columns_num"])
        }
        by_thread = Counter[tuple[int, int]]()
        for sample in walked:
            by_thread[sample.tid, (sample.time_ns - first) // column_ns] += sample.period
        assert {place: value for place, value in found.items() if value} == by_thread


@pytest.mark.truth(
    recording="perf_node",
    path="view",
    source="samples by process: a walk over the structures of the perf.data",
)
def test_the_heat_map_of_processes(kind: Kind) -> None:
    processes = Counter[str]()
    for sample in perf_data(kind.paths[0]).samples:
        processes[str(sample.pid)] += sample.period
    with page_of(kind) as page:
        head, columns = page.binary("heat?kind=processes&column_ns=20000000")
        width = head["columns_num"]
        labels = [label.rsplit(" ", 1)[-1] for label in head["labels"]]
        assert {
            label: sum(columns["cells"][row * width : (row + 1) * width]) for row, label in enumerate(labels)
        } == processes
        # Without `--sample-cpu` samples have no processor.
        assert not [track for track in page.get("timeline")["tracks"] if track["kind"] == "cpu"]


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "perf_xray"],
    path="view",
    source="calls of each thread, their depths and durations: a walk over the records of the log",
)
def test_tiles_have_every_call_once(kind: Kind) -> None:
    log = call_log(kind.paths[-1])
    with page_of(kind) as page:
        threads = {row["thread"]: row["tid"] for row in page.get("overview")["threads"]}
        tracks = [track for track in page.get("timeline")["tracks"] if track["kind"] == "calls"]
        assert {threads[t["thread"]]: t["slices"] for t in tracks} == log.num_calls
        names = page.get("symbols")["symbols"]["name"]
        span = page.get("overview")["span_ns"]
        for track in tracks:
            calls = log.calls[threads[track["thread"]]]
            depths = Counter(_depth(calls, number) for number in range(len(calls)))
            for k in (0, 6, 14, 24, 40):
                found = _boxes(page, track["track"], k, span)
                counts = Counter[int]()
                busy: dict[int, float] = defaultdict(float)
                for depth, count, busy_ns, *_ in found:
                    counts[depth] += count
                    busy[depth] += busy_ns
                assert counts == depths
                assert is_near(busy[0], log.busy_ns[threads[track["thread"]]], 2e-3)
            longest = max((call.end - call.start) * 1e9 / log.hz for call in calls)
            (slowest,) = page.get(f"slowest?threads={track['thread']}&limit=1")["slices"]
            assert is_near(slowest["duration_ns"], longest, 2e-3)
            assert slowest["name"] == names[slowest["symbol"]]


def _depth(calls: list[Any], number: int) -> int:
    depth = 0
    while (number := calls[number].caller) is not None:  # type: ignore[assignment]
        depth += 1
    return depth


def _boxes(page: Page, track: int, k: int, span: int) -> list[tuple[int, int, float, float, float, int]]:
    """Boxes of the whole recording, each once: those of slices that begin in an earlier tile are left out."""
    last = span >> (9 + k)
    if last > 600:
        return _boxes(page, track, k + 4, span)
    found = []
    for first in range(0, last + 1, 64):
        _, columns = page.binary(f"tiles?k={k}&first={first}&last={min(first + 63, last)}&tracks={track}")
        rows = zip(
            *(columns[n] for n in ("depth", "count", "busy", "start", "duration", "symbol", "tile")), strict=True
        )
        found += [row[:6] for row in rows if int(row[3]) >> (9 + k) == row[6]]
    return found


@pytest.mark.truth(
    recording=["xray_fdr", "mono_calls"],
    path="view",
    source="report --json of the same selection, which walks over the files confirm; boxes: a loop over table slices",
)
def test_boxes_of_a_window_equal_a_loop_over_the_calls(kind: Kind) -> None:
    rows = (
        fused(kind.name)
        .sql("SELECT thread_id, depth, start_ns, duration_ns FROM slices WHERE kind = 'call'")
        .fetchall()
    )
    with page_of(kind) as page:
        zero, span = int(page.get("overview")["zero_ns"]), page.get("overview")["span_ns"]
        for track in page.get("timeline")["tracks"]:
            if track["kind"] != "calls":
                continue
            own = [(d, s - zero, n) for t, d, s, n in rows if t == track["thread"]]
            for k in (8, 13):
                tile = (span // 3) >> (9 + k)
                start, end = tile << (9 + k), (tile + 1) << (9 + k)
                expected = Counter[tuple[int, int, int, int]]()
                merged: dict[tuple[int, int], list[int]] = defaultdict(list)
                for depth, at, duration in own:
                    if duration >= 1 << k and at < end and (at >= start or at + duration > start):
                        expected[depth, 1, duration, duration] += 1
                    elif duration < 1 << k and start <= at < end:
                        merged[depth, at >> k].append(duration)
                for (depth, _), durations in merged.items():
                    expected[depth, len(durations), sum(durations), max(durations)] += 1
                _, columns = page.binary(f"tiles?k={k}&first={tile}&last={tile}&tracks={track['track']}")
                names = ("depth", "count", "busy", "duration")
                assert Counter(zip(*(map(int, columns[name]) for name in names), strict=True)) == expected
        quarter = span // 4 + 1
        answer = page.get(f"report?from=0&to={3 * quarter}")
        assert answer["report"] == json_of(*shlex.split(answer["command"])[1:])
        calls = page.get(f"calls?from=0&to={3 * quarter}&limit=5000&sort=num_calls")
        of = answer["report"].get("calls", answer["report"])
        assert {row["name"]: row["num_calls"] for row in calls["rows"]} == {
            row["name"]: row["num_calls"] for row in of["functions"]
        }


@pytest.mark.truth(
    recording="mono_heap",
    path="view",
    source="objects by type and their sizes: another decoder of Mono logs, by way of report --json",
)
def test_the_heap_of_the_page_is_that_of_the_report(kind: Kind) -> None:
    with page_of(kind) as page:
        of = json_of("report", *kind.paths, "--section", "heap", "--limit", "0")["heap"]["last"]
        types = page.get("heap/types?limit=5000")
        assert types["num"] == of["num_classes"]
        assert [(row["type"], row["objects"], row["bytes"], row["retained_bytes"]) for row in types["rows"]] == [
            (row["type"], row["num_objects"], row["size_bytes"], row["retained_bytes"]) for row in of["classes"]
        ]
        whole = types["totals"]["bytes"] - (types["totals"]["unreachable_bytes"] or 0)
        level = page.get("heap/dominated?limit=3")
        assert sum(row["retained_bytes"] for row in level["rows"]) + level["rest"]["bytes"] == whole
        largest = level["rows"][0]
        inner = page.get(f"heap/dominated?address={largest['address']}&limit=5000")
        assert sum(row["retained_bytes"] for row in inner["rows"]) == largest["retained_bytes"] - largest["bytes"]
        assert inner["rest"] == {"bytes": 0, "objects": 0}
        one = page.get(f"heap/object?address={largest['address']}")
        assert one["object"] == largest
        at, snapshot = int(largest["address"], 16), types["snapshot"]
        references = fused(kind.name).sql(
            f"SELECT owner_address, target_address FROM heap_references WHERE snapshot_id = {snapshot}"
        )
        pairs = references.fetchall()
        known = {
            a
            for (a,) in fused(kind.name)
            .sql(f"SELECT object_address FROM heap_objects WHERE snapshot_id = {snapshot}")
            .fetchall()
        }
        of = sorted(target for owner, target in pairs if owner == at and target in known)
        to = sorted(owner for owner, target in pairs if target == at and owner in known)
        assert (one["num_refers_to"], one["num_referred_by"]) == (len(of), len(to))
        assert sorted(int(row["address"], 16) for row in one["refers_to"]) == of[:100]
        assert sorted(int(row["address"], 16) for row in one["referred_by"]) == to[:100]
        assert one["path"][-1]["address"] == largest["address"]
