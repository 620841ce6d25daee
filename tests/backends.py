"""The one door through which tests choose what counts: `use` replaces the choice that the process made."""

from __future__ import annotations

from pathlib import Path

import pytest

from segjudge.evaluation_script.masks import backend as backends
from segjudge.evaluation_script.masks import kernel
from segjudge.evaluation_script.masks.backend import CompiledBackend, NumpyBackend

#: The library that was compiled for this machine, whatever the setting says.
COMPILED = Path(kernel.__file__).parent / kernel.NAME


def use(monkeypatch: pytest.MonkeyPatch, chosen: NumpyBackend) -> None:
    """Have a backend count until the test ends."""
    monkeypatch.setattr(backends, "_choose_backend", lambda: chosen)


def use_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, NumpyBackend("in a test"))


def compiled() -> CompiledBackend:
    return CompiledBackend(kernel.load(str(COMPILED)))
