"""Which objects exceptions, locks and finalizers are about: types told by the allocations, over moves."""

import json
from dataclasses import dataclass

from perfuse.analysis.profiles import UNSELECTED, RuntimeProfile, TableProfile, read_selected
from perfuse.table import Columns


@dataclass(frozen=True, slots=True)
class KnownObject:
    """An object, by its allocation.

    Attributes:
        type_name: Its type; None where neither it nor its allocation was recorded.
        object_address: The address it was allocated at; that where it was met, where its allocation was not recorded.
        allocated_ns: When; None where that was not recorded.
    """

    type_name: str | None
    object_address: int
    allocated_ns: int | None


class Objects:
    """The objects that a profile's throws, locks and finalizers name, all found in one pass over the allocations."""

    def __init__(self, profile: RuntimeProfile) -> None:
        asked: set[tuple[int, int]] = set()
        if profile.has("allocations"):
            where = ("object_address", "ts_ns")
            if profile.has("exceptions"):
                asked.update(read_selected(profile, "exceptions", *where, kinds=["throw"], **UNSELECTED))
            if profile.has("lock_events"):
                asked.update(read_selected(profile, "lock_events", *where, **UNSELECTED))
            if profile.has("slices"):
                rows = read_selected(profile, "slices", "name", "args", "start_ns", kinds=["gc"], **UNSELECTED)
                asked.update((object_address(args), start) for name, args, start in rows if name == "finalizer")
        self._known = known_objects(profile, sorted(asked))

    def at(self, address: int, ts_ns: int) -> KnownObject:
        """The object that was at an address at a time."""
        return self._known.get((address, ts_ns)) or KnownObject(None, address, None)


def object_address(args: str) -> int:
    """The object that a slice is about: its arguments are `["0x7f44"]`."""
    return int(json.loads(args)[0], 16)


def known_objects(profile: RuntimeProfile, asked: list[tuple[int, int]]) -> dict[tuple[int, int], KnownObject]:
    """Objects by `(address, time)`; those whose allocation was not recorded are left out."""
    if not asked:
        return {}
    types = type_names(profile)
    origins = Columns(profile.object_origins(asked))
    names = ("type_id", "ts_ns", "object_address")
    rows = zip(asked, *(origins[name] for name in names), strict=True)
    return {
        where: KnownObject(types.get(type_id), address, allocated)
        for where, type_id, allocated, address in rows
        if allocated is not None
    }


def type_names(profile: TableProfile) -> dict[int | None, str]:
    """Names of types by key."""
    types = Columns(profile.tables["types"])
    return dict(zip(types["type_id"], types["name"], strict=True))
