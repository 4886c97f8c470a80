"""wasmtime: the command line; programs that embed it choose its profiler themselves."""

from perfuse.capture.installed import Tool
from perfuse.capture.runtime import Preparation, Runtime, Workspace

SUBCOMMANDS = frozenset({"compile", "config", "explore", "serve", "wast", "help", "settings", "completion"})


def prepare(workspace: Workspace) -> Preparation:
    """An option of the command line; its dump is in the current directory."""
    first, *words = workspace.program.command
    if workspace.executable is None or (words[:1] and words[0] in SUBCOMMANDS):
        return Preparation()
    rest = words[1:] if words[:1] == ["run"] else words
    return Preparation(command=(first, "run", "--profile=jitdump", *rest), stacks="fp")


RUNTIME = Runtime(
    name="wasmtime",
    title="wasmtime",
    executables=r"wasmtime",
    mapped=r"wasmtime|(lib|_lib)?wasmtime.*\.so.*",
    prepare=prepare,
    is_quiet=False,
    writes="dump",
    advice="wasmtime run --profile=jitdump FILE, or Config::profiler(ProfilingStrategy::JitDump)",
    tool=Tool("wasmtime", ("wasmtime",), ("--version",), "wasmtime run --profile=jitdump FILE", "https://wasmtime.dev"),
)
