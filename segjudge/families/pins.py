"""The plug-ins that a challenge's `requirements.txt` pins, compared with the installed ones."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from segjudge.evaluation_script.families import PROTOCOLS, describe_unknown
from segjudge.families.plugin_files import find_plugins
from segjudge.system.plugins import GROUP, list_other_versions

FILE = "requirements.txt"
_INSTALL = f"pip install -r {FILE}"
#: A wheel with its path, name and version; and a package with its version.
_WHEEL = re.compile(r"(?:file:)?((?:[^\s#]*/)?([A-Za-z0-9][\w.]*)-(\d[^-/\s#]*)-[^/\s#]*\.whl)")
_PACKAGE = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*===?\s*([^\s;#,*]+)")


def describe_missing(root: str, protocols: Iterable[str]) -> str:
    """Return the sentence about a challenge's unknown protocol and its plug-in; "" if all are known."""
    unknown = next((name for name in protocols if name not in PROTOCOLS), "")
    if not unknown:
        return ""
    installed = {_canonical(plugin.distribution) for plugin in find_plugins(PROTOCOLS)}
    pinned = {name: version for name, version in _list_pinned_plugins(root).items() if name not in installed}
    names = " and ".join(f"{name} {version}" for name, version in pinned.items())
    remedy = (
        f"{FILE} names {names}, which is not installed" if names else "If a plug-in provides it, install that plug-in"
    )
    return f"{describe_unknown(unknown)}. {remedy}: {_INSTALL}"


class VersionFault(NamedTuple):
    """The fault of a plug-in's version, and the remedy."""

    subject: str
    fault: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.subject} {self.fault}. {self.remedy}"


def list_version_faults(root: str, protocols: Iterable[str]) -> Iterator[VersionFault]:
    """Yield faults of plug-in versions: different from the pinned one, or installed twice."""
    plugins, pins = find_plugins(protocols), _read_pins(root)
    for plugin in plugins:
        pinned = pins.get(_canonical(plugin.distribution), plugin.version)
        if pinned != plugin.version:
            fault = f"names {plugin.distribution} {pinned}, but the installed {plugin.version} is used"
            yield VersionFault(FILE, fault, f"Install the named version: {_INSTALL}")
    for used, unused in list_other_versions():
        if used in plugins:
            fault = f"is installed as {used.version}, which is used, and as {unused.version}"
            remedy = f"Uninstall both (pip uninstall {used.distribution}, twice), then install one"
            yield VersionFault(used.distribution, fault, remedy)


def _read_pins(root: str) -> dict[str, str]:
    """Return the versions that a challenge's requirements pin, by the canonical names of their packages."""
    pins = {_canonical(name): version for _, name, version in _list_wheels(root)}
    for line in _read_lines(root):
        if match := _PACKAGE.match(line):
            pins[_canonical(match[1])] = match[2]
    return pins


def _list_pinned_plugins(root: str) -> dict[str, str]:
    """Return the version of each wheel in the requirements that holds a plug-in, by canonical name."""
    plugins = {}
    for path, name, version in _list_wheels(root):
        with suppress(OSError, ValueError, KeyError, zipfile.BadZipFile), zipfile.ZipFile(Path(root, path)) as wheel:
            points = [member for member in wheel.namelist() if member.endswith(".dist-info/entry_points.txt")]
            if any(GROUP in wheel.read(member).decode() for member in points):
                plugins[_canonical(name)] = version
    return plugins


def _list_wheels(root: str) -> list[tuple[str, str, str]]:
    """List the path, name and version of each wheel in the requirements."""
    matches = [match for line in _read_lines(root) if (match := _WHEEL.search(line))]
    return [(match[1], match[2], match[3]) for match in matches]


def _read_lines(root: str) -> list[str]:
    try:
        return Path(root, FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
