"""`phases.py`, the YAML and the annotation files say the same."""

from __future__ import annotations

import io
from typing import Any

from segjudge.evaluation_script import instance_truth, packed_file, sequence_truth
from segjudge.evaluation_script.errors import HostError
from segjudge.evaluation_script.instance_protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.phase import Phase
from segjudge.evaluation_script.phases import PHASES
from segjudge.evaluation_script.sequence_protocols import BESIDE, SEQUENCE_PROTOCOLS

from .opened_bundle import Bundle
from .problems import BundleProblems, items, later, name_of

#: Visibilities of splits that EvalAI shows to hosts alone: "host", "owner and host".
KEPT_BACK = ("1", "2")


class Agreement:
    """Compares what EvalAI is told with what the scorers do."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle, self._config = bundle, bundle.config

    def findings(self) -> BundleProblems:
        """`phases.py`, the YAML and the annotation files say the same."""
        told = {str(phase.get("codename")): phase for phase in items(self._config, "challenge_phases")}
        scored = {phase.codename: phase for phase in PHASES}
        for codename in [name for name in told if name not in scored]:
            yield later("phases.py", f"lacks the phase {codename}", "Add a row, or remove it from the YAML")
        for codename in [name for name in scored if name not in told]:
            yield later("phases.py", f"has the phase {codename}, which the YAML lacks", "Remove it, or add it there")
        for codename in [name for name in told if name in scored]:
            yield from self._phase_agreement(told[codename], scored[codename])

    def _phase_agreement(self, told: dict[str, Any], scored: Phase) -> BundleProblems:
        where = f"phases.py, {scored.codename}"
        names = {name_of(split): name_of(split, "codename") for split in items(self._config, "dataset_splits")}
        boards = {
            name_of(board): board["schema"] if isinstance(board.get("schema"), dict) else {}
            for board in items(self._config, "leaderboard")
        }
        mapped = {
            names.get(name_of(row, "dataset_split_id")): boards.get(name_of(row, "leaderboard_id"), {})
            for row in items(self._config, "challenge_phase_splits")
            if row.get("challenge_phase_id") == told.get("id")
        }
        kept_back = {
            names.get(name_of(row, "dataset_split_id"))
            for row in items(self._config, "challenge_phase_splits")
            if row.get("challenge_phase_id") == told.get("id") and str(row.get("visibility")) in KEPT_BACK
        }
        yield from _notify_agreement(where, scored)
        if set(mapped) != {shown.codename for shown in scored.splits}:
            yield later(where, f"its splits are not the YAML's ({', '.join(map(str, mapped))})", "Make them agree")
        for shown in scored.splits:
            if shown.codename in kept_back and not shown.hidden:
                found = (
                    f"shows the scores of {shown.codename}, which the visibility in the YAML keeps from participants"
                )
                yield later(where, found, f'Write Shown("{shown.codename}", …, hidden=True), or set visibility: 3')
            labels = mapped.get(shown.codename, {}).get("labels", list(shown.metrics))
            if labels != list(shown.metrics):
                yield later(
                    where, f"the metrics of {shown.codename} are not the labels of its leaderboard", "Copy them"
                )
            known = _metrics_of(shown.protocol)
            if not known:
                yield later(where, f"{shown.protocol} is not a protocol", "See docs/hosts.md")
                continue
            unknown = [metric for metric in shown.metrics if metric not in known]
            if unknown:
                yield later(where, f"{shown.protocol} has no metric {', '.join(unknown)}", "Use one that it has")
        if scored.annotations != (told.get("test_annotation_file") or scored.annotations):
            yield later(where, f"reads {scored.annotations}, not the file of the YAML", "Make them agree")
        elif self._bundle.has(scored.annotations) and self._bundle.size(scored.annotations):
            yield from self._truth_agreement(where, scored)

    def _truth_agreement(self, where: str, scored: Phase) -> BundleProblems:
        data = io.BytesIO(self._bundle.read(scored.annotations))
        try:
            splits, track = packed_file.splits_of(data), packed_file.track_of(data)
        except HostError as error:
            yield later(scored.annotations, str(error), "Pack it anew")
            return
        scored_track = _track_of(scored)
        if splits and track != scored_track:
            found = f"{scored.annotations} holds {track}, not {scored_track}"
            yield later(where, found, "Name another file or protocol")
        elif splits and not {shown.codename for shown in scored.splits} <= set(splits):
            yield later(where, f"{scored.annotations} has the splits {', '.join(splits)} only", "Pack what is missing")


def _notify_agreement(where: str, scored: Phase) -> BundleProblems:
    """A rule that can never fire tells nobody anything."""
    rule = scored.notify
    if rule is None or rule.threshold is None:
        return
    shown = [split for split in scored.splits if rule.split in ("", split.codename) and not split.hidden]
    if not any(rule.metric in split.metrics for split in shown):
        what = f"{rule.metric or 'no metric'} of {rule.split or 'any split'}"
        found = f"notify names {what}, which no participant sees"
        yield later(where, found, "Name one of the phase's splits and metrics")


def _track_of(phase: Phase) -> str:
    """Return the track of a phase's protocols."""
    of_instances = any(split.protocol in INSTANCE_PROTOCOLS for split in phase.splits)
    return instance_truth.TRACK if of_instances else sequence_truth.TRACK


def _metrics_of(protocol: str) -> tuple[str, ...]:
    """Return what a protocol can show; nothing when there is no such protocol."""
    if protocol in INSTANCE_PROTOCOLS:
        return INSTANCE_PROTOCOLS[protocol].metrics
    return (*SEQUENCE_PROTOCOLS[protocol].metrics, *BESIDE) if protocol in SEQUENCE_PROTOCOLS else ()
