"""Calls of tools: arguments in, text out."""

from __future__ import annotations

import time
from typing import Any

from perfuse.agents.arguments import DEFAULT_BYTES, answer_bytes, parse_arguments
from perfuse.agents.commands import Commands, Outcome
from perfuse.agents.confinement import Confinement
from perfuse.agents.failures import Cancelled, ToolError, require_success
from perfuse.agents.opening import describe
from perfuse.agents.tools import Tool
from perfuse.errors import UsageError
from perfuse.reports.cut_text import cut_lines, cut_listing

SHARE_OF_NOTES = 0.4
"""The share of an answer that messages may take."""


class Toolbox:
    """Runs tools in a directory."""

    def __init__(self, confinement: Confinement, commands: Commands) -> None:
        self.confinement = confinement
        self.commands = commands

    def call(self, tool: Tool, given: Any) -> dict[str, Any]:
        """The result of a call, as `tools/call` has it.

        Raises:
            Cancelled: The client cancelled the call.
        """
        num_bytes = DEFAULT_BYTES
        try:
            values = parse_arguments(tool.arguments, given)
            num_bytes = answer_bytes(values)
            text, is_error = self._text(tool, values, num_bytes), False
        except Cancelled:
            raise
        except UsageError as error:
            text, is_error = f"{error}\nhint: {error.hint}" if error.hint else str(error), True
        except ToolError as error:
            text, is_error = str(error), True
        except Exception as error:
            text, is_error = f"a defect of perfuse: {type(error).__name__}: {error}; the server continues", True
        shown = cut_lines(_without_controls(text), num_bytes, tool.see_more)
        return {"content": [{"type": "text", "text": shown}], "isError": is_error}

    def _text(self, tool: Tool, values: dict[str, Any], num_bytes: int) -> str:
        deadline = time.monotonic() + self.commands.limits.seconds

        def run(words: list[str]) -> Outcome:
            outcome = self.commands.run(self._limited(words), deadline)
            if outcome.stopped is not None or outcome.exit_code < 0:
                require_success(outcome, self.commands.limits)
            return outcome

        if tool.words is None:
            return describe(values.get("files") or None, self.confinement, run)
        outcome = run(tool.words(values, self.confinement, self.commands.limits.follow))
        require_success(outcome, self.commands.limits)
        is_listing = tool.name == "annotate"
        return _joined(outcome.out, outcome.notes, num_bytes, tool.see_more, is_listing=is_listing)

    def _limited(self, words: list[str]) -> list[str]:
        """A command line with the limits of the server."""
        verb, *rest = words
        if verb == "explain":
            return words
        limits = [f"--memory={self.commands.limits.memory_bytes}"]
        if self.commands.limits.unpacked_bytes is not None:
            limits.append(f"--max-unpacked={self.commands.limits.unpacked_bytes}")
        return [verb, *limits, *rest]


def _joined(out: str, notes: str, num_bytes: int, how_to_see_more: str, *, is_listing: bool) -> str:
    """Output and messages of a command in at most so many bytes."""
    out, notes = out.rstrip("\n"), notes.strip("\n")
    if notes:
        most = num_bytes - 1 if not out else int(num_bytes * SHARE_OF_NOTES)
        notes = cut_lines(notes, most, "messages") + "\n"
    room = num_bytes - len(notes.encode())
    return notes + (cut_listing if is_listing else cut_lines)(out, room, how_to_see_more)


def _without_controls(text: str) -> str:
    """The text with control characters escaped, ends of lines apart."""
    return "\n".join(
        line if line.isprintable() else "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in line)
        for line in text.split("\n")
    )
