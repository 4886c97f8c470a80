"""JavaScriptCore: bun, jsc, and programs of WebKitGTK."""

from perfuse.capture.installed import Tool
from perfuse.capture.runtime import Preparation, Runtime, Setting, Workspace


def prepare(workspace: Workspace) -> Preparation:
    """A dump of each process in the directory of the recording; bun reads variables with a prefix."""
    directory, why = str(workspace.directory), "JavaScriptCore writes jit-TID-PID.dump"
    return Preparation(
        tuple(
            Setting(prefix + name, value, None, why)
            for prefix in ("BUN_JSC_", "JSC_")
            for name, value in (("useJITDump", "1"), ("jitDumpDirectory", directory))
        ),
        stacks="fp",
    )


RUNTIME = Runtime(
    name="javascriptcore",
    title="JavaScriptCore",
    executables=r"bunx?|jsc",
    mapped=r"bun|jsc|libjavascriptcoregtk.*|libJavaScriptCore.*",
    prepare=prepare,
    is_quiet=True,
    writes="dump",
    advice="JavaScriptCore needs 2.44 or bun 1.2 for JSC_useJITDump",
    tool=Tool("bun", ("bun",), ("--version",), "perfuse record -- bun SCRIPT", "npm install -g bun"),
)
