"""Numbers of the objects of a process in XRay logs: the program is 0, libraries follow as their constructors run.

The order is that of glibc's loader: libraries before those that need them, and otherwise the last one that was loaded
first. Libraries that were opened with `dlopen` are numbered when that happens, which no file states.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path

from perfuse import _core
from perfuse.errors import UnreadableInput
from perfuse.fusing.following import Follow
from perfuse.value_class import value_class

FUNCTION_BITS = 24
"""Bits of a function id that are the function's number in its object."""


@value_class
class _Object:
    """A program or library; without a path where its file was not found."""

    path: Path | None
    needed: tuple[str, ...] = ()
    search: tuple[Path, ...] = ()

    @classmethod
    def read(cls, path: Path) -> "_Object":
        read = _core.elf_dependencies(path)
        if read is None:
            return cls(path)
        _, needed, search = read
        origin = str(path.resolve().parent)
        directories = (one.replace("$ORIGIN", origin).replace("${ORIGIN}", origin) for one in search)
        return cls(path, tuple(needed), tuple(Path(one) for one in directories))


class LoadOrder:
    """The libraries of a program in the order of their constructors.

    Args:
        program: The program.
        libraries: Files of libraries, which have precedence over files found elsewhere.
        directories: Directories to search besides those of the program and of these libraries, and those that the files
            state.
        follow: Whether libraries that the files need are searched, with `all` also in directories that files state.
    """

    def __init__(
        self,
        program: str,
        libraries: Iterable[str],
        directories: Iterable[str | PathLike[str]] = (),
        follow: Follow = "all",
    ) -> None:
        self._follow = follow
        self._program = Path(program)
        self._given: dict[str, Path] = {}
        for library in map(Path, libraries):
            soname = (_core.elf_dependencies(library) or (None,))[0]
            self._given |= {library.name: library, **({soname.rsplit("/")[-1]: library} if soname else {})}
        parents = [self._program.parent, *(one.parent for one in self._given.values())]
        self._directories = list(dict.fromkeys([*parents, *map(Path, directories)]))

    @cached_property
    def instrumented(self) -> list[str]:
        """Libraries that have an instrumentation map."""
        return [str(one) for one in self._constructed if one in self._given.values() or has_map(one)]

    @property
    def _constructed(self) -> list[Path]:
        """All libraries whose files were found."""
        program = _Object.read(self._program)
        objects: dict[str, _Object] = {"": program}
        queue = [program]
        for one in queue:
            for name in one.needed:
                if name not in objects:
                    objects[name] = self._find(name, one)
                    queue.append(objects[name])
        # From the last library to the first, each after those it needs; constructors run from the end of this list.
        placed: list[_Object] = []
        visited: set[int] = set()

        def place(one: _Object) -> None:
            if id(one) not in visited:
                visited.add(id(one))
                for name in one.needed:
                    place(objects[name])
                placed.insert(0, one)

        for one in reversed(list(objects.values())):
            place(one)
        found = [one.path for one in reversed(placed) if one is not program]
        return list(dict.fromkeys(path for path in found if path is not None))

    def _find(self, name: str, needed_by: _Object) -> _Object:
        plain = name.rsplit("/", maxsplit=1)[-1]
        if plain in self._given:
            return _Object.read(self._given[plain])
        stated = needed_by.search if self._follow == "all" else ()
        searched = () if self._follow == "none" else (*stated, *self._directories)
        candidates = (directory / plain for directory in searched)
        return next((_Object.read(path) for path in candidates if path.is_file()), _Object(None))


def has_map(path: Path) -> bool:
    """Whether a file has an instrumentation map."""
    try:
        _core.InstrumentationMap.open(path, [], False)
    except UnreadableInput:
        return False
    return True


class Fit:
    """Whether the maps of libraries have the functions that logs have of their objects.

    Args:
        files: Libraries by number.
        largest_ids: The largest function number that the logs have, by object.
    """

    def __init__(self, files: Mapping[int, str], largest_ids: Mapping[int, int]) -> None:
        self._files = files
        self._largest = {number: largest_ids.get(number, 0) for number in files}
        self._sizes = {number: len(_core.InstrumentationMap.open(path, [], False)) for number, path in files.items()}

    @property
    def numbers(self) -> dict[int, str]:
        """The files with numbers that fit: those given where they do, or where none do."""
        by_size = sorted(self._files, key=lambda number: -self._sizes[number])
        by_largest = sorted(self._files, key=lambda number: -self._largest[number])
        found = dict(zip(by_largest, by_size, strict=True))
        is_better = self._fits({number: number for number in self._files}) < self._fits(found) == len(found)
        return {number: self._files[found[number] if is_better else number] for number in self._files}

    def _fits(self, places: Mapping[int, int]) -> int:
        return sum(self._largest[number] <= self._sizes[place] for number, place in places.items())

    @property
    def exchangeable(self) -> list[tuple[int, int]]:
        """Pairs of numbers that the logs have and whose files could be exchanged."""
        seen = sorted(number for number in self._files if self._largest[number])
        largest, sizes = self._largest, self._sizes
        return [
            (one, other)
            for place, one in enumerate(seen)
            for other in seen[place + 1 :]
            # A library that was closed and opened again has several numbers.
            if self._files[one] != self._files[other]
            if largest[one] <= sizes[one] and largest[other] <= sizes[other]
            if largest[one] <= sizes[other] and largest[other] <= sizes[one]
        ]


def option_text(files: Mapping[int, str]) -> str:
    """Options that state these numbers: `--map 1=liba.so --map 2=libb.so`."""
    return " ".join(f"--map {fspath(path)}" if not n else f"--map {n}={path}" for n, path in sorted(files.items()))
