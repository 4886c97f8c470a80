"""`perfuse check`"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

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
    examples=["perfuse check jit-2345.dump", "perfuse check --json --limit 0 perf.data jit-2345.dump"],
)
@FILES
@limit(None, f"places per rule [{LIMIT} as text]")
@JSON
def command(console: Console, files: tuple[str, ...], limit: int | None, as_json: bool) -> int:
    """Exits with 1 when there are warnings, losses of data or errors; notes (severity info) do not count."""
    if limit is None:
        limit = 0 if as_json else LIMIT
    shown: list[dict[str, Any]] = []
    exit_code = exit_codes.CLEAN
    for index, path in enumerate(files):
        try:
            diagnostics = perfuse.open(path).check(limit=limit)
        except (OSError, perfuse.PerfuseError) as error:
            failure = describe_failure(error)
            if failure.exit_code != exit_codes.UNREADABLE:
                raise
            console.note(failure.message, failure.hint)
            exit_code = exit_codes.UNREADABLE
            shown.append({"path": path, "unreadable": failure.message, "diagnostics": []})
            continue
        if any(found.is_finding for found in diagnostics):
            exit_code = max(exit_code, exit_codes.FINDINGS)
        if as_json:
            shown.append({"path": path, "diagnostics": [asdict(found) for found in diagnostics]})
            continue
        if index:
            console.line()
        console.lines(check_lines(path, diagnostics, console.style))
    if as_json:
        console.json({"recordings": shown})
    return exit_code
