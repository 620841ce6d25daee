"""The only way in which tests choose the backend: `use` replaces the process's choice."""

from __future__ import annotations

from pathlib import Path

import pytest

from segjudge.evaluation_script.masks import backend as backends
from segjudge.evaluation_script.masks import library
from segjudge.evaluation_script.masks.backend import CompiledBackend, NumpyBackend

#: The library compiled for this machine, independent of the setting.
COMPILED = Path(library.__file__).parent / library.NAME


def use(monkeypatch: pytest.MonkeyPatch, chosen: NumpyBackend) -> None:
    """Use a backend until the test ends."""
    monkeypatch.setattr(backends, "_choose_backend", lambda: chosen)


def use_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, NumpyBackend("in a test"))


def compiled() -> CompiledBackend:
    return CompiledBackend(library.load(str(COMPILED)))
