"""Finds the programs whose instrumentation maps name the functions of call traces, and numbers their libraries."""

import re
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path

from perfuse import _core
from perfuse.diagnostics import Diagnostic, diagnostic
from perfuse.errors import UsageError
from perfuse.fusing.following import Follow, Maps
from perfuse.fusing.object_numbers import (
    FUNCTION_BITS,
    Fit,
    LoadOrder,
    has_map,
    option_text,
)
from perfuse.recording import Recording
from perfuse.table import Columns

_LOG = re.compile(r"xray-log\.(?P<program>.+)\.\w{6}(\.gz|\.zst|\.xz)?$")
LAST_OBJECT = 255


def require_maps(maps: Maps) -> None:
    """Opens the files that name functions, before any recording is read.

    Raises:
        UnreadableInput: One cannot be read, or has no instrumentation map.
    """
    for path in maps.values() if isinstance(maps, Mapping) else maps:
        _core.InstrumentationMap.open(path, [], False)


def find_maps(
    traces: Sequence[Recording], given: Maps, directories: Iterable[str | PathLike[str]], follow: Follow = "all"
) -> tuple[list[tuple[int, str]], list[Diagnostic]]:
    """The files that name the functions of traces.

    Args:
        traces: Recordings that have numbers for functions.
        given: The user's choice. Numbers are taken as they are, and compared with the order of constructors.
        directories: Directories to search besides those of the logs.
        follow: Whether programs are searched beside the logs (`all`), in `directories` alone (`named`) or not at all.

    Returns:
        Object numbers with their files, and diagnostics about how they were found.

    Raises:
        UsageError: There are more files than XRay has numbers.
    """
    searched = list(directories)
    if given or not traces:
        return _number(traces, given, searched, follow)
    programs = {trace.path: _program(trace, searched, follow) for trace in traces}
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
    numbered, notes = _number(traces, found, searched, follow)
    return numbered, diagnostics + notes


def _number(
    traces: Sequence[Recording], given: Maps, directories: Sequence[str | PathLike[str]], follow: Follow
) -> tuple[list[tuple[int, str]], list[Diagnostic]]:
    """Numbers libraries that have no number, and checks the numbers of those that have one."""
    numbers = {n: fspath(path) for n, path in given.items()} if isinstance(given, Mapping) else {}
    files = [] if isinstance(given, Mapping) else [fspath(path) for path in given]
    program = files[0] if files else numbers.get(0)
    libraries = files[1:] or [path for n, path in sorted(numbers.items()) if n > 0]
    largest = _largest_ids(traces)
    if not libraries and not any(largest):
        return sorted({**numbers, **({0: program} if program else {})}.items()), []
    order = [] if program is None else LoadOrder(program, libraries, directories, follow).instrumented
    expected = {path: n for n, path in enumerate(order, 1)}
    if files or not libraries:
        unplaced = [one for one in libraries if one not in expected]
        files = [str(program), *order, *unplaced]
        if len(files) > LAST_OBJECT + 1:
            raise UsageError(f"{len(files)} objects are too many: XRay numbers objects from 0 to {LAST_OBJECT}")
        numbers = dict(enumerate(files))
        uncertain = Fit({n: path for n, path in numbers.items() if path in unplaced}, largest).numbers
        numbers |= uncertain
    else:
        if any(expected.get(path, n) != n for n, path in numbers.items()):
            why = "constructors run in another order, by the libraries that the files need"
            return _other_order(traces, numbers, why, {0: str(program), **dict(enumerate(order, 1))})
        uncertain = {n: path for n, path in numbers.items() if n and path not in expected}
        fitting = Fit(uncertain, largest).numbers
        if fitting != uncertain:
            why = "the log has functions that these libraries do not have, and this order fits"
            return _other_order(traces, numbers, why, {**numbers, **fitting})
    return sorted(numbers.items()), [
        diagnostic("FU013", trace.path, f"{_names(uncertain, pairs)} fit the log in either order")
        for trace in traces
        for pairs in [Fit(uncertain, largest).exchangeable]
        if pairs
    ]


def _other_order(
    traces: Sequence[Recording], numbers: Mapping[int, str], why: str, proposed: Mapping[int, str]
) -> tuple[list[tuple[int, str]], list[Diagnostic]]:
    message = f"{why}: {option_text(proposed)}"
    return sorted(numbers.items()), [diagnostic("FU012", trace.path, message) for trace in traces]


def _names(files: Mapping[int, str], pairs: Sequence[tuple[int, int]]) -> str:
    numbers = sorted({n for pair in pairs for n in pair})
    return ", ".join(f"{n}={files[n]}" for n in numbers)


def _largest_ids(traces: Sequence[Recording]) -> dict[int, int]:
    """The largest function number of each object in the logs, as far as logs have the object's number."""
    largest: dict[int, int] = {}
    for trace in traces:
        if trace.format != "xray":
            continue
        for native_id in Columns(trace.tables["functions"])["native_id"]:
            number, function = native_id >> FUNCTION_BITS & LAST_OBJECT, native_id & ((1 << FUNCTION_BITS) - 1)
            largest[number] = max(largest.get(number, 0), function)
    return largest


def _program(trace: Recording, directories: Iterable[str | PathLike[str]], follow: Follow) -> Path | None:
    name = _LOG.match(Path(trace.path).name)
    if name is None:
        return None
    searched = [*([Path(trace.path).parent] if follow == "all" else []), *map(Path, directories)]
    candidates = (directory / (name["program"] + suffix) for directory in searched for suffix in ("", ".o"))
    return next((path for path in candidates if path.is_file() and has_map(path)), None)


def _unnamed(trace: Recording, programs: Sequence[str]) -> Diagnostic:
    why = f"several programs were found ({', '.join(programs)})" if programs else "no instrumentation map is known"
    return diagnostic("FU008", trace.path, f"functions have numbers instead of names: {why}")
