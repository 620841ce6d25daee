"""Datasets of sessions: what they describe, and each file that is missing or wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from segjudge.interactive import dataset, mask_datasets
from tests.outcomes import outcome_of

from .scene import HEIGHT, WIDTH

BOX = {"name": "box", "set": "mine", "num_frames": 3, "num_objects": 1, "num_scribbles": 2, "image_size": [60, 40]}
DUO = {"name": "duo", "set": "train", "num_frames": 4, "num_objects": 2, "num_scribbles": 1, "image_size": [60, 40]}
BEAR = {
    "name": "bear", "attributes": ["DEF"], "eval_t": True, "image_size": [854, 480], "num_frames": 82, "num_objects": 1,
    "num_scribbles": 3, "set": "train", "year": 2016,
}  # fmt: skip


@pytest.fixture
def opened(davis: Path) -> dataset.Davis:
    return dataset.Davis(str(davis))


def test_a_root_describes_its_sequences_and_the_published_ones(opened: dataset.Davis) -> None:
    assert [*opened.sets] == ["mine", "none", "train", "twice", "val", "trainval"]
    assert len(opened.dataset) == 122
    assert [opened.dataset[name] for name in ("box", "duo", "bear")] == [BOX, DUO, BEAR]
    assert opened.sets["trainval"] == ["duo", "box", "duo"]
    assert (opened.num_scribbles("box"), opened.num_scribbles("bear")) == (2, 3)
    assert Path(opened.image_paths("duo")[-1]).name == "00003.jpg"
    assert opened.load_images("box").shape == (3, HEIGHT, WIDTH, 3)
    assert opened.load_annotations("duo", np.int16).dtype == np.int16
    assert opened.load_annotations("box").sum() == 2160


SUBSETS = "['mine', 'none', 'train', 'twice', 'val', 'trainval']"


@pytest.mark.parametrize(
    ("about", "sentence"),
    [
        ("an empty root", "SessionInputError: davis_root is missing: pass it, or set the variable DATASET_DAVIS"),
        ("no folder", "FileNotFoundError: nowhere: there is no such folder"),
        ("a sequence twice", "SessionInputError: DAVIS/ImageSets/2017/trainval.txt: names duo twice"),
        ("no subset", f"SessionInputError: Subset must be a valid subset: {SUBSETS}"),
        ("no sequence", "KeyError: 'nobody'"),
        ("no files", "_MissingFiles: bear: has no masks below DAVIS"),
        ("a mask too few", "_MissingFiles: bear: has 1 of 82 masks in DAVIS; download the missing ones, or list the sequence in ImageSets/2017"),
        ("another root", "_MissingFiles: ELSEWHERE: is not DAVIS' root: it has no folder Annotations; name the folder that holds Annotations, ImageSets and Scribbles, or the layout of another dataset"),
        ("no masks", "_MissingFiles: bear: has no masks in DAVIS"),
        ("no images", "_MissingFiles: bear: has no images in DAVIS"),
        ("no scribbles", "_MissingFiles: DAVIS/Scribbles/box/009.json: there is no such file"),
    ],
)  # fmt: skip
def test_what_a_root_lacks_is_named(
    about: str, sentence: str, opened: dataset.Davis, davis: Path, tmp_path: Path
) -> None:
    if about == "a mask too few":
        (davis / "Annotations/480p/bear").mkdir()
        (davis / "Annotations/480p/bear/00000.png").touch()
    works = {
        "an empty root": lambda: dataset.Davis(""), "no folder": lambda: dataset.Davis.existing("nowhere"),
        "a sequence twice": lambda: opened.sequences("trainval"), "no subset": lambda: opened.sequences("nobody"),
        "no sequence": lambda: opened.dataset["nobody"], "no files": lambda: opened.check_files(["bear"]),
        "a mask too few": lambda: opened.check_files(["bear"]),
        "another root": lambda: dataset.Davis(tmp_path).check_files([]),
        "no masks": lambda: opened.load_annotations("bear"), "no images": lambda: opened.load_images("bear"),
        "no scribbles": lambda: opened.load_scribble("box", 9),
    }  # fmt: skip
    outcome = outcome_of(works[about]).replace(str(davis), "DAVIS").replace(str(tmp_path), "ELSEWHERE")
    assert outcome == sentence


def test_a_catalogue_without_a_root_has_no_other_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset.Davis, "opened", None)
    assert outcome_of(lambda: dataset.Davis.sets["nobody"]) == "KeyError: 'nobody'"


FORM = 'FILE: is not {"scribbles": [[…], …], "sequence": …}'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "FILE: is not JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))"),
        ("[]", FORM),
        ('{"scribbles": 1}', FORM),
        ('{"scribbles": [], "sequence": "duo"}', "FILE: belongs to the sequence 'duo'"),
        ('{"scribbles": [[]], "sequence": "box"}', "box, scribbles 1: has scribbles for 1 frame, and box has 3"),
    ],
)
def test_scribbles_that_cannot_be_read(text: str, sentence: str, opened: dataset.Davis, davis: Path) -> None:
    path = davis / "Scribbles/box/001.json"
    path.write_text(text)
    outcome = outcome_of(lambda: dataset.load_first_scribbles(opened, "box", 1))
    assert outcome.replace(str(path), "FILE") == f"_WrongFile: {sentence}"


@pytest.mark.parametrize(
    ("mask", "sentence"),
    [
        (np.zeros((40, 60, 3), np.uint8), "is a colour picture, not a mask of ids"),
        (
            np.zeros((40, 61), np.uint8),
            "differs in size from earlier frames; all frames of a session need the same size",
        ),
        (b"PNG", "cannot be read (cannot identify image file 'FILE')"),
    ],
    ids=["colours", "another size", "no picture"],
)
def test_masks_that_cannot_be_read(mask: Any, sentence: str, davis: Path) -> None:
    path = davis / "Annotations/480p/box/00001.png"
    path.write_bytes(mask) if isinstance(mask, bytes) else Image.fromarray(mask).save(path)
    outcome = outcome_of(lambda: dataset.Davis(str(davis)).load_annotations("box"))
    assert outcome.replace(str(path), "FILE") == f"SessionInputError: FILE: {sentence}"


def test_a_list_that_is_no_text(davis: Path) -> None:
    path = davis / "ImageSets/2017/val.txt"
    path.write_bytes(b"\xff")
    utf_8 = "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"
    assert outcome_of(lambda: dataset.Davis(str(davis))) == f"SessionInputError: {path}: is not UTF-8 ({utf_8})"


@pytest.mark.parametrize(
    ("region", "path"),
    [
        (["....", ".#..", "...."], [[0.48667, 0.75], [0.51333, 0.75]]),
        (["##", "##"], [[0.48, 0.5], [0.52, 0.5]]),
        (["#"], [[0.49, 0.5], [0.51, 0.5]]),
        (["..."], None),
    ],
)
def test_an_object_of_a_pixel_gets_a_short_line(region: list[str], path: Any) -> None:
    lines = mask_datasets._draw_lines(np.array([[*row] for row in region]) == "#", 3)
    if path is None:
        assert lines == []
        return
    ((line),) = lines
    assert np.allclose(line.pop("path"), path, rtol=0, atol=1e-5)
    assert line == {"object_id": 3, "start_time": 0.0, "end_time": 0.0}


def test_a_folder_of_masks_is_a_dataset_without_scribbles(
    opened: dataset.Davis, davis: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    masks: Any = mask_datasets.MaskDataset(str(davis), "davis2017")
    assert masks.sequences("val") == ["box", "duo"]
    assert masks.dataset["duo"] == {"name": "duo", "num_frames": 4, "num_objects": 2, "image_size": [60, 40]}
    assert masks.num_scribbles("duo") == 0
    assert masks.image_paths("box") == [f"{davis}/JPEGImages/480p/box/0000{frame}.jpg" for frame in range(3)]
    assert outcome_of(lambda: masks.load_scribble("box", 1)) == "ValueError: Invalid scribble index: 1 of box"
    robot = "FileNotFoundError: box: has no scribbles; let the robot draw the first ones"
    assert outcome_of(lambda: masks.check_files(["box"])) == robot
    assert outcome_of(lambda: masks.dataset["nobody"]) == "KeyError: 'nobody'"
    assert np.array_equal(masks.load_annotations("duo"), opened.load_annotations("duo"))
    kinds = [type(mask_datasets.open_dataset(str(davis), None, None, draw)).__name__ for draw in (0, 2)]
    assert kinds == ["Davis", "DrawnScribbles"]
    monkeypatch.setattr(mask_datasets, "OPTIONAL_LAYOUTS", ("b", "a"))
    layout = outcome_of(lambda: mask_datasets.MaskDataset("x", "nothing"))
    assert layout == "SessionInputError: There is no layout 'nothing', only ['a', 'b']"


@pytest.mark.parametrize(
    ("sizes", "label", "sentence"),
    [
        ((4, 5), 1, "odd: the size of its frames changes, which sessions do not support"),
        ((4, 4), 0, "odd: its masks in ROOT show no object"),
    ],
)
def test_masks_that_are_no_sequence(sizes: tuple[int, ...], label: int, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    for number, size in enumerate(sizes):
        Image.fromarray(np.full((4, size), label, np.uint8)).save(tmp_path / f"odd/{number:05d}.png")
    masks = mask_datasets.MaskDataset(str(tmp_path))
    assert masks.sequences("") == ["odd"]
    assert outcome_of(lambda: masks.dataset["odd"]).replace(str(tmp_path), "ROOT") == f"SessionInputError: {sentence}"


@pytest.mark.parametrize("sets", [0, 2])
def test_a_demo_has_two_scenes_and_scribbles_if_any(sets: int, tmp_path: Path) -> None:
    scenes = mask_datasets.make_demo_scenes()
    described = [(scene.name, scene.size, scene.frames, len(scene.shapes)) for scene in scenes]
    assert described == [("drift", (120, 160), 24, 1), ("pair", (120, 160), 24, 2)]
    mask_datasets.write_demo_root(tmp_path, scenes[:1], sets)
    names = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")]
    folders = {"Annotations/480p/drift": 24, "ImageSets/2017": 1, "JPEGImages/480p/drift": 24}
    assert Counter(name.rpartition("/")[0] for name in names) == {**folders, **({"Scribbles/drift": 2} if sets else {})}
    ends = {"ImageSets/2017/val.txt", "JPEGImages/480p/drift/00023.jpg", "Annotations/480p/drift/00000.png"}
    assert ends | ({"Scribbles/drift/001.json"} if sets else set()) <= {*names}
