"""Plug-ins that distributions in Python's path name, and the halves of their families."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from segjudge.system import plugins
from segjudge.system.plugins import TOOLKITS, UPLOADS, Plugin
from tests.calls import outcome

GROUP = "[segjudge.families]\n"
POINTS = {
    "whole-1.0.dist-info": f"{GROUP}whole = whole_package\nempty = empty_package\n[other]\nlost = whole_package\n",
    "Twice-2.dist-info": f"{GROUP}twice = twice_package:thing [extra]\n", "twice-1.dist-info": f"{GROUP}twice = old_package\n",
    "absent.egg-info": f"{GROUP}absent = absent_package\n", "other-1.dist-info": "[other]\nx = y\n", "text-1.other": f"{GROUP}x = y\n",
}  # fmt: skip


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with distributions and packages, which is all of Python's path."""
    for name, points in POINTS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "entry_points.txt").write_text(points)
        metadata = f"Name: {name.split('-')[0].split('.')[0]}\nVersion: {2 if '2' in name else 1}\n"
        (tmp_path / name / ("PKG-INFO" if "egg" in name else "METADATA")).write_text(
            f"Metadata-Version: 2.1\n{metadata}"
        )
    (tmp_path / "none-1.dist-info").mkdir()
    (tmp_path / "odd-1.dist-info").mkdir()
    (tmp_path / "odd-1.dist-info/entry_points.txt").write_bytes(b"\xff segjudge.families")
    for half in ("whole_package/upload", "whole_package/toolkit", "twice_package/upload", "empty_package/toolkit"):
        (tmp_path / half).mkdir(parents=True)
        (tmp_path / half).parent.joinpath("__init__.py").touch()
        if half != "empty_package/toolkit":
            (tmp_path / half / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), "", str(tmp_path / "none")])
    listed = plugins.list_plugins.__wrapped__()
    monkeypatch.setattr(plugins, "list_plugins", lambda: listed)
    return tmp_path


ORIGINS = {
    "absent": "absent 1 (absent = absent_package)", "empty": "whole 1 (empty = empty_package)",
    "twice": "Twice 2 (twice = twice_package)", "whole": "whole 1 (whole = whole_package)",
}  # fmt: skip


def test_plugins_are_those_of_distributions_that_python_finds(site: Path) -> None:
    assert (
        Plugin("cells", "cells_package", "cells-of-ours", "1.0").origin == "cells-of-ours 1.0 (cells = cells_package)"
    )
    assert {plugin.folder: plugin.origin for plugin in plugins.list_plugins()} == ORIGINS
    listing = plugins.find_plugin_spec(f"{UPLOADS}.plugins")
    module = SimpleNamespace()
    listing.loader.exec_module(module)  # type: ignore[union-attr, arg-type]
    assert [*ORIGINS.items()] == module.FOLDERS


@pytest.mark.parametrize(
    ("name", "half"),
    [
        (f"{UPLOADS}.whole", "whole_package/upload"), (f"{UPLOADS}.twice", "twice_package/upload"), (f"{UPLOADS}.empty", None),
        (f"{UPLOADS}.lost", None), (f"{TOOLKITS}.whole", "whole_package/toolkit"), (f"{TOOLKITS}.twice", None), (f"{TOOLKITS}.empty", None),
        (f"{TOOLKITS}.lost", None), (f"{TOOLKITS}.plugins", None),
    ],
)  # fmt: skip
def test_a_family_has_the_halves_of_its_package(name: str, half: str | None, site: Path) -> None:
    spec = plugins.find_plugin_spec(name)
    assert (spec and spec.origin) == (half and str(site / half / "__init__.py"))
    assert (spec and spec.submodule_search_locations) == (half and [str(site / half)])


def test_a_plugin_without_its_package_is_an_error(site: Path) -> None:
    error = "ModuleNotFoundError: there is no package absent_package"
    assert outcome(lambda: plugins.find_plugin_spec(f"{UPLOADS}.absent")) == error
    assert outcome(lambda: plugins.find_plugin_spec("families.whole")) == "KeyError: 'families'"
