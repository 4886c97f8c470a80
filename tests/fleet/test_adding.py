"""Adding recordings: each once, whatever it is called; those that cannot be read stop nothing."""

import gzip
import lzma
import os
import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryFile
from threading import Thread

import pytest

import perfuse
from fleet.generated import Written, write_collapsed, write_fleet
from fleet.tables import contents
from perfuse._core import compress_zstd
from perfuse.errors import UsageError
from perfuse.fleet import Fleet, Inline, Pool
from perfuse.fleet.inputs import inputs_of


@pytest.fixture
def few(tmp_path: Path) -> Written:
    """Three small recordings."""
    return write_fleet(tmp_path / "few", ["1"], hosts=["a"], runs=3, samples=300)


def test_a_second_add_changes_nothing(few: Written, tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "dataset")
    assert fleet.add(few.paths).num_added == 3
    before = contents(fleet)
    again = fleet.add(few.paths)
    assert (again.num_added, again.kept) == (0, 3)
    assert contents(fleet) == before


def test_a_copy_under_another_name_counts_once(few: Written, tmp_path: Path) -> None:
    copy = tmp_path / "copy.collapsed"
    shutil.copy(few.paths[0], copy)
    fleet = Fleet(tmp_path / "dataset")
    result = fleet.add([*few.paths, copy])
    assert (result.num_added, result.kept) == (3, 1)
    assert fleet.add([copy]).kept == 1


def test_other_labels_of_a_known_recording_are_reported(few: Written, tmp_path: Path) -> None:
    """The labels that were given first stay, in one command and in the next."""
    for build in ("9", "10"):
        (tmp_path / build).mkdir()
        shutil.copy(few.paths[0], tmp_path / build / "a.collapsed")
    inputs, labels_from = [tmp_path / "9", tmp_path / "10"], r"/(?P<build>\d+)/a"
    fleet = Fleet(tmp_path / "dataset")
    first = fleet.add(inputs, labels_from=labels_from)
    assert (first.num_added, first.kept, first.relabeled) == (1, 1, 1)
    again = fleet.add(inputs, labels_from=labels_from)
    assert (again.kept, again.relabeled) == (2, 1)
    assert fleet.add(inputs).relabeled == 0
    assert fleet.rows("SELECT build FROM recordings") == [("9",)]


def test_a_pipe_is_in_quarantine(few: Written, tmp_path: Path) -> None:
    """It would be read twice: to identify it, and for its content."""
    os.mkfifo(tmp_path / "pipe.data")
    result = Fleet(tmp_path / "dataset").add([*few.paths, tmp_path / "pipe.data"])
    assert result.num_added == 3
    assert [error for *_, error in result.failed] == ["it is not a regular file: save what it contains, and add that"]


def test_what_cannot_be_read_is_in_quarantine(few: Written, tmp_path: Path) -> None:
    bad = tmp_path / "bad.data"
    bad.write_bytes(b"PERFILE2" + bytes(20))
    missing = tmp_path / "missing.data"
    fleet = Fleet(tmp_path / "dataset")
    result = fleet.add([bad, *few.paths, missing])
    assert result.num_added == 3
    assert [text for text, *_ in result.failed] == [str(bad), str(missing)]
    rows = fleet.rows("SELECT title, error_code FROM quarantine ORDER BY title")
    assert [row[0] for row in rows] == [str(bad), str(missing)]
    assert fleet.add([bad]).kept == 1
    write_collapsed(missing, {"main;late": 7})
    assert fleet.add([missing], retry_failed=True).num_added == 1


def test_a_name_that_is_not_utf8_is_in_quarantine_and_stops_nothing(few: Written, tmp_path: Path) -> None:
    directory = tmp_path / "names"
    directory.mkdir()
    shutil.copy(few.paths[0], directory / os.fsdecode(b"caf\xe9.collapsed"))
    shutil.copy(few.paths[1], directory / "plain.collapsed")
    fleet = Fleet(tmp_path / "dataset")
    result = fleet.add([directory])
    assert result.num_added == 1
    assert [(text.rpartition("/")[2], message) for text, *_, message in result.failed] == [
        ("caf\\xe9.collapsed", f"{directory}/caf\\xe9.collapsed: not UTF-8")
    ]
    assert fleet.add([directory]).kept == 2


def test_a_second_attempt_can_succeed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed for another reason than its content, such as a disk that did not answer."""
    path = write_collapsed(tmp_path / "a.collapsed", {"main;f": 3})
    fleet = Fleet(tmp_path / "dataset")

    def fails(*_files: str, **_options: object) -> None:
        raise OSError("the disk does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(perfuse, "fuse", fails)
        assert [error for *_, error in fleet.add([path]).failed] == ["the disk does not answer"]
    assert fleet.add([path]).kept == 1
    assert fleet.add([path], retry_failed=True).num_added == 1
    assert fleet.rows("SELECT count(*) FROM quarantine") == [(0,)]
    assert fleet.rows("SELECT sum(weight)::BIGINT FROM event_totals") == [(3,)]


@pytest.mark.parametrize("engine", [Inline, lambda: Pool(2)], ids=["inline", "pool"])
def test_engines_make_the_same_dataset(few: Written, tmp_path: Path, engine: object) -> None:
    assert callable(engine)
    fleets = [Fleet(tmp_path / name) for name in ("plain", "other")]
    fleets[0].add(few.paths)
    used = engine()
    try:
        assert fleets[1].add(few.paths, engine=used).num_added == 3
    finally:
        used.close()
    assert contents(fleets[0]) == contents(fleets[1])


def test_labels_come_from_options_and_paths(few: Written, tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "dataset")
    fleet.add(few.paths, labels={"host": "z", "team": "x"}, labels_from=r"(?P<build>\d+)/(?P<host>\w+)/\d+\.c")
    assert fleet.rows("SELECT DISTINCT build, host, json_extract_string(labels, '$.team') FROM recordings") == [
        ("1", "z", "x")
    ]


def test_inputs_are_grouped(tmp_path: Path) -> None:
    """A directory with one recording and its dumps is one input; several recordings are one each."""
    for name in ("run1/perf.data", "run1/jit-7.dump", "run2/a.collapsed", "run2/b.collapsed", "notes.md"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"main;f 1\n")
    (tmp_path / "run1" / "perf.data").write_bytes(b"PERFILE2")
    found = [tuple(Path(file).name for file in one.files) for one in inputs_of([str(tmp_path)])]
    assert found == [("perf.data", "jit-7.dump"), ("a.collapsed",), ("b.collapsed",)]
    assert [one.text for one in inputs_of(["x.data+jit.dump", "s3://bucket/a.data"])] == [
        "x.data+jit.dump",
        "s3://bucket/a.data",
    ]
    with pytest.raises(UsageError, match="no file matches"):
        inputs_of([str(tmp_path / "*.none")])


def test_compressed_recordings_are_found_by_their_content(tmp_path: Path) -> None:
    content = b"PERFILE2" + bytes(1 << 20)
    (tmp_path / "a.gz").write_bytes(gzip.compress(content))
    (tmp_path / "b.xz").write_bytes(lzma.compress(content))
    with TemporaryFile() as plain, (tmp_path / "c.zst").open("wb") as packed:
        plain.write(content)
        plain.seek(0)
        compress_zstd(plain.fileno(), packed.fileno())
    (tmp_path / "cut.gz").write_bytes(gzip.compress(content)[:12])
    (tmp_path / "notes.gz").write_bytes(gzip.compress(b"notes"))
    assert [Path(*one.files).name for one in inputs_of([tmp_path])] == ["a.gz", "b.xz", "c.zst"]


def test_recordings_at_web_addresses(few: Written, tmp_path: Path) -> None:
    """Those that a server has are read, those that it does not have are in quarantine."""
    pytest.importorskip("obstore")
    handler = partial(SimpleHTTPRequestHandler, directory=str(few.paths[0].parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        fleet = Fleet(tmp_path / "dataset")
        result = fleet.add([*(f"{base}/{path.name}" for path in few.paths), f"{base}/none.folded"])
        server.shutdown()
    assert result.num_added == 3
    assert [text.rpartition("/")[2] for text, *_ in result.failed] == ["none.folded"]
    assert fleet.rows("SELECT sum(weight)::BIGINT FROM event_totals") == [(few.weight,)]
