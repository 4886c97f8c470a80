"""Who waited for which lock, and how long."""

from dataclasses import dataclass

from perfuse.analysis.distribution import Distribution, distribution_of
from perfuse.analysis.functions import Backtrace, backtraces
from perfuse.analysis.objects import Objects
from perfuse.analysis.profiles import RuntimeProfile, read_selected


@dataclass(frozen=True, slots=True)
class LockContention:
    """Waits for a lock, or for all locks of a type.

    Attributes:
        type_name: Type of the object; None where its allocation was not recorded.
        object_address: Where it was first; None where the row is about a type.
        num_locks: How many locks these are.
        num_contentions: Times a thread had to wait.
        num_acquired: Times one got it.
        num_failed: Times one gave up.
        waits: How long they waited.
    """

    type_name: str | None
    object_address: int | None
    num_locks: int
    num_contentions: int
    num_acquired: int
    num_failed: int
    waits: Distribution


@dataclass(frozen=True, slots=True)
class ContentionSite:
    """Waits from one stack, outermost function first."""

    backtrace: Backtrace
    waits: Distribution


@dataclass(frozen=True, slots=True)
class Contention:
    """All waits for locks in the selected threads and time.

    Attributes:
        num_contentions: Times a thread had to wait.
        num_acquired: Times one got it.
        num_failed: Times one gave up.
        waits: How long they waited.
        by_type: By the type of the object that is locked, the longest waits first.
        by_lock: By object.
        by_site: By the stack that waited.
        by_thread: Time each thread waited, by its key.
    """

    num_contentions: int
    num_acquired: int
    num_failed: int
    waits: Distribution
    by_type: list[LockContention]
    by_lock: list[LockContention]
    by_site: list[ContentionSite]
    by_thread: dict[int, Distribution]


@dataclass(slots=True)
class _Lock:
    type_name: str | None
    address: int
    counts: dict[str, int]
    waits: list[int]


def contention(profile: RuntimeProfile, objects: Objects) -> Contention:
    """Pairs each wait with its end; a lock is one object, wherever the collector moved it."""
    columns = ("thread_id", "ts_ns", "record_offset", "object_address", "kind", "stack_id")
    rows = sorted(read_selected(profile, "lock_events", *columns), key=lambda row: row[:3])
    locks: dict[tuple[int, int | None], _Lock] = {}
    waiting: dict[tuple[int, int], tuple[int, int | None]] = {}
    sites: dict[int | None, list[int]] = {}
    threads: dict[int, list[int]] = {}
    for thread, ts_ns, _, address, kind, stack in rows:
        known = objects.at(address, ts_ns)
        lock = locks.setdefault(
            (known.object_address, known.allocated_ns),
            _Lock(known.type_name, known.object_address, dict.fromkeys(("contention", "acquired", "failed"), 0), []),
        )
        lock.counts[kind] += 1
        if kind == "contention":
            # A thread may say more than once that it waits: the first tells since when.
            waiting.setdefault((thread, address), (ts_ns, stack))
        elif since := waiting.pop((thread, address), None):
            wait = ts_ns - since[0]
            lock.waits.append(wait)
            sites.setdefault(since[1], []).append(wait)
            threads.setdefault(thread, []).append(wait)
    stacks = backtraces(profile, "lock_events", sites) if sites else {}
    by_lock = [_told([lock], lock.address) for lock in locks.values()]
    by_type: dict[str | None, list[_Lock]] = {}
    for lock in locks.values():
        by_type.setdefault(lock.type_name, []).append(lock)
    every = list(locks.values())
    return Contention(
        num_contentions=sum(lock.counts["contention"] for lock in every),
        num_acquired=sum(lock.counts["acquired"] for lock in every),
        num_failed=sum(lock.counts["failed"] for lock in every),
        waits=distribution_of([wait for lock in locks.values() for wait in lock.waits]),
        by_type=_longest([_told(some, None) for some in by_type.values()]),
        by_lock=_longest(by_lock),
        by_site=sorted(
            (ContentionSite(stacks[stack], distribution_of(waits)) for stack, waits in sites.items()),
            key=lambda one: (-one.waits.sum, one.backtrace),
        ),
        by_thread={thread: distribution_of(waits) for thread, waits in threads.items()},
    )


def _told(locks: list[_Lock], address: int | None) -> LockContention:
    return LockContention(
        type_name=locks[0].type_name,
        object_address=address,
        num_locks=len(locks),
        num_contentions=sum(lock.counts["contention"] for lock in locks),
        num_acquired=sum(lock.counts["acquired"] for lock in locks),
        num_failed=sum(lock.counts["failed"] for lock in locks),
        waits=distribution_of([wait for lock in locks for wait in lock.waits]),
    )


def _longest(locks: list[LockContention]) -> list[LockContention]:
    return sorted(locks, key=lambda one: (-one.waits.sum, -one.num_contentions, one.object_address or 0))
