"""Generated sets of tracks: MOTS20, KITTI-MOTS and BURST."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.drawing import Lot, area, near, scaled, score, segmentation, tube, write
from benchmarks.families import COMPAT, HD, NoisyTracks, TrackSet
from benchmarks.instances import Size, blob
from segjudge.evaluation_script.masks.run_lengths import compress

TEXTS = "trackers/results/data"
TRACKEVAL = f"""{COMPAT}
import trackeval
quiet = {{"PRINT_RESULTS": False, "PRINT_CONFIG": False, "OUTPUT_SUMMARY": False, "OUTPUT_DETAILED": False}}
quiet.update({{"PLOT_CURVES": False, "TIME_PROGRESS": False, "LOG_ON_ERROR": None}})
paths = {{"GT_FOLDER": f"{{data}}/truth", "TRACKERS_FOLDER": f"{{data}}/trackers", "PRINT_CONFIG": False}}
def results(kind, metrics, **more):
    dataset = kind({{**paths, **more}})
    res, _ = trackeval.Evaluator(quiet).evaluate([dataset], metrics)
    return res[dataset.get_name()]["results"]["COMBINED_SEQ"]
HOTA = ("HOTA", "DetA", "AssA", "DetRe", "DetPr", "AssRe", "AssPr", "LocA", "OWTA")
def singles(found):
    values = {{name: found["HOTA"][name].mean() for name in HOTA}}
    clear = {{"sMOTSA": "sMOTA", "MOTSA": "MOTA", "MOTSP": "MOTP", "IDSW": "IDSW"}}
    values.update({{name: found["CLEAR"][other] for name, other in clear.items()}})
    return {{**values, "IDF1": found["Identity"]["IDF1"]}}
three = [trackeval.metrics.HOTA(), trackeval.metrics.CLEAR({{"PRINT_CONFIG": False}}),
         trackeval.metrics.Identity({{"PRINT_CONFIG": False}})]
"""

MOTS = f"""{TRACKEVAL}
answer(singles(results(trackeval.datasets.MOTSChallenge, three, SKIP_SPLIT_FOL=True)["pedestrian"]))
"""

KITTI_MOTS = f"""{TRACKEVAL}
found = results(trackeval.datasets.KittiMOTS, three, GT_LOC_FORMAT="{{gt_folder}}/instances_txt/{{seq}}.txt")
answer({{f"{{name}}-{{kind}}": value for kind in ("car", "pedestrian") for name, value in singles(found[kind]).items()}})
"""

BURST = f"""{TRACKEVAL}
from trackeval.datasets.burst_helpers import burst_base
found = results(trackeval.datasets.BURST, [three[0], trackeval.metrics.TrackMAP({{"PRINT_CONFIG": False}})])
classes = [one for name, one in found.items() if name not in ("all", "cls_comb_cls_av", "cls_comb_det_av")]
values = {{name: np.mean([one["HOTA"][name].mean() for one in classes]) for name in ("HOTA", "DetA", "AssA")}}
answer({{**values, "AP": np.mean([one["TrackMAP"]["AP_all"].mean() for one in classes])}})
"""


def mots_lines(lot: Lot, size: Size, frames: int, first: int, classes: list[int]) -> Iterator[tuple[str, str]]:
    """Yield lines of truth and results per frame: people side by side, some lost, some with another number."""
    count, height = 10, size[0]
    stride = size[1] // count
    tall = height // 3
    names = np.arange(count)
    for frame in range(first, first + frames):
        lines: tuple[list[str], list[str]] = ([], [])
        names = np.where(lot.random(count) < 0.01, names + count, names)
        for track in range(count):
            kind = classes[track % len(classes)]
            ignored = track == count - 1
            for side, off in ((0, 0), (1, int(lot.integers(-stride // 12, stride // 12 + 1)))):
                if lot.random() < (0.05, 0.1)[side]:
                    continue
                half = (stride * (0.2 + 0.1 * np.sin(np.arange(tall) / 9 + track))).astype(int)
                mask = abs(np.arange(stride) - stride // 2 - off) <= half[:, None]
                flags = np.zeros((stride, height), bool)
                flags[:, height // 3 : height // 3 + tall] = mask.T
                borders = np.flatnonzero(np.diff(flags.reshape(-1), prepend=False)) + track * stride * height
                lengths = np.diff(borders, prepend=0, append=height * size[1]).tolist()
                number, category = (track + kind * 1000, kind) if not side else (int(names[track]) + 1, kind)
                if ignored and not side:
                    number, category = 10000, 10
                lines[side].append(f"{frame} {number} {category} {height} {size[1]} {compress(lengths)}\n")
        yield "".join(lines[0]), "".join(lines[1])


def mots(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write the 4 sequences of MOTS20's training set: 2,862 frames, 9 people in each."""
    names = [f"MOTS20-{number:02d}" for number in (2, 5, 9, 11)]
    for name in names:
        frames = scaled(715, scale)
        truth, sent = zip(*mots_lines(lot, size, frames, 1, [2]), strict=True)
        write(folder / "truth" / name / "gt/gt.txt", "".join(truth))
        write(folder / "trackers/results/data" / f"{name}.txt", "".join(sent))
        write(
            folder / "truth" / name / "seqinfo.ini",
            f"[Sequence]\nname={name}\nseqLength={frames}\nimWidth={size[1]}\nimHeight={size[0]}\n",
        )
    write(folder / "truth/seqmaps/MOTS-train.txt", "name\n" + "".join(f"{name}\n" for name in names))


def kitti_mots(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write the 9 sequences of KITTI-MOTS's validation set: 2,981 frames."""
    rows = []
    for number in range(9):
        frames, name = scaled(331, scale), f"{number:04d}"
        truth, sent = zip(*mots_lines(lot, size, frames, 0, [1, 2]), strict=True)
        write(folder / "truth/instances_txt" / f"{name}.txt", "".join(truth))
        write(folder / "trackers/results/data" / f"{name}.txt", "".join(sent))
        rows.append(f"{name} empty 000000 {frames:06d}\n")
    write(folder / "truth/evaluate_mots.seqmap.val", "".join(rows))


def burst(folder: Path, lot: Lot, scale: float, size: Size) -> None:
    """Write val's 993 sequences with 36 frames and 5 tracks each."""
    sequences: tuple[list[Any], list[Any]] = ([], [])
    categories = lot.choice(1230, 60, replace=False) + 1
    for number in range(scaled(993, scale)):
        frames = int(lot.integers(18, 55))
        facts = {"dataset": "D", "seq_name": f"s{number}", "width": size[1], "height": size[0], "id": number + 1}
        facts |= {"annotated_image_paths": [f"{index:05d}.jpg" for index in range(frames)], "fps": 30}
        masks: tuple[list[Any], list[Any]] = ([{} for _ in range(frames)], [{} for _ in range(frames)])
        kinds: tuple[dict[str, int], dict[str, int]] = ({}, {})
        for _ in range(int(lot.integers(2, 9))):
            shape, track = blob(lot, size), len(kinds[0]) + 1
            real = tube(lot, shape, size, frames, 0.8)
            kinds[0][str(track)] = int(lot.choice(categories))
            real[0] = real[0] or segmentation(shape, size)
            for index, mask in enumerate(real):
                if mask and area(mask):
                    masks[0][index][str(track)] = {"rle": mask["counts"]}
            for _ in range(int(lot.integers(0, 4))):
                sent = len(kinds[1]) + 1
                kinds[1][str(sent)] = kinds[0][str(track)] if lot.random() < 0.8 else int(lot.choice(categories))
                for index, mask in enumerate(near(lot, real, shape, size)):
                    if mask and area(mask):
                        masks[1][index][str(sent)] = {"rle": mask["counts"], "score": score(lot)}
        there = set(kinds[0].values())
        negative = [int(record) for record in categories if int(record) not in there and lot.random() < 0.3]
        loose = [record for record in sorted(there) if lot.random() < 0.15]
        facts |= {"neg_category_ids": negative, "not_exhaustive_category_ids": loose}
        for side in (0, 1):
            sequences[side].append({**facts, "segmentations": masks[side], "track_category_ids": kinds[side]})
    named = [{"id": int(record), "name": f"c{record}"} for record in sorted(categories)]
    write(folder / "truth/all_classes.json", {"split": "val", "categories": named, "sequences": sequences[0]})
    write(folder / "trackers/results/data/results.json", {"split": "val", "sequences": sequences[1]})


TRACK_SETS = {
    "mots": TrackSet(mots, (1080, 1920), {"mots": ("TrackEval", MOTS)}, "truth", TEXTS, "small-sets"),
    "kitti-mots": TrackSet(
        kitti_mots, (375, 1242), {"kitti-mots": ("TrackEval", KITTI_MOTS)}, "truth", TEXTS, "small-sets"
    ),
    "burst": TrackSet(
        burst, HD, {"burst-official": ("TrackEval", BURST)}, "truth/all_classes.json", f"{TEXTS}/results.json",
        "small-sets",
    ),
}  # fmt: skip
NOISY_SETS = {"mots": NoisyTracks("mots", "mots", 20), "kitti-mots": NoisyTracks("kitti-mots", "kitti-mots", 20)}
