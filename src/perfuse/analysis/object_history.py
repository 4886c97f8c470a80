"""The life of an object: where it was allocated, how the collector moved it, and what met it on the way."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from perfuse.analysis.objects import type_names
from perfuse.analysis.profiles import RuntimeProfile

MOST_MOVES = 1000
"""Moves of one object that are followed."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to an object.

    Attributes:
        ts_ns: When.
        what: `allocated`, `moved`, `handle`, `lock`, `exception` or `in heap shot`.
        object_address: Its address, after that.
        detail: What more there is to say.
        thread_id: Thread that did it; None where that was not recorded.
        stack_id: Stack; None where none was taken.
    """

    ts_ns: int
    what: str
    object_address: int
    detail: str
    thread_id: int | None
    stack_id: int | None


@dataclass(frozen=True, slots=True)
class ObjectLife:
    """An object and what happened to it, in the order of time.

    Attributes:
        type_name: Its type; None where that was not recorded.
        size_bytes: Its size; None where that was not recorded.
        moments: What happened.
    """

    type_name: str | None
    size_bytes: int | None
    moments: list[Moment]


@dataclass(frozen=True, slots=True)
class _Stay:
    """An object at an address, for a time."""

    address: int
    start_ns: int
    end_ns: int


def object_lives(profile: RuntimeProfile, addresses: Sequence[int]) -> list[ObjectLife]:
    """Every object that was ever at one of these addresses, one after the other."""
    lives = []
    seen: set[tuple[int, int]] = set()
    for address in addresses:
        for first in _beginnings(profile, address):
            if (first.address, first.start_ns) not in seen:
                seen.add((first.address, first.start_ns))
                lives.append(_life(profile, first))
    return lives


def found_objects(
    profile: RuntimeProfile, *, min_bytes: int | None = None, type_part: str | None = None, limit: int | None = None
) -> list[tuple[int, int]]:
    """Allocations as `(address, time)`: of a size, or of a type whose name has that part; in the order of time."""
    part = (type_part or "").replace("'", "''")
    conditions = [f"size_bytes >= {min_bytes}"] if min_bytes is not None else []
    conditions += [f"type_id IN (SELECT type_id FROM types WHERE contains(name::VARCHAR, '{part}'))"] if part else []
    rows = profile.sql(f"""
        SELECT object_address, ts_ns FROM allocations WHERE {" AND ".join(conditions) or "true"}
        AND {profile.selection.where() or "true"} ORDER BY ts_ns {"" if limit is None else f"LIMIT {limit}"}
    """).fetchall()
    return [(address, ts_ns) for address, ts_ns in rows]


def lives_of(profile: RuntimeProfile, allocated: Sequence[tuple[int, int]]) -> list[ObjectLife]:
    """The lives of some allocations, `(address, time)` each."""
    return [_life(profile, _Stay(address, ts_ns, _LAST)) for address, ts_ns in allocated]


_LAST = 2**63 - 1


def _beginnings(profile: RuntimeProfile, address: int) -> list[_Stay]:
    """Where the objects that were at an address began: there, or elsewhere before they were moved."""
    rows: list[tuple[int, int, int | None]] = []
    if profile.has("allocations"):
        rows += profile.sql(f"SELECT ts_ns, 0, NULL FROM allocations WHERE object_address = {address}").fetchall()
    if profile.has("object_moves"):
        rows += profile.sql(f"SELECT ts_ns, 1, old_address FROM object_moves WHERE new_address = {address}").fetchall()
    stays = []
    for ts_ns, _, old in sorted(rows, key=lambda row: row[:2]):
        where, since = address, ts_ns
        if old is not None:
            where, since = _origin(profile, old, ts_ns)
        stays.append(_Stay(where, since, _LAST))
    return stays or [_Stay(address, -_LAST, _LAST)]


def _origin(profile: RuntimeProfile, address: int, before_ns: int) -> tuple[int, int]:
    """Where an object was first that was at an address just before a time."""
    for _ in range(MOST_MOVES):
        steps = []
        if profile.has("allocations"):
            steps += profile.sql(f"""
                SELECT ts_ns, NULL FROM allocations WHERE object_address = {address} AND ts_ns <= {before_ns}
                ORDER BY ts_ns DESC LIMIT 1""").fetchall()
        steps += profile.sql(f"""
            SELECT ts_ns, old_address FROM object_moves WHERE new_address = {address} AND ts_ns < {before_ns}
            ORDER BY ts_ns DESC LIMIT 1""").fetchall()
        if not steps:
            return address, -_LAST
        ts_ns, old = max(steps, key=lambda step: step[0])
        if old is None:
            return address, ts_ns
        address, before_ns = old, ts_ns
    return address, before_ns


def _life(profile: RuntimeProfile, first: _Stay) -> ObjectLife:
    stays = _stays(profile, first)
    moments = [
        Moment(stay.start_ns, "moved", stay.address, f"from {before.address:#x}", None, None)
        for before, stay in pairwise(stays)
    ]
    told: tuple[str | None, int | None] = (None, None)
    if profile.has("allocations"):
        for ts_ns, type_id, size, thread, stack in profile.sql(f"""
            SELECT ts_ns, type_id, size_bytes, thread_id, stack_id FROM allocations
            WHERE object_address = {first.address} AND ts_ns = {first.start_ns} LIMIT 1""").fetchall():
            told = type_names(profile).get(type_id), size
            moments.append(Moment(ts_ns, "allocated", first.address, f"{size:,} bytes", thread, stack))
    for stay in stays:
        moments += _met(profile, stay)
    if told[0] is None:
        told = next(((m.detail.split(": ")[-1], told[1]) for m in moments if m.what == "in heap shot"), told)
    return ObjectLife(*told, sorted(moments, key=lambda moment: moment.ts_ns))


def _stays(profile: RuntimeProfile, first: _Stay) -> list[_Stay]:
    """An object's addresses, from its first."""
    if not profile.has("object_moves"):
        return [first]
    stays = []
    for _ in range(MOST_MOVES):
        moves = profile.sql(f"""
            SELECT ts_ns, new_address FROM object_moves WHERE old_address = {first.address} AND ts_ns > {first.start_ns}
            ORDER BY ts_ns LIMIT 1""").fetchall()
        if not moves:
            break
        ((ts_ns, new),) = moves
        stays.append(_Stay(first.address, first.start_ns, ts_ns))
        first = _Stay(new, ts_ns, _LAST)
    return [*stays, first]


_MEETINGS = {
    "gc_handles": """
        SELECT created_ns AS ts_ns, 'handle', kind::VARCHAR || ' ' || handle, created_thread_id, created_stack_id
        FROM gc_handles WHERE {here} AND created_ns IS NOT NULL""",
    "lock_events": "SELECT ts_ns, 'lock', kind::VARCHAR, thread_id, stack_id FROM lock_events WHERE {here}",
    "exceptions": "SELECT ts_ns, 'exception', kind::VARCHAR, thread_id, stack_id FROM exceptions WHERE {here}",
    "heap_objects": """
        SELECT s.ts_ns, 'in heap shot', s.snapshot_id || coalesce(': ' || t.name::VARCHAR, ''), NULL, NULL
        FROM heap_objects h JOIN heap_snapshots s USING (snapshot_id) LEFT JOIN types t USING (type_id) WHERE {here}""",
}


def _met(profile: RuntimeProfile, stay: _Stay) -> list[Moment]:
    moments = []
    for table, query in _MEETINGS.items():
        if profile.has(table):
            time = "created_ns" if table == "gc_handles" else "ts_ns"
            here = f"object_address = {stay.address} AND {time} >= {stay.start_ns} AND {time} < {stay.end_ns}"
            for ts_ns, what, detail, thread, stack in profile.sql(query.format(here=here)).fetchall():
                moments.append(Moment(ts_ns, what, stay.address, detail, thread, stack))
    return moments
