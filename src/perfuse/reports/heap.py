"""What heap shots tell: gathered once, then printed or given as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from perfuse.analysis.heap import Heap, HeapClass, HeapObject, Snapshot, snapshots
from perfuse.analysis.heap_growth import ClassGrowth
from perfuse.analysis.heap_paths import Path
from perfuse.analysis.heap_sites import LeakedHandles, Site, leaked_handles
from perfuse.reports.json_text import address_value, is_address

if TYPE_CHECKING:
    from perfuse.profile import Profile

MOST_PATHS = 5


@dataclass(frozen=True, slots=True)
class ShotSize:
    """A heap shot and what it holds."""

    snapshot: Snapshot
    num_objects: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Retainer:
    """An object that no single other one keeps alive, and why it is."""

    object: HeapObject
    path: Path | None


@dataclass(frozen=True, slots=True)
class HeapReport:
    """The heap shots of a file, of several that with the last one: this by class, and what grew since the first."""

    shots: list[ShotSize]
    heap: Heap
    classes: list[HeapClass]
    num_classes: int
    retainers: list[Retainer]
    unreachable: list[HeapObject]
    growth: list[ClassGrowth]
    num_grown: int
    sites: list[Site]

    def as_json(self) -> dict[str, Any]:
        """The contract of `heap` in `report --json`."""
        heap = self.heap
        facts = ("num_objects", "size_bytes", "num_references", "num_roots", "has_roots", "num_unreachable")
        more = ("unreachable_bytes", "num_dangling", "num_missed_roots", "num_repeated", "is_complete")
        return {
            "shots": [
                {**asdict(one.snapshot), "num_objects": one.num_objects, "size_bytes": one.size_bytes}
                for one in self.shots
            ],
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
        }


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """What a recording tells of objects that stay alive."""

    heap: HeapReport | None
    leaked_handles: list[LeakedHandles]

    def as_json(self) -> dict[str, Any]:
        """What `report --json` has of it: `heap` and `leaked_handles`, each where there is something to tell."""
        handles = [_row(one) for one in self.leaked_handles]
        return {
            **({"heap": self.heap.as_json()} if self.heap else {}),
            **({"leaked_handles": handles} if handles else {}),
        }


def memory_report(profile: Profile, limit: int = 10) -> MemoryReport | None:
    """Gathers what heap shots and handles tell; None where the recordings can tell of neither.

    Args:
        profile: Of any recordings.
        limit: Rows of a list; all with 0.
    """
    if not profile.has_heap_shots:
        return None
    heap = _heap_report(profile, limit)
    return MemoryReport(heap, leaked_handles(profile, heap.heap if heap else None))


def _heap_report(profile: Profile, limit: int = 10) -> HeapReport | None:
    every = snapshots(profile)
    if not every:
        return None
    # Of one file: programs have no objects in common.
    shots = [shot for shot in every if shot.source_id == every[-1].source_id]
    # One shot is in memory at a time: they may be as large as the program was.
    earlier = profile.heap(shots[0].snapshot_id).classes() if len(shots) > 1 else []
    heap = profile.heap(shots[-1].snapshot_id)
    growth = heap.growth(shots[0], earlier) if len(shots) > 1 else []
    sizes = profile.heap_sizes() if len(shots) > 1 else {shots[0].snapshot_id: (heap.num_objects, heap.size_bytes)}
    classes = heap.classes()
    retainers = heap.dominated(limit=min(limit or MOST_PATHS, MOST_PATHS))
    return HeapReport(
        shots=[ShotSize(shot, *sizes.get(shot.snapshot_id, (0, 0))) for shot in shots],
        heap=heap,
        classes=classes[: limit or None],
        num_classes=len(classes),
        retainers=[Retainer(one, heap.path_to_root(one.address)) for one in retainers],
        unreachable=heap.unreachable(limit or None),
        growth=growth[: limit or None],
        num_grown=len(growth),
        sites=heap.sites(limit or None),
    )


def _row(one: Any) -> dict[str, Any]:
    return {name: address_value(value) if is_address(name) else value for name, value in asdict(one).items()}


def _path(path: Path) -> dict[str, Any]:
    return {
        "root": None if path.root is None else {**_row(path.root), "text": str(path.root)},
        "steps": [_row(step) for step in path.steps],
    }
