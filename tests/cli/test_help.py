"""Help: the same structure for every verb, short start-up time, and every example runs."""

import gzip
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Done, Perfuse

from perfuse.cli.app import context_of
from perfuse.cli.verbs import VERBS, Verb

ASKS_A_PROGRAM = "mono"
"""A verb whose examples need a running program; tests/producers tests it."""
FLEET = "fleet"
"""A verb whose examples need a dataset; tests/fleet runs them."""
SERVE = ("view", "mcp")
"""Verbs whose examples end when the user wants; tests/cli/test_view.py and tests/service/test_mcp.py run them."""
EXAMPLE_FILES = Path(__file__).parents[2] / "examples" / "postcards"
EXAMPLES = [
    example
    for name in VERBS
    if name not in (ASKS_A_PROGRAM, FLEET, *SERVE)
    for example in context_of(name).command.examples
]


@pytest.mark.parametrize("columns", [80, 140])
def test_overview(perfuse: Perfuse, golden: Callable[[str, str], None], columns: int) -> None:
    done = perfuse("--help", columns=columns)
    assert done.code == 0
    assert all(len(line) <= columns for line in done.out.splitlines())
    golden(f"help-{columns}.txt", done.out)


@pytest.mark.parametrize("name", VERBS)
def test_verb(perfuse: Perfuse, golden: Callable[[str, str], None], name: str) -> None:
    done = perfuse(name, "--help")
    assert (done.code, done.err) == (0, "")
    assert VERBS[name].purpose in done.out
    assert perfuse("help", name).out == done.out
    golden(f"help-{name}.txt", done.out)


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_the_same_sections(name: str) -> None:
    command = context_of(name).command
    assert isinstance(command, Verb)
    assert command.name == name
    assert command.examples
    assert all(example.split()[:2] == ["perfuse", name] for example in command.examples)


def in_a_process(words: list[str]) -> Done:
    """A command line, run in a process of its own."""
    command = [sys.executable, "-m", "perfuse", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(perfuse: Perfuse, example: str) -> None:
    _, *words = shlex.split(example)
    # A limit of memory counts what this process has, of all tests before.
    done = in_a_process(words) if "--memory" in words else perfuse(*words)
    # The recordings have findings, which some verbs report by exit code 1; no command may be refused.
    assert done.code in {0, 1}, done.err
    assert done.out or "wrote" in done.err or "-o" in words


def test_help_alone_is_the_overview(perfuse: Perfuse) -> None:
    overview = perfuse("--help").out
    assert perfuse("help").out == overview
    assert perfuse().out == overview


def test_version(perfuse: Perfuse) -> None:
    from perfuse import __version__

    assert perfuse("--version").out == f"perfuse {__version__}\n"


TRIES_OF_HELP = 30


def test_help_starts_fast() -> None:
    """Time of the processor; beside other work, which takes caches and cores, in the best of many runs."""
    for _ in range(TRIES_OF_HELP):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "perfuse", "--help"], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if seconds < 0.150:
            return
    pytest.fail(f"{seconds:.3f} s in the last of {TRIES_OF_HELP} runs")


@pytest.mark.parametrize("statement", ["import perfuse", "from perfuse.cli import run; run(['--help'])"])
def test_starting_imports_little(statement: str) -> None:
    heavy = "duckdb", "arro3", "pyarrow", "numpy", "rich", "perfuse.exporters", "perfuse.fusing"
    code = f"import sys; {statement}; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
    if statement == "import perfuse":
        code = f"import sys; {statement}; print('click' in sys.modules)"
        assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_a_report_imports_little(tmp_path: Path) -> None:
    recording = tmp_path / "perf.data"
    recording.write_bytes(gzip.decompress((EXAMPLE_FILES / "perf.data.gz").read_bytes()))
    heavy = "click", "duckdb", "json", "pathlib", "perfuse.exporters", "perfuse.fusing.programs"
    code = f"""\
import atexit, sys
from perfuse.cli import main
atexit.register(lambda: print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr))
sys.argv = ["perfuse", "report", {str(recording)!r}]
main()"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "[]"
