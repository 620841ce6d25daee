"""The results of `compress` and the writers of masks, their rejections, and the demo's drawings by seed, as one text."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.masks import png as reader
from segjudge.families.sequences import comparison
from segjudge.families.sequences.compression import compress
from segjudge.masks import compression, demo
from segjudge.masks.compression import code_png, grey_png, label_png
from segjudge.masks.run_lengths import decode_labels, encode_labels, runs_of_mask
from segjudge.masks.tiff import encode_tiff
from tests.builders import written, zipped
from tests.calls import labels, read_session, run_session
from tests.pages import digest

FILE = Path(__file__).parents[1] / "golden/small_files.txt"


def write_small_files() -> str:
    """Return the output of the session, which runs in a folder of its own."""
    return run_session(read_session(FILE), {
        "np": np, "os": os, "io": io, "Image": Image, "L": labels, "png": _save, "make": _make, "pack": _pack, "small": _compress,
        "look": _look, "d": _digest_array, "digest": digest, "drawn": _draw, "demo": demo, "comparison": comparison,
        "grey_png": grey_png, "label_png": label_png, "code_png": code_png, "encode_tiff": encode_tiff,
        "encode_labels": encode_labels, "decode_labels": decode_labels, "runs_of_mask": runs_of_mask,
        "in_colours": _color, "Objects": Objects, "without_libdeflate": _leave_out_libdeflate,
    })  # fmt: skip


class Objects(NamedTuple):
    """A sequence with only the objects' numbers."""

    objects: dict[str, Any]


def _leave_out_libdeflate(call: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "LIBDEFLATE", False)
        return call()


def _color(values: Any) -> Any:
    image = Image.fromarray(values)
    image.putpalette(list(range(256)) * 3)
    return image


def _save(values: Any) -> bytes:
    """Write a picture that compression makes smaller on every machine."""
    out = io.BytesIO()
    (values if isinstance(values, Image.Image) else Image.fromarray(values)).save(out, "PNG", compress_level=0)
    return out.getvalue()


def _make(name: str, files: Any) -> None:
    written(Path(name), files)


def _pack(name: str, files: Any) -> None:
    data = {key: value if isinstance(value, (bytes, str)) else json.dumps(value) for key, value in files.items()}
    Path(name).write_bytes(zipped(data, 0))


def _compress(results: str, out: str, protocol: str = "") -> str:
    """Compress; describe the comparison and the file.  Its size depends on zlib."""
    steps: list[str] = []
    try:
        saving = compress(results, out, lambda *step: steps.append(str(step)), PROTOCOLS.get(protocol))
    except Exception as error:  # noqa: BLE001 - whatever is raised is what is looked for
        return re.sub(r"[\d.]+ (kB|bytes|MB)", "N bytes", f"{type(error).__name__}: {error}")
    assert saving.before > saving.after == os.path.getsize(out)
    return "; ".join([saving.compared, f"objects {saving.of_objects}", " ".join(steps), _read(Path(out).read_bytes())])


def _read(data: bytes) -> str:
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return ", ".join(
                f"{entry.filename} {entry.date_time[0]} {_look(archive.read(entry))}" for entry in archive.infolist()
            )
    return gzip.decompress(data).decode()[:600]


def _look(data: bytes, page: int = 0) -> str:
    """Describe a picture: its kind, size, bits, colours and pixels."""
    if not data.startswith((b"\x89PNG", b"II")):
        return repr(data[:30])
    with Image.open(io.BytesIO(data)) as image:
        image.seek(page)
        kind = f" {reader.sample_kind_of(data)}" if data.startswith(b"\x89PNG") and not reader.is_coloured(data) else ""
        colours = f" {len(image.palette.palette) // 3} colours {digest(image.palette.palette)}" if image.palette else ""
        return f"{image.mode} {image.size}{kind}{colours} {_digest_array(np.asarray(image))}"


def _digest_array(values: Any) -> str:
    return digest(np.ascontiguousarray(values).tobytes())


def _draw(video: demo.Scene) -> str:
    frames = [_digest_array(video.truth(frame)) for frame in range(video.frames)]
    return f"{video.name} {video.size} {video.frames} {len(video.shapes)} {video.rim} {digest(repr(frames).encode())} {_digest_array(video.picture(1))}"


if __name__ == "__main__":
    FILE.write_text(write_small_files())
