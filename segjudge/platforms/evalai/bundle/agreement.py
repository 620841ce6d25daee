"""The agreement of `phases.py`, the YAML and the annotation files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from segjudge.evaluation_script.families import describe_unknown
from segjudge.evaluation_script.families.sequences.protocols import BESIDE, SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.files.problems import HostError, name_hint
from segjudge.evaluation_script.scoring.phase import DETAILS, Phase, PhaseSplit
from segjudge.platforms.rules.problems import BundleProblems, breaks_later, mappings_in, warning

from .agreed_splits import find_other_splits
from .annotations import check_annotations
from .bundle_source import PHASES_FILE, SCRIPT_FOLDER, read_phases
from .opened_bundle import Bundle
from .phase_splits import splits_of
from .scorers import ScoredProtocol, list_protocols
from .secrecy import find_disagreements
from .server_state import ServerState


def check_agreement(bundle: Bundle) -> BundleProblems:
    """Yield differences of `phases.py`, the YAML and the annotation files; none for foreign scorers."""
    if bundle.is_foreign:
        return
    try:
        phases = read_phases(bundle.script[PHASES_FILE], f"{SCRIPT_FOLDER}/{PHASES_FILE}")
    except HostError as error:
        yield breaks_later(PHASES_FILE, f"cannot be read ({error})", "Correct it")
        return
    try:
        protocols = _list_protocols(bundle, phases)
    except HostError as error:
        yield breaks_later(SCRIPT_FOLDER, f"cannot report its phases ({error})", "Correct it and rebuild")
        return
    configured = {str(phase.get("codename")): phase for phase in mappings_in(bundle.config, "challenge_phases")}
    script_phases = {phase.codename: phase for phase in phases}
    for codename in [name for name in configured if name not in script_phases]:
        yield breaks_later("phases.py", f"lacks the phase {codename}", "Add a row, or remove it from the YAML")
    for codename in [name for name in script_phases if name not in configured]:
        fault = f"has the phase {codename}, which the YAML lacks"
        yield breaks_later("phases.py", fault, "Remove it, or add it there")
    for codename in [name for name in configured if name in script_phases]:
        yield from _check_phase(bundle, configured[codename], script_phases[codename], protocols)
    yield from check_reports(bundle, phases)


def describe_scoring(bundle: Bundle) -> dict[str, str]:
    """Return the scoring of each phase in words; empty for foreign scorers."""
    if bundle.is_foreign:
        return {}
    scoring = {}
    phases = read_phases(bundle.script[PHASES_FILE], f"{SCRIPT_FOLDER}/{PHASES_FILE}")
    of_bundle = _list_protocols(bundle, phases)
    for phase in phases:
        protocols = [
            (split.codename, of_bundle[split.protocol]) for split in phase.splits if split.protocol in of_bundle
        ]
        rules = [f"{codename} by {protocol.name}, revision {protocol.revision}" for codename, protocol in protocols]
        scoring[phase.codename] = "; ".join([*rules, "in percent" if phase.percent else "from 0 to 1"])
    return scoring


def _list_protocols(bundle: Bundle, phases: Iterable[Phase]) -> dict[str, ScoredProtocol]:
    return list_protocols(bundle.script, [split.protocol for phase in phases for split in phase.splits])


def check_rescoring(bundle: Bundle, state: ServerState | None) -> BundleProblems:
    """Yield a warning for each phase whose leaderboard would mix scores of different rules."""
    before = state.scoring if state is not None else {}
    try:
        current = describe_scoring(bundle) if before else {}
    except HostError:  # already reported
        return
    for codename in [codename for codename in current if before.get(codename, current[codename]) != current[codename]]:
        fault = f"has been scored differently since the last push ({current[codename]}; before: {before[codename]})"
        remedy = "The leaderboard sorts old scores among new ones: re-run every submission of the phase after the push"
        yield warning(f"phases.py, {codename}", fault, remedy)


def check_reports(bundle: Bundle, phases: Iterable[Phase]) -> BundleProblems:
    """Yield a warning for each phase whose submission pages would stay invisible."""
    for phase in phases if bundle.has_flag("remote_evaluation") else ():
        if phase.report:
            fault = "has report=True, but EvalAI accepts no result file from a remote worker, so nobody sees the page"
            remedy = "Remove it, and make pages with `segjudge report`; the remote worker ignores it"
            yield warning(f"phases.py, {phase.codename}", fault, remedy)


def _check_phase(
    bundle: Bundle, configured: dict[str, Any], phase: Phase, protocols: Mapping[str, ScoredProtocol]
) -> BundleProblems:
    subject = f"phases.py, {phase.codename}"
    if phase.detail not in DETAILS:
        yield breaks_later(subject, f"has detail={phase.detail!r}", f"Write one of {', '.join(DETAILS)}")
    if phase.report not in (True, False):
        yield breaks_later(subject, f"has report={phase.report!r}", "Write True or False")
    yield from _check_notification(subject, phase)
    schemas = {split.codename: split.schema for split in splits_of(bundle.config, configured)}
    yield from find_other_splits(bundle.config, configured, phase)
    yield from find_disagreements(bundle.config, phase)
    for split in phase.splits:
        yield from _check_metrics(subject, split, schemas.get(split.codename, {}), protocols)
    if phase.annotations != (configured.get("test_annotation_file") or phase.annotations):
        yield breaks_later(subject, f"reads {phase.annotations}, not the file of the YAML", "Make them agree")
    else:
        yield from check_annotations(bundle, phase)


def _check_metrics(
    subject: str, split: PhaseSplit, schema: dict[str, Any], protocols: Mapping[str, ScoredProtocol]
) -> BundleProblems:
    if schema.get("labels", list(split.metrics)) != list(split.metrics):
        fault = f"the metrics of {split.codename} differ from the labels of its leaderboard in the YAML"
        yield breaks_later(subject, fault, "Write the same names, in the same order, in both files")
    if split.protocol not in protocols:
        plugins = "or install its plug-in, which the `requirements.txt` of the challenge lists"
        yield breaks_later(subject, describe_unknown(split.protocol), f"Name one, {plugins}")
        return
    metrics = (*protocols[split.protocol].metrics, *(BESIDE if split.protocol in SEQUENCE_PROTOCOLS else ()))
    unknown = [metric for metric in split.metrics if metric not in metrics]
    if unknown:
        fault = f"{split.protocol} has no metric {', '.join(unknown)}{name_hint(unknown[0], metrics)}"
        yield breaks_later(subject, fault, "Use one of its metrics")


def _check_notification(subject: str, phase: Phase) -> BundleProblems:
    """Yield a problem for a notification that can never be sent."""
    notify = phase.notify
    if notify is None or notify.threshold is None:
        return
    visible = [split for split in phase.splits if notify.split in ("", split.codename) and not split.hidden]
    if not any(notify.metric in split.metrics for split in visible):
        metric = f"{notify.metric or 'no metric'} of {notify.split or 'any split'}"
        fault = f"notify names {metric}, which participants may not see"
        yield breaks_later(subject, fault, "Name one of the phase's splits and metrics")
