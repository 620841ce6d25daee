"""The rules by which EvalAI rejects a bundle, block by block of the YAML, in the order in which the server tests.

A problem's `rule` is its position in that order.  What the server answers with an error 500 has no quote.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeGuard

from PIL import Image

from .field_values import as_written, field_problems, validate
from .fields import (
    ATTRIBUTE,
    CHALLENGE,
    LEADERBOARD,
    MAPPING,
    PHASE,
    PRIZE,
    SPLIT,
    TEXT,
    TEXTS,
    UNKEPT,
    UNKEPT_OF_MAPPING,
    UNKEPT_OF_PHASE,
    Field,
)
from .opened_bundle import Bundle, escapes, is_html
from .problems import BundleProblem, BundleProblems, FieldError, breaks_later, crash, mappings_in, warning
from .server_state import REFERENCES, SPLIT_SETTINGS

_MISSING = {
    "description": (10, "Please add the challenge description"),
    "evaluation_details": (11, "Please add the evaluation details"),
    "terms_and_conditions": (12, "Please add the terms and conditions."),
    "submission_guidelines": (13, "Please add the submission guidelines."),
}
#: The sentence around the errors of the challenge's serializer.
SERIALIZER = "ERROR: Unable to serialize the challenge because of the following errors: {errors}."
_OTHER_RULES = ("tags", "domain", "prizes", "sponsors", "leaderboard")
#: The most characters of a file's path on the server, and those of the temporary folder that it begins with.
_MOST_PATH, _TEMPORARY_FOLDER = 100, 28
_WORKER_IMAGE = re.compile(r"(?i:ami-[0-9a-f]+$)|\d+\.dkr\.ecr\.[\w-]+\.amazonaws\.com/evalai-")
_PICTURES = (".jpg", ".jpeg", ".png")
_MOST_TAGS = 4
_AMOUNT = re.compile(r"\d+(\.\d{1,2})?[A-Z]{3}$")
#: The rules of leaderboards that the server tests before it runs the serializer.
_BEFORE_SERIALIZER = range(26, 31)
#: The rules whose sentence holds the phase's name: without one the server crashes.
_NEEDS_NAME = (36, 37, 38, 39)
_DUPLICATES = (
    "ERROR: Duplicate combinations of leaderboard_id {}, challenge_phase_id {} and dataset_split_id {} "
    "found in challenge phase splits."
)


def check_challenge(bundle: Bundle) -> BundleProblems:
    """Yield the problems of the keys at the top of the YAML."""
    config = bundle.config
    yield from _title(config.get("title"))
    if config.get("image") and not isinstance(config["image"], str):
        yield crash("image", f"is {config['image']!r:.60}, not a path", "Name a picture of the bundle", 9)
    for key in TEXTS:
        yield from _text(bundle, key, config.get(key))
    yield from _script(bundle, config.get("evaluation_script"))
    yield from check_dates("", config, "", 20)
    yield from _picture(bundle, config.get("image"))
    fields = {key: field for key, field in CHALLENGE.items() if key not in _OTHER_RULES and not field.items}
    required = {key for key, field in CHALLENGE.items() if field.required}  # other rules report what of them is empty
    validated = {key: value for key, value in config.items() if value or key not in required}
    if not hasattr(config.get("title"), "__len__"):
        validated.pop("title", None)  # reported by `_title`
    yield from field_problems("", validated, {**fields, **UNKEPT}, SERIALIZER, 24)
    yield from _worker_image(config.get("worker_image_url"))


def _title(title: object) -> BundleProblems:
    if not title:
        yield BundleProblem("title", "is missing", "Give the challenge a title", "Please add the challenge title", 8)
    elif not hasattr(title, "__len__"):
        yield crash("title", f"is {as_written(title)}, not a text", "Put it in quotes", 8)


def _worker_image(image: object) -> BundleProblems:
    text = "" if image is None else str(image).strip()
    is_valid = not validate("worker_image_url", image, CHALLENGE["worker_image_url"])
    if text and is_valid and not _WORKER_IMAGE.match(text):
        images = "an EC2 AMI (ami-...) or an EvalAI ECR image in this AWS account (evalai-* repositories)"
        error = FieldError("worker_image_url", f"worker_image_url must be {images}.", "invalid")
        yield BundleProblem(error.field, "is an image of your own", "Remove it", SERIALIZER, 24, error=error)


def check_dates(prefix: str, item: dict[str, Any], of_phase: str, rule: int) -> BundleProblems:
    """Yield the problems of start and end, which the server compares before it validates them."""
    start, end = item.get("start_date"), item.get("end_date")
    if not start or not end:
        missing = "end_date" if start else "start_date"
        quote = f"ERROR: Please add the start_date and end_date{of_phase}."
        yield BundleProblem(f"{prefix}{missing}", "is missing", "Write it as 2026-01-01 00:00:00", quote, rule)
        return
    try:
        late = bool(start > end)
    except TypeError:
        fault = f"and end_date are of two kinds ({as_written(start)} and {as_written(end)})"
        rule = 45 if of_phase else 22
        yield crash(f"{prefix}start_date", fault, "Write both unquoted, as 2026-01-01 00:00:00", rule)
        return
    if late:
        quote = f"ERROR: Start date cannot be greater than end date{of_phase}."
        yield BundleProblem(f"{prefix}start_date", "is after end_date", "Correct one", quote, rule if of_phase else 21)


def _text(bundle: Bundle, key: str, path: object) -> BundleProblems:
    if not path:
        rule, quote = _MISSING[key]
        yield BundleProblem(key, "is missing", "Name an .html file of templates/", quote, rule)
    elif not isinstance(path, str):
        yield crash(key, f"is {path!r:.60}, not a path", "Name an .html file of templates/", 8)
    elif escapes(path):
        quote = f"Invalid file path for {key}."
        yield BundleProblem(key, f"points outside the bundle ({path})", "Name a file in it", quote, 14)
    elif not bundle.has(path):
        quote = f"File at path {key} not found. Please specify a valid file path"
        yield BundleProblem(key, f"names {path}, which is not there", "Add the file, or correct the path", quote, 15)
    elif not is_html(path):
        quote = f"File {key} is not a HTML file. Please specify a valid HTML file"
        yield BundleProblem(key, f"names {path}, which is not an .html file", "Rename it", quote, 16)
    else:
        yield from check_text_file(bundle, key, path, SERIALIZER, 24, blank=True)


def check_text_file(bundle: Bundle, subject: str, path: str, quote: str, rule: int, *, blank: bool) -> BundleProblems:
    """Yield the problems of a text's content: it is UTF-8, and only with `blank` may it be empty."""
    try:
        text = bundle.read(path).decode("utf-8")
    except UnicodeDecodeError:
        yield crash(subject, f"{path} is not UTF-8", "Save it as UTF-8")
        return
    key = subject.rpartition(".")[2]
    error = validate(key, text, Field(TEXT, "", blank=blank))
    if error:
        fault = f"{path} is empty" if error.code == "blank" else f"{path} holds a NUL character"
        remedy = "Write the text" if error.code == "blank" else "Remove it"
        yield BundleProblem(subject, fault, remedy, quote, rule, error=error)
    elif not text.strip():
        yield warning(subject, f"{path} is empty", "Write the text, or leave the page empty on purpose")


def check_path_length(
    subject: str, path: str, quote: str, rule: int, *, folder: int = _TEMPORARY_FOLDER, field: str = ""
) -> BundleProblems:
    """Yield the problem of a path that, behind the server's temporary folder, is too long for the server."""
    length = folder + len(path)
    if length > _MOST_PATH:
        message = f"Ensure this filename has at most {_MOST_PATH} characters (it has {length})."
        error = FieldError(field or subject.rpartition(".")[2], message, "max_length")
        remedy = f"Keep it to {_MOST_PATH - folder}"
        yield BundleProblem(subject, f"names a path of {len(path)} characters", remedy, quote, rule, error=error)


def _picture(bundle: Bundle, path: object) -> BundleProblems:
    if path is None or (path and not isinstance(path, str)):
        return  # reported by `check_challenge`
    path = str(path or "")
    if not path or escapes(path) or not bundle.has(path) or not path.endswith(_PICTURES):
        message = "The submitted data was not a file. Check the encoding type on the form."
        kinds = "a .png, .jpg or .jpeg of the bundle (endings in small letters)"
        fault, remedy = f"names {path or 'nothing'}, which is not {kinds}", "Add the picture, or correct the path"
        yield _picture_problem(fault, remedy, message, "invalid")
    elif not bundle.size(path):
        yield _picture_problem(f"{path} is empty", "Replace it", "The submitted file is empty.", "empty")
    elif long := [*check_path_length("image", path, SERIALIZER, 24, folder=0)]:
        yield from long
    else:
        try:
            Image.open(io.BytesIO(bundle.read(path))).verify()
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
            message = "Upload a valid image. The file you uploaded was either not an image or a corrupted image."
            yield _picture_problem(f"{path} is not a picture", "Replace it", message, "invalid_image")


def _picture_problem(fault: str, remedy: str, message: str, code: str) -> BundleProblem:
    return BundleProblem("image", fault, remedy, SERIALIZER, 24, error=FieldError("image", message, code))


def _script(bundle: Bundle, path: object) -> BundleProblems:
    subject, remedy = "evaluation_script", "Write evaluation_script.zip; the build makes it"
    if not path:
        quote = "ERROR: There is no key for the evaluation script in the YAML file. Please add it and then try again!"
        yield BundleProblem(subject, "is missing", remedy, quote, 17)
    elif not isinstance(path, str):
        yield crash(subject, f"is {path!r}, not a path", remedy, 8)
    elif not path.endswith(".zip"):
        quote = (
            "ERROR: Please pass in a zip file as evaluation script. If using the `evaluation_script` directory "
            "(recommended), it should be `evaluation_script.zip`."
        )
        yield BundleProblem(subject, f"is {path}, not a .zip", remedy, quote, 18)
    elif escapes(path) or not bundle.has(path):
        quote = "ERROR: No evaluation script is present in the zip file. Please add it and then try again!"
        yield BundleProblem(subject, f"names {path}, which is not there", remedy, quote, 19)
    elif not bundle.size(path):
        error = FieldError("evaluation_script", "The submitted file is empty.", "empty")
        yield BundleProblem(subject, f"{path} is empty", remedy, SERIALIZER, 24, error=error)
    else:
        yield from check_path_length(subject, path, SERIALIZER, 24)
        yield from _package(bundle, subject, path)


def _package(bundle: Bundle, subject: str, path: str) -> BundleProblems:
    """Yield why every submission would fail with this script: EvalAI accepts any file that ends in .zip."""
    remedy = "Build it anew, with __init__.py at the top, not in a folder"
    try:
        with zipfile.ZipFile(io.BytesIO(bundle.read(path))) as script:
            names = script.namelist()
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError):
        yield breaks_later(subject, f"{path} is not a zip", remedy)
        return
    if bundle.is_foreign and bundle.evaluated_elsewhere:
        return  # EvalAI stores such a script and never loads it
    if "__init__.py" not in names:
        yield breaks_later(subject, f"{path} has no __init__.py at its top", remedy)


def check_tags_domain_and_prizes(bundle: Bundle) -> BundleProblems:
    """Yield the problems of tags, domain and prizes."""
    yield from _tags(bundle)
    domains = CHALLENGE["domain"].choices
    if "domain" in bundle.config and bundle.config["domain"] not in domains:
        quote = "ERROR: Domain name is incorrect. Please enter correct domain name then try again!"
        fault = f"is {bundle.config['domain']!s:.60}"
        yield BundleProblem("domain", fault, f"Use one of {', '.join(domains)}, or remove the line", quote, 65)
    yield from _prizes(bundle)


def _tags(bundle: Bundle) -> BundleProblems:
    if "tags" not in bundle.config:
        return
    tags, remedy = bundle.config["tags"], "Begin each tag with -, or remove the line"
    if not hasattr(tags, "__len__"):
        yield crash("tags", f"is {tags!r:.60}, not a list", remedy, 64)
    elif len(tags) > _MOST_TAGS:
        quote = "ERROR: Tags are limited to 4. Please remove extra tags then try again!"
        what = "letters, each of which is a tag for EvalAI" if isinstance(tags, str) else "tags"
        yield BundleProblem("tags", f"has {len(tags)} {what}", remedy if what != "tags" else "Keep four", quote, 64)
    elif tags and not isinstance(tags, list):
        parts = ", ".join(map(str, tags))
        yield warning("tags", f"is not a list: EvalAI takes it for the tags {parts}", remedy)


def _prizes(bundle: Bundle) -> BundleProblems:
    if "prizes" not in bundle.config:
        return
    prizes = bundle.config["prizes"]
    if not prizes and hasattr(prizes, "__iter__"):
        return
    if not is_list_of_mappings(prizes):
        yield crash("prizes", "is not a list of mappings", "Begin each item with - rank:, or remove the line", 66)
        return
    ranks: list[Any] = []
    for subject, prize in entries(bundle, "prizes"):
        missing = [key for key in ("rank", "amount") if key not in prize]
        if missing:
            yield crash(subject, f"lacks {', '.join(missing)}", "Add it", 66)
        elif isinstance(prize["rank"], (list, dict, set)):
            yield crash(f"{subject}.rank", f"is {prize['rank']!r:.60}", "Write 1 for the winner", 66)
        else:
            yield from _prize(subject, prize, ranks)
            ranks.append(prize["rank"])


def _prize(subject: str, prize: dict[str, Any], ranks: list[Any]) -> BundleProblems:
    rank, amount = prize["rank"], prize["amount"]
    if rank in ranks:
        quote = f"ERROR: Duplicate rank {rank} found in YAML data."
        yield BundleProblem(f"{subject}.rank", f"{rank} is there twice", "Renumber", quote, 66)
    invalid = not isinstance(rank, int) or rank < 1
    if invalid:
        quote = f"ERROR: Invalid rank value {rank}. Rank should be an integer."
        yield BundleProblem(f"{subject}.rank", f"is {rank!r:.60}", "Write 1 for the winner", quote, 66)
    if not isinstance(amount, str):
        yield crash(f"{subject}.amount", f"is {amount!r:.60}, not a text", "Write it as 100.00USD", 66)
    elif not _AMOUNT.match(amount):
        quote = (
            f"ERROR: Invalid amount value {amount}. Amount should be in decimal format with three-letter currency "
            "code (e.g. 100.00USD, 500EUR, 1000INR)."
        )
        yield BundleProblem(f"{subject}.amount", f"is {amount}", "Write it as 100.00USD", quote, 66)
    elif not invalid:
        for key, field in PRIZE.items():
            if key in prize and (error := validate(key, prize[key], field)):
                fault = f"cannot be kept ({error.message.rstrip('.')}), so that EvalAI drops the prize and says nothing"
                yield warning(f"{subject}.{key}", fault, f"Write {field.about}")


def entries(bundle: Bundle, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the items of a block, each with its path in the YAML."""
    for index, item in enumerate(mappings_in(bundle.config, key)):
        yield f"{key}[{index}]", item


def check_block_shape(bundle: Bundle, key: str, remedy: str, quote: str, rule: int) -> BundleProblems:
    """Yield the problem of a block that is empty or not a list of mappings."""
    block = bundle.config.get(key)
    if not block:
        yield BundleProblem(key, "is empty" if key in bundle.config else "is missing", remedy, quote, rule)
    elif not is_list_of_mappings(block):
        yield crash(key, "is not a list of mappings", "Begin each item with - and its first key", rule)


def is_list_of_mappings(value: object) -> TypeGuard[list[dict[str, Any]]]:
    """Return whether a value of the YAML is a list of mappings."""
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def check_key(subject: str, item: dict[str, Any], remedy: str, quote: str, rule: int) -> BundleProblems:
    """Yield the problem of the key at the end of a path when its item lacks it."""
    if subject.rpartition(".")[2] not in item:
        yield BundleProblem(subject, "is missing", remedy, quote, rule)


def check_required_field(subject: str, key: str, item: dict[str, Any], quote: str, rule: int) -> BundleProblems:
    """Yield the problem of a missing key that only the serializer demands."""
    if key not in item:
        detail = FieldError(key, "This field is required.", "required")
        yield BundleProblem(f"{subject}.{key}", "is missing", "Add it", quote, rule, error=detail)


def known_to_server(problems: list[BundleProblem]) -> bool:
    """Return whether an item with these problems gets through its serializer, so that others may name its id."""
    return not any(problem.error or problem.rule in _BEFORE_SERIALIZER for problem in problems if not problem.accepted)


def check_ids(bundle: Bundle, key: str) -> BundleProblems:
    """Yield ids that are empty, whose items cannot be updated, and duplicate ones, of which the last item is kept."""
    seen: Counter[str] = Counter()
    for subject, item in entries(bundle, key):
        number = item.get("id")
        if "id" in item and not number:
            fault = f"is empty ({number!r:.20}): EvalAI keeps the item without a number, and can never update it"
            yield breaks_later(f"{subject}.id", fault, "Number it from 1")
        seen[str(number)] += 1
        if number is not None and seen[str(number)] > 1:
            yield breaks_later(
                f"{subject}.id", f"{number} is there twice", "Give each its own: EvalAI keeps one of them"
            )


def check_leaderboards(bundle: Bundle) -> BundleProblems:
    """Yield the problems of all leaderboards."""
    quote = "ERROR: There is no key for the leaderboard in the YAML file. Please add it and then try again!"
    yield from check_block_shape(bundle, "leaderboard", "Add a leaderboard", quote, 25)
    for subject, board in entries(bundle, "leaderboard"):
        yield from check_leaderboard(subject, board)
    yield from check_ids(bundle, "leaderboard")


def check_leaderboard(subject: str, board: dict[str, Any]) -> BundleProblems:
    """Yield the problems of one leaderboard; its serializer runs only when all before it was right."""
    number, quote = board.get("id"), "ERROR: There is no leaderboard ID for the leaderboard."
    before = [*check_key(f"{subject}.id", board, "Number it", quote, 26)]
    quote = f"ERROR: There is no leaderboard schema for the leaderboard with ID: {number}."
    before += check_key(f"{subject}.schema", board, "Add labels and default_order_by", quote, 27)
    if "schema" in board:
        before += _schema(f"{subject}.schema", number, board["schema"])
    yield from before
    if not any(not problem.accepted for problem in before):
        quote = f"ERROR: The leaderboard with ID: {number} has the following schema errors:\n {{errors}}"
        yield from field_problems(f"{subject}.", board, LEADERBOARD, quote, 31)


def _contains(container: Any, value: object) -> bool | None:
    """Return whether the server finds a value in a container; None where `in` raises an error."""
    try:
        return value in container
    except TypeError:
        return None


def _schema(subject: str, number: object, schema: Any) -> BundleProblems:
    has_labels, has_order = _contains(schema, "labels"), _contains(schema, "default_order_by")
    if has_labels is None or (has_order and not isinstance(schema, dict)):
        yield crash(subject, "is not a mapping", "Write labels and default_order_by into it", 27)
        return
    tail = f"in the schema for the leaderboard with ID: {number}"
    if not has_labels:
        quote = f"ERROR: There is no 'labels' key {tail}."
        yield BundleProblem(f"{subject}.labels", "is missing", "List the metrics", quote, 28)
    if not has_order:
        quote = f"ERROR: There is no 'default_order_by' key {tail}."
        yield BundleProblem(f"{subject}.default_order_by", "is missing", "Name one of the labels", quote, 29)
    elif has_labels:
        path, order, remedy = f"{subject}.default_order_by", schema["default_order_by"], "Name one of the labels"
        is_label = _contains(schema["labels"], order)
        if is_label is None:
            yield crash(path, f"cannot be looked up in labels ({order!r:.60})", remedy, 30)
        elif not is_label:
            quote = f"ERROR: The 'default_order_by' value '{order}' {tail} is not a valid label."
            yield BundleProblem(path, f"{order} is not a label", remedy, quote, 30)
    if has_labels and isinstance(schema, dict):
        yield from _broken_page(subject, schema)


def _broken_page(subject: str, schema: dict[str, Any]) -> BundleProblems:
    """Yield what the server accepts and its pages cannot show."""
    labels, metadata = schema["labels"], schema.get("metadata")
    if not isinstance(labels, list) or not labels or any(not isinstance(label, str) for label in labels):
        remedy = 'Write ["J&F-Mean", "J-Mean"]: the page breaks'
        yield breaks_later(f"{subject}.labels", "is not a list of names", remedy)
    elif len({*labels}) < len(labels):
        yield breaks_later(f"{subject}.labels", "names a metric twice", "Keep one: the columns are found by name")
    if metadata is not None and not isinstance(metadata, dict):
        yield breaks_later(f"{subject}.metadata", "is not a mapping", "Write label: {sort_ascending: False}")


def check_splits(bundle: Bundle) -> BundleProblems:
    """Yield the problems of all dataset splits, over which the server goes twice."""
    quote = "ERROR: There is no key for dataset splits."
    yield from check_block_shape(bundle, "dataset_splits", "Add a split", quote, 47)
    seen: list[Any] = []
    for subject, split in entries(bundle, "dataset_splits"):
        yield from _split_names(subject, split, seen)
    for subject, split in entries(bundle, "dataset_splits"):
        yield from check_split(subject, split)
    yield from check_ids(bundle, "dataset_splits")


def _split_names(subject: str, split: dict[str, Any], seen: list[Any]) -> BundleProblems:
    number, codename = split.get("id"), split.get("codename")
    if not split.get("name"):
        quote = f"ERROR: There is no name for dataset split {number}."
        yield BundleProblem(f"{subject}.name", "is missing", "Add it", quote, 48)
    quote = f"ERROR: There is no codename for dataset split {number}."
    yield from check_key(f"{subject}.codename", split, "Add it", quote, 49)
    if codename in seen and "codename" in split:
        fault, remedy = f"{codename} is there twice", "Rename one of them"
        quote = f"ERROR: Duplicate codename {codename} for dataset split {split.get('name')}. "
        quote += "Please ensure codenames are unique."
        problem = BundleProblem(f"{subject}.codename", fault, remedy, quote, 50)
        yield problem if "name" in split else crash(problem.subject, fault, remedy, 50)
    elif "codename" in split:
        seen.append(codename)


def check_split(subject: str, split: dict[str, Any]) -> BundleProblems:
    """Yield what the serializer says of one split."""
    if "id" not in split:
        yield crash(f"{subject}.id", "is missing", "Number it", 52)
        return
    quote = f"ERROR: Dataset split {split['id']} has the following schema errors:\n {{errors}}"
    for key in ("name", "codename"):
        yield from check_required_field(subject, key, split, quote, 51)
    yield from field_problems(f"{subject}.", split, SPLIT, quote, 51)


def check_phases(bundle: Bundle) -> BundleProblems:
    """Yield the problems of all phases; without any the server skips the other rules."""
    quote = "ERROR: No challenge phase key found. Please add challenge phases in the YAML file and try again!"
    yield from check_block_shape(bundle, "challenge_phases", "Add a phase", quote, 34)
    seen: list[Any] = []
    for subject, item in entries(bundle, "challenge_phases"):
        for problem in (*_codename(subject, item, seen), *check_phase(bundle, subject, item)):
            nameless = problem.rule in _NEEDS_NAME and "name" not in item and not problem.error
            yield crash(problem.subject, problem.fault, problem.remedy, problem.rule) if nameless else problem
    yield from check_ids(bundle, "challenge_phases")


def _codename(subject: str, item: dict[str, Any], seen: list[Any]) -> BundleProblems:
    codename = item.get("codename")
    if "codename" not in item:
        quote = "ERROR: No codename found for the challenge phase. Please add a codename and try again!"
        yield BundleProblem(f"{subject}.codename", "is missing", "Add it, as in phases.py", quote, 35)
    elif codename in seen:
        quote = f"ERROR: Duplicate codename {codename} for phase {item.get('name')}. Please ensure codenames are unique"
        yield BundleProblem(f"{subject}.codename", f"{codename} is there twice", "Rename one of them", quote, 36)
    else:
        seen.append(codename)


def check_phase(bundle: Bundle, subject: str, item: dict[str, Any]) -> BundleProblems:
    """Yield the problems of one phase, except those of its codename."""
    number = item.get("id")
    quote = f"ERROR: Challenge phase {number} has the following schema errors:\n {{errors}}"
    yield from _annotation(bundle, subject, item, quote)
    yield from _description(bundle, subject, item, quote)
    if item.get("is_submission_public") and item.get("is_restricted_to_select_one_submission"):
        public_quote = (
            f"ERROR: is_submission_public can't be 'True' for challenge phase '{item.get('name')}' with "
            "is_restricted_to_select_one_submission 'True'. Please change is_submission_public to 'False' and "
            "try again!"
        )
        path = f"{subject}.is_submission_public"
        yield BundleProblem(path, "contradicts the restriction", "Set it to False", public_quote, 39)
    yield from check_dates(f"{subject}.", item, f" in challenge phase {number}", 40)
    yield from _attributes(f"{subject}.submission_meta_attributes", number, item.get("submission_meta_attributes"))
    if "id" not in item:
        yield crash(f"{subject}.id", "is missing", "Number it", 45)
        return
    yield from check_required_field(subject, "name", item, quote, 44)
    yield from _serialized(subject, item, quote)


def _serialized(subject: str, item: dict[str, Any], quote: str) -> BundleProblems:
    # Dates that are null are reported by `check_dates`; the serializer accepts them.
    given = {key: value for key, value in item.items() if value is not None or key not in ("start_date", "end_date")}
    copied = item.get("max_submissions_per_month") is None
    if copied:  # as the server does
        given["max_submissions_per_month"] = item.get("max_submissions")
    fields = {**PHASE, **UNKEPT_OF_PHASE}
    for problem in field_problems(f"{subject}.", given, fields, quote, 44):
        if not copied or not problem.subject.endswith(".max_submissions_per_month"):
            yield problem
        elif "max_submissions" not in item:
            fault = "and max_submissions_per_month are missing"
            yield replace(problem, subject=f"{subject}.max_submissions", fault=fault, remedy="Add one of them")
        else:
            fault = "is what max_submissions_per_month is taken from"
            yield replace(problem, subject=f"{subject}.max_submissions", fault=fault, consequence=True)


def _description(bundle: Bundle, subject: str, item: dict[str, Any], quote: str) -> BundleProblems:
    path, subject = item.get("description"), f"{subject}.description"
    if not path:
        missing = f" ERROR: There is no key for description in phase {item.get('name')}."
        yield BundleProblem(subject, "is missing", "Name an .html file of templates/", missing, 37)
        absent = FieldError("description", "This field is required.", "required")
        error = validate("description", path, Field(TEXT, "")) if "description" in item else absent
        if error:
            yield BundleProblem(subject, "is missing", "Name an .html file", quote, 44, error=error, consequence=True)
    elif not isinstance(path, str):
        yield crash(subject, f"is {path!r:.60}, not a path", "Name an .html file of templates/", 45)
    elif escapes(path) or not bundle.has(path) or not is_html(path):
        fault = f"names {path}, which is not an .html file of the bundle"
        null = FieldError("description", "This field may not be null.", "null")
        yield BundleProblem(subject, fault, "Add the file, or correct the path", quote, 37, error=null)
    else:
        yield from check_text_file(bundle, subject, path, quote, 44, blank=False)


def _annotation(bundle: Bundle, subject: str, item: dict[str, Any], quote: str) -> BundleProblems:
    path, subject = item.get("test_annotation_file"), f"{subject}.test_annotation_file"
    if not path:
        return  # the server accepts it; `pitfalls` reports what goes wrong later
    if not isinstance(path, str):
        yield crash(subject, f"is {path!r:.60}, not a path", "Name a file of annotations/", 45)
    elif escapes(path) or not bundle.has(path):
        missing = f"ERROR: No test annotation file found in the zip file for challenge phase {item.get('name')}"
        fault = f"names {path}, which is not there"
        yield BundleProblem(subject, fault, "Add the file, or correct the path", missing, 38)
    elif not bundle.size(path):
        error = FieldError("test_annotation", "The submitted file is empty.", "empty")
        yield BundleProblem(subject, f"{path} is empty", "Make it again", quote, 44, error=error)
    else:
        yield from check_path_length(subject, path, quote, 44, field="test_annotation")


def _attributes(subject: str, number: object, attributes: object) -> BundleProblems:
    if not attributes:
        return
    if not is_list_of_mappings(attributes):
        yield crash(subject, "is not a list of mappings", "Begin each with - name:", 41)
        return
    for index, attribute in enumerate(attributes):
        yield from _attribute(f"{subject}[{index}]", number, attribute)


def _attribute(subject: str, number: object, attribute: dict[str, Any]) -> BundleProblems:
    missing = [key for key, field in ATTRIBUTE.items() if field.required and key not in attribute]
    if missing:
        quote = (
            "ERROR: Please enter the following fields for the submission meta attribute in challenge phase "
            f"{number}: {', '.join(missing)}"
        )
        yield BundleProblem(subject, f"lacks {', '.join(missing)}", "Add them", quote, 41)
        return
    kinds, options = ATTRIBUTE["type"].choices, attribute.get("options")
    if attribute["type"] not in kinds:
        quote = (
            f"ERROR: Please ensure that the submission meta attribute types for the attribute '{attribute['type']}' "
            f"in challenge phase {number} are among the following: boolean, text, radio, or checkbox."
        )
        yield BundleProblem(f"{subject}.type", f"is {attribute['type']}", f"Use one of {', '.join(kinds)}", quote, 42)
    elif attribute["type"] not in ("radio", "checkbox"):
        return
    elif not options:
        quote = f"ERROR: Please include at least one option in the attribute for challenge phase {number}"
        yield BundleProblem(f"{subject}.options", "is missing", "List what may be chosen", quote, 43)
    elif not hasattr(options, "__len__"):
        yield crash(f"{subject}.options", f"is {options!r:.60}, not a list", "List what may be chosen", 43)


def check_mappings(bundle: Bundle) -> BundleProblems:
    """Yield the problems of `challenge_phase_splits`."""
    key = "challenge_phase_splits"
    block = bundle.config.get(key)
    if not block and not isinstance(block, (str, list, dict)):
        yield crash(key, "is missing", "Map each phase to its splits", 55)
        return
    quote = "ERROR: There is no key for challenge phase splits."
    yield from check_block_shape(bundle, key, "Map each phase to its splits", quote, 55)
    yield from _duplicates(bundle)
    known, number = {key: ids_known_to_server(bundle, key) for key in REFERENCES}, 1
    for subject, row in entries(bundle, key):
        yield from _row(bundle, subject, number, row, known)
        # The server counts only rows that have every key.
        number += {*REFERENCES, *SPLIT_SETTINGS} <= row.keys()
    yield from _shown_twice(bundle)


def items_known_to_server(bundle: Bundle, key: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the items that a key of the rows may name: those that get through the rules of their own block."""
    rules: dict[str, Callable[[str, dict[str, Any]], BundleProblems]] = {
        "leaderboard_id": check_leaderboard,
        "challenge_phase_id": lambda subject, item: check_phase(bundle, subject, item),
        "dataset_split_id": check_split,
    }
    items = entries(bundle, REFERENCES[key][0])
    return [(subject, item) for subject, item in items if known_to_server(list(rules[key](subject, item)))]


def ids_known_to_server(bundle: Bundle, key: str) -> list[Any]:
    """Return the ids that a key of the rows may name."""
    return [item.get("id") for _, item in items_known_to_server(bundle, key)]


def _row(bundle: Bundle, subject: str, number: int, row: dict[str, Any], known: dict[str, list[Any]]) -> BundleProblems:
    missing = [key for key in REFERENCES if key not in row]
    if missing:
        yield crash(subject, f"lacks {', '.join(missing)}", "Add it", 55)
    missing = [key for key in SPLIT_SETTINGS if key not in row]
    if missing:
        quote = (
            "ERROR: The following keys are missing in the challenge phase splits of YAML file "
            f"(phase_split: {number}): {', '.join(missing)}"
        )
        yield BundleProblem(subject, f"lacks {', '.join(missing)}", "Add them: none has a default here", quote, 57)
        return
    for key in REFERENCES:
        if key in row:
            yield from _reference(bundle, subject, number, row, key, known[key])
    fields = {**{key: MAPPING[key] for key in SPLIT_SETTINGS}, **UNKEPT_OF_MAPPING}
    quote = f"ERROR: Challenge phase split {number} has the following schema errors:\n {{errors}}"
    yield from field_problems(f"{subject}.", row, fields, quote, 59)


def _reference(
    bundle: Bundle, subject: str, number: int, row: dict[str, Any], key: str, known: list[Any]
) -> BundleProblems:
    (block, word), subject, value = REFERENCES[key], f"{subject}.{key}", row[key]
    written = [item.get("id") for item in mappings_in(bundle.config, block)]
    remedy = "Write an id of that block"
    if python_integer(value) is None:
        yield crash(subject, f"is {value!r:.60}, not a number", remedy, 58)
    elif value not in known:
        # An id and the same id in quotes are two for the server, and so for Python.
        quote = f"ERROR: Invalid {word} id {value} found in challenge phase split {number}."
        quoted = any(str(value) == str(written_id) for written_id in written)
        fault = f"{value!r} is not an id of {block}" if value not in written else f"points at what is wrong in {block}"
        remedy = "Remove the quotes" if quoted else remedy
        yield BundleProblem(subject, fault, remedy, quote, 58, consequence=value in written)


def python_integer(value: Any) -> int | None:
    """Return the number that `int` makes of a value, as the server tries; None where that raises an error."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _duplicates(bundle: Bundle) -> BundleProblems:
    rows = [row for row in mappings_in(bundle.config, "challenge_phase_splits") if REFERENCES.keys() <= row.keys()]
    values = [[row[key] for key in REFERENCES] for row in rows]
    triples = [tuple(repr(one) if isinstance(one, (list, dict, set)) else one for one in triple) for triple in values]
    repeated = [triple for k, triple in enumerate(triples) if triple in triples[:k]]
    if not repeated:
        return
    quote = "\n".join([_DUPLICATES, *(_DUPLICATES.format(*triple) for triple in repeated)])
    for triple in dict.fromkeys(repeated):
        fault = "maps leaderboard {}, phase {} and split {} twice".format(*triple)
        yield BundleProblem("challenge_phase_splits", fault, "Remove one of them", quote, 56)


def _shown_twice(bundle: Bundle) -> BundleProblems:
    rows = mappings_in(bundle.config, "challenge_phase_splits")
    triples = Counter(tuple(str(row.get(key)) for key in REFERENCES) for row in rows)
    pairs = Counter((str(row.get("challenge_phase_id")), str(row.get("dataset_split_id"))) for row in rows)
    if any(count > 1 for count in triples.values()):
        return
    for number, split in [pair for pair, count in pairs.items() if count > 1]:
        fault = f"shows split {split} of phase {number} twice"
        remedy = "Keep one: EvalAI's worker fails on two, with every submission"
        yield breaks_later("challenge_phase_splits", fault, remedy)
