"""Records of old kernels and perfs: they have layouts of their own, and are not reported as deviations."""

import struct
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from perf_crafting import Attribute, PerfFile, Record

FIELDS = crafting.IDENTIFIER | crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD
PROGRAM = "/usr/bin/true"
EVENT = Attribute.of((1, 0), FIELDS, ids=[1])


def codes(path: Path) -> set[str]:
    """Codes of the deviations of a file, without notes."""
    with pf.open(path) as recording:
        return {one.code for one in recording.check() if one.severity != "info"}


@pytest.mark.parametrize("name", [PROGRAM, "[vdso]", "//anon", "/a"])
def test_mappings_without_protection(tmp_path: Path, name: str) -> None:
    """Linux 3.12 to 3.15 and that of RHEL 7.0 wrote the name directly after the inode's generation."""
    body = struct.pack("<IIQQQ", 7, 7, 0x400000, 0x6000, 0) + struct.pack("<IIQQ", 0xFD, 1, 134986833, 489497562)
    old = Record(crafting.MMAP2, 2, body + crafting.text(name) + EVENT.sample_id(7, 7))
    records = [
        old,
        crafting.mmap2(EVENT, 7, name, 0x800000, 0x1000, prot=4),
        crafting.sample(EVENT, ip=0x401000, pid=7, tid=7, time=9),
    ]
    path = PerfFile([EVENT], records).write(tmp_path / "perf.data")
    with pf.fuse(path) as profile:
        rows = profile.sql("SELECT path, executable, start_address FROM mappings ORDER BY start_address").fetchall()
    assert rows == [(name, True, 0x400000), (name, True, 0x800000)]
    with pf.open(path) as recording:
        shown = [dict(record.fields) for record in recording.records() if record.name == "PERF_RECORD_MMAP2"]
    assert [fields["filename"] for fields in shown] == [name, name]
    assert ["prot" in fields for fields in shown] == [False, True]
    assert codes(path) == set()


def stream(attribute: Attribute, *records: Record, names: bytes = b"") -> bytes:
    attr = attribute.attr + struct.pack("<Q", attribute.ids[0])
    out = b"PERFILE2" + struct.pack("<Q", 16) + struct.pack("<IHH", 64, 0, 8 + len(attr)) + attr + names
    return out + b"".join(record.encoded() for record in records)


@pytest.mark.parametrize("size", [64, 72, 80, 96])
def test_attributes_of_old_perfs_in_a_stream(tmp_path: Path, size: int) -> None:
    """Those of Linux 3.8 have 80 bytes; the ids follow."""
    attribute = EVENT.with_size(size)
    path = tmp_path / "perf.data"
    path.write_bytes(
        stream(attribute, crafting.comm(attribute, 7, 7, "true"), crafting.sample(attribute, pid=7, tid=7, time=9))
    )
    assert codes(path) == set()
    with pf.open(path) as recording:
        shown = next(dict(record.fields) for record in recording.records() if record.name == "PERF_RECORD_HEADER_ATTR")
    assert (shown["size"], [entry["id"] for entry in shown["ids"]]) == (size, [1])


@pytest.mark.parametrize("name", ["branches", "cache-references", "cycles"])
def test_names_of_events_that_fill_their_field(tmp_path: Path, name: str) -> None:
    """perf 2.6.34 to 3.10 padded the name to eight bytes, and wrote no NUL where its length is a multiple of these."""
    padded = name.encode() + bytes(-len(name) % 8)
    entry = struct.pack("<Q", 0) + padded
    names = struct.pack("<IHH", 65, 0, 8 + len(entry)) + entry
    path = tmp_path / "perf.data"
    path.write_bytes(stream(EVENT, crafting.sample(EVENT, pid=7, tid=7, time=9), names=names))
    with pf.open(path) as recording:
        shown = [dict(record.fields) for record in recording.records() if record.name.endswith("EVENT_TYPE")]
    assert [fields["name"] for fields in shown] == [name]
    assert codes(path) == set()


def test_a_message_of_perf_in_its_stream_is_no_lost_record(tmp_path: Path) -> None:
    """`perf record -o - 2>&1` writes what it prints at the end after the records."""
    path = tmp_path / "perf.data"
    message = b"[ perf record: Woken up 1 times to write data ]\n[ perf record: Captured and wrote 0.030 MB - ]\n"
    whole = stream(EVENT, crafting.sample(EVENT, pid=7, tid=7, time=9))
    path.write_bytes(whole + message)
    with pf.open(path) as recording:
        (found,) = [one for one in recording.check() if one.severity != "info"]
    assert (found.code, found.severity, found.offset) == ("PD022", "warning", len(whole))
    assert str(len(message)) in found.message
    with pf.fuse(path) as profile:
        assert profile.sql("SELECT count(*) FROM samples").fetchall() == [(1,)]
