"""The only way in which tests choose the backend: `use` replaces the process's choice."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from segjudge.evaluation_script.masks import backend as backends
from segjudge.evaluation_script.masks import library
from segjudge.evaluation_script.masks.backend import CompiledBackend, NumpyBackend
from tests.shared import IN_CI

#: The library compiled for this machine, independent of the setting.
COMPILED = Path(library.__file__).parent / library.NAME
_IS_ABSENT = not COMPILED.exists() and not IN_CI
_REASON = "KERNEL ABSENT: ./run.sh compiles it where there is a C compiler"
#: A test that compares the kernel with numpy, in a file that is not all about the kernel.
needs_kernel = pytest.mark.skipif(_IS_ABSENT, reason=_REASON)


def skip_file_without_kernel() -> None:
    if _IS_ABSENT:
        pytest.skip(_REASON, allow_module_level=True)


def use(monkeypatch: pytest.MonkeyPatch, chosen: NumpyBackend) -> None:
    """Use a backend until the test ends."""
    monkeypatch.setattr(backends, "_choose_backend", lambda: chosen)


def use_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, NumpyBackend("in a test"))


def compiled() -> CompiledBackend:
    return CompiledBackend(_library())


@functools.cache
def _library() -> library.Kernel:
    """Return the library, which tests itself once."""
    return library.load(str(COMPILED))
