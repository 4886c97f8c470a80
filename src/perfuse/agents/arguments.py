"""Arguments of tools: their JSON schema, their validation, and the options of the command line that they are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from perfuse.agents.confinement import Confinement
from perfuse.errors import UsageError, nearest_hint

DEFAULT_BYTES = 4000
LEAST_BYTES = 600
MOST_BYTES = 40_000
MAX_TEXT = 20_000
"""Characters of a text."""
MAX_ITEMS = 200
"""Items of a list."""

Kind = Literal["text", "flag", "number", "path"]
_TYPES: Mapping[Kind, str] = {"text": "string", "path": "string", "flag": "boolean", "number": "number"}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a tool.

    Attributes:
        name: Its name; `--name` with hyphens is the option of the command line.
        about: What it means, for the schema.
        kind: What its value is.
        repeats: Whether it is a list.
        choices: The texts that it takes; empty for any.
        required: Whether the tool needs it.
        is_option: Whether it is an option of the command line.
    """

    name: str
    about: str = ""
    kind: Kind = "text"
    repeats: bool = False
    choices: tuple[str, ...] = ()
    required: bool = False
    is_option: bool = True

    def schema(self) -> dict[str, Any]:
        """The JSON schema of its value."""
        one: dict[str, Any] = {"type": _TYPES[self.kind]}
        if self.choices:
            one["enum"] = list(self.choices)
        schema = {"type": "array", "items": one} if self.repeats else one
        return {**schema, "description": self.about} if self.about else schema

    def parse(self, value: Any) -> Any:
        """A value from a message; a single value is a list of one where the argument is a list.

        Raises:
            UsageError: It is not of the argument's type.
        """
        if not self.repeats:
            return self._parse_one(value)
        values = value if isinstance(value, list) else [value]
        if len(values) > MAX_ITEMS:
            raise UsageError(f"{self.name} has more than {MAX_ITEMS} items")
        return [self._parse_one(one) for one in values]

    def _parse_one(self, value: Any) -> Any:
        if self.kind == "flag":
            good = isinstance(value, bool)
        elif self.kind == "number":
            good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        else:
            if self.kind == "text" and isinstance(value, int) and not isinstance(value, bool):
                value = str(value)
            good = isinstance(value, str) and _is_plain(value)
        if not good:
            kind = "a list of texts" if self.repeats else {"flag": "true or false", "number": "a number"}.get(self.kind)
            raise UsageError(f"{self.name} is {kind or 'a text'}, not {str(value)[:60]!r}")
        if self.choices and value not in self.choices:
            raise UsageError(f"no {self.name} {value[:60]!r}", hint=nearest_hint(value, self.choices))
        return value

    def words(self, value: Any, confinement: Confinement) -> list[str]:
        """The words of the command line that give a value."""
        option = "--" + self.name.replace("_", "-")
        if self.kind == "flag":
            return [option] if value else []
        values = value if self.repeats else [value]
        if self.kind == "path":
            values = [confined_map(confinement, one) for one in values]
        texts = [f"{one:.12g}" if isinstance(one, float) else str(one) for one in values]
        # One word each: a value is not an option, whatever it begins with.
        return [f"{option}={text}" for text in texts]


def confined_map(confinement: Confinement, text: str) -> str:
    """A path in the directory of the server; `N=PATH` keeps its number, as `--map` has it."""
    number, equals, path = text.partition("=")
    if equals and number.isdecimal():
        return f"{number}={confinement.path(path)}"
    return confinement.path(text)


def _is_plain(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text and len(text) <= MAX_TEXT


def parse_arguments(declared: Iterable[Argument], given: Any) -> dict[str, Any]:
    """The values of a call by name; those that are null are left out.

    Raises:
        UsageError: One is unknown, missing, or not of its type.
    """
    if not isinstance(given, dict):
        raise UsageError("the arguments of a tool are an object")
    known = {argument.name: argument for argument in declared}
    values = {}
    for name, value in given.items():
        if name not in known:
            raise UsageError(f"no argument {str(name)[:60]!r}", hint=nearest_hint(str(name)[:60], known))
        if value is not None:
            values[name] = known[name].parse(value)
    for argument in known.values():
        if argument.required and not values.get(argument.name):
            raise UsageError(f"{argument.name} is missing: {argument.about}")
    return values


FILES = Argument(
    "files", "Recordings of one run, or its directory.", "path", repeats=True, required=True, is_option=False
)
MAX_BYTES = Argument("max_bytes", f"[{DEFAULT_BYTES}]", "number", is_option=False)
MAP = Argument("map", "XRay: program with the instrumentation map, for names.", "path", repeats=True)
SELECTION = (
    Argument("between", "Seconds of the recording: 2..5.5"),
    Argument("thread", "Name or id."),
    Argument("process", "Name or pid."),
    Argument("only", "Only samples with a function: name, glob, /regex/, module:, path:, tier:", repeats=True),
    Argument("drop", "Without samples that have one.", repeats=True),
    Argument("hide", "Merge matching functions into their callers.", repeats=True),
    Argument("jit_only", "Only JIT-compiled frames; others count for their callers.", "flag"),
)


def answer_bytes(values: Mapping[str, Any]) -> int:
    """The size that an answer may have."""
    asked = values.get("max_bytes", DEFAULT_BYTES)
    return int(min(max(asked, LEAST_BYTES), MOST_BYTES))


def option_words(declared: Iterable[Argument], values: Mapping[str, Any], confinement: Confinement) -> list[str]:
    """The words for all arguments that are options."""
    words: list[str] = []
    for argument in declared:
        if argument.is_option and argument.name in values:
            words += argument.words(values[argument.name], confinement)
    return words
