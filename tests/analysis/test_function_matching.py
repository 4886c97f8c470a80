"""Functions of two recordings that are the same: by name, by their place among the lines around them."""

import random
from collections.abc import Callable

import pytest

from perfuse.analysis.function_matching import FunctionIdentity, match_functions


def _in_file(name: str, line: int, column: int = 1, path: str = "/w/app.js") -> FunctionIdentity:
    return FunctionIdentity(name, "[jit] V8", path, line, column)


def _pairs(a: list[FunctionIdentity], b: list[FunctionIdentity]) -> dict[FunctionIdentity, FunctionIdentity]:
    return {a[pair.a]: b[pair.b] for pair in match_functions(a, b).pairs}


def test_methods_of_one_name_are_distinguished_by_line_and_file() -> None:
    """V8 names both `P.run` and `Q.run` `run`; compilers compile in another order in each run."""
    a = [_in_file("run", 3), _in_file("run", 9), _in_file("run", 3, path="/w/other.js"), _in_file("work", 20)]
    b = [a[3], a[2], a[1], a[0]]
    assert _pairs(a, b) == {one: one for one in a}


def test_anonymous_functions_on_one_line_are_distinguished_by_column() -> None:
    a = [_in_file("(anonymous)", 5, column) for column in (1, 20, 30)]
    assert _pairs(a, a[::-1]) == {one: one for one in a}


def test_equal_functions_at_one_place_are_a_group() -> None:
    a = [_in_file("(anonymous)", 5), _in_file("(anonymous)", 5), _in_file("f", 9)]
    matches = match_functions(a, a[::-1])
    assert [(pair.a, pair.b) for pair in matches.pairs] == [(2, 0)]
    assert matches.groups == [([0, 1], [1, 2])]


def test_lines_move_with_the_functions_around_them() -> None:
    """Three lines were added above: the closure that is now on line 8 is not the one that was."""
    a = [_in_file("first", 1), _in_file("(anonymous)", 5), _in_file("(anonymous)", 8), _in_file("last", 12)]
    b = [_in_file("first", 4), _in_file("(anonymous)", 8), _in_file("(anonymous)", 11), _in_file("last", 15)]
    assert _pairs(a, b) == dict(zip(a, b, strict=True))


def test_nothing_is_paired_where_an_edit_lies() -> None:
    a = [_in_file("first", 1), _in_file("(anonymous)", 5), _in_file("last", 9)]
    b = [_in_file("first", 1), _in_file("(anonymous)", 5), _in_file("(anonymous)", 7), _in_file("last", 12)]
    matches = match_functions(a, b)
    assert {(pair.a, pair.b) for pair in matches.pairs} == {(0, 0), (2, 3)}
    assert matches.undecided == ({1}, {1, 2})


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Main$$Lambda$14/0x0000000800c01000.run()", "Main$$Lambda$27/0x0000000800d3a8b0.run()"),
        ("shade.constprop.0", "shade.constprop.1"),
        ("core::fmt::write::h0123456789abcdef", "core::fmt::write::hfedcba9876543210"),
    ],
)
def test_numbers_that_are_given_out_anew_are_ignored(a: str, b: str) -> None:
    (pair,) = match_functions([FunctionIdentity(a, "m")], [FunctionIdentity(b, "m")]).pairs
    assert pair.by == "normal_name"


def test_numbers_that_programmers_gave_are_part_of_a_name() -> None:
    """Of methods of Java in stacks of other profilers; numbers of functions of OCaml look like these."""
    a = [FunctionIdentity(f"Main.phase_{number}", None) for number in (1, 2)]
    b = [FunctionIdentity(f"Main.phase_{number}", None) for number in (2, 3)]
    assert _pairs(a, b) == {a[1]: b[0]}


def test_a_renamed_program_and_a_moved_directory() -> None:
    a = [
        FunctionIdentity("work", "/old/prog-1"),
        FunctionIdentity("main", "/old/prog-1"),
        _in_file("f", 3, path="/a/x.js"),
    ]
    b = [
        FunctionIdentity("work", "/new/prog-2"),
        FunctionIdentity("main", "/new/prog-2"),
        _in_file("f", 3, path="/b/x.js"),
    ]
    assert {(pair.a, pair.by) for pair in match_functions(a, b).pairs} == {(0, "module"), (2, "file")}


def test_any_order_gives_the_same_pairs() -> None:
    """Over files with lines added anywhere, a pair is never wrong: both are the same function of the original file."""
    for seed in range(200):
        dice = random.Random(seed)
        lines = sorted(dice.sample(range(1, 200), 30))
        original = [
            _in_file(dice.choice(["(anonymous)", "run", f"f{line}"]), line, dice.randint(1, 3)) for line in lines
        ]
        edit, added = dice.randint(1, 200), dice.choice([0, 1, 3, 7])
        after = [
            _in_file(one.name, line + added * (line >= edit), one.column or 0)
            for one, line in zip(original, lines, strict=True)
        ]
        a, b = (dice.sample(range(30), 30) for _ in range(2))
        found = match_functions([original[i] for i in a], [after[i] for i in b]).pairs
        wrong = [(original[a[pair.a]], after[b[pair.b]]) for pair in found if a[pair.a] != b[pair.b]]
        assert not wrong, seed
        assert added or len(found) == 30


Edited = tuple[FunctionIdentity, FunctionIdentity | None]
"""A function of the source before, and what it is in the source after; None where it was removed."""


def _moved(line: int, edits: dict[int, int]) -> int:
    """Where a line is after lines were added in front of others."""
    return line + sum(added for before, added in edits.items() if line >= before)


def _java(edits: dict[int, int]) -> list[Edited]:
    """Overloads have one name in some recordings; lambdas and accessors have numbers of the run."""
    path = "Orders.java"
    names = [(f"Orders.step{n % 7}", 10 + 9 * n) for n in range(20)]
    names += [("Orders.lambda$run$0", 200), ("Orders.total(Item)", 210), ("Orders.total(Item, Tax)", 220)]
    found: list[Edited] = [
        (
            FunctionIdentity(name, "[jit] OpenJDK", path, line),
            FunctionIdentity(name, "[jit] OpenJDK", path, _moved(line, edits)),
        )
        for name, line in names
    ]
    numbered = [
        ("Orders$$Lambda$14/0x0000000800c0{}.apply", "1000", "2c30"),
        ("jdk.GeneratedMethodAccessor{}", "12", "7"),
    ]
    for name, before, after in numbered:
        of = (FunctionIdentity(name.format(number), "[jit] OpenJDK") for number in (before, after))
        found.append((next(of), next(of)))
    return found


def _cpp(edits: dict[int, int]) -> list[Edited]:
    """Template instances, lambdas of one function, clones."""
    path = "/src/shade.cc"
    names = [(f"shade<{kind}>(Ray const&)", 10) for kind in ("Diffuse", "Glass", "Metal")]
    names += [("operator()", line) for line in (40, 42, 48)] + [("(anonymous namespace)::mix", 60), ("trace", 70)]
    found: list[Edited] = [
        (FunctionIdentity(name, "/b1/prog", path, line), FunctionIdentity(name, "/b2/prog", path, _moved(line, edits)))
        for name, line in names
    ]
    found += [
        (FunctionIdentity("pack.constprop.0", "/b1/prog"), FunctionIdentity("pack.constprop.1", "/b2/prog")),
        (FunctionIdentity("pack.cold", "/b1/prog"), FunctionIdentity("pack.cold", "/b2/prog")),
        (FunctionIdentity("pack", "/b1/prog"), FunctionIdentity("pack", "/b2/prog")),
        (FunctionIdentity("memcpy", "/lib/libc.so.6"), FunctionIdentity("memcpy", "/lib/libc.so.7")),
    ]
    return found


def _rust(edits: dict[int, int]) -> list[Edited]:
    """Hashes of crates differ between builds; closures share a name."""
    path = "src/main.rs"
    found: list[Edited] = [
        (
            FunctionIdentity(f"app::{name}::h{number:016x}", "app", path, line),
            FunctionIdentity(f"app::{name}::h{number * 7919 + 5:016x}", "app", path, _moved(line, edits)),
        )
        for number, (name, line) in enumerate([("parse", 5), ("emit", 30), ("main", 80), ("Tree::walk", 120)], 1)
    ]
    found += [
        (
            FunctionIdentity("app::run::{{closure}}", "app", path, line),
            FunctionIdentity("app::run::{{closure}}", "app", path, _moved(line, edits)),
        )
        for line in (50, 55, 61)
    ]
    return found


def _javascript(edits: dict[int, int]) -> list[Edited]:
    path = "/w/app.js"
    names = [
        ("load", 3),
        ("(anonymous)", 8),
        ("(anonymous)", 8),
        ("run", 20),
        ("run", 33),
        ("(anonymous)", 36),
        ("end", 50),
    ]
    return [
        (
            FunctionIdentity(name, "[jit] V8", path, line, 2 + place),
            FunctionIdentity(name, "[jit] V8", path, _moved(line, edits), 2 + place),
        )
        for place, (name, line) in enumerate(names)
    ]


@pytest.mark.parametrize("edits", [{}, {1: 3}, {35: 2}, {5: 1, 45: 4}, {41: 2, 58: 9}])
@pytest.mark.parametrize("language", [_java, _cpp, _rust, _javascript])
def test_functions_of_an_edited_source_are_never_mixed_up(
    language: Callable[[dict[int, int]], list[Edited]], edits: dict[int, int]
) -> None:
    known = language(edits)
    for seed in range(5):
        dice = random.Random(seed)
        removed = dice.randrange(len(known)) if seed else None
        a = [one for one, _ in known]
        kept = [place for place in range(len(known)) if place != removed]
        dice.shuffle(kept)
        b = [known[place][1] for place in kept]
        matches = match_functions(a, [one for one in b if one is not None])
        wrong = [(a[pair.a], b[pair.b]) for pair in matches.pairs if pair.a != kept[pair.b]]
        assert not wrong
        if seed == 0 and not edits:
            assert len(matches.pairs) == len(known)
