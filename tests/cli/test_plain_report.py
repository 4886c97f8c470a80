"""`perfuse report FILE...` is read without click: its output is that of the verb, and it imports little."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RECORDED = Path(__file__).parents[1] / "truth" / "recorded" / "perf_machine" / "chains.perf.data"
SLOW_MODULES = ("click", "inspect", "urllib.request", "duckdb", "tempfile", "email", "ssl")


def _run(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "perfuse", *map(str, args)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_output_is_that_of_the_verb(options: tuple[str, ...]) -> None:
    plain = _run("report", *options, RECORDED)
    # `--follow all` is the default, and an option that click reads.
    of_verb = _run("report", *options, "--follow", "all", RECORDED)
    assert (plain.returncode, plain.stdout, plain.stderr) == (of_verb.returncode, of_verb.stdout, of_verb.stderr)
    assert plain.stdout


def test_errors_are_those_of_the_verb(tmp_path: Path) -> None:
    for path in (tmp_path / "absent", tmp_path):
        plain, of_verb = _run("report", path), _run("report", "--follow", "all", path)
        assert (plain.returncode, plain.stderr) == (of_verb.returncode, of_verb.stderr)
        assert plain.returncode in (2, 3)


def test_it_imports_no_module_that_it_does_not_need() -> None:
    program = (
        "import sys; from perfuse.cli import run; run(['report', sys.argv[1]]);"
        " print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, RECORDED], capture_output=True, text=True, check=True)
    assert set(done.stderr.split()) & set(SLOW_MODULES) == set()


def test_the_file_is_read_before_modules_are_imported() -> None:
    program = "import sys; from perfuse import cli; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"contextlib", "enum", "re", "signal", "typing"} & set(done.stdout.split()) == set()
