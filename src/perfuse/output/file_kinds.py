"""What kind of content a file has, by its first bytes: for outputs, which do not replace files of other kinds."""

import re
from pathlib import Path

from perfuse import _core

_HEAD_BYTES = 4096
_MAGIC = (
    (b"\x7fELF", "a program or library"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"PAR1", "Parquet"),
    (b"ARROW1", "Arrow"),
    (b"SQLite format 3\x00", "a SQLite database"),
    (b"\x89PNG", "a picture"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"!<arch>\n", "an archive"),
    (b"%PDF", "PDF"),
)
_MARKUP = (
    ("<!doctype html", "HTML"),
    ("<html", "HTML"),
    ("<svg", "SVG"),
    ("<?xml version='1.0' encoding='utf-8'?>\n<testsuites", "JUnit XML"),
    ("<?xml", "SVG"),
    ("{", "JSON"),
    ("digraph", "a graph for dot"),
)
_ARRAY = re.compile(r"""\[\s*[\]\[{"\d-]""")
"""The start of a JSON array; a stack that starts with `[unknown]` is text."""


def kind_of(path: Path) -> str:
    """The kind of a file's content, with an article where it needs one: "JSON", "a recording (JITDUMP)"."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    sniffed = _core.sniff(head)
    for format_name, certainty in sniffed:
        if certainty == "certain":
            return f"a recording ({_title(format_name)})"
    binary = f"a recording ({_title(sniffed[0][0])})" if sniffed else "binary data"
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    try:
        # The last character may be cut.
        text = head.decode(errors="strict" if len(head) < _HEAD_BYTES else "ignore").lstrip().lower()
    except UnicodeDecodeError:
        return binary
    if "\0" in text or len(text) < len(head) // 2:
        return binary
    if _ARRAY.match(text):
        return "JSON"
    return next((kind for start, kind in _MARKUP if text.startswith(start)), "text")


def _title(name: str) -> str:
    """The name of a format for people."""
    return next(entry["title"] for entry in _core.formats() if entry["name"] == name)
