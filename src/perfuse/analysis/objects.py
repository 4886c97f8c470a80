"""The objects of exceptions, locks and finalizers: their allocations and types, found over the collector's moves."""

import json

from perfuse.analysis.profiles import RuntimeProfile, TableProfile, collector_slices, lock_events, read_selected
from perfuse.table import Columns
from perfuse.value_class import value_class

UNKNOWN_TYPE = "(unknown type)"
"""Stands in texts for a type that was not recorded; `(unknown type)` of the core is the same."""


@value_class
class AllocatedObject:
    """An object and its allocation.

    Attributes:
        type_name: Its type; None where neither it nor its allocation was recorded.
        object_address: The address of its allocation; where that was not recorded, the address of the event.
        allocated_ns: Time of its allocation; None where that was not recorded.
    """

    type_name: str | None
    object_address: int
    allocated_ns: int | None


class Objects:
    """The objects of the selected exceptions, locks and finalizers, all found in one pass over the allocations."""

    def __init__(self, profile: RuntimeProfile) -> None:
        sightings: set[tuple[int, int]] = set()
        if profile.has("allocations"):
            where = ("object_address", "ts_ns")
            if profile.has("exceptions"):
                sightings.update(read_selected(profile, "exceptions", *where, kinds=["throw"]))
            if profile.has("lock_events"):
                sightings.update((address, ts_ns) for _, ts_ns, _, address, *_ in lock_events(profile))
            if profile.has("slices"):
                rows = collector_slices(profile, "name", "args")
                sightings.update((object_address(args), start) for start, _, name, args in rows if name == "finalizer")
        self._found = find_allocations(profile, sorted(sightings))

    def at(self, address: int, ts_ns: int) -> AllocatedObject:
        """The object that was at an address at a time."""
        return self._found.get((address, ts_ns)) or AllocatedObject(None, address, None)


def object_address(args: str) -> int:
    """The address of the object in the arguments of a slice, which are `["0x7f44"]`."""
    return int(json.loads(args)[0], 16)


def find_allocations(
    profile: RuntimeProfile, sightings: list[tuple[int, int]]
) -> dict[tuple[int, int], AllocatedObject]:
    """Objects by `(address, time)`; those whose allocation was not recorded are left out."""
    if not sightings:
        return {}
    types = type_names(profile)
    origins = Columns(profile.object_origins(sightings))
    names = ("type_id", "ts_ns", "object_address")
    rows = zip(sightings, *(origins[name] for name in names), strict=True)
    return {
        where: AllocatedObject(types.get(type_id), address, allocated)
        for where, type_id, allocated, address in rows
        if allocated is not None
    }


def type_names(profile: TableProfile) -> dict[int | None, str]:
    """Names of types by key."""
    types = Columns(profile.tables["types"])
    return dict(zip(types["type_id"], types["name"], strict=True))
