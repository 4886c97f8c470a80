"""Saved profiles answer questions as their recordings do: a choice of both. `sweep.py` compares all of the corpus."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from every_recording import every_set
from sweep import ALL, differences

from truth.kinds import CORPUS

CHOICE = (
    "jitdump/produced/jsc2.52.perf.data+jsc2.52.dump",
    "jitdump/crafted/bigendian.dump",
    "jitdump/crafted/unknown_rec.dump",
    "found/xray/pair/profiling.xray",
    "xray/fdr/typed-v5.xray with typed22",
    "xray/malformed/extents-minus1.xray",
    "mono/crafted/crafted-v01-32bit.mlpd",
    "mono_before_15",
    "mono/malformed/leave-without-enter.mlpd",
    "mono/malformed/gzip-truncated.mlpd",
    "sframe/v3/x86_64/small_omitfp.elf",
    "sframe/bad/v1_abi_77.elf",
)
"""Of each format recordings, damaged ones, and what earlier differed."""


@pytest.mark.parametrize("name", CHOICE)
def test_questions_have_the_same_answers(name: str, tmp_path: Path, choice: random.Random) -> None:
    """Half of all questions."""
    if not CORPUS.exists():
        pytest.skip("no corpus")
    one = next(one for one in every_set() if one.name == name)
    answers = list(differences(one, tmp_path, is_asked=lambda: choice.random() < 0.5, **ALL))
    assert len(answers) > 100
    assert [str(one) for one in answers if one is not None] == []
