"""Mono under perf: a map of its methods. Its log profiler is `perfuse.capture.mono_log`."""

from perfuse.capture.installed import Tool
from perfuse.capture.runtime import Preparation, Runtime, Setting, Workspace


def prepare(_workspace: Workspace) -> Preparation:
    """A map in /tmp; Mono 6 has no option for a dump."""
    return Preparation((Setting("MONO_ENV_OPTIONS", "--jitmap", " ", "Mono writes /tmp/perf-PID.map"),), stacks="fp")


RUNTIME = Runtime(
    name="mono",
    title="Mono",
    executables=r"mono(-sgen|-boehm)?(32|64)?",
    mapped=r"mono(-sgen|-boehm)?(32|64)?|libmono(sgen|boehm)?-2\.0\.so.*",
    prepare=prepare,
    is_quiet=True,
    writes="map",
    advice="it was started without MONO_ENV_OPTIONS=--jitmap",
    tool=Tool("mono", ("mono",), ("--version",), "mono --profile=log APP", "apt install mono-runtime"),
)
