"""What holds for every recording and every profile of several, whatever is in it.

Keys are unique, references resolve, no row exists twice, times are inside the recording's span, self times and weights
add up to totals, and totals are the same in SQL, the report and each export. Every recording of the corpus is opened,
each perf.data also with its dump, unless it is larger than `MOST_BYTES`: larger logs of a kind repeat the structures.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import perfuse
from perfuse import _core
from perfuse.analysis.latency import CallAccount
from perfuse.errors import ExportError, UnreadableInput
from perfuse.profile import Profile
from perfuse.reports.registry import choose_kind
from perfuse.table import Columns

from . import exported
from .kinds import CORPUS, KINDS

pytestmark = pytest.mark.some(200)

MOST_BYTES = 1_500_000
"""Of a recording, unpacked."""

NO_EXITS = "enter-flood-no-leave.mlpd"
"""Entries without exits: exports and reports of stacks that deep grow with the square of its size."""
SUFFIXES = {".dump", ".data", ".xray", ".mlpd", ".elf", ".o"}


def _recordings() -> Iterator[tuple[Path, ...]]:
    """Every recording alone, and each perf.data with the dump of the same name."""
    for path in sorted(CORPUS.rglob("*")):
        if path.suffix not in SUFFIXES or path.name == NO_EXITS or path.stat().st_size > MOST_BYTES:
            continue
        if _is_readable(path):
            yield (path,)
            dump = path.with_name(path.name.replace(".perf.data", ".dump"))
            if dump != path and dump.exists() and dump.stat().st_size <= 2 * MOST_BYTES:
                yield path, dump


def _is_readable(path: Path) -> bool:
    """Whether a file can be opened: some of those that are damaged on purpose cannot."""
    try:
        perfuse.open(path)
    except UnreadableInput:
        return False
    return True


def _sets() -> dict[str, tuple[tuple[Path, ...], dict[str, Any]]]:
    """All profiles by name, with the arguments of `fuse`."""
    alone = {"+".join(str(path.relative_to(CORPUS)) for path in paths): (paths, {}) for paths in _recordings()}
    recorded = {
        kind.name: (kind.paths, kind.fuse_options)
        for kind in KINDS.values()
        if any(name.startswith("recorded/") for name in kind.files) or kind.map
    }
    return alone | recorded  # type: ignore[return-value]


SETS = _sets()


@pytest.fixture(scope="module", params=SETS)
def any_profile(request: pytest.FixtureRequest) -> Profile:
    """Each profile; one is open at a time."""
    paths, options = SETS[request.param]
    return perfuse.fuse(*paths, **options)


TABLES = {table["name"]: [column[0] for column in table["columns"]] for table in _core.tables()}
KEYS = {
    "sources": "source_id",
    "clocks": "clock_id",
    "processes": "process_id",
    "threads": "thread_id",
    "mappings": "mapping_id",
    "modules": "module_id",
    "functions": "function_id",
    "code_objects": "code_object_id",
    "unwind_functions": "unwind_function_id",
    "frames": "frame_id",
    "stacks": "stack_id",
    "samples": "sample_id",
    "slices": "slice_id",
    "counters": "counter_id",
    "types": "type_id",
    "heap_snapshots": "snapshot_id",
}
OF_THEIR_RUNTIME = {"native_id", "build_id"}
"""Ids that a recorder made up: not keys of tables."""


def _target(column: str) -> str | None:
    """The table whose key a column contains: `parent_stack_id` is one of `stacks`."""
    fitting = [table for table, key in KEYS.items() if column == key or column.endswith(f"_{key}")]
    return max(fitting, key=lambda table: len(KEYS[table]), default=None)


REFERENCES = [
    (table, column, target)
    for table, columns in TABLES.items()
    for column in columns
    if column.endswith("_id") and column not in OF_THEIR_RUNTIME and KEYS.get(table) != column
    if (target := _target(column))
]


def test_every_id_is_a_key_or_a_reference() -> None:
    found = {(table, column) for table, column, _ in REFERENCES} | set(KEYS.items())
    ids = {(table, name) for table, names in TABLES.items() for name in names if name.endswith("_id")}
    assert {one for one in ids - found if one[1] not in OF_THEIR_RUNTIME} <= {("callchains", "sample_id")}


def rows_of(profile: Profile) -> dict[str, int]:
    """Number of rows of each table that has some."""
    counts = {name: profile.tables[name].num_rows for name in TABLES}
    return {name: num for name, num in counts.items() if num}


WITHOUT_EQUAL_ROWS = (
    "callchains", "samples", "call_events", "slices", "instants", "allocations", "lock_events", "exceptions",
    "code_objects", "heap_objects", "records", "mappings",
)  # fmt: skip
WITH_LISTS = {"callchains"}
"""Of these, those with rows that only their texts compare."""


def test_keys_references_and_rows(any_profile: Profile) -> None:
    rows = {name: Columns(any_profile.tables[name]) for name in rows_of(any_profile)}
    keys = {table: set(rows[table][key]) for table, key in KEYS.items() if table in rows}
    wrong = [f"{table}.{KEYS[table]} is not unique" for table in keys if len(keys[table]) != len(rows[table])]
    for table, column, target in REFERENCES:
        if table in rows and not set(rows[table][column]) <= keys.get(target, set()) | {None}:
            wrong.append(f"{table}.{column} is not in {target}")
    for table in WITHOUT_EQUAL_ROWS:
        if table in rows:
            all_rows = rows[table].tuples(*TABLES[table])
            different = set(map(repr, all_rows)) if table in WITH_LISTS else set(all_rows)
            if len(different) != len(rows[table]):
                wrong.append(f"{table} has a row twice")
    checks = {
        "a callee is not inside its caller": "SELECT count(*) FROM slices c JOIN slices p"
        " ON p.slice_id = c.parent_slice_id WHERE c.start_ns < p.start_ns"
        " OR c.start_ns + c.duration_ns > p.start_ns + p.duration_ns"
        " OR c.thread_id <> p.thread_id OR c.depth <> p.depth + 1",
        "a stack is not one deeper than its caller's": "SELECT count(*) FROM stacks c JOIN stacks p"
        " ON p.stack_id = c.parent_stack_id WHERE c.depth <> p.depth + 1",
        "a root has a depth": "SELECT count(*) FROM stacks WHERE parent_stack_id IS NULL AND depth <> 0",
        "a code object ends before it begins": "SELECT count(*) FROM code_objects WHERE retire_ns < create_ns",
        "a thread ends before it begins": "SELECT count(*) FROM threads WHERE end_ns < start_ns",
    }
    # One query: to plan a union is less work than to plan columns, which are joined.
    found = any_profile.sql(" UNION ALL ".join(f"SELECT $${text}$$, ({query})" for text, query in checks.items()))
    assert wrong + [text for text, num in found.fetchall() if num] == []


TIMES = {
    "samples": "ts_ns",
    "call_events": "ts_ns",
    "instants": "ts_ns",
    "allocations": "ts_ns",
    "lock_events": "ts_ns",
}
SLICE_TIMES = ("start_ns", "start_ns + duration_ns")
TIMES |= dict.fromkeys(("exceptions", "callchains", "object_moves", "heap_snapshots", "counter_samples"), "ts_ns")


def test_times_are_inside_the_span(any_profile: Profile) -> None:
    """The profile's own span, which reports state as the length of the recording."""
    if any_profile.span_ns is None:
        return
    first, last = any_profile.span_ns
    rows = rows_of(any_profile)
    ends = {table: (column, column) for table, column in TIMES.items()} | {"slices": SLICE_TIMES}
    queries = (
        f"SELECT '{table}', min({low}), max({high}) FROM {table}"
        for table, (low, high) in ends.items()
        if table in rows
    )
    query = " UNION ALL ".join(queries)
    outside = (
        [row for row in any_profile.sql(query).fetchall() if not first <= row[1] <= row[2] <= last] if query else []
    )
    assert outside == []


def weights_of(profile: Profile) -> dict[str, int]:
    """Sums of the weights by event, by SQL."""
    return dict(profile.sql("SELECT event::VARCHAR, sum(weight)::HUGEINT FROM samples GROUP BY 1").fetchall())


def test_self_times_add_up(any_profile: Profile) -> None:
    """Self times of calls are the time inside outermost calls, and retained sizes of roots the size of all objects."""
    rows = rows_of(any_profile)
    if "slices" in rows:
        weights = weights_of(any_profile)
        ((own, outermost, num_calls),) = any_profile.sql(
            "SELECT sum(self_ns), sum(duration_ns) FILTER (depth = 0), count(*) FROM slices WHERE kind = 'call'"
        ).fetchall()
        assert own == outermost
        if own is not None:
            assert weights["wall-time"] == own
            # Ends of calls whose starts are unknown are slices, but not counted.
            assert weights["calls"] + CallAccount(any_profile).totals.num_orphans == num_calls
    if "heap_dominators" in rows:
        ((roots, objects),) = any_profile.sql(
            "SELECT (SELECT sum(retained_bytes) FROM heap_dominators WHERE dominator_address IS NULL),"
            " (SELECT sum(size_bytes) FROM heap_objects)"
        ).fetchall()
        assert roots == objects


SUMS = {"wall-time", "calls", "allocations", "allocated-bytes"}
"""Events whose samples are sums."""


OF_AN_EVENT = ("collapsed", "html")
TARGETS = (*OF_AN_EVENT, "pprof", "speedscope", "perfetto", "chrome", "firefox")
CRAFTED = ("/crafted/", "/malformed/", "/tiny/")
"""Folders with a hundred small recordings of the same few structures."""
MOST_TARGETS, OF_CRAFTED = 4, 2
"""Targets of a recording, and of each of these: every target writes dozens of both."""


@pytest.fixture
def targets(request: pytest.FixtureRequest, choice: random.Random) -> list[str]:
    """The targets that a profile is exported to."""
    name = request.node.callspec.params["any_profile"]
    return choice.sample(TARGETS, OF_CRAFTED if any(folder in name for folder in CRAFTED) else MOST_TARGETS)


def test_totals_are_the_same_everywhere(any_profile: Profile, targets: list[str], tmp_path: Path) -> None:
    """The sum of each event by SQL, in the report and in each export that has it."""
    weights = weights_of(any_profile)
    if not weights:
        return
    text, page = tmp_path / "collapsed", tmp_path / "html"
    for event, expected in weights.items():
        if "collapsed" in targets:
            any_profile.export(text, to="collapsed", event=event, weight="events", root="none")
            lines = text.read_text(encoding="utf-8").splitlines()
            assert sum(int(line.rpartition(" ")[2]) for line in lines) == expected, ("collapsed", event)
        if "html" in targets:
            any_profile.export(page, to="html", event=event)
            assert exported.html(page)[event].total() == expected, ("html", event)
    counts = dict(any_profile.sql("SELECT event::VARCHAR, count(*) FROM samples GROUP BY 1").fetchall())
    expected = weights | {f"{event}-samples": num for event, num in counts.items() if event not in SUMS}
    for target in targets:
        if target in OF_AN_EVENT:
            continue
        out = tmp_path / target
        try:
            any_profile.export(out, to=target)
        except ExportError:
            assert target in ("perfetto", "chrome"), "others take all that has weights"
            continue
        found = totals_in(out, target, list(weights))
        due = dict(expected)
        if "calls" in weights and target in ("speedscope", "perfetto", "chrome") and "calls-samples" not in found:
            # Timelines also have a slice for the end of a call whose start is unknown.
            ((due["calls"],),) = any_profile.sql("SELECT count(*) FROM slices WHERE kind = 'call'").fetchall()
        assert {name: num for name, num in found.items() if num != due.get(name, num)} == {}, target
        if target in ("pprof", "firefox"):
            assert not [event for event in weights if not found.keys() & {event, f"{event}-samples"}], target


def totals_in(out: Path, target: str, events: list[str]) -> dict[str, int]:
    """Sums of an exported file by event, and numbers of samples by the event's name with `-samples`."""
    found = {name: sums.total() for name, sums in exported.READERS[target](out).items()}
    sampled = [event for event in events if event not in SUMS]
    if events == ["samples"] and target == "firefox":
        return {"samples": found["-samples"]}  # of stacks with counts
    if len(sampled) == 1 and sampled != ["samples"]:
        # Where there is one event its name is not repeated.
        names = {"samples": f"{sampled[0]}-samples", "-samples": f"{sampled[0]}-samples", "": sampled[0]}
        found = {names.get(name, name): num for name, num in found.items()}
    return found


def test_the_report_has_the_totals(any_profile: Profile) -> None:
    """Totals of a report are those of the tables, and its rows add up to them."""
    weights = weights_of(any_profile)
    if not weights:
        return
    report = choose_kind(any_profile, []).build(any_profile, {"--limit": 0}).as_json()
    for part in (report, *(report[name] for name in ("samples", "calls") if isinstance(report.get(name), dict))):
        if part.get("events"):
            assert {one["name"]: one["weight"] for one in part["events"]}.items() <= weights.items()
            shown = part["events"][0]["weight"]
            for rows in ("top_self", "processes", "threads", "modules", "tiers"):
                assert sum(one["self_weight"] for one in part[rows]) == shown, rows
        if "functions" in part:
            assert part["totals"]["num_calls"] == weights["calls"]
            for rows, of in (("functions", "self_ns"), ("threads", "busy_ns")):
                assert sum(one[of] for one in part[rows]) == weights["wall-time"], rows
            for stacks in part["stacks"]:
                assert sum(one["self_ns"] for one in stacks["stacks"]) == weights["wall-time"]
                assert sum(one["num_calls"] for one in stacks["stacks"]) == weights["calls"]
    if isinstance(allocations := report.get("allocations"), dict):
        for rows in ([allocations], allocations["by_type"]):
            assert sum(one["bytes"] for one in rows) == weights["allocated-bytes"]
            assert sum(one["count"] for one in rows) == weights["allocations"]


def test_packed_files_are_those_that_are_unpacked() -> None:
    """The set with its files unpacked has the same rows."""
    kind = KINDS["perf_mono"]
    inside = [gzip.decompress(path.read_bytes()) for path in kind.paths]
    again = perfuse.fuse(*inside)
    assert rows_of(again) == rows_of(perfuse.fuse(*kind.paths))
