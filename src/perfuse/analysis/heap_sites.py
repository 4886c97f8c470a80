"""Where what is still there was made: allocation sites of living objects, handles that were never freed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfuse.profile import Profile


@dataclass(frozen=True, slots=True)
class Site:
    """Living objects of one type, allocated by one stack.

    Attributes:
        type: Their type; None where it is never described.
        num_objects: How many there are.
        size_bytes: Their own sizes.
        stack: Functions that were running, the innermost first; empty where no stack was taken.
        stack_id: Key in table `stacks`; None where no stack was taken.
    """

    type: str | None
    num_objects: int
    size_bytes: int
    stack: tuple[str, ...]
    stack_id: int | None


@dataclass(frozen=True, slots=True)
class LeakedHandles:
    """Handles of one kind that one stack made and nothing freed.

    Attributes:
        kind: `normal` and `pinned` keep their objects alive, `weak` and `weak_track_resurrection` do not.
        num_handles: How many there are.
        first_ns: When the first was made, on the profile's clock.
        last_ns: When the last was made.
        stack: Functions that were running, the innermost first; empty where no stack was taken.
        stack_id: Key in table `stacks`; None where no stack was taken.
        objects: Addresses their objects had when the handles were made, the first few.
    """

    kind: str
    num_handles: int
    first_ns: int
    last_ns: int
    stack: tuple[str, ...]
    stack_id: int | None
    objects: tuple[int, ...]

    @property
    def keeps_objects(self) -> bool:
        """Whether they keep their objects alive."""
        return not self.kind.startswith("weak")


def leaked_handles(profile: "Profile") -> list[LeakedHandles]:
    """Handles that were made and never freed, by kind and stack: those that keep objects alive first, then the most."""
    rows = profile.sql("""
        SELECT kind::VARCHAR, count(*), min(created_ns), max(created_ns), created_stack_id,
               list(object_address ORDER BY created_ns)[:5]
        FROM gc_handles WHERE created_ns IS NOT NULL AND destroyed_ns IS NULL
        GROUP BY kind, created_stack_id""").fetchall()
    stacks = stack_names(profile, [stack for *_, stack, _ in rows])
    handles = [
        LeakedHandles(kind, num, first, last, stacks.get(stack, ()), stack, tuple(objects))
        for kind, num, first, last, stack, objects in rows
    ]
    return sorted(handles, key=lambda one: (not one.keeps_objects, -one.num_handles, one.first_ns))


def stack_names(profile: "Profile", stack_ids: Iterable[int | None]) -> dict[int, tuple[str, ...]]:
    """Functions of some stacks, the innermost first."""
    wanted = sorted({stack for stack in stack_ids if stack is not None})
    if not wanted:
        return {}
    rows = profile.sql(f"""
        WITH RECURSIVE
            wanted AS (SELECT unnest({wanted}::UINTEGER[]) AS leaf),
            chain AS (
                SELECT leaf, 0 AS depth, stacks.parent_stack_id, stacks.frame_id
                FROM wanted JOIN stacks ON stacks.stack_id = leaf
                UNION ALL
                SELECT leaf, chain.depth + 1, stacks.parent_stack_id, stacks.frame_id
                FROM chain JOIN stacks ON stacks.stack_id = chain.parent_stack_id)
        SELECT leaf, list(coalesce(functions.name::VARCHAR, '[unknown]') ORDER BY chain.depth)
        FROM chain JOIN frames ON frames.frame_id = chain.frame_id
        LEFT JOIN functions ON functions.function_id = frames.function_id
        GROUP BY leaf""").fetchall()
    return {leaf: tuple(names) for leaf, names in rows}


def site_rows(profile: "Profile", sums: Sequence[tuple[str | None, int | None, int, int]]) -> list[Site]:
    """Sites with the names of their stacks, of `(type, stack_id, num_objects, size_bytes)`."""
    stacks = stack_names(profile, [stack for _, stack, _, _ in sums])
    return [
        Site(of, num, size, stacks.get(stack, ()) if stack is not None else (), stack) for of, stack, num, size in sums
    ]
