"""Answers about whole logs that were saved: of the saved sums and tables, without the copies."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from questions import answer_to, exported, graph, report

import perfuse as pf
from archive.saved_ranges import EXPORTED, Opened, flame_of, viewed
from packs_of_tests import rewritten
from perfuse.reports.runtime.report import SECTION_NAMES
from truth.kinds import CORPUS

CALLS: tuple[dict[str, Any], ...] = (
    {},
    {"--sort": "count"},
    {"--function": "*"},
    {"--by": "thread"},
    {"--graph": True},
    {"--recursive-only": True},
    {"--function": "*a*", "--sort": "total"},
)
"""Reports of all calls."""
EVENTS: tuple[dict[str, Any], ...] = (
    {},
    {"--tree": True},
    *({"--section": (one,)} for one in SECTION_NAMES if one not in ("heap", "objects", "records")),
    {"--section": ("allocations",), "--stacks": True},
    {"--section": ("handles", "exceptions", "locks"), "--stacks": True},
    {"--event": "allocated-bytes", "--by": "function"},
)
"""Reports of all that a runtime recorded."""

LOGS = {
    "XRay, FDR mode": ("xray/fdr/sqlite-small-v5.xray", 4000, CALLS),
    "XRay, threads": ("xray/fdr/threads4-v5.xray", 1000, CALLS),
    "Mono, calls": ("mono/v17/calls-depth5.mlpd", 9000, EVENTS),
    "Mono, allocations": ("mono/v17/alloc.mlpd", 1000, EVENTS),
    "Mono, 32 bits": ("mono/v17/i386-calls.mlpd", 500, EVENTS),
    "Mono, handles": ("mono/v17/gchandles.mlpd", 20, EVENTS),
}
"""Logs, and the rows of a row group with which they have several, so that sums are saved."""
MOST = 5
"""Further reports of each log, and its exports."""


@pytest.mark.parametrize("name", LOGS)
def test_answers_are_those_of_the_log(name: str, opened: Opened, tmp_path: Path, choice: random.Random) -> None:
    """The copy is damaged: what reads it is an error."""
    path, rows, asked = LOGS[name]
    recorded, saved_path = opened.of((CORPUS / path,), rows)
    with pf.fuse(saved_path) as saved:
        for options in (asked[0], *choice.sample(asked[1:], MOST)):
            # A log has hundreds of functions, and the view of each has two trees.
            limit = 20 if options.get("--function") == "*" else None
            expected, found = (answer_to(partial(report, of, options, limit=limit)) for of in (recorded, saved))
            assert expected == found, options
        assert graph(saved, "function") == graph(recorded, "function")
        assert flame_of(saved) == flame_of(recorded)
        for target in choice.sample(EXPORTED, MOST):
            asked = partial(exported, target=target, output=target.outputs[0], folder=tmp_path / "out")
            expected, found = (answer_to(partial(asked, of)) for of in (recorded, saved))
            assert expected == found, target.name


def test_the_page_of_a_log_without_stacks(opened: Opened) -> None:
    """Tables without rows are not in the file."""
    recorded, saved_path = opened.of((CORPUS / "mono/v17/counters.mlpd",), 30)
    with pf.fuse(saved_path) as saved:
        pages = (("counters", ""), ("activity", "by=thread&buckets=50"))
        assert repr(viewed(saved, pages)) == repr(viewed(recorded, pages))


def test_several_logs(opened: Opened) -> None:
    """Of two runs of one program: each function once, with the calls of both."""
    names = ("xray/fdr/threads4-v5.xray", "xray/fdr/threads4-emultsc-v5.xray")
    recorded, saved_path = opened.of(tuple(CORPUS / name for name in names), 1000)
    with pf.fuse(saved_path) as saved:
        for options in CALLS[:-1]:
            assert report(saved, options) == report(recorded, options)


WRONG = (
    ("call_functions", "SELECT * REPLACE (4000000000::UINTEGER AS function_id) FROM sums"),
    ("call_threads", "SELECT * REPLACE (4000000000::UINTEGER AS thread_id) FROM sums"),
    ("call_paths", "SELECT * REPLACE (path_id AS parent_path_id) FROM sums"),
    (
        "call_migrations",
        "SELECT 4000000000::UINTEGER AS thread_id, 1::UINTEGER AS from_cpu, 2::UINTEGER AS to_cpu, "
        "1::UBIGINT AS num_migrations",
    ),
    *(
        ("allocation_sums", f"SELECT * REPLACE (4000000000::UINTEGER AS {key}) FROM sums")
        for key in ("thread_id", "type_id", "stack_id", "source_id")
    ),
)
"""Sums whose keys refer to no rows."""


@pytest.mark.parametrize(("table", "query"), WRONG)
def test_sums_that_refer_to_other_tables_wrongly_are_refused(
    table: str, query: str, opened: Opened, tmp_path: Path
) -> None:
    import duckdb

    path, rows, _ = LOGS["Mono, allocations" if table == "allocation_sums" else "XRay, FDR mode"]
    _, saved_path = opened.of((CORPUS / path,), rows)
    member = f"resolved/{table}.parquet"
    before, after, changed = (tmp_path / name for name in ("before.parquet", "after.parquet", "changed.perfuse"))
    with ZipFile(saved_path) as archive:
        before.write_bytes(archive.read(member))
    with duckdb.connect() as database:
        database.sql(f"CREATE VIEW sums AS FROM '{before}'")
        database.sql(f"COPY ({query}) TO '{after}' (FORMAT parquet, COMPRESSION zstd)")
    changed.write_bytes(rewritten(saved_path.with_suffix(".whole").read_bytes(), {member: after.read_bytes()}))
    with pf.fuse(changed) as profile, pytest.raises(pf.UnreadableInput, match=f"table {table}: rows are missing, or"):
        report(profile, {})


def test_files_of_earlier_versions_are_read_by_their_copies(opened: Opened, tmp_path: Path) -> None:
    """Without sums."""
    for name, member in (("XRay, FDR mode", "call_functions"), ("Mono, allocations", "allocation_sums")):
        path, rows, _ = LOGS[name]
        recorded, saved_path = opened.of((CORPUS / path,), rows)
        older = tmp_path / "older.perfuse"
        older.write_bytes(
            rewritten(saved_path.with_suffix(".whole").read_bytes(), {f"resolved/{member}.parquet": None})
        )
        with pf.fuse(older) as saved:
            assert report(saved, {}) == report(recorded, {})
