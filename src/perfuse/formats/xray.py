"""What only XRay has: instrumentation maps, logs as they are written and converted."""

from perfuse.formats.xray_log import MISFITS, Writer, Written, convert
from perfuse.formats.xray_map import InstrumentationMap

__all__ = ["MISFITS", "InstrumentationMap", "Writer", "Written", "convert"]
