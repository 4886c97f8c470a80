"""Compiled code of Mono logs that are assembled here: a function has its own compilations, and no others."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import perfuse as pf
from fusing import mono_bytes

CODE = [(0x1000, 64, 10), (0x2000, 80, 20), (0x3000, 96, 30)]
"""Address, size and time of each method."""


@pytest.fixture(params=["log", "saved"])
def recording(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "output.mlpd"
    path.write_bytes(mono_bytes.log(1, [5], start_ns=1000, code=CODE))
    if request.param == "log":
        return path
    saved = tmp_path / "output.perfuse"
    pf.fuse(path).save(saved)
    return saved


def annotated(recording: Path, function: str) -> Any:
    command = [sys.executable, "-m", "perfuse", "annotate", "--json", recording, function]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


@pytest.mark.parametrize("number", range(len(CODE)))
def test_compilations_are_of_the_function(recording: Path, number: int) -> None:
    report = annotated(recording, f"App:compiled{number} ()")
    (one,) = report["compilations"]
    address, size, _ = CODE[number]
    assert (int(one["address"], 0), one["size_bytes"]) == (address, size)


def test_code_of_several_functions_is_asked_for_together(recording: Path) -> None:
    assert [len(annotated(recording, handle)["compilations"]) for handle in ("c0", "c2")] == [1, 1]
