"""What fails when EvalAI saves a bundle that it accepted, mostly without a reason: rule 68, after all others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from .fields import CHALLENGE, FILES, PRIZE, SLUG_MESSAGE, SPONSOR, UNKEPT, Field, FieldError, as_integer, validate
from .opened_bundle import Bundle
from .problems import BundleProblem, BundleProblems
from .rule_rows import Check, RuleRow, check_each, entries
from .server_state import ServerState
from .validation import ROWS, Entry, ids_of, is_list_of_mappings, to_integer

#: The rule number of these problems, after all rules of the validation.
CREATION = 68
UNSAVED = "Error in creating challenge: {}. Please check the yaml configuration!"
_NO_REASON = UNSAVED.format(None)
_CODENAME_IN_USE = FieldError("non_field_errors", "The fields codename, challenge must make a unique set.", "unique")
_NO_SLUG = FieldError("slug", *SLUG_MESSAGE)
_SLUG_IN_USE = FieldError("slug", "challenge phase with this slug already exists.", "unique")
#: The most characters of a slug, and of the codename's part of it.
_SLUG_LENGTH, _CODENAME_LENGTH = 198, 180
#: The keys of a phase split that name an id, in the order in which the server looks them up.
_LOOKED_UP = (
    ("challenge_phase_id", "challenge_phases", "Challenge phase with phase id {} doesn't exist."),
    ("leaderboard_id", "leaderboard", "Leaderboard with id {} doesn't exist."),
    ("dataset_split_id", "dataset_splits", "Dataset split with id {} doesn't exist."),
)


def _refusal_to_save(subject: str, fault: str, remedy: str) -> BundleProblem:
    return BundleProblem(subject, fault, remedy, _NO_REASON, CREATION)


def check_saving(bundle: Bundle, state: ServerState | None) -> BundleProblems:
    """Yield the problems in the order in which the server saves."""
    top = Entry(bundle, "", bundle.config)
    plain = {key: field for key, field in CHALLENGE.items() if field.items is None and key != "tags"}
    yield from _check_characters(top, {**plain, **UNKEPT})
    yield from _check_saved_tags(top)
    yield from _check_sponsors(top)
    yield from check_each("prizes", _check_saved_prize)(top)
    for block in ("leaderboard", "challenge_phases", "dataset_splits"):
        for entry in entries(bundle, block):
            yield from _check_characters(entry, CHALLENGE[block].items or {})
            if state is not None:
                yield from _IDS_OF_UPDATE[block](entry)
        if block == "challenge_phases":
            yield from _check_slugs(bundle, state)
    yield from _check_references(bundle)


def _check_characters(entry: Entry, fields: dict[str, Field]) -> BundleProblems:
    """Yield the texts of an item that PostgreSQL does not store."""
    for key, field in fields.items():
        if key in entry.item and field.kind not in FILES:
            at = entry.below(key)
            for kind in dict.fromkeys(_find_characters(at.value)):
                yield _refusal_to_save(at.path, f"holds {kind}, which EvalAI's database does not take", "Remove it")


def _find_characters(value: object) -> Iterator[str]:
    if isinstance(value, str):
        if "\0" in value:
            yield "a NUL character"
        if any("\ud800" <= character <= "\udfff" for character in value):
            yield "half of a character (a lone surrogate)"
    elif isinstance(value, (list, tuple, set)):
        for item in value:
            yield from _find_characters(item)
    elif isinstance(value, dict):
        for pair in value.items():
            yield from _find_characters(pair)


def _check_saved_tags(entry: Entry) -> BundleProblems:
    tags = entry.item.get("tags", [])
    if isinstance(tags, (list, tuple)) and any(isinstance(tag, (list, dict, set)) for tag in tags):
        yield _refusal_to_save("tags", "holds a list or a mapping", "Write each tag as a text")
    elif isinstance(tags, (list, tuple, set, dict, str)):
        yield from _check_characters(replace(entry, item={"tags": [*map(str, tags)]}), {"tags": CHALLENGE["tags"]})


def _check_sponsors(entry: Entry) -> BundleProblems:
    sponsors = entry.item.get("sponsors", [])
    if sponsors in ([], {}, "") or (isinstance(sponsors, (set, bytes)) and not sponsors):
        return
    if not is_list_of_mappings(sponsors):
        remedy = "Write each as - name: …, with website: https://…; or remove the line"
        yield _refusal_to_save("sponsors", "is not a list of mappings", remedy)
        return
    names = []
    for at in entries(entry.bundle, "sponsors"):
        if "name" not in at.item:
            yield _refusal_to_save(f"{at.path}.name", "is missing", "Add it")
        elif at.item["name"] in names:
            continue  # the server saves the first one of this name again
        elif "website" not in at.item:
            quote = "Sponsor name or url not found in YAML data."
            yield BundleProblem(f"{at.path}.website", "is missing", "Add it", quote, CREATION)
        else:
            names.append(at.item["name"])
            yield from _check_sponsor(at)


def _check_sponsor(entry: Entry) -> BundleProblems:
    for key, field in SPONSOR.items():
        error = validate(key, entry.item[key], field)
        if error:
            # The server keeps its serializer's message to itself here.
            yield _refusal_to_save(f"{entry.path}.{key}", f"is {entry.item[key]!r:.60}", error.message.rstrip("."))
        else:
            yield from _check_characters(entry, {key: field})


def _check_saved_prize(entry: Entry) -> BundleProblems:
    if "description" not in entry.item and {"rank", "amount"} <= {*entry.item}:
        yield _refusal_to_save(f"{entry.path}.description", "is missing", "Add it: creation fails without")
    if not any(validate(key, entry.item.get(key), field) for key, field in PRIZE.items()):
        yield from _check_characters(entry, PRIZE)  # the server drops the others before it saves


#: An update searches phases in the database and other items in a dictionary.
_UNSEARCHABLE = "is {value!r:.60}, by which an update cannot find anything"
_UNHASHABLE_ID = RuleRow(CREATION, "id", lambda at: isinstance(at.value, (list, dict, set)), _UNSEARCHABLE,
    "Number it from 1", _NO_REASON)  # fmt: skip
_IDS_OF_UPDATE: dict[str, Check] = {
    "leaderboard": _UNHASHABLE_ID,
    "challenge_phases": RuleRow(CREATION, "id", lambda at: at.value is not None and to_integer(at.value) is None,
        _UNSEARCHABLE, "Number it from 1", _NO_REASON),
    "dataset_splits": _UNHASHABLE_ID,
}  # fmt: skip


def _check_slugs(bundle: Bundle, state: ServerState | None) -> BundleProblems:
    """Yield the phases whose address cannot be made: of the title's first word, the codename and the challenge's id.

    The server saves one phase after the other, and makes an address only of a new one.
    """
    word = first_word(bundle.config.get("title"))
    memory = state or ServerState()
    stored = dict(memory.phases)
    slugs = {*([f"{slug}-0" for slug in memory.slugs] or [phase_slug(word, codename) for codename in stored.values()])}
    added: list[str] = []
    title_is_valid = is_slug(word)
    update = " update" if state else ""
    for entry in entries(bundle, "challenge_phases"):
        at = entry.below("codename")
        codename, config_id = at.value, as_integer(entry.number)
        if codename in (None, "") or isinstance(codename, bool):
            continue
        if config_id in stored:
            occupied = [name for number, name in stored.items() if number != config_id]
            stored[config_id] = str(codename).strip()
            if stored[config_id] in (*occupied, *added):
                quote = UNSAVED.format(f"challenge phase update {config_id} :{{errors}}")
                fault = f"is {stored[config_id]!r}, which another phase on EvalAI has when this one is saved"
                remedy = "Choose another; to swap two, push a third codename in between"
                yield BundleProblem(at.path, fault, remedy, quote, CREATION, error=_CODENAME_IN_USE)
            continue
        if not isinstance(codename, str):
            yield _refusal_to_save(at.path, f"is {codename!r}, not a text", "Put it in quotes")
            continue
        quote = UNSAVED.format(f"challenge phase{update} {entry.number} :{{errors}}")
        if not title_is_valid:
            fault = f"begins with {word!r}, and EvalAI makes the addresses of its phases of the first word"
            remedy = "Begin it with a word of a-z, 0-9, - and _ alone, then a space"
            yield BundleProblem("title", fault, remedy, quote, CREATION, error=_NO_SLUG)
            word, title_is_valid = "x", True  # reported once
        slug = phase_slug(word, codename)
        if not is_slug(slug):
            fault, remedy = f"is {codename!r}, of which EvalAI makes an address", "Use a-z, 0-9, - and _ alone"
            yield BundleProblem(at.path, fault, remedy, quote, CREATION, error=_NO_SLUG)
        elif slug in slugs or codename.strip() in (*stored.values(), *added):
            error = _SLUG_IN_USE if slug in slugs else _CODENAME_IN_USE
            fault = f"is {codename!r}, which in an address is the same as another phase's"
            remedy = "Let codenames differ in more than case, spaces and punctuation"
            yield BundleProblem(at.path, fault, remedy, quote, CREATION, error=error)
        slugs.add(slug)
        if state is not None and config_id is not None:
            stored[config_id] = codename.strip()  # a second phase with this id updates it
        else:
            added.append(codename.strip())


def is_slug(text: str) -> bool:
    return bool(re.fullmatch(r"[-a-zA-Z0-9_]+", text))


def first_word(title: object) -> str:
    """What the slugs of a challenge's phases begin with."""
    return str(title).strip().split(" ")[0].lower()


def phase_slug(word: str, codename: str, challenge: int = 0) -> str:
    """As the server makes it; the challenge's id does not matter where slugs are compared."""
    text = re.sub(r"\W+", "-", codename.replace(" ", "-").lower())[:_CODENAME_LENGTH]
    return f"{word}-{text}-{challenge}"[:_SLUG_LENGTH]


def _check_references(bundle: Bundle) -> BundleProblems:
    """Yield ids that are equal as numbers, by which the server validates, and not as texts, by which it saves."""
    for row in entries(bundle, ROWS):
        for key, block, quote in _LOOKED_UP:
            at, ids = row.below(key), ids_of(bundle, block)
            if at.value in ids and str(row.item[key]) not in map(str, ids):
                fault = f"is {at.value!r}, and the id in {block} is written otherwise"
                remedy, message = "Write it the same at both places", quote.format(at.value)
                yield BundleProblem(at.path, fault, remedy, message, CREATION)
                break
