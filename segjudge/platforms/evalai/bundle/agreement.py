"""Whether `phases.py`, the YAML and the annotation files say the same."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from segjudge.evaluation_script.families import PROTOCOLS, describe_unknown
from segjudge.evaluation_script.families.sequences.protocols import BESIDE, SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.files import packed as packed_file
from segjudge.evaluation_script.files.problems import HostError, name_hint
from segjudge.evaluation_script.scoring.phase import DETAILS, Phase, PhaseSplit
from segjudge.platforms.evalai.rows import is_descending

from .bundle_source import PHASES_FILE, SCRIPT_FOLDER, BundleSource, read_phases
from .opened_bundle import Bundle
from .problems import BundleProblems, breaks_later, hashable_value, mappings_in, warning
from .server_state import ServerState

#: The visibility of a split that participants see; every other one keeps it from them.
_PUBLIC = "3"


def check_agreement(bundle: Bundle) -> BundleProblems:
    """Yield where `phases.py`, the YAML and the annotation files differ; nothing where the scorers are not ours."""
    if bundle.is_foreign:
        return
    try:
        phases = read_phases(bundle.script[PHASES_FILE], f"{SCRIPT_FOLDER}/{PHASES_FILE}")
    except HostError as error:
        yield breaks_later(PHASES_FILE, f"cannot be read ({error})", "Correct it")
        return
    configured = {str(phase.get("codename")): phase for phase in mappings_in(bundle.config, "challenge_phases")}
    own_phases = {phase.codename: phase for phase in phases}
    for codename in [name for name in configured if name not in own_phases]:
        yield breaks_later("phases.py", f"lacks the phase {codename}", "Add a row, or remove it from the YAML")
    for codename in [name for name in own_phases if name not in configured]:
        fault = f"has the phase {codename}, which the YAML lacks"
        yield breaks_later("phases.py", fault, "Remove it, or add it there")
    for codename in [name for name in configured if name in own_phases]:
        yield from _check_phase(bundle, configured[codename], own_phases[codename])
    yield from check_reports(bundle, phases)


def describe_scoring(bundle: Bundle) -> dict[str, str]:
    """By codename of the phase, in words; nothing where the scorers are not ours."""
    if bundle.is_foreign:
        return {}
    scoring = {}
    for phase in read_phases(bundle.script[PHASES_FILE], f"{SCRIPT_FOLDER}/{PHASES_FILE}"):
        protocols = [
            (split.codename, PROTOCOLS[split.protocol]) for split in phase.splits if split.protocol in PROTOCOLS
        ]
        rules = [f"{codename} by {protocol.name}, revision {protocol.revision}" for codename, protocol in protocols]
        scoring[phase.codename] = "; ".join([*rules, "in percent" if phase.percent else "from 0 to 1"])
    return scoring


def check_rescoring(bundle: Bundle, state: ServerState | None) -> BundleProblems:
    """Yield a warning for each phase whose new scores would stand among old ones that were made in another way."""
    before = state.scoring if state is not None else {}
    try:
        current = describe_scoring(bundle) if before else {}
    except HostError:  # said already
        return
    for codename in [codename for codename in current if before.get(codename, current[codename]) != current[codename]]:
        fault = f"is scored otherwise than at the last push ({current[codename]}; before: {before[codename]})"
        remedy = "The leaderboard sorts old scores among new ones: re-run every submission of the phase after the push"
        yield warning(f"phases.py, {codename}", fault, remedy)


def check_reports(bundle: Bundle, phases: Iterable[Phase]) -> BundleProblems:
    """Yield a warning for each phase whose page of a submission nobody would see."""
    for phase in phases if bundle.has_flag("remote_evaluation") else ():
        if phase.report:
            fault = (
                "has report=True, and EvalAI takes no result file from a remote worker, so that nobody sees the page"
            )
            remedy = "Remove it, and make pages yourself with `segjudge report`; the remote worker leaves it out"
            yield warning(f"phases.py, {phase.codename}", fault, remedy)


def _check_phase(bundle: Bundle, configured: dict[str, Any], phase: Phase) -> BundleProblems:
    subject = f"phases.py, {phase.codename}"
    if phase.detail not in DETAILS:
        yield breaks_later(subject, f"has detail={phase.detail!r}", f"Write one of {', '.join(DETAILS)}")
    if phase.report not in (True, False):
        yield breaks_later(subject, f"has report={phase.report!r}", "Write True or False")
    yield from _check_notification(subject, phase)
    schemas = {split.codename: split.schema for split in splits_of(bundle.config, configured)}
    yield from _find_revealed_splits(bundle.config, configured, phase)
    for split in phase.splits:
        yield from _check_metrics(subject, split, schemas.get(split.codename, {}))
    if phase.annotations != (configured.get("test_annotation_file") or phase.annotations):
        yield breaks_later(subject, f"reads {phase.annotations}, not the file of the YAML", "Make them agree")
    elif bundle.has(phase.annotations) and bundle.size(phase.annotations):
        yield from _check_truth(bundle, subject, phase)


def _find_revealed_splits(config: dict[str, Any], configured: dict[str, Any], phase: Phase) -> BundleProblems:
    """Yield where a phase shows what the YAML keeps from participants; the scorers know `phases.py` alone."""
    subject = f"phases.py, {phase.codename}"
    mapped = splits_of(config, configured)
    names = [*dict.fromkeys(split.codename for split in mapped)]
    hidden = {split.codename for split in mapped if not split.is_public}
    if {*names} != {split.codename for split in phase.splits}:
        fault = f"its splits are not the YAML's ({', '.join(names)})"
        yield breaks_later(subject, fault, "Make them agree")
    for split in phase.splits:
        if split.codename in hidden and not split.hidden:
            fault = f"shows the scores of {split.codename}, which the visibility in the YAML keeps from participants"
            remedy = f'Write PhaseSplit("{split.codename}", …, hidden=True), or set visibility: 3'
            yield breaks_later(subject, fault, remedy)


def check_secrecy(config: dict[str, Any], phases: Iterable[Phase]) -> None:
    """Raise `HostError` where `phases.py` shows what the YAML hides, or lacks a phase: nothing is built of that."""
    own_phases: Mapping[str, Phase] = {phase.codename: phase for phase in phases}
    problems: list[str] = []
    for configured in mappings_in(config, "challenge_phases"):
        codename = str(configured.get("codename"))
        if codename not in own_phases:
            raise HostError(f"{SCRIPT_FOLDER}/{PHASES_FILE}: lacks the phase {codename}; run `segjudge check`")
        problems += map(str, _find_revealed_splits(config, configured, own_phases[codename]))
    if problems:
        raise HostError("\n".join(problems))


def find_hidden_splits(source: BundleSource, phase: Phase) -> frozenset[str]:
    """The splits that `phases.py` or the YAML keeps from participants."""
    import yaml

    from .yaml_lines import read_yaml

    try:
        content, _ = read_yaml(source.config_name, Path(source.root, source.config_name).read_bytes())
    except (OSError, yaml.YAMLError):
        content = None
    config: dict[str, Any] = content if isinstance(content, dict) else {}
    rows = [row for row in mappings_in(config, "challenge_phases") if str(row.get("codename")) == phase.codename]
    mapped = [split for row in rows for split in splits_of(config, row)]
    return phase.hidden.union(split.codename for split in mapped if not split.is_public)


@dataclass(frozen=True)
class MappedSplit:
    """A split of a phase, as a row of `challenge_phase_splits` has it."""

    codename: str
    #: The schema of its leaderboard.
    schema: dict[str, Any]
    row: dict[str, Any]

    @property
    def is_public(self) -> bool:
        """Whether participants see its scores."""
        return str(self.row.get("visibility")) == _PUBLIC

    def is_descending(self, label: str) -> bool:
        """Tell whether its leaderboard shows the largest value of a label first."""
        return is_descending(self.schema, label, self.row.get("is_leaderboard_order_descending"))


def splits_of(config: dict[str, Any], phase: dict[str, Any]) -> list[MappedSplit]:
    """List the splits that the YAML maps to a phase, whatever else is wrong with it."""
    codenames = {
        hashable_value(split): hashable_value(split, "codename") for split in mappings_in(config, "dataset_splits")
    }
    schemas = {hashable_value(board): board.get("schema") for board in mappings_in(config, "leaderboard")}
    splits = []
    for row in mappings_in(config, "challenge_phase_splits"):
        if row.get("challenge_phase_id") == phase.get("id"):
            codename = str(codenames.get(hashable_value(row, "dataset_split_id")))
            schema = schemas.get(hashable_value(row, "leaderboard_id"))
            splits.append(MappedSplit(codename, schema if isinstance(schema, dict) else {}, row))
    return splits


def _check_metrics(subject: str, split: PhaseSplit, schema: dict[str, Any]) -> BundleProblems:
    if schema.get("labels", list(split.metrics)) != list(split.metrics):
        fault = f"the metrics of {split.codename} are not the labels of its leaderboard"
        yield breaks_later(subject, fault, "Copy them")
    if split.protocol not in PROTOCOLS:
        plugins = "or install what brings it, as the `requirements.txt` of the challenge lists it"
        yield breaks_later(subject, describe_unknown(split.protocol), f"Name one, {plugins}")
        return
    metrics = (*PROTOCOLS[split.protocol].metrics, *(BESIDE if split.protocol in SEQUENCE_PROTOCOLS else ()))
    unknown = [metric for metric in split.metrics if metric not in metrics]
    if unknown:
        fault = f"{split.protocol} has no metric {', '.join(unknown)}{name_hint(unknown[0], metrics)}"
        yield breaks_later(subject, fault, "Use one that it has")


def _check_truth(bundle: Bundle, subject: str, phase: Phase) -> BundleProblems:
    name, data = phase.annotations, io.BytesIO(bundle.read(phase.annotations))
    try:
        splits, family = packed_file.splits_of(data), packed_file.family_of(data)
    except HostError as error:
        yield breaks_later(name, str(error), "Pack it anew")
        return
    scored_families = {PROTOCOLS[split.protocol].family for split in phase.splits if split.protocol in PROTOCOLS}
    if splits and scored_families - {family}:
        fault = f"{name} holds {family}, not {', '.join(sorted(scored_families - {family}))}"
        yield breaks_later(subject, fault, "Name another file or protocol")
    elif splits and not {split.codename for split in phase.splits} <= set(splits):
        yield breaks_later(subject, f"{name} has the splits {', '.join(splits)} only", "Pack what is missing")


def _check_notification(subject: str, phase: Phase) -> BundleProblems:
    """Yield a problem for a notification that can never be sent."""
    notify = phase.notify
    if notify is None or notify.threshold is None:
        return
    visible = [split for split in phase.splits if notify.split in ("", split.codename) and not split.hidden]
    if not any(notify.metric in split.metrics for split in visible):
        metric = f"{notify.metric or 'no metric'} of {notify.split or 'any split'}"
        fault = f"notify names {metric}, which no participant sees"
        yield breaks_later(subject, fault, "Name one of the phase's splits and metrics")
