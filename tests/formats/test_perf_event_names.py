"""Names of events in files without HEADER_EVENT_DESC, and of threads that no record names, as perf has them."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from pathlib import Path

import perf_crafting as crafting
import perfuse as pf
from needs import need
from perf_crafting import Attribute, PerfFile, Record

FIELDS = crafting.IDENTIFIER | crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD
EXCLUDE_USER, EXCLUDE_KERNEL, EXCLUDE_HV, PRECISE_IP, EXCLUDE_HOST, EXCLUDE_GUEST = (
    1 << bit for bit in (4, 5, 6, 15, 19, 20)
)
HARDWARE, SOFTWARE, TRACEPOINT, CACHE, RAW_EVENT, BREAKPOINT = range(6)
EVENTS = [
    (HARDWARE, 0, 0),
    (HARDWARE, 0, EXCLUDE_KERNEL | EXCLUDE_HV),
    (HARDWARE, 0, EXCLUDE_USER),
    (HARDWARE, 1, 2 * PRECISE_IP),
    (HARDWARE, 4, EXCLUDE_KERNEL | EXCLUDE_HV | 3 * PRECISE_IP),
    (HARDWARE, 9, EXCLUDE_HOST),
    (SOFTWARE, 0, EXCLUDE_KERNEL),
    (SOFTWARE, 2, 0),
    (CACHE, 0x10000, EXCLUDE_KERNEL | EXCLUDE_HV),
    (CACHE, 0x00103, 0),
    (CACHE, 0x10202, 0),
    (CACHE, 0x00005, 0),
    (RAW_EVENT, 0x1C2, 0),
    (RAW_EVENT, 0x1C2, EXCLUDE_KERNEL | EXCLUDE_HV),
]
"""Type, configuration and flags; `EXCLUDE_GUEST` is added where perf 6.1 sets it, which has a modifier without it."""
_LINE = re.compile(r"^\s*(\d+)\.(\d+):\s+(\S.*?):\s*$")


def test_names_are_those_of_perf(tmp_path: Path) -> None:
    need("perf")
    of = [
        Attribute.of((kind, config), FIELDS, ids=[n + 1], flags=flags or EXCLUDE_GUEST)
        for n, (kind, config, flags) in enumerate(EVENTS)
    ]
    attributes = [one.with_size(128) for one in of]
    records = [crafting.sample(one, pid=1, tid=1, time=10**9 + n, ip=64) for n, one in enumerate(attributes)]
    path = PerfFile(attributes, records).write(tmp_path / "perf.data")
    command = ["perf", "script", "-f", "-i", path, "-F", "time,event", "--ns"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    expected = {int(found[1] + found[2]): found[3] for line in lines if (found := _LINE.match(line))}
    assert len(expected) == len(EVENTS)
    with pf.fuse(path) as profile:
        assert dict(profile.sql("SELECT ts_ns, event FROM samples").fetchall()) == expected


def test_breakpoints_have_their_address_and_accesses(tmp_path: Path) -> None:
    attribute = Attribute.of((BREAKPOINT, 0), FIELDS, ids=[1])
    attr = bytearray(attribute.attr)
    struct.pack_into("<IQ", attr, 52, 3, 0x4040A0)
    attribute.attr = bytes(attr)
    path = PerfFile([attribute], [crafting.sample(attribute, pid=1, tid=1, time=9)]).write(tmp_path / "perf.data")
    with pf.fuse(path) as profile:
        assert profile.sql("SELECT event FROM samples").fetchall() == [("mem:0x4040a0:rw",)]


def test_a_stream_names_tracepoints_by_their_formats(tmp_path: Path) -> None:
    """`perf record -o -` before Linux 4.16 has no names but in the formats."""
    attribute = Attribute.of((TRACEPOINT, 1329), FIELDS | crafting.RAW, ids=[1])
    formats = b"name: main\nID: 1329\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    tracing = b"\x17\x08\x44tracing0.6\0" + struct.pack("<BBI", 0, 8, 4096)
    tracing += b"header_page\0" + bytes(8) + b"header_event\0" + bytes(8) + struct.pack("<II", 0, 1)
    tracing += b"probe_program\0" + struct.pack("<IQ", 1, len(formats)) + formats + struct.pack("<IIQ", 0, 0, 0)
    tracing += bytes(-len(tracing) % 8)
    ids = struct.pack("<Q", 1)
    stream = b"PERFILE2" + struct.pack("<Q", 16)
    stream += struct.pack("<IHH", 64, 0, 8 + len(attribute.attr) + 8) + attribute.attr + ids
    stream += struct.pack("<IHHI", 66, 0, 12, len(tracing)) + tracing
    stream += crafting.sample(attribute, pid=1, tid=1, time=9, raw=bytes(12)).encoded()
    path = tmp_path / "perf.data"
    path.write_bytes(stream)
    with pf.fuse(path) as profile:
        assert profile.sql("SELECT event FROM samples").fetchall() == [("probe_program:main",)]


def test_the_thread_of_idle_processors_has_the_name_that_perf_gives_it(tmp_path: Path) -> None:
    need("perf")
    attribute = Attribute.of((HARDWARE, 0), FIELDS, ids=[1]).with_size(128)
    path = PerfFile([attribute], [crafting.sample(attribute, time=9, ip=64)]).write(tmp_path / "perf.data")
    command = ["perf", "script", "-f", "-i", path, "-F", "comm"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    with pf.fuse(path) as profile:
        names = profile.sql("SELECT name FROM threads WHERE tid = 0 UNION ALL SELECT name FROM processes").fetchall()
    assert names == [(printed.strip(),)] * 2


def test_a_thread_that_a_processor_switches_to_is_named(tmp_path: Path) -> None:
    attribute = Attribute.of((HARDWARE, 0), FIELDS, ids=[1])
    switch = Record(crafting.SWITCH_CPU_WIDE, 1 << 13, struct.pack("<II", 0, 0) + attribute.sample_id(4, 4, 10))
    path = PerfFile([attribute], [crafting.sample(attribute, pid=4, tid=4, time=9), switch]).write(
        tmp_path / "perf.data"
    )
    with pf.fuse(path) as profile:
        assert profile.sql("SELECT name FROM threads WHERE tid = 0").fetchall() == [("swapper",)]


def test_simpleperf_notes_names(tmp_path: Path) -> None:
    """Feature 129 has names and values, of which one is a line of name, type and configuration for each event."""
    attributes = [Attribute.of(event, FIELDS, ids=[n]) for n, event in enumerate([(HARDWARE, 0), (TRACEPOINT, 91)], 1)]
    records = [crafting.sample(one, pid=1, tid=1, time=n) for n, one in enumerate(attributes, 1)]
    facts = b"trace_offcpu\0true\0event_type_info\0cpu-cycles:u,0,0\nsched:sched_switch,2,91\nwrong,x,91\0"
    path = PerfFile(attributes, records, {129: facts}).write(tmp_path / "perf.data")
    with pf.fuse(path) as profile:
        rows = profile.sql("SELECT event FROM samples ORDER BY ts_ns").fetchall()
    assert rows == [("cpu-cycles:u",), ("sched:sched_switch",)]


def test_names_of_an_old_stream_are_in_the_file_written_of_it(tmp_path: Path) -> None:
    """perf 2.6.34 to 3.10 wrote a record for each name to a pipe, and a table of the same entries to a file."""
    attribute = Attribute.of((TRACEPOINT, 319), FIELDS, ids=[1]).with_size(72)
    entry = struct.pack("<Q64s", 319, b"sched:sched_switch")
    stream = b"PERFILE2" + struct.pack("<Q", 16)
    stream += struct.pack("<IHH", 64, 0, 8 + len(attribute.attr) + 8) + attribute.attr + struct.pack("<Q", 1)
    stream += struct.pack("<IHH", 65, 0, 8 + len(entry)) + entry
    # The last record is cut.
    stream += crafting.sample(attribute, pid=1, tid=1, time=9).encoded() + struct.pack("<IHH", 9, 2, 64)
    path = tmp_path / "stream.data"
    path.write_bytes(stream)
    out = tmp_path / "repaired.data"
    command = [sys.executable, "-m", "perfuse", "repair", path, "-o", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    written = out.read_bytes()
    offset, size = struct.unpack_from("<QQ", written, 56)
    assert written[offset : offset + size] == entry
    with pf.fuse(out) as profile:
        assert profile.sql("SELECT ts_ns, event FROM samples").fetchall() == [(9, "sched:sched_switch")]
