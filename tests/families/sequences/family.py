"""The data of sequences for the tests of all families; `tests/families/contract.py` defines each name."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any, Callable

import numpy as np

from segjudge.evaluation_script.families.sequences.layouts import ALIASES
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from tests import published
from tests.builders import png, written, zipped
from tests.families.sequences.test_sequences import sent
from tests.families.slips import INVERTED, MIRRORED, Slip, pictures
from tests.published import FRAMES, frames, rle
from tests.scoring.shares import SENT, Files, write_sequences


def davis(folder: Path) -> Path:
    masks = {f"Annotations/480p/{name}/{k:05d}.png": png(published.labels(name, k)) for name, k in frames()}
    return written(folder / "DAVIS", {**masks, "ImageSets/2017/val.txt": "\n".join(published.VIDEOS)})


def davis_unsupervised(folder: Path) -> Path:
    masks = {
        f"Annotations_unsupervised/480p/{name}/{k:05d}.png": png(published.labels(name, k)) for name, k in frames()
    }
    return written(folder / "DAVIS", {**masks, "ImageSets/2017/val.txt": "\n".join(published.VIDEOS)})


def sav(folder: Path) -> Path:
    """Write a folder for each object."""
    return written(folder / "sav_val", {
        f"Annotations_6fps/{name}/{number - 1:03d}/{4 * k:05d}.png": png((published.labels(name, k) == number) * np.uint8(255))
        for name, k in frames() for number in (1, 2)
    })  # fmt: skip


def mevis(folder: Path) -> Path:
    """Write expressions that mean one object, both, or none."""
    ids = {"swan": [3, 7], "goat": [12, 5]}
    expressions = {
        name: {str(k): {"exp": "…", "obj_id": [], "anno_id": item} for k, item in enumerate(([a], [b], [a, b], []))}
        for name, (a, b) in ids.items()
    }
    videos = {
        name: {"expressions": records, "frames": [f"{k:05d}" for k in range(FRAMES)]}
        for name, records in expressions.items()
    }
    masks = {
        str(item): [rle(published.labels(name, k) == number) if k else None for k in range(FRAMES)]
        for name in published.VIDEOS for number, item in enumerate(ids[name], 1)
    }  # fmt: skip
    return written(folder / "valid_u", {"meta_expressions.json": {"videos": videos}, "mask_dict.json": masks})


def revos(folder: Path) -> Path:
    """Write MeViS's truth with the type of each expression, and the masks of all candidates."""
    truth = mevis(folder / "mevis")
    listing = json.loads((truth / "meta_expressions.json").read_text())
    masks = json.loads((truth / "mask_dict.json").read_text())
    foreground = {}
    for name, video in listing["videos"].items():
        for expression in video["expressions"].values():
            expression["type_id"] = {0: 2, 1: 0, 2: 1}[len(expression["anno_id"])]
        both = [masks[str(item)] for item in video["expressions"]["2"]["anno_id"]]
        foreground[name] = {"masks_rle": [[mask for mask in of_frame if mask] for of_frame in zip(*both, strict=True)]}
    return written(folder / "ReVOS", {
        "meta_expressions_valid_.json": listing, "mask_dict.json": masks, "mask_dict_foreground.json": foreground,
    })  # fmt: skip


def ref_youtube_vos(folder: Path) -> Path:
    """Write label images of every fifth frame, and the list of the test set next to them."""
    expressions = {"0": {"exp": "a disk", "obj_id": "1"}, "1": {"exp": "a smaller one", "obj_id": "2"}}
    listing = {
        name: {"expressions": expressions, "frames": [f"{5 * k:05d}" for k in range(FRAMES)]}
        for name in published.VIDEOS
    }
    return written(folder / "rvos", {
        "meta_expressions/valid/meta_expressions.json": {"videos": listing},
        **{f"valid/Annotations/{name}/{5 * k:05d}.png": png(published.labels(name, k)) for name, k in frames()},
    })  # fmt: skip


def long_rvos(folder: Path) -> Path:
    """Return a folder for each object, with the frames in which it is visible; expressions of all three types."""
    kinds = {"swan": ("static", "dynamic"), "goat": ("static+dynamic", "static")}
    listing = {
        name: {
            "expressions": {
                str(item): {"exp": "…", "obj_id": item + 1, "type": kind}
                for item, kind in enumerate(kinds.get(name, ("static", "dynamic")))
            },
            "frames": [f"{10 * k:05d}" for k in range(FRAMES)],
        }
        for name in published.VIDEOS
    }
    masks = {
        f"Annotations/{name}/{number}/{10 * k:05d}.png": png((published.labels(name, k) == number) * np.uint8(255))
        for name, k in frames() for number in (1, 2) if k >= number
    }  # fmt: skip
    return written(folder / "Long-RVOS", {"meta_expressions.json": {"videos": listing}, **masks})


def send_davis(_truth: Path) -> bytes:
    return zipped({f"{name}/{k:05d}.png": png(published.labels(name, k)) for name, k in frames()})


def send_mevis(truth: Path, meta: str = "meta_expressions.json", value: int = 255) -> bytes:
    """Return a black and white PNG for each video, expression and frame; empty for expressions without a target."""
    masks = json.loads((truth / "mask_dict.json").read_text())
    videos = json.loads((truth / meta).read_text())["videos"]
    numbers = {"swan": {3: 1, 7: 2}, "goat": {12: 1, 5: 2}}
    files = {}
    for name, video in videos.items():
        for key, expression in video["expressions"].items():
            for k, frame in enumerate(video["frames"]):
                seen = [numbers[name][item] for item in expression["anno_id"] if masks[str(item)][k]]
                files[f"{name}/{key}/{frame}.png"] = png(np.isin(published.labels(name, k), seen) * np.uint8(value))
    return zipped(files)


def send_revos(truth: Path) -> bytes:
    """Return masks of 0 and 1, which its script needs."""
    return send_mevis(truth, "meta_expressions_valid_.json", 1)


def send_ref_youtube_vos(_truth: Path) -> bytes:
    return zipped({
        f"Annotations/{name}/{number - 1}/{5 * k:05d}.png": png((published.labels(name, k) == number) * np.uint8(255))
        for name, k in frames() for number in (1, 2)
    })  # fmt: skip


def send_long_rvos(_truth: Path) -> bytes:
    """Return masks of each object, empty in frames in which it is invisible."""
    return zipped({
        f"{name}/{number - 1}/{10 * k:05d}.png": png((published.labels(name, k) == number) * np.uint8(255 * (k >= number)))
        for name, k in frames() for number in (1, 2)
    })  # fmt: skip


def send_ref_davis17(_truth: Path) -> bytes:
    return zipped({
        f"anno_{person}/{name}/{k:05d}.png": png(published.labels(name, k)) for person in range(4) for name, k in frames()
    })  # fmt: skip


_PUBLISHED: dict[str, Callable[[Path], Path]] = {
    "davis2017-unsupervised": davis_unsupervised, "ref-davis17": davis_unsupervised, "sav": sav, "mevis": mevis,
    "revos": revos, "revos-official": revos, "ref-youtube-vos": ref_youtube_vos, "long-rvos": long_rvos,
    "long-rvos-official": long_rvos,
}  # fmt: skip
PUBLISHED = {name: _PUBLISHED.get(ALIASES.get(name, name), davis) for name in SEQUENCE_PROTOCOLS}
UPLOADS: dict[str, tuple[Callable[[Path], bytes], dict[str, float]]] = {
    "davis2017": (send_davis, {"J&F-Mean": 1}),
    "mevis": (send_mevis, {"J&F-Mean": 1}),
    "mevis-official": (send_mevis, {"J&F-Mean": 1}),
    "mevis-v2": (send_mevis, {"J&F-Mean": 1, "N-acc": 1, "T-acc": 1, "Final": 1}),
    "revos": (send_revos, {"J&F-Mean": 1, "A-Mean": 1, "R-reasoning-Mean": 1, "J-no-target-Mean": 1}),
    "revos-official": (send_revos, {"J&F-Mean": 1, "A-Mean": 1, "R-reasoning-Mean": 1}),
    "ref-youtube-vos": (send_ref_youtube_vos, {"J&F-Mean": 1}),
    "long-rvos": (send_long_rvos, {"J&F-Mean": 1, "tIoU-Mean": 1, "vIoU-hybrid-Mean": 1}),
    "long-rvos-official": (send_long_rvos, {"J&F-Mean": 1, "tIoU-Mean": 1, "vIoU-hybrid-Mean": 1}),
    "ref-davis17": (send_ref_davis17, {"J&F-Mean": 1}),
}
UPLOAD_OF_OTHERS = ""
REFUSALS = dict.fromkeys(UPLOADS, "Send one zip with a folder of PNG masks for each sequence, or one JSON file")


def write_results(protocol: str, folder: Path) -> Files:
    """Return the truth and the shifted masks of shared scoring, in the form of a benchmark."""
    if protocol in ("lvos-unsupervised-single", "davis2016"):
        return write_sequences(folder, {name: [(f > 0).astype(np.uint8) for f in v] for name, v in SENT.items()})
    return write_sequences(folder, sent(SENT, SEQUENCE_PROTOCOLS[protocol]))


FURTHER_UPLOADS = {"davis2016": send_davis}


def inverted_salience(data: bytes) -> bytes:
    """Return both objects of each frame in black, on white."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
    return zipped({name: png((published.labels(name[:4], int(name[5:10])) == 0) * np.uint8(255)) for name in names})


SLIPS: dict[str, tuple[str, Slip, str]] = {
    "16 bits": ("davis2017", pictures(lambda labels: labels.astype(np.uint16) * 257), "look like another coding, such as 257 for 1, 514 for 2"),
    "byte order": ("davis2017", pictures(lambda labels: labels.astype(np.uint16) * 256), "look like another coding, such as 256 for 1, 512 for 2"),
    "large numbers": ("davis2017", pictures(lambda labels: labels.astype(np.uint16) * 21_845), "object numbers look like another coding, such as 21845 for 1, 43690 for 2"),
    "large numbers elsewhere": ("davis2017", pictures(lambda labels: np.roll(labels, 9, 0).astype(np.uint16) * 21_845), "such as 21845 for 1, 43690 for 2: corrected, the IoU over all pixels would be 0.38"),
    "numbers from 0": ("davis2017", pictures(lambda labels: np.maximum(labels, 1) - np.uint8(1)), "look 1 too low"),
    "numbers from 2": ("davis2017", pictures(lambda labels: labels + np.uint8(1)), "look 1 too high"),
    "exchanged numbers": ("davis2017", pictures(lambda labels: np.array([0, 2, 1], np.uint8)[labels]), "object numbers look exchanged"),
    "one number": ("davis2017", pictures(lambda labels: np.minimum(labels, np.uint8(1))), "all masks have the label 1, though the truth has 2"),
    "mirrored": ("davis2017", MIRRORED, "masks look mirrored, with left and right exchanged: corrected, the IoU over all pixels would be 1.00"),
    "mirrored expressions": ("mevis", MIRRORED, "masks look mirrored"),
    "empty masks": ("davis2017", pictures(lambda labels: labels * 0), "all masks are empty"),
    "inverted masks": ("mevis", INVERTED, "masks look inverted, with objects black"),
    "inverted, one object": ("ref-youtube-vos", INVERTED, "masks look inverted, with objects black"),
    "white masks": ("davis2016", pictures(lambda labels: labels * 0 + np.uint8(255)), "all places of the masks have the same value (1)"),
    "white expressions": ("mevis", pictures(lambda labels: labels * 0 + np.uint8(255)), "all places of the masks have the same value (1)"),
    "inverted salient masks": ("lvos-unsupervised-single", inverted_salience, "masks look inverted, with objects black"),
}  # fmt: skip
OTHER_UNITS: dict[str, list[str]] = {"davis2017": ["Annotations/480p/solo", "Annotations/480p/late-guest"]}
BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "mevis": (lambda root: (root / "mask_dict.json").write_text("{}"), "no video of meta_expressions.json has masks"),
    "ref-youtube-vos": (
        lambda root: published.replaced(next(root.rglob("*.json")), "obj_id", "id"),
        "of expressions with obj_id",
    ),
}
SAVED_MASKS: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "davis2017": ({"a": published.LABEL_FRAMES, "b": published.LABEL_FRAMES}, [])
}
BOARD_LABELS: dict[str, tuple[str, ...]] = {
    "davis2017": ("J&F-Mean", "J-Mean", "J-Recall", "J-Decay", "F-Mean", "F-Recall", "F-Decay")
}
JSON_TRUTHS = {"mevis": "meta_expressions.json"}
EXAMPLES: dict[str, tuple[str, ...]] = {
    "first screens": ("davis2017",),
    "sharing": ("davis2017", "mosev2"),
    "frames": ("davis2017", "davis2017-unsupervised", "mosev2", "lvos"),
    "promises": ("revos-official",),
    "pages": ("davis2017", "davis2017-unsupervised", "mosev2", "youtube-vos", "long-rvos"),
    "pages shown whole": ("davis2017",),
    "pages of reports": ("davis2017-unsupervised", "mosev2", "youtube-vos", "long-rvos"),
    "mounts": ("davis2017", "mevis", "ref-davis17"),
    "JSON mounts": ("mevis",),
    "any names": ("davis2017",),
    "folders": ("davis2017",),
    "lists": ("davis2017",),
    "samples": ("davis2017", "mevis", "ref-davis17"),
    "rankings": ("mevis",),
    "good results": ("davis2016",),
    "machines": ("davis2017",),
    "subsets": ("davis2017", "mevis", "ref-youtube-vos", "sav"),
    "chosen units": ("davis2017", "ref-davis17"),
    "wrong roots": ("davis2017",),
    "hosts": ("davis2017", "sav", "mevis-v2", "ref-youtube-vos", "ref-davis17"),
}
SAMPLE_SCORES = {
    "davis2016": (0.9716958015853914, 0.4064884612662117),
    "davis2017": (0.9550898363414448, 0.3819797978463557),
    "davis2017-unsupervised": (0.9583217189451443, 0.4036289664682692),
    "lvos": (0.9525148173397728, 0.3516750042733128),
    "lvos-unsupervised": (0.9533586168462518, 0.3533166623757489),
    "lvos-unsupervised-single": (0.5097719405642979, 0.2511112195906107),
    "vost": (0.9101796726828897, 0.5054020390961588),
    "vos-benchmark": (0.8163775411377137, 0.3014346938589064),
    "vos-benchmark-all-frames": (0.8171645287253586, 0.3028428534649276),
    "sav": (0.9524404646606661, 0.35167380950205746),
    "mosev2": (0.9544504496695175, 0.32193831256317157),
    "mose": (0.9543738432537638, 0.3529304410498374),
    "youtube-vos": (0.9532711253951149, 0.3536190375795123),
    "mevis": (0.9707914690216664, 0.5441701011197856),
    "mevis-official": (0.9707914690216664, 0.5441701011197856),
    "mevis-v2": (0.9707914690216664, 0.5441701011197856),
    "ref-youtube-vos": (0.9561454282902744, 0.38590032739870006),
    "revos": (0.9643835157169263, 0.3970577998239174),
    "revos-official": (0.9643875, 0.3970607142857143),
    "long-rvos": (0.9561454282902744, 0.38590032739870006),
    "long-rvos-official": (0.9561454282902744, 0.38590032739870006),
    "ref-davis17": (0.9583217189451441, 0.4036289664682692),
    "ref-davis17-strict": (0.9583217189451441, 0.4036289664682692),
}
