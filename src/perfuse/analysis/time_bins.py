"""Samples by equal parts of the recorded time: a call tree for each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from perfuse import _core
from perfuse.analysis.profiles import SampleProfile
from perfuse.analysis.sampled import Event
from perfuse.table import TablesOfStacks

NUM_BINS = 120
"""Parts of the recorded time."""


def binned_tree(profile: SampleProfile, event: Event) -> _core.CallTree:
    """The call tree of an event whose samples have times, with separate roots for each part of the recorded time.

    Column `thread_id` of its nodes is the number of the part.
    """
    return _core.call_tree(
        _Binned(TablesOfStacks(profile.tables), _with_bins(profile.tables["samples"], event)),
        event=event.name,
        split_threads=True,
    )


def _with_bins(samples: Any, event: Event) -> Any:
    """Table `samples` with the number of the part in place of the thread."""
    from arro3.core import Array, ChunkedArray, DataType, Field, Table

    table = Table.from_arrow(samples)
    first, span = event.first_ns, event.last_ns - event.first_ns + 1
    ts_ns: Any = table["ts_ns"]
    event_names: Any = table["event"]
    # A sample of another event may be before the first.
    bins = [
        (time - first) * NUM_BINS // span if name == event.name and time is not None else 0
        for time, name in zip(ts_ns.to_pylist(), event_names.to_pylist(), strict=True)
    ]
    place = table.schema.get_field_index("thread_id")
    field = Field("thread_id", DataType.uint32(), nullable=table.schema.field(place).nullable)
    chunks, start = [], 0
    for chunk in ts_ns.chunks:
        chunks.append(Array(bins[start : start + len(chunk)], DataType.uint32()))
        start += len(chunk)
    return table.set_column(place, field, ChunkedArray(chunks))


@dataclass(frozen=True, slots=True)
class _Binned(Mapping[str, Any]):
    tables: Mapping[str, Any]
    samples: Any

    def __getitem__(self, name: str) -> Any:
        return self.samples if name == "samples" else self.tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)
