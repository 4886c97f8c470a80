"""What a recording of samples contains besides stacks: context switches, branches, accesses to memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from perfuse.filters.names import function_text
from perfuse.reports.grid import Cell, Column, grid, section
from perfuse.reports.names import distinct_texts
from perfuse.reports.text import Role, Style, cut_middle
from perfuse.reports.units import count_text, counted, duration_text, percent_text
from perfuse.value_class import as_dict, value_class

if TYPE_CHECKING:
    from perfuse.analysis.branches import BranchPair
    from perfuse.analysis.memory_accesses import AccessSum
    from perfuse.analysis.scheduling import ThreadTimes, WakeUps
    from perfuse.profile import Profile

TABLES = ("sched_states", "wake_ups", "branches", "memory_accesses")
"""Tables of which one has to be recorded."""
UNNAMED = "[unknown]"


@value_class
class MachineReport:
    """Sections of the report of samples; each list is empty where that was not recorded."""

    threads: list[ThreadTimes]
    wake_ups: list[WakeUps]
    branches: list[BranchPair]
    num_branches: int
    accesses_by_level: list[AccessSum]
    accesses_by_object: list[AccessSum]
    accesses_by_function: list[AccessSum]

    def as_json(self, limit: int) -> dict[str, Any]:
        """The part of the report's JSON that was recorded; `limit` rows of each list, 0 for all."""
        found: dict[str, Any] = {}
        rows = limit or None
        if self.threads:
            found["off_cpu"] = [_without_key(one) for one in self.threads[:rows]]
        if self.wake_ups:
            found["wake_ups"] = [as_dict(one) for one in self.wake_ups[:rows]]
        if self.branches:
            found["branches"] = {"count": self.num_branches, "pairs": [as_dict(one) for one in self.branches[:rows]]}
        if self.accesses_by_level:
            groups = {"by_level": self.accesses_by_level, "by_object": self.accesses_by_object}
            groups["by_function"] = self.accesses_by_function
            found["memory_accesses"] = {name: [as_dict(one) for one in sums[:rows]] for name, sums in groups.items()}
        return found


def _without_key(one: ThreadTimes) -> dict[str, Any]:
    return {name: value for name, value in as_dict(one).items() if name != "thread_id"}


def machine_report(profile: Profile) -> MachineReport | None:
    """Collects the sections of what was recorded; None where nothing of it was."""
    if not any(profile.has(table) for table in TABLES):
        return None
    from perfuse.analysis.branches import branch_pairs
    from perfuse.analysis.memory_accesses import access_sums
    from perfuse.analysis.scheduling import thread_times, wake_ups

    pairs = branch_pairs(profile)
    levels = access_sums(profile, "level")
    return MachineReport(
        threads=thread_times(profile),
        wake_ups=wake_ups(profile),
        branches=pairs,
        num_branches=sum(pair.count for pair in pairs),
        accesses_by_level=levels,
        accesses_by_object=access_sums(profile, "object") if levels else [],
        accesses_by_function=access_sums(profile, "function") if levels else [],
    )


def machine_lines(report: MachineReport, limit: int, style: Style) -> Iterator[str]:
    """The sections, line by line; at most `limit` rows of each table, 0 for all."""
    if report.threads:
        yield from _thread_lines(report.threads, limit, style)
    if report.wake_ups:
        yield from _wake_up_lines(report.wake_ups, limit, style)
    if report.branches:
        yield from _branch_lines(report, limit, style)
    if report.accesses_by_level:
        yield from _access_lines(report, limit, style)


def _more(left_out: int, what: str, style: Style) -> Iterator[str]:
    if left_out > 0:
        yield style.paint(f"  … {counted(left_out, what)} more (--limit 0 shows all)", Role.FAINT)


def _thread_lines(threads: Sequence[ThreadTimes], limit: int, style: Style) -> Iterator[str]:
    yield from section("Threads on and off the processor", style, "between context switches")
    shown = threads[: limit or None]
    rows: list[list[Cell]] = [
        [
            duration_text(one.running_ns),
            duration_text(one.runnable_ns),
            count_text(one.num_preempted),
            duration_text(one.sleeping_ns),
            count_text(one.num_sleeps),
            duration_text(one.longest_sleep_ns),
            one.thread,
        ]
        for one in shown
    ]
    titles = ("running", "runnable", "preempted", "waiting", "waits", "longest")
    yield from grid([*(Column(title, right=True) for title in titles), Column("thread", shrinks=12)], rows, style)
    yield from _more(len(threads) - len(shown), "thread", style)


def _wake_up_lines(pairs: Sequence[WakeUps], limit: int, style: Style) -> Iterator[str]:
    yield from section("Threads that wake others", style, "and how long those had waited")
    shown = pairs[: limit or None]
    rows: list[list[Cell]] = [
        [
            "" if one.waited_ns is None else duration_text(one.waited_ns),
            count_text(one.count),
            one.waker,
            one.woken,
        ]
        for one in shown
    ]
    titles = ("waited", "wake-ups")
    names = (Column("by", shrinks=12), Column("thread", shrinks=12))
    yield from grid([*(Column(title, right=True) for title in titles), *names], rows, style)
    yield from _more(len(pairs) - len(shown), "pair", style)


def _branch_lines(report: MachineReport, limit: int, style: Style) -> Iterator[str]:
    yield from section("Branches", style, counted(report.num_branches, "recorded branch", "recorded branches"))
    shown = report.branches[: limit or None]
    has_cycles = any(one.mean_cycles is not None for one in shown)
    num_counters = max((len(one.counters) for one in shown), default=0)
    columns = [
        Column("share", right=True),
        Column("count", right=True),
        Column("mispredicted", right=True),
        *([Column("cycles", right=True)] if has_cycles else []),
        *(Column(f"counter {number}", right=True) for number in range(1, num_counters + 1)),
        Column("kind"),
        Column("from", shrinks=16),
        Column("to", shrinks=16),
    ]
    rows: list[list[Cell]] = []
    for one in shown:
        known = one.mispredicted + one.predicted
        rows.append(
            [
                percent_text(one.count, report.num_branches),
                count_text(one.count),
                percent_text(one.mispredicted, known) if known else "-",
                *(["-" if one.mean_cycles is None else f"{one.mean_cycles:.1f}"] if has_cycles else []),
                *(count_text(value) for value in one.counters),
                *["-"] * (num_counters - len(one.counters)),
                one.kind or "-",
                function_text(one.source or UNNAMED),
                function_text(one.target or UNNAMED),
            ]
        )
    yield from grid(columns, rows, style)
    yield from _more(len(report.branches) - len(shown), "pair", style)


def _access_lines(report: MachineReport, limit: int, style: Style) -> Iterator[str]:
    from dataclasses import replace

    total = sum(one.count for one in report.accesses_by_level)
    yield from section("Memory accesses by level", style, counted(total, "sampled access", "sampled accesses"))
    yield from _access_table(report.accesses_by_level, total, limit, "level", style)
    yield from section("Memory accesses by object", style)
    texts = distinct_texts(one.name or UNNAMED for one in report.accesses_by_object)
    named = [replace(one, name=texts[one.name or UNNAMED]) for one in report.accesses_by_object]
    yield from _access_table(named, total, limit, "object", style)
    yield from section("Memory accesses by function", style)
    named = [replace(one, name=function_text(one.name or UNNAMED)) for one in report.accesses_by_function]
    yield from _access_table(named, total, limit, "function", style)


def _access_table(sums: Sequence[AccessSum], total: int, limit: int, what: str, style: Style) -> Iterator[str]:
    shown = sums[: limit or None]
    has_operation = what == "level"
    columns = [
        Column("share", right=True),
        Column("accesses", right=True),
        Column("mean cycles", right=True),
        Column("remote", right=True),
        *([Column("operation")] if has_operation else []),
        Column(what, shrinks=16, cut=cut_middle),
    ]
    rows: list[list[Cell]] = [
        [
            percent_text(one.count, total),
            count_text(one.count),
            f"{one.latency_cycles / one.num_latencies:.1f}" if one.latency_cycles and one.num_latencies else "-",
            count_text(one.remote),
            *([one.operation or "-"] if has_operation else []),
            one.name or "-",
        ]
        for one in shown
    ]
    yield from grid(columns, rows, style)
    yield from _more(len(sums) - len(shown), what, style)
