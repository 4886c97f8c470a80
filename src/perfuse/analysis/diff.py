"""The difference of two groups of runs by function: what changed, what is the same, and what the runs leave open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import comb, log1p
from typing import Literal

from perfuse.analysis.function_graph import FunctionGraph, GraphFunction, StatisticValues
from perfuse.analysis.function_matching import Evidence, FunctionIdentity, match_functions
from perfuse.analysis.normalization import Divisors, Normalization, divisors
from perfuse.analysis.one_run import NOISE, one_run_change
from perfuse.analysis.run_changes import Estimate, Measured, RunChanges, run_changes, runs_needed, whole_change
from perfuse.analysis.run_sides import RunSide
from perfuse.errors import UsageError

Verdict = Literal["changed", "unclear", "same", "new", "gone"]
"""What the runs show of a function:

- `changed`, `new`, `gone`: a change that differences between runs do not explain; `new` and `gone` are those of
  functions that one side has
- `same`: the numbers are equal, or the 90 % interval lies within 5 %
- `unclear`: neither; more runs, or longer ones, would show which
"""

LEAST_RUNS = 4
"""Runs a side that allow a verdict: of fewer, too many assignments to sides are as extreme as any."""

SUMS = ("count", "self", "sum", "total")
"""Statistics that are sums, and 0 where a function does not occur; others are of single calls."""

_LEAST_SHARE_OF_WHOLE = 0.001
_CONFIDENCE_OF_SAME = 0.9


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """How runs are compared.

    Attributes:
        statistic: The statistic that verdicts are about.
        normalization: What numbers are divided by.
        level: Share of comparisons of equal programs that may name any function.
        min_change: Smallest relative change that is named.
        same_within: Relative change that counts as none.
        noise: Relative standard deviation between runs that is assumed where a side has one run.
    """

    statistic: str = "self"
    normalization: Normalization = field(default_factory=Normalization)
    level: float = 0.05
    min_change: float = 0.02
    same_within: float = 0.05
    noise: float = NOISE


@dataclass(frozen=True, slots=True)
class Change:
    """A number of both sides.

    Attributes:
        base: The mean of the runs of the first side; None where it is unknown.
        new: The mean of the runs of the second side; None where it is unknown.
        low: Lower end of the 95 % interval of the relative change; None where it is unknown.
        high: Upper end of it.
        estimate: What is known of the change; None where a number is unknown, or both are 0.
    """

    base: float | None
    new: float | None
    low: float | None = None
    high: float | None = None
    estimate: Estimate | None = None

    @classmethod
    def of(cls, base: float | None, new: float | None, estimate: Estimate | None) -> "Change":
        """A change with the interval of its estimate."""
        if base is None or new is None or estimate is None:
            return cls(base, new)
        low, high = estimate.bounds()
        if not base:
            return cls(base, new, None, None, estimate)
        # Half a sample stands for 0 in the estimate.
        return cls(base, new, -1.0 if not new else min(low, new / base - 1), max(high, new / base - 1), estimate)

    @property
    def is_comparable(self) -> bool:
        """Whether both numbers are known."""
        return self.base is not None and self.new is not None

    @property
    def difference(self) -> float:
        """The increase; 0 where the numbers cannot be compared."""
        return self.new - self.base if self.base is not None and self.new is not None else 0

    @property
    def ratio(self) -> float | None:
        """The increase relative to the first number: 0.5 is an increase by half. None where that is unknown or 0."""
        return self.difference / self.base if self.base and self.new is not None else None


@dataclass(frozen=True, slots=True)
class Needed:
    """Runs a side of which a relative change would be found with a probability of 0.8."""

    change: float
    runs: int


@dataclass(frozen=True, slots=True)
class FunctionChange:
    """A function in both profiles, or several that nothing distinguishes.

    Attributes:
        key: Its index in `Difference.functions`.
        named: The function of the last run that has it.
        figures: Its numbers, by statistic.
        verdict: What the runs show of it.
        samples: Number of samples or calls of all runs that the compared statistic is made of, for both sides.
        evidence: What shows that it is the same function on both sides; None where one side has it.
        members: Number of functions of each side, in the run that has most.
        stack: Names of its callers, outermost first, and its own, where stacks are compared.
    """

    key: int
    named: GraphFunction
    figures: Mapping[str, Change]
    verdict: Verdict
    samples: tuple[int, int]
    evidence: Evidence | None = None
    members: tuple[int, int] = (1, 1)
    stack: tuple[str, ...] = ()

    @property
    def has_base(self) -> bool:
        """Whether a run of the first side has it."""
        return self.members[0] > 0

    @property
    def has_new(self) -> bool:
        """Whether a run of the second side has it."""
        return self.members[1] > 0


@dataclass(frozen=True, slots=True)
class EdgeChange:
    """Calls of one function by another in both profiles."""

    caller: FunctionChange
    callee: FunctionChange
    figures: Mapping[str, Change]


@dataclass(frozen=True, slots=True)
class Entry:
    """A function of a comparison: its numbers in `RunSide.identities` of each side.

    Attributes:
        base: In the first side; several where nothing distinguishes them.
        new: In the second side.
        evidence: What shows that they are the same; None where one side has it.
        is_open: Whether the other side has, or may have, the function without samples of it.
    """

    base: tuple[int, ...]
    new: tuple[int, ...]
    evidence: Evidence | None
    is_open: bool = False


def match_entries(a: Sequence[FunctionIdentity], b: Sequence[FunctionIdentity]) -> list[Entry]:
    """The functions of two sides, each once; those that nothing distinguishes are one entry."""
    matches = match_functions(a, b)
    entries = [Entry((one.a,), (one.b,), one.by) for one in sorted(matches.pairs, key=lambda one: one.a)]
    entries += [Entry(tuple(in_a), tuple(in_b), "group") for in_a, in_b in matches.groups]
    known = [{place for entry in entries for place in getattr(entry, side)} for side in ("base", "new")]
    rest = [[place for place in range(len(side)) if place not in known[n]] for n, side in enumerate((a, b))]
    entries += [Entry((place,), (), None, place in matches.undecided[0]) for place in rest[0]]
    entries += [Entry((), (place,), None, place in matches.undecided[1]) for place in rest[1]]
    return entries


class Difference:
    """The difference of two groups of runs.

    `match_functions` decides which functions are the same. Functions that share name, module and path and that nothing
    distinguishes are never paired: the sums of both sides are compared.

    Args:
        base: The runs of the first side, before.
        new: The runs of the second side, after.
        options: How they are compared.

    Raises:
        UsageError: One has calls and the other samples, one has neither, or their units differ.
    """

    def __init__(
        self, base: Sequence[FunctionGraph], new: Sequence[FunctionGraph], options: DiffOptions | None = None
    ) -> None:
        self.options = options or DiffOptions()
        _refuse_others([*base, *new])
        self.base, self.new = RunSide(base), RunSide(new)
        first = base[0]
        self.kind, self.unit, self.event = first.kind, first.unit, first.event
        self.statistics = first.statistics
        if self.options.statistic not in self.statistics:
            orders = ", ".join((*self.statistics, "name"))
            raise UsageError(
                f"the order of {self.kind} is one of {orders}, not {self.options.statistic!r}", field="order"
            )
        self.entries = self._match()
        self._functions_of = {id(entry): self._found(entry) for entry in self.entries}
        self.divisors: Divisors = divisors(
            self.options.normalization,
            [[one.whole for one in base], [one.whole for one in new]],
            [[one.num_counted for one in base], [one.num_counted for one in new]],
            lambda: [self._runs(entry, "self") for entry in self.entries],
            lambda: [sum(self._samples(entry, "self")) for entry in self.entries],
        )
        self.whole = self._whole()
        """The change of the sum of all functions, without the normalization of the runs to each other."""
        changes = self._changes()
        self.noise = changes[self.options.statistic].noise
        """Relative standard deviation between runs beside sampling; what is assumed where each side has one run."""
        self.num_tested = changes[self.options.statistic].num_tested
        """Functions with enough samples for a test."""
        self.functions = [self._function(number, changes) for number in range(len(self.entries))]
        """All functions of both sides."""

    @property
    def num_runs(self) -> tuple[int, int]:
        """Number of runs of each side."""
        return len(self.base.runs), len(self.new.runs)

    @property
    def has_one_run(self) -> bool:
        """Whether each side is one run, whose noise between runs is assumed."""
        return self.num_runs == (1, 1)

    @property
    def allows_verdicts(self) -> bool:
        """Whether there are runs enough for a verdict of a change at the level."""
        sizes = self.num_runs
        # The opposite assignment is as extreme where sides are of one size.
        as_extreme = 2 if sizes[0] == sizes[1] else 1
        return min(sizes) >= 2 and as_extreme / comb(sum(sizes), sizes[0]) <= self.options.level

    def matched_share(self, side: Literal["base", "new"]) -> float | None:
        """Share of a side's whole in functions that were matched one by one; None where it is 0."""
        runs = self.base.runs if side == "base" else self.new.runs
        whole = sum(graph.whole for graph in runs)
        place = 0 if side == "base" else 1
        matched = sum(
            sum(value or 0 for value in self._runs(entry, "self")[place])
            for entry in self.entries
            if entry.evidence not in (None, "group")
        )
        return matched / whole if whole else None

    def needed(self, one: FunctionChange) -> Needed | None:
        """Runs a side that would show a change of what counts as none; None where there is a verdict, or no number."""
        estimate = one.figures[self.options.statistic].estimate
        if one.verdict != "unclear" or estimate is None:
            return None
        wanted = self.options.same_within
        return Needed(wanted, runs_needed(wanted, estimate.run_variance, self.num_tested or 1))

    @cached_property
    def edges(self) -> list[EdgeChange]:
        """All calls of one function by another, in both profiles; none where the graphs have no edges."""
        sides = [_mean_edges(side, of) for side, of in zip((self.base, self.new), self._entry_of, strict=True)]
        functions = self.functions
        return [
            EdgeChange(
                functions[caller],
                functions[callee],
                {
                    name: _plain_change(name, *(side.get((caller, callee)) for side in sides))
                    for name in self.statistics
                },
            )
            for caller, callee in dict.fromkeys(ends for side in sides for ends in side)
        ]

    def top(self, limit: int | None = None, *, order: str | None = None) -> list[FunctionChange]:
        """Functions that are not the same, sorted as `ranked` does.

        Args:
            limit: Largest number of rows; None for all.
            order: `name`, or by default the statistic that was compared.
        """
        return [one for one in self.ranked(self.functions, order=order) if one.verdict != "same"][:limit]

    def ranked(self, rows: Sequence[FunctionChange], *, order: str | None = None) -> list[FunctionChange]:
        """Rows in order: proven changes first, those of which the interval leaves most before others; then by the size
        of the change.

        Args:
            rows: Rows of this difference.
            order: `name`, or by default the statistic that was compared.
        """
        statistic = self.options.statistic

        def rank(one: FunctionChange) -> tuple[int, float, float, str, str]:
            named = (one.named.name, one.named.module or "")
            if order == "name":
                return 0, 0.0, 0.0, *named
            change = one.figures[statistic]
            is_proven = one.verdict in ("changed", "new", "gone")
            proven = _proven_part(change) if is_proven else 0.0
            group = 0 if is_proven else 2 if one.verdict == "same" else 1
            return group, -proven, -abs(change.difference), *named

        return sorted(rows, key=rank)

    @cached_property
    def _entry_of(self) -> tuple[dict[int, int], dict[int, int]]:
        """The entry of each function of both sides."""
        base = {place: number for number, entry in enumerate(self.entries) for place in entry.base}
        new = {place: number for number, entry in enumerate(self.entries) for place in entry.new}
        return base, new

    def entry_of_run(self, side: Literal["base", "new"], run: int) -> dict[int, int]:
        """For each function of a run, by key, its index in `functions`."""
        of = self.base if side == "base" else self.new
        entries = self._entry_of[0 if side == "base" else 1]
        return {key: entries[place] for key, place in of.places[run].items()}

    def _match(self) -> list[Entry]:
        a, b = self.base, self.new
        entries = match_entries(a.identities, b.identities)
        sampled = [
            entry for entry in entries if any(a.members[p] for p in entry.base) or any(b.members[p] for p in entry.new)
        ]
        return [
            Entry(entry.base, entry.new, entry.evidence, entry.is_open or bool(entry.base and entry.new))
            for entry in sampled
        ]

    def _members(self, entry: Entry) -> tuple[list[tuple[int, GraphFunction]], list[tuple[int, GraphFunction]]]:
        """The functions of an entry with their runs, for each side."""
        return self._functions_of[id(entry)]

    def _found(self, entry: Entry) -> tuple[list[tuple[int, GraphFunction]], list[tuple[int, GraphFunction]]]:
        sides = ((self.base, entry.base), (self.new, entry.new))
        base, new = (
            [(run, side.runs[run].functions[key]) for place in places for run, key in side.members[place]]
            for side, places in sides
        )
        return base, new

    def _runs(self, entry: Entry, statistic: str) -> tuple[list[float | None], list[float | None]]:
        """The number of an entry in each run, before normalization; None where it is unknown."""
        result: list[list[float | None]] = []
        for members, num_runs in zip(self._members(entry), self.num_runs, strict=True):
            runs: list[float | None] = [0.0 if statistic in SUMS else None] * num_runs
            seen = [0] * num_runs
            for run, function in members:
                value = function.values[statistic]
                known = runs[run]
                seen[run] += 1
                if statistic in SUMS:
                    runs[run] = None if value is None or known is None else known + value
                else:
                    # Durations of single calls cannot be added up.
                    runs[run] = value if seen[run] == 1 else None
            result.append(runs)
        return result[0], result[1]

    def _samples(self, entry: Entry, statistic: str) -> tuple[int, int]:
        base, new = (
            sum(one.num_self if statistic == "self" else one.num_total for _, one in members)
            for members in self._members(entry)
        )
        return base, new

    def _normalized(self, entry: Entry, statistic: str) -> tuple[list[float | None], list[float | None]]:
        runs = self._runs(entry, statistic)
        scale = self.divisors.of("count" if statistic == "count" else "sum" if statistic in SUMS else "call")
        base, new = (
            [None if value is None else value / by for value, by in zip(side, factors, strict=True)]
            for side, factors in zip(runs, scale, strict=True)
        )
        return base, new

    def _changes(self) -> dict[str, RunChanges]:
        """What is known of the change of each statistic, by entry."""
        return {name: self._changes_of(name) for name in self.statistics}

    def _changes_of(self, statistic: str) -> RunChanges:
        numbers = [self._normalized(entry, statistic) for entry in self.entries]
        samples = [self._samples(entry, statistic) for entry in self.entries]
        if self.has_one_run:
            single = [
                self._of_one_run(entry, statistic, number, count)
                for entry, number, count in zip(self.entries, numbers, samples, strict=True)
            ]
            return RunChanges(single, self.options.noise, 0, 0.0, 1.0)
        # Durations of single calls are unknown in runs without a call.
        known = [tuple([value for value in side if value is not None] for side in row) for row in numbers]
        complete = [
            number
            for number, sides in enumerate(known)
            if tuple(map(len, sides)) == self.num_runs and any(samples[number])
        ]
        rows = [Measured(known[number][0], known[number][1], sum(samples[number])) for number in complete]
        found = run_changes(rows, with_tests=statistic == self.options.statistic)
        estimates: list[Estimate | None] = [None] * len(numbers)
        for number, estimate in zip(complete, found.estimates, strict=True):
            estimates[number] = estimate
        return RunChanges(estimates, found.noise, found.num_tested, found.prior_df, found.prior_scale)

    def _of_one_run(
        self,
        entry: Entry,
        statistic: str,
        numbers: tuple[list[float | None], list[float | None]],
        samples: tuple[int, int],
    ) -> Estimate | None:
        (base,), (new,) = numbers
        if base is None or new is None:
            return None
        members = self._members(entry)
        bins = [_sum_of_bins([one.bins[statistic] for _, one in side if statistic in one.bins]) for side in members]
        return one_run_change(base, new, samples, (bins[0], bins[1]), noise=self.options.noise)

    def _whole(self) -> Change:
        sides = []
        for side, factors in zip((self.base, self.new), self.divisors.of_whole, strict=True):
            sides.append([graph.whole / by for graph, by in zip(side.runs, factors, strict=True)])
        base, new = (sum(side) / len(side) for side in sides)
        if self.has_one_run:
            counts = self.base.runs[0].num_counted, self.new.runs[0].num_counted
            return Change.of(base, new, one_run_change(base, new, counts, noise=self.options.noise))
        return Change.of(base, new, whole_change(*sides))

    def _function(self, number: int, changes: Mapping[str, RunChanges]) -> FunctionChange:
        entry = self.entries[number]
        figures, is_equal = {}, True
        for name in self.statistics:
            sides = self._normalized(entry, name)
            base, new = map(_mean, sides)
            figures[name] = Change.of(base, new, changes[name].estimates[number])
            # Of one run a side, all numbers are compared: one that is 0 in both shows nothing.
            if self.has_one_run or name == self.options.statistic:
                is_equal &= len({*sides[0], *sides[1]}) == 1
        members = self._members(entry)
        named = (members[1] or members[0])[-1][1]
        samples = self._samples(entry, self.options.statistic)
        verdict = self._verdict(entry, figures, is_equal)
        counts = [_most_in_a_run(side) for side in members]
        return FunctionChange(number, named, figures, verdict, samples, entry.evidence, (counts[0], counts[1]))

    def _whole_of(self, change: Change) -> float:
        """What a change of the compared statistic is part of."""
        if self.options.normalization.method == "share":
            return 1.0
        is_part = self.options.statistic in ("self", "sum", "total")
        return abs((self.whole if is_part else change).base or 0)

    def _verdict(self, entry: Entry, figures: Mapping[str, Change], is_equal: bool) -> Verdict:
        change, options = figures[self.options.statistic], self.options
        if is_equal:
            return "same"
        estimate = change.estimate
        if estimate is None:
            return "unclear"
        if estimate.p_max is not None and estimate.p_max <= options.level and self.allows_verdicts:
            is_large = abs(estimate.log_ratio) >= log1p(options.min_change)
            if is_large and abs(change.difference) >= _LEAST_SHARE_OF_WHOLE * self._whole_of(change):
                if not entry.is_open:
                    return "new" if not entry.base else "gone"
                return "changed"
        low, high = estimate.bounds(_CONFIDENCE_OF_SAME)
        if not self.has_one_run and max(abs(low), abs(high)) <= options.same_within:
            return "same"
        return "unclear"


def _refuse_others(runs: Sequence[FunctionGraph]) -> None:
    """Refuses runs that cannot be compared."""
    for one in runs:
        if not one.functions and not one.is_selection:
            message = f"neither calls nor samples with a stack in {one.title}"
            raise UsageError(message, hint="`perfuse report` prints what was recorded")
    first = runs[0]
    for other in runs[1:]:
        if first.kind != other.kind:
            raise UsageError(f"the first has {first.kind}, the second {other.kind}", hint="give two of a kind")
        if first.unit != other.unit:
            has_ticks = "ticks" in (first.unit, other.unit)
            hint = "give the rate of the counter with --tsc-hz" if has_ticks else "choose an event both have"
            raise UsageError(f"the first counts {first.unit}, the second {other.unit}", hint=hint)


def _proven_part(change: Change) -> float:
    """The size of a change that its interval leaves: its end that is nearer to 0."""
    if change.base and change.low is not None and change.high is not None:
        return max(0.0, min(abs(change.low), abs(change.high)) * change.base)
    return abs(change.difference)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _most_in_a_run(members: Sequence[tuple[int, GraphFunction]]) -> int:
    runs = [run for run, _ in members]
    return max(map(runs.count, set(runs)), default=0)


def _sum_of_bins(columns: Sequence[Sequence[int]]) -> list[int]:
    return [sum(values) for values in zip(*columns, strict=True)]


def _mean_edges(side: RunSide, entry_of: Mapping[int, int]) -> dict[tuple[int, int], dict[str, float | None]]:
    """Numbers of the calls between entries, on average over the runs of a side."""
    sums: dict[tuple[int, int], dict[str, float | None]] = {}
    num_runs = len(side.runs)
    for run, places in zip(side.runs, side.places, strict=True):
        for (caller, callee), values in run.edges.items():
            ends = entry_of[places[caller]], entry_of[places[callee]]
            _add_values(sums.setdefault(ends, {}), values, num_runs)
    return sums


def _add_values(to: dict[str, float | None], values: StatisticValues, num_runs: int) -> None:
    for name, value in values.items():
        known = to.get(name, 0)
        if value is None or known is None:
            to[name] = None
        elif name in SUMS:
            to[name] = known + value / num_runs
        else:
            # Durations of single calls cannot be added up.
            to[name] = value if name not in to else None


def _plain_change(name: str, base: Mapping[str, float | None] | None, new: Mapping[str, float | None] | None) -> Change:
    absent = 0.0 if name in SUMS else None
    return Change(absent if base is None else base.get(name), absent if new is None else new.get(name))
