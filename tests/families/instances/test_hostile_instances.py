"""The maximum cost of a submission of instance masks, and numbers and characters that no honest one contains."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

from segjudge.evaluation_script.families.instances import engine as instances
from segjudge.evaluation_script.families.instances import json_parts, submission
from segjudge.evaluation_script.families.instances import truth as instance_truth
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.files.limits import INSTANCE_LIMITS, ArchiveLimits, read_json
from segjudge.evaluation_script.files.problems import Flaw, SubmissionError
from segjudge.evaluation_script.masks import polygons, rings
from segjudge.evaluation_script.masks import run_lengths as rle
from tests.builders import score_instances

coco = pytest.importorskip("pycocotools.mask")

HEIGHT, WIDTH = SIZE = (480, 640)
PIXELS = HEIGHT * WIDTH
EMPTY = rle.compress([PIXELS])
NOISE = rle.compress([1] * PIXELS)

#: The memory that the reader may take: a fixed part, and a part for each byte.
MEMORY_ANYWAY, MEMORY_PER_BYTE = 64 << 20, 12
#: The CPU time that the reader may take, as a multiple of `json.loads`'s, which counts as these seconds at least: it
#: passes over a long text, of which numpy decodes the counts one by one.
JSON_LOADS, LEAST = 10, 0.02 if os.environ.get("SEGJUDGE_KERNEL") == "off" else 0.01

TRUTH = {
    "images": [{"id": 1, "height": HEIGHT, "width": WIDTH}],
    "categories": [{"id": 1, "name": "bed"}],
    "annotations": [
        {
            "id": 1, "image_id": 1, "category_id": 1, "area": 100, "iscrowd": 0,
            "segmentation": {"size": [HEIGHT, WIDTH], "counts": rle.compress([5, 100, PIXELS - 105])},
        }
    ],
}  # fmt: skip


def record(segmentation: Any = None, **others: Any) -> dict[str, Any]:
    mask = {"size": [HEIGHT, WIDTH], "counts": EMPTY} if segmentation is None else segmentation
    return {"image_id": 1, "category_id": 1, "score": 0.9, "segmentation": mask, **others}


def with_counts(counts: Any) -> dict[str, Any]:
    return record({"size": [HEIGHT, WIDTH], "counts": counts})


def read(data: bytes, folder: Path, protocol: str = "places2017") -> instances.InstanceScore:
    path = folder / "upload"
    path.write_bytes(data)
    known = instance_truth.read_document(json.dumps(TRUTH).encode(), "truth")
    return score_instances(str(path), known, INSTANCE_PROTOCOLS[protocol], INSTANCE_LIMITS)


def outcome(data: bytes, folder: Path, protocol: str = "places2017") -> str:
    """`scored`, or the rejection; anything else is our defect and fails the test."""
    try:
        read(data, folder, protocol)
    except SubmissionError as error:
        return str(error)
    return "scored"


def repeated(one: Any, length: int) -> bytes:
    text = one if isinstance(one, str) else json.dumps(one)
    return ("[" + ", ".join([text] * max(1, length // (len(text) + 2))) + "]").encode()


def noted(note: str) -> bytes:
    return json.dumps([record(note=note), record()]).encode()


def zigzag(corners: int) -> list[float]:
    return [value for corner in range(corners) for value in ((0, 0) if corner % 2 else (WIDTH, HEIGHT))]


def scattered(rings: int) -> list[list[int]]:
    starts = [(7 * ring % WIDTH, 3 * ring % HEIGHT) for ring in range(rings)]
    return [[x, y, x + 2, y, x + 2, y + 2] for x, y in starts]


#: Each makes about this many bytes of JSON.
COSTLY: dict[str, Callable[[int], bytes]] = {
    "good": lambda n: repeated(record(), n),
    "borders-in-texts": lambda n: repeated(record(note="}, {" * 1500), n),
    "borders-in-long-texts": lambda n: repeated(record(note="}, {" * (1 << 18)), n),
    "escaped-borders": lambda n: repeated(record(note='\\"}, {\\' * 1000), n),
    "borders-in-lists": lambda n: repeated(record(note=[{"a": 1}] * 3000), n),
    "counts-of-zeros": lambda n: json.dumps([with_counts("0" * n)]).encode(),
    "counts-of-noise": lambda n: repeated(with_counts(NOISE), n),
    "counts-not-ascii": lambda n: json.dumps([with_counts("\u0100" * (n // 6))]).encode(),
    "short-lists": lambda n: repeated(with_counts([PIXELS]), n),
    "long-lists": lambda n: repeated(with_counts([1] * PIXELS), n),
    "small-polygons": lambda n: repeated(record([[1, 1, 5, 1, 5, 5]]), n),
    "small-rings": lambda n: json.dumps([record(scattered(n // 25))]).encode(),
    "long-outlines": lambda n: repeated(record([zigzag(200)]), n),
    "endless-outline": lambda n: json.dumps([record([zigzag(n // 9)])]).encode(),
    "zeros": lambda n: b"[" + b"0," * (n // 2) + b"0]",
    "lists": lambda n: b"[" + b"[]," * (n // 3) + b"[]]",
    "objects": lambda n: b"[" + b'{"":0},' * (n // 7) + b"{}]",
    "lists-in-a-record": lambda n: json.dumps([record(note=[[]] * (n // 4))]).encode(),
    "numbers-in-a-record": lambda n: json.dumps([record(note=[-9] * (n // 4))]).encode(),
    "keys-in-a-record": lambda n: json.dumps([{str(key): 1 for key in range(n // 12)}]).encode(),
    "long-text": lambda n: noted("a" * n),
    "wide-text": lambda n: json.dumps([record(note="a" * (n // 2) + "\U0001f600" * (n // 8))], ensure_ascii=False).encode(),
    "escaped-text": lambda n: noted("\u00e9" * (n // 6)),
    "endless-text": lambda n: noted("a" * n)[:-200],
    "bad-scores": lambda n: repeated(record(score="high"), n),
    "a-few-bad-scores": lambda n: json.dumps([record(score=0.9 if k % 1000 else None) for k in range(n // 130)]).encode(),
    "other-categories": lambda n: repeated(record(category_id=77), n),
    "blanks": lambda n: b"[" + b" " * n + b"]",
    "blanks-after": lambda n: b"[]" + b" " * n,
    "deep": lambda n: b"[" * n,
}  # fmt: skip


def in_child(work: Callable[[], Any]) -> tuple[float, int]:
    """Return the CPU seconds and additional bytes of some work in a child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            memory = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            Path("/proc/self/clear_refs").write_text("5")
            started = time.process_time()
            work()
            seconds = time.process_time() - started
            status = Path("/proc/self/status").read_text()
            most = int(status.split("VmHWM:")[1].split()[0]) * 1024
            os.write(writer, json.dumps([seconds, most - memory]).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        answer = file.read()
    os.waitpid(child, 0)
    seconds, memory = json.loads(answer)
    return seconds, memory


def loaded(data: bytes) -> None:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", COSTLY)
def test_whatever_is_sent_costs_memory_and_cpu_in_proportion(name: str, tmp_path: Path) -> None:
    data = COSTLY[name](2_000_000)
    is_counted = "outline" in name  # their cost is counted below

    for _ in range(1 if is_counted else 6):  # CPU is not memory: other processes beside this one slow it down
        anyway = in_child(lambda: outcome(b"[]", tmp_path))[0]  # what a submission costs that holds nothing
        seconds, memory = in_child(lambda: outcome(data, tmp_path))
        allowed = anyway + JSON_LOADS * max(LEAST, in_child(lambda: loaded(data))[0])
        assert memory <= MEMORY_ANYWAY + MEMORY_PER_BYTE * len(data)
        if seconds <= allowed:
            break
    assert seconds <= allowed or is_counted


@pytest.mark.parametrize("size", [1, 2, 7, 64, 1000])
def test_wherever_a_piece_ends_the_records_are_the_same(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = [
        "}, {", '"}, {"', "\\", "\\\\", '\\"', "é€\U0001f600", "]", '[{"a": "}, {"}, {}]',
        {"a": [{"b": 1}, {"c": "},{"}]},
    ]  # fmt: skip
    sent = [record(score=k / 100, note=note, x=[1.5, -2, {"y": None}]) for k, note in enumerate(notes * 3)]
    data = json.dumps(sent, ensure_ascii=False, indent=1 if size % 2 else None).encode()
    for module in (json_parts, submission):
        monkeypatch.setattr(module, "CHUNK_BYTES", size)
    parts = (data[start : start + size] for start in range(0, len(data), size))
    assert [record for part in json_parts.cut_json(parts) for record in part.records] == sent


#: Characters whose UTF-8 bytes, or whose replacement, could be read as run lengths.
ODD = ["\u0100", "\u00ff", "\u00e9", "\ud800", "\udfff", "\U0001f600", "\0", "\x7f", "/", "p", "\n", "\u0130", "\uff10"]


@pytest.mark.parametrize("place", ["start", "middle", "end", "alone"])
@pytest.mark.parametrize("character", ODD, ids=[f"{ord(item):x}" for item in ODD])
def test_a_character_that_run_lengths_do_not_have_never_reaches_pycocotools(
    character: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pycocotools.mask.iou", lambda *_: pytest.fail("it was reached"))
    text = TRUTH["annotations"][0]["segmentation"]["counts"]  # type: ignore[index]
    counts = {
        "start": character + text,
        "middle": text[:2] + character + text[2:],
        "end": text + character,
        "alone": character,
    }[place]
    for others in ([], [record()] * 50):
        data = json.dumps([*others, with_counts(counts)]).encode()
        assert "invalid characters" in outcome(data, tmp_path)
    with pytest.raises(Flaw, match="invalid characters"):
        rle.runs_of(counts, PIXELS)


NUMBERS = {
    "10^400": "1" + "0" * 400, "-10^400": "-1" + "0" * 400, "10^30": "1" + "0" * 30, "2^53+1": str(2**53 + 1),
    "2^60": str(2**60), "2^63": str(2**63), "-2^63": str(-(2**63)), "2^64": str(2**64), "10^5000": "1" + "0" * 5000,
    "1e400": "1e400", "-1e400": "-1e400", "nan": "NaN", "inf": "-Infinity", "-0.0": "-0.0", "-0": "-0",
    "1e308": "1e308", "5e-324": "5e-324", "true": "true", "null": "null", "1.0": "1.0", "text": '"1"',
    "surrogate": '"\\ud800"', "list": "[1]", "object": "{}",
}  # fmt: skip
MARK = "@number@"
PLACES: dict[str, Any] = {
    "score": record(score=MARK), "image": record(image_id=MARK), "category": record(category_id=MARK),
    "height": record({"size": [MARK, WIDTH], "counts": EMPTY}),
    "width": record({"size": [HEIGHT, MARK], "counts": EMPTY}), "size": record({"size": MARK, "counts": EMPTY}),
    "counts": with_counts(MARK), "run": with_counts([MARK, 0]), "corner": record([[1, 1, MARK, 5, 9, 9]]),
    "ring": record([MARK]), "mask": record(MARK), "box": record(bbox=[1, 1, MARK, 5]), "area": record(area=MARK),
    "note": record(note=MARK), "record": MARK,
}  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("number", NUMBERS)
def test_any_number_anywhere_is_scored_or_the_participants_mistake(number: str, place: str, tmp_path: Path) -> None:
    item = json.dumps(PLACES[place]).replace(f'"{MARK}"', NUMBERS[number])
    for protocol in ("coco-box",) if place == "box" else ("places2017",):
        alone = outcome(f"[{item}]".encode(), tmp_path, protocol)
        beside = [json.dumps(record(bbox=[1, 1, 2, 2], score=score)) for score in ("high", 0.5)]
        others = [outcome(f"[{item}, {second}]".encode(), tmp_path, protocol) for second in beside]
        assert (alone == "scored") == (others[1] == "scored"), others[1]
        assert ("record 0" in alone) == ("record 0" in others[0])
        if "record 0" in alone:
            assert alone in others[1]


def test_a_key_may_be_there_once_in_either_track(tmp_path: Path) -> None:
    text = json.dumps([record()])
    for key in ("score", "size", "counts", "note"):
        twice = text.replace('"score"', f'"{key}": 1, "{key}": 2, "score"', 1).replace("note", "n\\u006fte", 1)
        assert "twice in one object" in outcome(twice.encode(), tmp_path)
    with pytest.raises(Flaw, match="the key a twice in one object"):
        read_json(b'{"a": 1, "\\u0061": 2}', ArchiveLimits(), "[]")


def test_rings_joined_in_parts_are_what_pycocotools_makes_of_all_at_once() -> None:
    lot = np.random.default_rng(1)
    for count in (1, 2, 15, 16, 17, 40, 300):
        rings = [(lot.random(2 * int(lot.integers(3, 7))) * 80 - 10).tolist() for _ in range(count)]
        whole = coco.merge(coco.frPyObjects(rings, 60, 50))["counts"].decode()
        assert polygons.polygon_mask(rings, 60, 50) == whole


@pytest.mark.long
def test_polygons_are_measured_before_they_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    real = rings.mask_of

    def counted(rings: Any, height: int, width: int) -> str:
        drawn.append(polygons.outlines([rings], np.array([WIDTH])).cost)
        return real(rings, height, width)

    monkeypatch.setattr(rings, "mask_of", counted)
    data = repeated(record([zigzag(3)]), 3_000_000)
    assert "holds polygons whose outlines are" in outcome(data, tmp_path)
    assert sum(drawn) <= polygons.outline_limit(len(data)) + polygons.outline_limit(
        submission.CHUNK_BYTES
    )  # the piece that was one too many
    drawn.clear()
    assert "outline is 799,969 pixels long; the limit is 250,000" in outcome(
        json.dumps([record([[*zigzag(1248), 0, 0]])]).encode(), tmp_path
    )
    assert not drawn


def test_bad_records_are_counted_up_to_a_thousand(tmp_path: Path) -> None:
    assert " and at least 997 more: each " in outcome(repeated(record(score=None), 3_000_000), tmp_path)
    assert " and 996 more: each is not an object" in outcome(json.dumps([5] * 999).encode(), tmp_path)
