"""Short names of functions and modules for text and pictures; JSON has them as recorded."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Protocol, TypeVar

from perfuse import _core
from perfuse.filters.names import function_text, last_part, module_name


def function_texts(names: Sequence[str]) -> list[str]:
    """The text of each function of a list; those that have one text, such as overloads, are shown whole.

    >>> function_texts(["ns::f(int)", "ns::f(long)", "ns::g(int)", "ns::f(int)"])
    ['ns::f(int)', 'ns::f(long)', 'ns::g', 'ns::f(int)']
    """
    texts = {name: function_text(name) for name in names}
    alike = Counter(texts.values())
    return [name if alike[texts[name]] > 1 else texts[name] for name in names]


def module_text(module: str) -> str:
    """The last part of a path; `[kernel]` for each of the kernel's names."""
    return last_part(module) if module.startswith("/") else module_name(module)


def distinct_texts(paths: Iterable[str], short: Callable[[str], str] = module_text) -> dict[str, str]:
    """The short text of each path, with as many directories before it as distinguish those that are listed together.

    >>> distinct_texts(["/usr/lib/a/core.so", "/usr/lib/b/core.so", "/usr/lib/libc.so"])
    {'/usr/lib/a/core.so': 'a/core.so', '/usr/lib/b/core.so': 'b/core.so', '/usr/lib/libc.so': 'libc.so'}
    """
    texts = {path: short(path) for path in paths}
    cut = [path for path, text in texts.items() if path.endswith("/" + text)]
    parts, alike = 1, Counter(texts[path] for path in cut)
    while unclear := [path for path in cut if alike[texts[path]] > 1]:
        parts += 1
        texts |= {path: "/".join(path.split("/")[-parts:]) for path in unclear}
        alike = Counter(texts[path] for path in cut)
    return texts


class NamedFunction(Protocol):
    """A function with its module."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def module(self) -> str | None:
        """File it is in."""
        ...


class SourceFunction(NamedFunction, Protocol):
    """A function with the place of its source."""

    @property
    def path(self) -> str | None:
        """Source file."""
        ...

    @property
    def line(self) -> int | None:
        """Line in it, from 1."""
        ...


class FunctionWithKind(SourceFunction, Protocol):
    """A function with the kind of its code."""

    @property
    def kind(self) -> str:
        """`jit`, `native`, `kernel`."""
        ...


def source_place(function: SourceFunction) -> str:
    """`/src/lvm.c:1151`, or the module where the source is unknown."""
    if function.path:
        return f"{function.path}:{function.line}" if function.line else function.path
    return function.module or ""


def code_place(function: FunctionWithKind) -> str:
    """The source of JIT code, and the module of other code, or its kind."""
    if function.kind == "jit" and function.path:
        return source_place(function)
    return function.module or ("" if function.kind in ("traced", "type") else f"[{function.kind}]")


def _place_text(place: str) -> str:
    return module_name(place) if place.startswith("[") else last_part(place)


Named = TypeVar("Named", bound=NamedFunction)


def where_texts(functions: Sequence[Named], place: Callable[[Named], str]) -> list[str]:
    """Where each function is, in short: `lvm.c:1151`.

    Functions of one name are distinguished by the directories of their places, and by their modules where the places
    are one. Those of one program have their source files, `server main.c`, those of one line their columns,
    `app.js:1:40`.
    """
    places = [place(one) for one in functions]
    of_name: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for one, at in zip(functions, places, strict=True):
        of_name[one.name][at].add(one.module or "")
    texts = {name: distinct_texts(of, _place_text) for name, of in of_name.items()}

    def text(one: Named, at: str) -> str:
        modules, short = of_name[one.name][at], texts[one.name][at]
        return f"{distinct_texts(modules)[one.module or '']} {short}" if len(modules) > 1 else short

    found = [text(one, at) for one, at in zip(functions, places, strict=True)]
    paths = [getattr(one, "path", None) for one in functions]
    files: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one, where, path in zip(functions, found, paths, strict=True):
        if path:
            files[one.name, where].add(path)
    found = [
        f"{where} {distinct_texts(files[one.name, where], last_part)[path]}"
        if path and len(files[one.name, where]) > 1
        else where
        for one, where, path in zip(functions, found, paths, strict=True)
    ]
    columns: dict[tuple[str, str], set[int]] = defaultdict(set)
    declared = [_column_after(one, where) for one, where in zip(functions, found, strict=True)]
    for one, where, column in zip(functions, found, declared, strict=True):
        if column:
            columns[one.name, where].add(column)
    return [
        f"{where}:{column}" if column and len(columns[one.name, where]) > 1 else where
        for one, where, column in zip(functions, found, declared, strict=True)
    ]


def _column_after(function: NamedFunction, where: str) -> int | None:
    """The column of the declaration of a function at `app.js:1`; None where it or the line is not known."""
    line, column = (getattr(function, name, None) for name in ("line", "column"))
    return column if where.endswith(f":{line}") else None


def where_text(function: SourceFunction) -> str:
    """Where one function is, in short: `postcards.js:205`, or its module."""
    return where_texts([function], source_place)[0]


@cache
def format_titles() -> dict[str, str]:
    """The titles of formats by name: `JITDUMP` for `jitdump`."""
    return {row["name"]: row["title"] for row in _core.formats()}
