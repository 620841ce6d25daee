"""Programs and data of a competition: finished zips, or folders that the site zips."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from segjudge.platforms.evalai.bundle.bundle_source import UNREADABLE

#: Files that say what a program runs, in the order in which they count.
METADATA = ("metadata.yaml", "metadata")


class GivenUpError(Exception):
    """Raised where Codabench's worker gives up, with its words."""


@contextmanager
def _opened(path: str) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except UNREADABLE:
        raise GivenUpError("Bad or empty zip file") from None


def names_in(path: str) -> list[str]:
    """Return the paths of the files in a zip or a folder."""
    if os.path.isdir(path):
        found = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
        return sorted(os.path.relpath(name, path) for name in found)
    with _opened(path) as archive:
        return [name for name in archive.namelist() if not name.endswith("/")]


def texts_in(path: str, names: Iterable[str]) -> dict[str, str]:
    """Return files of a zip or a folder as texts."""
    if os.path.isdir(path):
        return {name: Path(path, name).read_text(encoding="utf-8", errors="replace") for name in names}
    with _opened(path) as archive:
        return {name: archive.read(name).decode("utf-8", "replace") for name in names}


def unpack(path: str, folder: str) -> None:
    """Unpack a zip, or copy a folder, as the worker finds it."""
    if os.path.isdir(path):
        shutil.copytree(path, folder, dirs_exist_ok=True)
        return
    os.makedirs(folder, exist_ok=True)
    with _opened(path) as archive:
        archive.extractall(folder)


def command_of(path: str) -> str:
    """Return what a program runs; "" where nothing is run."""
    names = names_in(path)
    name = next((name for name in METADATA if name in names), "")
    if not name:
        return ""
    try:
        metadata: Any = yaml.safe_load(texts_in(path, [name])[name])
    except (yaml.YAMLError, ValueError, RecursionError):
        return ""
    command = metadata.get("command") if isinstance(metadata, dict) else None
    return command if isinstance(command, str) else ""
