"""Mono logs converted and written from Python: read back by perfuse, and by mprof-report."""

import gzip
import io
import math
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import perfuse as pf
from perfuse import _core
from perfuse.errors import ExportError, ExportWarning, UsageError
from perfuse.formats.mono.unsupported import UNSUPPORTED
from perfuse.records import Record

VERSIONS = range(1, 18)


def logs(corpus: Path, *folders: str) -> list[Path]:
    """Every log of some folders."""
    found = sorted(path for folder in folders for path in (corpus / folder).glob("*.mlpd*"))
    assert found
    return found


def whole(path: Path) -> bytes:
    """A log, unpacked."""
    log = pf.open(path)
    return log.read_bytes(0, log.size_bytes)


@pytest.mark.parametrize("folder", ["tiny", "v17", "versions", "crafted"])
def test_a_log_comes_out_byte_for_byte(mono_corpus: Path, tmp_path: Path, folder: str) -> None:
    """All real logs and all hand-made ones, without exception."""
    out = tmp_path / "out.mlpd"
    for path in logs(mono_corpus, folder):
        written = pf.mono.convert(path, output=out)
        assert out.read_bytes() == whole(path), path.name
        assert written.notes() == [], path.name


def test_unreadable_logs_are_not_written(mono_corpus: Path, tmp_path: Path) -> None:
    for path in logs(mono_corpus, "malformed"):
        try:
            log = pf.open(path)
        except pf.UnreadableInput:
            continue
        out = tmp_path / path.name
        written = pf.mono.convert(log, output=out)
        again = pf.open(out)
        assert sum(again.summary.records.values()) == written.num_events == sum(log.summary.records.values())
        assert not {d.code for d in again.check()} & {"ML010", "ML011", "ML012", "ML013", "ML014"}, path.name


def events_by_thread(records: Iterable[Record]) -> list[tuple[Any, ...]]:
    """Fields of events, those of each thread in file order."""
    events = [(record.fields["thread_id"], record.name, record.timestamp, record.fields) for record in records]
    return sorted(events, key=lambda event: event[0])


NAMES = [f"v{version:02}" for version in (*range(1, 7), 8, 9, *range(11, 13), *range(14, 18))]


@pytest.mark.parametrize("name", [f"tiny/{one}-bt" for one in NAMES] + ["crafted/crafted-v17", "crafted/crafted-v11"])
def test_records_make_a_log_of_the_same_events(mono_corpus: Path, name: str) -> None:
    log = pf.open(mono_corpus / f"{name}.mlpd")
    out = io.BytesIO()
    with pf.mono.Writer(out, header=log.header) as writer:
        for record in log.records():
            writer.write(record)
    again = pf.open(out.getvalue())
    assert writer.num_events == sum(log.summary.records.values())
    assert events_by_thread(again.records()) == events_by_thread(log.records())
    assert {**again.header, "buffers": 0} == {**log.header, "buffers": 0}


COUNTED = {
    "TYPE_ALLOC_NO_BT": "ALLOC",
    "TYPE_ALLOC_BT": "ALLOC_BT",
    "TYPE_GC_EVENT": "GC_EVENT",
    "TYPE_GC_MOVE": "GC_MOVE",
    "TYPE_GC_HANDLE_CREATED": "GC_HANDLE_CREATED",
    "TYPE_END_LOAD": "METADATA_END_LOAD",
    "TYPE_END_UNLOAD": "METADATA_END_UNLOAD",
    "TYPE_ENTER": "METHOD_ENTER",
    "TYPE_LEAVE": "METHOD_LEAVE",
    "TYPE_JIT": "METHOD_JIT",
    "TYPE_CLAUSE": "CLAUSE",
    "TYPE_HEAP_START": "HEAP_START",
    "TYPE_HEAP_OBJECT": "HEAP_OBJECT",
    "TYPE_HEAP_ROOT": "HEAP_ROOT",
    "TYPE_SAMPLE_HIT": "SAMPLE_HIT",
    "TYPE_SAMPLE_COUNTERS": "COUNTERS",
    "TYPE_SYNC_POINT": "SYNC_POINT",
}
"""Names of counters of mprof-report, with the specification's names."""


def reported(program: str, path: Path, reports: str) -> str:
    """The output of mprof-report for a log."""
    done = subprocess.run([program, f"--reports={reports}", path], capture_output=True, check=True, timeout=600)
    assert not done.stderr, done.stderr
    return done.stdout.decode(errors="replace")


@pytest.mark.parametrize(
    "name", ["tiny/v17-bt", "tiny/v17-calls", "tiny/v17-heapshot", "tiny/v13-calls", "tiny/v09-bt", "tiny/v01-heapshot"]
)
def test_mprof_report_reads_every_data_version(mono_corpus: Path, mprof_report: str, tmp_path: Path, name: str) -> None:
    source, out = mono_corpus / f"{name}.mlpd", tmp_path / "out.mlpd"
    before = reported(mprof_report, source, "alloc,call,exception,jit")
    for version in VERSIONS:
        pf.mono.convert(source, output=out, version=version)
        records = pf.open(out).summary.records
        counted = re.findall(r"(TYPE_\w+)\s+count\s+(\d+)", reported(mprof_report, out, "stats"))
        theirs = {COUNTED[kind]: int(count) for kind, count in counted if kind in COUNTED}
        assert theirs == {kind: records[kind] for kind in theirs}, f"as {version}"
        # Names of types depend on the order of vtables (mprof-report needs them first), the sums do not.
        after = reported(mprof_report, out, "alloc,call,exception,jit")
        for what in (r"Total memory allocated: .*", r"Total calls: .*", r"Throws: .*", r"Compiled methods: .*"):
            if name != "tiny/v01-heapshot":  # its sizes are not rounded
                assert re.findall(what, after) == re.findall(what, before), f"as {version}"


def test_mprof_report_names_more_types_in_an_older_data_version(
    mono_corpus: Path, mprof_report: str, tmp_path: Path
) -> None:
    """mprof-report does not name objects that precede the description of their vtable; it finds classes."""
    source, out = mono_corpus / "v17" / "alloc.mlpd", tmp_path / "out.mlpd"
    pf.mono.convert(source, output=out, version=14)
    assert "unresolved" in reported(mprof_report, source, "alloc")
    unresolved = re.findall(r"(\d+) +\d+ unresolved", reported(mprof_report, out, "alloc"))
    before = re.findall(r"(\d+) +\d+ unresolved", reported(mprof_report, source, "alloc"))
    assert sum(map(int, unresolved)) < sum(map(int, before)) / 100


@pytest.mark.parametrize("version", [1, 5, 12, 13, 14, 15, 17])
def test_tables_of_a_converted_log(mono_corpus: Path, tmp_path: Path, version: int) -> None:
    source, out = mono_corpus / "tiny" / "v17-bt.mlpd", tmp_path / "out.mlpd"
    pf.mono.convert(source, output=out, version=version)
    query = """
        SELECT t.name, count(*), sum(size_bytes), count(stack_id), min(ts_ns) - (SELECT min(ts_ns) FROM allocations)
        FROM allocations LEFT JOIN types t USING (type_id) GROUP BY ALL ORDER BY ALL
    """
    assert pf.fuse(out).sql(query).fetchall() == pf.fuse(source).sql(query).fetchall()


@pytest.mark.parametrize("version", [4, 10, 12, 14])
def test_samples_of_a_converted_log(mono_corpus: Path, tmp_path: Path, version: int) -> None:
    """Samples have time, innermost function and thread; before version 11 the buffer contains the thread."""
    source, out = mono_corpus / "v17" / "sample.mlpd", tmp_path / "out.mlpd"
    pf.mono.convert(source, output=out, version=version)
    query = """
        SELECT ts_ns, t.native_id, f.name FROM samples JOIN threads t USING (thread_id) JOIN stacks USING (stack_id)
        JOIN frames USING (frame_id) LEFT JOIN functions f USING (function_id) ORDER BY ALL
    """
    assert pf.fuse(out).sql(query).fetchall() == pf.fuse(source).sql(query).fetchall() != []


def test_parts(mono_corpus: Path, tmp_path: Path) -> None:
    source, out = mono_corpus / "v17" / "calls.mlpd", tmp_path / "part.mlpd"
    log = pf.open(source)
    pf.mono.convert(log, output=out, kinds=["METHOD_?*E*", "GC_*"])
    kinds = pf.open(out).summary.records
    assert kinds["METHOD_ENTER"] == log.summary.records["METHOD_ENTER"]
    assert "ALLOC" not in kinds
    assert "METADATA_END_LOAD" in kinds
    pf.mono.convert(log, output=out, threads=["Main"])
    main = Counter(record.fields["thread_id"] for record in pf.open(out).records(kinds=["METHOD_ENTER"]))
    assert len(main) == 1
    pf.mono.convert(log, output=out, threads=list(main))
    assert pf.open(out).summary.records["METHOD_ENTER"] == main.total()
    pf.mono.convert(log, output=out, between=(0, math.inf))
    assert pf.open(out).summary.records == log.summary.records
    for wrong in ({"version": 300}, {"threads": [-1]}, {"between": (2, 1)}):
        with pytest.raises(UsageError, match=r"does not exist| is from |no time between"):
            pf.mono.convert(log, output=out, **wrong)
    pf.mono.convert(log, output=out, between=(0.01, 0.02))
    calls = pf.open(out).summary.records
    assert 0 < calls["METHOD_ENTER"] < log.summary.records["METHOD_ENTER"]
    assert not [d for d in pf.open(out).check() if d.code in ("ML050", "ML051")], "calls are whole"


def test_parts_become_the_whole_again(mono_corpus: Path, tmp_path: Path) -> None:
    source = mono_corpus / "tiny" / "v17-calls.mlpd"
    threads = sorted({record.fields["thread_id"] for record in pf.open(source).records()})
    parts = []
    for number, thread in enumerate(threads):
        parts.append(tmp_path / f"{number}.mlpd")
        pf.mono.convert(source, output=parts[-1], threads=[int(thread)])
    pf.mono.convert(*parts, output=tmp_path / "all.mlpd")
    again, log = pf.open(tmp_path / "all.mlpd").summary, pf.open(source).summary
    # Every part has every sync point.
    assert {**again.records, "SYNC_POINT": 0} == {**log.records, "SYNC_POINT": 0}
    assert again.span == log.span


def test_refusals(mono_corpus: Path, tmp_path: Path) -> None:
    one, other = mono_corpus / "v17" / "calls.mlpd", mono_corpus / "v17" / "alloc.mlpd"
    out = tmp_path / "out.mlpd"
    with pytest.raises(UsageError, match="no log"):
        pf.mono.convert(output=out)
    with pytest.raises(UsageError, match="data version 18 does not exist"):
        pf.mono.convert(one, output=out, version=18)
    with pytest.raises(UsageError, match="no event 'CALL'"):
        pf.mono.convert(one, output=out, kinds=["CALL"])
    with pytest.raises(ExportError, match="not of one run: process"):
        pf.mono.convert(one, other, output=out)
    with pytest.raises(ExportError, match="cannot write"):
        pf.mono.convert(one, output=tmp_path / "none" / "out.mlpd")
    assert list(tmp_path.iterdir()) == []
    written = pf.mono.convert(one, other, output=out, any_run=True)
    assert pf.open(out).summary.records["METHOD_ENTER"] > 0
    assert set(written.unsupported) <= set(UNSUPPORTED)


def test_a_writer_refuses_unrepresentable_values(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="data version 0 does not exist"):
        pf.mono.Writer(io.BytesIO(), version=0)
    with pytest.raises(UsageError, match="4 or 8"):
        pf.mono.Writer(io.BytesIO(), pointer_bytes=5)
    path = tmp_path / "a.mlpd"
    with pf.mono.Writer(path, version=12, pid=7) as writer:
        writer.event("METHOD_ENTER", 1, 1_000, method=0x10)
        for name, fields in [
            ("SYNC_POINT", {"type": 0}),
            ("METHOD_ENTER", {}),
            ("METHOD_ENTER", {"method": "ten"}),
            ("METHOD_ENTER", {"method": 2**70}),
            ("METHOD_ENTER", {"method": 1, "more": 2}),
        ]:
            with pytest.raises(ValueError, match=name):
                writer.event(name, 1, 1_000, **fields)
    with pytest.raises(UsageError, match="closed"):
        writer.event("METHOD_LEAVE", 1, 1_100, method=0x10)
    log = pf.open(path)
    assert (log.summary.records, log.header["pid"]) == ({"METHOD_ENTER": 1}, 7)


def test_every_unsupported_item_has_a_text() -> None:
    assert set(UNSUPPORTED) == set(_core.mono_unsupported_items())


def test_the_command_line(mono_corpus: Path, tmp_path: Path) -> None:
    source, out = mono_corpus / "tiny" / "v17-bt.mlpd", tmp_path / "out.mlpd.gz"
    options = ["-O", "version=12", "-O", "kinds=ALLOC*,THROW*"]
    command = [sys.executable, "-m", "perfuse", "convert", source, "-o", out, *options]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    messages = [line.removeprefix("perfuse: ") for line in done.stderr.splitlines()]
    assert "header fields that the data version does not have: 4" in messages
    assert messages[-1] == f"wrote {out}, mono"
    log = pf.open(gzip.decompress(out.read_bytes()))
    assert log.version == "12"
    assert log.summary.records["ALLOC_BT"] == 339


def test_a_profile_is_written_as_it_is_selected(mono_corpus: Path, tmp_path: Path) -> None:
    source, out, direct = mono_corpus / "v17" / "calls.mlpd", tmp_path / "out.mlpd", tmp_path / "direct.mlpd"
    pf.fuse(source).between(0.01, 0.02).thread("main-thread").export(out)
    pf.mono.convert(source, output=direct, between=(0.01, 0.02), threads=["main-thread"])
    assert out.read_bytes() == direct.read_bytes()
    with pytest.warns(ExportWarning) as warnings:
        pf.fuse(source).export(out, version=3)
    assert any("SYNC_POINT events" in str(one.message) for one in warnings)


def test_other_formats_are_refused(jitdump_corpus: Path, tmp_path: Path) -> None:
    dump = next(iter(sorted(jitdump_corpus.rglob("*.dump"))))
    with pytest.raises(UsageError, match="is not a Mono log"):
        pf.mono.convert(dump, output=tmp_path / "out.mlpd")
