"""Which function of one profile is which of another."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Evidence = Literal["name", "line", "native_id", "file", "module", "normal_name"]
"""What two functions have in common:

- `name`: name, module and path; `line`: these, line and column; `native_id`: name, module and the file's own number
- `file`: name, module and file name; `module`: name and file name, but not the module
- `normal_name`: the name without the numbers that a runtime gives out anew
"""

_NO_NAMES = frozenset({"(anonymous)", "anonymous", "<lambda>", "operator()"})
"""Names of functions without a name."""

_GENERIC_NAMES = _NO_NAMES | {"main", "_start", "run", "init", "call", "apply"}
"""Names that functions of different modules have without being the same function."""

_LEAST_IN_COMMON = 0.8
"""Share of the functions between two anchors that have to be in both files for their lines to be compared."""

_GIVEN_OUT_ANEW = re.compile(
    r"""
    \.(?:constprop|isra|lto_priv|llvm|__uniq)\.\d+  # clones of GCC and Clang
    | ::h[0-9a-f]{16}$                              # Rust
    | (?<=\$\$Lambda)[$+/]?(?:0x[0-9a-f]+|\d+)?(?:/(?:0x)?[0-9a-f]+)?  # HotSpot: lambdas and hidden classes
    | [/+]0x[0-9a-f]{8,}
    | (?<=Accessor)\d+ | (?<=\$Proxy)\d+
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class FunctionIdentity:
    """What a function is recognised by.

    Attributes:
        name: Its name.
        module: File it is in.
        path: Source file that declares it; None where that is not recorded.
        line: Line of the declaration.
        column: Column of the declaration.
        native_id: The recording's own number, where it is the same in every run of one program.
    """

    name: str
    module: str | None
    path: str | None = None
    line: int | None = None
    column: int | None = None
    native_id: int | None = None

    @property
    def module_name(self) -> str:
        """File name of the module, without the version of a shared library."""
        return re.sub(r"(\.so)(\.\d+)+$", r"\1", (self.module or "").rsplit("/", 1)[-1])

    @property
    def position(self) -> tuple[int, int]:
        """Line and column, 0 where unknown."""
        return self.line or 0, self.column or 0


@dataclass(frozen=True, slots=True)
class FunctionMatch:
    """A function of the first profile that is one of the second, by their places in both sequences."""

    a: int
    b: int
    by: Evidence


@dataclass(frozen=True, slots=True)
class FunctionMatches:
    """The result of `match_functions`.

    Attributes:
        pairs: Functions that are the same.
        undecided: Places in both sequences of functions whose name is left on both sides; nothing distinguishes them.
    """

    pairs: list[FunctionMatch]
    undecided: tuple[frozenset[int], frozenset[int]]


def match_functions(a: Sequence[FunctionIdentity], b: Sequence[FunctionIdentity]) -> FunctionMatches:
    """Matches functions by name, module and path where only one function of each side has them; those that share them
    by the line, moved as the lines around it; then by weaker evidence. What is left undecided is not paired.
    """
    matching = _Matching(a, b)
    matching.by_key("name", _named_key)
    matching.by_line(lambda one: one.path)
    matching.by_key("native_id", _native_key)
    matching.by_key("file", _file_key)
    matching.by_line(lambda one: _file_name(one.path))
    matching.by_key("module", lambda one: None if one.name in _GENERIC_NAMES else (one.name, _file_name(one.path)))
    matching.by_key("normal_name", lambda one: (_GIVEN_OUT_ANEW.sub("", one.name), one.module_name, one.path))
    return FunctionMatches(matching.pairs, matching.undecided())


def _named_key(one: FunctionIdentity) -> Hashable | None:
    return None if one.line and one.name in _NO_NAMES else (one.name, one.module_name, one.path)


def _file_key(one: FunctionIdentity) -> Hashable | None:
    of_file = one.path and one.name not in _NO_NAMES
    return (one.name, one.module_name, _file_name(one.path)) if of_file else None


def _native_key(one: FunctionIdentity) -> Hashable | None:
    return None if one.native_id is None else (one.native_id, one.name, one.module_name)


def _file_name(path: str | None) -> str | None:
    return path.rsplit("/", 1)[-1] if path else None


Key = Callable[[FunctionIdentity], Hashable | None]


class _Matching:
    def __init__(self, a: Sequence[FunctionIdentity], b: Sequence[FunctionIdentity]) -> None:
        self.sides = (a, b)
        self.pairs: list[FunctionMatch] = []
        self._left = (dict.fromkeys(range(len(a))), dict.fromkeys(range(len(b))))

    def by_key(self, evidence: Evidence, key: Key) -> None:
        """Pairs functions whose key no other function that is left has."""
        a, b = (self._by(key, side) for side in (0, 1))
        self._pair(evidence, ((a[k][0], b[k][0]) for k in a if len(a[k]) == 1 and len(b.get(k, ())) == 1))

    def by_line(self, file: Key) -> None:
        """Pairs functions that share name, module and file where the lines around them moved by the same distance."""
        anchors = defaultdict(list)
        for pair in self.pairs:
            a, b = self.sides[0][pair.a], self.sides[1][pair.b]
            if a.line and b.line and file(a) is not None and file(a) == file(b):
                anchors[file(a)].append((a.line, b.line))
        left_a, left_b = (self._by(lambda one: file(one) if one.line else None, side) for side in (0, 1))
        for name in left_a.keys() & left_b.keys():
            self._pair("line", list(self._of_file(left_a[name], left_b[name], anchors[name])))

    def undecided(self) -> tuple[frozenset[int], frozenset[int]]:
        """Functions that are left and whose name and module are left on the other side, too."""
        a, b = (self._by(lambda one: (one.name, one.module_name), side) for side in (0, 1))
        both = a.keys() & b.keys()
        return frozenset(i for key in both for i in a[key]), frozenset(i for key in both for i in b[key])

    def _of_file(self, a: list[int], b: list[int], anchors: list[tuple[int, int]]) -> Iterable[tuple[int, int]]:
        chain = [(0, 0), *_increasing(anchors)]
        last = chain[-1]
        for (from_a, from_b), (to_a, to_b) in pairwise([*chain, (1 << 32, (1 << 32) + last[1] - last[0])]):
            shift = from_b - from_a
            if to_b - to_a != shift:
                continue
            at_b = {
                (self.sides[1][i].name, *self.sides[1][i].position): i for i in b if self._is_in(1, i, from_b, to_b)
            }
            at_a = {}
            for i in a:
                if self._is_in(0, i, from_a, to_a):
                    line, column = self.sides[0][i].position
                    at_a[self.sides[0][i].name, line + shift, column] = i
            common = at_a.keys() & at_b.keys()
            if len(common) >= _LEAST_IN_COMMON * min(len(at_a), len(at_b)):
                yield from ((at_a[key], at_b[key]) for key in common)

    def _is_in(self, side: int, place: int, start: int, end: int) -> bool:
        return start <= self.sides[side][place].position[0] <= end

    def _by(self, key: Key, side: int) -> dict[Hashable, list[int]]:
        found = defaultdict(list)
        for place in self._left[side]:
            of = key(self.sides[side][place])
            if of is not None:
                found[of].append(place)
        return found

    def _pair(self, evidence: Evidence, pairs: Iterable[tuple[int, int]]) -> None:
        for a, b in pairs:
            if a in self._left[0] and b in self._left[1]:
                self.pairs.append(FunctionMatch(a, b, evidence))
                del self._left[0][a], self._left[1][b]


def _increasing(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest chain of pairs in which both numbers increase."""
    ordered = sorted(set(pairs), key=lambda pair: (pair[0], -pair[1]))
    ends: list[int] = []
    last: list[int] = []
    before: list[int | None] = []
    for place, (_, b) in enumerate(ordered):
        length = bisect_left(ends, b)
        before.append(last[length - 1] if length else None)
        if length == len(ends):
            ends.append(b)
            last.append(place)
        else:
            ends[length], last[length] = b, place
    chain = []
    place_or_none = last[-1] if last else None
    while place_or_none is not None:
        chain.append(ordered[place_or_none])
        place_or_none = before[place_or_none]
    return chain[::-1]
