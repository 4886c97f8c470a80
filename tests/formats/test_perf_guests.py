"""Records of virtual machines in perf.data: their pids and addresses are their own, whatever the host has."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from perf_crafting import Attribute, PerfFile, Record

QEMU = 300
PID = 4242
HOST_ID, GUEST_ID = 1, 2
KERNEL, GUEST_KERNEL, GUEST_USER = 1, 4, 5
ID_INDEX = 69
TEXT = 0xFFFFFFFF81000000
ADDRESS = 0x10010
MS = 1_000_000


def _kernel(attribute: Attribute, pid: int, path: str, misc: int) -> Record:
    body = struct.pack("<IIQQQ", pid, 0, TEXT, 0x1000000, TEXT) + crafting.text(path)
    return Record(crafting.MMAP, misc, body + attribute.sample_id(pid, pid))


def _id_index() -> Record:
    entries = [struct.pack("<QQQQ", number, 0, 0, 0) for number in (HOST_ID, GUEST_ID)]
    machines = [struct.pack("<QQ", 0, 0), struct.pack("<QQ", QEMU, 1)]
    return Record(ID_INDEX, 0, struct.pack("<Q", 2) + b"".join(entries + machines))


@pytest.fixture
def profile(tmp_path: Path) -> pf.Profile:
    """A process of the host and one of a guest have the same pid, addresses and kernel addresses, and other files."""
    head = crafting.IDENTIFIER | crafting.IP | crafting.TID | crafting.TIME | crafting.CPU | crafting.PERIOD
    attribute = Attribute.of((1, 0), head | crafting.CALLCHAIN, ids=[HOST_ID])
    guest = replace(attribute, ids=[GUEST_ID])

    def of_guest(record: Record, misc: int) -> Record:
        return replace(record, misc=misc)

    def taken(of: Attribute, time: int, ip: int, misc: int, chain: list[int]) -> Record:
        return crafting.sample(of, ip=ip, pid=PID, tid=PID, time=time * MS, chain=chain, misc=misc)

    records = [
        _id_index(),
        _kernel(attribute, 0xFFFFFFFF, "[kernel.kallsyms]_text", KERNEL),
        _kernel(guest, QEMU, f"[guest.kernel.kallsyms.{QEMU}]_text", GUEST_KERNEL),
        crafting.comm(attribute, PID, PID, "of-host"),
        of_guest(crafting.comm(guest, PID, PID, "of-guest"), GUEST_USER),
        crafting.mmap2(attribute, PID, "/opt/host-program", 0x10000, 0x1000),
        of_guest(crafting.mmap2(guest, PID, "/opt/guest-program", 0x10000, 0x1000), GUEST_USER),
        taken(attribute, 1, ADDRESS, 2, [crafting.CONTEXT_USER, ADDRESS]),
        taken(guest, 2, ADDRESS, GUEST_USER, []),
        taken(attribute, 3, TEXT + 0x10, 1, [crafting.CONTEXT_KERNEL, TEXT + 0x10]),
        taken(guest, 4, TEXT + 0x10, GUEST_KERNEL, []),
    ]
    both = replace(attribute, ids=[HOST_ID, GUEST_ID])
    features = {crafting.EVENT_DESC: crafting.event_desc([(both, "cpu-clock")])}
    return pf.fuse(PerfFile([both], records, features).write(tmp_path / "perf.data"))


def test_processes_of_guests_are_their_own(profile: pf.Profile) -> None:
    rows = profile.sql("SELECT pid, name FROM processes WHERE pid = 4242 ORDER BY name").fetchall()
    assert rows == [(PID, f"of-guest [guest {QEMU}]"), (PID, "of-host")]


def test_addresses_are_looked_up_in_their_machine(profile: pf.Profile) -> None:
    """What perf 7.2 shows: `perf script -F comm,time,ip,dso`."""
    rows = profile.sql("""SELECT s.ts_ns, p.name, frames.address, m.path FROM samples s
        JOIN threads USING (thread_id) JOIN processes p USING (process_id)
        JOIN stacks USING (stack_id) JOIN frames USING (frame_id) LEFT JOIN mappings m USING (mapping_id)
        ORDER BY 1""").fetchall()
    guest = f"of-guest [guest {QEMU}]"
    assert rows == [
        (1 * MS, "of-host", ADDRESS, "/opt/host-program"),
        (2 * MS, guest, ADDRESS, "/opt/guest-program"),
        (3 * MS, "of-host", TEXT + 0x10, "[kernel.kallsyms]_text"),
        (4 * MS, guest, TEXT + 0x10, f"[guest.kernel.kallsyms.{QEMU}]_text"),
    ]


def test_records_have_the_pids_that_were_recorded(profile: pf.Profile) -> None:
    found = {record.pid for record in profile.recordings[0].records(kinds=["PERF_RECORD_SAMPLE", "PERF_RECORD_COMM"])}
    assert found == {PID}
