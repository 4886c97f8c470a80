"""Small pieces of JSON, put together as text: the big arrays come ready from the query engine."""


class Strings:
    """`shared.stringArray`: every string once."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}

    def index(self, value: str) -> int:
        """The string's index; new ones are added."""
        return self._index.setdefault(value, len(self._index))

    @property
    def all(self) -> list[str]:
        """The strings, by index."""
        return list(self._index)


def json_object(members: dict[str, str]) -> str:
    """An object whose members are JSON already; their names need no escapes."""
    return "{" + ",".join(f'"{name}":{value}' for name, value in members.items()) + "}"
