"""Unsafe code: each block has its reason beside it and a row in the decision."""

import re
from pathlib import Path

UNSAFE = re.compile(r"\bunsafe\s*(\{|fn\b|impl\b|extern\b)")
COMMENT = re.compile(r"^\s*//")


def unsafe_lines(text: str) -> list[int]:
    """Numbers of lines with unsafe code, from 0; not of those that are comments."""
    lines = text.splitlines()
    return [number for number, line in enumerate(lines) if UNSAFE.search(line) and not COMMENT.match(line)]


def has_reason(lines: list[str], number: int) -> bool:
    """Whether the comment before a line, or before the statement that it continues, has the reason."""
    for before in reversed(lines[max(0, number - 12) : number]):
        if "SAFETY:" in before or "# Safety" in before:
            return True
        # A block ends what a comment is about, unless an unsafe function is documented before its attributes.
        if before.strip() in {"}", "};", ""}:
            return False
    return False


def test_the_rule_finds_what_it_is_about() -> None:
    good = "    // SAFETY: it is.\n    let a =\n        unsafe { f() };\n"
    bad = "    // SAFETY: it is.\n    }\n\n    let a = unsafe { f() };\n"
    assert [has_reason(text.splitlines(), unsafe_lines(text)[0]) for text in (good, bad)] == [True, False]
    assert unsafe_lines("// unsafe { }\nlet unsafely = 1;\nunsafe impl Sync for A {}\n") == [2]


def test_each_unsafe_block_has_a_reason(root: Path) -> None:
    missing = []
    for path in sorted((root / "crates").glob("*/**/*.rs")):
        if "target" in path.parts:
            continue
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        missing += [f"{path.relative_to(root)}:{one + 1}" for one in unsafe_lines(text) if not has_reason(lines, one)]
    assert not missing, "a comment with SAFETY: states why the block is sound"


def test_each_file_with_unsafe_code_has_a_row(root: Path) -> None:
    [decision] = (root / "docs" / "decisions").glob("*-unsafe-code.md")
    rows = decision.read_text(encoding="utf-8")
    files = [
        path
        for path in (root / "crates").glob("*/**/src/**/*.rs")
        if "tests" not in path.parts and path.name != "tests.rs" and unsafe_lines(path.read_text(encoding="utf-8"))
    ]
    names = {path.relative_to(root / "crates").as_posix().replace("/src/", "/") for path in files}
    absent = sorted(name for name in names if f"`{name}`" not in rows)
    assert not absent, f"{decision.name} needs a row"


def test_tests_in_the_table_exist(root: Path) -> None:
    [decision] = (root / "docs" / "decisions").glob("*-unsafe-code.md")
    paths = set(re.findall(r"`((?:crates|tests)/[^` ]+)`", decision.read_text(encoding="utf-8")))
    assert paths
    assert not [path for path in sorted(paths) if not (root / path).exists()]
