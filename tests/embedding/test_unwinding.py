"""Rows of SFrame sections, found by an embedded library, are those of `.eh_frame`, as readelf interprets it."""

import platform
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import ROOT, Program

_ROW = re.compile(r"^(?P<loc>[0-9a-f]{16}) (?P<base>rsp|rbp)\+(?P<offset>\d+)\s+(?P<rest>.*)$")


def _rows(program: Path) -> dict[int, str]:
    """The canonical frame address by address, of rows that SFrame can express."""
    printed = subprocess.check_output(["readelf", "-wF", program], text=True)
    rows = {}
    for line in printed.splitlines():
        if (row := _ROW.match(line)) and row["rest"].rstrip().endswith("c-8") and int(row["loc"], 16):
            base = {"rsp": "sp", "rbp": "fp"}[row["base"]]
            rows[int(row["loc"], 16)] = f"{base}+{row['offset']}"
    return rows


@pytest.mark.parametrize(("name", "least"), [("orders", 5), ("libsmall.so", 1)])
def test_rows_are_those_of_eh_frame(name: str, least: int, unwind: Program) -> None:
    program = ROOT / "examples/unwind_tables" / name
    rows = _rows(program)
    answers = [line.split("\t") for line in unwind(program, *[f"{at:x}" for at in rows]).splitlines()]
    found = {int(answer[0], 16): answer[2:] for answer in answers if answer[1] != "?"}
    assert len(found) >= least
    assert found == {at: [rows[at], "[cfa-8]"] for at in found}


def test_an_address_outside_of_functions_has_no_row(unwind: Program) -> None:
    assert unwind(ROOT / "examples/unwind_tables/orders", "1", "ffffffffffffffff") == "1\t?\nffffffffffffffff\t?\n"


@pytest.mark.parametrize(
    ("optimized", "callers"), [("-O0", r"13"), ("-O2", r"\d+"), ("-O2 -fno-omit-frame-pointer", r"\d+")]
)
def test_a_program_unwinds_its_own_stack(compile_c: Callable[..., Path], optimized: str, callers: str) -> None:
    """Frames are compared with those of the C library. Without inlining it has 13."""
    has_sframe = subprocess.run(
        ["as", "--gsframe", "-o", "/dev/null"], input="", text=True, capture_output=True, check=False
    )
    if platform.machine() != "x86_64" or has_sframe.returncode:
        pytest.skip("this assembler writes no SFrame section")
    program = compile_c(ROOT / "examples/embed_c/unwind_self.c", "-Wa,--gsframe", *optimized.split())
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(rf"{callers} callers, 0 of them wrong\n", done.stdout)
    assert not done.stdout.startswith("0 ")
