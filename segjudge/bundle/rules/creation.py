"""Rules of what passes validation and fails when the server saves the challenge.

The server answers such a bundle with 400 or 406, and mostly gives no reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from segjudge.bundle.field_values import SLUG_MESSAGE, as_integer, validate
from segjudge.bundle.fields import CHALLENGE, FILES, PRIZE, SPONSOR, Field
from segjudge.bundle.opened_bundle import Bundle
from segjudge.bundle.problems import BundleProblem, BundleProblems, FieldError, mappings_in
from segjudge.bundle.server_state import ServerState

from .blocks import entries, is_list_of_mappings

#: The rule number of these problems, after all rules of the validation.
CREATION = 68
UNSAVED = "Error in creating challenge: {}. Please check the yaml configuration!"
_SLUG = re.compile(r"[-a-zA-Z0-9_]+")
#: The most characters of a slug, and of the codename's part of it.
_MOST_SLUG, _MOST_SLUG_PART = 198, 180
#: The keys of a phase split that name an id, in the order in which the server looks them up.
_LOOKED_UP = (
    ("challenge_phase_id", "challenge_phases", "Challenge phase with phase id {} doesn't exist."),
    ("leaderboard_id", "leaderboard", "Leaderboard with id {} doesn't exist."),
    ("dataset_split_id", "dataset_splits", "Dataset split with id {} doesn't exist."),
)


def creation(bundle: Bundle, state: ServerState | None) -> BundleProblems:
    """Yield the problems in the order in which the server saves."""
    config = bundle.config
    plain = {key: field for key, field in CHALLENGE.items() if field.items is None and key != "tags"}
    yield from _refused_texts("", config, plain)
    yield from _tags(config.get("tags", []))
    yield from _sponsors(bundle)
    for where, prize in entries(bundle, "prizes"):
        if "description" not in prize and {"rank", "amount"} <= {*prize}:
            yield _unsaved(f"{where}.description", "is missing", "Add it: creation fails without")
        if not any(validate(key, prize.get(key), field) for key, field in PRIZE.items()):
            yield from _refused_texts(f"{where}.", prize, PRIZE)  # the server drops the others before it saves
    for block in ("leaderboard", "challenge_phases", "dataset_splits"):
        for where, item in entries(bundle, block):
            yield from _refused_texts(f"{where}.", item, CHALLENGE[block].items or {})
        if block == "challenge_phases":
            yield from _slugs(bundle, state)
    yield from _references(bundle)


def _unsaved(where: str, found: str, remedy: str) -> BundleProblem:
    return BundleProblem(where, found, remedy, UNSAVED.format(None), CREATION)


def _tags(tags: object) -> BundleProblems:
    if isinstance(tags, (list, tuple)) and any(isinstance(tag, (list, dict, set)) for tag in tags):
        yield _unsaved("tags", "holds a list or a mapping", "Write each tag as a text")
    elif isinstance(tags, (list, tuple, set, dict, str)):
        yield from _refused_texts("", {"tags": [str(tag) for tag in tags]}, {"tags": CHALLENGE["tags"]})


def _sponsors(bundle: Bundle) -> BundleProblems:
    sponsors = bundle.config.get("sponsors", [])
    if sponsors in ([], {}, "") or (isinstance(sponsors, (set, bytes)) and not sponsors):
        return
    if not is_list_of_mappings(sponsors):
        remedy = "Write each as - name: …, with website: https://…; or remove the line"
        yield _unsaved("sponsors", "is not a list of mappings", remedy)
        return
    names = []
    for where, sponsor in entries(bundle, "sponsors"):
        if "name" not in sponsor:
            yield _unsaved(f"{where}.name", "is missing", "Add it")
        elif sponsor["name"] in names:
            continue  # the server saves the first one of this name again
        elif "website" not in sponsor:
            quote = "Sponsor name or url not found in YAML data."
            yield BundleProblem(f"{where}.website", "is missing", "Add it", quote, CREATION)
        else:
            names.append(sponsor["name"])
            yield from _sponsor(where, sponsor)


def _sponsor(where: str, sponsor: dict[str, Any]) -> BundleProblems:
    for key, field in SPONSOR.items():
        error = validate(key, sponsor[key], field)
        if error:
            # The server keeps its serializer's message to itself here.
            yield _unsaved(f"{where}.{key}", f"is {sponsor[key]!r:.60}", error.message.rstrip("."))
        else:
            yield from _refused_texts(f"{where}.", {key: sponsor[key]}, SPONSOR)


def _slugs(bundle: Bundle, state: ServerState | None) -> BundleProblems:
    """Yield the phases whose address cannot be made: of the title's first word, the codename and the challenge's id."""
    word = str(bundle.config.get("title")).strip().split(" ")[0].lower()
    stored = state.phases if state else {}
    slugs = {_slug(word, codename) for codename in stored.values()}
    codenames = {*stored.values()}
    title_is_valid = bool(_SLUG.fullmatch(word))
    for where, phase in entries(bundle, "challenge_phases"):
        codename, number = phase.get("codename"), phase.get("id")
        if as_integer(number) in stored or codename in (None, "") or isinstance(codename, bool):
            continue
        path = f"{where}.codename"
        if not isinstance(codename, str):
            yield _unsaved(path, f"is {codename!r}, not a text", "Put it in quotes")
            continue
        if not title_is_valid:
            yield _slug_problem("title", word, number, FieldError("slug", *SLUG_MESSAGE), state)
            word, title_is_valid = "x", True  # reported once
        slug = _slug(word, codename)
        error = None
        if not _SLUG.fullmatch(slug):
            error = FieldError("slug", *SLUG_MESSAGE)
        elif slug in slugs:
            error = FieldError("slug", "challenge phase with this slug already exists.", "unique")
        elif codename.strip() in codenames:
            message = "The fields codename, challenge must make a unique set."
            error = FieldError("non_field_errors", message, "unique")
        slugs.add(slug)
        codenames.add(codename.strip())
        if error:
            yield _slug_problem(path, codename, number, error, state)


def _slug_problem(where: str, text: str, number: object, error: FieldError, state: ServerState | None) -> BundleProblem:
    update = " update" if state else ""
    quote = UNSAVED.format(f"challenge phase{update} {number} :{{errors}}")
    if error.code == "unique":
        found = f"is {text!r}, which in an address is the same as another phase's"
        remedy = "Let codenames differ in more than case, spaces and punctuation"
    elif where == "title":
        found = f"begins with {text!r}, and EvalAI makes the addresses of its phases of the first word"
        remedy = "Begin it with a word of a-z, 0-9, - and _ alone, then a space"
    else:
        found, remedy = f"is {text!r}, of which EvalAI makes an address", "Use a-z, 0-9, - and _ alone"
    return BundleProblem(where, found, remedy, quote, CREATION, error=error)


def _slug(word: str, codename: str) -> str:
    """Return the slug as the server makes it, with 0 for the challenge's id, which does not matter here."""
    part = re.sub(r"\W+", "-", codename.replace(" ", "-").lower())[:_MOST_SLUG_PART]
    return f"{word}-{part}-0"[:_MOST_SLUG]


def _references(bundle: Bundle) -> BundleProblems:
    """Yield ids that are equal as numbers, by which the server validates, and not as texts, by which it saves."""
    ids = {block: [item.get("id") for item in mappings_in(bundle.config, block)] for _, block, _ in _LOOKED_UP}
    for where, row in entries(bundle, "challenge_phase_splits"):
        for key, block, quote in _LOOKED_UP:
            if row.get(key) in ids[block] and str(row[key]) not in map(str, ids[block]):
                found = f"is {row[key]!r}, and the id in {block} is written otherwise"
                remedy, message = "Write it the same at both places", quote.format(row[key])
                yield BundleProblem(f"{where}.{key}", found, remedy, message, CREATION)
                break


def _refused_texts(where: str, item: dict[str, Any], fields: dict[str, Field]) -> BundleProblems:
    """Yield the texts of an item that the server's database refuses."""
    for key, field in fields.items():
        if key in item and field.kind not in FILES:
            for found in dict.fromkeys(_refused_characters(item[key])):
                yield _unsaved(f"{where}{key}", f"holds {found}, which EvalAI's database does not take", "Remove it")


def _refused_characters(value: object) -> Iterator[str]:
    """Yield the kinds of characters in a value that PostgreSQL does not store."""
    if isinstance(value, str):
        if "\0" in value:
            yield "a NUL character"
        if any("\ud800" <= character <= "\udfff" for character in value):
            yield "half of a character (a lone surrogate)"
    elif isinstance(value, (list, tuple, set)):
        for item in value:
            yield from _refused_characters(item)
    elif isinstance(value, dict):
        for key_and_value in value.items():
            yield from _refused_characters(key_and_value)
