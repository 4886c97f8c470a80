"""The runs that a difference compares: what a report states of them, and what makes it less certain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfuse.reports.units import counted

if TYPE_CHECKING:
    from perfuse.analysis.diff import Difference
    from perfuse.analysis.function_graph import FunctionGraph
    from perfuse.profile import Profile
    from perfuse.reports.inputs import Input


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A recording of one side.

    Attributes:
        title: What was recorded.
        inputs: Its files.
        start_ns: Time of its first sample or call; None where it has none.
        machine: Host name and kernel; None where they were not recorded.
    """

    title: str
    inputs: list[Input]
    start_ns: int | None = None
    machine: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Selected:
    """The part of the runs that is compared.

    Attributes:
        text: The options that select it.
        base: Share of the first side that filters of stacks leave; None without such.
        new: The same of the second side.
    """

    text: str
    base: float | None
    new: float | None

    def as_json(self) -> dict[str, str | float | None]:
        """Its part of `diff --json`."""
        return {"filter": self.text, "base": self.base, "new": self.new}

    @property
    def described(self) -> str:
        """The shares, and what selects them."""
        if self.base is None or self.new is None:
            return f"by {self.text}"
        return f"{self.base:.1%} of base, {self.new:.1%} of new, by {self.text}"


def compared_run(profile: Profile, graph: FunctionGraph) -> ComparedRun:
    """What a report states of a recording."""
    from perfuse.reports.inputs import inputs

    start = graph.span_ns[0] if graph.span_ns else None
    machines = (one.machine for one in profile.recordings if one.role == "samples")
    return ComparedRun(profile.title, inputs(profile), start, next(filter(None, machines), None))


def run_warnings(runs: tuple[list[ComparedRun], list[ComparedRun]], difference: Difference) -> list[str]:
    """What makes a comparison less certain than its numbers."""
    warnings = []
    starts = [[run.start_ns for run in side if run.start_ns is not None] for side in runs]
    if all(len(side) > 1 for side in runs) and [len(side) for side in starts] == [len(side) for side in runs]:
        first, second = starts
        if max(first) < min(second) or max(second) < min(first):
            warnings.append(
                "all runs of one side were recorded before those of the other: what else changed in between counts"
                " as a change; record them in turn"
            )
    machines = dict.fromkeys(run.machine for side in runs for run in side if run.machine is not None)
    if len(machines) > 1:
        named = ", ".join(f"{host} ({kernel})" for host, kernel in list(machines)[:3])
        warnings.append(f"the runs are of different machines or kernels: {named}")
    for side, graphs in (("base", difference.base.runs), ("new", difference.new.runs)):
        empty = sum(not graph.whole for graph in graphs)
        if empty:
            warnings.append(f"{counted(empty, 'run')} of {side} {'has' if empty == 1 else 'have'} no weight")
    return warnings
