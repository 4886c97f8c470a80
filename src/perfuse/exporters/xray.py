"""XRay logs: llvm-xray reads them, and perfuse."""

import warnings
from typing import IO, Literal

from perfuse.errors import ExportWarning
from perfuse.exporters.source import CallSource
from perfuse.output_file import seekable_copy


def write(
    profile: CallSource,
    out: IO[bytes],
    *,
    mode: Literal["fdr", "basic"] | None = None,
    version: int | None = None,
    endian: Literal["little", "big"] | None = None,
    hz: int | None = None,
) -> None:
    """Writes the calls of a profile as a log. What has no place in it is told as `ExportWarning`.

    Args:
        profile: The profile.
        out: A binary file object.
        mode: Mode of the log: as the first log has it.
        version: Version of that mode, 1 to 5 of fdr, 1 to 3 of basic: as the first log has it, or the latest.
        endian: Byte order: as the first log has it.
        hz: Rate of the counter to state, in ticks a second; with it, logs that state different rates become one.
    """
    with seekable_copy(out) as log:
        written = profile.call_log.write(log.fileno(), mode=mode, version=version, endian=endian, hz=hz)
    for note in written.notes():
        warnings.warn(note, ExportWarning, stacklevel=2)
