"""Why a tool has no answer, as text for the client."""

from __future__ import annotations

import signal

from perfuse.agents.commands import Limits, Outcome

DEFECT = 70
_NO_FILES = "hint: here SQL reads the tables of the recordings and nothing else; `open` lists them"


class ToolError(Exception):
    """A call that has no answer; its text states why and what to do next."""


class Cancelled(Exception):  # noqa: N818 - not an error
    """The client cancelled the call: there is no answer."""


def require_success(outcome: Outcome, limits: Limits) -> None:
    """Raises an exception where a command has no complete output.

    Raises:
        ToolError: It failed, or was stopped at a limit.
        Cancelled: The client cancelled the call.
    """
    if outcome.stopped == "cancelled":
        raise Cancelled
    if outcome.stopped == "time":
        raise ToolError(
            f"stopped after {limits.seconds:g} s\nhint: select less: between, thread, one section, fewer files;"
            " who started the server may raise --timeout"
        )
    if outcome.stopped == "output":
        raise ToolError("stopped: the output was too large\nhint: aggregate, or select fewer rows")
    if outcome.exit_code < 0:
        raise ToolError(
            f"the call ended by {_signal_name(-outcome.exit_code)}, the server continues\n"
            "hint: select less: between, thread, fewer files; a defect if it is the same with `perfuse check`"
        )
    if outcome.exit_code in (0, 1):
        return
    if outcome.exit_code == DEFECT:
        messages = [line for line in outcome.notes.splitlines() if line.startswith(("perfuse:", "   hint:"))]
        raise ToolError(_plain("\n".join(messages)) or "a defect of perfuse")
    raise ToolError(_plain(outcome.notes) or f"failed with exit code {outcome.exit_code}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _plain(notes: str) -> str:
    """Messages of a command without its name."""
    lines = (line.removeprefix("perfuse: ").strip() for line in notes.strip().splitlines())
    return "\n".join(_NO_FILES if "--allow-files" in line else line for line in lines if line and "--help`" not in line)
