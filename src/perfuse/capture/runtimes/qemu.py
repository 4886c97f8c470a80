"""QEMU's user mode, which translates programs of other machines."""

from __future__ import annotations

from perfuse.capture.runtime import Preparation, Runtime, Workspace
from perfuse.capture.versions import version_of

FIRST_WITH_DUMP = (8, 0)


def prepare(workspace: Workspace) -> Preparation:
    """An option of the command line; its dump is in the current directory."""
    if workspace.executable is None or version_of(workspace.executable) < FIRST_WITH_DUMP:
        return Preparation()
    first, *rest = workspace.program.command
    return Preparation(command=(first, "-jitdump", *rest), stacks="fp")


RUNTIME = Runtime(
    name="qemu",
    title="QEMU",
    executables=r"qemu-(?!system-|img|nbd|io)\w+(-static)?",
    mapped=r"qemu-(?!system-|img|nbd|io)\w+(-static)?",
    prepare=prepare,
    is_quiet=False,
    writes="dump",
    advice="names of translated code need QEMU 8.0: qemu-ARCH -jitdump PROGRAM",
)
