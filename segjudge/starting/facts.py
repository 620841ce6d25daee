"""What the texts of a new challenge say of its truth."""

from __future__ import annotations

from typing import Any

from segjudge.evaluation_script.families.base.family import TrackProtocol
from segjudge.evaluation_script.families.base.units import UnitTruth
from segjudge.evaluation_script.families.instances.protocols import InstanceProtocol
from segjudge.evaluation_script.families.instances.truth import InstanceTruth
from segjudge.evaluation_script.families.panoptic.protocols import PanopticProtocol
from segjudge.evaluation_script.families.sequences.protocols import MissingRule, SequenceProtocol
from segjudge.evaluation_script.families.sequences.truth import Split
from segjudge.evaluation_script.families.tracking.protocols import TracksProtocol
from segjudge.evaluation_script.files.problems import quantity, verb

Facts = dict[str, Any]


def sequence_facts(truths: list[Split], protocol: SequenceProtocol) -> Facts:
    """Return the facts of mask sequences."""
    sequences = [sequence for truth in truths for sequence in truth.sequences]
    frames = quantity(sum(len(sequence.frames) for sequence in sequences), "frame")
    videos = quantity(len(sequences), "video")
    within = f"{protocol.rounds[0]}/" if protocol.rounds else ""
    # Only where objects are expressions each of them has to be answered.
    referring = bool(protocol.rounds) or protocol.missing_object is not MissingRule.EMPTY
    return {
        "content": f"{videos} with {frames}",
        "about": f"Segment what expressions mean in {videos}." if referring else f"Segment the objects of {videos}.",
        "referring": referring,
        "examples": [
            f"{within}{sequence.name}/{folder}{frame}.png"
            for sequence in sequences[:2]
            for folder in [f"{next(iter(sequence.objects), '1')}/" if protocol.overlapping else ""]
            for frame in sequence.frames[:2]
        ],
    }


def instance_facts(truths: list[InstanceTruth], protocol: InstanceProtocol) -> Facts:
    """Return the facts of instance masks."""
    first = truths[0]
    kind, lengths = "video" if protocol.tubes else "image", first.images.frames
    total = quantity(sum(len(truth.images.ids) for truth in truths), kind)
    height, width = first.images.sizes[0].tolist()
    return {
        "content": f"{total} with {_categories(len(first.categories))}",
        "about": f"Find every object in {total}.",
        "examples": [int(first.images.ids[0]), first.categories[0].id],
        "size": [height, width if lengths is None else width // int(lengths[0])],
        "kind": kind,
    }


def _categories(count: int) -> str:
    return f"{count:,} {verb(count, 'category', 'categories')}"


def unit_facts(truths: list[UnitTruth], protocol: TrackProtocol) -> Facts:
    """Return the facts of what is counted by unit."""
    units = [unit for truth in truths for unit in truth.units]
    frames = units[0].load()
    images = isinstance(protocol, PanopticProtocol) and not protocol.video
    kind = "sequence" if isinstance(protocol, TracksProtocol) else "image" if images else "video"
    total = quantity(len(units), kind)
    listed = truths[0].facts.get("categories")
    return {
        "content": f"{total} with {_categories(len(listed))}" if listed else total,
        "about": f"Label every pixel of {total}." if kind != "sequence" else f"Follow every object through {total}.",
        "kind": kind,
        "unit": units[0].name,
        "frames": [frame.name for frame in frames[:2]],
        "size": frames[0].size,
        "category": listed[0][0] if listed else 1,
    }
