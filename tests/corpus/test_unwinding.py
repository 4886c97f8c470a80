"""Stacks unwound from registers and copies of stacks, compared with perf's unwinding of the same recordings."""

import os
from pathlib import Path

import pytest

import perf_chains
import perfuse as pf

BESIDE = Path(__file__).parents[3] / "shared" / "corpus"
RECORDED = Path(os.environ.get("PERFUSE_CORPUS", BESIDE)) / "sframe" / "perf"
VERSIONS = [path.stem for path in sorted(RECORDED.glob("small_v*.data"))]


@pytest.mark.truth(recording="perf_stacks", path="api:Profile.sql", source="perf script")
@pytest.mark.parametrize("name", VERSIONS)
def test_a_stack_is_as_perf_unwinds_it(name: str) -> None:
    profile = pf.fuse(RECORDED / f"{name}.data", symbol_dirs=[RECORDED])
    truth = perf_chains.read((RECORDED / f"{name}.perfscript.txt").read_text(encoding="utf-8"))
    ours = perf_chains.of(profile)
    assert ours.keys() == truth.keys()
    # Where this machine has another libc, a stack ends at the first frame in it.
    assert profile.unwinding is not None
    if profile.unwinding.stops.keys() != {"outermost"}:
        assert all(len(chain) > 1 for chain in ours.values())
        truth = {ts: chain[: len(ours[ts])] for ts, chain in truth.items()}
    assert {ts: ours[ts] for ts in ours if ours[ts] != truth[ts]} == {}


def test_the_profile_counts_how_frames_were_found() -> None:
    if not VERSIONS:
        pytest.skip("no corpus")
    profile = pf.fuse(RECORDED / "small_v1.data", symbol_dirs=[RECORDED])
    unwinding = profile.unwinding
    assert unwinding is not None
    assert unwinding.num_stacks == sum(unwinding.stops.values()) == unwinding.frames["sampled"] == 63
    found = dict(
        profile.sql("""
            WITH RECURSIVE up AS (
                SELECT stack_id FROM samples
                UNION ALL
                SELECT parent_stack_id FROM up JOIN stacks USING (stack_id) WHERE parent_stack_id IS NOT NULL)
            SELECT unwound_by::VARCHAR, count(*) FROM up JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
            WHERE inline_depth = 0 GROUP BY 1""").fetchall()
    )
    assert found == unwinding.frames


def test_without_its_program_a_recording_still_opens() -> None:
    if not VERSIONS:
        pytest.skip("no corpus")
    profile = pf.fuse(RECORDED / "small_v1.data")
    unwinding = profile.unwinding
    assert unwinding is not None
    assert unwinding.stops == {"no_rule": 63}
    assert "FU010" in {found.code for found in profile.diagnostics}
