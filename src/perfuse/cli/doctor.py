"""`perfuse doctor`: producers, viewers, kernel settings and debug symbols of this machine."""

from __future__ import annotations

import glob
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from perfuse.cli.console import Console
from perfuse.cli.options import JSON
from perfuse.cli.verbs import verb
from perfuse.reports.grid import Cell, Column, grid
from perfuse.reports.text import Role, Style

TIMEOUT_S = 10


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


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of a tool or a setting: `good`, `limited` or `missing`."""

    name: str
    state: str
    detail: str
    advice: str | None


def _at_least(major: int, minor: int, what: str) -> Callable[[str], str | None]:
    def verdict(version: str) -> str | None:
        match = re.search(r"(\d+)\.(\d+)", version)
        if match is None or (int(match[1]), int(match[2])) >= (major, minor):
            return None
        return f"{what} needs {major}.{minor}"

    return verdict


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

PRODUCERS = (
    Tool(
        "perf",
        ("perf",),
        ("--version",),
        "perf record -e cpu-clock -k mono -g -- CMD",
        "apt install linux-perf",
    ),
    Tool("node", ("node", "nodejs"), ("--version",), "node --perf-prof SCRIPT", "apt install nodejs"),
    Tool(
        "python",
        ("python3.15", "python3.14", "python3.13", "python3"),
        ("--version",),
        "python3 -X perf_jit SCRIPT",
        "apt install python3.13",
        _at_least(3, 13, "-X perf_jit"),
        directories=("$PYENV_ROOT/versions/*/bin", "~/.pyenv/versions/*/bin", "~/.local/share/uv/python/*/bin"),
    ),
    Tool(
        "java",
        ("java",),
        ("-version",),
        "java -agentpath:libperf-jvmti.so CLASS",
        "apt install default-jre",
        library="libperf-jvmti.so",
        library_install="it is in linux-tools of Ubuntu and perf of Fedora; elsewhere: make -C tools/perf, in Linux",
    ),
    Tool("dotnet", ("dotnet",), ("--version",), "DOTNET_PerfMapEnabled=1 dotnet APP", "https://dot.net"),
    Tool("erlang", ("erl",), ("-version",), "erl +JPperf dump", "apt install erlang-base"),
    Tool("mono", ("mono",), ("--version",), "mono --profile=log APP", "apt install mono-runtime"),
    Tool("clang", ("clang",), ("--version",), "clang -fxray-instrument FILE", "apt install clang"),
    Tool(
        "wasmtime",
        ("wasmtime",),
        ("--version",),
        "wasmtime run --profile=jitdump FILE",
        "https://wasmtime.dev",
    ),
)
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


def tools(known: tuple[Tool, ...]) -> list[Finding]:
    """Which of the tools are installed; their versions are queried in parallel."""
    with ThreadPoolExecutor(max_workers=len(known)) as pool:
        return list(pool.map(_look_for, known))


def kernel_settings() -> list[Finding]:
    """What the kernel permits this user to record, and which kernel symbols it can read."""
    if sys.platform != "linux":
        return [Finding("kernel", "limited", f"{platform.system()}: perf records on Linux only", None)]
    found = [Finding("kernel", "good", f"Linux {platform.release()} {platform.machine()}", None)]
    root = os.geteuid() == 0
    paranoid = _number("/proc/sys/kernel/perf_event_paranoid")
    if paranoid is not None:
        good = root or paranoid <= 1
        detail = f"{paranoid}{', and you are root' if root and paranoid > 1 else ''}"
        advice = None if good else "sudo sysctl kernel.perf_event_paranoid=1"
        found.append(Finding("perf_event_paranoid", "good" if good else "limited", detail, advice))
    restrict = _number("/proc/sys/kernel/kptr_restrict")
    if restrict is not None:
        good = restrict == 0 or (root and restrict == 1)
        advice = None if good else "sudo sysctl kernel.kptr_restrict=0"
        found.append(Finding("kptr_restrict", "good" if good else "limited", str(restrict), advice))
    found.append(_kallsyms())
    return found


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
            library = _library(tool.library)
            if library is None:
                return Finding(tool.name, "limited", f"{name} {version}, no {tool.library}", tool.library_install)
            use = use.replace(tool.library, library)
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


def _library(name: str) -> str | None:
    """The path of a library; None where it is in no known directory."""
    first = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if path]
    for directory in (*first, *LIBRARY_DIRECTORIES):
        for path in _matching(directory):
            if (path / name).is_file():
                return str(path / name)
    return None


def _matching(pattern: str) -> list[Path]:
    """Directories that match a pattern; none where it names a variable that is not set."""
    expanded = os.path.expandvars(Path(pattern).expanduser())
    return [] if "$" in expanded else sorted(map(Path, glob.glob(expanded)))  # noqa: PTH207 - absolute patterns


def _version(command: list[str]) -> str | None:
    """The version that a program prints; None where it does not run (a version manager's shim, a broken install)."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)
    return match[0] if match else "of unknown version"


def _kallsyms() -> Finding:
    advice = "sudo sysctl kernel.kptr_restrict=0, or read recordings as root"
    try:
        with Path("/proc/kallsyms").open(encoding="ascii", errors="replace") as symbols:
            address = symbols.readline().split(" ", 1)[0]
    except OSError as error:
        return Finding("/proc/kallsyms", "limited", error.strerror or "not readable", advice)
    if address.strip("0"):
        return Finding("/proc/kallsyms", "good", "kernel functions can be named", None)
    return Finding("/proc/kallsyms", "limited", "addresses are hidden: kernel functions have no names", advice)


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


MARKS = {"good": ("✓", Role.GOOD), "limited": ("!", Role.WARNING), "missing": ("-", Role.FAINT)}


@verb("doctor", examples=["perfuse doctor"])
@JSON
def command(console: Console, as_json: bool) -> None:
    """Shows programs with versions and uses, kernel settings for recording, and how to install what is missing."""
    chapters = {
        "producers": tools(PRODUCERS),
        "viewers": tools(VIEWERS),
        "kernel": kernel_settings(),
        "symbols": symbol_places(),
    }
    if as_json:
        console.json({chapter: [asdict(one) for one in found] for chapter, found in chapters.items()})
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
