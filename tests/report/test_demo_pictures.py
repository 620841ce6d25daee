"""The first screen of each family's demo: photographs of the demo's own cut-outs, or the points of scans."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import segjudge
from segjudge.cli import main
from segjudge.evaluation_script.families import PROTOCOLS
from tests.families.choices import VOLUMES
from tests.families.contract import examples

COMMIT = f"git+https://example.org/segjudge@{'0' * 40}"
FORMS = list(dict.fromkeys([*examples("pages"), *examples("samples")]))


@pytest.mark.long
@pytest.mark.parametrize("name", FORMS)
def test_the_report_of_a_demo_has_a_picture_below_all_masks(name: str, tmp_path: Path) -> None:
    challenge = tmp_path / "new"
    assert main(["new", str(challenge), "--demo", "--protocol", name, "--segjudge", COMMIT]) == 0
    pictures = challenge / "pictures" / "val"
    assert sum(path.stat().st_size for path in pictures.rglob("*.*")) < 4_000_000

    scores = segjudge.score(challenge / "examples/val/poor.zip", challenge / "annotations/val.zip", name)
    page = scores.page(images=pictures)
    assert 'class="first"' in page
    if PROTOCOLS[name].family == "scans":
        assert "Above: the scan from above" in page
        return
    if PROTOCOLS[name].family == PROTOCOLS[VOLUMES].family:
        assert '["Soft tissue",50.0,400' in page  # the window of a CT
        assert " not shown: " not in page
        return
    shown = re.search(r"Pictures of (\d+) of (\d+) frames", page)
    assert shown
    assert shown[1] == shown[2]


@pytest.mark.parametrize("name", examples("first screens"))
def test_a_comparison_begins_as_reports_do(name: str, tmp_path: Path) -> None:
    challenge = tmp_path / "new"
    assert main(["new", str(challenge), "--demo", "--protocol", name, "--segjudge", COMMIT]) == 0
    truth = challenge / "annotations/val.zip"
    compared = segjudge.compare(
        *(segjudge.score(challenge / f"examples/val/{quality}.zip", truth, name) for quality in ("good", "poor"))
    )
    section = compared.page().partition('<section id="methods"')[2].partition("</section>")[0]
    assert section.count('class="first"') == 1
    bars = re.findall(r"<li><b>(\w+)</b>.*?−([\d.]+)</span></li>", section, re.DOTALL)
    assert [method for method, _ in bars] == ["good", "poor"]
    assert 0 < float(bars[0][1]) < float(bars[1][1]) < 1
