"""The masks of a sequence in each submitted form: which objects are read, where they are, and their faults."""

from __future__ import annotations

from typing import Any, Iterator, List, Optional

import numpy as np
import pytest

from segjudge.evaluation_script.files.limits import Files
from segjudge.evaluation_script.files.problems import Flaw, Problems
from segjudge.evaluation_script.masks import png as reader
from segjudge.evaluation_script.masks.backend import NumpyBackend, backend
from segjudge.evaluation_script.masks.files import (
    GreyFolders,
    LabelImages,
    MaskFiles,
    ObjectFolders,
    RunLengths,
    SalientImages,
)
from segjudge.evaluation_script.masks.stack import WORD, unpack
from tests.backends import COMPILED, compiled, use
from tests.builders import chunk, png, raw_png, run_length_text

FRAMES = ["00000", "00001"]
#: Wider than a word; an object of two words, one at the right border, and nothing.
SIZE = (4, 70)
BOTH, RIGHT, NONE = (np.zeros(SIZE, np.uint8) for _ in range(3))
BOTH[1:3, 60:66] = 1
RIGHT[2:, 69] = 1


@pytest.fixture(autouse=True, params=["kernel", "numpy"])
def _by_both(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "kernel" and not COMPILED.exists():
        pytest.skip("KERNEL ABSENT")
    use(monkeypatch, compiled() if request.param == "kernel" else NumpyBackend())


class _InMemory(Files):
    def __init__(self, contents: dict[str, bytes]) -> None:
        super().__init__()
        self._contents = contents
        self.sizes = {name: len(data) for name, data in contents.items()}

    def read_chunks(self, name: str) -> Iterator[bytes]:
        if name not in self._contents:
            raise Flaw("is gone", "Look for it")
        data = self._contents[name]
        yield from ([data] if data else [])


def masks_of(files: MaskFiles, size: Any = SIZE, frames: Optional[List[str]] = None) -> Any:
    """Return the pixels of every object (frame, row, column), or the fault."""
    problems = Problems()
    stacks = files.read_stacks(FRAMES if frames is None else frames, size, problems)
    if stacks is None:
        return [str(problem) for problem in problems]
    assert not problems
    results = {}
    for label, stack in stacks.items():
        rows = unpack(stack.words, WORD * stack.words.shape[2]).nonzero() if stack.words.size else ((), (), ())
        results[label] = [(k, int(y) + stack.top, int(x) + stack.column * WORD) for k, y, x in zip(*rows)]
    return results


def places(*masks: Any) -> Any:
    """Return the pixels of masks, frame by frame."""
    return [(k, int(y), int(x)) for k, mask in enumerate(masks) for y, x in zip(*np.nonzero(mask))]


def test_each_label_of_an_image_is_an_object_and_their_number_is_limited() -> None:
    files = _InMemory({"v/0.png": png(BOTH + 2 * RIGHT), "v/1.png": png(NONE), "v/2.png": png(BOTH)[:50]})
    members = {"00000": "v/0.png", "00001": "v/1.png", "00002": "v/2.png"}
    images = LabelImages(files, members, 2)
    assert images.frames() == {*members}
    assert masks_of(images) == {"1": places(BOTH, NONE), "2": places(RIGHT, NONE)}
    assert masks_of(images, frames=["00001", "00000"]) == {"1": places(NONE, BOTH), "2": places(NONE, RIGHT)}
    assert masks_of(LabelImages(files, members, 1)) == [
        "v/0.png: has 2 objects; this phase allows 1 in a sequence. Send fewer objects."
    ]
    assert masks_of(images, frames=[*members]) == [
        "v/2.png: is cut off: the file ends inside a chunk. Write the file again and repeat the upload."
    ]
    assert masks_of(images, (4, 71)) == [
        "v: each of 2 files (0.png, 1.png) is 70x4 pixels but the frame is 71x4. Save masks at the size of the frames, without resizing."
    ]


def folders_of(kind: Any = ObjectFolders, problems: Any = None, **options: Any) -> Any:
    contents = {
        "v/cow/00000.png": png(BOTH * 255), "v/cow/00001.png": png(NONE), "v/dog/00001.png": png(RIGHT),
    }  # fmt: skip
    contents.update(options.pop("contents", {}))
    members: Any = {}
    for name in contents:
        _, label, file = name.split("/")
        members.setdefault(label, {})[file[:-4]] = name
    return kind(_InMemory(contents), members, Problems() if problems is None else problems, **options)


def test_each_folder_is_an_object_and_pixels_belong_to_one_where_they_must() -> None:
    apart = {"cow": places(BOTH, NONE), "dog": places(NONE, RIGHT)}
    folders = folders_of()
    assert (folders.frames(), list(folders.labels()), folders.faulty) == ({*FRAMES}, ["cow", "dog"], set())
    assert masks_of(folders) == masks_of(folders_of(disjoint_in="v")) == apart
    folders.leave_out(["cow"])
    assert masks_of(folders) == {"dog": places(NONE, RIGHT)}, "and what comes after it is read"
    shared = {"v/ant/00000.png": png(NONE), "v/ant/00001.png": png(RIGHT), "v/bee/00001.png": png(RIGHT)}
    assert masks_of(folders_of(contents=shared))["bee"] == places(NONE, RIGHT)
    assert masks_of(folders_of(contents=shared, disjoint_in="v")) == [
        "v, frame 00001: objects dog and ant share pixels. Give each pixel to one object."
    ]
    required = {"cow": ["00000", "00001", "00002"], "dog": ["00000", "00002"], "elk": ["00000"]}
    assert [str(problem) for problem in folders.missing_frames(required)] == [
        "v/cow/00002.png: is missing. Add a PNG for each frame, black if no object is visible.",
        "v/dog: 2 frames are missing: 00000.png, 00002.png. Add a PNG for each frame, black if no object is visible.",
    ]
    renamed = folders_of(contents={"v/elk/1.png": png(BOTH), "v/elk/00003.png": png(BOTH)})
    assert [str(problem) for problem in renamed.missing_frames({"elk": ["00001", "00002"]})] == [
        "v/elk: 2 frames are missing: 00001.png, 00002.png. Name frames as the truth does: 00001.png, not 1.png."
    ]


def test_a_mask_of_one_object_has_two_values_unless_it_may_have_many() -> None:
    many = {"v/cow/00000.png": png(BOTH * 255 + RIGHT), "v/ant/00000.png": png(BOTH[:, 1:])}
    assert masks_of(folders_of(contents=many)) == [
        "v/cow/00000.png: holds more than two values. Save the mask of one object as 0 and 255.",
        "v/ant/00000.png: is 69x4 pixels but the frame is 70x4. Save masks at the size of the frames, without resizing.",
    ], "each object is looked at"
    del many["v/ant/00000.png"]
    read = masks_of(folders_of(contents=many, many_values=True))
    assert read == {"cow": places(BOTH | RIGHT, NONE), "dog": places(NONE, RIGHT)}


@pytest.mark.parametrize(("limit", "expected"), [
    (1, ["v/cow/00000.png: has 2 objects; this phase allows 1 in a sequence. Send fewer objects."]), (2, []),
])  # fmt: skip
def test_folders_and_run_lengths_have_at_most_so_many_objects(limit: int, expected: List[str]) -> None:
    problems = [Problems(), Problems()]
    folders_of(problems=problems[0], limit=limit)
    RunLengths("v/cow/00000.png", {"a": [], "b": []}, [], problems[1], overlapping=True, limit=limit)
    assert [[str(problem) for problem in some] for some in problems] == [expected, expected]


def test_grey_masks_are_read_as_bright_as_opencv_reads_them() -> None:
    greys = np.arange(4 * 70).reshape(SIZE) % 256
    colours = np.random.default_rng(1).integers(0, 256, (256, 3)).astype(np.uint8)
    bright = (colours.astype(int) @ [9797, 19234, 3737] >> 15).astype(np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in greys.astype(np.uint8))

    def palette(count: int) -> bytes:
        return raw_png(
            70, 4, 8, reader.PALETTE, rows, chunk(b"tEXt", b"a\0b"), chunk(b"PLTE", colours[:count].tobytes())
        )

    known = np.where(np.arange(256) < 9, bright, 0)
    contents = {
        "v/cow/8.png": png(greys.astype(np.uint8)), "v/cow/16.png": png((greys * 256 + 255).astype(np.uint16)),
        "v/cow/256.png": palette(256), "v/cow/9.png": palette(9), "v/cow/3.png": png(colours[greys]),
        "v/cow/4.png": png(np.dstack([colours[greys], greys.astype(np.uint8)])), "v/cow/1.png": png(greys > 99),
    }  # fmt: skip
    folders = folders_of(GreyFolders, contents=contents)
    expected = {
        "8": greys, "16": greys, "256": bright[greys], "9": known[greys], "3": bright[greys], "4": bright[greys],
        "1": (greys > 99) * 255,
    }  # fmt: skip
    for frame, values in expected.items():
        read = folders.read_greys("cow", frame, SIZE)
        assert (read.dtype, read.tolist()) == (np.dtype(np.uint8), values.tolist()), frame
    frames = [*expected]
    problems = Problems()
    stack = folders.read_stack("cow", frames, SIZE, problems)
    truth = np.zeros((len(frames), *SIZE), bool)
    truth[:, stack.top :, : SIZE[1]] = unpack(stack.words, 128)[:, :, :70]
    assert truth.tolist() == [(values != 0).tolist() for values in expected.values()]


def test_codes_are_colours_of_eight_bits_and_labels_are_not() -> None:
    colours = np.random.default_rng(2).integers(0, 256, (*SIZE, 4)).astype(np.uint8)
    red, green, blue = colours[..., :3].astype(int).transpose(2, 0, 1)
    greys, rows, wide = (
        colours[..., 0],
        b"".join(b"\0" + row.tobytes() for row in colours[..., 0]),
        bytes(4 * (1 + 6 * 70)),
    )
    for channels in (3, 4):
        codes = backend().read_codes(png(colours[..., :channels]), SIZE)
        assert codes.tolist() == (red + 256 * green + 65_536 * blue).tolist()
    assert backend().read_labels(png(greys), SIZE).tolist() == greys.tolist()
    palette = chunk(b"PLTE", bytes(768))
    for data in (
        png(greys),
        png(greys.astype(np.uint16)),
        png(greys > 9),
        raw_png(70, 4, 8, 3, rows, palette),
        raw_png(70, 4, 16, 2, wide),
    ):
        with pytest.raises(Flaw, match="^is not an RGB picture with 8 bits per channel$"):
            backend().read_codes(data, SIZE)
    for data, message in (
        (png(colours[..., :3]), "is a colour image whose pixel"),
        (raw_png(70, 4, 16, 2, wide), "is a 16-bit colour image"),
    ):
        with pytest.raises(Flaw, match=message):
            backend().read_labels(data, SIZE)
    with pytest.raises(Flaw, match="is 70x4 pixels but the frame is 4x70"):
        backend().read_codes(png(colours), (70, 4))


def test_what_is_wrong_with_a_grey_mask_is_said_of_each_where_it_is_read() -> None:
    long = png(BOTH).ljust((1 << 20) + 8 * 4 * 70 + 1, b"\0")
    contents = {
        "v/cow/00000.png": png(BOTH)[:50],
        "v/cow/00001.png": long,
        "v/dog/00000.png": b"",
        "v/dog/2.png": long[:-1],
    }
    folders, save_again = folders_of(GreyFolders, contents=contents), "Save the mask again as a palette or grey PNG"
    assert masks_of(folders) == [
        "v/cow/00000.png: is cut off: the file ends inside a chunk. Write the file again and repeat the upload.",
        f"v/cow/00001.png: has 1,050,817 bytes; a mask of this size takes at most 1,050,816. {save_again}.",
        "v/dog/00000.png: is empty. Save masks as PNG.",
    ]
    assert folders.read_greys("dog", "2", SIZE).tolist() == BOTH.tolist()
    wanted: Any = {"cow": {"00001": SIZE}, "dog": {"00001": SIZE, "00000": (9, 9)}}
    assert [folders.fits(label, sizes) for label, sizes in wanted.items()] == [True, True], (
        "the empty one is told of later"
    )
    for label, sizes in (
        ("cow", {"00001": (70, 4)}), ("cow", {"00001": SIZE, "00003": SIZE}), ("elk", {"00001": SIZE}), ("dog", {"2": SIZE, "00001": (4, 71)}),
    ):  # fmt: skip
        assert not folders.fits(label, sizes)
    assert folders.fits("elk", {})


@pytest.mark.parametrize(("values", "foreground"), [
    ((0, 1), (1,)), ((0, 255), (255,)), ((0, 126, 127, 128), (127, 128)), ((0, 1, 255), (255,)), ((255,), (255,)), ((0,), ()),
    ((0, 7), "holds the values [0, 7]"), ((1, 255), "holds the values [1, 255]"), ((0, 127), "holds the values [0, 127]"),
])  # fmt: skip
def test_a_salient_mask_is_two_values_or_cut_at_one_half(values: Any, foreground: Any) -> None:
    labels = np.resize(np.array(values, np.uint8), SIZE)
    files = _InMemory({"v/0.png": png(BOTH), "v/1.png": png(labels)})
    images = SalientImages(files, {"00000": "v/0.png", "00001": "v/1.png"})
    read = masks_of(images)
    if isinstance(foreground, str):
        assert read == [f"v/1.png: {foreground}. Save one salient mask as 0 and 255, or as 0 and 1."]
    else:
        assert read == {"salient": places(BOTH, np.isin(labels, foreground))}


def test_run_lengths_are_a_list_for_each_object_with_a_mask_or_null_for_each_frame() -> None:
    def encoding(mask: Any) -> Any:
        return {"size": [*mask.shape], "counts": run_length_text(mask != 0)}

    def read(objects: Any, overlapping: bool = False, unread: Any = ()) -> Any:
        problems = Problems()
        masks = RunLengths("v", objects, FRAMES, problems, overlapping=overlapping, limit=3)
        masks.leave_out(unread)
        assert masks.frames() == {*FRAMES}
        return [str(problem) for problem in problems] or masks_of(masks)

    both, right = encoding(BOTH), encoding(RIGHT)
    assert read({"a": [both, None], "b": [right, both], "c": [None, None]}) == {
        "a": places(BOTH),
        "b": places(RIGHT, BOTH),
    }
    assert read({"a": [both, None], "b": [both, None]}, overlapping=True) == {"a": places(BOTH), "b": places(BOTH)}
    assert read({"0": [both, None], "b": [both, None]}, unread={"0"}) == {"b": places(BOTH)}
    remedy = "Give one mask or null for each of the 2 frames, the first and last included."
    assert read({"a": [both], "b": {}, "c": [None] * 3}) == [
        f"v, object a: has 1 mask. {remedy}", f"v, object b: is not a list of masks. {remedy}",
        f"v, object c: has 3 masks. {remedy}",
    ]  # fmt: skip
    assert read([both]) == ['v: is not an object of objects. Write {"sequence": {"object": [rle or null, ...]}}.']
    assert read({"a": [None, {**right, "size": [4, 69]}], "b": [{**both, "counts": "0"}, both]}) == [
        "v, object a, mask 1: has the size [4, 69] but the frame is [4, 70] (height, width). Encode the mask at the size of the frame.",
        "v, object b, mask 0: has counts that add up to 0, not to the 280 pixels of the frame. Encode it with pycocotools or as it does.",
    ]
