"""The result of `segjudge.score`: tables, intervals, and a file from which all of it is restored."""

from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge.cli import main
from segjudge.evaluation_script.families import PROTOCOLS, folder_of
from segjudge.evaluation_script.families.base.reports import interval
from tests import revisions
from tests.data import ROOT
from tests.families.choices import WITH_UNSEEN
from tests.families.contract import golden_path

SEQUENCES = (ROOT / "examples/sequences-dev/strong.zip", ROOT / "annotations/sequences-dev.zip", "davis2017")
INSTANCES = (ROOT / "examples/instances-dev/sharp.json", ROOT / "annotations/instances-dev.zip", "places2017")
TABLES = {"davis2017": ("sequences", "objects", "frames"), "places2017": ("categories", "images", "curves")}


def videos(count: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Truths and predictions of this many videos, each a little worse than the previous one."""
    truth = np.zeros((5, 40, 60), np.uint8)
    truth[:, 10:30, 10:30] = 1
    return {f"v{k:02d}": np.roll(truth, k, 2) for k in range(count)}, {f"v{k:02d}": truth for k in range(count)}


@pytest.mark.parametrize("files", [SEQUENCES, INSTANCES], ids=TABLES)
def test_a_saved_result_is_the_same_to_the_last_bit(files: Any, tmp_path: Path) -> None:
    scores = segjudge.score(*files)
    scores.save(tmp_path / "run.segjudge")
    loaded = segjudge.load(tmp_path / "run.segjudge")
    for name in ("metrics", "standard_errors", "tables", "warnings", "notes", "provenance"):
        assert getattr(loaded, name) == getattr(scores, name), name
    for name in TABLES[files[2]]:
        assert getattr(loaded, name).equals(getattr(scores, name)), name
    loaded.save(tmp_path / "again.segjudge")
    assert (tmp_path / "again.segjudge").read_bytes() == (tmp_path / "run.segjudge").read_bytes()
    assert repr(loaded) == repr(scores)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_results_of_every_protocol_are_saved_and_have_tables(name: str, tmp_path: Path) -> None:
    entry = revisions.known(PROTOCOLS[name])
    with zipfile.ZipFile(golden_path(folder_of(PROTOCOLS[name].family), revisions.FILES)) as archive:
        truth, sample = (archive.extract(file, tmp_path) for file in (entry["truth"], entry["samples"]["poor"]["file"]))
    scores = segjudge.score(sample, truth, name)
    scores.save(tmp_path / "run")
    loaded = segjudge.load(tmp_path / "run")
    for what in ("metrics", "standard_errors", "tables", "warnings", "provenance"):
        assert getattr(loaded, what) == getattr(scores, what), what
    for table, rows in scores.tables.items():
        assert len(loaded.table(table)) == len(rows)
    assert len(loaded.table("metrics")) == len(scores.metrics["val"])
    assert PROTOCOLS[name].metrics[0] in scores.flat()
    assert PROTOCOLS[name].metrics[0].replace("&", "&amp;") in scores._repr_html_()


def test_tables_of_pandas_hold_what_the_rows_hold() -> None:
    scores = segjudge.score(*SEQUENCES)
    for name in ("sequences", "objects"):
        for row, expected in zip(getattr(scores, name).to_dict("records"), scores.tables[name], strict=True):
            known = {key: value for key, value in expected.items() if value is not None}
            assert {key: row[key] for key in known} == known
            assert all(math.isnan(row[key]) for key in row.keys() - known)
    means = scores.frames.groupby(["sequence", "object"], observed=True)[["j", "f"]].mean()
    objects = scores.objects.set_index(["sequence", "object"])
    np.testing.assert_allclose(means["j"], objects["J-Mean"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(means["f"], objects["F-Mean"], rtol=0, atol=1e-12)
    with pytest.raises(segjudge.UsageError, match="no table curves, only sequences, objects, frames"):
        _ = scores.curves


def test_seen_and_unseen_ones_are_as_certain_as_the_fewer_of_both() -> None:
    accumulator = segjudge.FrameAccumulator(WITH_UNSEEN, unseen=[f"v{k:02d}" for k in range(5)])
    for name, labels in videos(13)[1].items():
        for frame, mask in enumerate(labels):
            accumulator.update(name, frame, np.roll(mask, int(name[1:]) % 4, 1), mask)
    scores = accumulator.compute()
    for metric, cases in (("J-seen-Mean", 8), ("J-unseen-Mean", 5), ("J-Mean", 5), ("J&F-Mean", 5), ("J-Visible", 13)):
        low, value, error = (
            (scores.interval(metric) or (0.0,))[0],
            scores[metric],
            scores.standard_errors["all"][metric],
        )
        assert value
        assert error
        assert value - low == pytest.approx(interval(0, error, cases)[1]), metric


def test_the_command_shows_and_writes_intervals_where_there_are_any(tmp_path: Path, capsys: Any) -> None:
    for (results, truth, protocol), there in ((SEQUENCES, False), (INSTANCES, True)):
        given = ["score", str(results), "--truth", str(truth), "--protocol", protocol]
        assert main([*given, "--json", str(tmp_path / "scores.json")]) == 0
        document, scores = json.loads((tmp_path / "scores.json").read_text()), segjudge.score(results, truth, protocol)
        assert document["errors"] == [scores.standard_errors]
        matches = {metric: list(scores.interval(metric) or ()) for metric in scores.metrics["dev"]}
        assert document["intervals"] == [{"dev": {metric: ends for metric, ends in matches.items() if ends}}]
        lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("95 % CI")]
        low, high = matches.get("AP") or (0.0, 0.0)
        assert [line[4] for line in lines] == ([f"{low:.3f}", f"{high:.3f}"] if there else [])
