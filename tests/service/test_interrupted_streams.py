"""Streams of tables that a database pulls without the interpreter's lock, while this module is on the stack."""

import struct
import subprocess
import sys
from pathlib import Path

import pytest

NUM_CALLS = 2_000_000
"""Of which the slices take longer than the interval at which signals are looked for."""

WRITE_ARROW = """
import sys
import perfuse as pf
from perfuse import _core
profile = pf.fuse(sys.argv[1])
with open(sys.argv[2], "wb") as out:
    _core.write_arrow(out, profile.sql("SELECT * FROM slices"), True)
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An XRay log of so many calls."""
    call = struct.pack("<IIII", 1 << 4, 5, 1 << 4 | 2, 5)
    preamble = struct.pack("<Bi11x", 1, 100) + struct.pack("<Bqi3x", 9, 1, 0)
    preamble += struct.pack("<Bi11x", 19, 77) + struct.pack("<BHQ5x", 5, 1, 10**9)
    path = tmp_path_factory.mktemp("streams") / "xray-log.long.1"
    header = struct.pack("<HHIQ16x", 5, 1, 3, 10**9)
    extents = struct.pack("<BQ7x", 15, len(preamble) + len(call) * NUM_CALLS)
    path.write_bytes(header + extents + preamble + call * NUM_CALLS)
    return path


def test_signals_are_looked_for_with_the_lock(log: Path, tmp_path: Path) -> None:
    """The process once ended by SIGSEGV here where a table took longer than 20 ms to make."""
    out = tmp_path / "out.arrows"
    done = subprocess.run([sys.executable, "-c", WRITE_ARROW, log, out], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert out.stat().st_size > 8 * NUM_CALLS
