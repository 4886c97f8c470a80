"""`perfuse check`"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import perfuse
from perfuse.cli import exit_codes
from perfuse.cli.console import Console
from perfuse.cli.exit_codes import describe_failure
from perfuse.cli.options import EACH_FILE, JSON, force, limit, report_file
from perfuse.cli.verbs import verb
from perfuse.errors import UsageError, with_escaped_bytes
from perfuse.reports.inputs import check_lines
from perfuse.value_class import as_dict

if TYPE_CHECKING:
    from perfuse.reports.checked_files import CheckedFile

LIMIT = 5
_OF_ONE_FILE = (exit_codes.UNREADABLE, exit_codes.USAGE)
"""Failures of one file, after which the others are checked: it cannot be read, or its name is not UTF-8."""


@verb(
    "check",
    examples=[
        "perfuse check jit-2345.dump",
        "perfuse check --json --limit 0 perf.data jit-2345.dump",
        "perfuse check --accept SF075@.plt.got a.out",
        "perfuse check --sarif check.sarif --junit check.xml jit-2345.dump",
        "perfuse check --github - jit-2345.dump",
    ],
)
@EACH_FILE
@click.option(
    "--accept",
    "accepted",
    multiple=True,
    metavar="CODE[@PLACE]",
    help="Do not count findings of this rule; with @PLACE, those of a section of the program (.plt.got) or a field.",
)
@click.option("--accept-file", metavar="FILE", help="File with a CODE or CODE@PLACE on each line; # begins a comment.")
@report_file("--sarif", "findings as SARIF 2.1.0, for code hosts and editors,")
@report_file("--junit", "a test case per rule that is violated, as JUnit XML for CI,")
@report_file("--github", "an annotation per rule that is violated, as commands of a GitHub workflow,")
@force("FILE")
@limit(None, f"places per rule [{LIMIT} as text]")
@JSON
def command(
    console: Console,
    files: tuple[str, ...],
    accepted: tuple[str, ...],
    accept_file: str | None,
    sarif: str | None,
    junit: str | None,
    github: str | None,
    limit: int | None,
    as_json: bool,
) -> int:
    """Exits with 1 when there are warnings, losses of data or errors.

    Notes (severity info) and accepted findings do not count. Of a directory, all recordings in it are checked.
    """
    from perfuse.cli import accepted_findings
    from perfuse.reports.checked_files import CheckedFile

    acceptances = [accepted_findings.parse(text) for text in accepted]
    acceptances += accepted_findings.read(accept_file) if accept_file else []
    reports = {option: name for option, name in (("--sarif", sarif), ("--junit", junit), ("--github", github)) if name}
    shows_text = _check_outputs(files, reports, as_json)
    limit_of_files = limit or 0
    if limit is None:
        limit = LIMIT if shows_text and not as_json else 0
    needs_all = acceptances or (reports and not limit_of_files)
    shown: list[dict[str, Any]] = []
    checked: list[CheckedFile] = []
    used: Counter[accepted_findings.Acceptance] = Counter()
    exit_code = exit_codes.CLEAN
    for index, path in enumerate(files):
        try:
            diagnostics = perfuse.open(path).check(limit=0 if needs_all else limit)
        except (OSError, perfuse.PerfuseError) as error:
            failure = describe_failure(error)
            if failure.exit_code not in _OF_ONE_FILE:
                raise
            console.note(failure.message, failure.hint)
            exit_code = exit_codes.UNREADABLE
            shown.append(
                {"path": with_escaped_bytes(path), "unreadable": failure.message, "diagnostics": [], "accepted": 0}
            )
            checked.append(CheckedFile(path, unreadable=failure.message))
            continue
        found = accepted_findings.separate(diagnostics, acceptances)
        used.update(found.counts)
        if any(one.is_finding for one in found.others):
            exit_code = max(exit_code, exit_codes.FINDINGS)
        if reports:
            others = accepted_findings.limited(found.others, limit_of_files)
            checked.append(CheckedFile(path, others, accepted_findings.limited(found.accepted, limit_of_files)))
        if as_json:
            rows = [{**as_dict(one), "accepted": False} for one in accepted_findings.limited(found.others, limit)]
            rows += [{**as_dict(one), "accepted": True} for one in accepted_findings.limited(found.accepted, limit)]
            shown.append({"path": path, "diagnostics": rows, "accepted": sum(found.counts.values())})
            continue
        if not shows_text:
            continue
        if index:
            console.line()
        others = accepted_findings.limited(found.others, limit)
        console.lines(check_lines(path, others, limit, console.style, found.counts))
    if as_json:
        entries = [{"accept": str(one), "count": used[one]} for one in acceptances]
        console.json({"recordings": shown, "accepted": entries})
    elif unused := [str(one) for one in acceptances if not used[one]]:
        console.note(f"nothing was found that {', '.join(unused)} accepts")
    _write_reports(checked, reports, exit_code)
    return exit_code


def _check_outputs(files: Sequence[str], reports: Mapping[str, str], as_json: bool) -> bool:
    """Whether standard output has the text or JSON; raises an error where a report cannot be written."""
    from perfuse.output.file import check_target

    on_stdout = [option for option, name in reports.items() if name == "-"]
    if len(on_stdout) + as_json > 1:
        options = [*on_stdout, *(["--json"] if as_json else [])]
        raise UsageError(
            f"{' and '.join(options)} cannot both be on standard output", hint="give one of them the name of a file"
        )
    options_of: dict[Path, str] = {}
    for option, name in reports.items():
        if name == "-":
            continue
        other = options_of.setdefault(Path(name).resolve(), option)
        if other != option:
            raise UsageError(f"{other} and {option} are one file, {name}", hint="give them different names")
        check_target(Path(name), *(Path(file) for file in files if Path(file).exists()))
    return not on_stdout


def _write_reports(checked: Sequence[CheckedFile], reports: Mapping[str, str], exit_code: int) -> None:
    """Writes the reports for CI that are asked for."""
    if sarif := reports.get("--sarif"):
        from perfuse.reports.json_text import json_text
        from perfuse.reports.sarif import sarif_log

        log = sarif_log(checked, version=perfuse.__version__, exit_code=exit_code)
        _write(sarif, (json_text(log) + "\n").encode())
    if junit := reports.get("--junit"):
        from perfuse.reports.junit import junit_document

        _write(junit, junit_document(checked))
    if github := reports.get("--github"):
        from perfuse.reports.github import workflow_commands

        _write(github, "".join(line + "\n" for line in workflow_commands(checked)).encode())


def _write(name: str, content: bytes) -> None:
    from perfuse.output.file import output_file
    from perfuse.output.terminal import standard_output

    if name == "-":
        out = standard_output()
        out.write(content)
        out.flush()
        return
    with output_file(Path(name)) as file:
        file.write(content)
