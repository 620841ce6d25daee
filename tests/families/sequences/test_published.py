"""Datasets are read in their published layouts, packed, and read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.sequences import dataset as dataset_reader
from segjudge.evaluation_script.families.sequences import truth as sequence_truth
from segjudge.evaluation_script.families.sequences.layouts import LAYOUTS
from tests.builders import png, zipped


def frame(*boxes: tuple[int, int, int, int, int], size: tuple[int, int] = (12, 70)) -> Any:
    labels = np.zeros(size, np.uint8)
    for label, top, left, bottom, right in boxes:
        labels[top:bottom, left:right] = label
    return labels


def moving(label: int, count: int = 5) -> list[Any]:
    return [frame((label, 2, 2 + 3 * k, 9, 20 + 3 * k)) for k in range(count)]


def files(place: str, videos: dict[str, list[Any]], name: str = "{:05d}") -> dict[str, bytes]:
    return {
        f"{place}/{video}/{name.format(k)}.png": png(labels)
        for video, frames in videos.items()
        for k, labels in enumerate(frames)
        if labels is not None
    }


VIDEOS = {"zebra": moving(1), "ant": moving(2, 6), "left-out": moving(1)}
LIST = b"zebra\nant\n"
LVOS_META = {
    "ant": {"objects": {"2": {"frame_range": {"start": "11", "end": "26", "frame_nums": "3"}}}},
    "zebra": {"objects": {}},
}
YOUTUBE_META = {
    "ant": {"objects": {"2": {"category": "ball", "frames": ["00000"]}}},
    "zebra": {"objects": {"1": {"category": "dog", "frames": []}}},
}
MOSE_META = {name: {"length": 5, "height": 12, "width": 70, "objects": [1]} for name in ("zebra", "ant")}


def meta(videos: Any) -> bytes:
    return json.dumps({"videos": videos}).encode()


ROOTS: dict[str, tuple[dict[str, bytes], str, list[str]]] = {
    "davis2017": (
        {
            **files("Annotations/480p", VIDEOS),
            "ImageSets/2017/val.txt": LIST,
            "ImageSets/2017/train.txt": b"left-out\n",
        },
        "val",
        ["zebra", "ant"],
    ),
    "davis2016": (
        {
            **files("Annotations/480p", VIDEOS),
            "ImageSets/480p/val.txt": b"/JPEGImages/480p/zebra/00000.jpg /Annotations/480p/zebra/00000.png\n" * 3,
            "ImageSets/2017/val.txt": LIST,
        },
        "val",
        ["zebra"],
    ),
    "davis2017-unsupervised": (
        {
            **files("Annotations_unsupervised/480p", VIDEOS),
            **files("Annotations/480p", {"zebra": moving(3), "ant": moving(3)}),
            "ImageSets/2019/test-dev.txt": LIST,
        },
        "test-dev",
        ["zebra", "ant"],
    ),
    "lvos": (
        {
            **files("Annotations", VIDEOS, "{:08d}"),
            "valid_meta.json": meta(LVOS_META),
            "test_meta.json": meta({}),
            "unseen_videos.txt": b"ant\n",
        },
        "valid",
        ["ant", "zebra"],
    ),
    "vost": ({**files("Annotations", VIDEOS), **files("JPEGImages", {"zebra": moving(1)}), "ImageSets/val.txt": LIST}, "val", ["zebra", "ant"]),
    "youtube-vos": ({**files("valid/Annotations", VIDEOS), "valid/meta.json": meta(YOUTUBE_META)}, "", ["ant", "zebra"]),
    "mose": (files("valid/Annotations", VIDEOS), "", ["ant", "left-out", "zebra"]),
    "mosev2": ({**files("valid/Annotations", VIDEOS), "meta_valid.json": meta(MOSE_META)}, "", ["zebra", "ant"]),
    "sav": (
        {
            **files("sav_val/Annotations_6fps/v1", {"000": moving(255), "001": [*moving(255)[:3], None, None]}),
            "sav_val/sav_val.txt": b"v1\n",
        },
        "",
        ["v1"],
    ),
    "generic": (files("masks/1080p", VIDEOS), "", ["ant", "left-out", "zebra"]),
}  # fmt: skip


def root_of(layout: str, folder: Path, form: str) -> str:
    content = ROOTS[layout][0]
    if form == "zip":
        path = folder / "dataset.zip"
        path.write_bytes(zipped({f"wrapped/{name}": data for name, data in content.items()}))
        return str(path)
    for name, data in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return str(folder)


@pytest.mark.parametrize("layout", ROOTS)
def test_a_packed_truth_reads_back_the_same(layout: str, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    root, subset = root_of(layout, tmp_path / "root", "folder"), ROOTS[layout][1]
    paths = [str(tmp_path / f"{k}.zip") for k in range(2)]
    splits = [dataset_reader.read(root, LAYOUTS[layout], subset).splits for _ in paths]
    for path, split in zip(paths, splits):
        sequence_truth.write(path, split)

    assert Path(paths[0]).read_bytes() == Path(paths[1]).read_bytes()
    back = sequence_truth.read(paths[0]).splits[subset or "val"]
    for mine, theirs in zip(splits[0][subset or "val"].sequences, back.sequences):
        assert (mine.name, mine.frames, mine.blocks, mine.objects) == (
            theirs.name,
            theirs.frames,
            theirs.blocks,
            theirs.objects,
        )
        assert (mine.unseen, mine.salient) == (theirs.unseen, theirs.salient)
        for index in range(len(mine.blocks)):
            split, block = mine.read_block(index), theirs.read_block(index)
            assert set(split) == set(block)
            assert all(
                (split[label].words == block[label].words).all() and split[label].top == block[label].top
                for label in split
            )
