"""Files that change while they are read: the answer is that of the whole file or a clear error, never a signal."""

import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import pytest

import perfuse as pf
from perfuse.errors import PerfuseError, QueryError, UnreadableInput
from perfuse.query import DuckDBRelation

RECORDINGS = {
    "jitdump": "jitdump/produced/node20.dump",
    "perf_data": "jitdump/produced/node20.perf.data",
    "mono": "mono/v17/gchandles.mlpd",
    "mono_heap": "mono/v17/heapshot.mlpd",
    "xray": "xray/fdr/lua-small-v5.xray",
    "sframe": "sframe/v1/aarch64/libsqlite.so",
}

CUT = "became shorter while it was read"


QUESTIONS: dict[str, Callable[[pf.Recording], object]] = {
    "records": lambda recording: sum(1 for _ in recording.records()),
    "check": lambda recording: len(recording.check()),
    "findings": lambda recording: len(recording.findings()),
    "tables": lambda recording: {
        name: table.to_arrow().num_rows for name, table in recording.tables.items() if name != "records"
    },
    "fused": lambda recording: {name: table.to_arrow().num_rows for name, table in pf.fuse(recording).tables.items()},
    "sql": lambda recording: recording.profile().sql("SELECT count(*) FROM records").fetchall(),
}
"""Questions that read the whole file."""


@pytest.fixture(params=RECORDINGS)
def copy(request: pytest.FixtureRequest, jitdump_corpus: Path, tmp_path: Path) -> Path:
    """A copy of a recording, which a test may damage."""
    source = jitdump_corpus.parent / RECORDINGS[request.param]
    return Path(shutil.copyfile(source, tmp_path / source.name))


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("left", [0.0, 0.5], ids=["nothing is left", "half is left"])
def test_a_file_that_was_cut_after_it_was_opened(copy: Path, question: str, left: float) -> None:
    recording = pf.open(copy)
    os.truncate(copy, int(copy.stat().st_size * left))
    with pytest.raises(UnreadableInput, match=CUT) as raised:
        QUESTIONS[question](recording)
    assert raised.value.path == str(copy)
    assert raised.value.hint


@pytest.mark.parametrize("use", [lambda found: found.fetchall(), lambda found: found.pl()], ids=["rows", "polars"])
def test_a_profile_whose_file_was_cut(copy: Path, use: Callable[[DuckDBRelation], object]) -> None:
    """A table is computed when a query first names it, and errors in it come through DuckDB."""
    profile = pf.fuse(copy)
    os.truncate(copy, 100)
    with pytest.raises(UnreadableInput, match=CUT):
        use(profile.sql("SELECT * FROM records"))


def test_a_cut_is_not_the_cause_of_a_later_error(copy: Path) -> None:
    """The error of a stream that nobody asked for again does not appear in the next query that fails."""
    stream = pf.open(copy).tables["records"].stream()
    os.truncate(copy, 100)
    with pytest.raises(Exception, match=CUT):
        list(stream)
    with pytest.raises(QueryError, match="no_such_table"):
        pf.fuse(b"a;b 1\n" * 100).sql("SELECT * FROM no_such_table")


CHANGES: dict[str, Callable[[Path, bytes], object]] = {
    "truncated": lambda path, _content: os.truncate(path, random.randrange(path.stat().st_size + 1)),
    "written anew": lambda path, content: path.write_bytes(content),
    "replaced": lambda path, content: other_file(path, content).replace(path),
    "deleted": lambda path, _content: path.unlink(missing_ok=True),
    "grown": lambda path, content: os.truncate(path, path.stat().st_size + len(content) // 3),
}
"""What other programs do to a file that is being read."""


def other_file(path: Path, content: bytes) -> Path:
    new = path.with_name("new")
    new.write_bytes(content)
    return new


@contextmanager
def changing(path: Path) -> Iterator[None]:
    """Changes a file in one way after the other, until the block ends."""
    content = path.read_bytes()
    done = threading.Event()

    def change() -> None:
        while not done.wait(random.random() / 100):
            with suppress(FileNotFoundError):
                random.choice(list(CHANGES.values()))(path, content)
            if not path.exists():
                path.write_bytes(content)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        path.write_bytes(content)


def test_calls_on_files_that_change_meanwhile(copy: Path) -> None:
    """Whatever happens to the file, calls return or raise an error of perfuse; afterwards everything works."""
    expected = {name: question(pf.open(copy)) for name, question in QUESTIONS.items()}
    num_failed = num_rounds = 0
    with changing(copy):
        while num_rounds < 6 or not num_failed:
            num_rounds += 1
            for question in QUESTIONS.values():
                try:
                    question(pf.open(copy))
                except (PerfuseError, FileNotFoundError):
                    num_failed += 1
                except duckdb.Error as error:  # while rows are fetched
                    if CUT not in str(error):
                        raise
                    num_failed += 1
    assert {name: question(pf.open(copy)) for name, question in QUESTIONS.items()} == expected


VERBS = [
    ["info"],
    ["records", "--limit", "5000"],
    ["check"],
    ["repair", "-o", "repaired"],
    ["tables"],
    ["query", "SELECT count(*) FROM records"],
    ["report"],
    ["convert", "-o", "converted.json", "--to", "speedscope"],
    ["flame", "-o", "flame.html"],
]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_commands_on_files_that_change_meanwhile(copy: Path, verb: list[str], tmp_path: Path) -> None:
    """No signal ends a command, no defect is reported, and no output is left of one that failed."""
    name, *options = verb
    with changing(copy):
        for _ in range(2):
            outputs = [
                tmp_path / option for option in options if option in {"repaired", "converted.json", "flame.html"}
            ]
            for output in outputs:
                output.unlink(missing_ok=True)
            ended = subprocess.run(
                [sys.executable, "-m", "perfuse", name, str(copy), *options],
                cwd=tmp_path,
                capture_output=True,
                timeout=600,
                check=False,
            )
            assert ended.returncode in {0, 1, 2, 3}, (ended.returncode, ended.stderr.decode()[-2000:])
            assert b"internal error" not in ended.stderr
            assert b"Traceback" not in ended.stderr
    assert not list(tmp_path.glob(".*")), "an unfinished output is left"
