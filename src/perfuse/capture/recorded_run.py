"""`perfuse.record`: runs a program under the recorder that suits it, and returns what was recorded."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfuse.capture.collecting import Before, Collector, RecordedProcess, describe, sampled_processes
from perfuse.capture.definitions import NotedLines, defined_lines
from perfuse.capture.finding import Finding
from perfuse.capture.mono_log import LOG
from perfuse.capture.plan import Plan, make_plan
from perfuse.capture.request import Recorder, Request
from perfuse.capture.session import Outcome, run
from perfuse.capture.versions import text_of
from perfuse.errors import PerfuseError, RecordingError, UsageError
from perfuse.fusing.note import NAME, VERSION
from perfuse.value_class import as_dict

if TYPE_CHECKING:
    from perfuse.profile import Profile

SAVED = ".perfuse"
MOST_NAME = 40
"""Characters of the program's name in that of a directory."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run that was recorded.

    Attributes:
        directory: The directory with its files; the saved profile, where it was made one.
        files: The files, perf.data first.
        command: The program with its arguments; empty where running processes were recorded.
        recorder: What recorded it: `perf`, `xray` or `mono`.
        exit_code: The program's exit code as a shell reports it, 128 + N for signal N; None without a program.
        pid: The program's process; None without a program.
        processes: The processes that were sampled, with their runtimes and dumps.
        findings: What limits the recording, with a cure each.
        error: Why the recording is not complete; None where it is.
        changed_sources: Sources that were changed after the program started, whose functions have no lines.
    """

    directory: Path
    files: tuple[Path, ...]
    command: tuple[str, ...]
    recorder: Recorder
    exit_code: int | None
    pid: int | None
    processes: tuple[RecordedProcess, ...]
    findings: tuple[Finding, ...]
    error: str | None
    changed_sources: tuple[str, ...] = ()

    def profile(self, **options: Any) -> Profile:
        """The recording as a profile; options are those of `perfuse.fuse`.

        Raises:
            UnreadableInput: A file cannot be read.
            UsageError: Nothing was recorded.
        """
        import perfuse

        return perfuse.fuse(self.directory, **options)


def record(
    command: Sequence[str | os.PathLike[str]] = (),
    *,
    directory: str | os.PathLike[str] | None = None,
    recorder: Recorder | None = None,
    pid: int | Sequence[int] = (),
    system_wide: bool = False,
    duration_s: float | None = None,
    frequency: int | None = None,
    stacks: str = "auto",
    runtimes: Sequence[str] | None = None,
    off_cpu: bool = False,
    event: str | None = None,
    mono_events: Sequence[str] = (),
    perf: str | os.PathLike[str] | None = None,
    perf_options: Sequence[str] = (),
    keep: bool = False,
    environment: Mapping[str, str] | None = None,
) -> RecordedRun:
    """Runs a program and records it, with the options that give its functions names.

    The program gets the standard streams of this process. Signals that arrive meanwhile are the program's, where this
    is called in the main thread.

    Args:
        command: The program with its arguments.
        directory: A directory to make; by default `perfuse-record-NAME-TIME` in the current one. `NAME.perfuse` is one
            file instead: a saved profile, which has the code and the sources of what was sampled.
        recorder: `perf`, `xray` or `mono`; by default what the program was made for.
        pid: Running processes to record instead.
        system_wide: Record all processes of the machine.
        duration_s: End after this time; the program gets SIGTERM.
        frequency: Samples per second and thread.
        stacks: `auto`, `fp` (frame pointers), `dwarf` (copied stacks) or `dwarf,BYTES`.
        runtimes: Names of runtimes to prepare; by default those that are detected.
        off_cpu: Record the time in which threads wait, where perf can.
        event: perf's event; by default processor cycles, or time where there is no counter.
        mono_events: What Mono's log profiler records: `samples`, `calls`, `allocations`, `heap`, `locks`, `exceptions`.
        perf: The perf program; by default that of PATH.
        perf_options: Further options for perf.
        keep: Leave the dumps also where the runtime wrote them.
        environment: The program's environment; by default that of this process.

    Raises:
        RecordingError: This machine cannot record it; `hint` has the cure. The program was not run.
        NotRunnable: The command cannot be started.
        UsageError: The arguments contradict each other, or the directory exists.
    """
    request = Request(
        command=tuple(os.fspath(word) for word in command),
        pids=(pid,) if isinstance(pid, int) else tuple(pid),
        system_wide=system_wide,
        recorder=recorder,
        duration_s=duration_s,
        hz=frequency,
        stacks=stacks,
        runtimes=None if runtimes is None else tuple(runtimes),
        off_cpu=off_cpu,
        event=event,
        mono_events=tuple(mono_events),
        perf=None if perf is None else os.fspath(perf),
        perf_options=tuple(perf_options),
        keep=keep,
    )
    run = carry_out(make_plan(request, new_directory(request, directory), environment or os.environ))
    target = saved_file(directory)
    return run if target is None else saved(run, target)


def saved_file(given: str | os.PathLike[str] | None) -> Path | None:
    """The saved profile that a recording is to be, where the name ends in `.perfuse`; else it is a directory."""
    return Path(given).absolute() if given is not None and os.fspath(given).endswith(SAVED) else None


def saved(run: RecordedRun, path: Path) -> RecordedRun:
    """The recording as a saved profile; its directory is removed. Where it has no profile, the directory stays.

    Raises:
        OSError: The file cannot be written; the directory stays.
    """
    if run.error is not None:
        return run
    try:
        run.profile().save(path, code="sampled", sources="used")
    except PerfuseError as failed:
        return replace(run, error=f"the recording cannot be saved as one file: {failed}")
    shutil.rmtree(run.directory, ignore_errors=True)
    return replace(run, directory=path, files=(path,))


def new_directory(request: Request, given: str | os.PathLike[str] | None) -> Path:
    """The directory of a recording; it is not there yet.

    Raises:
        UsageError: The directory that was given exists.
    """
    if given is not None:
        path = Path(given)
        target = saved_file(given)
        if target is not None and not os.path.lexists(path):
            # Beside the file, and removed when that is complete.
            path = target.with_name(f".{target.name}.recording")
        if os.path.lexists(path):
            hint = "a recording never replaces files: give another name with -o"
            raise UsageError(f"{path} exists", path=str(path), hint=hint)
        if not path.parent.is_dir():
            message = f"cannot make {given}: there is no directory {path.parent}"
            raise UsageError(message, path=str(given), hint=f"`mkdir -p {path.parent}` makes it")
        return path.absolute()
    what = Path(request.command[0]).name if request.command else "-".join(map(str, request.pids[:3])) or "system"
    what = re.sub(r"[^\w.+-]", "_", what)[:MOST_NAME]
    name = f"perfuse-record-{what}-{time.strftime('%Y%m%d-%H%M%S')}"
    path, number = Path(name), 1
    while os.path.lexists(path):
        number += 1
        path = Path(f"{name}-{number}")
    return path.absolute()


def carry_out(plan: Plan) -> RecordedRun:
    """Runs what a plan says.

    Raises:
        RecordingError: This machine cannot record it, or perf did not start. The program was not run.
    """
    if plan.obstacles:
        first = plan.obstacles[0]
        raise RecordingError(f"{first.name}: {first.detail}", hint=first.advice)
    directory = plan.directory
    try:
        directory.mkdir()
    except FileExistsError:
        raise UsageError(f"{directory} exists", path=str(directory)) from None
    try:
        plan.runtime_directory.mkdir()
        for path, text in plan.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        before = Before([Path("/tmp"), Path.cwd()])
        outcome = run(plan)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    with contextlib.closing(outcome.watcher):
        return _collected(plan, outcome, before)


def _collected(plan: Plan, outcome: Outcome, before: Before) -> RecordedRun:
    """Brings the files together, and notes what they are."""
    directory = plan.directory
    processes: list[RecordedProcess] = []
    defined = NotedLines()
    error = outcome.error
    seen = outcome.watcher.processes
    collector = Collector(
        directory,
        seen=seen,
        before=before,
        started_at=outcome.started_at,
        may_remove=bool(plan.request.command) and not plan.request.keep,
        system_wide=plan.request.system_wide,
    )
    if plan.recorder == "perf":
        try:
            _ask_running(plan)
            processes = list(describe(sampled_processes(directory / "perf.data", outcome.pid), collector, seen))
            defined = defined_lines(plan, outcome, collector.files)
        except (PerfuseError, OSError) as failed:
            error = error or f"the recording cannot be read: {failed}"
    else:
        error = error or _log_of(plan)
    shutil.rmtree(plan.runtime_directory, ignore_errors=True)
    _write_note(plan, outcome, collector, processes, defined, error)
    names = sorted(path for path in directory.iterdir() if path.name != NAME)
    return RecordedRun(
        directory=directory,
        files=tuple(sorted(names, key=lambda path: path.name != "perf.data")),
        command=plan.request.command,
        recorder=plan.recorder,
        exit_code=outcome.exit_code,
        pid=outcome.pid,
        processes=tuple(processes),
        findings=plan.findings,
        error=error,
        changed_sources=defined.changed,
    )


def _ask_running(plan: Plan) -> None:
    """Asks JVMs that continue to run for a map of their code."""
    from perfuse.capture.runtimes.openjdk import ask_for_map

    for pid in plan.request.pids:
        ask_for_map(pid)


def _log_of(plan: Plan) -> str | None:
    """Checks that a log was written, and puts the program beside those of XRay; returns what is wrong."""
    if plan.recorder == "mono":
        has_log = (plan.directory / LOG).is_file()
        return None if has_log else "Mono wrote no log: the program did not start Mono, or was killed"
    logs = list(plan.directory.glob("xray-log.*"))
    assert plan.program is not None
    if not logs:
        from perfuse.capture.xray_log import has_basic_mode

        if not has_basic_mode(plan.program.executable):
            return "XRay wrote no log: the program was linked without XRay's basic mode; leave out -fxray-modes"
        return "XRay wrote no log: the program was killed, or reads its own XRAY_OPTIONS"
    for name in {log.name.split(".", 1)[1].rpartition(".")[0] for log in logs}:
        # The program's map has the names of its functions; the log has numbers.
        if name == plan.program.executable.name and not (plan.directory / name).exists():
            shutil.copy(plan.program.executable, plan.directory / name)
    return None


def _title(plan: Plan, processes: Sequence[RecordedProcess]) -> str:
    """What was recorded."""
    if plan.request.command:
        return " ".join(plan.request.command)
    if plan.request.system_wide:
        return f"all processes of {platform.node()}"
    names = {process.pid: process.name for process in processes}
    return ", ".join(f"{names.get(pid) or 'process'} (pid {pid})" for pid in plan.request.pids)


def _write_note(
    plan: Plan,
    outcome: Outcome,
    collector: Collector,
    processes: Sequence[RecordedProcess],
    defined: NotedLines,
    error: str | None,
) -> None:
    changed = {setting.name for setting in plan.settings}
    document = {
        "version": VERSION,
        "command": list(plan.request.command),
        "title": _title(plan, processes),
        "recorder": plan.recorder,
        "executed": list(plan.command),
        "directory": str(Path.cwd()),
        "environment_set": {name: value for name, value in plan.environment.items() if name in changed},
        "perf": plan.perf_words([]) if plan.perf else None,
        "perf_version": text_of(plan.perf.version) if plan.perf else None,
        "kernel": platform.release(),
        "stacks": as_dict(plan.stacks) if plan.stacks else None,
        "started_ns": outcome.started_ns,
        "ended_ns": outcome.ended_ns,
        "started_at_s": outcome.started_at,
        "pid": outcome.pid,
        "exit_code": outcome.exit_code,
        "error": error,
        "files": [as_dict(file) for file in collector.files],
        "processes": [as_dict(process) for process in processes],
        "findings": [as_dict(finding) for finding in plan.findings],
        "lines": defined.lines,
        "without_lines": defined.without,
    }
    text = json.dumps(document, indent=2, ensure_ascii=True) + "\n"
    (plan.directory / NAME).write_text(text, encoding="ascii")
