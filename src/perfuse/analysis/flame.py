"""Flame graphs: the call tree of the samples, as a picture that answers questions."""

import html
import os
from dataclasses import dataclass
from typing import Any, Literal

from perfuse import _core
from perfuse.analysis.sampled import Event, Sampled, Selection, call_tree, chosen_event
from perfuse.errors import UsageError

Metric = Literal["weight", "samples"]


@dataclass(frozen=True)
class FlameGraph:
    """A flame graph of a profile; shows itself in a notebook.

    Attributes:
        profile: Whose samples.
        event: Which of its events.
        selection: Which samples.
        inverted: Whether it starts from the functions that ran and goes to their callers.
        metric: What widths mean: `weight` (time, for clock events) or `samples`.
    """

    profile: Sampled
    event: Event
    selection: Selection
    inverted: bool = False
    metric: Metric = "weight"

    @classmethod
    def of(
        cls,
        profile: Sampled,
        *,
        inverted: bool = False,
        weight: Metric = "weight",
        event: str | None = None,
        threads: tuple[int, ...] | None = None,
        processes: tuple[int, ...] | None = None,
        time_ns: tuple[int, int] | None = None,
    ) -> "FlameGraph":
        """A flame graph of the samples that pass the filters.

        Args:
            profile: Whose samples.
            inverted: Whether to start from the functions that ran and go to their callers.
            weight: What widths mean: `weight` or `samples`.
            event: Event; by default the one with the most samples.
            threads: Keys (`thread_id`) of threads; all by default.
            processes: Keys (`process_id`) of processes; all by default.
            time_ns: Start and end (not included) on the profile's clock.

        Raises:
            UsageError: The profile has no such event, or `weight` is neither of the two.
        """
        if weight not in ("weight", "samples"):
            raise UsageError(f"weight is one of weight, samples, not {weight!r}", field="weight")
        found = chosen_event(profile, event)
        return cls(profile, found, Selection(found.name, threads, processes, time_ns), inverted, weight)

    @property
    def title(self) -> str:
        """What was recorded."""
        return self.profile.title

    def tree(self, *, inverted: bool = False, split_threads: bool = False, min_share: float = 0.0) -> _core.CallTree:
        """The call tree.

        Args:
            inverted: Whether children are callers.
            split_threads: Whether each thread has roots of its own.
            min_share: Nodes lighter than this share (0 to 1) of the whole are left out.
        """
        return call_tree(
            self.profile, self.selection, inverted=inverted, split_threads=split_threads, min_share=min_share
        )

    def save(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Writes it as a self-contained HTML page or an SVG picture, as the file name tells.

        Args:
            path: A name that ends in `.html` or `.svg`, and perhaps `.gz`.
            options: What the exporter takes besides: `perfuse.exporters.html`, `perfuse.exporters.svg`.

        Raises:
            UsageError: The name ends in something else.
            ExportError: The file cannot be written.
        """
        from perfuse.exporters import export, target_for

        if target_for(os.fspath(path)).name not in ("html", "svg"):
            raise UsageError(
                f"a flame graph is saved as .html or .svg, not as {os.fspath(path)!r}", path=os.fspath(path)
            )
        export(self.profile, path, **self._options(), **options)

    def _options(self) -> dict[str, Any]:
        chosen = self.selection
        return {
            "inverted": self.inverted,
            "weight": self.metric,
            "event": chosen.event or None,
            "threads": chosen.threads,
            "processes": chosen.processes,
            "time_ns": chosen.time_ns,
        }

    def _repr_html_(self) -> str:
        from perfuse.exporters.html import page

        # A frame of its own keeps the page's styles and scripts apart from the notebook's.
        content = html.escape(page(self))
        style = "width:100%;height:560px;border:0"
        return f'<iframe srcdoc="{content}" sandbox="allow-scripts" title="Flame graph" style="{style}"></iframe>'
