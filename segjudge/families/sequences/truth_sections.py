"""A page on the truth of mask sequences alone: its frames, and what is in them."""

from __future__ import annotations

from segjudge.evaluation_script.families.sequences.losses import SequenceLosses
from segjudge.evaluation_script.families.sequences.truth import VOID, Split, label_order
from segjudge.evaluation_script.masks.stream import MaskStream, in_page, width_for
from segjudge.report.frame_pictures import frame_pictures
from segjudge.report.page import PageOptions, Section, Sections, link

from .sections import player_section


def truth_sections(name: str, truth: Split, options: PageOptions) -> Sections:
    """Return the sections of a split, and the masks of its frames."""
    frames = sum(len(sequence.frames) for sequence in truth.sequences)
    width = width_for(frames, 0, options.budget, pictures=bool(options.images))
    streams, rows, shown = {}, [], []
    for sequence in truth.sequences:
        labels = sorted((label for label in sequence.objects if label != VOID), key=label_order)
        sizes = [block.size for block in sequence.blocks] or [(1, 1)]
        masks, stream = MaskStream(labels, sizes[0], width), f"{name}/{sequence.name}"
        for index, block in enumerate(sequence.blocks):
            masks.add(sequence.read_block(index), block.stop - block.start, block.size)
        streams[stream] = masks.packed({"frames": sequence.frames, "objects": labels})
        widest = max(across for _, across in sizes)
        shown.append(SequenceLosses(sequence.name, sequence.frames, [], {}, widest, stream))
        categories = sorted({facts.category for facts in sequence.objects.values() if facts.category})
        size = f"{sizes[0][1]} × {sizes[0][0]}"
        rows.append([link(sequence.name, stream), len(labels), len(sequence.frames), size, ", ".join(categories)])
    room = options.budget - in_page(streams.values())
    pictures = frame_pictures(options.images, shown, [], room) if options.images else {}
    seen = {"of": "", "bare": 0, "pictures": len(pictures), "wanted": bool(options.images)}
    player = player_section([], shown, {**seen, "smaller": any(one.width > width for one in shown)})
    columns = ["sequence", "objects", "frames", "size", "categories"]
    return [player, Section("tables", "Tables", {"tables": {"sequences": (columns, rows)}})], streams | pictures
