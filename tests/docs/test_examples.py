"""Every example in the documentation runs, and prints the output that the page shows."""

import re
import shlex
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from pages import PAGES, ROOT, Command, blocks, commands

import perfuse as pf

NEEDS_A_COMPILER = {"python-jit.md"}
"""Its examples are run by tests/producers, with the compilers they need."""

COMMANDS = [command for page in PAGES for command in commands(page)]
PYTHON = [page for page in PAGES if blocks(page, "python") and page.name not in NEEDS_A_COMPILER]
QUERIES = [query for page in PAGES for query in blocks(page, "sql")]


UNNAMED = "[unknown]"
"""What is compared of a row of functions without a name."""
BARS = re.compile("[▏▎▍▌▋▊▉█]+")


def depends_on_machine(command: Command) -> bool:
    """Whether a command lists functions of a perf.data: native ones have names where their files are on the machine."""
    return command.line.startswith("perfuse report perf.data")


def comparable(line: str) -> str:
    """A line without what depends on which native functions have names: bars, the widths of columns, unnamed rows."""
    words = BARS.sub(" ", line).split()
    return UNNAMED if UNNAMED in words else " ".join(words)


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
    as_compared = comparable if depends_on_machine(command) else str.rstrip
    printed = (as_compared(line) for line in done.stdout.splitlines() if as_compared(line) != UNNAMED)
    anything_before = False
    for line in command.output:
        if line == "…":
            anything_before = True
            continue
        expected = as_compared(line)
        found = next(printed, None)
        while anything_before and found is not None and found != expected:
            found = next(printed, None)
        assert found is not None, f"{line!r} was not printed:\n{done.stdout}"
        assert found == expected
        anything_before = False


@pytest.mark.parametrize("page", PYTHON, ids=lambda page: page.name)
@pytest.mark.usefixtures("recorded")
def test_python(page: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("query", QUERIES)
def test_query(query: str, profile: pf.Profile) -> None:
    assert profile.sql(query).fetchall()


def test_the_files_of_the_guides_are_supplied() -> None:
    """Files that commands read are those of the examples, or written by an earlier command of the page."""
    supplied = {path.name for path in (ROOT / "examples").rglob("*")}
    supplied |= {name.removesuffix(ending) for name in supplied for ending in (".gz", ".o")}
    missing = []
    for page in PAGES:
        written: set[str] = set()
        for command in commands(page):
            words = shlex.split(command.line)
            for before, word in pairwise(words):
                if before == "-o":
                    written.add(word)
                elif (
                    re.fullmatch(r"[\w.-]+\.(data|dump|mlpd|so|elf|zst|new|small)", word)
                    and word not in supplied | written
                ):
                    missing.append(str(command))
    assert not missing


def test_pages_say_how_to_install_what_is_not_released() -> None:
    """Before a release, perfuse is built from a checkout; no page names a package of it."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    is_released = "(unreleased)" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    named = [page for page in pages if re.search(r"pip install[^`\n]* perfuse\b", page.read_text(encoding="utf-8"))]
    assert is_released or not named
    for page in (ROOT / "README.md", ROOT / "docs" / "index.md"):
        text = page.read_text(encoding="utf-8")
        assert "make demo" in text
        assert "make wheel" in text


def test_pages_have_examples() -> None:
    assert len(COMMANDS) > 15
    assert len(QUERIES) > 8
    assert len(PYTHON) >= 4
