"""The output of a verb: data on standard output, messages and progress on standard error."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO

from perfuse.output.terminal import escaped
from perfuse.reports.json_text import json_text
from perfuse.reports.text import Role, Style, cut, printable

PROGRESS_AFTER_S = 1.0
PROGRESS_EVERY_S = 0.1
_COLOUR = r"\x1b\[[0-9;]*m"


class Console:
    """The two output streams of a command, with the style of each."""

    def __init__(self, out: TextIO, err: TextIO, color: str = "auto") -> None:
        self.out = out
        self.err = err
        self.style = Style.of(out, color)
        self.err_style = Style.of(err, color)

    def lines(self, lines: Iterable[str]) -> None:
        """Writes lines of text to standard output."""
        for line in lines:
            self.line(line)

    def line(self, line: str = "") -> None:
        """Writes one line of text to standard output."""
        self.out.write((line if line.isprintable() else self._safe(line)) + "\n")

    def _safe(self, line: str) -> str:
        """A line in which nothing but colours controls a terminal: a second guard, after that of each text."""
        if not self.style.colour:
            return escaped(line)
        between = iter(re.findall(_COLOUR, line))
        return "".join(escaped(text) + next(between, "") for text in re.split(_COLOUR, line))

    def write(self, text: str) -> None:
        """Writes text that ends with the end of a line to standard output."""
        self.out.write(text)

    def json(self, value: Any) -> None:
        """Writes a JSON document to standard output."""
        self.out.write(json_text(value) + "\n")

    def note(self, message: str, hint: str | None = None) -> None:
        """Writes a message to standard error; the hint what to do next on a line of its own."""
        # Data first: where both streams are one terminal, the message follows the data it is about.
        self.out.flush()
        self.err.write(f"{self.err_style.paint('perfuse:', Role.FAINT)} {printable(message)}\n")
        if hint:
            self.err.write(f"{self.err_style.paint('   hint:', Role.FAINT)} {printable(hint)}\n")
        self.err.flush()

    @contextlib.contextmanager
    def progress(self) -> Iterator[Callable[[str, float], None]]:
        """A callback that shows the progress of a call, on a terminal only, and after one second."""
        progress = Progress(self.err, self.err_style)
        try:
            yield progress
        finally:
            progress.clear()


class Progress:
    """A line of progress on a terminal, which overwrites itself."""

    def __init__(self, stream: TextIO, style: Style) -> None:
        self._stream = stream
        self._style = style
        self._shows = stream.isatty()
        self._next = time.monotonic() + PROGRESS_AFTER_S
        self._shown = False

    def __call__(self, stage: str, share: float) -> None:
        """Shows the current stage, and the share of the work that is done (0 to 1)."""
        now = time.monotonic()
        if not self._shows or now < self._next:
            return
        self._next = now + PROGRESS_EVERY_S
        text = f"{printable(stage)} {share:.0%}"
        self._stream.write("\r\x1b[K" + self._style.paint(cut(text, (self._style.width or 80) - 1), Role.FAINT))
        self._stream.flush()
        self._shown = True

    def clear(self) -> None:
        """Erases the line."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False
