"""`perfuse doctor`: producers, viewers, kernel settings and debug symbols of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from perfuse.capture.checks import kernel_settings
from perfuse.capture.finding import Finding
from perfuse.capture.installed import Tool, installed
from perfuse.capture.registry import RUNTIMES
from perfuse.cli.console import Console
from perfuse.cli.options import JSON
from perfuse.cli.verbs import verb
from perfuse.reports.grid import Cell, Column, grid
from perfuse.reports.text import Role, Style
from perfuse.value_class import as_dict

PERF = Tool("perf", ("perf",), ("--version",), "perfuse record -- CMD", "apt install linux-perf")
CLANG = Tool("clang", ("clang",), ("--version",), "clang -fxray-instrument FILE", "apt install clang")
PRODUCERS = (PERF, *(runtime.tool for runtime in RUNTIMES if runtime.tool is not None), CLANG)
VIEWERS = (
    Tool(
        "browser",
        ("firefox", "firefox-esr", "chromium", "chromium-browser", "google-chrome"),
        ("--version",),
        "perfuse flame, perfuse convert --to firefox",
        "apt install firefox-esr",
    ),
    Tool(
        "addr2line",
        ("addr2line", "llvm-addr2line"),
        ("--version",),
        "lines of converted ELF files",
        "apt install binutils",
    ),
)


def symbol_places() -> list[Finding]:
    """Directories that are searched for symbols of native code."""
    found = []
    for path, what in (
        (Path("/usr/lib/debug"), "separate debug files"),
        (Path("~/.debug"), "perf's build-id cache"),
    ):
        there = path.expanduser().is_dir()
        advice = None if there else {"/usr/lib/debug": "apt install libc6-dbg"}.get(str(path))
        found.append(Finding(str(path), "good" if there else "limited", what if there else f"no {what}", advice))
    return found


MARKS = {"good": ("✓", Role.GOOD), "limited": ("!", Role.WARNING), "missing": ("-", Role.FAINT)}


@verb("doctor", examples=["perfuse doctor"])
@JSON
def command(console: Console, as_json: bool) -> None:
    """Shows programs with versions and uses, kernel settings for recording, and how to install what is missing."""
    chapters = {
        "producers": installed(PRODUCERS),
        "viewers": installed(VIEWERS),
        "kernel": kernel_settings(),
        "symbols": symbol_places(),
    }
    if as_json:
        console.json({chapter: [as_dict(one) for one in found] for chapter, found in chapters.items()})
        return
    for index, (chapter, found) in enumerate(chapters.items()):
        if index:
            console.line()
        console.line(console.style.paint(chapter.capitalize(), Role.TITLE))
        console.lines(_found_lines(found, console.style))


def _found_lines(found: Sequence[Finding], style: Style) -> Iterator[str]:
    rows: list[list[Cell]] = []
    for one in found:
        faint = Role.FAINT if one.state == "missing" else Role.PLAIN
        advice: Cell = ""
        if one.advice:
            advice = (one.advice, Role.NAME) if one.state == "good" else (one.advice, Role.FAINT)
            if one.state == "limited":
                advice = (one.advice, Role.WARNING)
        rows.append([MARKS[one.state], (one.name, faint), (one.detail, faint), advice])
    return grid([Column(""), Column(""), Column("", shrinks=16), Column("")], rows, style)
