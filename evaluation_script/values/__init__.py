"""Frozen dataclasses and named tuples whose methods are not compiled for each class.

The standard decorator compiles six methods per class. For the 33 classes of a short score, this takes 25 of 185 ms of
CPU on Python 3.11, and 39 of 470 ms on the worker's 3.9. Here all classes share the methods of `_Value`; `fields`,
`replace` and `asdict` work as usual. Named tuples share their methods too: those of `typing` compile each hint and a
method, which takes 0.2 ms per class.

`arithmetic` has the sums, means and exponentials for scores; it loads numpy.
"""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Tuple, Type, TypeVar

__all__ = ["NamedTuple", "arithmetic", "dataclass"]

_Class = TypeVar("_Class", bound=Type[Any])


if TYPE_CHECKING:
    from dataclasses import dataclass
    from typing import NamedTuple
else:

    def dataclass(*, frozen: bool) -> Callable[[_Class], _Class]:
        def add_methods(cls: _Class) -> _Class:
            if any(map(dataclasses.is_dataclass, cls.__bases__)):
                return dataclasses.dataclass(frozen=frozen)(cls)
            hints = dict(cls.__annotations__)
            # Of text, `dataclasses` would search for its own names, of which only ClassVar is used here.
            cls.__annotations__.update({name: object for name, hint in hints.items() if "ClassVar" not in hint})
            dataclasses.dataclass(init=False, repr=False, eq=False)(cls)  # which notes the fields and compiles nothing
            cls.__annotations__.update(hints)
            cls.__dataclass_params__.frozen = frozen
            cls.__value_fields__ = {field.name: field for field in dataclasses.fields(cls)}
            for name, field in cls.__value_fields__.items():
                field.type = hints[name]
            for name, method, inherited in _METHODS:
                if getattr(cls, name, None) is inherited:
                    setattr(cls, name, method)
            return cls

        return add_methods

    class _TupleType(type):
        """The type of named tuples: it makes an annotated name of a class the name of an item."""

        def __new__(cls, name: str, bases: Tuple[type, ...], members: Dict[str, Any]) -> type:
            members["__slots__"] = ()
            if bases == (NamedTuple,):  # otherwise, the fields are those of its base
                names = tuple(members["__annotations__"])
                defaults = {name: members[name] for name in names if name in members}
                if names[len(names) - len(defaults) :] != tuple(defaults):
                    raise TypeError(f"{name}: a field without default follows one with a default")
                members.update(_fields=names, _field_defaults=defaults, __match_args__=names)
                getter = collections._tuplegetter  # noqa: SLF001 - a property takes three times as long
                members.update({name: getter(at, "") for at, name in enumerate(names)})
            return super().__new__(cls, name, bases, members)

    class _Named:
        """The methods of named tuples, as `collections.namedtuple` has them."""

        __slots__ = ()

        def __new__(cls, *arguments: Any, **options: Any) -> Any:
            if options or len(arguments) != len(cls._fields):
                arguments = _complete_tuple(cls, arguments, options)
            return tuple.__new__(cls, arguments)

        @classmethod
        def _make(cls, items: Iterable[Any]) -> Any:
            return cls(*items)

        def _replace(self, **options: Any) -> Any:
            return type(self)(*[options.pop(name, item) for name, item in zip(self._fields, self)], **options)

        def _asdict(self) -> Dict[str, Any]:
            return dict(zip(self._fields, self))

        def __repr__(self) -> str:
            shown = [f"{name}={item!r}" for name, item in zip(self._fields, self)]
            return f"{type(self).__name__}({', '.join(shown)})"

        def __getnewargs__(self) -> Tuple[Any, ...]:
            return tuple(self)

    NamedTuple = type.__new__(_TupleType, "NamedTuple", (_Named, tuple), {"__slots__": (), "_fields": ()})


class _Value:
    """The methods that every class gets unless it defines its own."""

    __value_fields__: Dict[str, dataclasses.Field[Any]]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        fields = self.__value_fields__
        if options or len(arguments) != len(fields):
            self.__dict__.update(_complete(type(self), arguments, options))
        else:
            self.__dict__.update(zip(fields, arguments))
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check the values."""

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name, field in self.__value_fields__.items() if field.repr]
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __eq__(self, value: object) -> bool:
        return _list_values(self) == _list_values(value) if type(value) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(_list_values(self))

    def __setattr__(self, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


#: These methods by name, and what a class inherits in their place.
_METHODS = [(name, each, getattr(object, name, None)) for name, each in vars(_Value).items() if callable(each)]


def _list_values(value: Any) -> Tuple[object, ...]:
    return tuple([getattr(value, name) for name in value.__value_fields__])


def _complete(cls: Any, arguments: Tuple[object, ...], options: Dict[str, object]) -> Dict[str, object]:
    """Return a value for each field; raises the error that dataclasses raise if that is impossible."""
    fields = cls.__value_fields__
    values = {**dict(zip(fields, arguments)), **options}
    if len(values) == len(arguments) + len(options):
        for name, field in fields.items():
            if name not in values:
                if field.default is not dataclasses.MISSING:
                    values[name] = field.default
                elif field.default_factory is not dataclasses.MISSING:
                    values[name] = field.default_factory()
        if values.keys() == fields.keys():
            return {name: values[name] for name in fields} if options else values
    defaults = [dataclasses.field(default=x.default, default_factory=x.default_factory) for x in fields.values()]
    rows = [(name, object, default) for name, default in zip(fields, defaults)]
    dataclasses.make_dataclass(cls.__qualname__, rows)(*arguments, **options)
    return values


def _complete_tuple(cls: Any, arguments: Tuple[object, ...], options: Dict[str, object]) -> Tuple[object, ...]:
    """Return an item for each field; raises the error that named tuples raise if that is impossible."""
    fields, defaults = cls._fields, cls._field_defaults
    if not options and 0 < len(fields) - len(arguments) <= len(defaults):  # without names, in half the time
        return (*arguments, *[*defaults.values()][len(arguments) - len(fields) :])
    names = fields[len(arguments) :]
    try:
        items = [options[name] if name in options else defaults[name] for name in names]
        is_whole = len(arguments) <= len(fields) and options.keys() <= {*names}
    except KeyError:
        is_whole = False
    if not is_whole:
        make: Any = collections.namedtuple  # noqa: PYI024 - it has no hints
        make(cls.__name__, fields, defaults=defaults.values())(*arguments, **options)
    return (*arguments, *items)
