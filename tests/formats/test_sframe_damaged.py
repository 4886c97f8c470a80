"""Damaged SFrame files are compared with their `.eh_frame`: an error or a diagnostic with an offset, never a panic."""

from pathlib import Path

import pytest

import perfuse as pf
from perfuse.errors import UnreadableInput

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
FOLDERS = (CORPUS / "found" / "sframe", CORPUS / "sframe" / "bad")
FILES = [path for folder in FOLDERS for path in sorted(folder.glob("*")) if path.suffix in {".o", ".elf"}]

pytestmark = pytest.mark.skipif(not FILES, reason="no corpus beside the project")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_damaged_file_is_checked_without_a_panic(path: Path) -> None:
    try:
        recording = pf.open(path)
    except UnreadableInput:
        return
    size = path.stat().st_size
    assert all(one.offset is None or 0 <= one.offset <= size for one in recording.check())
