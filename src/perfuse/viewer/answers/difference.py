"""Two selections, or a selection and another recording, compared function by function."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from perfuse.filters.names import module_name
from perfuse.viewer.answers.filters import filter_arguments
from perfuse.viewer.answers.functions import weights_of
from perfuse.viewer.answers.parameters import Parameters, page_of
from perfuse.viewer.answers.selected import Selected, selected
from perfuse.viewer.answers.tree import recording_of

if TYPE_CHECKING:
    from perfuse.analysis.weights import FunctionWeight
    from perfuse.viewer.session import Session

SORTS = ("change", "a", "b", "name")


class _OfOther(Parameters):
    """The parameters of the other selection: those that start with `other.`."""

    def __init__(self, parameters: Parameters) -> None:
        self._inner = parameters

    def text(self, name: str) -> str | None:
        """The value of `other.NAME`; event and filters are those of both."""
        return self._inner.text(name if name in ("event", "filters") else f"other.{name}")


def difference(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """Weights of functions in a selection (`a`) and in another (`b`): in units, and as shares of each whole.

    With `other.recording=base` the other selection is of the other recording.
    """
    other = _OfOther(parameters)
    a = selected(session, parameters, takes_filters=True)
    b = selected(recording_of(session, other), other, takes_filters=True)
    _refuse_other_functions(a, b)
    sort = parameters.choice("sort", SORTS)
    weight = parameters.choice("weight", ("self", "total"))
    whole_a, of_a = _weights(a)
    whole_b, of_b = _weights(b)
    rows = []
    for rows_a, rows_b in _matched(a, of_a, b, of_b):
        one = (rows_a or rows_b)[0]
        in_a, in_b = (sum(_weight(row, weight) for row in of) for of in (rows_a, rows_b))
        shares = in_a / whole_a if whole_a else 0.0, in_b / whole_b if whole_b else 0.0
        if in_a or in_b:
            rows.append(
                {
                    "name": one.name,
                    "module": module_name(one.module) if one.module else None,
                    "path": one.path,
                    "line": one.line,
                    "origin": one.origin,
                    "a": in_a,
                    "b": in_b,
                    "a_share": shares[0],
                    "b_share": shares[1],
                    "delta_share": shares[1] - shares[0],
                }
            )
    keys = {
        "change": lambda row: (-abs(row["delta_share"]), row["name"]),
        "a": lambda row: (-row["a"], row["name"]),
        "b": lambda row: (-row["b"], row["name"]),
        "name": lambda row: row["name"],
    }
    rows.sort(key=keys[sort])
    found = weights_of(a) or weights_of(b)
    event = session.events()[0] if found is None else found.event
    page = list(page_of(rows, parameters))
    return {
        "a": {"total": whole_a},
        "b": {"total": whole_b},
        "num": len(rows),
        "rows": page,
        "unit": event.unit,
        "event": event.name,
        **_command(a, b),
    }


def _command(a: Selected, b: Selected) -> dict[str, str | None]:
    """The equivalent command where there is one."""
    if a.session is b.session:
        return {"command": None, "command_note": "commands compare recordings; this compares parts of one"}
    if a.key[:3] != b.key[:3] or a.session.profile.selection != b.session.profile.selection:
        return {"command": None, "command_note": "commands compare the same part of both recordings"}
    event = [] if a.event is None else ["--event", a.event]
    return {"command": a.session.diff_command(*filter_arguments(a.stack_filter), *event)}


_Rows: TypeAlias = "list[FunctionWeight]"


def _refuse_other_functions(a: Selected, b: Selected) -> None:
    """Checks that the filter selects the same functions of two recordings.

    Raises:
        UsageError: A text is the name of a function of one, and a part of names of the other.
    """
    if a.session is b.session or not a.stack_filter:
        return
    from perfuse.analysis.run_selection import other_functions_error

    sides = []
    for part, name in ((a, "this recording"), (b, "the other")):
        apply = partial(part.stack_filter.apply, part.session.profile.tables)
        sides.append((name, part.session.cached(("applied-filter", part.stack_filter), apply).partly_named))
    for (whole, of_whole), (other, of_other) in (sides, sides[::-1]):
        for step in a.stack_filter.steps:
            if step in of_other and step not in of_whole:
                raise other_functions_error(step, whole, other, of_other[step])


def _weights(part: Selected) -> tuple[int, _Rows]:
    found = weights_of(part)
    return (0, []) if found is None else (found.event.weight, found.functions())


def _matched(a: Selected, of_a: _Rows, b: Selected, of_b: _Rows) -> Iterator[tuple[_Rows, _Rows]]:
    """The rows of each function in both selections; of two recordings as `perfuse diff` has them."""
    if a.session is b.session:
        by_identity: dict[object, tuple[_Rows, _Rows]] = {}
        for side, rows in enumerate((of_a, of_b)):
            for row in rows:
                by_identity.setdefault((row.identity, row.kind), ([], []))[side].append(row)
        yield from by_identity.values()
        return
    from perfuse.analysis.diff import match_entries
    from perfuse.analysis.function_graph import unsampled_functions

    sides = []
    for part, rows in ((a, of_a), (b, of_b)):
        profile = part.session.profile
        declared = part.session.cached(("declared-functions",), partial(unsampled_functions, profile, set()))
        identities = dict.fromkeys(row.identity for row in rows)
        sides.append([*(row.identity for row in rows), *(one for one in declared if one not in identities)])
    for entry in match_entries(*sides):
        rows_a, rows_b = (
            [of[place] for place in places if place < len(of)] for of, places in ((of_a, entry.base), (of_b, entry.new))
        )
        if rows_a or rows_b:
            yield rows_a, rows_b


def _weight(row: "FunctionWeight", weight: str) -> int:
    return row.self_weight if weight == "self" else row.total_weight
