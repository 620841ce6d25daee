"""Modules that are loaded when a program first needs one of their names, not when another module imports them."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False  # loading `typing` takes as long as Python takes to start
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

#: numpy's modules that write signatures and docstrings when they are loaded.
_DESCRIBING = ("numpy._core.overrides", "numpy._core.function_base")
#: Modules of `numpy.lib`, and the functions that numpy takes from them.
_OF_NUMPY_LIB = {
    "_npyio_impl": ("fromregex", "genfromtxt", "load", "loadtxt", "save", "savetxt", "savez", "savez_compressed"),
    "_nanfunctions_impl": (
        *("nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin"),
        *("nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar"),
    ),
    "_arraypad_impl": ("pad",),
    "npyio": (),
    "scimath": (),
}
#: What is read of a module before what it holds is imported: its submodules, or all its names.
_OF_IMPORTS = ("__path__", "__file__", "__all__")


class LateModule(ModuleType):
    """A module in place of one that is loaded on first use; `names` are used without loading it."""

    def __init__(self, module: str, **names: Any) -> None:
        super().__init__(module)
        self._known, self._lock = names, threading.Lock()

    def retire(self) -> None:
        """Let the next import of this name load the module itself."""
        with self._lock:
            self._known = {}
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]

    def __getattr__(self, name: str) -> Any:
        """Return a name of the module itself, also to a thread that imports it meanwhile."""
        if name in self._known:
            self.join_package()
            return self._known[name]
        if name.startswith("__") and (self._known or name not in _OF_IMPORTS):
            raise AttributeError(name)
        value = vars(self)[name] = _load_name(self.__name__, name)  # the next use of this name takes no call
        return value

    def join_package(self) -> None:
        """Become an attribute of the package, as a module that is loaded does: numpy searches `linalg` by it."""
        package, _, name = self.__name__.rpartition(".")
        if package in sys.modules:
            vars(sys.modules[package]).setdefault(name, self)


def import_late(module: str, **names: Any) -> None:
    """Let imports of a module load it when they first use anything but `names`; without effect if it is loaded."""
    sys.modules.setdefault(module, LateModule(module, **names))


@contextmanager
def late_imports(modules: Mapping[str, Sequence[str]]) -> Iterator[None]:
    """Let imports in a block load these modules on first use; imports after it load them at once.

    The functions of each module that are given are taken without loading it, and load it when they are called.
    """
    late = [LateModule(name, **_stand_ins(name, *functions)) for name, functions in modules.items()]
    for module in late:
        package = module.__name__.rpartition(".")[0]
        if package:
            import_module(package)
        if sys.modules.setdefault(module.__name__, module) is module:
            module.join_package()
    try:
        yield
    finally:
        for module in late:
            module.retire()


class GenericHint:
    """A generic type that programs write only as a hint."""

    def __class_getitem__(cls, _of: object) -> type[GenericHint]:
        return cls


def choose_number(singular: str, plural: str, number: int) -> str:
    """Return a message in English by a number, as `gettext.ngettext` does."""
    return singular if number == 1 else plural


def answer_numpy(function: str, value: str | None) -> Callable[..., Any]:
    """Return a function of `inspect` that answers with a value while numpy describes its own functions."""

    def answer(*arguments: Any, **options: Any) -> Any:
        if sys._getframe(1).f_globals.get("__name__") in _DESCRIBING:  # noqa: SLF001 - only its caller tells
            return value
        return _load_name("inspect", function)(*arguments, **options)

    return answer


def import_numpy_late() -> None:
    """Let numpy, unless it is loaded, wait with modules from which it only takes functions: a quarter of its start."""
    if "numpy" in sys.modules:
        return
    algebra = _stand_ins("numpy.linalg", "matrix_power", "eigvals", "inv", "lstsq")
    for name, names in (("_typing", {"NDArray": GenericHint}), ("linalg", algebra)):
        folders = [os.path.join(folder, "numpy", name) for folder in sys.path]
        import_late(f"numpy.{name}", __path__=folders, **names)
    bits = _stand_ins("numpy._core.multiarray", "packbits", "unpackbits")
    for name, functions in _OF_NUMPY_LIB.items():
        names = {**_stand_ins(f"numpy.lib.{name}", *functions), **(bits if "load" in functions else {})}
        import_late(f"numpy.lib.{name}", **(names and {"__all__": [*names], **names}))
    with suppress(ImportError):  # it is built in; numpy only needs its table of functions
        import _datetime  # type: ignore[import-not-found]

        import_late("datetime", datetime_CAPI=_datetime.datetime_CAPI)


def _stand_ins(module: str, *functions: str) -> dict[str, Any]:
    """Return functions by name that load their module when they are called."""
    return {function: _stand_in(lru_cache(maxsize=1)(partial(_load_name, module, function))) for function in functions}


def _stand_in(find: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        return find()(*arguments, **options)

    return call


def _load_name(module: str, name: str) -> Any:
    late = sys.modules.get(module)
    if isinstance(late, LateModule):
        late.retire()
    return getattr(import_module(module), name)
