"""Protocols that central tests choose by a property, so that they name none."""

from __future__ import annotations

from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.families.semantic.protocols import SEMANTIC_PROTOCOLS
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS

#: Detections are boxes.
BOXES = next(name for name, protocol in INSTANCE_PROTOCOLS.items() if protocol.boxes)
#: Results are label maps.
MAPS = next(iter(SEMANTIC_PROTOCOLS))
#: Unseen objects have means of their own.
WITH_UNSEEN = next(name for name, protocol in SEQUENCE_PROTOCOLS.items() if protocol.by_class)
