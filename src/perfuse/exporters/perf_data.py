"""A perf.data in which perf itself names the JIT code: what `perf inject --jit` makes, with one ELF file a process.

`perf report`, `perf annotate` and `perf script` read it as it is. The ELF files lie beside it, as `OUT.jit-PID.elf`,
and are found by their absolute path, so they must stay where they were written.
"""

import os
from contextlib import ExitStack
from pathlib import Path

from perfuse.errors import ExportError, UsageError
from perfuse.exporters.elf import MAX_PROCESSES
from perfuse.exporters.source import ImageSource


def write_files(profile: ImageSource, unfinished: Path, path: Path) -> None:
    """Writes the perf.data and the ELF files of its processes.

    Args:
        profile: What to write.
        unfinished: Where to: an empty directory.
        path: Where the perf.data will be in the end, and the ELF files beside it.

    Raises:
        UsageError: The name asks for compression.
        ExportError: There is not one perf.data, whole, or no code for a process in it.
    """
    if path.suffix.lower() == ".gz":
        raise UsageError("perf does not read .gz files", path=str(path), field="path", hint=f"write {path.stem}")
    profile.images.check_recording()
    pids = profile.images.sampled_pids()
    if not pids:
        raise ExportError(
            "no process of the perf.data has JIT code",
            hint="name the dump, or the directory it is in; `perfuse report` tells which processes wrote one",
        )
    if len(pids) > MAX_PROCESSES:
        raise ExportError(f"{len(pids):,} processes have JIT code; {MAX_PROCESSES} can be written at a time")
    names = {pid: f"{path.name}.jit-{pid}.elf" for pid in pids}
    with ExitStack() as open_files:
        files = {pid: open_files.enter_context((unfinished / name).open("xb")) for pid, name in names.items()}
        images = profile.images.write(files)
    # For its owner only, as perf does: samples tell what was done on a machine.
    descriptor = os.open(unfinished / path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        profile.images.inject(out, images, {pid: path.parent / name for pid, name in names.items()})
