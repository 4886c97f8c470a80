"""Heat maps, and the activity of threads over time."""

from array import array
from typing import TYPE_CHECKING, Any

from perfuse.viewer.answers.filtered_heat import filtered_weights
from perfuse.viewer.answers.parameters import Parameters, RequestError
from perfuse.viewer.answers.selected import Selected, selected
from perfuse.viewer.answers.slices import symbols_of
from perfuse.viewer.container import container

if TYPE_CHECKING:
    from perfuse.pictures.timeline import Symbol
    from perfuse.viewer.session import Session

KINDS = ("seconds", "threads", "processes", "processors", "origins", "tiers", "latency")
MOST_COLUMNS = 4000
MOST_ROWS = 1000
DEFAULT_COLUMNS_NS = (1_000_000_000, 10**8, 10**7, 10**6, 10**5, 10**4, 1000, 100, 10, 1)
LEAST_COLUMNS = 40
"""A shorter recording has columns of a tenth of the time, until there are as many."""


def heat(session: "Session", parameters: Parameters) -> bytes:
    """A heat map: weight of samples, or time in calls, by time and by `kind`."""
    kind = parameters.choice("kind", KINDS)
    part = selected(session, parameters, takes_filters=kind != "latency")
    found = session.timeline
    column_ns = parameters.number("column_ns", None, least=1, most=2**62)
    num_rows = parameters.count("rows", 50, least=2, most=MOST_ROWS)
    tiers = parameters.texts("tiers")
    name, handle = parameters.text("function"), parameters.text("handle")
    start, end = part.time_ns
    zero = found.zero_ns
    if column_ns is None:
        column_ns = _column_ns(end - start)
    # Columns begin at multiples of their width after the first moment: a map of a part has the cells of the whole.
    first = zero + (start - zero) // column_ns * column_ns
    num_columns = -(-(end - first) // column_ns)
    if num_columns > MOST_COLUMNS:
        hint = f"column_ns of at least {-(-(end - first) // MOST_COLUMNS):,}"
        raise RequestError(400, "too_many", f"{num_columns:,} columns are too many", hint)
    head: dict[str, Any] = {
        "kind": kind,
        "zero_ns": first - zero,
        "column_ns": column_ns,
        "columns_num": num_columns,
        "row_ns": None,
        "labels": None,
        "keys": None,
    }
    of: list[Symbol] | None = None
    if kind == "latency":
        # The first column may begin before the selection, which contains only what starts in it.
        of = symbols_of(part, name, handle)
        rows, cells = _latency(part, first, column_ns, num_columns, of)
        head |= {"rows_num": rows, "unit": "calls", "labels": [str(2**power) for power in range(rows)]}
        if of is not None:
            head |= {"function": of[0].name, "num_functions": len({symbol.group for symbol in of})}
    else:
        names, cells, unit = _weights(part, kind, (first, column_ns, num_columns, num_rows), tiers)
        head |= {"rows_num": len(cells) // 8 // num_columns, "unit": unit}
        if kind == "seconds":
            head["row_ns"] = -(-column_ns // num_rows)
        elif kind == "threads":
            labels = dict(_labels(session))
            head |= {"keys": [int(name) for name in names], "labels": [labels[int(name)] for name in names]}
        elif kind == "processes":
            processes = dict(_process_labels(session))
            head |= {"keys": [int(name) for name in names], "labels": [processes[int(name)] for name in names]}
        elif kind == "processors":
            head["labels"] = [f"CPU {name}" for name in names]
        else:
            head["labels"] = names
    head["total"] = _total(cells)
    if kind == "latency":
        head |= part.command("query", _calls_query(of))
    else:
        head |= part.command("report") if _of_calls(part) else part.command_of_weights("report")
    return container(head, {"cells": ("f64", cells)})


def _calls_query(of: "list[Symbol] | None") -> str:
    """SQL for the calls of a map of durations, as they start."""
    query = "SELECT start_ns, duration_ns FROM slices WHERE kind = 'call'"
    if of is not None:
        keys = sorted({symbol.function_id for symbol in of if symbol.function_id is not None})
        query += f" AND function_id IN ({', '.join(map(str, keys))})" if keys else " AND false"
    return f"{query} ORDER BY start_ns"


def _column_ns(span_ns: int) -> int:
    """The widest usual column of which there are enough, not more than can be drawn."""
    usual = next((width for width in DEFAULT_COLUMNS_NS if span_ns // width >= LEAST_COLUMNS), 1)
    return max(usual, -(-span_ns // (MOST_COLUMNS // 2)))


def _total(cells: bytes) -> float:
    return float(sum(memoryview(cells).cast("d")))


def _labels(session: "Session") -> list[tuple[int, str]]:
    from perfuse.analysis.sampled import thread_labels

    return thread_labels(session.profile)


def _process_labels(session: "Session") -> list[tuple[int, str]]:
    from perfuse.table import Columns

    rows = Columns(session.profile.tables["processes"]).tuples("process_id", "pid", "name")
    return [(key, f"{name or 'process'} {pid}") for key, pid, name in rows]


def _of_calls(part: Selected) -> bool:
    """Whether a heat map shows calls: where nothing was sampled."""
    return not any(not event.is_sum for event in part.session.events())


def _weights(
    part: Selected, kind: str, grid: tuple[int, int, int, int], tiers: tuple[str, ...] | None
) -> tuple[list[str], bytes, str]:
    first, column_ns, num_columns, num_rows = grid
    session = part.session
    of_calls = _of_calls(part)
    event = session.events()[0] if session.events() else None
    if kind == "processes":
        return _of_processes(part, grid, tiers)
    if of_calls and (kind in ("origins", "tiers", "processors") or not session.profile.has_traces):
        raise RequestError(404, "not_recorded", "the recording has no samples with times")
    shown = next((one.name for one in session.events() if not one.is_sum), None)
    if part.event not in (None, shown) and not of_calls:
        raise RequestError(400, "bad_parameter", f"heat maps show the samples of {shown}")
    if part.stack_filter:
        if of_calls:
            raise RequestError(400, "bad_parameter", "filters of stacks do not apply to heat maps of calls")
        return filtered_weights(part, kind, grid)
    start, end = part.time_ns
    found = session.timeline.core.heat(
        rows={"seconds": "offsets"}.get(kind, kind),
        of_calls=of_calls,
        time_ns=(first, end),
        column_ns=column_ns,
        num_columns=num_columns,
        num_rows=num_rows,
        threads=part.thread_keys,
        tiers=None if tiers is None else list(tiers),
    )
    if found is None:
        raise RequestError(400, "too_many", "there are too many cells")
    _ = start
    names, cells = found
    unit = "ns" if of_calls or event is None else event.unit
    return names, cells, unit


def _of_processes(
    part: Selected, grid: tuple[int, int, int, int], tiers: tuple[str, ...] | None
) -> tuple[list[str], bytes, str]:
    """The rows of threads, added up by process."""
    names, cells, unit = _weights(part, "threads", grid, tiers)
    num_columns = grid[2]
    process_of = {row["thread"]: row["process"] for row in part.session.thread_rows()}
    of = memoryview(cells).cast("d")
    sums: dict[int, array[float]] = {}
    for row, name in enumerate(names):
        known = sums.setdefault(process_of[int(name)], array("d", bytes(8 * num_columns)))
        for column, weight in enumerate(of[row * num_columns : (row + 1) * num_columns]):
            if weight:
                known[column] += weight
    return [str(key) for key in sums], b"".join(row.tobytes() for row in sums.values()), unit


def _latency(
    part: Selected, first: int, column_ns: int, num_columns: int, of: "list[Symbol] | None"
) -> tuple[int, bytes]:
    found = part.session.timeline.core.heat_of_durations(
        symbols=None if of is None else [symbol.number for symbol in of],
        time_ns=(first, part.time_ns[1]),
        column_ns=column_ns,
        num_columns=num_columns,
        threads=None if part.threads is None else list(part.threads),
    )
    if found is None:
        raise RequestError(400, "too_many", "there are too many cells")
    return found


def activity(session: "Session", parameters: Parameters) -> bytes:
    """Weight of samples, or time in calls, in parts of the selected time, by thread or by origin of the code."""
    part = selected(session, parameters)
    by = parameters.choice("by", ("thread", "origin", "tier"))
    buckets = parameters.count("buckets", 800, least=1, most=MOST_COLUMNS)
    start, end = part.time_ns
    column_ns = max(1, -(-(end - start) // buckets))
    of_calls = _of_calls(part)
    if of_calls and by != "thread":
        by = "thread"
    names, cells, unit = _weights(part, f"{by}s", (start, column_ns, buckets, 2), None)
    labels = dict(_labels(session)) if by == "thread" else {}
    zero = session.timeline.zero_ns
    head = {
        "kind": "activity",
        "by": by,
        "from": start - zero,
        "to": start - zero + column_ns * buckets,
        "bucket_ns": column_ns,
        "buckets": buckets,
        "labels": [labels[int(name)] for name in names] if by == "thread" else names,
        "keys": [int(name) for name in names] if by == "thread" else None,
        "unit": unit,
        "what": "busy" if of_calls else "weight",
        **part.command("report"),
    }
    return container(head, {"cells": ("f64", cells)})
