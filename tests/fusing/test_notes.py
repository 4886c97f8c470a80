"""`record.json` beside recordings: what it states is used; damaged and hostile ones are as none."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import perfuse
from perfuse.fusing.note import NAME, note_beside

TESTDATA = Path(__file__).parents[1] / "cli" / "testdata"
DUMP = "jit-2345.dump"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A perf.data whose process 14513 announced a dump, and the dump."""
    for name in ("perf.data", DUMP):
        shutil.copy(TESTDATA / name, tmp_path)
    return tmp_path


def write(directory: Path, **entries: Any) -> None:
    """Writes a note."""
    (directory / NAME).write_text(json.dumps({"version": 1, **entries}), encoding="ascii")


def test_the_process_of_a_dump(directory: Path) -> None:
    """Whatever the dump is called."""
    (directory / DUMP).rename(directory / "jit-of-a-container.dump")
    write(directory, files=[{"name": "jit-of-a-container.dump", "pid": 14513}], command=["/opt/app", "--fast"])
    profile = perfuse.fuse(directory)
    assert [(join.pid, join.found_by) for join in profile.joins] == [(14513, "note")]
    assert profile.title == "app --fast"


def test_a_note_among_the_inputs(directory: Path) -> None:
    """As a shell writes `run/*`; other files of its name are refused."""
    write(directory, command=["/opt/app"])
    assert perfuse.fuse(*sorted(directory.iterdir())).title == "app"
    (directory / NAME).write_text("{}", encoding="ascii")
    with pytest.raises(perfuse.UnreadableInput, match="in magic"):
        perfuse.fuse(*sorted(directory.iterdir()))


def test_a_process_that_was_not_recorded_is_not_used(directory: Path) -> None:
    write(directory, files=[{"name": DUMP, "pid": 1}], title="what was recorded")
    profile = perfuse.fuse(directory)
    assert [(join.pid, join.found_by) for join in profile.joins] == [(14513, "marker")]
    assert profile.title == "what was recorded"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"version": 2}',
        '{"version": 1, "files": 3, "command": {}, "title": 7}',
        '{"version": 1, "files": [1, null, {"name": 1, "pid": 2}, {"name": "jit-2345.dump", "pid": true}]}',
        '{"version": 1, "files": [{"name": "jit-2345.dump", "pid": "14513"}], "command": [null, 4]}',
        "[" * 100_000,
        "\udcff",
        '{"version": 1e400}',
        '{"version": 1, "title": "x", "lines": 3}',
        '{"version": 1, "title": "x", "lines": [["/a.py", "f", 1]]}',
        '{"version": 1, "title": "x", "lines": {"/a.py": 7}}',
        '{"version": 1, "title": "x", "lines": {"/a.py": {"f": -1}}}',
        '{"version": 1, "title": "x", "lines": {"/a.py": {"f": 4294967296}}}',
        '{"version": 1, "title": "x", "lines": {"/a.py": {"f": 1.5}}}',
        '{"version": 1, "title": "x", "lines": {"/a.py": {"f": "1"}}}',
    ],
)
def test_damaged_notes_are_as_none(directory: Path, text: str) -> None:
    (directory / NAME).write_bytes(text.encode("utf-8", "surrogateescape"))
    profile = perfuse.fuse(directory)
    assert [(join.pid, join.found_by) for join in profile.joins] == [(14513, "marker")]
    assert profile.title == "llvmjit 4000 ../prog.ll"


def test_what_is_not_a_regular_file_is_not_read(directory: Path) -> None:
    os.mkfifo(directory / NAME)
    assert note_beside(str(directory / DUMP)) is None


def test_a_link_is_not_followed(directory: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    write(elsewhere, title="another")
    (directory / NAME).symlink_to(elsewhere / NAME)
    assert note_beside(str(directory / DUMP)) is None


def test_a_large_file_is_not_read(directory: Path) -> None:
    with (directory / NAME).open("wb") as file:
        file.truncate(1 << 40)
    assert note_beside(str(directory / DUMP)) is None
