"""Planted causes are in the answers to a few calls of `perfuse mcp`: the questions of `benchmarks/agents`.

The causes are those of programs and stacks that were made for them; `examples/*/README.md` describes the programs.
"""

import shutil
import sys
from pathlib import Path

import pytest

from mcp_client import serving

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks" / "agents"))

from evaluate import ask  # noqa: E402 - found in the directory above
from planted_causes import CASES, MAX_BYTES, MAX_CALLS, Case  # noqa: E402


@pytest.mark.some(10)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_cause_is_in_the_answers(case: Case, tmp_path: Path) -> None:
    result = ask(case, tmp_path)
    assert not result.missing, "\n".join(result.texts)
    assert len(result.texts) <= MAX_CALLS
    assert result.num_bytes <= MAX_BYTES


def test_there_are_many_causes() -> None:
    assert len({case.name for case in CASES}) == len(CASES) == 30


def test_what_was_not_recorded_is_said(tmp_path: Path) -> None:
    """The log of the sessions has no locks: an answer without rows would say that nobody waited."""
    shutil.copytree(ROOT / "examples" / "mono_sessions", tmp_path / "log")
    with serving(tmp_path) as client:
        client.initialize()
        text, _ = client.call("report", files=["log"], section=["locks"])
        assert "Not recorded" in text or "not recorded" in text
        assert "log:monitor" in text
