"""Examples in Markdown pages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "guides").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Command:
    """A command line of a page and the output that follows it there; `…` alone on a line stands for any lines."""

    page: Path
    line: str
    output: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page.name}: {self.line}"


def blocks(page: Path, language: str) -> list[str]:
    """Blocks of code in a language."""
    return [text for kind, text in _BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


def commands(page: Path) -> Iterator[Command]:
    """Commands of perfuse in a page; those of other programs are not run here."""
    for text in blocks(page, "console"):
        line, output = "", list[str]()
        for row in [*text.splitlines(), "$ "]:
            if not row.startswith("$ "):
                output.append(row)
                continue
            if line.startswith("perfuse "):
                yield Command(page, line, tuple(output))
            line, output = row[2:], []
