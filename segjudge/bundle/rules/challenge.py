"""Rules of the challenge's own keys: title, texts, picture, script and dates."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from typing import Any

from PIL import Image

from segjudge.bundle.field_values import as_written, field_problems, validate
from segjudge.bundle.fields import CHALLENGE, TEXT, TEXTS, UNKEPT, Field
from segjudge.bundle.opened_bundle import Bundle, escapes, is_html
from segjudge.bundle.problems import BundleProblem, BundleProblems, FieldError, breaks_later, crash, warning

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
    validated = {key: value for key, value in config.items() if value or not _is_required(key)}
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
    field = CHALLENGE["worker_image_url"]
    if image is None or not str(image).strip() or validate("worker_image_url", image, field):
        return
    if not _WORKER_IMAGE.match(str(image).strip()):
        message = (
            "worker_image_url must be an EC2 AMI (ami-...) or an EvalAI ECR image in this AWS account "
            "(evalai-* repositories)."
        )
        error = FieldError("worker_image_url", message, "invalid")
        yield BundleProblem(error.field, "is an image of your own", "Remove it", SERIALIZER, 24, error=error)


def _is_required(key: str) -> bool:
    """Return whether another rule reports a key that is null."""
    return key in CHALLENGE and CHALLENGE[key].required


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
        error = FieldError(
            "image", "The submitted data was not a file. Check the encoding type on the form.", "invalid"
        )
        found = (
            f"names {path or 'nothing'}, which is not a .png, .jpg or .jpeg of the bundle (endings in small letters)"
        )
        yield BundleProblem("image", found, "Add the picture, or correct the path", SERIALIZER, 24, error=error)
        return
    if not bundle.size(path):
        error = FieldError("image", "The submitted file is empty.", "empty")
        yield BundleProblem("image", f"{path} is empty", "Replace it", SERIALIZER, 24, error=error)
        return
    long = list(long_path("image", path, SERIALIZER, 24, folder=0))
    yield from long
    try:
        Image.open(io.BytesIO(bundle.read(path))).verify()
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        if long:
            return
        message = "Upload a valid image. The file you uploaded was either not an image or a corrupted image."
        error = FieldError("image", message, "invalid_image")
        yield BundleProblem("image", f"{path} is not a picture", "Replace it", SERIALIZER, 24, error=error)


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
    """Yield why every submission would fail: EvalAI accepts any file that ends in .zip."""
    remedy = "Build it anew: all modules at the top, with __init__.py and main.py"
    try:
        with zipfile.ZipFile(io.BytesIO(bundle.read(path))) as script:
            names = script.namelist()
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError):
        yield breaks_later(where, f"{path} is not a zip", remedy)
        return
    if bundle.is_foreign and bundle.evaluated_elsewhere:
        return  # EvalAI stores such a script and never loads it
    if "__init__.py" not in names or (not bundle.is_foreign and any("/" in name for name in names)):
        yield breaks_later(where, f"{path} is not a flat package with __init__.py", remedy)
