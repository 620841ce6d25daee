"""One region of a protocol, scored alone."""

from __future__ import annotations

import re
from dataclasses import replace

from segjudge.evaluation_script.families.volumes.engine import list_labels_of
from segjudge.evaluation_script.families.volumes.protocols import LabelRegion, VolumeProtocol
from segjudge.evaluation_script.families.volumes.voxels import LABELS_END
from segjudge.evaluation_script.files.problems import name_list, printable
from segjudge.system.errors import OptionError


def choose_region(protocol: VolumeProtocol, name: str) -> VolumeProtocol:
    """Return a protocol that scores one region of a protocol, or one label if it has no regions."""
    region = _find_region(protocol, name)
    labels = list_labels_of(protocol) if protocol.regions else set(range(LABELS_END))
    return replace(
        protocol,
        name=f"{protocol.name}-{region.name}",
        about=f"{protocol.about} Only {region.name} is scored.",
        regions=(region,),
        unscored=tuple(sorted(labels - {0, *region.labels})),
        beside=(),
        ranking=None,
    )


def _find_region(protocol: VolumeProtocol, name: str) -> LabelRegion:
    if protocol.regions:
        names = [region.name for region in protocol.regions]
        if name not in names:
            raise OptionError(
                f"region {printable(name)}: {protocol.name} has the regions {name_list(names, len(names))}"
            )
        return protocol.regions[names.index(name)]
    label = re.fullmatch(r"(?:label )?([1-9][0-9]{0,4})", name, re.ASCII)
    if not label or int(label[1]) >= LABELS_END:
        raise OptionError(f"region {printable(name)}: give a label of {protocol.name}, from 1 to {LABELS_END - 1:,}")
    number = int(label[1])
    return LabelRegion(f"label {number}", (number,), dict(protocol.tolerances).get(number, protocol.tolerance))
