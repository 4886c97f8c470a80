"""Functions of a selection: weights of samples, statistics of calls, callers and callees."""

from typing import TYPE_CHECKING, Any

from perfuse.errors import UsageError
from perfuse.filters.names import matcher, module_name
from perfuse.viewer.answers.parameters import Parameters, RequestError, page_of
from perfuse.viewer.answers.report import report_of
from perfuse.viewer.answers.selected import Selected, selected

if TYPE_CHECKING:
    from perfuse.analysis.latency import Latency
    from perfuse.analysis.weights import FunctionWeight, Weights
    from perfuse.viewer.session import Session

SORTS = ("self", "total", "name", "module", "samples", "tier")
STATISTICS = ("num_calls", "num_timed", "min_ns", "median_ns", "p90_ns", "p99_ns", "max_ns", "sum_ns")
"""Statistics of calls, by which functions of call traces can be sorted too."""
CALL_SORTS = (
    "self_ns",
    "total_ns",
    "num_calls",
    "sum_ns",
    "min_ns",
    "median_ns",
    "p90_ns",
    "p99_ns",
    "max_ns",
    "name",
)


def weights_of(part: Selected) -> "Weights | None":
    """Weights of the samples of a selection; None where it has none of the event."""
    if not part.session.events():
        raise RequestError(404, "not_recorded", "the recording has no samples, calls or allocations")

    def make() -> "Weights | None":
        from perfuse.analysis.sampled import SampleFilter
        from perfuse.analysis.weights import Weights

        event = part.event or part.session.events()[0].name
        try:
            return Weights(part.profile, SampleFilter(event=event))
        except UsageError:
            return None

    return part.session.cached(("weights", part.key), make)


def functions(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """Functions with their weights, and for call traces the statistics of their calls, by page; threads on request."""
    part = selected(session, parameters, takes_filters=True)
    sort = parameters.choice("sort", (*SORTS, *STATISTICS))
    is_text = sort in ("name", "module", "tier")
    order = parameters.choice("order", ("asc", "desc"), "asc" if is_text else "desc")
    found = weights_of(part)
    rows = [] if found is None else found.functions()
    rows = _matching(rows, parameters.text("q"))
    event = session.events()[0] if found is None else found.event
    statistics = _statistics(part) if _has_statistics(part, event.name) else {}
    if sort in STATISTICS:
        rows = sorted(rows, key=lambda row: -_known(getattr(_latency(statistics, row), sort, None)))
    elif sort != "self":
        rows = sorted(rows, key=lambda row: _value(row, sort))
    if order == ("desc" if is_text else "asc"):
        rows = rows[::-1]
    return {
        "num": len(rows),
        "rows": [_row(row, _latency(statistics, row)) for row in page_of(rows, parameters)],
        "whole": 0 if found is None else found.event.weight,
        "unit": event.unit,
        "event": event.name,
        "samples": 0 if found is None else found.event.num_samples,
        "empty": found is None,
        **({"threads": [] if found is None else found.threads()} if parameters.flag("with_threads") else {}),
        **part.command_of_weights("report"),
    }


CALL_EVENTS = ("wall-time", "calls")


def _has_statistics(part: Selected, event: str) -> bool:
    """Whether there are statistics of calls, which filters of stacks do not select."""
    return event in CALL_EVENTS and part.session.profile.has_traces and not part.stack_filter


_Statistics = dict[int | tuple[str, str | None, str | None, int | None], "Latency"]
"""Statistics of calls by the key of a function, and by its name, module, source file and line."""


def _statistics(part: Selected) -> _Statistics:
    """Statistics of the calls of a selection."""

    def make() -> _Statistics:
        from perfuse.analysis.latency import CallAccount

        rows = [(row.function, row.latency) for row in CallAccount(part.profile).functions()]
        found: _Statistics = {(one.name, one.module, one.path, one.line): latency for one, latency in rows}
        return found | {one.function_id: latency for one, latency in rows}

    return part.session.cached(("statistics", part.key), make)


def _latency(statistics: _Statistics, row: "FunctionWeight") -> "Latency | None":
    """Statistics of a function; where several recordings contain it, it may have the key of another one there."""
    if row.function_id in statistics:
        return statistics[row.function_id]
    return statistics.get((row.name, row.module, row.path, row.line))


def _matching(rows: "list[FunctionWeight]", pattern: str | None) -> "list[FunctionWeight]":
    if pattern is None:
        return rows
    matches, folded = matcher(pattern), pattern.casefold()
    return [row for row in rows if matches(row.name) or folded in row.name.casefold()]


def _value(row: "FunctionWeight", sort: str) -> Any:
    values = {
        "name": (row.name.casefold(), row.name),
        "module": (row.module or "", row.name),
        "tier": (", ".join(row.tiers), row.name),
        "total": (-row.total_weight, -row.self_weight),
        "samples": -row.self_samples,
    }
    return values[sort]


def _row(row: "FunctionWeight", latency: "Latency | None") -> dict[str, Any]:
    statistics = {} if latency is None else {name: getattr(latency, name) for name in STATISTICS}
    return {
        **statistics,
        "function": row.function_id,
        "name": row.name,
        "module": module_name(row.module) if row.module else None,
        "path": row.path,
        "line": row.line,
        "kind": row.kind,
        "tiers": list(row.tiers),
        "origin": row.origin,
        "self": row.self_weight,
        "total": row.total_weight,
        "samples": row.self_samples,
        "total_samples": row.total_samples,
        "unnamed_because": row.unnamed_because,
    }


def calls(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """Functions of call traces with the statistics of their calls, as in the report, by page."""
    if not session.profile.has_traces:
        raise RequestError(404, "not_recorded", "the recording has no calls")
    part = selected(session, parameters)
    sort = parameters.choice("sort", CALL_SORTS)
    order = parameters.choice("order", ("asc", "desc"), "asc" if sort == "name" else "desc")
    pattern = parameters.text("q")
    document = report_of(part)
    # The report of a runtime has no such part where no call is selected.
    found = document if document["kind"] == "calls" else document.get("calls", {})
    rows = list(found.get("functions", []))
    if pattern is not None:
        matches, folded = matcher(pattern), pattern.casefold()
        rows = [row for row in rows if matches(row["name"]) or folded in row["name"].casefold()]
    rows.sort(key=lambda row: row["name"] if sort == "name" else _known(row[sort]), reverse=order == "desc")
    return {
        "num": len(rows),
        "rows": [{**row, "function": _function_of(part, row)} for row in page_of(rows, parameters)],
        "totals": found.get("totals"),
        "unit": found.get("unit", "ns"),
        **part.command("report", "--sort", sort.removeprefix("num_").removesuffix("_ns").replace("calls", "count")),
    }


def _function_of(part: Selected, row: dict[str, Any]) -> int | None:
    """The key of a function of a report; None where several have all that is known of it."""

    def make() -> dict[tuple[Any, ...], int | None]:
        rows = part.session.profile.sql(
            "SELECT f.name, f.native_id, m.name, f.path, f.line, min(function_id), count(*)"
            " FROM functions f LEFT JOIN modules m USING (module_id) GROUP BY ALL"
        ).fetchall()
        return {tuple(identity): key if number == 1 else None for *identity, key, number in rows}

    found = part.session.cached(("functions-of-calls",), make)
    return found.get((row["name"], row["native_id"], row["module"], row["path"], row["line"]))


def _known(value: int | None) -> int:
    return -1 if value is None else value


def callers(session: "Session", parameters: Parameters) -> dict[str, Any]:
    """The functions that call a function, and those it calls, with the weight of the samples with both on the stack."""
    from perfuse.analysis.sampled import SampleFilter, call_tree
    from perfuse.table import Columns

    part = selected(session, parameters, takes_filters=True)
    name, module = parameters.text("function"), parameters.text("module")
    if name is None:
        raise RequestError(400, "bad_parameter", "function is missing")
    if not session.events():
        raise RequestError(404, "not_recorded", "the recording has no samples, calls or allocations")
    event = part.event or session.events()[0].name
    try:
        tree = call_tree(part.profile, SampleFilter(event=event))
    except UsageError as error:
        raise RequestError(404, "no_function", f"no sample of the selection has a function {name!r}") from error
    symbols = Columns(tree.symbols())
    groups = {
        group
        for group, shown, of in symbols.tuples("group_id", "name", "module")
        if shown == name and module in (None, of, module_name(of or ""))
    }
    if not groups:
        raise RequestError(404, "no_function", f"no sample of the selection has a function {name!r} on its stack")
    group_of, names = symbols["group_id"], dict(zip(symbols["group_id"], symbols["name"], strict=True))
    above, below, own, whole = _neighbours(Columns(tree.nodes()), group_of, groups)
    return {
        "function": {"name": name, "self": own, "total": whole},
        "callers": _weighted(above, names),
        "callees": _weighted(below, names),
        **part.command_of_weights("flame", "-o", "flame.html"),
    }


def _neighbours(nodes: Any, group_of: list[int], groups: set[int]) -> tuple[dict[Any, int], dict[Any, int], int, int]:
    """Weights by caller and by callee of a function, its own weight and its total; recursion counts once."""
    above: dict[Any, int] = {}
    below: dict[Any, int] = {}
    own = whole = 0
    inside: list[bool] = []
    rows = nodes.tuples("parent_node_id", "symbol_id", "self_weight", "total_weight")
    found: list[int] = []
    for parent, symbol, self_weight, total_weight in rows:
        group = group_of[symbol]
        found.append(group)
        is_inside = parent is not None and inside[parent]
        if group in groups:
            own += self_weight
            if not is_inside:
                whole += total_weight
                caller = None if parent is None else found[parent]
                above[caller] = above.get(caller, 0) + total_weight
        elif parent is not None and found[parent] in groups:
            below[group] = below.get(group, 0) + total_weight
        inside.append(is_inside or group in groups)
    return above, below, own, whole


def _weighted(weights: dict[Any, int], names: dict[int, str]) -> list[dict[str, Any]]:
    rows = sorted(weights.items(), key=lambda one: -one[1])
    return [{"name": None if group is None else names[group], "weight": weight} for group, weight in rows]
