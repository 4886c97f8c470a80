"""Options of targets as text: parsing and describing the values of `perfuse convert -O NAME=VALUE`."""

import inspect
import re
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from perfuse.errors import UsageError, nearest_hint
from perfuse.exporters.registry import Target

_BOOLEANS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_TYPE_NAMES = {int: "a whole number", float: "a number", str: "text"}


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a target.

    Attributes:
        name: Its name.
        kind: Its type: `bool`, `int`, `float`, `str`, a tuple of `int`, or a `Literal` of its possible values.
        default: Its default; None for none.
        description: Its meaning.
    """

    name: str
    kind: Any
    default: Any
    description: str

    @property
    def values(self) -> str:
        """Its possible values, for people."""
        if get_origin(self.kind) is Literal:
            return ", ".join(map(str, get_args(self.kind)))
        if get_origin(self.kind) is tuple:
            return "N,N,..." if Ellipsis in get_args(self.kind) else ",".join("N" for _ in get_args(self.kind))
        return "yes, no" if self.kind is bool else _TYPE_NAMES[self.kind]

    @property
    def default_text(self) -> str:
        """The default as text."""
        if isinstance(self.default, bool):
            return "yes" if self.default else "no"
        return "" if self.default is None else str(self.default)

    def parse(self, text: str) -> Any:
        """The value of a text; raises `UsageError` where the text is invalid."""
        if get_origin(self.kind) is Literal:
            known = {str(value): value for value in get_args(self.kind)}
            if text in known:
                return known[text]
        elif self.kind is bool:
            if text.lower() in _BOOLEANS:
                return _BOOLEANS[text.lower()]
        else:
            try:
                return self._numbers(text) if get_origin(self.kind) is tuple else self.kind(text)
            except ValueError:
                pass
        raise UsageError(f"{self.name} is not {text!r}", field=self.name, hint=f"{self.name} is {self.values}")

    def _numbers(self, text: str) -> tuple[int, ...]:
        numbers = tuple(int(part) for part in text.split(","))
        kinds = get_args(self.kind)
        if Ellipsis not in kinds and len(numbers) != len(kinds):
            raise ValueError(text)
        return numbers


def options_of(target: Target) -> list[Option]:
    """The options of a target, for all of its outputs."""
    found: dict[str, Option] = {}
    for output in target.outputs:
        meanings = _argument_docs(inspect.getdoc(target.writer(output)) or "")
        for name, parameter in target.options(output).items():
            default = None if parameter.default is parameter.empty else parameter.default
            description = meanings.get(name, "")
            found.setdefault(name, Option(name, _option_type(parameter.annotation), default, description))
    return list(found.values())


def option_named(target: Target, name: str) -> Option:
    """The option of a name; raises `UsageError` with similar and known names."""
    options = {option.name: option for option in options_of(target)}
    if name in options:
        return options[name]
    known = f"it takes {', '.join(options)}" if options else "it takes none"
    hint = nearest_hint(name, options, known)
    raise UsageError(f"{target.name} has no option {name!r}", field=name, hint=hint)


def _option_type(annotation: Any) -> Any:
    """The type of an option, without the None of its default."""
    if get_origin(annotation) is Literal:
        return annotation
    kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
    return kinds[0] if kinds else annotation


def _argument_docs(doc: str) -> dict[str, str]:
    """The entries of the `Args:` section of a docstring, each on one line."""
    section = re.search(r"^Args:\n((?:    .*\n?|\n)*)", doc, re.MULTILINE)
    if section is None:
        return {}
    entries = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", section[1], re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}
