"""The first sentence of a verdict names the cause of the loss, of results whose faults are known in advance."""

from __future__ import annotations

import html
import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.families import tools_of
from segjudge.families.base.tools import UnitTools
from segjudge.report.page import PageOptions
from segjudge.scoring.report import make_report
from tests.report.known_faults import pattern_of, spoil
from tests.report.known_files import list_benchmarks
from tests.report.known_scenes import make_world

BENCHMARKS = list_benchmarks()
#: With both, no detection resembles a person.
_UNLIKE = ("sides", "joint")
#: So many pairs of faults are tried of each benchmark.
PAIRS = 4


def score(protocol: str, faults: list[str], folder: Path, seed: int, *, least: bool = False) -> Any:
    benchmark, random = BENCHMARKS[protocol], np.random.default_rng(seed)
    world = make_world(random, 3 if benchmark.frames > 1 else 6, benchmark.frames, benchmark.kinds)
    (folder / "truth").mkdir()
    truth = benchmark.publish(world, folder / "truth")
    data = benchmark.send(spoil(world, faults, random, least=least))
    results = folder / (
        "results.zip" if data[:2] == b"PK" else "results.jsonl" if data.count(b"\n") else "results.json"
    )
    results.write_bytes(data)
    return segjudge.score(results, truth, protocol)


def read_verdict(scores: Any) -> list[str]:
    """Return the sentences of the page's verdict without their markup; the first is the value of the metric."""
    verdict = make_report(scores, "known faults", PageOptions()).sections[0]
    sentences: Any = verdict.values["sentences"]
    return [re.sub("<[^>]*>", "", str(sentence)).replace("&amp;", "&") for sentence in sentences]


def test_a_player_has_a_colour_for_each_fault_that_it_shows(tmp_path: Path) -> None:
    """Pixels of a region that matches may belong to another class."""
    page = make_report(score("vspw", ["surplus"], tmp_path, 17), "known faults", PageOptions())
    (player,) = (section for section in page.sections if section.id == "frames")
    about: Any = player.values
    names = {name for _, joined in about["legend"] for name in joined.split(" or ")}
    assert {"wrong class", "inexact"} <= names


def check_sums(scores: Any) -> None:
    """Require of kinds that sum to the loss that they do."""
    (report,) = scores.reports
    tools = tools_of(report.protocol.family)
    if not isinstance(tools, UnitTools) or report.protocol.family == "phrases":
        return
    losses = tools.measure_losses(tools.counts_of(report))
    named = tools.name_losses(report.protocol)[0].split(" and ")
    lost = sum(1 - report.values[name] for name in named)
    assert sum(losses.totals().values()) == pytest.approx(lost, abs=1e-9)
    assert losses.by_category.sum() == pytest.approx(losses.by_unit.sum(), abs=1e-9)


def _list_cases(seed: int) -> list[Any]:
    return [
        pytest.param(protocol, fault, seed, id=f"{protocol} {fault}")
        for protocol, benchmark in BENCHMARKS.items()
        for fault in benchmark.faults
        if fault not in benchmark.unnamed
    ]


@pytest.mark.parametrize(("protocol", "fault", "seed"), _list_cases(11))
def test_the_first_sentence_names_the_fault(protocol: str, fault: str, seed: int, tmp_path: Path) -> None:
    scores = score(protocol, [fault], tmp_path, seed)
    said = read_verdict(scores)
    assert re.search(pattern_of(fault, BENCHMARKS[protocol]), said[1], re.IGNORECASE), said
    check_sums(scores)


@pytest.mark.parametrize(("protocol", "fault", "seed"), _list_cases(12))
def test_the_first_sentence_names_a_fault_of_small_strength(
    protocol: str, fault: str, seed: int, tmp_path: Path
) -> None:
    scores = score(protocol, [fault], tmp_path, seed, least=True)
    said = read_verdict(scores)
    assert re.search(pattern_of(fault, BENCHMARKS[protocol]), said[1], re.IGNORECASE), said
    check_sums(scores)


@pytest.mark.parametrize("protocol", BENCHMARKS)
def test_a_notebook_and_a_comparison_name_the_cause_of_the_page(protocol: str, tmp_path: Path) -> None:
    (tmp_path / "spoilt").mkdir()
    (tmp_path / "right").mkdir()
    scores = score(protocol, [BENCHMARKS[protocol].faults[0]], tmp_path / "spoilt", 16)
    said = read_verdict(scores)[1]
    tools = tools_of(scores.reports[0].protocol.family)
    kinds, cause = tools.explain_failures(scores.open_inputs(), scores.choose_report())
    assert cause == said
    assert kinds == tools.sum_failures(scores.open_inputs(), scores.choose_report())
    assert cause in html.unescape(scores._repr_html_())
    compared = segjudge.compare({"right": score(protocol, [], tmp_path / "right", 16), "spoilt": scores})
    methods: Any = compared.make_page(PageOptions()).sections[0].values
    assert f"spoilt: {cause}" in methods["kinds"]
    assert not any(line.startswith("right: ") for line in methods["kinds"])


def test_nearly_every_possible_fault_is_named() -> None:
    rows = BENCHMARKS.values()
    assert len(rows) >= 24
    assert all(row.faults for row in rows)
    unnamed = sum(len(row.unnamed) for row in rows)
    assert unnamed <= 0.05 * sum(len(row.faults) for row in rows)


@pytest.mark.parametrize("protocol", BENCHMARKS)
def test_perfect_results_lose_nothing(protocol: str, tmp_path: Path) -> None:
    assert read_verdict(score(protocol, [], tmp_path, 13))[1:] == ["Nothing is lost."]


@pytest.mark.parametrize("protocol", BENCHMARKS)
def test_of_two_faults_the_verdict_names_one_or_both(protocol: str, tmp_path: Path) -> None:
    pairs = [pair for pair in itertools.combinations(BENCHMARKS[protocol].faults, 2) if pair != _UNLIKE]
    random = np.random.default_rng(14)
    for number in random.permutation(len(pairs))[:PAIRS].tolist():
        folder = tmp_path / str(number)
        folder.mkdir()
        said = read_verdict(score(protocol, list(pairs[number]), folder, 15))
        patterns = [pattern_of(fault, BENCHMARKS[protocol]) for fault in pairs[number]]
        assert any(re.search(pattern, said[1], re.IGNORECASE) for pattern in patterns), (pairs[number], said)
