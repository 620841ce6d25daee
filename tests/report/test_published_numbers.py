"""Numbers published in papers: next to their scores, and on the benchmarks' pages."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from segjudge.interactive.dataset import RECORDS, SETS
from segjudge.report.page import make_summary
from segjudge.report.tables import PLAIN, _format_means, read_published_numbers
from segjudge.scoring.arrays import score_arrays
from tests.families.test_benchmark_pages import PAGES

ENTRIES = [entry for family in FAMILIES for entry in read_published_numbers(family)]


def numbers_on(page: Path) -> dict[tuple[str, str, str], dict[str, str]]:
    """Return the last table of the page, by protocol (the page's, if no column names it), data and method."""
    table = page.read_text(encoding="utf-8").partition("## Published numbers")[2]
    lines = [line.strip("| ").replace("`", "").split(" | ") for line in table.splitlines() if line.startswith("|")]
    rows = [{"protocol": page.stem, **dict(zip(lines[0], line, strict=True))} for line in lines[2:]]
    assert all(row.pop("source") for row in rows)
    return {(row.pop("protocol"), row.pop("data"), row.pop("method")): row for row in rows}


def test_published_numbers_on_pages_are_those_that_are_shown() -> None:
    pages = {key: row for page in PAGES for key, row in numbers_on(page).items()}
    shown = {
        (entry["protocol"], entry["dataset"], entry["method"]): {
            name: f"{value:.3f}" for name, value in entry["values"].items()
        }
        for entry in ENTRIES
    }
    named = {protocol for protocol, _, _ in pages}
    assert pages == {key: values for key, values in shown.items() if key[0] in named}


def test_published_numbers_are_of_metrics_that_their_protocol_has() -> None:
    assert {entry["protocol"] for entry in ENTRIES} >= {"davis2017", "coco"}
    for entry in ENTRIES:
        assert set(entry["values"]) <= set(PROTOCOLS[entry["protocol"]].metrics), entry
        assert entry["source"]


@pytest.mark.parametrize(
    ("protocol", "year", "dataset"),
    sorted(
        {
            (entry["protocol"], int(entry["dataset"].split()[1]), entry["dataset"])
            for entry in ENTRIES
            if entry["protocol"] in SEQUENCE_PROTOCOLS
            and not SEQUENCE_PROTOCOLS[entry["protocol"]].rounds
            and re.fullmatch(r"DAVIS \d+ val", entry["dataset"])
        }
    ),
)
def test_published_numbers_stand_beside_the_sequences_that_they_are_of_and_no_others(
    protocol: str, year: int, dataset: str
) -> None:
    mask = np.zeros((3, 8, 8), np.uint8)
    mask[:, 2:5, 2:5] = 1
    names = [name for name in SETS["val"] if RECORDS[name]["year"] <= year]
    for chosen, is_shown in ((names, True), (names[1:], False), ([*names, "mine"], False), (["a", "b"], False)):
        arrays = dict.fromkeys(chosen, mask)
        (report,) = score_arrays(arrays, arrays, protocol).reports
        text = _format_means(report, compare=True, look=PLAIN, all_metrics=True, columns=())
        assert ("\nXMem " in text) == is_shown
        assert (f"\nPublished for {dataset}: " in text) == is_shown
        assert ("hkchengrex/XMem f3b841d, docs/RESULTS.md" in text) == is_shown
        assert (dataset in str(make_summary(report, {}).values)) == is_shown
        assert "published.json" not in text
