"""Repairing damaged files: the longest valid file that can be recovered."""

from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from perfuse.diagnostics import Diagnostic, from_core
from perfuse.errors import ExportError
from perfuse.output_file import output_path
from perfuse.recording import Input, open


@dataclass(frozen=True, slots=True)
class Change:
    """A change that a repair made.

    Attributes:
        code: Rule that the file violated.
        message: What was changed.
        offset: Offset in the damaged file.
    """

    code: str
    message: str
    offset: int


@dataclass(frozen=True, slots=True)
class RepairResult:
    """The result of a repair.

    Attributes:
        changes: Every change.
        lost: Data that could not be recovered.
        records_in: Records that were read.
        records_out: Records that were written.
    """

    changes: list[Change]
    lost: list[Diagnostic]
    records_in: int
    records_out: int


def repair(source: Input, output: str | PathLike[str], *, strict: bool = False) -> RepairResult:
    """Writes the longest valid file that can be recovered; the input is never written to.

    Args:
        source: The damaged file.
        output: File to write; it appears under its name only when it is complete. `-` for standard output.
        strict: Raise on the first violation of the specification instead of repairing.

    Raises:
        UnreadableInput: The header cannot be read, or `strict` found a violation.
        ExportError: The output cannot be written.
    """
    recording = open(source, strict=strict)
    target = fspath(output)
    try:
        with output_path(Path(target)) as path:
            changes, lost, records_in, records_out = recording._core.repair(str(path))
    except OSError as error:
        raise ExportError(f"cannot write {target}: {error.strerror or error}", path=target) from error
    return RepairResult(
        [Change(code, message, offset) for code, message, offset in changes],
        from_core(recording.path, lost),
        records_in,
        records_out,
    )
