"""The benchmarks of phrases, one row each: cgF1 of SA-Co, as its script computes it and without its quirks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Dict, Tuple

#: The layouts of published truths: pairs of pictures, and of videos.
PICTURES_LAYOUT, VIDEOS_LAYOUT = "sa-co", "sa-co-veval"
#: The minimum score of predictions that count.
LEAST_SCORE = 0.5


@dataclass(frozen=True)
class PhraseProtocol:
    """The rules of one benchmark."""

    family: ClassVar[str] = "phrases"
    #: The ranges of metrics that are not shares.
    bounds: ClassVar[Dict[str, Tuple[float, float]]] = {"cgF1": (-1.0, 1.0), "IL_MCC": (-1.0, 1.0)}

    name: str
    about: str
    #: As computed by the benchmark's script, with its defects.
    official: bool = False
    #: Pairs are in videos, and predictions are tracks.
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


_SAFE = "The best of {} counts, in any order; predictions on crowds are ignored; nothing is added to denominators."
_OFFICIAL = "as computed by SA-Co's script: {}, crowds are dropped, and 1e-4 is added to every denominator."

_ROWS = (
    PhraseProtocol("sa-co-gold", f"cgF1 of phrases at scores of 0.5 and above. {_SAFE.format('three annotators')}"),
    PhraseProtocol(
        "sa-co-gold-official",
        f"cgF1 of phrases, {_OFFICIAL.format('of equal annotators the first file counts')}",
        official=True,
    ),
    PhraseProtocol("sa-co-silver", f"cgF1 of phrases at scores of 0.5 and above. {_SAFE.format('all annotators')}"),
    PhraseProtocol(
        "sa-co-silver-official",
        f"cgF1 of phrases, {_OFFICIAL.format('several annotators count in the order of their files')}",
        official=True,
    ),
    PhraseProtocol(
        "sa-co-veval",
        "cgF1 and HOTA of tracks at scores of 0.5 and above; AP of all tracks. Predictions on crowds are ignored; "
        "nothing is added to denominators.",
        videos=True,
    ),
    PhraseProtocol(
        "sa-co-veval-official",
        "cgF1, HOTA, AP and TETA of tracks, as computed by SA-Co/VEval's script: crowds are dropped, 1e-4 is added to "
        "every denominator, and pairs outside the list are scored.",
        official=True,
        videos=True,
    ),
)

PHRASE_PROTOCOLS: Dict[str, PhraseProtocol] = {protocol.name: protocol for protocol in _ROWS}
