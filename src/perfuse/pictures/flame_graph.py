"""The flame graph that users hold: saves itself as a file, and displays itself in a notebook."""

import html
import os
from typing import Any

from perfuse.analysis.flame import FlameTree
from perfuse.declared_formats import name_of_content
from perfuse.errors import UsageError


def flame_target(path: str) -> str:
    """`html` or `svg`, by the suffix of a file name.

    Raises:
        UsageError: It has another suffix.
    """
    from perfuse.exporters import TARGETS

    name = name_of_content(path)
    for target in TARGETS:
        if target.name in ("html", "svg") and name.endswith(target.suffixes):
            return target.name
    raise UsageError(
        f"a flame graph is saved as .html or .svg, not as {path!r}",
        path=path,
        hint="end its name so (`perfuse flame --to` takes any name); browsers and Inkscape convert SVG to PNG, PDF",
    )


class FlameGraph(FlameTree):
    """A flame graph of a profile; displays itself in a notebook."""

    def save(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Writes a self-contained HTML page or an SVG picture, depending on the file name.

        Args:
            path: A name that ends in `.html` or `.svg`, optionally followed by `.gz`.
            options: Further options of the exporter: `perfuse.exporters.html`, `perfuse.exporters.svg`.

        Raises:
            UsageError: The name has another suffix.
            ExportError: The file cannot be written.
        """
        from perfuse.exporters import export

        export(self.profile, path, to=flame_target(os.fspath(path)), **self._options(), **options)

    def _options(self) -> dict[str, Any]:
        """The options of the exporters that give this flame graph."""
        samples = self.selection
        return {
            "inverted": self.inverted,
            "weight": self.metric,
            "event": samples.event or None,
            "threads": samples.threads,
            "processes": samples.processes,
            "time_ns": samples.time_ns,
        }

    def _repr_html_(self) -> str:
        from perfuse.exporters.html import page

        # A frame of its own separates the page's styles and scripts from the notebook's.
        content = html.escape(page(self))
        style = "width:100%;height:560px;border:0"
        return f'<iframe srcdoc="{content}" sandbox="allow-scripts" title="Flame graph" style="{style}"></iframe>'
