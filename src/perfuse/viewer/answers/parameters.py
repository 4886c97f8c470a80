"""Parameters of a request, and errors of requests."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl

from perfuse.errors import PerfuseError, nearest_hint

MOST_KEYS = 10_000
LARGEST = 2**63 - 1


class RequestError(Exception):
    """A request that cannot be answered: HTTP status, code for programs, message and hint for people."""

    def __init__(self, status: int, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.hint = hint


class Parameters:
    """The parameters of a request. Each is given at most once, and only those that the answer reads may be given."""

    def __init__(self, query: str) -> None:
        self._values: dict[str, str] = {}
        self._read: set[str] = set()
        try:
            pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=64)
        except ValueError:
            raise RequestError(400, "bad_query", "the query is not a list of parameters") from None
        for name, value in pairs:
            if name in self._values:
                raise RequestError(400, "bad_parameter", f"{name} is given twice")
            self._values[name] = value

    def check_all_read(self) -> None:
        """Raises an error for a parameter that no question asks for."""
        for name in self._values:
            if name not in self._read:
                hint = nearest_hint(name, sorted(self._read)) if self._read else None
                raise RequestError(400, "unknown_parameter", f"no parameter {name!r}", hint)

    def text(self, name: str) -> str | None:
        """The value, or None; empty stands for none."""
        self._read.add(name)
        return self._values.get(name) or None

    def number(self, name: str, default: int | None = None, *, least: int = 0, most: int = LARGEST) -> int | None:
        """A whole number between two limits; fractions of nanoseconds are rounded."""
        text = self.text(name)
        if text is None:
            return default
        try:
            value = int(text) if len(text) < 30 else None
        except ValueError:
            value = _rounded(text)
        if value is None or not least <= value <= most:
            raise RequestError(400, "bad_parameter", f"{name} is a whole number from {least:,} to {most:,}")
        return value

    def count(self, name: str, default: int, *, least: int = 0, most: int = LARGEST) -> int:
        """As `number`, with a default."""
        value = self.number(name, default, least=least, most=most)
        return default if value is None else value

    def required(self, name: str, *, least: int = 0, most: int = LARGEST) -> int:
        """A whole number that has to be given."""
        value = self.number(name, least=least, most=most)
        if value is None:
            raise RequestError(400, "bad_parameter", f"{name} is missing")
        return value

    def choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        """One of some values; the first by default."""
        value = self.text(name) or default or choices[0]
        if value not in choices:
            raise RequestError(400, "bad_parameter", f"{name} is one of {', '.join(choices)}, not {value!r}")
        return value

    def flag(self, name: str) -> bool:
        """Whether it is given as `1`."""
        return self.choice(name, ("0", "1")) == "1"

    def share(self, name: str, default: float) -> float:
        """A number from 0 to 1."""
        text = self.text(name)
        try:
            value = default if text is None else float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value <= 1:
            raise RequestError(400, "bad_parameter", f"{name} is a number from 0 to 1")
        return value

    def keys(self, name: str) -> tuple[int, ...] | None:
        """Keys, separated by commas; None where the parameter is absent."""
        text = self.text(name)
        if text is None:
            return None
        parts = text.split(",")
        if len(parts) > MOST_KEYS or not all(part.isascii() and part.isdecimal() and len(part) < 11 for part in parts):
            raise RequestError(400, "bad_parameter", f"{name} is a list of keys, such as 1,2")
        return tuple(dict.fromkeys(int(part) for part in parts))

    def texts(self, name: str) -> tuple[str, ...] | None:
        """Names, separated by commas; None where the parameter is absent."""
        text = self.text(name)
        return None if text is None else tuple(dict.fromkeys(text.split(",")))

    def address(self, name: str, *, required: bool = True) -> int | None:
        """An address such as `0x7f66`."""
        text = self.text(name)
        if text is None and not required:
            return None
        try:
            value = int(text or "", 16) if (text or "").startswith("0x") else -1
        except ValueError:
            value = -1
        if not 0 <= value < 2**64:
            raise RequestError(400, "bad_parameter", f"{name} is an address such as 0x7f66b5bcc000")
        return value


def _rounded(text: str) -> int | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return round(value) if value - value == 0 else None


def page_of(rows: Sequence[Any], parameters: Parameters, default: int = 100, most: int = 5000) -> Sequence[Any]:
    """The requested part of a list: parameters `offset` and `limit`."""
    offset, limit = parameters.count("offset", 0), parameters.count("limit", default, most=most)
    return rows[offset : offset + limit]


def as_request_error(error: PerfuseError) -> RequestError:
    """An error of the API as the error of a request."""
    return RequestError(400, "bad_request", str(error), error.hint)
