"""SpiderMonkey: the shell `js`, Firefox."""

from perfuse.capture.runtime import Preparation, Runtime, Setting, Workspace


def prepare(workspace: Workspace) -> Preparation:
    """A dump in the directory of the recording."""
    return Preparation(
        (
            Setting("IONPERF", "func", None, "SpiderMonkey writes jit-PID.dump"),
            Setting("PERF_SPEW_DIR", str(workspace.directory), None, "where it writes it"),
        ),
        stacks="fp",
    )


RUNTIME = Runtime(
    name="spidermonkey",
    title="SpiderMonkey",
    executables=r"js(\d+)?|firefox(-esr)?",
    mapped=r"js\d+|libmozjs.*|libxul\.so",
    prepare=prepare,
    is_quiet=False,
    writes="dump",
    advice="it had no IONPERF (perfuse record --runtime spidermonkey), or it was built without --enable-perf",
)
