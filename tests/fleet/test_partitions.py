"""Selections read only the files of their days and services."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fleet.conftest import LABELS
from fleet.generated import write_fleet
from perfuse.cli import run
from perfuse.errors import QueryError, UsageError
from perfuse.fleet import Fleet
from perfuse.fleet.dataset import partition_of
from perfuse.fleet.questions import select_event, top_functions
from perfuse.fleet.selecting import Recordings, parse_recordings

SERVICES = ("web", "a b/c=%ü", None)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """A dataset of two days and three services, one without a name."""
    made = Fleet(tmp_path / "dataset")
    for number, service in enumerate(SERVICES):
        written = write_fleet(tmp_path / str(number), ["1", "2"], hosts=["a"], runs=2, seed=number, samples=200)
        made.add(written.paths, labels={"service": service} if service else {}, labels_from=LABELS)
    return made


def _weight(fleet: Fleet, which: Recordings) -> int:
    event = select_event(fleet, which, None)
    rows, _ = top_functions(fleet, which, event, limit=None)
    return sum(one.self for one in rows)


@pytest.mark.parametrize("service", SERVICES)
def test_files_of_other_services_and_days_are_not_read(fleet: Fleet, service: str | None) -> None:
    """All other files are deleted: the answer is that of before."""
    days = [day for (day,) in fleet.rows("SELECT DISTINCT day FROM recordings ORDER BY 1")]
    assert len(days) == 2
    text = f"day={days[0]}" + (f", service={service}" if service else ", service!=web, service!=a*")
    which = parse_recordings(text)
    ((expected,),) = fleet.rows(
        "SELECT sum(t.self)::BIGINT FROM function_totals AS t SEMI JOIN recordings AS r"
        " ON t.recording_id = r.recording_id AND r.day = ? AND r.service IS NOT DISTINCT FROM ?",
        [days[0], service],
    )
    assert _weight(fleet, which) == expected > 0
    partition = (days[0], service)
    deleted = 0
    for name, files in fleet.files().items():
        for file in files:
            if name not in ("recordings", "functions", "stacks") and partition_of(file) != partition:
                Path(file).unlink()
                deleted += 1
    assert deleted > 10
    fleet.refresh()
    assert _weight(fleet, which) == expected
    relation = fleet.sql("SELECT sum(self)::BIGINT FROM function_totals", where=text)
    assert relation is not None
    assert relation.fetchall() == [(expected,)]
    with pytest.raises(QueryError, match="No files found"):
        _weight(fleet, Recordings())


def test_views_have_day_and_service(fleet: Fleet) -> None:
    rows = fleet.rows("SELECT service, count(DISTINCT day) FROM function_totals GROUP BY 1 ORDER BY 1 NULLS LAST")
    assert rows == [("a b/c=%ü", 2), ("web", 2), (None, 2)]


def test_a_query_of_a_selection_has_only_its_recordings(
    fleet: Fleet, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    query = "SELECT count(*) AS n, count(DISTINCT build) AS builds FROM recordings"
    capfd.readouterr()
    assert run(["fleet", "query", fleet.uri, query, "--where", "build=2, last 3", "--format", "csv"]) == 0
    assert capfd.readouterr().out.splitlines() == ["n,builds", "3,1"]
    relation = fleet.sql("SELECT count(DISTINCT recording_id) FROM stack_totals", where="build=2, last 3")
    assert relation is not None
    assert relation.fetchall() == [(3,)]
    with pytest.raises(UsageError, match="does not select recordings"):
        fleet.sql(query, where="build")
    shutil.rmtree(tmp_path / "0")
