"""The beginning of every report: the loss and its causes, in how many cases, and where most."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from segjudge.cli import main as cli
from segjudge.report.page import name_worst
from segjudge.report.sentences import count_costly, name_lowest, rank_kinds

#: What the words begin with, of each sample: the truth, the submission, its protocol.
SAMPLES = {
    "sequences-dev.zip": (
        "sequences-dev/lagging.zip",
        "davis2017",
        r"<b>J&amp;F-Mean is 0\.\d{3}\.</b> The masks of all 3 sequences are 3 frames late\. [\w ]+ \(\w+\) cause ",
    ),
    "instances-dev.zip": (
        "instances-dev/wild.json",
        "coco",
        r"<b>AP is 0\.\d{3}\.</b> \d+ of \d+ predicted instances match nothing",
    ),
}
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("truth", SAMPLES)
def test_a_report_begins_with_a_verdict(truth: str, tmp_path: Path) -> None:
    results, protocol, beginning = SAMPLES[truth]
    page, arguments = tmp_path / "report.html", ["--truth", str(ROOT / "annotations" / truth), "--protocol", protocol]
    assert cli(["report", str(ROOT / "examples" / results), *arguments, "--out", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    verdict = re.search(r'<p class="verdict">(.*?)</p>', text)
    assert verdict
    assert re.match(beginning, verdict[1])
    (target,) = re.findall(r'href="#([\w-]+)"', verdict[1])
    assert f'id="{target}"' in text
    assert text.index('class="verdict"') < text.index('id="summary"')


@pytest.mark.parametrize(
    ("kinds", "sentence"),
    [
        ({"leaks": 0.2}, "Leaks cause all of the loss."),
        ({"edges": 0.01, "leaks": 0.19}, "Leaks cause 95 % of the loss."),
        ({"edges": 0.1, "leaks": 0.2, "misses": 0.1}, "Leaks cause half of the loss, edges 25 %, and misses 25 %."),
        (
            {"edges": 0.3, "leaks": 0.4, "misses": 0.2, "swaps": 0.1},
            "Leaks cause 40 % of the loss, edges 30 %, and misses 20 %.",
        ),
        ({"edges": 0.01, "leaks": 0.3, "misses": 0.09}, "Leaks cause 75 % of the loss, and misses 22 %."),
        ({"edges": 0.0, "leaks": 0.0001}, ""),
        ({}, ""),
    ],
)
def test_kinds_are_ranked_by_their_share(kinds: dict[str, float], sentence: str) -> None:
    assert rank_kinds(kinds) == sentence


@pytest.mark.parametrize(
    ("costs", "sentence"),
    [
        ([0.3, 0.1, 0.1], "1 of 3 frames causes 60 % of the loss."),
        ([0.3, 0.3, *[0.05] * 8], "2 of 10 frames cause 60 % of the loss."),
        ([0.1] * 10, "The loss is spread: 5 of 10 frames cause 50 % of it."),
        ([0.0, 0.0], ""),
        ([0.4], ""),
        ([0.4, 0.4], ""),
        ([1.09, 1.0], ""),
        ([1.1, 1.0], "1 of 2 frames causes 52 % of the loss."),
        ([], ""),
        ([-0.1, 0.2], "1 of 2 frames causes 100 % of the loss."),
    ],
)
def test_few_cases_that_cost_half_are_counted(costs: list[float], sentence: str) -> None:
    assert count_costly(costs, "frames") == sentence
    assert count_costly(costs, "frames", "Dice") == sentence.replace("loss", "loss of Dice")


def test_the_worst_case_is_named_and_escaped() -> None:
    rows = [{"name": "<b>", "costs": 0.25, "missed": 0.05, "surplus": 0.2}, {"name": "a", "costs": 0.0, "missed": 0.0}]
    assert name_worst(rows, "videos") == ('Worst: <a href="#videos">&lt;b&gt;</a>, at a cost of 0.250 (80 % surplus).')
    assert not name_worst(rows[:1], "videos")
    assert not name_worst(rows[1:] * 2, "videos")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([0.5, 0.2, None], "Of 2 categories, b has the lowest AP, 0.200."),
        ([0.5, 0.0, 0.0001], "Of 3 categories, b and c have the lowest AP, 0.000."),
        ([1.0, 1.0, None], ""),
        ([0.5, None, None], ""),
        ([None, None, None], ""),
    ],
)
def test_the_lowest_row_is_named(values: list[float | None], sentence: str) -> None:
    assert name_lowest("categories", values, "abc", "AP") == sentence
    numbered = sentence.replace(", b", ", number 0").replace("and c", "and number 3")
    assert name_lowest("categories", values, "103", "AP") == numbered
