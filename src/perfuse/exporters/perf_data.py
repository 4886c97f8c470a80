"""A perf.data in which perf itself names the JIT code, as from `perf inject --jit`, with one ELF file per process.

`perf report`, `perf annotate` and `perf script` read it. The ELF files are beside it, as `OUT.jit-PID.elf`. perf finds
them by their absolute path, so they must not be moved.
"""

import os
from contextlib import ExitStack
from pathlib import Path

from perfuse.declared_formats import COMPRESSED
from perfuse.errors import ExportError, UsageError
from perfuse.exporters.contents import contents
from perfuse.exporters.elf import MAX_PROCESSES
from perfuse.exporters.source import ImageSource

CONTENTS = contents(
    samples="the records of the perf.data",
    code="an ELF file beside it with machine code, symbols, lines and inlined calls",
)


def write_files(profile: ImageSource, unfinished: Path, path: Path) -> None:
    """Writes the perf.data and the ELF files of its processes.

    Args:
        profile: The profile.
        unfinished: An empty directory to write to.
        path: Final path of the perf.data; the ELF files will be beside it.

    Raises:
        UsageError: The name ends in `.gz` or `.zst`; or the profile was saved without the copies of stacks.
        ExportError: The profile is not of one whole perf.data, or none of its processes has JIT code.
    """
    if path.suffix.lower() in COMPRESSED:
        raise UsageError(
            f"perf does not read {path.suffix} files", path=str(path), field="path", hint=f"write {path.stem}"
        )
    profile.images.check_recording()
    profile.require_stack_copies()
    pids = profile.images.sampled_pids()
    if not pids:
        raise ExportError(
            "no process of the perf.data has JIT code",
            hint="name the dump, or its directory; `perfuse report` lists the processes that wrote one",
        )
    if len(pids) > MAX_PROCESSES:
        raise ExportError(f"{len(pids):,} processes have JIT code; {MAX_PROCESSES} can be written at a time")
    names = {pid: f"{path.name}.jit-{pid}.elf" for pid in pids}
    with ExitStack() as open_files:
        files = {pid: open_files.enter_context((unfinished / name).open("xb")) for pid, name in names.items()}
        images = profile.images.write(files)
    # Readable by its owner only, as with perf: samples reveal activity on a machine.
    descriptor = os.open(unfinished / path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        profile.images.inject(out, images, {pid: path.parent / name for pid, name in names.items()})
