"""The report of a program on a managed runtime: the list of its sections, data, JSON, text."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from perfuse.analysis.profiles import UNSELECTED, read_selected
from perfuse.analysis.recorded import not_recorded
from perfuse.errors import require_known
from perfuse.reports.grid import Cell, fields
from perfuse.reports.grid import section as grid_section
from perfuse.reports.inputs import DiagnosticCount, Input, diagnostic_counts, input_text, inputs, summary_lines
from perfuse.reports.registry import Options, Report
from perfuse.reports.runtime.sections import RuntimeRequest, SectionContext
from perfuse.reports.text import Role, Style
from perfuse.reports.units import counted, duration_text
from perfuse.value_class import as_dict, value_class

if TYPE_CHECKING:
    from perfuse.profile import Profile


class SectionModule(Protocol):
    """What the module of a section defines."""

    def collect(self, context: SectionContext) -> Any:
        """The data of the section; None where there is none."""
        ...

    def lines(self, data: Any, request: RuntimeRequest, style: Style) -> Iterator[str]:
        """The data as text, line by line."""
        ...

    def as_json(self, data: Any) -> Any:
        """The data as in the documented JSON of `report --json`."""
        ...


@value_class
class Section:
    """A section of the report.

    Attributes:
        name: Its name in `--section`, in JSON, and of its module.
        about: What it reports, in one line.
        tables: It has data where one of these tables has rows.
        in_overview: Whether the overview includes it.
    """

    name: str
    about: str
    tables: tuple[str, ...]
    in_overview: bool = True

    def load(self) -> SectionModule:
        """Imports its module."""
        module: Any = importlib.import_module(f"perfuse.reports.runtime.{self.name}")
        return module  # type: ignore[no-any-return]


SECTIONS: tuple[Section, ...] = (
    Section("header", "fields of the file header", ("types",), in_overview=False),
    Section("samples", "where samples were taken: functions, threads, modules", ("samples", "callchains")),
    Section("calls", "how often methods were called, and how long they took", ("call_events", "call_sums")),
    Section("allocations", "what was allocated: by type, by place, by thread", ("allocations",)),
    Section("gc", "pauses, collections, the size of the heap, finalizers", ("slices", "object_moves")),
    Section("heap", "live objects in heap snapshots, what retains them, what grew", ("heap_snapshots",)),
    Section("handles", "handles that were created, and those never freed", ("gc_handles",)),
    Section("locks", "who waited for which lock, and how long", ("lock_events",)),
    Section("exceptions", "exceptions: where they were thrown, what handled them", ("exceptions",)),
    Section("counters", "counters: last values, and values over time", ("counter_samples",)),
    Section("coverage", "which statements were executed", ("coverage",)),
    Section("jit", "what was compiled, and when", ("code_objects",)),
    Section("threads", "threads, with all their names", ("types",)),
    Section("program", "domains, contexts, images, assemblies", ("types",), in_overview=False),
    Section("objects", "the history of single objects: --track, --find", ("types",), in_overview=False),
    Section("records", "records by kind", ("types",), in_overview=False),
)
"""Every section, in the order they are shown."""

SECTION_NAMES = tuple(section.name for section in SECTIONS)


@value_class
class RuntimeReport:
    """The report of a program on a managed runtime.

    Attributes:
        title: The recorded program.
        inputs: The files.
        start_ns: Time of the first event, in nanoseconds on the profile's clock.
        duration_ns: Time from the first to the last event.
        num_threads: Threads.
        request: The options it was built with.
        sections: The data of each section that has any, by name.
        not_recorded: How to record the requested sections that were not recorded, by name.
        empty: Requested sections that were recorded and of which nothing happened, or nothing is selected.
        is_ahead_of_time: Whether there are calls, and some code was compiled ahead of time, which records none.
        unknown_types: Sections with objects whose types only allocations state, which were not recorded: how to do it.
        diagnostics: Diagnostics of the files, by code.
    """

    title: str
    inputs: list[Input]
    start_ns: int
    duration_ns: int
    num_threads: int
    request: RuntimeRequest
    sections: dict[str, Any]
    not_recorded: dict[str, str]
    empty: list[str]
    is_ahead_of_time: bool
    unknown_types: dict[str, str]
    diagnostics: list[DiagnosticCount]

    def as_json(self) -> dict[str, Any]:
        """The contract of `report --json` for programs on a managed runtime."""
        return {
            "kind": "runtime",
            "title": self.title,
            "inputs": [as_dict(one) for one in self.inputs],
            "start_ns": self.start_ns,
            "duration_ns": self.duration_ns,
            "num_threads": self.num_threads,
            **{
                section.name: section.load().as_json(self.sections[section.name])
                for section in SECTIONS
                if section.name in self.sections
            },
            "not_recorded": self.not_recorded,
            "empty": self.empty,
            "is_ahead_of_time": self.is_ahead_of_time,
            "unknown_types": self.unknown_types,
            "diagnostics": [as_dict(one) for one in self.diagnostics],
        }


def build(profile: Profile, options: Options) -> Report:
    """Builds the report of a profile with logs of a managed runtime."""
    report = runtime_report(profile, request_of(options))
    return Report(report.as_json, partial(runtime_lines, report), profile.diagnostics)


def request_of(options: Options) -> RuntimeRequest:
    """The request that options of the command line stand for.

    Raises:
        UsageError: There is no section of a name that was given.
    """
    sections = tuple(require_known(name, SECTION_NAMES, "section") for name in options.get("--section", ()))
    kind, text = options.get("--find", (None, ""))
    if "--track" in options or kind:
        sections = (*sections, "objects")
    sort = options.get("--sort")
    return RuntimeRequest(
        sections=sections,
        limit=options["--limit"] or None,
        order="count" if sort == "count" else "bytes",
        call_order="self" if sort in (None, "bytes") else sort,
        stacks="--stacks" in options,
        frames=options.get("--frames") or None,
        track=options.get("--track", ()),
        find_bytes=int(text) if kind == "S" else None,
        find_type=text if kind == "T" else None,
    )


def runtime_report(profile: Profile, request: RuntimeRequest | None = None) -> RuntimeReport:
    """Collects the requested sections that have data; builds only the tables they need."""
    request = request or RuntimeRequest()
    context = SectionContext(profile, request)
    sections: dict[str, Any] = {}
    missing: dict[str, str] = {}
    empty: list[str] = []
    for section in _requested_sections(request):
        has_rows = any(profile.has(table) for table in section.tables)
        facts = section.load().collect(context) if has_rows else None
        if facts is not None:
            sections[section.name] = facts
        elif (how := not_recorded(profile, section.name, section.tables)) is not None:
            missing[section.name] = how
        else:
            empty.append(section.name)
    first, last = profile.span_ns or (0, 0)
    untyped = [name for name in sections if _has_unknown_types(name, sections[name])]
    how_to_type = not_recorded(profile, "allocations", ("allocations",)) if untyped else None
    return RuntimeReport(
        title=profile.title,
        inputs=inputs(profile),
        start_ns=first,
        duration_ns=last - first,
        num_threads=len(context.thread_labels),
        request=request,
        sections=sections,
        not_recorded=missing,
        empty=empty,
        is_ahead_of_time="calls" in sections and _is_ahead_of_time(profile),
        unknown_types=dict.fromkeys(untyped, how_to_type) if how_to_type is not None else {},
        diagnostics=diagnostic_counts(profile),
    )


def runtime_lines(report: RuntimeReport, style: Style) -> Iterator[str]:
    """The report, line by line."""
    yield style.paint(report.title, Role.TITLE)
    yield ""
    pairs: list[tuple[str, Cell]] = []
    files = [input_text(one) for one in report.inputs]
    pairs += [("file" if len(files) == 1 else "files" if i == 0 else "", text) for i, text in enumerate(files)]
    pairs.append(("over", f"{duration_text(report.duration_ns)}, {counted(report.num_threads, 'thread')}"))
    yield from fields(pairs, style)
    for section in SECTIONS:
        if section.name in report.sections:
            yield from section.load().lines(report.sections[section.name], report.request, style)
            if section.name == "calls" and report.is_ahead_of_time:
                yield ""
                yield "  methods compiled ahead of time record no calls: mono -O=-aot compiles them when they run"
            if how := report.unknown_types.get(section.name):
                yield f"  types are those of recorded allocations: record these, too: {how}"
    yield from _missing_lines(report, style)
    left = [section.name for section in SECTIONS if not section.in_overview and section.name != "objects"]
    if report.request.is_overview:
        yield ""
        yield style.paint(f"one section in full: --section NAME; not shown here: {', '.join(left)}", Role.FAINT)
    yield from summary_lines(report.diagnostics, style)


def _is_ahead_of_time(profile: Profile) -> bool:
    """Whether a runtime states the id of code that was compiled ahead of time, at any time."""
    ids = read_selected(profile, "instants", "ts_ns", kinds=["aot_id"], **UNSELECTED) if profile.has("instants") else ()
    return next(iter(ids), None) is not None


def _has_unknown_types(name: str, facts: Any) -> bool:
    """Whether the text of a section states `(unknown type)`."""
    if name == "exceptions":
        return any(type_name is None for type_name, _ in facts.by_type)
    if name == "locks":
        return any(one.type_name is None for one in facts.contention.by_type)
    return name == "gc" and any(one.type_name is None for one in facts.finalizers)


def _missing_lines(report: RuntimeReport, style: Style) -> Iterator[str]:
    """Sections without data: how to record them, and those of which nothing happened."""
    if report.not_recorded:
        yield from grid_section("Not recorded", style)
        yield from fields([(name, (how, Role.FAINT)) for name, how in report.not_recorded.items()], style)
    if report.empty:
        yield from grid_section("Nothing happened", style, "recorded, without an event in the selection")
        yield f"  {', '.join(report.empty)}"


def _requested_sections(request: RuntimeRequest) -> list[Section]:
    if request.is_overview:
        return [section for section in SECTIONS if section.in_overview]
    return [section for section in SECTIONS if section.name in request.sections]
