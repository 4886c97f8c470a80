"""Every code by which the core states what SFrame cannot represent has a text, and no text is without a code."""

import re
from pathlib import Path

from perfuse.formats.sframe.unsupported import TEXTS


def test_codes_and_texts_are_the_same(root: Path) -> None:
    crates = root / "crates"
    declared = (crates / "formats" / "sframe" / "src" / "writer" / "unsupported.rs").read_text(encoding="utf-8")
    codes = set(re.findall(r'Self::\w+ => "(\w+)"', declared))
    for name in ("from_eh_frame.rs", "coverage.rs"):
        text = (crates / "profile" / "src" / "sframe" / name).read_text(encoding="utf-8")
        codes |= set(re.findall(r'\("([a-z_]+)", (?:String|why)', text))
        codes |= set(re.findall(r'reason: "([a-z_]+)"', text))
    assert codes == set(TEXTS)
