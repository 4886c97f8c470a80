"""Two libraries with the same file name and the same functions, in different directories, are two in every answer."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import perfuse as pf
from libraries_of_one_name import AFTER, BEFORE, recorded
from truth.command import command_line, run


@pytest.mark.parametrize("moved", [False, True], ids=["in place", "in another version's directory"])
def test_a_function_is_compared_with_that_of_the_same_library(tmp_path: Path, moved: bool) -> None:
    before = recorded(tmp_path / "1", tmp_path / "v1", BEFORE)
    after = recorded(tmp_path / "2", tmp_path / ("v2" if moved else "v1"), AFTER)
    rows = json.loads(command_line("diff", before, after, "--json"))["functions"]
    found = {Path(row["module"]).parent.name: (row["count"]["base"], row["count"]["new"]) for row in rows}
    assert found == {name: (BEFORE[name], AFTER[name]) for name in BEFORE}


def test_reports_state_which_of_them(tmp_path: Path) -> None:
    path = recorded(tmp_path / "1", tmp_path / "v1", BEFORE)
    whole = sum(BEFORE.values())
    for view in ([], ["--tree"], ["--by", "function"]):
        lines = [line.split() for line in command_line("report", path, *view).splitlines() if " init " in line]
        shares = {
            next(word for word in line if word.endswith("core.so")): next(word for word in line if "%" in word)
            for line in lines
        }
        assert shares == {f"{name}/core.so": f"{count / whole:.1%}" for name, count in BEFORE.items()}, view
    modules = command_line("report", path, "--by", "module")
    assert all(f"  {name}/core.so" in modules for name in BEFORE)
    wanted = run("annotate", path, "init")
    assert wanted.returncode == 2
    assert "init (a/core.so)" in wanted.stderr
    assert "init (b/core.so)" in wanted.stderr


def test_viewers_that_recognise_functions_by_name_and_file_are_given_the_library(tmp_path: Path) -> None:
    path = recorded(tmp_path / "1", tmp_path / "v1", BEFORE)
    profile = pf.fuse(path)
    profile.export(tmp_path / "x.speedscope.json", to="speedscope")
    document = json.loads((tmp_path / "x.speedscope.json").read_bytes())
    frames = document["shared"]["frames"]
    (shown,) = document["profiles"]
    weights: Counter[str] = Counter()
    for stack, weight in zip(shown["samples"], shown["weights"], strict=True):
        assert frames[stack[-1]]["name"] == "init"
        weights[Path(frames[stack[-1]]["file"]).parent.name] += weight
    assert weights == BEFORE
    profile.export(tmp_path / "x.cpuprofile", to="cpuprofile")
    document = json.loads((tmp_path / "x.cpuprofile").read_bytes())
    of_init = [node for node in document["nodes"] if node["callFrame"]["functionName"] == "init"]
    hits = {Path(node["callFrame"]["url"]).parent.name: node["hitCount"] for node in of_init}
    assert hits == BEFORE


def test_what_an_earlier_step_excludes_is_not_called_unknown(tmp_path: Path) -> None:
    path = recorded(tmp_path / "1", tmp_path / "v1", BEFORE)
    done = run("report", path, "--only", "module:*/a/core.so", "--drop", "module:*/b/core.so")
    assert done.returncode == 2
    assert "did you mean" not in done.stderr
    assert "the steps before it" in done.stderr
