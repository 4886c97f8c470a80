"""Dart: programs that its virtual machine compiles while they run."""

from __future__ import annotations

from perfuse.capture.runtime import Preparation, Runtime, Workspace


def prepare(workspace: Workspace) -> Preparation:
    """An option of the command line, before the command or the script; the dump is in /tmp."""
    if workspace.executable is None:
        return Preparation()
    first, *rest = workspace.program.command
    return Preparation(command=(first, "--generate_perf_jitdump", *rest), stacks="fp")


RUNTIME = Runtime(
    name="dart",
    title="Dart",
    executables=r"dart(vm)?",
    mapped=r"dartvm|dart",
    prepare=prepare,
    is_quiet=False,  # programs that are compiled ahead of time refuse the option
    writes="dump",
    advice="it was started without its option: dart --generate_perf_jitdump SCRIPT",
)
