"""Recordings of big-endian machines, such as s390x, whose flags of events are laid from the top: compared with perf."""

from __future__ import annotations

import re
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from needs import need
from perf_crafting import Attribute, PerfFile, Record, sample

PID, CODE, SIZE, SECOND = 7, 0x7000_0000, 0x1000, 1_000_000_000
# perf reverses the two bits of the precision of another byte order: of 3 it has the same value.
FREQUENCY, COMM_EXEC, PRECISE = 1 << 10, 1 << 24, 3 << 15
SAMPLED = crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD | crafting.CALLCHAIN
EVENT = Attribute.of((1, 0), SAMPLED, flags=FREQUENCY | COMM_EXEC | PRECISE).with_size(128)
WORDS, LONGS = 4, 8
HEADER_ATTR = 64


def _swapped(data: bytes, size: int) -> bytes:
    return b"".join(data[at : at + size][::-1] for at in range(0, len(data), size))


def _big_flags(flags: int) -> bytes:
    """The flags as compilers for big-endian machines lay them: the first in the highest bit. `precise_ip` has two."""
    out = 0
    for bit in range(64):
        place = {15: 16, 16: 15}.get(bit, bit)
        out |= (flags >> bit & 1) << 63 - place
    return struct.pack(">Q", out)


def _big_attribute(attribute: Attribute) -> bytes:
    attr = attribute.attr
    swapped = _swapped(attr[:8], WORDS) + _swapped(attr[8:40], LONGS) + _big_flags(attribute.flags)
    swapped += _swapped(attr[48:56], WORDS) + _swapped(attr[56:88], LONGS) + _swapped(attr[88:96], WORDS)
    return swapped + bytes(len(attr) - 96)


def _big_record(record: Record) -> bytes:
    """A mapping, a name or a sample, with the fields that `EVENT` has."""
    body, trailer = record.body, b""
    if record.type != crafting.SAMPLE:
        body, trailer = body[:-16], _swapped(body[-16:-8], WORDS) + _swapped(body[-8:], LONGS)
    if record.type == crafting.MMAP2:
        identity = _swapped(body[32:40], WORDS) + _swapped(body[40:56], LONGS)
        body = _swapped(body[:8], WORDS) + _swapped(body[8:32], LONGS) + identity
        body += _swapped(record.body[56:64], WORDS) + record.body[64:-16]
    elif record.type == crafting.COMM:
        body = _swapped(body[:8], WORDS) + body[8:]
    else:
        body = _swapped(body[:8], LONGS) + _swapped(body[8:16], WORDS) + _swapped(body[16:], LONGS)
    return struct.pack(">IHH", record.type, record.misc, 8 + len(body + trailer)) + body + trailer


def _big_file(file: PerfFile) -> bytes:
    attributes = b"".join(_big_attribute(one) + struct.pack(">QQ", 104, 0) for one in file.attributes)
    records = b"".join(map(_big_record, file.records))
    start = 104 + len(attributes)
    sizes = (104, len(attributes) // len(file.attributes), 104, len(attributes), start, len(records), 0, 0)
    return struct.pack(">8s8Q4Q", b"2ELIFREP", *sizes, 0, 0, 0, 0) + attributes + records


def _big_stream() -> bytes:
    """What `perf record -o -` writes of an event: a record with its attributes."""
    body = _big_attribute(EVENT) + struct.pack(">Q", 1)
    return struct.pack(">8sQ", b"2ELIFREP", 16) + struct.pack(">IHH", HEADER_ATTR, 0, 8 + len(body)) + body


def _at(record: Record, seconds: int) -> Record:
    """A record with another time, which its last field is."""
    return replace(record, body=record.body[:-8] + struct.pack("<Q", seconds * SECOND))


RECORDS = [
    _at(crafting.comm(EVENT, PID, PID, "before"), 1),
    _at(crafting.mmap2(EVENT, PID, "/usr/lib/first.so", CODE, SIZE), 1),
    sample(EVENT, ip=CODE + 8, pid=PID, tid=PID, time=2 * SECOND, chain=[crafting.CONTEXT_USER, CODE + 8]),
    _at(crafting.mmap2(EVENT, PID, "/usr/lib/second.so", CODE, SIZE), 3),
    _at(crafting.comm(EVENT, PID, PID, "after"), 3),
    sample(EVENT, ip=CODE + 8, pid=PID, tid=PID, time=4 * SECOND, chain=[crafting.CONTEXT_USER, CODE + 8]),
]


@pytest.fixture(params=["little", "big"])
def recorded(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    file = PerfFile([EVENT], RECORDS)
    path = tmp_path / "perf.data"
    path.write_bytes(_big_file(file) if request.param == "big" else file.encoded())
    return path


def _perf(*words: object) -> str:
    need("perf")
    return subprocess.run(["perf", *map(str, words)], capture_output=True, text=True, check=True).stdout


def test_times_of_mappings_and_names_are_read(recorded: Path) -> None:
    printed = _perf("script", "-i", recorded, "-F", "comm,time,ip,dso")
    perf = re.findall(r"(\w+)\s+(\d)\.000000:\s+[0-9a-f]+\s+\((\S+)\)", printed)
    assert perf == [("before", "2", "/usr/lib/first.so"), ("after", "4", "/usr/lib/second.so")]
    rows = """SELECT ts_ns // 1000000000, m.path FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
        JOIN mappings m USING (mapping_id) ORDER BY 1"""
    with pf.fuse(recorded) as profile:
        names = "SELECT name FROM thread_names ORDER BY start_ns"
        assert [name for (name,) in profile.sql(names).fetchall()] == [comm for comm, *_ in perf]
        assert profile.sql(rows).fetchall() == [(int(time), path) for _, time, path in perf]


def test_the_clock_and_precision_of_events_are_read(recorded: Path) -> None:
    printed = _perf("evlist", "-v", "-i", recorded)
    assert "precise_ip: 3" in printed
    assert "use_clockid: 1" in printed
    assert "sample_id_all: 1" in printed
    with pf.fuse(recorded) as profile:
        [(event,)] = profile.sql("SELECT DISTINCT event FROM samples").fetchall()
        assert event == "cpu-clock:ppp"
        assert profile.sql("SELECT kind FROM clocks").fetchall() == [("monotonic",)]


def test_flags_in_a_record_of_a_stream_are_those_that_perf_prints(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(_big_stream())
    printed = _perf("evlist", "-v", "-i", path)
    assert "precise_ip: 3" in printed
    (record,) = pf.open(path).records()
    assert record.name == "PERF_RECORD_HEADER_ATTR"
    names = {"freq": 10, "comm_exec": 24, "use_clockid": 25, "sample_id_all": 18, "disabled": 0, "inherit": 1}
    of_perf = {name: f" {name}: 1" in printed.replace("\n", " ") for name in names}
    assert {name: bool(record.fields["flags"] >> bit & 1) for name, bit in names.items()} == of_perf
    assert record.fields["flags"] >> 15 & 3 == 3
