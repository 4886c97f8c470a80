"""The exceptions that perfuse raises."""


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


class ExportWarning(UserWarning):
    """A part of a profile that the output format cannot represent."""
