"""A panic of the core is an `Exception`, exit code 70, and valid JSON under --json."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Done

ENVIRONMENT = {**os.environ, "PERFUSE_PANIC_FOR_TEST": "1"}
ENVIRONMENT.pop("RUST_BACKTRACE", None)
LOCATION = r"crates/python/src/(errors|arrow)\.rs:\d+"


def run_python(code: str, folder: Path, environment: dict[str, str] = ENVIRONMENT) -> Done:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


def run_verb(words: list[str], folder: Path, *, in_stream: bool = False) -> Done:
    """A command whose opening of a file panics."""
    code = f"""
import sys
import perfuse
import perfuse.fusing
from perfuse import _core, cli

def open_and_panic(*args, **kwargs):
    from arro3.core import Table
    return Table.from_arrow(_core.panic_for_test(in_stream={in_stream}))

perfuse.open = perfuse.fuse = open_and_panic
sys.exit(cli.run({words!r}))
"""
    return run_python(code, folder)


def test_api(tmp_path: Path) -> None:
    done = run_python(
        """
import perfuse
from perfuse import _core
try:
    _core.panic_for_test()
except Exception as error:
    assert type(error) is perfuse.InternalError, type(error)
    assert isinstance(error, perfuse.PerfuseError)
    print(error)
    print(error.location)
    print(error.hint)
print(_core.take_panic())
""",
        tmp_path,
    )
    assert (done.code, done.err) == (0, "")
    message, location, hint, left = done.out.splitlines()
    assert re.fullmatch(LOCATION, location)
    assert re.fullmatch(rf"internal error at {LOCATION}: panic for a test \(perfuse \S+\)", message)
    assert "report" in hint
    assert left == "None"


def test_a_table_whose_stream_panics(tmp_path: Path) -> None:
    done = run_python(
        """
import perfuse
from perfuse import _core
from perfuse.table import Table
try:
    Table("samples", lambda: _core.panic_for_test(in_stream=True)).to_arrow()
except perfuse.InternalError as error:
    print(error)
""",
        tmp_path,
    )
    assert re.search(rf"{LOCATION}: panic in a stream for a test", done.out), done


@pytest.mark.parametrize("in_stream", [False, True])
@pytest.mark.parametrize("verb", ["info", "check", "records", "report", "tables"])
def test_command(tmp_path: Path, verb: str, in_stream: bool) -> None:
    done = run_verb([verb, "any.dump"], tmp_path, in_stream=in_stream)
    assert (done.code, done.out) == (70, "")
    message, hint = done.err.splitlines()
    assert re.match(rf"perfuse: internal error at {LOCATION}: panic ", message)
    assert "please report" in hint
    done = run_verb([verb, "--json", "any.dump"], tmp_path, in_stream=in_stream)
    assert done.code == 70
    error = json.loads(done.out)["error"]
    assert error["kind"] == "internal"
    assert re.search(LOCATION, error["message"])
    assert error["perfuse_version"] in message


def test_a_defect_in_python(tmp_path: Path) -> None:
    code = (
        "import sys, perfuse; from perfuse import cli; perfuse.open = len; sys.exit(cli.run(['info', '--json', 'x']))"
    )
    done = run_python(code, tmp_path)
    assert done.code == 70
    assert "TypeError" in json.loads(done.out)["error"]["message"]
    assert "Traceback" in done.err


def test_the_hook_is_for_tests_only(tmp_path: Path) -> None:
    without = {name: value for name, value in ENVIRONMENT.items() if name != "PERFUSE_PANIC_FOR_TEST"}
    code = "from perfuse import _core; print(hasattr(_core, 'panic_for_test'))"
    assert run_python(code, tmp_path, without).out == "False\n"
