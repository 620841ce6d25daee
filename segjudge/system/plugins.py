"""Families of other distributions, by their entry points of the group `segjudge.families`.

An entry point `counting = segjudge_counting` says that the package has a folder `upload`, imported as
`segjudge.evaluation_script.families.counting`, and optionally a folder `toolkit`, imported as
`segjudge.families.counting`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from functools import cache
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: The group of entry points that names plug-ins.
GROUP = "segjudge.families"
#: The packages of both halves of a family, and the folders of a plug-in that become folders there.
UPLOADS, TOOLKITS = "segjudge.evaluation_script.families", "segjudge.families"
_HALVES = {UPLOADS: "upload", TOOLKITS: "toolkit"}


class Plugin(NamedTuple):
    """A family of another distribution, or protocols of one."""

    #: The entry point's name.
    folder: str
    #: The package that has its halves.
    module: str
    distribution: str
    version: str

    @property
    def origin(self) -> str:
        return f"{self.distribution} {self.version} ({self.folder} = {self.module})"


class _Listing(Loader):
    """The loader of the generated module that lists plug-ins."""

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["FOLDERS"] = [(plugin.folder, plugin.origin) for plugin in list_plugins()]


def find_plugin_spec(name: str) -> ModuleSpec | None:
    """Return the spec of a family module that belongs to a plug-in."""
    package, _, folder = name.rpartition(".")
    if name == f"{UPLOADS}.plugins":
        return ModuleSpec(name, _Listing())
    path = next((path for plugin in list_plugins() if plugin.folder == folder if (path := locate(plugin, package))), "")
    entry = os.path.join(path, "__init__.py")
    return spec_from_file_location(name, entry, submodule_search_locations=[path]) if path else None


def locate(plugin: Plugin, package: str) -> str:
    """Return the folder of a plug-in's half; "" without one; raises ImportError without its package."""
    with redirect_stdout(sys.stderr):  # the packages above it are imported
        spec = find_spec(plugin.module)
    if spec is None:
        raise ModuleNotFoundError(f"there is no package {plugin.module}")
    paths = [os.path.join(path, _HALVES[package]) for path in spec.submodule_search_locations or ()]
    return next((path for path in paths if os.path.isfile(os.path.join(path, "__init__.py"))), "")


@cache
def list_plugins() -> tuple[Plugin, ...]:
    """Return the installed plug-ins; of several versions the first that Python finds."""
    plugins: dict[tuple[str, str], Plugin] = {}
    for plugin in _read_plugins():
        plugins.setdefault((plugin.distribution.lower(), plugin.folder), plugin)
    return tuple(sorted(plugins.values()))


def list_other_versions() -> list[tuple[Plugin, Plugin]]:
    """Return pairs of used and unused versions of plug-ins installed twice."""
    used = {(plugin.distribution.lower(), plugin.folder): plugin for plugin in list_plugins()}
    pairs = [(used.get((plugin.distribution.lower(), plugin.folder), plugin), plugin) for plugin in _read_plugins()]
    return [(plugin, unused) for plugin, unused in pairs if plugin.version != unused.version]


def find_owner(path: str) -> tuple[Plugin, str] | None:
    """Return the plug-in that owns a file and the file's path in it; None for others."""
    target = os.path.realpath(path)
    for plugin in list_plugins():
        with suppress(ImportError, ValueError):
            spec = find_spec(plugin.module)
            for folder in (spec and spec.submodule_search_locations) or ():
                root = os.path.join(os.path.realpath(folder), "")
                if target.startswith(root):
                    return plugin, target[len(root) :]
    return None


def _read_plugins() -> Iterator[Plugin]:
    """Yield the plug-ins declared by the distributions in Python's path.

    Importing `importlib.metadata` takes longer than all other imports of a command, so it is used only for
    distributions whose entry points name this group.
    """
    for path in [path for folder in sys.path for path in _distributions(folder or os.curdir)]:
        if _declares_plugins(path):
            from importlib.metadata import Distribution

            distribution = Distribution.at(path)
            for point in distribution.entry_points.select(group=GROUP):
                yield Plugin(point.name, _module_of(point), distribution.name, distribution.version)


def _distributions(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))
    except OSError:
        return []


def _declares_plugins(path: str) -> bool:
    try:
        with open(os.path.join(path, "entry_points.txt"), encoding="utf-8") as file:
            return GROUP in file.read()
    except (OSError, ValueError):
        return False


def _module_of(point: EntryPoint) -> str:
    return point.value.partition(":")[0].partition("[")[0].strip()
