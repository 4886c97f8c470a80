"""The runs of one side of a comparison: which function of each run is which of the others."""

from collections import defaultdict
from collections.abc import Sequence

from perfuse.analysis.function_graph import FunctionGraph, GraphFunction
from perfuse.analysis.function_matching import FunctionIdentity, match_functions


class RunSide:
    """Runs of one build.

    Attributes:
        runs: The graph of each run.
        identities: Functions of all runs, and those that a run declares and that were not sampled.
        members: For each of these, the functions of each run that are it, as `(run, key)`.
        places: For each run, the number in `identities` of each of its functions, by key.
    """

    def __init__(self, runs: Sequence[FunctionGraph]) -> None:
        self.runs = tuple(runs)
        self.identities: list[FunctionIdentity] = []
        self.places: list[dict[int, int]] = []
        self._merged: dict[int, int] = {}
        for graph in runs:
            self.places.append(self._add(graph))
        self._renumber()
        self.members: list[list[tuple[int, int]]] = [[] for _ in self.identities]
        for run, places in enumerate(self.places):
            for key, place in places.items():
                self.members[place].append((run, key))

    def functions(self, place: int) -> list[GraphFunction]:
        """The functions of all runs that are one."""
        return [self.runs[run].functions[key] for run, key in self.members[place]]

    def _add(self, graph: FunctionGraph) -> dict[int, int]:
        keys: list[int | None] = [*graph.functions, *(None for _ in graph.unsampled)]
        found = [*(one.identity for one in graph.functions.values()), *graph.unsampled]
        places: dict[int, int] = {}
        if not self.identities:
            self.identities = found
            return {key: place for place, key in enumerate(keys) if key is not None}
        left = [place for place in range(len(self.identities)) if place not in self._merged]
        matches = match_functions([self.identities[place] for place in left], found, one_build=True)
        # Functions that nothing distinguishes are one: their sums are compared.
        pairs = [(left[one.a], one.b) for one in matches.pairs]
        pairs += [(left[in_known[0]], place) for in_known, in_run in matches.groups for place in in_run]
        self._merged |= {left[other]: left[first] for (first, *others), _ in matches.groups for other in others}
        matched: defaultdict[int, int | None] = defaultdict(lambda: None, ((b, a) for a, b in pairs))
        for number, key in enumerate(keys):
            place = matched[number]
            if place is None:
                place = len(self.identities)
                self.identities.append(found[number])
            if key is not None:
                places[key] = place
        return places

    def _renumber(self) -> None:
        """Leaves out functions that were merged into others."""
        left = [place for place in range(len(self.identities)) if place not in self._merged]
        numbers = {place: number for number, place in enumerate(left)}

        def number(place: int) -> int:
            while place in self._merged:
                place = self._merged[place]
            return numbers[place]

        self.identities = [self.identities[place] for place in left]
        self.places = [{key: number(place) for key, place in places.items()} for places in self.places]
