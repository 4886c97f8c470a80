"""Fixtures: the packages of the extra, and one dataset that tests read."""

from pathlib import Path

import pytest

from fleet.generated import Written, write_fleet
from perfuse.fleet import Fleet

pytest.importorskip("deltalake")

BUILDS = ("40", "41", "42", "43", "44", "45")
LABELS = r"(?P<build>[^/]+)/(?P<host>[^/]+)/[^/]+$"


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Recordings of six builds on two hosts; `sort` calls a slower `compare` from build 43 on."""
    folder = tmp_path_factory.mktemp("recordings")
    return write_fleet(folder, BUILDS, seed=2, planted={"compare": ("43", 1.5)})


@pytest.fixture(scope="session")
def dataset(written: Written, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of these recordings."""
    path = tmp_path_factory.mktemp("fleet") / "dataset"
    result = Fleet(path).add(written.paths, labels={"service": "web"}, labels_from=LABELS)
    assert result.num_added == len(written.paths), result
    return path


@pytest.fixture
def fleet(dataset: Path) -> Fleet:
    """The dataset, open."""
    return Fleet(dataset)
