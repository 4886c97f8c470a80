"""The history of an object: its allocation, moves by the collector, handles, locks, exceptions, heap snapshots and its
finalizer."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from perfuse.analysis.objects import object_address, type_names
from perfuse.analysis.profiles import UNSELECTED, RuntimeProfile, read_selected
from perfuse.table import sql_text

MAX_MOVES = 1000
"""Largest number of moves of one object that are followed."""


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """An event of an object.

    Attributes:
        ts_ns: Its time.
        what: Its kind: `allocated`, `moved`, `handle`, `lock`, `exception`, `in heap snapshot` or `finalizer`, at its
            start.
        object_address: Address of the object after the event.
        detail: Further facts.
        thread_id: Thread of the event; None where that was not recorded.
        stack_id: Stack of the event; None where none was taken.
    """

    ts_ns: int
    what: str
    object_address: int
    detail: str
    thread_id: int | None
    stack_id: int | None


@dataclass(frozen=True, slots=True)
class ObjectHistory:
    """An object and its events, in time order.

    Attributes:
        type_name: Its type; None where that was not recorded.
        size_bytes: Its size; None where that was not recorded.
        events: Its events.
    """

    type_name: str | None
    size_bytes: int | None
    events: list[ObjectEvent]


@dataclass(frozen=True, slots=True)
class _AddressRange:
    """The time during which an object is at an address."""

    address: int
    start_ns: int
    end_ns: int


def object_histories(profile: RuntimeProfile, addresses: Sequence[int]) -> list[ObjectHistory]:
    """The histories of all objects that were ever at one of these addresses."""
    histories = []
    finalizers = _finalizers(profile)
    seen: set[tuple[int, int]] = set()
    for address in addresses:
        for first in _first_addresses(profile, address):
            if (first.address, first.start_ns) not in seen:
                seen.add((first.address, first.start_ns))
                histories.append(_history(profile, first, finalizers))
    return histories


def find_objects(
    profile: RuntimeProfile, *, min_bytes: int | None = None, type_part: str | None = None
) -> list[tuple[int, int]]:
    """Allocations as `(address, time)` of a minimum size, or of types whose name contains a text, in time order."""
    conditions = [f"size_bytes >= {min_bytes}"] if min_bytes is not None else []
    if type_part:
        conditions.append(
            f"type_id IN (SELECT type_id FROM types WHERE contains(name::VARCHAR, {sql_text(type_part)}))"
        )
    rows = profile.sql(f"""
        SELECT object_address, ts_ns FROM allocations WHERE {" AND ".join(conditions) or "true"}
        AND {profile.selection.where() or "true"} ORDER BY ts_ns
    """).fetchall()
    return [(address, ts_ns) for address, ts_ns in rows]


def histories_of(profile: RuntimeProfile, allocated: Sequence[tuple[int, int]]) -> list[ObjectHistory]:
    """The histories of some allocations, `(address, time)` each."""
    finalizers = _finalizers(profile)
    return [_history(profile, _AddressRange(address, ts_ns, _LAST), finalizers) for address, ts_ns in allocated]


_LAST = 2**63 - 1


def _first_addresses(profile: RuntimeProfile, address: int) -> list[_AddressRange]:
    """The first addresses of the objects that were at an address: there, or elsewhere before moves."""
    rows: list[tuple[int, int, int | None]] = []
    if profile.has("allocations"):
        rows += profile.sql(f"SELECT ts_ns, 0, NULL FROM allocations WHERE object_address = {address}").fetchall()
    if profile.has("object_moves"):
        rows += profile.sql(f"SELECT ts_ns, 1, old_address FROM object_moves WHERE new_address = {address}").fetchall()
    addresses = []
    for ts_ns, _, old in sorted(rows, key=lambda row: row[:2]):
        where, since = address, ts_ns
        if old is not None:
            where, since = _origin(profile, old, ts_ns)
        addresses.append(_AddressRange(where, since, _LAST))
    return addresses or [_AddressRange(address, -_LAST, _LAST)]


def _origin(profile: RuntimeProfile, address: int, before_ns: int) -> tuple[int, int]:
    """First address and time of the object that was at an address just before a time."""
    for _ in range(MAX_MOVES):
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


_Finalizers = dict[int, list[tuple[int, int]]]
"""Start and thread of each finalizer, by the address of its object."""


def _finalizers(profile: RuntimeProfile) -> _Finalizers:
    found: _Finalizers = {}
    columns = ("name", "args", "start_ns", "thread_id")
    for name, args, start, thread in read_selected(profile, "slices", *columns, kinds=["gc"], **UNSELECTED):
        if name == "finalizer":
            found.setdefault(object_address(args), []).append((start, thread))
    return found


def _history(profile: RuntimeProfile, first: _AddressRange, finalizers: _Finalizers) -> ObjectHistory:
    addresses = _addresses(profile, first)
    events = [
        ObjectEvent(at.start_ns, "moved", at.address, f"from {before.address:#x}", None, None)
        for before, at in pairwise(addresses)
    ]
    facts: tuple[str | None, int | None] = (None, None)
    if profile.has("allocations"):
        for ts_ns, type_id, size, thread, stack in profile.sql(f"""
            SELECT ts_ns, type_id, size_bytes, thread_id, stack_id FROM allocations
            WHERE object_address = {first.address} AND ts_ns = {first.start_ns} LIMIT 1""").fetchall():
            facts = type_names(profile).get(type_id), size
            events.append(ObjectEvent(ts_ns, "allocated", first.address, f"{size:,} bytes", thread, stack))
    for at in addresses:
        events += _events_at(profile, at)
        events += [
            ObjectEvent(start, "finalizer", at.address, "", thread, None)
            for start, thread in finalizers.get(at.address, [])
            if at.start_ns <= start < at.end_ns
        ]
    if facts[0] is None:
        facts = next(((m.detail.split(": ")[-1], facts[1]) for m in events if m.what == "in heap snapshot"), facts)
    return ObjectHistory(*facts, sorted(events, key=lambda event: event.ts_ns))


def _addresses(profile: RuntimeProfile, first: _AddressRange) -> list[_AddressRange]:
    """An object's addresses in time order, from its first, up to the time at which another object has the address."""
    tables = [table for table in _ADDRESS_QUERIES if profile.has(table)]
    addresses: list[_AddressRange] = []
    while tables and len(addresses) < MAX_MOVES:
        query = " UNION ALL ".join(_ADDRESS_QUERIES[table] for table in tables)
        where = f"address = {first.address} AND ts_ns > {first.start_ns}"
        # Of an object that leaves and one that arrives at a time, the first left before.
        found = profile.sql(f"SELECT ts_ns, new FROM ({query}) WHERE {where} ORDER BY ts_ns, new IS NULL LIMIT 1")
        ts_ns, new = (found.fetchall() or [(_LAST, None)])[0]
        addresses.append(_AddressRange(first.address, first.start_ns, ts_ns))
        if new is None:
            return addresses
        first = _AddressRange(new, ts_ns, _LAST)
    return [*addresses, first]


_ADDRESS_QUERIES = {
    "allocations": "SELECT ts_ns, object_address AS address, NULL AS new FROM allocations",
    "object_moves": """
        SELECT ts_ns, old_address AS address, new_address AS new FROM object_moves
        UNION ALL SELECT ts_ns, new_address, NULL FROM object_moves""",
}
"""Events at addresses: `new` is where the object moves; null where another object arrives."""

_EVENT_QUERIES = {
    "gc_handles": """
        SELECT created_ns AS ts_ns, 'handle', kind::VARCHAR || ' ' || handle, created_thread_id, created_stack_id
        FROM gc_handles WHERE {here} AND created_ns IS NOT NULL""",
    "lock_events": "SELECT ts_ns, 'lock', kind::VARCHAR, thread_id, stack_id FROM lock_events WHERE {here}",
    "exceptions": "SELECT ts_ns, 'exception', kind::VARCHAR, thread_id, stack_id FROM exceptions WHERE {here}",
    "heap_objects": """
        SELECT s.ts_ns, 'in heap snapshot', s.snapshot_id || coalesce(': ' || t.name::VARCHAR, ''), NULL, NULL
        FROM heap_objects h JOIN (
            -- The collection that is part of a snapshot may move objects until its end.
            SELECT snapshot_id, coalesce(end_ns, ts_ns) AS ts_ns FROM heap_snapshots) s USING (snapshot_id)
        LEFT JOIN types t USING (type_id) WHERE {here}""",
}


def _events_at(profile: RuntimeProfile, at: _AddressRange) -> list[ObjectEvent]:
    events = []
    for table, query in _EVENT_QUERIES.items():
        if profile.has(table):
            time = "created_ns" if table == "gc_handles" else "ts_ns"
            here = f"object_address = {at.address} AND {time} >= {at.start_ns} AND {time} < {at.end_ns}"
            for ts_ns, what, detail, thread, stack in profile.sql(query.format(here=here)).fetchall():
                events.append(ObjectEvent(ts_ns, what, at.address, detail, thread, stack))
    return events
