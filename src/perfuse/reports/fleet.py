"""Answers about a dataset of recordings as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from perfuse.filters.names import function_text
from perfuse.reports.diff import COUNTED_NOUNS
from perfuse.reports.grid import Cell, Column, Ranked, fields, fitted, grid, section
from perfuse.reports.measured_text import number_text
from perfuse.reports.names import Named, where_texts
from perfuse.reports.text import Role, Style, cut_middle
from perfuse.reports.units import bytes_text, count_text, counted, duration_text, percent_text
from perfuse.value_class import as_dict

if TYPE_CHECKING:
    from perfuse.analysis.diff import Difference
    from perfuse.fleet.comparing import Beyond, Step, Steps
    from perfuse.fleet.questions import (
        CallPercentiles,
        FleetEvent,
        FoundRecording,
        FunctionShare,
        GroupShare,
        HeapGrowth,
    )
    from perfuse.fleet.status import FleetStatus

ID_DIGITS = 12
"""Digits of a recording's identity that are shown; any unique beginning names it."""


def status_lines(status: FleetStatus, style: Style, limit: int | None) -> Iterator[str]:
    """What a dataset contains, and what could not be read."""
    yield style.paint(f"dataset {status.uri}", Role.TITLE)
    sizes = f"{bytes_text(status.size_bytes)} in {counted(status.num_files, 'file')}"
    each = status.size_bytes // max(status.num_recordings, 1)
    yield from fields(
        [
            ("recordings", f"{count_text(status.num_recordings)} of {bytes_text(status.input_bytes)}"),
            ("partial", f"{count_text(status.num_partial)} with lost data"),
            ("quarantine", counted(status.num_failed, "input")),
            *([("packs", counted(status.num_packs, "saved profile"))] if status.num_packs else []),
            ("days", f"{status.first_day} to {status.last_day}" if status.first_day else "-"),
            ("stored", f"{sizes}, {bytes_text(each)} a recording"),
            (
                "unused rows",
                f"{counted(status.num_unnamed, 'attempt')} that no recording names (`fleet gc` deletes them)",
            ),
        ],
        style,
    )
    if status.groups:
        yield from section("Recordings", style, "by service and build")
        columns = [Column("service"), Column("build"), Column("hosts", right=True), Column("recordings", right=True)]
        columns += [Column("first day"), Column("last day")]
        shown = status.groups[: limit or None]
        rows: list[list[Cell]] = [
            [service or "-", build or "-", count_text(hosts), count_text(number), first, last]
            for service, build, hosts, number, first, last in shown
        ]
        yield from grid(columns, rows, style)
        yield from _more(len(status.groups) - len(shown), style)
    if status.quarantine:
        yield from section("Quarantine", style, "inputs that cannot be read")
        failures = status.quarantine[: limit or None]
        columns = [Column("input", shrinks=30, cut=cut_middle), Column("error", shrinks=30)]
        yield from grid(columns, [[one.text, one.error] for one in failures], style)
        yield from _more(len(status.quarantine) - len(failures), style)
        yield style.paint(f"  read them again: {status.retry_command}", Role.FAINT)


def top_lines(
    event: FleetEvent,
    num_recordings: int,
    rows: Sequence[FunctionShare],
    num_functions: int,
    style: Style,
    *,
    selection: str,
) -> Iterator[str]:
    """Functions by their weight in all recordings."""
    yield style.paint(f"{counted(num_recordings, 'recording')}", Role.TITLE) + (f"  {selection}" if selection else "")
    unnamed = percent_text(event.unnamed_weight, event.weight)
    weight = number_text(event.weight, "self", event.unit)
    elsewhere = f" of {counted(event.num_recordings, 'recording')}" if event.num_recordings != num_recordings else ""
    samples = f"{counted(event.num_samples, COUNTED_NOUNS.get(event.name, 'sample'))}{elsewhere}"
    amount = samples if event.unit == "samples" else f"{weight} of {event.name} in {samples}"
    yield f"  {amount}; {unnamed} has no name"
    yield from section("Functions", style, "by their weight in all recordings")
    places = where_texts(rows, lambda one: one.path or one.module or "-")
    columns = [
        Ranked(Column("self", right=True), [percent_text(one.self, event.weight) for one in rows]),
        Ranked(Column("total", right=True), [percent_text(one.total, event.weight) for one in rows]),
        Ranked(Column("in", right=True), [count_text(one.num_recordings) for one in rows], 1),
        Ranked(Column("function", role=Role.NAME, shrinks=24), [function_text(one.name) for one in rows], comfort=40),
        Ranked(
            Column("where", shrinks=12, cut=cut_middle),
            places,
            3,
            20,
        ),
        Ranked(Column("most in"), [one.example[:ID_DIGITS] for one in rows], 2),
        Ranked(Column("", right=True), [percent_text(one.example_share, 1) for one in rows], 2),
    ]
    yield from fitted(columns, style)
    yield from _more(num_functions - len(rows), style)


def _distinct_names(rows: Sequence[Named], place: Callable[[Named], str | None]) -> list[str]:
    """Names of functions, with their places where another function has the same name."""
    names = [function_text(one.name) for one in rows]
    places = where_texts(rows, lambda one: place(one) or "-")
    of_name: dict[str, set[str]] = {}
    for name, at in zip(names, places, strict=True):
        of_name.setdefault(name, set()).add(at)
    return [f"{name} ({at})" if len(of_name[name]) > 1 else name for name, at in zip(names, places, strict=True)]


def share_lines(
    rows: Sequence[FunctionShare], shares: dict[str, list[GroupShare]], label: str, unit: str, style: Style
) -> Iterator[str]:
    """The share of functions by the values of a label."""
    for one, name in zip(rows, _distinct_names(rows, lambda row: row.path or row.module), strict=True):
        yield from section(name, style, f"share of a {unit} by {label}")
        groups = shares[one.function_hash]
        columns = [
            Ranked(Column(label, shrinks=12), [group.value or "-" for group in groups], comfort=20),
            Ranked(Column(f"{unit}s", right=True), [count_text(group.num_units) for group in groups], 3),
            Ranked(Column("mean", right=True), [percent_text(group.mean, 1) for group in groups]),
            Ranked(Column("95% interval"), [_interval(group) for group in groups]),
            Ranked(Column("median", right=True), [percent_text(group.median, 1) for group in groups], 2),
            Ranked(Column("p90", right=True), [percent_text(group.p90, 1) for group in groups], 2),
            Ranked(Column("p99", right=True), [percent_text(group.p99, 1) for group in groups], 2),
            Ranked(Column("max", right=True), [percent_text(group.max, 1) for group in groups], 1),
            Ranked(Column("most in"), [(group.example or "")[:ID_DIGITS] for group in groups], 4),
        ]
        yield from fitted(columns, style)


def _interval(group: GroupShare) -> str:
    if group.low is None or group.high is None:
        return "one only"
    return f"{percent_text(group.low, 1)} to {percent_text(group.high, 1)}"


def call_lines(rows: Sequence[CallPercentiles], label: str, limit: int | None, style: Style) -> Iterator[str]:
    """Durations of calls by the values of a label."""
    shown = rows[: limit or None]
    yield from section("Calls", style, f"by {label}; median and p99 are medians of those of the recordings")

    def time(value: int | None, unit: str) -> str:
        return "-" if value is None else duration_text(value) if unit == "ns" else f"{value:,} {unit}"

    columns = [
        Ranked(
            Column("function", role=Role.NAME, shrinks=24), [function_text(one.function) for one in shown], comfort=30
        ),
        Ranked(Column(label), [one.value or "-" for one in shown]),
        Ranked(Column("in", right=True), [count_text(one.num_recordings) for one in shown], 3),
        Ranked(Column("calls", right=True), [count_text(one.calls) for one in shown], 2),
        Ranked(Column("sum", right=True), [time(one.sum, one.unit) for one in shown]),
        Ranked(Column("median", right=True), [time(one.median, one.unit) for one in shown]),
        Ranked(Column("p99", right=True), [time(one.p99, one.unit) for one in shown]),
        Ranked(Column("worst p99", right=True), [time(one.worst_p99, one.unit) for one in shown], 1),
        Ranked(Column("max", right=True), [time(one.max, one.unit) for one in shown]),
        Ranked(Column("max in"), [one.example[:ID_DIGITS] for one in shown], 4),
    ]
    yield from fitted(columns, style)
    yield from _more(len(rows) - len(shown), style)


def heap_lines(rows: Sequence[HeapGrowth], style: Style) -> Iterator[str]:
    """The size of the heap by type and day."""
    days = [day for day, *_ in rows[0].days]
    note = (
        f"mean size in a recording, {days[0]} to {days[-1]}"
        if len(days) > 1
        else f"mean size in a recording, {days[0]}"
    )
    yield from section("Heap", style, note)
    columns = [
        Ranked(Column("type", role=Role.NAME, shrinks=24), [one.type or "(unknown)" for one in rows], comfort=40),
        Ranked(Column("first day", right=True), [bytes_text(one.days[0][1]) for one in rows]),
        Ranked(Column("last day", right=True), [bytes_text(one.days[-1][1]) for one in rows]),
        Ranked(
            Column("a day", right=True),
            ["-" if one.slope_bytes is None else _signed_bytes(round(one.slope_bytes)) for one in rows],
        ),
        Ranked(Column("most in"), [one.example[:ID_DIGITS] for one in rows], 1),
    ]
    yield from fitted(columns, style)


def _signed_bytes(size: int) -> str:
    return f"{'+' if size > 0 else '-' if size < 0 else ''}{bytes_text(abs(size))}"


def found_lines(rows: Sequence[FoundRecording], event: FleetEvent, limit: int | None, style: Style) -> Iterator[str]:
    """The recordings that contain something."""
    shown = rows[: limit or None]
    yield style.paint(counted(len(rows), "recording"), Role.TITLE)
    columns = [
        Ranked(Column("recording"), [one.recording_id[:ID_DIGITS] for one in shown]),
        Ranked(Column("share", right=True), [percent_text(one.share, 1) for one in shown]),
        Ranked(Column("weight", right=True), [number_text(one.weight, "self", event.unit) for one in shown], 3),
        Ranked(Column("day"), [one.day for one in shown], 2),
        Ranked(Column("build"), [one.build or "-" for one in shown]),
        Ranked(Column("host"), [one.host or "-" for one in shown], 1),
        Ranked(Column("title", shrinks=20), [one.title for one in shown], 4, 30),
    ]
    yield from fitted(columns, style)
    yield from _more(len(rows) - len(shown), style)


def check_lines(
    beyond: Sequence[Beyond], found: Difference, num_base: int, limit: int | None, style: Style
) -> Iterator[str]:
    """Functions that grew beyond the noise."""
    noise = f"noise between recordings {found.noise:.1%}, {counted(found.num_tested, 'function')} tested"
    title = f"{counted(len(beyond), 'function')} grew beyond the noise" if beyond else "no growth beyond the noise"
    yield style.paint(title, Role.TITLE) + f"  against {counted(num_base, 'recording')}; {noise}"
    if not beyond:
        return
    shown = beyond[: limit or None]
    figures = [one.change.figures[found.options.statistic] for one in shown]
    columns = [
        Ranked(
            Column("function", role=Role.NAME, shrinks=24),
            _distinct_names([one.change.named for one in shown], lambda row: row.path or row.module),
            comfort=36,
        ),
        Ranked(Column("change", right=True), ["new" if one.ratio is None else f"{one.ratio:+.0%}" for one in figures]),
        Ranked(
            Column("95% interval"),
            ["-" if one.low is None or one.high is None else f"{one.low:+.0%} to {one.high:+.0%}" for one in figures],
        ),
        Ranked(Column("p", right=True), [f"{one.p:.2g}" for one in shown], 1),
    ]
    yield from fitted(columns, style)
    yield from _more(len(beyond) - len(shown), style)


def recording_lines(
    key: str, inputs: Sequence[dict[str, Any]], pack: str | None, command: str, style: Style
) -> Iterator[str]:
    """The files of a recording, its saved profile, and the command that shows it."""
    yield style.paint(f"recording {key}", Role.TITLE)
    states = {
        "same": "as it was",
        "changed": "has other content now",
        "missing": "is not here",
        "remote": "not checked",
    }
    columns = [Column("", shrinks=30, cut=cut_middle), Column("", right=True), Column("")]
    yield from grid(
        columns, [[one["path"], bytes_text(one["size_bytes"]), states.get(one["state"], "")] for one in inputs], style
    )
    if pack is not None:
        yield f"  saved profile: {pack}"
    yield f"  {command}"


def steps_lines(
    found: Steps, label: str, limit: int | None, style: Style, *, within: str | None = None
) -> Iterator[str]:
    """What was compared, and functions whose share changed at a build."""
    values = f"{found.values[0][0]} to {found.values[-1][0]}"
    yield style.paint(counted(found.num_recordings, "recording"), Role.TITLE) + (
        f"  of {counted(len(found.values), label)}, {values}"
        + (f", each within one of {counted(found.num_groups, within)}" if within else "")
        + f"; {counted(found.num_tested, 'function')} tested"
    )
    yield from step_lines(found.steps, label, limit, style, within=within, is_tested=found.num_tested > 0)
    if found.mixed is not None:
        name, number = found.mixed
        note = f"compared as one, and of {counted(number, name)}: --within {name} compares only recordings of the same"
        yield style.paint(f"  {note}", Role.FAINT)


def step_lines(
    steps: Sequence[Step],
    label: str,
    limit: int | None,
    style: Style,
    *,
    within: str | None = None,
    is_tested: bool = True,
) -> Iterator[str]:
    """Functions whose share changed at a build; `within` is the label of the recordings that were compared."""
    yield from section("Changes", style, f"largest step of each function, beyond noise; the first {label} that has it")
    if not steps:
        yield "  none" if is_tested else "  not tested"
        return
    shown = steps[: limit or None]
    columns = [
        Ranked(
            Column("function", role=Role.NAME, shrinks=24), _distinct_names(shown, lambda one: one.module), comfort=36
        ),
        *([Ranked(Column(within), [one.within or "" for one in shown])] if within else []),
        Ranked(Column(f"first {label}"), [one.first for one in shown]),
        Ranked(Column("before", right=True), [percent_text(one.before, 1) for one in shown]),
        Ranked(Column("after", right=True), [percent_text(one.after, 1) for one in shown]),
        Ranked(
            Column("change", right=True), [f"{one.change:+.0%}" if one.change is not None else "new" for one in shown]
        ),
        Ranked(
            Column("95% interval"),
            ["-" if one.low is None or one.high is None else f"{one.low:+.0%} to {one.high:+.0%}" for one in shown],
            1,
        ),
        Ranked(Column("most in"), [one.example[:ID_DIGITS] for one in shown], 2),
    ]
    yield from fitted(columns, style)
    yield from _more(len(steps) - len(shown), style)


def json_rows(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Rows as objects of JSON."""
    return [as_dict(row) for row in rows]


def _more(number: int, style: Style) -> Iterator[str]:
    if number > 0:
        yield style.paint(f"  … {count_text(number)} more (--limit 0 shows all)", Role.FAINT)
