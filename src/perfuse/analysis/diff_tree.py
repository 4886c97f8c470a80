"""The call trees of several runs as one: each node is a stack of functions that were matched."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from perfuse.analysis.diff import Difference, FunctionChange
from perfuse.analysis.function_graph import FunctionGraph, GraphFunction
from perfuse.analysis.function_matching import FunctionIdentity
from perfuse.analysis.run_sides import RunSide


@dataclass(frozen=True, slots=True)
class StackDifference:
    """The difference of two groups of runs by stack.

    Attributes:
        functions: The difference by function, which decides which function is which.
        nodes: The difference by stack: `nodes.functions` has an entry for each node of the common tree.
        parents: For each entry of `nodes`, the caller's; -1 for outermost ones. Callers precede callees.
        of_function: For each entry of `nodes`, its function as an index in `functions.functions`.
    """

    functions: Difference
    nodes: Difference
    parents: list[int]
    of_function: list[int]

    def stack(self, node: int) -> tuple[str, ...]:
        """Names of a node's callers, outermost first, and its own."""
        return tuple(self._names(node))[::-1]

    def rows(self) -> list[FunctionChange]:
        """The entries of `nodes`, named by their functions, with their stacks."""
        named = self.functions.functions
        return [
            replace(
                one,
                named=replace(named[self.of_function[one.key]].named, values=one.named.values),
                evidence=named[self.of_function[one.key]].evidence,
                stack=self.stack(one.key),
            )
            for one in self.nodes.functions
        ]

    def _names(self, node: int) -> Iterator[str]:
        while node >= 0:
            yield self.functions.functions[self.of_function[node]].named.name
            node = self.parents[node]


def stack_difference(functions: Difference, statistic: str) -> StackDifference:
    """The difference by stack of runs that were compared by function, with their call trees.

    Args:
        functions: The difference by function.
        statistic: The statistic that verdicts about stacks are about: `self`, `total` or `count`.
    """
    numbers: dict[tuple[int, int], int] = {}
    sides = [
        [_graph(functions, side, run, numbers) for run in range(len(runs.runs))] for side, runs in _sides(functions)
    ]
    by_name = Difference(sides[0], sides[1], replace(functions.options, statistic=statistic))
    # Entries are in the order in which nodes match, and nodes in the order in which runs have them.
    keys = list(numbers)
    node_of = [int(one.named.name) for one in by_name.functions]
    order = sorted(range(len(node_of)), key=node_of.__getitem__)
    renumbered = {node_of[entry]: place for place, entry in enumerate(order)}
    by_name.functions = [replace(by_name.functions[entry], key=place) for place, entry in enumerate(order)]
    by_name.entries = [by_name.entries[entry] for entry in order]
    nodes = [node_of[entry] for entry in order]
    return StackDifference(
        functions,
        by_name,
        [renumbered.get(keys[node][0], -1) for node in nodes],
        [keys[node][1] for node in nodes],
    )


_SideName = Literal["base", "new"]


def _sides(functions: Difference) -> list[tuple[_SideName, RunSide]]:
    return [("base", functions.base), ("new", functions.new)]


def _graph(functions: Difference, side: _SideName, run: int, numbers: dict[tuple[int, int], int]) -> FunctionGraph:
    """A run with the nodes of the common tree in place of functions; `numbers` is the tree so far, by caller and
    function."""
    graph = (functions.base if side == "base" else functions.new).runs[run]
    entries = functions.entry_of_run(side, run)
    tree = graph.nodes
    assert tree is not None
    common: list[int] = []
    sums: dict[int, list[int]] = {}
    columns = (tree.self_weights, tree.total_weights, tree.self_samples, tree.total_samples)
    for place, (parent, function) in enumerate(zip(tree.parents, tree.functions, strict=True)):
        caller = common[parent] if parent >= 0 else -1
        number = numbers.setdefault((caller, entries[function]), len(numbers))
        common.append(number)
        weights = sums.setdefault(number, [0, 0, 0, 0])
        for column, values in enumerate(columns):
            weights[column] += values[place]
    # A row of sums is many calls or allocations: as many as its weight is of the whole.
    num_counted = sum(one.num_self for one in graph.functions.values())
    is_sum = num_counted != sum(tree.self_samples)
    of_weight = num_counted / graph.whole if graph.whole else 0.0
    found = {}
    for number, (self_weight, total_weight, self_samples, total_samples) in sums.items():
        of_node = {"count": total_samples, "self": self_weight, "total": total_weight}
        counts = (
            (round(self_weight * of_weight), round(total_weight * of_weight))
            if is_sum
            else (self_samples, total_samples)
        )
        found[number] = GraphFunction(
            str(number), None, None, None, of_node, FunctionIdentity(str(number), None, native_id=number), *counts
        )
    return replace(graph, functions=found, edges={}, unsampled=())
