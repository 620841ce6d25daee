"""The challenge as one table. Hosts edit only this file and `challenge_config.yaml`.

Codenames, splits and labels must agree with `challenge_config.yaml`; `./run.sh check` compares them. `scoring/phase.py`
explains the fields of a phase, `families/…/protocols.py` the protocols.
"""

from __future__ import annotations

from .files import INSTANCE_LIMITS, UNIT_LIMITS, ArchiveLimits
from .scoring import Phase, PhaseSplit

#: The metrics on the leaderboards: any of the protocol's, or `J-Volume`, `J-Visible`, `False-Alarm`…
LABELS = ("J&F-Mean", "J-Mean", "J-Recall", "J-Decay", "F-Mean", "F-Recall", "F-Decay")
INSTANCE_LABELS = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR@1", "AR@50", "AR@255", "ARs", "ARm", "ARl")
PANOPTIC_LABELS = ("PQ", "SQ", "RQ", "PQ-Things", "SQ-Things", "RQ-Things", "PQ-Stuff", "SQ-Stuff", "RQ-Stuff")

PHASES = (
    Phase(
        codename="sequences-dev",
        annotations="annotations/sequences-dev.zip",
        splits=(PhaseSplit("dev", "davis2017", LABELS),),
        limits=ArchiveLimits(members=20_000, total_bytes=2 << 30),
    ),
    Phase(
        codename="sequences-test",
        annotations="annotations/sequences-test.zip",
        splits=(PhaseSplit("test", "davis2017", LABELS), PhaseSplit("test-hard", "davis2017", LABELS)),
        limits=ArchiveLimits(members=20_000, total_bytes=2 << 30),
    ),
    # The truth of these phases is public, so everybody may read everything.
    Phase(
        codename="instances-dev",
        annotations="annotations/instances-dev.zip",
        splits=(PhaseSplit("dev", "places2017", INSTANCE_LABELS),),
        detail="all",
        limits=INSTANCE_LIMITS,
    ),
    Phase(
        codename="photo-videos",
        annotations="annotations/photo-videos.zip",
        splits=(PhaseSplit("dev", "davis2017", LABELS),),
        detail="all",
        limits=ArchiveLimits(members=20_000, total_bytes=2 << 30),
    ),
    Phase(
        codename="photo-panoptic",
        annotations="annotations/photo-panoptic.zip",
        splits=(PhaseSplit("dev", "coco-panoptic", PANOPTIC_LABELS),),
        detail="all",
        limits=UNIT_LIMITS,
    ),
)
