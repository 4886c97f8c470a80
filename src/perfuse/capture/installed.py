"""Programs and libraries of this machine: where they are, and their versions."""

from __future__ import annotations

import glob
import os
import re
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from perfuse.capture.finding import Finding
from perfuse.capture.versions import output_or_none


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that perfuse works with, and how it is used."""

    name: str
    programs: tuple[str, ...]
    version: tuple[str, ...]
    use: str
    install: str
    verdict: Callable[[str], str | None] = field(default=lambda _version: None)
    """Returns why a version is not sufficient; None where it is."""
    directories: tuple[str, ...] = ()
    """Patterns of directories that are searched besides PATH: those of version managers."""
    library: str | None = None
    """A library that the use needs, and that is searched in `LIBRARY_DIRECTORIES`."""
    library_install: str | None = None
    """How to get that library."""


LIBRARY_DIRECTORIES = (
    "/usr/lib",
    "/usr/lib64",
    "/usr/lib/*-linux-gnu*",
    "/usr/lib/perf*",
    "/usr/lib/linux-tools*",
    "/usr/lib/linux-tools/*",
    "/usr/libexec/perf*",
    "/usr/local/lib",
    "/usr/local/lib64",
    "~/lib",
    "~/lib64",
)
"""Patterns of directories with libraries; those in LD_LIBRARY_PATH come first."""


def at_least(major: int, minor: int, what: str) -> Callable[[str], str | None]:
    """A verdict that a version is too old."""

    def verdict(version: str) -> str | None:
        match = re.search(r"(\d+)\.(\d+)", version)
        if match is None or (int(match[1]), int(match[2])) >= (major, minor):
            return None
        return f"{what} needs {major}.{minor}"

    return verdict


def installed(known: tuple[Tool, ...]) -> list[Finding]:
    """Which of the tools are installed; their versions are queried in parallel."""
    with ThreadPoolExecutor(max_workers=len(known)) as pool:
        return list(pool.map(_look_for, known))


def library(name: str) -> str | None:
    """The path of a library; None where it is in no known directory."""
    first = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if path]
    for directory in (*first, *LIBRARY_DIRECTORIES):
        for path in _matching(directory):
            if (path / name).is_file():
                return str(path / name)
    return None


def _look_for(tool: Tool) -> Finding:
    limited = None
    for program in _installed(tool):
        name = Path(program).name
        version = _version([program, *tool.version])
        if version is None:
            continue
        refused = tool.verdict(version)
        if refused:
            limited = limited or Finding(tool.name, "limited", f"{name} {version}: {refused}", tool.install)
            continue
        use = tool.use
        if program != shutil.which(name):
            use = " ".join([program, *use.split(" ")[1:]])
        if tool.library is not None:
            path = library(tool.library)
            if path is None:
                return Finding(tool.name, "limited", f"{name} {version}, no {tool.library}", tool.library_install)
            use = use.replace(tool.library, path)
        return Finding(tool.name, "good", f"{name} {version}", use)
    return limited or Finding(tool.name, "missing", "not found", tool.install)


def _installed(tool: Tool) -> Iterator[str]:
    """The paths of a tool's programs, in the order of preference."""
    for program in tool.programs:
        on_path = shutil.which(program)
        if on_path is not None:
            yield on_path
        for directory in tool.directories:
            for path in sorted(_matching(directory), key=_version_numbers, reverse=True):
                if os.access(path / program, os.X_OK):
                    yield str(path / program)


def _version_numbers(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(path))]


def _matching(pattern: str) -> list[Path]:
    """Directories that match a pattern; none where it names a variable that is not set."""
    expanded = os.path.expandvars(Path(pattern).expanduser())
    return [] if "$" in expanded else sorted(map(Path, glob.glob(expanded)))  # noqa: PTH207 - absolute patterns


def _version(command: list[str]) -> str | None:
    """The version that a program prints; None where it does not run (a version manager's shim, a broken install)."""
    text = output_or_none(tuple(command))
    if text is None:
        return None
    match = re.search(r"\d+(\.\d+)+", text)
    return match[0] if match else "of unknown version"
