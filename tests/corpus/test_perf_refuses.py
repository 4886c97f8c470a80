"""Recordings that `perf inject --jit` refuses, or whose dump it does not see, are read correctly."""

from collections import Counter
from pathlib import Path

import pytest

import perfuse

from .plain_join import PlainJoin

NUM_JIT_FRAMES = {
    "node20-nsz": 8913,
    "jsc2.52": 1404,
    "jsc2.54-source": 459,
    "llvm19-orc": 352,
}
"""Frames in JIT code. perf 6.1 fails on: a pid namespace that is gone, jit-TID-PID.dump (twice), garbage flags."""

_FRAMES = """
    WITH RECURSIVE chains AS (
        SELECT s.ts_ns, k.frame_id, k.parent_stack_id, 0 AS position
        FROM samples s JOIN stacks k ON k.stack_id = s.stack_id
        UNION ALL
        SELECT c.ts_ns, k.frame_id, k.parent_stack_id, c.position + 1
        FROM chains c JOIN stacks k ON k.stack_id = c.parent_stack_id
    )
    SELECT c.ts_ns, f.address, f.unwound_by, o.code_index
    FROM chains c
    JOIN frames f ON f.frame_id = c.frame_id
    LEFT JOIN code_objects o ON o.code_object_id = f.code_object_id
    WHERE f.inline_depth = 0 AND f.kind <> 'kernel' AND f.address IS NOT NULL
"""


@pytest.mark.truth(
    recording=["perf_node", "perf_jsc", "perf_llvm"], path="api:Profile.sql", source="a join of its own in the test"
)
@pytest.mark.parametrize("stem", NUM_JIT_FRAMES)
def test_every_address(stem: str, jitdump_corpus: Path) -> None:
    produced = jitdump_corpus / "produced"
    dump = produced / f"{stem}.dump"
    plain = PlainJoin(dump)
    profile = perfuse.fuse(str(produced / f"{stem}.perf.data"), str(dump))
    num_jit_frames, different = 0, Counter[tuple[str, int | None, int | None]]()
    for ts_ns, address, unwound_by, code_index in profile.sql(_FRAMES).fetchall():
        looked_up = address if unwound_by == "sampled" else address - 1
        truth = plain.code_index(looked_up, ts_ns)
        num_jit_frames += truth is not None
        if code_index != truth:
            different[unwound_by, truth, code_index] += 1
    assert not different
    assert num_jit_frames == NUM_JIT_FRAMES[stem]


def test_without_a_common_clock(jitdump_corpus: Path) -> None:
    """Recorded without `-k mono`: the same program as node20, so it spends its time in the same functions."""
    produced = jitdump_corpus / "produced"
    shares = {stem: _shares(produced, stem) for stem in ("node20", "node20-noclock")}
    busy = {name for name, share in shares["node20"].items() if share >= 0.05}
    assert busy
    for name in busy:
        assert shares["node20-noclock"][name] == pytest.approx(shares["node20"][name], abs=0.03), name


def _shares(produced: Path, stem: str) -> Counter[str]:
    """Part of the samples whose innermost frame is in each JIT function."""
    profile = perfuse.fuse(str(produced / f"{stem}.perf.data"), str(produced / f"{stem}.dump"))
    rows = profile.sql(
        """
        SELECT n.name, count(*) / (SELECT count(*) FROM samples)
        FROM samples s
        JOIN stacks k ON k.stack_id = s.stack_id
        JOIN frames f ON f.frame_id = k.frame_id
        JOIN functions n ON n.function_id = f.function_id
        WHERE f.kind = 'jit'
        GROUP BY n.name
        """
    ).fetchall()
    return Counter(dict(rows))
