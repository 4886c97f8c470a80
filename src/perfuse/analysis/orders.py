"""How calls are grouped, sorted and ranked: constants for command-line options, which load no analysis."""

from typing import Literal, get_args

Grouping = Literal["function", "thread", "cpu"]
Rank = Literal["nearest", "llvm"]
"""Definition of percentiles: the value at the nearest rank, or that of llvm-xray."""
Order = Literal["self", "sum", "total", "count", "min", "median", "p90", "p99", "max", "name"]

ORDERS: tuple[str, ...] = get_args(Order)
