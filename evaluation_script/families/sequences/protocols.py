"""The rules of the benchmarks of video masks, one row each.

`../docs/decisions.md` names the source of each rule; a golden test covers each row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar, Dict, Tuple


class ObjectRule(Enum):
    """The rule for the scored objects of a sequence."""

    FOREGROUND = "all nonzero pixels, as one object"
    NUMBERED = "1 to the largest number in the first frame"
    SEEN = "every number in the scored frames, 255 included"
    LASTING = "every object with a lifespan of at least 4 frames: from the meta file, else from its first frame"
    FIRST = "the objects of the meta file, else the numbers in the first frame"


class LifespanRule(Enum):
    """The rule for the frames that count for an object."""

    VIDEO = "all frames"
    FIRST_SEEN = "from the first frame in which truth or prediction shows it"
    OWN = "its own lifespan"


class MissingRule(Enum):
    """The rule for missing sequences, objects and frames."""

    EMPTY = "empty masks"
    ERROR = "an error"
    ZEROS = "zeros"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class SequenceProtocol:
    """The rules of one benchmark."""

    family: ClassVar[str] = "sequences"
    form: ClassVar[str] = ""

    name: str
    about: str
    #: Names of the protocol's metrics, in the benchmark's order.
    metrics: Tuple[str, ...]
    objects: ObjectRule
    lifespan: LifespanRule = LifespanRule.VIDEO
    skip_first: bool = True
    skip_last: bool = True
    #: Pixels with 255 in the truth are ignored (otherwise they are background).
    void: bool = False
    #: The maximum number of proposals, which are matched to objects; 0 if prediction and truth share their numbers.
    proposals: int = 0
    surplus_is_error: bool = False
    #: The prediction is a single mask, which is compared with each object.
    salient: bool = False
    #: Seen and unseen classes have separate means.
    by_class: bool = False
    missing: MissingRule = MissingRule.ERROR
    missing_object: MissingRule = MissingRule.EMPTY
    #: How a missing frame of a submitted object scores; under the empty rule, all but the first frame.
    missing_frame: MissingRule = MissingRule.ERROR
    #: The mask of an object may have several values other than 0.
    many_values: bool = False
    #: Folders with complete results each; scores are means over them.
    rounds: Tuple[str, ...] = ()
    #: A pixel may belong to several objects.
    overlapping: bool = False
    #: The kinds of objects with their own means; the truth gives them as categories.
    kinds: Tuple[str, ...] = ()
    #: The kinds whose means are averaged into the overall mean; others are excluded.
    balanced: Tuple[str, ...] = ()
    #: ReVOS's A and R: the share of correct pixels, and predicted pixels outside the object relative to those of all
    #: candidates.
    accuracy: bool = False
    #: Follow the script: compare pixels by 8-bit brightness, and round the values of objects to 0.01 %.
    grey: bool = False
    #: MOSEv2's J, its second F, and the values of disappearance and reappearance.
    reappearance: bool = False
    revision: int = 1

    @property
    def equal_groups(self) -> Tuple[str, ...]:
        """Return the groups of objects that have equal weight in the overall mean."""
        return ("seen", "unseen") if self.by_class else self.balanced


_DAVIS = ("J&F-Mean", "J-Mean", "J-Recall", "J-Decay", "F-Mean", "F-Recall", "F-Decay")
_PLAIN = ("J&F-Mean", "J-Mean", "F-Mean")
_VOST = ("J-Mean", "J-Recall", "J-Decay", "J_last-Mean", "J_last-Recall", "J_last-Decay")
_YOUTUBE = ("J&F-Mean", "J-Mean", "J-seen-Mean", "J-unseen-Mean", "F-Mean", "F-seen-Mean", "F-unseen-Mean")
_LVOS = (*_YOUTUBE, "V-Mean", "V-seen-Mean", "V-unseen-Mean")
_REFERRING = (*_PLAIN, "N-acc", "T-acc", "Final")
_KINDS = ("static", "dynamic", "hybrid")
_PIXELS = (*_PLAIN, "A-Mean", "R-Mean")
_SPANS = (*_PLAIN, "tIoU-Mean", "vIoU-Mean")
_TYPES = ("referring", "reasoning", "no-target")
_REVOS_OFFICIAL, _REVOS = (
    (*_PIXELS, *(name.replace("-Mean", f"-{kind}-Mean") for kind in kinds for name in _PIXELS))
    for kinds in (_TYPES[:2], _TYPES)
)
_LONG_RVOS = (*_SPANS, *(name.replace("-Mean", f"-{kind}-Mean") for kind in _KINDS for name in _SPANS))
_MOSEV2 = (
    *("J&F_new-Mean", "J-Mean", "F_new-Mean", "F-Mean", "J&F-Mean"),
    *("disappear_J&F_new-Mean", "disappear_J-Mean", "disappear_F_new-Mean"),
    *("reappear_J&F_new-Mean", "reappear_J-Mean", "reappear_F_new-Mean"),
)

#: Additional statistics of every protocol, which absent objects do not raise.
BESIDE = ("J-Volume", "F-Volume", "J-Visible", "F-Visible", "False-Alarm")

#: Metrics that are averages of others.
COMBINED = {
    "J&F-Mean": ("J-Mean", "F-Mean"),
    **{f"J&F-{kind}-Mean": (f"J-{kind}-Mean", f"F-{kind}-Mean") for kind in (*_KINDS, *_TYPES)},
    "J&F_new-Mean": ("J-Mean", "F_new-Mean"),
    "disappear_J&F_new-Mean": ("disappear_J-Mean", "disappear_F_new-Mean"),
    "reappear_J&F_new-Mean": ("reappear_J-Mean", "reappear_F_new-Mean"),
    "Final": ("J&F-Mean", "N-acc", "T-acc"),
}

#: The 26 categories of YouTube-VOS validation 2018 and 2019 that training lacks (youtube-vos.org).
YOUTUBE_UNSEEN = (
    *("backpack", "ball", "bottle", "box", "butterfly", "camera", "chameleon", "cloth", "cup", "eyeglasses"),
    *("flag", "guitar", "handbag", "jellyfish", "kangaroo", "microphone", "mirror", "ring", "rope", "shovel"),
    *("small_panda", "spider", "stuffed_toy", "table", "tissue", "watch"),
)

_INNER = "The first and last frames are skipped"
_davis = SequenceProtocol("davis2017", f"{_INNER}; label 255 is background.", _DAVIS, ObjectRule.NUMBERED)
_vosb = SequenceProtocol(
    "vos-benchmark",
    f"{_INNER}. An object counts from the first frame in which the truth or the prediction shows it; 255 is an object.",
    _PLAIN,
    ObjectRule.SEEN,
    LifespanRule.FIRST_SEEN,
    missing=MissingRule.LEFT_OUT,
)
_lvos = SequenceProtocol(
    "lvos",
    "Each object is scored over its own lifespan except its first and last frame; label 255 is background.",
    _LVOS,
    ObjectRule.LASTING,
    LifespanRule.OWN,
    by_class=True,
)
_unsupervised = SequenceProtocol(
    "davis2017-unsupervised",
    "All frames count. Up to 20 proposals are matched to the objects; 255 in the truth is void.",
    _DAVIS,
    ObjectRule.NUMBERED,
    skip_first=False,
    skip_last=False,
    void=True,
    proposals=20,
    surplus_is_error=True,
)
_ROUNDS = ("anno_0", "anno_1", "anno_2", "anno_3")
_mevis = SequenceProtocol(
    "mevis",
    "Each expression is scored as one object in all frames; a missing video scores 0.",
    _PLAIN,
    ObjectRule.FIRST,
    skip_first=False,
    skip_last=False,
    missing=MissingRule.ZEROS,
    missing_object=MissingRule.ERROR,
    overlapping=True,
)

_long_rvos = replace(
    _mevis,
    name="long-rvos",
    about=f"{_mevis.about} tIoU and vIoU compare when the object is visible. Every value but 0 is foreground.",
    metrics=_LONG_RVOS,
    many_values=True,
    kinds=_KINDS,
)
_revos = replace(
    _mevis,
    name="revos",
    about=f"{_mevis.about} A and R compare binary masks. "
    "Scores are means of referring and reasoning expressions; no-target expressions are reported separately.",
    metrics=_REVOS,
    kinds=_TYPES,
    balanced=_TYPES[:2],
    accuracy=True,
)

_ROWS = (
    replace(
        _davis, name="davis2016", about=f"{_INNER}; every label but 0 is foreground.", objects=ObjectRule.FOREGROUND
    ),
    _davis,
    _unsupervised,
    _lvos,
    replace(
        _lvos,
        name="lvos-unsupervised",
        about="Each object is scored over its own lifespan. Up to 20 proposals are matched to the objects; "
        "label 255 is background.",
        skip_first=False,
        skip_last=False,
        proposals=20,
    ),
    replace(
        _lvos,
        name="lvos-unsupervised-single",
        about="Each object is compared with one salient mask over its own lifespan, "
        "in the sequences listed for this task.",
        skip_first=False,
        skip_last=False,
        salient=True,
    ),
    replace(_davis, name="vost", about=f"{_INNER}; J_last covers the last quarter of the frames.", metrics=_VOST),
    _vosb,
    replace(
        _vosb,
        name="vos-benchmark-all-frames",
        about=_vosb.about.replace(_INNER, "No frame is skipped"),
        skip_first=False,
        skip_last=False,
    ),
    replace(
        _vosb,
        name="sav",
        about=f"{_INNER} for each object. "
        "It counts from the first frame in which the truth or the prediction shows it.",
        overlapping=True,
    ),
    SequenceProtocol(
        "mosev2",
        f"{_INNER}. Only objects of the first frame count. "
        "J and the second F follow MOSEv2; absences are scored separately.",
        _MOSEV2,
        ObjectRule.FIRST,
        missing=MissingRule.ZEROS,
        reappearance=True,
    ),
    replace(
        _vosb,
        name="mose",
        about=f"{_INNER}. Objects of the first frame are scored in all other frames. "
        "No MOSE evaluator is public, so this is an assumption.",
        objects=ObjectRule.FIRST,
        lifespan=LifespanRule.VIDEO,
        missing=MissingRule.ERROR,
    ),
    SequenceProtocol(
        "youtube-vos",
        "Each object is scored from the frame after its first to the end, in all frames with truth. "
        "No YouTube-VOS evaluator is public, so this is an assumption.",
        _YOUTUBE,
        ObjectRule.LASTING,
        LifespanRule.OWN,
        skip_last=False,
        by_class=True,
    ),
    _mevis,
    replace(
        _mevis,
        name="mevis-official",
        about=f"{_mevis.about} An expression with a missing file is excluded from the means.",
        missing_object=MissingRule.LEFT_OUT,
        many_values=True,
    ),
    replace(
        _mevis,
        name="mevis-v2",
        about=f"{_mevis.about} No MeViS v2 evaluator is public, so N-acc, T-acc and Final are assumptions.",
        metrics=_REFERRING,
    ),
    replace(
        _mevis,
        name="ref-youtube-vos",
        about="Each expression is scored as one object in the listed frames with truth. "
        "No Ref-YouTube-VOS evaluator is public, so this is an assumption.",
        missing=MissingRule.ERROR,
    ),
    _revos,
    replace(
        _revos,
        name="revos-official",
        about="Each expression is scored as one object in all frames. If a mask is missing or has the wrong "
        "size, it scores 0. A and R compare 8-bit values, so masks of 0 and 255 lower them. "
        "Values are rounded to 0.01 % before averaging.",
        metrics=_REVOS_OFFICIAL,
        kinds=_TYPES[:2],
        missing_object=MissingRule.ZEROS,
        many_values=True,
        grey=True,
    ),
    _long_rvos,
    replace(
        _long_rvos,
        name="long-rvos-official",
        about=f"{_long_rvos.about} An expression without its first frame is excluded from the means; "
        "any other missing frame is empty.",
        missing_object=MissingRule.LEFT_OUT,
        missing_frame=MissingRule.EMPTY,
    ),
    replace(
        _unsupervised,
        name="ref-davis17",
        about=f"Scores are means over four annotators. {_unsupervised.about}",
        rounds=_ROUNDS,
    ),
    replace(
        _unsupervised,
        name="ref-davis17-strict",
        about="Scores are means over four annotators. All frames count. Objects are compared by number, unlike in the "
        "official code; 255 in the truth is void.",
        proposals=0,
        surplus_is_error=False,
        rounds=_ROUNDS,
    ),
)

SEQUENCE_PROTOCOLS: Dict[str, SequenceProtocol] = {protocol.name: protocol for protocol in _ROWS}
#: The protocol of each task of DAVIS's script.
DAVIS_TASKS = {"semi-supervised": "davis2017", "unsupervised": "davis2017-unsupervised"}
