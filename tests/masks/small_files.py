"""The results of `compress` and the writers of masks, their rejections, and the demo's drawings by seed, as one text.

    python -m tests.masks.small_files

writes it to `tests/golden/small_files.txt`. Run it after an intended change, and review the difference.
"""

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
from tests.calls import labels, run_session
from tests.pages import digest

FILE = Path(__file__).parents[1] / "golden/small_files.txt"

SESSION = """
A = np.kron(L("0000000 0110000 0110220 0000220"), np.ones((9, 9), np.uint8)); B = np.roll(A, 3, 1)
pngs = {"dog/00000.png": png(A), "dog/00001.png": png(B), "cat/00000.png": png(B)}
make("results", pngs)
small("results", "a.json.gz", "davis2017")
small("results", "a.json.gz", "vspw")
small("results", "g.zip", "vspw")
small("results", "a.json.gz")
pack("results.zip", {**pngs, "notes.txt": "x" * 900, "empty.txt": ""}); small("results.zip", "b.zip"); small("results.zip", "b.json.gz")
kinds = {"grey": A, "bits": A > 0, "deep": A.astype("u2") * 300, "colours": np.dstack([A * 70, A, A]), "palette": in_colours(A), "four": in_colours(A * 7), "one": A * 0}
pack("kinds.zip", {f"v/{name}.png": png(kind) for name, kind in kinds.items()}); small("kinds.zip", "c.zip")
for name in kinds: pack(f"{name}.zip", {f"v/{k:02d}.png": png(kinds[name]) for k in range(3)}); print(name, small(f"{name}.zip", "d.zip"), small(f"{name}.zip", "d.json.gz"), sep="\\n  ")
printed()
pack("sav.zip", {f"{v}/{k:03d}/{f:05d}.png": png((A == k + 1) * np.uint8(255)) for v in "ab" for k in (0, 1) for f in (0, 4)}); small("sav.zip", "e.json.gz"); small("sav.zip", "e.zip")
pack("order.zip", {"v/9.png": png(A), "v/10.png": png(A)}); small("order.zip", "f.json.gz")
pack("loose.zip", {"9.png": png(A), "10.png": png(A)}); small("loose.zip", "f.json.gz")
pack("nested.zip", {"a/dog/9.png": png(A), "10.png": png(A)}); small("nested.zip", "f.json.gz")
pack("mixed.zip", {"dog/001/9.png": png(A), "dog/10.png": png(A)}); small("mixed.zip", "f.json.gz")
pack("grey.zip", {"dog/0.png": png(A * 120), "dog/1.png": png(A * 127)}); small("grey.zip", "f.json.gz")
pack("segments.zip", {"0.png": png(np.dstack([A, A, A])), "pred.json": {"annotations": []}}); small("segments.zip", "f.json.gz"); small("segments.zip", "f.zip")
pack("nothing.zip", {"a.txt": "b"}); small("nothing.zip", "f.json.gz"); small("nothing.zip", "f.zip")
pack("two.zip", {"a.json": [], "b.json": []}); small("two.zip", "f.json.gz")
pack("one.zip", {"a.json": [{"image_id": 1}] * 90}); small("one.zip", "f.json.gz")
make("folder", {"a.json": [{"image_id": 1}] * 90, "x.txt": "y" * 50}); small("folder", "f.json.gz")
pack("bad.zip", {"v/0.png": png(A)[:60]}); small("bad.zip", "f.zip"); small("bad.zip", "f.json.gz")
small("nothing-here.zip", "g.zip"); small("a.json.gz", "g.json.gz"); small("a.json.gz", "g.zip")
sorted(name for name in os.listdir() if name[0] in "fg")

# Writers of masks
for dtype in ("u1", "u2", "i8", ">u2"): print(dtype, look(grey_png(A.astype(dtype))))
for most in (1, 2, 3, 4, 15, 16, 255): print(most, look(label_png((A > 0) * np.uint8(most))))
printed()
look(label_png(A * 0)), look(label_png(A[:, :5])), look(label_png(A[:2, :3], 1))
look(code_png(A.astype("u4") * 70000)), look(code_png(A[:2, :3].astype("i8") + 65537, 1))
tiff = encode_tiff(np.stack([A, B])); len(tiff) % 2, look(tiff), [look(tiff, page) for page in (0, 1)]
encode_labels(L("0110 0220 0020")), encode_labels(np.zeros((0, 3))), encode_labels(L("11 11")), encode_labels(L("10 01") * np.int64(70000))
decode_labels(encode_labels(L("0110 0220 0020")).items(), (3, 4)).tolist()
decode_labels([(1, "02"), (2, "02")], (1, 2))
decode_labels([(2, "02"), (1, "02")], (1, 2), overlapping=True).tolist()
decode_labels([(1, "03")], (1, 2))
runs_of_mask(L("0110 0010") > 0), runs_of_mask(L("1100 1000") > 0), runs_of_mask(L("11 11") > 0), runs_of_mask(L("00 00") > 0)

without_libdeflate(lambda: [look(grey_png(A)), look(label_png(A * 9)), small("one.zip", "h.json.gz")])

# How similar masks are
compared = comparison.FrameComparison(np.stack([A] * 40), [1, 2, 3])
[np.round(values[[0, 39]], 5).tolist() for values in compared.similarities(np.stack([B] * 40))]
[np.round(values[[0, 39]], 5).tolist() for values in compared.similarities(np.stack([A * 0] * 40))]
[comparison.ids_of(Objects({name: [] for name in names.split()})) for names in ("10 2 void", "1 254", "1 255", "001 000 void", "b a", "")]
[len(comparison.disk_of(share, (30, 40))) for share in (0.008, 0.05, 1, 2.5)]

# What the seeds draw
for phase, splits in demo.demo_videos(7).items(): print(*(drawn(video) for videos in splits.values() for video in videos), sep="\\n")
printed()
drawn(demo.scene("mine", 3, objects=2, frames=4)), drawn(demo.scene("mine", 3, objects=3, frames=4, hard=True))
[drawn(video) for video in demo.scenes_of([("x", 2, 5, True), ("y", 4, 7, False)], "salt", 1)]
video = demo.demo_videos(7)["sequences-dev"]["dev"][1]
[d(video.labels(frame, grow)) for frame in (0, 9) for grow in (0, 1.5, -2, -40)], d(video.picture(4)), d(video.truth(4))
[(name, d(frame)) for name, frame in demo.label_frames(video)][:3], list(demo.object_numbers(video))
[(number, digest(repr(masks).encode()), masks[0], masks[-1]) for number, masks in demo.mask_records(video).items()]
[(number, d(frame)) for number, frame in demo.still_images([video, video])]
images = demo.instance_images(7); [[(one.category, round(one.radius, 3), round(one.turn, 3)) for one in image] for image in images[:3]], len(images)
[d(demo.places_png(image)) for image in images[:4]], [d(one.mask(dy, dx, grow)) for one in images[0][:4] for dy, dx, grow in ((0, 0, 0), (1.5, -2, 3), (0, 0, -99))]
demo.image_name(3), [(name, d(np.asarray(Image.open(io.BytesIO(data))))) for name, data in list(demo.davis_files([video]))[:2]]
demo.write_frames("frames", 7); [(folder, len(os.listdir(f"frames/{folder}")), d(np.asarray(Image.open(f"frames/{folder}/first.png")))) for folder in sorted(os.listdir("frames"))]
"""


def write_small_files() -> str:
    """Return the output of the session, which runs in a folder of its own."""
    return run_session(SESSION, {
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
