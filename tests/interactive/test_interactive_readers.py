"""Sequences from other datasets, and first scribbles that the robot draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from segjudge.families.truths import TruthSource, pack
from segjudge.interactive import DavisInteractiveSession
from segjudge.interactive.dataset import Davis
from segjudge.interactive.mask_datasets import DrawnScribbles, MaskDataset
from segjudge.interactive.scribbles import annotated_frames, scribbles2mask
from segjudge.masks.demo import Scene, make_scene, png_of
from tests.builders import ANNOTATIONS
from tests.interactive.scene import Clock


def written(folder: Path, scene: Scene, names: Any = "{:05d}".format) -> Path:
    """Write a scene in a published layout, with pictures."""
    for kind in ("Annotations", "JPEGImages"):
        (folder / kind / scene.name).mkdir(parents=True)
    for frame in range(scene.frames):
        labels = scene.truth(frame)
        (folder / "Annotations" / scene.name / f"{names(frame)}.png").write_bytes(png_of(labels))
        Image.fromarray(labels).convert("RGB").save(folder / "JPEGImages" / scene.name / f"{names(frame)}.jpg")
    (folder / "ImageSets").mkdir(exist_ok=True)
    with open(folder / "ImageSets/val.txt", "a") as file:
        file.write(f"{scene.name}\n")
    return folder


ONE = make_scene("pair", 5, objects=2, frames=7)


@pytest.mark.parametrize("layout", ["lvos", "vost"])
def test_a_session_over_lvos_and_vost(tmp_path: Path, layout: str) -> None:
    names = "{:08d}".format if layout == "lvos" else "frame{:05d}".format
    root = written(tmp_path / layout, ONE, lambda k: names(1 + 5 * k))
    dataset = DrawnScribbles(MaskDataset(str(root), layout), sets=2)
    with DavisInteractiveSession(
        dataset=dataset, max_nb_interactions=2, report_save_dir=tmp_path, clock=Clock()
    ) as session:
        assert session.samples == [("pair", 1), ("pair", 2)]
        for sequence, scribbles, new in session.scribbles_iterator():
            assert len(scribbles["scribbles"]) == ONE.frames
            if new:
                (frame,) = annotated_frames(scribbles)
                drawn = scribbles2mask(scribbles, ONE.size)[frame]
                for number in (1, 2):
                    truth = ONE.truth(frame) == number
                    assert truth[drawn == number].mean() > 0.9, "lines lie on their object"
            session.submit_masks(dataset.load_annotations(sequence, np.uint8) % 255)
        assert session.get_report()["j_and_f"].eq(1).all()
    assert len(dataset.image_paths("pair")) == ONE.frames


def test_a_packed_file_is_a_dataset(tmp_path: Path) -> None:
    source, packed = written(tmp_path / "set", ONE), str(tmp_path / "truth.zip")
    pack(TruthSource(str(source), "davis2017"), packed, split="dev")
    reader = MaskDataset(packed)
    assert reader.sequences("dev") == ["pair"]
    assert reader.dataset["pair"]["num_objects"] == 2
    assert np.array_equal(reader.load_annotations("pair"), np.stack([ONE.truth(k) for k in range(ONE.frames)]))
    assert reader.image_paths("pair") == []
    with pytest.raises(ValueError, match=r"has no split 'val', only \['dev'\]"):
        reader.sequences("val")
    demo = MaskDataset(str(ANNOTATIONS))
    for name in demo.sequences("dev"):
        assert demo.load_annotations(name).max() >= demo.dataset[name]["num_objects"] >= 1


@pytest.mark.parametrize("radius", [1, 2, 20], ids=["a few pixels", "a dot", "a disk"])
def test_every_object_that_is_shown_gets_a_line(tmp_path: Path, radius: int) -> None:
    """The robot draws nothing on a disk; a person would."""
    y, x = np.mgrid[:60, :80]
    for name in ("Annotations/480p/disk", "ImageSets/2017"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "ImageSets/2017/val.txt").write_text("disk\n")
    masks = [((y - 30) ** 2 + (x - 40) ** 2 < radius**2).astype(np.uint8) for _ in range(3)]
    masks[1][2:10, 2:40] = 2
    for frame, mask in enumerate(masks):
        Image.fromarray(mask).save(tmp_path / f"Annotations/480p/disk/{frame:05d}.png")
    scribbles = DrawnScribbles(Davis(str(tmp_path))).load_scribble("disk", 1)
    assert scribbles["annotated_frame"] == 1, "where both objects are"
    assert {line["object_id"] for line in scribbles["scribbles"][1]} == {1, 2}
    drawn = scribbles2mask(scribbles, (60, 80))[1]
    assert (masks[1][drawn == 1] == 1).any()
    for line in scribbles["scribbles"][1]:
        assert 0 <= np.min(line["path"]) <= np.max(line["path"]) <= 1
