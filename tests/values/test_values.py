"""A value behaves like a frozen dataclass, including its error messages."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import typing
from collections.abc import Callable
from typing import Any

import pytest

from segjudge.evaluation_script import values


def _classes(dataclass: Any) -> tuple[type[Any], type[Any]]:
    """Return a class of each kind, and one that inherits from it and checks its values."""

    @dataclass(frozen=True)
    class Box:
        """A box."""

        width: int
        height: int = 2
        notes: list[str] = dataclasses.field(default_factory=list)
        secret: str = dataclasses.field(default="hidden", repr=False)

    @dataclass(frozen=True)
    class Cube(Box):
        """A box with a depth."""

        depth: int = 3

        def __post_init__(self) -> None:
            if self.depth < 0:
                raise ValueError("a depth is not negative")

    return Box, Cube


OURS, THEIRS = _classes(values.dataclass), _classes(dataclasses.dataclass)


def _outcome(act: Callable[[type[Any], type[Any]], object], classes: tuple[type[Any], type[Any]]) -> object:
    try:
        return act(*classes)
    except (TypeError, ValueError, dataclasses.FrozenInstanceError) as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    "act",
    [
        lambda box, _: repr(box(1)),
        lambda box, _: repr(box(1, 5, ["a"], secret="s")),
        lambda box, _: repr(box(height=7, width=1)),
        lambda _, cube: repr(cube(1, depth=4)),
        lambda box, _: (box(1) == box(1), box(1) == box(2), box(1) != box(1, 2), box(1) == 1),
        lambda box, cube: box(1) == cube(1),
        lambda box, _: hash(box(1, 2, ())) == hash(box(1, notes=())),
        lambda box, _: hash(box(1)),
        lambda box, _: box(1).notes is box(1).notes,
        lambda _, cube: dataclasses.asdict(cube(1)),
        lambda box, _: repr(dataclasses.replace(box(1), height=9)),
        lambda box, _: dataclasses.replace(box(1), hight=9),
        lambda _, cube: [(field.name, field.type) for field in dataclasses.fields(cube)],
        lambda box, _: repr(copy.deepcopy(box(1, 5))),
        lambda box, _: vars(box(1)),
        lambda box, _: list(vars(box(height=7, width=1))),
        lambda box, _: setattr(box(1), "width", 2),
        lambda box, _: delattr(box(1), "width"),
        lambda box, _: box(),
        lambda box, _: box(height=2),
        lambda box, _: box(1, width=1),
        lambda box, _: box(1, 2, 3, 4, 5),
        lambda box, _: box(1, hight=2),
        lambda box, _: box(hight=2),
        lambda _, cube: cube(1, depth=-1),
        lambda box, _: getattr(box, "__match_args__", ()),
    ],
)
def test_a_value_does_what_a_frozen_dataclass_does(act: Callable[[type[Any], type[Any]], object]) -> None:
    assert _outcome(act, OURS) == _outcome(act, THEIRS)


@values.dataclass(frozen=True)
class Pair:
    """Two numbers."""

    first: int
    second: int


def test_a_value_is_sent_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(Pair(1, 2))) == Pair(1, 2)


# ── named tuples ────────────────────────────────────────────────────────────


def _make_tuple(base: Any) -> type[Any]:
    """Return a class of named tuples of this base: `typing`'s, or ours."""

    class Box(base):  # type: ignore[misc]
        """A box."""

        width: int
        height: int = 2
        notes: tuple[str, ...] = ()

        @property
        def area(self) -> int:
            return int(self.width * self.height)

    class Cube(Box):
        """A box with equal sides."""

        depth = 4

    Box.__qualname__, Cube.__qualname__ = "Box", "Cube"
    return Cube


_OURS, _THEIRS = map(_make_tuple, (values.NamedTuple, typing.NamedTuple))


@pytest.mark.parametrize(
    "act",
    [
        lambda cube: cube(1),
        lambda cube: cube(1, 5, ("a",)).area,
        lambda cube: cube(notes=("a",), width=3),
        lambda cube: cube(1, notes=("a",)).notes,
        lambda cube: repr(cube(1)._replace(height=9)),
        lambda cube: cube._make([1, 2, ()]),
        lambda cube: cube(1)._asdict(),
        # Python 3.9 does not match names.
        lambda cube: (cube._fields, cube._field_defaults, getattr(cube, "__match_args__", cube._fields)),
        lambda cube: [*cube.__mro__[1].__annotations__],
        lambda cube: cube(1) == (1, 2, ()),
        lambda cube: hash(cube(1)) == hash((1, 2, ())),
        lambda cube: {cube(1): 2}[cube(1, 2)],
        lambda cube: [*cube(1)],
        lambda cube: cube(1)[1:],
        lambda cube: repr(copy.copy(cube(1))),
        lambda cube: repr(copy.deepcopy(cube(1))),
        lambda cube: isinstance(cube(1), tuple),
        lambda cube: (cube(1).depth, cube.__doc__),
        lambda cube: cube(),
        lambda cube: cube(1, 2, 3, 4),
        lambda cube: cube(1, width=1),
        lambda cube: cube(1, wide=2),
        lambda cube: cube(wide=2),
    ],
)
def test_a_tuple_does_what_a_named_tuple_does(act: Callable[[type[Any]], object]) -> None:
    def describe(cube: type[Any]) -> tuple[str, str]:
        try:
            return "", repr(act(cube))
        except TypeError as error:
            return "TypeError", str(error).replace("Cube", "Box")

    assert describe(_OURS) == describe(_THEIRS)


def test_a_tuple_cannot_be_changed() -> None:
    for name in ("width", "weight"):
        with pytest.raises(AttributeError):
            setattr(Span(1, 2), name, 2)
    with pytest.raises(TypeError):
        Span(1, 2)._replace(middle=3)  # type: ignore[call-arg]


def test_a_default_is_not_followed_by_a_field_without() -> None:
    members = {"__annotations__": {"start": int, "end": int}, "start": 0, "__module__": __name__}
    with pytest.raises(TypeError, match="without default"):
        type(values.NamedTuple)("Span", (values.NamedTuple,), members)


class Span(values.NamedTuple):
    """Two numbers."""

    start: int
    end: int


def test_a_tuple_is_sent_to_other_processes() -> None:
    copied = pickle.loads(pickle.dumps(Span(1, 2)))
    assert (copied, type(copied)) == (Span(1, 2), Span)
