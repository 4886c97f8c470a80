"""Repairing damaged files: the longest valid file that can be recovered."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from perfuse.declared_formats import formats
from perfuse.diagnostics import Diagnostic, from_core
from perfuse.errors import ExportError, UnreadableInput
from perfuse.output.file import output_path
from perfuse.recording import Input, Recording, open


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
class KindDifference:
    """A kind of records of which the repaired file has more or fewer.

    Attributes:
        kind: Its name in the specification.
        records_in: Number of records in the damaged file.
        records_out: Number of records in the repaired file.
        reason: In which other form the repaired file has them; None where the changes give the reason.
    """

    kind: str
    records_in: int
    records_out: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class RepairResult:
    """What a repair changed, lost and left in a file.

    Attributes:
        changes: Every change.
        lost: Data that could not be recovered.
        remaining: Errors and losses that `check` finds in the repaired file, with their offsets in it.
        records_in: Records of the damaged file.
        records_out: Records of the repaired file.
        differences: The kinds of which the two have different numbers.
    """

    changes: list[Change]
    lost: list[Diagnostic]
    remaining: list[Diagnostic]
    records_in: int
    records_out: int
    differences: list[KindDifference]


def repair(
    source: Input, output: str | PathLike[str], *, strict: bool = False, max_unpacked: int | str | None = None
) -> RepairResult:
    """Writes the longest valid file that can be recovered; the input is never written to.

    Without a change the file is copied, and a repair of a repaired file changes nothing.

    Args:
        source: The damaged file.
        output: File to write; it appears under its name only when it is complete. `-` for standard output.
        strict: Raise on the first violation of the specification instead of repairing.
        max_unpacked: Most bytes that a compressed file may become, as in `open`.

    Raises:
        UnreadableInput: The header cannot be read, or `strict` found a violation.
        ExportError: The output cannot be written, or the file cannot be repaired.
    """
    recording = open(source, strict=strict, max_unpacked=max_unpacked)
    target = fspath(output)
    with output_path(Path(target)) as path:
        changes, lost, rewritten = _write(recording, path)
        repaired = _repaired(recording, path)
        before, after = recording.summary.records, repaired.summary.records
        remaining = [replace(one, path=target) for one in repaired.check() if one.is_loss]
    return RepairResult(
        [Change(code, message, offset) for code, message, offset in changes],
        from_core(recording.path, lost),
        remaining,
        sum(before.values()),
        sum(after.values()),
        _differences(before, after, dict(rewritten)),
    )


def _write(recording: Recording, path: Path) -> tuple[list[tuple[str, str, int]], list[Any], list[tuple[str, str]]]:
    """Writes the repaired file. An error without a number is not one of the system: the file cannot be repaired."""
    try:
        return recording._core.repair(str(path))
    except OSError as error:
        if error.errno is not None:
            raise
        hint = None
        if "repair" not in recording.entry.capabilities:
            hint = f"files of {', '.join(one.title for one in formats() if 'repair' in one.capabilities)} can be"
        raise ExportError(f"cannot repair {recording.path}: {error}", path=recording.path, hint=hint) from error


def _repaired(recording: Recording, path: Path) -> Recording:
    """The written file, whose name is a temporary one."""
    try:
        return open(path)
    except UnreadableInput as error:
        reason = str(error).replace(str(path), "the repaired file")
        raise ExportError(
            f"cannot repair {recording.path}: {reason}; nothing was written", path=recording.path
        ) from error


def _differences(before: Mapping[str, int], after: Mapping[str, int], reasons: dict[str, str]) -> list[KindDifference]:
    """The kinds with different counts, in the order of the damaged file."""
    kinds = ((kind, before.get(kind, 0), after.get(kind, 0)) for kind in {**before, **after})
    return [KindDifference(kind, num, left, reasons.get(kind)) for kind, num, left in kinds if num != left]
