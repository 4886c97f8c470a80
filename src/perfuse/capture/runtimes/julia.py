"""Julia 1.9 and newer."""

from perfuse.capture.installed import Tool, at_least
from perfuse.capture.runtime import Preparation, Runtime, Setting, Workspace


def prepare(workspace: Workspace) -> Preparation:
    """A dump below the directory of the recording, written by LLVM's listener."""
    return Preparation(
        (
            Setting("ENABLE_JITPROFILING", "1", None, "Julia writes jit-PID.dump"),
            Setting("JITDUMPDIR", str(workspace.directory), None, "where LLVM writes it"),
        ),
        stacks="fp",
    )


RUNTIME = Runtime(
    name="julia",
    title="Julia",
    executables=r"julia(-\d+(\.\d+)?)?",
    mapped=r"libjulia.*\.so.*",
    prepare=prepare,
    is_quiet=True,
    writes="dump",
    advice="it was started without ENABLE_JITPROFILING=1, or is older than 1.9",
    tool=Tool(
        "julia",
        ("julia",),
        ("--version",),
        "perfuse record -- julia SCRIPT",
        "https://julialang.org",
        at_least(1, 9, "a dump"),
    ),
)
