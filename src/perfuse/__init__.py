"""perfuse opens the profiling and tracing files that runtimes leave behind."""

from perfuse._core import __version__

__all__ = ["__version__"]
