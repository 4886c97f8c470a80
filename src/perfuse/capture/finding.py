"""The state of a program, a setting or a condition of recording, and the line that improves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["good", "limited", "missing"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of a tool, a setting or a condition.

    Attributes:
        name: What was looked at.
        state: `good`, `limited` (it works in part) or `missing` (nothing can be recorded without it).
        detail: What was found.
        advice: The command or the option that improves it, or how an installed producer is used; None where there is
            nothing to do.
    """

    name: str
    state: State
    detail: str
    advice: str | None
