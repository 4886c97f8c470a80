"""Stacks unwound from registers and copies of stacks, compared with perf's unwinding of the same recordings."""

import os
from pathlib import Path

import pytest

import perf_chains
import perfuse as pf

BESIDE = Path(__file__).parents[3] / "shared" / "corpus"
RECORDED = Path(os.environ.get("PERFUSE_CORPUS", BESIDE)) / "sframe" / "perf"
NUM_CALLERS_IN_LIBC = 2
VERSIONS = [path.stem for path in sorted(RECORDED.glob("small_v*.data"))]


@pytest.mark.parametrize("name", VERSIONS)
def test_a_stack_is_as_perf_unwinds_it(name: str) -> None:
    profile = pf.fuse(RECORDED / f"{name}.data", symbol_dirs=[RECORDED])
    truth = perf_chains.read((RECORDED / f"{name}.perfscript.txt").read_text(encoding="utf-8"))
    ours = perf_chains.of(profile)
    assert ours.keys() == truth.keys()
    # Where this machine has another libc, unwinding ends in it: `__libc_start_main` and `_start` are missing.
    assert profile.unwinding is not None
    num_missing = 0 if profile.unwinding.stops.keys() == {"outermost"} else NUM_CALLERS_IN_LIBC
    expected = {ts: chain[: len(chain) - num_missing] for ts, chain in truth.items()}
    assert {ts: ours[ts] for ts in ours if ours[ts] != expected[ts]} == {}


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
