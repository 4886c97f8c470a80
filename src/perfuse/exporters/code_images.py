"""JIT code as ELF files, one a process, and a perf.data in which perf finds them."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import IO, TYPE_CHECKING

from perfuse import _core
from perfuse.elf_machine import E_MACHINES, e_machine
from perfuse.errors import ExportError

if TYPE_CHECKING:
    from perfuse.profile import Profile


@dataclass(frozen=True, slots=True)
class Image:
    """A written ELF file.

    Attributes:
        pid: Process whose code it has.
        build_id: Its build id, in hexadecimal.
        size_bytes: Its size.
        num_functions: Pieces of code in it.
        num_line_rows: Rows of its line tables.
        num_inlined_calls: Inlined calls it tells of.
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
        num_copied: Records of the recording it has.
        num_added: Mappings of the images that were added, one for each life of a piece of code at an address.
        num_dropped: Mappings of the recording that were left out, as they would have hidden the code.
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


class CodeImages:
    """Writes a profile's JIT code as ELF files; `Profile.images` is one.

    An image has every piece of code a process ever had, each at a place of its own, with symbols, and DWARF lines and
    inlined calls. Runtimes use addresses again, so places in an image are not addresses in memory: a perf.data says by
    its mappings which code was where, and when.
    """

    def __init__(self, profile: "Profile") -> None:
        self._profile = profile

    def pids(self) -> list[int]:
        """Processes that have JIT code."""
        return _core.code_pids(self._profile._fusion)

    def sampled_pids(self) -> list[int]:
        """Those of them that are in the perf.data."""
        joined = {join.pid for join in self._profile.joins}
        return [pid for pid in self.pids() if pid in joined]

    def write(self, files: Mapping[int, IO[bytes]]) -> Images:
        """Writes the code of each process in `files` to its file, which must be new and empty and have a descriptor.

        Raises:
            OSError: A file cannot be written.
            ExportError: There is more code than an ELF file can have.
        """
        descriptors = {pid: file.fileno() for pid, file in files.items()}
        return Images(_core.write_images(self._profile._fusion, descriptors, self._machine()))

    def inject(self, out: IO[bytes], images: Images, paths: Mapping[int, str | PathLike[str]]) -> Injection:
        """Writes the profile's perf.data again with its code mapped from images, as `perf inject --jit` would.

        Args:
            out: A new and empty file with a descriptor.
            images: What `write` wrote.
            paths: Where perf will find the image of each process, as absolute paths.

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
                f"there are {len(recordings)} perf.data files, and a new one is made of one: {', '.join(recordings)}",
                hint="convert them one by one",
            )
        if self._profile.selection.condition is not None:
            raise ExportError(
                "a perf.data is written with all samples of the recording",
                hint="leave the time range and the thread out, and choose them in perf: `perf report --time`, `--tid`",
            )

    def _machine(self) -> int:
        """What the code is for, where its dump does not say: what the samples are of, else this machine."""
        sampled = (r.summary.arch for r in self._profile.recordings if r.format == "perf_data")
        known = (E_MACHINES[arch] for arch in sampled if arch in E_MACHINES)
        return next(known, None) or e_machine(None)
