"""Single slices: details, neighbours, the longest, and those of a name."""

from typing import TYPE_CHECKING, Any

from perfuse.filters.names import matcher
from perfuse.viewer.answers.parameters import Parameters, RequestError
from perfuse.viewer.answers.selected import Selected, selected

if TYPE_CHECKING:
    from perfuse.pictures.timeline import Slice, Symbol
    from perfuse.viewer.session import Session

MOST_SLICES = 1000
SHOWN_CHILDREN = 20


def slice_row(session: "Session", one: "Slice") -> dict[str, Any]:
    """A slice as answers contain it."""
    symbol = session.timeline.symbols[one.symbol]
    track = session.timeline.tracks[one.track]
    return {
        "track": one.track,
        "depth": one.depth,
        "index": one.position,
        "kind": track.kind,
        "thread": track.thread_id,
        "start_ns": one.start_ns - session.timeline.zero_ns,
        "duration_ns": one.duration_ns,
        "symbol": one.symbol,
        "function": symbol.function_id,
        "name": symbol.name,
        "tier": symbol.tier,
        "place": symbol.path and (f"{symbol.path}:{symbol.line}" if symbol.line else symbol.path),
    }


def _place(session: "Session", parameters: Parameters) -> tuple[int, int, int]:
    place = (
        parameters.required("track", most=2**32 - 1),
        parameters.required("depth", most=2**32 - 1),
        parameters.required("index", most=2**32 - 1),
    )
    if session.timeline.slice(place) is None:
        raise RequestError(404, "no_slice", "there is no slice at this place")
    return place


def slice_at(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """A slice with those around it, and those directly in it by name."""
    found = session.timeline
    place = _place(session, parameters)
    one = found.slice(place)
    assert one is not None
    children, _ = found.core.children(place)
    rows = []
    for symbol, count, total_ns, longest in children[:SHOWN_CHILDREN]:
        named = found.symbols[symbol]
        shown = found.slice(longest)
        rows.append(
            {
                "symbol": symbol,
                "name": named.name,
                "count": count,
                "duration_ns": total_ns,
                "longest": None if shown is None else slice_row(session, shown),
            }
        )
    first = max(0, one.start_ns - found.zero_ns)
    track = found.tracks[one.track]
    threads = None if track.thread_id is None else (track.thread_id,)
    part = Selected(session.profile, session, first, first + max(one.duration_ns, 1), threads, None)
    return {
        "slice": {**slice_row(session, one), "self_ns": found.self_ns(place)},
        "parents": [slice_row(session, parent) for parent in found.parents(place)],
        "children": rows,
        "num_children": len(children),
        **part.command("report"),
    }


def neighbour(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """The slice before or after a slice; with `same=symbol` the nearest of its function in its track."""
    direction = parameters.choice("direction", ("next", "previous"))
    same = parameters.choice("same", ("row", "symbol"))
    place = _place(session, parameters)
    one = session.timeline.neighbour(place, is_next=direction == "next", same_symbol=same == "symbol")
    return {"slice": None if one is None else slice_row(session, one)}


def find(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """Names that match, with the number and the time of their slices in the selection."""
    pattern = parameters.text("q")
    if pattern is None:
        raise RequestError(400, "bad_parameter", "q is missing")
    limit = parameters.count("limit", 50, most=MOST_SLICES)
    part = selected(session, parameters)
    found = session.timeline
    totals = _matching(part, pattern)
    rows = []
    for symbol, count, total_ns, place in totals[:limit]:
        longest = found.slice(place)
        assert longest is not None
        rows.append(
            {
                "symbol": symbol,
                "name": found.symbols[symbol].name,
                "count": count,
                "total_ns": total_ns,
                "longest": slice_row(session, longest),
            }
        )
    return {"symbols": rows, "num": len(totals)}


def _matching(part: Selected, pattern: str) -> list[tuple[int, int, int, tuple[int, int, int]]]:
    """Totals of the symbols whose names match, the longest first."""
    matches, folded = matcher(pattern), pattern.casefold()
    symbols = part.session.timeline.symbols
    matching = {one.number for one in symbols if matches(one.name) or folded in one.name.casefold()}
    return [row for row in _totals(part.session, part) if row[0] in matching]


def symbols_of(part: Selected, name: str | None, handle: str | None) -> "list[Symbol] | None":
    """The symbols of a function: of the one that a handle means, else of all that have the name, else of the longest
    of those with the text in their names. None selects all.

    Raises:
        RequestError: No call of such a function was recorded.
    """
    symbols = part.session.timeline.symbols
    if handle is not None:
        groups = {one.group for one in symbols if f"f{one.function_id}" == handle}
    elif name is None:
        return None
    else:
        groups = {one.group for one in symbols if one.name == name}
        if not groups:
            groups = {symbols[number].group for number, *_ in _matching(part, name)[:1]}
    if not groups:
        shown = handle if name is None else repr(name)
        raise RequestError(404, "no_function", f"no call of a function with {shown} in its name was recorded")
    return [one for one in symbols if one.group in groups]


def _totals(session: "Session", part: Selected) -> list[tuple[int, int, int, tuple[int, int, int]]]:
    threads = None if part.threads is None else list(part.threads)
    make = lambda: session.timeline.core.totals(time_ns=part.time_ns, threads=threads)  # noqa: E731 - one line
    return session.cached(("totals", part.key), make)


def slowest(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """The slices that take longest, of all or of one function, of those that start in the selection."""
    part = selected(session, parameters)
    symbol, name = parameters.number("symbol", most=2**32 - 1), parameters.text("function")
    limit = parameters.count("limit", 20, least=1, most=MOST_SLICES)
    found = session.timeline
    symbols = [symbol] if symbol is not None else [None]
    if name is not None:
        symbols = [one.number for one in found.symbols if one.name == name]
        if not symbols:
            raise RequestError(404, "no_function", f"nothing is called {name!r}")
    threads = None if part.threads is None else list(part.threads)
    slices: list[Slice] = []
    for one in symbols:
        slices += found.longest(part.time_ns, threads=threads, symbol=one, limit=limit)
    slices.sort(key=lambda one: (-one.duration_ns, one.start_ns, one.place))
    query = "SELECT * FROM slices ORDER BY duration_ns DESC"
    return {
        "slices": [{**slice_row(session, one), "self_ns": found.self_ns(one.place)} for one in slices[:limit]],
        "command": session.command("query", query, "--limit", str(limit)),
    }
