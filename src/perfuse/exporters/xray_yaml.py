"""XRay logs in the YAML that llvm-xray writes and reads."""

import warnings
from typing import IO

from perfuse.errors import ExportWarning
from perfuse.exporters.source import CallSource
from perfuse.output_file import seekable_copy


def write(profile: CallSource, out: IO[bytes], *, version: int = 1, hz: int | None = None) -> None:
    """Writes the XRay logs of a profile as one, a line a record, in the order of time.

    Args:
        profile: The profile.
        out: A binary file object.
        version: Version to state. Records are the same in all, but llvm-xray reads back none but 1, not even its own.
        hz: Rate of the counter to state, in ticks a second; with it, logs that state different rates become one.
    """
    with seekable_copy(out) as log:
        written = profile.call_log.write(log.fileno(), version=version, hz=hz, yaml=True)
    for note in written.notes():
        warnings.warn(note, ExportWarning, stacklevel=2)
