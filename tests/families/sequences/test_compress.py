"""`segjudge compress`: smaller uploads with the same masks, and its rejections."""

from __future__ import annotations

import io
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
from tests.builders import files_of, png, zipped
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
