"""Which program a command runs: by PATH, through `#!` lines, `env` and programs that only start another one."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfuse.errors import RecordingError

MOST_STEPS = 8
"""Interpreters of interpreters that are followed."""
HEAD_BYTES = 256
"""Linux reads as much of a `#!` line."""

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish", "busybox"})
IMPLIED: Mapping[str, str] = {
    **dict.fromkeys(("npm", "npx", "yarn", "pnpm", "pnpx", "corepack", "tsx", "ts-node"), "node"),
    **dict.fromkeys(("uv", "uvx", "poetry", "pipenv", "hatch", "pdm", "tox", "nox", "pipx", "conda"), "python3"),
    **dict.fromkeys(("mvn", "mvnw", "gradle", "gradlew", "sbt", "ant", "lein", "scala", "kotlin", "groovy"), "java"),
    **dict.fromkeys(("bundle", "rake", "rails"), "ruby"),
    **dict.fromkeys(("mix", "iex", "elixir", "rebar3"), "erl"),
    **dict.fromkeys(("composer",), "php"),
}
"""Programs that start others, and what they usually start."""
STARTERS = SHELLS | IMPLIED.keys() | {"env", "make", "gmake", "ninja", "just", "task", "timeout", "nice", "ionice"}
STARTERS |= {
    "nohup",
    "setsid",
    "stdbuf",
    "time",
    "xargs",
    "taskset",
    "chrt",
    "numactl",
    "unshare",
    "nsenter",
    "setpriv",
}
STARTERS |= {"chroot", "parallel", "watch", "script", "unbuffer", "tini", "dumb-init", "su-exec", "gosu"}
"""Programs whose own code is not what anybody wants to see: what they start is recorded with them."""
DETACHED = {
    "docker": "records nothing of the container: start it, then `perfuse record --pid PID` with a pid of the container",
    "podman": "records nothing of the container: start it, then `perfuse record --pid PID` with a pid of the container",
    "systemd-run": "the program is a child of systemd: start it, then `perfuse record --pid PID`",
    "sudo": "sudo drops the environment that gives names: use `sudo -E perfuse record -- CMD`, or --pid",
    "su": "su starts a new session: run perfuse as that user, or record with --pid",
    "ssh": "the program runs on another machine: run perfuse there",
}
"""Programs after which neither the environment nor the samples follow."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program, as the kernel would start it.

    Attributes:
        command: The command line that was given.
        path: The file that is executed.
        executable: The binary that runs: the file itself, or the interpreter of its `#!` line.
        interpreted: Whether the file is a script of that interpreter.
        names: Base names of the file and its interpreters, outermost first.
        starts_others: Whether it is a shell script, or a program that starts others.
    """

    command: tuple[str, ...]
    path: Path
    executable: Path
    interpreted: bool
    names: tuple[str, ...]
    starts_others: bool

    @property
    def name(self) -> str:
        """Base name of the command."""
        return Path(self.command[0]).name

    @property
    def detached(self) -> str | None:
        """Why the program that the command starts cannot be followed; None where it can."""
        return next((DETACHED[name] for name in self.names if name in DETACHED), None)


class NotRunnable(RecordingError):  # noqa: N818 - the file is at fault, not the program
    """A command that a shell could not start either; `exit_code` is the shell's: 126 or 127."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def resolve(command: Sequence[str], environment: Mapping[str, str]) -> Program:
    """The program that a command runs.

    Raises:
        NotRunnable: There is no such file, or it may not be executed.
    """
    path = find(command[0], environment)
    names = [path.name]
    executable, interpreted, has_shell = path, False, False
    for _ in range(MOST_STEPS):
        words = _interpreter(executable)
        if not words:
            break
        found = _of_words(words, environment)
        if found is None:
            break
        executable, interpreted = found, True
        names.append(found.name)
        has_shell = has_shell or found.name in SHELLS
    called = (Path(command[0]).name, *names, executable.resolve().name)
    starts_others = has_shell or any(name in STARTERS for name in called)
    return Program(tuple(command), path, executable, interpreted, tuple(dict.fromkeys(called)), starts_others)


def find(name: str, environment: Mapping[str, str]) -> Path:
    """The file that exec would take.

    Raises:
        NotRunnable: There is none, or it may not be executed.
    """
    if not name:
        raise NotRunnable("the command is empty", 127)
    directories = [""] if "/" in name else environment.get("PATH", os.defpath).split(os.pathsep)
    denied = None
    for directory in directories:
        path = Path(directory or ".", name) if "/" not in name else Path(name)
        # Not Path.is_file, which raises where a directory of PATH may not be searched.
        if os.path.isfile(path):  # noqa: PTH113
            if os.access(path, os.X_OK):
                return path
            denied = denied or path
        elif "/" in name and os.path.isdir(path):  # noqa: PTH112
            raise NotRunnable(f"{name} is a directory", 126)
    if denied is not None:
        raise NotRunnable(f"{denied} may not be executed: chmod +x {shlex.quote(str(denied))}", 126)
    raise NotRunnable(f"{name}: command not found", 127)


def mentioned(program: Program, environment: Mapping[str, str]) -> Iterator[Path]:
    """Programs that a command which starts others names or implies: words of `sh -c`, the command after `timeout 5`.

    A guess: it decides how stacks are recorded and which variables are set, not which program runs.
    """
    words = [word for given in program.command for word in _words(given)]
    words += [IMPLIED[name] for name in program.names if name in IMPLIED]
    own = {program.path.resolve()}
    for word in dict.fromkeys(words):
        if "=" in word or word.startswith("-"):
            continue
        try:
            path = find(word, environment)
        except (NotRunnable, OSError, ValueError):
            continue
        if path.resolve() not in own:
            yield path


def is_elf(path: Path) -> bool:
    """Whether a file is a binary."""
    return _head(path).startswith(b"\x7fELF")


def _words(text: str) -> list[str]:
    if not re.search(r"\s", text):
        return [text]
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return text.split()


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


def _interpreter(path: Path) -> list[str]:
    """The words of a `#!` line; none where the file is not a script."""
    head = _head(path)
    if not head.startswith(b"#!"):
        # A text file that a shell would run itself.
        is_text = head and b"\0" not in head and not head.startswith(b"\x7fELF")
        return ["/bin/sh"] if is_text else []
    line = os.fsdecode(head[2:].split(b"\n", 1)[0]).strip()
    return line.split(None, 1)


def _of_words(words: Sequence[str], environment: Mapping[str, str]) -> Path | None:
    """The interpreter of a `#!` line; `env` is looked through."""
    path = Path(words[0])
    if path.name == "env" and len(words) > 1:
        rest = _words(words[1])
        while rest and (rest[0].startswith("-") or "=" in rest[0]):
            rest = rest[1:]
        if not rest:
            return None
        try:
            return find(rest[0], environment)
        except NotRunnable:
            return None
    return path if os.path.isfile(path) else None  # noqa: PTH113 - as above
