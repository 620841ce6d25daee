"""The phases: codenames, files, dates, limits and what participants are asked."""

from __future__ import annotations

from collections import Counter
from typing import Any

from linejudge.bundle.fields import ATTRIBUTE, PHASE
from linejudge.bundle.finding import Detail, Finding, Findings, crash
from linejudge.bundle.opened import Bundle, escapes
from linejudge.bundle.values import findings

from .blocks import entries, required, same_id, shape
from .challenge import dates, long_path, readable

_PHASE = "ERROR: Challenge phase {} has the following schema errors:\n {{errors}}"


def phases(bundle: Bundle) -> Findings:
    """All phases; without any the server skips the rest of these rules."""
    quote = "ERROR: No challenge phase key found. Please add challenge phases in the YAML file and try again!"
    yield from shape(
        bundle, "challenge_phases", Finding("challenge_phases", "is missing or empty", "Add a phase", quote, rule=34)
    )
    seen: Counter[str] = Counter()
    for where, phase in entries(bundle, "challenge_phases"):
        codename = str(phase.get("codename"))
        seen[codename] += 1
        if not phase.get("codename"):
            quote = "ERROR: No codename found for the challenge phase. Please add a codename and try again!"
            yield Finding(f"{where}.codename", "is missing", "Add it, as in phases.py", quote, rule=35)
        elif seen[codename] > 1:
            quote = (
                f"ERROR: Duplicate codename {codename} for phase {phase.get('name')}. "
                "Please ensure codenames are unique"
            )
            yield Finding(f"{where}.codename", f"{codename} is there twice", "Rename one of them", quote, rule=36)
        yield from _phase(bundle, where, phase)
    yield from same_id(bundle, "challenge_phases")


def _phase(bundle: Bundle, where: str, phase: dict[str, Any]) -> Findings:
    number = phase.get("id")
    quote = _PHASE.format(number)
    if "id" not in phase:
        yield crash(f"{where}.id", "is missing", "Number it", 45)
    yield from required(where, "name", phase, quote, 44)
    yield from _description(bundle, where, phase, quote)
    yield from _annotation(bundle, where, phase, quote)
    if phase.get("is_submission_public") and phase.get("is_restricted_to_select_one_submission"):
        told = (
            f"ERROR: is_submission_public can't be 'True' for challenge phase '{phase.get('name')}' with "
            "is_restricted_to_select_one_submission 'True'. Please change is_submission_public to 'False' and "
            "try again!"
        )
        yield Finding(f"{where}.is_submission_public", "contradicts the restriction", "Set it to False", told, rule=39)
    yield from dates(f"{where}.", phase, f" in challenge phase {number}", 40)
    yield from _attributes(f"{where}.submission_meta_attributes", number, phase.get("submission_meta_attributes"))
    told_above = [key for key in ("codename", "start_date", "end_date") if not phase.get(key)]
    if "max_submissions" in phase and phase.get("max_submissions_per_month") is None:
        told_above.append("max_submissions_per_month")  # the server copies it
    fields = {key: field for key, field in PHASE.items() if key not in told_above}
    given = {key: value for key, value in phase.items() if key != "id" or value}
    yield from findings(f"{where}.", given, fields, quote, 44, names={"id": "config_id"})
    if "max_submissions" not in phase and "max_submissions_per_month" not in phase:
        detail = Detail("max_submissions_per_month", "This field may not be null.", "null")
        found, remedy = "and max_submissions_per_month are missing", "Add one of them"
        yield Finding(f"{where}.max_submissions", found, remedy, quote, rule=44, detail=detail)


def _description(bundle: Bundle, where: str, phase: dict[str, Any], quote: str) -> Findings:
    path, where = phase.get("description"), f"{where}.description"
    if not path:
        told = f" ERROR: There is no key for description in phase {phase.get('name')}."
        yield Finding(where, "is missing", "Name an .html file of templates/", told, rule=37)
    elif not isinstance(path, str):
        yield crash(where, f"is {path!r}, no path", "Name an .html file of templates/", 45)
    elif escapes(path) or not bundle.has(path) or not path.endswith(".html"):
        detail = Detail("description", "This field may not be null.", "null")
        found = f"names {path}, which is no .html file of the bundle"
        yield Finding(where, found, "Add the file, or mend the path", quote, rule=37, detail=detail)
    else:
        yield from readable(bundle, where, path, quote, 44)


def _annotation(bundle: Bundle, where: str, phase: dict[str, Any], quote: str) -> Findings:
    path, where = phase.get("test_annotation_file"), f"{where}.test_annotation_file"
    if not path:
        return  # the server lets it pass; what becomes of it is told by `traps`
    if not isinstance(path, str):
        yield crash(where, f"is {path!r}, no path", "Name a file of annotations/", 45)
    elif escapes(path) or not bundle.has(path):
        told = f"ERROR: No test annotation file found in the zip file for challenge phase {phase.get('name')}"
        yield Finding(where, f"names {path}, which is not there", "Make it with linejudge pack", told, rule=38)
    elif not bundle.size(path):
        detail = Detail("test_annotation", "The submitted file is empty.", "empty")
        yield Finding(where, f"{path} is empty", "Make it with linejudge pack", quote, rule=44, detail=detail)
    else:
        yield from long_path(where, path, quote, 44, field="test_annotation")


def _attributes(where: str, number: Any, attributes: Any) -> Findings:
    if not attributes:
        return
    if not isinstance(attributes, list) or any(not isinstance(one, dict) for one in attributes):
        yield crash(where, "is no list of mappings", "Begin each with - name:", 41)
        return
    for place, one in enumerate(attributes):
        here = f"{where}[{place}]"
        missing = [key for key, field in ATTRIBUTE.items() if field.required and key not in one]
        if missing:
            quote = (
                "ERROR: Please enter the following fields for the submission meta attribute in challenge phase "
                f"{number}: {', '.join(missing)}"
            )
            yield Finding(here, f"lacks {', '.join(missing)}", "Add them", quote, rule=41)
            continue
        kinds = ATTRIBUTE["type"].choices
        if one["type"] not in kinds:
            quote = (
                f"ERROR: Please ensure that the submission meta attribute types for the attribute '{one['type']}' "
                f"in challenge phase {number} are among the following: boolean, text, radio, or checkbox."
            )
            yield Finding(f"{here}.type", f"is {one['type']}", f"Use one of {', '.join(kinds)}", quote, rule=42)
        elif one.get("options") is not None and not isinstance(one["options"], list):
            yield crash(f"{here}.options", f"is {one['options']!r}, no list", "List what may be chosen", 43)
        elif one["type"] in ("radio", "checkbox") and not one.get("options"):
            quote = f"ERROR: Please include at least one option in the attribute for challenge phase {number}"
            yield Finding(f"{here}.options", "is missing", "List what may be chosen", quote, rule=43)
