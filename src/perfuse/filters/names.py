"""Patterns of names: of functions, modules, source files and tiers."""

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import translate
from typing import Literal, get_args

from perfuse.errors import UsageError
from perfuse.value_class import value_class

Subject = Literal["name", "module", "path", "tier"]
"""What a pattern is compared with."""

_ANONYMOUS = "(anonymous namespace)"
_HANDLE = r"([fpst])(\d{1,10})"


def matcher(pattern: str) -> Callable[[str], bool]:
    """A test of names for a pattern: a regular expression between slashes, a glob, or a part of the name.

    >>> [matcher(pattern)("luaV_execute") for pattern in ("lua*", "V_exe", "/^V/")]
    [True, True, False]

    Raises:
        UsageError: The regular expression is invalid.
    """
    found = _searcher(pattern)
    return lambda name: found(name) is not None


def matching_names(pattern: str, names: Iterable[str]) -> set[str]:
    """The names that match a pattern, as `matcher` has it; faster than that for each of many names.

    Raises:
        UsageError: The regular expression is invalid.
    """
    return set(filter(_searcher(pattern), names))


def _searcher(pattern: str) -> Callable[[str], re.Match[str] | None]:
    if is_regex(pattern):
        text = pattern[1:-1]
    elif is_glob(pattern):
        text = rf"\A{translate(pattern)}"
    else:
        text = re.escape(pattern)
    try:
        return re.compile(text).search
    except re.error as error:
        raise UsageError(
            f"{pattern} is not a valid regular expression: {error}",
            hint="without the slashes, it is a name or a part of one",
            field="function",
        ) from error


def is_regex(pattern: str) -> bool:
    """Whether a pattern is a regular expression."""
    return len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/")


def is_glob(pattern: str) -> bool:
    """Whether a pattern is a glob."""
    return any(char in pattern for char in "*?[")


def handle_key(text: str, kind: Literal["f", "p", "s", "t"]) -> int | None:
    """The key that a handle of a kind stands for: `f12` is the function 12; None for other texts."""
    match = re.fullmatch(_HANDLE, text)
    return int(match[2]) if match and match[1] == kind else None


@value_class
class FramePattern:
    """What selects frames: by their function, module, source file or tier.

    Attributes:
        text: As it was written.
        subject: What it is compared with.
        pattern: A name, a part of one, a glob, or a regular expression between slashes.
    """

    text: str
    subject: Subject
    pattern: str

    @classmethod
    def parse(cls, text: str) -> "FramePattern":
        """The pattern of a text: `render`, `/^JS:/`, `module:libc*`, `path:*/lib/*`, `tier:turbofan`.

        Raises:
            UsageError: It is empty, or its regular expression is invalid.
        """
        prefix, colon, rest = text.partition(":")
        subjects: Mapping[str, Subject] = {subject: subject for subject in get_args(Subject)}
        subject = subjects.get(prefix) if colon else None
        found = cls(text, subject or "name", rest if subject else text)
        if not found.pattern:
            raise UsageError(f"the pattern {text!r} is empty", hint="write a name, a glob or /regex/")
        matcher(found.pattern)
        return found

    def is_one_of(self, names: Iterable[str]) -> bool:
        """Whether the text is one of the names, or what reports show of it; `test` matches no part of names then."""
        return any(self._is_whole(name) or self._is_bare(name) for name in names)

    def _is_whole(self, name: str) -> bool:
        return self.pattern in (name, self._shown(name))

    def _shown(self, name: str) -> str:
        """A name as reports have it: the last part of a path, and one name for the kernel."""
        if self.subject == "name":
            return name
        return last_part(module_name(name) if self.subject == "module" else name)

    def _is_bare(self, name: str) -> bool:
        return self.subject == "name" and self.pattern in name and self.pattern == bare_name(name)

    def test(self, names: "set[str]") -> Callable[[str], bool]:
        """A test of names. A text that is a name, with or without parameters, or what reports show of a path, is only
        that; any other is a part of names.

        Args:
            names: All names there are.
        """
        if is_regex(self.pattern):
            whole = matcher(self.pattern)
            return lambda name: whole(name) or whole(self._shown(name))
        exact = set(filter(self._is_whole, names)) or set(filter(self._is_bare, names))
        if exact:
            return exact.__contains__
        if is_glob(self.pattern):
            glob = matcher(self.pattern)
            return lambda name: glob(name) or glob(self._shown(name))
        # A part of a tier is another tier.
        return (lambda _name: False) if self.subject == "tier" else matcher(self.pattern)


NO_MODULE = "[no module]"
"""What reports and filters call the module of code that is in none."""


def last_part(path: str) -> str:
    """The last part of a path."""
    return path.rsplit("/", 1)[-1]


def module_name(module: str) -> str:
    """A module's whole name; `[kernel]` for `[kernel.kallsyms]_text` and the kernel's other names."""
    return "[kernel]" if module.startswith(("[kernel]", "[kernel.")) else module


def bare_name(name: str) -> str | None:
    """A name of C++, Java or C# without return type, parameters and template arguments; None for other names.

    >>> bare_name("R<int> ns::Map<K, V<int>>::find(const K&) const"), bare_name("app.Main.run(int[])"), bare_name("run")
    ('ns::Map::find', 'app.Main.run', None)
    """
    # The brackets of `operator<` and the like do not close.
    if "(" not in name or "operator" in name or "->" in name:
        return None
    rest = name.replace(_ANONYMOUS, "\0")
    parts: list[str] = []
    depth = 0
    for place, char in enumerate(rest):
        if char == "(" and not depth:
            # What follows parameters with `::` is a lambda or a class in the function.
            if "::" in after_brackets(rest[place:]):
                return None
            break
        if ".<" in name:
            parts.append(char)  # `<init>` of Java
            continue
        depth += (char == "<") - (char == ">")
        if not depth and char != ">":
            parts.append(char)
    words = "".join(parts).split()
    return words[-1].replace("\0", _ANONYMOUS) if words and not depth else None


def after_brackets(text: str) -> str:
    """What follows the brackets that a text begins with."""
    depth = 0
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if not depth:
            return text[place + 1 :]
    return ""
