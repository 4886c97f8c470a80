"""The README is also the description of the package on PyPI, where relative links lead nowhere."""

import re
from pathlib import Path

BASES = ("https://github.com/perfuse/perfuse/blob/main/", "https://raw.githubusercontent.com/perfuse/perfuse/main/")


def test_links_are_absolute_and_lead_to_files(root: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", (root / "README.md").read_text(encoding="utf-8"))
    assert links
    assert not [link for link in links if not link.startswith(("https://", "#"))]
    own = [link.removeprefix(base).split("#")[0] for link in links for base in BASES if link.startswith(base)]
    assert own
    assert not [path for path in own if not (root / path).exists()]
