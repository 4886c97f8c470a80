"""The files of the corpus, and those that are opened together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truth.kinds import CORPUS, KINDS

NOT_RECORDINGS = frozenset({"src", "expected", "scripts", "counts"})
"""Folders with sources and the output of other tools."""
NOT_OPENED = frozenset({".json", ".md", ".py", ".txt", ".yaml"})
"""Suffixes of files about recordings."""
LEFT_OUT = frozenset({"enter-flood-no-leave.mlpd"})
"""Files with calls so deep that whole stacks of all of them take many gigabytes."""
PROGRAMS_OF_LOGS = CORPUS / "xray" / "bin"


@dataclass(frozen=True, slots=True)
class RecordingSet:
    """Files that are opened together.

    Attributes:
        name: Its name: the files, below the corpus.
        paths: The files.
        options: Arguments of `perfuse.fuse`.
    """

    name: str
    paths: tuple[Path, ...]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        """The files on the command line."""
        maps = [word for path in self.options.get("maps", {}).values() for word in ("--map", str(path))]
        return [*map(str, self.paths), *maps]


def every_set() -> Iterator[RecordingSet]:
    """The examples of the truth matrix; each file by itself; perf.data with its dumps; logs with their programs."""
    seen: set[tuple[tuple[Path, ...], bool]] = set()
    for one in _sets():
        key = (one.paths, bool(one.options))
        if key not in seen:
            seen.add(key)
            yield one


def _sets() -> Iterator[RecordingSet]:
    for kind in KINDS.values():
        yield RecordingSet(kind.name, kind.paths, kind.fuse_options)
    files = [
        path
        for path in sorted(CORPUS.rglob("*"))
        if path.is_file()
        and path.suffix not in NOT_OPENED
        and path.name not in LEFT_OUT
        and not NOT_RECORDINGS & set(path.relative_to(CORPUS).parts[:-1])
    ]
    for path in files:
        name = str(path.relative_to(CORPUS))
        yield RecordingSet(name, (path,))
        if path.suffix == ".data":
            stem = path.name.removesuffix("perf.data")
            dumps = [one for one in files if one.parent == path.parent and ".dump" in one.name]
            for dump in dumps:
                if dump.name.split(".dump")[0] == stem.rstrip(".") or not stem:
                    yield RecordingSet(f"{name}+{dump.name}", (path, dump))
        if path.suffix == ".xray" and (program := _program_of(path)) is not None:
            yield RecordingSet(f"{name} with {program.name}", (path,), {"maps": {0: program}})


def _program_of(log: Path) -> Path | None:
    """The program that wrote a log of the corpus: names begin alike."""
    if log.parent.name == "pair":
        return log.with_name("p")
    stem = log.name.removeprefix("basic-").split("-")[0].rstrip("0123456789")
    programs = sorted(PROGRAMS_OF_LOGS.glob(f"{stem}[0-9]*"))
    return programs[-1] if programs else None
