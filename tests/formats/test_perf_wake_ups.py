"""Wake-ups and context switches of perf.data that were recorded as tracepoints of the scheduler."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from perf_crafting import Attribute, PerfFile, Record

MS = 1_000_000
SERVER, CLIENT = 500, 600
SWITCH_ID, WAKING_ID, WAKEUP_ID = 310, 311, 312
SLEEPS, DEAD, IDLE, RUNNABLE = 1, 0x10, 0x80, 0x100
KERNEL_THREAD = 700
"""No record but the tracepoints states it."""
TRACING_DATA = 1
KERNEL = 0xFFFFFFFF81000100


def _format(name: str, number: int, fields: list[tuple[str, int, int]]) -> bytes:
    """A format as the kernel prints it: declarations, offsets, sizes."""
    common = [("unsigned short common_type", 0, 2), ("int common_pid", 4, 4)]
    lines = [f"\tfield:{text};\toffset:{offset};\tsize:{size};\tsigned:1;\n" for text, offset, size in common + fields]
    return f'name: {name}\nID: {number}\nformat:\n{"".join(lines)}\nprint fmt: ""\n'.encode()


def _tracing_data() -> bytes:
    """HEADER_TRACING_DATA in the layout of trace-cmd: one system that is not the scheduler's, and the scheduler's."""
    wake = [("char comm[16]", 8, 16), ("pid_t pid", 24, 4), ("int prio", 28, 4), ("int target_cpu", 32, 4)]
    switch = [
        ("char prev_comm[16]", 8, 16),
        ("pid_t prev_pid", 24, 4),
        ("int prev_prio", 28, 4),
        ("long prev_state", 32, 8),
        ("char next_comm[16]", 40, 16),
        ("pid_t next_pid", 56, 4),
        ("int next_prio", 60, 4),
    ]
    systems = {
        "other": [_format("sched_switch", 1, switch)],
        "sched": [
            _format("sched_switch", SWITCH_ID, switch),
            _format("sched_waking", WAKING_ID, wake),
            _format("sched_wakeup", WAKEUP_ID, wake),
        ],
    }
    out = b"\x17\x08\x44tracing0.6\0" + struct.pack("<BBI", 0, 8, 4096)
    for header in (b"header_page\0", b"header_event\0"):
        out += header + struct.pack("<Q", 5) + b"bytes"
    out += struct.pack("<I", 0) + struct.pack("<I", len(systems))
    for name, formats in systems.items():
        out += name.encode() + b"\0" + struct.pack("<I", len(formats))
        out += b"".join(struct.pack("<Q", len(one)) + one for one in formats)
    # No symbols, no formats of the kernel's printk, no command names.
    return out + struct.pack("<IIQ", 0, 0, 0)


def _wake(number: int, waker: int, woken: int, cpu: int) -> bytes:
    return struct.pack("<HBBi16siii", number, 0, 0, waker, b"name", woken, 120, cpu)


def _switch(previous: int, state: int, following: int) -> bytes:
    return struct.pack("<HBBi16siiq16sii", SWITCH_ID, 0, 0, previous, b"a", previous, 120, state, b"b", following, 120)


@pytest.fixture
def recorded(tmp_path: Path) -> pf.Profile:
    """The client sleeps at 10 ms, is woken by the server at 25 ms, and runs again at 27 ms; the server is preempted."""
    head = crafting.IDENTIFIER | crafting.IP | crafting.TID | crafting.TIME | crafting.CPU | crafting.PERIOD
    kind = head | crafting.CALLCHAIN | crafting.RAW
    numbers = (SWITCH_ID, WAKING_ID, WAKEUP_ID)
    switch, waking, wakeup = (Attribute.of((2, number), kind, ids=[number]) for number in numbers)

    def taken(attribute: Attribute, time: int, tid: int, raw: bytes, ip: int) -> Record:
        chain = [crafting.CONTEXT_KERNEL, ip]
        return crafting.sample(attribute, ip=ip, pid=tid, tid=tid, time=time * MS, cpu=1, chain=chain, raw=raw, misc=1)

    records = [
        crafting.comm(switch, CLIENT, CLIENT, "client"),
        crafting.comm(switch, SERVER, SERVER, "server"),
        taken(switch, 10, CLIENT, _switch(CLIENT, SLEEPS, SERVER), KERNEL),
        taken(waking, 25, SERVER, _wake(WAKING_ID, SERVER, CLIENT, 3), KERNEL + 0x40),
        taken(wakeup, 26, SERVER, _wake(WAKEUP_ID, SERVER, CLIENT, 3), KERNEL + 0x40),
        taken(switch, 27, SERVER, _switch(SERVER, RUNNABLE, CLIENT), KERNEL),
        taken(switch, 30, CLIENT, _switch(CLIENT, SLEEPS, SERVER), KERNEL),
        taken(waking, 31, SERVER, _wake(WAKING_ID, SERVER, KERNEL_THREAD, 0), KERNEL + 0x40),
        taken(switch, 32, KERNEL_THREAD, _switch(KERNEL_THREAD, IDLE, 0), KERNEL),
        taken(switch, 33, SERVER, _switch(SERVER, DEAD, 0), KERNEL),
    ]
    names = [(switch, "sched:sched_switch"), (waking, "sched:sched_waking"), (wakeup, "sched:sched_wakeup")]
    features = {TRACING_DATA: _tracing_data(), crafting.EVENT_DESC: crafting.event_desc(names)}
    return pf.fuse(PerfFile([switch, waking, wakeup], records, features).write(tmp_path / "perf.data"))


def test_wake_ups_are_those_that_were_recorded(recorded: pf.Profile) -> None:
    rows = recorded.sql("""SELECT ts_ns, waker.tid, woken.tid, w.event::VARCHAR, target_cpu, sample_id
        FROM wake_ups w JOIN threads waker ON waker.thread_id = w.waker_thread_id
        JOIN threads woken ON woken.thread_id = w.thread_id ORDER BY ts_ns""").fetchall()
    assert rows == [
        (25 * MS, SERVER, CLIENT, "sched_waking", 3, 1),
        (26 * MS, SERVER, CLIENT, "sched_wakeup", 3, 2),
        (31 * MS, SERVER, KERNEL_THREAD, "sched_waking", 0, 5),
    ]


def test_states_follow_from_the_tracepoint_of_switches(recorded: pf.Profile) -> None:
    rows = recorded.sql("""SELECT tid, state::VARCHAR, s.start_ns, s.end_ns FROM sched_states s
        JOIN threads USING (thread_id) ORDER BY tid, s.start_ns""").fetchall()
    assert rows == [
        (SERVER, "running", 10 * MS, 27 * MS),
        (SERVER, "runnable", 27 * MS, 30 * MS),
        (SERVER, "running", 30 * MS, 33 * MS),
        (CLIENT, "sleeping", 10 * MS, 27 * MS),
        (CLIENT, "running", 27 * MS, 30 * MS),
        (CLIENT, "sleeping", 30 * MS, None),
        (KERNEL_THREAD, "sleeping", 32 * MS, None),
    ]


def test_switches_of_one_task_do_not_state_when_it_returned(tmp_path: Path) -> None:
    """`perf record -e sched:sched_switch PROGRAM` records only switches at which the program leaves the processor."""
    kind = crafting.IDENTIFIER | crafting.IP | crafting.TID | crafting.TIME | crafting.CPU | crafting.RAW
    switch = Attribute.of((2, SWITCH_ID), kind, ids=[SWITCH_ID])
    records = [crafting.comm(switch, CLIENT, CLIENT, "client")]
    records += [
        crafting.sample(switch, ip=KERNEL, pid=CLIENT, tid=CLIENT, time=time * MS, raw=_switch(CLIENT, SLEEPS, SERVER))
        for time in (10, 20, 30)
    ]
    features = {
        TRACING_DATA: _tracing_data(),
        crafting.EVENT_DESC: crafting.event_desc([(switch, "sched:sched_switch")]),
    }
    profile = pf.fuse(PerfFile([switch], records, features).write(tmp_path / "perf.data"))
    states = profile.sql(
        "SELECT state::VARCHAR, start_ns, end_ns FROM sched_states ORDER BY start_ns, state"
    ).fetchall()
    times = (10 * MS, 20 * MS, 30 * MS)
    assert sorted(states) == sorted((state, time, None) for time in times for state in ("running", "sleeping"))
    assert profile.sql("SELECT count(*) FROM samples WHERE event::VARCHAR = 'off-cpu'").fetchall() == [(0,)]
    assert [one.message.split()[0] for one in profile.recordings[0].check() if one.code == "PD030"] == ["4"]


def test_waits_have_the_stack_of_their_switch(recorded: pf.Profile) -> None:
    rows = recorded.sql("""SELECT tid, s.weight, frames.address FROM samples s JOIN threads USING (thread_id)
        JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
        WHERE s.event::VARCHAR = 'off-cpu' ORDER BY s.weight""").fetchall()
    assert rows == [(SERVER, 3 * MS, KERNEL), (CLIENT, 17 * MS, KERNEL)]


def test_report_states_who_woke_whom(recorded: pf.Profile) -> None:
    from perfuse.analysis.scheduling import WakeUps, wake_ups

    # The client had waited from 10 to 25 ms.
    assert wake_ups(recorded) == [
        WakeUps(f"server {SERVER}", f"client {CLIENT}", 1, 15 * MS),
        WakeUps(f"server {SERVER}", f"thread {KERNEL_THREAD}", 1, None),
    ]
    assert wake_ups(recorded.between(0.0, 0.001)) == []
