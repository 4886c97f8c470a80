"""CSV: every row of the account, and llvm-xray's own account to the last digit where that is right."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from fake_profile import FakeProfile

import perfuse
from corpus.test_xray_account import COUNTED_TWICE, NAMES
from perfuse.analysis.latency import CallAccount
from perfuse.errors import ExportError, UsageError
from perfuse.exporters import export

TICKS = 1_000_000_000
"""At this rate a tick is a nanosecond."""
PROGRAMS = {"small-v5": "small22", "lua-small-v5": "lua22", "quoted-names-v5": "lit22"}
NAMED_OTHERWISE = {
    # Quotation marks break the line in llvm-xray's CSV.
    "quoted-names-v5": {1},
    # Templates, with the return type first.
    "small-v5": {17, 18},
}
"""By log: functions that llvm-xray calls by another name than we do."""


def exported(profile: Any, **options: Any) -> list[dict[str, str]]:
    out = io.BytesIO()
    export(profile, out, to="csv", **options)
    return list(csv.DictReader(io.StringIO(out.getvalue().decode())))


@pytest.mark.parametrize("name", NAMES)
def test_as_llvm_xray_prints_it(name: str, xray_corpus: Path) -> None:
    (log,) = xray_corpus.glob(f"*/{name}.xray")
    (expected,) = (xray_corpus / "expected").glob(f"{name}.account*.csv")
    named = name in PROGRAMS
    maps = {0: xray_corpus / "bin" / PROGRAMS[name]} if named else None
    ours = {row["funcid"]: row for row in exported(perfuse.fuse(log, maps=maps, tsc_hz=TICKS), llvm=True)}
    with expected.open() as file:
        theirs = {row["funcid"]: row for row in csv.DictReader(file)}
    for rows in () if named else (ours, theirs):
        for row in rows.values():
            del row["function"], row["debug"]
    differ = {*COUNTED_TWICE.get(name, {}), *NAMED_OTHERWISE.get(name, ())}
    assert list(ours) == sorted(theirs, key=int)
    assert {int(key) for key in ours if ours[key] != theirs[key]} == differ


def test_a_wrong_rate_is_repeated(xray_corpus: Path) -> None:
    log = xray_corpus / "fdr" / "wrong-frequency-v5.xray"
    right, as_llvm = exported(perfuse.fuse(log)), exported(perfuse.fuse(log), llvm=True)
    longest = max(int(row["max_ns"]) for row in right) / 1e9
    assert max(float(row["max"]) for row in as_llvm) == pytest.approx(longest * 2596.125 / 3700, rel=1e-4)


def test_every_row_and_column(xray_corpus: Path) -> None:
    profile = perfuse.fuse(xray_corpus / "fdr" / "threads4-v5.xray")
    rows = exported(profile, by="thread")
    by_thread = CallAccount(profile, by="thread").functions()
    assert [(int(row["tid"]), int(row["self_ns"])) for row in rows] == [
        (one.thread.tid, one.latency.self_ns) for one in by_thread if one.thread
    ]
    assert {row["cpu"] for row in exported(profile, by="cpu")} == {"0", "1"}
    few = exported(profile, order="count", limit=2)
    most_called = CallAccount(profile).functions(2, order="count")
    assert [int(row["num_calls"]) for row in few] == [one.latency.num_calls for one in most_called]


def test_names_are_quoted(xray_corpus: Path) -> None:
    log, program = xray_corpus / "fdr" / "quoted-names-v5.xray", xray_corpus / "bin" / "lit22"
    names = [row["function"] for row in exported(perfuse.fuse(log, maps={0: program}), order="name")]
    assert any('"' in name for name in names)


def test_refusals(small: FakeProfile, xray_corpus: Path) -> None:
    with pytest.raises(ExportError, match="no call was recorded"):
        exported(small)
    logs = [xray_corpus / "fdr" / f"{name}.xray" for name in ("wrong-frequency-v5", "small-v5")]
    with pytest.raises(ExportError, match="different rates"):
        exported(perfuse.fuse(*logs), llvm=True)
    with pytest.raises(UsageError, match="by function only"):
        exported(perfuse.fuse(logs[1]), llvm=True, by="cpu")
