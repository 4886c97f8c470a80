"""Classes of values behave as frozen dataclasses with slots."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from typing import ClassVar

import pytest

from perfuse.value_class import as_dict, field_names, has_fields, value_class


@value_class
class Point:
    """A point."""

    x: int
    y: int = 7
    label: str = "none"
    """Its label."""
    kind: ClassVar[str] = "point"

    @property
    def total(self) -> int:
        return self.x + self.y


@dataclasses.dataclass(frozen=True, slots=True)
class Reference:
    x: int
    y: int = 7
    label: str = "none"
    kind: ClassVar[str] = "point"


def test_objects_are_those_of_a_dataclass() -> None:
    one, same = Point(1, label="a"), Reference(1, label="a")
    assert repr(one) == repr(same).replace("Reference", "Point")
    assert (one.x, one.y, one.label, one.total) == (1, 7, "a", 8)
    assert one == Point(1, 7, "a")
    assert one != Point(2)
    assert one.__eq__(same) is NotImplemented
    assert hash(one) == hash(Point(1, 7, "a")) == hash(same)
    assert dataclasses.asdict(one) == dataclasses.asdict(same) == as_dict(one) == as_dict(same)
    assert dataclasses.replace(one, x=5) == Point(5, 7, "a")
    names = [[field.name for field in dataclasses.fields(kind)] for kind in (Point, Reference)]
    assert names[0] == names[1] == ["x", "y", "label"] == [*field_names(Point)] == [*field_names(Reference)]
    assert [has_fields(each) for each in (one, same, "text", {})] == [True, True, False, False]
    assert pickle.loads(pickle.dumps(one)) == one
    assert Point.__match_args__ == Reference.__match_args__
    assert str(inspect.signature(Point)) == str(inspect.signature(Reference))
    assert not hasattr(one, "__dict__")


def test_objects_inside_others_are_dictionaries() -> None:
    holder = Point([Point(1), {"a": (Reference(2), 3)}, None], b"bytes", Point)  # type: ignore[arg-type]
    assert as_dict(holder) == dataclasses.asdict(holder)


def test_objects_cannot_be_changed() -> None:
    one = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del one.x


@pytest.mark.parametrize("args", [(), (1, 2, "c", 4)])
def test_arguments_that_do_not_fit_are_refused(args: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        Point(*args)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="other"):
        Point(1, other=2)  # type: ignore[call-arg]
