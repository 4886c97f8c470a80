"""JIT code as ELF files, one per process, and a perf.data in which perf finds them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import IO, Any, Protocol

from perfuse import _core
from perfuse.errors import ExportError
from perfuse.filters.selection import Selection
from perfuse.programs.machine import machine_of_code


@dataclass(frozen=True, slots=True)
class Image:
    """A written ELF file.

    Attributes:
        pid: Process whose code it contains.
        build_id: Its build id, in hexadecimal.
        size_bytes: Its size.
        num_functions: Number of code objects.
        num_line_rows: Rows of its line tables.
        num_inlined_calls: Inlined calls.
    """

    pid: int
    build_id: str
    size_bytes: int
    num_functions: int
    num_line_rows: int
    num_inlined_calls: int


@dataclass(frozen=True, slots=True)
class Injection:
    """A written perf.data.

    Attributes:
        num_copied: Records copied from the recording.
        num_added: Mappings of the images that were added, one for each lifetime of a code object at an address.
        num_dropped: Mappings of the recording that were left out, because they would have hidden the code.
    """

    num_copied: int
    num_added: int
    num_dropped: int


class Images:
    """Written images; `CodeImages.write` makes them.

    Attributes:
        images: What was written, by pid.
    """

    def __init__(self, core: _core.Images) -> None:
        self._core = core
        self.images = tuple(Image(*facts) for facts in core.facts())


class CodeProfile(Protocol):
    """A profile with JIT code; `perfuse.Profile` is one."""

    selection: Selection

    @property
    def _fusion(self) -> _core.Profile:
        """All recordings, joined."""
        ...

    @property
    def recordings(self) -> Sequence[Any]:
        """The open files."""
        ...

    @property
    def joins(self) -> Sequence[Any]:
        """How each dump was joined with the samples."""
        ...


class CodeImages:
    """Writes a profile's JIT code as ELF files; `Profile.images` is one.

    An image contains every code object that a process ever had, each at an address of its own, with symbols, DWARF
    lines and inlined calls. Runtimes reuse addresses, so addresses in an image are not addresses in memory: the
    mappings of a perf.data state which code was where, and when.
    """

    def __init__(self, profile: CodeProfile) -> None:
        self._profile = profile

    def pids(self) -> list[int]:
        """Processes that have JIT code."""
        return _core.code_pids(self._profile._fusion)

    def sampled_pids(self) -> list[int]:
        """Of these, the processes that are in the perf.data."""
        joined = {join.pid for join in self._profile.joins}
        return [pid for pid in self.pids() if pid in joined]

    def write(self, files: Mapping[int, IO[bytes]]) -> Images:
        """Writes the code of each process in `files` to its file, which must be new and empty and have a descriptor.

        Raises:
            OSError: A file cannot be written.
            ExportError: There is more code than an ELF file can contain.
        """
        descriptors = {pid: file.fileno() for pid, file in files.items()}
        machine = machine_of_code(None, self._profile.recordings)
        return Images(_core.write_images(self._profile._fusion, descriptors, machine))

    def inject(self, out: IO[bytes], images: Images, paths: Mapping[int, str | PathLike[str]]) -> Injection:
        """Writes a copy of the profile's perf.data whose code is mapped from images, as `perf inject --jit` would.

        Args:
            out: A new and empty file with a descriptor.
            images: What `write` wrote.
            paths: The image of each process, as absolute paths for perf.

        Raises:
            OSError: The file cannot be written.
            ExportError: The profile has no perf.data or is a part of one, or a path is too long for a record.
        """
        self.check_recording()
        named = {pid: fspath(path) for pid, path in paths.items()}
        counts = _core.inject_images(self._profile._fusion, images._core, named, out.fileno())
        assert counts is not None
        return Injection(*counts)

    def check_recording(self) -> None:
        """Raises `ExportError` where the profile is not of one whole perf.data."""
        recordings = [r.path for r in self._profile.recordings if r.format == "perf_data"]
        if not recordings:
            raise ExportError("there is no perf.data to put the code into", hint="open the perf.data with its dump")
        if len(recordings) > 1:
            raise ExportError(
                f"there are {len(recordings)} perf.data files, and the output is a copy of one:"
                f" {', '.join(recordings)}",
                hint="convert them one by one",
            )
        if self._profile.selection.condition is not None:
            raise ExportError(
                "a perf.data is written with all samples of the recording",
                hint="select time range and thread in perf instead: `perf report --time`, `--tid`",
            )
