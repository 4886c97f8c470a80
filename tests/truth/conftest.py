"""Tests that run once for each cell of their `truth` markers, and the examples they open."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

import perfuse
from perfuse.profile import Profile

from .kinds import KINDS, Kind
from .matrix import cells_of


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives a test with arguments `recording` or `path` (or both) each of the cells of its markers."""
    arguments = [name for name in ("recording", "path") if name in metafunc.fixturenames]
    marked = [cells_of(**_cells(marker)) for marker in metafunc.definition.iter_markers("truth")]
    if arguments and marked:
        places = [("recording", "path").index(name) for name in arguments]
        found = dict.fromkeys(tuple(cell[place] for place in places) for cells in marked for cell in cells)
        metafunc.parametrize(",".join(arguments), [one if len(one) > 1 else one[0] for one in found])


def _cells(marker: pytest.Mark) -> dict[str, Any]:
    return {name: marker.kwargs[name] for name in ("recording", "path")}


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


@pytest.fixture
def kind_paths() -> list[Path]:
    """The files of all examples."""
    return [path for one in KINDS.values() for path in one.paths]
