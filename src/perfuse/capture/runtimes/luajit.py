"""LuaJIT: a map, where it was compiled for that."""

from perfuse.capture.finding import Finding
from perfuse.capture.runtime import Preparation, Runtime, Workspace

ADVICE = "build LuaJIT with XCFLAGS=-DLUAJIT_USE_PERFTOOLS, which writes /tmp/perf-PID.map"


def prepare(workspace: Workspace) -> Preparation:
    """Nothing can be switched on; the binary shows whether it writes a map."""
    if workspace.executable is None or _writes_map(workspace):
        return Preparation(stacks="fp")
    return Preparation(findings=(Finding("luajit", "limited", "this LuaJIT writes no names", ADVICE),))


def _writes_map(workspace: Workspace) -> bool:
    try:
        content = workspace.executable.resolve().read_bytes() if workspace.executable else b""
    except OSError:
        return False
    return b"/tmp/perf-%" in content


RUNTIME = Runtime(
    name="luajit",
    title="LuaJIT",
    executables=r"luajit(-\d+(\.\d+)*.*)?",
    mapped=r"luajit(-\d+(\.\d+)*.*)?|libluajit.*\.so.*",
    prepare=prepare,
    is_quiet=False,
    writes="map",
    advice=ADVICE,
)
