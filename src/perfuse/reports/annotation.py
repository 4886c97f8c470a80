"""Machine code of a function with its samples, as text and as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from perfuse import _core
from perfuse.analysis.annotation import Annotation, Compilation, Listing
from perfuse.analysis.instructions import CALLS, Instruction, inner_target
from perfuse.analysis.sampled import Event
from perfuse.analysis.source_files import SourceFiles
from perfuse.filters.names import function_text, last_part
from perfuse.reports.grid import Cell, Column, grid
from perfuse.reports.jump_arrows import jump_arrows
from perfuse.reports.names import module_text, where_text
from perfuse.reports.text import Role, Style, cut, pad, printable
from perfuse.reports.units import bytes_text, count_text, counted, duration_text, hex_text

CONTEXT = 6
"""Instructions that are shown before and after one with samples."""
PLAIN_LIMIT = 100
"""Instructions that are shown of code without samples."""
SHOWN_COMPILATIONS = 12


@dataclass(frozen=True, slots=True)
class ListingOptions:
    """What a listing shows.

    Attributes:
        context: Instructions before and after one with samples; None for all.
        sources: Where source lines are looked up; None for none.
    """

    context: int | None = CONTEXT
    sources: SourceFiles | None = None


def skid_text(event: Event) -> str:
    """How far the address of a sample may be from the instruction that caused it."""
    modifier = re.search(r"(?:^[^/:]+|/[^/]*/):?([a-zA-Z]+)$", event.name) if re.search(r"[:/]", event.name) else None
    precise = modifier[1].count("p") if modifier else 0
    if "clock" in event.name:
        return (
            "samples are at the instruction that the timer interrupted: a slow instruction often delays it,"
            " and the next one has its samples"
        )
    if precise >= 2:
        return "samples are precise: at the instruction, or the one after it where the processor has no better"
    if precise == 1:
        return "samples are at a constant distance after the instruction that caused them"
    return "samples may be some instructions after the one that caused them: record with :pp for precise ones"


def annotation_lines(
    annotation: Annotation, listings: Iterable[Listing], options: ListingOptions, style: Style
) -> Iterator[str]:
    """The report: the function, its compilations, and the code of some of them."""
    shown = list(listings)
    function = annotation.function
    facts = [where_text(function), function.kind, function.handle]
    yield _title(function_text(printable(function.name)), "  ".join(printable(one) for one in facts if one), style)
    if annotation.event is not None:
        samples = sum(one.self_samples for one in annotation.compilations)
        in_it = f"{counted(samples, 'sample')} of {printable(annotation.event.name)} in it"
        yield f"{in_it}{_elsewhere(annotation, samples)}"
        if annotation.selected_samples is not None:
            left, recorded = annotation.selected_samples
            yield f"selected: {count_text(left)} of {counted(recorded, 'sample')}, by {annotation.selection}"
        yield skid_text(annotation.event)
    else:
        yield "no samples: machine code only"
    yield ""
    yield from _compilation_lines(annotation, [one.compilation for one in shown], style)
    for listing in shown:
        yield ""
        yield from _listing_lines(listing, options, style)


def _elsewhere(annotation: Annotation, samples: int) -> str:
    """The events that have samples in a function without samples of the shown one."""
    others = {} if samples else annotation.samples_of_other_events()
    texts = ((printable(name), count_text(number)) for name, number in others.items())
    return "".join(f"; {number} of {name} (--event {name})" for name, number in texts)


def _title(text: str, note: str, style: Style) -> str:
    return style.paint(text, Role.TITLE) + style.paint(f"  {note}", Role.FAINT)


def _compilation_lines(annotation: Annotation, shown: Sequence[Compilation], style: Style) -> Iterator[str]:
    found = annotation.compilations
    span = annotation.span_ns
    # Those with samples or on show; the others are counted.
    ranked = sorted(found, key=lambda one: (one not in shown, -one.self_weight, -one.total_weight, -one.number))
    listed = sorted(ranked[:SHOWN_COMPILATIONS], key=lambda one: one.number)
    rows: list[list[Cell]] = []
    for one in listed:
        life = [_time(one.create_ns, span), _time(one.retire_ns, span)]
        moved = f"moved {len(one.places) - 1} times" if len(one.places) > 2 else "moved" if one.places[1:] else ""
        counts = ["", ""] if annotation.event is None else [count_text(one.self_samples), count_text(one.total_samples)]
        mark = "►" if one in shown else ""
        rows.append(
            [
                mark,
                str(one.number),
                one.handle or "",
                one.tier or one.kind,
                *life,
                bytes_text(one.size_bytes),
                hex_text(one.address),
                *counts,
                moved,
            ]
        )
    right = {"#", "from", "until", "size", "self", "total"}
    titles = ["", "#", "code", "tier", "from", "until", "size", "address", "self", "total", ""]
    used = [index for index, title in enumerate(titles) if index == 1 or any(row[index] for row in rows)]
    columns = [Column(titles[index], right=titles[index] in right) for index in used]
    yield from grid(columns, [[row[index] for index in used] for row in rows], style, indent="  ")
    left_out = len(found) - len(listed)
    if left_out:
        rest = sum(one.self_samples for one in ranked[SHOWN_COMPILATIONS:])
        more = f", {counted(rest, 'sample')}" if annotation.event is not None else ""
        yield style.paint(f"  … {left_out:,} more compilations{more} (--json lists all)", Role.FAINT)


def _time(ns: int | None, span: tuple[int, int] | None) -> str:
    """Time since the start of the recording, or since boot where that is unknown."""
    return "" if ns is None else f"{(ns - (span[0] if span else 0)) / 1e9:.3f} s"


def _listing_lines(listing: Listing, options: ListingOptions, style: Style) -> Iterator[str]:
    one = listing.compilation
    name = " ".join(part for part in (one.handle, one.tier or one.kind) if part)
    facts = [f"{bytes_text(one.size_bytes)} at {hex_text(one.address)}"]
    if one.source:
        facts.append(("as dumped in " if one.code_object_id is not None else "from ") + printable(one.source))
    yield _title(name, ", ".join(facts), style)
    for place in one.places if len(one.places) > 1 else ():
        until = "" if place.until_ns is None else f", until {duration_text(place.until_ns - one.places[0].from_ns)}"
        since = duration_text(place.from_ns - one.places[0].from_ns)
        yield f"  at {hex_text(place.address)} from {since} after it was created{until}: " + counted(
            place.self_samples, "sample"
        )
    if listing.missing:
        yield f"  {listing.missing}"
    if listing.outside_samples and listing.instructions:
        yield f"  {counted(listing.outside_samples, 'sample')} outside of the recorded bytes"
    if not listing.instructions:
        return
    instruction_set = _core.instruction_set(one.machine)
    if instruction_set == "bytes":
        yield "  no disassembler for this machine: bytes"
    elif listing.num_bad_bytes:
        yield f"  {bytes_text(listing.num_bad_bytes)} are no instructions: constants, or tables"
    yield from _source_notes(listing, options)
    yield from _InstructionLines(listing, options, style).lines()


def _source_notes(listing: Listing, options: ListingOptions) -> Iterator[str]:
    """Where source lines are from, and which files were not found."""
    if options.sources is None:
        return
    paths = list(dict.fromkeys(one.path for one in listing.instructions if one.path))
    found = {path: options.sources.get(path) for path in paths}
    for path, source in found.items():
        if source is not None and source.origin != path:
            origin = "the recording" if source.origin == "recording" else printable(source.origin)
            yield f"  lines of {printable(path)} are from {origin}"
    unlike = [path for path in found if path in options.sources.unlike_their_code]
    for path in unlike:
        yield f"  lines are those of JavaScript that was made of {printable(last_part(path))}, not of this file"
    missing = [path for path, source in found.items() if source is None and path not in unlike]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        yield f"  source not found: {printable(missing[0])}{more} (--source-dir DIR)"


class _InstructionLines:
    def __init__(self, listing: Listing, options: ListingOptions, style: Style) -> None:
        self.listing = listing
        self.options = options
        self.style = style
        self.all = listing.instructions
        self.weight = listing.compilation.self_weight
        self.sampled = any(one.total_samples for one in self.all)
        self.has_total = any(one.total_samples > one.self_samples for one in self.all)
        self.loop_at = {loop.first: loop for loop in listing.loops}
        last = self.all[-1].offset
        self.offset_width = max(len(f"{last:x}"), 2)
        self.count_width = max([len(count_text(one.total_samples)) for one in self.all] + [5])

    def lines(self) -> Iterator[str]:
        """The heading, then instructions in order, with source lines before those that they belong to."""
        shown = self._shown()
        numbers = [number for number, is_shown in enumerate(shown) if is_shown]
        row_of = {self.all[number].offset: row for row, number in enumerate(numbers)}
        address, size = self.listing.compilation.address, self.listing.compilation.size_bytes
        jumps = []
        for row, number in enumerate(numbers):
            target = inner_target(self.all[number], address, size)
            if target in row_of:
                jumps.append((row, row_of[target]))
        arrows, not_drawn = jump_arrows(jumps, len(numbers))
        yield self.style.paint(self._heading(len(arrows[0]) if arrows else 0), Role.FAINT)
        position: tuple[Any, ...] | None = None
        gap: list[Instruction] = []
        rows = iter(arrows)
        for number, one in enumerate(self.all):
            if not shown[number]:
                gap.append(one)
                continue
            if gap:
                yield self._gap(gap)
                gap, position = [], None
            here = (one.path, one.line, tuple(call.name for call in one.inlined))
            if here != position:
                yield from self._source_lines(one, position)
                position = here
            yield self._instruction(one, next(rows))
        if gap:
            yield self._gap(gap)
        if not_drawn:
            yield self.style.paint(f"  {counted(not_drawn, 'jump')} without an arrow", Role.FAINT)

    def _shown(self) -> list[bool]:
        context = self.options.context
        if context is None:
            return [True] * len(self.all)
        if not self.sampled:
            return [number < PLAIN_LIMIT for number in range(len(self.all))]
        shown = [False] * len(self.all)
        for number, one in enumerate(self.all):
            if one.total_samples:
                for near in range(max(number - context, 0), min(number + context + 1, len(self.all))):
                    shown[near] = True
        return shown

    def _heading(self, arrow_width: int) -> str:
        cells = self._counts("share", "self", "total") if self.sampled else ""
        return f"{cells}  {' ' * arrow_width} {'offset':>{self.offset_width}}  instruction".rstrip()

    def _counts(self, share: str, self_samples: str, total: str) -> str:
        text = f"  {share:>6}  {self_samples:>{self.count_width}}"
        return text + (f"  {total:>{self.count_width}}" if self.has_total else "")

    def _gap(self, gap: Sequence[Instruction]) -> str:
        samples = sum(one.self_samples for one in gap)
        more = f", {counted(samples, 'sample')}" if samples else ""
        hint = "" if self.sampled else " (--limit 0 shows all)"
        return self.style.paint(f"{self._blank()}  … {counted(len(gap), 'instruction')}{more}{hint}", Role.FAINT)

    def _blank(self) -> str:
        return self._counts("", "", "") if self.sampled else ""

    def _source_lines(self, one: Instruction, before: tuple[Any, ...] | None) -> Iterator[str]:
        names = tuple(call.name for call in one.inlined)
        inlined = names if before is None or before[2] != names else ()
        for depth, call in enumerate(one.inlined if inlined else ()):
            at = f" at {module_text(call.call_path or '')}:{call.call_line}" if call.call_line else ""
            label = f"{'  ' * depth}inlined {function_text(printable(call.name))}{printable(at)}"
            yield self._note(label, Role.JIT)
        if one.path is None and one.line is None:
            return
        source = self.options.sources.get(one.path) if self.options.sources and one.path else None
        text = source.line(one.line) if source else None
        place = f"{module_text(one.path or '?')}:{one.line}"
        if text is None:
            yield self._note(printable(place), Role.FAINT)
        else:
            shown = printable(text.replace("\t", "    ").rstrip())
            yield self._note(f"{printable(place)}  {shown}", Role.NAME)

    def _note(self, text: str, role: Role) -> str:
        blank = self._blank() + "  "
        if self.style.width is not None:
            text = cut(text, max(self.style.width - len(blank), 20))
        return blank + self.style.paint(text, role)

    def _instruction(self, one: Instruction, arrow: str) -> str:
        counts = ""
        if self.sampled:
            share = f"{one.self_weight / self.weight:.1%}" if one.self_samples and self.weight else ""
            numbers = [count_text(value) if value else "" for value in (one.self_samples, one.total_samples)]
            counts = self._counts(share, *numbers)
            if one.self_samples:
                counts = self.style.paint(counts, Role.TITLE)
        code = code_text(one, self.listing.compilation)
        notes = [note for note in (self._loop(one), callee_text(one)) if note]
        line = f"  {arrow} {one.offset:>{self.offset_width}x}  {printable(code)}"
        if notes:
            line = pad(line, 50) + self.style.paint("   " + printable("; ".join(notes)), Role.FAINT)
        return (counts + line).rstrip()

    def _loop(self, one: Instruction) -> str:
        loop = self.loop_at.get(one.offset)
        if loop is None:
            return ""
        share = f", {loop.self_weight / self.weight:.0%}" if self.weight else ""
        return f"loop {loop.first:x} to {loop.last:x}: {counted(loop.self_samples, 'sample')}{share}"


def code_text(one: Instruction, compilation: Compilation) -> str:
    """The text of an instruction: its operands aligned, and the name or the offset of its target."""
    text, comment = one.text, ""
    if one.is_direct and one.target_address is not None:
        offset = one.target_address - compilation.address
        inside = 0 <= offset < compilation.size_bytes
        head, _, _ = text.rpartition(" ")
        text = f"{head} {offset:x}" if inside else f"{head} {one.target_name or hex_text(one.target_address)}"
    elif one.target_address is not None:
        offset = one.target_address - compilation.address
        inside = 0 <= offset < compilation.size_bytes
        comment = f"+{offset:x}" if inside else one.target_name or hex_text(one.target_address)
    elif one.target_name:
        comment = one.target_name
    mnemonic, _, operands = text.partition(" ")
    shown = f"{mnemonic:<6} {operands}" if operands else mnemonic
    return f"{shown}  # {comment}" if comment else shown


def callee_text(one: Instruction) -> str:
    """What sampled stacks have as called by an instruction."""
    if not one.callees:
        return ""
    names = [
        f"{function_text(callee.name) if callee.name else '[unknown]'} {count_text(callee.num_samples)}"
        for callee in one.callees[:3]
    ]
    more = f", {len(one.callees) - 3} more" if len(one.callees) > 3 else ""
    arrow = "→ " if one.flow in CALLS else "in "
    return f"{arrow}{', '.join(names)}{more}"


def annotation_json(annotation: Annotation, listings: Iterable[Listing], sources: SourceFiles | None) -> dict[str, Any]:
    """The report in the documented form."""
    function, event = annotation.function, annotation.event
    shown = list(listings)
    texts: dict[str, dict[str, Any]] = {}
    for listing in shown:
        for one in listing.instructions:
            source = sources.get(one.path) if sources and one.path else None
            if source and one.line:
                lines = texts.setdefault(source.path, {"origin": source.origin, "lines": {}})["lines"]
                lines[str(one.line)] = source.line(one.line)
    return {
        "function": {
            "name": function.name,
            "handle": function.handle,
            "module": function.module,
            "kind": function.kind,
            "path": function.path,
            "line": function.line,
            "column": function.column,
        },
        "event": None
        if event is None
        else {"name": event.name, "unit": event.unit, "num_samples": event.num_samples, "skid": skid_text(event)},
        "selection": _selection_json(annotation),
        "compilations": [_compilation_json(one) for one in annotation.compilations],
        "listings": [_listing_json(one) for one in shown],
        "sources": texts,
    }


def _selection_json(annotation: Annotation) -> dict[str, Any] | None:
    if annotation.selected_samples is None:
        return None
    left, recorded = annotation.selected_samples
    return {"filter": annotation.selection, "num_samples": left, "num_recorded": recorded}


def _compilation_json(one: Compilation) -> dict[str, Any]:
    return {
        "number": one.number,
        "handle": one.handle,
        "code_object_id": one.code_object_id,
        "tier": one.tier,
        "kind": one.kind,
        "create_ns": one.create_ns,
        "retire_ns": one.retire_ns,
        "address": hex_text(one.address),
        "size_bytes": one.size_bytes,
        "instruction_set": _core.instruction_set(one.machine),
        "source": one.source,
        "self_samples": one.self_samples,
        "self_weight": one.self_weight,
        "total_samples": one.total_samples,
        "total_weight": one.total_weight,
        "places": [
            {
                "address": hex_text(place.address),
                "from_ns": place.from_ns,
                "until_ns": place.until_ns,
                "self_samples": place.self_samples,
            }
            for place in one.places
        ],
    }


def _listing_json(listing: Listing) -> dict[str, Any]:
    return {
        "number": listing.compilation.number,
        "missing": listing.missing,
        "outside_samples": listing.outside_samples,
        "num_bad_bytes": listing.num_bad_bytes,
        "loops": [
            {"first": one.first, "last": one.last, "self_samples": one.self_samples, "self_weight": one.self_weight}
            for one in listing.loops
        ],
        "instructions": [_instruction_json(one, listing.compilation) for one in listing.instructions],
    }


def _instruction_json(one: Instruction, compilation: Compilation) -> dict[str, Any]:
    return {
        "offset": one.offset,
        "size_bytes": one.size,
        "text": one.text,
        "flow": one.flow,
        "target_address": None if one.target_address is None else hex_text(one.target_address),
        "target_offset": inner_target(one, compilation.address, compilation.size_bytes),
        "target_name": one.target_name,
        "self_samples": one.self_samples,
        "self_weight": one.self_weight,
        "total_samples": one.total_samples,
        "total_weight": one.total_weight,
        "path": one.path,
        "line": one.line,
        "column": one.column,
        "inlined": [
            {"name": call.name, "call_path": call.call_path, "call_line": call.call_line} for call in one.inlined
        ],
        "callees": [
            {"name": callee.name, "code_object_id": callee.code_object_id, "num_samples": callee.num_samples}
            for callee in one.callees
        ],
    }
