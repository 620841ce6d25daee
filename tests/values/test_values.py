"""A value behaves like a frozen dataclass, including its error messages."""

from __future__ import annotations

import copy
import dataclasses
import pickle
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
