"""Stacks unwound from registers and copies of stacks, held against what perf makes of the same recordings."""

import os
from pathlib import Path

import pytest

import perf_chains
import perfuse as pf

BESIDE = Path(__file__).parents[3] / "shared" / "corpus"
RECORDED = Path(os.environ.get("PERFUSE_CORPUS", BESIDE)) / "sframe" / "perf"
VERSIONS = [path.stem for path in sorted(RECORDED.glob("small_v*.data"))]


@pytest.mark.parametrize("name", VERSIONS)
def test_a_stack_is_as_perf_unwinds_it(name: str) -> None:
    profile = pf.fuse(RECORDED / f"{name}.data", symbol_dirs=[RECORDED])
    truth = perf_chains.read((RECORDED / f"{name}.perfscript.txt").read_text(encoding="utf-8"))
    ours = perf_chains.of(profile)
    assert ours.keys() == truth.keys()
    assert {ts: ours[ts] for ts in ours if ours[ts] != truth[ts]} == {}
