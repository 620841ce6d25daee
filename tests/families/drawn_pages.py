"""What pages draw where pictures are given, where there is little room, and where videos are long, as one text.

    python -m tests.families.drawn_pages

writes it to `tests/golden/drawn_pages.txt`, for changes that are meant to be seen.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import segjudge
from segjudge.families.base import drawing, painted
from segjudge.report.page import PageOptions
from segjudge.scoring.report import make_report
from tests.calls import run_session
from tests.pages import digest
from tests.scoring.mistakes import write_mistakes

FILE = Path(__file__).parents[1] / "golden/drawn_pages.txt"

#: Where pictures are looked for, and how much of them and of masks a page has room for.
PICTURES = """
vspw = scored("vspw"); names = frames(vspw)
names
pictures("a", [f"{unit}/{frame}.jpg" for unit in names for frame in names[unit]]); drawn(vspw, "a")
pictures("b", [f"{unit}/origin/{frame}.png" for unit in names for frame in names[unit][::2]]); drawn(vspw, "b")
pictures("c", ["00000001.PNG", "a/00000000.webp", "a/00000000.jpg", "b/img1/00000002.JPEG"]); drawn(vspw, "c")
pictures("d", ["other.jpg"]); drawn(vspw, "d")
drawn(vspw, "nothing")
written("e/a/00000000.jpg", b"no picture"); drawn(vspw, "e")
drawn(vspw, budget=60_000); drawn(vspw, budget=9_000); drawn(vspw, "a", budget=60_000)
with_limits(dict(_MOST_UNITS=2), vspw); with_limits(dict(_MOST_PIXELS=400_000), vspw); with_limits(dict(_DRAWN=3), vspw); with_limits(dict(_MOST_MOMENTS=3, _MOMENTS_OF_UNIT=1), vspw); with_limits(dict(_MOST_PIXELS=400_000, _DRAWN=2), vspw)
drawn(vspw, "a", budget=9_000)
panoptic = scored("coco-panoptic"); frames(panoptic)
pictures("f", ["000000000139.jpg", "000000000140.png", "141.jpg", "000142.jpg"]); drawn(panoptic, "f", budget=3_000_000)
tracks = scored("mots"); frames(tracks)
pictures("g", [f"{unit}/img1/{frame:0>6}.jpg" for unit in frames(tracks) for frame in frames(tracks)[unit]]); drawn(tracks, "g")
with_limits(dict(_DRAWN=3), tracks); with_limits(dict(_MOST_PIXELS=400_000), tracks)
written("r/t/1.json", b'{"text": ["it"], "is_sentence": true, "imageHeight": 8, "imageWidth": 9, "shapes": [{"label": "target", "points": [[1, 1], [1, 6], [7, 6], [7, 1]]}, {"label": "ignore", "points": [[5, 2], [5, 4], [8, 4], [8, 2]]}]}')
written("r/a.jsonl", b'{"image": "1", "segmentation": {"size": [8, 9], "counts": [18, 5, 3, 5, 41]}}'); drawn(score("r/a.jsonl", "r/t", "reasonseg"))
davis = scored("davis2017"); names = {row["sequence"]: [f"{k:05d}" for k in range(70)] for row in davis.tables["sequences"]}
pictures("j0", [f"{name}/{frame}.jpg" for name in list(names)[:2] for frame in names[name]]); drawn(davis, "j0", budget=60_000); drawn(davis, budget=9_000)
for scores, metric in ((davis, "J-Decay"), (davis, "J&F-Mean"), (tracks, "MOTSA")): say(metric, compared(scores, metric))
said()
"""
#: Of other families.
_OTHERS = """
phrases = scored("sa-co-veval"); pictures("h", [f"{unit}.jpg" for unit in frames(phrases)] + ["a/00000.jpg", "00003.jpg"]); drawn(phrases, "h")
asked = scored("refcoco"); frames(asked); pictures("i", ["2.jpg", "000000000003.jpg", "4.png", "000005.jpeg"]); drawn(asked, "i")
for below in ("", "JPEGImages/", "JPEGImages/480p/", "JPEGImages_24fps/"): pictures(f"j{len(below)}", [f"{below}{name}/{frame}.jpg" for name in list(names)[:2] for frame in names[name]]); say(below, drawn(davis, f"j{len(below)}"))
said()
drawn(davis, "d"); drawn(davis, budget=60_000)
coco = scored("coco"); pictures("k", ["1.jpg", "000000000002.jpg", "3.png", "i4.jpg"]); drawn(coco, "k"); drawn(coco, budget=20_000)
film(davis, "a.svg"); film(davis, "b.svg", sequence="b", frames=["00001", "00003"], errors=True); film(davis, "c.svg", images="e", columns=2); film(davis, "c.svg", images="j0", columns=2, width=3.5, sequence="b")
film(davis, "d.svg", sequence="nobody"); film(davis, "d.svg", sequence="b", frames=["99"]); film(davis, "d.gif"); film(davis, "d.svg", columns=0); film(davis, "d.svg", images="d", sequence="b")
film(vspw, "e.svg"); film(vspw, "f.svg", sequence="goat"); film(coco, "g.svg")
"""


def write_pages(session: str = PICTURES + _OTHERS.lstrip()) -> str:
    """Return what a session says, in a folder of its own."""
    said = list[str]()
    space = {
        "scored": _score, "score": segjudge.score, "compared": _compare, "frames": _list_frames, "pictures": _write_pictures, "drawn": _draw, "with_limits": _draw_limited,
        "written": _write, "film": _film, "say": lambda head, text: said.append(f"{head}\n{text}"),
        "said": lambda: ("\n".join(said), said.clear())[0],
    }  # fmt: skip
    return run_session(session, space)


def _score(protocol: str) -> segjudge.Scores:
    folder = Path("truths", protocol)
    folder.mkdir(parents=True)
    files = write_mistakes(protocol, folder)
    return segjudge.score(files.results, files.truth, protocol)


def _list_frames(scores: segjudge.Scores) -> dict[str, list[str]]:
    (scorer,) = scores.open_inputs().scorers.values()
    return {unit.name: [frame.name for frame in unit.load()][:3] for unit in scorer.truth.units[:8]}


def _write_pictures(folder: str, names: list[str]) -> None:
    """Write pictures of different sizes, so that the page tells which it took."""
    for number, name in enumerate(names):
        data = io.BytesIO()
        Image.new("RGB", (10 + number, 8), (number, 90, 200)).save(
            data, {"jpg": "JPEG", "peg": "JPEG", "PEG": "JPEG"}.get(name[-3:], name.rpartition(".")[2].upper())
        )
        _write(f"{folder}/{name}", data.getvalue())


def _write(path: str, data: bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(data)


def _draw(scores: segjudge.Scores, images: str = "", budget: int = 6_000_000) -> str:
    """Say what the sections of a report draw: their streams, and what is said of what is left out."""
    try:
        sections = make_report(scores, "T", PageOptions(images, budget)).sections
    except segjudge.HostError as error:
        return f"HostError: {error}"
    lines = []
    for section in sections:
        names = ("pictures", "wanted", "smaller", "bare", "shown", "looked_at", "units", "of", "moments")
        kept = {name: section.values[name] for name in names if name in section.values}
        if isinstance(kept.get("pictures"), list):
            kept["pictures"] = [(picture.name, picture.size) for picture in kept["pictures"]]  # type: ignore[attr-defined]
        if "moments" in kept:
            kept["moments"] = [tuple(moment.values())[:6] for moment in section.values["moments"]][:4]  # type: ignore[attr-defined]
        if kept or section.streams:
            lines.append(f"{section.title}: {kept}")
        lines += [f"  {name} {_look(data)}" for name, data in section.streams.items()][:12]
        rest = "".join(name + _look(data) for name, data in section.streams.items())
        lines += [f"  {len(section.streams)} streams {digest(rest.encode())}"] if section.streams else []
    return "\n".join(lines)


def _look(data: bytes) -> str:
    try:
        return digest(zlib.decompress(data))
    except zlib.error:
        with Image.open(io.BytesIO(data)) as image:
            return str(image.size)


def _compare(scores: segjudge.Scores, metric: str) -> str:
    """Say which sections compare a method with itself, or why none can."""
    try:
        page = segjudge.compare({"a": scores, "b": scores}, metric=metric).make_page(PageOptions("", 60_000))
    except segjudge.UsageError as error:
        return str(error)
    return ", ".join(section.title for section in page.sections)


def _draw_limited(limits: dict[str, int], scores: segjudge.Scores) -> str:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(drawing if hasattr(drawing, name) else painted, name, value)
        return _draw(scores)


@contextmanager
def _seen() -> Iterator[list[Any]]:
    """Note what figures are made of."""
    figures: list[Any] = []
    from segjudge.scoring import figures as module

    make = module._make_figure

    def note(*size: Any, **options: Any) -> Any:
        figures.append(make(*size, **options))
        return figures[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_make_figure", note)
        patch.setattr(module, "save_figure", lambda figure, path, dpi: None)
        yield figures


def _film(scores: segjudge.Scores, path: str, **choice: Any) -> str:
    """Say what a filmstrip shows: its size, and of each cell the title, the pixels and the outlines."""
    with _seen() as figures:
        try:
            scores.film(path, **choice)
        except (segjudge.UsageError, segjudge.HostError) as error:
            return f"{type(error).__name__}: {error}"
    (figure,) = figures
    cells = []
    for axes in figure.axes:
        pixels = np.asarray(axes.images[0].get_array())
        lines = [str(np.round(line.get_edgecolor(), 2).tolist()) for line in axes.collections]
        cells.append(
            f"{axes.get_ylabel()!r} {axes.get_title()!r} {pixels.shape} {digest(np.ascontiguousarray(pixels).tobytes())} {lines}"
        )
    place = [round(float(edge), 4) for edge in figure.axes[0].get_position().bounds]
    return "\n".join([f"{figure.get_size_inches().round(3).tolist()} {place}", *cells])


if __name__ == "__main__":
    FILE.write_text(write_pages())
