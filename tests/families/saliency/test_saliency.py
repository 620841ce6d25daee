"""Grey maps: every number of PySODMetrics, the safe rules by hand, files of other programs, and rejections."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import distance_transform_edt

import segjudge
from segjudge.evaluation_script.families import PROTOCOLS, engine_of
from segjudge.evaluation_script.families.base.units import UnitTruth
from segjudge.evaluation_script.families.saliency import counting
from segjudge.evaluation_script.families.saliency.counting import F_ADAPTIVE, count_map
from segjudge.evaluation_script.families.saliency.files import read_truth
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.masks.backend import NumpyBackend
from tests.backends import COMPILED, compiled, use
from tests.builders import png, written
from tests.data import FAMILIES_DATA
from tests.families.promises import PROMISES, keep
from tests.families.unit_counts import count_units, pack_units, read_golden, score_units

DATA = FAMILIES_DATA / "sod"
GOLDEN = read_golden(DATA)
#: PySODMetrics' numbers that Segjudge does not report.
OTHERS = ("of", "precision_at_128", "recall_at_128", "HCE")
CHOICES = [NumpyBackend(), *([compiled()] if COMPILED.exists() else [])]
EXACT = {"abs": 1e-12, "rel": 0}


def folder(path: Path, images: dict[str, Any]) -> Path:
    """Write PNGs by their names: arrays of bytes, or their files."""
    pictures = {
        name: image if isinstance(image, bytes) else png(np.asarray(image, "u1")) for name, image in images.items()
    }
    return written(path, {f"{name}.png": data for name, data in pictures.items()})


def truth_of(path: Path, images: dict[str, Any]) -> UnitTruth:
    return read_truth(str(folder(path, images)))


def disk(radius: float, size: int = 20, center: tuple[float, float] = (9, 11)) -> Any:
    y, x = np.mgrid[:size, : size + 4]
    return (np.hypot(y - center[0], x - center[1]) < radius) * np.uint8(255)


def saved(values: Any, mode: str, **options: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(values).convert(mode).save(out, "PNG", **options)
    return out.getvalue()


def one(tmp_path: Path, truth: Any, sent: Any, protocol: str = "sod") -> dict[str, Any]:
    return score_units(folder(tmp_path / "s", {"a": sent}), truth_of(tmp_path / "t", {"a": truth}), protocol)


# ── the script's numbers ────────────────────────────────────────────────────


@pytest.mark.parametrize("packed", [False, True], ids=["published", "packed"])
def test_the_scripts_numbers_are_ours(packed: bool, tmp_path: Path) -> None:
    if "images" not in GOLDEN:
        pytest.skip("needs the shared data")
    truth = read_truth(str(DATA / "truth"))
    truth = pack_units(truth, tmp_path) if packed else truth
    cases = {name: ([name], expected) for name, expected in GOLDEN["images"].items()}
    cases |= {name: (expected["of"], expected) for name, expected in GOLDEN["sets"].items()}
    for name, (images, expected) in cases.items():
        chosen = truth.select(images, PROTOCOLS["sod-official"])
        values = score_units(DATA / "submission", chosen, "sod-official")
        official = {metric: value for metric, value in expected.items() if metric not in OTHERS}
        assert values == pytest.approx(official, **EXACT), name


@pytest.mark.parametrize("chosen", CHOICES)
@pytest.mark.parametrize("seed", range(2))
def test_errors_are_shared_as_scipy_finds_the_nearest(
    seed: int, chosen: NumpyBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, chosen)
    draw = np.random.default_rng(seed)
    truth = draw.random((40, 50)) < (0.01, 0.2)[seed % 2]
    truth[3, 4] = True
    values = draw.integers(0, 256, truth.shape).astype(np.uint8)
    levels = np.arange(256) / 255
    distances, (rows, columns) = distance_transform_edt(~truth, return_indices=True)
    errors = np.abs(levels[values] - truth)
    shared = np.where(truth, errors, errors[rows, columns])
    kernel = np.exp(-(np.arange(-3, 4) ** 2) / 50)
    kernel /= kernel.sum()
    around = np.pad(shared, 3)
    for axis in (0, 1):
        around = np.apply_along_axis(np.convolve, axis, around, kernel, "valid")
    inside = np.minimum(errors, around)[truth].sum()
    outside = (errors * (2 - 0.5 ** (distances / 5)))[~truth].sum()
    right = truth.sum() - inside
    precision, recall = right / (right + outside), 1 - inside / truth.sum()
    expected = 2 * precision * recall / (precision + recall)
    assert counting._measure_weighted(values, truth, levels) == pytest.approx(expected, **EXACT)


# ── the safe rules ──────────────────────────────────────────────────────────


def test_maps_count_as_they_are_sent(tmp_path: Path) -> None:
    mask = disk(6)
    faint = one(tmp_path, mask, mask // 2)
    assert faint["MAE"] == pytest.approx((1 - 127 / 255) * (mask > 0).mean(), **EXACT)
    stretched = one(tmp_path, mask, mask // 2, "sod-official")
    assert (stretched["MAE"], stretched["wF"]) == (0, pytest.approx(1))


def test_the_adaptive_threshold_is_twice_the_mean_to_the_last_digit() -> None:
    """If half of the pixels are equal, the last digit of numpy's mean decides whether any is above the threshold."""
    truth, sides = disk(6) > 0, set()
    for value in range(1, 256):
        values = np.zeros(truth.shape, np.uint8)
        values[:, ::2] = value
        levels = values / 255
        results = levels >= min(2 * levels.mean(), 1)
        hits = np.count_nonzero(results & truth)
        precision, recall = hits / max(np.count_nonzero(results), 1), hits / np.count_nonzero(truth)
        expected = 1.3 * precision * recall / (0.3 * precision + recall) if hits else 0
        image = count_map(0, truth, values, PROTOCOLS["sod"])["image"]  # type: ignore[arg-type]
        assert image[F_ADAPTIVE] == pytest.approx(expected, **EXACT), value
        sides.add(bool(hits))
    assert sides == {True, False}


@pytest.mark.parametrize("protocol", ["sod", "sod-official"])
def test_odd_shapes_and_centres_score(protocol: str) -> None:
    """A single pixel, a line and an object in the last column score; the script gives no number for empty corners."""
    for shape, place in (((1, 1), (0, 0)), ((1, 9), (0, 8)), ((9, 1), (4, 0)), ((7, 7), (6, 6)), ((3, 300), (1, 0))):
        truth = np.zeros(shape, bool)
        truth[place] = True
        for values in (truth * np.uint8(255), np.zeros(shape, np.uint8), np.full(shape, 77, np.uint8)):
            tables = count_map(0, truth, values, PROTOCOLS[protocol])  # type: ignore[arg-type]
            assert all(np.isfinite(table).all() and (table >= 0).all() for table in tables.values())


# ── files as people have and send them ──────────────────────────────────────


GREY = np.arange(480).reshape(20, 24).astype(np.uint8)
FORMS = {
    "RGB": saved(GREY, "RGB"),
    "RGBA": saved(GREY, "RGBA"),
    "16 bits": png((GREY.astype(np.uint16) << 8) | 7),
    "interlaced": saved(GREY, "L", interlace=1),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_map_scores_the_same_in_every_form(form: str, tmp_path: Path) -> None:
    assert one(tmp_path / "1", disk(6), FORMS[form]) == one(tmp_path / "2", disk(6), GREY)


def test_one_bit_is_black_and_white(tmp_path: Path) -> None:
    flags = saved(disk(6), "1")
    assert one(tmp_path / "1", flags, flags) == one(tmp_path / "2", disk(6), disk(6))


def test_data_sets_are_folders_on_both_sides(tmp_path: Path) -> None:
    names = {"CAMO": ("0", "1"), "COD10K": ("1", "2")}
    masks = {f"{name}/GT/{k}": disk(4 + int(k)) for name, image_keys in names.items() for k in image_keys}
    pictures = {f"{name}/Imgs/{k}": GREY for name, image_keys in names.items() for k in image_keys}
    truth = truth_of(tmp_path / "t", {**masks, **pictures})
    assert truth.item_names == ["CAMO/0", "CAMO/1", "COD10K/1", "COD10K/2"]
    sent = {name.replace("/GT", "").replace("CAMO", "COD10K/CAMO/best"): disk(7) for name in masks}
    values = score_units(folder(tmp_path / "s", sent), truth, "sod")
    alone = read_truth(str(tmp_path / "t"), "CAMO")
    assert alone.item_names == ["0", "1"]
    flat = score_units(folder(tmp_path / "s2", {"0": disk(7), "1": disk(7)}), alone, "sod")
    report = engine_of("saliency").report("val", count_units(tmp_path / "s", truth, "sod"))
    assert report.rows()["datasets"][0]["S"] == flat["S"] != values["S"]
    folder(tmp_path / "bare", {"DUT/a": disk(5), "HKU/b": disk(5)})
    assert read_truth(str(tmp_path / "bare"), "HKU").item_names == ["b"]
    with pytest.raises(HostError, match="has no PNG in a folder NC4K"):
        read_truth(str(tmp_path / "t"), "NC4K")


COLOURS = np.stack([GREY, GREY, GREY.T.reshape(GREY.shape)], axis=-1)
REFUSED = {
    "other size": ({"b": disk(5, 21)}, r"b.png: is 25x21 pixels but the frame is 24x20"),
    "colours": ({"b": saved(COLOURS, "RGB")}, "b.png: is a colour picture. Save grey values from 0 to 255"),
    "palette": ({"b": saved(GREY, "P")}, "b.png: has a palette instead of grey values"),
    "alpha": ({"b": saved(GREY, "LA")}, "b.png: is grey with an alpha channel"),
    "no PNG": ({"b": b"JFIF"}, "b.png: is not a PNG"),
    "cut": ({"b": png(GREY)[:-30]}, "b.png: is cut off"),
    "header alone": ({"b": png(GREY)[:20]}, "b.png: is cut off"),
    "16 bits in colours": ({"b": png(GREY)[:24] + b"\x10\x02" + png(GREY)[26:]}, "b.png: is a 16-bit colour image"),
    "twice": ({"b": GREY, "x/b": GREY}, "b.png: is also sent as x/b.png. Send one PNG for each image"),
    "missing": ({"c": GREY}, "1 of 2 images is missing: b; 1 is not in the truth: c. Send every image"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_grey_map_of_the_image_is_a_sentence(name: str, tmp_path: Path) -> None:
    sent, message = REFUSED[name]
    truth = truth_of(tmp_path / "t", {"a": disk(4), "b": disk(5)})
    with pytest.raises(SubmissionError, match=message.replace(".", r"\.")):
        score_units(folder(tmp_path / "s", {"a": GREY, **sent}), truth, "sod")


@pytest.mark.parametrize(
    ("sent", "message"),
    [(disk(6) // 255, "values of the maps look as if they reached from 0 to 1, not to 255: corrected, S would be 1.00"),
     (255 - disk(6), "maps look inverted, dark on objects and bright elsewhere: corrected, S would be 1.00 instead of 0.00")],
)  # fmt: skip
def test_maps_that_are_numbered_or_inverted_are_said(sent: Any, message: str, tmp_path: Path) -> None:
    truth = folder(tmp_path / "t", {"a": disk(6)})
    (warning,) = segjudge.score(folder(tmp_path / "s", {"a": sent}), truth, "sod").warnings
    assert message in warning


# ── what all families promise ───────────────────────────────────────────────


@PROMISES
def test_the_family_keeps_its_promises(promise: str, tmp_path: Path) -> None:
    def files(images: dict[str, Any]) -> dict[str, bytes]:
        return {f"{key}.png": png(image) for key, image in images.items()}

    masks = {f"{k}": disk(3 + k) for k in range(5)}
    sent = {key: np.roll(mask, 2, axis=1) // 2 + GREY // 3 for key, mask in masks.items()}
    second, faulty = {key: disk(8 - int(key)) for key in masks}, {**sent, "1": disk(5, 21), "3": COLOURS}
    keep(
        promise, "sod", tmp_path, (files(masks), files(second)), (files(sent), files(faulty)),
        ["1.png: is 25x21", "3.png: is a colour picture"], (sent, masks),
    )  # fmt: skip
