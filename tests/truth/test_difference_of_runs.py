"""The difference of two runs of one program: functions of one name are not mixed up."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from needs import need

from .producers import PROGRAMS, record

SOURCE = PROGRAMS / "same_names.js"
RUNS = {"a": (100, 400, 150, 500, 250, 600), "b": (500, 150, 400, 100, 600, 200)}
"""Milliseconds of each function."""


def positions() -> list[tuple[int, int]]:
    """Line and column of each function, in the order of the program's arguments: V8 takes those of the parameters."""
    lines = enumerate(SOURCE.read_text(encoding="utf-8").splitlines(), 1)
    return [
        (line, match.start() + 1) for line, text in lines for match in re.finditer(r"\(n, sum\)(?= =>| \{ for)", text)
    ]


@pytest.mark.truth(recording="perf_node", path="diff", source="the program's own times")
@pytest.mark.parametrize("moved_lines", [0, 3])
def test_functions_of_one_name_keep_their_own_times(moved_lines: int, tmp_path: Path) -> None:
    need("perf", "node")
    truth: dict[str, list[float]] = {}
    for side, milliseconds in RUNS.items():
        (tmp_path / side).mkdir()
        text = SOURCE.read_text(encoding="utf-8")
        script = tmp_path / "program.js"
        script.write_text("\n" * moved_lines * (side == "b") + text, encoding="utf-8")
        arguments = ",".join(map(str, milliseconds))
        run = record(["node", "--perf-prof", "--no-turbo-inlining", "--no-maglev", script, arguments], tmp_path / side)
        times = {int(phase.function): phase.end_ns - phase.start_ns for phase in run.phases}
        truth[side] = [times[place] / 1e9 for place in range(len(milliseconds))]
    command = [sys.executable, "-m", "perfuse", "diff", tmp_path / "a", tmp_path / "b", "--json", "--limit", "0"]
    document = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    listed = {
        (one["line"] - moved_lines, one["column"]): one
        for one in document["functions"]
        if (one["path"] or "").endswith("program.js") and one["verdict"] == "unclear"
    }
    for place, position in enumerate(positions()):
        figures = listed[position]["self"]
        assert listed[position]["evidence"] in {"name", "line"}
        for side, name in (("a", "base"), ("b", "new")):
            assert figures[name] / 1e9 == pytest.approx(truth[side][place], rel=0.25, abs=0.04), (position, side)
