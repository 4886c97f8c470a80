"""Classes of values: what `dataclasses.dataclass(frozen=True, slots=True)` makes, compiled when it is used.

`dataclasses` generates and compiles the methods of a class where it is defined, which takes half a millisecond. A
report of a small file defines 50 classes and makes objects of some: docs/decisions/2026-11-25-value-classes.md.
"""

from __future__ import annotations

from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_set = object.__setattr__


@dataclass_transform(frozen_default=True)
def value_class(cls: type[T]) -> type[T]:
    """Makes a class one of immutable values: fields in slots, compared and hashed by value.

    A class has no base but `object`. Functions of `dataclasses` take its objects, too.
    """
    names = tuple(name for name, kind in cls.__annotations__.items() if not str(kind).startswith("ClassVar"))
    namespace = {name: value for name, value in cls.__dict__.items() if name not in ("__dict__", "__weakref__")}
    defaults = {name: namespace.pop(name) for name in names if name in namespace}
    namespace.update(_METHODS)
    namespace.update(
        __slots__=names,
        _read=staticmethod(attrgetter(*names) if len(names) > 1 else partial(_each, names)),
        __match_args__=names,
        __dataclass_fields__=_Fields(defaults),
        __signature__=_Signature(defaults),
        __init__=_first_init(names, defaults),
    )
    made: Any = type(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    return made  # type: ignore[no-any-return]


def replace(value: T, **changes: Any) -> T:
    """A copy with other values of some fields: `dataclasses.replace` takes a millisecond for the first of a class."""
    cls: Any = type(value)
    return cls(**{name: getattr(value, name) for name in cls.__slots__} | changes)  # type: ignore[no-any-return]


def field_names(cls: Any) -> tuple[str, ...]:
    """The names of the fields of a class of values, or of a data class, in their order."""
    return _field_names(cls)


@cache
def _field_names(cls: Any) -> tuple[str, ...]:
    if hasattr(cls, "_read"):
        return cls.__slots__  # type: ignore[no-any-return]
    from dataclasses import fields

    return tuple(one.name for one in fields(cls))


def has_fields(value: object) -> bool:
    """Whether something is an object of a class of values, or of a data class."""
    return hasattr(type(value), "_read") or hasattr(type(value), "__dataclass_fields__")


def as_dict(value: object) -> dict[str, Any]:
    """Fields by their names; objects with fields in these, also in lists, tuples and dictionaries, likewise."""
    return {name: _plain(getattr(value, name)) for name in field_names(type(value))}


_ATOMS = frozenset({str, int, float, bool, bytes, type(None)})


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is list or kind is tuple:
        return kind(map(_plain, value))
    if kind is dict:
        return {key: _plain(item) for key, item in value.items()}
    return as_dict(value) if has_fields(value) else value


def _first_init(names: tuple[str, ...], defaults: dict[str, Any]) -> Callable[..., None]:
    """The `__init__` of a class before its first object: it replaces itself by the compiled one."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - the method's own name, in messages
        _compiled_init(type(self), names, defaults)(self, *args, **kwargs)

    return __init__


def _compiled_init(cls: type, names: tuple[str, ...], defaults: dict[str, Any]) -> Callable[..., None]:
    parameters = [f"{name}=_defaults[{name!r}]" if name in defaults else name for name in names]
    lines = [f"def __init__({', '.join(['self', *parameters])}):"]
    lines += [f" _set(self, {name!r}, {name})" for name in names] or [" pass"]
    scope: dict[str, Any] = {"_set": _set, "_defaults": defaults}
    exec("\n".join(lines), scope)
    made: Callable[..., None] = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {**{name: cls.__annotations__[name] for name in names}, "return": None}
    type.__setattr__(cls, "__init__", made)
    return made


def _each(names: tuple[str, ...], value: object) -> tuple[Any, ...]:
    return tuple(getattr(value, name) for name in names)


def _values(self: Any) -> tuple[Any, ...]:
    return self._read(self)  # type: ignore[no-any-return]


def _repr(self: Any) -> str:
    fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{type(self).__qualname__}({fields})"


def _eq(self: Any, other: object) -> bool:
    return bool(_values(self) == _values(other)) if type(self) is type(other) else NotImplemented


def _hash(self: Any) -> int:
    return hash(self._read(self))


def _refuse(self: object, name: str, *_value: object) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r} of {type(self).__name__}")


def _setstate(self: Any, state: tuple[Any, ...]) -> None:
    for name, value in zip(self.__slots__, state, strict=True):
        _set(self, name, value)


_METHODS = {
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__getstate__": _values,
    "__setstate__": _setstate,
}


class _Fields:
    """`__dataclass_fields__`, made when a function of `dataclasses` asks for it."""

    def __init__(self, defaults: dict[str, Any]) -> None:
        self._defaults = defaults

    def __get__(self, _instance: object, cls: Any) -> Any:
        from dataclasses import dataclass

        namespace = {"__annotations__": dict(cls.__annotations__), "__module__": cls.__module__, **self._defaults}
        plain: Any = dataclass(init=False, repr=False, eq=False)(type(cls.__name__, (), namespace))
        fields = plain.__dataclass_fields__
        type.__setattr__(cls, "__dataclass_fields__", fields)
        return fields


class _Signature:
    """`__signature__`, made when documentation asks for it."""

    def __init__(self, defaults: dict[str, Any]) -> None:
        self._defaults = defaults

    def __get__(self, instance: object, cls: Any) -> Any:
        import inspect

        if instance is not None:
            raise AttributeError("__signature__")
        whole = inspect.signature(_compiled_init(cls, cls.__slots__, self._defaults))
        return whole.replace(parameters=list(whole.parameters.values())[1:])
