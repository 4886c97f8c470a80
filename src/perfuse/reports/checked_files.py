"""Files with what `check` found in them, as the reports for CI take them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from perfuse.diagnostics import SEVERITIES, Diagnostic


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file with what was found in it.

    Attributes:
        path: The file as it was named.
        others: Diagnostics that no option accepts.
        accepted: Findings that an option accepts.
        unreadable: Why it could not be read; empty where it was.
    """

    path: str
    others: Sequence[Diagnostic] = ()
    accepted: Sequence[Diagnostic] = ()
    unreadable: str = ""


def by_rule(diagnostics: Sequence[Diagnostic]) -> Iterator[list[Diagnostic]]:
    """The diagnostics of each rule, the most severe first."""
    ordered = sorted(diagnostics, key=lambda one: (-SEVERITIES.index(one.severity), one.code))
    for _, group in groupby(ordered, key=lambda one: one.code):
        yield list(group)


def located_message(found: Diagnostic) -> str:
    """The message with the offset, the record and the field in front: these files have no lines."""
    offset = "" if found.offset is None else f"offset {found.offset:#x}"
    record = "" if found.record_index is None else f"record {found.record_index}"
    place = ", ".join(part for part in (offset, record, found.field, found.code_section) if part)
    return f"{place}: {found.message}" if place else found.message
