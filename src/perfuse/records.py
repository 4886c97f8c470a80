"""Decoded records of any format."""

from collections.abc import Mapping
from typing import Any

from perfuse.value_class import value_class


class Hex(int):
    """An address, magic or flag word: an int that prints in hexadecimal.

    >>> Hex(255)
    0xff
    """

    def __repr__(self) -> str:
        return f"0x{int(self):x}"

    __str__ = __repr__


@value_class
class Record:
    """A decoded record.

    Its fields can be read as attributes: `record.code_size` is `record.fields["code_size"]`.

    Attributes:
        name: The specification's name, or `Unknown RecordTag N`.
        index: Zero-based index in the file.
        offset: Absolute offset of its first byte, after decompression.
        size: Whole size in bytes, header included.
        timestamp: Time in the file's own units; None where the record has none.
        fields: Fields by the specification's names, in its order: int, `Hex`, str, bytes, or a list of such dicts.
    """

    name: str
    index: int
    offset: int
    size: int
    timestamp: int | None
    fields: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(f"{self.name} has no field {name!r}; it has {', '.join(self.fields)}") from None
