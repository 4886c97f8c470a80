"""The report of a program on a managed runtime: the list of its sections, data, JSON, text."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from perfuse.errors import require_known
from perfuse.reports.grid import Cell, fields
from perfuse.reports.inputs import DiagnosticCount, Input, diagnostic_counts, input_text, inputs, summary_lines
from perfuse.reports.registry import Options, Report
from perfuse.reports.runtime.sections import RuntimeRequest, SectionContext
from perfuse.reports.text import Role, Style
from perfuse.reports.units import counted, duration_text

if TYPE_CHECKING:
    from perfuse.profile import Profile


class SectionModule(Protocol):
    """What the file of a section has."""

    def collect(self, context: SectionContext) -> Any:
        """The section's facts; None where there is nothing to tell."""
        ...

    def lines(self, sections: Any, request: RuntimeRequest, style: Style) -> Iterator[str]:
        """The facts for a terminal."""
        ...

    def as_json(self, sections: Any) -> Any:
        """The facts as the contract of `report --json` has them."""
        ...


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the report.

    Attributes:
        name: What `--section` takes, and its name in JSON.
        about: One line: what it tells.
        tables: It has something to tell where one of these has rows.
        in_overview: Whether it is shown where no section is asked for.
    """

    name: str
    about: str
    tables: tuple[str, ...]
    in_overview: bool = True

    def load(self) -> SectionModule:
        """Its file."""
        module: Any = importlib.import_module(f"perfuse.reports.runtime.{self.name}")
        return module  # type: ignore[no-any-return]


SECTIONS: tuple[Section, ...] = (
    Section("header", "what the file says of itself", ("types",), in_overview=False),
    Section("samples", "where samples were taken: functions, threads, modules", ("samples", "callchains")),
    Section("calls", "how often methods were called, and how long they took", ("call_events", "call_sums")),
    Section("allocations", "what was allocated: by type, by place, by thread", ("allocations",)),
    Section("gc", "pauses, collections, the size of the heap, finalizers", ("slices", "object_moves")),
    Section("heap", "what is alive in heap shots, what keeps it so, what grew", ("heap_snapshots",)),
    Section("handles", "handles that were made, and those never freed", ("gc_handles",)),
    Section("locks", "who waited for which lock, and how long", ("lock_events",)),
    Section("exceptions", "what was thrown and where, and what handled it", ("exceptions",)),
    Section("counters", "counters: last values, and on the way there", ("counter_samples",)),
    Section("coverage", "which statements were run", ("coverage",)),
    Section("jit", "what was compiled, and when", ("code_objects",)),
    Section("threads", "threads, with all their names", ("types",)),
    Section("program", "domains, contexts, images, assemblies", ("types",), in_overview=False),
    Section("objects", "the lives of single objects: --track, --find", ("types",), in_overview=False),
    Section("records", "what the file is made of", ("types",), in_overview=False),
)
"""Every section, in the order they are shown."""

SECTION_NAMES = tuple(section.name for section in SECTIONS)


@dataclass(frozen=True, slots=True)
class RuntimeReport:
    """Everything `perfuse report` tells of a program on a managed runtime.

    Attributes:
        title: What was recorded.
        inputs: The files.
        start_ns: Time of the first event, on the profile's clock.
        duration_ns: From there to the last.
        num_threads: Threads.
        request: What was asked for.
        sections: The facts of each section that has any.
        diagnostics: Departures found in the files.
    """

    title: str
    inputs: list[Input]
    start_ns: int
    duration_ns: int
    num_threads: int
    request: RuntimeRequest
    sections: dict[str, Any]
    diagnostics: list[DiagnosticCount]

    def as_json(self) -> dict[str, Any]:
        """The contract of `report --json` for programs on a managed runtime."""
        return {
            "kind": "runtime",
            "title": self.title,
            "inputs": [asdict(one) for one in self.inputs],
            "start_ns": self.start_ns,
            "duration_ns": self.duration_ns,
            "num_threads": self.num_threads,
            **{
                section.name: section.load().as_json(self.sections[section.name])
                for section in SECTIONS
                if section.name in self.sections
            },
            "diagnostics": [asdict(one) for one in self.diagnostics],
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
    """Gathers the sections that were asked for and have something to tell; only the tables they need are made."""
    request = request or RuntimeRequest()
    context = SectionContext(profile, request)
    sections = {}
    for section in _wanted(request):
        if any(profile.has(table) for table in section.tables):
            facts = section.load().collect(context)
            if facts is not None:
                sections[section.name] = facts
    first, last = profile.span_ns or (0, 0)
    return RuntimeReport(
        title=profile.title,
        inputs=inputs(profile),
        start_ns=first,
        duration_ns=last - first,
        num_threads=len(context.thread_labels),
        request=request,
        sections=sections,
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
    left = [section.name for section in SECTIONS if not section.in_overview and section.name != "objects"]
    if report.request.is_overview:
        yield ""
        yield style.paint(f"one section in full: --section NAME; not shown here: {', '.join(left)}", Role.FAINT)
    yield from summary_lines(report.diagnostics, style)


def _wanted(request: RuntimeRequest) -> list[Section]:
    if request.is_overview:
        return [section for section in SECTIONS if section.in_overview]
    return [section for section in SECTIONS if section.name in request.sections]
