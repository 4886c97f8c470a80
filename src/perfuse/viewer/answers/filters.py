"""Filters of stacks in requests: the options of the command line, with the same names, in their order."""

import json
from typing import TYPE_CHECKING, Any, get_args

from perfuse.errors import UsageError
from perfuse.filters.stacks import PLAIN_STEPS, STEPS, DuringKind, StackFilter
from perfuse.viewer.answers.parameters import Parameters, RequestError, as_request_error

if TYPE_CHECKING:
    from perfuse.viewer.session import Session

MOST_STEPS = 32
DURING = tuple(f"during-{kind}" for kind in get_args(DuringKind))


def stack_filter_of(parameters: Parameters) -> StackFilter:
    """The filter in parameter `filters`: a list in JSON of pairs, such as `[["only", "render"], ["jit-only", null]]`.

    `during-slice` and `during-marker` are the two forms of `--during`.

    Raises:
        RequestError: It is not such a list.
    """
    text = parameters.text("filters")
    if text is None:
        return StackFilter()
    try:
        pairs = json.loads(text)
    except (ValueError, RecursionError):
        pairs = None
    if not isinstance(pairs, list) or len(pairs) > MOST_STEPS or not all(map(_is_step, pairs)):
        raise RequestError(400, "bad_parameter", f"filters is a list of at most {MOST_STEPS} pairs of name and pattern")
    found = StackFilter()
    try:
        for name, pattern in pairs:
            if name in DURING:
                found = found.with_during(name.removeprefix("during-"), pattern or "")
            else:
                found = found.with_step(name, pattern if name not in PLAIN_STEPS else None)
    except UsageError as error:
        raise as_request_error(error) from error
    return found


def _is_step(pair: Any) -> bool:
    return (
        isinstance(pair, list)
        and len(pair) == 2
        and pair[0] in (*STEPS, *DURING)
        and (pair[1] is None or isinstance(pair[1], str))
    )


def filter_arguments(stack_filter: StackFilter) -> list[str]:
    """The options of a command that filters in the same way."""
    arguments = [part for one in stack_filter.during for part in ("--during", one.kind, one.pattern)]
    for one in stack_filter.steps:
        arguments += [f"--{one.step}"] if one.pattern is None else [f"--{one.step}", one.pattern]
    return arguments


def check_filter(session: "Session", stack_filter: StackFilter) -> None:
    """Checks that each step matches something in the whole recording; a part of it may have nothing of it.

    Raises:
        UsageError: A step matches nothing.
    """
    if not stack_filter:
        return

    def make() -> UsageError | None:
        try:
            session.profile.filtered(stack_filter).tables["samples"].to_arrow()
        except UsageError as error:
            return error
        return None

    error = session.cached(("checked-filter", stack_filter), make)
    if error is not None:
        raise error


def filters(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """Whether the parameter `filters` is valid; if not, why, with the nearest names."""
    try:
        check_filter(session, stack_filter_of(parameters))
    except (UsageError, RequestError) as error:
        return {"valid": False, "message": str(error), "hint": error.hint, "command": None}
    return {"valid": True, "message": None, "hint": None, "command": None}
