"""The stand-in for lvis-api beside its recorded numbers, and beside the package where it is installed."""

from __future__ import annotations

import contextlib
import io
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import UsageError
from segjudge.drop_in import lvis as stand_in
from tests.commands.test_drop_in_loops import truth_and_records
from tests.families.instances.test_lvis import DATA, golden
from tests.shared import needs_shared

needs_lvis = pytest.mark.skipif(not find_spec("lvis"), reason="LVIS ABSENT: pip install lvis to test it")


@needs_shared
@pytest.mark.parametrize("case", [name for name, run in golden()["cases"].items() if "stats" in run["lvis_segm"]])
def test_its_results_are_those_of_lvis_api(case: str) -> None:
    run = golden()["cases"][case]
    evaluation = stand_in.LVISEval(str(DATA / run["truth"]), str(DATA / f"{case}.json"))
    evaluation.run()
    expected = {name: -1 if number is None else number for name, number in run["lvis_segm"]["stats"].items()}
    assert evaluation.get_results() == pytest.approx(expected, abs=1e-9)


def write_federated(folder: Path) -> tuple[str, str]:
    """Write a truth with federated lists, and detections with boxes."""
    truth, sent = truth_and_records(5, folder)
    document = json.loads(truth.read_text())
    for image in document["images"]:
        number = image["id"]
        image.update(
            neg_category_ids=[number % 3 + 1], not_exhaustive_category_ids=[(number + 1) % 3 + 1][: number % 2]
        )
    for category, frequency in zip(document["categories"], "rcf", strict=True):
        category["frequency"] = frequency
    for annotation in document["annotations"]:
        annotation["id"] += 1
    truth.write_text(json.dumps(document))
    return str(truth), str(sent)


@needs_lvis
@pytest.mark.parametrize("kind", ["segm", "bbox"])
@pytest.mark.parametrize("cap", [300, 3, -1])
def test_all_its_numbers_and_lines_are_theirs(
    kind: str, cap: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lvis

    monkeypatch.setattr(np, "float", float, raising=False)  # which lvis-api needs
    for name in ("LVISEval", "LVISResults"):
        monkeypatch.setattr(lvis, name, getattr(lvis, name))
    truth, sent = write_federated(tmp_path)
    opened = lvis.LVIS(truth)

    def run() -> tuple[Any, str]:
        evaluation = lvis.LVISEval(opened, lvis.LVISResults(opened, sent, cap), kind)
        evaluation.params.img_ids, evaluation.params.cat_ids = [1, 2, 3, 5, 7, 8], [1, 3]
        evaluation.run()
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            evaluation.print_results()
        return evaluation, printed.getvalue()

    theirs, lines = run()
    stand_in.install()
    ours, own_lines = run()
    assert isinstance(ours, stand_in.LVISEval)
    assert (ours.results, own_lines) == (theirs.results, lines)
    assert 0 < ours.results["AP"] < 1
    for name in ("precision", "recall"):
        np.testing.assert_array_equal(ours.eval[name], theirs.eval[name])


def test_other_parameters_are_refused(tmp_path: Path) -> None:
    evaluation = stand_in.LVISEval(*write_federated(tmp_path))
    evaluation.params.iou_thrs = [0.5]
    with pytest.raises(UsageError, match="iou_thrs cannot be changed"):
        evaluation.run()
