"""Volumes in memory score the same bits as their files, and are rejected with the same sentences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge import FrameAccumulator, SubmissionError, score_arrays
from segjudge.evaluation_script.families.volumes.geometry import Geometry, Order, reorder
from segjudge.evaluation_script.families.volumes.protocols import VOLUME_PROTOCOLS
from segjudge.evaluation_script.families.volumes.voxels import Volume, reorder_volume
from segjudge.families.truths import TruthSource, open_truth
from segjudge.families.volumes.challenges import encode_nifti, make_demo, make_sample
from tests.builders import ROOT, written, zipped
from tests.families.test_benchmark_pages import write_example
from tests.families.volumes.images import LIBRARIES, give_itk_module, import_library, make_image
from tests.families.volumes.volumes import DATA, open_volume, read_golden
from tests.scoring.memory_parts import of_parts, same
from tests.shared import needs_shared
from tests.snippets.reading import snippets

#: An oblique grid, whose spacing 32 bits hold exactly.
SPACING = (0.75, 0.75, 2.5)
TURN = np.array([[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]]) * [[-1], [-1], [1]]
GRID = Geometry((26, 22, 14), SPACING, np.column_stack([TURN * SPACING, [100.25, -20.5, 7.75]]))


def draw_organs(shift: int = 0) -> Any:
    z, y, x = np.indices(GRID.shape[::-1])
    labels = np.zeros(z.shape, np.uint8)
    for label, (middle, radii) in enumerate(
        (((6, 10, 9), (5, 7, 6)), ((8, 14, 19), (4, 5, 5)), ((7, 5, 18), (3, 3, 4))), 1
    ):
        places = zip((z, y, x), middle, radii)
        labels[sum(((side - center) / radius) ** 2 for side, center, radius in places) < 1] = label
    return np.roll(labels, (shift // 2, shift, shift), (0, 1, 2))


TRUTH, PREDICTION = draw_organs(), draw_organs(2)


def score_files(folder: Path, truth: dict[str, bytes], results: dict[str, bytes], protocol: Any) -> Any:
    archive = written(folder, {"results.zip": zipped(results)}) / "results.zip"
    return segjudge.score(archive, written(folder / "truth", truth), protocol)


def score_pair(folder: Path, protocol: Any, labels: Any = PREDICTION, grid: Geometry = GRID) -> Any:
    """Score a prediction's file."""
    truth = {"a.nii.gz": encode_nifti(TRUTH, GRID)}
    return score_files(folder, truth, {"a.nii.gz": encode_nifti(labels, grid)}, protocol)


@pytest.fixture
def itk_module(monkeypatch: pytest.MonkeyPatch) -> None:
    give_itk_module(monkeypatch)


# ── arrays ──────────────────────────────────────────────────────────────────


def read_arrays(folder: Path) -> dict[str, dict[str, Any]]:
    arrays = {}
    for path in sorted(folder.rglob("*.nii.gz")):
        volume = open_volume(path).read_labels()
        arrays[path.name[:-7]] = {"labels": volume.labels, "spacing": volume.geometry.spacing[::-1]}
    return arrays


@pytest.mark.parametrize("protocol", VOLUME_PROTOCOLS)
def test_arrays_score_as_files_do(protocol: str, tmp_path: Path) -> None:
    rules = VOLUME_PROTOCOLS[protocol]
    truth = written(tmp_path / "truth", dict(make_demo(rules)))
    splits = open_truth(TruthSource(str(truth)), rules).splits
    sample = dict(make_sample(list(splits.values()), rules, 0.03))
    expected = segjudge.score(written(tmp_path / "results", sample), truth, protocol)
    truths, predictions = read_arrays(truth), read_arrays(tmp_path / "results")
    assert truths.keys() == predictions.keys()
    assert len(truths) > 1
    same(score_arrays(predictions, truths, protocol), expected)
    same(of_parts(protocol, [(name, None, predictions[name], truths[name]) for name in truths]), expected)


# ── images ──────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("itk_module")
@pytest.mark.parametrize("protocol", ["volumes", "brats-2023", "isles22", "chaos", "topcow"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_images_score_as_files_do(library: str, protocol: str, tmp_path: Path) -> None:
    rules = replace(VOLUME_PROTOCOLS[protocol], unscored=(1, 2, 3))
    expected = score_pair(tmp_path, rules)
    truth, prediction = (make_image(library, labels, GRID) for labels in (TRUTH, PREDICTION))
    same(score_arrays({"a": prediction}, {"a": truth}, rules), expected)
    same(of_parts(rules, [("a", None, prediction, truth)]), expected)


def move(grid: Geometry, millimetres: float) -> Geometry:
    return grid._replace(affine=grid.affine + np.outer([1, 1, 1], [0, 0, 0, millimetres]))


def turn(grid: Geometry) -> Geometry:
    turned = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])
    return grid._replace(affine=np.column_stack([turned @ grid.affine[:, :3], grid.affine[:, 3]]))


def stretch(grid: Geometry, share: float) -> Geometry:
    factors = np.array([1.0, 1.0, share])
    spacing = tuple((np.array(grid.spacing) * factors).tolist())
    return Geometry(grid.shape, spacing, grid.affine * [*factors, 1])  # type: ignore[arg-type]


FLIPPED = Order((0, 1, 2), (True, False, False))
EXCHANGED = Order((1, 0, 2), (False, True, False))


def change(name: str) -> tuple[Any, Geometry]:
    """Return a prediction and its grid; one of the two is wrong."""
    whole = Volume(GRID, PREDICTION, ())
    orders = {"flipped": FLIPPED, "exchanged": EXCHANGED}
    if name in orders:
        grid = reorder(GRID, orders[name])
        return reorder_volume(whole, grid, orders[name]).labels, grid
    grids = {"moved": move(GRID, 30), "turned": turn(GRID), "stretched": stretch(GRID, 1.5), "near": move(GRID, 0.01)}
    if name == "cut":
        return PREDICTION[:-1], GRID._replace(shape=(26, 22, 13))
    return (PREDICTION + (9 if name == "label" else 0)), grids.get(name, GRID)


@pytest.mark.usefixtures("itk_module")
@pytest.mark.parametrize("protocol", ["volumes", "kits23"])
@pytest.mark.parametrize("name", ["cut", "stretched", "moved", "turned", "flipped", "exchanged", "near", "label"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_geometry_and_labels_are_compared_as_those_of_files(
    library: str, name: str, protocol: str, tmp_path: Path
) -> None:
    labels, grid = change(name)
    truth, prediction = make_image(library, TRUTH, GRID), make_image(library, labels, grid)
    accepted = {"near"} if protocol == "kits23" else {"near", "flipped", "exchanged", "label"}
    if name in accepted:
        same(score_arrays({"a": prediction}, {"a": truth}, protocol), score_pair(tmp_path, protocol, labels, grid))
        return
    with pytest.raises(SubmissionError) as expected:
        score_pair(tmp_path, protocol, labels, grid)
    with pytest.raises(SubmissionError) as refusal:
        score_arrays({"a": prediction}, {"a": truth}, protocol)
    assert str(refusal.value) == str(expected.value).replace("a.nii.gz:", "prediction of a:")


#: nibabel repairs the spacing of two, does not read the end of two, and its types have names of its own.
HIDDEN = {
    "pixdim-zero.nii.gz", "pixdim-negative.nii.gz", "beyond.nii", "gz-crc.nii.gz", "rgb.nii.gz", "complex.nii.gz",
}  # fmt: skip


def answer_formats(name: str, folder: Path) -> list[Any]:
    """Return a file's scores or message, and the same for its image if nibabel opens it."""
    nibabel, answers = import_library("nibabel"), list[Any]()
    data, plain = ((DATA / "formats" / file).read_bytes() for file in (name, "plain.nii.gz"))
    path = written(folder / "opened", {name: data}) / name
    try:
        image, truth = nibabel.load(path), nibabel.load(DATA / "formats" / "plain.nii.gz")
        np.asanyarray(image.dataobj)
    except Exception:  # noqa: BLE001 - nibabel has many
        return []
    ending = "".join(path.suffixes)
    for score in (
        lambda: score_files(folder, {"a.nii.gz": plain}, {f"a{ending}": data}, "volumes"),
        lambda: score_arrays({"a": image}, {"a": truth}, "volumes"),
    ):
        try:
            scores = score()
            answers.append([*scores.metrics.values(), [line.partition(": ")[2] for line in scores.warnings]])
        except SubmissionError as refusal:
            answers.append(str(refusal).partition(": ")[2])
    return answers


@needs_shared
@pytest.mark.filterwarnings("ignore")
def test_files_of_all_forms_are_answered_alike_if_nibabel_opened_them(tmp_path: Path) -> None:
    answers = {name: answer_formats(name, tmp_path / name) for name in read_golden("formats")["files"]}
    opened = {name: pair for name, pair in answers.items() if pair}
    assert len(opened) > 40
    assert {name for name, (of_file, of_image) in opened.items() if of_file != of_image} == HIDDEN


@pytest.mark.parametrize("ending", [".nii.gz", ".mha", ".nrrd"])
def test_files_that_simpleitk_wrote_score_as_it_reads_them(ending: str, tmp_path: Path) -> None:
    library = import_library("SimpleITK")
    for side, labels in (("truth", TRUTH), ("results", PREDICTION)):
        (tmp_path / side).mkdir()
        library.WriteImage(make_image("SimpleITK", labels, GRID), str(tmp_path / side / f"a{ending}"), True)
    images = [library.ReadImage(str(tmp_path / side / f"a{ending}")) for side in ("results", "truth")]
    same(
        score_arrays(*({"a": image} for image in images), "volumes"),
        segjudge.score(tmp_path / "results", tmp_path / "truth", "volumes"),
    )


@pytest.mark.usefixtures("itk_module")
def test_images_with_several_channels_or_another_number_of_axes_are_a_sentence() -> None:
    truth, image = (make_image("methods of SimpleITK", TRUTH, GRID) for _ in range(2))
    image.GetNumberOfComponentsPerPixel = lambda: 3
    with pytest.raises(SubmissionError, match="prediction of case: has 3 channels. Save one label for each voxel"):
        score_arrays(image, truth, "volumes")
    image.GetDimension = lambda: 2
    with pytest.raises(SubmissionError, match="prediction of case: has 2 axes. Save one label map with three axes"):
        score_arrays(image, truth, "volumes")
    several = make_image("methods of nibabel", np.stack([TRUTH, TRUTH]), GRID)
    with pytest.raises(SubmissionError, match="prediction of case: has a fourth axis of length 2"):
        score_arrays(several, make_image("methods of nibabel", TRUTH, GRID), "volumes")


def test_an_image_whose_library_gives_no_voxels_is_a_sentence() -> None:
    image = make_image("methods of SimpleITK", TRUTH, GRID)
    with pytest.raises(SubmissionError, match="is of ItkImage, whose voxels cannot be read"):
        score_arrays(image, image, "volumes")


# ── loops ───────────────────────────────────────────────────────────────────


def test_tensors_of_monai_score_as_the_files_that_it_loads(tmp_path: Path) -> None:
    torch = import_library("torch")
    data, transforms = import_library("monai.data"), import_library("monai.transforms")
    affine = np.column_stack([np.diag(SPACING), [5.0, -3.0, 2.0]])
    for side, labels in (("truth", TRUTH), ("results", PREDICTION)):
        written(
            tmp_path / side,
            {
                f"{name}.nii.gz": encode_nifti(labels[::step], GRID._replace(affine=affine))
                for name, step in (("a", 1), ("b", -1))
            },
        )
    rows = [
        {"case": name, **{side: tmp_path / side / f"{name}.nii.gz" for side in ("truth", "results")}} for name in "ab"
    ]
    keys = ["truth", "results"]
    load = transforms.Compose([transforms.LoadImaged(keys), transforms.EnsureChannelFirstd(keys)])
    accumulator = FrameAccumulator("volumes")
    for batch in data.DataLoader(data.Dataset(rows, load), batch_size=2):
        channels = torch.nn.functional.one_hot(batch["results"][:, 0].long(), 4).movedim(-1, 1)
        predictions = data.decollate_batch(channels.argmax(dim=1, keepdim=True))
        for case, prediction, truth in zip(batch["case"], predictions, data.decollate_batch(batch["truth"])):
            accumulator.update(case, None, prediction, truth)
    same(accumulator.compute(), segjudge.score(tmp_path / "results", tmp_path / "truth", "volumes"))


def test_the_python_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs/benchmarks/volumes.md"
    write_example(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    wt, tc, et = (least < TRUTH for least in (0, 1, 2))
    space = {
        "np": np,
        "labels": TRUTH,
        "predicted_labels": PREDICTION,
        "channels": np.stack([tc, wt, et]).astype(float),
    }
    for snippet in snippets(page):
        if snippet.kind == "python":
            exec(snippet.text.replace('"/data/', '"data/'), space)
    assert 0 < space["scores"]["Dice"] < 1
    regions = {region.name: region.labels for region in VOLUME_PROTOCOLS["brats-2023"].regions}
    for name, mask in (("WT", wt), ("TC", tc), ("ET", et)):
        assert np.array_equal(np.isin(space["labels"], regions[name]), mask)
