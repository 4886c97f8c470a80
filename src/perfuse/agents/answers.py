"""Answers of at most so many bytes, in which what is left out is stated."""

from __future__ import annotations

from perfuse.reports.cut_text import cut_lines, cut_listing

SHARE_OF_NOTES = 0.4
"""The share of an answer that messages may take."""


def joined(out: str, notes: str, num_bytes: int, how_to_see_more: str, *, is_listing: bool = False) -> str:
    """Output and messages of a command in at most so many bytes."""
    out, notes = out.rstrip("\n"), notes.strip("\n")
    if notes:
        most = num_bytes - 1 if not out else int(num_bytes * SHARE_OF_NOTES)
        notes = cut_lines(notes, most, "messages") + "\n"
    room = num_bytes - len(notes.encode())
    return notes + (cut_listing if is_listing else cut_lines)(out, room, how_to_see_more)
