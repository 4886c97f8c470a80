"""The list of sections: a section is a line here and a file of its own."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from perfuse.reports.runtime.gathering import Gathering, RuntimeRequest
from perfuse.reports.style import Style


class SectionModule(Protocol):
    """What the file of a section has."""

    def gather(self, of: Gathering) -> Any:
        """The section's facts; None where there is nothing to tell."""
        ...

    def lines(self, told: Any, asked: RuntimeRequest, style: Style) -> Iterator[str]:
        """The facts for a terminal."""
        ...

    def as_json(self, told: Any) -> Any:
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
    Section("heap", "what stays alive, and what keeps it alive", ("heap_snapshots",)),
    Section("gc", "pauses, collections, the size of the heap, finalizers", ("slices", "object_moves")),
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

NAMES = tuple(section.name for section in SECTIONS)
