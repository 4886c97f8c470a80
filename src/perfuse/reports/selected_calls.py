"""The report of calls longer than a time, of a caller, or less deep: `--longer-than`, `--caller`, `--depth`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from perfuse.analysis.selected_calls import CallCondition, SelectedCalls, selected_calls
from perfuse.filters.names import function_text
from perfuse.reports.grid import Cell, Column, fields, grid, section
from perfuse.reports.inputs import selection_text
from perfuse.reports.registry import Options, Report
from perfuse.reports.text import Role, Style
from perfuse.reports.units import count_text, counted, duration_text
from perfuse.value_class import as_dict

if TYPE_CHECKING:
    from perfuse.profile import Profile


def build(profile: Profile, options: Options) -> Report:
    """Builds the report of the calls that satisfy the conditions."""
    condition = CallCondition(
        options.get("--longer-than", 0), options.get("--caller"), options.get("--depth"), options.get("--function")
    )
    calls = selected_calls(profile, condition)
    limit = options["--limit"] or None

    def as_json() -> dict[str, object]:
        rows = [{**as_dict(one), "handle": f"f{one.function_id}"} for one in calls[:limit]]
        number = {"num_functions": len(calls), "num_calls": sum(one.num_calls for one in calls)}
        return {"kind": "selected_calls", "title": profile.title, **as_dict(condition), **number, "functions": rows}

    lines = partial(_lines, profile.title, condition, selection_text(profile), calls, limit)
    return Report(as_json, lines, profile.diagnostics)


def _lines(
    title: str,
    condition: CallCondition,
    selection: str,
    calls: Sequence[SelectedCalls],
    limit: int | None,
    style: Style,
) -> Iterator[str]:
    yield style.paint(title, Role.TITLE)
    yield ""
    texts = [f"of {condition.function}"] if condition.function is not None else []
    texts += [f"of at least {duration_text(condition.longer_than_ns)}"] if condition.longer_than_ns else []
    texts += [f"made by {condition.caller}"] if condition.caller else []
    texts += [f"with fewer than {condition.depth} around them"] if condition.depth is not None else []
    number = counted(sum(one.num_calls for one in calls), "call")
    texts += [f"by {selection}"] if selection else []
    pairs: list[tuple[str, Cell]] = [("selected", f"{number} {', '.join(texts)}")]
    num_parts = sum(one.num_lost + one.num_truncated for one in calls)
    if num_parts:
        pairs.append(("", f"and {counted(num_parts, 'call')} whose start or end was not recorded, at least that long"))
    yield from fields(pairs, style)
    yield from section("Functions", style, "by sum of durations")
    rows: list[list[Cell]] = []
    for one in calls[:limit]:
        times = (one.sum_ns, one.self_ns, one.min_ns, one.median_ns, one.p90_ns, one.p99_ns, one.max_ns)
        cells = [duration_text(time) if one.num_calls and time is not None else "-" for time in times]
        row: list[Cell] = [count_text(one.num_calls), *cells]
        row += [_parts_text(one)] if num_parts else []
        rows.append([*row, function_text(one.name), f"f{one.function_id}"])
    heads = ("calls", "sum", "self", "min", "median", "p90", "p99", "max")
    columns = [Column(head, right=True) for head in heads]
    columns += [Column("and in part", shrinks=20)] if num_parts else []
    columns.append(Column("function", shrinks=24))
    yield from grid([*columns, Column("", role=Role.FAINT)], rows, style)
    if limit is not None and len(calls) > limit:
        yield style.paint(f"  … {count_text(len(calls) - limit)} more (--limit 0 shows all)", Role.FAINT)


def _parts_text(one: SelectedCalls) -> str:
    """Calls of which only a part was recorded: `1 open at the end, 4.2 s or more`."""
    counts = ((one.num_truncated, "open at the end"), (one.num_lost, "begun before"))
    texts = [f"{count_text(count)} {what}" for count, what in counts if count]
    return ", ".join([*texts, f"{duration_text(one.longest_part_ns)} or more"] if one.longest_part_ns else texts)
