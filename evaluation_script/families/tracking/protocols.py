"""The benchmarks of tracks on masks, one row each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Dict, Tuple

#: The layouts of published truths.
MOTS_LAYOUT, BURST_LAYOUT = "mots", "burst"
HOTA = ("HOTA", "DetA", "AssA", "DetRe", "DetPr", "AssRe", "AssPr", "LocA", "OWTA")
CLEAR = ("sMOTSA", "MOTSA", "MOTSP", "IDSW", "IDF1")
BURST = ("HOTA", "DetA", "AssA", "AP")

#: BURST's unscored categories, and the categories that its tables call common.
_DISTRACTORS = (
    "20 63 108 180 188 204 212 247 303 403 407 415 490 504 507 513 529 567 569 588 672 691 702 708 711 720 736 "
    "737 798 813 815 827 831 851 877 883 912 971 976 1130 1133 1134 1169 1184 1220"
)
_COMMON = (
    "4 13 34 35 36 41 45 58 60 78 79 81 91 95 99 118 126 133 139 154 174 185 211 221 229 235 237 276 299 347 371 "
    "382 392 428 429 452 475 480 502 544 579 621 625 642 699 714 717 729 747 779 805 829 852 896 926 937 961 979 "
    "980 982 993 1001 1018 1038 1057 1091 1097 1099 1115 1117 1122 1132 1135 1144 1155 1162 1215 1229"
)
DISTRACTORS = frozenset(map(int, _DISTRACTORS.split()))
COMMON = frozenset(map(int, _COMMON.split()))
#: LVIS categories that TAO counts as another one, such as mugs as cups; a truth may list more.
MERGED = {153: 943, 201: 1175, 207: 554, 504: 347, 720: 347, 912: 529, 967: 529}


@dataclass(frozen=True)
class TracksProtocol:
    """The rules of one benchmark."""

    family: ClassVar[str] = "tracks"

    name: str
    about: str
    #: The categories by name; if empty, the truth's categories.
    classes: Tuple[Tuple[str, int], ...] = ()
    #: A submission is a JSON of sequences instead of one text file per sequence.
    burst: bool = False
    #: A prediction has the number and category of its object.
    exemplar: bool = False
    #: HOTA compares boxes around masks instead of masks.
    boxes: bool = False
    revision: int = 1

    @property
    def form(self) -> str:
        return BURST_LAYOUT if self.burst else MOTS_LAYOUT

    @property
    def metrics(self) -> Tuple[str, ...]:
        if self.burst:
            return tuple(f"{metric}{group}" for group in ("", "-common", "-uncommon") for metric in BURST)
        single = (*HOTA, *CLEAR)
        groups = [f"-{name}" for name, _ in self.classes] if len(self.classes) > 1 else []
        return (*single, *(f"{metric}{group}" for group in groups for metric in single))


_mots = TracksProtocol(
    "mots",
    "HOTA, CLEAR and identity metrics of pedestrians; masks that lie mostly in ignored regions are skipped.",
    (("pedestrian", 2),),
)
_burst = TracksProtocol("burst", "HOTA on masks and AP of tracks, per category (class-guided).", burst=True)
_exemplar = replace(
    _burst,
    name="burst-exemplar-guided",
    about="HOTA on masks and AP of tracks, per category; predicted tracks have the ids of the true tracks.",
    exemplar=True,
)
_BOXES = "As computed by the official code: HOTA compares the boxes around masks"

_ROWS = (
    _mots,
    replace(
        _mots, name="kitti-mots", about="As mots, for cars and pedestrians.", classes=(("car", 1), ("pedestrian", 2))
    ),
    _burst,
    replace(_burst, name="burst-official", about=f"{_BOXES} (class-guided).", boxes=True),
    _exemplar,
    replace(_exemplar, name="burst-exemplar-guided-official", about=f"{_BOXES} (exemplar-guided).", boxes=True),
)

TRACKS_PROTOCOLS: Dict[str, TracksProtocol] = {protocol.name: protocol for protocol in _ROWS}
