"""Runs the conformance kit for every family, on files that the family's own tests make."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from segjudge.testing import CHECKS, Case
from tests.builders import written, zipped

#: Checks that take a long time.
LONG = ("hostile", "python39")
PROMISES = pytest.mark.parametrize(
    "promise", [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in CHECKS]
)

Files = Mapping[str, bytes]


def keep(
    promise: str, protocol: str, folder: Path, truths: tuple[Files, Files], sent: tuple[Files, Files], faults: list[str],
    arrays: tuple[Any, Any],
) -> None:  # fmt: skip
    """Test a family's promise: with its truth and another one, files that score and faulty ones, and arrays."""
    for name, files in zip(("truth", "other"), truths):
        written(folder / name, dict(files))
    for name, files in zip(("results.zip", "faulty.zip"), sent):
        (folder / name).write_bytes(zipped(files))
    CHECKS[promise](Case(
        protocol, folder / "truth", {"results": folder / "results.zip"}, faults={folder / "faulty.zip": faults},
        arrays={"results": lambda: arrays}, other_truth=folder / "other",
    ))  # fmt: skip
