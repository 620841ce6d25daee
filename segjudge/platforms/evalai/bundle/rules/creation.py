"""Rules of what passes validation and fails when the server saves the challenge.

The server answers such a bundle with 400 or 406, and mostly gives no reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from segjudge.platforms.evalai.bundle.field_values import SLUG_MESSAGE, as_integer, validate
from segjudge.platforms.evalai.bundle.fields import CHALLENGE, FILES, PRIZE, SPONSOR, UNKEPT, Field
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
from segjudge.platforms.evalai.bundle.problems import BundleProblem, BundleProblems, FieldError, mappings_in
from segjudge.platforms.evalai.bundle.server_state import ServerState

from .blocks import entries, is_list_of_mappings
from .mappings import python_integer

#: The rule number of these problems, after all rules of the validation.
CREATION = 68
UNSAVED = "Error in creating challenge: {}. Please check the yaml configuration!"
_SLUG = re.compile(r"[-a-zA-Z0-9_]+")
_SAME_CODENAME = FieldError("non_field_errors", "The fields codename, challenge must make a unique set.", "unique")
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
    yield from _refused_texts("", config, {**plain, **UNKEPT})
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
            if state is not None:
                yield from _unsearchable_id(f"{where}.id", item.get("id"), block)
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
    """Yield the phases whose address cannot be made: of the title's first word, the codename and the challenge's id.

    The server saves one phase after the other, and makes an address only of a new one.
    """
    word = first_word(bundle.config.get("title"))
    known = state or ServerState()
    stored = dict(known.phases)
    slugs = {*([f"{slug}-0" for slug in known.slugs] or [phase_slug(word, codename) for codename in stored.values()])}
    added: list[str] = []
    title_is_valid = bool(_SLUG.fullmatch(word))
    for where, phase in entries(bundle, "challenge_phases"):
        codename, number = phase.get("codename"), phase.get("id")
        if codename in (None, "") or isinstance(codename, bool):
            continue
        path, config_id = f"{where}.codename", as_integer(number)
        if config_id in stored:
            others = [name for other, name in stored.items() if other != config_id]
            stored[config_id] = str(codename).strip()
            if stored[config_id] in (*others, *added):
                yield _codename_in_use(path, stored[config_id], config_id)
            continue
        if not isinstance(codename, str):
            yield _unsaved(path, f"is {codename!r}, not a text", "Put it in quotes")
            continue
        if not title_is_valid:
            yield _slug_problem("title", word, number, FieldError("slug", *SLUG_MESSAGE), state)
            word, title_is_valid = "x", True  # reported once
        slug = phase_slug(word, codename)
        error = None
        if not _SLUG.fullmatch(slug):
            error = FieldError("slug", *SLUG_MESSAGE)
        elif slug in slugs:
            error = FieldError("slug", "challenge phase with this slug already exists.", "unique")
        elif codename.strip() in (*stored.values(), *added):
            error = _SAME_CODENAME
        slugs.add(slug)
        if state is not None and config_id is not None:
            stored[config_id] = codename.strip()  # a second phase with this id updates it
        else:
            added.append(codename.strip())
        if error:
            yield _slug_problem(path, codename, number, error, state)


def _codename_in_use(where: str, codename: str, config_id: int) -> BundleProblem:
    quote = UNSAVED.format(f"challenge phase update {config_id} :{{errors}}")
    found = f"is {codename!r}, which another phase on EvalAI has when this one is saved"
    remedy = "Choose another; to swap two, push a third codename in between"
    return BundleProblem(where, found, remedy, quote, CREATION, error=_SAME_CODENAME)


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


def first_word(title: object) -> str:
    """Return what the slugs of a challenge's phases begin with."""
    return str(title).strip().split(" ")[0].lower()


def phase_slug(word: str, codename: str, challenge: int = 0) -> str:
    """Return a phase's slug as the server makes it; the challenge's id does not matter where slugs are compared."""
    part = re.sub(r"\W+", "-", codename.replace(" ", "-").lower())[:_MOST_SLUG_PART]
    return f"{word}-{part}-{challenge}"[:_MOST_SLUG]


def _unsearchable_id(where: str, number: object, block: str) -> BundleProblems:
    """Yield an id by which an update cannot search: for a phase in the database, for other items in a dictionary."""
    if block == "challenge_phases":
        unsearchable = number is not None and python_integer(number) is None
    else:
        unsearchable = isinstance(number, (list, dict, set))
    if unsearchable:
        yield _unsaved(where, f"is {number!r:.60}, by which an update cannot find anything", "Number it from 1")


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
