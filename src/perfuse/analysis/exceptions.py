"""Exceptions: their types and stacks, and the handlers that ran."""

from perfuse.analysis.functions import Backtrace, FunctionNames, backtraces
from perfuse.analysis.objects import Objects
from perfuse.analysis.profiles import RuntimeProfile, read_selected
from perfuse.value_class import value_class

CLAUSES = ("catch", "filter", "finally", "fault")
"""Kinds of handlers."""


@value_class
class ThrowSite:
    """Exceptions of a type thrown from one place.

    Attributes:
        type_name: Their type; None where their allocation was not recorded.
        backtrace: Functions, outermost first; empty where none was taken.
        count: Number of exceptions.
    """

    type_name: str | None
    backtrace: Backtrace
    count: int


@value_class
class Handler:
    """Handlers that ran in a function.

    Attributes:
        kind: `catch`, `filter`, `finally` or `fault`.
        function: The function that contains them.
        count: Number of times.
    """

    kind: str
    function: str
    count: int


@value_class
class Exceptions:
    """Exceptions of the selected threads and time.

    Attributes:
        count: Number of exceptions thrown.
        by_type: Exceptions of each type, the most frequent first; None for those of unknown type.
        by_site: By type and the functions of the stack.
        clauses: Handlers that ran, by kind.
        handlers: By kind and function.
    """

    count: int
    by_type: list[tuple[str | None, int]]
    by_site: list[ThrowSite]
    clauses: dict[str, int]
    handlers: list[Handler]


def exceptions(profile: RuntimeProfile, objects: Objects) -> Exceptions:
    """The exceptions of a profile by type and stack, and handlers by function."""
    rows = list(read_selected(profile, "exceptions", "object_address", "ts_ns", "stack_id", kinds=["throw"]))
    sites: dict[tuple[str | None, int | None], int] = {}
    types: dict[str | None, int] = {}
    for address, ts_ns, stack in rows:
        name = objects.at(address or 0, ts_ns).type_name
        sites[name, stack] = sites.get((name, stack), 0) + 1
        types[name] = types.get(name, 0) + 1
    stacks = backtraces(profile, "exceptions", [stack for _, stack in sites])
    places: dict[tuple[str | None, Backtrace], int] = {}
    for (type_name, stack), count in sites.items():
        place = type_name, stacks[stack]
        places[place] = places.get(place, 0) + count
    names = FunctionNames(profile.tables)
    clauses = dict.fromkeys(CLAUSES, 0)
    handlers: dict[tuple[str, str], int] = {}
    for kind, function, count in profile.row_counts("exceptions", ("kind", "function_id"), kinds=CLAUSES):
        clauses[kind] += count
        name = "[unknown]" if function is None else names.name(function)
        handlers[kind, name] = handlers.get((kind, name), 0) + count
    return Exceptions(
        count=len(rows),
        by_type=sorted(types.items(), key=lambda item: (-item[1], item[0] or "")),
        by_site=sorted(
            (ThrowSite(*place, count) for place, count in places.items()),
            key=lambda one: (-one.count, one.type_name or "", one.backtrace),
        ),
        clauses=clauses,
        handlers=sorted(
            (Handler(*where, count) for where, count in handlers.items()),
            key=lambda one: (-one.count, one.kind, one.function),
        ),
    )
