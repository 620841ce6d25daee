"""Rules of the challenge's own keys: title, texts, picture, script and dates; tags, domain and prizes come last."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from typing import Any

from PIL import Image

from segjudge.platforms.evalai.bundle.field_values import as_written, field_problems, validate
from segjudge.platforms.evalai.bundle.fields import CHALLENGE, PRIZE, TEXT, TEXTS, UNKEPT, Field
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle, escapes, is_html
from segjudge.platforms.evalai.bundle.problems import (
    BundleProblem,
    BundleProblems,
    FieldError,
    breaks_later,
    crash,
    warning,
)

from .blocks import entries, is_list_of_mappings

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


def challenge(bundle: Bundle) -> BundleProblems:
    """Yield the problems of the keys at the top of the YAML."""
    config = bundle.config
    yield from _title(config.get("title"))
    if config.get("image") and not isinstance(config["image"], str):
        yield crash("image", f"is {config['image']!r:.60}, not a path", "Name a picture of the bundle", 9)
    for key in TEXTS:
        yield from _text(bundle, key, config.get(key))
    yield from _script(bundle, config.get("evaluation_script"))
    yield from dates("", config, "", 20)
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


def dates(prefix: str, item: dict[str, Any], of_phase: str, rule: int) -> BundleProblems:
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
        found = f"and end_date are of two kinds ({as_written(start)} and {as_written(end)})"
        rule = 45 if of_phase else 22
        yield crash(f"{prefix}start_date", found, "Write both unquoted, as 2026-01-01 00:00:00", rule)
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
        yield from readable(bundle, key, path, SERIALIZER, 24, blank=True)


def readable(bundle: Bundle, where: str, path: str, quote: str, rule: int, *, blank: bool) -> BundleProblems:
    """Yield the problems of a text's content: it is UTF-8, and only with `blank` may it be empty."""
    try:
        text = bundle.read(path).decode("utf-8")
    except UnicodeDecodeError:
        yield crash(where, f"{path} is not UTF-8", "Save it as UTF-8")
        return
    key = where.rpartition(".")[2]
    error = validate(key, text, Field(TEXT, "", blank=blank))
    if error:
        found = f"{path} is empty" if error.code == "blank" else f"{path} holds a NUL character"
        remedy = "Write the text" if error.code == "blank" else "Remove it"
        yield BundleProblem(where, found, remedy, quote, rule, error=error)
    elif not text.strip():
        yield warning(where, f"{path} is empty", "Write the text, or leave the page empty on purpose")


def long_path(
    where: str, path: str, quote: str, rule: int, *, folder: int = _TEMPORARY_FOLDER, field: str = ""
) -> BundleProblems:
    """Yield the problem of a path that, behind the server's temporary folder, is too long for the server."""
    length = folder + len(path)
    if length > _MOST_PATH:
        message = f"Ensure this filename has at most {_MOST_PATH} characters (it has {length})."
        error = FieldError(field or where.rpartition(".")[2], message, "max_length")
        remedy = f"Keep it to {_MOST_PATH - folder}"
        yield BundleProblem(where, f"names a path of {len(path)} characters", remedy, quote, rule, error=error)


def _picture(bundle: Bundle, path: object) -> BundleProblems:
    if path is None or (path and not isinstance(path, str)):
        return  # reported by `challenge`
    path = str(path or "")
    if not path or escapes(path) or not bundle.has(path) or not path.endswith(_PICTURES):
        message = "The submitted data was not a file. Check the encoding type on the form."
        kinds = "a .png, .jpg or .jpeg of the bundle (endings in small letters)"
        found, remedy = f"names {path or 'nothing'}, which is not {kinds}", "Add the picture, or correct the path"
        yield _picture_problem(found, remedy, message, "invalid")
    elif not bundle.size(path):
        yield _picture_problem(f"{path} is empty", "Replace it", "The submitted file is empty.", "empty")
    elif long := [*long_path("image", path, SERIALIZER, 24, folder=0)]:
        yield from long
    else:
        try:
            Image.open(io.BytesIO(bundle.read(path))).verify()
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
            message = "Upload a valid image. The file you uploaded was either not an image or a corrupted image."
            yield _picture_problem(f"{path} is not a picture", "Replace it", message, "invalid_image")


def _picture_problem(found: str, remedy: str, message: str, code: str) -> BundleProblem:
    return BundleProblem("image", found, remedy, SERIALIZER, 24, error=FieldError("image", message, code))


def _script(bundle: Bundle, path: object) -> BundleProblems:
    where, remedy = "evaluation_script", "Write evaluation_script.zip; the build makes it"
    if not path:
        quote = "ERROR: There is no key for the evaluation script in the YAML file. Please add it and then try again!"
        yield BundleProblem(where, "is missing", remedy, quote, 17)
    elif not isinstance(path, str):
        yield crash(where, f"is {path!r}, not a path", remedy, 8)
    elif not path.endswith(".zip"):
        quote = (
            "ERROR: Please pass in a zip file as evaluation script. If using the `evaluation_script` directory "
            "(recommended), it should be `evaluation_script.zip`."
        )
        yield BundleProblem(where, f"is {path}, not a .zip", remedy, quote, 18)
    elif escapes(path) or not bundle.has(path):
        quote = "ERROR: No evaluation script is present in the zip file. Please add it and then try again!"
        yield BundleProblem(where, f"names {path}, which is not there", remedy, quote, 19)
    elif not bundle.size(path):
        error = FieldError("evaluation_script", "The submitted file is empty.", "empty")
        yield BundleProblem(where, f"{path} is empty", remedy, SERIALIZER, 24, error=error)
    else:
        yield from long_path(where, path, SERIALIZER, 24)
        yield from _package(bundle, where, path)


def _package(bundle: Bundle, where: str, path: str) -> BundleProblems:
    """Yield why every submission would fail with this script: EvalAI accepts any file that ends in .zip."""
    remedy = "Build it anew, with __init__.py at the top, not in a folder"
    try:
        with zipfile.ZipFile(io.BytesIO(bundle.read(path))) as script:
            names = script.namelist()
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError):
        yield breaks_later(where, f"{path} is not a zip", remedy)
        return
    if bundle.is_foreign and bundle.evaluated_elsewhere:
        return  # EvalAI stores such a script and never loads it
    if "__init__.py" not in names:
        yield breaks_later(where, f"{path} has no __init__.py at its top", remedy)


def tags_domain_and_prizes(bundle: Bundle) -> BundleProblems:
    """Yield the problems of tags, domain and prizes."""
    yield from _tags(bundle)
    domains = CHALLENGE["domain"].choices
    if "domain" in bundle.config and bundle.config["domain"] not in domains:
        quote = "ERROR: Domain name is incorrect. Please enter correct domain name then try again!"
        found = f"is {bundle.config['domain']!s:.60}"
        yield BundleProblem("domain", found, f"Use one of {', '.join(domains)}, or remove the line", quote, 65)
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
    for where, prize in entries(bundle, "prizes"):
        missing = [key for key in ("rank", "amount") if key not in prize]
        if missing:
            yield crash(where, f"lacks {', '.join(missing)}", "Add it", 66)
        elif isinstance(prize["rank"], (list, dict, set)):
            yield crash(f"{where}.rank", f"is {prize['rank']!r:.60}", "Write 1 for the winner", 66)
        else:
            yield from _prize(where, prize, ranks)
            ranks.append(prize["rank"])


def _prize(where: str, prize: dict[str, Any], ranks: list[Any]) -> BundleProblems:
    rank, amount = prize["rank"], prize["amount"]
    if rank in ranks:
        quote = f"ERROR: Duplicate rank {rank} found in YAML data."
        yield BundleProblem(f"{where}.rank", f"{rank} is there twice", "Renumber", quote, 66)
    invalid = not isinstance(rank, int) or rank < 1
    if invalid:
        quote = f"ERROR: Invalid rank value {rank}. Rank should be an integer."
        yield BundleProblem(f"{where}.rank", f"is {rank!r:.60}", "Write 1 for the winner", quote, 66)
    if not isinstance(amount, str):
        yield crash(f"{where}.amount", f"is {amount!r:.60}, not a text", "Write it as 100.00USD", 66)
    elif not _AMOUNT.match(amount):
        quote = (
            f"ERROR: Invalid amount value {amount}. Amount should be in decimal format with three-letter currency "
            "code (e.g. 100.00USD, 500EUR, 1000INR)."
        )
        yield BundleProblem(f"{where}.amount", f"is {amount}", "Write it as 100.00USD", quote, 66)
    elif not invalid:
        for key, field in PRIZE.items():
            if key in prize and (error := validate(key, prize[key], field)):
                found = f"cannot be kept ({error.message.rstrip('.')}), so that EvalAI drops the prize and says nothing"
                yield warning(f"{where}.{key}", found, f"Write {field.about}")
