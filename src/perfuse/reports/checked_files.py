"""Files with what `check` found in them, as the reports for CI take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfuse.diagnostics import Diagnostic


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


def located_message(found: Diagnostic) -> str:
    """The message with the offset, the record and the field in front: these files have no lines."""
    offset = "" if found.offset is None else f"offset {found.offset:#x}"
    record = "" if found.record_index is None else f"record {found.record_index}"
    place = ", ".join(part for part in (offset, record, found.field, found.code_section) if part)
    return f"{place}: {found.message}" if place else found.message
