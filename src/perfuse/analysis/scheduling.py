"""When threads were on a processor, and how long they were not: from recorded context switches."""

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
