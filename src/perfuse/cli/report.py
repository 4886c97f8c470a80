"""`perfuse report`"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from perfuse.cli import exit_codes
from perfuse.cli.call_options import CallOptions, call_options
from perfuse.cli.console import Console
from perfuse.cli.options import JSON, ProfileOptions, limit, near_choice, open_profile, profile_options, settle
from perfuse.cli.report_ahead import import_modules
from perfuse.cli.runtime_options import RuntimeOptions, runtime_options
from perfuse.cli.verbs import verb

if TYPE_CHECKING:
    from perfuse import Profile
    from perfuse.reports.runtime.sections import RuntimeRequest

UNWIND = "unwind_rows"
"""A table of files that say how stacks are unwound, and nothing of what ran."""


@verb(
    "report",
    examples=[
        "perfuse report perf.data jit-2345.dump",
        "perfuse report jit-2345.dump",
        "perfuse report --json perf.data",
        "perfuse report xray-log.server.uocuES --map server",
        "perfuse report xray-log.server.uocuES --function 'render*' --graph",
        "perfuse report --map server",
        "perfuse report output.mlpd",
        "perfuse report output.mlpd --section allocations --stacks",
        "perfuse report output.mlpd --assert 'allocations.bytes < 50MB' --assert 'gc.pauses.p99 < 10ms'",
        "perfuse report a.out",
    ],
)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--event", metavar="NAME", help="Event to report, where several were sampled.")
@click.option(
    "--assert",
    "assertions",
    multiple=True,
    metavar="FACT",
    help="Instead of a report, check a fact: 'allocations.bytes < 50MB'; exit 1 where it fails; repeats.",
)
@limit(10, "rows a list")
@call_options
@runtime_options
@profile_options
@JSON
def command(
    console: Console,
    files: tuple[str, ...],
    event: str | None,
    assertions: tuple[str, ...],
    limit: int,
    calls: CallOptions,
    runtime: RuntimeOptions,
    how: ProfileOptions,
    as_json: bool,
) -> int:
    """With samples (perf.data): the functions that cost most, by thread, module and tier, and what has no name.

    A call trace (XRay): how often functions were called and how long they took, to the last percentile; threads,
    stacks, who calls whom. --map alone: the functions of a program with an XRay map.

    A Mono log: what was allocated and where, collections and their pauses, locks, exceptions, counters, samples, calls.

    A code dump alone: what was compiled, when, how often, how big.

    Programs with SFrame sections: what code they cover, what is missing and why, whether they agree with
    .eh_frame, and who would unwind by them.
    """
    if not files:
        return _map_alone(console, how, limit, as_json)
    if calls.llvm_compat:
        # Its definitions: durations in ticks, at the rate the header states.
        how = replace(how, tsc_hz=1_000_000_000 if calls.as_csv else "header")
    if assertions:
        return _asserted(console, files, assertions, how, as_json)
    profile = open_profile(console, files, how, meanwhile=lambda: import_modules(files))
    if all(UNWIND in recording.fills for recording in profile.recordings):
        return _unwind_tables(console, profile, limit, as_json)
    if profile.has("types") and event is None and not calls.alone:
        return _runtime(console, profile, runtime.request(limit, calls.sort, calls.stacks), as_json)
    if runtime.given:
        raise click.UsageError(f"{runtime.given[0]} is about managed runtimes, and none of the files is of one")
    if calls.given and not profile.has_traces:
        raise click.UsageError(f"{calls.given[0]} is about call traces, and there is none among the files")
    if profile.has_traces and event is None and not profile.has_samples:
        return _calls(console, profile, calls, limit, as_json)
    return _samples(console, profile, calls, event, limit, how, as_json)


def _asserted(
    console: Console, files: tuple[str, ...], assertions: tuple[str, ...], how: ProfileOptions, as_json: bool
) -> int:
    """Checks facts; findings are those that fail."""
    from perfuse.analysis.assertions import judge, parse
    from perfuse.analysis.facts import facts_of
    from perfuse.reports.assertions_text import verdict_lines

    parsed = [parse(text) for text in assertions]
    profile = open_profile(console, files, how)
    verdicts = judge(parsed, facts_of(profile))
    if as_json:
        told = [{"assertion": one.assertion.text, "value": one.value, "holds": one.holds} for one in verdicts]
        console.json({"kind": "assertions", "title": profile.title, "assertions": told})
    else:
        console.lines(verdict_lines(verdicts, console.style))
    failed = exit_codes.CLEAN if all(one.holds for one in verdicts) else exit_codes.FINDINGS
    return max(failed, settle(console, profile.diagnostics))


def _runtime(console: Console, profile: Profile, request: RuntimeRequest, as_json: bool) -> int:
    """What a managed runtime tells of a program."""
    from perfuse.reports.runtime.report import runtime_lines, runtime_report

    report = runtime_report(profile, request)
    console.json(report.as_json()) if as_json else console.lines(runtime_lines(report, console.style))
    return settle(console, profile.diagnostics)


def _samples(
    console: Console,
    profile: Profile,
    calls: CallOptions,
    event: str | None,
    limit: int,
    how: ProfileOptions,
    as_json: bool,
) -> int:
    from perfuse.analysis.sampled import events
    from perfuse.reports.profile import profile_lines, profile_report

    sampled = [one.name for one in events(profile)]
    if event is not None:
        near_choice(event, sampled, "event")
    if sampled:
        samples = profile_report(profile, limit, event)
        traced = None
        if profile.has_traces and event is None:
            from perfuse.reports.calls import calls_report

            traced = calls_report(profile, calls.request(limit))
        if as_json:
            console.json({**samples.as_json(), **({"calls": traced.as_json()} if traced else {})})
        else:
            console.lines(profile_lines(samples, console.style))
            if traced:
                from perfuse.reports.calls import body_lines

                console.lines(body_lines(traced, console.style))
    else:
        if how.selects:
            raise click.UsageError("no samples are left to report: --between or --thread leave none")
        from perfuse.reports.code import code_lines, code_report

        code = code_report(profile, limit)
        console.json(code.as_json()) if as_json else console.lines(code_lines(code, console.style))
    return settle(console, profile.diagnostics)


def _calls(console: Console, profile: Profile, calls: CallOptions, limit: int, as_json: bool) -> int:
    """The report of call traces alone: it asks the core, without loading a database."""
    request = calls.request(limit)
    if calls.as_csv:
        from perfuse.exporters.csv import write

        write(
            profile,
            sys.stdout.buffer,
            by=request.by,
            order=request.order if calls.sort else None,
            function=request.pattern,
            recursive_only=request.recursive_only,
            llvm=calls.llvm_compat,
        )
    else:
        from perfuse.reports.calls import calls_lines, calls_report

        report = calls_report(profile, request)
        console.json(report.as_json()) if as_json else console.lines(calls_lines(report, console.style))
    return settle(console, profile.diagnostics)


def _unwind_tables(console: Console, profile: Profile, limit: int, as_json: bool) -> int:
    from perfuse.formats.sframe import SFrame
    from perfuse.reports.unwind_tables import unwind_lines, unwind_report

    reports = [unwind_report(SFrame(recording), limit) for recording in profile.recordings]
    if as_json:
        shown = [report.as_json() for report in reports]
        console.json(shown[0] if len(shown) == 1 else {"kind": "unwind_tables", "files": shown})
    else:
        for index, report in enumerate(reports):
            if index:
                console.line()
            console.lines(unwind_lines(report, console.style))
    return settle(console, [found for report in reports for found in report.findings])


def _map_alone(console: Console, how: ProfileOptions, limit: int, as_json: bool) -> int:
    """What an instrumentation map has."""
    if not how.maps:
        raise click.UsageError("nothing to report: give a recording, or a program with --map")
    from perfuse.formats.xray_map import InstrumentationMap
    from perfuse.reports.xray_map import sled_map_lines, sled_map_report

    worst = exit_codes.CLEAN
    for _, path in how.maps:
        opened = InstrumentationMap.open(path, symbol_dirs=how.symbol_dirs, debug_info=not how.no_debug_info)
        report = sled_map_report(opened, limit)
        console.json(report.as_json()) if as_json else console.lines(sled_map_lines(report, console.style))
        worst = max(worst, settle(console, opened.findings))
    return worst
