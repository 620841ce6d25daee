"""The phases: codenames, files, dates, limits and what participants are asked."""

from __future__ import annotations

from typing import Any

from segjudge.bundle.field_values import findings, judged
from segjudge.bundle.fields import ATTRIBUTE, PHASE, TEXT, UNKEPT_OF_PHASE, Field
from segjudge.bundle.opened_bundle import Bundle, escapes, is_html
from segjudge.bundle.problems import BundleProblem, BundleProblems, Detail, crash

from .blocks import entries, lasting_ids, numbered, required, shape
from .challenge import dates, long_path, readable

_PHASE = "ERROR: Challenge phase {} has the following schema errors:\n {{errors}}"
#: Where the server's sentence needs the name, and breaks without.
_NAMELESS = (36, 37, 38, 39)


def phases(bundle: Bundle) -> BundleProblems:
    """All phases; without any the server skips the rest of these rules."""
    quote = "ERROR: No challenge phase key found. Please add challenge phases in the YAML file and try again!"
    yield from shape(
        bundle,
        "challenge_phases",
        BundleProblem("challenge_phases", "is missing or empty", "Add a phase", quote, rule=34),
    )
    seen: list[Any] = []
    for where, one in entries(bundle, "challenge_phases"):
        for finding in (*_codename(where, one, seen), *phase(bundle, where, one)):
            nameless = finding.rule in _NAMELESS and "name" not in one and not finding.detail
            yield crash(finding.where, finding.found, finding.remedy, finding.rule) if nameless else finding
    yield from lasting_ids(bundle, "challenge_phases")


def _codename(where: str, one: dict[str, Any], seen: list[Any]) -> BundleProblems:
    codename = one.get("codename")
    if "codename" not in one:
        quote = "ERROR: No codename found for the challenge phase. Please add a codename and try again!"
        yield BundleProblem(f"{where}.codename", "is missing", "Add it, as in phases.py", quote, rule=35)
    elif codename in seen:
        quote = f"ERROR: Duplicate codename {codename} for phase {one.get('name')}. Please ensure codenames are unique"
        yield BundleProblem(f"{where}.codename", f"{codename} is there twice", "Rename one of them", quote, rule=36)
    else:
        seen.append(codename)


def phase(bundle: Bundle, where: str, one: dict[str, Any]) -> BundleProblems:
    """One phase, its codename's uniqueness apart."""
    number = one.get("id")
    quote = _PHASE.format(number)
    yield from _annotation(bundle, where, one, quote)
    yield from _description(bundle, where, one, quote)
    if one.get("is_submission_public") and one.get("is_restricted_to_select_one_submission"):
        told = (
            f"ERROR: is_submission_public can't be 'True' for challenge phase '{one.get('name')}' with "
            "is_restricted_to_select_one_submission 'True'. Please change is_submission_public to 'False' and "
            "try again!"
        )
        yield BundleProblem(
            f"{where}.is_submission_public", "contradicts the restriction", "Set it to False", told, rule=39
        )
    yield from dates(f"{where}.", one, f" in challenge phase {number}", 40)
    yield from _attributes(f"{where}.submission_meta_attributes", number, one.get("submission_meta_attributes"))
    if "id" not in one:
        yield crash(f"{where}.id", "is missing", "Number it", 45)
        return
    yield from required(where, "name", one, quote, 44)
    yield from _serialized(where, one, quote)


def _serialized(where: str, one: dict[str, Any], quote: str) -> BundleProblems:
    given, copied = dict(one), one.get("max_submissions_per_month") is None
    if copied:  # as the server does
        given["max_submissions_per_month"] = one.get("max_submissions")
    for key in ("start_date", "end_date"):
        if given.get(key) is None:
            given.pop(key, None)  # told above; the serializer takes it
    fields = {**numbered(one, PHASE), **UNKEPT_OF_PHASE}
    for finding in findings(f"{where}.", given, fields, quote, 44, names={"id": "config_id"}):
        if not copied or not finding.where.endswith(".max_submissions_per_month"):
            yield finding
        elif finding.detail and "max_submissions" not in one:
            found, remedy = "and max_submissions_per_month are missing", "Add one of them"
            yield BundleProblem(f"{where}.max_submissions", found, remedy, quote, rule=44, detail=finding.detail)
        elif finding.detail:
            found = "is what max_submissions_per_month is taken from"
            yield BundleProblem(
                f"{where}.max_submissions", found, finding.remedy, quote, rule=44, detail=finding.detail, follows=True
            )


def _description(bundle: Bundle, where: str, one: dict[str, Any], quote: str) -> BundleProblems:
    path, where = one.get("description"), f"{where}.description"
    if not path:
        told = f" ERROR: There is no key for description in phase {one.get('name')}."
        yield BundleProblem(where, "is missing", "Name an .html file of templates/", told, rule=37)
        absent = Detail("description", "This field is required.", "required")
        detail = judged("description", path, Field(TEXT, "")) if "description" in one else absent
        if detail:
            yield BundleProblem(where, "is missing", "Name an .html file", quote, rule=44, detail=detail, follows=True)
    elif not isinstance(path, str):
        yield crash(where, f"is {path!r:.60}, not a path", "Name an .html file of templates/", 45)
    elif escapes(path) or not bundle.has(path) or not is_html(path):
        found = f"names {path}, which is not an .html file of the bundle"
        null = Detail("description", "This field may not be null.", "null")
        yield BundleProblem(where, found, "Add the file, or correct the path", quote, rule=37, detail=null)
    else:
        yield from readable(bundle, where, path, quote, 44, blank=False)


def _annotation(bundle: Bundle, where: str, one: dict[str, Any], quote: str) -> BundleProblems:
    path, where = one.get("test_annotation_file"), f"{where}.test_annotation_file"
    if not path:
        return  # the server lets it pass; what becomes of it is told by `traps`
    if not isinstance(path, str):
        yield crash(where, f"is {path!r:.60}, not a path", "Name a file of annotations/", 45)
    elif escapes(path) or not bundle.has(path):
        told = f"ERROR: No test annotation file found in the zip file for challenge phase {one.get('name')}"
        yield BundleProblem(where, f"names {path}, which is not there", "Make it with segjudge pack", told, rule=38)
    elif not bundle.size(path):
        detail = Detail("test_annotation", "The submitted file is empty.", "empty")
        yield BundleProblem(where, f"{path} is empty", "Make it with segjudge pack", quote, rule=44, detail=detail)
    else:
        yield from long_path(where, path, quote, 44, field="test_annotation")


def _attributes(where: str, number: Any, attributes: Any) -> BundleProblems:
    if not attributes:
        return
    if not isinstance(attributes, list) or any(not isinstance(one, dict) for one in attributes):
        yield crash(where, "is not a list of mappings", "Begin each with - name:", 41)
        return
    for place, one in enumerate(attributes):
        yield from _attribute(f"{where}[{place}]", number, one)


def _attribute(here: str, number: Any, one: dict[str, Any]) -> BundleProblems:
    missing = [key for key, field in ATTRIBUTE.items() if field.required and key not in one]
    if missing:
        quote = (
            "ERROR: Please enter the following fields for the submission meta attribute in challenge phase "
            f"{number}: {', '.join(missing)}"
        )
        yield BundleProblem(here, f"lacks {', '.join(missing)}", "Add them", quote, rule=41)
        return
    kinds, options = ATTRIBUTE["type"].choices, one.get("options")
    if one["type"] not in kinds:
        quote = (
            f"ERROR: Please ensure that the submission meta attribute types for the attribute '{one['type']}' "
            f"in challenge phase {number} are among the following: boolean, text, radio, or checkbox."
        )
        yield BundleProblem(f"{here}.type", f"is {one['type']}", f"Use one of {', '.join(kinds)}", quote, rule=42)
    elif one["type"] not in ("radio", "checkbox"):
        return
    elif not options:
        quote = f"ERROR: Please include at least one option in the attribute for challenge phase {number}"
        yield BundleProblem(f"{here}.options", "is missing", "List what may be chosen", quote, rule=43)
    elif not hasattr(options, "__len__"):
        yield crash(f"{here}.options", f"is {options!r:.60}, not a list", "List what may be chosen", 43)
