"""Time off the processor in perf.data: measured by BPF, and between context switches."""

from __future__ import annotations

import struct
from collections import defaultdict
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from perf_crafting import Attribute, PerfFile, Record

RECORDED = Path(__file__).parents[1] / "truth" / "recorded" / "perf_machine"
PID = 4242
USER = [0x10018, 0x10110, 0x10220]
MS = 1_000_000


@pytest.fixture
def measured(tmp_path: Path) -> pf.Profile:
    """Two samples of a clock, one direct sample of 700 ms off the processor, and sums of 5, 10 and 15 ms at the end."""
    head = crafting.IDENTIFIER | crafting.IP | crafting.TID | crafting.TIME | crafting.CPU | crafting.PERIOD
    clock = Attribute.of((1, 0), head | crafting.CALLCHAIN, ids=[1])
    off_cpu = Attribute.of((1, 10), head | crafting.RAW, ids=[2])
    records = [crafting.comm(clock, PID, PID, "crafted"), crafting.mmap2(clock, PID, "//anon", 0x10000, 0x1000)]
    records += [
        crafting.sample(clock, ip=USER[0], pid=PID, tid=PID, time=time, chain=[crafting.CONTEXT_USER, *USER])
        for time in (1_000 * MS, 2_000 * MS)
    ]
    records.append(crafting.off_cpu_sample(off_cpu, 1_900 * MS, PID, PID + 1, 700 * MS, USER))
    records += [
        crafting.off_cpu_sample(off_cpu, crafting.OFF_CPU_SUMS + n, PID, PID + n, ms * MS, USER[n:])
        for n, ms in enumerate((5, 10, 15))
    ]
    names = {crafting.EVENT_DESC: crafting.event_desc([(clock, "cpu-clock"), (off_cpu, "offcpu-time")])}
    return pf.fuse(PerfFile([clock, off_cpu], records, names).write(tmp_path / "perf.data"))


def test_sums_have_their_time_and_stack_and_not_a_point_in_time(measured: pf.Profile) -> None:
    """perf 7.2 prints the same periods, tasks and addresses; its time of a sum is 2^64."""
    rows = measured.sql("""SELECT period, tid, list_filter(addresses, lambda a: a < 18446744073709547521)
        FROM callchains JOIN threads USING (thread_id)
        WHERE event::VARCHAR = 'offcpu-time' ORDER BY period""").fetchall()
    assert rows == [
        (5 * MS, PID, USER),
        (10 * MS, PID + 1, USER[1:]),
        (15 * MS, PID + 2, USER[2:]),
        (700 * MS, PID + 1, USER),
    ]
    assert measured.span_ns == (1_000 * MS, 2_000 * MS)
    assert measured.recordings[0].summary.span == (1_000 * MS, 2_000 * MS)
    units = measured.sql("SELECT DISTINCT weight_unit::VARCHAR FROM samples WHERE event::VARCHAR = 'offcpu-time'")
    assert units.fetchall() == [("ns",)]


def test_samples_of_a_clock_come_first(measured: pf.Profile) -> None:
    """Sums are no samples: they are not counted as such, and reports begin with what was sampled."""
    from perfuse.analysis.facts import facts_of
    from perfuse.analysis.sampled import events

    assert [one.name for one in events(measured)] == ["cpu-clock", "offcpu-time"]
    assert facts_of(measured)["samples.count"]() == 2
    assert measured.flame(event="offcpu-time").event.weight == 730 * MS


SWITCHES = RECORDED / "switches.perf.data"
States = dict[int, list[tuple[int, int | None, str]]]


@pytest.fixture(scope="module")
def file() -> PerfFile:
    return PerfFile.read(SWITCHES)


@pytest.fixture(scope="module")
def switched() -> pf.Profile:
    return pf.fuse(SWITCHES)


def _ends(file: PerfFile) -> dict[int, int]:
    """Times at which threads ended."""
    # pid, parent, tid, its parent, a time; pid, tid, time
    ends = (struct.unpack_from("<IIIIQIIQ", record.body) for record in file.records if record.type == crafting.EXIT)
    return {tid: time for _, _, tid, _, _, _, _, time in ends}


def _switches(file: PerfFile) -> dict[int, list[tuple[int, int]]]:
    """Times of context switches of each thread, with `misc`."""
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for record in file.records:
        if record.type == crafting.SWITCH:
            # pid, tid, time
            tid, time = (int.from_bytes(record.body[at : at + size], "little") for at, size in ((4, 4), (8, 8)))
            found[tid].append((time, record.misc))
    return {tid: sorted(switches) for tid, switches in found.items()}


def _states(file: PerfFile) -> States:
    states: States = {}
    ended = _ends(file)
    for tid, switches in _switches(file).items():
        # A thread that runs does so until it ends.
        ends = [time for time, _ in switches[1:]] + [None if switches[-1][1] & 0x2000 else ended.get(tid)]
        kinds = [
            "running" if not misc & 0x2000 else "runnable" if misc & 0x4000 else "sleeping" for _, misc in switches
        ]
        states[tid] = [(time, end, kind) for (time, _), end, kind in zip(switches, ends, kinds, strict=True)]
    return states


def test_states_are_those_between_switches(file: PerfFile, switched: pf.Profile) -> None:
    rows = switched.sql("""SELECT tid, s.start_ns, s.end_ns, state::VARCHAR FROM sched_states s
        JOIN threads USING (thread_id) ORDER BY tid, s.start_ns""").fetchall()
    found: States = defaultdict(list)
    for tid, start, end, state in rows:
        found[tid].append((start, end, state))
    assert found == _states(file)
    assert len(found) == 2


def test_report_sums_states(file: PerfFile, switched: pf.Profile) -> None:
    from perfuse.analysis.scheduling import thread_times

    times = {int(one.thread.rsplit(" ", 1)[-1]): one for one in thread_times(switched)}
    for tid, states in _states(file).items():
        closed = [(end - start, kind) for start, end, kind in states if end is not None]
        waits = [ns for ns, kind in closed if kind == "sleeping"]
        assert times[tid].sleeping_ns == sum(waits)
        assert times[tid].num_sleeps == len(waits)
        assert times[tid].longest_sleep_ns == max(waits)
        assert times[tid].running_ns == sum(ns for ns, kind in closed if kind == "running")
        assert times[tid].runnable_ns == sum(ns for ns, kind in closed if kind == "runnable")
        # The program sleeps 8 times 5 ms in its main thread and 10 times 2 ms in the other one.
        assert times[tid].sleeping_ns >= (40 if waits and max(waits) > 5 * MS else 20) * MS


def test_waits_have_the_stack_of_their_switch(file: PerfFile, switched: pf.Profile) -> None:
    """With `-e context-switches -c 1` each switch has a sample, whose stack is that of the wait."""
    off = [(end - start, kind) for states in _states(file).values() for start, end, kind in states if end is not None]
    expected = sorted(ns for ns, kind in off if kind != "running")
    rows = switched.sql("SELECT weight, stack_id FROM samples WHERE event::VARCHAR = 'off-cpu' ORDER BY 1").fetchall()
    assert [weight for weight, _ in rows] == expected
    chains = switched.sql("""
        SELECT o.addresses, s.addresses FROM callchains o
            JOIN sched_states t ON t.start_ns = o.ts_ns AND t.thread_id = o.thread_id
            JOIN callchains s ON s.sample_id = t.sample_id WHERE o.event::VARCHAR = 'off-cpu'""").fetchall()
    assert len(chains) == len(expected)
    assert all(own == of_sample for own, of_sample in chains)
    # The sample of a switch is the last one before it, of the same thread.
    late = switched.sql("""SELECT count(*) FROM sched_states t JOIN callchains s USING (sample_id)
        WHERE s.ts_ns > t.start_ns OR s.thread_id <> t.thread_id""").fetchall()
    assert late == [(0,)]


def test_selected_time_cuts_states(file: PerfFile, switched: pf.Profile) -> None:
    from perfuse.analysis.scheduling import thread_times

    every = [state for states in _states(file).values() for state in states]
    assert switched.span_ns is not None
    start = switched.span_ns[0] + 10 * MS
    end = start + 5 * MS
    expected = 0
    for first, last, kind in every:
        if kind == "sleeping" and last is not None:
            expected += max(0, min(last, end) - max(first, start))
    selected = switched.between(0.010, 0.015)
    assert sum(one.sleeping_ns for one in thread_times(selected)) == expected


SWITCH_EVENT = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.CPU, flags=1 << 26)


def _crafted(tmp_path: Path, *records: Record) -> pf.Profile:
    first = crafting.comm(SWITCH_EVENT, PID, PID, "crafted")
    return pf.fuse(PerfFile([SWITCH_EVENT], [first, *records]).write(tmp_path / "perf.data"))


def _switch(time: int, misc: int) -> Record:
    return Record(crafting.SWITCH, misc, SWITCH_EVENT.sample_id(PID, PID + 1, time))


def _states_in(profile: pf.Profile) -> list[tuple[int, int | None, str]]:
    return profile.sql("SELECT start_ns, end_ns, state::VARCHAR FROM sched_states ORDER BY start_ns").fetchall()


def _waits(profile: pf.Profile) -> list[int]:
    rows = profile.sql("SELECT weight FROM samples WHERE event::VARCHAR = 'off-cpu' ORDER BY ts_ns").fetchall()
    return [weight for (weight,) in rows]


def test_a_thread_that_has_ended_does_not_wait(tmp_path: Path) -> None:
    """A later thread of the same id begins anew; the switch after the end of a thread is that of its end."""

    def task(kind: int, time: int) -> Record:
        return crafting.task(SWITCH_EVENT, kind, PID, PID, PID + 1, time)

    records = [task(crafting.FORK, 1000), _switch(1100, 0), _switch(1200, 0x2000), _switch(1300, 0)]
    records += [task(crafting.EXIT, 1400), _switch(1401, 0x2000)]
    records += [task(crafting.FORK, 9000), _switch(9100, 0), _switch(9200, 0x6000), _switch(9300, 0)]
    profile = _crafted(tmp_path, *records)
    assert _states_in(profile) == [
        (1100, 1200, "running"),
        (1200, 1300, "sleeping"),
        (1300, 1400, "running"),
        (9100, 9200, "running"),
        (9200, 9300, "runnable"),
        (9300, None, "running"),
    ]
    assert _waits(profile) == [100, 100]


def test_a_state_does_not_end_with_a_switch_that_only_shows_its_end(tmp_path: Path) -> None:
    """Between two switches off a processor, the thread was on one, from and to an unknown time: the record was lost."""
    profile = _crafted(
        tmp_path,
        _switch(1000, 0x2000),
        _switch(5000, 0x2000),
        _switch(6000, 0),
        _switch(8000, 0),
        _switch(8500, 0x2000),
    )
    assert _states_in(profile) == [
        (1000, None, "sleeping"),
        (5000, 6000, "sleeping"),
        (6000, None, "running"),
        (8000, 8500, "running"),
        (8500, None, "sleeping"),
    ]
    assert _waits(profile) == [1000]
    findings = [one for one in profile.recordings[0].check() if one.code == "PD030"]
    assert [one.message.split()[0] for one in findings] == ["2"]
