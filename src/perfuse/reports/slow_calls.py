"""The report of the slowest calls of a function."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from perfuse.analysis.slow_calls import CallPart, SlowCall, SlowCalls, slowest_calls
from perfuse.errors import UsageError
from perfuse.filters.names import function_text
from perfuse.reports.grid import Cell, Column, fields, grid, section
from perfuse.reports.registry import Options, Report
from perfuse.reports.text import Role, Style
from perfuse.reports.units import count_text, counted, duration_text, percent_text
from perfuse.value_class import as_dict

if TYPE_CHECKING:
    from perfuse.profile import Profile

CHANGES_SHOWN = 4
SAMPLES_SHOWN = 4
PARTS_SHOWN = 30
DEFAULT_CALLS = 5

JUMPED = "end by a jump to another function, whose time is not theirs; -fno-optimize-sibling-calls avoids that"
"""What is stated of calls that end before what they call last."""


def build(profile: Profile, options: Options) -> Report:
    """Builds the report of `--slowest`."""
    if profile.stack_filter:
        hint = "--between, --thread and --process select calls"
        raise UsageError("filters of stacks do not select single calls", hint=hint)
    found = slowest_calls(profile, options["--slowest"], options.get("-n", DEFAULT_CALLS))
    limit = options["--limit"]
    as_lines = partial(slow_call_lines, found, profile.title, limit=None if limit == 0 else PARTS_SHOWN)
    return Report(partial(_as_json, found, profile.title), as_lines, profile.diagnostics)


def _as_json(found: SlowCalls, title: str) -> dict[str, Any]:
    calls = [{**as_dict(one), "path": list(one.path)} for one in found.calls]
    return {"kind": "slow_calls", "title": title, **as_dict(found), "calls": calls}


def slow_call_lines(found: SlowCalls, title: str, style: Style, *, limit: int | None = PARTS_SHOWN) -> Iterator[str]:
    """The report, line by line."""
    yield style.paint(title, Role.TITLE)
    yield ""
    times = (("median", found.median_ns), ("p99", found.p99_ns), ("max", found.max_ns))
    pairs: list[tuple[str, Cell]] = [
        ("calls", f"{count_text(found.num_calls)} of {', '.join(function_text(name) for name in found.functions[:4])}"),
        ("duration", ", ".join(f"{name} {duration_text(value)}" for name, value in times)),
    ]
    left = [
        (found.num_nested, "within another of them"),
        (found.num_incomplete, "without a recorded start or end"),
    ]
    texts = [f"{count_text(count)} {why}" for count, why in left if count]
    if texts:
        pairs.append(("not ranked", ", ".join(texts)))
    num_jumps = sum(bool(call.parts) and call.parts[0].is_tail_call for call in found.calls)
    if num_jumps:
        which = "these" if num_jumps == len(found.calls) else f"{count_text(num_jumps)} of these"
        pairs.append(("tail calls", f"{which} {JUMPED}"))
    yield from fields(pairs, style)
    for rank, call in enumerate(found.calls, 1):
        yield from _call_lines(rank, call, found, style, limit)


def _call_lines(rank: int, call: SlowCall, found: SlowCalls, style: Style, limit: int | None) -> Iterator[str]:
    times = f", {call.duration_ns / found.median_ns:.3g} times the median" if found.median_ns else ""
    cpu = "" if call.cpu is None else f", processor {call.cpu}"
    note = f"at {duration_text(call.start_ns - found.first_ns)} in {call.thread} (t{call.thread_id}){cpu}"
    yield from section(f"{rank}. {duration_text(call.duration_ns)}{times}", style, note)
    yield "  " + style.paint(" → ".join(function_text(name) for name in call.path), Role.FAINT)
    parts = call.parts
    if limit is not None and len(parts) > limit:
        least = sorted((part.duration_ns for part in parts), reverse=True)[limit - 1]
        parts = tuple(part for part in parts if part.duration_ns >= least or part.kind in ("gc", "lock"))[:limit]
    columns = [Column("at", right=True), Column("duration", right=True), Column("what", shrinks=30)]
    yield from grid(columns, [_part_row(part) for part in parts], style)
    if len(parts) < len(call.parts):
        yield style.paint(
            f"  … {counted(len(call.parts) - len(parts), 'shorter part')} (--limit 0 shows all)", Role.FAINT
        )
    if call.samples:
        total = sum(one.num_samples for one in call.samples)
        shown = ", ".join(f"{function_text(one.name)} {one.num_samples}" for one in call.samples[:SAMPLES_SHOWN])
        more = len(call.samples) - SAMPLES_SHOWN
        rest = f", {counted(more, 'more function')}" if more > 0 else ""
        yield f"  {counted(total, 'sample')} taken during it: {shown}{rest}"
    yield from _change_lines(call, found, style)


def _part_row(part: CallPart) -> list[Cell]:
    indent = "  " * min(part.depth, 20)
    name = function_text(part.name)
    what: Cell = indent + name + (" ⇢ tail call" if part.is_tail_call else "")
    if part.kind == "self":
        calls = f", and {counted(part.num_calls, 'short call')}" if part.num_calls else ""
        what = (f"{indent}({name} itself{calls})", Role.FAINT)
    elif part.kind != "call":
        what = (f"{indent}{part.kind}: {name}", Role.WARNING)
    return [f"+{duration_text(part.start_ns)}", duration_text(part.duration_ns), what]


def _change_lines(call: SlowCall, found: SlowCalls, style: Style) -> Iterator[str]:
    if call.slice_id == found.median_slice_id:
        yield "  this is the median call"
        return
    grown = [one for one in call.changes if one.excess_ns > 0][:CHANGES_SHOWN]
    if not grown:
        return
    excess = call.duration_ns - found.median_ns
    yield "  " + style.paint("longer than in a median call:", Role.TITLE)
    rows: list[list[Cell]] = [
        [
            f"+{duration_text(one.excess_ns)}",
            percent_text(one.excess_ns, excess) if excess > 0 else "",
            f"{duration_text(one.self_ns)} in {counted(one.num_calls, 'call')}",
            f"{duration_text(one.median_self_ns)} in {counted(one.median_num_calls, 'call')}",
            f"{function_text(one.name)} itself",
        ]
        for one in grown
    ]
    columns = [
        Column("more", right=True),
        Column("of it", right=True),
        Column("here", right=True),
        Column("median", right=True),
        Column("function", shrinks=20),
    ]
    yield from grid(columns, rows, style)
