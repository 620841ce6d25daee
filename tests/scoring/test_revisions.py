"""A number never moves within a protocol's revision, and a page lists each move (`docs/scores.md`)."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import segjudge
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.sequences.protocols import ObjectRule
from tests import revisions
from tests.backends import use_numpy
from tests.data import ROOT

from .mistakes import write_mistakes
from .shares import Files

PAGE = (ROOT / "docs/scores.md").read_text(encoding="utf-8")
MOVED = (
    "if numbers are meant to move, raise the revision, list the move in docs/scores.md, then: python -m tests.revisions"
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return revisions.extract(tmp_path_factory.mktemp("revisions"))


@pytest.fixture(scope="module")
def mistakes(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Files]:
    """Return a protocol's truth and results, which both paths score."""
    return functools.cache(lambda name: write_mistakes(name, tmp_path_factory.mktemp(name)))


def differences(actual: Any, expected: Any) -> dict[str, Any]:
    """Return the metrics that changed, with both values."""
    pairs = {name: (actual.get(name, "nothing"), value) for name, value in expected.items()}
    return {
        name: pair for name, pair in pairs.items()
        if pair[0] != pair[1] and not (None not in pair and math.isclose(*pair, rel_tol=0, abs_tol=1e-12))
    }  # fmt: skip


@pytest.mark.parametrize("path", ["kernel", "numpy"])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_number_never_moves_within_a_revision(
    name: str, path: str, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == "numpy":
        use_numpy(monkeypatch)
    protocol = PROTOCOLS[name]
    entry = revisions.known(protocol)
    assert entry, f"nothing is known of revision {protocol.revision} of {name}: python -m tests.revisions"
    now = revisions.rules(protocol)
    assert {rule: now.get(rule) for rule in entry["rules"]} == entry["rules"], MOVED
    for sample in [entry["samples"][sample] for sample in revisions.SAMPLES]:
        results = revisions.values(name, files / entry["truth"], files / sample["file"])
        assert differences(results, sample["values"]) == {}, MOVED


@pytest.mark.parametrize("path", ["kernel", pytest.param("numpy", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_mistakes_cost_never_moves_either(
    name: str, path: str, mistakes: Callable[[str], Files], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = mistakes(name)
    if path == "numpy":
        use_numpy(monkeypatch)
    expected = revisions.known(PROTOCOLS[name]).get("samples", {}).get(revisions.MISTAKES, {}).get("values")
    assert expected, f"nothing is known of revision {PROTOCOLS[name].revision} of {name}: python -m tests.revisions"
    assert differences(revisions.values(name, Path(files.truth), Path(files.results)), expected) == {}, MOVED


def test_another_rule_moves_a_number(files: Path) -> None:
    """Otherwise, the test above could not fail."""
    entry = revisions.known(PROTOCOLS["davis2017"])
    changed = replace(PROTOCOLS["davis2017"], objects=ObjectRule.FOREGROUND)  # type: ignore[call-arg]
    sample = entry["samples"]["poor"]
    results = segjudge.score(files / sample["file"], files / entry["truth"], changed).metrics["val"]
    assert differences(results, sample["values"])
    assert revisions.rules(changed) != entry["rules"]


def raised(page: str) -> set[tuple[str, int]]:
    """Return the protocols and revisions in the page's table of moves."""
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \|", page, re.MULTILINE)
    return {(name, int(number)) for row in rows for name, number in re.findall(r"`([\w-]+)` (\d+)", row)}


def test_the_page_lists_every_revision() -> None:
    every = {(name, number) for name, protocol in PROTOCOLS.items() for number in range(2, protocol.revision + 1)}
    assert raised(PAGE) == every
    assert raised(PAGE + "| 2027-01-02 | `mine` 2, `yours` 3 | …\n") == {*every, ("mine", 2), ("yours", 3)}
    assert "| when | protocols, and their new revisions |" in PAGE


def test_a_released_version_has_its_moves_in_the_change_log_too() -> None:
    """The warnings of `check` for hosts come from there."""
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    moves = re.findall(r"^### Scores\n((?:.|\n)*?)(?=^#|\Z)", log, re.MULTILINE)
    for name, revision in raised(PAGE):
        assert any(f"`{name}` {revision}" in block for block in moves), f"{name} {revision}"
    assert moves
