"""Mono's log profiler: allocations, heap, calls, locks and exceptions of a program, as it runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perfuse.capture.finding import Finding
from perfuse.capture.installed import library
from perfuse.capture.program import Program
from perfuse.capture.request import MONO_EVENTS, Request
from perfuse.capture.runtime import Preparation, Setting
from perfuse.capture.runtimes.mono import RUNTIME
from perfuse.errors import UsageError, nearest_hint

LOG = "output.mlpd"
LIBRARY = "libmono-profiler-log.so"
OPTIONS: Mapping[str, str] = {
    "samples": "sample",
    "calls": "calls",
    "allocations": "alloc",
    "heap": "heapshot",
    "locks": "monitor",
    "exceptions": "exception",
}
DEFAULT = ("samples", "exceptions")


def prepare(request: Request, program: Program, directory: Path, _environment: Mapping[str, str]) -> Preparation:
    """One log; a process that starts another Mono gets a log with its pid in its name.

    Raises:
        UsageError: An event is not one of Mono's.
    """
    events = request.mono_events or DEFAULT
    for event in events:
        if event not in OPTIONS:
            raise UsageError(f"no events {event!r}", hint=nearest_hint(event, MONO_EVENTS))
    findings: list[Finding] = []
    if library(LIBRARY) is None:
        findings.append(Finding("mono", "missing", f"no {LIBRARY}", "apt install libmono-profiler"))
    if not any(RUNTIME.runs(name) for name in program.names) and not program.starts_others:
        cure = "perfuse record --with mono -- mono PROGRAM.exe"
        findings.append(Finding("mono", "missing", f"{program.executable} is not Mono", cure))
    options = ",".join([*(OPTIONS[event] for event in events), f"output={directory / LOG}"])
    setting = Setting("MONO_ENV_OPTIONS", f"--profile=log:{options}", " ", "Mono writes its log")
    return Preparation((setting,), findings=tuple(findings))
