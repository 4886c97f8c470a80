"""`perfuse report FILE...` without other options than `--json`, and functions that `report.py` uses as well.

It is the most frequent command. Importing click and declaring the options of `report` takes as long as the report of a
small file, so its command line is read without.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from perfuse.cli.console import Console
from perfuse.cli.opening import ProfileOptions, note_data_loss, open_profile
from perfuse.cli.running import run_command
from perfuse.errors import check_text

if TYPE_CHECKING:
    from perfuse.reports.registry import Report, ReportKind

TEXT_LIMIT = 10
"""Rows of each list of a text."""
PREFETCH_BYTES = 32 << 20
"""Reading a file of this size takes the core longer than Python takes to import the modules of a report."""


def run(files: Sequence[str], *, as_json: bool) -> int:
    """Runs the command and returns its exit code."""
    return run_command(lambda: _report(Console(sys.stdout, sys.stderr), files, as_json=as_json), as_json=as_json)


def _report(console: Console, files: Sequence[str], *, as_json: bool) -> int:
    for path in files:
        check_text(path)
    profile = open_profile(console, files, ProfileOptions(), meanwhile=lambda: import_report_modules(files))
    # A saved profile has the joined tables.
    is_joined = profile.has("callchains") and profile.saved_path is None
    if is_joined:
        profile._fusion.join_ahead(is_needed=True)
    # What follows is imported while the core joins.
    from perfuse.reports.registry import LIMIT_IS_DEFAULT, choose_kind, kind_named

    if is_joined:
        _import_modules(kind_named("profile"))
    options = {"--limit": 0 if as_json else TEXT_LIMIT, LIMIT_IS_DEFAULT: True}
    exit_code = print_report(console, choose_kind(profile, {}).build(profile, options), as_json)
    sys.stdout.flush()
    return exit_code


def print_report(console: Console, report: Report, as_json: bool) -> int:
    """Prints a report; returns the exit code."""
    if report.write_csv is not None:
        report.write_csv(sys.stdout.buffer)
    elif as_json:
        console.json(report.as_json())
    else:
        console.lines(report.lines(console.style))
    return note_data_loss(console, report.diagnostics)


def import_report_modules(files: Sequence[str]) -> None:
    """Imports the modules of the report that large files will get, while the core reads them."""
    for path in files:
        if os.path.isfile(path) and os.path.getsize(path) >= PREFETCH_BYTES:
            from perfuse.reports.registry import kind_of_file_name

            kind = kind_of_file_name(os.path.basename(path))
            if kind is not None:
                _import_modules(kind)


def _import_modules(kind: ReportKind) -> None:
    for name in kind.prefetch:
        importlib.import_module(name)
