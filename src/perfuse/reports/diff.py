"""The report of what differs between two groups of runs: data, JSON, CSV, text."""

from __future__ import annotations

import csv
import io
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from perfuse.filters.names import function_text
from perfuse.reports.compared_runs import ComparedRun, Selected, run_warnings
from perfuse.reports.grid import Cell, Column, Ranked, fields, fitted, section
from perfuse.reports.measured_text import number_text
from perfuse.reports.names import function_texts, source_place, where_texts
from perfuse.reports.text import Role, Style, cell_width, cut_middle
from perfuse.reports.units import count_text, counted
from perfuse.value_class import as_dict

if TYPE_CHECKING:
    from perfuse.analysis.diff import Change, Difference, FunctionChange
    from perfuse.analysis.diff_assertions import AssertionResult
    from perfuse.analysis.diff_tree import StackDifference
    from perfuse.analysis.function_graph import FunctionGraph
    from perfuse.analysis.moved_costs import MovedCost
    from perfuse.analysis.renamed import Renamed
    from perfuse.analysis.run_sides import RunSide

VERDICTS = ("changed", "new", "gone", "unclear", "same")
_NAMED = ("name", "module", "path", "line", "column")
_PUBLISHED = {"median": "p50"}
"""Statistics whose names in this report differ from those of the analysis."""


@dataclass(frozen=True, slots=True)
class DiffReport:
    """The report of `perfuse diff`.

    Attributes:
        difference: The comparison of what the rows are.
        functions: The comparison that assertions are about.
        stacks: The comparison by stack; None where that was not asked for.
        runs: The recordings of each side.
        rows: Functions, modules, tiers, types or stacks, sorted.
        by: Which of these.
        order: The statistic by whose change rows are sorted, or `name`.
        limit: Number of rows that are listed; None for all.
        warnings: What makes the comparison less certain than its numbers.
        assertions: The results of assertions.
        moved: Changes of two functions that are one cost.
        selected: The part of the runs that is compared; None for all.
        renamed: Functions of one side that may be one of the other with another name.
    """

    difference: Difference
    functions: Difference
    stacks: StackDifference | None
    runs: tuple[list[ComparedRun], list[ComparedRun]]
    rows: list[FunctionChange]
    by: str = "function"
    order: str = "self"
    limit: int | None = 10
    warnings: list[str] = field(default_factory=list)
    assertions: list[AssertionResult] = field(default_factory=list)
    moved: list[MovedCost] = field(default_factory=list)
    selected: Selected | None = None
    renamed: list[Renamed] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows by verdict."""
        counts: Counter[str] = Counter(one.verdict for one in self.rows)
        return {verdict: counts[verdict] for verdict in VERDICTS}

    @property
    def num_differing(self) -> int:
        """Number of rows that are not the same."""
        return sum(number for verdict, number in self.counts.items() if verdict != "same")

    def sorted_by(self, order: str) -> DiffReport:
        """The same report with rows in another order: by the statistic that was compared, or `name`."""
        ranked = self.difference.ranked(self.rows, order="name" if order == "name" else None)
        return replace(self, rows=ranked, order=order)

    @property
    def unit(self) -> str:
        """The unit of numbers: that of the recordings, or `share`."""
        return self.unit_of("self")

    def unit_of(self, statistic: str) -> str:
        """The unit of a statistic: durations of single calls have no share."""
        from perfuse.analysis.diff import SUMS

        has_share = self.difference.options.normalization.method == "share" and statistic in SUMS
        return "share" if has_share else self.difference.unit

    def as_json(self) -> dict[str, Any]:
        """The documented JSON of `diff --json`."""
        one, options = self.difference, self.difference.options
        whole = one.whole.estimate
        return {
            "kind": one.kind,
            "event": one.event,
            "unit": self.unit,
            "by": self.by,
            "sort": self.order,
            "statistic": _PUBLISHED.get(options.statistic, options.statistic),
            "normalize": options.normalization.method,
            "per": options.normalization.work,
            "confidence": 0.95,
            "level": options.level,
            "runs": {"base": one.num_runs[0], "new": one.num_runs[1]},
            "noise": one.noise,
            "noise_is_assumed": one.has_one_run,
            "num_tested": one.num_tested,
            "base": _side_json(one.base, self.runs[0]),
            "new": _side_json(one.new, self.runs[1]),
            "whole": {**_change_json(one.whole), "p": whole.p if whole else None},
            "selection": self.selected.as_json() if self.selected else None,
            "matched": {"base": one.matched_share("base"), "new": one.matched_share("new")},
            "num_functions": self.counts,
            "functions": [self._row_json(row) for row in self.rows[: self.limit]],
            "moved": [_moved_json(one) for one in self.moved],
            "renamed": [_renamed_json(one) for one in self.renamed],
            "warnings": self.warnings,
            "assertions": [_assertion_json(result) for result in self.assertions],
        }

    def _row_json(self, row: FunctionChange) -> dict[str, Any]:
        estimate = row.figures[self.difference.options.statistic].estimate
        needed = self.difference.needed(row)
        return {
            **{name: getattr(row.named, name) for name in _NAMED},
            **({"stack": list(row.stack)} if row.stack else {}),
            "verdict": row.verdict,
            "evidence": row.evidence,
            "members": list(row.members),
            **{_PUBLISHED.get(name, name): _change_json(change) for name, change in row.figures.items()},
            "test": {
                "samples": list(row.samples),
                "p": estimate.p if estimate else None,
                "q": estimate.q if estimate else None,
                "p_max": estimate.p_max if estimate else None,
                "sees": estimate.sees if estimate else None,
                "runs_needed": {"change": needed.change, "runs": needed.runs} if needed else None,
            },
        }


def diff_report(
    runs: tuple[list[ComparedRun], list[ComparedRun]],
    functions: Difference,
    stacks: StackDifference | None = None,
    by: str = "function",
) -> DiffReport:
    """Collects the report, sorted by the statistic that was compared."""
    of_stacks = stacks if by == "stack" else None
    from perfuse.analysis.moved_costs import moved_costs
    from perfuse.analysis.renamed import renamed_functions

    difference = functions if of_stacks is None else of_stacks.nodes
    rows = functions.functions if of_stacks is None else of_stacks.rows()
    warnings = run_warnings(runs, functions)
    moved = moved_costs(functions) if by == "function" else []
    renamed = renamed_functions(functions) if by == "function" else []
    report = DiffReport(difference, functions, stacks, runs, rows, by, warnings=warnings, moved=moved, renamed=renamed)
    return report.sorted_by(functions.options.statistic)


def _renamed_json(one: Renamed) -> dict[str, Any]:
    sides = {"from": one.old.named, "to": one.new.named}
    named = {side: {name: getattr(function, name) for name in _NAMED} for side, function in sides.items()}
    return {**named, "similarity": one.similarity}


def _moved_json(one: MovedCost) -> dict[str, Any]:
    sides = {"from": one.source, "to": one.target, "under": one.under}
    named = {
        side: {name: getattr(function.named, name) for name in _NAMED} if function else None
        for side, function in sides.items()
    }
    return {**named, "how": one.how, "amount": _plain(one.amount)}


def csv_lines(report: DiffReport) -> Iterator[str]:
    """One line per function: each statistic of both sides, the change and its interval; unknown values are empty."""
    of_each = ("base", "new", "change", "low", "high")
    names = [f"{_PUBLISHED.get(name, name)}_{part}" for name in report.difference.statistics for part in of_each]
    yield _csv_line([*_NAMED, "verdict", *names])
    for one in report.rows[: report.limit]:
        numbers = [_change_json(figure)[part] for figure in one.figures.values() for part in of_each]
        yield _csv_line([*(getattr(one.named, name) for name in _NAMED), one.verdict, *numbers])


def _csv_line(values: list[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def _side_json(side: RunSide, runs: Sequence[ComparedRun]) -> dict[str, Any]:
    return {
        "titles": list(dict.fromkeys(run.title for run in runs)),
        "runs": [
            {"inputs": [as_dict(one) for one in run.inputs], "num_counted": graph.num_counted, "self": graph.whole}
            for run, graph in zip(runs, side.runs, strict=True)
        ],
        "num_counted": sum(graph.num_counted for graph in side.runs),
        "num_functions": sum(map(bool, side.members)),
        "self": sum(graph.whole for graph in side.runs),
    }


def _change_json(one: Change) -> dict[str, Any]:
    return {
        "base": _plain(one.base),
        "new": _plain(one.new),
        "change": one.ratio,
        "low": one.low,
        "high": one.high,
    }


def _assertion_json(one: AssertionResult) -> dict[str, Any]:
    return {
        "assertion": one.assertion.text,
        "outcome": one.outcome,
        "function": one.function,
        "value": one.value,
        "low": one.low,
        "high": one.high,
        "runs_needed": one.runs_needed,
    }


def _plain(value: float | None) -> float | None:
    """A number, whole where it is."""
    return int(value) if value is not None and value == int(value) else value


NAME_COMFORT = 26
_LARGE_RATIO = 10
_MOST_RUNS = 1000
"""More runs than these are not an advice."""
# Columns with the highest rank are left out first; the column of the sort order always stays.
_RANKS = {"count": 6, "self": 6, "sum": 10, "total": 8, "min": 13, "median": 7, "p90": 12, "p99": 7, "max": 11}
_ORDER_WORDS = {
    "count": "number of calls",
    "self": "self time",
    "sum": "sum of durations",
    "total": "time on the stack",
    "min": "shortest call",
    "median": "median",
    "p90": "90th percentile",
    "p99": "99th percentile",
    "max": "longest call",
}
_VERDICT_ROLES = {"changed": Role.WARNING, "new": Role.WARNING, "gone": Role.GOOD}
COUNTED_NOUNS = {
    "allocated-bytes": "allocation",
    "allocations": "allocation",
    "wall-time": "call",
    "calls": "call",
    "retained": "path",
}
"""What the rows of sums count."""
_PROVEN = ("changed", "new", "gone")


def diff_lines(report: DiffReport, style: Style) -> Iterator[str]:
    """The report, line by line."""
    yield from fields(list(header_fields(report)), style, indent="")
    shown = [one for one in report.rows if one.verdict != "same"][: report.limit]
    if shown:
        yield from section(f"{report.by}s".capitalize(), style, _order_text(report))
        yield from fitted(_table_columns(report, shown), style)
        if left_out := report.num_differing - len(shown):
            yield style.paint(f"  {count_text(left_out)} more (--limit 0 shows all)", Role.FAINT)
    if report.moved:
        yield from section("Moved", style, "one cost, counted in another function")
        for moved in report.moved:
            yield f"  {moved_text(report, moved)}"
    yield from _renamed_section(report, style)
    yield from _footer(report, shown, style)
    if report.assertions:
        yield from section("Assertions", style)
        for one in report.assertions:
            role = {"holds": Role.GOOD, "violated": Role.ERROR, "undecided": Role.WARNING}[one.outcome]
            text = assertion_text(report, one)
            yield f"  {style.paint(f'{one.outcome:9}', role)}  {one.assertion.text}  {style.paint(text, Role.FAINT)}"


def _renamed_section(report: DiffReport, style: Style) -> Iterator[str]:
    known = {(one.source.key, one.target.key) for one in report.moved}
    shown = [one for one in report.renamed if (one.old.key, one.new.key) not in known]
    if shown:
        yield from section("Renamed?", style, "a guess by callers and callees: not compared as one function")
    for one in shown[: report.limit]:
        names = [function_text(function.named.name) for function in (one.old, one.new)]
        amounts = [
            amount_text(one.old.figures["total"].base, "total", report.difference.unit),
            amount_text(one.new.figures["total"].new, "total", report.difference.unit),
        ]
        yield f"  {names[0]} → {names[1]}  " + style.paint(f"{amounts[0]} > {amounts[1]}", Role.FAINT)


def header_fields(report: DiffReport) -> Iterator[tuple[str, Cell]]:
    """What is compared, the whole, and how certain it is: labels and texts."""
    difference = report.difference
    yield "base", _side_text(difference.base, report.runs[0])
    yield "new", _side_text(difference.new, report.runs[1])
    if report.selected is not None:
        yield "selected", report.selected.described
    whole = difference.whole
    amount, ratio = change_text(whole, "self", difference.unit)
    work = difference.options.normalization.work
    per = f" {work_text(work)}" if work else " a run" if max(difference.num_runs) > 1 else ""
    interval = interval_text(whole)
    yield "whole", f"{amount}{per} ({ratio})" + (f"  95 %: {interval}" if interval else "")
    verdicts = ", ".join(f"{count_text(count)} {verdict}" for verdict, count in report.counts.items() if count)
    yield f"{report.by}s", verdicts or "none"
    shares = [(side, difference.matched_share(side)) for side in ("base", "new")]
    if report.by == "function" and any(share is not None and share < 0.9995 for _, share in shares):
        known = ", ".join(f"{share:.1%} of {side}" for side, share in shares if share is not None)
        yield "matched", f"{known}; the rest is on one side, or shares its name with others and is compared as a sum"
    method = difference.options.normalization.method
    if method == "share":
        yield "shares", "of each run: what grows makes all else shrink"
    elif method == "typical":
        yield "speed", "each run is divided by the typical change of its functions; the whole is not"
    if not difference.has_one_run:
        few = len(report.rows) - difference.num_tested
        tested = f"{counted(difference.num_tested, report.by)} tested"
        rest = f", {count_text(few)} have too few {difference.kind}" if few else ""
        yield "noise", f"{difference.noise:.1%} between runs beside sampling; {tested}{rest}"
    for warning in report.warnings:
        yield "warning", (warning, Role.WARNING)


def work_text(work: str) -> str:
    """`a second`, `a call of parse`, `per requests`"""
    if work in ("seconds", "calls"):
        return f"a {work.removesuffix('s')}"
    return f"a call of {work.removeprefix('function ').strip()}" if work.startswith("function ") else f"per {work}"


def _order_text(report: DiffReport) -> str:
    if report.order == "name":
        return "by name"
    order = f"by change of {_ORDER_WORDS.get(report.order, report.order)}"
    if report.difference.unit == "bytes":
        order = order.replace("self time", "own bytes").replace("time on the stack", "bytes")
    elif report.difference.unit not in ("ns", "ticks", "samples"):
        order = order.replace("self time", "self").replace("time on the stack", "total")
    kind = f"number of {counted_noun(report.difference.base.runs[0])}s"
    return order.replace("number of calls", kind)


def counted_noun(graph: FunctionGraph) -> str:
    """What is counted: `call`, `sample`, `allocation`."""
    return COUNTED_NOUNS.get(graph.event or "", graph.kind.removesuffix("s"))


def moved_text(report: DiffReport, one: MovedCost) -> str:
    """`12.0 ms from parse to load, which called it: inlined`"""
    amount = amount_text(
        one.amount, report.difference.options.statistic, report.unit_of(report.difference.options.statistic)
    )
    source, target = (function_text(function.named.name) for function in (one.source, one.target))
    how = {
        "inlined": f"which calls {source}: inlining, or work of it that its caller does",
        "outlined": f"which {source} calls: work of it in a function of its own",
        "replaced": f"both called by {function_text(one.under.named.name)}: a new name, or a replacement"
        if one.under
        else "",
    }[one.how]
    return f"{amount} from {source} to {target}, {how}"


def _footer(report: DiffReport, shown: Sequence[FunctionChange], style: Style) -> Iterator[str]:
    difference = report.difference
    unclear = [one for one in shown if one.verdict == "unclear"]
    if not unclear:
        return
    if difference.has_one_run:
        text = (
            f"one run a side: intervals assume {difference.options.noise:.0%} of noise between runs (--noise), and"
            " nothing here is proven; record 5 runs or more a side, in turn"
        )
    elif not difference.allows_verdicts:
        text = "too few runs for a verdict: 4 a side are the least, 5 and more are better"
    else:
        advised = [(one, needed) for one in unclear if (needed := difference.needed(one)) is not None]
        advised = [(one, needed) for one, needed in advised if needed.runs <= _MOST_RUNS]
        if not advised:
            return
        first, needed = max(advised, key=lambda found: sum(found[0].samples))
        name = function_text(first.named.name)
        text = f"to see a change of {needed.change:.0%} in {name}, record about {needed.runs:,} runs a side"
    yield ""
    for line in textwrap.wrap(text, (style.width or 1000) - 2):
        yield style.paint(f"  {line}", Role.FAINT)


def change_text(change: Change, statistic: str, unit: str) -> tuple[str, str]:
    """`+1.42 s` and `+31.2%`; `x12.3` for large ratios, `new` and `gone` where one side has none."""
    if not change.is_comparable:
        return "-", ""
    sign = "+" if change.difference > 0 else ""
    amount = f"{sign}{amount_text(change.difference, statistic, unit)}"
    if not change.difference:
        return amount, "="
    if not change.base or not change.new:
        return amount, "new" if change.difference > 0 else "gone"
    ratio = change.ratio or 0.0
    if ratio >= _LARGE_RATIO:
        return amount, f"x{ratio + 1:,.1f}"
    return amount, f"{ratio:+.1%}"


def interval_text(change: Change) -> str:
    """`-3.1% … +4.0%`; empty where it is unknown."""
    if change.low is None or change.high is None:
        return ""
    return f"{_bound_text(change.low)} … {_bound_text(change.high)}"


def _bound_text(bound: float) -> str:
    return f"x{bound + 1:,.1f}" if bound >= _LARGE_RATIO else f"{bound:+.1%}"


def amount_text(value: float | None, statistic: str, unit: str) -> str:
    """A number of one side: `1.42 s`, `12.3%` of a share."""
    if value is None:
        return "-"
    if unit == "share":
        return f"{value:.2%}"
    rounded = round(value)
    # Means of few samples or calls, and numbers per unit of work, are not whole.
    if abs(value) < 100 and rounded != value and (statistic == "count" or unit not in ("ns", "bytes")):
        return f"{value:,.2f}"
    return number_text(rounded, statistic, unit)


def assertion_text(report: DiffReport, one: AssertionResult) -> str:
    """`shade: +12.0% (+7.9% … +16.2%)`, and what would decide it."""
    if one.value is None and one.low is None:
        return "the change is not known"

    def text(value: float | None) -> str:
        if value is None:
            return "new"
        if one.assertion.is_relative:
            return _bound_text(value)
        sign = "+" if value > 0 else ""
        statistic = one.assertion.statistic or "self"
        return sign + amount_text(value, statistic, report.unit_of(statistic))

    name = f"{function_text(one.function)} " if one.function and one.assertion.function is None else ""
    result = f"{name}{text(one.value)}, 90 %: {text(one.low)} … {text(one.high)}"
    if one.outcome == "undecided" and one.runs_needed:
        result += f"; about {one.runs_needed:,} runs a side would decide"
    return result


def _side_text(side: RunSide, runs: Sequence[ComparedRun]) -> str:
    graph = side.runs[0]
    # Collapsed stacks have samples of no named event; sums are named by what they count.
    is_named = graph.event and graph.event != graph.kind and graph.event not in COUNTED_NOUNS
    event = f" of {graph.event}" if is_named else ""
    whole = sum(one.whole for one in side.runs) / len(side.runs)
    amount = amount_text(whole, "self", graph.unit) + ("" if graph.unit in ("ns", "bytes") else f" {graph.unit}")
    titles = list(dict.fromkeys(run.title for run in runs))
    title = titles[0] if len(titles) == 1 else f"{titles[0]} and {count_text(len(titles) - 1)} more"
    number = counted(sum(one.num_counted for one in side.runs), counted_noun(graph))
    if len(runs) == 1:
        # Where each sample counts 1, its weight is their number.
        return f"{title}: {number}{event}" + ("" if amount == number else f", {amount}")
    return f"{counted(len(runs), 'run')} of {title}: {number}{event}, {amount} a run"


def _table_columns(report: DiffReport, rows: Sequence[FunctionChange]) -> list[Ranked]:
    difference = report.difference
    statistic = difference.options.statistic
    unit = report.unit_of(statistic)
    figures = {name: [one.figures[name] for one in rows] for name in difference.statistics}
    main = figures[statistic]
    columns = [
        _figure_column(_PUBLISHED.get(statistic, statistic), main, rows, statistic, unit, 0),
        _sides_column(rows, statistic, unit),
        _interval_column(main),
    ]
    if not difference.has_one_run and difference.num_tested:
        columns.append(_probability_column(main))
    if not difference.has_one_run:
        columns.append(_needed_column(difference, rows))
    columns.append(_name_column(rows, report.by))
    columns.append(_verdict_column(rows))
    for name, changes in figures.items():
        if name != statistic and any(one.is_comparable for one in changes):
            title = _PUBLISHED.get(name, name)
            columns.append(_figure_column(title, changes, rows, name, report.unit_of(name), _RANKS[name]))
    where = where_texts([one.named for one in rows], source_place)
    if any(where):
        columns.append(Ranked(Column("where", role=Role.FAINT, shrinks=8, cut=cut_middle), where, 5, comfort=14))
    return columns


def _figure_column(
    title: str, changes: Sequence[Change], rows: Sequence[FunctionChange], statistic: str, unit: str, rank: int
) -> Ranked:
    texts = [change_text(one, statistic, unit) for one in changes]
    width = max((cell_width(ratio) for _, ratio in texts), default=0)
    cells: list[Cell] = []
    for (text, ratio), change, row in zip(texts, changes, rows, strict=True):
        proven = row.verdict in _PROVEN
        role = Role.FAINT if not change.difference else Role.PLAIN
        if proven and change.difference:
            role = Role.WARNING if change.difference > 0 else Role.GOOD
        cells.append((f"{text} {ratio:>{width}}", role))
    return Ranked(Column(title, right=True), cells, rank)


def _sides_column(rows: Sequence[FunctionChange], statistic: str, unit: str) -> Ranked:
    pairs = []
    for one in rows:
        change = one.figures[statistic]
        base, new = (amount_text(value, statistic, unit) for value in (change.base, change.new))
        pairs.append((base if one.has_base else "-", new if one.has_new else "-"))
    width = max((cell_width(after) for _, after in pairs), default=0)
    return Ranked(Column("base > new", right=True), [f"{before} > {after:>{width}}" for before, after in pairs], 2)


def _interval_column(changes: Sequence[Change]) -> Ranked:
    bounds = [
        ("", "") if one.low is None or one.high is None else (_bound_text(one.low), _bound_text(one.high))
        for one in changes
    ]
    width = max((cell_width(high) for _, high in bounds), default=0)
    cells = [f"{low} … {high:>{width}}" if low else "" for low, high in bounds]
    return Ranked(Column("95 %", right=True), cells, 1)


def _probability_column(changes: Sequence[Change]) -> Ranked:
    def text(one: Change) -> str:
        p = one.estimate.p_max if one.estimate else None
        return "-" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"

    return Ranked(Column("p_max", right=True, role=Role.FAINT), [text(one) for one in changes], 4)


def _needed_column(difference: Difference, rows: Sequence[FunctionChange]) -> Ranked:
    needed = [difference.needed(one) for one in rows]
    column = Column(f"runs for {difference.options.same_within:.0%}", right=True, role=Role.FAINT)
    return Ranked(column, [_runs_text(one.runs) if one else "" for one in needed], 5)


def _runs_text(runs: int) -> str:
    return f"{runs:,}" if runs <= _MOST_RUNS else f">{_MOST_RUNS:,}"


def _verdict_column(rows: Sequence[FunctionChange]) -> Ranked:
    cells: list[Cell] = [(one.verdict, _VERDICT_ROLES.get(one.verdict, Role.FAINT)) for one in rows]
    return Ranked(Column("verdict"), cells, 3)


def _name_column(rows: Sequence[FunctionChange], by: str) -> Ranked:
    names = function_texts([one.named.name for one in rows])
    cells: list[Cell] = [_name_text(one, name) for one, name in zip(rows, names, strict=True)]
    return Ranked(Column(by, shrinks=16), cells, comfort=NAME_COMFORT)


def _name_text(one: FunctionChange, name: str) -> str:
    if one.stack:
        return ";".join(map(function_text, one.stack))
    most = max(one.members)
    return name + (f" x{most}" if one.evidence == "group" and most > 1 else "")
