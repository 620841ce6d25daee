"""Title, texts, picture, script and dates of the challenge."""

from __future__ import annotations

import datetime
import io
import re
import zipfile
import zlib
from typing import Any

from PIL import Image

from linejudge.bundle.fields import CHALLENGE, TEXTS
from linejudge.bundle.finding import Detail, Finding, Findings, crash
from linejudge.bundle.opened import Bundle, escapes
from linejudge.bundle.values import as_written, findings, moment

_MISSING = {
    "description": (10, "Please add the challenge description"),
    "evaluation_details": (11, "Please add the evaluation details"),
    "terms_and_conditions": (12, "Please add the terms and conditions."),
    "submission_guidelines": (13, "Please add the submission guidelines."),
}
_SERIALIZER = "ERROR: Unable to serialize the challenge because of the following errors: {errors}."
_BLOCKS = ("tags", "domain", "prizes", "sponsors", "leaderboard")
#: Characters of a file's path on the server, and of the temporary folder that it begins with, a picture's apart.
_FILE_NAME, _TEMPORARY = 100, 28
_IMAGE = re.compile(r"ami-[0-9a-f]+$|\d+\.dkr\.ecr\.[\w-]+\.amazonaws\.com/evalai-")
_PICTURES = (".jpg", ".jpeg", ".png")


def challenge(bundle: Bundle) -> Findings:
    """The keys at the top of the YAML."""
    config = bundle.config
    title = config.get("title")
    if not title:
        yield Finding("title", "is missing", "Give the challenge a title", "Please add the challenge title", rule=8)
    elif isinstance(title, (int, float)):
        yield crash("title", f"is {title!r}, no text", "Put it in quotes", 8)
    for key in TEXTS:
        yield from _text(bundle, key, config.get(key))
    yield from _script(bundle, config.get("evaluation_script"))
    yield from dates("", config, "", 20)
    yield from _picture(bundle, config.get("image"))
    fields = {key: field for key, field in CHALLENGE.items() if key not in _BLOCKS and not field.items}
    if not title or isinstance(title, (int, float)):
        del fields["title"]  # told above
    judged = {key: value for key, value in config.items() if value is not None or not fields_required(key)}
    yield from findings("", judged, fields, _SERIALIZER, 24)
    image = config.get("worker_image_url")
    if image and isinstance(image, (str, int, float)) and not _IMAGE.match(str(image)):
        words = (
            "worker_image_url must be an EC2 AMI (ami-...) or an EvalAI ECR image in this AWS account "
            "(evalai-* repositories)."
        )
        detail = Detail("worker_image_url", words, "invalid")
        yield Finding(detail.field, "is an image of your own", "Remove it", _SERIALIZER, rule=24, detail=detail)


def fields_required(key: str) -> bool:
    """Whether another rule speaks of a key that is null."""
    return key in CHALLENGE and CHALLENGE[key].required


def dates(prefix: str, holder: dict[str, Any], of_phase: str, rule: int) -> Findings:
    """Start before end; the server compares before it asks what they are."""
    start, end = holder.get("start_date"), holder.get("end_date")
    if not start or not end:
        missing = "end_date" if start else "start_date"
        quote = f"ERROR: Please add the start_date and end_date{of_phase}."
        yield Finding(f"{prefix}{missing}", "is missing", "Write it as 2026-01-01 00:00:00", quote, rule=rule)
        return
    kinds = {_kind(start), _kind(end)}
    if len(kinds) > 1 or None in kinds:
        found = f"and end_date are of two kinds ({as_written(start)} and {as_written(end)})"
        yield crash(f"{prefix}start_date", found, "Write both unquoted, as 2026-01-01 00:00:00", 45 if of_phase else 22)
    elif _later(start, end):
        quote = f"ERROR: Start date cannot be greater than end date{of_phase}."
        yield Finding(f"{prefix}start_date", "is after end_date", "Mend one", quote, rule=rule if of_phase else 21)


def _kind(value: Any) -> type | None:
    """Values of one kind can be compared."""
    return next((kind for kind in (datetime.datetime, datetime.date, str, int) if isinstance(value, kind)), None)


def _later(start: Any, end: Any) -> bool:
    if isinstance(start, str):
        return start > str(end)  # as texts, before anybody reads them
    first, last = moment(start), moment(end)
    return first > last if first and last else bool(start > end)


def _text(bundle: Bundle, key: str, path: Any) -> Findings:
    if path and not isinstance(path, str):
        yield crash(key, f"is {path!r}, no path", "Name an .html file of templates/", 8)
    elif not path:
        rule, quote = _MISSING[key]
        yield Finding(key, "is missing", "Name an .html file of templates/", quote, rule=rule)
    elif escapes(path):
        quote = f"Invalid file path for {key}."
        yield Finding(key, f"points outside the bundle ({path})", "Name a file in it", quote, rule=14)
    elif not bundle.has(path):
        quote = f"File at path {key} not found. Please specify a valid file path"
        yield Finding(key, f"names {path}, which is not there", "Add the file, or mend the path", quote, rule=15)
    elif not path.endswith(".html"):
        quote = f"File {key} is not a HTML file. Please specify a valid HTML file"
        yield Finding(key, f"names {path}, which is no .html file", "Rename it", quote, rule=16)
    else:
        yield from readable(bundle, key, path, _SERIALIZER, 24)


def readable(bundle: Bundle, where: str, path: str, quote: str, rule: int) -> Findings:
    """A text must be UTF-8 and say something."""
    try:
        text = bundle.read(path).decode("utf-8")
    except UnicodeDecodeError:
        yield crash(where, f"{path} is not UTF-8", "Save it as UTF-8")
        return
    if not text.strip():
        detail = Detail(where.rpartition(".")[2], "This field may not be blank.", "blank")
        yield Finding(where, f"{path} is empty", "Write the text", quote, rule=rule, detail=detail)


def long_path(
    where: str, path: str, quote: str, rule: int, *, temporary: int = _TEMPORARY, field: str = ""
) -> Findings:
    """The server keeps a file's path in a field that its own temporary folder half fills."""
    length = temporary + len(path)
    if length > _FILE_NAME:
        words = f"Ensure this filename has at most {_FILE_NAME} characters (it has {length})."
        detail = Detail(field or where.rpartition(".")[2], words, "max_length")
        remedy = f"Keep it to {_FILE_NAME - temporary}"
        yield Finding(where, f"names a path of {len(path)} characters", remedy, quote, rule=rule, detail=detail)


def _picture(bundle: Bundle, path: Any) -> Findings:
    if path is None:
        return
    if not bundle.has(path) or escapes(path) or not path.endswith(_PICTURES):
        detail = Detail("image", "The submitted data was not a file. Check the encoding type on the form.", "invalid")
        found = f"names {path}, which is no .png, .jpg or .jpeg of the bundle (endings in small letters)"
        yield Finding("image", found, "Add the picture, or mend the path", _SERIALIZER, rule=24, detail=detail)
        return
    yield from long_path("image", path, _SERIALIZER, 24, temporary=0)
    try:
        Image.open(io.BytesIO(bundle.read(path))).verify()
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        words = "Upload a valid image. The file you uploaded was either not an image or a corrupted image."
        detail = Detail("image", words, "invalid_image")
        yield Finding("image", f"{path} is no picture", "Replace it", _SERIALIZER, rule=24, detail=detail)


def _script(bundle: Bundle, path: Any) -> Findings:
    where, remedy = "evaluation_script", "Write evaluation_script.zip; the build makes it"
    if not path:
        quote = "ERROR: There is no key for the evaluation script in the YAML file. Please add it and then try again!"
        yield Finding(where, "is missing", remedy, quote, rule=17)
    elif not isinstance(path, str):
        yield crash(where, f"is {path!r}, no path", remedy, 8)
    elif not path.endswith(".zip"):
        quote = (
            "ERROR: Please pass in a zip file as evaluation script. If using the `evaluation_script` directory "
            "(recommended), it should be `evaluation_script.zip`."
        )
        yield Finding(where, f"is {path}, no .zip", remedy, quote, rule=18)
    elif escapes(path) or not bundle.has(path):
        quote = "ERROR: No evaluation script is present in the zip file. Please add it and then try again!"
        yield Finding(where, f"names {path}, which is not there", remedy, quote, rule=19)
    else:
        yield from long_path(where, path, _SERIALIZER, 24)
        yield from _package(bundle, where, path)


def _package(bundle: Bundle, where: str, path: str) -> Findings:
    """EvalAI takes any file that ends in .zip, and every submission fails later."""
    remedy = "Build it anew: all modules at the top, with __init__.py and main.py"
    try:
        with zipfile.ZipFile(io.BytesIO(bundle.read(path))) as script:
            names = script.namelist()
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError):
        yield Finding(where, f"{path} is no zip", remedy)
        return
    if "__init__.py" not in names or any("/" in name for name in names):
        yield Finding(where, f"{path} is not a flat package with __init__.py", remedy)
