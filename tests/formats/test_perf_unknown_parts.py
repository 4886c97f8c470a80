"""Records and features of perf.data that perfuse names, and those that it does not know."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from perf_crafting import PerfFile, Record

RECORDED = Path(__file__).parents[1] / "truth" / "recorded" / "perf_machine"
KERNEL_RECORD, PERF_RECORD = 60, 99
BPF_METADATA, SCHEDSTAT_CPU, SCHEDSTAT_DOMAIN, EVENT_UPDATE, ID_INDEX = 84, 85, 86, 78, 69


@pytest.fixture
def original() -> PerfFile:
    return PerfFile.read(RECORDED / "chains.perf.data")


def _header(path: Path) -> dict[str, object]:
    return dict(pf.open(path).header)


def test_features_are_listed_with_their_content(tmp_path: Path, original: PerfFile) -> None:
    original.features |= {
        32: struct.pack("<II", 17, 2),
        33: struct.pack("<II", 62, 0),
        34: struct.pack("<I", 64),
        17: struct.pack("<I", 1) + struct.pack("<I", 8) + b"{a,b}\0\0\0" + struct.pack("<II", 0, 2),
    }
    header = _header(original.write(tmp_path / "perf.data"))
    assert header["HEADER_CPU_DOMAIN_INFO"] == "schedstat version 17, at most 2 scheduling domains a processor"
    assert header["HEADER_E_MACHINE"] == "62 (x86_64), flags 0x0"
    assert header["HEADER_CLN_SIZE"] == "cache lines of 64 bytes"
    assert header["HEADER_GROUP_DESC"] == "{a,b}: event 0 leads 2"
    # What the machine says of itself, as perf stored it.
    assert header["HEADER_OSRELEASE"] == original.features[4][4:].rstrip(b"\0").decode()
    available, online = struct.unpack_from("<II", original.features[7])
    assert header["HEADER_NRCPUS"] == f"{online} of {available} processors online"
    assert header["HEADER_TOTAL_MEM"] == f"{int.from_bytes(original.features[10][:8], 'little')} kB"
    assert str(header["features"]).split()[-3:] == ["CPU_DOMAIN_INFO", "E_MACHINE", "CLN_SIZE"]


def test_machine_is_that_of_the_newer_feature_where_the_older_is_missing(tmp_path: Path, original: PerfFile) -> None:
    del original.features[6]
    original.features[33] = struct.pack("<II", 183, 0)
    assert pf.open(original.write(tmp_path / "perf.data")).summary.arch == "aarch64"


def test_damaged_features_are_reported_as_such(tmp_path: Path, original: PerfFile) -> None:
    original.features[14] = struct.pack("<I", 1000)
    assert "cannot be decoded" in str(_header(original.write(tmp_path / "perf.data"))["HEADER_NUMA_TOPOLOGY"])


def test_newer_records_have_fields(tmp_path: Path, original: PerfFile) -> None:
    name = b"prog".ljust(512, b"\0")
    entries = b"".join(word.ljust(size, b"\0") for word, size in ((b"key", 64), (b"value", 256)))
    original.records += [
        Record(BPF_METADATA, 0, name + struct.pack("<Q", 1) + entries),
        Record(SCHEDSTAT_CPU, 0, struct.pack("<QIHH6I3Q", 5, 1, 17, 0, *range(10, 16), 20, 21, 22)),
        Record(SCHEDSTAT_DOMAIN, 0, struct.pack("<QIHH24I12I", 5, 1, 15, 0, *range(24), *range(100, 112))),
        Record(EVENT_UPDATE, 0, struct.pack("<QQd", 1, 7, 0.5)),
        Record(ID_INDEX, 0, struct.pack("<Q4Q2Q", 1, original.attributes[0].ids[0], 0, 1, 2, 300, 4)),
    ]
    path = original.write(tmp_path / "perf.data")
    recording = pf.open(path)
    [metadata] = recording.records(kinds=["PERF_RECORD_BPF_METADATA"])
    assert metadata.prog_name == "prog"
    assert [(entry["key"], entry["value"]) for entry in metadata.entries] == [("key", "value")]
    [cpu] = recording.records(kinds=["PERF_RECORD_SCHEDSTAT_CPU"])
    assert (cpu.fields["timestamp"], cpu.cpu, cpu.version, cpu.yld_count, cpu.ttwu_local, cpu.pcount) == (
        5,
        1,
        17,
        10,
        15,
        22,
    )
    [domain] = recording.records(kinds=["PERF_RECORD_SCHEDSTAT_DOMAIN"])
    assert [block["processors"] for block in domain.balancing] == ["idle", "busy", "newidle"]
    assert [block["count"] for block in domain.balancing] == [0, 8, 16]
    assert (domain.alb_count, domain.ttwu_move_balance) == (100, 111)
    updates = recording.records(kinds=["PERF_RECORD_EVENT_UPDATE"])
    assert "0.5" in [update.scale for update in updates if update.type_ == 1]
    *_, index = recording.records(kinds=["PERF_RECORD_ID_INDEX"])
    assert (index.entries[0]["machine_pid"], index.entries[0]["vcpu"]) == (300, 4)
    assert [one.code for one in recording.check()] == []


def test_unknown_parts_travel_whole(tmp_path: Path, original: PerfFile) -> None:
    """A record of a later kernel, one of a later perf, and a later feature are in the repaired file, byte for byte."""
    attribute = original.attributes[0]
    fields, *_ = crafting.split_sample(
        next(record.body for record in original.records if record.type == crafting.SAMPLE), attribute.sample_type
    )
    body = b"later kernel data".ljust(24, b"\1") + attribute.sample_id(1, 1, fields[crafting.TIME] + 1)
    unknown = [Record(KERNEL_RECORD, 0x4000, body), Record(PERF_RECORD, 7, b"later perf data!")]
    original.records += unknown
    original.features[77] = b"later feature"
    path = original.write(tmp_path / "perf.data")
    assert _header(path)["HEADER_UNKNOWN"].startswith("feature 77: 13 bytes at offset ")  # type: ignore[attr-defined]
    assert [one.code for one in pf.open(path).check()] == ["PD006", "PD006"]
    repaired = tmp_path / "repaired.perf.data"
    # Without damage the file is copied; else it is written anew in the order of time, which one has not.
    for damage, expected in ((b"", unknown), (b"more bytes", unknown[::-1])):
        path.write_bytes(path.read_bytes() + damage)
        repaired.unlink(missing_ok=True)
        assert bool(pf.repair(path, repaired).changes) == bool(damage)
        written = PerfFile.read(repaired)
        assert [record for record in written.records if record.type in (KERNEL_RECORD, PERF_RECORD)] == expected
        assert written.features[77] == b"later feature"


def test_title_is_the_first_program_where_the_command_line_is_not_stored(tmp_path: Path, original: PerfFile) -> None:
    """perf 7 stores its own path only."""
    path = b"/usr/bin/perf".ljust(64, b"\0")
    original.features[11] = struct.pack("<II", 1, len(path)) + path
    assert pf.fuse(original.write(tmp_path / "perf.data")).title == "burn"
