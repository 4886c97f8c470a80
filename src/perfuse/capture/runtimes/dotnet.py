""".NET: dump and map by a variable; not Mono."""

from __future__ import annotations

from pathlib import Path

from perfuse.capture.installed import Tool
from perfuse.capture.runtime import Preparation, Runtime, Setting, Workspace
from perfuse.capture.versions import version_in

MAP_AND_DUMP, MAP_ONLY = "1", "3"
FIRST_WITH_BROKEN_DUMP = 10
"""From this release on the dump is damaged (dotnet/runtime#132935): the map alone is written."""


def prepare(workspace: Workspace) -> Preparation:
    """Both files go to the directory of the recording; precompiled framework code keeps its own names only in part."""
    version = _newest(workspace.executable) if workspace.executable else 0
    value = MAP_ONLY if version >= FIRST_WITH_BROKEN_DUMP else MAP_AND_DUMP
    what = "perf-PID.map" if value == MAP_ONLY else "jit-PID.dump and perf-PID.map"
    settings = [
        Setting(prefix + name, setting, None, why)
        for prefix in ("DOTNET_", "COMPlus_")
        for name, setting, why in (
            ("PerfMapEnabled", value, f".NET writes {what}"),
            ("PerfMapJitDumpPath", str(workspace.directory), "where it writes them"),
            ("PerfMapShowOptimizationTiers", "1", "names state the tier"),
        )
    ]
    return Preparation(tuple(settings), stacks="fp")


def _newest(dotnet: Path) -> int:
    """The newest major version installed beside the host; 0 where unknown."""
    runtimes = dotnet.resolve().parent / "shared" / "Microsoft.NETCore.App"
    try:
        return max((version_in(path.name)[:1] or (0,))[0] for path in runtimes.iterdir())
    except (OSError, ValueError):
        return 0


RUNTIME = Runtime(
    name="dotnet",
    title=".NET",
    executables=r"dotnet",
    mapped=r"libcoreclr\.so|libclrjit\.so",
    prepare=prepare,
    is_quiet=True,
    writes="dump",
    advice="it was started without DOTNET_PerfMapEnabled=1; framework methods also need DOTNET_ReadyToRun=0",
    leftovers=("perfinfo-{pid}.map",),
    tool=Tool("dotnet", ("dotnet",), ("--version",), "DOTNET_PerfMapEnabled=1 dotnet APP", "https://dot.net"),
)
