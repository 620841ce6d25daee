"""Families that count by unit: counting a submission against a truth, packing it, and the official tools' numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from segjudge.evaluation_script.families import PROTOCOLS, report_of
from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.families.base.units import (
    UnitAccumulator,
    UnitCounts,
    UnitTruth,
    read_units,
    write_units,
)
from segjudge.evaluation_script.files.limits import UNIT_LIMITS
from segjudge.evaluation_script.files.problems import SubmissionError
from tests.builders import count_results

#: The tolerance against the official number.
CLOSE = {"abs": 1e-9, "rel": 0}


def count_units(path: Path, truth: UnitTruth, protocol: str, **options: Any) -> UnitAccumulator[Any]:
    rules = ScoringRules(PROTOCOLS[protocol], UNIT_LIMITS, **options)
    counts: UnitAccumulator[Any] = count_results(str(path), truth, rules)
    return counts


def score_units(path: Path, truth: UnitTruth, protocol: str) -> dict[str, Any]:
    return dict(report_of("val", count_units(path, truth, protocol)).values)


def refusal(content: Any, path: Path, truth: str, protocol: str) -> str:
    """Submit bytes, a text or a document; return the reason for the rejection."""
    import segjudge

    data = content if isinstance(content, (str, bytes)) else json.dumps(content)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    with pytest.raises(SubmissionError) as error:
        segjudge.score(str(path), truth, protocol)
    return str(error.value)


def refusal_of(protocol: str, results: Path, truth: str) -> str:
    """Return the reason for rejecting a file of results."""
    import segjudge

    with pytest.raises(SubmissionError) as caught:
        segjudge.score(results, truth, protocol)
    return str(caught.value)


def accumulated(protocol: Any, facts: Any, *tables: Any) -> UnitAccumulator[Any]:
    names = [f"unit {number}" for number in range(len(tables))]
    total = UnitAccumulator(protocol, facts, names)
    for name, table in zip(names, tables):
        total.update(UnitCounts(name, table))
    return total


def close(value: Any) -> Any:
    return pytest.approx(value, abs=1e-12, rel=0)


def pack_units(truth: UnitTruth, folder: Path) -> UnitTruth:
    """Return a truth as read from its annotation file."""
    write_units(str(folder / "truth.zip"), {"val": truth})
    return read_units(str(folder / "truth.zip"))["val"]


def read_golden(folder: Path) -> Any:
    """Return the official tool's numbers; without the shared data there are no cases of any kind."""
    path = folder / "golden.json"
    return json.loads(path.read_text()) if path.exists() else {"cases": {}, "vpq": {}, "sequences": {}}
