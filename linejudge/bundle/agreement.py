"""`phases.py`, the YAML and the annotation files say the same."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from evaluation_script import instance_truth, truth
from evaluation_script.errors import HostError
from evaluation_script.instance_protocols import INSTANCE_PROTOCOLS
from evaluation_script.phase import Phase
from evaluation_script.phases import PHASES
from evaluation_script.sequence_protocols import BESIDE, PROTOCOLS

from .finding import Finding, Findings, items


class Agreement:
    """Compares what EvalAI is told with what the scorers do."""

    def __init__(self, config: dict[str, Any], files: zipfile.ZipFile) -> None:
        self._config, self._files = config, files
        self._names = set(files.namelist())

    def findings(self) -> Findings:
        """`phases.py`, the YAML and the annotation files say the same."""
        told = {str(phase.get("codename")): phase for phase in items(self._config, "challenge_phases")}
        scored = {phase.codename: phase for phase in PHASES}
        for codename in told.keys() - scored.keys():
            yield Finding("phases.py", f"lacks the phase {codename}", "Add a row, or remove it from the YAML")
        for codename in scored.keys() - told.keys():
            yield Finding("phases.py", f"has the phase {codename}, which the YAML lacks", "Remove it, or add it there")
        for codename in told.keys() & scored.keys():
            yield from self._phase_agreement(told[codename], scored[codename])

    def _phase_agreement(self, told: dict[str, Any], scored: Phase) -> Findings:
        where = f"phases.py, {scored.codename}"
        names = {split.get("id"): split.get("codename") for split in items(self._config, "dataset_splits")}
        boards = {board.get("id"): board.get("schema", {}) for board in items(self._config, "leaderboard")}
        mapped = {
            names.get(row.get("dataset_split_id")): boards.get(row.get("leaderboard_id"), {})
            for row in items(self._config, "challenge_phase_splits")
            if row.get("challenge_phase_id") == told.get("id")
        }
        yield from _notify_agreement(where, scored)
        if set(mapped) != {shown.codename for shown in scored.splits}:
            yield Finding(where, f"its splits are not the YAML's ({', '.join(map(str, mapped))})", "Make them agree")
        for shown in scored.splits:
            labels = list(mapped.get(shown.codename, {}).get("labels", shown.metrics))
            if labels != list(shown.metrics):
                yield Finding(
                    where, f"the metrics of {shown.codename} are not the labels of its leaderboard", "Copy them"
                )
            known = _metrics_of(scored.track, shown.protocol)
            if not known:
                yield Finding(where, f"{shown.protocol} is no protocol of {scored.track}", "See docs/hosts.md")
                continue
            unknown = [metric for metric in shown.metrics if metric not in known]
            if unknown:
                yield Finding(where, f"{shown.protocol} has no metric {', '.join(unknown)}", "Use one that it has")
        if scored.annotations != told.get("test_annotation_file", scored.annotations):
            yield Finding(where, f"reads {scored.annotations}, not the file of the YAML", "Make them agree")
        elif scored.annotations in self._names:
            yield from self._truth_agreement(where, scored)

    def _truth_agreement(self, where: str, scored: Phase) -> Findings:
        data = io.BytesIO(self._files.read(scored.annotations))
        try:
            splits, track = truth.splits_of(data), truth.track_of(data)
        except HostError as error:
            yield Finding(scored.annotations, str(error), "Pack it anew")
            return
        if splits and track != scored.track:
            yield Finding(
                where, f"{scored.annotations} holds {track}, not {scored.track}", "Name another file or track"
            )
        elif splits and not {shown.codename for shown in scored.splits} <= set(splits):
            yield Finding(
                where, f"{scored.annotations} has the splits {', '.join(splits)} only", "Pack what is missing"
            )


def _notify_agreement(where: str, scored: Phase) -> Findings:
    """A rule that can never fire tells nobody anything."""
    rule = scored.notify
    if rule is None or rule.threshold is None:
        return
    shown = [split for split in scored.splits if rule.split in ("", split.codename)]
    if not any(rule.metric in split.metrics for split in shown):
        found = f"notify names {rule.metric or 'no metric'} of {rule.split or 'any split'}, which no leaderboard shows"
        yield Finding(where, found, "Name one of the phase's splits and metrics")


def _metrics_of(track: str, protocol: str) -> tuple[str, ...]:
    """What a protocol can show; nothing when the track has no such protocol."""
    if track == instance_truth.TRACK:
        return INSTANCE_PROTOCOLS[protocol].metrics if protocol in INSTANCE_PROTOCOLS else ()
    return (*PROTOCOLS[protocol].metrics, *BESIDE) if protocol in PROTOCOLS else ()
