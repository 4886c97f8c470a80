"""Every example in the documentation is run, and prints what the page says it prints."""

import subprocess
from pathlib import Path

import pytest
from pages import PAGES, Command, blocks, commands

import perfuse as pf

NEEDS_A_COMPILER = {"python-jit.md"}
"""Its examples are run by tests/producers, with the compilers they need."""

COMMANDS = [command for page in PAGES for command in commands(page)]
PYTHON = [page for page in PAGES if blocks(page, "python") and page.name not in NEEDS_A_COMPILER]
QUERIES = [query for page in PAGES for query in blocks(page, "sql")]


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_command(command: Command, recorded: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-c", command.line],
        cwd=recorded,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    findings = 1 if " check " in command.line else 0
    assert done.returncode == findings, done.stdout
    printed = iter(done.stdout.splitlines())
    anything_before = False
    for line in command.output:
        if line == "…":
            anything_before = True
            continue
        found = next(printed, None)
        while anything_before and found is not None and found.rstrip() != line:
            found = next(printed, None)
        assert found is not None, f"{line!r} was not printed:\n{done.stdout}"
        assert found.rstrip() == line
        anything_before = False


@pytest.mark.parametrize("page", PYTHON, ids=lambda page: page.name)
@pytest.mark.usefixtures("recorded")
def test_python(page: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


@pytest.fixture(scope="module")
def profile() -> pf.Profile:
    example = Path(__file__).parents[2] / "examples" / "postcards"
    return pf.fuse(example / "perf.data.gz", example / "jit-32015.dump.gz")


@pytest.mark.parametrize("query", QUERIES)
def test_query(query: str, profile: pf.Profile) -> None:
    assert profile.sql(query).fetchall()


def test_pages_have_examples() -> None:
    assert len(COMMANDS) > 15
    assert len(QUERIES) > 8
    assert len(PYTHON) >= 4
