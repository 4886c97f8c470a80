"""Events of other recorders, written as a Mono log."""

import subprocess
from pathlib import Path

import pytest

import perfuse as pf
from perfuse.errors import ExportError
from perfuse.formats.mono.profile_log import write_tables

ROOT = Path(__file__).parents[2]

ALLOCATIONS = """
    SELECT t.name, ts_ns, size_bytes, object_address, threads.name FROM allocations
    JOIN types t USING (type_id) JOIN threads USING (thread_id) ORDER BY ALL
"""
CALLS = """
    SELECT ts_ns, f.name, CASE kind::VARCHAR WHEN 'tail_exit' THEN 'exit' ELSE kind::VARCHAR END
    FROM call_events JOIN functions f USING (function_id) WHERE kind <> 'argument' ORDER BY ALL
"""
STACKS = """
    WITH RECURSIVE walk AS (
        SELECT stack_id AS leaf, stack_id, parent_stack_id, frame_id FROM stacks
        UNION ALL SELECT leaf, s.stack_id, s.parent_stack_id, s.frame_id
        FROM walk JOIN stacks s ON s.stack_id = walk.parent_stack_id
    ), named AS (
        SELECT leaf, count(*) AS depth, list(coalesce(f.name::VARCHAR, '[unknown]') ORDER BY walk.stack_id) AS names
        FROM walk JOIN frames USING (frame_id) LEFT JOIN functions f USING (function_id) GROUP BY 1
    )
    SELECT ts_ns, depth, list_sort(names) FROM {table} JOIN named ON leaf = {table}.stack_id ORDER BY ALL
"""


def rewritten(profile: pf.Profile, path: Path) -> pf.Profile:
    """The same log, written from its tables."""
    with path.open("wb") as out:
        write_tables(profile, out, None)
    return pf.fuse(path)


@pytest.mark.parametrize("name", ["tiny/v17-bt", "tiny/v09-bt", "tiny/v17-calls", "v17/alloc-bt3"])
def test_allocations(mono_corpus: Path, tmp_path: Path, name: str) -> None:
    before = pf.fuse(mono_corpus / f"{name}.mlpd")
    after = rewritten(before, tmp_path / "out.mlpd")
    assert after.sql(ALLOCATIONS).fetchall() == before.sql(ALLOCATIONS).fetchall() != []
    stacks = STACKS.format(table="allocations")
    assert after.sql(stacks).fetchall() == before.sql(stacks).fetchall()


def test_calls_of_an_xray_log(mprof_report: str, tmp_path: Path) -> None:
    before = pf.fuse(next((ROOT / "examples" / "xray_server").glob("xray-log.*")))
    out = tmp_path / "out.mlpd"
    before.export(out)
    rows = pf.fuse(out).sql(CALLS).fetchall()
    assert rows == before.sql(CALLS).fetchall()
    command = [mprof_report, "--reports=call", out]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert f"Total calls: {sum(kind == 'enter' for _, _, kind in rows)}\n" in printed


def test_samples_of_a_perf_data(mprof_report: str, tmp_path: Path) -> None:
    example = ROOT / "examples" / "postcards"
    before = pf.fuse(example / "perf.data.gz", example / "jit-32015.dump.gz")
    out = tmp_path / "out.mlpd"
    before.export(out)
    stacks = STACKS.format(table="samples")
    assert pf.fuse(out).sql(stacks).fetchall() == before.sql(stacks).fetchall() != []
    command = [mprof_report, "--reports=stats", out]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    ((num,),) = before.sql("SELECT count(*) FROM samples").fetchall()
    assert f"TYPE_SAMPLE_HIT\tcount {num:>6}" in printed


def test_refusals(jitdump_corpus: Path, tmp_path: Path) -> None:
    dump = pf.fuse(next(iter(sorted(jitdump_corpus.rglob("*.dump")))))
    with pytest.raises(ExportError, match="no single allocations, calls or samples"):
        dump.export(tmp_path / "out.mlpd")
    with pytest.raises(ExportError, match="data version 17"):
        dump.export(tmp_path / "out.mlpd", version=12)
    assert list(tmp_path.iterdir()) == []
