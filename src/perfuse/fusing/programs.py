"""Finds the programs whose instrumentation maps name the functions of call traces."""

import re
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path

from perfuse import _core
from perfuse.diagnostics import Diagnostic, diagnostic
from perfuse.errors import UnreadableInput
from perfuse.recording import Recording

Maps = Mapping[int, str | PathLike[str]]
"""Files by object number: the program is object 0, its libraries follow in the order they were loaded."""

_LOG = re.compile(r"xray-log\.(?P<program>.+)\.\w{6}(\.gz|\.zst)?$")


def find_maps(
    traces: Sequence[Recording], given: Maps, directories: Iterable[str | PathLike[str]]
) -> tuple[list[tuple[int, str]], list[Diagnostic]]:
    """The files that name the functions of traces.

    Args:
        traces: Recordings that have numbers for functions.
        given: The user's choice, which is taken as it is.
        directories: Directories to search besides those of the logs.

    Returns:
        Object numbers with their files, and diagnostics about how they were found.
    """
    if given or not traces:
        return [(number, fspath(path)) for number, path in sorted(given.items())], []
    programs = {trace.path: _program(trace, directories) for trace in traces}
    found = sorted({str(path) for path in programs.values() if path is not None})
    if len(found) != 1:
        # Of several programs, each would also name the functions in the other's logs.
        return [], [_unnamed(trace, found) for trace in traces]
    diagnostics = [
        _unnamed(trace, [])
        if programs[trace.path] is None
        else diagnostic("FU007", trace.path, f"functions are named by {found[0]}")
        for trace in traces
    ]
    return [(0, found[0])], diagnostics


def _program(trace: Recording, directories: Iterable[str | PathLike[str]]) -> Path | None:
    name = _LOG.match(Path(trace.path).name)
    if name is None:
        return None
    searched = [Path(trace.path).parent, *map(Path, directories)]
    candidates = (directory / (name["program"] + suffix) for directory in searched for suffix in ("", ".o"))
    return next((path for path in candidates if path.is_file() and _has_map(path)), None)


def _has_map(path: Path) -> bool:
    try:
        _core.InstrumentationMap.open(path, [], False)
    except UnreadableInput:
        return False
    return True


def _unnamed(trace: Recording, programs: Sequence[str]) -> Diagnostic:
    why = f"several programs were found ({', '.join(programs)})" if programs else "no instrumentation map is known"
    return diagnostic("FU008", trace.path, f"functions have numbers instead of names: {why}")
