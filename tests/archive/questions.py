"""Everything that can be asked of a profile: reports, tables, exports, flame graphs, comparisons, code, pages.

Each question is a name and a function without arguments, whose result is compared.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from arro3.core import Table

import perfuse as pf
from perfuse.analysis.function_graph import GROUPINGS, function_graph
from perfuse.analysis.orders import ORDERS, STACK_GROUPINGS, STACK_VIEW_ORDERS
from perfuse.analysis.source_files import SourceFiles
from perfuse.exporters import TARGETS, Target
from perfuse.reports.annotation import annotation_json
from perfuse.reports.json_text import json_text
from perfuse.reports.registry import choose_kind
from perfuse.reports.runtime.report import SECTION_NAMES
from perfuse.reports.text import Style
from perfuse.table import names
from perfuse.viewer.answers.heat import KINDS
from perfuse.viewer.answers.parameters import RequestError
from perfuse.viewer.routes import Routes
from perfuse.viewer.session import Session

Question = tuple[str, Callable[[], Any]]

FUNCTION = "the function that most frames are of"
"""Stands for its name."""
REPORT_OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"--tree": True},
    {"--tree": True, "--depth": 3, "--percent-limit": 1.0},
    {"--inverted": True},
    {"--stacks": True},
    {"--callers": FUNCTION},
    {"--callees": FUNCTION},
    {"--function": FUNCTION},
    {"--group": True},
    {"--graph": True},
    {"--per-thread": True},
    {"--recursive-only": True},
    {"--llvm-compat": True},
    {"--format": "csv"},
    {"--longer-than": 1000},
    {"--caller": FUNCTION},
    {"--slowest": "*"},
    {"--type": "*"},
    {"--event": "retained", "--tree": True},
    {"--event": "allocated-bytes", "--by": "function"},
    {"--find": ("S", "64")},
    {"--frames": 2, "--stacks": True},
    *({"--section": (name,)} for name in SECTION_NAMES),
    {"--section": SECTION_NAMES, "--stacks": True},
    *({"--by": by} for by in (*STACK_GROUPINGS, "cpu")),
    *({"--sort": order} for order in dict.fromkeys((*ORDERS, *STACK_VIEW_ORDERS, "bytes"))),
)


def questions(profile: pf.Profile, folder: Path) -> Iterator[Question]:
    """Every question, in an order that does not depend on the answers.

    Args:
        profile: The profile.
        folder: A folder for files that are written.
    """
    yield from _facts(profile)
    function = _most_frequent(profile)
    for options in REPORT_OPTIONS:
        named = {flag: function if value == FUNCTION else value for flag, value in options.items()}
        yield f"report {options}", lambda options=named: report(profile, options)
    for name in names():
        yield f"table {name}", lambda name=name: table(profile, name)
    for target in TARGETS:
        for output in target.outputs:
            yield f"export {target.name} ({output})", lambda t=target, o=output: exported(profile, t, o, folder)
        if "inverted" in target.options(target.outputs[0]):
            yield f"export {target.name} inverted", lambda t=target: exported(profile, t, "file", folder, inverted=True)
    for by in GROUPINGS:
        yield f"diff by {by}", lambda by=by: graph(profile, by)
    yield from _parts(profile)
    yield from _functions(profile)
    yield from _pages(profile)


def _most_frequent(profile: pf.Profile) -> str:
    query = "SELECT name FROM functions JOIN {} USING (function_id) GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1"
    for name in ("frames", "call_events", "code_objects"):
        if found := profile.sql(query.format(name)).fetchall():
            return str(found[0][0])
    return "main"


def _facts(profile: pf.Profile) -> Iterator[Question]:
    yield "diagnostics", lambda: profile.diagnostics
    yield "joins", lambda: profile.joins
    yield "title", lambda: profile.title
    yield "span", lambda: profile.span_ns
    yield "unwinding", lambda: profile.unwinding
    yield "inputs", lambda: [(one.path, one.format, one.role, one.size_bytes) for one in profile.recordings]
    yield "clocks", lambda: [one.clock for one in profile.recordings]
    yield "summaries", lambda: [one.summary for one in profile.recordings]
    yield "findings", lambda: [list(one.findings()) for one in profile.recordings]
    yield "has", lambda: {name: profile.has(name) for name in names()}


def report(profile: pf.Profile, options: dict[str, Any], *, limit: int | None = None) -> tuple[str, str, str]:
    """Kind, JSON and text of a report: without a limit, of trees with one."""
    kind = choose_kind(profile, options)
    if limit is None:
        limit = 100 if options.keys() & {"--tree", "--inverted"} else 0
    built = kind.build(profile, {**options, "--limit": limit})
    return kind.name, json_text(built.as_json(), indent=None), "\n".join(built.lines(Style(False, 140)))


def table(profile: pf.Profile, name: str) -> Table:
    """A table as a query returns it, in one piece: Arrow's columns are compared in a tenth of the time of rows."""
    return Table.from_arrow(profile.sql(f"SELECT * FROM {name}")).combine_chunks()


def exported(profile: pf.Profile, target: Target, output: str, folder: Path, **options: Any) -> Any:
    """Digests of the files of an export, and its warnings."""
    folder.mkdir(exist_ok=True)
    out = folder / ("out" if output == "directory" else f"out{target.suffixes[0] if target.suffixes else ''}")
    if output == "directory":
        out.mkdir()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            profile.export(out, to=target.name, **options)
        files = sorted(one for one in folder.rglob("*") if one.is_file())
        digests = [(str(one.relative_to(folder)), hashlib.sha256(one.read_bytes()).hexdigest()) for one in files]
        return digests, [str(one.message) for one in caught]
    finally:
        for one in sorted(folder.rglob("*"), reverse=True):
            one.rmdir() if one.is_dir() else one.unlink()


def graph(profile: pf.Profile, by: str) -> Any:
    """What `diff` compares."""
    return function_graph(profile, edges=by == "function", nodes=by == "function", by=by)  # type: ignore[call-overload]


def _parts(profile: pf.Profile) -> Iterator[Question]:
    """A time, threads, filters of stacks."""

    def selections() -> Iterator[tuple[str, Callable[[], pf.Profile]]]:
        seconds = 0.0 if profile.span_ns is None else (profile.span_ns[1] - profile.span_ns[0]) / 1e9
        yield "first third", lambda: profile.between(0, seconds / 3)
        yield "middle", lambda: profile.between(seconds / 3, seconds / 2)
        threads = [tid for (tid,) in profile.sql("SELECT DISTINCT tid FROM threads ORDER BY 1 LIMIT 2").fetchall()]
        for number, tid in enumerate(threads):
            yield f"thread {number}", lambda tid=tid: profile.thread(tid)
        yield "only", lambda: profile.only("*a*")
        yield "hide", lambda: profile.hide("*a*")
        yield "jit_only", profile.jit_only
        yield "collapsed recursion", profile.collapse_recursion
        yield "during slices", lambda: profile.during("slice", "*")

    for name, part in selections():
        yield f"{name}: report", lambda part=part: report(part(), {})
        yield f"{name}: tree", lambda part=part: report(part(), {"--tree": True})
        yield f"{name}: samples", lambda part=part: table(part(), "samples")
        yield f"{name}: diff", lambda part=part: graph(part(), "function")
    yield "flame", lambda: profile.flame()._repr_html_()


def _functions(profile: pf.Profile) -> Iterator[Question]:
    """Machine code of some functions."""
    for number, function in enumerate(_some_functions(profile)):
        for intel in (False, True):
            yield f"annotate {number} {intel}", lambda f=function, intel=intel: annotated(profile, f, intel)


def _some_functions(profile: pf.Profile) -> list[str]:
    query = "SELECT function_id FROM frames WHERE function_id IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 5"
    found = profile.sql(query).fetchall()
    if not found:
        query = "SELECT function_id FROM code_objects GROUP BY 1 ORDER BY max(size_bytes) DESC, 1 LIMIT 5"
        found = profile.sql(query).fetchall()
    return [f"f{key}" for (key,) in found]


def annotated(profile: pf.Profile, function: str, intel: bool) -> str:
    """The machine code of all compilations of a function, with its source text."""
    found = profile.annotate(function, intel=intel)
    sources = SourceFiles(profile, (), found.build_id, [one.path for one in profile.recordings], "all")
    return json_text(annotation_json(found, [found.listing(one) for one in found.compilations], sources), indent=None)


def _pages(profile: pf.Profile) -> Iterator[Question]:
    """Answers to the page of `perfuse view`."""
    session = Session(lambda _progress: profile, [one.path for one in profile.recordings])
    opened: list[Exception | None] = []

    def ask(path: str, query: str) -> Any:
        if not opened:
            try:
                session.open_now()
                opened.append(None)
            except Exception as error:
                opened.append(error)
        try:
            return Routes(session).answer("GET", f"/api/{path}", query, b"").body
        except RequestError as error:
            return f"{error} {error.hint}"

    span = 0 if profile.span_ns is None else profile.span_ns[1] - profile.span_ns[0]
    part = f"from={span // 3}&to={span // 2}"
    asked = [
        *((name, "") for name in ("overview", "report", "timeline", "symbols", "files", "tables", "filters", "code")),
        *(("tree", query) for query in ("", "inverted=1", part)),
        *(("functions", query) for query in ("", "sort=total", part)),
        ("calls", ""),
        ("calls", "sort=name"),
        *(("tiles", f"k={k}&first=0&last=40&tracks=0,1,2") for k in (12, 18, 24)),
        ("slice", "track=0&depth=0&index=0"),
        ("neighbour", "track=0&depth=0&index=0&direction=next"),
        ("find", "q=a"),
        ("slowest", "symbol=0"),
        ("counters", ""),
        ("counters", "buckets=17"),
        *(("activity", f"by={by}&buckets=50") for by in ("thread", "origin", "tier")),
        *(("heat", f"kind={kind}") for kind in KINDS),
        ("code/timeline", ""),
        ("code/space", ""),
        ("heap/types", ""),
        ("heap/types", "since=0"),
        ("heap/dominated", ""),
        ("heap/growth", ""),
        ("heap/sites", ""),
        ("heap/tree", ""),
        ("heap/instances", "type_id=1"),
        ("heap/paths", "type_id=1"),
    ]
    for path, query in asked:
        yield f"view {path}?{query}", lambda path=path, query=query: ask(path, query)
    for number, function in enumerate(_some_functions(profile)[:2]):
        yield f"view annotate {number}", lambda function=function: ask("annotate", f"function={function}")


def answer_to(question: Callable[[], Any]) -> Any:
    """The answer, or the error; one that is not of perfuse is not an answer."""
    try:
        return question()
    except pf.PerfuseError as error:
        return f"{type(error).__name__}: {error} {error.hint}"
    except Exception as error:
        return error
