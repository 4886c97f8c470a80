"""Comparisons of groups of recordings with the statistics of `perfuse diff`: a recording is a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfuse.analysis.diff import Difference, DiffOptions, FunctionChange
from perfuse.analysis.function_graph import SAMPLE_STATISTICS, FunctionGraph, GraphFunction, StackNodes
from perfuse.analysis.function_matching import FunctionIdentity
from perfuse.analysis.normalization import Method, Normalization, typical_factors
from perfuse.analysis.run_changes import Measured, run_changes
from perfuse.errors import UsageError
from perfuse.fleet.questions import FleetEvent, select_event
from perfuse.fleet.selecting import Recordings, label_sql

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
    r = f"SELECT * FROM ({which.query}) ORDER BY start_ns DESC, recording_id LIMIT {MOST_RUNS}"
    parameters = [*which.parameters, event.name]
    runs = fleet.only(which).rows(
        f"""SELECT r.recording_id, r.title, e.num_samples, e.weight FROM ({r}) AS r JOIN event_totals AS e
        USING (recording_id) WHERE e.event = ? ORDER BY r.start_ns DESC, r.recording_id""",
        parameters,
    )
    rows = fleet.only(which).rows(
        f"""SELECT t.recording_id, t.function_hash, t.self, t.total, t.self_samples, t.total_samples
        FROM function_totals AS t SEMI JOIN ({r}) AS r USING (recording_id) WHERE t.event = ?
        ORDER BY t.recording_id, t.function_hash""",
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


def _identities(fleet: Fleet, hashes: set[bytes]) -> dict[bytes, FunctionIdentity]:
    rows = fleet.head.rows("SELECT function_hash, name, module, path FROM functions")
    return {own: FunctionIdentity(name, module, path) for own, name, module, path in rows if own in hashes}


def _trees(
    fleet: Fleet, which: Recordings, event: FleetEvent, r: str, keys: Mapping[bytes, int]
) -> dict[str, StackNodes]:
    """The call tree of each recording."""
    rows = fleet.only(which).rows(
        f"""SELECT t.recording_id, t.stack_hash, t.weight, t.num_samples FROM stack_totals AS t
        SEMI JOIN ({r}) AS r USING (recording_id) WHERE t.event = ? ORDER BY t.recording_id, t.stack_hash""",
        [*which.parameters, event.name],
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
        first: The first build that has the change.
        last_good: The build before it.
        before: Mean share of recordings before.
        after: Mean share from then on.
        change: Relative change; None where it was not there before.
        low: Lower end of the 95 % interval of the relative change.
        high: Upper end of it.
        p: Probability of a step as clear in any function at any build if nothing changed.
        example: The recording with the largest share since.
    """

    name: str
    module: str | None
    first: str
    last_good: str
    before: float
    after: float
    change: float | None
    low: float
    high: float
    p: float
    example: str


@dataclass(frozen=True, slots=True)
class Steps:
    """The result of `steps_since`.

    Attributes:
        steps: The steps, regressions first, the largest first.
        values: The builds in their order, with the number of recordings of each.
        num_recordings: Number of recordings.
        num_tested: Functions with enough samples.
        event: What was compared.
        normalize: `typical` where shares were divided by the typical change of a recording's functions, else `share`.
    """

    steps: list[Step]
    values: list[tuple[str, int]]
    num_recordings: int
    num_tested: int
    event: FleetEvent
    normalize: str


def steps_since(
    fleet: Fleet, which: Recordings, since: str | None = None, *, label: str = "build", event: str | None = None
) -> Steps:
    """The functions whose share changed at a build after `since`, each with the first build that has the change.

    Builds are in the order of their first recordings; of each, the most recent ones count: 200 of all builds,
    and at least 20 of a build. For each function and each boundary between builds, all recordings before are compared
    with all after; the clearest boundary counts, and its probability is multiplied by the number of boundaries: of 100
    questions about equal builds at most 5 name any.

    Raises:
        UsageError: There is no such build, or none after it.
    """
    column, names = label_sql(label)
    selected = select_event(fleet, which, event)
    runs = fleet.only(which).rows(
        f"""WITH r AS (SELECT *, {column} AS value FROM ({which.query}))
        SELECT r.value, r.recording_id, e.weight FROM r JOIN event_totals AS e USING (recording_id)
        WHERE e.event = ? AND r.value IS NOT NULL AND e.weight > 0
        QUALIFY row_number() OVER (PARTITION BY r.value ORDER BY r.start_ns DESC, r.recording_id)
            <= (SELECT greatest({LEAST_RUNS}, {2 * MOST_RUNS} // greatest(count(DISTINCT value), 1)) FROM r)
        ORDER BY min(r.start_ns) OVER (PARTITION BY r.value), r.value, r.start_ns, r.recording_id""",
        [*names, *which.parameters, selected.name],
    )
    values = list(dict.fromkeys(run[0] for run in runs))
    if since is not None and since not in values:
        from perfuse.errors import nearest_hint

        raise UsageError(f"no recording has {label} {since!r}", hint=nearest_hint(since, values))
    first = values.index(since) + 1 if since is not None else 1
    if first >= len(values):
        raise UsageError(
            f"there is no {label} after {values[-1] if values else '-'}", hint=f"{label}s: {', '.join(values)}"
        )
    place = {recording: number for number, (_, recording, _) in enumerate(runs)}
    shares, samples = _share_rows(fleet, which, selected, runs, place)
    factors = _speed_factors(shares, samples, len(runs))
    hashes = sorted(shares)
    rows = [[value / factor for value, factor in zip(shares[one], factors, strict=True)] for one in hashes]
    boundaries = [next(n for n, run in enumerate(runs) if run[0] == values[k]) for k in range(first, len(values))]
    boundaries = [at for at in boundaries if math.comb(len(runs), at) >= len(boundaries) / LEVEL]
    best: dict[int, tuple[float, int, Any]] = {}
    num_tested = 0
    for at in boundaries:
        measured = [Measured(row[:at], row[at:], samples[own]) for row, own in zip(rows, hashes, strict=True)]
        changes = run_changes(measured)
        num_tested = max(num_tested, changes.num_tested)
        for number, estimate in enumerate(changes.estimates):
            if estimate is not None and estimate.p_max is not None:
                clear = abs(estimate.log_ratio) / max(estimate.error, 1e-100)
                if number not in best or clear > best[number][0]:
                    best[number] = (clear, at, estimate)
    identities = _identities(fleet, set(hashes))
    steps = []
    for number, (_, at, estimate) in best.items():
        p = min(1.0, estimate.p_max * len(boundaries))
        row = shares[hashes[number]]
        before, after = sum(row[:at]) / at, sum(row[at:]) / (len(row) - at)
        is_large = abs(estimate.log_ratio) >= math.log1p(MIN_CHANGE) and abs(after - before) >= _LEAST_SHARE
        if p > LEVEL or not is_large:
            continue
        low, high = estimate.bounds()
        most = max(range(at, len(row)), key=lambda run, row=row: row[run])  # type: ignore[misc]
        known = identities[hashes[number]]
        steps.append(
            Step(
                known.name,
                known.module,
                runs[at][0],
                runs[at - 1][0],
                before,
                after,
                math.expm1(estimate.log_ratio) if before else None,
                low,
                high,
                p,
                runs[most][1],
            )
        )
    steps.sort(key=lambda one: (one.after < one.before, -abs(one.after - one.before)))
    counts = [(value, sum(run[0] == value for run in runs)) for value in values]
    return Steps(
        steps, counts, len(runs), num_tested, selected, "typical" if any(one != 1.0 for one in factors) else "share"
    )


def _share_rows(
    fleet: Fleet, which: Recordings, event: FleetEvent, runs: Sequence[tuple[Any, ...]], place: Mapping[str, int]
) -> tuple[dict[bytes, list[float]], dict[bytes, int]]:
    """The share of each function in each recording, and its samples in all of them."""
    shares: dict[bytes, list[float]] = {}
    samples: dict[bytes, int] = {}
    rows = fleet.only(which).rows(
        """SELECT t.function_hash, t.recording_id, t.self, t.self_samples FROM function_totals AS t
        SEMI JOIN (SELECT unnest(?) AS recording_id) AS r USING (recording_id) WHERE t.event = ? AND t.self > 0""",
        [list(place), event.name],
    )
    for own, recording, weight, count in rows:
        at = place.get(recording)
        if at is None:
            continue
        row = shares.setdefault(own, [0.0] * len(runs))
        row[at] = weight / runs[at][2]
        samples[own] = samples.get(own, 0) + count
    return shares, samples


def _speed_factors(
    shares: Mapping[bytes, Sequence[float]], samples: Mapping[bytes, int], num_runs: int
) -> Sequence[float]:
    """What shares are divided by: the typical change of a recording's functions, so that one that grows does not
    seem to shrink all others; 1 where too few functions are in all recordings."""
    usable = [row for own, row in shares.items() if all(row) and samples[own] >= 20 * num_runs]
    return typical_factors(usable) if len(usable) >= 10 else [1.0] * num_runs
