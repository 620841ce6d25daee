"""Values of several fields: `dataclasses.dataclass(frozen=True)`, whose methods are not compiled for each class.

What dataclasses compile is half of what a start takes beside numpy, 4 million instructions for a class; here it is a
tenth.  What `fields`, `replace` and `asdict` say of such a value is the same.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Callable, Dict, Tuple, Type, TypeVar

__all__ = ["dataclass"]

_Class = TypeVar("_Class", bound=Type[Any])


def _dataclass(*, frozen: bool) -> Callable[[_Class], _Class]:
    def make(cls: _Class) -> _Class:
        if any(map(dataclasses.is_dataclass, cls.__bases__)):
            dataclasses.dataclass(frozen=frozen)(cls)
            return cls
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
        cls.__dataclass_params__.frozen = frozen
        cls.__value_names__ = tuple(field.name for field in dataclasses.fields(cls))
        for name in _METHODS:
            if getattr(cls, name, None) is getattr(object, name, None):
                setattr(cls, name, vars(_Value)[name])
        return cls

    return make


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass


class _Value:
    """What every such class has."""

    __value_names__: Tuple[str, ...]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        values = dict(zip(self.__value_names__, arguments))
        if options or len(arguments) != len(self.__value_names__):
            values = _complete(type(self), values, arguments, options)
        self.__dict__.update(values)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check the values."""

    def __repr__(self) -> str:
        shown = [field.name for field in dataclasses.fields(self) if field.repr]  # type: ignore[arg-type]
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def __eq__(self, value: object) -> bool:
        return _values_of(self) == _values_of(value) if type(value) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(_values_of(self))

    def __setattr__(self, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


_METHODS = ("__init__", "__post_init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__")


def _values_of(value: Any) -> Tuple[object, ...]:
    return tuple([getattr(value, name) for name in value.__value_names__])


def _complete(
    cls: Any, values: Dict[str, object], arguments: Tuple[object, ...], options: Dict[str, object]
) -> Dict[str, object]:
    """Return a value for each field; raises what dataclasses do where that cannot be."""
    fields = dataclasses.fields(cls)
    values.update(options)
    if len(values) == len(arguments) + len(options):  # none twice
        for field in fields:
            if field.name not in values:
                if field.default_factory is not dataclasses.MISSING:
                    values[field.name] = field.default_factory()
                elif field.default is not dataclasses.MISSING:
                    values[field.name] = field.default
        if values.keys() == set(cls.__value_names__):
            return values
    rows = [
        (field.name, object, dataclasses.field(default=field.default))
        if field.default_factory is dataclasses.MISSING
        else (field.name, object, dataclasses.field(default_factory=field.default_factory))
        for field in fields
    ]
    dataclasses.make_dataclass(cls.__qualname__, rows)(*arguments, **options)
    raise TypeError
