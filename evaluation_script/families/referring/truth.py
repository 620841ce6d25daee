"""Published truths: expressions with COCO's polygons (RefCOCO, gRefCOCO), outlined pictures (ReasonSeg).

A sample is a unit with one frame of one row: the run lengths of the target, its area, and the ignored pixels, if any.
"""

from __future__ import annotations

import io
import json
import math
import os
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from ...files import HOST_LIMITS, Files, Flaw, HostError, SubmissionError, TruthFlaw, name_list, printable, quantity
from ...files.archive import open_files, truth_error
from ...masks import polygons
from ...masks import run_lengths as rle
from ...masks.backend import backend
from ...masks.stack import Array, Size
from ...runner.tuning import without_collector
from ..base.truth import DEFAULT_SPLIT
from ..base.units import TruthFrame, Unit, UnitTruth, no_pixels
from .drawing import Point, fill
from .pickled import read_plain_values
from .protocols import GREFCOCO, REASONSEG, REFCOCO, ReferringProtocol

#: The split that is scored only on request.
_TRAINING = "train"
_INSTANCES = "instances.json"
_NOTHING = "no sample: there is nothing to score"
#: The file with the sizes of images that are not next to their outlines: name -> [height, width].
_SIZES = "sizes.json"
_PICTURES = (".jpg", ".jpeg", ".png")
#: The EXIF tag of the orientation, and its values for images turned by 90°.
_ORIENTATION, _ON_ITS_SIDE = 0x0112, (5, 6, 7, 8)
#: The maximum distance of an outline's corner from the picture, in pixels.
_FARTHEST_CORNER = 1 << 20
_UNREADABLE = (
    OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, EOFError, RecursionError, Flaw,
    SubmissionError,
)  # fmt: skip


def read_truth(path: str, subset: str = "") -> UnitTruth:
    """Read a published truth: a file of expressions beside its instances, or a folder of either kind.

    `subset` is a split named in the expressions, or a folder of outlined pictures.
    """
    try:
        if os.path.isfile(path) and path.endswith((".p", ".json")):
            with open(path, "rb") as file, open(os.path.join(os.path.dirname(path), _INSTANCES), "rb") as instances:
                return _open_expressions(os.path.basename(path), file.read(), instances.read(), subset)
        files = open_files(path, HOST_LIMITS)
        named = [name for name in sorted(files.sizes) if _is_list_of_expressions(name)]
        if len(named) > 1:
            raise HostError(f"{path}: holds {name_list(named)}; name one of these files")
        if not named:
            return _open_pictures(path, files, subset)
        folder = named[0][: len(named[0]) - len(os.path.basename(named[0]))]
        return _open_expressions(named[0], files.read(named[0]), files.read(folder + _INSTANCES), subset)
    except _UNREADABLE as error:
        raise truth_error(path, error, "cannot be read as the truth of referring images") from None


def _is_list_of_expressions(name: str) -> bool:
    base = os.path.basename(name)
    return base.startswith(("refs", "grefs")) and base.endswith((".p", ".json"))


# ── expressions ──


def _read_records(name: str, data: bytes) -> List[Dict[str, Any]]:
    with without_collector():
        records = json.loads(data) if name.endswith(".json") else read_plain_values(data)
    if not isinstance(records, list):
        raise TruthFlaw("is not a list of expressions", "Name refs(...).p or grefs(...).json")
    return records


def _open_expressions(name: str, data: bytes, instances_data: bytes, subset: str) -> UnitTruth:
    """Return the samples of a split: each sentence is one."""
    records = _read_records(name, data)
    split = _choose_split({str(record["split"]) for record in records}, subset)
    with without_collector():
        instances = json.loads(instances_data)
    several = any(isinstance(record["ann_id"], list) for record in records)
    masks = _InstanceMasks(instances, with_crowds=not several)
    groups = ["no target", "one object", "several objects"] if several else [split]
    units: Dict[str, Unit] = {}
    elsewhere: List[str] = []
    empty = 0
    for record in records:
        texts = {str(sentence["sent_id"]): str(sentence.get("sent", "")) for sentence in record["sentences"]}
        names = [str(sentence["sent_id"]) for sentence in record["sentences"]]
        if record["split"] != split:
            elsewhere += names
            continue
        ids = record["ann_id"] if several else [record["ann_id"]]
        ids = [] if ids == [-1] else ids
        size, text, area = masks.unite(record["image_id"], ids)
        empty += len(names) if ids and not area else 0
        group = min(len(ids), 2) if several else 0
        for sentence in names:
            if sentence in units:
                raise TruthFlaw(f"lists the sentence {printable(sentence)} twice", "Give each sentence its own sent_id")
            units[sentence] = _make_unit(
                sentence, size, [text, area, ""], (group, texts[sentence]), has_target=bool(ids)
            )
    notes = [f"{quantity(empty, 'sentence')} with a target without pixels"] if empty else []
    form = GREFCOCO if several else REFCOCO
    return _make_truth(form, groups, list(units.values()), notes, frozenset(elsewhere) - units.keys())


def _choose_split(splits: "set[str]", subset: str) -> str:
    """Return the split to read: the requested one, else the only one, or val."""
    if not splits:
        raise HostError(_NOTHING)
    tested = sorted(splits - {_TRAINING}) or sorted(splits)
    if subset in splits:
        return subset
    if subset not in {"", DEFAULT_SPLIT}:
        raise HostError(f"the truth has no split {printable(subset)}, only {name_list(sorted(splits))}")
    if len(tested) != 1 and DEFAULT_SPLIT not in splits:
        raise HostError(f"the truth has the splits {name_list(tested)}: choose one with --subset")
    return DEFAULT_SPLIT if DEFAULT_SPLIT in splits else tested[0]


class _InstanceMasks:
    """The masks of COCO's instances, united as expressions refer to them."""

    def __init__(self, instances: Dict[str, Any], *, with_crowds: bool) -> None:
        self._with_crowds = with_crowds
        self._sizes: Dict[int, Size] = {
            image["id"]: _check_size(image["height"], image["width"]) for image in instances["images"]
        }
        self._annotations = {annotation["id"]: annotation for annotation in instances["annotations"]}
        self._united: Dict[Tuple[int, ...], Tuple[Size, str, int]] = {}

    def unite(self, image: int, ids: Sequence[int]) -> Tuple[Size, str, int]:
        """Return the size of a picture, and the united mask of some instances with its area."""
        key = (image, *ids)
        if key not in self._united:
            size = self._sizes[image]
            chosen = [self._annotations[number] for number in ids]
            if any(annotation["image_id"] != image for annotation in chosen):
                raise TruthFlaw(
                    f"belongs to picture {image} but refers to an object of another picture",
                    "Name the annotation file that it refers to",
                )
            counted = [each for each in chosen if self._with_crowds or not each.get("iscrowd")]
            texts = [text for annotation in counted for text in _texts_of(annotation, size)]
            self._united[key] = (size, *backend().unite_masks(texts, size[0] * size[1]))
        return self._united[key]


def _texts_of(annotation: Dict[str, Any], size: Size) -> List[str]:
    """Return the run lengths that unite to the mask of an instance."""
    segmentation = annotation["segmentation"]
    if isinstance(segmentation, list) and not (segmentation and isinstance(segmentation[0], dict)):
        return [polygons.polygon_mask(segmentation, *size)] if segmentation else []
    texts = []
    for mask in segmentation if isinstance(segmentation, list) else [segmentation]:
        if list(mask["size"]) != list(size):
            raise TruthFlaw(
                f"annotation {annotation['id']} has a mask whose size differs from its picture's", "Encode it again"
            )
        text = mask["counts"]
        texts.append(text if isinstance(text, str) else rle.compress(rle.runs_of(text, size[0] * size[1]).tolist()))
    fault = backend().check_masks(texts, np.array([size[0] * size[1]] * len(texts))).fault
    for number in fault[fault > 0].tolist():
        raise Flaw(f"annotation {annotation['id']} {rle.FAULTS[number]}", rle.WRITE_AGAIN)
    return texts


def _check_size(height: Any, width: Any) -> Size:
    if type(height) is not int or type(width) is not int or min(height, width) < 1 or height * width >= 1 << 31:
        raise TruthFlaw(f"has a picture of size {printable([height, width])}", "Write the height and width in pixels")
    return height, width


# ── outlined pictures ──


def _open_pictures(path: str, files: Files, subset: str) -> UnitTruth:
    """Return ReasonSeg's samples: each picture is one, queried by its first text."""
    folder = subset if any(subset in name.split("/")[:-1] for name in files.sizes) else ""
    members = {
        name: json.loads(_decode(files.read(name)))
        for name in sorted(files.sizes)
        if name.endswith(".json")
        and os.path.basename(name) != _SIZES
        and (not folder or folder in name.split("/")[:-1])
    }
    members = {name: document for name, document in members.items() if "shapes" in document}
    if not members:
        raise TruthFlaw(
            "holds neither refs(...).p, grefs(...).json nor JSON with shapes", "Name the folder that holds them"
        )
    sizes = _read_sizes(path, files)
    order = {name: index for index, name in enumerate(sizes)}  # 32-bit sums depend on the order
    units: Dict[str, Unit] = {}
    for member, document in sorted(members.items(), key=lambda item: order.get(_stem(item[0]), len(order))):
        name = _stem(member)
        if name in units:
            raise TruthFlaw(f"has the picture {printable(name)} twice", "Name the folder of one split")
        size = _check_size(*(sizes[name] if name in sizes else _measure_picture(files, member, document)))
        target, ignored = draw(document["shapes"], size)
        row = [
            rle.encode_flags(target),
            int(np.count_nonzero(target)),
            rle.encode_flags(ignored) if ignored.any() else "",
        ]
        about = int(bool(document["is_sentence"])), _first_text(document)
        units[name] = _make_unit(name, size, row, about, has_target=bool(row[1]))
    return _make_truth(REASONSEG, ["short query", "long query"], list(units.values()), [])


def _first_text(document: Dict[str, Any]) -> str:
    texts = document.get("text")
    return str(texts[0]) if isinstance(texts, list) and texts else ""


def _stem(member: str) -> str:
    return os.path.splitext(os.path.basename(member))[0]


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252")


def _read_sizes(path: str, files: Files) -> Dict[str, List[int]]:
    """Return the sizes listed in the folder or beside it; empty without a list."""
    sizes: Dict[str, List[int]] = {}
    for name in files.sizes:
        if os.path.basename(name) == _SIZES:
            sizes.update(json.loads(files.read(name)))
    beside = os.path.join(os.path.dirname(os.path.abspath(path)), _SIZES)
    if not sizes and os.path.isfile(beside):
        with open(beside, "rb") as file:
            sizes = json.loads(file.read())
    return sizes


def _measure_picture(files: Files, member: str, document: Dict[str, Any]) -> Tuple[int, int]:
    """Return the height and width of the picture beside its outlines, else those in the outlines' file."""
    from PIL import Image, UnidentifiedImageError

    stem = os.path.splitext(member)[0]
    for ending in _PICTURES:
        if stem + ending in files.sizes:
            try:
                with Image.open(io.BytesIO(files.read(stem + ending))) as picture:
                    width, height = picture.size
                    turned = picture.getexif().get(_ORIENTATION) in _ON_ITS_SIDE
                    return (width, height) if turned else (height, width)
            except UnidentifiedImageError:
                raise TruthFlaw(f"{stem + ending}: is not a picture", "Put the picture of the dataset there") from None
    if "imageHeight" in document:
        return document["imageHeight"], document["imageWidth"]
    raise TruthFlaw(f"{member}: has no picture in its folder", f"Put {os.path.basename(stem)}.jpg there")


def draw(shapes: Sequence[Dict[str, Any]], size: Size) -> Tuple[Array, Array]:
    """Return target and ignored pixels, column by column; outlines are drawn by falling area, later ones on top.

    Of outlines with equal areas, the one listed first is on top.
    """
    drawn: List[Tuple[Array, bool]] = []
    for shape in shapes:
        label = shape["label"].lower()
        if label != "flag":
            corners = [_corner(*point) for point in shape["points"]]
            drawn.append((fill(corners, size) if corners else np.zeros(size, bool), "ignore" in label))
    areas = np.array([np.count_nonzero(mask) for mask, _ in drawn], np.int64)
    target, ignored = np.zeros(size, bool), np.zeros(size, bool)
    for index in np.argsort(areas, kind="stable")[::-1].tolist():
        mask, is_ignored = drawn[index]
        target[mask], ignored[mask] = not is_ignored, is_ignored
    return target.T.reshape(-1), ignored.T.reshape(-1)


def _corner(x: float, y: float) -> Point:
    if not (math.isfinite(x) and math.isfinite(y)) or max(abs(x), abs(y)) > _FARTHEST_CORNER:
        raise TruthFlaw(
            "has an outline with corners that are not numbers or lie far outside its picture",
            "Write corners as numbers near the picture",
        )
    return int(x), int(y)


# ── samples ──


def _make_truth(
    form: str, groups: List[str], units: List[Unit], notes: List[str], elsewhere: "frozenset[str]" = frozenset()
) -> UnitTruth:
    if not units:
        raise HostError(_NOTHING)
    occurring = sorted({unit.facts["group"] for unit in units})
    facts = {"subsets": [[groups[group]] for group in occurring]}
    for unit in units:
        unit.facts["group"] = occurring.index(unit.facts["group"])
    return UnitTruth(ReferringProtocol.family, form, facts, units, notes, elsewhere)


def _make_unit(name: str, size: Size, row: List[Any], about: Tuple[int, str], *, has_target: bool) -> Unit:
    """Make a sample; `about` holds its group and the text of its query."""
    facts: Dict[str, Any] = {"size": size, "group": about[0], "target": has_target}
    if about[1]:
        facts["text"] = about[1]
    return Unit(name, 1, lambda: [TruthFrame(name, size, [row], no_pixels)], facts)
