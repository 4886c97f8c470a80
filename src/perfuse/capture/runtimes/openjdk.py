"""OpenJDK: a dump by perf's agent where that is installed, else a map that the JVM writes when it ends."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path

from perfuse.capture.finding import Finding
from perfuse.capture.installed import Tool, library
from perfuse.capture.runtime import Preparation, Runtime, Setting, Workspace
from perfuse.capture.versions import text_of, version_in, version_of

AGENT = "libperf-jvmti.so"
FIRST_WITH_MAP = 17
MAP_TIMEOUT_S = 60
"""A JVM writes its map when its threads have stopped; one that is stopped by a debugger never does."""
FRAMES = "-XX:+IgnoreUnrecognizedVMOptions -XX:+PreserveFramePointer"
MAP_AT_EXIT = f"{FRAMES} -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit"
ADVICE = "it was killed or called halt(), or is older than 17: `jcmd PID Compiler.perfmap` while it runs, or " + AGENT


def prepare(workspace: Workspace) -> Preparation:
    """The agent's dump has lines and times; the map at exit has the code that exists then."""
    agent = library(AGENT)
    if agent is not None:
        return Preparation(
            (
                Setting("JAVA_TOOL_OPTIONS", f"{FRAMES} -agentpath:{agent}", " ", "the agent writes jit-PID.dump"),
                Setting("JITDUMPDIR", str(workspace.directory), None, "where it writes it"),
            ),
            stacks="fp",
        )
    version = _version(workspace.executable) if workspace.executable else ()
    findings: list[Finding] = []
    if version and version[0] < FIRST_WITH_MAP:
        cure = f"use OpenJDK {FIRST_WITH_MAP} or newer, or install {AGENT} (perf of Fedora, linux-tools of Ubuntu)"
        findings.append(Finding("java", "limited", f"OpenJDK {text_of(version)} writes no names", cure))
    why = "the JVM keeps frame pointers, and writes /tmp/perf-PID.map when it ends"
    return Preparation((Setting("JAVA_TOOL_OPTIONS", MAP_AT_EXIT, " ", why),), stacks="fp", findings=tuple(findings))


def ask_for_map(pid: int) -> None:
    """Lets a running JVM write /tmp/perf-PID.map; other processes are left alone."""
    try:
        mapped = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    jcmd = shutil.which("jcmd")
    if jcmd is not None and "/libjvm.so" in mapped:
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [jcmd, str(pid), "Compiler.perfmap"],
                capture_output=True,
                check=False,
                timeout=MAP_TIMEOUT_S,
                stdin=subprocess.DEVNULL,
            )


def _version(java: Path) -> tuple[int, ...]:
    """The version of a JVM, by the file `release` of its directory, else as it prints it."""
    release = java.resolve().parent.parent / "release"
    try:
        lines = release.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return version_of(java, ("-version",))
    return next((version_in(line) for line in lines if line.startswith("JAVA_VERSION=")), ())


RUNTIME = Runtime(
    name="java",
    title="OpenJDK",
    executables=r"java",
    mapped=r"libjvm\.so",
    prepare=prepare,
    is_quiet=False,  # every JVM prints a line about JAVA_TOOL_OPTIONS
    writes="map",
    advice=ADVICE,
    tool=Tool(
        "java",
        ("java",),
        ("-version",),
        f"java -agentpath:{AGENT} CLASS",
        "apt install default-jre",
        library=AGENT,
        library_install="it is in linux-tools of Ubuntu and perf of Fedora; elsewhere: make -C tools/perf, in Linux",
    ),
)
