"""What calls are grouped, sorted and ranked by."""

from typing import Literal, get_args

Grouping = Literal["function", "thread", "cpu"]
Rank = Literal["nearest", "llvm"]
"""How a percentile is taken: the value at the nearest rank, or as llvm-xray takes it."""
Order = Literal["self", "sum", "total", "count", "min", "median", "p90", "p99", "max", "name"]

ORDERS: tuple[str, ...] = get_args(Order)
