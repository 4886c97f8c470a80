"""`perfuse report`"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

import click
from click.core import ParameterSource

from perfuse.cli import exit_codes
from perfuse.cli.console import Console
from perfuse.cli.opening import ProfileOptions, note_data_loss, open_profile
from perfuse.cli.options import BUDGET, JSON, limit, profile_options, stack_filters
from perfuse.cli.plain_report import TEXT_LIMIT, import_report_modules, print_report
from perfuse.cli.verbs import Verb, verb
from perfuse.errors import UsageError
from perfuse.reports.registry import (
    LIMIT_IS_DEFAULT,
    REPORTS,
    Option,
    ReportKind,
    choose_kind,
)

FILTERED_REPORTS = ("stacks", "profile")
"""Kinds of reports that are made of stacks only."""


class ReportVerb(Verb):
    """A verb whose help describes each kind of report, and lists its options under its title."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The purpose, then each kind of report."""
        super().format_help_text(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_dl([(kind.title, kind.description) for kind in _described_kinds()])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options of every report first, then those of each kind."""
        own = {_name(option.flag) for option in _report_options()}
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        common = [option.get_help_record(ctx) for option in options if option.name not in own]
        with formatter.section("Options"):
            formatter.write_dl([record for record in common if record])
        for kind in _described_kinds():
            if kind.options:
                with formatter.section(f"Options for {kind.title[:1].lower()}{kind.title[1:]}"):
                    formatter.write_dl([(f"{one.flag} {one.metavar or ''}".strip(), one.help) for one in kind.options])


def _described_kinds() -> list[ReportKind]:
    return sorted((kind for kind in REPORTS if kind.description), key=lambda kind: kind.title)


def _report_options() -> list[Option]:
    """One option per flag; where several kinds declare it, its choices are those of all."""
    options: dict[str, Option] = {}
    for option in (option for kind in REPORTS for option in kind.options):
        known = options.setdefault(option.flag, option)
        options[option.flag] = replace(known, choices=tuple(dict.fromkeys((*known.choices, *option.choices))))
    return list(options.values())


def _name(flag: str) -> str:
    return "report_" + flag.removeprefix("--").replace("-", "_")


class _ParsedValue(click.ParamType[Any]):
    """The value of an option with a parser of its own."""

    name = "value"

    def __init__(self, parse: Callable[[str], Any]) -> None:
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value that the text stands for."""
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def report_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of all kinds of report; the verb gets the values that were given as one, `options`, by flag."""
    declared = _report_options()

    @wraps(function)
    def collect(*args: Any, **values: Any) -> Any:
        context = click.get_current_context()
        options = {}
        for option in declared:
            name = _name(option.flag)
            value = values.pop(name)
            if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
                options[option.flag] = value
        return function(*args, options=options, **values)

    for option in reversed(declared):
        if option.metavar is None:
            settings: dict[str, Any] = {"is_flag": True}
        elif option.choices:
            settings = {"type": click.Choice(option.choices)}
        else:
            settings = {"type": _ParsedValue(option.parse) if option.parse else str, "multiple": option.repeats}
        decorate = click.option(option.flag, _name(option.flag), metavar=option.metavar, help=option.help, **settings)
        collect = decorate(collect)
    return collect


@verb(
    "report",
    cls=ReportVerb,
    examples=[
        "perfuse report perf.data jit-2345.dump",
        "perfuse report jit-2345.dump",
        "perfuse report --json perf.data",
        "perfuse report perf.data --group",
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
@click.option(
    "--assert",
    "assertions",
    multiple=True,
    metavar="FACT",
    help="Instead of a report, check a fact: 'allocations.bytes < 50MB'; exit 1 where it fails; repeats.",
)
@BUDGET
@limit(None, f"rows per list [{TEXT_LIMIT} as text]")
@report_options
@profile_options
@stack_filters
@JSON
def command(
    console: Console,
    files: tuple[str, ...],
    assertions: tuple[str, ...],
    budget: int | None,
    limit: int | None,
    options: dict[str, Any],
    how: ProfileOptions,
    as_json: bool,
) -> int:
    """The kind of report follows from the recordings. --map without a recording reports the functions of an XRay
    map. Options of one kind of report are refused for the others.
    """
    if budget is not None and (limit is not None or assertions or not files):
        raise click.UsageError("--budget is for reports of recordings, and takes no --limit: it determines that")
    is_default = limit is None
    if limit is None:
        limit = 0 if as_json else TEXT_LIMIT
    if not files:
        return _report_maps(console, how, limit, as_json)
    for kind in REPORTS:
        how = replace(how, **kind.open_with(options))
    if assertions:
        return _check_assertions(console, files, assertions, how, as_json)
    profile = open_profile(console, files, how, meanwhile=lambda: import_report_modules(files))
    kind = choose_kind(profile, options)
    if how.selects and not kind.takes_selection:
        raise UsageError(
            f"nothing to report: {how.selection_text} selects samples, calls or events, and none is left",
            hint="without it, `perfuse report` shows what was recorded",
        )
    if how.stack_filter and kind.name not in FILTERED_REPORTS:
        raise click.UsageError(
            f"filters of stacks do not select what {kind.title[:1].lower()}{kind.title[1:]} report with these options:"
            " --tree, --stacks, --function and --by take them"
        )
    if budget is not None:
        from perfuse.cli.budget import print_within

        report = print_within(console, budget, lambda rows: kind.build(profile, {**options, "--limit": rows}), as_json)
        return note_data_loss(console, report.diagnostics)
    return print_report(
        console, kind.build(profile, {**options, "--limit": limit, LIMIT_IS_DEFAULT: is_default}), as_json
    )


def _check_assertions(
    console: Console, files: Sequence[str], assertions: Sequence[str], how: ProfileOptions, as_json: bool
) -> int:
    """Checks facts; the exit code states whether all hold."""
    from perfuse.reports.assertions import check_assertions, parse_assertions

    parsed = parse_assertions(assertions)
    verdicts, report = check_assertions(open_profile(console, files, how), parsed)
    exit_code = exit_codes.CLEAN if all(one.holds for one in verdicts) else exit_codes.FINDINGS
    return max(exit_code, print_report(console, report, as_json))


def _report_maps(console: Console, how: ProfileOptions, limit: int, as_json: bool) -> int:
    """Reports the programs given with --map, without a recording."""
    if not how.maps:
        raise click.UsageError("nothing to report: give a recording, or a program with --map")
    from perfuse.reports.xray_map import build

    worst = exit_codes.CLEAN
    for _, path in how.maps:
        report = build(path, limit, symbol_dirs=how.symbol_dirs, debug_info=not how.no_debug_info)
        worst = max(worst, print_report(console, report, as_json))
    return worst
