"""What was thrown, where, and what handled it."""

from dataclasses import dataclass

from perfuse.analysis.backtraces import Backtrace, backtraces
from perfuse.analysis.objects import Objects
from perfuse.analysis.runtime import Managed, selected


@dataclass(frozen=True, slots=True)
class ThrowSite:
    """Exceptions of a type thrown from one stack.

    Attributes:
        type_name: Their type; None where their allocation was not recorded.
        backtrace: Functions, outermost first; empty where none was taken.
        count: How many.
    """

    type_name: str | None
    backtrace: Backtrace
    count: int


@dataclass(frozen=True, slots=True)
class Handler:
    """Handlers that ran in a function.

    Attributes:
        kind: `catch`, `filter`, `finally` or `fault`.
        function: The function they are in.
        count: How often.
    """

    kind: str
    function: str
    count: int


@dataclass(frozen=True, slots=True)
class Exceptions:
    """Everything thrown in the selected threads and time.

    Attributes:
        count: Throws.
        by_type: Throws of each type, the most frequent first; those of unknown type are under None.
        by_site: By type and stack.
        clauses: Handlers that ran, by kind.
        handlers: By kind and function.
    """

    count: int
    by_type: list[tuple[str | None, int]]
    by_site: list[ThrowSite]
    clauses: dict[str, int]
    handlers: list[Handler]


def exceptions(profile: Managed, objects: Objects) -> Exceptions:
    """Throws by type and stack, handlers by function."""
    rows = profile.sql(f"""
        SELECT object_address, ts_ns, stack_id FROM exceptions WHERE kind = 'throw' AND {selected(profile)}
    """).fetchall()
    sites: dict[tuple[str | None, int | None], int] = {}
    types: dict[str | None, int] = {}
    for address, ts_ns, stack in rows:
        name = objects.at(address or 0, ts_ns).type_name
        sites[name, stack] = sites.get((name, stack), 0) + 1
        types[name] = types.get(name, 0) + 1
    stacks = backtraces(profile, [stack for _, stack in sites])
    handlers = profile.sql(f"""
        SELECT e.kind::VARCHAR, coalesce(f.name::VARCHAR, '[unknown]'), count(*) AS n
        FROM exceptions e LEFT JOIN functions f USING (function_id)
        WHERE e.kind <> 'throw' AND {selected(profile)} GROUP BY 1, 2 ORDER BY n DESC, 1, 2
    """).fetchall()
    clauses = dict.fromkeys(("catch", "filter", "finally", "fault"), 0)
    for kind, _, count in handlers:
        clauses[kind] += count
    return Exceptions(
        count=len(rows),
        by_type=sorted(types.items(), key=lambda item: (-item[1], item[0] or "")),
        by_site=sorted(
            (ThrowSite(name, stacks[stack], count) for (name, stack), count in sites.items()),
            key=lambda one: (-one.count, one.type_name or "", one.backtrace),
        ),
        clauses=clauses,
        handlers=[Handler(*row) for row in handlers],
    )
