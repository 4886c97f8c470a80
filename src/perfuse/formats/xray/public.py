"""XRay: instrumentation maps, and logs converted and written."""

from perfuse.formats.xray.log import UNSUPPORTED, WriteSummary, convert
from perfuse.formats.xray.writer import Writer
from perfuse.programs.instrumentation_map import InstrumentationMap

__all__ = ["UNSUPPORTED", "InstrumentationMap", "WriteSummary", "Writer", "convert"]
