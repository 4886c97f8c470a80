"""What `perfuse record` knows of a runtime: how it is recognized, and what it needs for its functions to have names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from perfuse.capture.finding import Finding
from perfuse.capture.installed import Tool
from perfuse.capture.program import Program

Stacks = Literal["fp", "dwarf"]
"""How stacks are recorded: by frame pointers, or as copies that are unwound afterwards."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A variable of the environment.

    Attributes:
        name: Its name.
        value: The value to set, or to append.
        joined_by: What separates it from a value that is there; None where a value that is there stays as it is.
        why: What it does, in a few words.
    """

    name: str
    value: str
    joined_by: str | None
    why: str

    def into(self, environment: Mapping[str, str]) -> str:
        """The variable's value in an environment that may have it."""
        present = environment.get(self.name)
        if not present:
            return self.value
        if self.joined_by is None or self.value in present:
            return present
        return present + self.joined_by + self.value


@dataclass(frozen=True, slots=True)
class Preparation:
    """What a runtime needs.

    Attributes:
        settings: Variables of the environment.
        command: The command line with the runtime's own options; None where none is needed. It is used where the
            command starts the runtime itself.
        stacks: How its stacks have to be recorded; None where both ways work.
        files: Files to write before the run, by path.
        findings: What limits the recording.
    """

    settings: tuple[Setting, ...] = ()
    command: tuple[str, ...] | None = None
    stacks: Stacks | None = None
    files: Mapping[Path, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where a runtime writes.

    Attributes:
        directory: A directory of this recording for files of runtimes; it exists only during the run.
        executable: The runtime's own binary or script; None where a program that starts others hides it.
        program: The command's program.
        environment: The environment that the command gets without perfuse.
    """

    directory: Path
    executable: Path | None
    program: Program
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SourceDefinitions:
    """How the lines of functions are found whose names state their files only.

    Attributes:
        names: A pattern of names in dumps and maps, with groups `name` and `path`.
        producer: Producer of the dumps.
        script: A program for the runtime's interpreter. Its standard input is JSON: sources by path, with a character
            for each byte. Its output is JSON: lines by path and name, of names that one function of the source has.
    """

    names: str
    producer: str
    script: str


@dataclass(frozen=True, slots=True)
class Runtime:
    """A runtime that `perfuse record` prepares, so that its functions have names.

    Attributes:
        name: Its name for `--runtime`.
        title: Its name in text.
        executables: A pattern of the base names of its programs.
        mapped: A pattern of the base names of files that its processes map.
        prepare: What it needs.
        is_quiet: Whether its variables may be set for processes of which nothing is known: they print nothing and stop
            nothing.
        writes: What names its functions, for messages.
        advice: What to do where a process of it stayed without names.
        while_running: What the dump of a process that continues to run lacks; empty where it lacks nothing.
        tool: How `perfuse doctor` finds it; None where it is not a program of its own.
        leftovers: Patterns of the names of files that it leaves beside its dump, with `{pid}` for its process.
        definitions: How lines are found that it does not write; None where it writes them, or they cannot be found.
    """

    name: str
    title: str
    executables: str
    mapped: str
    prepare: Callable[[Workspace], Preparation]
    is_quiet: bool
    writes: Literal["dump", "map", "nothing"]
    advice: str
    while_running: str = ""
    tool: Tool | None = None
    leftovers: tuple[str, ...] = ()
    definitions: SourceDefinitions | None = None

    def runs(self, name: str) -> bool:
        """Whether a program of that base name is of this runtime."""
        return re.fullmatch(self.executables, name) is not None

    def maps(self, name: str) -> bool:
        """Whether a process that maps a file of that base name is of this runtime."""
        return re.fullmatch(self.mapped, name) is not None
