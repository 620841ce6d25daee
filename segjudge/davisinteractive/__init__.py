"""The names of the DAVIS interactive framework, for programs that were written for it.

Such a program runs after `davisinteractive` was replaced by `segjudge.davisinteractive`.  Everything is defined in
`segjudge.interactive`; these modules re-export its names where those programs import them.
"""

from __future__ import annotations

import importlib
from types import ModuleType

#: The release of the framework whose names and behaviour these are.
__version__ = "1.0.4"

_MODULES = (
    "common", "connector", "dataset", "evaluation", "logging", "metrics", "robot", "session", "storage",
    "third_party", "utils",
)  # fmt: skip


def __getattr__(name: str) -> ModuleType:
    """Import a module when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return [*_MODULES, "__version__"]
