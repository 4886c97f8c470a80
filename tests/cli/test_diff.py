"""`perfuse diff`: its output formats agree, and refusals state what cannot be compared."""

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from command_line import Perfuse

LOG, LATER = "xray-log.server.uocuES", "xray-log.server.Qd81xw"


def test_json_and_csv_have_the_same_rows(perfuse: Perfuse) -> None:
    document = json.loads(perfuse("diff", LOG, LATER, "--json", "--limit", "0").out)
    assert (document["kind"], document["unit"], document["sort"]) == ("calls", "ns", "self")
    assert [document[side]["num_counted"] for side in "ab"] == [102, 30]
    assert document["num_functions"] == {"changed": 7, "new": 0, "gone": 10, "undecided": 0, "same": 0}
    rows = list(csv.DictReader(perfuse("diff", LOG, LATER, "--format", "csv", "--limit", "0").out.splitlines()))
    assert len(rows) == len(document["functions"]) == 17
    for row, listed in zip(rows, document["functions"], strict=True):
        assert (row["name"], row["state"]) == (listed["name"], listed["state"])
        for statistic, change in listed["figures"].items():
            for part, value in change.items():
                assert row[f"{statistic}_{part}"] == ("" if value is None else str(value))
    changes = [abs(one["figures"]["self"]["difference"]) for one in document["functions"]]
    assert changes == sorted(changes, reverse=True)


def test_dot_has_both_sides(perfuse: Perfuse) -> None:
    done = perfuse("diff", LOG, LATER, "--format", "dot")
    assert (done.code, done.err) == (0, "")
    (thrower,) = (line for line in done.out.splitlines() if re.search(r'^  f\d+ \[label="demo::thrower\\n', line))
    assert r"count 16 > 13 (-18.8%)" in thrower
    assert r'style="filled,rounded,dashed"' in done.out


def test_samples(perfuse: Perfuse, recordings: Path, golden: Callable[[str, str], None]) -> None:
    (recordings / "named").mkdir()
    for name in ("perf.data", "jit-2345.dump"):
        shutil.copy(recordings / name, recordings / "named")
    golden("diff-samples-80.txt", perfuse("diff", "perf.data", "named", "--sort", "total").out)
    document = json.loads(perfuse("diff", "perf.data", "named", "--json", "--limit", "0", "--sort", "name").out)
    assert (document["kind"], document["unit"], document["a"]["event"]) == ("samples", "ns", "cpu-clock")
    # With the dump, JIT functions have names.
    assert {(one["name"], one["state"]) for one in document["functions"]} >= {("crc", "new"), ("entry", "new")}
    weights = [sum(one["figures"]["self"]["difference"] for one in document["functions"])]
    assert weights == [0]


def test_the_header_names_samples_once(perfuse: Perfuse) -> None:
    """Collapsed stacks have samples of no named event."""
    Path("a.folded").write_text("main;work 41\nmain 1\n", encoding="ascii")
    Path("b.folded").write_text("main;work 20\n", encoding="ascii")
    header = perfuse("diff", "a.folded", "b.folded").out.splitlines()[:2]
    assert [re.sub(r" +", " ", line) for line in header] == [
        "a a.folded: 42 samples, 42 samples",
        "b b.folded: 20 samples, 20 samples",
    ]


def test_nothing_changed(perfuse: Perfuse) -> None:
    done = perfuse("diff", LOG, LOG)
    assert done.code == 0
    assert "17 same" in done.out
    assert "Functions  by" not in done.out


def test_refusals(perfuse: Perfuse) -> None:
    for words, message in (
        (("perf.data", LOG), "the first has samples, the second calls"),
        (("jit-2345.dump", LOG), "neither calls nor samples"),
        (("perf.data", "perf.data", "--sort", "p99"), "the order of samples is one of count, self, total, name"),
        ((LOG, LATER, "--event", "cycles"), "no samples of event 'cycles'"),
    ):
        done = perfuse("diff", *words)
        assert (done.code, done.out) == (2, "")
        assert message in done.err
