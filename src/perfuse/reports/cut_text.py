"""Texts of at most so many bytes, in which what is left out is stated."""

from __future__ import annotations

import re

from perfuse.reports.units import count_text

_WEIGHTED = re.compile(r"^\s*(\d+\.\d)%\s.*\S")
_SOURCE_LINE = re.compile(r"^\s+\S+:\d+\s")


def cut_lines(text: str, num_bytes: int, how_to_see_more: str) -> str:
    """The first lines of a text that fit; the last line states how many are left out, and how to see them."""
    lines = text.splitlines()
    if len(text.encode()) <= num_bytes:
        return text
    kept: list[str] = []
    size = 0
    note_bytes = len(_note(len(lines), len(lines), how_to_see_more).encode())
    for line in lines:
        size += len(line.encode()) + 1
        if size + note_bytes > num_bytes:
            break
        kept.append(line)
    if not kept and lines:
        # One line longer than the answer: its beginning.
        room = max(num_bytes - note_bytes - len(" …".encode()) - 1, 0)
        kept.append(lines[0].encode()[:room].decode("utf-8", "ignore") + " …")
        return "\n".join([*kept, _note(len(lines) - 1, len(lines), how_to_see_more)])
    return "\n".join([*kept, _note(len(lines) - len(kept), len(lines), how_to_see_more)])


def _note(num_left_out: int, num_lines: int, how_to_see_more: str) -> str:
    return f"… {count_text(num_left_out)} of {count_text(num_lines)} lines are left out: {how_to_see_more}"


def cut_listing(text: str, num_bytes: int, how_to_see_more: str) -> str:
    """A listing of code that fits: the lines with most samples in their order, each after its line of source."""
    if len(text.encode()) <= num_bytes:
        return text
    lines = text.rstrip("\n").split("\n")
    start = next(
        (at + 1 for at, line in enumerate(lines) if line.split()[-2:] == ["offset", "instruction"]), len(lines)
    )
    weights = {at: float(match[1]) for at in range(start, len(lines)) if (match := _WEIGHTED.match(lines[at]))}
    kept = set(range(start))
    note = f"… the {{}} of {count_text(len(lines))} lines with fewest samples are left out: {how_to_see_more}"
    room = num_bytes - _size(lines[:start]) - len(note.encode()) - len(count_text(len(lines)))
    for at in sorted(weights, key=lambda at: -weights[at]):
        with_source = {at, *_source_of(lines, at, start)} - kept
        # Each may also have a line for what is left out before it.
        needed = _size([lines[one] for one in with_source]) + 6 * len(with_source)
        if needed > room:
            break
        room -= needed
        kept |= with_source
    if not weights or len(kept) == start:
        return cut_lines(text, num_bytes, how_to_see_more)
    shown: list[str] = []
    before = -1
    for at in sorted(kept):
        shown += (["…"] if at != before + 1 else []) + [lines[at]]
        before = at
    return "\n".join([*shown, note.format(count_text(len(lines) - len(kept)))])


def _size(lines: list[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _source_of(lines: list[str], at: int, start: int) -> list[int]:
    """The line of source text that an instruction belongs to."""
    return next(([one] for one in range(at - 1, start - 1, -1) if _SOURCE_LINE.match(lines[one])), [])
