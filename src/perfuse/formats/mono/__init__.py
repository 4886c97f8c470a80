"""Mono's log profiler: the texts of its rules, logs converted and written. `public` is `perfuse.mono`."""

from perfuse.formats.mono.recorded import how_to_record, recorded_subjects

__all__ = ["how_to_record", "recorded_subjects"]
