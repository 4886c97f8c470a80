"""What `perfuse record` is going to do: the command, its environment, perf's options, and a reason for each."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfuse.capture import mono_log, xray_log
from perfuse.capture.checks import checks_of
from perfuse.capture.finding import Finding
from perfuse.capture.perf import Perf, PerfOption, find_perf, options
from perfuse.capture.program import NotRunnable, Program, is_elf, mentioned, resolve
from perfuse.capture.registry import RUNTIMES, runtime_of
from perfuse.capture.request import Recorder, Request
from perfuse.capture.runtime import Preparation, Runtime, Setting, Stacks, Workspace
from perfuse.capture.sampling import probe
from perfuse.capture.stack_method import StackMethod, has_instrumentation_map, of_native

RUNTIME_FILES = "runtime-files"
"""Folder of the directory in which runtimes write during the run."""

EMBED_LLVM = frozenset({"python", "postgresql", "ruby"})
"""Runtimes whose programs load LLVM's JIT as a library."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a request is carried out.

    Attributes:
        request: What was asked for.
        recorder: What records.
        directory: Where the files go.
        program: The program of the command; None for running processes.
        command: The command, with options that a runtime needs.
        settings: Variables of the environment that are set for it.
        environment: Its whole environment.
        files: Files to write before the run, by path.
        runtimes: Runtimes that were prepared, with their executables where these are known.
        stacks: How stacks are recorded, and why; None where perf does not record.
        perf: The perf program; None where perf does not record.
        perf_options: Its options.
        findings: What limits or prevents the recording, with a cure each.
    """

    request: Request
    recorder: Recorder
    directory: Path
    program: Program | None
    command: tuple[str, ...]
    settings: tuple[Setting, ...]
    environment: Mapping[str, str]
    files: Mapping[Path, str]
    runtimes: tuple[tuple[Runtime, Path | None], ...]
    stacks: StackMethod | None
    perf: Perf | None
    perf_options: tuple[PerfOption, ...]
    findings: tuple[Finding, ...] = field(default=())

    @property
    def runtime_directory(self) -> Path:
        """Where runtimes that take a directory write during the run."""
        return self.directory / RUNTIME_FILES

    @property
    def obstacles(self) -> list[Finding]:
        """What prevents the recording."""
        return [one for one in self.findings if one.state == "missing"]

    def perf_words(self, what: Sequence[str]) -> list[str]:
        """The command line of perf, with what it records."""
        path = self.perf.path if self.perf else "perf"
        return [path, "record", *(word for option in self.perf_options for word in option.words), *what]


def make_plan(request: Request, directory: Path, environment: Mapping[str, str]) -> Plan:
    """Decides how a request is carried out. Nothing is written, and of the program's files nothing is run but the
    interpreter's own question for its version.

    Raises:
        UsageError: The request contradicts itself.
        NotRunnable: The command cannot be started.
    """
    request.check()
    program = resolve(request.command, environment) if request.command else None
    recorder = request.recorder or _recorder_for(program)
    if recorder != "perf":
        assert program is not None
        made = (xray_log if recorder == "xray" else mono_log).prepare(request, program, directory, environment)
        return Plan(
            request=request,
            recorder=recorder,
            directory=directory,
            program=program,
            command=request.command,
            settings=made.settings,
            environment=_with_settings(environment, made.settings),
            files=made.files,
            runtimes=(),
            stacks=None,
            perf=None,
            perf_options=(),
            findings=(*made.findings, *checks_of(request, directory, None, probe_events=False)),
        )
    return _plan_of_perf(request, program, directory, environment)


def _recorder_for(program: Program | None) -> Recorder:
    """XRay for a program that was compiled for it, else perf."""
    is_native = program is not None and runtime_of(program.names) is None and not program.starts_others
    return "xray" if is_native and program is not None and has_instrumentation_map(program.executable) else "perf"


def _plan_of_perf(request: Request, program: Program | None, directory: Path, environment: Mapping[str, str]) -> Plan:
    chosen: list[tuple[Runtime, Path | None]] = []
    preparations: list[Preparation] = []
    command = request.command
    if program is not None:
        chosen = _runtimes(request, program, environment)
        for runtime, executable in chosen:
            workspace = Workspace(directory / RUNTIME_FILES, executable, program, environment)
            preparation = runtime.prepare(workspace)
            preparations.append(preparation)
            is_own = executable == program.executable and not program.interpreted
            if preparation.command is not None and is_own:
                command = preparation.command
    settings = _unique(setting for preparation in preparations for setting in preparation.settings)
    kind, stack_bytes = request.stack_bytes()
    method = _stacks(kind, request, program, chosen, preparations, environment)
    perf = find_perf(request.perf)
    event = request.event or probe().event or "cpu-clock"
    perf_options = options(
        perf or Perf("perf", (), frozenset()),
        directory=directory,
        event=event,
        hz=request.hz,
        stacks=method.stacks,
        stack_bytes=stack_bytes,
        off_cpu=request.off_cpu,
        more=request.perf_options,
    )
    findings = dict.fromkeys(finding for preparation in preparations for finding in preparation.findings)
    return Plan(
        request=request,
        recorder="perf",
        directory=directory,
        program=program,
        command=command,
        settings=settings,
        environment=_with_settings(environment, settings),
        files={path: text for preparation in preparations for path, text in preparation.files.items()},
        runtimes=tuple(chosen),
        stacks=method,
        perf=perf,
        perf_options=tuple(perf_options),
        findings=(
            *checks_of(request, directory, perf, probe_events=request.event is None),
            *_of_program(program),
            *findings,
        ),
    )


def _runtimes(request: Request, program: Program, environment: Mapping[str, str]) -> list[tuple[Runtime, Path | None]]:
    """The runtimes to prepare: that of the program, those that a program which starts others names, and quiet ones."""
    if request.runtimes is not None:
        named = runtime_of(program.names)
        return [
            (runtime, program.executable if runtime is named else _named(runtime, program, environment))
            for runtime in RUNTIMES
            if runtime.name in request.runtimes
        ]
    chosen: dict[str, tuple[Runtime, Path | None]] = {}
    own = runtime_of(program.names)
    if own is not None:
        executable = program.executable if own.runs(program.executable.name) or program.interpreted else program.path
        # A shell script of the runtime's name, such as `erl` or a version manager's shim, stands for the runtime.
        chosen[own.name] = (own, program.path if program.starts_others else executable)
    if own is None and program.starts_others:
        for path in mentioned(program, environment):
            found = _of_path(path, environment)
            if found is not None:
                chosen.setdefault(found.name, (found, path))
    if own is None or program.starts_others:
        for runtime in RUNTIMES:
            # A native program may start anything too, and a JIT inside it reads these variables.
            if runtime.is_quiet and (program.starts_others or runtime.name == "llvm"):
                chosen.setdefault(runtime.name, (runtime, None))
    elif own.name in EMBED_LLVM:
        llvm = next(runtime for runtime in RUNTIMES if runtime.name == "llvm")
        chosen.setdefault(llvm.name, (llvm, None))
    return list(chosen.values())


def _of_path(path: Path, environment: Mapping[str, str]) -> Runtime | None:
    """The runtime of a file that a command mentions."""
    try:
        return runtime_of(resolve((str(path),), environment).names)
    except NotRunnable:
        return None


def _named(runtime: Runtime, program: Program, environment: Mapping[str, str]) -> Path | None:
    """The executable of a runtime that a command mentions."""
    return next((path for path in mentioned(program, environment) if _of_path(path, environment) is runtime), None)


def _stacks(
    kind: str,
    request: Request,
    program: Program | None,
    chosen: Sequence[tuple[Runtime, Path | None]],
    preparations: Sequence[Preparation],
    environment: Mapping[str, str],
) -> StackMethod:
    """How stacks are recorded: one way for all processes, copies where one of them needs copies."""
    if kind in ("fp", "dwarf"):
        stacks: Stacks = "fp" if kind == "fp" else "dwarf"
        return StackMethod(stacks, "given with --stacks")
    if program is None:
        return _stacks_of_pids(request)
    for (_, executable), preparation in zip(chosen, preparations, strict=True):
        if preparation.stacks == "dwarf":
            return StackMethod("dwarf", f"{executable} has no frame pointers")
    own = next(((runtime, p) for (runtime, _), p in zip(chosen, preparations, strict=True) if p.stacks == "fp"), None)
    if own is not None and runtime_of(program.names) is own[0]:
        return StackMethod("fp", f"{own[0].title} keeps frame pointers")
    if program.starts_others:
        natives = (path for path in mentioned(program, environment) if is_elf(path) and not _of_path(path, environment))
        methods = [of_native(path) for path in natives]
        return next((one for one in methods if one.stacks == "dwarf"), None) or (
            methods[0] if methods else StackMethod("fp", "what the command starts is not known")
        )
    return of_native(program.executable)


def _stacks_of_pids(request: Request) -> StackMethod:
    if request.system_wide:
        return StackMethod("fp", "copies of the stacks of a whole machine would be too much")
    for pid in request.pids:
        try:
            executable = Path(f"/proc/{pid}/exe").resolve(strict=True)
        except OSError:
            continue
        runtime = runtime_of((executable.name,))
        if runtime is None:
            return of_native(executable)
        program = Program((str(executable),), executable, executable, False, (executable.name,), False)
        workspace = Workspace(Path(), executable, program, {})
        if runtime.prepare(workspace).stacks == "dwarf":
            return StackMethod("dwarf", f"{executable} has no frame pointers")
        return StackMethod("fp", f"{runtime.title} keeps frame pointers")
    return StackMethod("fp", "it cannot be seen how the program was compiled")


def _of_program(program: Program | None) -> Iterator[Finding]:
    """What is known to go wrong with a program."""
    if program is not None and program.detached:
        yield Finding(program.name, "limited", program.detached, None)
    elif program is not None and _is_setuid(program.executable):
        detail = f"{program.executable} changes its user: the kernel drops the environment and may deny samples"
        yield Finding(program.name, "limited", detail, "run perfuse as root")


def _is_setuid(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & 0o6000) and os.geteuid() != 0
    except OSError:
        return False


def _unique(settings: Iterator[Setting]) -> tuple[Setting, ...]:
    """Settings, each name and value once."""
    return tuple({(setting.name, setting.value): setting for setting in settings}.values())


def _with_settings(environment: Mapping[str, str], settings: Sequence[Setting]) -> dict[str, str]:
    """An environment with settings."""
    result = dict(environment)
    for setting in settings:
        result[setting.name] = setting.into(result)
    return result


def command_lines(plan: Plan) -> list[str]:
    """What is run, as lines for a shell. perfuse itself starts perf beside the program, by `-p` and `--control`."""
    changed = {setting.name for setting in plan.settings}
    assignments = [f"{name}={shlex.quote(value)}" for name, value in plan.environment.items() if name in changed]
    folder = shlex.quote(str(plan.runtime_directory))
    lines = [f"mkdir -p {folder}"]
    for path, text in plan.files.items():
        lines.append(f"mkdir -p {shlex.quote(str(path.parent))}")
        lines.append(f"printf %s {shlex.quote(text)} > {shlex.quote(str(path))}")
    words = plan.command
    if plan.perf_options:
        target = ["-p", ",".join(map(str, plan.request.pids))] if plan.request.pids else []
        target += ["-a"] if plan.request.system_wide else []
        words = tuple(plan.perf_words([*target, *(["--", *plan.command] if plan.command else [])]))
    return [*lines, " ".join([*assignments, shlex.join(words)])]
