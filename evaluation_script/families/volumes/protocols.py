"""The benchmarks of volumes, one row each."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, Dict, Mapping, NamedTuple, Optional, Tuple

LAYOUT = "volumes"

#: The value of a measure if the truth, the prediction or both lack a region.
WORST, BEST, IGNORED = "worst", "best", "ignored"
#: Measures that are not shares from 0 to 1.
DISTANCES = frozenset(
    {
        "HD",
        "HD95",
        "ASSD",
        "MASD",
        "HD95-pooled",
        "HD-border",
        "HD95-border",
        "HD95-border26",
        "ASSD-border",
        "MASD-border",
    }
)
LESION_DISTANCES = frozenset({"LesionHD95"})
#: Measures of components; they need both masks even if one is empty.
COMPONENTS = frozenset(
    {"PQ", "SQ", "RQ", "ComponentRecall", "ComponentPrecision", "ComponentDice", "LesionF1", "LesionError", "B0Error"}
)
ERRORS = frozenset({"RAVD", "VolumeError", "FPV", "FNV", "LesionError", "B0Error"})
SMALLER = DISTANCES | LESION_DISTANCES | ERRORS
#: With more regions, leaderboards show only means; tables list every region.
_MOST_REGIONS = 13


class LesionRule(NamedTuple):
    """How a benchmark finds and matches lesions."""

    #: The steps by which a lesion grows before it is joined with neighbours and matched with predictions.
    steps: int
    #: The volume in cubic millimetres up to which lesions of the truth are ignored.
    ignored: float
    #: The distance in millimetres of a missed or false lesion.
    penalty: float
    #: Predictions grow and join like lesions of the truth.
    joins: bool = False
    #: The number of voxels up to which predictions are removed first.
    removed: int = 0
    #: False lesions count.
    counts_false: bool = True


class LabelRegion(NamedTuple):
    """A region: the labels that it joins."""

    name: str
    labels: Tuple[int, ...]
    #: The distance of NSD, in millimetres.
    tolerance: float = 1.0
    #: Only slices from the truth's first to its last are scored.
    is_cropped: bool = False


class Tissue(NamedTuple):
    """A tissue with its own rule of lesions."""

    name: str
    labels: Tuple[int, ...]
    lesions: LesionRule
    #: The names of other tissues; lesions whose first touched lesion of such a tissue is the same are one.
    joined_by: Tuple[str, ...] = ()


class EmptyValues(NamedTuple):
    """The values of measures if a region is empty."""

    both: str = IGNORED
    truth: str = WORST
    prediction: str = WORST


class RankingRule(NamedTuple):
    """How a challenge ranks its teams."""

    #: Rank teams in each case, region and measure, and average their ranks; otherwise rank by the mean of each measure.
    within_cases: bool
    #: The metric whose rank decides between equal mean ranks.
    tie_breaker: str = ""


@dataclass(frozen=True)
class VolumeProtocol:
    """The rules of one benchmark."""

    family: ClassVar[str] = "volumes"
    form: ClassVar[str] = LAYOUT
    #: Volumes of algorithms on grand-challenge can be read, with `predictions.json`.
    reads_jobs: ClassVar[bool] = True

    name: str
    about: str
    #: The measures of each region; the first one ranks.
    measures: Tuple[str, ...] = ("Dice", "NSD", "HD95")
    #: The regions; if empty, each label of the truth.
    regions: Tuple[LabelRegion, ...] = ()
    #: The values of measures by overlap and distance.
    empties: EmptyValues = field(default_factory=EmptyValues)
    #: Labels that volumes may contain although no region does.
    unscored: Tuple[int, ...] = ()
    #: Regions that means over regions exclude.
    beside: Tuple[str, ...] = ()
    #: How lesions are matched, if at all; a negative penalty is the diagonal of the volume in voxels.
    lesions: Optional[LesionRule] = None
    #: Regions with other rules of lesions, and tissues that join them.
    tissues: Tuple[Tissue, ...] = ()
    #: The side in millimetres of the voxels in which distances are measured, regardless of the header; 0 uses the
    #: header's.
    voxel: float = 0.0
    #: Objects have no border where the volume ends.
    has_open_ends: bool = False
    #: The distance in millimetres if one side lacks a region; 0 for the volume's diagonal.
    worst_distance: float = 0.0
    #: NSD is 0 if Dice is lower.
    least_dice: float = 0.0
    #: The number of digits to which a case's values are rounded.
    digits: Optional[int] = None
    #: Added to the denominator of Dice.
    smoothing: float = 0.0
    #: The tolerance of NSD for regions that are labels.
    tolerance: float = 1.0
    #: Other tolerances for some of these labels, by label.
    tolerances: Tuple[Tuple[int, float], ...] = ()
    #: Volumes whose axes are only permuted or reversed are converted into the truth's order.
    reorders: bool = False
    #: A region's metric is a single Dice over the voxels of all cases.
    is_aggregated: bool = False
    #: Average first within each case over its regions, then over cases.
    averages_cases: bool = False
    #: How `rank --method challenge` ranks; None if the challenge has no ranking of its own.
    ranking: Optional[RankingRule] = None
    revision: int = 1

    @property
    def metrics(self) -> Tuple[str, ...]:
        """Return the mean of each measure over regions, and the measures of each region."""
        few = len(self.regions) <= _MOST_REGIONS
        regions = (
            [region for region in self.regions if few or region.name in self.beside] if len(self.regions) > 1 else []
        )
        return (*self.measures, *(f"{measure}_{region.name}" for measure in self.measures for region in regions))

    def tissues_of(self, region: LabelRegion) -> Tuple[Tissue, ...]:
        """Return a region as a tissue, then those that join its lesions; none without a rule of lesions."""
        if self.lesions is None:
            return ()
        tissues = {tissue.name: tissue for tissue in self.tissues}
        itself = tissues.get(region.name) or Tissue(region.name, region.labels, self.lesions)
        return (itself, *(tissues[name] for name in itself.joined_by))

    @property
    def bounds(self) -> Mapping[str, Tuple[float, float]]:
        """Return the bounds of metrics other than 0 to 1."""
        return {metric: (0.0, math.inf) for metric in self.metrics if metric.partition("_")[0] in SMALLER}


def _regions(**labels: Tuple[int, ...]) -> Tuple[LabelRegion, ...]:
    return tuple(LabelRegion(name, numbers) for name, numbers in labels.items())


def _join_enhancing(rule: LesionRule) -> Tuple[Tissue, ...]:
    """Return the tissues of tasks that join lesions of ET by NETC alone."""
    return Tissue("NETC", (1,), rule), Tissue("ET", (3,), rule, ("NETC",))


_TUMOUR = _regions(WT=(1, 2, 3), TC=(1, 3), ET=(3,))
_LESION_WISE = ("LesionDice", "LesionHD95")
_LESION_WISE_2024 = (*_LESION_WISE, "LesionNSD0.5", "LesionNSD1")
_PERFECT = EmptyValues(both=BEST)
_DIAGONAL = -1.0

_BRATS_2023 = VolumeProtocol(
    "brats-2023",
    "BraTS 2023 (GLI, SSA, PED): Dice and HD95 per lesion of WT, TC, ET; lesions within 3 voxels are one; "
    "up to 50 mm3 are ignored.",
    _LESION_WISE,
    _TUMOUR,
    lesions=LesionRule(3, 50, 374),
    ranking=RankingRule(within_cases=True),
)
_SSA_LESIONS = LesionRule(3, 50, 374, joins=True, removed=50)
_BRATS_2024 = replace(
    _BRATS_2023,
    name="brats-2024-ssa",
    about="BraTS 2024, SSA: as 2023, with NSD; predictions join too; those of up to 50 voxels are removed.",
    measures=_LESION_WISE_2024,
    regions=_TUMOUR,
    lesions=_SSA_LESIONS,
    tissues=_join_enhancing(_SSA_LESIONS),
)
_MET_LESIONS = LesionRule(1, 2, _DIAGONAL, joins=True, removed=2)
_GLI_LESIONS = LesionRule(3, 20, 337, joins=True, removed=20)
_GLI_TISSUES = (
    Tissue("NETC", (1,), _GLI_LESIONS._replace(steps=5), ("ET", "RC")),
    Tissue("SNFH", (2,), _GLI_LESIONS, ("ET", "RC", "NETC")),
    Tissue("ET", (3,), _GLI_LESIONS._replace(ignored=10, removed=10), ("NETC", "RC")),
    Tissue("RC", (4,), _GLI_LESIONS._replace(steps=5), ("ET", "NETC")),
)

_FLARE_ORGANS = (
    "Liver", "RK", "Spleen", "Pancreas", "Aorta", "IVC", "RAG", "LAG", "Gallbladder", "Esophagus", "Stomach",
    "Duodenum", "LK",
)  # fmt: skip
_FLARE_TOLERANCES = (5, 3, 3, 5, 2, 2, 2, 2, 2, 3, 5, 7, 3)
_FLARE_CROPPED = ("Aorta", "IVC", "Esophagus")

_JAWS = (
    "Lower Jawbone", "Upper Jawbone", "Left Inferior Alveolar Canal", "Right Inferior Alveolar Canal",
    "Left Maxillary Sinus", "Right Maxillary Sinus", "Pharynx", "Bridge", "Crown", "Implant",
)  # fmt: skip
_QUADRANTS = ("Upper Right", "Upper Left", "Lower Left", "Lower Right")
_TEETH = (
    "Central Incisor", "Lateral Incisor", "Canine", "First Premolar", "Second Premolar", "First Molar", "Second Molar",
    "Third Molar (Wisdom Tooth)",
)  # fmt: skip
_VESSELS = (
    "BA", "R-PCA", "L-PCA", "R-ICA", "R-MCA", "L-ICA", "L-MCA", "R-Pcom", "L-Pcom", "Acom", "R-ACA", "L-ACA",
)  # fmt: skip
_VESSEL_LABELS = (*range(1, 13), 15)

_ROWS = (
    VolumeProtocol(
        "volumes",
        "Dice, NSD at 1 mm and HD95 by elements, per label of any truth, over cases where either side has it.",
        reorders=True,
    ),
    _BRATS_2023,
    replace(
        _BRATS_2023,
        name="brats-2023-men",
        about="BraTS 2023, MEN: as brats-2023, but lesions within 1 voxel are one.",
        lesions=LesionRule(1, 50, 374),
    ),
    replace(
        _BRATS_2023,
        name="brats-2023-met",
        about="BraTS 2023, MET: as brats-2023, but lesions within 1 voxel are one; up to 2 mm3 are ignored.",
        lesions=LesionRule(1, 2, 374),
    ),
    _BRATS_2024,
    replace(
        _BRATS_2024,
        name="brats-2024-gli",
        about="BraTS 2024, GLI: as brats-2024-ssa, for six regions; up to 20 mm3 are ignored, 20 voxels removed.",
        regions=(*_TUMOUR[:2], *(LabelRegion(tissue.name, tissue.labels) for tissue in _GLI_TISSUES)),
        lesions=_GLI_LESIONS,
        tissues=_GLI_TISSUES,
    ),
    replace(
        _BRATS_2024,
        name="brats-2024-met",
        about="BraTS 2024, MET: WT, TC, ET, RC; lesions within 1 voxel join; up to 2 mm3 ignored; misses: diagonal.",
        regions=(*_TUMOUR, LabelRegion("RC", (4,))),
        lesions=_MET_LESIONS,
        tissues=_join_enhancing(_MET_LESIONS),
    ),
    replace(
        _BRATS_2024,
        name="brats-2024-ped",
        about="BraTS 2024, PED: six regions; lesions within 5 voxels are one; up to 10 mm3 ignored, 10 voxels removed.",
        regions=_regions(WT=(1, 2, 3, 4), TC=(1, 2, 3), ET=(1,), NETC=(2,), CC=(3,), ED=(4,)),
        lesions=LesionRule(5, 10, 374, joins=True, removed=10),
        tissues=(),
    ),
    replace(
        _BRATS_2024,
        name="brats-2024-men",
        about="BraTS 2024, MEN: as brats-2023-men, with NSD at 0.5 and 1 mm.",
        lesions=LesionRule(1, 50, 374),
        tissues=(),
    ),
    replace(
        _BRATS_2024,
        name="brats-2024-men-rt",
        about="BraTS 2024, MEN-RT: GTV; false lesions cost nothing; misses get the diagonal of the volume in voxels.",
        regions=_regions(GTV=(1,)),
        lesions=LesionRule(1, 50, _DIAGONAL, joins=True, removed=50, counts_false=False),
        tissues=(),
    ),
    VolumeProtocol(
        "kits23",
        "KiTS 23: Dice and surface Dice of the regions kidney, mass (2, 3) and tumor (2); both empty 1.",
        ("Dice", "NSD"),
        (
            LabelRegion("kidney", (1, 2, 3), 1.0330772532390826),
            LabelRegion("mass", (2, 3), 1.1328796488598762),
            LabelRegion("tumor", (2,), 1.1498198361434828),
        ),
        _PERFECT,
        ranking=RankingRule(within_cases=False, tie_breaker="Dice_tumor"),
    ),
    VolumeProtocol(
        "autopet",
        "autoPET III and IV: Dice, volumes of false positives and negatives in ml; "
        "healthy cases have only false positives.",
        ("Dice", "FPV", "FNV"),
        _regions(lesion=(1,)),
        EmptyValues(IGNORED, IGNORED, WORST),
    ),
    VolumeProtocol(
        "autopet-2",
        "autoPET II: as autopet, but a prediction in a healthy case has Dice 0.",
        ("Dice", "FPV", "FNV"),
        _regions(lesion=(1,)),
    ),
    VolumeProtocol(
        "totalsegmentator",
        "TotalSegmentator: Dice and NSD at 3 mm with voxels of 1.5 mm, per label, over cases whose truth has it.",
        ("Dice", "NSD"),
        empties=EmptyValues(IGNORED, IGNORED, WORST),
        voxel=1.5,
        tolerance=3.0,
        smoothing=1e-6,
    ),
    VolumeProtocol(
        "flare22",
        "FLARE 22: Dice and NSD of 13 organs to four digits; Dice below 0.2 has NSD 0; both empty 1.",
        ("Dice", "NSD"),
        tuple(
            LabelRegion(name, (label,), tolerance, name in _FLARE_CROPPED)
            for label, (name, tolerance) in enumerate(zip(_FLARE_ORGANS, _FLARE_TOLERANCES), 1)
        ),
        _PERFECT,
        least_dice=0.2,
        digits=4,
    ),
    VolumeProtocol(
        "isles22",
        "ISLES 22: Dice, error of volume in ml, error of the number of lesions, F1 of lesions; both empty 1.",
        ("Dice", "VolumeError", "LesionError", "LesionF1"),
        _regions(lesion=(1,)),
        _PERFECT,
    ),
    VolumeProtocol(
        "hecktor",
        "HECKTOR 22: one Dice of the voxels of all patients for GTVp and for GTVn, averaged.",
        ("DSCagg",),
        _regions(GTVp=(1,), GTVn=(2,)),
        is_aggregated=True,
    ),
    VolumeProtocol(
        "chaos",
        "CHAOS: Dice, RAVD in percent, ASSD and maximum surface distance in mm by borders, open at the volume's ends.",
        ("Dice", "RAVD", "ASSD-border", "HD-border"),
        _regions(liver=(1,)),
        has_open_ends=True,
    ),
    VolumeProtocol(
        "toothfairy",
        "ToothFairy 2: Dice and pooled HD95 in voxels of 42 classes; both empty 1 and 0, one empty 0 and the diagonal.",
        ("Dice", "HD95-pooled"),
        (
            *(LabelRegion(name, (label,)) for label, name in enumerate(_JAWS, 1)),
            *(
                LabelRegion(f"{quadrant} {tooth}", (10 * tens + digit,))
                for tens, quadrant in enumerate(_QUADRANTS, 1)
                for digit, tooth in enumerate(_TEETH, 1)
            ),
        ),
        _PERFECT,
        voxel=1.0,
    ),
    VolumeProtocol(
        "topcow",
        "TopCoW 24: Dice, HD95 and error of Betti number 0, mean over the vessels of a case; one side empty is 90 mm.",
        ("Dice", "HD95-border26", "B0Error"),
        (
            *(LabelRegion(name, (label,)) for label, name in zip(_VESSEL_LABELS, (*_VESSELS, "3rd-A2"))),
            LabelRegion("Merged", _VESSEL_LABELS),
        ),
        beside=("Merged",),
        worst_distance=90.0,
        averages_cases=True,
    ),
    VolumeProtocol(
        "msd",
        "Medical Segmentation Decathlon: Dice and NSD per label; the host sets the tolerances, 1 mm by default.",
        ("Dice", "NSD"),
    ),
    VolumeProtocol(
        "components",
        "PQ, SQ and RQ per label, of 26-components paired at IoU 0.5; recall, precision, Dice of pairs; F1 of touches.",
        ("PQ", "SQ", "RQ", "ComponentRecall", "ComponentPrecision", "ComponentDice", "LesionF1", "LesionError"),
        reorders=True,
    ),
)

VOLUME_PROTOCOLS: Dict[str, VolumeProtocol] = {protocol.name: protocol for protocol in _ROWS}
