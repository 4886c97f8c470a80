"""perf.data: the facts of a recording that its tables do not contain."""

from perfuse.formats.perf_data.facts import Marker, PerfFacts

__all__ = ["Marker", "PerfFacts"]
