"""The report of weighted stacks: trees, callers and callees, whole stacks, groups; of every recording that has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from perfuse.analysis.filtered_samples import filtered_samples
from perfuse.analysis.orders import StackGrouping, StackViewOrder
from perfuse.analysis.sampled import Event, events, nothing_selected, recorded_events
from perfuse.analysis.stack_groups import (
    OF_SAMPLES,
    FunctionView,
    Group,
    StackFunction,
    StackGroups,
    StackTree,
    TreeNode,
    TreeRequest,
    Weight,
    WholeStack,
)
from perfuse.errors import UsageError, require_known
from perfuse.filters.names import function_text, last_part
from perfuse.reports.call_tables import wrapped_names
from perfuse.reports.grid import Cell, Column, fields, grid, section
from perfuse.reports.inputs import (
    DiagnosticCount,
    clock_lines,
    diagnostic_counts,
    input_clocks,
    input_text,
    inputs,
    selection_text,
    summary_lines,
)
from perfuse.reports.names import code_place, distinct_texts, function_texts, module_text, where_texts
from perfuse.reports.registry import LIMIT_IS_DEFAULT, Options, Report
from perfuse.reports.text import Role, Style, cut, cut_middle
from perfuse.reports.units import bytes_text, count_text, counted, duration_text, percent_text, ticks_text
from perfuse.table import RETAINED
from perfuse.value_class import as_dict

if TYPE_CHECKING:
    from perfuse.analysis.profiles import SampleProfile
    from perfuse.profile import Profile

TREE_LIMIT = 60
"""Nodes of a tree, as text, where `--limit` is its default."""
VIEWS_SHOWN = 3
"""Functions with their callers and callees, as text."""
AROUND_LIMIT = 15
"""Nodes of the callers, or callees, of a function, as text."""
_GROUP_TITLES = {
    "function": "Functions",
    "command": "Commands",
    "thread": "Threads",
    "process": "Processes",
    "cpu": "Processors",
    "module": "Modules",
    "tier": "Tiers",
    "line": "Lines",
}


@dataclass(frozen=True, slots=True)
class StackRequest:
    """What the report contains; the options of `perfuse report`."""

    by: StackGrouping | None = None
    order: StackViewOrder | None = None
    limit: int | None = 10
    limit_is_default: bool = False
    tree: bool = False
    inverted: bool = False
    stacks: bool = False
    callers: str | None = None
    callees: str | None = None
    function: str | None = None
    percent_limit: float = 0.0
    depth: int | None = None

    @property
    def is_flat(self) -> bool:
        """Whether functions are listed, as no view was requested."""
        views = (self.callers, self.callees, self.function, self.by)
        return not (self.tree or self.stacks or any(view is not None for view in views))

    def nodes(self, most: int) -> TreeRequest:
        """How much of a tree is shown; `most` nodes where no limit was requested."""
        limit = most if self.limit_is_default and self.limit is not None else self.limit
        return TreeRequest(limit, self.percent_limit, self.depth, self.order or "total")


@dataclass(frozen=True, slots=True)
class StackReport:
    """The report of weighted stacks."""

    title: str
    files: list[str]
    event: Event
    counted: str | None
    recorded: Weight
    selected: Weight
    selection: str
    request: StackRequest
    num_functions: int
    functions: list[Group] | None
    groups: list[Group] | None
    num_groups: int
    tree: StackTree | None
    stacks: list[WholeStack] | None
    num_stacks: int
    views: list[FunctionView] | None
    num_views: int
    diagnostics: list[DiagnosticCount]
    clocks: list[str] = field(default_factory=list)
    """Of recorded calls: the clocks, and how certain their rates are."""

    def as_json(self) -> dict[str, Any]:
        """The documented JSON of `report --json` for stacks."""
        found: dict[str, Any] = {
            "kind": "stacks",
            "title": self.title,
            "event": self.event.name,
            "unit": self.event.unit,
            "counted": self.counted or "samples",
            "recorded": _whole_json(self.recorded),
            "selected": _whole_json(self.selected),
            "selection": self.selection,
        }
        if self.functions is not None:
            found |= {"num_functions": self.num_functions, "functions": list(map(_group_json, self.functions))}
        if self.groups is not None:
            found |= {"by": self.request.by, "num_groups": self.num_groups}
            found["groups"] = list(map(_group_json, self.groups))
        if self.tree is not None:
            found["tree"] = _tree_json(self.tree)
        if self.stacks is not None:
            found |= {"num_stacks": self.num_stacks, "stacks": list(map(_stack_json, self.stacks))}
        found |= self.views_json()
        found["diagnostics"] = [as_dict(one) for one in self.diagnostics]
        return found

    def views_json(self) -> dict[str, Any]:
        """The part of the JSON that has callers and callees of functions; empty where they were not requested."""
        if self.views is None:
            return {}
        return {"num_views": self.num_views, "views": [_view_json(one, self.request) for one in self.views]}


def build(profile: Profile, options: Options) -> Report:
    """Builds the report of a profile with weighted stacks."""
    report = stack_report(profile, request_of(options), options.get("--event"))
    return Report(report.as_json, partial(stack_lines, report), profile.diagnostics)


def request_of(options: Options) -> StackRequest:
    """The request that options of the command line stand for."""
    by = options.get("--by")
    return StackRequest(
        by=by,
        order=options.get("--sort"),
        limit=options["--limit"] or None,
        limit_is_default=options.get(LIMIT_IS_DEFAULT, False),
        tree="--tree" in options
        or ("--inverted" in options and not options.keys() & {"--stacks", "--by"})
        or (_limits_tree(options) and not options.keys() & _OTHER_VIEWS),
        inverted="--inverted" in options,
        stacks="--stacks" in options,
        callers=options.get("--callers"),
        callees=options.get("--callees"),
        function=options.get("--function"),
        percent_limit=options.get("--percent-limit", 0.0),
        depth=options.get("--depth"),
    )


_OTHER_VIEWS = {"--stacks", "--by", "--callers", "--callees", "--function"}


def _limits_tree(options: Options) -> bool:
    """Whether an option states how much of a tree is shown."""
    return bool(options.keys() & {"--depth", "--percent-limit"})


def weighted_source(profile: Profile, event: str | None) -> tuple[SampleProfile, SampleProfile, str | None]:
    """What has the stacks: the profile, or retained sizes of its last heap snapshot; the same unfiltered; the event.

    Raises:
        UsageError: The profile has no such event, or no stacks at all.
    """
    from perfuse.filters.stacks import StackFilter

    whole = profile.filtered(StackFilter()) if profile.stack_filter else profile
    names = [one.name for one in events(whole)]
    if event != RETAINED and names:
        if event is not None:
            if event != RETAINED and (left := nothing_selected(profile, event)) is not None:
                raise left
            require_known(event, [*names, *([RETAINED] if profile.has_heap_snapshots else [])], "event")
        return profile, whole, event
    if not profile.has("heap_snapshots"):
        raise nothing_selected(profile) or UsageError(
            "there are no samples, calls or allocations to report", hint="`perfuse info` counts the records"
        )
    from perfuse.analysis.heap import selected_retained_sizes

    sizes = selected_retained_sizes(profile)
    return filtered_samples(sizes, profile.stack_filter), sizes, None


def stack_report(profile: Profile, request: StackRequest, event: str | None = None) -> StackReport:
    """Collects the report.

    Raises:
        UsageError: There are no stacks, or none of the event, or a pattern matches nothing.
    """
    source, whole, event = weighted_source(profile, event)
    recorded = StackGroups(whole, event)
    # Of a filtered profile another event may have the most samples.
    groups = recorded if source is whole else StackGroups(source, recorded.event.name)
    order = request.order or "self"
    tree = groups.tree(request.nodes(TREE_LIMIT), inverted=request.inverted) if request.tree else None
    by_group = groups.groups(request.by, order=order) if request.by else []
    flat = groups.functions(order=order) if request.is_flat else []
    stacks, num_stacks = groups.stacks(request.limit, order=order) if request.stacks else ([], 0)
    views, num_views = _views(groups, request)
    return StackReport(
        title=source.title,
        files=[input_text(one) for one in inputs(profile)],
        event=groups.event,
        counted=groups.counted,
        recorded=_recorded(profile, recorded),
        selected=groups.whole,
        selection=selection_text(profile),
        request=request,
        num_functions=len(flat),
        functions=flat[: request.limit] if request.is_flat else None,
        groups=by_group[: request.limit] if request.by else None,
        num_groups=len(by_group),
        tree=tree,
        stacks=stacks if request.stacks else None,
        num_stacks=num_stacks,
        views=views,
        num_views=num_views,
        diagnostics=diagnostic_counts(profile),
        clocks=_clock_lines(profile) if groups.counted == "calls" else [],
    )


def _clock_lines(profile: Profile) -> list[str]:
    return list(dict.fromkeys(line for clock in input_clocks(profile) for line in clock_lines(clock)))


def _views(groups: StackGroups, request: StackRequest) -> tuple[list[FunctionView] | None, int]:
    patterns = [one for one in (request.function, request.callers, request.callees) if one is not None]
    if not patterns:
        return None, 0
    if len(patterns) > 1:
        raise UsageError("one of --function, --callers and --callees at a time", hint="--function has both")
    most = None if request.limit is None else VIEWS_SHOWN
    nodes = request.nodes(AROUND_LIMIT)
    if request.function is not None and request.depth is None:
        nodes = replace(nodes, depth=2)
    return groups.view(patterns[0], nodes, most), len(groups.matching(patterns[0]))


def _whole_json(weight: Weight) -> dict[str, int]:
    return {"weight": weight.total_weight, "count": weight.total_count}


def _function_json(one: StackFunction) -> dict[str, Any]:
    return {**as_dict(one), "handle": one.handle}


def _group_json(one: Group) -> dict[str, Any]:
    function = _function_json(one.function) if one.function else None
    return {"name": one.name, "kind": one.kind, "handle": one.handle, "function": function, **as_dict(one.weight)}


def _tree_json(tree: StackTree) -> dict[str, Any]:
    nodes = [
        {
            "node": one.node,
            "parent": one.parent,
            "depth": one.depth,
            "function": _function_json(one.function),
            "handle": None if one.stack_id is None else f"s{one.stack_id}",
            **as_dict(one.weight),
            "left_out_weight": one.left_out,
        }
        for one in tree.nodes
    ]
    return {
        "inverted": tree.is_inverted,
        "total_weight": tree.total_weight,
        "total_count": tree.total_count,
        "num_nodes": tree.num_nodes,
        "left_out_weight": tree.left_out,
        "nodes": nodes,
    }


def _stack_json(one: WholeStack) -> dict[str, Any]:
    return {
        "functions": [function.name for function in one.functions],
        "handle": None if one.stack_id is None else f"s{one.stack_id}",
        "weight": one.weight,
        "count": one.count,
    }


def _view_json(one: FunctionView, request: StackRequest) -> dict[str, Any]:
    found = {"function": _function_json(one.function), "tiers": list(one.tiers), **as_dict(one.weight)}
    if request.callees is None:
        found["callers"] = _tree_json(one.callers)
    if request.callers is None:
        found["callees"] = _tree_json(one.callees)
    return found


def weight_text(weight: int, unit: str) -> str:
    """A weight in its unit."""
    if unit == "ns":
        return duration_text(weight)
    if unit == "bytes":
        return bytes_text(weight)
    return ticks_text(weight) if unit == "ticks" else counted(weight, unit.removesuffix("s"))


def stack_lines(report: StackReport, style: Style) -> Iterator[str]:
    """The report, line by line."""
    yield style.paint(report.title, Role.TITLE)
    yield ""
    yield from fields(_header(report), style)
    if report.functions is not None:
        yield from _group_section("Functions", report.functions, report.num_functions, report, style)
    if report.groups is not None and report.request.by:
        yield from _group_section(_GROUP_TITLES[report.request.by], report.groups, report.num_groups, report, style)
    if report.tree is not None:
        title = "Callers of the innermost functions" if report.tree.is_inverted else "Call tree"
        yield from section(title, style, _tree_note(report.tree, report.request))
        yield from tree_lines(report.tree, report, style)
    if report.stacks is not None:
        yield from _stack_section(report, style)
    yield from view_lines(report, style)
    yield from summary_lines(report.diagnostics, style)


def view_lines(report: StackReport, style: Style) -> Iterator[str]:
    """Functions with their callers and callees."""
    for view in report.views or ():
        yield from _view_section(view, report, style)
    if report.views is not None and report.num_views > len(report.views):
        left = counted(report.num_views - len(report.views), "more function matches", "more functions match")
        yield ""
        yield style.paint(f"… {left} (--limit 0 shows all)", Role.FAINT)


def _recorded(profile: Profile, selected: StackGroups) -> Weight:
    """Weight and number of all samples of an event, whatever threads and times are selected."""
    is_whole = profile.selection.time_ns is None and not profile.selection.selects_threads
    if is_whole or not isinstance(selected.source, type(profile)):
        return selected.whole
    return selected.whole_of(recorded_events(profile))


def _header(report: StackReport) -> list[tuple[str, Cell]]:
    event, recorded, selected = report.event, report.recorded, report.selected
    counts = report.counted or "samples"
    weight = weight_text(recorded.total_weight, event.unit)
    label = event.name if event.name not in ("", "samples") else "samples"
    is_count = event.unit in ("samples", counts)
    number = (
        "" if is_count or event.name == RETAINED else f", {counted(recorded.total_count, counts.removesuffix('s'))}"
    )
    pairs: list[tuple[str, Cell]] = [(label, f"{weight}{number}")]
    if report.selection:
        share = percent_text(selected.total_weight, recorded.total_weight)
        chosen = weight_text(selected.total_weight, event.unit)
        some = (
            "" if is_count or event.name == RETAINED else f", {counted(selected.total_count, counts.removesuffix('s'))}"
        )
        pairs.append(("selected", f"{chosen}{some}: {share} of it, by {report.selection}"))
        pairs.append(("", ("percentages are of the selection", Role.FAINT)))
    pairs += [("files" if index == 0 else "", text) for index, text in enumerate(report.files)]
    pairs += [("clock" if index == 0 else "", text) for index, text in enumerate(report.clocks)]
    return pairs


def _tree_note(tree: StackTree, request: StackRequest) -> str:
    left = tree.num_nodes - len(tree.nodes)
    how = "callees above their callers" if tree.is_inverted else "callers above their callees"
    return f"{how}; … has {counted(left, 'more node')} ({_left_out_by(request)})" if left else how


def _left_out_by(request: StackRequest) -> str:
    """What leaves out nodes of a tree, or shows them."""
    limits = [f"--depth {request.depth}"] if request.depth is not None else []
    limits += [f"--percent-limit {request.percent_limit:g}"] if request.percent_limit else []
    if limits:
        return f"by {' and '.join(limits)}" + ("" if request.limit is None else ", or --limit")
    return "--depth N shows more" if request.function is not None else "--limit 0 shows all"


def _numbers(weight: Weight, report: StackReport, of: Sequence[str] = ("total", "self")) -> list[Cell]:
    whole = report.selected
    if not whole.total_weight:
        # The event has no weights: a recording of calls of no measurable duration.
        whole, weight = _as_counts(whole), _as_counts(weight)
    cells: list[Cell] = []
    for name in of:
        value = weight.total_weight if name == "total" else weight.self_weight
        cells.append(percent_text(value, whole.total_weight) if value else ("-", Role.FAINT))
    return cells


def _as_counts(weight: Weight) -> Weight:
    return replace(weight, self_weight=weight.self_count, total_weight=weight.total_count)


def _number_columns(of: Sequence[str] = ("total", "self")) -> list[Column]:
    return [Column(name, right=True) for name in of]


def _count_column(report: StackReport) -> list[Column]:
    return [Column(report.counted or "samples", right=True)] if report.event.name != RETAINED else []


def _count(count: int, report: StackReport) -> list[Cell]:
    return [count_text(count)] if report.event.name != RETAINED else []


def _group_section(
    title: str, groups: Sequence[Group], num_groups: int, report: StackReport, style: Style
) -> Iterator[str]:
    by = report.request.by
    note = "samples of each" if by in OF_SAMPLES else ""
    yield from section(title, style, note or f"by {report.request.order or 'self'}")
    of = ("self",) if by in OF_SAMPLES else ("self", "total")
    columns = [
        Column("weight", right=True),
        *_number_columns(of),
        *_count_column(report),
        Column(by or "function", shrinks=12, cut=cut_middle if by in ("module", "line") else cut),
        *(
            [Column("where", role=Role.FAINT, shrinks=4, cut=cut_middle, counts=2)]
            if by in (None, "function", "line")
            else []
        ),
        Column("", role=Role.FAINT),
    ]
    rows: list[list[Cell]] = []
    shorten = {"module": module_text, "line": last_part}.get(by or "")
    places = distinct_texts((one.name for one in groups), shorten) if shorten else {}
    functions = [one.function for one in groups if one.function]
    of_functions = dict(zip(functions, where_texts(functions, code_place), strict=True))
    names = [places[one.name] for one in groups] if places else function_texts([one.name for one in groups])
    for one, name in zip(groups, names, strict=True):
        where: list[Cell] = []
        if by in (None, "function"):
            where = [of_functions[one.function] if one.function else ""]
        elif by == "line":
            where = [function_text(one.function.name) if one.function else ""]
        weight = weight_text(one.weight.self_weight, report.event.unit)
        rows.append(
            [
                weight,
                *_numbers(one.weight, report, of),
                *_count(one.weight.self_count, report),
                name,
                *where,
                one.handle or "",
            ]
        )
    yield from grid(columns, rows, style)
    yield from _more(num_groups - len(groups), style)


def tree_lines(tree: StackTree, report: StackReport, style: Style) -> Iterator[str]:
    """One line per node, joined by lines to its parent."""
    # What ends at a node of an inverted tree has it as its outermost function: of no interest.
    of = ("total",) if tree.is_inverted else ("total", "self")
    columns = [
        *_number_columns(of),
        *_count_column(report),
        Column("function", shrinks=16),
        Column("tier", role=Role.FAINT, shrinks=3, counts=3),
        Column("where", role=Role.FAINT, shrinks=4, cut=cut_middle, counts=2),
        Column("", role=Role.FAINT),
    ]
    has_tiers = any(one.function.tier for one in tree.nodes)
    rows: list[list[Cell]] = []
    where = where_texts([node.function for node in tree.nodes], code_place)
    names = function_texts([node.function.name for node in tree.nodes])
    for node, drawn, short, place in zip(tree.nodes, _drawn(tree.nodes, style.width), names, where, strict=True):
        name = short + (" (inl)" if node.function.is_inlined else "")
        name += " …" if node.left_out else ""
        handle = node.function.handle if tree.is_inverted or node.stack_id is None else f"s{node.stack_id}"
        # Samples below a node are its own, too; calls are not calls of it.
        own_calls = report.counted == "calls" and not tree.is_inverted
        number = node.weight.self_count if own_calls else node.weight.total_count
        cells: list[Cell] = [*_numbers(node.weight, report, of), *_count(number, report), drawn + name]
        rows.append([*cells, node.function.tier or "", place, handle or ""])
    if tree.left_out:
        part = percent_text(tree.left_out, report.selected.total_weight or 1)
        rows.append([part, *_blank(tree, report), ("… others", Role.FAINT), "", "", ""])
    if not has_tiers:
        del columns[-3]
        for row in rows:
            del row[-3]
    return grid(columns, rows, style)


def _blank(tree: StackTree, report: StackReport) -> list[Cell]:
    """The cells of numbers after the total."""
    return [""] * (len(_count_column(report)) + (not tree.is_inverted))


_DEEPEST, _LEAST_DRAWN = 24, 3
"""Levels that are drawn, and those on narrow terminals; deeper nodes state theirs as a number."""
_OTHER_COLUMNS = 52
"""Width of the numbers, the tier and the place beside a name."""


def _drawn(nodes: Sequence[TreeNode], width: int | None) -> list[str]:
    """The lines in front of the name of each node: at most half of the space for both."""
    deepest = _DEEPEST if width is None else min(_DEEPEST, max(_LEAST_DRAWN, (width - _OTHER_COLUMNS) // 4))
    is_last = [True] * len(nodes)
    last_of: dict[int | None, int] = {}
    for one in nodes:
        last_of[one.parent] = one.node
    for one in nodes:
        is_last[one.node] = last_of[one.parent] == one.node
    prefixes: list[str] = []
    below: list[str] = []
    for one in nodes:
        if one.parent is None:
            prefixes.append("")
            below.append("")
            continue
        above = below[one.parent]
        if one.depth > deepest:
            prefixes.append(f"{above}{one.depth}: ")
            below.append(above)
            continue
        prefixes.append(above + ("└ " if is_last[one.node] else "├ "))
        below.append(above + ("  " if is_last[one.node] else "│ "))
    return prefixes


def _stack_section(report: StackReport, style: Style) -> Iterator[str]:
    stacks = report.stacks or []
    yield from section(
        "Stacks", style, f"by {report.request.order or 'self'}; {count_text(report.num_stacks)} in all, outermost first"
    )
    for index, one in enumerate(stacks):
        if index:
            yield ""
        share = percent_text(one.weight, report.selected.total_weight)
        lead = f"{weight_text(one.weight, report.event.unit)}  {share}"
        number = f"  {counted(one.count, (report.counted or 'samples').removesuffix('s'))}"
        handle = f"  s{one.stack_id}" if one.stack_id is not None else ""
        facts = ("" if report.event.name == RETAINED else number) + handle
        yield f"  {style.paint(lead, Role.TITLE)}{style.paint(facts, Role.FAINT)}"
        yield from wrapped_names([function.name for function in one.functions], style)
    yield from _more(report.num_stacks - len(stacks), style)


def _view_section(view: FunctionView, report: StackReport, style: Style) -> Iterator[str]:
    function, whole = view.function, report.selected.total_weight
    facts = [", ".join(view.tiers), where_texts([function], code_place)[0], function.handle or ""]
    yield from section(function_text(function.name), style, "  ".join(fact for fact in facts if fact))
    unit = report.event.unit
    for label, weight in (("self", view.weight.self_weight), ("total", view.weight.total_weight)):
        yield f"  {label:6}{weight_text(weight, unit)}, {percent_text(weight, whole)}"
    request = report.request
    for title, tree, is_shown in (
        ("callers", view.callers, request.callees is None),
        ("callees", view.callees, request.callers is None),
    ):
        if is_shown:
            yield ""
            yield "  " + style.paint(f"{title}: {_tree_note(tree, report.request)}", Role.FAINT)
            yield from tree_lines(tree, report, style)


def _more(count: int, style: Style) -> Iterator[str]:
    if count > 0:
        yield style.paint(f"  … {count_text(count)} more (--limit 0 shows all)", Role.FAINT)
