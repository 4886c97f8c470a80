"""The tool `open`: which recordings there are, what they contain, and what to ask next."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

from perfuse.agents.commands import Outcome
from perfuse.agents.confinement import Confinement
from perfuse.agents.failures import ToolError
from perfuse.declared_formats import formats
from perfuse.errors import UsageError
from perfuse.reports.text import printable
from perfuse.reports.units import bytes_text, count_text, duration_text

MAX_FILES = 60
"""Files of a directory that are looked at."""
NEXT = {
    "samples": "report, tree, annotate FUNCTION. JIT code has names with its dump in files: give the run's directory",
    "code_dump": "with its perf.data in files: report, tree; alone: report, annotate",
    "call_trace": "report (map=PROGRAM gives names), report with slowest=FUNCTION, tree",
    "runtime_log": "report, then report with section=NAME; heap: report with type=CLASS; calls: report with slowest",
    "unwind_tables": "report",
    "saved_profile": "what its recordings answer: report, tree, diff; annotate where it was saved with code",
}
"""What to ask about recordings of a role."""


def describe(files: Sequence[str] | None, confinement: Confinement, run: Callable[[list[str]], Outcome]) -> str:
    """What files contain; all files of the directory where None."""
    paths, num_more, named = _expanded(files, confinement)
    if not paths:
        raise ToolError("there are no files here")
    outcome = run(["info", "--json", *paths])
    try:
        found: dict[str, Any] = json.loads(outcome.out)
    except ValueError:
        raise ToolError(f"the files cannot be read: {outcome.notes[:500]}") from None
    lines = [_line(one, confinement) for one in found["recordings"]]
    lines += [
        f"{printable(one['path'])}: {printable(one['message'])}"
        for one in found.get("unreadable", ())
        if one["path"] in named
    ]
    if not lines:
        raise ToolError(f"none of the {count_text(len(paths) + num_more)} files here is a recording")
    if num_more:
        lines.append(f"… {count_text(num_more)} more files: name a directory or files")
    roles: dict[str, str] = {one.name: one.role for one in formats()}
    present = dict.fromkeys(roles[one["format"]] for one in found["recordings"])
    if files is not None and found["recordings"]:
        try:
            lines += _tables(run(["tables", "--json", "--follow=none", *map(confinement.path, files)]))
        except UsageError as error:
            lines.append(str(error))
    lines += [f"next, for {role.replace('_', ' ')}: {NEXT[role]}" for role in present]
    return "\n".join(lines)


def _expanded(files: Sequence[str] | None, confinement: Confinement) -> tuple[list[str], int, set[str]]:
    """The files, those of directories in place of these; how many were left out; which were named themselves."""
    paths: list[str] = []
    named: set[str] = set()
    num_more = 0
    for text in files or ["."]:
        path = confinement.path(text, is_listed=True)
        if (confinement.directory / path).is_dir():
            inside, left_out = confinement.files(path, MAX_FILES)
            paths += inside
            num_more += left_out
        else:
            paths.append(path)
            named.add(path)
    unique = list(dict.fromkeys(paths))
    return unique[:MAX_FILES], num_more + len(unique[MAX_FILES:]), named


def _line(one: dict[str, Any], confinement: Confinement) -> str:
    titles = {each.name: each.title for each in formats()}
    try:
        size = (confinement.directory / one["path"]).stat().st_size
    except OSError:
        size = 0
    span = one["span_ns"]
    parts = [
        f"{titles.get(one['format'], one['format'])} {one['version'] or ''}".strip(),
        *([f"by {one['producer']}"] if one["producer"] else []),
        *([f"on {one['arch']}"] if one["arch"] else []),
        *([duration_text(span[1] - span[0])] if span else []),
        bytes_text(size),
        _health(one["diagnostics"]),
    ]
    command = one["header"].get("command") or one["header"].get("cmdline")
    ran = f", ran: {command}"[:200] if command else ""
    return printable(f"{PurePath(one['path'])}: {', '.join(parts)}{ran}")


def _health(severities: dict[str, int]) -> str:
    serious = {name: count for name, count in severities.items() if name in ("data_loss", "error")}
    if serious:
        return "damaged: " + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in serious.items())
    return "no data lost"


def _tables(outcome: Outcome) -> list[str]:
    try:
        tables = json.loads(outcome.out)["tables"]
    except ValueError:
        message = outcome.notes.strip()[:400]
        return [f"joined: {message or 'failed'}"]
    counts = {one["name"]: one["rows"] for one in tables if one["rows"]}
    shown = ", ".join(f"{name} {count_text(rows)}" for name, rows in counts.items())
    return [f"tables for query: {shown}", "columns: query DESCRIBE FROM samples"]
