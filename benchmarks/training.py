"""Runs the core on recordings of every kind; `make profile` counts meanwhile what runs how often, for the compiler.

The recordings are those of `examples`, of the corpus, and of the C compiler, which perf records here. They are small
and many: what counts is which code runs often, not how long.
"""

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import unwind

from perfuse.cli import run

ROOT = Path(__file__).parents[1]
CORPUS = Path(os.environ.get("PERFUSE_CORPUS", ROOT.parent / "shared" / "corpus"))
STACK_TARGETS = ("collapsed", "cpuprofile", "firefox", "otlp", "perf-script", "perfetto", "pprof", "speedscope")
CALL_TARGETS = ("chrome", "perfetto")
DUMPS = ("cpython313", "cpython315-dwarf", "erlang27", "jsc2.52", "node20", "node24")
MONO_LOGS = ("alloc", "calls", "everything", "heapshot", "sample-real")
NATIVE_CHAINS = ("-F", "4000", "-g")
COPIED_STACKS = ("-F", "1000", "--call-graph", "dwarf,8192")
RUN = (0, 1)
"""Exit codes of a verb that did its work: without findings, and with."""

Command = list[str | Path]
"""A verb and its arguments."""


def main() -> int:
    """Runs all verbs; returns 1 if one did not do its work."""
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for words in _commands(folder):
            args = [str(word) for word in words]
            said = io.StringIO()
            with redirect_stdout(io.StringIO()), redirect_stderr(said):
                code = run(args)
            if code not in RUN:
                failed += 1
                print(f"exit {code}: perfuse {' '.join(args)}\n{said.getvalue()}", file=sys.stderr)
    return 1 if failed else 0


def _commands(folder: Path) -> Iterator[Command]:
    examples = ROOT / "examples"
    postcards = [examples / "postcards" / one for one in ("perf.data.gz", "jit-32015.dump.gz")]
    yield from _of_samples(folder, postcards, "shade")
    for name in DUMPS:
        dump = CORPUS / "jitdump" / "produced" / f"{name}.dump"
        yield ["report", dump.with_suffix(".perf.data"), dump]
        yield ["check", dump]
        yield ["repair", dump, "-o", folder / dump.name, "--force"]
    for options in (NATIVE_CHAINS, COPIED_STACKS):
        recording = _record(folder, options)
        yield from _of_samples(folder, [recording], "malloc")
        yield ["check", recording]
    for log in (next(examples.glob("xray_server/*.zst")), *(CORPUS / "xray").glob("*/*sq*-small-*.xray")):
        yield ["report", log]
        yield ["check", log]
        for target in CALL_TARGETS:
            yield ["convert", log, "--to", target, "-o", folder / target, "--force"]
        yield ["pack", log, "-o", folder / "calls.perfuse", "--force"]
        yield ["report", folder / "calls.perfuse"]
    sessions = examples / "mono_sessions" / "sessions.mlpd.gz"
    yield ["report", sessions, "--section", "heap"]
    yield ["convert", sessions, "--to", "heapsnapshot", "-o", folder / "heapsnapshot", "--force"]
    for log in (sessions, *(CORPUS / "mono" / "v17" / f"{name}.mlpd" for name in MONO_LOGS)):
        yield ["report", log]
        yield ["check", log]
    for program in (examples / "unwind_tables" / "orders", *(CORPUS / "sframe" / "large").glob("libbfd*_v3.sframe.xz")):
        yield ["report", program]
        yield ["check", program]


def _of_samples(folder: Path, recordings: list[Path], function: str) -> Iterator[Command]:
    """Commands about samples."""
    yield ["report", *recordings]
    yield ["report", *recordings, "--only", function]
    yield ["query", *recordings, "SELECT count(*) FROM samples JOIN stacks USING (stack_id)"]
    yield ["flame", *recordings, "-o", folder / "flame.html", "--force"]
    for target in STACK_TARGETS:
        yield ["convert", *recordings, "--to", target, "-o", folder / target, "--force"]
    yield ["pack", *recordings, "-o", folder / "saved.perfuse", "--force"]
    yield ["report", folder / "saved.perfuse"]


def _record(folder: Path, options: tuple[str, ...]) -> Path:
    """A recording of the C compiler."""
    recording = folder / f"{options[2].lstrip('-')}.perf.data"
    perf: Command = ["perf", "record", "-qN", "-e", "cpu-clock", *options, "-o", recording, "--"]
    subprocess.run([*perf, *unwind.compiling(folder)], check=True, stdout=subprocess.DEVNULL)
    return recording


if __name__ == "__main__":
    sys.exit(main())
