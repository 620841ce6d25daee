"""The Python of the pages for Python runs as shown, and gives the numbers of files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import segjudge
from segjudge import score_arrays
from tests.builders import label_zip, written
from tests.commands.test_drop_in import small
from tests.commands.test_drop_in_lvis import write_federated
from tests.data import ROOT
from tests.families.choices import SKIPS_MISSING
from tests.families.volumes.family import encode_volume
from tests.scoring.test_arrays import PREDICTIONS, TRUTHS

PAGES = ("python", "training", "clusters", "switching")


def snippets(page: str) -> list[str]:
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    return [part.partition("```")[0] for part in text.split("```python\n")[1:]]


class Logged(dict[str, Any]):
    """A logger that keeps its values."""

    log = dict.update


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the reader's folder: a root of DAVIS, and results as a zip and as a folder."""
    for place, videos in (("DAVIS/Annotations/480p", TRUTHS), ("results", PREDICTIONS)):
        for name, frames in videos.items():
            (tmp_path / place / name).mkdir(parents=True)
            for number, labels in enumerate(frames):
                Image.fromarray(labels).save(tmp_path / place / name / f"{number:05d}.png")
    (tmp_path / "DAVIS/ImageSets/2017").mkdir(parents=True)
    (tmp_path / "DAVIS/ImageSets/2017/val.txt").write_text("".join(f"{name}\n" for name in TRUTHS))
    for results in ("results.zip", "better.zip"):
        (tmp_path / results).write_bytes(label_zip({name: list(frames) for name, frames in PREDICTIONS.items()}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def frames_of(sequence: str) -> Any:
    return [(frame, PREDICTIONS[sequence][frame], TRUTHS[sequence][frame]) for frame in range(len(TRUTHS[sequence]))]


def given() -> dict[str, Any]:
    """Return the values of the names that the pages assume."""
    return {
        "prediction": PREDICTIONS["dog"],
        "truth": TRUTHS["dog"],
        "loader": [
            (name, k, PREDICTIONS[name][k], TRUTHS[name][k]) for name in TRUTHS for k in range(len(TRUTHS[name]))
        ],
        "model": lambda image: image,
        "logger": Logged(),
        "sequences": list(TRUTHS),
        "frames_of": frames_of,
        "expected": {name: range(len(frames)) for name, frames in TRUTHS.items()},
    }


def run(page: str, space: dict[str, Any], chosen: Callable[[str], bool] = lambda _: True) -> dict[str, Any]:
    for snippet in snippets(page):
        if chosen(snippet):
            exec(snippet.replace('"/data/', '"'), space)
    return space


def test_python_md_scores_files_and_arrays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space = run("python", given())
    assert space["scores"].metrics == score_arrays(PREDICTIONS["dog"], TRUTHS["dog"]).metrics
    printed = capsys.readouterr().out.splitlines()
    assert float(printed[-2]) == space["scores"]["J&F-Mean"]
    assert 0 < float(printed[-1]) < 1
    assert space["comparison"].verdict in printed[-4]
    assert printed[-3].startswith("J&F-Mean: ours, theirs share the first rank")
    assert [(folder / name).exists() for name in ("run.segjudge", "report.html", "compared.html")] == [True] * 3


def test_training_md_logs_j_and_f() -> None:
    space = run("training", given(), lambda text: not any(word in text for word in ("import torch", "monai", "nnUNet")))
    expected = score_arrays(PREDICTIONS, TRUTHS)
    assert space["logger"] == expected.flat("val/")
    assert space["logger"]["val/J&F-Mean"] == expected["J&F-Mean"]
    assert [row["J-Mean"] for row in space["worst"]] == sorted(row["J-Mean"] for row in expected.tables["objects"])[:5]
    first = snippets("training")[0].strip().splitlines()
    assert len(first) <= 11


def write_volumes(folder: Path, videos: dict[str, Any], *names: str) -> None:
    """Write videos as volumes whose slices are frames."""
    for name in names:
        written(folder, {f"{name}.nii.gz": encode_volume(videos[name] % 255)})


@pytest.fixture
def nnunet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, float | None]:
    """Return the folders of nnU-Net, in which one case of two was predicted, and its scores."""
    monkeypatch.chdir(tmp_path)
    write_volumes(tmp_path / "nnUNet_raw/Dataset009_Spleen/labelsTr", TRUTHS, "cat", "dog")
    fold = "nnUNet_results/Dataset009_Spleen/nnUNetTrainer__nnUNetPlans__3d_fullres/fold_0/validation"
    write_volumes(tmp_path / fold, PREDICTIONS, "dog")
    written(tmp_path / fold, {"summary.json": b"{}"})
    truth = {"labels": TRUTHS["dog"] % 255, "spacing": [1, 1, 1]}
    (protocol,) = {name for code in snippets("training") for name in re.findall(r'labelsTr", "([\w-]+)"', code)}
    return score_arrays({"dog": PREDICTIONS["dog"] % 255}, {"dog": truth}, protocol).metrics["all"]


def test_training_md_scores_the_validation_folder_of_nnunet(nnunet: Any, capsys: pytest.CaptureFixture[str]) -> None:
    space = run("training", {}, lambda text: "nnUNet_results" in text)
    assert space["cases"] == ["dog"]
    assert space["scores"].metrics["val"] == nnunet
    assert capsys.readouterr().out == f"{nnunet['Dice']} {nnunet['NSD']}\n"
    assert 0 < nnunet["Dice"] < 1


@pytest.mark.usefixtures("folder")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_clusters_md_merges_what_jobs_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import Client

    space, (job, merging, dask) = given(), snippets("clusters")
    for task in range(4):
        monkeypatch.setenv("SLURM_ARRAY_TASK_ID", str(task))
        exec(job, space)
    exec(merging, space)
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0") as client:
        exec(dask, {**space, "client": client})
    expected = score_arrays(PREDICTIONS, TRUTHS)["J&F-Mean"]
    assert [float(line) for line in capsys.readouterr().out.splitlines()] == [expected, expected]


@pytest.mark.usefixtures("folder")
def test_switching_md_runs_each_stand_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth, detections = small(8, "segm")
    space = run("switching", {"truth": truth, "detections": detections}, lambda snippet: "LVISEval" not in snippet)
    federated = dict(zip(("truth", "detections"), write_federated(tmp_path)))
    assert run("switching", federated, lambda snippet: "LVISEval" in snippet)["evaluation"].results["AP"] > 0
    assert "Average Precision  (AP) @[ IoU=0.50:0.95" in capsys.readouterr().out
    scores = segjudge.score("results.zip", "DAVIS/Annotations/480p", SKIPS_MISSING, layout="generic")
    assert space["j"] == [pytest.approx(100 * scores["J-Mean"])]
    expected = segjudge.score("results.zip", "DAVIS", "davis2017", subset="val").tables["objects"]
    assert space["results"]["J"]["M"] == [row["J-Mean"] for row in expected]


@pytest.mark.parametrize("page", PAGES)
def test_pages_for_python_lead_to_each_other(page: str) -> None:
    text = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    assert page == "python" or f"]({page}.md)" in text
    assert snippets(page)
