"""Shared by tests of bundles."""

from __future__ import annotations

import copy
import functools
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def read_files(path: Path) -> dict[str, bytes]:
    """Return the files of a zip by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_files(path: Path, files: Mapping[str, bytes | None]) -> str:
    """Write a zip, without the files that are None."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            if data is not None:
                archive.writestr(name, data)
    return str(path)


@functools.cache
def _parse(text: bytes) -> Any:
    return yaml.safe_load(text)


def config_in(files: Mapping[str, bytes]) -> Any:
    """Return the config of a bundle, which is parsed once for all tests, since that takes longer than most of them."""
    return copy.deepcopy(_parse(files["challenge_config.yaml"]))
