"""deno: V8 with options in a variable of its own."""

import os
import re

from perfuse.capture.finding import Finding
from perfuse.capture.installed import Tool
from perfuse.capture.runtime import Preparation, Runtime, Setting, Workspace
from perfuse.capture.runtimes.node import UNWRITABLE

FLAGS = "--perf-prof,--interpreted-frames-native-stack"


TYPESCRIPT = Finding(
    "deno",
    "limited",
    "lines of TypeScript are those of the JavaScript that deno makes of it",
    "`deno bundle` writes that JavaScript: record it",
)


def prepare(workspace: Workspace) -> Preparation:
    """A dump in the current directory of the process."""
    if not os.access(".", os.W_OK):
        return Preparation(stacks="fp", findings=(UNWRITABLE,))
    has_types = any(re.search(r"\.[cm]?tsx?$", word) for word in workspace.program.command)
    setting = Setting("DENO_V8_FLAGS", FLAGS, ",", "V8 writes jit-PID.dump")
    return Preparation((setting,), stacks="fp", findings=(TYPESCRIPT,) if has_types else ())


RUNTIME = Runtime(
    name="deno",
    title="deno",
    executables=r"deno",
    mapped=r"deno",
    prepare=prepare,
    is_quiet=True,
    writes="dump",
    advice="it was started without DENO_V8_FLAGS: deno run --v8-flags=--perf-prof SCRIPT",
    while_running="V8 keeps up to 2 MiB of its dump in memory: copy it again when the process has ended",
    leftovers=("isolate-0x*-{pid}-v8.log",),
    tool=Tool("deno", ("deno",), ("--version",), "perfuse record -- deno run SCRIPT", "pip install deno"),
)
