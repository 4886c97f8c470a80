"""Functions, source files and machine code by library and offset, as the Firefox Profiler asks for them.

Libraries are those of the exported profile; JIT code is in an artificial one for each process.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from perfuse import _core
from perfuse.analysis.instructions import Instruction, decode
from perfuse.exporters.firefox.frames import FRAME_ROWS, JIT_CODE
from perfuse.exporters.firefox.shared import breakpad_id
from perfuse.programs.machine import E_MACHINES, e_machine
from perfuse.reports.names import module_text
from perfuse.table import Columns

if TYPE_CHECKING:
    from perfuse.analysis.source_files import SourceFiles
    from perfuse.profile import Profile


@dataclass(frozen=True, slots=True)
class Line:
    """A function at an offset, and its source position there.

    Attributes:
        function: Name; None where unknown.
        path: Source file.
        line: Line, from 1.
    """

    function: str | None
    path: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class Located:
    """What is at an offset of a library.

    Attributes:
        start: Offset of the function.
        size_bytes: Its size; None where unknown.
        frames: The function, then those that were inlined there, the innermost last.
    """

    start: int
    size_bytes: int | None
    frames: list[Line]


@dataclass(frozen=True, slots=True)
class Code:
    """The machine code of a function.

    Attributes:
        start: Offset of the function in its library.
        data: Its bytes.
        address: Address of the first byte when it ran, or in its file.
        machine: ELF `e_machine`.
        starts: Offsets in it at which instructions are known to start.
    """

    start: int
    data: bytes
    address: int
    machine: int
    starts: list[int] = field(default_factory=list)

    def instructions(self, *, intel: bool) -> list[Instruction]:
        """Its instructions."""
        return decode(self.data, self.address, self.machine, intel=intel, starts=self.starts)


class JitLibrary:
    """The JIT code of a process."""

    build_id = None

    def __init__(self, profile: Profile, places: list[tuple[int, int]]) -> None:
        self._profile = profile
        self._starts = [start for start, _ in places]
        self._keys = [key for _, key in places]

    def locate(self, offset: int) -> Located | None:
        """What is at an offset; None where nothing is."""
        found = self._row(offset)
        if found is None:
            return None
        key, start, row = found
        name, size = self._function(row["function_id"]), row["size_bytes"]
        lines = Columns(_core.code_rows(self._profile._code, "line_rows", [key]))
        number = bisect_right(lines["code_offset"], offset - start) - 1
        path, line = self._place(row["function_id"])
        if number >= 0 and lines["path"][number]:
            path, line = lines["path"][number], lines["line"][number]
        inlined = Columns(_core.code_rows(self._profile._code, "inline_calls", [key]))
        columns = ("start_offset", "size_bytes", "depth", "function_id", "call_path", "call_line")
        calls = [one for one in inlined.tuples(*columns) if 0 <= offset - start - one[0] < one[1]]
        frames = []
        for _, _, _, function, call_path, call_line in sorted(calls, key=lambda one: one[2]):
            frames.append(Line(name, call_path or None, call_line))
            name = self._function(function)
        return Located(start, size, [*frames, Line(name, path or None, line)])

    def code(self, offset: int) -> Code | None:
        """The code at an offset; None where nothing is, or its bytes were not recorded."""
        found = self._row(offset)
        if found is None:
            return None
        key, start, row = found
        arch = self._profile.recordings[row["source_id"]].summary.arch
        archs = [arch, *(one.summary.arch for one in self._profile.recordings if one.format == "perf_data")]
        machine = next((E_MACHINES[one] for one in archs if one in E_MACHINES), None) or e_machine(None)
        data = Columns(_core.code_rows(self._profile._code, "code_objects", [key])).value("code", 0)
        return Code(start, bytes(data), row["start_address"], machine, self._sampled(key)) if data else None

    def _sampled(self, key: int) -> list[int]:
        """Offsets in code at which samples were taken: instructions start there."""
        frames = Columns(self._profile.tables["frames"])
        rows = frames.tuples("code_object_id", "relative_address", "unwound_by")
        return [at for code, at, unwound_by in rows if code == key and at is not None and unwound_by == "sampled"]

    def _row(self, offset: int) -> tuple[int, int, dict[str, Any]] | None:
        """Key, offset and row of the code that contains an offset."""
        number = bisect_right(self._starts, offset) - 1
        if number < 0:
            return None
        key, start = self._keys[number], self._starts[number]
        columns = ("function_id", "size_bytes", "source_id", "start_address")
        rows = Columns(_core.code_rows(self._profile._code, "code_objects", [key])).tuples(*columns)
        row = dict(zip(columns, next(iter(rows)), strict=True))
        return (key, start, row) if offset - start < row["size_bytes"] else None

    @cached_property
    def _functions(self) -> dict[int, tuple[str, str | None, int | None]]:
        functions = Columns(self._profile.tables["functions"])
        rows = functions.tuples("function_id", "name", "path", "line")
        return {key: (name, path, line) for key, name, path, line in rows}

    def _function(self, key: int) -> str | None:
        found = self._functions.get(key)
        return None if found is None else found[0]

    def _place(self, key: int) -> tuple[str | None, int | None]:
        found = self._functions.get(key)
        return (None, None) if found is None else found[1:]


class NativeLibrary:
    """A program or library."""

    def __init__(self, profile: Profile, path: str, build_id: str | None) -> None:
        self.build_id = build_id
        self._module = _core.NativeModule(profile._fusion, path, build_id)
        self._sizes: dict[int, int | None] = {}

    def locate(self, offset: int) -> Located | None:
        """What is at an offset; None where nothing is known."""
        [(frames, start)] = self._module.frames([offset])
        if not frames or start is None:
            return None
        if start not in self._sizes:
            found = self.code(offset)
            self._sizes[start] = None if found is None else len(found.data)
        return Located(start, self._sizes[start], [Line(name, path, line) for name, path, line, _ in frames])

    def code(self, offset: int) -> Code | None:
        """The code of the function at an offset; None where its file was not found."""
        try:
            address, data, machine = self._module.function_code(offset)
        except ValueError:
            return None
        return Code(address, data, address, machine)


Library = JitLibrary | NativeLibrary


class Libraries:
    """The libraries of a profile by the names and ids that its export has."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._open: dict[tuple[str, str], Library] = {}
        rows = profile.sql(
            f"SELECT DISTINCT lib_path, lib_build_id, code_object_id IS NOT NULL FROM ({FRAME_ROWS}) WHERE lib >= 0"
        ).fetchall()
        self._known = {(module_text(path), breakpad_id(path, build)): (path, build, jit) for path, build, jit in rows}

    def find(self, debug_name: str, debug_id: str) -> Library | None:
        """A library; None where the profile has none of the name and id."""
        key = debug_name, debug_id.upper()
        if key not in self._known:
            return None
        if key not in self._open:
            path, build_id, is_jit = self._known[key]
            self._open[key] = self._jit(path) if is_jit else NativeLibrary(self._profile, path, build_id)
        return self._open[key]

    def _jit(self, name: str) -> JitLibrary:
        rows = self._profile.sql(
            f"SELECT jit_offset, code_object_id FROM ({JIT_CODE}) WHERE jit = $name AND jit_offset < 2147483648"
            " ORDER BY jit_offset, code_object_id",
            {"name": name},
        ).fetchall()
        return JitLibrary(self._profile, [(int(start), key) for start, key in rows])

    def sources(self, library: Library, source_dirs: tuple[str, ...], *, by_build_id: bool) -> SourceFiles:
        """Source files that may be given away: texts in the recording, files in `source_dirs`, debuginfod's cache.

        A recording can name any file of this machine: paths that only it names are not opened.
        """
        from perfuse.analysis.source_files import SourceFiles

        return SourceFiles(self._profile, source_dirs, library.build_id, follow="named" if by_build_id else "none")
