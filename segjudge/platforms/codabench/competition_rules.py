"""What Codabench refuses in pages, terms, picture and the competition itself."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from segjudge.platforms.evalai.bundle.problems import BundleProblem, BundleProblems

from .opened_competition import OpenedCompetition, crashed, harmful, is_uuid, listed, not_a_path, refused
from .serializer_fields import CHOICE, EMAIL, FLAG, JSON, SURROGATE, TEXT, SerializerField, field_problems

PAGE = {"title": SerializerField(TEXT, 13, 255, required=True)}
_FLAGS = (
    *("registration_auto_approve", "enable_detailed_results", "show_detailed_results_in_submission_panel"),
    *("show_detailed_results_in_leaderboard", "auto_run_submissions"),
    *("can_participants_make_submissions_public", "make_programs_available", "make_input_data_available"),
)
#: The serializer's fields in its order: those before the pages and phases, and those after them.
BEFORE_PAGES = {
    "title": SerializerField(TEXT, 9, 256, required=True),
    "docker_image": SerializerField(TEXT, 14, 128),
}
AFTER_PHASES = {
    "description": SerializerField(TEXT, 9, null=True, blank=True),
    **dict.fromkeys(_FLAGS, SerializerField(FLAG, 17)),
    "competition_type": SerializerField(CHOICE, 16, choices=("competition", "benchmark")),
    "fact_sheet": SerializerField(JSON, 18, null=True),
    "reward": SerializerField(TEXT, 16, 256, null=True, blank=True),
    "contact_email": SerializerField(EMAIL, 16, 256, null=True, blank=True),
    "forum_enabled": SerializerField(FLAG, 17),
}
_QUESTION = {"key", "type", "title", "selection", "is_required", "is_on_leaderboard"}
#: By Pillow's names; MPO is a JPEG of several pictures.
_PICTURES = ("jpeg", "mpo", "png", "gif", "webp")
#: The longest title with which the renamed bundle fits into the database, for a user of one character.
_LONGEST_TITLE = 230


def _file_problem(bundle: OpenedCompetition, rule: int, where: str, name: object) -> BundleProblem | None:
    """Return why the unpacker cannot read a file."""
    kind, title = ("picture", "image") if where == "image" else ("file", "page")
    if not isinstance(name, str):
        return not_a_path(rule, where, name)
    if not os.path.exists(bundle.path(name)):
        found, quote = f"{name} is not in the bundle", f"Unable to find {title}: {name}"
        return refused(rule, where, found, "Put it there, or correct the path", quote)
    if not os.path.isfile(bundle.path(name)):
        text = f"[Errno 21] Is a directory: '<temporary folder>/{name}'"
        return crashed(rule, where, f"{name} is a folder", f"Name a {kind}", text)
    return None


def _text_problems(bundle: OpenedCompetition, rule: int, where: str, name: object, empty: str) -> BundleProblems:
    problem = _file_problem(bundle, rule, where, name)
    if problem:
        yield problem
        return
    try:
        with open(bundle.path(str(name)), encoding="utf-8") as file:
            if not file.read():
                yield refused(rule, where, f"{name} is empty", "Write something", empty)
    except UnicodeDecodeError as error:
        yield crashed(rule, where, f"{name} is not UTF-8", "Save it as UTF-8", str(error))
    except OSError as error:
        text = f"[Errno {error.errno}] {error.strerror}: '<temporary folder>/{name}'"
        yield crashed(rule, where, f"{name} cannot be read ({error.strerror})", "Make it readable", text)


def _null_problems(bundle: OpenedCompetition, rule: int, where: str, name: object, field: str) -> BundleProblems:
    """Yield that a text holds a character which the serializer refuses."""
    if isinstance(name, str) and _file_problem(bundle, rule, where, name) is None:
        try:
            text = Path(bundle.path(name)).read_bytes()
        except OSError:  # said already
            return
        if b"\0" in text:
            found = f"{name} holds a NUL character, in line {text[: text.index(0)].count(10) + 1}"
            yield refused(rule, where, found, "Remove it", f"{field}: Null characters are not allowed.\n")


def pages(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of the pages' files."""
    yield from listed(13, bundle, "pages")
    for where, page in bundle.mappings("pages"):
        if "file" not in page:
            yield crashed(13, f"{where}.file", "is missing", "Name a file", "'file'")
            continue
        empty = f"Page '{page['file']}' is empty, it must contain content."
        yield from _text_problems(bundle, 13, f"{where}.file", page["file"], empty)


def terms_and_picture(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of the terms and of the picture's path."""
    if "terms" in bundle.config:
        name = bundle.config["terms"]
        yield from _text_problems(bundle, 12, "terms", name, f"{name} is empty, it must contain content.")
    else:
        quote = "A file containing the terms of this competition has not been supplied in the required location"
        yield refused(12, "terms", "is missing", "Name a text file", quote)
    if "image" not in bundle.config:
        quote = "An image for this competition could not be found in the yaml"
        yield refused(10, "image", "is missing", "Name a picture", quote)
    else:
        problem = _file_problem(bundle, 10, "image", bundle.config["image"])
        yield from [problem] if problem else []


def queue(bundle: OpenedCompetition) -> BundleProblems:
    """Yield the problems of the queue that can be known here."""
    name = bundle.config.get("queue")
    if not name:
        return
    remedy = "See that it is there, and yours to use"
    if is_uuid(str(name)):
        yield harmful(15, "queue", "is on the site and cannot be looked up here", remedy)
    else:
        found, text = f"{name!r:.60} is not the UUID of a queue", f"['“{name}” is not a valid UUID.']"
        yield crashed(15, "queue", found, "Copy the vhost from the page of queues", text)


def logo(bundle: OpenedCompetition) -> BundleProblems:
    """Yield why the picture is not taken: by its content first, then while a small copy is made."""
    name = bundle.config.get("image")
    if not isinstance(name, str) or not os.path.isfile(bundle.path(name)):
        return
    remedy = "Save it as PNG or JPEG"
    try:
        with Image.open(bundle.path(name)) as picture:
            kind = (picture.format or "").lower()
            if kind not in _PICTURES:
                quote = "logo: The type of the image couldn't be determined.\n"
                yield refused(10, "image", f"{name} is {kind}", remedy, quote)
                return
            width, height = picture.size
            small = picture.resize((100, int(100 / width * height)))
            small.save(io.BytesIO(), "PNG")
    except UnidentifiedImageError:
        yield refused(10, "image", f"{name} is not a picture", remedy, "logo: Please upload a valid image.\n")
    except OSError as error:
        yield crashed(10, "image", f"{name} cannot be made smaller", remedy, str(error))
    except (ValueError, Image.DecompressionBombError) as error:
        yield crashed(11, "image", f"{name} is more than a hundred times as wide as high", "Cut it", str(error))


def fact_sheet(bundle: OpenedCompetition) -> BundleProblems:
    """Yield what is wrong with the questions."""
    sheet = bundle.config.get("fact_sheet")
    if not sheet:
        return
    if not isinstance(sheet, dict):
        yield refused(18, "fact_sheet", "is not a mapping", "Write name: {…}", "fact_sheet: Not valid JSON\n")
        return
    for name, question in sheet.items():
        where, remedy = f"fact_sheet.{name}", f"Write exactly {', '.join(sorted(_QUESTION))}"
        if not isinstance(question, dict):
            text = f"'{type(question).__name__}' object has no attribute 'keys'"
            yield crashed(18, where, "is not a mapping", remedy, text)
        elif _QUESTION ^ set(question):
            odd = ", ".join(sorted(map(repr, _QUESTION ^ set(question))))  # as Python writes a set, in a fixed order
            words = f"Missing {{{odd}}} values for {name}"
            yield refused(18, where, "lacks a key or has one too many", remedy, f"fact_sheet: {words}\n")
        elif question["key"] != name:
            words = f"key:{question['key']}  does not match JSON key:{name}"
            yield refused(18, f"{where}.key", "is not its name", f"Write key: {name}", f"fact_sheet: {words}\n")
        elif question["type"] not in ("checkbox", "text", "select"):
            words = f"{question['type']} is not a valid question type"
            yield refused(18, f"{where}.type", words, "Write checkbox, text or select", f"fact_sheet: {words}\n")
        elif isinstance(question["is_required"], bool) or isinstance(question["is_on_leaderboard"], bool):
            yield harmful(18, where, "its flags are not texts, so that they mean nothing", 'Write "true" or "false"')


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _stored_fact_sheet(sheet: dict[object, object]) -> BundleProblems:
    """Yield what the questions hold that JSON as Python writes it has, and the database's has not."""
    for name, question in sheet.items():
        where = f"fact_sheet.{name}"
        for leaf in _leaves([name, question]):
            if isinstance(leaf, float) and not math.isfinite(leaf):
                text = f'invalid input syntax for type json\nDETAIL:  Token "{json.dumps(leaf)}" is invalid.'
                yield crashed(18, where, f"holds {leaf}, which JSON lacks", "Write a number or a text", text)
            elif isinstance(leaf, str) and "\0" in leaf:
                text = "unsupported Unicode escape sequence\nDETAIL:  \\u0000 cannot be converted to text."
                yield crashed(18, where, "holds a NUL character", "Remove it", text)
            elif isinstance(leaf, str) and SURROGATE.search(leaf):
                found, text = "holds half a character (a surrogate)", "invalid input syntax for type json"
                yield crashed(18, where, found, "Write the whole character", text)


def top(bundle: OpenedCompetition) -> BundleProblems:
    """Yield what the competition's serializer refuses before the phases."""
    config = {"title": None, **bundle.config}
    yield from field_problems("", {"title": BEFORE_PAGES["title"]}, config)
    yield from logo(bundle)
    yield from field_problems("", {"docker_image": BEFORE_PAGES["docker_image"]}, config)
    for where, page in bundle.mappings("pages"):
        yield from field_problems(where, PAGE, {"title": None, **page}, "pages: ")
        for problem in _null_problems(bundle, 13, f"{where}.file", page.get("file"), "pages: content"):
            yield replace(problem, quote=f"{problem.quote}\n")


def rest(bundle: OpenedCompetition) -> BundleProblems:
    """Yield what it refuses after the phases, and what fails once the competition was made."""
    for key, field in AFTER_PHASES.items():
        yield from field_problems("", {key: field}, bundle.config)
        if key == "fact_sheet" and not field.answer(bundle.config.get(key)):
            yield from fact_sheet(bundle)
        if key == "description":
            yield from _null_problems(bundle, 12, "terms", bundle.config.get("terms"), "terms")
    sheet = bundle.config.get("fact_sheet")
    if isinstance(sheet, dict) and not AFTER_PHASES["fact_sheet"].answer(sheet):
        yield from _stored_fact_sheet(sheet)
    title = bundle.config.get("title")
    if isinstance(title, str) and _LONGEST_TITLE < len(title) <= BEFORE_PAGES["title"].most:
        text = "value too long for type character varying(255)"
        found = f"has {len(title)} characters, and the competition stays, half made"
        yield crashed(9, "title", found, "Shorten it", text)
