"""The kinds of recordings in the truth matrix, each with an example.

`contents` names the tables that the rules of the matrix ask for and that the example has rows of;
`test_counts.py` compares them with the example itself.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfuse.declared_formats import Format, format_named

HERE = Path(__file__).parent
CORPUS = Path(os.environ.get("PERFUSE_CORPUS", HERE.parents[2] / "shared" / "corpus"))
RECORDED = "recorded/"
"""Prefix of the files that are stored beside this module; all others are files of the corpus."""

RULED = frozenset(
    {
        "samples",
        "stack_copies",
        "code_objects",
        "call_events",
        "call_sums",
        "slices",
        "instants",
        "lock_events",
        "exceptions",
        "counter_samples",
        "allocations",
        "object_moves",
        "gc_handles",
        "heap_snapshots",
        "coverage",
        "unwind_functions",
    }
)
"""Contents that rules of the matrix ask for: tables that recordings fill, and `stack_copies` (`--call-graph dwarf`)."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of recording.

    Attributes:
        name: Its name in markers.
        title: Its title in the documentation.
        family: The part of the documentation that it is in.
        formats: Formats of its files.
        files: The files of the example, opened together.
        contents: What the example contains, of `RULED`.
        map: The program with its instrumentation map.
    """

    name: str
    title: str
    family: str
    formats: tuple[str, ...]
    files: tuple[str, ...]
    contents: frozenset[str]
    map: str | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files of the example."""
        return tuple(_path(name) for name in self.files)

    @property
    def map_options(self) -> list[str]:
        """`--map` on the command line."""
        return ["--map", str(_path(self.map))] if self.map else []

    @property
    def fuse_options(self) -> dict[str, Any]:
        """Arguments of `perfuse.fuse`."""
        return {"maps": {0: _path(self.map)}} if self.map else {}

    @property
    def declared(self) -> tuple[Format, ...]:
        """What its formats declare."""
        return tuple(format_named(name) for name in self.formats)

    def has(self, *tables: str) -> bool:
        """Whether it contains one of them."""
        return bool(self.contents.intersection(tables))


def _path(name: str) -> Path:
    return HERE / name if name.startswith(RECORDED) else CORPUS / name


PERF, XRAY, MONO, OTHER = "Samples", "Calls (XRay)", "Runtime logs (Mono)", "Code and unwind tables"


def _perf(name: str, title: str, stem: str, dump: str | None = "dump", *more: str) -> Kind:
    base = f"jitdump/produced/{stem}"
    files = (f"{base}.perf.data",) if dump is None else (f"{base}.perf.data", f"{base}.{dump}")
    formats = ("perf_data",) if dump is None else ("perf_data", "jitdump")
    contents = {"samples", *more} if dump is None else {"samples", "code_objects", *more}
    return Kind(name, title, PERF, formats, files, frozenset(contents))


def _xray(name: str, title: str, log: str, contents: set[str], program: str | None = None) -> Kind:
    return Kind(name, title, XRAY, ("xray",), (log,), frozenset(contents), program)


def _mono(name: str, title: str, log: str, *contents: str) -> Kind:
    return Kind(name, title, MONO, ("mono",), (f"mono/{log}.mlpd",), frozenset({"code_objects", *contents}))


def _sframe(name: str, title: str, file: str) -> Kind:
    return Kind(name, title, OTHER, ("sframe",), (file,), frozenset({"unwind_functions"}))


KINDS = {
    kind.name: kind
    for kind in (
        _perf("perf_data", "perf.data without a dump", "wasmtime50", None),
        _perf("perf_node", "perf.data with V8's dump", "node20"),
        _perf("perf_cpython", "perf.data with CPython's dump", "cpython313"),
        _perf("perf_openjdk", "perf.data with OpenJDK's dump", "openjdk17-jvmti"),
        _perf("perf_llvm", "perf.data with LLVM's dump", "llvm14-mcjit"),
        _perf("perf_jsc", "perf.data with JavaScriptCore's dump", "jsc2.54-source"),
        _perf("perf_erlang", "perf.data with Erlang's dump", "erlang27"),
        _perf("perf_postgres", "perf.data with PostgreSQL's dump", "postgres15"),
        _perf("perf_stacks", "perf.data with copied stacks", "cpython315-dwarf", "dump", "stack_copies"),
        Kind(
            "collapsed",
            "collapsed stacks",
            PERF,
            ("collapsed",),
            ("recorded/collapsed/threads.folded",),
            frozenset({"samples"}),
        ),
        _xray(
            "xray_fdr",
            "XRay, FDR mode",
            "xray/fdr/threads4-v5.xray",
            {"call_events", "slices", "instants"},
            "xray/bin/threads22",
        ),
        _xray(
            "xray_basic",
            "XRay, Basic mode",
            "xray/basic/basic-small-v3.xray",
            {"call_events", "slices"},
            "xray/bin/small22",
        ),
        _xray(
            "xray_profiling",
            "XRay, Profiling mode",
            "found/xray/pair/profiling.xray",
            {"call_sums"},
            "found/xray/pair/p",
        ),
        _xray(
            "xray_shared_objects",
            "XRay, shared objects",
            "xray/dso/dso18-v5.xray",
            {"call_events", "slices"},
        ),
        Kind(
            "perf_xray",
            "perf.data with an XRay log",
            XRAY,
            ("perf_data", "xray"),
            ("recorded/perf_xray/perf.data.gz", "recorded/perf_xray/log.xray"),
            frozenset({"samples", "call_events", "slices"}),
            "recorded/perf_xray/ph.o",
        ),
        _mono("mono_samples", "samples", "v17/sample", "samples", "instants", "exceptions", "counter_samples"),
        _mono(
            "mono_calls",
            "calls",
            "tiny/v17-calls",
            "call_events",
            "slices",
            "instants",
            "lock_events",
            "exceptions",
            "allocations",
            "object_moves",
        ),
        _mono(
            "mono_allocations",
            "allocations",
            "tiny/v17-bt",
            "allocations",
            "slices",
            "instants",
            "lock_events",
            "exceptions",
            "object_moves",
            "gc_handles",
        ),
        _mono("mono_heap", "heap snapshots", "v17/graph", "heap_snapshots", "slices", "instants"),
        _mono("mono_locks", "locks", "v17/monitor", "lock_events", "slices", "instants"),
        _mono("mono_gc", "collections", "v17/finalization", "slices", "instants"),
        _mono(
            "mono_before_15",
            "data version 13",
            "tiny/v13-heapshot",
            "heap_snapshots",
            "slices",
            "instants",
            "lock_events",
            "exceptions",
            "counter_samples",
            "object_moves",
            "gc_handles",
        ),
        _mono("mono_coverage", "coverage, by hand", "crafted/crafted-v15", "coverage"),
        Kind(
            "perf_mono",
            "perf.data with a Mono log",
            MONO,
            ("perf_data", "mono"),
            ("recorded/perf_mono/perf.data.gz", "recorded/perf_mono/output.mlpd.gz"),
            frozenset({"samples", "code_objects", "slices", "instants"}),
        ),
        Kind(
            "jitdump",
            "JITDUMP alone",
            OTHER,
            ("jitdump",),
            ("jitdump/produced/openjdk17-jvmti.dump",),
            frozenset({"code_objects"}),
        ),
        _sframe("sframe_program", "SFrame of a program", "sframe/v2/x86_64/small_omitfp.elf"),
        _sframe("sframe_object", "SFrame of an object file", "sframe/v2/x86_64/small_omitfp.o"),
        _sframe("sframe_archive", "SFrame of an archive", "recorded/sframe_archive/small.a"),
    )
}
"""Every kind, by name."""
