"""A table of a saved profile is read without the rest of the file: what is damaged elsewhere is not noticed."""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import perfuse as pf
from packs_of_tests import bytes_in_memory, damaged_copy, rewritten
from truth.kinds import CORPUS, KINDS

QUERY = """SELECT f.kind, k.depth, count(*) FROM samples JOIN stacks AS k USING (stack_id)
JOIN frames AS f USING (frame_id) GROUP BY ALL ORDER BY ALL"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A perf.data with V8's dump."""
    kind = KINDS["perf_node"]
    if not all(path.exists() for path in kind.paths):
        pytest.skip("no corpus")
    path = tmp_path_factory.mktemp("saved") / "node.perfuse"
    with pf.fuse(*kind.paths) as profile:
        profile.save(path)
    return path


def test_stacks_are_read_without_the_recordings(saved: Path, tmp_path: Path) -> None:
    with pf.fuse(saved) as profile:
        expected = profile.sql(QUERY).fetchall()
        frames = profile.tables["frames"].to_arrow()
    damaged = damaged_copy(saved, tmp_path / "damaged.perfuse", "inputs/", "tables/functions", "resolved/")
    with pf.fuse(damaged) as profile:
        assert profile.sql(QUERY).fetchall() == expected
        assert profile.tables["frames"].to_arrow() == frames
        assert profile.diagnostics is not None
        with pytest.raises(pf.UnreadableInput, match="missing or damaged"):
            profile.tables["records"].to_arrow()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/smaps")
def test_tables_are_read_without_most_of_the_file(tmp_path: Path) -> None:
    """Of a file that consists mostly of copies, a question about tables reads less than a third; records need all."""
    base = CORPUS / "jitdump" / "produced"
    files = [base / "node24-5k.perf.data", base / "node24-5k.dump.gz"]
    if not all(path.exists() for path in files):
        pytest.skip("no corpus")
    path = tmp_path / "node24.perfuse"
    with pf.fuse(*files) as profile:
        profile.save(path)
    size = path.stat().st_size
    with pf.fuse(path) as profile:
        assert profile.sql(QUERY).fetchall()
        assert 0 < bytes_in_memory(path) < size / 3
        assert profile.sql("SELECT count(*) FROM records").fetchall()
        assert bytes_in_memory(path) > size * 0.9


def test_recordings_are_read_without_the_tables(saved: Path, tmp_path: Path) -> None:
    damaged = damaged_copy(saved, tmp_path / "damaged.perfuse", "tables/mappings")
    with pf.fuse(saved) as expected, pf.fuse(damaged) as profile:
        query = "SELECT * FROM records ORDER BY ALL LIMIT 100"
        assert profile.sql(query).fetchall() == expected.sql(query).fetchall()
        with pytest.raises(pf.UnreadableInput, match="checksum"):
            profile.tables["mappings"].to_arrow()


def test_a_profile_outlives_the_file_that_it_was_opened_of(saved: Path) -> None:
    """Recordings are unpacked later than the file is closed."""
    file = pf.open(saved)
    profile = file.profile()
    file.close()
    with profile, pf.fuse(saved) as expected:
        query = "SELECT kind, count(*) FROM records GROUP BY ALL ORDER BY ALL"
        assert profile.sql(query).fetchall() == expected.sql(query).fetchall()


def test_a_closed_profile_is_closed(saved: Path) -> None:
    profile = pf.fuse(saved)
    profile.close()
    profile.close()
    with pytest.raises(pf.UsageError, match="is closed"):
        profile.sql("FROM samples")
    with pytest.raises(pf.UsageError, match="is closed"):
        profile.recordings[0].summary  # noqa: B018 - reading it raises


def test_a_stack_before_its_caller_is_refused(saved: Path, tmp_path: Path) -> None:
    """Of a file with right checksums: stacks that contain themselves would have no end."""
    import duckdb

    with ZipFile(saved) as archive:
        (tmp_path / "stacks.parquet").write_bytes(archive.read("tables/stacks.parquet"))
    duckdb.sql(
        f"COPY (SELECT * REPLACE (stack_id AS parent_stack_id) FROM '{tmp_path}/stacks.parquet')"
        f" TO '{tmp_path}/changed.parquet'"
    )
    changed = rewritten(saved.read_bytes(), {"tables/stacks.parquet": (tmp_path / "changed.parquet").read_bytes()})
    out = tmp_path / "changed.perfuse"
    out.write_bytes(changed)
    with pf.fuse(out) as profile, pytest.raises(pf.UnreadableInput, match="stack"):
        profile.tables["stacks"].to_arrow()


def test_damaged_facts_are_an_error(tmp_path: Path) -> None:
    """The member with facts about recordings: cut, of something else, of more recordings."""
    kind = KINDS["perf_openjdk"]
    if not all(path.exists() for path in kind.paths):
        pytest.skip("no corpus")
    path, member = tmp_path / "saved.perfuse", "resolved/facts.json.xz"
    with pf.fuse(*kind.paths) as profile:
        profile.save(path)
        expected = [one.summary for one in profile.recordings]
    with pf.fuse(path) as saved:
        assert [repr(one.summary) for one in saved.recordings] == [repr(one) for one in expected]
    with ZipFile(path) as archive:
        facts = json.loads(lzma.decompress(archive.read(member)))
    first = facts["recordings"][0]
    wrong = [
        b"not xz",
        *(
            lzma.compress(json.dumps(one).encode())
            for one in (
                [],
                {**facts, "recordings": facts["recordings"] * 2},
                {**facts, "empty_tables": "functions"},
                {**facts, "events": [["cpu-clock", "ns", 1]]},
                {**facts, "events": [["cpu-clock", "ns", 1, 2.5, 3, 4]]},
                {**facts, "recordings": [{**first, "tables": 7}, first]},
                {**facts, "recordings": [{**first, "summary": {**first["summary"], "arch": 5}}, first]},
                {**facts, "recordings": [{**first, "clock": {}}, first]},
            )
        ),
    ]
    out = tmp_path / "changed.perfuse"
    for content in wrong:
        out.write_bytes(rewritten(path.read_bytes(), {member: content}))
        with pf.fuse(out) as saved, pytest.raises(pf.UnreadableInput, match="cannot be read"):
            saved.recordings[0].summary  # noqa: B018 - reading it raises
    # Not stated: of the copy.
    out.write_bytes(
        rewritten(
            path.read_bytes(), {member: lzma.compress(json.dumps({**facts, "recordings": [None, None]}).encode())}
        )
    )
    with pf.fuse(out) as saved:
        assert [repr(one.summary) for one in saved.recordings] == [repr(one) for one in expected]
