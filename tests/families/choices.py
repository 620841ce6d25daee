"""Protocols that central tests choose by a property, so that they name none."""

from __future__ import annotations

from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.families.saliency.protocols import SALIENCY_PROTOCOLS
from segjudge.evaluation_script.families.semantic.protocols import IMAGES, SEMANTIC_PROTOCOLS
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS, MissingRule
from segjudge.evaluation_script.families.tracking.protocols import TRACKS_PROTOCOLS
from segjudge.evaluation_script.families.volumes.protocols import VOLUME_PROTOCOLS

#: Detections are boxes.
BOXES = next(name for name, protocol in INSTANCE_PROTOCOLS.items() if protocol.boxes)
#: Results are label maps.
MAPS = next(iter(SEMANTIC_PROTOCOLS))
#: Results are a label map per image; their classes begin with 1, or with 0.
IMAGE_MAPS, IMAGE_MAPS_FROM_0 = (
    next(name for name, row in SEMANTIC_PROTOCOLS.items() if row.form == IMAGES and row.first_class == first)
    for first in (1, 0)
)
#: Results are a map of a salient object per image, scored exactly, or as by the script.
SALIENCY, SALIENCY_OFFICIAL = SALIENCY_PROTOCOLS
#: Results are tracks, in a text file per video.
TRACKS = next(iter(TRACKS_PROTOCOLS))
#: Results are label maps of medical volumes.
VOLUMES = next(iter(VOLUME_PROTOCOLS))
#: Sequences without results are skipped, with a warning.
SKIPS_MISSING = next(name for name, row in SEQUENCE_PROTOCOLS.items() if row.missing is MissingRule.LEFT_OUT)
#: Unseen objects have means of their own.
WITH_UNSEEN = next(name for name, protocol in SEQUENCE_PROTOCOLS.items() if protocol.by_class)
