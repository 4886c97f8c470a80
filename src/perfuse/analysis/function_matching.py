"""Which function of one profile is which of another."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Literal

Evidence = Literal["identity", "name", "line", "native_id", "file", "module", "normal_name", "group"]
"""What two functions have in common:

- `identity`: all that is known, in runs of one build
- `name`: name, module and path; `line`: these, line and column; `native_id`: name, module and the file's own number
- `file`: name, module and file name; `module`: name and file name, but not the module
- `normal_name`: the name without the numbers that a runtime gives out anew
- `group`: name, module and path, which several functions share: their sums are compared
"""

_NO_NAMES = frozenset({"(anonymous)", "anonymous", "<lambda>", "operator()"})
"""Names of functions without a name."""

_GENERIC_NAMES = _NO_NAMES | {"main", "_start", "run", "init", "call", "apply"}
"""Names that functions of different modules have without being the same function."""

_LEAST_IN_COMMON = 0.8
"""Share of the functions between two anchors that have to be in both files for their lines to be compared."""

_GIVEN_OUT_ANEW: tuple[tuple[str, str], ...] = (
    (r"\$\$Lambda[$+/.]?(?:0x[0-9a-f]+|\d+)?(?:/(?:0x)?[0-9a-f]+)?", "$$Lambda"),  # HotSpot
    (r"LambdaForm\$(D?MH|VH)[^.]*", r"LambdaForm$\1"),
    (r"[/+]0x[0-9a-f]{8,}", ""),  # hidden classes
    (r"(?<=Accessor)\d+|(?<=\$Proxy)\d+", ""),
    (r"\.(?:constprop|isra|lto_priv|llvm|__uniq)\.\d+", ""),  # clones of GCC and Clang; .cold and .part are other code
    (r"::h[0-9a-f]{16}$", ""),  # Rust
    (r"(?<=\w)\[[0-9a-f]{8,16}\]", ""),  # crates of Rust's v0 names
    (r"^(julia|japi1|jlsys|jfptr)_(.+)_\d+$", r"\1_\2"),
    (r"\s*\[(?:Tier0|Tier1|Optimized|PreJIT|QuickJitted|Instrumented|MinOptJitted|Unknown)[^\]]*\]$", ""),  # .NET
    (r"(?<=<>c__DisplayClass)\d+_\d+", ""),
    (r"(?<=.)\b0x[0-9a-f]{5,}\b", "0x"),
    (r"^(TRACE|trace|stub|Stub)[ -]?(?:0x)?[0-9a-f]*\d[0-9a-f]*$", r"\1"),  # traces and stubs by number or address
)
"""Parts of names that differ from run to run or from build to build, and what takes their place."""

_MODULE_NUMBERS: tuple[tuple[str, str], ...] = (
    (r"(\.so)(\.\d+)+$", r"\1"),
    (r"^perf-\d+\.map$", "perf.map"),
    (r"^jitted-\d+-\d+\.so$", "jitted.so"),
    (r"^jit-\d+\.dump$", "jit.dump"),
)


@cache
def normal_name(name: str) -> str:
    """A name without what a runtime or a compiler gives out anew in each run or build: numbers, addresses, hashes.

    >>> normal_name("Main$$Lambda$14/0x0000000800c01000.run()")
    'Main$$Lambda.run()'
    """
    for pattern, replacement in _GIVEN_OUT_ANEW:
        name = re.sub(pattern, replacement, name)
    return name


@cache
def _module_name(module: str) -> str:
    name = module.rsplit("/", 1)[-1]
    for pattern, replacement in _MODULE_NUMBERS:
        name = re.sub(pattern, replacement, name)
    return name


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
        sampled_path: Source file of code that was sampled in it; None where its own one is recorded, or none is known.
    """

    name: str
    module: str | None
    path: str | None = None
    line: int | None = None
    column: int | None = None
    native_id: int | None = None
    sampled_path: str | None = field(default=None, compare=False)

    @property
    def module_name(self) -> str:
        """File name of the module, without the version of a shared library or the number of a process."""
        return _module_name(self.module or "")

    @property
    def module_in_directory(self) -> str:
        """The same with the directory that it is in."""
        return "/".join([*(self.module or "").split("/")[-2:-1], self.module_name])

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
        groups: Places of functions that share name, module and path on both sides, and that nothing distinguishes.
        undecided: Places in both sequences of functions whose name is left on both sides; nothing distinguishes them.
            Those of groups are among them.
    """

    pairs: list[FunctionMatch]
    groups: list[tuple[list[int], list[int]]]
    undecided: tuple[frozenset[int], frozenset[int]]


def match_functions(
    a: Sequence[FunctionIdentity], b: Sequence[FunctionIdentity], *, one_build: bool = False
) -> FunctionMatches:
    """Matches functions by name, module and path where only one function of each side has them; those that share them
    by the line, moved as the lines around it; then by weaker evidence. What is left undecided is not paired.

    Args:
        a: The functions of one profile.
        b: Those of the other.
        one_build: Whether both are runs of one build, in which a line is that of the same function.
    """
    matching = _Matching(a, b)
    if one_build:
        matching.by_key("identity", lambda one: one)
        matching.by_key("identity", lambda one: (normal_name(one.name), one.module_name, one.path, *one.position))
    # Several modules may have one file name: directories distinguish them, the last one also where the others changed.
    matching.by_key("name", lambda one: _named_key(one, one.module))
    matching.by_key("name", lambda one: _named_key(one, one.module_in_directory))
    matching.by_key("name", lambda one: _named_key(one, one.module_name))
    matching.by_line(lambda one: one.path)
    matching.by_key("native_id", _native_key)
    matching.by_key("file", _file_key)
    matching.by_line(lambda one: _file_name(one.path))
    matching.by_key("module", _key_of_file)
    matching.by_key("module", key_without_module)
    matching.by_key("normal_name", lambda one: (normal_name(one.name), one.module_name, one.path))
    # Functions with new hashes are the only neighbours of closures in some languages.
    matching.by_line(lambda one: one.path)
    matching.by_line(lambda one: _file_name(one.path))
    return FunctionMatches(matching.pairs, matching.groups(), matching.undecided())


def _named_key(one: FunctionIdentity, module: str | None) -> Hashable | None:
    return None if one.line and one.name in _NO_NAMES else (one.name, module, one.path)


def _file_key(one: FunctionIdentity) -> Hashable | None:
    path = one.path or one.sampled_path
    of_file = path and one.name not in _NO_NAMES
    return (one.name, one.module_name, _file_name(path)) if of_file else None


def _key_of_file(one: FunctionIdentity) -> Hashable | None:
    """What a function has in common with that of another program where its source file is known."""
    path = one.path or one.sampled_path
    return (one.name, _file_name(path)) if path and one.name not in _GENERIC_NAMES else None


def key_without_module(one: FunctionIdentity) -> Hashable | None:
    """What a function has in common with that of another file, such as a program with its version in the name; None for
    names that different functions have."""
    return None if one.name in _GENERIC_NAMES else (one.name, _file_name(one.path))


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

    def groups(self) -> list[tuple[list[int], list[int]]]:
        """Functions that are left and share name, module and path with functions that are left on the other side.

        They share name and module where one side has no paths, as a program without debug information.
        """
        a, b = (self._by(lambda one: (normal_name(one.name), one.module_name, one.path), side) for side in (0, 1))
        found = [(a[key], b[key]) for key in a if key in b]
        grouped = [{place for group in found for place in group[side]} for side in (0, 1)]
        a, b = (self._by(lambda one: (normal_name(one.name), one.module_name), side) for side in (0, 1))
        for key in a.keys() & b.keys():
            left = [[place for place in of[key] if place not in grouped[side]] for side, of in ((0, a), (1, b))]
            has_paths = [any(self.sides[side][place].path for place in left[side]) for side in (0, 1)]
            if all(left) and not all(has_paths):
                found.append((left[0], left[1]))
        return found

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
            at_a = self._at_lines(0, (i for i in a if self._is_in(0, i, from_a, to_a)), shift)
            at_b = self._at_lines(1, (i for i in b if self._is_in(1, i, from_b, to_b)), 0)
            common = at_a.keys() & at_b.keys()
            if len(common) >= _LEAST_IN_COMMON * min(len(at_a), len(at_b)):
                # Two of one name at one place are not distinguished by it.
                unique = (key for key in common if len(at_a[key]) == len(at_b[key]) == 1)
                yield from ((at_a[key][0], at_b[key][0]) for key in unique)

    def _at_lines(self, side: int, places: Iterable[int], shift: int) -> dict[tuple[str, int, int], list[int]]:
        """Functions by name, line and column."""
        found = defaultdict(list)
        for place in places:
            one = self.sides[side][place]
            line, column = one.position
            found[normal_name(one.name), line + shift, column].append(place)
        return found

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
