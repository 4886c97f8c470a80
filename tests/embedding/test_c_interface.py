"""What the C interface promises beyond names, asserted in C: statuses, NULL, the life of answers, threads."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from .test_names import FIRST, LATER

PROGRAM = Path(__file__).with_name("interface.c")


def test_the_interface_keeps_its_promises(compile_c: Callable[[Path], Path], tmp_path: Path) -> None:
    first, later = tmp_path / "first", tmp_path / "later"
    first.write_bytes(FIRST)
    later.write_bytes(LATER)
    done = subprocess.run([compile_c(PROGRAM), first, later], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "0.1.0\n"
