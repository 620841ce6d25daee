"""Rules of the phases: codenames, files, dates, limits and the questions to participants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from segjudge.platforms.evalai.bundle.field_values import field_problems, validate
from segjudge.platforms.evalai.bundle.fields import ATTRIBUTE, PHASE, TEXT, UNKEPT_OF_PHASE, Field
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle, escapes, is_html
from segjudge.platforms.evalai.bundle.problems import BundleProblem, BundleProblems, FieldError, crash

from .blocks import block_shape, entries, id_problems, is_list_of_mappings, missing_field
from .challenge import dates, long_path, readable

#: The rules whose sentence holds the phase's name: without one the server crashes.
_NEEDS_NAME = (36, 37, 38, 39)


def phases(bundle: Bundle) -> BundleProblems:
    """Yield the problems of all phases; without any the server skips the other rules."""
    quote = "ERROR: No challenge phase key found. Please add challenge phases in the YAML file and try again!"
    yield from block_shape(bundle, "challenge_phases", "Add a phase", quote, 34)
    seen: list[Any] = []
    for where, item in entries(bundle, "challenge_phases"):
        for problem in (*_codename(where, item, seen), *phase(bundle, where, item)):
            nameless = problem.rule in _NEEDS_NAME and "name" not in item and not problem.error
            yield crash(problem.where, problem.found, problem.remedy, problem.rule) if nameless else problem
    yield from id_problems(bundle, "challenge_phases")


def _codename(where: str, item: dict[str, Any], seen: list[Any]) -> BundleProblems:
    codename = item.get("codename")
    if "codename" not in item:
        quote = "ERROR: No codename found for the challenge phase. Please add a codename and try again!"
        yield BundleProblem(f"{where}.codename", "is missing", "Add it, as in phases.py", quote, 35)
    elif codename in seen:
        quote = f"ERROR: Duplicate codename {codename} for phase {item.get('name')}. Please ensure codenames are unique"
        yield BundleProblem(f"{where}.codename", f"{codename} is there twice", "Rename one of them", quote, 36)
    else:
        seen.append(codename)


def phase(bundle: Bundle, where: str, item: dict[str, Any]) -> BundleProblems:
    """Yield the problems of one phase, except those of its codename."""
    number = item.get("id")
    quote = f"ERROR: Challenge phase {number} has the following schema errors:\n {{errors}}"
    yield from _annotation(bundle, where, item, quote)
    yield from _description(bundle, where, item, quote)
    if item.get("is_submission_public") and item.get("is_restricted_to_select_one_submission"):
        public_quote = (
            f"ERROR: is_submission_public can't be 'True' for challenge phase '{item.get('name')}' with "
            "is_restricted_to_select_one_submission 'True'. Please change is_submission_public to 'False' and "
            "try again!"
        )
        path = f"{where}.is_submission_public"
        yield BundleProblem(path, "contradicts the restriction", "Set it to False", public_quote, 39)
    yield from dates(f"{where}.", item, f" in challenge phase {number}", 40)
    yield from _attributes(f"{where}.submission_meta_attributes", number, item.get("submission_meta_attributes"))
    if "id" not in item:
        yield crash(f"{where}.id", "is missing", "Number it", 45)
        return
    yield from missing_field(where, "name", item, quote, 44)
    yield from _serialized(where, item, quote)


def _serialized(where: str, item: dict[str, Any], quote: str) -> BundleProblems:
    # Dates that are null are reported by `dates`; the serializer accepts them.
    given = {key: value for key, value in item.items() if value is not None or key not in ("start_date", "end_date")}
    copied = item.get("max_submissions_per_month") is None
    if copied:  # as the server does
        given["max_submissions_per_month"] = item.get("max_submissions")
    fields = {**PHASE, **UNKEPT_OF_PHASE}
    for problem in field_problems(f"{where}.", given, fields, quote, 44):
        if not copied or not problem.where.endswith(".max_submissions_per_month"):
            yield problem
        elif "max_submissions" not in item:
            found = "and max_submissions_per_month are missing"
            yield replace(problem, where=f"{where}.max_submissions", found=found, remedy="Add one of them")
        else:
            found = "is what max_submissions_per_month is taken from"
            yield replace(problem, where=f"{where}.max_submissions", found=found, consequence=True)


def _description(bundle: Bundle, where: str, item: dict[str, Any], quote: str) -> BundleProblems:
    path, where = item.get("description"), f"{where}.description"
    if not path:
        missing = f" ERROR: There is no key for description in phase {item.get('name')}."
        yield BundleProblem(where, "is missing", "Name an .html file of templates/", missing, 37)
        absent = FieldError("description", "This field is required.", "required")
        error = validate("description", path, Field(TEXT, "")) if "description" in item else absent
        if error:
            yield BundleProblem(where, "is missing", "Name an .html file", quote, 44, error=error, consequence=True)
    elif not isinstance(path, str):
        yield crash(where, f"is {path!r:.60}, not a path", "Name an .html file of templates/", 45)
    elif escapes(path) or not bundle.has(path) or not is_html(path):
        found = f"names {path}, which is not an .html file of the bundle"
        null = FieldError("description", "This field may not be null.", "null")
        yield BundleProblem(where, found, "Add the file, or correct the path", quote, 37, error=null)
    else:
        yield from readable(bundle, where, path, quote, 44, blank=False)


def _annotation(bundle: Bundle, where: str, item: dict[str, Any], quote: str) -> BundleProblems:
    path, where = item.get("test_annotation_file"), f"{where}.test_annotation_file"
    if not path:
        return  # the server accepts it; `pitfalls` reports what goes wrong later
    if not isinstance(path, str):
        yield crash(where, f"is {path!r:.60}, not a path", "Name a file of annotations/", 45)
    elif escapes(path) or not bundle.has(path):
        missing = f"ERROR: No test annotation file found in the zip file for challenge phase {item.get('name')}"
        found = f"names {path}, which is not there"
        yield BundleProblem(where, found, "Add the file, or correct the path", missing, 38)
    elif not bundle.size(path):
        error = FieldError("test_annotation", "The submitted file is empty.", "empty")
        yield BundleProblem(where, f"{path} is empty", "Make it again", quote, 44, error=error)
    else:
        yield from long_path(where, path, quote, 44, field="test_annotation")


def _attributes(where: str, number: object, attributes: object) -> BundleProblems:
    if not attributes:
        return
    if not is_list_of_mappings(attributes):
        yield crash(where, "is not a list of mappings", "Begin each with - name:", 41)
        return
    for index, attribute in enumerate(attributes):
        yield from _attribute(f"{where}[{index}]", number, attribute)


def _attribute(where: str, number: object, attribute: dict[str, Any]) -> BundleProblems:
    missing = [key for key, field in ATTRIBUTE.items() if field.required and key not in attribute]
    if missing:
        quote = (
            "ERROR: Please enter the following fields for the submission meta attribute in challenge phase "
            f"{number}: {', '.join(missing)}"
        )
        yield BundleProblem(where, f"lacks {', '.join(missing)}", "Add them", quote, 41)
        return
    kinds, options = ATTRIBUTE["type"].choices, attribute.get("options")
    if attribute["type"] not in kinds:
        quote = (
            f"ERROR: Please ensure that the submission meta attribute types for the attribute '{attribute['type']}' "
            f"in challenge phase {number} are among the following: boolean, text, radio, or checkbox."
        )
        yield BundleProblem(f"{where}.type", f"is {attribute['type']}", f"Use one of {', '.join(kinds)}", quote, 42)
    elif attribute["type"] not in ("radio", "checkbox"):
        return
    elif not options:
        quote = f"ERROR: Please include at least one option in the attribute for challenge phase {number}"
        yield BundleProblem(f"{where}.options", "is missing", "List what may be chosen", quote, 43)
    elif not hasattr(options, "__len__"):
        yield crash(f"{where}.options", f"is {options!r:.60}, not a list", "List what may be chosen", 43)
