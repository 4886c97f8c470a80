"""What `perfuse report` can be asked of call traces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from perfuse.analysis.orders import ORDERS

if TYPE_CHECKING:
    from perfuse.reports.calls import CallsRequest

BY = ("function", "thread", "cpu")


@dataclass(frozen=True, slots=True)
class CallOptions:
    """The options of `call_options`."""

    by: str | None = None
    sort: str | None = None
    function: str | None = None
    stacks: bool = False
    graph: bool = False
    tree: bool = False
    per_thread: bool = False
    recursive_only: bool = False
    llvm_compat: bool = False
    output_format: str = "text"

    @property
    def given(self) -> list[str]:
        """Those that were given, as they were written."""
        return [
            f"--{one.name.replace('_', '-')}"
            for one in fields(self)
            if getattr(self, one.name) not in (None, False, "text")
        ]

    @property
    def alone(self) -> bool:
        """Whether something was asked for that only calls have."""
        return any(option not in ("--sort", "--stacks") for option in self.given)

    @property
    def as_csv(self) -> bool:
        """Whether rows are wanted as comma-separated values."""
        return self.output_format == "csv"

    def request(self, limit: int) -> CallsRequest:
        """What is to be reported."""
        from perfuse.reports.calls import CallsRequest

        return CallsRequest(
            by=self.by or ("thread" if self.per_thread else "function"),  # type: ignore[arg-type]
            order="self" if self.sort in (None, "bytes") else self.sort,  # type: ignore[arg-type]
            pattern=self.function,
            limit=limit or None,
            rank="llvm" if self.llvm_compat else "nearest",
            recursive_only=self.recursive_only,
            per_thread=self.per_thread,
            stacks=self.stacks,
            graph=self.graph,
            tree=self.tree,
        )


def call_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options about calls; the verb gets them as one, `calls`."""

    @wraps(function)
    def gathered(*args: Any, **given: Any) -> Any:
        calls = CallOptions(**{field.name: given.pop(field.name) for field in fields(CallOptions)})
        return function(*args, calls=calls, **given)

    for option in (
        click.option(
            "--format",
            "output_format",
            type=click.Choice(("text", "csv")),
            default="text",
            metavar="FORMAT",
            help="Calls: text, or csv with a line a function. [text]",
        ),
        click.option("--llvm-compat", is_flag=True, help="Calls: as llvm-xray account counts, to compare."),
        click.option("--recursive-only", is_flag=True, help="Calls: only of functions already on the stack."),
        click.option("--per-thread", is_flag=True, help="Calls: each thread by itself."),
        click.option("--tree", is_flag=True, help="Calls: the call tree."),
        click.option("--graph", is_flag=True, help="Calls: who calls whom."),
        click.option(
            "--stacks",
            is_flag=True,
            help="Whole stacks: of calls by time and by number, of allocations, throws and the like.",
        ),
        click.option("--function", metavar="PATTERN", help="Calls: only functions so named: part, glob or /regex/."),
        click.option(
            "--sort",
            type=click.Choice((*ORDERS, "bytes")),
            metavar="ORDER",
            help=f"Calls: {', '.join(ORDERS)} [self]; allocations: bytes, count. [bytes]",
        ),
        click.option("--by", type=click.Choice(BY), metavar="WHAT", help=f"Calls: by {', '.join(BY)}. [function]"),
    ):
        gathered = option(gathered)
    return gathered
