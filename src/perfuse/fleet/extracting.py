"""What a dataset stores of a recording: sums by function and stack, statistics of calls, sizes of the heap."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perfuse.analysis.sampled import SampleFilter, call_tree, events
from perfuse.fleet.identities import function_hash, stack_hash
from perfuse.table import HAS_ONLY_NUMBER, Columns

if TYPE_CHECKING:
    from perfuse.profile import Profile

Row = tuple[Any, ...]


@dataclass(slots=True)
class Extract:
    """Rows of one recording, without the columns that all of its rows share; by table."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    functions: dict[bytes, Row] = field(default_factory=dict)
    stacks: dict[bytes, Row] = field(default_factory=dict)


def extract(profile: Profile) -> Extract:
    """The rows of a profile."""
    found = Extract()
    for event in events(profile):
        if event.num_samples:
            _add_event(found, profile, event)
    if profile.has_traces:
        _add_calls(found, profile)
    if profile.has_heap_snapshots:
        _add_heap(found, profile)
    return found


def _add_event(found: Extract, profile: Profile, event: Any) -> None:
    tree = call_tree(profile, SampleFilter(event=event.name))
    symbols, nodes = Columns(tree.symbols()), Columns(tree.nodes())
    hashes: list[bytes] = []
    unnamed: set[int] = set()
    numbered = _numbered_functions(profile)
    names = ("name", "module", "path", "is_declaration", "kind", "function_id", "unnamed_because")
    for number, (name, module, path, is_declared, kind, function, why) in enumerate(symbols.tuples(*names)):
        own = function_hash(name, module, path if is_declared or kind == "jit" else None, kind)
        found.functions.setdefault(own, (own, name, module, path, kind))
        hashes.append(own)
        if why is not None or function in numbered:
            unnamed.add(number)
    sums = _Sums(hashes, symbols["tier"])
    sums.add_nodes(nodes, found.stacks)
    num_unnamed = sum(weight for symbol, weight in nodes.tuples("symbol_id", "self_weight") if symbol in unnamed)
    found.rows["event_totals"].append((event.name, event.unit, event.num_samples, event.weight, num_unnamed))
    found.rows["function_totals"] += sums.function_rows(event.name)
    found.rows["stack_totals"] += [(event.name, stack, *numbers) for stack, numbers in sums.stacks.items()]


def _numbered_functions(profile: Profile) -> set[int]:
    """Functions that have numbers in place of names: of XRay logs without an instrumentation map."""
    if not profile.has_traces:
        return set()  # without SQL, whose start takes longer than the rest of a small recording
    rows = profile.sql(f"SELECT function_id FROM functions WHERE {HAS_ONLY_NUMBER}").fetchall()
    return {function for (function,) in rows}


class _Sums:
    """Sums by function, and by stack.

    Args:
        hashes: The function of each symbol.
        tiers: The tier of each symbol.
    """

    def __init__(self, hashes: list[bytes], tiers: list[str | None]) -> None:
        self.stacks: dict[bytes, tuple[int, int]] = {}
        self._hashes, self._tiers = hashes, tiers
        self._functions: dict[bytes, list[int]] = {}
        self._by_tier: dict[bytes, dict[str | None, int]] = {}

    def add_nodes(self, nodes: Columns, stacks: dict[bytes, Row]) -> None:
        """Adds a call tree, whose nodes are in preorder; its stacks become rows."""
        keys = ("node_id", "parent_node_id", "symbol_id")
        weights = ("self_weight", "total_weight", "self_samples", "total_samples")
        hashes, tiers, functions, by_tier, own_stacks = (
            self._hashes,
            self._tiers,
            self._functions,
            self._by_tier,
            self.stacks,
        )
        path: list[tuple[int, bytes, bytes]] = []
        num_open: dict[bytes, int] = {}
        for node, parent, symbol, weight, total, samples, total_samples in nodes.tuples(*keys, *weights):
            while path and path[-1][0] != parent:
                num_open[path.pop()[1]] -= 1
            function = hashes[symbol]
            caller = path[-1][2] if path else None
            stack = stack_hash(caller, function)
            sums = functions.get(function)
            if sums is None:
                sums = functions[function] = [0, 0, 0, 0]
                by_tier[function] = {}
                num_open[function] = 0
            if not num_open[function]:
                # Of a recursive function, the outermost call has the whole.
                sums[1] += total
                sums[3] += total_samples
            num_open[function] += 1
            path.append((node, function, stack))
            if stack not in stacks:
                stacks[stack] = (stack, caller, function)
            if samples:
                sums[0] += weight
                sums[2] += samples
                of_tiers, tier = by_tier[function], tiers[symbol]
                of_tiers[tier] = of_tiers.get(tier, 0) + weight
                known = own_stacks.get(stack, (0, 0))
                own_stacks[stack] = (known[0] + weight, known[1] + samples)

    def function_rows(self, event: str) -> list[Row]:
        """One row for each function; its tier is that with most of its own weight."""
        rows = []
        for function, sums in self._functions.items():
            tiers = self._by_tier[function]
            tier = max(tiers, key=lambda tier: (tiers[tier], tier or ""), default=None)
            rows.append((event, function, tier, *sums))
        return rows


def _add_calls(found: Extract, profile: Profile) -> None:
    from perfuse.analysis.latency import CallAccount

    account = CallAccount(profile)
    for one in account.functions(order="name"):
        function, latency = one.function, one.latency
        own = function_hash(function.name, function.module, function.path, "traced")
        found.functions.setdefault(own, (own, function.name, function.module, function.path, "traced"))
        numbers = (getattr(latency, f"{name}_ns") for name in ("sum", "self", "min", "median", "p90", "p99", "max"))
        found.rows["call_stats"].append((own, account.unit, latency.num_calls, *numbers))
    found.rows["call_stats"] = _added_up(found.rows["call_stats"])


def _added_up(rows: list[Row]) -> list[Row]:
    """Rows by function; those of functions that share an identity are added up, and lose their percentiles."""
    merged: dict[bytes, Row] = {}
    for row in rows:
        known = merged.get(row[0])
        if known is None:
            merged[row[0]] = row
            continue
        sums = [None if None in (a, b) else a + b for a, b in zip(known[2:5], row[2:5], strict=True)]
        ends = [
            None if None in pair else of(pair) for pair, of in (((known[5], row[5]), min), ((known[9], row[9]), max))
        ]
        merged[row[0]] = (row[0], row[1], *sums, ends[0], None, None, None, ends[1])
    return list(merged.values())


def _add_heap(found: Extract, profile: Profile) -> None:
    from perfuse import _core
    from perfuse.analysis.heap import snapshots
    from perfuse.analysis.objects import type_names

    sums, _ = _core.heap_sums(profile._heaps)
    names = type_names(profile)
    numbers = {one.snapshot_id: number for number, one in enumerate(snapshots(profile))}
    last = max((numbers[snapshot] for snapshot, *_ in sums if snapshot in numbers), default=None)
    merged: dict[tuple[int, str | None], list[int]] = {}
    for snapshot, of, count, size in sums:
        if snapshot in numbers:
            row = merged.setdefault((numbers[snapshot], None if of is None else names.get(of)), [0, 0])
            row[0] += count
            row[1] += size
    found.rows["heap_types"] += [(number, number == last, name, *row) for (number, name), row in merged.items()]
