"""Lock contention: waits of threads for locks, and their durations."""

from dataclasses import dataclass

from perfuse.analysis.distribution import Distribution, distribution_of
from perfuse.analysis.functions import Backtrace, backtraces
from perfuse.analysis.objects import Objects
from perfuse.analysis.profiles import RuntimeProfile, lock_events
from perfuse.value_class import value_class


@value_class
class LockContention:
    """Waits for a lock, or for all locks of a type.

    Attributes:
        type_name: Type of the object; None where its allocation was not recorded.
        object_address: Its first address; None for a row of a type.
        num_locks: Number of locks.
        num_contentions: Number of waits.
        num_acquired: Waits that acquired the lock.
        num_failed: Waits that were given up.
        waits: Durations of the waits.
    """

    type_name: str | None
    object_address: int | None
    num_locks: int
    num_contentions: int
    num_acquired: int
    num_failed: int
    waits: Distribution


@value_class
class ContentionSite:
    """Waits from one place, outermost function first."""

    backtrace: Backtrace
    waits: Distribution


@value_class
class Contention:
    """All waits for locks of the selected threads that overlap the selected time; each is whole.

    Attributes:
        num_contentions: Number of waits.
        num_acquired: Waits that acquired the lock.
        num_failed: Waits that were given up.
        waits: Durations of the waits.
        by_type: By the type of the locked object, the longest waits first.
        by_lock: By object.
        by_site: By the functions of the waiting stack.
        by_thread: Waits of each thread, by its key.
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
class _LockEvents:
    type_name: str | None
    address: int
    counts: dict[str, int]
    waits: list[int]


def contention(profile: RuntimeProfile, objects: Objects) -> Contention:
    """Pairs each wait with its end; moves of the locked object by the collector are followed."""
    locks: dict[tuple[int, int | None], _LockEvents] = {}
    waiting: dict[tuple[int, int], tuple[int, int | None]] = {}
    sites: dict[int | None, list[int]] = {}
    threads: dict[int, list[int]] = {}
    for thread, ts_ns, _, address, kind, stack in lock_events(profile):
        locked = objects.at(address, ts_ns)
        lock = locks.setdefault(
            (locked.object_address, locked.allocated_ns),
            _LockEvents(
                locked.type_name, locked.object_address, dict.fromkeys(("contention", "acquired", "failed"), 0), []
            ),
        )
        lock.counts[kind] += 1
        if kind == "contention":
            waiting.setdefault((thread, address), (ts_ns, stack))
        elif since := waiting.pop((thread, address), None):
            wait = ts_ns - since[0]
            lock.waits.append(wait)
            sites.setdefault(since[1], []).append(wait)
            threads.setdefault(thread, []).append(wait)
    stacks = backtraces(profile, "lock_events", sites) if sites else {}
    places: dict[Backtrace, list[int]] = {}
    for stack, waits in sites.items():
        places.setdefault(stacks[stack], []).extend(waits)
    by_lock = [_lock_contention([lock], lock.address) for lock in locks.values()]
    by_type: dict[str | None, list[_LockEvents]] = {}
    for lock in locks.values():
        by_type.setdefault(lock.type_name, []).append(lock)
    every = list(locks.values())
    return Contention(
        num_contentions=sum(lock.counts["contention"] for lock in every),
        num_acquired=sum(lock.counts["acquired"] for lock in every),
        num_failed=sum(lock.counts["failed"] for lock in every),
        waits=distribution_of([wait for lock in locks.values() for wait in lock.waits]),
        by_type=_longest_first([_lock_contention(some, None) for some in by_type.values()]),
        by_lock=_longest_first(by_lock),
        by_site=sorted(
            (ContentionSite(place, distribution_of(waits)) for place, waits in places.items()),
            key=lambda one: (-one.waits.sum, one.backtrace),
        ),
        by_thread={thread: distribution_of(waits) for thread, waits in threads.items()},
    )


def _lock_contention(locks: list[_LockEvents], address: int | None) -> LockContention:
    return LockContention(
        type_name=locks[0].type_name,
        object_address=address,
        num_locks=len(locks),
        num_contentions=sum(lock.counts["contention"] for lock in locks),
        num_acquired=sum(lock.counts["acquired"] for lock in locks),
        num_failed=sum(lock.counts["failed"] for lock in locks),
        waits=distribution_of([wait for lock in locks for wait in lock.waits]),
    )


def _longest_first(locks: list[LockContention]) -> list[LockContention]:
    return sorted(locks, key=lambda one: (-one.waits.sum, -one.num_contentions, one.object_address or 0))
