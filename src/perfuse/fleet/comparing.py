"""Comparisons of groups of recordings with the statistics of `perfuse diff`: a recording is a run."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfuse.analysis.diff import Difference, DiffOptions, FunctionChange
from perfuse.analysis.function_graph import SAMPLE_STATISTICS, FunctionGraph, GraphFunction, StackNodes
from perfuse.analysis.function_matching import FunctionIdentity, key_without_module
from perfuse.analysis.normalization import Method, Normalization, typical_factors
from perfuse.analysis.run_changes import Estimate, Measured, run_changes
from perfuse.errors import UsageError, require_known
from perfuse.fleet.identities import function_hash
from perfuse.fleet.questions import FleetEvent, select_event
from perfuse.fleet.selecting import Recordings, label_sql
from perfuse.table import COUNTED_EVENTS, sql_text

if TYPE_CHECKING:
    from perfuse.fleet.dataset import Fleet

MOST_RUNS = 100
"""Recordings of a side that are compared: the most recent ones. More would not make a verdict clearer."""

LEAST_RUNS = 20
"""Recordings of a build that are compared, the most recent ones, where there are many builds."""

LEVEL = 0.05
MIN_CHANGE = 0.02
_LEAST_SHARE = 0.001


def graphs_of(fleet: Fleet, which: Recordings, event: FleetEvent, *, nodes: bool = False) -> list[FunctionGraph]:
    """The functions of each recording of a selection, the most recent first and at most `MOST_RUNS`.

    Args:
        fleet: The dataset.
        which: The recordings.
        event: The event.
        nodes: Whether to include the call trees.
    """
    counts = _counts_of(event)
    # Recordings of other events do not count among the most recent ones.
    r = (
        f"SELECT * FROM ({which.query}) SEMI JOIN (SELECT recording_id FROM event_totals WHERE event = ?)"
        f" USING (recording_id) ORDER BY start_ns DESC, recording_id LIMIT {MOST_RUNS}"
    )
    parameters = [*which.parameters, event.name, event.name]
    runs = fleet.only(which).rows(
        f"""SELECT r.recording_id, r.title, coalesce(c.weight, e.num_samples), e.weight
        FROM ({r}) AS r JOIN event_totals AS e USING (recording_id)
        LEFT JOIN event_totals AS c ON c.recording_id = r.recording_id AND c.event = {counts}
        WHERE e.event = ? ORDER BY r.start_ns DESC, r.recording_id""",
        parameters,
    )
    rows = fleet.only(which).rows(
        f"""SELECT t.recording_id, t.function_hash, t.self, t.total, coalesce(c.self, t.self_samples),
            coalesce(c.total, t.total_samples)
        FROM function_totals AS t SEMI JOIN ({r}) AS r USING (recording_id)
        LEFT JOIN function_totals AS c
            ON c.recording_id = t.recording_id AND c.function_hash = t.function_hash AND c.event = {counts}
        WHERE t.event = ? ORDER BY t.recording_id, t.function_hash""",
        parameters,
    )
    names = _identities(fleet, {row[1] for row in rows})
    keys = {own: number for number, own in enumerate(sorted(names))}
    functions: dict[str, dict[int, GraphFunction]] = {run[0]: {} for run in runs}
    for recording, own, weight, total, num_self, num_total in rows:
        identity = names[own]
        values = {"count": num_total, "self": weight, "total": total}
        functions[recording][keys[own]] = GraphFunction(
            identity.name, identity.module, identity.path, None, values, identity, num_self, num_total
        )
    trees = _trees(fleet, which, event, r, keys) if nodes else {}
    return [
        FunctionGraph(
            title,
            "samples",
            event.name,
            event.unit,
            SAMPLE_STATISTICS,
            num_samples,
            weight,
            functions[recording],
            nodes=trees.get(recording, StackNodes([], [], [], [], [], [])) if nodes else None,
        )
        for recording, title, num_samples, weight in runs
    ]


def _counts_of(event: FleetEvent) -> str:
    """The event, in SQL, whose weights are numbers of the calls or allocations of a sum; NULL for samples."""
    counts = COUNTED_EVENTS.get(event.name, event.name if event.name in COUNTED_EVENTS.values() else None)
    return "NULL" if counts is None else sql_text(counts)


def _identities(fleet: Fleet, hashes: set[bytes]) -> dict[bytes, FunctionIdentity]:
    rows = fleet.head.rows("SELECT function_hash, name, module, path FROM functions")
    return {own: FunctionIdentity(name, module, path) for own, name, module, path in rows if own in hashes}


def _trees(
    fleet: Fleet, which: Recordings, event: FleetEvent, r: str, keys: Mapping[bytes, int]
) -> dict[str, StackNodes]:
    """The call tree of each recording."""
    rows = fleet.only(which).rows(
        f"""SELECT t.recording_id, t.stack_hash, t.weight, coalesce(c.weight, t.num_samples) FROM stack_totals AS t
        SEMI JOIN ({r}) AS r USING (recording_id)
        LEFT JOIN stack_totals AS c
            ON c.recording_id = t.recording_id AND c.stack_hash = t.stack_hash AND c.event = {_counts_of(event)}
        WHERE t.event = ? ORDER BY t.recording_id, t.stack_hash""",
        [*which.parameters, event.name, event.name],
    )
    stacks = {own: (parent, function) for own, parent, function in fleet.head.rows("FROM stacks")}
    by_recording: dict[str, list[tuple[bytes, int, int]]] = {}
    for recording, *row in rows:
        by_recording.setdefault(recording, []).append((row[0], row[1], row[2]))
    return {recording: _tree(sums, stacks, keys) for recording, sums in by_recording.items()}


def _tree(
    sums: Sequence[tuple[bytes, int, int]],
    stacks: Mapping[bytes, tuple[bytes | None, bytes]],
    keys: Mapping[bytes, int],
) -> StackNodes:
    """Sums by stack as a tree in preorder."""
    totals: dict[bytes, list[int]] = {}
    children: dict[bytes | None, list[bytes]] = {}
    for stack, weight, samples in sums:
        at: bytes | None = stack
        is_leaf = True
        while at is not None:
            row = totals.get(at)
            if row is None:
                row = totals[at] = [0, 0, 0, 0]
                children.setdefault(stacks[at][0], []).append(at)
            if is_leaf:
                row[0] += weight
                row[1] += samples
                is_leaf = False
            row[2] += weight
            row[3] += samples
            at = stacks[at][0]
    found = StackNodes([], [], [], [], [], [])
    todo = [(stack, -1) for stack in sorted(children.get(None, []), reverse=True)]
    while todo:
        stack, parent = todo.pop()
        number = len(found.parents)
        row = totals[stack]
        found.parents.append(parent)
        found.functions.append(keys[stacks[stack][1]])
        found.self_weights.append(row[0])
        found.self_samples.append(row[1])
        found.total_weights.append(row[2])
        found.total_samples.append(row[3])
        todo += [(child, number) for child in sorted(children.get(stack, []), reverse=True)]
    return found


def difference(
    base: Sequence[FunctionGraph],
    new: Sequence[FunctionGraph],
    *,
    normalize: str | None = None,
    statistic: str = "self",
) -> Difference:
    """The difference of two groups of recordings.

    Args:
        base: The first side.
        new: The second side.
        normalize: `run`, `share` or `typical`; by default `typical` where the recordings have functions enough for
            it, else `share`: recordings of a fleet differ in length.
        statistic: The statistic that verdicts are about.
    """
    if normalize is not None:
        return Difference(base, new, _options(normalize, statistic))
    try:
        return Difference(base, new, _options("typical", statistic))
    except UsageError:
        return Difference(base, new, _options("share", statistic))


def _options(method: Any, statistic: str) -> DiffOptions:
    chosen: Method = method
    return DiffOptions(statistic=statistic, normalization=Normalization(chosen), level=LEVEL, min_change=MIN_CHANGE)


@dataclass(frozen=True, slots=True)
class Beyond:
    """A function of a new recording beyond the noise of those before.

    Attributes:
        change: The function with its numbers on both sides.
        p: Probability of such a change, or a larger one, in any of the tested functions if nothing changed.
    """

    change: FunctionChange
    p: float


def beyond_noise(found: Difference) -> list[Beyond]:
    """Functions that grew more than the noise between recordings explains, the largest growth first.

    Of 100 checks of equal programs at most 5 name any function. With four or more new recordings the probability is
    that of the permutations of `perfuse diff`; with fewer it is that of a moderated t test, times the number of tested
    functions.
    """
    statistic = found.options.statistic
    named = []
    for one in found.functions:
        estimate = one.figures[statistic].estimate
        if estimate is None or estimate.p is None or estimate.p_max is None:
            continue
        few = min(found.num_runs) < 4
        p = min(1.0, estimate.p * max(found.num_tested, 1)) if few else estimate.p_max
        is_large = estimate.log_ratio >= math.log1p(found.options.min_change)
        whole = sum(graph.whole for graph in found.new.runs)
        is_seen = (
            one.samples[1] and sum(row.values["self"] or 0 for row in _members(found, one)) >= _LEAST_SHARE * whole
        )
        if p <= found.options.level and is_large and is_seen:
            named.append(Beyond(one, p))
    return sorted(named, key=lambda one: -one.change.figures[statistic].difference)


def _members(found: Difference, one: FunctionChange) -> list[GraphFunction]:
    return [row for place in found.entries[one.key].new for row in found.new.functions(place)]


@dataclass(frozen=True, slots=True)
class Step:
    """A function whose share changed from one build to the next, and stayed.

    Attributes:
        name: The function.
        module: File that contains it.
        within: The value of the label that all compared recordings have; None where that was not asked for.
        first: The first build that has the change.
        last_good: The build before it.
        before: Mean share of recordings before.
        after: Mean share from then on.
        change: Relative change; None where it was not there before.
        low: Lower end of the 95 % interval of the relative change; None where it was not there before.
        high: Upper end of it.
        p: Probability of a step as clear in any function at any build if nothing changed.
        example: The recording with the largest share since.
    """

    name: str
    module: str | None
    within: str | None
    first: str
    last_good: str
    before: float
    after: float
    change: float | None
    low: float | None
    high: float | None
    p: float
    example: str


@dataclass(frozen=True, slots=True)
class Steps:
    """The result of `steps_since`.

    Attributes:
        steps: The steps, regressions first, the largest first.
        values: The builds in their order, with the number of recordings of each.
        num_recordings: Number of recordings.
        num_groups: Values of the label within which recordings were compared; 1 without one.
        mixed: A label by which the recordings are of several programs, `program` or `service`, and how many; None where
            they are of one, or where recordings were compared within a label.
        num_boundaries: Builds with enough recordings before and from them on for a test, at most of one group; without
            one no function is tested.
        num_tested: Functions with enough samples, at most of one group.
        event: What was compared.
        normalize: `typical` where shares were divided by the typical change of a recording's functions, else `share`.
    """

    steps: list[Step]
    values: list[tuple[str, int]]
    num_recordings: int
    num_groups: int
    mixed: tuple[str, int] | None
    num_boundaries: int
    num_tested: int
    event: FleetEvent
    normalize: str


def steps_since(
    fleet: Fleet,
    which: Recordings,
    since: str | None = None,
    *,
    label: str = "build",
    within: str | None = None,
    event: str | None = None,
) -> Steps:
    """The functions whose share changed at a build after `since`, each with the first build that has the change.

    Builds are in the order of their first recordings; of each, the most recent ones count: 200 of all builds,
    and at least 20 of a build. For each function and each boundary between builds, all recordings before are compared
    with all after; the clearest boundary counts, and its probability is multiplied by the number of boundaries: of 100
    questions about equal builds at most 5 name any.

    A function that grows makes the shares of all others shrink. So the step that moves most is named, and the others
    only where they changed among themselves, too.

    Args:
        fleet: The dataset.
        which: The recordings.
        since: The last build before those that are looked at; None for the first one.
        label: What builds are: a label, or a column of `recordings`.
        within: A label, such as `service`, of which only recordings with equal values are compared; the probabilities
            are multiplied by the number of values, too.
        event: The event.

    Raises:
        UsageError: There is no such build, or none after it; or no recording has a label.
    """
    fleet.require_labels(label, *filter(None, [within]))
    selected = select_event(fleet, which, event)
    runs = _runs_of_builds(fleet, which, selected, label, within)
    values = list(dict.fromkeys(run.value for run in runs))
    later = _values_after(since, values, label, selected)
    groups: dict[str, list[_Run]] = {}
    for run in runs:
        groups.setdefault(run.group, []).append(run)
    places = {run.recording: (run.group, place) for own in groups.values() for place, run in enumerate(own)}
    functions = _functions_by_group(fleet, which, selected, groups, places)
    steps: list[Step] = []
    num_boundaries, num_tested, is_typical = 0, 0, True
    for name in sorted(groups):
        found = _GroupSteps(groups[name], functions[name], later, len(groups))
        num_boundaries = max(num_boundaries, found.num_boundaries)
        num_tested, is_typical = max(num_tested, found.num_tested), is_typical and found.is_typical
        identities = _identities(fleet, {one.function for one in found.steps})
        steps += [found.described(one, identities, within and name) for one in found.steps]
    steps.sort(key=lambda one: (one.after < one.before, -abs(one.after - one.before)))
    counts = [(value, sum(run.value == value for run in runs)) for value in values]
    method = "typical" if is_typical else "share"
    mixed = None if within is not None else _mixed(runs)
    return Steps(steps, counts, len(runs), len(groups), mixed, num_boundaries, num_tested, selected, method)


def _runs_of_builds(fleet: Fleet, which: Recordings, event: FleetEvent, label: str, within: str | None) -> list[_Run]:
    """The recordings that count, in the order of builds and of time."""
    column, names = label_sql(label)
    program, of_program = label_sql("program")
    group, of_group = ("''", ()) if within is None else label_sql(within)
    rows = fleet.only(which).rows(
        f"""WITH r AS (SELECT *, {column} AS value, {group} AS own_group, {program} AS program
            FROM ({which.query}))
        SELECT r.value, r.recording_id, e.weight, r.own_group, r.program, r.service
        FROM r JOIN event_totals AS e USING (recording_id)
        WHERE e.event = ? AND r.value IS NOT NULL AND r.own_group IS NOT NULL AND e.weight > 0
        QUALIFY row_number() OVER (PARTITION BY r.own_group, r.value ORDER BY r.start_ns DESC, r.recording_id)
            <= (SELECT greatest({LEAST_RUNS}, {2 * MOST_RUNS} // greatest(count(DISTINCT value), 1)) FROM r)
        ORDER BY min(r.start_ns) OVER (PARTITION BY r.value), r.value, r.start_ns, r.recording_id""",
        [*names, *of_group, *of_program, *which.parameters, event.name],
    )
    return [_Run(*row) for row in rows]


def _values_after(since: str | None, values: Sequence[str], label: str, event: FleetEvent) -> Sequence[str]:
    """The builds after one, or after the first."""
    if not values:
        hint = f"`perfuse fleet add --label {label}=NAME` gives them one; --by compares by another label"
        raise UsageError(f"no recording with event {event.name!r} has a {label}", hint=hint)
    if since is not None:
        require_known(since, values, f"recording has {label}")
    later = values[values.index(since) + 1 if since is not None else 1 :]
    if not later:
        raise UsageError(f"no {label} follows {values[-1]}", hint=f"{label}s: {', '.join(values)}")
    return later


def _mixed(runs: Sequence[_Run]) -> tuple[str, int] | None:
    """The label by which recordings are of several programs, and of how many."""
    counts = [(label, len({getattr(run, label) for run in runs} - {None})) for label in ("program", "service")]
    return next((one for one in counts if one[1] > 1), None)


@dataclass(frozen=True, slots=True)
class _Run:
    value: str
    recording: str
    weight: int
    group: str
    program: str | None
    service: str | None


@dataclass(slots=True)
class _Function:
    """A function in the recordings of a group: its share of each, and its samples in all of them."""

    shares: list[float]
    samples: int = 0


@dataclass(frozen=True, slots=True)
class _FoundStep:
    function: bytes
    at: int
    estimate: Estimate
    p: float


class _GroupSteps:
    """The steps of the functions of some recordings.

    Args:
        runs: The recordings, by build.
        functions: The functions, by their hash.
        values: The builds that may be the first with a change.
        num_groups: How many such groups there are in the question.

    Attributes:
        steps: The steps, the one that moves most first.
        num_boundaries: Builds with enough recordings before and from them on.
        num_tested: Functions with enough samples.
        is_typical: Whether shares were divided by the typical change of a recording's functions.
    """

    def __init__(
        self, runs: Sequence[_Run], functions: Mapping[bytes, _Function], values: Sequence[str], num_groups: int
    ) -> None:
        self.num_tested = 0
        self.steps: list[_FoundStep] = []
        self._runs, self._functions = runs, functions
        starts = {value: next((n for n, run in enumerate(runs) if run.value == value), 0) for value in values}
        boundaries = [at for at in starts.values() if at]
        factor = len(boundaries) * num_groups
        self._boundaries = [at for at in boundaries if math.comb(len(runs), at) >= factor / LEVEL]
        self._factor = factor
        self.num_boundaries = len(self._boundaries)
        rest = dict(functions)
        whole = [1.0] * len(runs)
        self.is_typical = any(one != 1.0 for one in _speed_factors(rest, whole))
        found = self._clear_steps(rest, whole)
        while found:
            step = max(found, key=lambda one: abs(self._means(one)[1] - self._means(one)[0]))
            self.steps.append(step)
            others = {one.function for one in found} - {step.function}
            # What follows is about shares of what is left.
            gone = rest.pop(step.function)
            whole = [max(all_ - own, 0.0) for all_, own in zip(whole, gone.shares, strict=True)]
            if not others or not all(whole):
                break
            found = [one for one in self._clear_steps(rest, whole) if one.function in others]

    def _means(self, one: _FoundStep) -> tuple[float, float]:
        row = self._functions[one.function].shares
        return sum(row[: one.at]) / one.at, sum(row[one.at :]) / (len(row) - one.at)

    def _clear_steps(self, functions: Mapping[bytes, _Function], whole: Sequence[float]) -> list[_FoundStep]:
        factors = [own * all_ for own, all_ in zip(_speed_factors(functions, whole), whole, strict=True)]
        hashes = sorted(functions)
        rows = [
            [value / factor for value, factor in zip(functions[one].shares, factors, strict=True)] for one in hashes
        ]
        best: dict[int, tuple[float, int, Estimate]] = {}
        for at in self._boundaries:
            measured = [
                Measured(row[:at], row[at:], functions[own].samples) for row, own in zip(rows, hashes, strict=True)
            ]
            changes = run_changes(measured)
            self.num_tested = max(self.num_tested, changes.num_tested)
            for number, estimate in enumerate(changes.estimates):
                if estimate is not None and estimate.p_max is not None:
                    clear = abs(estimate.log_ratio) / max(estimate.error, 1e-100)
                    if number not in best or clear > best[number][0]:
                        best[number] = (clear, at, estimate)
        steps = []
        for number, (_, at, estimate) in best.items():
            one = _FoundStep(hashes[number], at, estimate, min(1.0, (estimate.p_max or 0.0) * self._factor))
            before, after = self._means(one)
            is_large = abs(estimate.log_ratio) >= math.log1p(MIN_CHANGE) and abs(after - before) >= _LEAST_SHARE
            if one.p <= LEVEL and is_large:
                steps.append(one)
        return steps

    def described(self, one: _FoundStep, identities: Mapping[bytes, FunctionIdentity], within: str | None) -> Step:
        """A step with its names and builds."""
        before, after = self._means(one)
        low, high = one.estimate.bounds() if before else (None, None)
        row, known = self._functions[one.function].shares, identities[one.function]
        return Step(
            known.name,
            known.module,
            within,
            self._runs[one.at].value,
            self._runs[one.at - 1].value,
            before,
            after,
            math.expm1(one.estimate.log_ratio) if before else None,
            low,
            high,
            one.p,
            self._runs[max(range(one.at, len(row)), key=lambda run: row[run])].recording,
        )


def _functions_by_group(
    fleet: Fleet,
    which: Recordings,
    event: FleetEvent,
    groups: Mapping[str, Sequence[_Run]],
    places: Mapping[str, tuple[str, int]],
) -> dict[str, dict[bytes, _Function]]:
    """The functions in the recordings of each group."""
    found: dict[str, dict[bytes, _Function]] = {name: {} for name in groups}
    rows = fleet.only(which).rows(
        """SELECT t.function_hash, t.recording_id, t.self, t.self_samples FROM function_totals AS t
        SEMI JOIN (SELECT unnest(?) AS recording_id) AS r USING (recording_id) WHERE t.event = ? AND t.self > 0""",
        [list(places), event.name],
    )
    for own, recording, weight, count in rows:
        group, at = places[recording]
        runs = groups[group]
        function = found[group].get(own)
        if function is None:
            function = found[group][own] = _Function([0.0] * len(runs))
        function.shares[at] = weight / runs[at].weight
        function.samples += count
    names = _identities(fleet, {own for functions in found.values() for own in functions})
    return {
        group: _of_renamed_files(_of_unknown_sources(functions, names), names, groups[group])
        for group, functions in found.items()
    }


def _of_unknown_sources(
    functions: Mapping[bytes, _Function], names: Mapping[bytes, FunctionIdentity]
) -> dict[bytes, _Function]:
    """The functions; those that share name and module are one, under the hash without a source file, where some
    recordings have that: builds without debug information are compared with others by the sums."""
    found: dict[bytes, _Function] = {}
    for own, function in functions.items():
        whole = function_hash(names[own].name, names[own].module, None, "native")
        known = found.setdefault(whole if whole in functions else own, function)
        if known is function:
            continue
        known.shares = [sum(of_run) for of_run in zip(known.shares, function.shares, strict=True)]
        known.samples += function.samples
    return found


def _of_renamed_files(
    functions: dict[bytes, _Function], names: Mapping[bytes, FunctionIdentity], runs: Sequence[_Run]
) -> dict[bytes, _Function]:
    """The functions; those of one name in files that no build has together are one, under the hash of the last build.

    `diff` matches them, too: programs have versions in their file names.
    """
    alike: dict[Hashable, list[tuple[int, bytes]]] = {}
    for own, function in functions.items():
        key = key_without_module(names[own])
        if key is not None:
            last = max(place for place, share in enumerate(function.shares) if share)
            alike.setdefault(key, []).append((last, own))
    for several in alike.values():
        members = [functions[own] for _, own in several]
        builds = [{run.value for run, share in zip(runs, one.shares, strict=True) if share} for one in members]
        if len(several) == 1 or sum(map(len, builds)) != len(set().union(*builds)):
            continue
        shares = [sum(of_run) for of_run in zip(*(one.shares for one in members), strict=True)]
        for _, own in several:
            del functions[own]
        functions[max(several)[1]] = _Function(shares, sum(one.samples for one in members))
    return functions


def _speed_factors(functions: Mapping[bytes, _Function], whole: Sequence[float]) -> Sequence[float]:
    """What shares of what is left are divided by: the typical change of a recording's functions, so that one that
    grows does not seem to shrink all others; 1 where too few functions are in all recordings."""
    num_runs = len(whole)
    usable = [
        [own / all_ for own, all_ in zip(one.shares, whole, strict=True)]
        for one in functions.values()
        if all(one.shares) and one.samples >= 20 * num_runs
    ]
    return typical_factors(usable) if len(usable) >= 10 else [1.0] * num_runs
