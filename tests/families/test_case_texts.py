"""Each family has texts of cases, which `tests.notes` lists."""

from __future__ import annotations

import pytest

from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS, folder_of
from segjudge.families import tools_of
from tests.cases import read_cases
from tests.families.contract import module_of
from tests.notes import ROOT, list_case_texts
from tests.pages import FORMS


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_notes_its_metrics_and_its_published_truths(family: str) -> None:
    folder = ROOT / "tests/families" / folder_of(family)
    offers = "\n".join(case.noted for case in read_cases(folder / "golden/offers.txt"))
    protocols = [name for name in FORMS if PROTOCOLS[name].family == family]
    calls = [f'list_metrics("{family}")', f'list_rules("{family}")', *(f'offer("{name}")' for name in protocols)]
    assert [call for call in calls if f"{call}\n    " not in offers] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_scores_masks_in_cases(family: str) -> None:
    assert read_cases(ROOT / "tests/families" / folder_of(family) / "golden/masks.txt")
    assert module_of(folder_of(family)).__doc__


@pytest.mark.parametrize("family", FAMILIES)
def test_an_unknown_metric_has_no_other_meaning_than_its_name(family: str) -> None:
    assert tools_of(family).describe_metric("Loss") == "Loss"


def test_notes_write_the_cases_of_a_family() -> None:
    assert "tests/families/base/golden/tools.txt" in list_case_texts()
