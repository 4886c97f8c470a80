"""A flame graph as an SVG picture without scripts, with the facts of each box in its tooltip."""

import html
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from arro3.core import Table

from perfuse.analysis.flame import FlameTree, Metric
from perfuse.analysis.profiles import SampleProfile
from perfuse.errors import require_in_range
from perfuse.exporters.contents import STACKS_OF_ONE_EVENT, note_other_events
from perfuse.exporters.palette import ORIGINS, SHADES, Colour, Origin, hexadecimal
from perfuse.exporters.source import no_samples_error
from perfuse.filters.names import module_name
from perfuse.reports.units import bytes_text, counted

ROW = 18
MARGIN = 12
HEAD = 50
FOOT = 34
# Advance widths of the fixed-width fonts below, in the sizes used.
CHARACTER = 6.63
CAPTION = 6.9
NARROWEST = 0.4

_STYLE = """
text { font: 11px ui-monospace, "DejaVu Sans Mono", "SFMono-Regular", Menlo, Consolas, monospace; }
text { fill: #1c2126; white-space: pre; }
.page { fill: #ffffff; } .title { font: 600 15px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
.quiet { font: 12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #656d76; }
.all { fill: #eceef1; }
"""
_DARK_STYLE = "text { fill: #f0f3f6; } .page { fill: #0d1117; } .quiet { fill: #9198a1; } .all { fill: #262c36; }"


@dataclass(frozen=True, slots=True)
class Box:
    """A box of the picture; lengths are in pixels.

    Attributes:
        depth: Row, 0 for the roots.
        left: Left edge.
        width: Width.
        symbol: Row of the table of symbols; None for the box of everything, and for callees that are too narrow to be
            drawn one by one.
        weight: Weight of its samples.
        samples: Number of samples.
    """

    depth: int
    left: float
    width: float
    symbol: int | None
    weight: int
    samples: int


CONTENTS = STACKS_OF_ONE_EVENT


def write(
    profile: SampleProfile,
    out: IO[bytes],
    *,
    inverted: bool = False,
    width: int = 1200,
    weight: Metric = "weight",
    event: str | None = None,
    threads: tuple[int, ...] | None = None,
    processes: tuple[int, ...] | None = None,
    time_ns: tuple[int, int] | None = None,
) -> None:
    """Writes a picture of a given width; its height depends on the depth of the stacks.

    Args:
        profile: The profile.
        out: A binary file object.
        inverted: Whether roots are the innermost functions and children their callers.
        width: Width in pixels, from 300 to 100,000. Boxes narrower than 0.4 pixels are one box together.
        weight: Meaning of widths: `weight` or `samples`.
        event: Name of an event; by default the one with the most samples.
        threads: Keys (`thread_id`) of threads; all by default.
        processes: Keys (`process_id`) of processes; all by default.
        time_ns: Start and end (not included) on the profile's clock.

    Raises:
        ExportError: There are no samples.
        UsageError: The profile has no such event, thread or process, or the width is out of range.
    """
    require_in_range(width, 300, 100_000, "width")
    flame = FlameTree.of(
        profile, inverted=inverted, weight=weight, event=event, threads=threads, processes=processes, time_ns=time_ns
    )
    if not flame.event.num_samples:
        raise no_samples_error(profile)
    if event is None:
        note_other_events(profile, flame.event.name)
    out.write(picture(flame, width).encode())


def picture(flame: FlameTree, width: int = 1200) -> str:
    """The picture of a flame graph."""
    inner = width - 2 * MARGIN
    by_samples = flame.metric == "samples"
    # The tree is pruned by weight, so with widths by samples all nodes are needed.
    tree = flame.tree(inverted=flame.inverted, min_share=0.0 if by_samples else NARROWEST / inner)
    symbols = _symbols(Table.from_arrow(tree.symbols()))
    whole = tree.total_samples if by_samples else tree.total_weight
    rows = _rows(Table.from_arrow(tree.nodes()))
    everything = Box(0, MARGIN, inner, None, tree.total_weight, tree.total_samples)
    boxes = [everything, *_boxes(rows, everything, inner / whole if whole else 0.0, by_samples)]
    depth = max(box.depth for box in boxes) + 1
    height = HEAD + depth * ROW + FOOT
    unit = flame.event.unit
    has_counts = flame.is_of_samples
    counts = f"{counted(tree.total_samples, 'sample')} · " if has_counts else ""
    totals = f"{counts}{weight_text(tree.total_weight, unit)} · {flame.event.name}"
    title = _fitted(visible(flame.title), inner - CAPTION * (len(totals) + 4), 8.6)
    size = f'width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" role="img">',
        f"<title>{html.escape(visible(flame.title))}: flame graph</title>",
        f"<style>{_STYLE}{_colours(lambda origin: origin.light)}",
        f"@media (prefers-color-scheme: dark) {{ {_DARK_STYLE}{_colours(lambda origin: origin.dark)} }}</style>",
        f'<rect class="page" {size} rx="6"/>',
        f'<text class="title" x="{MARGIN}" y="28">{html.escape(title)}</text>',
        f'<text class="quiet" x="{width - MARGIN}" y="28" text-anchor="end">{html.escape(totals)}</text>',
    ]
    parts.extend(_draw(box, symbols, whole, unit, by_samples, has_counts) for box in boxes)
    used = {symbols[box.symbol]["origin"] for box in boxes if box.symbol is not None}
    parts.append(_legend(used, width, height))
    parts.append("</svg>\n")
    return "\n".join(parts)


def _symbols(table: Table) -> list[dict[str, Any]]:
    names = ("name", "short_name", "module", "tier", "origin", "path", "line")
    return [
        dict(zip(names, row, strict=True)) for row in zip(*(table[name].to_pylist() for name in names), strict=True)
    ]


@dataclass(slots=True)
class _Open:
    """What is not drawn so far of the callees of a box."""

    depth: int
    left: float
    weight: int
    samples: int


def _rows(table: Table) -> Iterator[tuple[int | None, int, int, int, int, int]]:
    """Each node's parent, symbol, weight, samples, and both without those of its callees."""
    columns = ("parent_node_id", "symbol_id", "total_weight", "total_samples", "self_weight", "self_samples")
    return zip(*(table[name].to_pylist() for name in columns), strict=True)


def _boxes(
    rows: Iterator[tuple[int | None, int, int, int, int, int]], everything: Box, scale: float, by_samples: bool
) -> Iterator[Box]:
    """Boxes of nodes in preorder: each starts at the end of its preceding sibling; the remainder is the last one."""
    roots = _Open(1, everything.left, everything.weight, everything.samples)
    nodes: list[_Open | None] = []
    for parent, symbol, weight, samples, self_weight, self_samples in rows:
        caller = roots if parent is None else nodes[parent]
        width = (samples if by_samples else weight) * scale
        if caller is None or width < NARROWEST:
            nodes.append(None)
            continue
        yield Box(caller.depth, caller.left, width, symbol, weight, samples)
        nodes.append(_Open(caller.depth + 1, caller.left, weight - self_weight, samples - self_samples))
        caller.left += width
        caller.weight -= weight
        caller.samples -= samples
    for caller in (roots, *nodes):
        if caller is not None:
            width = (caller.samples if by_samples else caller.weight) * scale
            if width >= NARROWEST:
                yield Box(caller.depth, caller.left, width, None, caller.weight, caller.samples)


def _draw(box: Box, symbols: list[dict[str, Any]], whole: int, unit: str, by_samples: bool, has_counts: bool) -> str:
    top = HEAD + box.depth * ROW - ROW // 2
    gap = 1 if box.width > 3 else 0
    value = box.samples if by_samples else box.weight
    share = f"{100 * value / whole if whole else 0:.2f}%"
    facts = [f"{share} · {weight_text(box.weight, unit)}"]
    if has_counts:
        facts[0] += f" · {counted(box.samples, 'sample')}"
    if box.symbol is None:
        name = "boxes too narrow to be drawn one by one" if box.depth else "all"
        short, style = "narrower" if box.depth else "all", "all"
    else:
        symbol = symbols[box.symbol]
        name, short = visible(symbol["name"]), visible(symbol["short_name"])
        style = f"{symbol['origin']}-{_shade(symbol['name'])}"
        facts.append(_LABELS[symbol["origin"]] + (f" ({symbol['tier']})" if symbol["tier"] else ""))
        if symbol["path"]:
            facts.append(visible(symbol["path"]) + (f":{symbol['line']}" if symbol["line"] else ""))
        elif symbol["module"]:
            facts.append(visible(module_name(symbol["module"])))
    tooltip = html.escape("\n".join([name, *facts]), quote=False)
    size = f'width="{max(box.width - gap, 0.3):.1f}" height="{ROW - 1}"'
    rect = f'<rect class="{style}" x="{box.left:.1f}" y="{top}" {size} rx="1.5"/>'
    label = _fitted(name, box.width - 7, CHARACTER, short=short)
    text = f'<text x="{box.left + 3:.1f}" y="{top + 12.5}">{html.escape(label, quote=False)}</text>' if label else ""
    return f"<g><title>{tooltip}</title>{rect}{text}</g>"


_LABELS = {origin.name: origin.label for origin in ORIGINS}


def _legend(used: set[str], width: int, height: int) -> str:
    parts = []
    left, top = float(MARGIN), height - 21
    for origin in ORIGINS:
        if origin.name not in used or left > width - 100:
            continue
        parts.append(f'<rect class="{origin.name}-1" x="{left:.0f}" y="{top}" width="11" height="11" rx="2"/>')
        parts.append(f'<text class="quiet" x="{left + 16:.0f}" y="{top + 10}">{origin.label}</text>')
        left += 16 + CAPTION * len(origin.label) + 14
    return "".join(parts)


def _colours(of: Callable[[Origin], Colour]) -> str:
    styles = []
    for origin in ORIGINS:
        lightness, chroma, hue = of(origin)
        for nth, shade in enumerate(SHADES):
            styles.append(f".{origin.name}-{nth} {{ fill: {hexadecimal(lightness + shade, chroma, hue)}; }} ")
    return "".join(styles)


def _shade(name: str) -> int:
    return sum(name.encode()) % 3


def weight_text(weight: int, unit: str) -> str:
    """A weight with its unit: `1.25 s`, `12,000 events`, `1.9 MiB`."""
    if unit == "bytes":
        return bytes_text(weight)
    if unit != "ns":
        return f"{weight:,} {unit}"
    for size, name in ((10**9, "s"), (10**6, "ms"), (10**3, "µs")):
        if weight >= size:
            value = weight / size
            return f"{int(value + 0.5):,} {name}" if value >= 100 else f"{value:.3g} {name}"
    return f"{weight} ns"


def visible(text: str) -> str:
    """A name with escapes for invisible characters: controls, which XML forbids, and marks of direction."""
    if text.isprintable():
        return text
    return "".join(
        f"\\u{{{ord(c):x}}}" if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") else c for c in text
    )


def _columns_of(character: str) -> int:
    """Columns of a character in a font of equal widths."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _fitted(text: str, width: float, character: float, *, short: str | None = None) -> str:
    """The part of a text that fits a width; of its short form where the text does not fit.

    Empty where not even three characters and an ellipsis fit.
    """
    room = int(width / character)
    columns = [1] * len(text) if text.isascii() else [_columns_of(c) for c in text]
    if sum(columns) <= room:
        return text
    if short is not None and short != text:
        return _fitted(short, width, character)
    if room < 4:
        return ""
    end, used = 0, 1
    while used + columns[end] <= room:
        used += columns[end]
        end += 1
    return text[:end] + "…"
