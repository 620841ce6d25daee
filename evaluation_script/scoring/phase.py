"""The Phase class; `phases.py` holds the table of phases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import FrozenSet, NamedTuple, Optional, Tuple

from ..files.limits import ArchiveLimits

#: The values of `Phase.detail`.
DETAILS = ("means", "sequences", "all")


@dataclass(frozen=True)
class PhaseSplit:
    """One split of a phase: its truth, its protocol, and its leaderboard."""

    #: The dataset split's codename, here and in the annotation file.
    codename: str
    #: A row of one of the `protocols.py`; it determines the family too.
    protocol: str
    #: The leaderboard's labels, in its order.
    metrics: Tuple[str, ...]
    #: Hide its scores from participants: True if the visibility in `challenge_config.yaml` is not 3 (public).
    hidden: bool = False


class Notify(NamedTuple):
    """The rule of notifications: always, or when a metric reaches a value."""

    split: str = ""
    metric: str = ""
    threshold: Optional[float] = None


@dataclass(frozen=True)
class Phase:
    """A phase: how its submissions are scored."""

    codename: str
    #: The annotation file, as `challenge_config.yaml` names it.
    annotations: str
    splits: Tuple[PhaseSplit, ...]
    #: Leaderboards show percent instead of fractions.
    percent: bool = False
    #: Warnings reject a submission.
    strict: bool = False
    #: What participants may read of visible splits: the leaderboard's means, also the means of each sequence, or (for a
    #: public truth) everything.
    detail: str = "means"
    #: Keep the data of a submission's page (`docs/report.md`) in the file for participants: intervals; the cost of each
    #: kind of failure in mask sequences (not with `detail="means"`); and with `detail="all"` the losses frame by frame.
    #: That takes three times as long as scoring.
    report: bool = False
    #: The maximum wall-clock seconds for scoring a submission.
    seconds: int = 3600
    #: The maximum memory for scoring in bytes, in addition to the worker's own (290 MB of its 1 GiB).
    memory: int = 640 << 20
    limits: ArchiveLimits = field(default_factory=ArchiveLimits)
    #: The number of scoring processes, each within `memory`; 0: one per usable core.
    jobs: int = 1
    notify: Optional[Notify] = None
    #: The slug of the output to score, if the algorithms on grand-challenge write several.
    socket: str = ""

    @property
    def hidden(self) -> FrozenSet[str]:
        """The codenames of the splits whose scores are hidden from participants."""
        return frozenset(split.codename for split in self.splits if split.hidden)
