"""Stacks by key, as the names of their functions."""

from collections.abc import Iterable

from perfuse.analysis.columns import Columns
from perfuse.analysis.runtime import Managed
from perfuse.analysis.traced import Names

Backtrace = tuple[str, ...]
"""Names of functions, outermost first."""


def backtraces(profile: Managed, stack_ids: Iterable[int | None]) -> dict[int | None, Backtrace]:
    """The stacks of some keys of events other than allocations; none for None."""
    wanted = {key for key in stack_ids if key is not None}
    if not wanted:
        return {None: ()}
    stacks, frames = Columns(profile.event_stacks("stacks")), Columns(profile.event_stacks("frames"))
    names = Names(profile.tables)
    functions = dict(zip(frames["frame_id"], frames["function_id"], strict=True))
    rows = zip(stacks["stack_id"], stacks["parent_stack_id"], stacks["frame_id"], strict=True)
    known = {key: (parent, frame) for key, parent, frame in rows}
    found: dict[int | None, Backtrace] = {None: ()}
    for key in wanted:
        path, at = [], key
        while at in known:
            at, frame = known[at]
            function = functions[frame]
            path.append("[unknown]" if function is None else names.name(function))
        found[key] = tuple(reversed(path))
    return found


def allocation_backtraces(profile: Managed, stack_ids: Iterable[int | None]) -> dict[int | None, Backtrace]:
    """The stacks of any keys; none for None."""
    wanted = sorted({key for key in stack_ids if key is not None})
    if not wanted:
        return {None: ()}
    keys = ", ".join(f"({key})" for key in wanted)
    rows = profile.sql(f"""
        WITH RECURSIVE up AS (
            SELECT k AS wanted, k AS stack_id, 0 AS up FROM (VALUES {keys}) AS t(k)
            UNION ALL
            SELECT up.wanted, s.parent_stack_id, up + 1 FROM up JOIN stacks s ON s.stack_id = up.stack_id
            WHERE s.parent_stack_id IS NOT NULL
        )
        SELECT wanted, list(coalesce(fn.name::VARCHAR, '[unknown]') ORDER BY up DESC)
        FROM up JOIN stacks s ON s.stack_id = up.stack_id JOIN frames f ON f.frame_id = s.frame_id
        LEFT JOIN functions fn ON fn.function_id = f.function_id GROUP BY 1
    """).fetchall()
    return {None: (), **{key: tuple(names) for key, names in rows}}


def innermost(backtrace: Backtrace) -> str:
    """What a reader looks for in a backtrace: its innermost method that the runtime did not make up itself."""
    for name in reversed(backtrace):
        if not name.startswith("("):
            return name
    return backtrace[-1] if backtrace else "(no backtrace)"
