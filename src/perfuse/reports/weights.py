"""Who the samples belong to: stacks folded in the core, read out as rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfuse import _core

if TYPE_CHECKING:
    from perfuse.profile import Profile

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """What was sampled: `weight` is in `unit` (`ns` or `events`)."""

    name: str
    samples: int
    weight: int
    unit: str


@dataclass(frozen=True, slots=True)
class FunctionWeight:
    """What a function cost: by itself, and with all it called (recursion counted once).

    `path` and `line` are where it is declared; `tiers` its compiler tiers, the most expensive first.
    """

    name: str
    module: str
    path: str | None
    line: int | None
    kind: str
    tiers: list[str]
    self_weight: int
    total_weight: int
    samples: int


@dataclass(frozen=True, slots=True)
class Share:
    """What one group of samples cost, grouped by where their innermost frame is."""

    name: str
    kind: str
    self_weight: int
    samples: int


def events(profile: Profile) -> list[Event]:
    """Every event sampled, the one with the most samples first."""
    rows = profile.sql(
        "SELECT event::VARCHAR, count(*), sum(weight)::HUGEINT, any_value(weight_unit)::VARCHAR FROM samples"
        " GROUP BY 1 ORDER BY 2 DESC, 1"
    ).fetchall()
    return [Event(name, samples, int(weight), unit) for name, samples, weight, unit in rows]


class Weights:
    """The samples of one event, folded."""

    def __init__(self, profile: Profile, event: str) -> None:
        tree = _core.call_tree(profile.tables, event=event, split_threads=True)
        self._by_function = _rows(tree.weights("function"))
        self._by_tier = _rows(tree.weights("tiered"))
        self._by_thread = _rows(tree.weights("thread"))

    def functions(self, order: str, limit: int) -> list[FunctionWeight]:
        """The functions that cost most by `self` or by `total`; all with `limit` 0."""
        first, second = ("self_weight", "total_weight") if order == "self" else ("total_weight", "self_weight")
        ordered = sorted(
            (row for row in self._by_function if row[first]),
            key=lambda row: (-row[first], -row[second], row["name"], row["module"] or "", row["line"] or 0),
        )[: limit or None]
        tiers = self._tiers()
        return [
            FunctionWeight(
                row["name"],
                row["module"] or "",
                row["path"],
                row["line"],
                row["kind"],
                tiers[_key(row)],
                row["self_weight"],
                row["total_weight"],
                row["self_samples"],
            )
            for row in ordered
        ]

    def modules(self) -> list[Share]:
        """Self weight by module; frames in none are grouped by their kind."""
        return _shares(self._by_tier, lambda row: row["module"] or f"[{row['kind']}]", lambda row: row["kind"])

    def tiers(self) -> list[Share]:
        """Self weight by tier, where code has one, else by kind."""
        return _shares(self._by_tier, lambda row: row["tier"] or row["kind"], lambda row: row["kind"])

    def threads(self, names: dict[int, str]) -> list[Share]:
        """Self weight by thread, or by what else `names` has for a `thread_id`."""
        return _shares(self._by_thread, lambda row: names[row["thread_id"]], lambda _row: "")

    def _tiers(self) -> dict[tuple[Any, ...], list[str]]:
        found: dict[tuple[Any, ...], list[str]] = defaultdict(list)
        for row in self._by_tier:
            if row["tier"] and row["tier"] not in found[_key(row)]:
                found[_key(row)].append(row["tier"])
        return found


def _key(row: Row) -> tuple[Any, ...]:
    return row["name"], row["module"], row["path"], row["line"], row["function_id"]


def _shares(rows: Iterable[Row], name: Callable[[Row], str], kind: Callable[[Row], str]) -> list[Share]:
    groups: dict[str, list[int]] = {}
    kinds: dict[str, str] = {}
    for row in rows:
        if not row["self_samples"]:
            continue
        sums = groups.setdefault(name(row), [0, 0])
        sums[0] += row["self_weight"]
        sums[1] += row["self_samples"]
        # Rows come heaviest first, so the first kind is the one that matters.
        kinds.setdefault(name(row), kind(row))
    shares = [Share(group, kinds[group], weight, samples) for group, (weight, samples) in groups.items()]
    return sorted(shares, key=lambda share: (-share.self_weight, share.name))


def _rows(stream: _core.ArrowStream) -> list[Row]:
    from arro3.core import Table

    table = Table.from_arrow(stream)
    columns = [table.column(name).to_pylist() for name in table.column_names]
    return [dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True)]
