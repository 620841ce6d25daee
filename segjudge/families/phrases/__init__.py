"""Phrases in pictures and videos: losses of pmF1, new challenges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from segjudge.evaluation_script.families.phrases.protocols import VIDEOS_LAYOUT
from segjudge.evaluation_script.files.problems import quantity
from segjudge.families.base.unit_tools import UnitLosses, UnitTools
from segjudge.system.errors import UsageError

if TYPE_CHECKING:
    from segjudge.evaluation_script.families.base.family import ScoringRules
    from segjudge.evaluation_script.families.base.reports import Report
    from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitTruth
    from segjudge.families.base.memory import MemoryDoor
    from segjudge.families.base.pictures import UnitPainter
    from segjudge.families.base.tools import Facts, ScoringInputs
    from segjudge.report.page import PageOptions, Section

__all__ = ["TOOLS"]


class _PhraseTools(UnitTools):
    label_groups = (("pHOTA", "pDetA", "pAssA"), ("phrase_AP", "mAP"), ("TETA", "LocA", "AssocA", "ClsA"))
    groups = "subsets"
    meanings: ClassVar = {
        "cgF1": "pmF1 times IL_MCC: how well all objects of a phrase are found",
        "pmF1": "F1 of objects in positive pairs, mean over IoU thresholds .50 to .95",
        "IL_MCC": "Matthews correlation of predicted and true presence of the phrase",
        "pHOTA": "higher order tracking accuracy of video-phrase pairs",
        "pDetA": "detection accuracy of pHOTA",
        "pAssA": "association accuracy of pHOTA",
        "phrase_AP": "average precision of tracks, over all pairs together",
        "mAP": "average precision of tracks, mean over phrases",
        "TETA": "track every thing accuracy, mean of its three parts",
        "LocA": "localisation accuracy of TETA",
        "AssocA": "association accuracy of TETA",
        "ClsA": "classification accuracy of TETA",
    }

    def bounds_of(self, metric: str) -> tuple[float | None, float | None]:
        return (-1.0, 1.0) if metric in ("cgF1", "IL_MCC") else super().bounds_of(metric)

    def measure_losses(self, accumulator: UnitAccumulator[Any]) -> UnitLosses:
        """Return the loss of pmF1: missed, surplus and partial objects, averaged over thresholds and subsets.

        With the official rules, the sum is 1 minus pmF1 without the constant that the script adds to denominators.
        """
        import numpy as np

        from segjudge.evaluation_script.families.phrases import counting

        every_pair = accumulator.stack("pair")
        is_positive = (every_pair[:, counting.OBJECTS] > 0) | (every_pair[:, counting.ANSWER] == counting.RIGHT)
        pairs, subsets = every_pair[is_positive], len(accumulator.facts["subsets"])
        hits, objects, assigned = pairs[:, counting.FOUND], pairs[:, [counting.OBJECTS]], pairs[:, [counting.ASSIGNED]]
        surplus = np.where(pairs[:, [counting.ANSWER]] == counting.RIGHT, pairs[:, counting.SURPLUS], 0)
        partial = np.minimum(assigned - hits, surplus)
        missed = np.broadcast_to(objects - assigned, hits.shape)
        costs = np.stack([partial + (assigned - hits), surplus - partial, missed])
        totals = np.zeros((subsets, hits.shape[1]))
        np.add.at(totals, pairs[:, counting.SUBSET], hits + surplus + objects)
        weight = 1 / np.maximum(totals, 1)[pairs[:, counting.SUBSET]] / subsets
        by_unit = np.zeros((len(every_pair), 3))  # without objects and predictions for them, no loss
        by_unit[is_positive] = (costs * weight).mean(axis=2).T
        by_subset = np.zeros((subsets, 3))
        np.add.at(by_subset, pairs[:, counting.SUBSET], by_unit[is_positive])
        kinds = {
            "partial": "objects whose assigned prediction does not cover them well enough",
            "surplus": "surplus predictions in pairs with objects",
            "missed": "objects without a prediction",
        }
        return UnitLosses(kinds, by_unit, by_subset)

    def open_painter(self, results: str, truth: UnitTruth, rules: ScoringRules, images: str = "") -> UnitPainter:
        from .pictures import PhrasePainter, VideoPhrasePainter

        return (VideoPhrasePainter if truth.form == VIDEOS_LAYOUT else PhrasePainter)(results, truth, rules)

    def name_losses(self, protocol: Any) -> tuple[str, str]:
        return "pmF1", "pairs"

    def make_sections(self, inputs: ScoringInputs, report: Report, options: PageOptions) -> list[Section]:
        from segjudge.evaluation_script.families.phrases.counting import ANSWER
        from segjudge.report.page import make_list

        accumulator = self.counts_of(report)
        answers = accumulator.stack("pair")[:, ANSWER].tolist()
        names = ["objects in both", "objects only predicted", "objects only in the truth", "no objects in either"]
        counts = [{"name": name, "pairs": answers.count(kind)} for kind, name in enumerate(names)]
        about = "Predicted and true presence of objects that the phrase names, as IL_MCC measures it."
        verdict, *sections = super().make_sections(inputs, report, options)
        return [verdict, make_list("Answers", counts, about), *sections]

    def open_memory(self, protocol: Any, categories: Sequence[Mapping[str, Any]], unseen: Iterable[str]) -> MemoryDoor:
        from .memory import PhrasesInMemory, VideoPhrasesInMemory

        if protocol.videos and protocol.official:
            raise UsageError(f"{protocol.name} scores only files: TETA needs all phrases of a video; use sa-co-veval")
        return (VideoPhrasesInMemory if protocol.videos else PhrasesInMemory)(protocol)

    def describe_truth(self, truths: list[Any], protocol: Any) -> Facts:
        facts = super().describe_truth(truths, protocol)
        units = sum(len(truth.units) for truth in truths)
        kind = "video" if protocol.videos else "picture"
        about = f"Find every object that a phrase names, in {quantity(units, 'pair')} of a {kind} and a phrase."
        subsets = [subset for (subset,) in truths[0].facts["subsets"]]
        return {**facts, "about": about, "subsets": subsets, "videos": protocol.videos}


TOOLS = _PhraseTools()
