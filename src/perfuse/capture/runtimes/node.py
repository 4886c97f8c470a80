"""node, and other programs of V8 that read NODE_OPTIONS."""

import os

from perfuse.capture.finding import Finding
from perfuse.capture.installed import Tool
from perfuse.capture.runtime import Preparation, Runtime, Setting, Workspace

OPTIONS = "--perf-prof --interpreted-frames-native-stack"
"""Both are accepted in NODE_OPTIONS by every release since 10; an unknown option there would stop every node."""

UNWRITABLE = Finding(
    "directory",
    "limited",
    "V8 writes its dump into the current directory, which may not be written: no names",
    "cd to another directory, and give the path of the script",
)


def prepare(_workspace: Workspace) -> Preparation:
    """A dump in the current directory of each process, workers and children included."""
    if not os.access(".", os.W_OK):
        # V8 would print its log to standard output there, in the middle of the program's.
        return Preparation(stacks="fp", findings=(UNWRITABLE,))
    why = "V8 writes jit-PID.dump; interpreted functions have frames of their own"
    return Preparation((Setting("NODE_OPTIONS", OPTIONS, " ", why),), stacks="fp")


RUNTIME = Runtime(
    name="node",
    title="node",
    executables=r"node(js)?(-?\d+)?",
    mapped=r"node(js)?(-?\d+)?|libnode\.so.*",
    prepare=prepare,
    is_quiet=True,
    writes="dump",
    advice="it was started without NODE_OPTIONS, or its directory may not be written: node --perf-prof SCRIPT",
    while_running="V8 keeps up to 2 MiB of its dump in memory: copy it again when the process has ended",
    leftovers=("isolate-0x*-{pid}-v8.log",),
    tool=Tool("node", ("node", "nodejs"), ("--version",), "node --perf-prof SCRIPT", "apt install nodejs"),
)
