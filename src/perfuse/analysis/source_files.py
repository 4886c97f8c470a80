"""Source files of a profile's code: from its recordings, from disk, from caches of debug information."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from perfuse.analysis.profiles import SourceProfile
from perfuse.input.directories import require_directories
from perfuse.table import Columns

_COMPILED_FIRST = re.compile(r"\.(?:[cm]?tsx?|jsx)$")
"""Sources of JavaScript that a runtime may make into other text before it runs."""
MAX_SOURCE_BYTES = 64 << 20
"""Larger files are not source files."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The text of a source file.

    Attributes:
        path: Its path in the recording.
        origin: Where the text is from: `recording`, or the path of a file.
        lines: Its lines.
    """

    path: str
    origin: str
    lines: tuple[str, ...]

    def line(self, number: int | None) -> str | None:
        """The text of a line, from 1; None where the file has no such line."""
        return self.lines[number - 1] if number and 0 < number <= len(self.lines) else None


def require_source_dirs(source_dirs: Sequence[str | os.PathLike[str]]) -> None:
    """Raises `UsageError` for a directory with source files that does not exist, or is a file."""
    require_directories(source_dirs, "source files", option="--source-dir", parameter="source_dirs")


class SourceFiles:
    """Finds source files: texts that the recordings contain, then `dirs`, the path itself, debuginfod's cache, and the
    directories of the recordings.

    Args:
        profile: The profile.
        dirs: Directories that contain the sources, whatever their place was when they were compiled.
        build_id: Build id of the program, for debuginfod's cache.
        recordings: Paths of the recordings.
        follow: Whether paths in the recording are opened as they are and beside the recordings (`all`), only in `dirs`
            and by build id (`named`), or only in `dirs` (`none`). Links in `dirs` lead out of these only with `all`.

    Raises:
        UsageError: One of `dirs` is not a directory.
    """

    def __init__(
        self,
        profile: SourceProfile,
        dirs: Sequence[str | os.PathLike[str]] = (),
        build_id: str | None = None,
        recordings: Sequence[str | os.PathLike[str]] = (),
        follow: Literal["all", "named", "none"] = "all",
    ) -> None:
        require_source_dirs(dirs)
        self._dirs = [Path(one) for one in dirs]
        self._follows_paths = follow == "all"
        self._beside = list(dict.fromkeys(Path(one).parent for one in recordings)) if self._follows_paths else []
        self._build_id = build_id if follow != "none" else None
        self._found: dict[str, SourceFile | None] = {}
        embedded = Columns(profile.tables["embedded_files"])
        self._embedded = dict(embedded.tuples("path", "text"))
        self._saved = profile.saved_sources()
        self._tables = profile.tables
        self.unlike_their_code: set[str] = set()
        """Paths of files whose lines are not those of the code: deno runs JavaScript that it makes of TypeScript."""

    def get(self, path: str) -> SourceFile | None:
        """The source file of a path in the recording; None where it is not found."""
        if path not in self._found:
            self._found[path] = self._find(path)
        return self._found[path]

    def _find(self, path: str) -> SourceFile | None:
        if path in self._embedded:
            return SourceFile(path, "recording", _lines(self._embedded[path]))
        if path in self._saved:
            origin, saved_text = self._saved[path]
            return SourceFile(path, origin, tuple(saved_text.split("\n")))
        local = _local_path(path)
        cached = self._cached(local)
        candidates = [
            *(one for one in _below(self._dirs, local) if self._follows_paths or self._is_in_dirs(one)),
            *([Path(local)] if Path(local).is_absolute() and self._follows_paths else ()),
            *([cached] if cached else ()),
            *_below(self._beside, local),
        ]
        for candidate in candidates:
            text = _read(candidate)
            if text is not None:
                found = SourceFile(path, str(candidate), _lines(text))
                if not _COMPILED_FIRST.search(path) or self._declares_functions(found):
                    return found
                self.unlike_their_code.add(path)
        return None

    def _declares_functions(self, source: SourceFile) -> bool:
        """Whether most functions of a source file are on the lines that the recording states."""
        rows = Columns(self._tables["functions"]).tuples("name", "path", "line")
        named = {(name, line) for name, path, line in rows if path == source.path and line and name.isidentifier()}
        there = sum(name in (source.line(line) or "") for name, line in named)
        return 2 * there >= len(named)

    def _is_in_dirs(self, path: Path) -> bool:
        found = path.resolve()
        return any(found.is_relative_to(one.resolve()) for one in self._dirs)

    def _cached(self, path: str) -> Path | None:
        """The file in debuginfod's cache, whose names have other characters than letters and digits replaced."""
        if not self._build_id:
            return None
        base = os.environ.get("DEBUGINFOD_CACHE_PATH")
        cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        folder = Path(base) if base else Path(cache).expanduser() / "debuginfod_client"
        wanted = _cache_name(path)
        try:
            names = sorted(one.name for one in (folder / self._build_id).iterdir() if one.name.startswith("source"))
        except OSError:
            return None
        found = next((name for name in names if _cache_name(name).endswith(wanted)), None)
        return folder / self._build_id / found if found else None


def _below(dirs: Sequence[Path], path: str) -> list[Path]:
    """In each directory the longest end of a path that exists."""
    parts = [part for part in Path(path).parts if part not in ("/", "..")]
    tails = [Path(*parts[start:]) for start in range(len(parts))]
    return [found for one in dirs for found in [one / tail for tail in tails if (one / tail).is_file()][:1]]


def _cache_name(path: str) -> str:
    return re.sub(r"[^0-9A-Za-z]", "#", path)


def _local_path(path: str) -> str:
    """The path of a `file:` URL; any other path as it is."""
    return unquote(urlsplit(path).path) if path.startswith("file:") else path


def _read(path: Path) -> bytes | None:
    try:
        if not path.is_file() or path.stat().st_size > MAX_SOURCE_BYTES:
            return None
        return path.read_bytes()
    except (OSError, ValueError):
        return None


def _lines(text: bytes) -> tuple[str, ...]:
    return tuple(text.decode("utf-8", "replace").replace("\r\n", "\n").split("\n"))
