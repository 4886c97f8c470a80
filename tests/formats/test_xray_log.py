"""XRay logs written from Python: read back by perfuse, and by llvm-xray where it can."""

import csv
import io
import math
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import perfuse
from perfuse import _core
from perfuse.errors import ExportError, ExportWarning, UsageError
from perfuse.formats.xray import log as xray_log
from perfuse.formats.xray.log import UNSUPPORTED
from perfuse.formats.xray.writer import Writer


def calls(path: Path | bytes) -> Counter[tuple[Any, ...]]:
    """Every event of a log, with its time and thread."""
    query = """
        SELECT ts_ns, pid, tid, cpu, kind::VARCHAR, functions.native_id, value
        FROM call_events JOIN functions USING (function_id) JOIN threads USING (thread_id)
        JOIN processes USING (process_id)
    """
    return Counter(perfuse.fuse(path).sql(query).fetchall())


def fill(writer: Writer) -> None:
    """Two threads with calls, one with arguments and events."""
    writer.enter(1, 1_000, tid=7, pid=5, cpu=2, argument=2**64 - 1)
    writer.event(b"hi", 1_500, tid=7, pid=5, cpu=2)
    writer.enter(2, 2_000, tid=8, pid=5, cpu=3)
    writer.event(b"\x00\xff", 2_500, tid=7, pid=5, cpu=2, event_type=9)
    writer.exit(1, 3_000, tid=7, pid=5, cpu=4, tail=True)
    writer.exit(2, 4_000, tid=8, pid=5, cpu=3)


@pytest.mark.parametrize("endian", ["little", "big"])
@pytest.mark.parametrize("version", [3, 4, 5])
def test_written_events_are_read(tmp_path: Path, version: int, endian: Any) -> None:
    path = tmp_path / "a.xray"
    with Writer(path, version=version, endian=endian) as writer:
        fill(writer)
    assert writer.written == xray_log.WriteSummary(2, 4, 2, {"unknown_wall_times": 2})
    assert calls(path) == Counter(
        {
            (1_000, 5, 7, 2, "enter", 1, None): 1,
            (1_000, 5, 7, 2, "argument", 1, 2**64 - 1): 1,
            (3_000, 5, 7, 4, "tail_exit", 1, None): 1,
            (2_000, 5, 8, 3, "enter", 2, None): 1,
            (4_000, 5, 8, 3, "exit", 2, None): 1,
        }
    )
    events = perfuse.fuse(path).sql("SELECT ts_ns, event_type, payload FROM instants ORDER BY 1").fetchall()
    assert events == [(1_500, None, b"hi"), (2_500, 9, b"\x00\xff")]


def test_a_monotonic_counter_joins_with_others(tmp_path: Path) -> None:
    path = tmp_path / "a.xray"
    with Writer(path, monotonic=True, hz=2_000_000) as writer:
        writer.enter(1, 2_000_000 * 3600 + 7, tid=7)
    assert writer.written is not None
    assert writer.written.unsupported == {}
    clocks = perfuse.fuse(path).sql("SELECT kind, hz, alignment FROM clocks").fetchall()
    assert clocks == [("monotonic", 2_000_000, "wall_time")]
    (moment,) = perfuse.open(path).records(kinds=["WallTimeMarker"])
    assert (moment.fields["seconds"], moment.fields["microseconds"]) == (3600, 3)


def test_a_buffer_is_of_the_usual_size() -> None:
    out = io.BytesIO()
    with Writer(out, version=1) as writer:
        for i in range(50_000):
            writer.enter(1, i * 2**33, tid=i % 2)
    log = perfuse.open(out.getvalue())
    assert log.header["buffer_size"] == 65536
    assert (log.size_bytes - 32) % 65536 == 0
    assert writer.written is not None
    assert log.summary.records["NewBuffer"] == writer.written.num_buffers == (log.size_bytes - 32) // 65536
    assert log.summary.records["Entry"] == 50_000


def test_unsupported_items_of_a_version_are_reported() -> None:
    out = io.BytesIO()
    with Writer(out, mode="basic", version=1) as writer:
        fill(writer)
    assert writer.written is not None
    assert writer.written.unsupported == {"pids": 4, "tail_exits": 1, "arguments": 1, "events": 2}
    assert set(writer.written.unsupported) <= set(UNSUPPORTED)


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no version 6 of Fdr mode"):
        Writer(io.BytesIO(), version=6)
    with pytest.raises(UsageError, match='mode is one of fdr, basic, not "profile"'):
        Writer(io.BytesIO(), mode="profile")  # type: ignore[arg-type]
    writer = Writer(io.BytesIO())
    with pytest.raises(ValueError, match="28 bits"):
        writer.enter(2**28, 1, tid=1)
    with pytest.raises(ValueError, match="int"):
        writer.enter(1, -1, tid=1)
    writer.close()
    with pytest.raises(UsageError, match="closed"):
        writer.exit(1, 1, tid=1)
    with pytest.raises(UsageError, match="no log"):
        xray_log.convert(output=tmp_path / "out")
    with pytest.raises(UsageError, match="no version"):
        xray_log.convert(_log(), output=tmp_path / "out", version=9)
    for wrong in ({"version": 300}, {"hz": -1}, {"tids": [2**40]}, {"functions": [2**40]}, {"between": (math.nan, 1)}):
        with pytest.raises(UsageError, match=r"does not exist| is from |no time between"):
            xray_log.convert(_log(), output=tmp_path / "out", **wrong)
    with pytest.raises(ExportError, match=r"not of one run.* give the rate"):
        xray_log.convert(_log(), _log(hz=5), output=tmp_path / "out")
    with pytest.raises(ExportError, match="No such file"):
        xray_log.convert(_log(), output=tmp_path / "none" / "out")
    assert list(tmp_path.iterdir()) == []


def _log(hz: int = 1_000_000_000) -> bytes:
    out = io.BytesIO()
    with Writer(out, hz=hz) as writer:
        fill(writer)
    return out.getvalue()


def test_parts(tmp_path: Path) -> None:
    path = tmp_path / "part.xray"
    xray_log.convert(_log(), output=path, tids=[8])
    assert {row[2] for row in calls(path)} == {8}
    xray_log.convert(_log(), output=path, functions={1})
    assert {row[5] for row in calls(path)} == {1}
    # From the first event on: within the call of thread 8, after the call of thread 7.
    xray_log.convert(_log(), output=path, between=(2.5e-6, 2.6e-6))
    assert sorted((row[0], row[4]) for row in calls(path)) == [(2_000, "enter"), (4_000, "exit")]


def test_a_part_without_an_end_is_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "part.xray"
    for between in ((0, math.inf), (-math.inf, math.inf), (-1, 1e300)):
        xray_log.convert(_log(), output=path, between=between)
        assert path.read_bytes() == _log()


def test_logs_become_one(tmp_path: Path) -> None:
    first, second = tmp_path / "1.xray", tmp_path / "2.xray"
    xray_log.convert(_log(), output=first, tids=[7])
    xray_log.convert(_log(), output=second, tids=[8])
    written = xray_log.convert(first, perfuse.open(second), first, output=tmp_path / "all.xray")
    assert (written.num_calls, written.unsupported["copies"]) == (4, 1)
    assert calls(tmp_path / "all.xray") == calls(_log())


@pytest.mark.parametrize("target", [("fdr", 1), ("fdr", 2), ("fdr", 5), ("basic", 2), ("basic", 3)])
def test_an_export_is_what_convert_writes(tmp_path: Path, target: tuple[str, int]) -> None:
    mode, version = target
    source, out = tmp_path / "in.xray", tmp_path / "out.xray"
    source.write_bytes(_log())
    perfuse.fuse(source).export(out, mode=mode, version=version)
    summary = perfuse.open(out).summary
    assert summary.version == f"{version} ({'FDR' if mode == 'fdr' else 'Basic'} mode)"
    direct = tmp_path / "direct.xray"
    xray_log.convert(source, output=direct, mode=mode, version=version)  # type: ignore[arg-type]
    assert out.read_bytes() == direct.read_bytes()


def test_a_profile_without_calls_is_refused(jitdump_corpus: Path, tmp_path: Path) -> None:
    dump = next(iter(sorted(jitdump_corpus.rglob("*.dump"))))
    with pytest.raises(ExportError, match="no calls"):
        perfuse.fuse(dump).export(tmp_path / "out.xray")


WRITE_OPTIONS: Any = {
    "mode": None,
    "version": None,
    "endian": None,
    "hz": None,
    "between_ns": None,
    "is_relative": False,
    "tids": None,
    "functions": None,
}


@pytest.mark.parametrize("name", ["fdr/threads4-v5", "fdr/typed-v5", "basic/basic-small-v3", "fdr/sqmt-small-v5"])
def test_tables_make_a_log_of_the_same_calls(xray_corpus: Path, tmp_path: Path, name: str) -> None:
    """Writes a log from the tables, as for a trace of any other format."""
    path = xray_corpus / f"{name}.xray"
    profile = perfuse.fuse(path)
    out = tmp_path / "out.xray"
    ((kind,),) = profile.sql("SELECT kind FROM clocks").fetchall()
    with out.open("wb") as file:
        facts, new_functions, new_threads = _core.write_xray(
            profile._fusion, file.fileno(), WRITE_OPTIONS, kind == "monotonic"
        )
    assert (new_functions, new_threads) == (0, 0)
    # Wall times have microseconds: a clock aligned with them is off by less.
    before, after = (_untimed(one) for one in (path, out))
    if {row[2] for row in before} == {0}:
        # In nanoseconds, as those of a clock, these are of a recorder that has no processors.
        before = Counter({(*row[:2], None, *row[3:]): count for row, count in before.items()})
    assert after == before
    query = "SELECT event_type, payload FROM instants ORDER BY thread_id, ts_ns"
    assert perfuse.fuse(out).sql(query).fetchall() == profile.sql(query).fetchall()
    ((span,),) = profile.sql("SELECT max(ts_ns) - min(ts_ns) FROM call_events").fetchall()
    ((again,),) = perfuse.fuse(out).sql("SELECT max(ts_ns) - min(ts_ns) FROM call_events").fetchall()
    assert abs(again - span) <= 1 + span * 1e-9
    assert facts[1] == sum(count for row, count in before.items() if row[3] != "argument")


def _untimed(path: Path) -> Counter[tuple[Any, ...]]:
    counted: Counter[tuple[Any, ...]] = Counter()
    for row, count in calls(path).items():
        counted[row[1:]] += count
    return counted


ZERO_BYTES = "llvm-xray refuses custom events of no bytes"


@pytest.mark.parametrize("folder", ["fdr", "fdr-old", "basic", "dso", "synthetic", "synthetic-be"])
def test_llvm_xray_accepts_every_log_as_version_5(
    xray_corpus: Path, llvm_xray: str, tmp_path: Path, folder: str
) -> None:
    out = tmp_path / "out.xray"
    for path in sorted((xray_corpus / folder).glob("*.xray")):
        xray_log.convert(path, output=out, mode="fdr", version=5, endian="little")
        answer = subprocess.run([llvm_xray, "fdr-dump", "--verify", out], capture_output=True, check=False)
        if path.stem == "zero-event-v5":
            assert b"Invalid size for custom event (size = 0)" in answer.stderr, ZERO_BYTES
        else:
            assert answer.returncode == 0, f"{path.name}: {answer.stderr.decode(errors='replace')}"


@pytest.mark.parametrize(
    "name", ["fdr/sqlite-small-v5", "fdr/lz4-small-v5", "fdr-old/small_nc-v3", "basic/basic-small-v3"]
)
@pytest.mark.parametrize("target", [("fdr", 3), ("fdr", 5), ("basic", 3)])
def test_llvm_xray_accounts_for_the_same_calls(
    xray_corpus: Path, llvm_xray: str, tmp_path: Path, name: str, target: tuple[Any, int]
) -> None:
    """Logs of one thread, which it does read, in another version: the same calls of the same length."""
    source, out = xray_corpus / f"{name}.xray", tmp_path / "out.xray"
    xray_log.convert(source, output=out, mode=target[0], version=target[1])
    assert _account(llvm_xray, out) == _account(llvm_xray, source)


def _account(llvm_xray: str, path: Path) -> list[dict[str, str]]:
    command = [llvm_xray, "account", "-d", "-f", "csv", path]
    text = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    rows = list(csv.DictReader(text.splitlines()))
    assert rows
    return sorted(rows, key=lambda row: int(row["funcid"]))


@pytest.mark.parametrize("name", ["tiny/v17-calls", "v17/callspec"])
def test_the_calls_of_another_recorder(xray_corpus: Path, llvm_xray: str, tmp_path: Path, name: str) -> None:
    """Ids of Mono's methods are addresses: they are renumbered, which is reported."""
    profile = perfuse.fuse(xray_corpus.parent / "mono" / f"{name}.mlpd")
    out = tmp_path / "out.xray"
    with pytest.warns(ExportWarning, match="functions with new numbers"):
        profile.export(out)
    kinds = "CASE kind::VARCHAR WHEN 'exception_exit' THEN 'exit' ELSE kind::VARCHAR END"
    tid = "coalesce(tid, 2147483647 - thread_id) AS tid"
    query = f"SELECT {tid}, {kinds}, count(*) FROM call_events JOIN threads USING (thread_id) GROUP BY ALL ORDER BY ALL"
    before = profile.sql(query).fetchall()
    assert before
    # Mono logs have no tids: each thread gets a made-up one.
    assert perfuse.fuse(out).sql(query).fetchall() == before
    subprocess.run([llvm_xray, "fdr-dump", "--verify", out], capture_output=True, check=True)


def test_the_command_line_reports_unsupported_items(tmp_path: Path) -> None:
    source, out = tmp_path / "in.xray", tmp_path / "out.xray"
    source.write_bytes(_log())
    options = ["-O", "mode=basic", "-O", "version=1"]
    command = [sys.executable, "-m", "perfuse", "convert", source, "-o", out, *options]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    messages = [line.removeprefix("perfuse: ") for line in done.stderr.splitlines()]
    assert messages == [
        "buffers, or records of Basic mode, of an unknown process: 4",
        "tail exits written as exits: 1",
        "arguments that were left out: 1",
        "custom and typed events that were left out: 2",
        f"wrote {out}, xray",
    ]


@pytest.mark.parametrize(
    "name", ["fdr/lz4-small-v5", "fdr/small-v5", "fdr/lua-small-v5", "fdr-old/small_nc-v3", "basic/basic-small-v3"]
)
def test_yaml_is_that_of_llvm_xray(xray_corpus: Path, llvm_xray: str, tmp_path: Path, name: str) -> None:
    """Equal line by line, except events: llvm-xray gives them the function of the record before, and raw bytes."""
    source, out = xray_corpus / f"{name}.xray", tmp_path / "out.yaml"
    xray_log.convert(source, output=out, yaml=True)
    command = [llvm_xray, "convert", "-f", "yaml", source]
    theirs = subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace").splitlines()
    ours = out.read_text(encoding="ascii").splitlines()
    head = 7
    assert ours[:head] == theirs[:head]
    assert len(ours) == len(theirs)
    # Records of one tick are not ordered.
    calls = [Counter(line for line in lines if "event" not in line) for lines in (ours, theirs)]
    assert calls[0] == calls[1]


@pytest.mark.parametrize("name", ["fdr/sqlite-small-v5", "fdr/small-v5", "fdr/typed-v5", "basic/basic-small-v3"])
def test_llvm_xray_reads_the_yaml(xray_corpus: Path, llvm_xray: str, tmp_path: Path, name: str) -> None:
    source, out, back = xray_corpus / f"{name}.xray", tmp_path / "out.yaml", tmp_path / "back.yaml"
    perfuse.fuse(source).export(out)
    subprocess.run([llvm_xray, "convert", "-f", "yaml", out, "-o", back], capture_output=True, check=True)
    kinds = [Counter(re.findall(r"kind: ([\w-]+), tsc: (\d+)", path.read_text("latin-1"))) for path in (out, back)]
    assert kinds[0] == kinds[1]
    assert kinds[0].total() > 100 or name.endswith("typed-v5")


def test_only_xray_logs_become_yaml(mono_corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="only XRay logs"):
        perfuse.fuse(mono_corpus / "tiny" / "v17-calls.mlpd").export(tmp_path / "out.yaml")
