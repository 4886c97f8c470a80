"""Who called whom, as samples show it: edges weighted by the samples that have them on their stack."""

from collections.abc import Iterator
from dataclasses import dataclass

from perfuse.analysis.columns import Columns
from perfuse.analysis.sampled import Sampled, Selection, call_tree


@dataclass(slots=True)
class Weight:
    """Weight of samples, and their number: in the function itself, and with it on the stack, recursion once."""

    self_weight: int = 0
    total_weight: int = 0
    self_samples: int = 0
    total_samples: int = 0


class SampledGraph:
    """Functions and edges of the selected samples.

    Attributes:
        functions: Weights by function, a `group_id` of the symbols.
        edges: Weights by caller and callee.
        symbols: Columns `name`, `module`, `path`, `line`, `kind` of each function.
    """

    def __init__(self, profile: Sampled, selection: Selection) -> None:
        tree = call_tree(profile, selection)
        symbols, nodes = Columns(tree.symbols()), Columns(tree.nodes())
        self.symbols: dict[int, tuple[str, str | None, str | None, int | None, str]] = {}
        names = ("group_id", "name", "module", "path", "line", "kind")
        for group, *rest in symbols.take(range(len(symbols)), names):
            self.symbols.setdefault(group, tuple(rest))
        self.functions: dict[int, Weight] = {}
        self.edges: dict[tuple[int, int], Weight] = {}
        self.whole = tree.total_weight
        groups = symbols["group_id"]
        for function, caller, row, is_first, is_first_edge in _walk(nodes, groups):
            _add(self.functions.setdefault(function, Weight()), row, is_first)
            if caller is not None:
                _add(self.edges.setdefault((caller, function), Weight()), row, is_first_edge)


_Row = tuple[int, int, int, int]


def _walk(nodes: Columns, groups: list[int]) -> Iterator[tuple[int, int | None, _Row, bool, bool]]:
    """Every node with its function and its caller's, and whether either is on the stack for the first time."""
    names = ("node_id", "parent_node_id", "symbol_id", "self_weight", "total_weight", "self_samples", "total_samples")
    stack: list[tuple[int, int]] = []
    open_functions: dict[int, int] = {}
    open_edges: dict[tuple[int, int], int] = {}
    for node, parent, symbol, *weights in zip(*map(nodes.__getitem__, names), strict=True):
        # Nodes come in preorder: whatever is not the parent is behind.
        while stack and stack[-1][0] != parent:
            _, left = stack.pop()
            open_functions[left] -= 1
            if stack:
                open_edges[stack[-1][1], left] -= 1
        function = groups[symbol]
        caller = stack[-1][1] if stack else None
        seen = open_functions.get(function, 0)
        seen_edge = 0 if caller is None else open_edges.get((caller, function), 0)
        yield function, caller, tuple(weights), not seen, not seen_edge
        stack.append((node, function))
        open_functions[function] = seen + 1
        if caller is not None:
            open_edges[caller, function] = seen_edge + 1


def _add(to: Weight, row: _Row, is_first: bool) -> None:
    own, total, own_samples, total_samples = row
    to.self_weight += own
    to.self_samples += own_samples
    if is_first:
        to.total_weight += total
        to.total_samples += total_samples
