"""XRay logs, which llvm-xray and perfuse read."""

import warnings
from typing import IO, Literal

from perfuse.errors import ExportWarning
from perfuse.exporters.contents import contents
from perfuse.exporters.source import CallSource
from perfuse.output.file import seekable_copy

CONTENTS = contents(calls="each, with its times and first argument", instants="custom and typed events")


def write(
    profile: CallSource,
    out: IO[bytes],
    *,
    mode: Literal["fdr", "basic"] | None = None,
    version: int | None = None,
    endian: Literal["little", "big"] | None = None,
    hz: int | None = None,
) -> None:
    """Writes the calls of a profile as a log. What a log cannot represent is reported as
    `ExportWarning`.

    Args:
        profile: The profile.
        out: A binary file object.
        mode: Mode of the log; by default that of the first log.
        version: Version of that mode, 1 to 5 of fdr, 1 to 3 of basic; by default that of the first log, or the latest.
        endian: Byte order; by default that of the first log.
        hz: Rate of the counter to state, in ticks per second; required to merge logs that state different rates.
    """
    with seekable_copy(out) as log:
        written = profile.call_log.write(log.fileno(), mode=mode, version=version, endian=endian, hz=hz)
    for note in written.notes():
        warnings.warn(note, ExportWarning, stacklevel=2)
