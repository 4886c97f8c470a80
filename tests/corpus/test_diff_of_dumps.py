"""Functions of every dump of the corpus, matched with those of the same dump in another order: no pair is wrong."""

import os
import random
from pathlib import Path

import pytest

import perfuse
from perfuse.analysis.function_matching import FunctionIdentity, match_functions

MOST_FUNCTIONS = 20_000
UNREADABLE = "ddprof_jit-julia-partial.dump"
"""A dump without functions."""


def dumps() -> list[Path]:
    beside = Path(__file__).parents[3] / "shared" / "corpus"
    root = Path(os.environ.get("PERFUSE_CORPUS", beside)) / "jitdump"
    patterns = [f"{folder}/**/*.dump{suffix}" for folder in ("produced", "fetched") for suffix in ("", ".gz", ".zst")]
    found = {path for pattern in patterns for path in root.glob(pattern)}
    return sorted(path for path in found if path.name != UNREADABLE and path.stat().st_size < 40 << 20)


def identities(dump: Path) -> list[FunctionIdentity]:
    """The functions of a dump, as the comparison of profiles identifies them."""
    rows = (
        perfuse.open(dump)
        .profile()
        .sql(f"""
        SELECT f.name::VARCHAR, m.name::VARCHAR, f.path::VARCHAR, f.line, f."column"
        FROM functions f LEFT JOIN modules m USING (module_id) LIMIT {MOST_FUNCTIONS}
    """)
    )
    return [FunctionIdentity(*row) for row in rows.fetchall()]


@pytest.mark.parametrize("dump", dumps(), ids=lambda path: path.name)
def test_a_dump_and_itself(dump: Path) -> None:
    one = identities(dump)
    order = list(range(len(one)))
    random.Random(1).shuffle(order)
    matches = match_functions(one, [one[place] for place in order])
    wrong = [(one[pair.a], one[order[pair.b]]) for pair in matches.pairs if one[pair.a] != one[order[pair.b]]]
    assert not wrong
    # What is not paired is in a group with the same functions of the other side.
    paired = {pair.a for pair in matches.pairs}
    grouped = {place for group, _ in matches.groups for place in group}
    assert paired | grouped == set(range(len(one)))
    for in_a, in_b in matches.groups:
        assert sorted(in_a) == sorted(order[place] for place in in_b)
