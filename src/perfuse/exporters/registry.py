"""The list of export targets, and finding one by name or file name."""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from perfuse.declared_formats import name_of_content
from perfuse.errors import UsageError, nearest_hint

if TYPE_CHECKING:
    from perfuse.exporters.contents import Contents

Output = Literal["file", "directory", "files"]
"""A file or stream, a directory of files, or a file with others beside it."""


@dataclass(frozen=True, slots=True)
class Target:
    """A format a profile can be written in.

    Attributes:
        name: Its name for `to=` and `--to`.
        title: Its name for people.
        suffixes: Suffixes of file names for this target; the longest match of all targets wins.
        module: Its exporter, in this package.
        outputs: Kinds of output it can write; the first is the default.
        readers: Programs that read it, in one line.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    module: str
    outputs: tuple[Output, ...]
    readers: str

    def load(self) -> ModuleType:
        """Its exporter."""
        return importlib.import_module(f"perfuse.exporters.{self.module}")

    @property
    def contents(self) -> "Contents":
        """What its files contain."""
        found: Contents = self.load().CONTENTS
        return found

    def writer(self, output: Output) -> Callable[..., None]:
        """Its exporter's function for an output."""
        name = {"file": "write", "directory": "write_directory", "files": "write_files"}[output]
        write: Callable[..., None] = getattr(self.load(), name)
        return write

    def options(self, output: Output) -> dict[str, inspect.Parameter]:
        """Its options, by name."""
        parameters = inspect.signature(self.writer(output)).parameters
        return {name: p for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY and name != "progress"}

    def accepts_progress(self, output: Output) -> bool:
        """Whether it accepts `progress`."""
        return "progress" in inspect.signature(self.writer(output)).parameters


TARGETS: tuple[Target, ...] = (
    Target("firefox", "Firefox Profiler", (".firefox.json", ".json"), "firefox", ("file",),
           "profiler.firefox.com: timeline, call tree, flame graph"),
    Target("jslb", "Firefox Profiler, JSLB", (".jslb",), "firefox_jslb", ("file",),
           "profiler.firefox.com: the same in binary form, for large profiles"),
    Target("speedscope", "speedscope", (".speedscope.json",), "speedscope", ("file",),
           "speedscope.app: time order, left heavy, sandwich"),
    Target("chrome", "Chrome trace events", (".trace.json", ".chrome.json"), "chrome", ("file",),
           "chrome://tracing, ui.perfetto.dev, DevTools, speedscope: calls and samples on the timelines of threads"),
    Target("perfetto", "Perfetto", (".pftrace", ".perfetto-trace"), "perfetto", ("file",),
           "ui.perfetto.dev and its trace processor: calls, instants and samples, a third of the size"),
    Target("pprof", "pprof", (".pb", ".pprof"), "pprof", ("file",),
           "go tool pprof, Pyroscope, Parca: profile.proto; .pb.gz is what it is usually called"),
    Target("cpuprofile", "V8 CPU profile", (".cpuprofile",), "cpuprofile", ("file", "directory"),
           "Chrome DevTools, VS Code, speedscope: one thread; a directory gets a file for each"),
    Target("otlp", "OTLP profiles", (".otlp", ".otlp.pb"), "otlp", ("file",),
           "OpenTelemetry collectors: profiles v1development; `encoding=json` for text"),
    Target("heapsnapshot", "V8 heap snapshot", (".heapsnapshot",), "heapsnapshot", ("file", "directory"),
           "Chrome DevTools: objects, retained sizes, paths to roots; a directory gets each snapshot"),
    Target("hprof", "HPROF", (".hprof",), "hprof", ("file", "directory"),
           "VisualVM: objects, retained sizes, paths to roots; a directory gets each snapshot"),
    Target("collapsed", "collapsed stacks", (".collapsed", ".folded"), "collapsed", ("file",),
           "FlameGraph, inferno, grep: a;b;c N a line"),
    Target("perf-script", "text of perf script", (".perf-script", ".script.txt"), "perf_script", ("file",),
           "FlameGraph's stackcollapse-perf.pl, inferno, speedscope, Firefox Profiler: a paragraph a sample"),
    Target("perf-map", "perf map", (".map",), "perf_map", ("file", "directory"),
           "perf-PID.map: perf, bpftrace and bcc name JIT code by it"),
    Target("html", "HTML flame graph", (".html", ".htm"), "html", ("file",),
           "one page: search, zoom, callers and callees; opens from disk"),
    Target("svg", "SVG flame graph", (".svg",), "svg", ("file",),
           "a picture for a README or a report; tooltips, no script"),
    Target("elf", "ELF", (".elf", ".so"), "elf", ("file", "directory"),
           "gdb, addr2line, objdump: machine code, symbols, lines, inlined calls"),
    Target("perf-data", "perf.data", (".perf.data", ".data"), "perf_data", ("files",),
           "perf report, annotate, script: JIT code named, from one ELF file beside it"),
    Target("dot", "Graphviz", (".dot", ".gv"), "dot", ("file",),
           "dot, xdot and editors: who calls whom, warm where the time goes"),
    Target("csv", "CSV", (".csv",), "csv", ("file",),
           "spreadsheets, scripts: statistics of calls, a line a function; also as llvm-xray has them"),
    Target("xray", "XRay log", (".xray",), "xray", ("file",),
           "llvm-xray, perfuse: calls, of any version, mode and byte order"),
    Target("xray-yaml", "XRay trace in YAML", (".xray.yaml", ".yaml"), "xray_yaml", ("file",),
           "llvm-xray, text editors, diff: a line a record, in the order of time"),
    Target("mono", "Mono log", (".mlpd",), "mono", ("file",),
           "mprof-report, perfuse: what Mono logged, whole or in part, of any data version"),
)  # fmt: skip
"""Every target, in the order of listings."""


COLLECTORS = ("otlp+http://", "otlp+https://")
"""How addresses begin that OTLP profiles are sent to."""


def target_named(name: str) -> Target:
    """The target of a name; raises `UsageError` with the known names."""
    for target in TARGETS:
        if target.name == name:
            return target
    names = [target.name for target in TARGETS]
    raise UsageError(f"there is no export target {name!r}", field="to", hint=nearest_hint(name, names))


def target_for(path: str) -> Target:
    """The target of a file name, without a final `.gz` or `.zst`, or of the address of a collector.

    Raises:
        UsageError: No suffix matches.
    """
    if path.startswith(COLLECTORS):
        return target_named("otlp")
    name = name_of_content(path)
    endings = [(suffix, target) for target in TARGETS for suffix in target.suffixes]
    matches = [(len(suffix), target) for suffix, target in endings if name.endswith(suffix)]
    if matches:
        return max(matches, key=lambda match: match[0])[1]
    known = ", ".join(f"{target.name} ({' '.join(target.suffixes)})" for target in TARGETS)
    raise UsageError(
        f"the suffix of {path!r} is not of a known format",
        path=path,
        field="to",
        hint=f"name a target (--to, or to= in Python), or use a suffix of one: {known}; tables are written by"
        ' `perfuse query FILE "FROM samples" -o samples.parquet`',
    )
