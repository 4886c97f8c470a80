"""Targets whose files are made of stacks, to which filters of stacks apply."""

import os
from dataclasses import replace
from typing import Any

from perfuse.errors import UsageError
from perfuse.exporters.registry import Target, target_for, target_named

OF_SUMS = ("html", "svg", "pprof", "otlp", "collapsed", "cpuprofile")
"""Targets that contain stacks only, also sums by stack, as of recorded calls."""
OF_STACKS = (*OF_SUMS, "perf-script")
"""Targets that contain stacks only."""
OF_SAMPLES = (*OF_STACKS, "firefox", "jslb", "speedscope", "chrome", "perfetto", "dot")
"""Targets that contain stacks where no calls were recorded: these are on timelines."""
OF_CALLS = ("chrome", "perfetto", "speedscope")
"""Targets with timelines of calls, of which those of a function can be selected."""


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
        names = ", ".join(OF_SUMS if has_traces else known)
        what = "the single calls that" if has_traces and target.name in OF_SAMPLES else "what"
        raise UsageError(
            f"filters of stacks do not select {what} {target.name} contains",
            hint=f"{names} take them; --between, --thread and --process select calls",
        )


def of_function(profile: Any, target: Target, pattern: str) -> tuple[Any, dict[str, Any]]:
    """The profile with only the calls of matching functions and what these call, and the options of a target for it.

    Files of stacks begin at these functions; CSV has these functions alone.

    Raises:
        UsageError: No function matches, or the target contains neither calls nor stacks.
    """
    if target.name == "csv":
        return profile, {"function": pattern}
    is_timeline = profile.has("call_events") and target.name in OF_CALLS
    if is_timeline and not (target.name == "speedscope" and profile.has_samples):
        from perfuse.analysis.slow_calls import matching_functions

        keys, _ = matching_functions(profile, pattern)
        return profile._selected(replace(profile.selection, function_ids=tuple(keys))), {}
    if target.name not in (OF_STACKS if profile.has_traces else OF_SAMPLES):
        stacks = OF_SUMS if profile.has_traces else OF_STACKS
        raise UsageError(
            f"--function does not select what {target.name} contains",
            hint=f"{', '.join((*OF_CALLS, *stacks, 'csv'))} take it",
        )
    return profile.root(pattern), {}
