"""SECURITY.md: each promise has a test that exists."""

import re
from pathlib import Path


def test_each_promise_has_a_test(root: Path) -> None:
    text = (root / "SECURITY.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", text.split("\n## Promises", 1)[1], re.MULTILINE)[2:]
    assert len(rows) > 10
    for promise, tests in rows:
        paths = re.findall(r"`((?:tests|crates|fuzz)/[^`]*)`", tests)
        assert paths, promise
        assert all(any(root.glob(path.rstrip("/"))) for path in paths), (promise, paths)
