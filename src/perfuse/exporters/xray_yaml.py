"""XRay logs in the YAML that llvm-xray writes and reads."""

import shutil
import tempfile
import warnings
from typing import IO

from perfuse.errors import ExportWarning
from perfuse.exporters.source import CallSource


def write(profile: CallSource, out: IO[bytes], *, version: int = 1, hz: int | None = None) -> None:
    """Writes the XRay logs of a profile as one, a line a record, in the order of time.

    Args:
        profile: What to write.
        out: Where to.
        version: Version to state. Records are the same in all, but llvm-xray reads back none but 1, not even its own.
        hz: Rate of the counter to state, in ticks a second; with it, logs that state different rates become one.
    """
    with tempfile.TemporaryFile() as log:
        written = profile.call_log.write(log.fileno(), version=version, hz=hz, yaml=True)
        log.seek(0)
        shutil.copyfileobj(log, out, 1 << 20)
    for told in written.told():
        warnings.warn(told, ExportWarning, stacklevel=2)
