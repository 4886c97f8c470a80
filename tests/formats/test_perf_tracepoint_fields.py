"""Raw data of tracepoints: table `tracepoint_fields`, and what `perf script` prints of them."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from needs import need
from perf_crafting import Attribute, PerfFile

FIELDS = crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD | crafting.RAW
TRACING_DATA = 1
KERNEL = 2**64 - 4096

DECLARED = (
    ("unsigned short common_type", 0, 2, 0),
    ("int common_pid", 4, 4, 1),
    ("char comm[16]", 8, 16, 0),
    ("int ret", 24, 4, 1),
    ("unsigned int flags", 28, 4, 0),
    ("const void * ptr", 32, 8, 0),
    ("u8 state", 40, 1, 0),
    ("s8 change", 41, 1, 1),
    ("unsigned short port", 42, 2, 0),
    ("__data_loc char[] path", 44, 4, 0),
    ("unsigned long args[2]", 48, 16, 0),
    ("u8 address[4]", 64, 4, 0),
    ("__rel_loc char[] note", 68, 4, 0),
    ("long size", 72, 8, 1),
)
"""Declarations with offset, size and sign, as the kernel prints them."""
PAGE = (
    b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
    b"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n"
)
"""Fields of a page of the trace buffer."""


def _tracing_data(system: str, name: str) -> bytes:
    lines = [f"\tfield:{of};\toffset:{at};\tsize:{size};\tsigned:{sign};\n" for of, at, size, sign in DECLARED]
    lines.insert(2, "\n")  # after the fields that all tracepoints have
    names = ("ret", "flags", "port", "size", "comm")
    shown = 'print fmt: "ret=%d flags=%u port=%u size=%ld comm=%s", ' + ", ".join(f"REC->{one}" for one in names)
    text = f"name: {name}\nID: 900\nformat:\n{''.join(lines)}\n{shown}\n".encode()
    out = b"\x17\x08\x44tracing0.6\0" + struct.pack("<BBI", 0, 8, 4096)
    for header in (b"header_page\0", b"header_event\0"):
        out += header + struct.pack("<Q", len(PAGE)) + PAGE
    out += struct.pack("<II", 0, 1) + system.encode() + b"\0"
    out += struct.pack("<IQ", 1, len(text)) + text
    return out + struct.pack("<IIQ", 0, 0, 0)


def _raw() -> bytes:
    raw = struct.pack("<HHi16siIQBbH", 900, 0, 7, b"work\0rest", -2, 2**32 - 2, KERNEL, 200, -3, 65535)
    raw += struct.pack("<I", 6 << 16 | 80) + struct.pack("<QQ", 5, KERNEL) + bytes((192, 168, 0, 1))
    return raw + struct.pack("<I", 5 << 16 | 14) + struct.pack("<q", -(2**40)) + b"/tmp/\0" + b"note\0"


EXPECTED = [
    ("comm", None, "work"),
    ("ret", -2, None),
    ("flags", 2**32 - 2, None),
    ("ptr", None, "0xfffffffffffff000"),
    ("state", 200, None),
    ("change", -3, None),
    ("port", 65535, None),
    ("path", None, "/tmp/"),
    ("args", None, "0x5 0xfffffffffffff000"),
    ("address", None, "c0a80001"),
    ("note", None, "note"),
    ("size", -(2**40), None),
]


@pytest.fixture(params=["net", "sched"])
def recorded(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Two samples of a tracepoint, of which the second lacks the end of its data, and one of another event."""
    trace = Attribute.of((2, 900), FIELDS | crafting.ID, ids=[21]).with_size(128)
    clock = Attribute.of((1, 0), FIELDS | crafting.ID, ids=[22]).with_size(128)
    records = [crafting.comm(trace, 7, 7, "work")]
    for time, raw in ((1000, _raw()), (2000, _raw()[:28])):
        records.append(crafting.sample(trace, pid=7, tid=7, time=time, raw=raw))
    records.append(crafting.sample(clock, pid=7, tid=7, time=3000))
    name = f"{request.param}:sched_like"
    features = {
        TRACING_DATA: _tracing_data(request.param, "sched_like"),
        crafting.EVENT_DESC: crafting.event_desc([(trace, name), (clock, "cpu-clock")]),
    }
    return PerfFile([trace, clock], records, features).write(tmp_path / "perf.data")


def test_fields_have_the_values_in_the_data(recorded: Path) -> None:
    with pf.fuse(recorded) as profile:
        rows = profile.sql("SELECT field, number, text FROM tracepoint_fields WHERE ts_ns = 1000").fetchall()
        cut = profile.sql("SELECT field FROM tracepoint_fields WHERE ts_ns = 2000").fetchall()
        joined = profile.sql(
            "SELECT DISTINCT s.event = t.event AND s.ts_ns = t.ts_ns FROM tracepoint_fields t "
            "JOIN samples s USING (sample_id)"
        ).fetchall()
    assert rows == EXPECTED
    assert cut == [("comm",), ("ret",)]
    assert joined == [(True,)]


def test_perf_prints_the_same(recorded: Path) -> None:
    need("perf")
    script = ["perf", "script", "-i", recorded, "-F", "event,trace"]
    printed = subprocess.run(script, check=True, capture_output=True, text=True).stdout
    found = re.search(r"ret=(\S+) flags=(\S+) port=(\S+) size=(\S+) comm=(\S+)", printed)
    assert found
    values = {name: text if number is None else str(number) for name, number, text in EXPECTED}
    assert found.groups() == tuple(values[name] for name in ("ret", "flags", "port", "size", "comm"))


def test_a_saved_profile_has_them(recorded: Path) -> None:
    saved = recorded.with_suffix(".perfuse")
    with pf.fuse(recorded) as profile:
        profile.save(saved)
    with pf.fuse(saved) as profile:
        rows = profile.sql("SELECT field, number, text FROM tracepoint_fields WHERE ts_ns = 1000").fetchall()
    assert rows == EXPECTED
