"""Recordings that are removed, that get other labels, and that are one of the files of another: the dataset is the one
that would have been made without the mistake."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from threading import Thread

import pytest

import perfuse
from fleet.conftest import LABELS
from fleet.generated import Written, write_collapsed, write_fleet
from fleet.tables import contents
from perfuse.cli import run
from perfuse.errors import UsageError
from perfuse.fleet import Edited, Fleet, relabel, remove
from perfuse.fleet.adding import add
from perfuse.fleet.inputs import FleetInput
from perfuse.fleet.store import Refused, Store
from perfuse.fleet.work import Known, WorkOptions


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Recordings of two builds on two hosts."""
    return write_fleet(tmp_path / "recordings", ["1", "2"], runs=2, samples=200)


def _fleet(path: Path, written: Written, keep: str = "/", **labels: str) -> Fleet:
    fleet = Fleet(path)
    fleet.add([one for one in written.paths if keep in str(one)], labels=labels, labels_from=LABELS)
    return fleet


def _answers(fleet: Fleet) -> dict[str, object]:
    """What a dataset contains, with functions and stacks that recordings use, and the label columns."""
    found: dict[str, object] = dict(contents(fleet))
    for name, key in (("functions", "function_hash"), ("stacks", "stack_hash")):
        found[name] = fleet.rows(
            f"SELECT DISTINCT {key} FROM {name} SEMI JOIN {name.removesuffix('s')}_totals USING ({key}) ORDER BY 1"
        )
    found["partitions"] = fleet.rows("SELECT day, service, sum(self) FROM function_totals GROUP BY ALL ORDER BY ALL")
    return found


def test_a_dataset_after_removal_is_that_of_the_other_recordings(written: Written, tmp_path: Path) -> None:
    fleet = _fleet(tmp_path / "dataset", written)
    assert remove(fleet, "build=1") == Edited(4, 4)
    others = _fleet(tmp_path / "others", written, keep="/2/")
    assert _answers(fleet) == _answers(others)
    # Another engine, by the join that the documentation states.
    ((weight,),) = fleet.rows(
        "SELECT sum(t.weight) FROM all_event_totals AS t JOIN all_recordings AS r USING (recording_id, attempt_id)"
    )
    assert weight == sum(sum(one.values()) for path, one in written.stacks.items() if "/2/" in path)
    # What is removed can be added again, by the same and by another open dataset.
    assert fleet.add(written.paths, labels_from=LABELS).num_added == 4
    assert _answers(fleet) == _answers(_fleet(tmp_path / "all", written))


def test_rows_and_saved_profiles_of_removed_recordings_are_deleted_by_gc(written: Written, tmp_path: Path) -> None:
    from perfuse.fleet.maintenance import clean
    from perfuse.fleet.status import status_of

    fleet = Fleet(tmp_path / "dataset")
    fleet.add(written.paths, labels_from=LABELS, keep_packs=True)
    remove(fleet, "host=a")
    assert status_of(fleet).num_unnamed == 4
    done = clean(fleet, older_than_hours=0)
    assert (done.attempts, done.deleted_packs) == (4, 4)
    assert fleet.rows("SELECT count(*) FROM all_recordings") == [(4,)]
    assert fleet.rows("SELECT count(DISTINCT recording_id) FROM all_stack_totals") == [(4,)]
    assert len(list((tmp_path / "dataset" / "packs").rglob("*.perfuse"))) == 4


def test_labels_given_later_are_those_given_first(written: Written, tmp_path: Path) -> None:
    """Also `service`, by which files are in folders: selections of it read only these."""
    fleet = _fleet(tmp_path / "dataset", written, team="x")
    labels = {"service": "web", "build": "7", "team": "", "ticket": "42"}
    assert relabel(fleet, "build=2", labels) == Edited(4, 4)
    assert relabel(fleet, "build=7", labels) == Edited(4, 0)
    expected = _fleet(tmp_path / "expected", written, keep="/1/", team="x")
    shutil.copytree(tmp_path / "recordings" / "2", tmp_path / "recordings" / "7")
    later = sorted((tmp_path / "recordings" / "7").rglob("*.collapsed"))
    expected.add(later, labels={"service": "web", "ticket": "42"}, labels_from=LABELS)
    assert _answers(fleet) == _answers(expected)
    weight = "SELECT sum(self)::BIGINT FROM function_totals"
    for where in ("service=web", "build=7", "ticket=42", "team=x"):
        relations = [one.sql(weight, where=where) for one in (fleet, expected)]
        rows = [relation.fetchall() for relation in relations if relation is not None]
        assert rows[0] == rows[1] != [(None,)]
    # The next `add` of these files gives the labels that they were given by hand.
    assert fleet.add(later, labels={"service": "web", "ticket": "42"}, labels_from=LABELS).relabeled == 0


def test_a_commit_that_another_command_preceded_is_made_on_what_that_one_wrote(
    written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = written.paths[:4], written.paths[4:]
    fleet = Fleet(tmp_path / "dataset")
    fleet.add(first, labels_from=LABELS)
    append, calls = Store.append_recordings, []

    def preceded(store: Store, rows: object, **more: object) -> None:
        calls.append(1)
        if len(calls) == 1:
            with monkeypatch.context() as patched:
                patched.setattr(Store, "append_recordings", append)
                Fleet(tmp_path / "dataset").add(second, labels_from=LABELS)
        append(store, rows, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "append_recordings", preceded)
    assert relabel(fleet, "build=1, host=a", {"host": "c"}) == Edited(2, 2)
    assert len(calls) == 2
    rows = fleet.rows("SELECT build, host, count(*) FROM recordings GROUP BY ALL ORDER BY ALL")
    assert rows == [("1", "b", 2), ("1", "c", 2), ("2", "a", 2), ("2", "b", 2)]


def test_an_add_that_a_removal_preceded_adds_what_was_removed(written: Written, tmp_path: Path) -> None:
    """Also where a worker has had the dataset open since before."""
    fleet, other = Fleet(tmp_path / "dataset"), Fleet(tmp_path / "dataset")
    options = WorkOptions(str(tmp_path / "dataset"))
    inputs = [FleetInput((str(path),)) for path in written.paths]
    assert add(fleet.store, inputs, options).num_added == 8
    worker = Known(Store(tmp_path / "dataset"))
    worker.refresh()
    assert len(worker.recordings) == 8
    remove(other, "last 3")
    worker.refresh()
    assert len(worker.recordings) == 5
    assert add(fleet.store, inputs, options).num_added == 3
    worker.refresh()
    assert len(worker.recordings) == 8
    assert remove(other, "last 8") == Edited(8, 8)
    with pytest.raises(UsageError, match="has no recordings"):
        remove(Fleet(tmp_path / "dataset"), "last 1")


def test_removals_at_once_remove_each_recording_once(written: Written, tmp_path: Path) -> None:
    fleet = _fleet(tmp_path / "dataset", written)
    failures: list[BaseException] = []

    def removes(where: str) -> None:
        try:
            remove(Fleet(tmp_path / "dataset"), where)
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=removes, args=(f"build={build}, host={host}",)) for build in "12" for host in "ab"]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failures
    fleet.refresh()
    assert fleet.rows("SELECT count(*) FROM recordings") == [(0,)]


def test_inputs_are_removed_from_the_quarantine(written: Written, tmp_path: Path) -> None:
    bad = tmp_path / "bad.data"
    bad.write_bytes(b"PERFILE2" + bytes(20))
    fleet = Fleet(tmp_path / "dataset")
    fleet.add([bad, tmp_path / "missing.data"], labels={"host": "a"})
    fleet.add(written.paths, labels_from=LABELS)
    with pytest.raises(UsageError, match="nothing in quarantine is 'title=other'"):
        remove(fleet, "title=other", failed=True)
    assert remove(fleet, f"title={bad}", failed=True) == Edited(1, 1)
    assert remove(fleet, failed=True) == Edited(1, 1)
    assert fleet.rows("SELECT count(*) FROM live_recordings") == [(8,)]
    with pytest.raises(UsageError, match="nothing in quarantine"):
        remove(fleet, failed=True)


def test_the_command(written: Written, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fleet = _fleet(tmp_path / "dataset", written)
    assert run(["fleet", "label", fleet.uri, "--where", "build=2", "--label", "build=3", "--label", "host="]) == 0
    assert capfd.readouterr().out == f"{fleet.uri}: 4 recordings changed\n"
    fleet.refresh()
    assert fleet.rows("SELECT labels FROM recordings WHERE build = '3' GROUP BY ALL") == [('{"build": "3"}',)]
    assert run(["fleet", "remove", fleet.uri, "--where", "build=3", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["removed"] == 4
    for wrong, message in (
        (["remove", fleet.uri], "remove needs --where"),
        (["remove", fleet.uri, "--where", "build=3"], "no recording of"),
        (["remove", fleet.uri, "--where", "bild=1"], "has a label 'bild'"),
        (["label", fleet.uri, "--where", "build=1"], "label needs --label"),
        (["label", fleet.uri, "--label", "a=b"], "label needs --where"),
        (["label", fleet.uri, "--where", "build=1", "--label", "day=7"], "is a column of `recordings`"),
        (["remove", str(tmp_path / "none"), "--where", "last 1"], "no dataset in"),
    ):
        assert run(["fleet", *wrong]) == 2
        assert message in capfd.readouterr().err


def _pair(folder: Path, number: int) -> tuple[Path, Path]:
    return (
        write_collapsed(folder / f"{number}a.collapsed", {"main;a": 3 + number}),
        write_collapsed(folder / f"{number}b.collapsed", {"main;b": 20 + number}),
    )


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("order", ["parts first", "whole first"])
def test_a_recording_that_is_one_of_the_files_of_another_counts_once(tmp_path: Path, order: str, at_once: bool) -> None:
    """As a perf.data that was added alone, and then with its dump."""
    one, two = _pair(tmp_path, 1)
    whole = FleetInput((str(one), str(two)))
    inputs: list[FleetInput | Path] = [one, whole] if order == "parts first" else [whole, one]
    fleet = Fleet(tmp_path / "dataset")
    results = [fleet.add(inputs)] if at_once else [fleet.add([one]) for one in inputs]
    assert fleet.rows("SELECT count(*), sum(weight)::BIGINT FROM event_totals") == [(1, 25)]
    assert sum(one.num_added for one in results) == (2 if order == "parts first" and not at_once else 1)
    assert sum(one.replaced for one in results) == (1 if order == "parts first" and not at_once else 0)
    again = fleet.add([two, one, whole])
    assert (again.num_added, again.kept) == (0, 3)
    alone = Fleet(tmp_path / "alone")
    alone.add([whole])
    assert contents(fleet)["recordings"] == contents(alone)["recordings"]
    assert contents(fleet)["stack_totals"] == contents(alone)["stack_totals"]


def test_one_file_twice_is_a_recording(tmp_path: Path) -> None:
    one, _ = _pair(tmp_path, 1)
    copy = tmp_path / "copy.collapsed"
    shutil.copy(one, copy)
    fleet = Fleet(tmp_path / "dataset")
    result = fleet.add([FleetInput((str(one), str(copy)))])
    assert (result.num_added, result.kept) == (1, 0)
    assert fleet.add([one]).kept == 1


def test_a_refused_commit_is_repeated_only_so_often(
    written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = _fleet(tmp_path / "dataset", written)

    def refuses(_store: Store, _rows: object, **_more: object) -> None:
        raise Refused

    monkeypatch.setattr(Store, "append_recordings", refuses)
    with pytest.raises(perfuse.fleet.DatasetError, match="other commands change"):
        remove(fleet, "build=1")
