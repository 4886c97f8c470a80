"""When threads were on a processor, how long they were not, and who woke them: from recorded context switches."""

from dataclasses import dataclass

from perfuse.profile import Profile


@dataclass(frozen=True, slots=True)
class ThreadTimes:
    """What a thread did between its first and its last recorded context switch.

    Attributes:
        thread_id: Its key.
        thread: Its name and thread id.
        running_ns: Time on a processor.
        runnable_ns: Time off it although it could continue: it was preempted.
        sleeping_ns: Time in which it waited.
        num_preempted: How often it was preempted.
        num_sleeps: How often it waited.
        longest_sleep_ns: Its longest wait.
    """

    thread_id: int
    thread: str
    running_ns: int
    runnable_ns: int
    sleeping_ns: int
    num_preempted: int
    num_sleeps: int
    longest_sleep_ns: int


def thread_times(profile: Profile) -> list[ThreadTimes]:
    """Times of every thread with context switches, those that waited longest first.

    A state that the recording does not see the end of is left out; a selected time cuts the states at its ends.
    """
    if not profile.has("sched_states"):
        return []
    selection = profile.selection
    start, end = "start_ns", "end_ns"
    conditions = ["end_ns IS NOT NULL"]
    if selection.start_ns is not None:
        start = f"greatest({start}, {selection.start_ns})"
        conditions.append(f"end_ns > {selection.start_ns}")
    if selection.end_ns is not None:
        end = f"least({end}, {selection.end_ns})"
        conditions.append(f"start_ns < {selection.end_ns}")
    if selection.threads is not None:
        conditions.append(f"thread_id IN ({selection.threads})")
    rows = profile.sql(f"""
        WITH cut AS (
            SELECT thread_id, state::VARCHAR AS state, {end} - {start} AS ns
            FROM sched_states WHERE {" AND ".join(conditions)})
        SELECT thread_id, coalesce(t.name, p.name, 'thread') || ' ' || coalesce(t.tid, thread_id),
            coalesce(sum(ns) FILTER (state = 'running'), 0)::BIGINT,
            coalesce(sum(ns) FILTER (state = 'runnable'), 0)::BIGINT,
            coalesce(sum(ns) FILTER (state = 'sleeping'), 0)::BIGINT AS slept,
            count(*) FILTER (state = 'runnable'), count(*) FILTER (state = 'sleeping'),
            coalesce(max(ns) FILTER (state = 'sleeping'), 0)::BIGINT
        FROM cut JOIN threads t USING (thread_id) JOIN processes p USING (process_id)
        GROUP BY ALL ORDER BY slept DESC, thread_id""").fetchall()
    return [ThreadTimes(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class WakeUps:
    """How often a thread woke another.

    Attributes:
        waker: Name and thread id of the waker; where an interrupt woke the thread, what it interrupted.
        woken: Name and thread id of the thread that was woken.
        count: Number of times.
        waited_ns: How long the thread had waited then, in all; None where its context switches were not recorded.
    """

    waker: str
    woken: str
    count: int
    waited_ns: int | None


def wake_ups(profile: Profile) -> list[WakeUps]:
    """Pairs of threads of which one woke the other, those whose waits were longest first."""
    if not profile.has("wake_ups"):
        return []
    selection = profile.selection
    # The kernel announces a wake-up before it happens, and states it again when it has: one of both counts.
    events = {name for (name,) in profile.sql("SELECT DISTINCT event::VARCHAR FROM wake_ups").fetchall()}
    kinds = ("sched_waking",) if "sched_waking" in events else ("sched_wakeup", "sched_wakeup_new")
    conditions = [f"event IN ({', '.join(map(repr, kinds))})"]
    if selection.start_ns is not None:
        conditions.append(f"ts_ns >= {selection.start_ns}")
    if selection.end_ns is not None:
        conditions.append(f"ts_ns < {selection.end_ns}")
    if selection.threads is not None:
        conditions.append(f"thread_id IN ({selection.threads})")
    name = "coalesce({0}.name, 'thread') || ' ' || coalesce({0}.tid, {0}.thread_id)"
    waits = "SELECT thread_id, start_ns, end_ns FROM sched_states WHERE state = 'sleeping' AND end_ns IS NOT NULL"
    if not profile.has("sched_states"):
        waits = "SELECT NULL::UINTEGER thread_id, NULL::BIGINT start_ns, NULL::BIGINT end_ns WHERE false"
    rows = profile.sql(f"""
        WITH waits AS ({waits}),
        found AS (
            SELECT w.waker_thread_id, w.thread_id,
                CASE WHEN w.ts_ns <= waits.end_ns THEN w.ts_ns - waits.start_ns END AS ns
            FROM (SELECT * FROM wake_ups WHERE {" AND ".join(conditions)}) w
            ASOF LEFT JOIN waits ON w.thread_id = waits.thread_id AND w.ts_ns >= waits.start_ns)
        SELECT {name.format("waker")}, {name.format("woken")}, count(*), sum(ns)::BIGINT AS waited
        FROM found JOIN threads waker ON waker.thread_id = found.waker_thread_id
        JOIN threads woken ON woken.thread_id = found.thread_id
        GROUP BY found.waker_thread_id, found.thread_id, waker.name, waker.tid, waker.thread_id,
            woken.name, woken.tid, woken.thread_id
        ORDER BY waited DESC NULLS LAST, count(*) DESC, 1, 2""").fetchall()
    return [WakeUps(*row) for row in rows]
