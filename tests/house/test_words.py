"""Files use the terms of the field: no idiom that a search engine would not find."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

FOLDERS = ("crates", "src", "docs", "tests", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
SUFFIXES = {".rs", ".py", ".pyi", ".js", ".css", ".html", ".md", ".toml", ".c", ".cpp", ".cs", ".java"}
NOT_OURS = re.compile(r"(^|/)(testdata|goldens|node_modules)/")
"""Recorded files and expected output, which tests of their own compare."""
ENTITY = "(?:call|dump|event|file|frame|function|log|map|name|number|object|profile|record|section|stack|thread|time)s?"
IDIOMS: dict[str, tuple[str, str]] = {
    "told": (r"(?<![a-z])(?:told|Told)(?![a-z])", "reported, stated, given"),
    "tells": (r"(?<![a-z])(?:tells?|Tells?|Teller|telling)(?![a-z])", "states, reports, contains, distinguishes"),
    "held against": (r"(?i)\bheld (?:\w+ )?against\b", "compared with, checked against"),
    "holds against": (r"(?i)\bhold(?:s|ing)? [^.;:]{1,60}? against\b", "compares with, checks against"),
    "misfit": (r"(?i)misfit", "unsupported item"),
    "unsayable": (r"(?i)sayable", "not representable in version N"),
    "lean": (r"(?<![A-Za-z])[Ll]ean(?![A-Za-z])", "fast path, requested columns"),
    "whoever": (r"(?i)\bwhoever\b", "the caller, the user"),
    "what is no": (r"(?i)\bwhat (?:is|are) no\b", "what is not a"),
    "is no": (rf"(?i)(?<!there )\b(?:is|are) no {ENTITY}\b(?! (?:of|in|for)\b)", "is not a"),
    "none of ours": (r"(?i)\bnone of (?:ours|the operating)\b", "not one of"),
    "behind": (r"(?i)(?<![a-z])behind(?![a-z])", "after, follows"),
    "mend": (r"(?i)\bmend(?:s|ed|ing)?\b", "repair"),
    "goes on": (r"(?i)\bgo(?:es)? on\b", "continues"),
}
"""Name, pattern, and what to write instead."""

ROOT = Path(__file__).parents[2]


@cache
def our_files() -> dict[str, str]:
    """The text of the files of the repository that are written by hand or generated from such, this one apart."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", *FOLDERS]
    names = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
    paths = [ROOT / name for name in names if not NOT_OURS.search(name)]
    ours = [path for path in paths if path.suffix in SUFFIXES and path.is_file() and path != Path(__file__)]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in ours}


def uses(pattern: str, text: str) -> list[int]:
    """The lines of a text that match; most texts have none, and are searched as a whole first."""
    found = re.compile(pattern)
    if not found.search(text):
        return []
    return [number for number, line in enumerate(text.splitlines(), 1) if found.search(line)]


@pytest.mark.parametrize(
    ("idiom", "line"),
    [
        ("told", "fn told(map: &Map)"),
        ("told", "addresses_are_told()"),
        ("told", "struct ToldCalls"),
        ("tells", "The header tells of ends"),
        ("held against", "sizes are held against the bytes left"),
        ("holds against", "holds the file against its specification"),
        ("is no", "bytes that are no record"),
        ("behind", "goes on behind damage"),
    ],
)
def test_an_idiom_is_found(idiom: str, line: str) -> None:
    assert uses(IDIOMS[idiom][0], line) == [1]


@pytest.mark.parametrize(
    "line",
    ["there is no event of that name", "a satellite", "the boolean is", "LEAN_COLUMNS", "it is now", "scroll-behavior"],
)
def test_plain_english_is_not(line: str) -> None:
    assert not [idiom for idiom, (pattern, _) in IDIOMS.items() if uses(pattern, line)]


@pytest.mark.parametrize("idiom", IDIOMS)
def test_no_file_uses(idiom: str) -> None:
    pattern, instead = IDIOMS[idiom]
    found = [f"{name}:{number}" for name, text in our_files().items() for number in uses(pattern, text)]
    assert not found, f"write: {instead}\n" + "\n".join(found)
