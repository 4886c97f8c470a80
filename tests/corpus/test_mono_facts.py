"""Tables of real Mono logs, compared with facts that were computed independently."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import perfuse as pf
from perfuse.profile import Profile

from .mono_logs import logs, stem, truth

KNOWN = [path for path in logs("tiny", "v17", "versions") if truth(path)]

CLASS, VTABLE = 1, 7


def _types_at_reused_addresses(path: Path) -> set[str]:
    """Types at addresses that several types used one after another: the facts count all objects there for the last."""
    classes: dict[int, str] = {}
    at: dict[int, set[str]] = {}
    for record in pf.open(path).records(kinds=["METADATA_END_LOAD"]):
        if record.mtype == CLASS:
            classes[record.pointer] = record.fields["name"]
            at.setdefault(record.pointer, set()).add(record.fields["name"])
        elif record.mtype == VTABLE:
            at.setdefault(record.pointer, set()).add(classes.get(record.fields["class"], ""))
    return {name for names in at.values() if len(names) > 1 for name in names}


@dataclass(frozen=True)
class Log:
    """A log as a profile, and its facts."""

    path: Path
    profile: Profile
    facts: dict[str, Any]

    @property
    def is_32bit(self) -> bool:
        return self.profile.recordings[0].summary.pointer_bytes == 4

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.profile.sql(query).fetchall()


@pytest.fixture(scope="module", params=KNOWN, ids=stem)
def log(request: pytest.FixtureRequest) -> Log:
    path: Path = request.param
    return Log(path, pf.fuse(path), truth(path))


def test_allocations(log: Log) -> None:
    facts = log.facts["allocations"]
    ((count, size, unresolved),) = log.rows(
        "SELECT count(*), coalesce(sum(size_bytes), 0), count(*) FILTER (type_id IS NULL) FROM allocations"
    )
    assert (count, size, unresolved) == (facts["total_count"], facts["total_bytes"], 0)


def test_allocations_by_class(log: Log) -> None:
    found = log.rows(
        "SELECT t.name::VARCHAR, count(*), sum(size_bytes) FROM allocations JOIN types t USING (type_id) GROUP BY 1"
    )
    here = {name: [count, size] for name, count, size in found}
    doubtful = _types_at_reused_addresses(log.path)
    # The facts of 32-bit logs were computed without wrapping at 32 bits, and leave types unresolved.
    top = [] if log.is_32bit else log.facts["allocations"]["top"]
    for name, *facts in top:
        assert here[name] == facts or name in doubtful, name


# The others are made of calls and allocations.
TAKEN = "samples WHERE event NOT IN ('calls', 'wall-time', 'allocated-bytes', 'allocations')"
LEAVES = f"""
    WITH RECURSIVE up AS (
        SELECT sample_id, stack_id, 0 AS up FROM {TAKEN}
        UNION ALL
        SELECT sample_id, parent_stack_id, up + 1 FROM up JOIN stacks USING (stack_id)
        JOIN frames USING (frame_id) WHERE kind <> 'jit'
    ), leaf AS (
        SELECT sample_id, arg_max(stack_id, up) AS stack_id, arg_max(stack_id IS NULL, up) AS none
        FROM up GROUP BY 1
    )
    SELECT CASE WHEN none THEN '(no managed frames)' ELSE f.name::VARCHAR END, count(*)
    FROM leaf LEFT JOIN stacks USING (stack_id) LEFT JOIN frames USING (frame_id)
    LEFT JOIN functions f USING (function_id) GROUP BY 1
"""


def test_samples_by_leaf_and_thread(log: Log) -> None:
    facts = log.facts["samples"]
    assert log.rows(f"SELECT count(*) FROM {TAKEN}") == [(facts["total"],)]
    leaves = dict(log.rows(LEAVES))
    assert {name: leaves.get(name) for name, _ in facts["leaf_top"]} == dict(facts["leaf_top"])
    threads = log.rows(f"SELECT native_id, count(*) FROM (FROM {TAKEN}) JOIN threads USING (thread_id) GROUP BY 1")
    assert {f"{native:x}": count for native, count in threads} == {
        thread: count for thread, _, count in facts["by_thread"]
    }


def test_pauses(log: Log) -> None:
    """Pauses last from the stop of the world to its restart."""
    pauses = log.rows(
        "SELECT duration_ns FROM slices WHERE name LIKE '% pause' AND end_reason = 'exit' ORDER BY start_ns"
    )
    assert [duration for (duration,) in pauses] == log.facts["gc"]["world_stopped_ns"]


def test_calls_exceptions_and_locks(log: Log) -> None:
    kinds = Counter(dict(log.rows("SELECT kind::VARCHAR, count(*) FROM call_events GROUP BY 1")))
    facts = log.facts["calls"]
    assert kinds == Counter(enter=facts["enter"], exit=facts["leave"], exception_exit=facts["exc_leave"])
    assert log.rows("SELECT count(*) FROM exceptions WHERE kind = 'throw'") == [(log.facts["throws"],)]
    locks = dict(log.rows("SELECT kind::VARCHAR, count(*) FROM lock_events GROUP BY 1"))
    names = {"1": "contention", "2": "acquired", "3": "failed"}
    assert locks == {names[event]: count for event, count in log.facts["monitor"].items()}


def test_heap_snapshots(log: Log) -> None:
    snapshots = log.rows(
        """
        SELECT count(object_address), coalesce(sum(size_bytes), 0)
        FROM heap_snapshots LEFT JOIN heap_objects USING (snapshot_id) GROUP BY snapshot_id ORDER BY snapshot_id
        """
    )
    assert [{"objects": objects, "bytes": size} for objects, size in snapshots] == log.facts["heapshots"]


def test_threads_and_their_names(log: Log) -> None:
    """A renamed thread has its last name; every renaming is an instant."""
    rows = log.rows("SELECT native_id, list(name::VARCHAR) FROM threads GROUP BY 1")
    found = {native: set(names) - {None} for native, names in rows}
    mask = 0xFFFF_FFFF if log.is_32bit else 0xFFFF_FFFF_FFFF_FFFF
    for thread, names in log.facts["threads"].items():
        assert found[int(thread, 16) & mask] <= set(names)
        assert found[int(thread, 16) & mask] or not names
    given = log.rows("SELECT DISTINCT name::VARCHAR FROM instants WHERE kind = 'thread_name'")
    assert {name for (name,) in given} == {name for names in log.facts["threads"].values() for name in names}
