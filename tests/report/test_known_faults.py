"""The first sentence of a verdict names the cause of the loss, of results whose faults are known in advance."""

from __future__ import annotations

import copy
import functools
import html
import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.families import tools_of
from segjudge.families.base.unit_tools import UnitTools
from segjudge.report.colours import GROUND, MISTAKES
from segjudge.report.page import PageOptions, Section
from tests.families.choices import VOLUMES
from tests.report.known_faults import FAULTS, pattern_of, spoil
from tests.report.known_files import list_benchmarks
from tests.report.known_scenes import World, make_world

BENCHMARKS = list_benchmarks()


def score(protocol: str, faults: list[str], folder: Path, seed: int) -> Any:
    world, random = make_worlds(protocol, seed)
    return score_worlds(protocol, world, spoil(world, faults, random), folder)


def make_worlds(protocol: str, seed: int) -> tuple[World, np.random.Generator]:
    world, random = _make_worlds(seed, BENCHMARKS[protocol].frames, BENCHMARKS[protocol].kinds)
    return [video.copy() for video in world], copy.deepcopy(random)


@functools.lru_cache(maxsize=16)
def _make_worlds(seed: int, frames: int, kinds: int) -> tuple[World, np.random.Generator]:
    """Return scenes, which many faults of many benchmarks spoil, and the generator after it."""
    random = np.random.default_rng(seed)
    return make_world(random, 3 if frames > 1 else 6, frames, kinds), random


def score_worlds(protocol: str, truth_world: World, predicted: World, folder: Path) -> Any:
    (folder / "truth").mkdir()
    truth = BENCHMARKS[protocol].publish(truth_world, folder / "truth")
    data = BENCHMARKS[protocol].send(predicted)
    results = folder / (
        "results.zip" if data[:2] == b"PK" else "results.jsonl" if data.count(b"\n") else "results.json"
    )
    results.write_bytes(data)
    return segjudge.score(results, truth, protocol)


def read_verdict(scores: Any) -> list[str]:
    """Return the sentences of the page's verdict without their markup; the first is the value of the metric."""
    verdict = scores.make_page(PageOptions(), "known faults").sections[0]
    sentences: Any = verdict.values["sentences"]
    return [re.sub("<[^>]*>", "", str(sentence)).replace("&amp;", "&") for sentence in sentences]


@pytest.mark.parametrize("protocol", BENCHMARKS)
def test_verdict_strip_player_and_table_begin_with_the_same_case(protocol: str, tmp_path: Path) -> None:
    """Cases have faults of their own; the table lists cases in the player's order."""
    (world, random), faults = make_worlds(protocol, 25), itertools.cycle(BENCHMARKS[protocol].faults)
    predicted = [video.copy() for video in world]
    for number, (video, fault) in enumerate(zip(predicted, faults, strict=False)):
        FAULTS[fault].spoil(video, 1 + number % 3, random)
    scores = score_worlds(protocol, world, predicted, tmp_path)
    verdict, *sections = scores.make_page(PageOptions(), "").sections
    check_closing(scores, _read_plainly(verdict.values["sentences"]))
    players = [section for section in sections if section.template == "frames"]
    assert players or PROTOCOLS[protocol].family == "scans"  # scans need points
    for player in players:
        sequences: Any = player.values["sequences"]
        film: Any = verdict.values["film"]
        streams = [sequence["stream"] for sequence in sequences]
        assert film["sequence"] == sequences[0]["name"]
        assert _find_opened(str(verdict.values["sentences"])) in ([], streams[:1])
        assert streams in [_list_opened(section) for section in sections]


#: Statements of `score` at its end that a page repeats: kinds, costly cases, the worst one.
_REPEATED = (
    r"[A-Z][a-z ]+ cause \S+( %)? of the loss[^.]*\.",
    r"[\d,]+ of [\d,]+ \w+ causes? \d+ % of the loss",
    r"The loss is spread: [^.]*\.",
    r"at a cost of \d\.\d+",
)


def check_closing(scores: Any, verdict: str) -> None:
    """Require that the counts' sentences, with which `score` ends, are also those of the page."""
    (report,) = scores.reports
    closing = tools_of(report.protocol.family).describe_loss(report)
    assert closing
    for pattern in _REPEATED:
        for statement in re.findall(pattern, closing):
            assert statement in verdict, (statement, verdict)
    if alone := re.search(r"and (\S+) at an \w+ of \.50 alone", closing):
        assert f"is {alone[1]} at an" in verdict or "Inexact" not in verdict, (closing, verdict)


def _read_plainly(sentences: Any) -> str:
    return html.unescape(re.sub("<[^>]*>", "", " ".join(map(str, sentences))))


def _list_opened(section: Section) -> list[str]:
    """Return the streams that a table opens, or the list of mask sequences."""
    listed: Any = section.values.get("sequences", [])
    return _find_opened(str(section.values.get("rows"))) or [row[1] for row in listed if isinstance(row, tuple)]


def _find_opened(text: str) -> list[str]:
    return [html.unescape(stream) for stream in re.findall(r'data-open="([^"]*)"', text)]


#: Families that draw films or slices; and scans, which are drawn only if there are points.
_WITHOUT_STILLS = {"sequences", "scans", PROTOCOLS[VOLUMES].family}


@pytest.mark.parametrize("protocol", [name for name in BENCHMARKS if PROTOCOLS[name].family not in _WITHOUT_STILLS])
def test_a_page_has_a_small_picture_of_its_worst_mistakes(protocol: str, tmp_path: Path) -> None:
    page = score(protocol, ["missed"], tmp_path, 23).make_page(PageOptions(), "known faults")
    (player,) = (section for section in page.sections if section.id == "frames")
    still: Any = player.values["still"]
    assert still.unit in {moment["sequence"] for moment in player.values["moments"]}  # type: ignore[attr-defined]
    painted = {tuple(pixel) for pixel in still.pixels.reshape(-1, 3).tolist()}
    legend: Any = player.values["legend"]
    mistakes = [MISTAKES[style.split()[0]] for style, _ in legend if style != "right"]
    covered = np.array(GROUND) + 0.65 * (np.array(mistakes) - GROUND)
    assert painted & {tuple(colour) for colour in covered.round().astype(int).tolist()}


def check_sums(scores: Any) -> None:
    """Require that kinds with a sum add up to the loss."""
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
    ]


@pytest.mark.parametrize(("protocol", "fault", "seed"), _list_cases(11))
def test_the_first_sentence_names_the_fault(protocol: str, fault: str, seed: int, tmp_path: Path) -> None:
    scores = score(protocol, [fault], tmp_path, seed)
    verdict = read_verdict(scores)
    slips = len(scores.reports[0].slips)  # of classes that are exchanged in all images
    assert re.search(pattern_of(fault, BENCHMARKS[protocol]), verdict[1 + slips], re.IGNORECASE), verdict
    check_sums(scores)


@pytest.mark.parametrize("protocol", BENCHMARKS)
def test_a_notebook_and_a_comparison_name_the_cause_of_the_page(protocol: str, tmp_path: Path) -> None:
    (tmp_path / "spoilt").mkdir()
    (tmp_path / "right").mkdir()
    scores = score(protocol, [BENCHMARKS[protocol].faults[0]], tmp_path / "spoilt", 16)
    tools = tools_of(scores.reports[0].protocol.family)
    kinds, cause = tools.explain_failures(scores.open_inputs(), scores.choose_report())
    assert cause in read_verdict(scores)[1:3]  # the doctor's line may stand before it
    assert kinds == tools.sum_failures(scores.open_inputs(), scores.choose_report())
    assert cause in html.unescape(scores._repr_html_())
    compared = segjudge.compare({"right": score(protocol, [], tmp_path / "right", 16), "spoilt": scores})
    methods: Any = compared.make_page(PageOptions()).sections[0].values
    assert f"spoilt: {cause}" in methods["kinds"]
    assert not any(line.startswith("right: ") for line in methods["kinds"])


@pytest.mark.parametrize("protocol", BENCHMARKS)
def test_perfect_results_lose_nothing(protocol: str, tmp_path: Path) -> None:
    assert read_verdict(score(protocol, [], tmp_path, 13))[1:] == ["Nothing is lost."]
