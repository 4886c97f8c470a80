"""Exporters: writing a profile in the formats of other viewers.

`TARGETS` lists all of them. An exporter is a module with

- ``write(profile, out, **options)``, which writes bytes to a file object, and/or
- ``write_directory(profile, path, **options)``, which fills an empty directory, or
- ``write_files(profile, unfinished, path, **options)``, which fills an empty directory with the files that will be at
  `path` and beside it,

for each output of its `Target`; its ``CONTENTS`` are the kinds of data that it writes. It is imported on first use. Its
keyword arguments are its options, except ``progress``, which slow exporters accept.
"""

from perfuse.exporters.options import Option, option_named, options_of
from perfuse.exporters.output import export
from perfuse.exporters.registry import TARGETS, Target, target_for, target_named

__all__ = ["TARGETS", "Option", "Target", "export", "option_named", "options_of", "target_for", "target_named"]
