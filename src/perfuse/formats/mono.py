"""What only Mono's log profiler has: logs converted and written, and heap shots of a running program."""

from perfuse.formats.mono_heapshot import heapshot
from perfuse.formats.mono_log import Written, convert, kinds_like
from perfuse.formats.mono_unsupported import UNSUPPORTED
from perfuse.formats.mono_writer import Writer

__all__ = ["UNSUPPORTED", "Writer", "Written", "convert", "heapshot", "kinds_like"]
