"""What `perfuse report` can be asked of programs on a managed runtime."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal

import click

from perfuse.cli.options import near_choice

if TYPE_CHECKING:
    from perfuse.reports.runtime.sections import RuntimeRequest

_SIZE = re.compile(r"S:(\d+)")


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """The options of `runtime_options`."""

    sections: tuple[str, ...] = ()
    frames: int | None = None
    track: tuple[int, ...] = ()
    find: tuple[Literal["S", "T"], str] | None = None

    @property
    def given(self) -> list[str]:
        """Those that were given, as they were written."""
        return [f"--{one.name.removesuffix('s')}" for one in fields(self) if getattr(self, one.name) not in (None, ())]

    def request(self, limit: int, sort: str | None, stacks: bool) -> RuntimeRequest:
        """What is to be reported."""
        from perfuse.reports.runtime.report import NAMES
        from perfuse.reports.runtime.sections import RuntimeRequest

        sections = tuple(near_choice(name, list(NAMES), "section") for name in self.sections)
        if self.track or self.find:
            sections = (*sections, "objects")
        kind, text = self.find or (None, "")
        return RuntimeRequest(
            sections=sections,
            limit=limit or None,
            order="count" if sort == "count" else "bytes",
            call_order="self" if sort in (None, "bytes") else sort,  # type: ignore[arg-type]
            stacks=stacks,
            frames=self.frames or None,
            track=self.track,
            find_bytes=int(text) if kind == "S" else None,
            find_type=text if kind == "T" else None,
        )


def runtime_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options about managed runtimes; the verb gets them as one, `runtime`."""

    @wraps(function)
    def gathered(*args: Any, **given: Any) -> Any:
        runtime = RuntimeOptions(**{field.name: given.pop(field.name) for field in fields(RuntimeOptions)})
        return function(*args, runtime=runtime, **given)

    for option in (
        click.option(
            "--find",
            type=ObjectsWanted(),
            metavar="S:SIZE|T:NAME",
            help="Runtimes: the lives of objects of that size or more, or of types so named.",
        ),
        click.option(
            "--track", type=Addresses(), default=(), metavar="ADDRESS,...", help="Runtimes: the lives of these objects."
        ),
        click.option("--frames", type=int, metavar="N", help="Runtimes: at most N innermost functions a backtrace."),
        click.option(
            "--section",
            "sections",
            multiple=True,
            metavar="NAME",
            help="Runtimes: one section in full, such as allocations, gc, locks; repeats.",
        ),
    ):
        gathered = option(gathered)
    return gathered


class Addresses(click.ParamType[Any]):
    """`0x7f144f000568,0x7f144f8b8290`"""

    name = "addresses"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """The addresses."""
        if isinstance(value, tuple):
            return value
        try:
            found = tuple(int(part, 0) for part in value.split(","))
        except ValueError:
            found = ()
        if not found or not all(0 <= address < 2**64 for address in found):
            self.fail(f"{value!r} is no address: write 0x7f144f000568", param, ctx)
        return found


class ObjectsWanted(click.ParamType[Any]):
    """`S:4096` or `T:Node`"""

    name = "objects"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """What is meant, and the text behind the colon."""
        if isinstance(value, tuple):
            return value
        if match := _SIZE.fullmatch(value):
            return "S", match[1]
        if not value.startswith("T:") or len(value) < 3:
            self.fail(f"{value!r} is neither S:SIZE, such as S:4096, nor T:NAME, such as T:Node", param, ctx)
        return "T", value[2:]
