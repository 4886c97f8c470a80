"""The report of samples: data, JSON, text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from perfuse.analysis.event_groups import EventGroup, FunctionEvents, Ratio, event_group
from perfuse.analysis.sampled import Event, SampleFilter, events, nothing_selected, recorded_events
from perfuse.analysis.weights import FunctionWeight, GroupWeight, UnnamedFrames, Weights
from perfuse.errors import UsageError, require_known
from perfuse.joins import Join, Unwinding
from perfuse.reports.grid import BAR_COLUMNS, Cell, Column, bar, fields, grid, section
from perfuse.reports.inputs import (
    DiagnosticCount,
    Input,
    diagnostic_counts,
    input_text,
    inputs,
    selection_text,
    summary_lines,
)
from perfuse.reports.machine import MachineReport, machine_lines, machine_report
from perfuse.reports.names import code_place, distinct_texts, function_texts, module_text, where_texts
from perfuse.reports.registry import Options, Report
from perfuse.reports.text import ORIGIN_ROLES, Role, Style, cut_middle
from perfuse.reports.units import bytes_text, count_text, counted, duration_text, percent_text
from perfuse.table import OFF_CPU_EVENTS
from perfuse.value_class import as_dict, replace, value_class

if TYPE_CHECKING:
    from perfuse.profile import Profile
    from perfuse.reports.calls import CallsReport


GROUPS = ("processes", "threads", "modules", "tiers")


@value_class
class ProfileReport:
    """The report of samples; weights are of `event`, in `event.unit`."""

    title: str
    inputs: list[Input]
    joins: list[Join]
    unwound: Unwinding | None
    start_ns: int
    duration_ns: int
    events: list[Event]
    num_functions: int
    top_self: list[FunctionWeight]
    top_total: list[FunctionWeight]
    processes: list[GroupWeight]
    threads: list[GroupWeight]
    modules: list[GroupWeight]
    tiers: list[GroupWeight]
    unnamed: list[UnnamedFrames]
    diagnostics: list[DiagnosticCount]
    selection: str = ""
    recorded: Event | None = None
    top_jit_only: list[FunctionWeight] | None = None
    machine: MachineReport | None = None
    group: EventGroup | None = None
    limit: int = 0

    @property
    def event(self) -> Event:
        """The reported event: the one with the most samples."""
        return self.events[0]

    def as_json(self) -> dict[str, Any]:
        """The documented JSON of `report --json` for samples."""
        groups = {name: list(map(_group_json, getattr(self, name))) for name in GROUPS}
        functions = {name: list(map(_function_json, getattr(self, name))) for name in ("top_self", "top_total")}
        events = [
            {"name": one.name, "samples": one.num_samples, "weight": one.weight, "unit": one.unit}
            for one in self.events
        ]
        left_out = ("top_jit_only", "machine", "group", "limit", "selection", "recorded")
        own = {name: value for name, value in _as_plain(self).items() if name not in left_out}
        jit_only = {"top_jit_only": list(map(_function_json, self.top_jit_only))} if self.top_jit_only else {}
        machine = self.machine.as_json(self.limit) if self.machine else {}
        group = {"group": _group_of_events_json(self.group, self.limit)} if self.group else {}
        recorded = self.recorded or self.event
        own |= {
            "selection": self.selection,
            "recorded": {"weight": recorded.weight, "count": recorded.num_samples},
        }
        return {"kind": "samples", **own, "events": events, **functions, **jit_only, **groups, **machine, **group}


def build(profile: Profile, options: Options) -> Report:
    """Builds the report of a profile with samples; without `--event`, the report of its traced calls follows."""
    event = options.get("--event")
    if event is not None:
        if (left := nothing_selected(profile, event)) is not None:
            raise left
        require_known(event, [one.name for one in events(profile)], "event")
    samples = profile_report(profile, options["--limit"], event, group="--group" in options)
    if event is not None or not profile.has_traces:
        return Report(samples.as_json, partial(profile_lines, samples), profile.diagnostics)
    from perfuse.reports.calls import calls_report, request_of

    calls = calls_report(profile, request_of(options))
    return Report(
        as_json=lambda: {**samples.as_json(), "calls": calls.as_json()},
        lines=partial(profile_lines, samples, calls=calls),
        diagnostics=profile.diagnostics,
    )


def _function_json(one: FunctionWeight) -> dict[str, Any]:
    return {
        "name": one.name,
        "module": one.module or "",
        "path": one.path,
        "line": one.line,
        "kind": one.kind,
        "tiers": list(one.tiers),
        "self_weight": one.self_weight,
        "total_weight": one.total_weight,
        "samples": one.self_samples,
    }


def _group_json(one: GroupWeight) -> dict[str, Any]:
    return {"name": one.name, "kind": one.kind, "self_weight": one.self_weight, "samples": one.self_samples}


def profile_report(
    profile: Profile, limit: int = 20, event: str | None = None, *, group: bool = False
) -> ProfileReport:
    """Collects the report of a profile with samples; `limit` functions, 0 for all; `group` is every event by function.

    Raises:
        UsageError: There are no samples, or none of that event.
    """
    weights = Weights(profile, SampleFilter(event=event))
    if not weights.event.num_samples:
        raise UsageError("there are no samples to report")
    # Sums of calls are another part of the report.
    found = [one for one in events(profile) if one == weights.event or not one.is_sum or one.name in OFF_CPU_EVENTS]
    start = min(one.first_ns for one in found)
    selected = selection_text(profile)
    return ProfileReport(
        title=profile.title,
        inputs=inputs(profile),
        joins=list(profile.joins),
        unwound=profile.unwinding,
        start_ns=start,
        duration_ns=max(one.last_ns for one in found) - start,
        events=sorted(found, key=lambda one: one != weights.event),
        num_functions=weights.num_functions,
        top_self=[one for one in weights.functions(limit or None) if one.self_weight],
        top_total=[one for one in weights.functions(limit or None, order="total") if one.total_weight],
        processes=weights.groups("process"),
        threads=weights.groups("thread"),
        modules=weights.groups("module"),
        tiers=weights.groups("tier"),
        unnamed=weights.unnamed(),
        diagnostics=diagnostic_counts(profile),
        selection=selected,
        recorded=recorded_events(profile).get(weights.event.name) if selected else weights.event,
        top_jit_only=_top_jit_only(profile, weights, limit),
        machine=machine_report(profile),
        group=event_group(profile, weights.event.name) if group else None,
        limit=limit,
    )


def _top_jit_only(profile: Profile, weights: Weights, limit: int) -> list[FunctionWeight] | None:
    """Functions of JIT code with the native code that they call, where only that was sampled; None elsewhere.

    CPython's code for perf is such: it calls the interpreter, which has all of the time.
    """
    own = sum(one.self_weight for one in weights.groups("tier") if one.kind == "jit")
    if own > MOST_OF_TRAMPOLINES * weights.event.weight or "jit" not in weights.kinds:
        return None
    try:
        found = Weights(profile.jit_only(), SampleFilter(event=weights.event.name))
    except UsageError:
        return None
    if found.event.weight < LEAST_OF_CALLERS * weights.event.weight:
        return None
    return [one for one in found.functions(limit or None) if one.self_weight]


def _as_plain(report: ProfileReport) -> dict[str, Any]:
    return as_dict(replace(report, machine=None, group=None))


def _group_of_events_json(group: EventGroup, limit: int) -> dict[str, Any]:
    """Every event by function, and ratios of events."""
    names = [event.name for event in group.events]
    ratios = [one.name for one in group.ratios]

    def row(one: FunctionEvents) -> dict[str, Any]:
        weights = dict(zip(names, one.weights, strict=True))
        return {"self_weights": weights, "ratios": dict(zip(ratios, one.ratios, strict=True))}

    functions = [{"name": one.name, "module": one.module or "", **row(one)} for one in group.functions[: limit or None]]
    defined = [{"name": one.name, "part": one.part, "whole": one.whole} for one in group.ratios]
    return {"ratios": defined, "total": row(group.total), "functions": functions}


MOST_OF_TRAMPOLINES = 0.01
"""Most of the samples that are in the code of functions which are trampolines to others."""
LEAST_OF_CALLERS = 0.1
"""Least of the samples that such functions are on the stack of, where they are listed."""
NARROW_BAR_COLUMNS = 6
EVENTS_SHOWN = 20
SHARES_SHOWN = 8

# Texts for values of `Join`; other values are shown as they are.
FOUND_BY = {
    "note": "noted by perfuse record",
    "marker": "the process mapped it",
    "header_pid": "its header has the pid",
    "only_one": "the only dump, and only one process has JIT code",
    "unmatched": "no process of the recording wrote it",
}
ALIGNED_BY = {
    "same_clock": "same clock, exact",
    "marker": "aligned at the marker",
    "marker_and_rate": "aligned at the marker, rate of its clock estimated",
    "first_use": "aligned by the first samples of code it created",
    "time_conv": "aligned by perf's own time conversion",
    "none": "not aligned: on another clock",
}
SHIFTED = frozenset({"marker", "first_use"})
"""Alignments of clocks that count nanoseconds."""
UNWOUND_BY = {
    "sframe": "SFrame",
    "eh_frame": ".eh_frame",
    "debug_frame": ".debug_frame",
    "jitdump": "the dump's own records",
    "frame_pointer": "frame pointer",
}
ADVISED_SHARE = 0.05
"""Share of the unnamed frames from which on there is advice for a reason that no innermost frame has."""
OTHER_TIME = "but not at that time"
WRITTEN_LATER = (
    "code ran before its record was written, as JVMs write it some milliseconds after they compile, "
    "or after other code had replaced part of it"
)
LOST_RECORDS = "records were lost (data_loss below), which may be those of this code; or its jit-PID.dump is missing"
ANONYMOUS = "anonymous memory"
LLVMLITE = (
    "llvmlite, as Numba uses it, writes no dump itself: `perfuse.jitdump.Writer` does (docs/guides/python-jit.md)"
)
ADVICE = (
    ("file not found", "give the directory that has the binaries: --symbols DIR"),
    (OTHER_TIME, "code ran before its dump has it: record with -k mono, so that both are on one clock"),
    (ANONYMOUS, "a dump is missing: add the jit-PID.dump; perfuse doctor shows how to record one"),
    (
        "pe file",
        "of .NET it is precompiled code: DOTNET_ReadyToRun=0 has it compiled while the program runs, with names",
    ),
    ("build id differs", "this machine has another version; give the directory of the recorded one: --symbols DIR"),
    ("kallsyms", "record as root, or on the machine itself: sudo sysctl kernel.kptr_restrict=0"),
    ("kernel", "record as root, or on the machine itself: sudo sysctl kernel.kptr_restrict=0"),
    ("no symbol", "the binary is stripped; install its debug symbols, or give them with --symbols DIR"),
    ("build id was not recorded", "build ids are recorded to files without -z, not to pipes"),
    (
        "no mapping",
        "code without frame pointers gives perf record -g wrong return addresses: record with --call-graph dwarf",
    ),
)


def profile_lines(report: ProfileReport, style: Style, *, calls: CallsReport | None = None) -> Iterator[str]:
    """The report, line by line; the part about `calls` has their own unit and totals."""
    yield style.paint(report.title, Role.TITLE)
    yield ""
    header = _header(report)
    calls_part: Iterator[str] = iter(())
    if calls is not None:
        from perfuse.reports.calls import body_lines, part_header

        header[1:1] = [("", f"{_weight_text(report.event)} in all")]
        header += part_header(calls)
        calls_part = body_lines(calls, style, title="Called functions")
    yield from fields(header, style)
    yield from sample_lines(report, style)
    yield from calls_part
    yield from summary_lines(report.diagnostics, style)


def sample_lines(report: ProfileReport, style: Style, *, brief: bool = False) -> Iterator[str]:
    """The report without header and diagnostics; `brief` leaves out tiers and unnamed frames."""
    whole = report.event.weight
    if report.group:
        yield from group_lines(report.group, report.limit, style)
    for order, functions in (("self", report.top_self), ("total", report.top_total)):
        yield from section(f"Top functions by {order}", style)
        yield from _function_table(functions, whole, order, style)
    if report.top_jit_only:
        yield from section("Top functions of JIT code", style, "self with the native code that they call (--jit-only)")
        yield from _function_table(report.top_jit_only, whole, "self", style)
    groups = (("By process", report.processes), ("By thread", report.threads), ("By module", report.modules))
    for title, shares in (*groups, *([] if brief else [("By tier", report.tiers)])):
        # The header already states a single process or thread.
        if len(shares) > 1:
            yield from section(title, style)
            yield from share_lines(shares, whole, style)
    if report.machine and not brief:
        yield from machine_lines(report.machine, report.limit, style)
    if report.unnamed and not brief:
        yield from _unnamed_section(report, style)
    elif leaves := sum(one.leaf_samples for one in report.unnamed):
        most = max(report.unnamed, key=lambda one: one.leaf_samples)
        share = percent_text(leaves, report.event.num_samples)
        yield ""
        yield f"Not named  innermost frame of {counted(leaves, 'sample')}, {share}; most: {most.reason}"


def group_lines(group: EventGroup, limit: int, style: Style) -> Iterator[str]:
    """Every event by function, with ratios of events."""
    yield from section("Functions by event", style, "self")
    shown = group.functions[: limit or None]

    def cells(one: FunctionEvents) -> list[Cell]:
        weights = zip(one.weights, group.events, strict=True)
        values = zip(one.ratios, group.ratios, strict=True)
        return [
            *(duration_text(weight) if event.unit == "ns" else count_text(weight) for weight, event in weights),
            *(_ratio_text(value, ratio) for value, ratio in values),
        ]

    rows: list[list[Cell]] = [[*cells(group.total), ("all functions", Role.FAINT), ""]]
    modules = where_texts(shown, lambda one: one.module or "")
    names = function_texts([one.name for one in shown])
    rows += [[*cells(one), name, where] for one, name, where in zip(shown, names, modules, strict=True)]
    titles = [*(event.name for event in group.events), *(ratio.name for ratio in group.ratios)]
    columns = [Column(title, right=True) for title in titles]
    columns += [Column("function", shrinks=24), Column("where", role=Role.FAINT, shrinks=8, cut=cut_middle, counts=2)]
    yield from grid(columns, rows, style)
    if len(group.functions) > len(shown):
        left_out = counted(len(group.functions) - len(shown), "function")
        yield style.paint(f"  … {left_out} more (--limit 0 shows all)", Role.FAINT)


def _ratio_text(value: float | None, ratio: Ratio) -> str:
    if value is None:
        return "-"
    return percent_text(value, 1) if ratio.is_share else f"{value:.2f}"


def share_lines(shares: Sequence[GroupWeight], whole: int, style: Style) -> Iterator[str]:
    """A table of groups with their shares, and the number of groups left out."""
    most = max((share.self_weight for share in shares), default=0)
    names = distinct_texts(share.name for share in shares)
    rows: list[list[Cell]] = [
        [
            percent_text(share.self_weight, whole),
            (_bar(share.self_weight, most, style), ORIGIN_ROLES.get(share.kind, Role.FAINT)),
            names[share.name],
        ]
        for share in shares[:SHARES_SHOWN]
    ]
    columns = [Column("", right=True), Column(""), Column("", shrinks=12, cut=cut_middle)]
    yield from grid(columns, rows, style)
    if len(shares) > SHARES_SHOWN:
        yield style.paint(f"  … {count_text(len(shares) - SHARES_SHOWN)} more (--json shows all)", Role.FAINT)


def over_text(event: Event) -> str:
    """` over 1.54 s`, from the first to the last sample of an event; nothing where all are of one time."""
    duration_ns = event.last_ns - event.first_ns
    return f" over {duration_text(duration_ns)}" if duration_ns > 0 else ""


def _header(report: ProfileReport) -> list[tuple[str, Cell]]:
    event = report.event
    pairs: list[tuple[str, Cell]] = [("samples", f"{_samples_text(event)}{over_text(event)}")]
    pairs += [("", f"{_samples_text(other)} (--event {other.name})") for other in report.events[1:EVENTS_SHOWN]]
    if len(report.events) > EVENTS_SHOWN:
        pairs.append(("", f"… {count_text(len(report.events) - EVENTS_SHOWN)} more events (--json shows all)"))
    if report.selection and report.recorded is not None:
        share = percent_text(event.weight, report.recorded.weight)
        pairs.append(("selected", f"{share} of {_weight_text(report.recorded)}, by {report.selection}"))
    tasks = [counted(len(report.processes), "process", "processes"), counted(len(report.threads), "thread")]
    pairs.append(("from", ", ".join(tasks)))
    if report.unwound:
        pairs += _labelled("unwound", _unwound_text(report.unwound))
    pairs += _labelled("files", [input_text(one) for one in report.inputs])
    pairs += _labelled("joined", [line for join in report.joins for line in _join_text(join)])
    return pairs


def _samples_text(event: Event) -> str:
    """Number of samples and their event; recordings that state no event count `samples`."""
    count = count_text(event.num_samples)
    if event.is_sum:
        return f"{_weight_text(event)} of {event.name}, {counted(event.num_samples, 'sum')} by stack and thread"
    return count if event.name == "samples" else f"{count} of {event.name}"


def _weight_text(event: Event) -> str:
    return duration_text(event.weight) if event.unit == "ns" else f"{count_text(event.weight)} {event.unit}"


def _unwound_text(unwound: Unwinding) -> list[str]:
    """How callers were found, and how many stacks are incomplete."""
    found = {by: count for by, count in unwound.frames.items() if by != "sampled"}
    callers = sum(found.values())
    ordered = sorted(found.items(), key=lambda item: -item[1])
    shares = [f"{percent_text(count, callers)} {UNWOUND_BY.get(by, by)}" for by, count in ordered]
    text = counted(unwound.num_stacks, "stack")
    if shares:
        text += ": callers " + ", ".join(shares)
    cut = unwound.stops.get("cut", 0)
    lost = unwound.num_stacks - unwound.stops.get("outermost", 0) - cut
    ends = [f"{count_text(cut)} cut at {bytes_text(unwound.cut_bytes or 0)}"] if cut else []
    ends += [f"{count_text(lost)} not unwound to the end"] if lost else []
    return [text, *([", ".join(ends)] if ends else [])]


def _join_text(join: Join) -> list[str]:
    """How a dump was matched; below, how its clock was aligned, and the uncertainty."""
    found = FOUND_BY.get(join.found_by, join.found_by)
    if join.pid is None:
        return [f"{module_text(join.path)}: {found}"]
    aligned = ALIGNED_BY.get(join.alignment, join.alignment)
    # The offset of a counter's ticks cannot be read as a time.
    shift = f", shifted by {duration_text(join.offset_ns)}" if join.offset_ns and join.alignment in SHIFTED else ""
    sure = f", accurate to ± {duration_text(join.uncertainty_ns)}" if join.uncertainty_ns else ""
    return [f"{module_text(join.path)}: pid {join.pid} ({found})", f"  {aligned}{shift}{sure}"]


def _labelled(label: str, texts: Sequence[str]) -> list[tuple[str, Cell]]:
    return [(label if index == 0 else "", text) for index, text in enumerate(texts)]


def _function_table(functions: Sequence[FunctionWeight], whole: int, order: str, style: Style) -> Iterator[str]:
    tiers = any(one.tiers for one in functions)
    columns = [
        Column("self", right=True),
        Column("total", right=True),
        Column(""),
        Column("function", shrinks=16),
        *([Column("tier", role=Role.FAINT, shrinks=5, counts=3)] if tiers else []),
        Column("where", role=Role.FAINT, shrinks=8, cut=cut_middle, counts=2),
    ]
    weights = [one.self_weight if order == "self" else one.total_weight for one in functions]
    rows: list[list[Cell]] = []
    names = function_texts([one.name for one in functions])
    for one, shown, weight, place in zip(functions, names, weights, where_texts(functions, code_place), strict=True):
        drawn: Cell = (_bar(weight, max(weights), style), ORIGIN_ROLES.get(one.kind, Role.FAINT))
        numbers = [percent_text(one.self_weight, whole), percent_text(one.total_weight, whole)]
        name: Cell = (shown, Role.FAINT) if one.kind == "unknown" else shown
        rows.append([*numbers, drawn, name, *([", ".join(one.tiers)] if tiers else []), place])
    yield from grid(columns, rows, style)


def _unnamed_section(report: ProfileReport, style: Style) -> Iterator[str]:
    unnamed = report.unnamed
    leaves = sum(one.leaf_samples for one in unnamed)
    part = f"innermost frame of {counted(leaves, 'sample')}, {percent_text(leaves, report.event.num_samples)}"
    yield from section(
        "Not named", style, part if leaves else "callers only: the innermost frame of every sample has a name"
    )
    columns = [
        Column("samples", right=True),
        Column("frames", right=True),
        Column("where", shrinks=12, cut=cut_middle),
        Column("why", role=Role.FAINT, shrinks=16),
    ]
    names = distinct_texts(one.module for one in unnamed)
    rows: list[list[Cell]] = [
        [count_text(one.leaf_samples), count_text(one.frames), names[one.module] or "-", one.reason]
        for one in unnamed[:SHARES_SHOWN]
    ]
    yield from grid(columns, rows, style)
    if len(unnamed) > SHARES_SHOWN:
        yield style.paint(f"  … {count_text(len(unnamed) - SHARES_SHOWN)} more (--json shows all)", Role.FAINT)
    # Callers matter where they are many: they hide the functions that called the leaf.
    least = ADVISED_SHARE * sum(one.frames for one in unnamed)
    reasons = " ".join(one.reason.lower() for one in unnamed if one.leaf_samples or one.frames > least)
    on_one_clock = all(join.alignment == "same_clock" for join in report.joins)
    advices = {sign: advice for sign, advice in ADVICE if sign in reasons}
    if on_one_clock and OTHER_TIME in advices:
        advices[OTHER_TIME] = WRITTEN_LATER
    if ANONYMOUS in advices and any(finding.severity == "data_loss" for finding in report.diagnostics):
        advices[ANONYMOUS] = LOST_RECORDS
    elif ANONYMOUS in advices and any("libllvmlite" in one.name for one in report.modules):
        advices[ANONYMOUS] = LLVMLITE
    for advice in dict.fromkeys(advices.values()):
        yield "  " + style.paint("hint: ", Role.FAINT) + advice


def _bar(weight: int, most: int, style: Style) -> str:
    """A bar in proportion to the longest of the list, padded to the same width in every list."""
    width = BAR_COLUMNS if style.width is None or style.width >= 100 else NARROW_BAR_COLUMNS
    return bar(weight, most, width)
