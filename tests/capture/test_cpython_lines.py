"""Lines of CPython's functions: those of the code objects that ran, and none where the source may be another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import perfuse
from perfuse.capture.definitions import _unchanged_since

from .recorded import PROGRAMS, PYTHONS, Run, record, record_until

RECENT = [path for version, path in sorted(PYTHONS.items()) if version >= (3, 12)]
WITH_DUMP = [path for version, path in sorted(PYTHONS.items()) if version >= (3, 13)]

# Names that one function has, names that several have, and names that no `def` has; a type parameter is new in 3.12.
DEFINITIONS = """\
import functools, json, sys, time

seen = {}


def note():
    code = sys._getframe(1).f_code
    seen.setdefault(code.co_qualname, []).append(code.co_firstlineno)
    end = time.process_time() + 0.02
    while time.process_time() < end:
        pass


def decorator(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        note()
        return function(*arguments)
    return wrapper


@decorator
@decorator
def decorated():
    note()


def plain[T](x: T = None):
    note()


def outer():
    def inner():
        note()

    global promoted

    def promoted():
        note()

    inner()
    note()


class Base:
    note()

    class Nested:
        async def method(self): note()

    @property
    def both(self):
        note()

    @both.setter
    def both(self, value):
        note()


if __debug__:
    def twice(): note()
else:
    def twice(): pass

try:
    def again(): note()
    again()
    def again(): note()
except ZeroDivisionError:
    pass

unnamed = lambda: note()
decorated(); plain(); outer(); promoted(); twice(); again(); unnamed()
base = Base()
base.both
base.both = 1
try:
    base.Nested().method().send(None)
except StopIteration:
    pass
list(note() for _ in range(2))
note()
print(json.dumps(seen))
"""
SEVERAL = {"Base.both", "again", "twice"}
NO_DEFINITION = {"<lambda>", "<genexpr>"}


def recorded_lines(run: Run, path: Path) -> dict[str, int]:
    """The lines that were noted of a file."""
    lines: dict[str, int] = run.note["lines"].get(str(path), {})
    return lines


@pytest.fixture(params=RECENT)
def definitions(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Run, Path, dict[str, list[int]]]:
    """A run of the program, its path, and the first lines of the code objects that ran, by their names."""
    path = tmp_path / "definitions.py"
    path.write_text(DEFINITIONS, encoding="ascii")
    run = record([request.param, path], tmp_path, "--frequency", "999")
    assert run.done.returncode == 0, run.done.stderr
    return run, path, json.loads(run.done.stdout)


if RECENT:

    def test_lines_are_those_of_code_objects(definitions: tuple[Run, Path, dict[str, list[int]]]) -> None:
        run, path, seen = definitions
        certain = {name: at[0] for name, at in seen.items() if name not in SEVERAL | NO_DEFINITION}
        assert len(certain) == 9
        lines = recorded_lines(run, path)
        assert certain.items() <= lines.items()
        assert not lines.keys() & (SEVERAL | NO_DEFINITION)
        # The line of a decorated function is that of its first decorator, as CPython, cProfile and py-spy have it.
        first = next(number for number, text in enumerate(DEFINITIONS.splitlines(), 1) if text == "@decorator")
        assert lines["decorated"] == first
        # What has no `def` in the source has the name and the file.
        sql = "SELECT name::VARCHAR, line FROM functions WHERE path = $path"
        profile = run_profile(run)
        rows = dict(profile.sql(sql, {"path": str(path)}).fetchall())
        assert rows["note"] is not None
        assert all(lines.get(name) == line for name, line in rows.items())
        assert {name for name, line in rows.items() if line is None} <= SEVERAL | NO_DEFINITION

    def test_the_line_is_not_that_of_samples(definitions: tuple[Run, Path, dict[str, list[int]]]) -> None:
        """Where in its code a function was busy is not recorded: no frame has a line, and no line has samples."""
        run, path, _ = definitions
        profile = run_profile(run)
        sql = "SELECT count(*), count(line) FROM frames JOIN functions fn USING (function_id) WHERE fn.path = $path"
        num_frames, num_lines = profile.sql(sql.replace("(line)", "(frames.line)"), {"path": str(path)}).fetchall()[0]
        assert num_frames > 0
        assert num_lines == 0
        named = {row["name"] for row in run.report("--by", "line")["groups"]}
        assert any(name.endswith(path.name) for name in named)
        assert not any(f"{path.name}:" in name for name in named)

    @pytest.mark.parametrize("python", RECENT)
    def test_a_source_that_was_changed(tmp_path: Path, python: str) -> None:
        """It may not be what ran: its functions have no line, and the reason is stated."""
        path = tmp_path / "changed.py"
        text = (PROGRAMS / "hot.py").read_text(encoding="utf-8").replace("+ 0.5", "+ 0.1")
        path.write_text(f"{text}\nopen(__file__, 'r+').write('\\n')\n", encoding="utf-8")
        run = record([python, path], tmp_path)
        assert run.done.returncode == 0, run.done.stderr
        assert recorded_lines(run, path) == {}
        assert run.note["without_lines"][str(path)] == "changed after the program started"
        assert f"functions of {path} have no lines: changed after the program started" in run.done.stderr
        row = next(row for row in run.report()["top_total"] if row["name"] == "inner_hot")
        assert (row["path"], row["line"]) == (str(path), None)

    @pytest.mark.parametrize("python", RECENT)
    def test_sources_that_are_no_longer_there(tmp_path: Path, python: str) -> None:
        path = tmp_path / "removed.py"
        path.write_text("import os\nos.unlink(__file__)\ndef f(): return sum(range(10**6))\nf()\n", encoding="ascii")
        run = record([python, path], tmp_path)
        assert run.done.returncode == 0, run.done.stderr
        assert run.note["without_lines"][str(path)] == "is not a file"
        assert run.note["lines"].keys() & {str(path)} == set()

    def test_one_file_keeps_them(tmp_path: Path) -> None:
        """A recording as a saved profile has the lines when the source is gone, also of functions without samples."""
        path = tmp_path / "hot.py"
        path.write_text("def idle():\n    pass\n\n" + (PROGRAMS / "hot.py").read_text(encoding="utf-8") + "\nidle()\n")
        words = [sys.executable, "-m", "perfuse", "record", "-o", "run.perfuse", "--no-report", "--", RECENT[-1], path]
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
        path.unlink()
        sql = "SELECT name::VARCHAR, line FROM functions WHERE path = $path"
        with perfuse.fuse(tmp_path / "run.perfuse") as profile:
            rows = dict(profile.sql(sql, {"path": str(path)}).fetchall())
        assert (rows["inner_hot"], rows["outer_warm"]) == (9, 16)
        assert rows.get("idle", 1) == 1


@pytest.mark.parametrize("name", ["directory", "fifo", "absent", "nul\0", "directory/\udcff"])
def test_names_of_what_is_not_a_file(tmp_path: Path, name: str) -> None:
    """A process names any path in its dump or map."""
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "fifo")
    assert isinstance(_unchanged_since(f"{tmp_path}/{name}", time.time()), str)


def test_times_that_are_set_back(tmp_path: Path) -> None:
    """The time of the content may be any; that of the inode shows the change."""
    path = tmp_path / "a.py"
    path.write_bytes(b"x = 1\n")
    after = path.stat().st_ctime + 1
    assert _unchanged_since(str(path), after) == b"x = 1\n"
    os.utime(path, (1, 1))
    assert _unchanged_since(str(path), path.stat().st_ctime) == "changed after the program started"
    link = tmp_path / "b.py"
    link.symlink_to(path)
    assert _unchanged_since(str(link), after + 60) == b"x = 1\n"


if WITH_DUMP:

    def has_both(run: Run) -> bool:
        return {"stable", "edited"} <= {row["name"] for row in run.report()["top_total"]}

    def test_a_running_process(tmp_path: Path) -> None:
        """Its sources are those of before it started, not of before it was recorded."""
        directory = tmp_path / "program"
        directory.mkdir()
        (directory / "stable.py").write_text(_busy("stable"), encoding="ascii")
        (directory / "edited.py").write_text(_busy("edited"), encoding="ascii")
        # CPython writes its dump when some KiB are to be written.
        many = "for number in range(200): exec(f'def f{number}(): pass\\nf{number}()')\n"
        text = "import stable, edited\nstable.stable(), edited.edited()\n" + many
        text += "print('ready', flush=True)\nwhile True: stable.stable(), edited.edited()\n"
        (directory / "main.py").write_text(text, encoding="ascii")
        # A file of the last clock ticks may have been changed after the start.
        time.sleep(0.1)
        environment = {**os.environ, "PYTHON_PERF_JIT_SUPPORT": "1"}
        command = [WITH_DUMP[0], directory / "main.py"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
                (directory / "edited.py").write_text("\n\n" + _busy("edited"), encoding="ascii")
                run = record_until(has_both, [], tmp_path, "--pid", str(process.pid))
            finally:
                process.kill()
                Path(f"/tmp/jit-{process.pid}.dump").unlink(missing_ok=True)
        assert "CPython keeps up to 4 KiB of its dump in memory" in run.done.stderr
        assert recorded_lines(run, directory / "stable.py")["stable"] == 2
        assert run.note["without_lines"][str(directory / "edited.py")] == "changed after the program started"
        rows = {row["name"]: row["line"] for row in run.report()["top_total"]}
        assert (rows["stable"], rows["edited"]) == (2, None)

    def test_a_process_in_a_container(tmp_path: Path) -> None:
        """What it has at a path is not what is there outside."""
        path = tmp_path / "hot.py"
        path.write_bytes((PROGRAMS / "hot.py").read_bytes())
        script = 'mount -t tmpfs none "$1" && printf "\\n\\n" | cat - "$2" > "$1/hot.py" && exec "$3" "$1/hot.py"'
        words = ["unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path), str(PROGRAMS / "hot.py"), WITH_DUMP[0]]
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0:
            pytest.skip("this user may not make mount namespaces")
        run = record(words, tmp_path)
        assert run.done.returncode == 0, run.done.stderr
        assert str(path) not in run.note["lines"]


def _busy(name: str) -> str:
    return f"\ndef {name}():\n    return sum(number % 97 for number in range(20_000))\n"


def run_profile(run: Run) -> Any:
    """The recording as a profile."""
    return perfuse.fuse(run.directory)
