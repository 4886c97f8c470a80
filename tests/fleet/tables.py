"""The content of a dataset, without what differs between two runs that did the same."""

from typing import Any

from perfuse.fleet import Fleet
from perfuse.fleet.layout import DICTIONARIES, OF_RECORDINGS, TABLES

_OF_A_RUN = {"attempt_id", "added_ns", "decode_ms", "peak_rss_bytes", "inputs", "title", "day", "service", "pack"}


def contents(fleet: Fleet) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of each view, sorted."""
    fleet.refresh()
    found = {}
    for name in (*OF_RECORDINGS, *DICTIONARIES, "recordings", "quarantine"):
        columns = [one for one in TABLES.get(name, TABLES["recordings"]).names if one not in _OF_A_RUN]
        found[name] = fleet.rows(f"SELECT {', '.join(columns)} FROM {name} ORDER BY ALL")
    return found
