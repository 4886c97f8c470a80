"""The exceptions that perfuse raises."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class PerfuseError(Exception):
    """Base class of all exceptions of perfuse.

    Attributes:
        path: The file.
        offset: Absolute offset in that file, in bytes, after decompression.
        record_index: Zero-based index of the record.
        field: Field of the record or header, as its specification names it.
        hint: What to do next.

    Each is None where it does not apply.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        offset: int | None = None,
        record_index: int | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.path = path
        self.offset = offset
        self.record_index = record_index
        self.field = field
        self.hint = hint


class UsageError(PerfuseError):
    """An invalid request: an unknown name, an option that does not exist, a value out of range."""


class UnreadableInput(PerfuseError):  # noqa: N818 - the input is at fault, not the program
    """A file of an unknown format, or whose header cannot be read."""


class QueryError(PerfuseError):
    """Invalid SQL; `hint` has the position or a suggestion, and `__cause__` is DuckDB's own error."""


class ExportError(PerfuseError):
    """An output that cannot be written, or for which the profile has no data."""


class RecordingError(PerfuseError):
    """A program that cannot be recorded on this machine; it was not run."""


class OutOfMemory(PerfuseError):  # noqa: N818 - the name that databases have for it
    """A call would have used more memory than the limit of the process (`memory=`, `--memory`).

    Attributes:
        limit_bytes: The limit.
        used_bytes: Memory in use when the call was stopped.
    """

    def __init__(self, message: str = "", *, limit_bytes: int = 0, used_bytes: int = 0) -> None:
        limited = f"{used_bytes / 1e6:,.0f} MB are in use, the limit is {limit_bytes / 1e6:,.0f} MB"
        if used_bytes <= limit_bytes and _is_address_space_limited():
            limited = f"{used_bytes / 1e6:,.0f} MB are in use, and the address space is limited (`ulimit -v`)"
        super().__init__(
            message or f"not enough memory: {limited}",
            hint="give it more (--memory 8GB, memory=), or select less: --between, --thread, one section",
        )
        self.limit_bytes = limit_bytes
        self.used_bytes = used_bytes


def _is_address_space_limited() -> bool:
    """Whether `ulimit -v` limits this process."""
    try:
        import resource
    except ModuleNotFoundError:
        return False  # of this system
    except ImportError:
        return True  # no room for the module itself
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


class InternalError(PerfuseError):
    """A defect of perfuse: its compiled core panicked.

    Attributes:
        location: Source file and line of the panic; None where unknown.
    """

    def __init__(self, message: str, *, location: str | None = None) -> None:
        from perfuse._core import __version__

        place = f" at {location}" if location else ""
        super().__init__(
            f"internal error{place}: {message} (perfuse {__version__})",
            hint="this is a defect in perfuse: please report this message with the command or the call that led to it,"
            " and the file if you can share it",
        )
        self.location = location


def core_error(error: Exception) -> BaseException | None:
    """Why the core failed while an Arrow library or DuckDB pulled batches of it; None where it did not.

    An error there reaches Python as an exception of that library, `error`. Each is returned once.
    """
    from perfuse import _core

    if any(why in str(error) for why in ("interrupted", "memory is at its limit")):
        stopped = _core.take_stop()
        if stopped is not None:
            return stopped
    panic = _core.take_panic()
    if panic is not None:
        return InternalError(panic[0], location=panic[1])
    unreadable = _core.take_unreadable()
    # One that another query left is not the cause of this error.
    return unreadable if unreadable is not None and str(unreadable) in str(error) else None


def check_text(given: str) -> None:
    """Raises UsageError for a file name or argument with bytes that are not UTF-8: tables and outputs contain text."""
    shown = with_escaped_bytes(given)
    if shown != given:
        raise UsageError(f"{shown}: not UTF-8", hint="rename such a file, or give a link to it: `ln -s FILE LINK`")


def with_escaped_bytes(name: str) -> str:
    r"""A file name in which bytes that are not UTF-8 are `\xNN`."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


_MOST_NAMES = 30
"""Names that are listed all."""
_FEW_NAMES = 10
"""Names that are listed of more than that."""
_LEAST_START = 4
"""Characters of a name that is given in part: fewer begin names of other things."""


def nearest_hint(
    value: str, known: Iterable[str], otherwise: str | None = None, *, shown: Callable[[str], str] = str
) -> str:
    """A hint for an unknown name: known names that are similar, else `otherwise`, or all of them.

    Names are written as `shown` returns them.
    """
    names = list(known)
    near = _similar_names(value, names)
    if near:
        return f"did you mean {' or '.join(map(shown, near))}?"
    if otherwise is not None:
        return otherwise
    if not names:
        return "there is none"
    if len(names) <= _MOST_NAMES:
        return f"known: {', '.join(map(shown, names))}"
    return f"known: {', '.join(map(shown, names[:_FEW_NAMES]))}, … ({len(names):,} in all)"


def _similar_names(value: str, names: Sequence[str]) -> list[str]:
    """At most three names, the most similar first."""
    import difflib
    import re

    by_lower = {name.lower(): name for name in names}

    def similar(of: dict[str, str], cutoff: float) -> list[str]:
        found = difflib.get_close_matches(value.lower(), of, n=3, cutoff=cutoff)
        return list(dict.fromkeys(of[name] for name in found))

    if len(value) >= _LEAST_START and (begun := [name for name in names if name.lower().startswith(value.lower())]):
        return sorted(begun, key=len)[:3]
    near = similar(by_lower, 0.6)
    if near:
        return near
    # A word of a long name, such as that of a method.
    by_word = {word.lower(): name for name in reversed(names) for word in re.findall(r"\w{3,}", name)}
    return similar(by_word, 0.7) or similar(by_lower, 0.5)


def require_known(value: str, known: Iterable[str], what: str) -> str:
    """Returns the value if it is a known one.

    Raises:
        UsageError: It is not; the hint names similar values, or all of them.
    """
    names = list(known)
    if value in names:
        return value
    raise UsageError(f"no {what} {value!r}", hint=nearest_hint(value, names))


def require_in_range(value: int | None, least: int, most: int, name: str) -> None:
    """Raises `UsageError` for a number of the parameter `name` outside of a range; None is none."""
    if value is not None and not least <= value <= most:
        raise UsageError(f"{name} is from {least:,} to {most:,}, not {value}", field=name)


def require_addresses(addresses: Iterable[int]) -> None:
    """Raises `UsageError` for numbers that are not addresses."""
    for address in addresses:
        require_in_range(address, 0, 2**64 - 1, "address")


def require_version(version: int | None) -> None:
    """Raises `UsageError` for a version that no format has; formats refuse others. None is none."""
    if version is not None and not 0 <= version <= 0xFF:
        raise UsageError(f"version {version} does not exist", field="version")


class ExportWarning(UserWarning):
    """A part of a profile that the output format cannot represent.

    Attributes:
        option: The option of the exporter that selects which part is written; None where there is none.
    """

    def __init__(self, message: str, *, option: str | None = None) -> None:
        super().__init__(message)
        self.option = option
