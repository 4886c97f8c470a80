"""Writes a profile in the formats other people's viewers read.

`TARGETS` is the one list of them. An exporter is a module with

- ``write(profile, out, **options)``, which writes bytes to a file object, and/or
- ``write_directory(profile, path, **options)``, which fills an empty directory, or
- ``write_files(profile, unfinished, path, **options)``, which fills an empty directory with what will be at `path`
  and beside it,

for each output its entry names. It is imported when it is used; its keyword arguments are its options, but for
``progress``, which those take that need long.
"""

from perfuse.exporters.options import Option, option_named, options_of
from perfuse.exporters.output import export
from perfuse.exporters.registry import TARGETS, Target, target_for, target_named

__all__ = ["TARGETS", "Option", "Target", "export", "option_named", "options_of", "target_for", "target_named"]
