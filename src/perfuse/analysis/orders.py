"""How calls and stacks are grouped, sorted and ranked: constants for command-line options, which load no analysis."""

from typing import Literal, get_args

Grouping = Literal["function", "thread", "cpu"]
Rank = Literal["nearest", "llvm"]
"""Definition of percentiles: the value at the nearest rank, or that of llvm-xray."""
Order = Literal["self", "sum", "total", "count", "min", "median", "p90", "p99", "max", "name"]
StackGrouping = Literal["function", "command", "thread", "process", "cpu", "module", "tier", "line"]
StackViewOrder = Literal["self", "total", "count", "name"]
"""Orders of views of weighted stacks."""

GROUPINGS: tuple[str, ...] = get_args(Grouping)
ORDERS: tuple[str, ...] = get_args(Order)
STACK_GROUPINGS: tuple[str, ...] = get_args(StackGrouping)
STACK_VIEW_ORDERS: tuple[str, ...] = get_args(StackViewOrder)
