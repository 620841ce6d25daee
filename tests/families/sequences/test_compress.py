"""`segjudge compress`: smaller uploads with the same masks, and its rejections."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import segjudge
from segjudge.cli import main
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.masks import png as mask_png
from segjudge.evaluation_script.masks.backend import backend
from tests import revisions
from tests.builders import ANNOTATIONS, ROOT, STRONG, files_of, png, zipped
from tests.families.choices import MAPS
from tests.golden.pairs import frames_of
from tests.shared import needs_shared

#: Each with the share of their PNGs' bytes that real results may take.
PAIRS = {"A": 0.35, "B": 0.65}


def folder_of(path: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def bytes_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.png"))


def scores_of(results: Path, truth: Path, protocol: str) -> Any:
    scored = segjudge.score(results, truth, protocol)
    return scored.metrics, scored.tables, scored.warnings


@pytest.mark.parametrize("ending", [".json.gz", ".zip"])
@pytest.mark.parametrize("protocol", ["davis2017", "vos-benchmark", "lvos", "vost", "mosev2"])
def test_compressed_results_score_to_the_same_bits(ending: str, protocol: str, tmp_path: Path) -> None:
    out = tmp_path / f"results{ending}"
    assert main(["compress", str(STRONG), "--out", str(out)]) == 0

    assert out.stat().st_size < STRONG.stat().st_size
    assert scores_of(out, ANNOTATIONS, protocol) == scores_of(STRONG, ANNOTATIONS, protocol)


@pytest.mark.long
@needs_shared
@pytest.mark.parametrize(("pair", "most"), PAIRS.items())
def test_real_results_become_as_small_as_is_promised(
    pair: str, most: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, truth, out = tmp_path / "results", tmp_path / "truth", tmp_path / "results.json.gz"
    for place, (sequence, rows) in enumerate(groupby(frames_of(pair), key=lambda row: row[0])):
        if place == 3:
            break
        for _, k, *sides in rows:
            for folder, side in zip((truth, results), sides, strict=True):
                path = folder / sequence / f"{k:05d}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(side).save(path)

    assert main(["compress", str(results), "--out", str(out)]) == 0

    before, after = bytes_of(results), out.stat().st_size
    assert after <= most * before
    assert capsys.readouterr().out.startswith(
        f"Wrote {out}: {after:,} bytes instead of {before:,}, {after / before:.0%}\n"
    )
    assert scores_of(out, truth, "vos-benchmark") == scores_of(results, truth, "vos-benchmark")


def test_object_folders_keep_their_names_and_what_they_share(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mask = np.zeros((120, 160), np.uint8)
    mask[20:60, 10:90] = 255
    files = {f"video/{label}/{k:05d}.png": png(np.roll(mask, k)) for label in ("000", "007") for k in range(5)}
    results, out = folder_of(tmp_path / "results", files), tmp_path / "results.json.gz"

    assert main(["compress", str(results), "--out", str(out)]) == 0

    assert "Verified: 5 frames, all equal.\n" in capsys.readouterr().out
    document = json.loads(gzip.decompress(out.read_bytes()))
    assert list(document) == ["video"]
    assert list(document["video"]) == ["000", "007"]
    assert scores_of(out, results, "sav") == scores_of(results, results, "sav")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return revisions.extract(tmp_path_factory.mktemp("samples"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_written_scores_the_same_for_every_protocol(protocol: str, samples: Path, tmp_path: Path) -> None:
    entry = revisions.known(PROTOCOLS[protocol])
    with zipfile.ZipFile(samples / entry["samples"]["poor"]["file"]) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    for name in [name for name in files if name.endswith(".png")]:
        large = io.BytesIO()
        Image.open(io.BytesIO(files[name])).save(large, "PNG", compress_level=0)
        files[name] = large.getvalue()
    pngs, objects = any(name.endswith(".png") for name in files), PROTOCOLS[protocol].family == "sequences"
    results, truth = folder_of(tmp_path / "results", files), samples / entry["truth"]
    for ending in [".zip", ".json.gz"] if pngs else []:
        out = tmp_path / f"out{ending}"
        status = main(["compress", str(results), "--out", str(out), "--protocol", protocol])
        # Run lengths are refused where folders are no sequences, and for protocols that do not read them.
        assert status in (0, 1) if objects and ending == ".json.gz" else status == (ending == ".json.gz")
        assert status or scores_of(out, truth, protocol) == scores_of(results, truth, protocol)


def test_run_lengths_of_objects_are_not_written_for_who_does_not_read_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json.gz"
    arguments = ["compress", str(STRONG), "--out", str(out)]
    assert main([*arguments, "--protocol", MAPS]) == 1
    assert (
        f"{out}: would hold run lengths of objects, which {MAPS} does not read. Write PNGs" in capsys.readouterr().err
    )
    assert not out.exists()

    assert main(arguments) == 0
    hint = "Only protocols for objects in videos read this format"
    assert hint in capsys.readouterr().out
    for quiet in (
        [*arguments, "--protocol", "davis2017"],
        ["compress", str(STRONG), "--out", str(tmp_path / "out.zip")],
    ):
        assert main(quiet) == 0
        assert hint not in capsys.readouterr().out


KINDS = {"grey": "L", "few": "1", "colours": "RGB", "alpha": "RGBA", "palette": "P"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_png_stays_of_its_kind(kind: str, tmp_path: Path) -> None:
    """The protocol determines the meaning of a grey or a colour: some read brightness."""
    labels = np.zeros((50, 70), np.uint8)
    labels[5:30, 5:40] = 1
    image = Image.fromarray(labels * np.uint8(255)).convert(KINDS[kind])
    if kind == "palette":
        image = Image.fromarray(labels)
        image.putpalette([0, 0, 0, 255, 255, 255])
    source = io.BytesIO()
    image.save(source, "PNG", compress_level=0)
    results, out = folder_of(tmp_path / "r", {"a.png": source.getvalue()}), tmp_path / "out.zip"
    assert main(["compress", str(results), "--out", str(out)]) == 0
    (data,) = files_of(out).values()
    assert len(data) < len(source.getvalue())
    assert np.array_equal(mask_png.read_greys(data, (50, 70)), labels * 255)
    assert data[25] == source.getvalue()[25] or kind == "alpha"


def test_every_png_keeps_its_name_and_its_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = np.zeros((50, 70), np.uint8)
    labels[5:30, 5:40] = 1
    palette = Image.fromarray(labels * 20)
    palette.putpalette(mask_png.davis_palette().tobytes())
    kept = io.BytesIO()
    palette.save(kept, "PNG")
    files = {"a/1.png": png(labels), "a/2.png": png(labels * 3), "a/3.png": kept.getvalue()}
    files |= {"b/1.png": png(labels.astype(np.uint16) * 300), "b/2.png": png(mask_png.davis_palette()[labels * 9])}
    source, out = tmp_path / "source.zip", tmp_path / "out.zip"
    source.write_bytes(zipped(files | {"readme.txt": b"0" * 999}, zipfile.ZIP_STORED))

    assert main(["compress", str(source), "--out", str(out)]) == 0

    assert "Verified: 5 PNGs, all equal.\n" in capsys.readouterr().out
    small = files_of(out)
    assert small.pop("readme.txt") == b"0" * 999
    assert {name: backend().read_labels(data, (50, 70)).tolist() for name, data in small.items()} == {
        name: backend().read_labels(data, (50, 70)).tolist() for name, data in files.items()
    }
    assert all(len(small[name]) <= len(files[name]) for name in files)
    assert np.array(Image.open(io.BytesIO(small["a/2.png"]))).max() == 3  # what other evaluators read


def test_instances_are_gzipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = ROOT / "examples/instances-dev/sharp.json", tmp_path / "sharp.json.gz"
    truth = ROOT / "annotations/instances-dev.zip"

    assert main(["compress", str(source), "--out", str(out)]) == 0

    assert "Verified: 13 kB of JSON, all equal.\n" in capsys.readouterr().out
    assert scores_of(out, truth, "coco") == scores_of(source, truth, "coco")
    assert main(["compress", str(out), "--out", str(tmp_path / "again.json.gz")]) == 1  # not smaller


def test_what_would_become_larger_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generator = np.random.default_rng(1)
    noise = [png(generator.integers(0, 2, (64, 64)).astype(bool)) for _ in range(2)]
    files = {f"a/{k}.png": mask for k, mask in enumerate(noise)}
    results, out = folder_of(tmp_path / "results", files), tmp_path / "out.json.gz"

    assert main(["compress", str(results), "--out", str(out)]) == 1

    assert "so nothing was written" in capsys.readouterr().err
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["method-1/dog/1.png", "method-2/dog/1.png"], "which folders are sequences"),
        (["dog/9.png", "dog/10.png"], "names are in different order"),
        (["Annotations/dog/1.png", "other/dog/1.png"], "of which 1 belong"),
        (["1.png", "2.png"], "which folders are sequences"),
    ],
)
def test_run_lengths_are_not_written_where_the_sequences_or_frames_are_not_sure(
    names: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = folder_of(tmp_path / "results", dict.fromkeys(names, png(np.ones((20, 20), np.uint8))))

    assert main(["compress", str(results), "--out", str(tmp_path / "out.json.gz")]) == 1
    assert message in capsys.readouterr().err


def test_grey_levels_are_no_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grey = np.tile(np.arange(0, 256, 50, np.uint8), (20, 20))
    results = folder_of(tmp_path / "results", {"dog/1.png": png(grey)})

    assert main(["compress", str(results), "--out", str(tmp_path / "out.json.gz")]) == 1
    assert "may be grey levels" in capsys.readouterr().err


def test_the_ids_of_segments_and_the_json_beside_them_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The ids stay even if each is a colour of DAVIS's palette, since palette PNGs would lose them."""
    pictures = {}
    for name, ids in {"davis": (0, 128, 128 << 8), "other": (7, 300, 70_000)}.items():
        colours = np.repeat(np.array([[k & 255, k >> 8 & 255, k >> 16] for k in ids], np.uint8), 40, axis=0)
        out = io.BytesIO()
        Image.fromarray(np.repeat(colours[:, None], 160, axis=1)).save(out, "PNG", compress_level=1)
        pictures[f"masks/{name}.png"] = out.getvalue()
    document = json.dumps({"annotations": [{"file_name": f"{name}.png"} for name in ("davis", "other")]}).encode()
    results = folder_of(tmp_path / "results", {"masks.json": document, **pictures})

    assert main(["compress", str(results), "--out", str(tmp_path / "out.zip")]) == 0

    written = files_of(tmp_path / "out.zip")
    assert written.keys() == {"masks.json", *pictures}
    assert written["masks.json"] == document
    for name, data in pictures.items():
        assert np.array_equal(backend().read_codes(written[name], (120, 160)), backend().read_codes(data, (120, 160)))
    assert main(["compress", str(results), "--out", str(tmp_path / "out.json.gz")]) == 1
    assert "masks.json: describes segments" in capsys.readouterr().err


def test_a_damaged_png_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = folder_of(tmp_path / "results", {"dog/1.png": png(np.ones((20, 20), np.uint8))[:-20]})
    assert main(["compress", str(results), "--out", str(tmp_path / "out.zip")]) == 1
    assert "dog/1.png: is cut off" in capsys.readouterr().err


@pytest.mark.parametrize("ending", [".json.gz", ".zip"])
def test_scans_are_sent_as_they_are(ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scans = folder_of(tmp_path / "scans", {"sequences/08/predictions/000000.label": bytes(400)})
    assert main(["compress", str(scans), "--out", str(tmp_path / f"small{ending}")]) != 0
    complaint = capsys.readouterr().err
    assert "holds neither PNGs nor JSON, only sequences/08/predictions/000000.label. Send it as it is" in complaint


def test_other_endings_are_refused(tmp_path: Path) -> None:
    assert main(["compress", str(STRONG), "--out", str(tmp_path / "out.7z")]) == 2
