"""The pictures that explain the metrics equal those that the code draws, with the numbers that it computes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import segjudge
from tests.builders import ROOT

assert segjudge  # it draws


@pytest.mark.long
def test_pictures_of_the_docs_are_drawn_as_they_stand_there(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "docs/site/pictures.py"), str(tmp_path)]
    subprocess.run(command, check=True)
    drawn = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs/metrics").iterdir()}
    assert drawn == kept, "run `python docs/site/pictures.py`, and look at them"
    shown = re.findall(r"!\[[^\]]+\]\(metrics/([^)]+)\)", (ROOT / "docs/metrics.md").read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(kept)
    assert all(ElementTree.fromstring(text).find("{*}title") is not None for text in kept.values())
