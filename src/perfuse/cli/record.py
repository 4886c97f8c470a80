"""`perfuse record`"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perfuse.cli import exit_codes
from perfuse.cli.console import Console
from perfuse.cli.opening import ProfileOptions, note_data_loss, open_profile
from perfuse.cli.options import Seconds
from perfuse.cli.verbs import verb
from perfuse.errors import UsageError
from perfuse.value_class import as_dict

if TYPE_CHECKING:
    from perfuse.capture.finding import Finding
    from perfuse.capture.plan import Plan
    from perfuse.capture.program import NotRunnable
    from perfuse.capture.recorded_run import RecordedRun

TEXT_LIMIT = 10
MOST_HZ = 100_000
MOST_LABEL = 28
MOST_PIDS = 5
MOST_SOURCES = 5


class Frequency(click.ParamType[Any]):
    """Samples per second."""

    name = "hz"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        if isinstance(value, int):
            return value
        if not str(value).isdecimal() or not 0 < int(value) <= MOST_HZ:
            self.fail(f"{value!r} is not a number of samples per second from 1 to {MOST_HZ:,}", param, ctx)
        return int(value)


@verb(
    "record",
    examples=[
        "perfuse record -- sleep 0.1",
        "perfuse record --dry-run -- node app.js",
        "perfuse record -o run --frequency 199 -- sh -c 'sleep 0.1'",
        "perfuse record -o sleep.perfuse -- sleep 0.1",
        "perfuse record --duration 0.2 --system-wide",
    ],
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
)
@click.argument("cmd", nargs=-1, metavar="-- CMD...", type=click.UNPROCESSED)
@click.option(
    "-o",
    "--output",
    metavar="DIR|FILE",
    help="Directory to make; NAME.perfuse is one file, for every verb and machine. [perfuse-record-NAME-TIME]",
)
@click.option(
    "--with",
    "recorder",
    type=click.Choice(("perf", "xray", "mono")),
    metavar="RECORDER",
    help="What records: perf samples; xray logs every call; mono logs allocations and more. [by the program]",
)
@click.option("-p", "--pid", "pids", type=int, multiple=True, metavar="PID", help="Record a running process; repeats.")
@click.option("-a", "--system-wide", is_flag=True, help="Record all processes of this machine.")
@click.option(
    "--duration", type=Seconds(), metavar="SECONDS", help="End after this time; a program gets SIGTERM. [until it ends]"
)
@click.option(
    "-F", "--frequency", type=Frequency(), metavar="HZ", help="Samples per second and thread. [999; copies: 499]"
)
@click.option(
    "--stacks",
    default="auto",
    metavar="HOW",
    help="fp (frame pointers), dwarf[,BYTES] (copies that are unwound afterwards), or auto. [auto]",
)
@click.option("--off-cpu", is_flag=True, help="Also the time in which threads wait, where perf can record it.")
@click.option("--event", metavar="EVENT", help="perf's event. [cycles, or cpu-clock where there is no counter]")
@click.option(
    "--runtime",
    "runtimes",
    multiple=True,
    metavar="NAME",
    help="Prepare only this runtime (node, python, java, ...), all, or none; repeats. [those that are detected]",
)
@click.option(
    "--what",
    "mono_events",
    multiple=True,
    metavar="WHAT",
    help="With --with mono: samples, calls, allocations, heap, locks, exceptions; repeats. [samples, exceptions]",
)
@click.option("--perf", metavar="PROGRAM", help="The perf to use. [that of PATH]")
@click.option("--perf-option", "perf_options", multiple=True, metavar="OPTION", help="Option for perf record; repeats.")
@click.option("--keep", is_flag=True, help="Leave dumps also where the runtime wrote them.")
@click.option("--no-report", is_flag=True, help="Print no report at the end.")
@click.option("--view", "opens_view", is_flag=True, help="Open the recording in the browser at the end.")
@click.option("--dry-run", is_flag=True, help="Print what would be run, and why; run nothing.")
@click.option("--json", "as_json", is_flag=True, help="With --dry-run: print JSON in a documented and stable form.")
def command(
    console: Console,
    cmd: tuple[str, ...],
    output: str | None,
    recorder: Any,
    pids: tuple[int, ...],
    system_wide: bool,
    duration: float | None,
    frequency: int | None,
    stacks: str,
    off_cpu: bool,
    event: str | None,
    runtimes: tuple[str, ...],
    mono_events: tuple[str, ...],
    perf: str | None,
    perf_options: tuple[str, ...],
    keep: bool,
    no_report: bool,
    opens_view: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """CMD runs as it does from a shell: its streams, signals and exit code are its own, and Ctrl-C is for it. Variables
    let its runtime write the names of its functions, also in child processes. The dumps are brought into one directory,
    which is a recording: `perfuse report DIR`.

    The report goes to standard error where CMD has standard output. Before CMD starts, what would spoil the recording
    is stated with its cure.
    """
    import os

    from perfuse.capture.plan import make_plan
    from perfuse.capture.program import NotRunnable
    from perfuse.capture.recorded_run import carry_out, new_directory, saved_file
    from perfuse.capture.request import Request

    if as_json and not dry_run:
        raise UsageError(
            "--json is about --dry-run: standard output is the program's",
            hint="perfuse record --no-report -o DIR -- CMD; perfuse report DIR --json",
        )
    request = Request(
        command=cmd,
        pids=pids,
        system_wide=system_wide,
        recorder=recorder,
        duration_s=duration,
        hz=frequency,
        stacks=stacks,
        runtimes=_runtimes(runtimes),
        off_cpu=off_cpu,
        event=event,
        mono_events=mono_events,
        perf=perf,
        perf_options=perf_options,
        keep=keep,
    )
    try:
        plan = make_plan(request, new_directory(request, output), os.environ)
    except NotRunnable as error:
        return _not_runnable(console, error)
    if dry_run:
        _print_plan(console, plan, as_json, saved_file(output))
        return exit_codes.UNREADABLE if plan.obstacles else exit_codes.CLEAN
    for finding in plan.findings:
        if finding.state == "limited":
            console.note(f"{finding.name}: {finding.detail}", finding.advice)
    try:
        run = carry_out(plan)
    except NotRunnable as error:
        return _not_runnable(console, error)
    # Where the program has standard output, the report is not part of it.
    shown = Console(console.err if cmd else console.out, console.err)
    run, exit_code = _finish(shown, run, no_report=no_report, target=saved_file(output))
    if opens_view and run.error is None:
        from perfuse.cli.view import command as view

        view.main(["--", str(run.directory)], prog_name="perfuse view", standalone_mode=False)
    return exit_code


def _not_runnable(console: Console, error: NotRunnable) -> int:
    console.note(str(error))
    return error.exit_code


def _runtimes(names: Sequence[str]) -> tuple[str, ...] | None:
    """The names of runtimes; None for those that are detected."""
    if not names:
        return None
    if "all" in names:
        from perfuse.capture.registry import RUNTIMES

        return tuple(runtime.name for runtime in RUNTIMES)
    return tuple(name for name in names if name != "none")


def _finish(console: Console, run: RecordedRun, *, no_report: bool, target: Path | None) -> tuple[RecordedRun, int]:
    """Makes a saved profile of the recording where it is to be one, and prints what was recorded.

    Returns the recording and the exit code: the program's, where it is not 0.
    """
    from perfuse.capture.recorded_run import saved

    if target is not None:
        run = saved(run, target)
    worst = exit_codes.CLEAN
    if run.error is not None:
        console.note(run.error)
        worst = exit_codes.UNREADABLE
    elif not no_report:
        worst = _print_report(console, run)
    for line in (*_advice(run), *_changed_sources(run)):
        console.note(line)
    shown = _shown(run.directory)
    next_steps = None if run.error else f"perfuse flame {shown} -o flame.html, perfuse report {shown} --tree"
    console.note(f"wrote {shown} ({_contents(run)})", next_steps)
    return run, run.exit_code or worst


def _advice(run: RecordedRun) -> Iterator[str]:
    """Why processes have no names; those with the same reason are one line."""
    of: dict[str, list[Any]] = {}
    for process in run.processes:
        if process.advice:
            of.setdefault(process.advice, []).append(process)
    for advice, processes in of.items():
        names = ", ".join(dict.fromkeys(str(process.name) for process in processes))
        pids = ", ".join(str(process.pid) for process in processes[:MOST_PIDS])
        more = f" and {len(processes) - MOST_PIDS} more" if len(processes) > MOST_PIDS else ""
        yield f"{'process' if len(processes) == 1 else 'processes'} {pids}{more} ({names}): {advice}"


def _changed_sources(run: RecordedRun) -> Iterator[str]:
    """Sources whose functions have no lines, because they are not those that ran."""
    if run.changed_sources:
        shown = ", ".join(run.changed_sources[:MOST_SOURCES])
        more = f" and {len(run.changed_sources) - MOST_SOURCES} more" if len(run.changed_sources) > MOST_SOURCES else ""
        yield f"functions of {shown}{more} have no lines: changed after the program started"


def _print_report(console: Console, run: RecordedRun) -> int:
    from perfuse.reports.registry import choose_kind

    try:
        profile = open_profile(console, [str(run.directory)], ProfileOptions())
        report = choose_kind(profile, []).build(profile, {"--limit": TEXT_LIMIT})
    except UsageError as error:
        # A program that ended before the first sample.
        console.note(str(error), error.hint)
        return exit_codes.CLEAN
    console.lines(report.lines(console.style))
    return note_data_loss(console, report.diagnostics)


def _contents(run: RecordedRun) -> str:
    from perfuse.reports.units import bytes_text, counted

    size = sum(path.stat().st_size for path in run.files if path.is_file())
    return f"{counted(len(run.files), 'file')}, {bytes_text(size)}"


def _shown(directory: Path) -> str:
    """A directory as a user would type it."""
    import shlex

    try:
        return shlex.quote(str(directory.relative_to(Path.cwd())))
    except ValueError:
        return shlex.quote(str(directory))


def _print_plan(console: Console, plan: Plan, as_json: bool, target: Path | None) -> None:
    lines = _command_lines(plan, target)
    if as_json:
        console.json(_plan_document(plan, lines))
        return
    console.lines(lines)
    console.line()
    console.lines(_reasons(plan))
    for finding in plan.findings:
        console.note(f"{finding.name}: {finding.detail}", finding.advice)


def _reasons(plan: Plan) -> Iterator[str]:
    """Why each part of the command is there, as comments of a shell."""
    rows = [(setting.name, setting.why) for setting in plan.settings]
    rows += [(_short(option.words), option.why) for option in plan.perf_options]
    if plan.stacks is not None:
        rows.append(("stacks", plan.stacks.why))
    if plan.runtimes:
        rows.append(("runtimes", ", ".join(runtime.title for runtime, _ in plan.runtimes)))
    width = max((len(what) for what, _ in rows), default=0)
    for what, why in rows:
        yield f"# {what.ljust(width)}  {why}"
    if plan.request.command and plan.perf_options:
        yield "# perfuse starts perf beside the program (-p, --control), which so keeps its exit code and signals"


def _short(words: Sequence[str]) -> str:
    """An option as a label: without a value that is long."""
    text = " ".join(words)
    return text if len(text) <= MOST_LABEL else words[0].partition("=")[0]


def _command_lines(plan: Plan, target: Path | None) -> list[str]:
    """The commands of a plan, and the one that makes a saved profile of the recording."""
    import shlex

    from perfuse.capture.plan import command_lines

    lines = list(command_lines(plan))
    if target is not None:
        words = ["perfuse", "pack", str(plan.directory), "-o", str(target), "--code", "sampled", "--sources", "used"]
        lines.append(shlex.join(words))
    return lines


def _plan_document(plan: Plan, lines: list[str]) -> dict[str, Any]:
    changed = {setting.name for setting in plan.settings}
    return {
        "recorder": plan.recorder,
        "directory": str(plan.directory),
        "command": list(plan.command),
        "environment": {name: value for name, value in plan.environment.items() if name in changed},
        "perf": plan.perf_words([]) if plan.perf_options else None,
        "stacks": as_dict(plan.stacks) if plan.stacks else None,
        "runtimes": [runtime.name for runtime, _ in plan.runtimes],
        "lines": lines,
        "findings": [_finding(one) for one in plan.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return as_dict(finding)
