"""The reading of datasets as truths: folders, lists, meta files, orders, and notes for the host."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.base.truth import AnnotationFile
from segjudge.evaluation_script.families.sequences import dataset as dataset_reader
from segjudge.evaluation_script.families.sequences import truth as sequence_truth
from segjudge.evaluation_script.families.sequences.layouts import LAYOUTS, YOUTUBE_UNSEEN, Layout
from segjudge.evaluation_script.families.sequences.truth import ObjectFacts, Split
from segjudge.evaluation_script.files import HOST_LIMITS
from segjudge.evaluation_script.files.archive import open_files
from segjudge.evaluation_script.files.problems import HostError
from tests.builders import drawn, png, zipped

ONE = drawn("........", ".####...", ".####...", ".####...", "........").astype(np.uint8)
IMAGE = png(ONE)
OTHER = png(ONE * 2)


def masks(place: str, names: str = "ab", frames: Any = range(2), image: bytes = IMAGE) -> dict[str, bytes]:
    return {f"{place}/{name}/{k:05d}.png": image for name in names for k in frames}


def meta(**videos: Any) -> bytes:
    return json.dumps({"videos": videos}).encode()


def read(
    files: dict[str, bytes], tmp_path: Path, layout: str | Layout = "generic", **options: Any
) -> AnnotationFile[sequence_truth.Split]:
    path = tmp_path / "dataset.zip"
    path.write_bytes(zipped(files))
    return dataset_reader.read(str(path), LAYOUTS[layout] if isinstance(layout, str) else layout, **options)


def split(files: dict[str, bytes], tmp_path: Path, layout: str = "generic", **options: Any) -> Split:
    (split,) = read(files, tmp_path, layout, **options).splits.values()
    return split


def names(files: dict[str, bytes], tmp_path: Path, layout: str = "generic", **options: Any) -> list[str]:
    return [sequence.name for sequence in split(files, tmp_path, layout, **options).sequences]


def objects(files: dict[str, bytes], tmp_path: Path, layout: str = "generic", **options: Any) -> list[list[str]]:
    return [list(sequence.objects) for sequence in split(files, tmp_path, layout, **options).sequences]


# ── where masks lie ─────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "place",
    [
        "",
        "x",
        "x/y",
        "Annotations",
        "Annotations/480p",
        "D/Annotations/Full-Resolution",
        "Annotations_6fps",
        "Annotations/1080P",
    ],
)
def test_wrapping_folders_are_cut_off(place: str, tmp_path: Path) -> None:
    assert names(masks(place.strip("/") or "."), tmp_path) == ["a", "b"]


def test_a_lone_folder_is_a_sequence(tmp_path: Path) -> None:
    assert names(masks("Annotations", "a"), tmp_path) == ["a"]
    assert names({"x/00000.png": IMAGE, "x/00001.PNG": IMAGE}, tmp_path) == ["x"]
    assert names({"00000.png": IMAGE}, tmp_path) == [""]


def test_a_sequence_may_be_called_as_a_resolution(tmp_path: Path) -> None:
    assert names({"Annotations/480p/00000.png": IMAGE}, tmp_path) == ["480p"]
    assert names({"Annotations/480p/480p/00000.png": IMAGE}, tmp_path) == ["480p"]


@pytest.mark.parametrize(
    ("homes", "chosen", "options"),
    [
        (["Annotations/1080p", "Annotations/480p"], "Annotations/480p", {}),
        (["Annotations_unsupervised/480p", "Annotations/480p"], "Annotations/480p", {}),
        (["Annotations_unsupervised", "Annotations"], "Annotations_unsupervised", {"layout": "davis2017-unsupervised"}),
        (["train/Annotations", "valid/Annotations"], "valid/Annotations", {"subset": "valid"}),
        (["train/Annotations", "valid/Annotations"], "train/Annotations", {}),
        (["Annotations/720p", "Annotations/1080p"], "Annotations/1080p", {}),
    ],
)
def test_one_home_of_masks_is_read_and_the_others_are_told(
    homes: Any, chosen: str, options: Any, tmp_path: Path
) -> None:
    files: dict[str, bytes] = {}
    for home in homes:
        files |= masks(home, "ab", image=OTHER if home == chosen else IMAGE)
    if "subset" in options:
        files |= {f"{home.split('/')[0]}/meta.json": meta(a={}, b={}) for home in homes}
    opened = read(files, tmp_path, **options)
    (split,) = opened.splits.values()
    assert [list(sequence.objects) for sequence in split.sequences] == [["2"], ["2"]]
    (other_home,) = set(homes) - {chosen}
    assert f"masks are read from {chosen}, not from {other_home}" in opened.notes


# ── lists ───────────────────────────────────────────────────────────────────


def test_the_list_of_the_subset_decides_and_of_the_year_of_the_layout(tmp_path: Path) -> None:
    files = {
        **masks("Annotations", "abc"), "ImageSets/2017/val.txt": b"c\n\n b x\n", "ImageSets/2019/val.txt": b"a\n",
        "ImageSets/val.txt": b"b\n", "ImageSets/2017/train.txt": b"a\nb\na\n", "notes/val.txt": b"nothing\n",
    }  # fmt: skip
    assert names(files, tmp_path) == ["c", "b"]
    assert names(files, tmp_path, "davis2017-unsupervised") == ["a"]
    assert names(files, tmp_path, subset="train") == ["a", "b"]
    assert list(read(files, tmp_path).splits) == ["val"]
    assert list(read(files, tmp_path, subset="train").splits) == ["train"]
    assert list(read(files, tmp_path, subset="train", split="x").splits) == ["x"]


def test_a_list_names_sequences_with_spaces_on_lines_of_their_own(tmp_path: Path) -> None:
    files = {
        **{f"Annotations/{name}/00000.png": IMAGE for name in ("my dog", "my", "cat")},
        "ImageSets/val.txt": b"my dog\r\ncat 00000\n",
        "ImageSets/train.txt": b"my\n",
        "unseen_videos.txt": b"my dog\n",
    }
    assert names(files, tmp_path) == ["my dog", "cat"]
    assert names(files, tmp_path, subset="train") == ["my"]
    (split,) = read(files, tmp_path).splits.values()
    assert [sequence.unseen for sequence in split.sequences] == [True, False]


def test_a_lone_list_is_the_one(tmp_path: Path) -> None:
    files = {**masks("Annotations", "abc"), "ImageSets/odd.txt": b"c\n"}
    assert names(files, tmp_path) == ["c"]
    sav = {**{f"Annotations_6fps/{name}/{name}.png": IMAGE for name in "abc"}, "sav_test.txt": b"b\n"}
    assert names(sav, tmp_path) == names(sav, tmp_path, subset="test") == ["b"]


def test_a_meta_file_is_a_list_where_there_is_none(tmp_path: Path) -> None:
    files = {**masks("Annotations", "abc"), "meta.json": meta(c={}, a={}, lost={})}
    assert names(files, tmp_path) == ["c", "a"]
    files |= {"ImageSets/x.txt": b"b\n", "ImageSets/y.txt": b"b\n"}
    assert names(files, tmp_path) == ["c", "a"]


def test_several_meta_files_are_told_apart_by_the_subset(tmp_path: Path) -> None:
    files = {**masks("Annotations"), "meta_valid.json": meta(a={}), "meta_test.json": meta(b={})}
    assert names(files, tmp_path, subset="test") == ["b"]
    assert names(files, tmp_path, subset="val") == ["a"]
    with pytest.raises(HostError, match=r"several meta files \(meta_valid.json, meta_test.json\); choose one"):
        names(files, tmp_path)
    with pytest.raises(HostError, match="several meta files"):
        names(files, tmp_path, subset="train")


def test_a_lone_meta_file_serves_any_subset_that_has_a_list(tmp_path: Path) -> None:
    facts = {"objects": {"7": {"category": "dog"}}}
    files = {**masks("Annotations"), "meta.json": meta(a=facts), "ImageSets/train.txt": b"a\nb\n"}
    assert objects(files, tmp_path, subset="train") == [["7", "1"], ["1"]]
    with pytest.raises(HostError, match="no list of sequences for 'test'; found train"):
        names(files, tmp_path, subset="test")
    nothing = r": has no lists of sequences such as ImageSets/2017/test\.txt; name the folder that holds them$"
    with pytest.raises(HostError, match=nothing):
        names(masks("Annotations"), tmp_path, subset="test")


def test_a_document_that_is_no_meta_file_is_told(tmp_path: Path) -> None:
    for data in (b"{", b"[]", b'{"video": {}}', b'{"videos": 5}'):
        opened = read({**masks("Annotations"), "x/Meta_a.JSON": data, "other.json": b"{"}, tmp_path)
        (note,) = opened.notes
        assert note.startswith("x/Meta_a.JSON is not read: it is not a JSON object with videos")


def test_lists_of_unseen_and_salient_sequences(tmp_path: Path) -> None:
    files = {**masks("Annotations", "abc"), "d/unseen_videos.txt": b"a", "unsupervised_videos.txt": b"b\nc\n"}
    parts = split(files, tmp_path, "lvos")
    assert [sequence.unseen for sequence in parts.sequences] == [True, False, False]
    assert [sequence.salient for sequence in parts.sequences] == [False, True, True]
    assert parts.tells_unseen
    (tmp_path / "own.txt").write_text("c")
    parts = split(files, tmp_path, "lvos", unseen=str(tmp_path / "own.txt"))
    assert [sequence.unseen for sequence in parts.sequences] == [False, False, True]
    with pytest.raises(HostError, match="nowhere.txt: cannot be read"):
        split(files, tmp_path, "lvos", unseen="nowhere.txt")
    assert not split(masks("Annotations"), tmp_path, "lvos").tells_unseen
    assert all(sequence.salient for sequence in split(masks("Annotations"), tmp_path).sequences)


def test_unseen_categories_are_known_where_the_meta_file_has_categories(tmp_path: Path) -> None:
    assert len(YOUTUBE_UNSEEN) == len(set(YOUTUBE_UNSEEN)) == 26
    for facts, tells in (({"1": {"category": "dog"}}, True), ({"1": {}}, False), (["1"], False)):
        parts = split({**masks("Annotations"), "meta.json": meta(a={"objects": facts})}, tmp_path, "youtube-vos")
        assert parts.tells_unseen == tells
        assert parts.unseen_categories == list(YOUTUBE_UNSEEN)


# ── frames and objects ──────────────────────────────────────────────────────


def test_frames_are_in_the_order_of_text_or_of_numbers(tmp_path: Path) -> None:
    files = {f"Annotations/a/{k}.png": IMAGE for k in (2, 10, 1)}
    assert split(files, tmp_path).sequences[0].frames == ["1", "10", "2"]
    assert split(files, tmp_path, "mosev2").sequences[0].frames == ["1", "2", "10"]
    files["Annotations/a/x.png"] = IMAGE
    assert split(files, tmp_path, "mosev2").sequences[0].frames == ["1", "10", "2", "x"]


def test_an_object_with_a_category_counts_from_where_it_is_seen(tmp_path: Path) -> None:
    files = {f"Annotations/a/{k:05d}.png": OTHER if k >= 2 else IMAGE for k in range(5)}
    facts = {"2": {"category": "dog"}, "3": {"category": "cat"}, "1": {"frames": []}}
    (sequence,) = split({**files, "meta.json": meta(a={"objects": facts})}, tmp_path, "youtube-vos").sequences
    assert sequence.objects == {
        "2": ObjectFacts([(2, 5)], [(2, 5)], "dog"),
        "3": ObjectFacts([], [], "cat"),
        "1": ObjectFacts([(0, 2)], [(0, 5)], None),
    }
    assert sequence.lists_objects


def test_numbers_alone_name_the_objects_and_others_follow(tmp_path: Path) -> None:
    both = png(np.where(ONE == 1, 1, 9).astype(np.uint8))
    files = {**masks("Annotations", "a", range(3), both), "meta.json": meta(a={"objects": [12, 9]})}
    (sequence,) = split(files, tmp_path, "mosev2").sequences
    assert list(sequence.objects) == ["12", "9", "1"]
    assert [facts.lifespan for facts in sequence.objects.values()] == [[(0, 3)], [(0, 3)], None]
    (sequence,) = split(masks("Annotations", "a"), tmp_path).sequences
    assert not sequence.lists_objects
    assert sequence.objects["1"] == ObjectFacts([(0, 2)], None, None)


def test_folders_of_objects_know_their_frames(tmp_path: Path) -> None:
    files = {
        f"Annotations_6fps/v/{label}/{k:05d}.png": IMAGE for label, k in (("10", 0), ("10", 2), ("9", 1), ("x", 2))
    }
    (sequence,) = split(files, tmp_path, "sav").sequences
    assert sequence.frames == ["00000", "00001", "00002"]
    assert list(sequence.objects) == ["9", "10", "x"]
    assert sequence.objects["10"] == ObjectFacts([(0, 1), (2, 3)], [(0, 1), (2, 3)], None)
    assert sequence.lists_objects


# ── what the host is told ───────────────────────────────────────────────────


def noted(images: list[Any], tmp_path: Path, pictures: int = 0) -> list[str]:
    files = {f"Annotations/a/{k:05d}.png": png(np.asarray(image, np.uint8)) for k, image in enumerate(images)}
    files |= {f"JPEGImages/a/{k:05d}.jpg": b"" for k in range(pictures)}
    return read(files, tmp_path).notes


def test_a_stray_colour_has_at_most_eight_pixels(tmp_path: Path) -> None:
    for pixels, stray in ((8, True), (9, False)):
        image = ONE.copy()
        image.reshape(-1)[:pixels] = 5
        expected = [f"a: object 5 never has more than {pixels} pixels: a stray colour?"] * stray
        assert noted([image, ONE, ONE], tmp_path)[:1] == (expected or ["a: object 5 vanishes after the first frame"])
        assert noted([image] * 3, tmp_path) == expected
    void = ONE.copy()
    void[0, 0] = 255
    assert noted([void, ONE], tmp_path) == []


META = "meta_expressions"


@pytest.mark.parametrize(
    ("paths", "subset", "chosen"),
    [
        (f"a/{META}.json", "", f"a/{META}.json"),
        (f"a/{META}.json", "val", f"a/{META}.json"),
        (f"a/{META}.json", "set", f"a/{META}.json"),
        (f"a/{META}.json", "train", f"of 'train', only a/{META}.json"),
        (f"a/{META}.txt a/meta.json", "", f"has no {META}.json"),
        (f"train/{META}.json valid/{META}.json", "valid", f"valid/{META}.json"),
        (f"{META}_test.json {META}_valid.json", "test", f"{META}_test.json"),
        (f"{META}_test.json {META}_valid.json", "val", f"{META}_valid.json"),
        (f"x/{META}_valid.json val/{META}_u.json", "val", f"val/{META}_u.json"),
        (f"{META}_more.json {META}.json", "", f"{META}.json"),
        (f"a/{META}_1.json b/{META}_2.json", "", f"has several files of expressions (a/{META}_1.json, b/{META}_2.json); choose"),
        (f"a/{META}.json b/{META}.json {META}_2.json", "", f"(a/{META}.json, b/{META}.json, {META}_2.json)"),
    ],
)  # fmt: skip
def test_the_file_of_expressions_is_that_of_the_subset(paths: str, subset: str, chosen: str, tmp_path: Path) -> None:
    (tmp_path / "set.zip").write_bytes(zipped(dict.fromkeys(paths.split(), b"{}")))
    files = open_files(str(tmp_path / "set.zip"), HOST_LIMITS)
    if chosen.endswith(".json") and " " not in chosen:
        assert dataset_reader._file_of_expressions(files, "data/set", subset) == chosen
    else:
        with pytest.raises(HostError, match=f"data/set: .*{re.escape(chosen)}"):
            dataset_reader._file_of_expressions(files, "data/set", subset)


def test_late_objects_and_those_that_vanish_are_told(tmp_path: Path) -> None:
    assert noted([ONE * 0, ONE * 0, ONE, ONE], tmp_path) == ["a: object 1 first appears in frame 00002"]
    assert noted([ONE, ONE * 0], tmp_path) == ["a: object 1 vanishes after the first frame"]
    assert noted([ONE], tmp_path) == []
    assert noted([ONE, ONE * 0, ONE], tmp_path) == []
    assert noted([ONE, np.pad(ONE, 1), np.pad(ONE, 2)], tmp_path) == ["a: the size of its frames changes (3 sizes)"]


@pytest.mark.parametrize(("pictures", "noticed"), [(5, False), (6, True), (7, True), (8, False)])
def test_a_few_frames_without_a_mask_are_told_and_many_are_meant(pictures: int, noticed: bool, tmp_path: Path) -> None:
    notes = noted([ONE] * 5, tmp_path, pictures)
    lacking = {6: "1 frame has no mask: 00005", 7: "2 frames have no mask: 00005, 00006"}
    assert notes == ([f"a: {lacking[pictures]}"] if noticed else [])


def test_a_mask_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    files = {**masks("Annotations"), "Annotations/b/00001.png": IMAGE[:-14]}
    with pytest.raises(HostError, match=r"dataset\.zip: Annotations/b/00001\.png: is cut off"):
        read(files, tmp_path)
    files["Annotations/b/00001.png"] = png(np.full((5, 8, 3), (77, 1, 1), np.uint8))
    with pytest.raises(HostError, match=r"dataset\.zip: Annotations/b/00001\.png: is a colour image"):
        read(files, tmp_path)
    (tmp_path / "x").write_bytes(b"hello")
    with pytest.raises(HostError, match=r"/x: is neither a zip nor a tar archive nor JSON\. Name the folder"):
        dataset_reader.read(str(tmp_path / "x"))


# ── the packed file ─────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_folder", [False, True], ids=["zip", "folder"])
def test_a_host_is_told_of_folders_that_begin_with_a_dot(is_folder: bool, tmp_path: Path) -> None:
    hidden = {name.replace("/c/", "/.c/"): data for name, data in masks("Annotations", "c").items()}
    files = {**masks("Annotations"), **hidden}
    if is_folder:
        for name, data in files.items():
            (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "root" / name).write_bytes(data)
        opened = dataset_reader.read(str(tmp_path / "root"), LAYOUTS["generic"])
    else:
        opened = read(files, tmp_path)
    (truth,) = opened.splits.values()
    assert [sequence.name for sequence in truth.sequences] == ["a", "b"]
    assert "folders whose names begin with a dot are not read: .c; rename folders that hold masks" in opened.notes
