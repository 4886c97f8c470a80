"""What a filter of stacks selects of the runs of one side of a comparison."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from perfuse.analysis.filtered_samples import FilteredSamples
from perfuse.analysis.profiles import SampleProfile
from perfuse.analysis.sampled import Event, events
from perfuse.errors import UsageError
from perfuse.filters.names import handle_key
from perfuse.filters.stacks import StackFilter, StackStep

_HINTS = 3
"""Runs may have different names that are near; so many are stated."""


@dataclass(slots=True)
class RunSelection:
    """A filter of stacks for the runs of a side.

    Of several runs one may not have a function that the filter names: nothing of it is selected, or nothing is taken
    out. It is an error if none of the runs has it.

    Attributes:
        side: What the side is called.
        stack_filter: The filter.
        recorded: Weight of the runs without the filter, in the unit of what is compared.
        selected: Weight of what it leaves.
    """

    side: str
    stack_filter: StackFilter
    recorded: int = 0
    selected: int = 0
    _runs: list[FilteredSamples] = field(default_factory=list)
    _event: str = ""
    _not_during: list[UsageError] = field(default_factory=list)
    """Why no sample was selected by time, for each such run."""

    def __post_init__(self) -> None:
        for step in self.stack_filter.steps:
            pattern = step.pattern or ""
            if any(handle_key(pattern, kind) is not None for kind in ("f", "s")):
                raise UsageError(
                    f"{step}: a handle is of one recording, and several are compared",
                    hint=f"give the name, or '/^{pattern}$/' for a function of that name",
                )

    def select(self, source: SampleProfile, event: Event) -> SampleProfile | None:
        """The selected samples of a run; None where nothing is left of the event.

        Args:
            source: A profile without a filter, or retained sizes.
            event: Its event that is compared.
        """
        tables: dict[str, Any] = dict(source.tables)
        if self.stack_filter.during:
            tables["samples"] = self._samples_during(source)
        found = FilteredSamples(source, replace(self.stack_filter, is_lenient=True).apply(tables))
        self._runs.append(found)
        left = sum(one.weight for one in events(found) if one.name == event.name)
        self._event = event.name
        self.recorded += event.weight
        self.selected += left
        return found if left else None

    @property
    def share(self) -> float | None:
        """Share of the runs that is selected; None without a filter."""
        return self.selected / self.recorded if self.stack_filter and self.recorded else None

    def refuse_nothing(self) -> None:
        """Checks that each step matches something in one of the runs, and that something is left of one.

        Raises:
            UsageError: It does not; the hint has the nearest names of the runs.
        """
        if not self._runs:
            return
        if len(self._not_during) == len(self._runs):
            raise self._error(self._not_during)
        for step in self.stack_filter.steps:
            reasons = [run.unmatched_steps[step] for run in self._runs if step in run.unmatched_steps]
            if len(reasons) == len(self._runs):
                raise self._error(reasons)
        if not self.selected:
            raise self._error([UsageError(f"{self.stack_filter} leaves nothing of {self._event}")])

    def refuse_other_functions(self, other: "RunSelection") -> None:
        """Checks that each step selects the same functions of the runs of both sides.

        A text is a function's name where a run has that function, else a part of names.

        Raises:
            UsageError: It is a name in one run and a part of others in another.
        """
        runs = [(selection.side, run) for selection in (self, other) for run in selection._runs]
        for step in self.stack_filter.steps:
            matched = [(side, run) for side, run in runs if step not in run.unmatched_steps]
            parts = [(side, run.partly_named_steps[step]) for side, run in matched if step in run.partly_named_steps]
            wholes = [side for side, run in matched if step not in run.partly_named_steps]
            if parts and wholes:
                raise other_functions_error(step, wholes[0], *parts[0])

    def _samples_during(self, source: SampleProfile) -> Any:
        from perfuse.analysis.durations import samples_during

        profile: Any = source
        try:
            return samples_during(profile, self.stack_filter.during)
        except UsageError as error:
            self._not_during.append(error)
        from arro3.core import Table

        return Table.from_arrow(source.tables["samples"]).slice(0, 0)

    def _error(self, reasons: Sequence[UsageError]) -> UsageError:
        """The errors of the runs as one of the side."""
        of_runs = "" if len(self._runs) == 1 else f", nor in any other of its {len(self._runs)} runs"
        hints = list(dict.fromkeys(reason.hint for reason in reasons if reason.hint))
        return UsageError(f"{self.side}: {reasons[0].args[0]}{of_runs}", hint="; ".join(hints[:_HINTS]) or None)


def other_functions_error(step: StackStep, whole: str, part: str, name: str) -> UsageError:
    """The error for a step whose text is a function's name in recording `whole`, and in `part` a part of `name`."""
    regex = f"^{re.escape(step.pattern or '')}$"
    return UsageError(
        f"{step} is a name in {whole}, and in {part} only a part of others, such as {name}",
        hint=f"give --{step.step} '/{regex}/' for that name, or a glob for all of them",
    )
