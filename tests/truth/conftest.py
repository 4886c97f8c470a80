"""Tests that run once for each cell of their `truth` markers, and the examples they open."""

from functools import cache
from itertools import product

import pytest

import perfuse
from perfuse.profile import Profile

from .kinds import KINDS, Kind


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives a test with arguments `recording` or `path` (or both) each of the cells of its markers."""
    arguments = [name for name in ("recording", "path") if name in metafunc.fixturenames]
    found: dict[tuple[str, ...], None] = {}
    for marker in metafunc.definition.iter_markers("truth"):
        listed = [marker.kwargs[name] for name in arguments]
        found |= dict.fromkeys(product(*([one] if isinstance(one, str) else one for one in listed)))
    if arguments and found:
        metafunc.parametrize(arguments, [cell if len(cell) > 1 else cell[0] for cell in found])


@pytest.fixture
def kind(recording: str) -> Kind:
    """The kind of recording; skips the test without the files of its example."""
    found = KINDS[recording]
    missing = [path for path in found.paths if not path.exists()]
    if missing:
        pytest.skip(f"no {missing[0]}")
    return found


@cache
def fused(name: str) -> Profile:
    """The example of a kind as a profile."""
    one = KINDS[name]
    return perfuse.fuse(*one.paths, **one.fuse_options)


@pytest.fixture
def profile(kind: Kind) -> Profile:
    """The example as a profile."""
    return fused(kind.name)
