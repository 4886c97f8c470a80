"""An ELF file with a process's JIT code: machine code, symbols, DWARF lines and inlined calls."""

from io import FileIO
from pathlib import Path
from typing import IO

from perfuse.errors import ExportError
from perfuse.exporters.contents import contents
from perfuse.exporters.source import ImageSource, no_code_error
from perfuse.output.file import seekable_copy

MAX_PROCESSES = 256
"""Largest number of files written at once; only a damaged dump has more processes."""


CONTENTS = contents(code="machine code, symbols, lines, inlined calls")


def write(profile: ImageSource, out: IO[bytes], *, pid: int | None = None) -> None:
    """Writes the code of one process.

    Args:
        profile: The profile.
        out: A binary file object.
        pid: Process; required where several have JIT code.

    Raises:
        ExportError: No process has JIT code, or several have and none is named.
    """
    pids = code_pids(profile)
    if pid is not None and pid not in pids:
        hint = f"processes with JIT code: {', '.join(map(str, pids))}"
        raise ExportError(f"process {pid} has no JIT code", field="pid", hint=hint)
    if pid is None and len(pids) > 1:
        shown = ", ".join(map(str, pids[:20])) + (", ..." if len(pids) > 20 else "")
        raise ExportError(
            f"an ELF file is of one process, and {len(pids)} have JIT code: {shown}",
            field="pid",
            hint="name one with pid=, or give a directory for a file each",
        )
    pid = pids[0] if pid is None else pid
    if _is_new_file(out):
        profile.images.write({pid: out})
        return
    # The headers are written last, so a pipe or a compressed file gets a copy of a complete temporary file.
    with seekable_copy(out) as whole:
        profile.images.write({pid: whole})


def write_directory(profile: ImageSource, path: Path) -> None:
    """Writes `jit-PID.elf` for every process that has JIT code."""
    pids = code_pids(profile)
    if len(pids) > MAX_PROCESSES:
        raise ExportError(
            f"{len(pids):,} processes have JIT code, which is not a real recording",
            hint="`perfuse check` lists the errors of the dump; a file with pid= can still be written",
        )
    files = {pid: (path / f"jit-{pid}.elf").open("xb") for pid in pids}
    try:
        profile.images.write(files)
    finally:
        for file in files.values():
            file.close()


def code_pids(profile: ImageSource) -> list[int]:
    """Processes with JIT code; raises `ExportError` where there are none."""
    pids = profile.images.pids()
    if len(set(pids)) < len(pids):
        shared = next(pid for pid in pids if pids.count(pid) > 1)
        hint = "open the recording of one of them alone"
        raise ExportError(f"{pids.count(shared)} processes have pid {shared}", hint=hint)
    if not pids:
        raise no_code_error()
    return pids


def _is_new_file(out: IO[bytes]) -> bool:
    """Whether `out` is a file that was just created, at its start."""
    raw = getattr(out, "raw", None)
    return isinstance(raw, FileIO) and raw.mode.startswith("x")
