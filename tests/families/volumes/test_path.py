"""The whole path of a host: a network's folder and a truth -> scores, a page, and a container that scores."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import segjudge
from segjudge.cli import main
from segjudge.evaluation_script.families.volumes.protocols import VOLUME_PROTOCOLS
from segjudge.evaluation_script.families.volumes.voxels import Volume, VolumeFile
from segjudge.evaluation_script.files.problems import SubmissionError
from segjudge.families.volumes.challenges import make_demo
from tests.builders import written
from tests.families.volumes.volumes import encode_metaimage

#: Files that nnU-Net writes next to its predictions.
_BESIDE = ("dataset.json", "plans.json", "predict_from_raw_data_args.json")
_SLUG = "images/organ-segmentation"


class _Host(NamedTuple):
    """The host's files, and the files made from them."""

    truth: Path
    challenge: Path
    samples: dict[str, bytes]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> _Host:
    """Return a truth in nnU-Net's layout, and the challenge that two commands make of it."""
    folder = tmp_path_factory.mktemp("host")
    truth = written(folder, {Path(name).name: data for name, data in make_demo(VOLUME_PROTOCOLS["volumes"])})
    truth = truth.rename(folder.parent / "labelsTs")
    challenge = folder.parent / "challenge"
    assert main(["new", str(challenge), "--protocol", "volumes", "--truth", str(truth), "--quiet"]) == 0
    assert (
        main(["build", "--bundle", str(challenge), "--platform", "grand-challenge", "--out", str(challenge / "out")])
        == 0
    )
    (sample,) = (challenge / "examples").rglob("poor.zip")
    with zipfile.ZipFile(sample) as archive:
        samples = {name: archive.read(name) for name in archive.namelist()}
    return _Host(truth, challenge, samples)


def test_a_folder_of_volumes_without_a_protocol_names_one(
    host: _Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = written(tmp_path / "nnunet", host.samples)
    for command in ("score", "report"):
        assert main([command, str(results), "--truth", str(host.truth)]) == 2
        shown = capsys.readouterr().err
        first = min(path.name for path in host.truth.iterdir())
        assert f"{host.truth} holds {first}, which davis2017 cannot read; add --protocol volumes, or another" in shown


_PUBLISHED = {
    "nnU-Net": ("labelsTr/{case}.nii.gz", "imagesTr/{case}_0000.nii.gz", "imagesTr/{case}_0001.nii.gz"),
    "Decathlon": ("labelsTr/{case}.nii.gz", "imagesTr/{case}.nii.gz", "imagesTs/other.nii.gz"),
    "KiTS": ("dataset/{case}/segmentation.nii.gz", "dataset/{case}/imaging.nii.gz", "dataset/{case}/instances/k-1.nii.gz"),
}  # fmt: skip


@pytest.mark.parametrize("layout", _PUBLISHED)
def test_a_dataset_as_published_is_a_truth_without_its_scans(layout: str, host: _Host, tmp_path: Path) -> None:
    labels, *scans = _PUBLISHED[layout]
    dataset = {"other/read-me.txt": "no volume"}
    for path in host.truth.iterdir():
        case = path.name[: -len(".nii.gz")]
        dataset.update({name.format(case=case): b"a scan, which nobody opens" for name in scans})
        dataset[labels.format(case=case)] = path.read_bytes()
    truth = written(tmp_path / "published", dataset)
    results = written(tmp_path / "nnunet", host.samples)
    assert segjudge.score(results, truth, "volumes").metrics == _score_files(host, tmp_path).metrics


def test_a_folder_of_images_is_no_truth(host: _Host, tmp_path: Path) -> None:
    images = {path.name.replace(".nii", "_0000.nii"): path.read_bytes() for path in host.truth.iterdir()}
    with pytest.raises(SubmissionError, match="The truth holds images of channels: use nnU-Net's labels"):
        segjudge.score(written(tmp_path / "nnunet", host.samples), written(tmp_path / "imagesTs", images), "volumes")


def _score_files(host: _Host, folder: Path) -> Any:
    return segjudge.score(written(folder / "nnunet", host.samples), host.truth, "volumes")


def _mount(host: _Host, folder: Path, *, named: str = "{case}_0000.nii.gz", nested: bool = True) -> Path:
    """Write the files that the platform mounts for an algorithm's jobs: random names of volumes, in another order."""
    files, jobs = {}, []
    for number, (name, data) in enumerate(reversed(host.samples.items())):
        job, image = f"00000000-0000-4000-8000-{number:012d}", f"f0000000-0000-4000-8000-{number:012d}"
        place = f"{job}/output/{_SLUG}" if nested else _SLUG
        volume = VolumeFile(name, len(data), [data]).read_labels()
        files[f"{place}/{image}.mha"] = encode_metaimage(volume)
        socket = {"slug": "organ-segmentation", "relative_path": _SLUG, "kind": "Segmentation"}
        inputs = [{"image": {"name": named.format(case=name.removesuffix(".nii.gz")), "pk": number}, "socket": {}}]
        output = {"socket": socket, "image": {"name": "output.mha", "pk": image}, "value": None}
        settings = {"socket": {"slug": "age", "relative_path": "age.json"}, "image": None, "value": 50}
        jobs.append({"pk": job, "inputs": [*inputs, settings], "outputs": [output], "status": "Succeeded"})
    files |= {"predictions.json": json.dumps(jobs).encode(), **({"inputs.json": b"[]"} if nested else {})}
    return written(folder, files)


def _run_container(host: _Host, folder: Path, method: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the container's entry with the files that the platform mounts."""
    method = method or host.challenge / "out/val"
    for name in ("truth", "output"):
        (folder / name).mkdir()
    with tarfile.open(method / "ground_truth.tar.gz") as archive:
        archive.extractall(folder / "truth", filter="data")
    return subprocess.run(
        [sys.executable, "-B", str(method / "evaluate.py"), *(str(folder / name) for name in ("input", "truth", "output"))],
        cwd=folder, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def test_a_networks_folder_and_a_truth_give_scores_and_a_page(
    host: _Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = written(tmp_path / "nnunet", host.samples | dict.fromkeys(_BESIDE, b"{}"))
    page = tmp_path / "page.html"
    arguments = ["score", str(results), "--truth", str(host.truth), "--protocol", "volumes", "--report", str(page)]
    assert main(arguments) == 0, capsys.readouterr().err
    output = capsys.readouterr()
    assert "3 files are not part of the results and were ignored: dataset.json" in output.err
    assert "val, all" in output.out
    assert "case_001" in page.read_text()
    assert main([*arguments, "--subset", "labelsTs"]) == 0


@pytest.mark.parametrize("named", ["{case}_0000.nii.gz", "{case}.mha", "{case}-t1c.nii.gz"])
def test_the_container_scores_images_of_jobs_as_files(host: _Host, tmp_path: Path, named: str) -> None:
    _mount(host, tmp_path / "input", named=named)
    done = _run_container(host, tmp_path)
    assert done.returncode == 0, done.stderr
    metrics = json.loads((tmp_path / "output/metrics.json").read_text())
    (expected,) = _score_files(host, tmp_path).metrics.values()
    assert {label: metrics["val"][label] for label in expected} == expected
    assert expected["Dice"] < 1


@pytest.mark.parametrize("nested", [True, False], ids=["of jobs", "by name"])
def test_what_the_platform_mounts_scores_by_the_command(host: _Host, tmp_path: Path, *, nested: bool) -> None:
    scores = segjudge.score(_mount(host, tmp_path / "input", nested=nested), host.truth, "volumes", strict=not nested)
    assert scores.metrics == _score_files(host, tmp_path).metrics


@pytest.mark.long
def test_the_container_follows_no_link_out_of_its_input(host: _Host, tmp_path: Path) -> None:
    folder = _mount(host, tmp_path / "input")
    (job, *_) = sorted(path for path in folder.iterdir() if path.is_dir())
    images = job / "output" / _SLUG
    for path in images.iterdir():
        path.unlink()
    images.rmdir()
    images.symlink_to(host.truth)
    done = _run_container(host, tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("your file: 1 of 3 cases is missing: case_003")


def _change_jobs(folder: Path, change: Any) -> None:
    path = folder / "predictions.json"
    jobs = json.loads(path.read_text())
    change(jobs)
    path.write_text(json.dumps(jobs))


def test_a_job_with_images_of_several_cases_is_rejected(host: _Host, tmp_path: Path) -> None:
    folder = _mount(host, tmp_path / "input")
    _change_jobs(folder, lambda jobs: jobs[0]["inputs"].extend(jobs[1]["inputs"]))
    with pytest.raises(SubmissionError, match="images of several cases: case_002, case_003"):
        segjudge.score(folder, host.truth, "volumes")


def _add_output(folder: Path, slug: str, change: Callable[[Volume], Volume]) -> None:
    """Add an image to the output of each job, made from its label map."""

    def add(jobs: list[Any]) -> None:
        for job in jobs:
            (path,) = (folder / job["pk"] / "output" / _SLUG).iterdir()
            data = path.read_bytes()
            image = encode_metaimage(change(VolumeFile(path.name, len(data), [data]).read_labels()))
            written(folder, {f"{job['pk']}/output/images/{slug}/{slug}.mha": image})
            socket = {"slug": slug, "relative_path": f"images/{slug}", "kind": "Image"}
            job["outputs"].append({"socket": socket, "image": {"name": "output.mha", "pk": slug}, "value": None})

    _change_jobs(folder, add)


def _as_heat(volume: Volume) -> Volume:
    return volume._replace(labels=volume.labels.astype("<f4") / 2)


def _crop(volume: Volume) -> Volume:
    shape = volume.geometry.shape
    return Volume(volume.geometry._replace(shape=(*shape[:2], shape[2] - 1)), volume.labels[:-1].copy(), ())


@pytest.mark.parametrize("others", [{"heat": _as_heat}, {"low": _crop, "heat": _as_heat}], ids=", ".join)
def test_of_several_outputs_the_only_label_map_in_the_truths_grid_is_scored(
    others: dict[str, Callable[[Volume], Volume]], host: _Host, tmp_path: Path
) -> None:
    folder = _mount(host, tmp_path / "input")
    (folder / "inputs.json").unlink()
    for slug, change in others.items():
        _add_output(folder, slug, change)
    scores = segjudge.score(folder, host.truth, "volumes", strict=True)
    assert scores.metrics == _score_files(host, tmp_path).metrics
    sentence = "only organ-segmentation has labels in the truth's grid, and was scored"
    assert f"jobs write {1 + len(others)} outputs; {sentence}" in " ".join(scores.warnings)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_as_heat, r"several outputs, none with labels in the truth's grid: organ-segmentation is .*; more holds [01]\.5, which"),
        (lambda volume: volume, r"several label maps in the truth's grid: organ-segmentation, more\. Organisers name one in"),
    ],
    ids=["no label map", "two label maps"],
)  # fmt: skip
def test_outputs_of_which_none_or_several_may_be_meant_are_named(
    change: Callable[[Volume], Volume], sentence: str, host: _Host, tmp_path: Path
) -> None:
    folder = _mount(host, tmp_path / "input")
    _add_output(folder, "more", change)
    if change is _as_heat:
        next(folder.glob(f"*/output/{_SLUG}/*.mha")).write_bytes(b"")
    with pytest.raises(SubmissionError, match=sentence):
        segjudge.score(folder, host.truth, "volumes")


def test_the_container_scores_the_output_that_its_phase_names(host: _Host, tmp_path: Path) -> None:
    folder = _mount(host, tmp_path / "input")
    _add_output(folder, "draft", lambda volume: volume._replace(labels=np.zeros_like(volume.labels)))
    method = tmp_path / "method"
    shutil.copytree(host.challenge / "out/val", method)
    phases = method / "evaluation_script/phases.py"
    phases.write_text(phases.read_text().replace("codename=", 'socket="organ-segmentation", codename='))
    done = _run_container(host, tmp_path, method)
    assert done.returncode == 0, done.stderr
    metrics = json.loads((tmp_path / "output/metrics.json").read_text())
    (expected,) = _score_files(host, tmp_path).metrics.values()
    assert {label: metrics["val"][label] for label in expected} == expected
    assert "jobs write" not in str(metrics)
