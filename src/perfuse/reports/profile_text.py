"""The report of samples, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfuse.analysis.sampled import Event
from perfuse.analysis.weights import FunctionWeight, GroupWeight, UnnamedFrames
from perfuse.reports.findings import summary_lines
from perfuse.reports.grid import Cell, Column, bar, fields, grid
from perfuse.reports.inputs import input_text
from perfuse.reports.names import function_text, module_text
from perfuse.reports.profile import JoinedDump, ProfileReport, Unwound
from perfuse.reports.section import section
from perfuse.reports.style import ORIGIN_ROLES, Role, Style
from perfuse.reports.text import cut_middle
from perfuse.reports.units import bytes_text, count_text, counted, duration_text, percent_text

BAR_COLUMNS = 12
NARROW_BAR_COLUMNS = 6
SHARES_SHOWN = 8

# What a joined dump says in words; anything else is shown as it is.
FOUND_BY = {
    "marker": "the process mapped it",
    "header_pid": "its header has the pid",
    "only_one": "the only dump, and only one process has JIT code",
    "unmatched": "no process of the recording wrote it",
}
ALIGNED_BY = {
    "same_clock": "same clock, exact",
    "marker": "aligned at the marker",
    "marker_and_rate": "aligned at the marker, clock rate estimated",
    "time_conv": "aligned by perf's own time conversion",
    "none": "on another clock",
}
UNWOUND_BY = {
    "sframe": "SFrame",
    "eh_frame": ".eh_frame",
    "debug_frame": ".debug_frame",
    "jitdump": "the dump's own records",
    "frame_pointer": "frame pointer",
}
ADVICE = (
    ("file not found", "give the directory that has the binaries: --symbols DIR"),
    ("anonymous memory", "a dump is missing: name the jit-PID.dump too; perfuse doctor tells how to record one"),
    ("build id differs", "this machine has another version; give the directory of the right one: --symbols DIR"),
    ("kallsyms", "record as root, or on the machine itself: sudo sysctl kernel.kptr_restrict=0"),
    ("kernel", "record as root, or on the machine itself: sudo sysctl kernel.kptr_restrict=0"),
    ("no symbol", "the binary is stripped; install its debug symbols, or give them with --symbols DIR"),
    ("build id was not recorded", "a recording to a file, without -z, has build ids; perf.data of pipes has none"),
    ("no mapping", "the address is in no mapping perf recorded; perf record -g with frame pointers helps"),
)


def profile_lines(report: ProfileReport, style: Style) -> Iterator[str]:
    """The report, line by line."""
    yield style.paint(report.title, Role.TITLE)
    yield ""
    yield from fields(_header(report), style)
    yield from sample_lines(report, style)
    yield from summary_lines(report.diagnostics, style)


def sample_lines(report: ProfileReport, style: Style, *, brief: bool = False) -> Iterator[str]:
    """The report without header and findings; `brief` leaves out what a screen has no room for."""
    whole = report.event.weight
    for order, functions in (("self", report.top_self), ("total", report.top_total)):
        yield from section(f"Top functions by {order}", style)
        yield from _functions(functions, whole, order, style)
    groups = (("By process", report.processes), ("By thread", report.threads), ("By module", report.modules))
    for title, shares in (*groups, *([] if brief else [("By tier", report.tiers)])):
        # A single process or thread is all of it: the header has said so.
        if len(shares) > 1:
            yield from section(title, style)
            yield from share_lines(shares, whole, style)
    if report.unnamed and not brief:
        yield from _unnamed(report.unnamed, report.event, style)


def share_lines(shares: Sequence[GroupWeight], whole: int, style: Style) -> Iterator[str]:
    """Groups with their part of the whole, the rest counted."""
    most = max((share.self_weight for share in shares), default=0)
    rows: list[list[Cell]] = [
        [
            percent_text(share.self_weight, whole),
            (_bar(share.self_weight, most, style), ORIGIN_ROLES.get(share.kind, Role.FAINT)),
            module_text(share.name),
        ]
        for share in shares[:SHARES_SHOWN]
    ]
    columns = [Column("", right=True), Column(""), Column("", shrinks=12, cut=cut_middle)]
    yield from grid(columns, rows, style)
    if len(shares) > SHARES_SHOWN:
        yield style.paint(f"  … {count_text(len(shares) - SHARES_SHOWN)} more (--json has all)", Role.FAINT)


def _header(report: ProfileReport) -> list[tuple[str, Cell]]:
    event = report.event
    rate = ""
    if report.duration_ns > 0 and event.num_samples > 1:
        rate = f" over {duration_text(report.duration_ns)}"
    pairs: list[tuple[str, Cell]] = [("samples", f"{count_text(event.num_samples)} of {event.name}{rate}")]
    pairs += [
        ("", f"{count_text(other.num_samples)} of {other.name} (--event {other.name})") for other in report.events[1:]
    ]
    tasks = [counted(len(report.processes), "process", "processes"), counted(len(report.threads), "thread")]
    pairs.append(("from", ", ".join(tasks)))
    if report.unwound:
        pairs += _labelled("unwound", _unwound(report.unwound))
    pairs += _labelled("files", [input_text(one) for one in report.inputs])
    pairs += _labelled("joined", [line for join in report.joins for line in _join(join)])
    return pairs


def _unwound(unwound: Unwound) -> list[str]:
    """How callers were found, and how many stacks are not whole."""
    found = {by: count for by, count in unwound.frames.items() if by != "sampled"}
    callers = sum(found.values())
    ordered = sorted(found.items(), key=lambda item: -item[1])
    shares = [f"{percent_text(count, callers)} {UNWOUND_BY.get(by, by)}" for by, count in ordered]
    told = counted(unwound.num_stacks, "stack")
    if shares:
        told += ": callers " + ", ".join(shares)
    cut = unwound.stops.get("cut", 0)
    lost = unwound.num_stacks - unwound.stops.get("outermost", 0) - cut
    ends = [f"{count_text(cut)} cut at {bytes_text(unwound.cut_bytes or 0)}"] if cut else []
    ends += [f"{count_text(lost)} not unwound to the end"] if lost else []
    return [told, *([", ".join(ends)] if ends else [])]


def _join(join: JoinedDump) -> list[str]:
    """How a dump was found; below it, how its clock was aligned and how surely."""
    found = FOUND_BY.get(join.found_by, join.found_by)
    if join.pid is None:
        return [f"{module_text(join.path)}: {found}"]
    aligned = ALIGNED_BY.get(join.alignment, join.alignment)
    shift = f" by {duration_text(join.offset_ns)}" if join.offset_ns else ""
    sure = f", sure to ± {duration_text(join.uncertainty_ns)}" if join.uncertainty_ns else ""
    return [f"{module_text(join.path)}: pid {join.pid} ({found})", f"  {aligned}{shift}{sure}"]


def _labelled(label: str, texts: Sequence[str]) -> list[tuple[str, Cell]]:
    return [(label if index == 0 else "", text) for index, text in enumerate(texts)]


def _functions(functions: Sequence[FunctionWeight], whole: int, order: str, style: Style) -> Iterator[str]:
    tiers = any(one.tiers for one in functions)
    columns = [
        Column("self", right=True),
        Column("total", right=True),
        Column(""),
        Column("function", shrinks=30),
        *([Column("tier", role=Role.FAINT, shrinks=8)] if tiers else []),
        Column("where", role=Role.FAINT, shrinks=8, cut=cut_middle),
    ]
    weights = [one.self_weight if order == "self" else one.total_weight for one in functions]
    rows: list[list[Cell]] = []
    for one, weight in zip(functions, weights, strict=True):
        drawn: Cell = (_bar(weight, max(weights), style), ORIGIN_ROLES.get(one.kind, Role.FAINT))
        numbers = [percent_text(one.self_weight, whole), percent_text(one.total_weight, whole)]
        shown = function_text(one.name)
        name: Cell = (shown, Role.FAINT) if one.kind == "unknown" else shown
        rows.append([*numbers, drawn, name, *([", ".join(one.tiers)] if tiers else []), _where(one)])
    yield from grid(columns, rows, style)


def _where(one: FunctionWeight) -> str:
    if one.kind == "jit" and one.path:
        name = one.path.rsplit("/", 1)[-1]
        return f"{name}:{one.line}" if one.line else name
    return module_text(one.module or "") or f"[{one.kind}]"


def _unnamed(unnamed: Sequence[UnnamedFrames], event: Event, style: Style) -> Iterator[str]:
    leaves = sum(one.leaf_samples for one in unnamed)
    part = f"innermost frame of {counted(leaves, 'sample')}, {percent_text(leaves, event.num_samples)}"
    yield from section(
        "Not named", style, part if leaves else "callers only: what was running has a name in every sample"
    )
    columns = [
        Column("samples", right=True),
        Column("frames", right=True),
        Column("where", shrinks=12, cut=cut_middle),
        Column("why", role=Role.FAINT, shrinks=16),
    ]
    rows: list[list[Cell]] = [
        [count_text(one.leaf_samples), count_text(one.frames), module_text(one.module) or "-", one.reason]
        for one in unnamed[:SHARES_SHOWN]
    ]
    yield from grid(columns, rows, style)
    if len(unnamed) > SHARES_SHOWN:
        yield style.paint(f"  … {count_text(len(unnamed) - SHARES_SHOWN)} more (--json has all)", Role.FAINT)
    reasons = " ".join(one.reason.lower() for one in unnamed if one.leaf_samples)
    for advice in dict.fromkeys(advice for sign, advice in ADVICE if sign in reasons):
        yield "  " + style.paint("hint: ", Role.FAINT) + advice


def _bar(weight: int, most: int, style: Style) -> str:
    """As long as the list's longest allows, in a column as wide for every list: names stay in one line."""
    width = BAR_COLUMNS if style.width is None or style.width >= 100 else NARROW_BAR_COLUMNS
    return bar(weight / most if most else 0, width).ljust(width)
