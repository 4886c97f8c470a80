"""Temporary files: removed at the end, those of killed processes by the next one, those of living processes never."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from perfuse.output import temporary
from perfuse.output.file import output_file

WRITER = """
import sys, time
from pathlib import Path
from perfuse.output.file import output_file
from perfuse.output.temporary import process_directory
with output_file(Path(sys.argv[1])) as out:
    out.write(b"a part")
    out.flush()
    (process_directory() / "spilled").write_bytes(b"rows")
    print("ready", flush=True)
    sys.stdin.read()
"""
OLD_S = 3600


def started(target: Path, temporary_files: Path) -> "subprocess.Popen[bytes]":
    """A process in the middle of writing a file."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(target)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary_files)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def make_old(*directories: Path) -> list[Path]:
    """Lets everything in directories be of an hour ago, and returns it."""
    found = [path for directory in directories for path in directory.iterdir()]
    for path in found:
        os.utime(path, (time.time() - OLD_S, time.time() - OLD_S))
    return found


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    folders = (tmp_path / "outputs", tmp_path / "temporary")
    for folder in folders:
        folder.mkdir()
    return folders


def test_those_of_a_killed_process_are_removed_by_the_next(folders: tuple[Path, Path]) -> None:
    outputs, spilled = folders
    with started(outputs / "one.json", spilled) as process:
        process.kill()
    assert len(make_old(*folders)) == 2
    with started(outputs / "two.json", spilled) as process:
        process.communicate(b"")
        assert process.returncode == 0
    assert [path.name for path in outputs.iterdir()] == ["two.json"]
    assert list(spilled.iterdir()) == []


def test_those_of_a_living_process_stay(folders: tuple[Path, Path]) -> None:
    outputs, spilled = folders
    with started(outputs / "one.json", spilled) as living:
        kept = make_old(*folders)
        assert len(kept) == 2
        assert temporary.remove_stale(outputs) == []
        assert temporary.remove_stale(spilled) == []
        assert all(path.exists() for path in kept)
        living.communicate(b"")
    assert [path.name for path in outputs.iterdir()] == ["one.json"]
    assert (outputs / "one.json").read_bytes() == b"a part"


def test_those_of_a_forked_process_whose_parent_ended_stay(folders: tuple[Path, Path]) -> None:
    """The child may still write to the file that its parent began."""
    outputs, _ = folders
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with output_file(outputs / "one.json") as out:
            out.write(b"a part")
            grandchild = os.fork()
            if grandchild:
                os._exit(0)
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
    os.waitpid(child, 0)
    try:
        assert len(make_old(outputs)) == 1
        assert temporary.remove_stale(outputs) == []
    finally:
        os.close(reading)
        os.close(writing)


def test_what_looks_different_or_is_new_or_a_link_stays(tmp_path: Path) -> None:
    token = "0123456789abcdef"
    target = tmp_path / "target"
    target.mkdir()
    (target / "data").write_text("precious")
    names = [
        ".unfinished",
        f"x.{token}.unfinished",
        f".x.{token[:-1]}.unfinished",
        f".x.{token}.json",
        "perfuse-1.unfinished",
    ]
    for name in names:
        (tmp_path / name).write_text("of somebody else")
    (tmp_path / f".link.{token}.unfinished").symlink_to(target)
    make_old(tmp_path)
    (tmp_path / f".new.{token}.unfinished").write_text("not locked yet")
    before = set(tmp_path.rglob("*"))
    assert temporary.remove_stale(tmp_path) == []
    assert set(tmp_path.rglob("*")) == before
    stale = tmp_path / f".old.{token}.unfinished"
    stale.write_text("a part")
    os.utime(stale, (0, 0))
    assert temporary.remove_stale(tmp_path) == [stale]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_leaves_none(folders: tuple[Path, Path], number: int) -> None:
    """Also where the signal arrives while a library has the thread."""
    outputs, spilled = folders
    stacks = outputs / "many.collapsed"
    stacks.write_text("".join(f"main;f{n % 97};g{n} 1\n" for n in range(300_000)))
    sql = "SELECT count(*) FROM samples a, samples b WHERE a.stack_id * b.stack_id % 7 = 3"
    launch = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "signal.signal(signal.SIGTERM, signal.SIG_DFL); from perfuse.cli import main; main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", launch, "query", str(stacks), sql, "-o", str(outputs / "rows.csv")],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(spilled)},
    ) as process:
        while process.poll() is None and not any(spilled.iterdir()):
            time.sleep(0.01)
        process.send_signal(number)
        _, messages = process.communicate(timeout=600)
    assert process.returncode == 128 + number, messages
    assert b"Traceback" not in messages
    assert list(spilled.iterdir()) == []
    assert [path.name for path in outputs.iterdir()] == ["many.collapsed"]


@pytest.mark.parametrize("made", [temporary.temporary_file, temporary.temporary_directory])
def test_a_signal_before_the_lock_leaves_none(
    made: Callable[[Path], AbstractContextManager[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler raises at any instruction: here between the making and the lock."""

    def interrupted(*_: object) -> None:
        assert len(list(tmp_path.iterdir())) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(temporary, "_lock", interrupted)
    with pytest.raises(KeyboardInterrupt), made(tmp_path / "out"):
        pass
    assert list(tmp_path.iterdir()) == []
