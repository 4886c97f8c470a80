"""SFrame sections of simple-frame-rs, compared with objdump's text of each."""

import json
import os
from pathlib import Path

import pytest

from perfuse import sframe

BESIDE = Path(__file__).parents[3] / "shared" / "corpus"
CASES = sorted((Path(os.environ.get("PERFUSE_CORPUS", BESIDE)) / "sframe" / "third_party").rglob("*.json"))


def style_of(truth: str) -> str:
    """The readelf style that prints as the objdump did that made a text."""
    if "VERSION_1" in truth:
        return "readelf-2.40"
    return "readelf-2.47" if "VERSION_3" in truth or "PCREL" in truth else "readelf-2.44"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_case_reads_as_objdump_prints_it(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))
    _, _, truth = case["groundtruth"].partition("Contents of")
    if not case["content"]:
        assert not truth
        return
    opened = sframe.open(bytes(case["content"]), address=case["section_base"])
    text = b"".join(opened.readelf(style_of(truth))).decode()
    assert text.rstrip("\n") == "Contents of" + truth.rstrip("\n")


def test_there_are_cases() -> None:
    if not CASES:
        pytest.skip("no corpus")
    assert len(CASES) >= 100
