"""Which recordings of a dataset are meant: `build=main, host=web-*, since 7d, last 20`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from perfuse.errors import UsageError

COLUMNS = ("service", "build", "host", "day", "title", "arch", "state", "tool_version", "recording_id")
"""Columns of `recordings` that a condition may name; other names are labels."""

LABEL_COLUMNS = ("service", "build", "host")
"""Those of them that are labels too."""

_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_CONDITION = re.compile(rf"({_NAME.pattern})\s*(!?=)\s*(.*)", re.DOTALL)
_LAST = re.compile(r"last\s+(\d+)")
_TIME = re.compile(r"(since|until)\s+(.+)")
_AGO = re.compile(r"(\d+)\s*(min|h|d|w)")
_UNITS = {"min": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


@dataclass(frozen=True, slots=True)
class Recordings:
    """A selection of recordings.

    Attributes:
        text: As it was written.
        conditions: SQL conditions over `recordings`.
        parameters: Values of their `?`.
        last: Only so many of the most recent ones; None for all.
        labels: The labels that conditions name.
    """

    text: str = ""
    conditions: tuple[str, ...] = ()
    parameters: tuple[object, ...] = ()
    last: int | None = None
    labels: tuple[str, ...] = ()

    @property
    def query(self) -> str:
        """SQL that selects their rows of `recordings`."""
        return self.query_of("recordings")

    def query_of(self, view: str) -> str:
        """SQL that selects their rows of `recordings`, or of `quarantine`."""
        where = f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        cut = "" if self.last is None else f" ORDER BY start_ns DESC, recording_id LIMIT {self.last}"
        return f"SELECT * FROM {view}{where}{cut}"

    def without(self, recordings: Sequence[str]) -> Recordings:
        """The selection without some recordings, by their identities; `last` counts the others."""
        names = ", ".join("?" for _ in recordings)
        return _with(self, f"recording_id NOT IN ({names})", *recordings) if recordings else self

    def also(self, other: Recordings) -> Recordings:
        """Recordings that both select."""
        if self.last is not None and other.last is not None:
            raise UsageError("`last N` was given twice")
        return replace(
            self,
            text=", ".join(filter(None, (self.text, other.text))),
            conditions=(*self.conditions, *other.conditions),
            parameters=(*self.parameters, *other.parameters),
            last=self.last if other.last is None else other.last,
            labels=(*self.labels, *other.labels),
        )


def parse_recordings(text: str, now: datetime | None = None) -> Recordings:
    """The selection that a text describes: parts separated by commas, of which all hold.

    Args:
        text: `label=value` (globs are possible, and several values as `a|b`), `label!=value`, `since 7d`,
            `since 2026-11-01`, `until 2026-11-08`, `last 20`.
        now: The time from which `7d` is counted; by default the present.

    Raises:
        UsageError: A part is none of these.
    """
    found = Recordings(text=text.strip())
    for part in filter(None, (one.strip() for one in text.split(","))):
        if match := _LAST.fullmatch(part):
            found = replace(found, last=int(match[1]))
        elif match := _TIME.fullmatch(part):
            sign = ">=" if match[1] == "since" else "<"
            ns = _time(match[2], now or datetime.now(UTC))
            found = _with(found, f"start_ns {sign} ?", ns)
        elif match := _CONDITION.fullmatch(part):
            values = match[3].split("|")
            column, names = label_sql(match[1])
            matches = " OR ".join(
                f"{column} GLOB ?" if re.search(r"[*?\[]", one) else f"{column} = ?" for one in values
            )
            negated = f"NOT coalesce(({matches}), false)" if match[2] == "!=" else f"({matches})"
            parameters = [value for one in values for value in (*names, one.strip())]
            found = replace(_with(found, negated, *parameters), labels=(*found.labels, match[1]))
        else:
            raise UsageError(
                f"{part!r} does not select recordings",
                hint="write build=main, host=web-*, since 7d, since 2026-11-01, until 2026-11-08, last 20",
            )
    return found


def check_label_names(names: Iterable[str]) -> None:
    """Checks that conditions can name these labels.

    Raises:
        UsageError: One of them cannot be written in a condition.
    """
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is not a name of a label: no selection could name it",
                field="labels",
                hint="names have letters, digits, _, . and -, and start with a letter of A to Z or _: git.branch",
            )
        if name in COLUMNS and name not in LABEL_COLUMNS:
            raise UsageError(
                f"{name!r} is a column of `recordings`, which selections name instead of a label",
                field="labels",
                hint=f"give the label another name; columns are {', '.join(COLUMNS)}",
            )


def label_sql(label: str) -> tuple[str, tuple[str, ...]]:
    """SQL for a label or column of `recordings`, and the values of its `?`."""
    if label in COLUMNS:
        return label, ()
    return "json_extract_string(labels, ?)", ('$."' + label.replace('"', "") + '"',)


def natural_order(column: str) -> str:
    """SQL to sort texts by, numbers in them by their value: 9 precedes 10."""
    parts = f"regexp_extract_all({column}, '[0-9]+|[^0-9]+')"
    return f"list_transform({parts}, lambda part: if(part[1] BETWEEN '0' AND '9', lpad(part, 40, '0'), part))"


def _with(found: Recordings, condition: str, *parameters: object) -> Recordings:
    return replace(found, conditions=(*found.conditions, condition), parameters=(*found.parameters, *parameters))


def _time(text: str, now: datetime) -> int:
    if match := _AGO.fullmatch(text.strip()):
        return round((now - int(match[1]) * _UNITS[match[2]]).timestamp() * 1e9)
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"{text!r} is not a time", hint="write 7d, 12h, 2026-11-01 or 2026-11-01T12:00") from None
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e9)
