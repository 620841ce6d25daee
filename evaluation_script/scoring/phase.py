"""The Phase class; `phases.py` holds the table of phases."""

from __future__ import annotations

from dataclasses import field
from typing import FrozenSet, Optional, Tuple

from ..files.limits import ArchiveLimits
from ..values import dataclass

#: The values of `Phase.detail`.
DETAILS = ("means", "sequences", "all")


@dataclass(frozen=True)
class PhaseSplit:
    """One split of a phase: its truth, its protocol, and its leaderboard."""

    #: The dataset split's codename, here and in the annotation file.
    codename: str
    #: A row of one of the `…_protocols.py`; it decides the family too.
    protocol: str
    #: The leaderboard's labels, in its order.
    metrics: Tuple[str, ...]
    #: Participants are not shown its scores: True where the visibility in `challenge_config.yaml` is not 3 (public).
    hidden: bool = False


@dataclass(frozen=True)
class Notify:
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
    #: Warnings refuse a submission.
    strict: bool = False
    #: What participants may read of the splits that are not hidden: the leaderboard's means, the means of each
    #: sequence too, or (where the truth is public) everything.
    detail: str = "means"
    #: What participants may read has what a page of their submission shows too (`docs/report.md`): intervals; what
    #: each kind of failure takes of mask sequences (not with `detail="means"`), and with `detail="all"` what was lost
    #: frame by frame. That takes three times as long as scoring them.
    report: bool = False
    #: Wall clock for one submission, in seconds.
    seconds: int = 3600
    #: Memory for scoring, in bytes, beside what the worker holds already (290 MB of its 1 GiB).
    memory: int = 640 << 20
    limits: ArchiveLimits = field(default_factory=ArchiveLimits)
    #: So many processes share the scoring, each within `memory`; 0: as many as there are cores that may be used.
    jobs: int = 1
    notify: Optional[Notify] = None

    @property
    def hidden(self) -> FrozenSet[str]:
        """The codenames of the splits whose scores are hidden from participants."""
        return frozenset(split.codename for split in self.splits if split.hidden)
