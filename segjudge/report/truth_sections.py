"""A page on the truth of mask sequences alone: its frames, and what is in them."""

from __future__ import annotations

from segjudge.evaluation_script.mask_stream import MaskStream, in_page, width_for
from segjudge.evaluation_script.sequence_truth import VOID, Split, label_order

from .frame_pictures import picture_bytes, picture_kind, pictures_of
from .page import PageOptions, Section, link


def truth_sections(name: str, truth: Split, options: PageOptions) -> tuple[list[Section], dict[str, bytes]]:
    """Return the sections of a split, and the masks of its frames."""
    frames = sum(len(sequence.frames) for sequence in truth.sequences)
    width = width_for(frames, 0, options.budget, pictures=bool(options.images))
    streams, rows, entries = {}, [], []
    for sequence in truth.sequences:
        labels = sorted((label for label in sequence.objects if label != VOID), key=label_order)
        sizes = [block.size for block in sequence.blocks] or [(1, 1)]
        masks, stream = MaskStream(labels, sizes[0], width), f"{name}/{sequence.name}"
        for index, block in enumerate(sequence.blocks):
            masks.add(sequence.read_block(index), block.stop - block.start, block.size)
        streams[stream] = masks.packed({"frames": sequence.frames, "objects": labels})
        entries.append({"name": sequence.name, "stream": stream, "lost": []})
        categories = sorted({facts.category for facts in sequence.objects.values() if facts.category})
        size = f"{sizes[0][1]} × {sizes[0][0]}"
        rows.append([link(sequence.name, stream), len(labels), len(sequence.frames), size, ", ".join(categories)])
    pictures = _pictures(truth, name, options, options.budget - in_page(streams.values()))
    values = {
        "moments": [], "sequences": entries, "of": "", "bare": 0, "pictures": len(pictures), "frames": frames,
        "wanted": bool(options.images), "alone": True,
        "smaller": any(block.size[1] > width for sequence in truth.sequences for block in sequence.blocks),
    }  # fmt: skip
    data = {"methods": [], "sequences": entries, "moments": [], "kinds": [], "scale": 1}
    tables = {"sequences": {"columns": ["sequence", "objects", "frames", "size", "categories"], "rows": rows}}
    sections = [
        Section("frames", "Frames", values, {**data, "pictures": f"image/{picture_kind()}"}),
        Section("tables", "Tables", {"tables": tables}),
    ]
    return sections, streams | pictures


def _pictures(truth: Split, name: str, options: PageOptions, room: int) -> dict[str, bytes]:
    """Return pictures of frames spread over all sequences, as many as there is room for."""
    pictures: dict[str, bytes] = {}
    paths = pictures_of(options.images, {one.name: one.frames for one in truth.sequences}) if options.images else {}
    step = 1 << 16
    while step and room > 0:
        for sequence, files in paths.items():
            for frame in range(0, len(files), step):
                stream = f"{name}/{sequence}#{frame}"
                if stream not in pictures and room > 0:
                    pictures[stream] = picture_bytes(files[frame])
                    room -= in_page([pictures[stream]])
        step //= 2
    return pictures
