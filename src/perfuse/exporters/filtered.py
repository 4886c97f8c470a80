"""Targets whose files are made of stacks, to which filters of stacks apply."""

import os
from typing import Any

from perfuse.errors import UsageError
from perfuse.exporters.registry import target_for, target_named

OF_STACKS = ("html", "svg", "pprof", "collapsed")
"""Targets that contain stacks only."""
OF_SAMPLES = (*OF_STACKS, "firefox", "speedscope", "chrome", "perfetto", "dot")
"""Targets that contain stacks where no calls were recorded: these are on timelines."""


def refuse_filters(has_traces: bool, to: str | None, path: Any) -> None:
    """Checks that a filter of stacks applies to all that a target contains.

    Args:
        has_traces: Whether calls were recorded.
        to: Name of the target; None for that of the path.
        path: The file.

    Raises:
        UsageError: It does not; files would contain what the filter takes out.
    """
    target = target_for(os.fspath(path)) if to is None else target_named(to)
    known = OF_STACKS if has_traces else OF_SAMPLES
    if target.name not in known:
        what = "the single calls that" if has_traces and target.name in OF_SAMPLES else "what"
        raise UsageError(
            f"filters of stacks do not select {what} {target.name} contains",
            hint=f"{', '.join(known)} take them; --between and --thread select calls",
        )
