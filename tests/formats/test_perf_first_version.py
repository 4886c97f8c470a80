"""Files of perf before Linux 3.4: another magic, the first sizes of `perf_event_attr`, a table of event names."""

from __future__ import annotations

import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import perf_chains
import perf_crafting as crafting
import perfuse as pf
from needs import need
from perf_crafting import Attribute, PerfFile, Record

FIELDS = crafting.IP | crafting.TID | crafting.TIME | crafting.CALLCHAIN | crafting.ID | crafting.CPU | crafting.PERIOD
MAGIC = b"PERFFILE"
SWITCH_ID = 51
BUILD_ID = 2


def _first_version(event: tuple[int, int], names: dict[int, str], build_ids: bytes | None = None) -> bytes:
    """A file as `perf record -g` of Linux 2.6.39 wrote it: attributes of 72 bytes, no features but build ids."""
    attribute = Attribute.of(event, FIELDS, ids=[7])
    kernel = Record(
        crafting.MMAP,
        1,
        struct.pack("<IIQQQ", 2**32 - 1, 0, 0xFFFFFFFF81000000, 2**24, 0) + b"[kernel.kallsyms]_text\0",
    )
    program = Record(crafting.MMAP, 2, struct.pack("<IIQQQ", 5, 5, 0x400000, 0x1000, 0) + b"/bin/absent\0\0\0\0\0")
    maps = [
        replace(one, body=one.body + bytes(-len(one.body) % 8) + attribute.sample_id()) for one in (kernel, program)
    ]
    chains = [[0xFFFFFFFF81000100, 0x400200 + 16 * n] for n in range(20)]
    samples = [
        crafting.sample(
            attribute,
            ip=chain[0],
            pid=5,
            tid=5 + n % 2,
            time=10**9 + 1000 * n,
            chain=[2**64 - 128, chain[0], 2**64 - 512, chain[1]],
        )
        for n, chain in enumerate(chains)
    ]
    features = {} if build_ids is None else {BUILD_ID: build_ids}
    data = bytearray(PerfFile([attribute.with_size(72)], [*maps, *samples], features).encoded())
    table = b"".join(struct.pack("<Q64s", number, name.encode()) for number, name in names.items())
    struct.pack_into("<8s", data, 0, MAGIC)
    struct.pack_into("<QQ", data, 56, len(data), len(table))
    return bytes(data) + table


def test_chains_are_those_of_perf(tmp_path: Path) -> None:
    need("perf")
    path = tmp_path / "perf.data"
    path.write_bytes(_first_version((0, 0), {}))
    command = ["perf", "script", "-f", "-i", path, "-F", "comm,time,ip,sym,dso", "--no-inline", "--ns"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    expected = perf_chains.read(printed)
    with pf.fuse(path) as profile:
        assert perf_chains.of(profile) == expected
        assert profile.sql("SELECT version FROM sources").fetchall() == [("1",)]
        assert profile.sql("SELECT DISTINCT event FROM samples").fetchall() == [("cycles",)]
    assert len(expected) == 20
    assert [one.code for one in pf.open(path).check() if one.severity != "info"] == []


def test_tracepoints_have_the_names_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(_first_version((2, SWITCH_ID), {50: "sched:sched_wakeup", SWITCH_ID: "sched:sched_switch"}))
    with pf.fuse(path) as profile:
        assert profile.sql("SELECT DISTINCT event FROM samples").fetchall() == [("sched:sched_switch",)]


@pytest.mark.parametrize("pid", [b"", struct.pack("<i", -1)], ids=["2.6.33", "2.6.35"])
def test_build_ids_are_those_of_perf(tmp_path: Path, pid: bytes) -> None:
    """Entries of Linux 2.6.33 have no process; perf recognizes them by the name of the first, the kernel."""
    need("perf")
    table = b""
    for number, (mode, name) in enumerate([(1, b"[kernel.kallsyms]"), (2, b"/bin/absent")], 1):
        body = pid + bytes([number] * 20).ljust(24, b"\0") + name.ljust((len(name) | 63) + 1, b"\0")
        table += struct.pack("<IHH", 0, mode, 8 + len(body)) + body
    path = tmp_path / "perf.data"
    path.write_bytes(_first_version((0, 0), {}, table))
    command = ["perf", "buildid-list", "-f", "-i", path]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    expected = {name: key for key, name in (line.split() for line in printed.splitlines())}
    assert expected == {"[kernel.kallsyms]": "01" * 20, "/bin/absent": "02" * 20}
    with pf.fuse(path) as profile:
        rows = profile.sql("SELECT build_id, path FROM mappings ORDER BY start_address").fetchall()
    assert rows == [("02" * 20, "/bin/absent"), ("01" * 20, "[kernel.kallsyms]_text")]


def test_a_repaired_file_has_the_table(tmp_path: Path) -> None:
    """The last record states to be longer than it is; those before it are written again."""
    first, second = tmp_path / "first.data", tmp_path / "second.data"
    data = bytearray(_first_version((2, SWITCH_ID), {SWITCH_ID: "sched:sched_switch"}))
    (start, size) = struct.unpack_from("<QQ", data, 40)
    last = start + size - 96
    assert struct.unpack_from("<IHH", data, last)[::2] == (9, 96)
    struct.pack_into("<H", data, last + 6, 104)
    first.write_bytes(data)
    subprocess.run(["perfuse", "repair", first, "-o", second], check=False, capture_output=True)
    with pf.fuse(second) as profile:
        assert profile.sql("SELECT event, count(*) FROM samples GROUP BY 1").fetchall() == [("sched:sched_switch", 19)]


def test_a_repaired_file_is_of_the_second_version(tmp_path: Path) -> None:
    need("perf", "perfuse")
    first, second = tmp_path / "first.data", tmp_path / "second.data"
    first.write_bytes(_first_version((0, 0), {})[:-20])
    subprocess.run(["perfuse", "repair", first, "-o", second], check=False, capture_output=True)
    command = ["perf", "script", "-f", "-i", second, "-F", "comm,time,ip", "--ns"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert second.read_bytes().startswith(b"PERFILE2")
    assert len(perf_chains.read(printed)) == 19


@pytest.mark.parametrize("big", [False, True])
def test_byte_order_follows_from_the_size_of_the_header(tmp_path: Path, big: bool) -> None:
    path = tmp_path / "perf.data"
    order = ">" if big else "<"
    path.write_bytes(MAGIC + struct.pack(f"{order}12Q", 104, 88, 104, 0, 104, 0, *[0] * 6))
    with pf.open(path) as recording:
        assert recording.summary.endian == ("big" if big else "little")
