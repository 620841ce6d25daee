"""What a phase is, and the tracks that score it; the phases themselves are the table in `phases.py`."""

from __future__ import annotations

from dataclasses import Field, dataclass, field
from typing import Any, ClassVar, Dict, FrozenSet, Mapping, Optional, Protocol, Tuple

from ..families.instances.protocols import INSTANCE_PROTOCOLS
from ..families.panoptic.protocols import PANOPTIC_PROTOCOLS
from ..families.semantic.protocols import SEMANTIC_PROTOCOLS
from ..families.sequences.protocols import SEQUENCE_PROTOCOLS
from ..families.tracking.protocols import TRACKS_PROTOCOLS
from ..files.limits import ArchiveLimits

#: The values of `Phase.detail`.
DETAILS = ("means", "sequences", "all")


class TrackProtocol(Protocol):
    """The rules of one benchmark, of any track: a frozen dataclass."""

    __dataclass_fields__: ClassVar[Dict[str, Field[Any]]]
    #: The track's name in `TRACKS`.
    track: ClassVar[str]

    @property
    def form(self) -> str:
        """What it scores, where truths of its track hold one thing or another, such as images or videos."""

    @property
    def name(self) -> str:
        """The protocol's name in `PROTOCOLS`."""

    @property
    def about(self) -> str:
        """One line for people: what is applied, and what it skips."""

    @property
    def metrics(self) -> Tuple[str, ...]:
        """The names of its metrics, in the benchmark's order."""

    @property
    def revision(self) -> int:
        """Raised with whatever changes any score."""


@dataclass(frozen=True)
class Track:
    """A way to read and score submissions."""

    #: Its benchmarks.
    protocols: Mapping[str, TrackProtocol]
    #: The module whose `ENGINE` scores them; imported when it is needed.
    module: str
    #: Options of `score`, beside the sequences, that say what a published truth leaves open.
    options: Tuple[str, ...] = ()
    #: The layouts in which its truths are published, beside those of `dataset_layouts.py`.
    layouts: Tuple[str, ...] = ()


#: The tracks; `../docs/adding-a-track.md` says what a row needs.
TRACKS = {
    "sequences": Track(SEQUENCE_PROTOCOLS, "sequences", ("sequences", "layout", "unseen")),
    "instances": Track(INSTANCE_PROTOCOLS, "instances", ("categories",)),
    "panoptic": Track(PANOPTIC_PROTOCOLS, "panoptic", ("sequences",), ("coco-panoptic", "vipseg")),
    "semantic": Track(SEMANTIC_PROTOCOLS, "semantic", ("sequences",), ("vspw",)),
    "tracks": Track(TRACKS_PROTOCOLS, "tracks", ("sequences",), ("mots", "burst")),
}

PROTOCOLS: Dict[str, TrackProtocol] = {
    name: protocol for track in TRACKS.values() for name, protocol in track.protocols.items()
}


@dataclass(frozen=True)
class PhaseSplit:
    """One split of a phase: which truth it reads, by which rules, and what its leaderboard shows."""

    #: The dataset split's codename, here and in the annotation file.
    codename: str
    #: A row of one of the `…_protocols.py`; it decides the track too.
    protocol: str
    #: The leaderboard's labels, in its order.
    metrics: Tuple[str, ...]
    #: Participants are not shown its scores: True where the visibility in `challenge_config.yaml` is not 3 (public).
    hidden: bool = False


@dataclass(frozen=True)
class Notify:
    """When to notify the host's webhook: always, or when a metric reaches a value."""

    split: str = ""
    metric: str = ""
    threshold: Optional[float] = None


@dataclass(frozen=True)
class Phase:
    """How the submissions of one phase are scored."""

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
        """The codenames of the splits whose scores participants are not shown."""
        return frozenset(split.codename for split in self.splits if split.hidden)


@dataclass(frozen=True)
class ScoringRules:
    """How one split is scored: a protocol, and what a submission may be."""

    protocol: TrackProtocol
    limits: ArchiveLimits
    #: Warnings refuse a submission.
    strict: bool = False
    #: So many processes share the scoring.
    jobs: int = 1
