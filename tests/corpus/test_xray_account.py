"""Calls of every XRay log match `llvm-xray account` to the last digit, where that is right."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from arro3.core import Table

from perfuse import _core

Figures = tuple[str, ...]
"""Number of calls; shortest, median, 90 %, 99 %, longest, all together, in seconds as llvm-xray prints them."""

NEEDS_KEEP_GOING = {"threads2-tinybuf-v5", "threads4-rotate-v5"}
"""Logs for which llvm-xray needs `--keep-going`: they have exits of calls whose entries were in lost buffers."""

COUNTED_TWICE = {
    # The child process also wrote its copy of records that its parent had not written yet.
    "basic-fork-v3": {2: (2, 3)},
    # One buffer was written twice, in place of another.
    "blocked-thread-dup-v5": {2: (20, 40), 4: (1, 2)},
    # The same; entries and exits of the two copies interleave, so durations differ too.
    "threads_nc-v3": {1: (360, 420), 2: (8451, 9328), 3: (90, 105), 4: (90, 105), 5: (18, 20)},
}
"""By log and function: the number of calls, and the number that llvm-xray counts."""

NAMES = [
    "basic-fork-v3",
    "basic-small-emultsc-v3",
    "basic-small-v3",
    "basic-sqlite-v3",
    "basic-threads-v3",
    "blocked-thread-dup-v5",
    "inmemory-v5",
    "lua-small-v5",
    "lz4-small-v5",
    "quoted-names-v5",
    "small-thresh5us-v5",
    "small-v5",
    "small_nc-v1",
    "small_nc-v2",
    "small_nc-v3",
    "small_nc-v4",
    "sqlite-small-v5",
    "sqlite-thresh-v5",
    "sqmt-small-v5",
    "threads2-tinybuf-v5",
    "threads4-emultsc-v5",
    "threads4-rotate-v5",
    "threads4-v5",
    "threads_custom-v4",
    "threads_nc-v3",
    "threads_nc-v4",
    "wrap-v5",
    "wrong-frequency-v5",
]


@pytest.mark.parametrize("name", NAMES)
def test_account(name: str, xray_corpus: Path) -> None:
    (log,) = xray_corpus.glob(f"*/{name}.xray")
    (expected,) = (xray_corpus / "expected").glob(f"{name}.account*.csv")
    ours, statistics = _account(log)
    with expected.open() as file:
        columns = ("count", "min", "median", "90%ile", "99%ile", "max", "sum")
        native = {int(row["funcid"]): tuple(row[column] for column in columns) for row in csv.DictReader(file)}
    assert ours.keys() == native.keys()
    differ = {key: (int(ours[key][0]), int(native[key][0])) for key in ours if ours[key] != native[key]}
    assert differ == COUNTED_TWICE.get(name, {})
    totals = Table.from_arrow(statistics.totals())
    assert (totals["num_lost"][0].as_py() > 0) == (name in NEEDS_KEEP_GOING)
    assert totals["num_truncated"].to_pylist() == totals["num_orphans"].to_pylist() == [0]


def test_shares_of_calls(xray_corpus: Path) -> None:
    """`diff --normalize share`: numbers of calls are shares of all calls; durations of single calls have none."""
    (log,) = xray_corpus.glob("*/lua-small-v5.xray")
    with (xray_corpus / "expected" / "lua-small-v5.account.csv").open() as file:
        native = list(csv.DictReader(file))
    whole = sum(int(row["count"]) for row in native)
    command = [sys.executable, "-m", "perfuse", "diff", log, log, "--normalize", "share", "--limit", "0"]
    done = subprocess.run([*command, "--json"], capture_output=True, check=True, text=True)
    functions = json.loads(done.stdout)["functions"]
    assert sorted(one["count"]["base"] for one in functions) == pytest.approx(
        sorted(int(row["count"]) / whole for row in native)
    )
    hz = 1_000_000_000
    assert sorted(one["max"]["base"] for one in functions) == pytest.approx(
        sorted(float(row["max"]) * hz for row in native), rel=1e-4, abs=1
    )


def test_every_account_is_compared(xray_corpus: Path) -> None:
    found = {path.name.split(".account")[0] for path in (xray_corpus / "expected").glob("*.account*.csv")}
    assert found == {*NAMES}


def _account(log: Path) -> tuple[dict[int, Figures], _core.CallStatistics]:
    """Figures by the log's own function ids. Times stay in ticks, the unit that llvm-xray computes in."""
    recording = _core.Recording.open(str(log))
    hz = int(recording.summary()["header"]["cycle_frequency"])
    # Kind, rate and its source, the stated rate, two factors, offset, uncertainty, alignment.
    clock = ("tsc", hz, "header", hz, 1, 1, 0, None, "none")
    placed = _core.Placed(recording, clock, None)
    fusion = _core.Profile([placed], [], False)
    statistics = _core.call_statistics(fusion, rank="llvm")
    functions, names = Table.from_arrow(statistics.functions()), Table.from_arrow(fusion.table("functions"))
    ids = dict(zip(names["function_id"].to_pylist(), names["native_id"].to_pylist(), strict=True))
    columns = ("function_id", "num_timed", "min_ns", "median_ns", "p90_ns", "p99_ns", "max_ns", "sum_ns")
    rows = zip(*(functions[column].to_pylist() for column in columns), strict=True)
    ours = {
        ids[key]: (str(count), *(f"{ticks / hz:.6e}" for ticks in figures)) for key, count, *figures in rows if count
    }
    return ours, statistics
