"""What families offer beside scoring: words on metrics, truths as published and packed, samples, and refusals.

    python -m tests.families.offers

writes it to `tests/golden/offers.txt`, for changes that are meant to be seen.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import segjudge
from segjudge.evaluation_script.families import FAMILIES, LAYOUTS, PROTOCOLS, engine_of, folder_of
from segjudge.evaluation_script.families.base.family import ignore_progress
from segjudge.evaluation_script.masks.run_lengths import compress
from segjudge.families import FamilyTools, prefers_smaller, tools_of
from segjudge.families.base.challenges import move_image, move_runs, shift_of
from segjudge.families.base.tools import ScoredMethod
from segjudge.families.truths import TruthSource, open_truth, pack, pack_truth
from segjudge.families.uploads import check_upload
from segjudge.masks.demo import first_scenes
from segjudge.scoring.scores import find_protocol
from tests import published
from tests.builders import png, written, zipped
from tests.calls import labels, run_session
from tests.pages import FORMS, digest

FILE = Path(__file__).parents[1] / "golden/offers.txt"

SESSION = """
def opened(protocol, path="", layout="", subset="", unseen="", categories=""): return open_truth(TruthSource(path, layout, subset, unseen, categories), PROTOCOLS[protocol])
def packed(layout, path, split="", out="out.zip", **more): return pack(TruthSource(path, layout, **more), out, split)
opened("davis2017", "nothing")
opened("coco", "nothing.json")
davis = make("davis2017")
opened("davis2017", davis, "", "test")
opened("davis2017", davis, "davis2016").splits.keys()
opened("davis2017", davis, "davis2107")
opened("davis2017", davis, "", "val", "seen.txt")
packed("davis2017", davis), packed("davis2017", davis, "more"), packed("davis2017", davis, "val")
sorted(opened("davis2017", "out.zip").splits)
opened("davis2017", "out.zip", layout="davis2017"), 5
opened("davis2017", "out.zip", unseen="x"), 5
opened("coco", "out.zip")
lay("empty", {"Annotations/480p/x.txt": "y"}); packed("davis2017", "empty", out="empty.zip")
coco = make("coco")
packed("coco", coco, out="coco.zip"), packed("coco", coco, "test", out="coco.zip"), sorted(opened("coco", "coco.zip").splits)
packed("coco", "coco.zip", out="again.zip")
opened("coco", coco, subset="val").splits.keys(), opened("coco", coco, subset="instances").splits.keys()
opened("coco", coco, subset="train")
opened("coco", coco, categories="c.json")
opened("coco", davis)
packed("coco", davis)

# Places-style PNGs
listing = {"categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]}
red, green = L("0110 0112 0222"), L("0110 0112 0332"); lay("places", {"b.png": png(np.dstack([red, green, green * 0])), "a.PNG": png(np.dstack([red * 7, green, green])), ".c.png": "", "d.txt": ""})
places = opened("places2017", "places", categories=write("c.json", listing)); places.notes, show(places.splits["val"])
images = [{"file_name": "a.jpg", "id": 9, "width": 4, "height": 3}, {"file_name": "b.jpg", "id": 4, "width": 4, "height": 3}]
opened("places2017", "places", categories=write("m.json", {**listing, "images": [images[0], {**images[1], "width": 5}]}))
packed("places2017", "places", out="m.zip", categories="m.json")
places = opened("places2017", "places", categories=write("d.json", {**listing, "images": images})); places.notes, show(places.splits["val"])
packed("places2017", "places", out="places.zip", categories="d.json"), packed("places2017", "places", "more", out="places.zip", categories="c.json")
packed("places2017", "places", out="places.zip")
opened("places2017", "places")
opened("places2017", "places", categories=write("e.json", {**listing, "images": images[:1]}))
opened("places2017", "places", categories=write("e.json", {**listing, "images": [{"id": 1}]}))
opened("places2017", "places", categories=write("e.json", {"categories": [{"id": "x", "name": "y"}]}))
opened("places2017", "places", categories=write("e.json", {"categories": [{"id": 1}]}))
opened("places2017", "places", categories=write("e.json", []))
opened("places2017", "places", categories="nobody.json")
lay("greys", {"a.png": png(red)}); opened("places2017", "greys", categories="c.json")
lay("bad", {"a.png": b"123"}); opened("places2017", "bad", categories="c.json")
lay("none", {"a.txt": b"123"}); opened("places2017", "none", categories="c.json")

# Cityscapes' numbered maps
ids = np.kron(L("0110 0112 0332"), np.ones((8, 8), np.uint8)); street = np.array([7, 26001, 26, 24003, 5])[ids].astype("u2")
far = {"a_000000_000019_gtFine_instanceIds.png": {"car": [{"instID": 26001, "medDist": 12.5, "distConf": 0.5}], "person": [{"instID": 24003, "medDist": 3, "distConf": 1}]}}
lay("city", {"gtFine/val/a/a_000000_000019_gtFine_instanceIds.png": png(street), "gtFine/train/a/a_000001_000019_gtFine_instanceIds.png": png(street * 0), "distances.json": far})
show(opened("cityscapes-instance", "city").splits["val"]), show(opened("cityscapes-instance", "city", subset="train").splits["train"])
packed("cityscapes-instance", "city", out="city.zip"), packed("cityscapes-instance", "city", "train", out="city.zip")
void = np.array([3, 29001, 30, 29, 24])[ids].astype("u2"); lay("city2", {"x/a_000000_000019_gtFine_instanceIds.png": png(void), "y/a_000001_000019_gtFine_instanceIds.png": png(street)}); show(opened("cityscapes-instance", "city2").splits["val"])
lay("city3", {"x/a_000000_000019_gtFine_instanceIds.png": png(void), "y/a_000000_000019_gtFine_instanceIds.png": png(street)}); opened("cityscapes-instance", "city3")
lay("city4", {"x/a_instanceIds.png": b"x"}); opened("cityscapes-instance", "city4")
lay("city5", {"x/a_instanceIds.png": png(street), "gtInstances.json": [5]}); opened("cityscapes-instance", "city5")
lay("city6", {"x/a_instanceIds.png": png(street), "gtInstances.json": {"a_instanceIds.png": {"car": [{"instID": 26001}]}}}); opened("cityscapes-instance", "city6")
opened("cityscapes-instance", "none")
opened("cityscapes-instance", write("no.tgz", 5))
few = np.kron(L("1110 1110 2203 2203"), np.ones((5, 5), np.uint8)); lay("city7", {"x/a_000000_000019_gtFine_instanceIds.png": png(np.array([7, 26001, 26002, 26003])[few].astype("u2"))})
lay("sent", {"a_000000_000019_pred.txt": "a.png 26 0.5", "a.png": png((few == 1) * np.uint8(255))}); segjudge.score("sent", "city7", "cityscapes-instance").kinds.round(4).to_csv(index=False)
show(opened("cityscapes-instance", coco).splits["val"])

# Samples and synthetic truths of forms that are seldom asked for
files(tools_of("instances").make_sample([opened("coco", coco).splits["val"]], PROTOCOLS["coco-box"], 0.07))
lay("thin", {"panoptic_val.json": {"images": [{"id": 1, "file_name": "1.jpg"}], "categories": [{"id": k, "name": f"c{k}", "isthing": 1} for k in (1, 2, 3)], "annotations": [{"image_id": 1, "file_name": "1.png", "segments_info": [{"id": k, "category_id": k, "iscrowd": 0, "area": 3} for k in (1, 2, 3)]}]}})
ids = L("01020 01020 33020"); lay("thin", {"panoptic_val/1.png": png(np.dstack([ids, ids * 0, ids * 0]))})
[data for name, data in tools_of("panoptic").make_sample([*opened("coco-panoptic", "thin").splits.values()], PROTOCOLS["coco-panoptic"], 0.07) if name.endswith("json")]
crowded = json.loads(Path(make("sa-co-veval")).read_text()); crowded["annotations"][0]["iscrowd"] = 1; opened("sa-co-veval", write("crowd.json", crowded)).splits.keys()
files(tools_of("phrases").make_sample([*opened("sa-co-veval", "crowd.json").splits.values()], PROTOCOLS["sa-co-veval"], 0.07))
for protocol in ("sav", "mosev2", "mevis", "revos", "ref-youtube-vos", "long-rvos", "kitti-mots", "mots", "burst", "motchallenge-step", "vipseg", "ovis", "sa-co-silver", "bdd100k-drivable", "reasonseg"): print(protocol, demo(protocol))
printed()

# A family that says nothing of its own
bare = FamilyTools(); scored = segjudge.score_arrays([L("0110 0110") * 99], [L("0110 0000") > 0], "sod").reports[0]
[(section.title, section.values) for section in (*bare.make_sections(None, scored, None), *bare.make_stored_sections({}, scored))]
bare.sum_failures(None, scored), bare.make_columns(scored), bare.make_files(scored), bare.format_official(scored), bare.prefers_smaller("Loss"), bare.describe_metric("Loss")
bare.list_failures(None, scored)
bare.make_bar({"a": 0.5, "b": -0.5, "c": 2})
bare.compare_failures([ScoredMethod(name, None, scored, {}) for name in "ab"], None)
[name for name in FAMILIES if tools_of(name).describe_metric("Loss") != "Loss"]
tools_of("sequences").sum_failures(None, segjudge.score_arrays([L("0110 0110")], [L("0110 0000")], "mosev2").reports[0])

# Layouts that are of another family, and subsets
maps = make("ade20k"); packed("ade20k", maps, out="maps.zip"), packed("ade20k", maps, "b", out="maps.zip", subset="val")
packed("ade20k", maps, subset="test")
for layout in ("vspw", "mots", "burst", "ctc", "sod", "semantic-kitti", "vipseg", "kitti-step", "cellpose-ap", "refcoco", "sa-co-gold", "sa-co-veval"): print(layout, refused(lambda: packed(layout, "none")), refused(lambda: packed(layout, coco)), sep="\\n  ")
printed()
refused(lambda: [notes("vspw", maps), notes("coco", coco), notes("davis2017", davis)])
find_protocol("dvis"), 5
sorted(segjudge.families.OPTIONAL_LAYOUTS), len(segjudge.families.OPTIONAL_LAYOUTS), segjudge.families.OPTIONAL_LAYOUTS["davis2017"]
segjudge.families.OPTIONAL_LAYOUTS["coco"]
lay("half", {"a.py": "match x:\\n  case 1: pass", "b.py": B, "c.py": "def f(a: int | str, *, b=1) -> int | None: pass\\nx: int | None = 1\\ny = a | b\\n", "d/e.py": "from ... import x\\nfrom .... import x\\nfrom ..... import x\\n", ".hidden.py": "(", "f.pyc": "", "g.txt": "("})
"\\n".join(check_upload("half", "mine"))
move_runs(compress([3, 2, 1, 2]), (2, 4), 1, 0.25), move_runs(compress([0, 4, 4]), (2, 4), 1, 0.5), move_runs(compress([1, 2, 5, 3, 5]), (2, 4), 2, 0.25), move_runs(compress([8]), (2, 4), 1, 0.1), move_runs(compress([1, 1, 6]), (2, 4), 1, 9)
[shift_of(*sides) for sides in ((4, 0.1), (4, 0.375), (4, 0.4), (4, 2), (1, 0), (100, 0.07))], move_image(L("1234 5678"), 0.5).tolist()
many = opened("coco", write("many.json", {"images": [{"id": k, "height": 4, "width": 6} for k in range(1, 40001)], "categories": [{"id": 1, "name": "a"}], "annotations": []})).splits["val"]
for protocol in ("coco", "lvis", "places2017", "coco-box"): print(protocol, tools_of("instances").describe_truth([many], PROTOCOLS[protocol])["room"], tools_of("instances").describe_truth([many, many], PROTOCOLS[protocol]))
printed()
"""

#: What Python 3.9 and the worker's packages have, and what they have not.
_UPLOAD = """from __future__ import annotations
import tomllib, scipy.ndimage, torchvision.io, numpy, PIL, segjudge.families, json
from itertools import pairwise, chain
import itertools, typing
itertools.batched, typing.Self, itertools.chain
zip(a, b, strict=True), dataclass(slots=True, frozen=True)
if TYPE_CHECKING:
    import torch
from .... import y
from ... import x
def f(a: int | str) -> int | None: pass
"""


def write_offers() -> str:
    return "\n".join([*_list_words(), *_list_truths(), _run_session()])


def _list_words() -> Iterator[str]:
    """What every metric means, of which small values are good, and what a family's losses are called."""
    for name, family in FAMILIES.items():
        tools = tools_of(name)
        yield f"# {name}: {', '.join(family.layouts)}"
        metrics = dict.fromkeys(metric for row in family.protocols.values() for metric in row.metrics)
        for metric in dict.fromkeys([*metrics, *family.own_metrics]):
            signs = {"↓" if prefers_smaller(metric, protocol) else "↑" for protocol in family.protocols}
            yield f"{metric} {''.join(sorted(signs))}: {tools.describe_metric(metric)}"
        for protocol, row in family.protocols.items():
            losses = tools.name_losses(row) if hasattr(tools, "name_losses") else ""
            yield f"{protocol}: losses {losses}, limits {tools.limits!r}, kinds {_refuse(lambda: tools.check_kinds(row))}"  # noqa: B023


def _list_truths() -> Iterator[str]:
    """What new challenges say of a truth, what it is packed as, and the sample that is made of it."""
    for protocol in FORMS:
        rules = PROTOCOLS[protocol]
        tools = tools_of(rules.family)
        with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
            path = str(published.published(protocol, Path(folder)))
            (truth,) = open_truth(TruthSource(path), rules).splits.values()
            yield f"# {protocol}"
            yield f"facts {_sort(tools.describe_truth([truth], rules))}"
            yield f"notes {pack_truth(TruthSource(path), rules, f'{folder}/a.zip', ignore_progress)}"
            yield f"packed {_list_files(_members_of(f'{folder}/a.zip'))}"
            yield f"sample {_list_files(tools.make_sample([truth], rules, 0.07))}"


def _sort(facts: Any) -> str:
    return json.dumps(facts, sort_keys=True, default=str, ensure_ascii=False)


def _members_of(path: str) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def _list_files(files: Iterable[tuple[str, bytes]]) -> str:
    """Name the first files, and digest what all hold: of pictures the pixels."""
    listed = [(name, _settle(data)) for name, data in files]
    first = ", ".join(f"{name} {digest(data)}" for name, data in listed[:2])
    return f"{len(listed)} files: {first}, … {digest(repr(listed).encode())}"


def _settle(data: bytes) -> bytes:
    """Return what does not change with a version of zlib."""
    if data.startswith((b"\x89PNG", b"II*\0")):
        with Image.open(io.BytesIO(data)) as image:
            return f"{image.mode} {image.size} {digest(image.tobytes())}".encode()
    with suppress(zlib.error):
        return zlib.decompress(data)
    return data


def _refuse(call: Any) -> str:
    try:
        return repr(call())
    except Exception as error:  # noqa: BLE001 - whatever is raised is what is looked for
        return f"{type(error).__name__}: {error}"


def _run_session() -> str:
    return run_session(SESSION, {
        "np": np, "json": json, "Path": Path, "segjudge": segjudge, "L": labels, "png": png, "lay": _lay, "PROTOCOLS": PROTOCOLS, "open_truth": open_truth,
        "TruthSource": TruthSource, "pack": pack, "make": _make, "write": _write, "show": _show, "refused": _refuse, "move_runs": move_runs, "move_image": move_image, "shift_of": shift_of, "compress": compress, "FAMILIES": FAMILIES, "FamilyTools": FamilyTools, "ScoredMethod": ScoredMethod, "demo": _demo, "files": _list_files,
        "find_protocol": find_protocol, "tools_of": tools_of, "check_upload": check_upload, "B": _UPLOAD, "LAYOUTS": LAYOUTS, "engine_of": engine_of, "zipped": zipped,
        "notes": lambda protocol, path: pack_truth(TruthSource(path), PROTOCOLS[protocol], "n.zip", ignore_progress),
    })  # fmt: skip


def _make(protocol: str) -> str:
    """Write a truth as its benchmark publishes it; return its path from here."""
    return os.path.relpath(published.published(protocol, Path()))


def _demo(protocol: str) -> str:
    """List the synthetic truth of two short videos."""
    rules, short = PROTOCOLS[protocol], [replace(video, frames=6) for video in first_scenes()[:2]]
    module = import_module(f"segjudge.families.{folder_of(rules.family)}.challenges")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "first_scenes", lambda: short)
        content = [*tools_of(rules.family).make_demo(rules)]
    return _list_files([(name, data if isinstance(data, bytes) else _sort(data).encode()) for name, data in content])


def _lay(name: str, files: Any) -> None:
    written(Path(name), files)


def _write(name: str, document: Any) -> str:
    return str(written(Path(), {name: document}) / name)


def _show(truth: Any) -> str:
    """Say what a truth of instances holds."""
    sizes, names = truth.images.sizes.tolist(), sorted(truth.names.items())
    rows = list(
        zip(
            truth.image.tolist(),
            truth.category.tolist(),
            truth.crowd.tolist(),
            truth.pixels.tolist(),
            truth.masks,
            strict=True,
        )
    )
    extra = None if truth.distances is None else np.round(truth.distances, 3).tolist()
    return f"{sizes} {names} {rows} {extra}"


if __name__ == "__main__":
    FILE.write_text(write_offers())
