"""Mono's log profiler: logs converted and written, and heap snapshots of a running program."""

from perfuse.formats.mono.heapshot import heapshot
from perfuse.formats.mono.log import WriteSummary, convert, match_kinds
from perfuse.formats.mono.recorded import how_to_record, recorded_subjects
from perfuse.formats.mono.unsupported import UNSUPPORTED
from perfuse.formats.mono.writer import Writer

__all__ = [
    "UNSUPPORTED",
    "WriteSummary",
    "Writer",
    "convert",
    "heapshot",
    "how_to_record",
    "match_kinds",
    "recorded_subjects",
]
