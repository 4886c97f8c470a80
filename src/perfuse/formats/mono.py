"""What only Mono's log profiler has: logs as they are converted and written, and a running profiler that is asked for a shot."""

from perfuse.formats.mono_log import MISFITS, Written, convert, kinds_like
from perfuse.formats.mono_writer import Writer

__all__ = ["MISFITS", "Writer", "Written", "convert", "kinds_like"]
