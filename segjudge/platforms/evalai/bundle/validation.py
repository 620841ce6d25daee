"""EvalAI's validation: one row per rule, numbered by its position on the server.

The items of a block are checked one by one, then as a whole.
"""

from __future__ import annotations

import io
import os
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from PIL import Image

from segjudge.platforms.rules.fields import TEXT, Field, FieldError, validate
from segjudge.platforms.rules.problems import BundleProblem, BundleProblems, breaks_later, crash, mappings_in, warning
from segjudge.platforms.rules.rule_rows import (
    BREAKS_LATER,
    CRASH,
    WARNS,
    Check,
    RuleRow,
    Verdict,
    all_of,
    check_each,
    entries,
    first_of,
    is_absent,
    is_repeated,
)

from .fields import (
    ATTRIBUTE,
    CHALLENGE,
    LEADERBOARD,
    MAPPING,
    PHASE,
    PRIZE,
    SPLIT,
    UNKEPT,
    UNKEPT_OF_MAPPING,
    UNKEPT_OF_PHASE,
)
from .opened_bundle import Bundle, escapes
from .server_state import REFERENCES, SPLIT_SETTINGS
from .shared_rules import (
    BLANK,
    EMPTY_FILE,
    ID_RULES,
    NO_FILE,
    NO_PICTURE,
    NUL,
    NULL,
    REQUIRED,
    SERIALIZER,
    Entry,
    check_dates,
    check_fields,
    has_no_length,
    holds_nul,
    is_blank_text,
    is_empty,
    is_empty_file,
    is_no_list_of_mappings,
    is_no_text,
    is_not_in_bundle,
    is_not_utf8,
    lacks,
    limit_path_length,
    require_key,
    require_list,
)

_PICTURES = (".jpg", ".jpeg", ".png")
_TAGS = 4
_IMAGES = "an EC2 AMI (ami-...) or an EvalAI ECR image in this AWS account (evalai-* repositories)"
_OWN_IMAGE = FieldError("", f"worker_image_url must be {_IMAGES}.", "invalid")


# ── the challenge ───────────────────────────────────────────────────────────────────────────────────────────────────


def _is_html(path: str) -> bool:
    """Return whether a string has the ending that EvalAI requires."""
    return os.path.normpath(path).endswith(".html")


def _text_rules(key: str, rule: int, quote: str) -> Check:
    remedy = "Name an .html file in templates/"
    return first_of(
        RuleRow(rule, key, is_empty, "is missing", remedy, quote),
        RuleRow(8, key, is_no_text, "is {value!r:.60}, not a path", remedy, CRASH),
        RuleRow(14, key, lambda entry: escapes(entry.value), "points outside the bundle ({value})", "Name a file in it",
            "Invalid file path for {key}."),
        RuleRow(15, key, is_not_in_bundle, "names {value}, which does not exist", "Add the file, or correct the path",
            "File at path {key} not found. Please specify a valid file path"),
        RuleRow(16, key,
            lambda entry: not _is_html(entry.value), "names {value}, which is not an .html file", "Rename it",
            "File {key} is not a HTML file. Please specify a valid HTML file"),
        RuleRow(0, key, is_not_utf8, "{value} is not UTF-8", "Save it as UTF-8", CRASH),
        RuleRow(24, key, holds_nul, "{value} holds a NUL character", "Remove it", SERIALIZER, NUL),
        RuleRow(0, key, is_blank_text, "{value} is empty", "Write the text, unless the page is meant to be empty",
            WARNS),
    )  # fmt: skip


def _is_not_a_zip(entry: Entry) -> Verdict:
    try:
        with zipfile.ZipFile(io.BytesIO(entry.bundle.read(entry.value))):
            return False
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError):
        return True


def _is_not_a_package(entry: Entry) -> Verdict:
    if entry.bundle.is_foreign and entry.bundle.is_evaluated_elsewhere:
        return False  # EvalAI stores such a script and never loads it
    with zipfile.ZipFile(io.BytesIO(entry.bundle.read(entry.value))) as script:
        return "__init__.py" not in script.namelist()


_SCRIPT_REMEDY = "Write evaluation_script.zip; the build makes it"
#: EvalAI accepts any file that ends in .zip, and then every submission would fail.
_PACKAGE_REMEDY = "Rebuild it with __init__.py at the top, not in a folder"
_SCRIPT = first_of(
    RuleRow(17, "evaluation_script", is_empty, "is missing", _SCRIPT_REMEDY,
        "ERROR: There is no key for the evaluation script in the YAML file. Please add it and then try again!"),
    RuleRow(8, "evaluation_script", is_no_text, "is {value!r}, not a path", _SCRIPT_REMEDY, CRASH),
    RuleRow(18, "evaluation_script",
        lambda entry: not entry.value.endswith(".zip"), "is {value}, not a .zip", _SCRIPT_REMEDY,
        "ERROR: Please pass in a zip file as evaluation script. If using the `evaluation_script` directory "
        "(recommended), it should be `evaluation_script.zip`."),
    RuleRow(19, "evaluation_script", is_not_in_bundle, "names {value}, which does not exist", _SCRIPT_REMEDY,
        "ERROR: No evaluation script is present in the zip file. Please add it and then try again!"),
    RuleRow(24, "evaluation_script", is_empty_file, "{value} is empty", _SCRIPT_REMEDY, SERIALIZER, EMPTY_FILE),
    all_of(
        limit_path_length("evaluation_script", SERIALIZER, 24),
        first_of(
            RuleRow(0, "evaluation_script", _is_not_a_zip, "{value} is not a zip", _PACKAGE_REMEDY, BREAKS_LATER),
            RuleRow(0, "evaluation_script", _is_not_a_package, "{value} has no __init__.py at its top", _PACKAGE_REMEDY,
                BREAKS_LATER),
        ),
    ),
)  # fmt: skip


def _names_no_picture(entry: Entry) -> Verdict:
    path = str(entry.value or "")
    is_picture = path and not escapes(path) and entry.bundle.has(path) and path.endswith(_PICTURES)
    return None if is_picture else {"picture": path or "nothing"}


def _is_not_an_image(entry: Entry) -> Verdict:
    try:
        Image.open(io.BytesIO(entry.bundle.read(entry.value))).verify()
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return True
    return False


#: Rule 9 reports values that are neither a path nor empty.
_PICTURE = first_of(
    RuleRow(24, "image", _names_no_picture,
        "names {picture}, which is not a .png, .jpg or .jpeg file in the bundle (with a lower-case ending)",
        "Add the picture, or correct the path", SERIALIZER, NO_FILE),
    RuleRow(24, "image", is_empty_file, "{value} is empty", "Replace it", SERIALIZER, EMPTY_FILE),
    limit_path_length("image", SERIALIZER, 24, folder=0),
    RuleRow(24, "image", _is_not_an_image, "{value} is not a picture", "Replace it", SERIALIZER, NO_PICTURE),
    unless=lambda entry: entry.item.get("image") is None
        or (entry.item["image"] and not isinstance(entry.item["image"], str)),
)  # fmt: skip


def _check_challenge_fields(entry: Entry) -> BundleProblems:
    elsewhere = ("tags", "domain", "prizes", "sponsors", "leaderboard")
    fields = {key: field for key, field in CHALLENGE.items() if key not in elsewhere and not field.items}
    required = {key for key, field in CHALLENGE.items() if field.required}  # other rules report empty ones
    validated = {key: value for key, value in entry.item.items() if value or key not in required}
    if not hasattr(entry.item.get("title"), "__len__"):
        validated.pop("title", None)  # rule 8
    yield from check_fields(replace(entry, item=validated), {**fields, **UNKEPT}, SERIALIZER, 24)


def _is_own_image(entry: Entry) -> Verdict:
    text = "" if entry.value is None else str(entry.value).strip()
    is_valid = not validate("worker_image_url", entry.value, CHALLENGE["worker_image_url"])
    images = r"(?i:ami-[0-9a-f]+$)|\d+\.dkr\.ecr\.[\w-]+\.amazonaws\.com/evalai-"
    return bool(text) and is_valid and not re.match(images, text)


_CHALLENGE = all_of(
    first_of(
        RuleRow(8, "title", is_empty, "is missing", "Give the challenge a title", "Please add the challenge title"),
        RuleRow(8, "title", has_no_length, "is {written}, not a text", "Put it in quotes", CRASH),
    ),
    RuleRow(9, "image", lambda entry: entry.value and is_no_text(entry), "is {value!r:.60}, not a path",
        "Name a picture in the bundle", CRASH),
    _text_rules("description", 10, "Please add the challenge description"),
    _text_rules("evaluation_details", 11, "Please add the evaluation details"),
    _text_rules("terms_and_conditions", 12, "Please add the terms and conditions."),
    _text_rules("submission_guidelines", 13, "Please add the submission guidelines."),
    _SCRIPT,
    check_dates("", missing=20, late=21, kinds=22),
    _PICTURE,
    _check_challenge_fields,
    RuleRow(24, "worker_image_url", _is_own_image, "is your own image", "Remove it", SERIALIZER, _OWN_IMAGE),
)  # fmt: skip


# ── leaderboards ────────────────────────────────────────────────────────────────────────────────────────────────────


def _contains(container: Any, value: object) -> bool | None:
    """Return whether the server finds a value in a container; None if `in` raises."""
    try:
        return value in container
    except TypeError:
        return None


def _cannot_be_searched(entry: Entry) -> Verdict:
    has_order = _contains(entry.value, "default_order_by")
    return has_order is None or (has_order and not isinstance(entry.value, dict))


_SCHEMA_RULES = first_of(
    RuleRow(27, "schema", _cannot_be_searched, "is not a mapping", "Write labels and default_order_by into it", CRASH),
    all_of(
        RuleRow(28, "schema.labels", lambda entry: not _contains(entry.owner["schema"], "labels"), "is missing",
            "List the metrics", "ERROR: There is no 'labels' key in the schema for the leaderboard with ID: {number}."),
        first_of(
            RuleRow(29, "schema.default_order_by",
                lambda entry: not _contains(entry.owner["schema"], "default_order_by"),
                "is missing", "Name one of the labels",
                "ERROR: There is no 'default_order_by' key in the schema for the leaderboard with ID: {number}."),
            RuleRow(30, "schema.default_order_by",
                lambda entry: "labels" in entry.item and _contains(entry.item["labels"], entry.value) is None,
                "cannot be found in labels ({value!r:.60})", "Name one of the labels", CRASH),
            RuleRow(30, "schema.default_order_by",
                lambda entry: "labels" in entry.item and not _contains(entry.item["labels"], entry.value),
                "{value} is not a label", "Name one of the labels",
                "ERROR: The 'default_order_by' value '{value}' in the schema for the leaderboard with ID: {number} "
                "is not a valid label."),
        ),
        first_of(  # the server accepts it, but its pages cannot show it
            RuleRow(0, "schema.labels", lambda entry: not isinstance(entry.value, list) or not entry.value
                    or {*map(type, entry.value)} != {str},
                "is not a list of names", 'Write ["J&F-Mean", "J-Mean"]: the page breaks', BREAKS_LATER),
            RuleRow(0, "schema.labels", lambda entry: len({*entry.value}) < len(entry.value), "names a metric twice",
                "Keep one: the columns are found by name", BREAKS_LATER),
            unless=lambda entry: not isinstance(entry.item["schema"], dict) or "labels" not in entry.item["schema"],
        ),
        RuleRow(0, "schema.metadata",
            lambda entry: "labels" in entry.item and entry.value is not None and not isinstance(entry.value, dict),
            "is not a mapping: EvalAI accepts it, but answers every request for the leaderboard with error 500",
            "Write label: {{sort_ascending: False}}, or remove it", BREAKS_LATER),
    ),
    unless=lambda entry: "schema" not in entry.item,
)  # fmt: skip
_BEFORE_SERIALIZER = all_of(
    RuleRow(26, "id", is_absent, "is missing", "Number it", "ERROR: There is no leaderboard ID for the leaderboard."),
    RuleRow(27, "schema", is_absent, "is missing", "Add labels and default_order_by",
        "ERROR: There is no leaderboard schema for the leaderboard with ID: {number}."),
    _SCHEMA_RULES,
)  # fmt: skip


def _check_leaderboard(entry: Entry) -> BundleProblems:
    """Yield the problems of one leaderboard; its serializer runs only if all earlier tests pass."""
    problems = [*_BEFORE_SERIALIZER(entry)]
    yield from problems
    if all(problem.accepted for problem in problems):
        quote = "ERROR: The leaderboard with ID: {number} has the following schema errors:\n {errors}"
        yield from check_fields(entry, LEADERBOARD, quote, 31)


_LEADERBOARDS = all_of(
    require_list("leaderboard", "Add a leaderboard",
        "ERROR: There is no key for the leaderboard in the YAML file. Please add it and then try again!", 25),
    check_each("leaderboard", _check_leaderboard),
    check_each("leaderboard", ID_RULES),
)  # fmt: skip


# ── phases ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_PHASE_ERRORS = "ERROR: Challenge phase {number} has the following schema errors:\n {errors}"
_HTML_REMEDY = "Name an .html file in templates/"


def _is_refused_by_serializer(entry: Entry) -> Verdict:
    """Return the serializer's error, if any; it may still accept an empty description as text."""
    error = validate("description", entry.value, Field(TEXT, "")) if entry.is_written else REQUIRED
    return {"error": error} if error else None


_DESCRIPTION = first_of(
    all_of(
        RuleRow(37, "description", is_empty, "is missing", _HTML_REMEDY,
            " ERROR: There is no key for description in phase {name}."),
        RuleRow(44, "description", lambda entry: is_empty(entry) and _is_refused_by_serializer(entry), "is missing",
            "Name an .html file", _PHASE_ERRORS, consequence=True),
    ),
    RuleRow(45, "description", is_no_text, "is {value!r:.60}, not a path", _HTML_REMEDY, CRASH),
    RuleRow(37, "description", lambda entry: is_not_in_bundle(entry) or not _is_html(entry.value),
        "names {value}, which is not an .html file in the bundle", "Add the file, or correct the path", _PHASE_ERRORS,
        NULL),
    RuleRow(0, "description", is_not_utf8, "{value} is not UTF-8", "Save it as UTF-8", CRASH),
    RuleRow(44, "description", is_blank_text, "{value} is empty", "Write the text", _PHASE_ERRORS, BLANK),
    RuleRow(44, "description", holds_nul, "{value} holds a NUL character", "Remove it", _PHASE_ERRORS, NUL),
)  # fmt: skip
#: Without a file the server accepts the phase, and its worker dies later.
_ANNOTATION = first_of(
    RuleRow(45, "test_annotation_file", is_no_text, "is {value!r:.60}, not a path", "Name a file of annotations/",
        CRASH),
    RuleRow(38, "test_annotation_file", is_not_in_bundle, "names {value}, which does not exist",
        "Add the file, or correct the path",
        "ERROR: No test annotation file found in the zip file for challenge phase {name}"),
    RuleRow(44, "test_annotation_file", is_empty_file, "{value} is empty", "Write it again", _PHASE_ERRORS,
        replace(EMPTY_FILE, field="test_annotation")),
    limit_path_length("test_annotation_file", _PHASE_ERRORS, 44, field="test_annotation"),
    unless=lambda entry: not entry.item.get("test_annotation_file"),
)  # fmt: skip


def _asks_for_choice(entry: Entry) -> bool:
    return entry.item["type"] in ("radio", "checkbox")


_KINDS = ATTRIBUTE["type"].choices
_ATTRIBUTE_RULES = first_of(
    RuleRow(41, "", lacks(*(key for key, field in ATTRIBUTE.items() if field.required)), "lacks {missing}", "Add them",
        "ERROR: Please enter the following fields for the submission meta attribute in challenge phase {number}: "
        "{missing}"),
    RuleRow(42, "type", lambda entry: entry.value not in _KINDS, "is {value}", f"Use one of {', '.join(_KINDS)}",
        "ERROR: Please ensure that the submission meta attribute types for the attribute '{value}' in challenge "
        "phase {number} are among the following: boolean, text, radio, or checkbox."),
    RuleRow(43, "options", lambda entry: _asks_for_choice(entry) and not entry.value, "is missing", "List the options",
        "ERROR: Please include at least one option in the attribute for challenge phase {number}"),
    RuleRow(43, "options",
        lambda entry: _asks_for_choice(entry) and has_no_length(entry), "is {value!r:.60}, not a list",
        "List the options", CRASH),
)  # fmt: skip


def _check_attributes(entry: Entry) -> BundleProblems:
    key_entry = entry.child("submission_meta_attributes")
    for index, attribute in enumerate(key_entry.value):
        yield from _ATTRIBUTE_RULES(replace(key_entry, path=f"{key_entry.path}[{index}]", item=attribute))


def _check_phase_fields(entry: Entry) -> BundleProblems:
    # Dates that are null are reported by rule 40; the serializer accepts them.
    dates = ("start_date", "end_date")
    values = {key: value for key, value in entry.item.items() if value is not None or key not in dates}
    is_copied = entry.item.get("max_submissions_per_month") is None
    if is_copied:  # as the server does
        values["max_submissions_per_month"] = entry.item.get("max_submissions")
    key_entry = entry.child("max_submissions")
    for problem in check_fields(replace(entry, item=values), {**PHASE, **UNKEPT_OF_PHASE}, _PHASE_ERRORS, 44):
        if not is_copied or not problem.subject.endswith(".max_submissions_per_month"):
            yield problem
        elif not key_entry.is_written:
            fault = "and max_submissions_per_month are missing"
            yield replace(problem, subject=key_entry.path, fault=fault, remedy="Add one of them")
        else:
            fault = "replaces the missing max_submissions_per_month"
            yield replace(problem, subject=key_entry.path, fault=fault, consequence=True)


_PHASE_RULES = all_of(
    _ANNOTATION,
    _DESCRIPTION,
    RuleRow(39, "is_submission_public",
        lambda entry: entry.value and entry.item.get("is_restricted_to_select_one_submission"),
        "contradicts the restriction", "Set it to False",
        "ERROR: is_submission_public can't be 'True' for challenge phase '{name}' with "
        "is_restricted_to_select_one_submission 'True'. Please change is_submission_public to 'False' and try again!"),
    check_dates(" in challenge phase {number}", missing=40, late=40, kinds=45),
    first_of(
        RuleRow(41, "submission_meta_attributes", is_no_list_of_mappings, "is not a list of mappings",
            "Begin each with - name:", CRASH),
        _check_attributes,
        unless=lambda entry: not entry.item.get("submission_meta_attributes"),
    ),
    first_of(
        RuleRow(45, "id", is_absent, "is missing", "Number it", CRASH),
        all_of(require_key("name", _PHASE_ERRORS, 44), _check_phase_fields),
    ),
)  # fmt: skip
_PHASE_AND_CODENAME = all_of(
    RuleRow(35, "codename", is_absent, "is missing", "Add it, as in phases.py",
        "ERROR: No codename found for the challenge phase. Please add a codename and try again!"),
    RuleRow(36, "codename", is_repeated, "{value} occurs twice", "Rename one of them",
        "ERROR: Duplicate codename {value} for phase {name}. Please ensure codenames are unique"),
    _PHASE_RULES,
)  # fmt: skip


def _check_phase(entry: Entry) -> BundleProblems:
    for problem in _PHASE_AND_CODENAME(entry):
        # The sentences of these rules contain the phase's name, without which the server crashes.
        is_crash = problem.rule in (36, 37, 38, 39) and "name" not in entry.item and not problem.error
        yield crash(problem.subject, problem.fault, problem.remedy, problem.rule) if is_crash else problem


_PHASES = all_of(
    require_list("challenge_phases", "Add a phase",
        "ERROR: No challenge phase key found. Please add challenge phases in the YAML file and try again!", 34),
    check_each("challenge_phases", _check_phase),
    check_each("challenge_phases", ID_RULES),
)  # fmt: skip


# ── dataset splits ──────────────────────────────────────────────────────────────────────────────────────────────────

_SPLIT_ERRORS = "ERROR: Dataset split {number} has the following schema errors:\n {errors}"
_SPLIT_RULES = first_of(
    RuleRow(52, "id", is_absent, "is missing", "Number it", CRASH),
    all_of(
        require_key("name", _SPLIT_ERRORS, 51),
        require_key("codename", _SPLIT_ERRORS, 51),
        lambda entry: check_fields(entry, SPLIT, _SPLIT_ERRORS, 51),
    ),
)  # fmt: skip
_SPLIT_NAMES = all_of(
    RuleRow(48, "name", is_empty, "is missing", "Add it", "ERROR: There is no name for dataset split {number}."),
    RuleRow(49, "codename", is_absent, "is missing", "Add it",
        "ERROR: There is no codename for dataset split {number}."),
    first_of(
        RuleRow(50, "codename", lambda entry: "name" not in entry.item and is_repeated(entry), "{value} occurs twice",
            "Rename one of them", CRASH),
        RuleRow(50, "codename", is_repeated, "{value} occurs twice", "Rename one of them",
            "ERROR: Duplicate codename {value} for dataset split {name}. Please ensure codenames are unique."),
    ),
)  # fmt: skip
#: The server checks them twice.
_SPLITS = all_of(
    require_list("dataset_splits", "Add a split", "ERROR: There is no key for dataset splits.", 47),
    check_each("dataset_splits", _SPLIT_NAMES),
    check_each("dataset_splits", _SPLIT_RULES),
    check_each("dataset_splits", ID_RULES),
)  # fmt: skip


# ── splits of phases on leaderboards ────────────────────────────────────────────────────────────────────────────────

PHASE_SPLITS = "challenge_phase_splits"
_NUMBERED = {"leaderboard_id": _check_leaderboard, "challenge_phase_id": _PHASE_RULES, "dataset_split_id": _SPLIT_RULES}


def find_accepted(bundle: Bundle, key: str) -> list[Entry]:
    """Return the items that a row's key may name: those that pass the rules of their own block."""
    accepted = []
    for entry in entries(bundle, REFERENCES[key][0]):
        refused = [problem for problem in _NUMBERED[key](entry) if not problem.accepted]
        if not any(problem.error or problem.rule in range(26, 31) for problem in refused):
            accepted.append(entry)
    return accepted


def find_accepted_ids(bundle: Bundle, key: str) -> list[Any]:
    return [entry.item.get("id") for entry in find_accepted(bundle, key)]


def ids_of(bundle: Bundle, block: str) -> list[Any]:
    return [item.get("id") for item in mappings_in(bundle.config, block)]


def to_integer(value: Any) -> int | None:
    """Return `int(value)` as the server tries it; None if that raises."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _reference(key: str, accepted: Sequence[Any]) -> Check:
    """Return the rules of a key that names an id of another block."""
    block, word = REFERENCES[key]

    def is_unknown(entry: Entry) -> Verdict:
        ids = ids_of(entry.bundle, block)
        if entry.value in accepted:
            return False
        # An id and the same id in quotes are two for the server, and so for Python.
        is_quoted = any(str(entry.value) == str(number) for number in ids)
        is_right = entry.value in ids
        fault = f"points at an invalid entry of {block}" if is_right else f"{entry.value!r} is not an id of {block}"
        remedy = "Remove the quotes" if is_quoted else "Write an id of that block"
        return {"fault": fault, "remedy": remedy, "consequence": is_right}

    quote = f"ERROR: Invalid {word} id {{value}} found in challenge phase split {{number}}."
    return first_of(
        RuleRow(58, key, lambda entry: to_integer(entry.value) is None, "is {value!r:.60}, not a number",
            "Write an id of that block", CRASH),
        RuleRow(58, key, is_unknown, "{fault}", "{remedy}", quote),
        unless=lambda entry: key not in entry.item,
    )  # fmt: skip


def _check_mappings(entry: Entry) -> BundleProblems:
    bundle, number = entry.bundle, 1
    block = bundle.config.get(PHASE_SPLITS)
    if not block and not isinstance(block, (str, list, dict)):
        yield crash(PHASE_SPLITS, "is missing", "Map each phase to its splits", 55)
        return
    quote = "ERROR: There is no key for challenge phase splits."
    yield from require_list(PHASE_SPLITS, "Map each phase to its splits", quote, 55)(entry)
    yield from _check_duplicates(bundle)
    fields = {**{key: MAPPING[key] for key in SPLIT_SETTINGS}, **UNKEPT_OF_MAPPING}
    quote = "ERROR: Challenge phase split {number} has the following schema errors:\n {errors}"
    rules = all_of(
        RuleRow(55, "", lacks(*REFERENCES), "lacks {missing}", "Add it", CRASH),
        first_of(
            RuleRow(57, "", lacks(*SPLIT_SETTINGS), "lacks {missing}", "Add them: none has a default here",
                "ERROR: The following keys are missing in the challenge phase splits of YAML file (phase_split: "
                "{number}): {missing}"),
            all_of(
                *(_reference(key, find_accepted_ids(bundle, key)) for key in REFERENCES),
                lambda row: check_fields(row, fields, quote, 59),
            ),
        ),
    )  # fmt: skip
    for row in entries(bundle, PHASE_SPLITS):
        yield from rules(replace(row, number=number))
        # The server counts only rows that have every key.
        number += {*REFERENCES, *SPLIT_SETTINGS} <= row.item.keys()
    yield from _check_shown_once(bundle)


def _check_duplicates(bundle: Bundle) -> BundleProblems:
    sentence = (
        "ERROR: Duplicate combinations of leaderboard_id {}, challenge_phase_id {} and dataset_split_id {} "
        "found in challenge phase splits."
    )
    rows = [row for row in mappings_in(bundle.config, PHASE_SPLITS) if REFERENCES.keys() <= row.keys()]
    values = [[row[key] for key in REFERENCES] for row in rows]
    triples = [tuple(repr(v) if isinstance(v, (list, dict, set)) else v for v in triple) for triple in values]
    repeated = [triple for index, triple in enumerate(triples) if triple in triples[:index]]
    quote = "\n".join([sentence, *(sentence.format(*triple) for triple in repeated)])
    for triple in dict.fromkeys(repeated):
        fault = "maps leaderboard {}, phase {} and split {} twice".format(*triple)
        yield BundleProblem(PHASE_SPLITS, fault, "Remove one of them", quote, 56)


def _check_shown_once(bundle: Bundle) -> BundleProblems:
    rows = mappings_in(bundle.config, PHASE_SPLITS)
    triples = Counter(tuple(str(row.get(key)) for key in REFERENCES) for row in rows)
    pairs = Counter((str(row.get("challenge_phase_id")), str(row.get("dataset_split_id"))) for row in rows)
    if any(count > 1 for count in triples.values()):
        return
    for number, split in [pair for pair, count in pairs.items() if count > 1]:
        fault = f"shows split {split} of phase {number} twice"
        remedy = "Keep one: with two, EvalAI's worker fails on every submission"
        yield breaks_later(PHASE_SPLITS, fault, remedy)


# ── tags, domain and prizes ─────────────────────────────────────────────────────────────────────────────────────────

_TAG_REMEDY, _MANY_TAGS = (
    "Begin each tag with -, or remove the line",
    "ERROR: Tags are limited to 4. Please remove extra tags then try again!",
)
_DOMAINS = CHALLENGE["domain"].choices


def _has_many(entry: Entry) -> Verdict:
    return {"length": len(entry.value)} if len(entry.value) > _TAGS else None


def _is_taken_for_list(entry: Entry) -> Verdict:
    is_list = not entry.value or isinstance(entry.value, list)
    return None if is_list else {"tags": ", ".join(map(str, entry.value))}


def _has_repeated_rank(entry: Entry) -> Verdict:
    earlier = [prize for prize in entry.earlier if not [*_PRIZE_KEYS(replace(entry, item=prize))]]
    return entry.value in [prize["rank"] for prize in earlier]


def _is_not_a_rank(entry: Entry) -> Verdict:
    return not isinstance(entry.value, int) or entry.value < 1


def _check_prize_fields(entry: Entry) -> BundleProblems:
    for key, field in PRIZE.items() if not _is_not_a_rank(entry.child("rank")) else ():
        error = validate(key, entry.item[key], field) if key in entry.item else None
        if error:
            fault = f"cannot be stored ({error.message.rstrip('.')}), so EvalAI silently drops the prize"
            yield warning(f"{entry.path}.{key}", fault, f"Write {field.about}")


_PRIZE_KEYS = first_of(
    RuleRow(66, "", lacks("rank", "amount"), "lacks {missing}", "Add it", CRASH),
    RuleRow(66, "rank", lambda entry: isinstance(entry.value, (list, dict, set)), "is {value!r:.60}",
        "Write 1 for the winner", CRASH),
)  # fmt: skip
_PRIZE_RULES = first_of(
    _PRIZE_KEYS,
    all_of(
        RuleRow(66, "rank", _has_repeated_rank, "{value} occurs twice", "Renumber",
            "ERROR: Duplicate rank {value} found in YAML data."),
        RuleRow(66, "rank", _is_not_a_rank, "is {value!r:.60}", "Write 1 for the winner",
            "ERROR: Invalid rank value {value}. Rank should be an integer."),
        first_of(
            RuleRow(66, "amount", is_no_text, "is {value!r:.60}, not a text", "Write it as 100.00USD", CRASH),
            RuleRow(66, "amount", lambda entry: not re.match(r"\d+(\.\d{1,2})?[A-Z]{3}$", entry.value), "is {value}",
                "Write it as 100.00USD",
                "ERROR: Invalid amount value {value}. Amount should be in decimal format with three-letter currency "
                "code (e.g. 100.00USD, 500EUR, 1000INR)."),
            _check_prize_fields,
        ),
    ),
)  # fmt: skip
_TAGS_DOMAIN_AND_PRIZES = all_of(
    first_of(
        RuleRow(64, "tags", has_no_length, "is {value!r:.60}, not a list", _TAG_REMEDY, CRASH),
        RuleRow(64, "tags", lambda entry: isinstance(entry.value, str) and _has_many(entry),
            "has {length} letters, and EvalAI makes each of them a tag", _TAG_REMEDY, _MANY_TAGS),
        RuleRow(64, "tags", _has_many, "has {length} tags", "Keep four", _MANY_TAGS),
        RuleRow(0, "tags", _is_taken_for_list, "is not a list: EvalAI reads it as the tags {tags}", _TAG_REMEDY, WARNS),
        unless=lambda entry: "tags" not in entry.item,
    ),
    RuleRow(65, "domain", lambda entry: entry.is_written and entry.value not in _DOMAINS, "is {value!s:.60}",
        f"Use one of {', '.join(_DOMAINS)}, or remove the line",
        "ERROR: Domain name is incorrect. Please enter correct domain name then try again!"),
    first_of(
        RuleRow(66, "prizes", is_no_list_of_mappings, "is not a list of mappings",
            "Begin each item with - rank:, or remove the line", CRASH),
        check_each("prizes", _PRIZE_RULES),
        unless=lambda entry: "prizes" not in entry.item
            or (not entry.item["prizes"] and hasattr(entry.item["prizes"], "__iter__")),
    ),
)  # fmt: skip

#: The rules of each block, in the server's order.
VALIDATIONS: dict[str, Check] = {
    "challenge": _CHALLENGE,
    "leaderboard": _LEADERBOARDS,
    "challenge_phases": _PHASES,
    "dataset_splits": _SPLITS,
    PHASE_SPLITS: _check_mappings,
    "tags": _TAGS_DOMAIN_AND_PRIZES,
}
