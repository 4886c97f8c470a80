"""Table `records` has every record of every file: those that perf and walks over the files find."""

import re
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import perfuse as pf
from perfuse.table import Columns

PERF_RECORD = re.compile(r"0x(?P<offset>[0-9a-f]+) \[0x(?P<size>[0-9a-f]+)\]: (?P<name>PERF_RECORD_\w+)")
METADATA_BYTES, FUNCTION_BYTES, HEADER_BYTES = 16, 8, 32
XRAY_METADATA = (
    "NewBuffer",
    "EndOfBuffer",
    "NewCPUId",
    "TSCWrap",
    "WallTimeMarker",
    "CustomEventMarker",
    "CallArgument",
    "BufferExtents",
    "TypedEventMarker",
    "Pid",
)
XRAY_FUNCTIONS = ("Entry", "Exit", "Tail_Exit", "Entry_Args")


def rows(profile: pf.Profile | pf.Recording) -> list[tuple[int, int, int, str]]:
    """Source, offset, size and kind of every row."""
    return list(Columns(profile.tables["records"]).tuples("source_id", "record_offset", "size_bytes", "kind"))


def perf_records(path: Path) -> list[tuple[int, int, str]]:
    """Offset, size and name of the records that `perf script -D` lists."""
    done = subprocess.run(["perf", "script", "-D", "-i", path], capture_output=True, check=False)
    text = done.stdout.decode("utf-8", "replace")
    return sorted((int(one["offset"], 16), int(one["size"], 16), one["name"]) for one in PERF_RECORD.finditer(text))


def fdr_records(data: bytes) -> Iterator[tuple[int, int, str]]:
    """A walk over the records of an FDR log of version 5 (LLVM's XRayFDRLogFormat): a set lowest bit is metadata."""
    at = HEADER_BYTES
    while at + FUNCTION_BYTES <= len(data):  # a process that was killed may leave a part of a record
        first = data[at]
        if not first & 1:
            yield at, FUNCTION_BYTES, XRAY_FUNCTIONS[first >> 1 & 7]
            at += FUNCTION_BYTES
            continue
        kind = XRAY_METADATA[first >> 1]
        size = METADATA_BYTES
        if kind in ("CustomEventMarker", "TypedEventMarker"):
            size += struct.unpack_from("<i", data, at + 1)[0]
        yield at, size, kind
        at += size


@pytest.mark.truth(
    recording=["perf_data", "perf_node", "perf_llvm"],
    path=["query", "api:Profile.tables", "api:Profile.sql"],
    source="perf script -D; sizes of JITDUMP records by a struct walk",
)
@pytest.mark.parametrize("name", ["wasmtime50", "node20", "llvm14-mcjit"])
def test_the_records_of_perf_data_and_its_dump(jitdump_corpus: Path, name: str) -> None:
    perf_data, dump = (jitdump_corpus / "produced" / f"{name}.{ending}" for ending in ("perf.data", "dump"))
    expected = perf_records(perf_data)
    assert len(expected) > 100
    alone = rows(pf.open(perf_data))
    assert [row[1:] for row in alone] == expected
    both = pf.fuse(perf_data, dump)
    by_source = Counter(row[0] for row in rows(both))
    data = dump.read_bytes()
    at, num_dumped = struct.unpack_from("<I", data, 8)[0], 0
    while at < len(data):
        at, num_dumped = at + struct.unpack_from("<I", data, at + 4)[0], num_dumped + 1
    assert by_source == {0: len(expected), 1: num_dumped}
    [(total,)] = both.sql("SELECT count(*) FROM records").fetchall()
    assert total == len(expected) + num_dumped


@pytest.mark.truth(
    recording="xray_fdr", path=["query", "api:Profile.tables", "api:Profile.sql"], source="a walk over the records"
)
def test_the_records_of_xray_logs(xray_corpus: Path) -> None:
    for name in ("threads4-v5", "typed-v5", "wrap-v5", "zero-event-v5", "lua-small-v5"):
        path = xray_corpus / "fdr" / f"{name}.xray"
        expected = list(fdr_records(path.read_bytes()))
        assert [row[1:] for row in rows(pf.open(path))] == expected
        assert sum(pf.open(path).summary.records.values()) == len(expected)
        kinds = pf.fuse(path).sql("SELECT kind, count(*) FROM records GROUP BY 1").fetchall()
        assert dict(kinds) == Counter(kind for *_, kind in expected)


def test_the_records_of_several_logs(xray_corpus: Path, mono_corpus: Path) -> None:
    """As many rows as each file has alone, with the key of its file."""
    paths = [xray_corpus / "fdr" / "threads4-v5.xray", mono_corpus / "tiny" / "v17-calls.mlpd"]
    alone = [rows(pf.open(path)) for path in paths]
    assert [row[1:] for row in rows(pf.fuse(*paths))] == [row[1:] for one in alone for row in one]
    assert [row[0] for row in rows(pf.fuse(*paths))] == [0] * len(alone[0]) + [1] * len(alone[1])
