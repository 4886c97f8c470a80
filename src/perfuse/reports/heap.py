"""What heap shots tell: gathered once, then printed or given as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from perfuse.analysis.handles import LeakedHandles, leaked_handles
from perfuse.analysis.heap import Heap, snapshots
from perfuse.analysis.heap_rows import ClassGrowth, HeapClass, HeapObject, LiveObjectSite, RootPath
from perfuse.analysis.heap_sums import SnapshotSize, SnapshotSums
from perfuse.reports.json_text import address_value, is_address

if TYPE_CHECKING:
    from perfuse.profile import Profile

MOST_PATHS = 5


@dataclass(frozen=True, slots=True)
class Retainer:
    """An object that no single other one keeps alive, and why it is."""

    object: HeapObject
    path: RootPath | None


@dataclass(frozen=True, slots=True)
class HeapReport:
    """The heap shots of a file, of several that with the last one: this by class, and what grew since the first."""

    shots: list[SnapshotSize]
    heap: Heap
    classes: list[HeapClass]
    num_classes: int
    retainers: list[Retainer]
    unreachable: list[HeapObject]
    growth: list[ClassGrowth]
    num_grown: int
    sites: list[LiveObjectSite]
    leaked_handles: list[LeakedHandles]

    def as_json(self) -> dict[str, Any]:
        """The contract of `heap` in `report --json`."""
        heap = self.heap
        facts = ("num_objects", "size_bytes", "num_references", "num_roots", "has_roots", "num_unreachable")
        more = ("unreachable_bytes", "num_dangling", "num_missed_roots", "num_repeated", "is_complete")
        return {
            "shots": [one.as_json() for one in self.shots],
            "is_whole": True,
            "last": {
                "snapshot_id": heap.snapshot.snapshot_id,
                **{name: getattr(heap, name) for name in (*facts, *more)},
                "classes": [_row(one) for one in self.classes],
                "retainers": [
                    {**_row(one.object), "path": None if one.path is None else _path(one.path)}
                    for one in self.retainers
                ],
                "unreachable": [_row(one) for one in self.unreachable],
                "sites": [_row(one) for one in self.sites],
            },
            "growth": [_row(one) for one in self.growth],
            "leaked_handles": [_row(one) for one in self.leaked_handles],
        }


def heap_report(profile: Profile, limit: int = 10) -> HeapReport | None:
    """Gathers what heap shots tell; None where there are none.

    Args:
        profile: Of any recordings.
        limit: Rows of a list; all with 0.
    """
    every = snapshots(profile)
    if not every:
        return None
    # Of one file: programs have no objects in common.
    shots = [shot for shot in every if shot.source_id == every[-1].source_id]
    sums = SnapshotSums(profile)
    # One shot is in memory at a time: they may be as large as the program was.
    earlier = profile.heap(shots[0].snapshot_id).classes() if len(shots) > 1 else []
    heap = profile.heap(shots[-1].snapshot_id)
    growth = heap.growth(shots[0], earlier) if len(shots) > 1 else []
    classes = heap.classes()
    retainers = heap.dominated(limit=min(limit or MOST_PATHS, MOST_PATHS))
    return HeapReport(
        shots=[sums.size(shot) for shot in shots],
        heap=heap,
        classes=classes[: limit or None],
        num_classes=len(classes),
        retainers=[Retainer(one, heap.path_to_root(one.address)) for one in retainers],
        unreachable=heap.unreachable(limit or None),
        growth=growth[: limit or None],
        num_grown=len(growth),
        sites=heap.sites(limit or None),
        leaked_handles=leaked_handles(profile, heap),
    )


def _row(one: Any) -> dict[str, Any]:
    return {name: address_value(value) if is_address(name) else value for name, value in asdict(one).items()}


def _path(path: RootPath) -> dict[str, Any]:
    return {
        "root": None if path.root is None else {**_row(path.root), "text": str(path.root)},
        "steps": [_row(step) for step in path.steps],
    }
