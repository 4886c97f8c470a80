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
_WRAPPER = r"\(wrapper ([\w-]+)\) (.+)"
_CLOSING = {"<": ">", "(": ")", "[": "]", "{": "}"}
# Brackets in the name of an operator do not close; the name of a conversion is a type, which is text as any other.
_OPERATOR = re.compile(r"\boperator(?:\(\)|\[\]|->\*?|<=>|<<=?|>>=?|[<>]=?|\b(?: (?:new|delete)(?:\[\])?)?)")


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
        return bool(self._exact(set(names)))

    def _exact(self, names: set[str]) -> set[str]:
        """The names that the text is, and not a part of."""
        if self.subject == "name":
            return shown_names(self.pattern, names)
        return {name for name in names if self.pattern in (name, self._shown(name))}

    def _shown(self, name: str) -> str:
        """A name as reports have it: the last part of a path, and one name for the kernel."""
        if self.subject == "name":
            return name
        return last_part(module_name(name) if self.subject == "module" else name)

    def test(self, names: "set[str]") -> Callable[[str], bool]:
        """A test of names. A text that is a name, with or without types, or what reports show of a name or path, is
        only that; any other is a part of names.

        Args:
            names: All names there are.
        """
        if is_regex(self.pattern):
            whole = matcher(self.pattern)
            return lambda name: whole(name) or whole(self._shown(name))
        if exact := self._exact(names):
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


def function_text(name: str) -> str:
    """A demangled C++ name without its return type, parameters and template arguments; any other name as it is.

    The kind of a Mono wrapper method follows its name: all wrappers begin with the same word.

    >>> function_text("R<int> ns::Scavenger::Visit<A, B<C>>(ns::Object*, int) const")
    'ns::Scavenger::Visit<…>'
    >>> function_text("V& ns::Map<K, V>::operator[](K const&)")
    'ns::Map<…>::operator[]'
    >>> function_text("ns::parse(char const*) [clone .cold]")
    'ns::parse [clone .cold]'
    >>> function_text("int32 [app] App::<Main>m__3(int32)[OptimizedTier1]")
    'App::<Main>m__3 [OptimizedTier1]'
    >>> function_text("run(int)::Local::step()")  # a class in a function
    'run(int)::Local::step()'
    >>> function_text("(wrapper managed-to-native) System.AppDomain:InternalUnload (int)")
    'System.AppDomain:InternalUnload (int) [managed-to-native]'
    """
    if name.startswith("(wrapper ") and (wrapped := re.fullmatch(_WRAPPER, name, re.DOTALL)):
        return f"{wrapped[2]} [{wrapped[1]}]"
    short = _without_types(name, "<…>") if "::" in name else None
    if not short:
        return name
    which = re.search(r"((?: \[clone [^\]]*\])+|(?<=\))\[\w+\])$", name)
    return short.replace(_ANONYMOUS, "(anonymous)") + (f" {which[0].lstrip()}" if which else "")


def bare_name(name: str) -> str | None:
    """A name of C++, Java or C# without return type, parameters and template arguments; None for other names.

    >>> bare_name("R<int> ns::Map<K, V<int>>::find(const K&) const"), bare_name("app.Main.run(int[])"), bare_name("run")
    ('ns::Map::find', 'app.Main.run', None)
    """
    return _without_types(name, "") or None


def _without_types(name: str, arguments: str) -> str | None:
    """A name without return type and parameters, and with a text in place of template arguments."""
    if "(" not in name or name.startswith("<"):  # `<A as B>::run` of Rust
        return None
    rest = name.replace(_ANONYMOUS, "\0")
    operator = _OPERATOR.search(rest)
    start, end = operator.span() if operator else (len(rest), len(rest))
    parts: list[str] = []
    closing: list[str] = []
    is_text = False
    for index, char in enumerate(rest):
        if start <= index < end and not closing:
            parts.append(char)
        elif closing:
            if is_text:
                parts.append(char)
            if char in _CLOSING:
                closing.append(_CLOSING[char])
            elif char == closing[-1] and rest[index - 1] != "-":
                closing.pop()
        elif char == "(":
            # What follows parameters with `::` is a lambda or a class in the function.
            if "::" in after_brackets(rest[index:]):
                return None
            break
        elif char == "<":
            # `.<init>` of Java and `<Main>m__3` of C# are names.
            is_text = not operator and rest[index - 1] in ".:+/ "
            parts.append(char if is_text else arguments)
            closing.append(">")
        else:
            parts.append(char)
    # What is before a space is the return type, except in the name of an operator.
    named = re.sub(r"^.* (?=\S*\boperator\b)" if operator else r"^.* (?=\S)", "", "".join(parts).rstrip())
    return None if closing else named.replace("\0", _ANONYMOUS)


def shown_names(text: str, names: Iterable[str]) -> set[str]:
    """The names that a text is: the name itself, else those that are it as reports show them, or without types.

    >>> shown_names("Map<…>::find", {"int Map<A>::find(A)", "Map<A>::find_all()"})
    {'int Map<A>::find(A)'}
    """
    distinct = set(names)
    if text in distinct or not (words := re.findall(r"\w+", text)):
        return distinct & {text}
    # What is followed by `::` does not end a name. Taking names apart costs much more than this search.
    may_end = re.compile(rf"\b{words[-1]}\b(?!::)").search
    is_shortened = any(mark in text for mark in ("<…>", "[", "(anonymous)"))
    return {
        name
        for name in distinct
        if may_end(name) and (bare_name(name) == text or (is_shortened and function_text(name) == text))
    }


def after_brackets(text: str) -> str:
    """What follows the brackets that a text begins with."""
    depth = 0
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if not depth:
            return text[place + 1 :]
    return ""
