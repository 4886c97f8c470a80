"""What grew between two heap shots."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfuse.analysis.heap import HeapClass

Changes = dict[int | None, tuple[int, int, int, int]]
"""By `type_id`: objects that are new, their bytes, objects that are gone, theirs."""


@dataclass(frozen=True, slots=True)
class ClassGrowth:
    """A type in two heap shots; numbers of the earlier shot, then of the later one.

    Attributes:
        type: Its name; None for all objects whose type is never described.
        num_objects: Objects.
        size_bytes: Their own sizes.
        retained_bytes: What would go with all of them.
        num_new: Objects of the later shot that the earlier one did not have, wherever they were then.
        new_bytes: Their sizes.
        num_gone: Objects of the earlier shot that the later one does not have.
        gone_bytes: Their sizes.
    """

    type: str | None
    num_objects: tuple[int, int]
    size_bytes: tuple[int, int]
    retained_bytes: tuple[int, int]
    num_new: int
    new_bytes: int
    num_gone: int
    gone_bytes: int

    @property
    def retained_growth_bytes(self) -> int:
        """How much more its objects retain."""
        return self.retained_bytes[1] - self.retained_bytes[0]


def class_growth(before: "Iterable[HeapClass]", after: "Iterable[HeapClass]", changes: Changes) -> list[ClassGrowth]:
    """Types that changed, those first that retain more than before; of as much, those that are larger themselves."""
    earlier, later = ({one.type_id: one for one in classes} for classes in (before, after))
    rows = []
    for type_id in earlier | later:
        first, last = earlier.get(type_id), later.get(type_id)
        either = last or first
        row = ClassGrowth(
            either.type if either else None,
            (first.num_objects if first else 0, last.num_objects if last else 0),
            (first.size_bytes if first else 0, last.size_bytes if last else 0),
            (first.retained_bytes if first else 0, last.retained_bytes if last else 0),
            *changes.get(type_id, (0, 0, 0, 0)),
        )
        if row.num_new or row.num_gone or row.retained_growth_bytes:
            rows.append(row)
    rows.sort(key=lambda row: (-row.retained_growth_bytes, row.size_bytes[0] - row.size_bytes[1], row.type or ""))
    return rows
