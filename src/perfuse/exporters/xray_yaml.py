"""XRay logs in the YAML of llvm-xray."""

import warnings
from typing import IO

from perfuse.errors import ExportWarning
from perfuse.exporters.contents import contents
from perfuse.exporters.source import CallSource
from perfuse.output.file import seekable_copy

CONTENTS = contents(calls="records of entries and exits", instants="records of custom and typed events")


def write(profile: CallSource, out: IO[bytes], *, version: int = 1, hz: int | None = None) -> None:
    """Writes the XRay logs of a profile as one file, a line per record, in time order, with names of functions.

    Args:
        profile: The profile.
        out: A binary file object.
        version: Version to state. Records are the same in all versions, but llvm-xray reads only version 1.
        hz: Rate of the counter to state, in ticks per second; required to merge logs that state different rates.
    """
    with seekable_copy(out) as log:
        written = profile.call_log.write(log.fileno(), version=version, hz=hz, yaml=True)
    for note in written.notes():
        warnings.warn(note, ExportWarning, stacklevel=2)
