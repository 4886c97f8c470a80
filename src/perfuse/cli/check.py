"""`perfuse check`"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

import click

import perfuse
from perfuse.cli import exit_codes
from perfuse.cli.console import Console
from perfuse.cli.exit_codes import describe_failure
from perfuse.cli.options import FILES, JSON, limit
from perfuse.cli.verbs import verb
from perfuse.reports.inputs import check_lines

LIMIT = 5


@verb(
    "check",
    examples=[
        "perfuse check jit-2345.dump",
        "perfuse check --json --limit 0 perf.data jit-2345.dump",
        "perfuse check --accept SF075@.plt.got a.out",
    ],
)
@FILES
@click.option(
    "--accept",
    "accepted",
    multiple=True,
    metavar="CODE[@PLACE]",
    help="Do not count findings of this rule; with @PLACE, those of a section of the program (.plt.got) or a field.",
)
@click.option("--accept-file", metavar="FILE", help="File with a CODE or CODE@PLACE on each line; # begins a comment.")
@limit(None, f"places per rule [{LIMIT} as text]")
@JSON
def command(
    console: Console,
    files: tuple[str, ...],
    accepted: tuple[str, ...],
    accept_file: str | None,
    limit: int | None,
    as_json: bool,
) -> int:
    """Exits with 1 when there are warnings, losses of data or errors.

    Notes (severity info) and accepted findings do not count.
    """
    from perfuse import acceptance

    acceptances = [acceptance.parse(text) for text in accepted]
    acceptances += acceptance.read(accept_file) if accept_file else []
    if limit is None:
        limit = 0 if as_json else LIMIT
    shown: list[dict[str, Any]] = []
    used: Counter[acceptance.Acceptance] = Counter()
    exit_code = exit_codes.CLEAN
    for index, path in enumerate(files):
        try:
            diagnostics = perfuse.open(path).check(limit=0 if acceptances else limit)
        except (OSError, perfuse.PerfuseError) as error:
            failure = describe_failure(error)
            if failure.exit_code != exit_codes.UNREADABLE:
                raise
            console.note(failure.message, failure.hint)
            exit_code = exit_codes.UNREADABLE
            shown.append({"path": path, "unreadable": failure.message, "diagnostics": [], "accepted": 0})
            continue
        found = acceptance.separate(diagnostics, acceptances)
        used.update(found.counts)
        if any(one.is_finding for one in found.others):
            exit_code = max(exit_code, exit_codes.FINDINGS)
        if as_json:
            rows = [{**asdict(one), "accepted": False} for one in acceptance.limited(found.others, limit)]
            rows += [{**asdict(one), "accepted": True} for one in acceptance.limited(found.accepted, limit)]
            shown.append({"path": path, "diagnostics": rows, "accepted": sum(found.counts.values())})
            continue
        if index:
            console.line()
        counts = {str(one): count for one, count in found.counts.items()}
        console.lines(check_lines(path, acceptance.limited(found.others, limit), console.style, counts))
    if as_json:
        entries = [{"accept": str(one), "count": used[one]} for one in acceptances]
        console.json({"recordings": shown, "accepted": entries})
    elif unused := [str(one) for one in acceptances if not used[one]]:
        console.note(f"nothing was found that {', '.join(unused)} accepts")
    return exit_code
