"""Where a verb writes: data to standard output, messages and progress to standard error."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO

from perfuse.reports.json_text import json_text
from perfuse.reports.text import Role, Style, cut, printable

PROGRESS_AFTER_S = 1.0
PROGRESS_EVERY_S = 0.1


class Console:
    """The two streams of a command, and how each wants its text."""

    def __init__(self, out: TextIO, err: TextIO, color: str = "auto") -> None:
        self.out = out
        self.err = err
        self.style = Style.of(out, color)
        self.err_style = Style.of(err, color)

    def lines(self, lines: Iterable[str]) -> None:
        """Data: lines of text."""
        for line in lines:
            self.out.write(line + "\n")

    def line(self, line: str = "") -> None:
        """Data: one line of text."""
        self.out.write(line + "\n")

    def json(self, value: Any) -> None:
        """Data: one JSON document."""
        self.out.write(json_text(value) + "\n")

    def note(self, message: str, hint: str | None = None) -> None:
        """A message; what to do next goes on a line of its own."""
        # Data first: where both streams are one terminal, a note belongs below what it is about.
        self.out.flush()
        self.err.write(f"{self.err_style.paint('perfuse:', Role.FAINT)} {printable(message)}\n")
        if hint:
            self.err.write(f"{self.err_style.paint('   hint:', Role.FAINT)} {printable(hint)}\n")
        self.err.flush()

    @contextlib.contextmanager
    def progress(self) -> Iterator[Callable[[str, float], None]]:
        """A callback for long calls. It shows itself only on a terminal, and only past one second."""
        progress = Progress(self.err, self.err_style)
        try:
            yield progress
        finally:
            progress.clear()


class Progress:
    """One line on a terminal that overwrites itself."""

    def __init__(self, stream: TextIO, style: Style) -> None:
        self._stream = stream
        self._style = style
        self._shows = stream.isatty()
        self._next = time.monotonic() + PROGRESS_AFTER_S
        self._shown = False

    def __call__(self, stage: str, share: float) -> None:
        """Tells what is being done, and how much of all is (0 to 1)."""
        now = time.monotonic()
        if not self._shows or now < self._next:
            return
        self._next = now + PROGRESS_EVERY_S
        text = f"{printable(stage)} {share:.0%}"
        self._stream.write("\r\x1b[K" + self._style.paint(cut(text, (self._style.width or 80) - 1), Role.FAINT))
        self._stream.flush()
        self._shown = True

    def clear(self) -> None:
        """Takes the line away."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False
