"""What large heap shots tell in an overview: gathered once, then printed or given as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from perfuse.analysis.handles import LeakedHandles, leaked_handles
from perfuse.analysis.heap import snapshots
from perfuse.analysis.heap_sums import ClassSize, SnapshotSize, SnapshotSums, changed_classes

if TYPE_CHECKING:
    from perfuse.profile import Profile

MOST_OBJECTS = 250_000
"""Of larger shots an overview does not tell what objects retain: up to here that takes a tenth of a second or two,
which nobody waits for, and from there on it soon takes several times as long as all the rest."""


@dataclass(frozen=True, slots=True)
class HeapOverview:
    """What the heap shots of a file hold: the last by type, and what grew since the first; not what retains what.

    Attributes:
        shots: All of them.
        num_references: References of the last.
        classes: Types of the last, the largest first.
        growth: Types that changed since the first, the most growth first.
    """

    shots: list[SnapshotSize]
    num_references: int
    classes: list[ClassSize]
    num_classes: int
    growth: list[ClassSize]
    num_grown: int
    leaked_handles: list[LeakedHandles]

    def as_json(self) -> dict[str, Any]:
        """The contract of `heap` in `report --json`."""
        last = self.shots[-1]
        return {
            "shots": [one.as_json() for one in self.shots],
            "is_whole": False,
            "last": {
                "snapshot_id": last.snapshot.snapshot_id,
                "num_objects": last.num_objects,
                "size_bytes": last.size_bytes,
                "num_references": self.num_references,
                "is_complete": last.snapshot.end_ns is not None,
                "classes": [
                    {**asdict(one), "num_objects": one.num_objects[1], "size_bytes": one.size_bytes[1]}
                    for one in self.classes
                ],
            },
            "growth": [
                {"type": one.type, "num_objects": one.num_objects, "size_bytes": one.size_bytes} for one in self.growth
            ],
            "leaked_handles": [asdict(one) for one in self.leaked_handles],
        }


def large_shots(profile: Profile, limit: int, most_objects: int = MOST_OBJECTS) -> HeapOverview | None:
    """Gathers it; None where there are no shots, or the first and the last are not that large.

    Args:
        profile: Of any recordings.
        limit: Rows of a list; all with 0.
        most_objects: Objects of a shot that is not large.
    """
    every = snapshots(profile)
    if not every:
        return None
    sums = SnapshotSums(profile)
    shots = [sums.size(shot) for shot in every if shot.source_id == every[-1].source_id]
    if max(shots[0].num_objects, shots[-1].num_objects) <= most_objects:
        return None
    first, last = shots[0].snapshot, shots[-1].snapshot
    rows = sums.classes(first, last)
    classes = [row for row in rows if row.num_objects[1]]
    growth = changed_classes(rows) if len(shots) > 1 else []
    return HeapOverview(
        shots=shots,
        num_references=sums.num_references.get(last.snapshot_id, 0),
        classes=classes[: limit or None],
        num_classes=len(classes),
        growth=growth[: limit or None],
        num_grown=len(growth),
        leaked_handles=leaked_handles(profile) if profile.has("gc_handles") else [],
    )
