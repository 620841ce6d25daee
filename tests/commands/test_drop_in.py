"""Stand-ins next to the evaluators whose names they have: the same calls give the same numbers."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pycocotools.coco
import pycocotools.cocoeval
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval as Incumbent

from segjudge import UsageError
from segjudge.drop_in import coco as stand_in
from segjudge.drop_in import cocoeval
from segjudge.drop_in.cocoeval import COCOeval
from segjudge.drop_in.davis2017 import DAVISEvaluation
from segjudge.drop_in.vos_benchmark import benchmark
from segjudge.evaluation_script.families.instances.records import KnownImages
from tests.builders import written
from tests.data import INSTANCES, SEQUENCES
from tests.families.instances.memory_images import SIZE, images, records
from tests.golden.pairs import frames_of, png_bytes
from tests.shared import needs_shared

#: torchmetrics' thresholds, which it takes from single precision.
THRESHOLDS_OF_TORCH = np.linspace(0.5, 0.95, 10, dtype=np.float32).astype(float)
#: A few sequences of real masks.
REAL = ("bike-packing", "blackswan", "dogs-jump")


def small(seed: int, kind: str) -> tuple[Any, Any]:
    """Return a truth and detections as objects of pycocotools; one annotation has the id 0."""
    results = images(seed, 12)
    truths: list[Any] = []
    for image, (_, truth) in enumerate(results):
        truths += records(truth, image, len(truths))
    document = {
        "images": [{"id": image, "height": SIZE[0], "width": SIZE[1]} for image in range(len(results))],
        "categories": [{"id": number, "name": str(number)} for number in (3, 1, 2)],
        "annotations": truths,
        "info": {},
    }
    sent = [record for image, (prediction, _) in enumerate(results) for record in records(prediction, image)]
    unwanted = {"segm": "bbox", "bbox": "segmentation", "both": ""}[kind]
    sent = [{key: value for key, value in record.items() if key != unwanted} for record in sent]
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = document
        coco.createIndex()
        return coco, coco.loadRes(sent)


def both(truth: Any, sent: Any, kind: str, **changes: Any) -> tuple[Any, Any, list[str]]:
    """Evaluate by both; return the evaluators and what they printed."""
    made, printed = [], []
    for evaluator in (COCOeval, Incumbent):
        item = evaluator(truth, sent, kind)
        for name, value in changes.items():
            setattr(item.params, name, value)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            item.evaluate()
            item.accumulate()
            item.summarize()
        made.append(item)
        printed.append(re.sub(r"t=[\d.]+s", "", output.getvalue()))
    return made[0], made[1], printed


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"useCats": 0},
        {"maxDets": [1, 2, 3]},
        {"useCats": 0, "catIds": [2, 2, 1]},
        {"areaRng": [[0, 1e10], [0, 200], [200, 500], [500, 1e10]]},
    ],
    ids=str,
)
@pytest.mark.parametrize(("sent", "kind"), [("segm", "segm"), ("bbox", "bbox"), ("both", "segm"), ("segm", "bbox")])
def test_cocoeval_has_the_verbs_and_numbers_of_pycocotools(sent: str, kind: str, changes: dict[str, Any]) -> None:
    ours, theirs, printed = both(*small(8, sent), kind, **changes)
    assert ours.stats.tolist() == theirs.stats.tolist()
    assert printed[0] == printed[1]
    assert ours.eval["counts"] == theirs.eval["counts"]
    same_curves(ours.eval, theirs.eval)
    same_images(ours, theirs)
    assert (ours.eval["precision"] > 0).any()


#: Parameters that we compare, and parameters that only pycocotools does.
OURS: list[dict[str, Any]] = [
    {"iouThrs": np.array([0.3, 0.5])},
    {"iouThrs": THRESHOLDS_OF_TORCH, "recThrs": np.linspace(0, 1, 101, dtype=np.float32).astype(float)},
    {"recThrs": np.linspace(0, 1, 11)},
    {"maxDets": [1000, 100, 300]},
    {"maxDets": [1, 2, 3, 4, 100], "areaRng": [[0, 1e10]], "areaRngLbl": ["all"]},
    {"areaRng": [[0, 1e10], [0, 300]], "areaRngLbl": ["all", "small"], "useCats": 0},
    {"imgIds": [8, 3, 1, 3], "catIds": [3], "useCats": 0},
    {"useSegm": 0},
]
THEIRS: list[dict[str, Any]] = [
    {"iouThrs": np.array([0.6, 0.5])},
    {"iouThrs": np.linspace(0.05, 0.99, 21)},
    {"recThrs": np.array([0.1, 0.5])},
]


@pytest.mark.parametrize(
    ("changes", "fast"), [*((row, True) for row in OURS), *((row, False) for row in THEIRS)], ids=str
)
@pytest.mark.parametrize("kind", ["segm", "bbox"])
def test_any_parameters_give_what_pycocotools_gives(kind: str, changes: dict[str, Any], fast: bool) -> None:
    ours, theirs = (evaluator(*small(8, "both"), kind) for evaluator in (COCOeval, Incumbent))
    for evaluation in (ours, theirs):
        vars(evaluation.params).update(changes)
        with contextlib.redirect_stdout(io.StringIO()):
            evaluation.evaluate()
            evaluation.accumulate()
    assert (ours._counts is not None) == fast
    same_curves(ours.eval, theirs.eval)
    same_images(ours, theirs)


def same_curves(ours: Any, theirs: Any) -> None:
    assert ours["counts"] == theirs["counts"]
    for name in ("precision", "recall", "scores"):
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


def same_images(ours: Any, theirs: Any) -> None:
    """Compare the curves, and the matches behind them."""
    curves = ours.eval
    assert len(ours.evalImgs) == len(theirs.evalImgs)
    assert ours.evalImgs is ours.evalImgs, "matched once"
    for mine, their_image in zip(ours.evalImgs, theirs.evalImgs):
        assert (mine is None) == (their_image is None)
        for key in their_image or ():
            np.testing.assert_array_equal(mine[key], their_image[key], err_msg=key)
    assert ours.ious.keys() == theirs.ious.keys()
    for key, overlaps in theirs.ious.items():
        np.testing.assert_array_equal(ours.ious[key], overlaps)
    assert ours.eval is curves


#: A comparison of a box, whose program prints what it loads.
LOADING = """
import sys
before = {*sys.modules}
from segjudge.drop_in.coco import COCO
from segjudge.drop_in.cocoeval import COCOeval
box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 4, 4], "area": 16, "iscrowd": 0, "score": 0.9}
rows = {"images": [{"id": 1, "width": 9, "height": 9}], "categories": [{"id": 1, "name": "a"}], "annotations": [box]}
for name, document in (("truth.json", rows), ("sent.json", [box])):
    open(name, "w").write(str(document).replace("'", '"'))
truth = COCO("truth.json")
evaluation = COCOeval(truth, truth.loadRes("sent.json"), "bbox")
evaluation.evaluate(), evaluation.accumulate(), evaluation.summarize()
print(*{*sys.modules} - before)
"""


def test_it_loads_numpy_and_the_kernel_alone(tmp_path: Path) -> None:
    printed = subprocess.check_output([sys.executable, "-c", LOADING], text=True, cwd=tmp_path)
    names = printed.splitlines()[-1].split()
    listed = {name.partition(".")[0] for name in names} - {*sys.stdlib_module_names}
    assert listed - {"deflate"} == {"numpy", "segjudge"}  # and the inflater, if there is one


def torchvision(evaluator: Any, truth: Any, sent: Any, kind: str) -> Any:
    """Evaluate as both editions of torchvision's reference: match images in batches, merge, accumulate."""
    evaluation = evaluator(truth, iouType=kind)
    batches, numbers, form = [], [], {"bbox": "bbox", "segm": "segmentation"}[kind]
    for number, members in enumerate(([1, 0, 4], [2, 3], [11, 10, 9, 8, 7], [5, 6])):
        listed = [row for row in sent.dataset["annotations"] if row["image_id"] in members and number != 1]
        rows = [{key: row[key] for key in ("image_id", "category_id", "score", form)} for row in listed]
        vars(evaluation)["cocoDt"] = COCO.loadRes(truth, rows) if rows else COCO()
        evaluation.params.imgIds = members
        if number % 2:
            evaluation.evaluate()
            results = evaluation.evalImgs
        else:
            params = evaluation.params
            params.imgIds, params.catIds = list(np.unique(params.imgIds)), list(np.unique(params.catIds))
            evaluation._prepare()
            pairs = [(image, category) for image in params.imgIds for category in params.catIds]
            evaluation.ious = {pair: evaluation.computeIoU(*pair) for pair in pairs}
            results = [
                evaluation.evaluateImg(image, category, area, params.maxDets[-1])
                for category in params.catIds
                for area in params.areaRng
                for image in params.imgIds
            ]
        numbers += evaluation.params.imgIds
        batches.append(np.asarray(results).reshape(-1, len(evaluation.params.areaRng), len(evaluation.params.imgIds)))
    order = np.argsort(numbers)
    evaluation.evalImgs = list(np.concatenate(batches, 2)[..., order].flatten())
    evaluation.params.imgIds = list(np.asarray(numbers)[order])
    evaluation._paramsEval = copy.deepcopy(evaluation.params)
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation.stats, evaluation.eval


def mmdet(evaluator: Any, truth: Any, sent: Any, kind: str) -> Any:
    """Evaluate as MMDetection's metric: up to 1000 detections, custom thresholds, then proposals without categories."""
    results = []
    for with_categories in (1, 0):
        evaluation = evaluator(truth, sent, kind)
        evaluation.params.catIds, evaluation.params.imgIds = truth.getCatIds(), truth.getImgIds()
        evaluation.params.maxDets = [100, 300, 1000]
        evaluation.params.iouThrs = np.linspace(0.5, 0.95, 10, endpoint=True)
        evaluation.params.useCats = with_categories
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        results.append((evaluation.stats, evaluation.eval))
    return np.stack([stats for stats, _ in results]), results[0][1]


def detectron2(evaluator: Any, truth: Any, sent: Any, kind: str) -> Any:
    """Evaluate as Detectron2 by subclasses, one of which has its own summary and reads inherited values."""

    class Evaluation(evaluator):  # type: ignore[misc]
        def __init__(self, *datasets: Any, **options: Any) -> None:
            super().__init__(**dict(zip(("cocoGt", "cocoDt"), datasets)), **options)

        def summarize(self) -> None:
            cap = self.params.maxDets.index(200)
            chosen = self.eval["precision"][:, :, :, 0, cap]
            self.stats = np.array([np.mean(chosen[chosen > -1]), len(self._paramsEval.imgIds)])

    evaluation = Evaluation(truth, sent, iouType=kind)
    evaluation.params.maxDets = [1, 10, 200]
    evaluation.params.imgIds = [1, 2, 5]
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation.stats, evaluation.eval


@pytest.mark.parametrize("kind", ["segm", "bbox"])
@pytest.mark.parametrize("loop", [torchvision, mmdet, detectron2])
def test_the_loops_of_its_users_run_unchanged(loop: Any, kind: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        (ours, curves), (theirs, their_image) = (
            loop(evaluator, *small(8, kind), kind) for evaluator in (COCOeval, Incumbent)
        )
    np.testing.assert_array_equal(ours, theirs)
    same_curves(curves, their_image)


def test_a_subclass_with_rules_of_its_own_keeps_them() -> None:
    class Blind(COCOeval):
        def computeIoU(self, *pair: int) -> Any:  # noqa: N802 - theirs
            return np.zeros_like(super().computeIoU(*pair))

    evaluation = Blind(*small(8, "segm"))
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation.evaluate()
        evaluation.accumulate()
    assert not (evaluation.eval["precision"] > 0).any()


@pytest.mark.parametrize("use_categories", [(1, 1), (0, 0), (0, 1), (1, 0)], ids=str)
def test_one_object_may_be_used_again(use_categories: tuple[int, int]) -> None:
    results = []
    for evaluator in (COCOeval, Incumbent):
        evaluation = evaluator(*small(8, "segm"))
        for value in use_categories:
            evaluation.params.useCats = value
            with contextlib.redirect_stdout(io.StringIO()):
                evaluation.evaluate()
                evaluation.accumulate()
                evaluation.accumulate()
        results.append((evaluation.eval, evaluation.params.catIds))
    same_curves(results[0][0], results[1][0])
    assert results[0][1] == results[1][1]


@pytest.mark.parametrize("thresholds", [[0.5], np.linspace(0.5, 0.95, 10)], ids=len)
def test_no_image_has_no_precision(thresholds: Any) -> None:
    ours, theirs, printed = both(*small(8, "segm"), "segm", imgIds=[], iouThrs=np.array(thresholds))
    assert ours.stats.tolist() == theirs.stats.tolist() == [-1.0] * 12
    assert printed[0] == printed[1]
    same_curves(ours.eval, theirs.eval)


@needs_shared
@pytest.mark.parametrize("kind", ["segm", "bbox"])
def test_cocoeval_has_the_numbers_of_pycocotools_on_its_own_data(kind: str) -> None:
    folder = INSTANCES / "coco100"
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(folder / "instances_val2014_100.json"))
        sent = truth.loadRes(str(folder / f"instances_val2014_fake{kind}100_results.json"))
    ours, theirs, printed = both(truth, sent, kind)
    assert ours.stats.tolist() == theirs.stats.tolist()
    assert printed[0] == printed[1]
    for name in ("precision", "recall", "scores"):
        np.testing.assert_array_equal(ours.eval[name], theirs.eval[name], err_msg=name)


def test_what_cocoeval_cannot_do_is_a_sentence() -> None:
    truth, sent = small(8, "segm")

    def refuse(call: Callable[[], object]) -> str:
        with pytest.raises(UsageError) as caught:
            call()
        return str(caught.value)

    for name, value, sentence in (
        ("iouThrs", np.array([0.6, 0.5]), "iouThrs needs up to 10 numbers that rise from 0 to 1"),
        ("recThrs", np.array([0.1, 0.5]), "iouThrs needs numbers above 0, and recThrs begins with 0"),
        ("areaRng", [[0, 9]] * 5, "maxDets needs a number, and areaRng up to 4 ranges"),
    ):
        evaluation = COCOeval(truth, sent, "boundary")
        setattr(evaluation.params, name, value)
        assert refuse(evaluation.evaluate) == sentence
    unknown = "iouType 'volume' is not scored, only segm, bbox, boundary, keypoints"
    assert refuse(lambda: COCOeval(truth, sent, "volume")) == unknown
    absent = "give the truth and the detections to the constructor, or set cocoGt and cocoDt"
    assert refuse(COCOeval(truth).evaluate) == absent
    assert refuse(COCOeval(truth, sent).accumulate) == "call evaluate() first"
    assert refuse(COCOeval(truth, sent).summarize) == "call accumulate() first"


def laid_out(pair: str, folder: Path, annotations: str) -> tuple[Path, str]:
    """Write a DAVIS root with a few sequences of real masks, and predictions."""
    roots = folder / f"root/{annotations}/480p", folder / "sent"
    for sequence, frame, *sides in frames_of(pair, REAL):
        for root, labels in zip(roots, sides):
            path = root / sequence / f"{frame:05d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png_bytes(labels))
    (folder / "root/ImageSets/2017").mkdir(parents=True)
    (folder / "root/ImageSets/2017/val.txt").write_text("".join(f"{name}\n" for name in REAL))
    return folder / "root", str(folder / "sent")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return laid_out("B", tmp_path_factory.mktemp("real"), "Annotations")


def golden(name: str) -> Any:
    sequences = json.loads((SEQUENCES / f"golden_{name}_open.json").read_text())["sequences"]
    return {name: sequences[name]["objects"] for name in REAL}


@pytest.mark.long
@needs_shared
@pytest.mark.filterwarnings("ignore:.*object numbers look exchanged")  # of one sequence, whose objects are exchanged
@pytest.mark.parametrize("task", ["semi-supervised", "unsupervised"])
def test_davis_evaluation_returns_the_dictionary_of_davis2017(task: str, real: Any, tmp_path: Path) -> None:
    semi = task == "semi-supervised"
    root, sent = real if semi else laid_out("C1", tmp_path, "Annotations_unsupervised")
    objects = golden("B_davis_semi" if semi else "C1_davis_unsup").values()
    expected = [(name, values) for of_sequence in objects for name, values in of_sequence.items()]
    results = DAVISEvaluation(str(root), task, "val").evaluate(sent)
    assert list(results) == ["J", "F"]
    for metric, of_metric in results.items():
        assert list(of_metric) == ["M", "R", "D", "M_per_object"]
        assert list(of_metric["M_per_object"]) == [name for name, _ in expected]
        for key, name in (("M", "mean"), ("R", "recall"), ("D", "decay")):
            assert of_metric[key] == pytest.approx([values[f"{metric}_{name}"] for _, values in expected], abs=1e-9)
        assert list(of_metric["M_per_object"].values()) == of_metric["M"]
    scores = DAVISEvaluation(str(root), task, "val", sequences=REAL[0]).evaluate(sent, metric="J")
    assert list(scores) == ["J"]
    assert scores["J"]["M"] == results["J"]["M"][: len(scores["J"]["M"])]


@pytest.mark.parametrize(
    "evaluate",
    [
        lambda root, results: DAVISEvaluation(root, "semi-supervised", "val").evaluate(results),
        lambda root, results: benchmark([f"{root}/Annotations/480p"], [results], num_processes=1, verbose=False),
    ],
    ids=["davis2017", "vos_benchmark"],
)
def test_a_likely_mistake_is_a_warning(evaluate: Any, tmp_path: Path) -> None:
    true_labels = np.zeros((16, 24), np.uint8)
    true_labels[3:9, 2:9] = 1
    for folder, labels in (("DAVIS/Annotations/480p", true_labels), ("results", true_labels[:, ::-1])):
        files = {f"{video}/{frame:05d}.png": png_bytes(labels) for video in "abcd" for frame in range(4)}
        written(tmp_path / folder, files)
    written(tmp_path / "DAVIS/ImageSets/2017", {"val.txt": b"a\nb\nc\nd\n"})
    root, results = str(tmp_path / "DAVIS"), str(tmp_path / "results")
    with pytest.warns(UserWarning, match="results: val: masks look mirrored, with left and right exchanged") as raised:
        evaluate(root, results)
    assert [Path(warning.filename).name for warning in raised] == ["test_drop_in.py"]


@pytest.mark.long
@needs_shared
@pytest.mark.filterwarnings("ignore:.*object numbers look exchanged")  # of two sequences, whose objects are exchanged
def test_benchmark_returns_and_writes_what_vos_benchmark_does(real: Any, capsys: pytest.CaptureFixture[str]) -> None:
    root, sent = str(real[0] / "Annotations/480p"), real[1]
    expected = golden("B_vosb")
    jf, j, f, (videos,) = benchmark([root], [sent])
    assert list(videos) == list(expected)
    for name, objects in expected.items():
        for side, metric in zip(videos[name], ("J", "F")):
            assert side == {
                int(item): pytest.approx(values[f"{metric}_mean"], abs=1e-7) for item, values in objects.items()
            }
    means = [np.mean([item for sides in videos.values() for item in sides[side].values()]) for side in (0, 1)]
    assert (j, f) == ([pytest.approx(means[0])], [pytest.approx(means[1])])
    assert jf == [pytest.approx(sum(means) / 2)]
    lines = (Path(sent) / "results.csv").read_text().splitlines()
    assert lines[1].split(",")[2:] == [f" {value[0]:.1f}" for value in (jf, j, f)]
    assert len(lines) == 2 + sum(map(len, expected.values()))
    assert lines[2].split(",")[0].strip() == REAL[0]
    assert "Global score" in capsys.readouterr().out
    assert benchmark([root], [sent], verbose=False) == ([], [], [], [])
    assert "already exists" in capsys.readouterr().out
    again = benchmark([root], [sent], overwrite=True, verbose=False, num_processes=1)
    assert again == (jf, j, f, [videos])
    assert not capsys.readouterr().out
    (Path(sent) / "other").mkdir()
    with pytest.raises(UsageError, match="adds other; with strict=False"):
        benchmark([root], [sent], overwrite=True)
    assert benchmark([root], [sent], strict=False, overwrite=True) == again


@pytest.fixture
def stood_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pycocotools export the stand-ins until the test is over."""
    for module, name in (
        (pycocotools.cocoeval, "COCOeval"),
        (pycocotools.cocoeval, "Params"),
        (pycocotools.coco, "COCO"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name))
    cocoeval.install()


@pytest.mark.usefixtures("stood_in")
def test_installed_it_is_what_programs_import_from_pycocotools(tmp_path: Path) -> None:
    truth, sent = files_of(*small(3, "both"), tmp_path)
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(truth)
        theirs = Incumbent(coco, coco.loadRes(sent), "segm")
        opened = pycocotools.coco.COCO(truth)
        ours = pycocotools.cocoeval.COCOeval(opened, opened.loadRes(sent), "segm")
        assert type(ours) is COCOeval
        assert type(ours.params) is cocoeval.Params
        assert type(opened) is type(vars(ours)["cocoDt"]) is stand_in.COCO
        for run in (theirs, ours):
            run.evaluate()
            run.accumulate()
            run.summarize()
    assert np.array_equal(ours.stats, theirs.stats)


def files_of(truth: Any, sent: Any, folder: Path) -> tuple[str, str]:
    """Write a truth and detections as programs write them, and return the two paths."""
    keys = ("image_id", "category_id", "score", "bbox", "segmentation")
    first = sent.dataset["annotations"][0]
    wanted = [key for key in keys if key in first and not isinstance(first[key], np.ndarray)]
    if isinstance(first["segmentation"], list):
        wanted.remove("segmentation")  # `loadRes` makes it from a box
    rows = [{key: row[key] for key in wanted} for row in sent.dataset["annotations"]]
    for name, content in (("truth", truth.dataset), ("sent", rows)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    return str(folder / "truth.json"), str(folder / "sent.json")


@pytest.mark.parametrize("form", ["file", "list", "array"])
def test_loading_prints_what_pycocotools_prints(form: str, tmp_path: Path) -> None:
    truth, path = files_of(*small(8, "bbox"), tmp_path)
    sent = {"file": path, "list": json.loads(Path(path).read_text()), "array": np.array([[1, 0, 0, 4, 4, 0.5, 1.0]])}
    printed = []
    for dataset in (stand_in.COCO, COCO):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            detections = dataset(truth).loadRes(copy.deepcopy(sent[form]))
            assert detections.anns[1]["image_id"] in detections.imgs  # made on first use, silently
        printed.append(re.sub(r"t=[\d.]+s", "", output.getvalue()))
    assert printed[0] == printed[1]
    assert "Loading and preparing results...\n" in printed[0]


def evaluated(evaluator: Any, truth: Any, sent: Any, kind: str, changes: dict[str, Any]) -> Any:
    evaluation = evaluator(truth, sent, kind)
    vars(evaluation.params).update(changes)
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation


@pytest.mark.parametrize("changes", [{}, {"useCats": 0}, {"imgIds": [1, 2, 3, 5, 7, 8], "catIds": [0, 2, 9]}], ids=str)
@pytest.mark.parametrize(("form", "kind"), [("segm", "segm"), ("bbox", "bbox"), ("both", "segm"), ("both", "bbox")])
@pytest.mark.parametrize("way", ["paths", "classes", "values"])
def test_files_and_values_give_what_pycocotools_gives(
    way: str, form: str, kind: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    truth, sent = files_of(*small(8, form), tmp_path)
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(truth)
        theirs = evaluated(Incumbent, coco, coco.loadRes(sent), kind, changes)
        given: Any = truth, sent
        if way == "classes":
            opened = stand_in.COCO(truth)
            given = opened, opened.loadRes(sent)
        elif way == "values":
            given = json.loads(Path(truth).read_bytes()), json.loads(Path(sent).read_bytes())
        ours = evaluated(COCOeval, *given, kind, changes)
    if way != "values" and changes != {"useCats": 0} and "catIds" not in changes:
        assert "dataset" not in vars(vars(ours)["cocoDt"]), "no annotation was made"
    assert ours.stats.tolist() == theirs.stats.tolist()
    same_curves(ours.eval, theirs.eval)
    same_images(ours, theirs)
    for mine, their_side in ((vars(ours)[side], vars(theirs)[side]) for side in ("cocoGt", "cocoDt")):
        for name in ("imgs", "cats", "imgToAnns", "catToImgs"):
            assert getattr(mine, name).keys() == getattr(their_side, name).keys()


@pytest.mark.parametrize("dataset", [stand_in.COCO, COCO])
def test_records_with_bytes_in_memory_give_what_pycocotools_gives(dataset: Any, tmp_path: Path) -> None:
    """Run lengths as `pycocotools.mask.encode` returns them are taken without JSON."""
    path, sent = files_of(*small(8, "segm"), tmp_path)
    rows = json.loads(Path(sent).read_bytes())
    for row in rows:
        row["segmentation"]["counts"] = row["segmentation"]["counts"].encode()
    results = []
    for made, evaluator in ((dataset, COCOeval), (COCO, Incumbent)):
        with contextlib.redirect_stdout(io.StringIO()):
            truth = made(path)
            results.append(evaluated(evaluator, truth, truth.loadRes(copy.deepcopy(rows)), "segm", {}))
    same_curves(results[0].eval, results[1].eval)
    same_images(*results)


def test_boxes_in_memory_are_read_when_they_are_compared(tmp_path: Path) -> None:
    """Programs may change boxes before the comparison, and annotations are complete when needed."""
    truth, sent = files_of(*small(8, "bbox"), tmp_path)
    made = []
    for coco_class, evaluator in ((stand_in.COCO, COCOeval), (COCO, Incumbent)):
        rows = json.loads(Path(sent).read_text())
        with contextlib.redirect_stdout(io.StringIO()):
            coco = coco_class(truth)
            detections = coco.loadRes(rows)
            rows[0]["score"], rows[1]["category_id"] = 0.875, rows[0]["category_id"]
            run = evaluator(coco, detections, "bbox")
            run.evaluate()
            run.accumulate()
            run.summarize()
        made.append([run.stats.tolist(), detections.dataset, rows, sorted(detections.anns)])
    assert made[0] == made[1]


def test_a_program_may_ask_for_annotations_and_change_them(tmp_path: Path) -> None:
    truth, sent = files_of(*small(8, "both"), tmp_path)
    results = []
    for dataset, evaluator in ((stand_in.COCO, COCOeval), (COCO, Incumbent)):
        with contextlib.redirect_stdout(io.StringIO()):
            coco = dataset(truth)
            assert coco.getCatIds(catNms=["2"]) == [2]
            detections = coco.loadRes(sent)
            assert coco.loadImgs([3])[0]["height"] == SIZE[0]
            for row in detections.loadAnns(detections.getAnnIds(imgIds=[1, 2])):
                row["score"] = 1 - row["score"]
            copied = copy.deepcopy(coco)
            copied.anns[1]["iscrowd"] = 1
            results.append(evaluated(evaluator, copied, detections, "segm", {}))
    same_curves(results[0].eval, results[1].eval)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ('[{"image_id": 99, "category_id": 1, "score": 1, "bbox": [0, 0, 1, 1]}]', AssertionError),
        ('[{"image_id": 1, "category_id": 1, "score": 1, "bbox": [0, 0, 1]}]', IndexError),
        ('{"image_id": 1}', AssertionError),
        ('[{"image_id": 1, "category_id": 1, "score": 1, "bbox": [0, 0, 1, 1]},]', json.JSONDecodeError),
        ('[{"image_id": 1, "category_id": 1, "score": 1, "bbox": [0, 0, 1, 1]}, 7]', TypeError),
        ("[", json.JSONDecodeError),
    ],
)
def test_files_that_pycocotools_refuses_are_refused_alike(content: str, error: type, tmp_path: Path) -> None:
    truth, _ = files_of(*small(8, "both"), tmp_path)
    (tmp_path / "bad.json").write_text(content)
    for dataset in (stand_in.COCO, COCO):
        with contextlib.redirect_stdout(io.StringIO()), pytest.raises(error):
            dataset(truth).loadRes(str(tmp_path / "bad.json"))
    (tmp_path / "list.json").write_text("[]")
    for dataset in (stand_in.COCO, COCO):
        with contextlib.redirect_stdout(io.StringIO()), pytest.raises(AssertionError):
            dataset(str(tmp_path / "list.json"))


@pytest.mark.parametrize(
    "changes", [{"score": float("nan")}, {"category_id": 1.5}, {"bbox": [0, 0, -1, 1]}, {"bbox": [0, 0, 1]}]
)
def test_detections_that_arrays_cannot_hold_are_left_to_the_reader_of_records(changes: dict[str, Any]) -> None:
    known = KnownImages(np.array([1]), np.array([[20, 30]]), np.array([1]))
    row = {"image_id": 1, "category_id": 1, "bbox": [2, 3, 4, 5], "area": 20, "score": 0.5}
    assert stand_in.read_rows([row], known, "bbox") is not None
    with pytest.raises((ValueError, TypeError)):
        stand_in.read_rows([{**row, **changes}], known, "bbox")
