"""What each format declares about itself: its role, its clocks, the names of its files, its report."""

from collections.abc import Sequence
from functools import cache
from typing import Literal

from perfuse import _core
from perfuse.value_class import value_class

Role = Literal["samples", "code_dump", "call_trace", "runtime_log", "unwind_tables", "saved_profile"]
"""What a recording contributes to a profile.

`samples`: call chains or stacks with weights. `code_dump`: the code that a process generated, which names functions in
samples. `call_trace`: calls, one by one or summed up. `runtime_log`: events of a managed runtime. `unwind_tables`: how
stacks are unwound, and nothing about what ran. `saved_profile`: a whole profile, with which nothing is joined.
"""

COMPRESSED = (".gz", ".zst")
"""Suffixes of compressed files, which are read as what they contain, and written as such."""
UNPACKED = (*COMPRESSED, ".xz")
"""Suffixes of compressed files that are read."""


def name_of_content(path: str) -> str:
    """A path to write, in lower case and without the suffix of its compression: its suffix names the format."""
    name = path.lower()
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    return name


@value_class
class ClockPolicy:
    """Which clocks a format's times are of, and how they are put on the clock of a profile.

    Attributes:
        kinds: Values of `Summary.clock`; none where the format has no times.
        alignments: Ways to align a recording with another one, as in column `clocks.alignment`, preferred ones first.
        start_field: Header field with the time at which the recording began; None where it has none.
    """

    kinds: tuple[str, ...]
    alignments: tuple[str, ...]
    start_field: str | None


@value_class
class Format:
    """A format that can be read.

    Attributes:
        name: Name in the registry and on the command line: `jitdump`.
        title: Title in text for people: `JITDUMP`.
        about: One line: which programs write it, what it contains.
        role: What a recording of the format contributes to a profile.
        report: Name of the report about a recording of the format alone.
        patterns: Patterns of file names, without the suffix of a compressed file.
        process_field: Header field with the id of the recorded process, as the process itself knew it.
        clock: Clocks of its time stamps.
        capabilities: Optional parts it has: `writer`, `repair`, `layout`.
        tables: Common tables it fills.
    """

    name: str
    title: str
    about: str
    role: Role
    report: str
    patterns: tuple[str, ...]
    process_field: str | None
    clock: ClockPolicy
    capabilities: frozenset[str]
    tables: tuple[str, ...]

    def names_file(self, name: str) -> bool:
        """Whether a file of this name, compressed or not, is taken for one of the format."""
        for suffix in UNPACKED:
            name = name.removesuffix(suffix)
        return any(_matches(name, pattern) for pattern in self.patterns)


@cache
def formats() -> tuple[Format, ...]:
    """Every format, in the order of the registry."""
    return tuple(
        Format(
            name=row["name"],
            title=row["title"],
            about=row["about"],
            role=row["role"],
            report=row["report"],
            patterns=tuple(row["patterns"]),
            process_field=row["process_field"],
            clock=ClockPolicy(
                tuple(row["clock"]["kinds"]), tuple(row["clock"]["alignments"]), row["clock"]["start_field"]
            ),
            capabilities=frozenset(row["capabilities"]),
            tables=tuple(row["tables"]),
        )
        for row in _core.formats()
    )


def format_named(name: str) -> Format:
    """The format of that name.

    Raises:
        KeyError: There is none.
    """
    for one in formats():
        if one.name == name:
            return one
    raise KeyError(name)


def patterns_of(names: Sequence[Format]) -> list[str]:
    """The file name patterns of formats, in their order."""
    return [pattern for one in names for pattern in one.patterns]


def _matches(name: str, pattern: str) -> bool:
    from fnmatch import fnmatchcase

    return fnmatchcase(name, pattern)
