"""Saving what can be saved of a damaged file."""

from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from perfuse.diagnostics import Diagnostic, from_core
from perfuse.errors import ExportError
from perfuse.output_file import output_path
from perfuse.recording import Input, open


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that was changed to make a file valid.

    Attributes:
        code: Rule that was broken.
        message: What was done.
        offset: Where, in the file as it was.
    """

    code: str
    message: str
    offset: int


@dataclass(frozen=True, slots=True)
class RepairResult:
    """What a repair did.

    Attributes:
        changes: Every change.
        lost: What could not be saved.
        records_in: Records that were read.
        records_out: Records that were written.
    """

    changes: list[Change]
    lost: list[Diagnostic]
    records_in: int
    records_out: int


def repair(source: Input, output: str | PathLike[str], *, strict: bool = False) -> RepairResult:
    """Writes the longest valid file that can be saved; the input is never written to.

    Args:
        source: The damaged file.
        output: Where the repaired one goes, whole or not at all; `-` for standard output.
        strict: Refuse to repair: raise on the first departure instead.

    Raises:
        UnreadableInput: Not even the header can be read, or `strict` found a departure.
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
