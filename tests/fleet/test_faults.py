"""Whatever is killed, full or repeated: each recording is in the dataset whole, and once."""

from __future__ import annotations

import multiprocessing.spawn
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fleet import faulty
from fleet.generated import Written, write_fleet
from fleet.tables import contents
from perfuse.errors import UsageError
from perfuse.fleet import DatasetError, Fleet, Pool, adding
from perfuse.fleet.engines import Completed, Dask, Engine, Inline, Task, WorkerLost
from perfuse.fleet.maintenance import clean, compact
from perfuse.fleet.status import status_of, unnamed_attempts
from perfuse.fleet.store import Store

ROUNDS = 20


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Sixteen small recordings, one of which is cut, and one of which is there twice."""
    folder = tmp_path_factory.mktemp("inputs")
    written = write_fleet(folder, ["1", "2"], runs=4, samples=200)
    (folder / "cut.data").write_bytes(b"PERFILE2" + bytes(30))
    shutil.copy2(written.paths[0], folder / "again.collapsed")
    written.paths += [folder / "cut.data", folder / "again.collapsed"]
    return written


@pytest.fixture(scope="module")
def undisturbed(inputs: Written, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What an undisturbed run makes of them."""
    fleet = Fleet(tmp_path_factory.mktemp("undisturbed") / "dataset")
    result = fleet.add(inputs.paths)
    assert (result.num_added, result.kept, len(result.failed)) == (16, 1, 1)
    return contents(fleet)


def test_workers_are_killed(
    inputs: Written, undisturbed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers end with SIGKILL before they read, or between writing and answering, until as many have as rounds."""
    killed = tmp_path / "killed"
    killed.mkdir()
    monkeypatch.setattr(adding, "process_batch", partial(faulty.process_and_die, str(killed), 0.6))
    monkeypatch.setattr(adding, "DEATHS", 1000)
    fleet = Fleet(tmp_path / "dataset")
    pool = Pool(2)
    try:
        number = 0
        while len(list(killed.iterdir())) < ROUNDS:
            number += 1
            one = Fleet(tmp_path / f"dataset{number}")
            one.add(inputs.paths, engine=pool)
            assert contents(one) == undisturbed
            fleet = one
    finally:
        pool.close()
    if any(one.name.startswith("after") for one in killed.iterdir()):
        datasets = [Fleet(path) for path in tmp_path.glob("dataset*")]
        assert any(unnamed_attempts(one) for one in datasets)
    clean(fleet, older_than_hours=0)
    assert unnamed_attempts(fleet) == []
    assert contents(fleet) == undisturbed


def test_a_recording_that_kills_its_worker_is_in_quarantine(
    inputs: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = tmp_path / "killed"
    killed.mkdir()
    monkeypatch.setattr(adding, "process_batch", partial(faulty.process_and_die, str(killed), 2.0))
    fleet = Fleet(tmp_path / "dataset")
    pool = Pool(1)
    try:
        result = fleet.add(inputs.paths[:2], engine=pool)
    finally:
        pool.close()
    assert [code for _, code, _ in result.failed] == ["worker_died", "worker_died"]
    assert "signal 9" in result.failed[0][2]
    monkeypatch.undo()
    assert fleet.add(inputs.paths[:2], retry_failed=True).num_added == 2


def test_a_worker_that_does_not_start_is_not_the_recordings_fault(
    inputs: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first two processes end before they can work; another one gets their recordings."""
    python, failed = tmp_path / "python", tmp_path / "failed"
    failed.mkdir()
    python.write_text(f"""#!/bin/sh
mkdir {failed}/1 2> /dev/null && exit 3
mkdir {failed}/2 2> /dev/null && exit 3
exec {sys.executable} "$@"
""")
    python.chmod(0o755)
    monkeypatch.setattr(multiprocessing.spawn, "_python_exe", os.fsencode(python))
    pool = Pool(1)
    try:
        result = Fleet(tmp_path / "dataset").add(inputs.paths[:2], engine=pool)
    finally:
        pool.close()
    assert (result.num_added, result.failed, len(list(failed.iterdir()))) == (2, [], 2)


def test_where_no_worker_can_start_nothing_is_in_quarantine(
    inputs: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multiprocessing.spawn, "_python_exe", b"/bin/false")
    fleet, pool = Fleet(tmp_path / "dataset"), Pool(2)
    try:
        with pytest.raises(UsageError, match="end before they can work: exit code 1"):
            fleet.add(inputs.paths, engine=pool)
    finally:
        pool.close()
    assert fleet.rows("SELECT count(*) FROM quarantine") == [(0,)]
    monkeypatch.undo()
    assert fleet.add(inputs.paths).num_added == 16


def test_the_driver_is_killed(inputs: Written, undisturbed: dict[str, Any], tmp_path: Path) -> None:
    """At a point that the log of the dataset shows: after tables were created, after rows, after a commit."""
    for number, sign in enumerate(
        ("recordings/_delta_log/*0.json", "function_totals/**/*.parquet", "stack_totals/**/*1.json")
    ):
        dataset = tmp_path / f"dataset{number}"
        driver = subprocess.Popen(
            [sys.executable, "-m", "fleet.faulty", str(dataset), *map(str, inputs.paths)],
            stdout=subprocess.DEVNULL,
            cwd=Path(__file__).parents[1],
        )
        while driver.poll() is None and not any(dataset.glob(sign)):
            threading.Event().wait(0.005)
        driver.kill()
        driver.wait()
        fleet = Fleet(dataset)
        fleet.add(inputs.paths)
        assert contents(fleet) == undisturbed, sign


def test_two_drivers_at_once(inputs: Written, undisturbed: dict[str, Any], tmp_path: Path) -> None:
    dataset = tmp_path / "dataset"
    command = [sys.executable, "-m", "fleet.faulty", str(dataset), *map(str, inputs.paths)]
    drivers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1], text=True) for _ in range(2)
    ]
    added = [int(driver.communicate()[0]) for driver in drivers]
    assert [driver.returncode for driver in drivers] == [0, 0]
    assert sum(added) == 16
    fleet = Fleet(dataset)
    assert contents(fleet) == undisturbed
    rows = fleet.rows("SELECT count(*), count(DISTINCT recording_id) FROM all_recordings")
    assert rows == [(17, 17)]


def test_a_commit_that_another_driver_made_first(inputs: Written, undisturbed: dict[str, Any], tmp_path: Path) -> None:
    """A driver that has read nothing of the other's commit is refused by Delta, and adds only what is missing."""
    dataset = tmp_path / "dataset"
    first, second = Fleet(dataset), Fleet(dataset)
    half = inputs.paths[:8]

    class InBetween(Inline):
        """The other driver adds half of the recordings while the last batch of this one is worked on."""

        def next_completed(self, timeout_s: float | None = None) -> Completed | None:
            done = super().next_completed(timeout_s)
            if len(self._queue) == 0 and not second.files()["recordings"]:
                assert second.add(half).num_added == 8
            return done

    first.store.create()
    result = first.add(inputs.paths, engine=InBetween())
    assert result.num_added == 8
    assert contents(first) == undisturbed


def test_a_table_that_another_process_creates_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both append the first rows of a table, and neither sees the other's: the rows of each are there once."""
    first, second = Store(tmp_path), Store(tmp_path)
    first.begin()
    looks = iter([False, False])
    monkeypatch.setattr(Store, "has", lambda *_: next(looks, True))
    first.append("stacks", [(b"1", None, b"f")])
    second.append("stacks", [(b"2", None, b"f")])
    monkeypatch.undo()
    rows = Fleet(tmp_path).rows("SELECT stack_hash FROM all_stacks ORDER BY 1")
    assert rows == [(b"1",), (b"2",)]


def test_a_table_whose_creation_was_not_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows were written and the answer lost: they are not written again."""
    import deltalake

    write = deltalake.write_deltalake

    def unanswered(*args: Any, **options: Any) -> None:
        write(*args, **options)
        raise OSError("connection reset")

    store = Store(tmp_path)
    store.begin()
    monkeypatch.setattr(deltalake, "write_deltalake", unanswered)
    store.append("stacks", [(b"1", None, b"f")])
    assert Fleet(tmp_path).rows("SELECT stack_hash FROM all_stacks") == [(b"1",)]


def test_a_dataset_whose_first_driver_died_before_it_added_anything(tmp_path: Path) -> None:
    Store(tmp_path).begin()
    fleet = Fleet(tmp_path)
    assert fleet.rows("SELECT count(*) FROM function_totals") == [(0,)]
    assert status_of(fleet).num_recordings == 0
    compact(fleet, always=True)
    assert clean(fleet).attempts == 0


def test_a_full_disk(inputs: Written, undisturbed: dict[str, Any], tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "dataset")
    fleet.add(inputs.paths[:3])
    before = contents(fleet)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, limit[1]))
    try:
        with pytest.raises(DatasetError, match="cannot write the dataset"):
            fleet.add(inputs.paths)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert contents(fleet) == before
    assert fleet.add(inputs.paths).num_added == 13
    assert contents(fleet) == undisturbed


def test_compaction_and_gc_keep_every_row(inputs: Written, undisturbed: dict[str, Any], tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "dataset")
    for path in inputs.paths:
        fleet.add([path])
    assert contents(fleet)["function_totals"] == undisturbed["function_totals"]
    number = len(fleet.files()["function_totals"])
    compact(fleet, always=True)
    assert len(fleet.files()["function_totals"]) < number
    before = _data_files(tmp_path / "dataset")
    # Part of an hour is not none: all files are newer.
    assert clean(fleet, older_than_hours=0.5).deleted_files == 0
    assert before <= _data_files(tmp_path / "dataset")
    before = _data_files(tmp_path / "dataset")
    deleted = clean(fleet, older_than_hours=0).deleted_files
    on_disk = _data_files(tmp_path / "dataset")
    assert deleted == len(before - on_disk) > 0
    assert clean(fleet, older_than_hours=0).deleted_files == 0
    found = contents(fleet)
    assert found == undisturbed
    assert on_disk == {str(Path(one)) for files in fleet.files().values() for one in files}


def _data_files(dataset: Path) -> set[str]:
    return {str(one) for one in dataset.rglob("*.parquet") if "_delta_log" not in str(one)}


def test_a_straggler_is_started_again(
    inputs: Written, undisturbed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a batch that never ends, a copy is worked on by another worker."""
    monkeypatch.setattr(adding, "LEAST_STRAGGLER_SECONDS", 0.0)

    class Stuck(Inline):
        """Loses sight of the first batch."""

        num_workers = 2
        lost = 0

        def submit(self, key: str, task: Callable[..., Any], *arguments: Any) -> None:
            if not self.lost:
                self.lost += 1
                return
            super().submit(key, task, *arguments)

    fleet = Fleet(tmp_path / "dataset")
    result = fleet.add(inputs.paths, engine=Stuck())
    assert result.repeated_batches == 1
    assert contents(fleet) == undisturbed


def _double(number: int) -> int:
    if number < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 0:
        raise ValueError("zero")
    return 2 * number


@pytest.fixture(scope="module", params=["inline", "pool", "dask"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Each engine."""
    if request.param == "dask":
        pytest.importorskip("distributed")
    made: Engine = {"inline": Inline, "pool": lambda: Pool(2), "dask": lambda: Dask(num_workers=2)}[request.param]()
    yield made
    made.close()


def task_results(engine: Engine, tasks: Sequence[tuple[str, Task, tuple[Any, ...]]]) -> dict[str, Any]:
    """Runs tasks to their end; results by key."""
    for key, task, arguments in tasks:
        engine.submit(key, task, *arguments)
    found: dict[str, Any] = {}
    while len(found) < len(tasks):
        done = engine.next_completed()
        if done is None:
            break
        found[done.key] = done.result
    return found


def test_engines_return_results_and_errors(engine: Engine) -> None:
    found = task_results(engine, [(str(number), _double, (number,)) for number in range(20)])
    assert isinstance(found.pop("0"), ValueError)
    assert found == {str(number): 2 * number for number in range(1, 20)}
    assert engine.next_completed(0.0) is None


def test_engines_survive_the_death_of_a_worker(engine: Engine) -> None:
    if isinstance(engine, Inline):
        return  # its worker is this process
    found = task_results(engine, [("a", _double, (-1,)), ("b", _double, (1,)), ("c", _double, (2,))])
    assert isinstance(found["a"], WorkerLost)
    # On Dask, those that were sent to the same worker are lost with it; the driver submits them again.
    assert all(isinstance(found[key], WorkerLost) or found[key] == number for key, number in (("b", 2), ("c", 4)))
    assert task_results(engine, [("b", _double, (1,)), ("c", _double, (2,))]) == {"b": 2, "c": 4}


def test_every_engine_makes_the_same_dataset(
    engine: Engine, inputs: Written, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    fleet = Fleet(tmp_path / "dataset")
    paths = list(inputs.paths)
    random.Random(3).shuffle(paths)
    fleet.add(paths, engine=engine)
    assert contents(fleet) == undisturbed


def fails_with_what_cannot_be_sent() -> None:
    class LocalError(Exception):
        pass

    raise LocalError("No space left on device")


def test_an_error_that_cannot_be_sent_has_its_own_message_alone() -> None:
    engine = Pool(1)
    try:
        engine.submit("1", fails_with_what_cannot_be_sent)
        done = engine.next_completed(60.0)
    finally:
        engine.close()
    assert done is not None
    assert str(done.result) == "LocalError: No space left on device"


POOL = """
import sys
import perfuse as pf
print(pf.fleet.open(sys.argv[1]).add(sys.argv[2:], engine=pf.fleet.Pool(2)).num_added)
"""
COMMAND = """
import sys
from perfuse.cli import main
sys.argv[1:] = ["fleet", "add", sys.argv[1], *sys.argv[2:], "--workers", "2", *ENGINE]
sys.exit(main())
"""


@pytest.mark.parametrize(
    "program",
    [POOL, COMMAND.replace("ENGINE", "[]"), COMMAND.replace("ENGINE", "['--dask', 'local']")],
    ids=["pool", "command with a pool", "command with Dask"],
)
def test_a_script_that_adds_when_it_is_imported(program: str, inputs: Written, tmp_path: Path) -> None:
    """Processes that run the script again would add, too, as long as there are processes."""
    script = tmp_path / "script.py"
    script.write_text(program, encoding="utf-8")
    command = [sys.executable, str(script), str(tmp_path / "dataset"), *map(str, inputs.paths[:3])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert status_of(Fleet(tmp_path / "dataset")).num_recordings == 3
