"""How phrases are scored: cgF1 of SA-Co, as its script computes it and without its quirks."""

from __future__ import annotations

from typing import ClassVar, Dict, Tuple

from ...values import dataclass

#: How truths are published: pairs of pictures, and of videos.
PICTURES_LAYOUT, VIDEOS_LAYOUT = "sa-co", "sa-co-veval"
#: A prediction counts from this score on.
LEAST_SCORE = 0.5


@dataclass(frozen=True)
class PhraseProtocol:
    """The rules of one benchmark."""

    family: ClassVar[str] = "phrases"
    #: What metrics lie between that are no shares.
    bounds: ClassVar[Dict[str, Tuple[float, float]]] = {"cgF1": (-1.0, 1.0), "IL_MCC": (-1.0, 1.0)}

    name: str
    about: str
    #: As the benchmark's script computes it, with its quirks.
    official: bool = False
    #: Pairs are of videos, and predictions are tracks.
    videos: bool = False
    revision: int = 1

    @property
    def form(self) -> str:
        return VIDEOS_LAYOUT if self.videos else PICTURES_LAYOUT

    @property
    def metrics(self) -> Tuple[str, ...]:
        tracks = ("pHOTA", "pDetA", "pAssA", "phrase_AP", "mAP") if self.videos else ()
        teta = ("TETA", "LocA", "AssocA", "ClsA") if self.videos and self.official else ()
        return ("cgF1", "pmF1", "IL_MCC", *tracks, *teta)


_SAFE = "the best of {}, whatever their order; crowds excuse what lies on them, and nothing is added to denominators."
_OFFICIAL = "as SA-Co's script: {} in the order of their files, crowds dropped, 1e-4 in every denominator."

_ROWS = (
    PhraseProtocol("sa-co-gold", f"cgF1 of phrases from a score of 0.5 on: {_SAFE.format('the annotators')}"),
    PhraseProtocol(
        "sa-co-gold-official", f"cgF1 of phrases {_OFFICIAL.format('the first best annotator')}", official=True
    ),
    PhraseProtocol(
        "sa-co-silver", f"cgF1 of phrases from a score of 0.5 on: {_SAFE.format('all annotators there are')}"
    ),
    PhraseProtocol(
        "sa-co-silver-official",
        f"cgF1 of phrases {_OFFICIAL.format('annotators, if there are several,')}",
        official=True,
    ),
    PhraseProtocol(
        "sa-co-veval",
        "cgF1 and HOTA of the tracks of phrases from a score of 0.5 on, AP of all; crowds excuse what lies on them, "
        "and nothing is added to denominators.",
        videos=True,
    ),
    PhraseProtocol(
        "sa-co-veval-official",
        "cgF1, HOTA, AP and TETA of the tracks of phrases as SA-Co/VEval's script: crowds dropped, 1e-4 in every "
        "denominator, pairs that nobody asked about scored.",
        official=True,
        videos=True,
    ),
)

PHRASE_PROTOCOLS: Dict[str, PhraseProtocol] = {protocol.name: protocol for protocol in _ROWS}
