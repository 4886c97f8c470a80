"""Reports of a selection state which part of the recording it is."""

import json
from pathlib import Path

import pytest
from command_line import Perfuse

SQL = "SELECT count(*)::BIGINT AS count, sum(weight)::BIGINT AS weight FROM samples"
SELECTIONS = [
    ["--between", "0..0.05"],
    ["--thread", "llvmjit"],
    ["--only", "crc"],
    ["--between", "0.02..0.05", "--only", "crc"],
]


@pytest.mark.parametrize("how", SELECTIONS, ids=" ".join)
@pytest.mark.parametrize("view", [[], ["--by", "function"]], ids=["report", "by"])
def test_what_is_recorded_is_all_of_it(perfuse: Perfuse, how: list[str], view: list[str]) -> None:
    [whole] = json.loads(perfuse("query", "perf.data", "jit-2345.dump", SQL, "--json").out)
    [part] = json.loads(perfuse("query", "perf.data", "jit-2345.dump", SQL, *how, "--json").out)
    assert 0 < part["count"] <= whole["count"]
    document = json.loads(perfuse("report", "perf.data", "jit-2345.dump", *how, *view, "--json").out)
    assert document["recorded"] == whole
    assert document["selection"].startswith(how[0])
    counted = document["events"][0]["samples"] if not view else document["selected"]["count"]
    assert counted == part["count"]
    percent = f"{100 * part['weight'] / whole['weight']:.1f}% of "
    text = perfuse("report", "perf.data", "jit-2345.dump", *how, *view).out
    assert any(line.strip().startswith("selected") and percent in line for line in text.splitlines())


def test_where_nothing_could_match_the_hint_states_that(perfuse: Perfuse, tmp_path: Path) -> None:
    (tmp_path / "plain.folded").write_text("main;render 3\n", encoding="utf-8")
    done = perfuse("report", str(tmp_path / "plain.folded"), "--only", "path:nothing")
    assert done.code == 2
    assert "hint: there is none" in done.err
