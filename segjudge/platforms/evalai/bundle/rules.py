"""EvalAI's tests in its order: validation, update, and saving. Rules of the web form alone follow below."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from segjudge.platforms.rules.fields import SLUG_MESSAGE, Field, FieldError, as_flag, as_integer, validate
from segjudge.platforms.rules.problems import BundleProblem, BundleProblems, crash
from segjudge.platforms.rules.rule_rows import Check, RuleRow, Verdict, all_of, check_each, entries, first_of

from .fields import CHALLENGE, FILES, PRIZE, SPONSOR, UNKEPT
from .opened_bundle import Bundle
from .server_state import REFERENCES, SPLIT_SETTINGS, ServerState
from .shared_rules import Entry, is_empty, is_list_of_mappings, is_no_list_of_mappings, lacks
from .validation import PHASE_SPLITS, VALIDATIONS, find_accepted, find_accepted_ids, ids_of, to_integer


def check_server_rules(bundle: Bundle, state: ServerState | None = None) -> BundleProblems:
    """Yield the problems by EvalAI's tests in its order, then those of saving; with `state`, for an update."""
    for block, check in VALIDATIONS.items():
        problems = [*check(Entry(bundle, "", bundle.config))]
        if state is not None and block in _UPDATES:
            problems = sorted([*problems, *_UPDATES[block](bundle, state)], key=_order_of_update)
        yield from problems
    yield from _check_saving(bundle, state)


# ── updating: what is on EvalAI already, and what was approved ───────────────────────────────────────────────────────


#: The rules by which the server tests a block in another order than item by item: deleted items come last, names of
#: splits first, and stored rows before the ids of a row.
_LOST, _NAMES_OF_SPLITS, _STORED_ROWS = (32, 46, 53, 62), (48, 49, 50), (60, 61, 63)
_ROW = "(leaderboard_id: {}, challenge_phase_id: {}, dataset_split_id: {})"
_APPROVED = "cannot be changed after the challenge is approved by an admin. Revert"
_NOT_ALLOWED = "after challenge creation is not allowed."
_SUPPORT = "to match the approved configuration or contact support."


def _refuse_difference(subject: str, field: str, quote: str, rule: int) -> BundleProblem:
    return BundleProblem(subject, f"{field} differs from the approved value", "Restore the approved value", quote, rule)


def _check_challenge_update(bundle: Bundle, state: ServerState) -> BundleProblems:
    """Yield a change of the kind of queue, which is set once; a validation does not test it."""
    fifo = as_flag(bundle.config.get("use_fifo_sqs", state.fifo))
    if state.fifo is None or fifo is None or fifo == state.fifo:
        return
    detail = "use_fifo_sqs cannot be changed after the challenge queue has been created."
    error = FieldError("use_fifo_sqs", detail, "invalid")
    quote, fault = UNSAVED.format("challenge :{errors}"), f"is {fifo}, and was {state.fifo}"
    yield BundleProblem("use_fifo_sqs", fault, "Restore the earlier value", quote, CREATION, error=error)


def _check_leaderboards_update(bundle: Bundle, state: ServerState) -> BundleProblems:
    """Yield the leaderboards that are gone, and changes of schemas of an approved challenge."""
    boards = find_accepted(bundle, "leaderboard_id")
    if state.leaderboards:
        yield from _check_update_ids(bundle, state, boards, 33)
    for entry in boards if state.approved else []:
        number = as_integer(entry.number)
        if number not in state.leaderboards:
            continue
        schema = _canonical(entry.item["schema"])
        if schema is None:
            fault = "has a mapping with both text and other keys"
            yield crash(f"{entry.path}.schema", fault, "Put the keys in quotes", 33)
        elif schema != _canonical(state.leaderboards[number]):
            quote = f"ERROR: Leaderboard {entry.number} {_APPROVED} the leaderboard block {_SUPPORT}"
            yield _refuse_difference(f"{entry.path}.schema", f"of id {number}", quote, 33)
    names = {number: f"id {number}" for number in state.leaderboards}
    deletion = f"Deletion of an existing leaderboard {_NOT_ALLOWED}"
    quote = f"ERROR: The leaderboard with ID: {{}} not found in config. {deletion}"
    yield from _check_missing_items(bundle, "leaderboard_id", names, quote, 32)


def _check_splits_update(bundle: Bundle, state: ServerState) -> BundleProblems:
    """Yield the splits that are gone, and changes of names of an approved challenge."""
    splits = find_accepted(bundle, "dataset_split_id")
    if state.splits:
        yield from _check_update_ids(bundle, state, splits, 54)
    for entry in splits if state.approved else []:
        number, names = as_integer(entry.number), [entry.item.get("name"), entry.item.get("codename")]
        if number in state.splits and names != state.splits[number]:
            quote = f"ERROR: Dataset split {entry.number} {_APPROVED} the dataset split block {_SUPPORT}"
            yield _refuse_difference(entry.path, f"id {number}", quote, 54)
    stored = {number: f"id {number} ({split[1]})" for number, split in state.splits.items()}
    quote = f"ERROR: Dataset split {{}} not found in config. Deletion of existing dataset split {_NOT_ALLOWED}"
    yield from _check_missing_items(bundle, "dataset_split_id", stored, quote, 53)


def _check_phases_update(bundle: Bundle, state: ServerState) -> BundleProblems:
    if bundle.config.get("challenge_phases"):
        names = {number: f"id {number} ({codename})" for number, codename in state.phases.items()}
        quote = f"ERROR: Challenge phase {{}} not found in config. Deletion of existing challenge phase {_NOT_ALLOWED}"
        yield from _check_missing_items(bundle, "challenge_phase_id", names, quote, 46)


def _check_update_ids(bundle: Bundle, state: ServerState, items: list[Entry], rule: int) -> BundleProblems:
    """Yield the ids that the server's update cannot read, though its serializers can.

    It reads the ids of an approved challenge, or with rows of new phases.
    """
    rows = [row.item for row in entries(bundle, PHASE_SPLITS) if {*REFERENCES, *SPLIT_SETTINGS} <= {*row.item}]
    reads = state.approved or any(to_integer(row["challenge_phase_id"]) not in state.phases for row in rows)
    for entry in items if reads else []:
        key_entry = entry.child("id")
        if key_entry.is_written and to_integer(key_entry.value) is None:
            yield crash(key_entry.path, f"is {key_entry.value!r:.60}, not a whole number", "Number it from 1", rule)


def _check_missing_items(bundle: Bundle, key: str, names: dict[int, str], quote: str, rule: int) -> BundleProblems:
    block, accepted = REFERENCES[key][0], find_accepted_ids(bundle, key)
    written = ids_of(bundle, block)
    for number in sorted(number for number in names if number not in accepted):
        is_quoted = str(number) in written
        hint = ": in quotes it is a different id" if is_quoted else ""
        fault = f"lacks {names[number]}, which already exists on EvalAI{hint}"
        remedy = "Remove the quotes" if is_quoted else "Restore it: pushed parts can be changed, not deleted"
        yield BundleProblem(block, fault, remedy, quote.format(number), rule, consequence=number in written)


def _canonical(schema: object) -> str | None:
    """Return a schema as the server compares it; None for unsortable keys."""
    try:
        return json.dumps(schema, sort_keys=True, default=str)
    except TypeError:
        return None


def _check_mappings_update(bundle: Bundle, state: ServerState) -> BundleProblems:
    """Yield new rows of stored phases, rows that are gone, and changes of rows of an approved challenge."""
    stored = {tuple(row[:3]): row[3:] for row in state.rows}
    if not stored or not bundle.config.get(PHASE_SPLITS):
        return  # a new challenge, or rule 55
    written: list[tuple[int | None, ...]] = []
    for entry in entries(bundle, PHASE_SPLITS):
        if any(key not in entry.item for key in (*REFERENCES, *SPLIT_SETTINGS)):
            continue
        ids = [entry.item[key] for key in REFERENCES]
        triple = tuple(map(to_integer, ids))
        if triple in stored:
            written.append(triple)
            yield from _check_settings(entry, ids, stored[triple] if state.approved else [None])
        elif triple[1] in state.phases:
            quote = (
                f"ERROR: Cannot add a new leaderboard/dataset-split mapping for an existing challenge phase "
                f"{_ROW.format(*ids)}. New mappings are only allowed for newly added challenge phases."
            )
            fault = "adds {2} on leaderboard {0} to phase {1}, which already exists on EvalAI".format(*triple)
            yield BundleProblem(entry.path, fault, "Add a new phase for it, or remove the row", quote, 60)
        else:
            yield from _check_declared(entry, state, triple)
    for triple in sorted(stored.keys() - {*written}):
        quote = (
            f"ERROR: Challenge phase split {_ROW.format(*triple)} not found in config. Deletion of existing challenge "
            f"phase split {_NOT_ALLOWED}"
        )
        fault = "lacks leaderboard {}, phase {}, split {}, which already exists on EvalAI".format(*triple)
        remedy = "Restore it: pushed parts can be changed, not deleted"
        yield BundleProblem(PHASE_SPLITS, fault, remedy, quote, 62)


def _check_settings(entry: Entry, ids: list[Any], stored: list[Any]) -> BundleProblems:
    """Yield differences from the approved row; the server compares `int` and `bool` of the values."""
    if None in stored:
        return
    settings: list[int] = []
    for key_entry, compared in zip(map(entry.child, SPLIT_SETTINGS), (int, int, bool), strict=True):
        try:
            settings.append(compared(key_entry.value))
        except (TypeError, ValueError, OverflowError):
            yield crash(key_entry.path, f"is {key_entry.value!r:.60}", "Write a number", 63)
            return
    if settings != stored:
        quote = f"ERROR: Challenge phase split {_ROW.format(*ids)} {_APPROVED} visibility / ordering fields {_SUPPORT}"
        yield _refuse_difference(entry.path, "leaderboard {}, phase {}, split {}".format(*ids), quote, 63)


def _check_declared(entry: Entry, state: ServerState, triple: tuple[int | None, ...]) -> BundleProblems:
    """Yield the ids in a row of a new phase that neither the config nor the challenge has."""
    for index, key, stored, what, rule in (
        (0, "leaderboard_id", state.leaderboards, "Leaderboard", "may only use leaderboards"),
        (2, "dataset_split_id", state.splits, "Dataset split", "must use dataset splits"),
    ):
        if triple[index] in stored or triple[index] in map(to_integer, find_accepted_ids(entry.bundle, key)):
            continue
        quote = (
            f"ERROR: {what} id {triple[index]} is not part of this challenge or the uploaded configuration. "
            f"New challenge phases {rule} declared in the configuration."
        )
        fault = f"names {key} {triple[index]}, which is not in {REFERENCES[key][0]}"
        yield BundleProblem(entry.path, fault, "Correct the id", quote, 61)


#: The additional tests of an update, by block.
_UPDATES: dict[str, Callable[[Bundle, ServerState], BundleProblems]] = {
    "challenge": _check_challenge_update,
    "leaderboard": _check_leaderboards_update,
    "challenge_phases": _check_phases_update,
    "dataset_splits": _check_splits_update,
    PHASE_SPLITS: _check_mappings_update,
}


def _order_of_update(problem: BundleProblem) -> tuple[int, int, bool]:
    """Sort within a block: the server tests updates item by item, and losses last."""
    item = re.match(r"\w+\[(\d+)\]", problem.subject)
    if not item:
        return (2 if problem.accepted or problem.rule in _LOST else 0, 0, False)
    return (0 if problem.rule in _NAMES_OF_SPLITS else 1, int(item[1]), problem.rule not in _STORED_ROWS)


# ── saving: mostly refused without a reason, after all others ────────────────────────────────────────────────────────


#: The rule number of these problems, after all rules of the validation.
CREATION = 68
UNSAVED = "Error in creating challenge: {}. Please check the yaml configuration!"
_NO_REASON = UNSAVED.format(None)
_CODENAME_IN_USE = FieldError("non_field_errors", "The fields codename, challenge must make a unique set.", "unique")
_NO_SLUG = FieldError("slug", *SLUG_MESSAGE)
_SLUG_IN_USE = FieldError("slug", "challenge phase with this slug already exists.", "unique")
#: The maximum characters of a slug, and of the codename in it.
_SLUG_LENGTH, _CODENAME_LENGTH = 198, 180
#: The keys of a phase split that name an id, in the order in which the server looks them up.
_LOOKED_UP = (
    ("challenge_phase_id", "challenge_phases", "Challenge phase with phase id {} doesn't exist."),
    ("leaderboard_id", "leaderboard", "Leaderboard with id {} doesn't exist."),
    ("dataset_split_id", "dataset_splits", "Dataset split with id {} doesn't exist."),
)


def _refusal_to_save(subject: str, fault: str, remedy: str) -> BundleProblem:
    return BundleProblem(subject, fault, remedy, _NO_REASON, CREATION)


def _check_saving(bundle: Bundle, state: ServerState | None) -> BundleProblems:
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
            key_entry = entry.child(key)
            for kind in dict.fromkeys(_find_rejected_values(key_entry.value)):
                yield _refusal_to_save(key_entry.path, f"holds {kind}, which EvalAI's database rejects", "Remove it")


def _find_rejected_values(value: object, above: tuple[int, ...] = ()) -> Iterator[str]:
    """Yield values that the database rejects; `above` has the identities of the enclosing values."""
    if id(value) in above:
        yield "itself, by an anchor of YAML"
    elif isinstance(value, str):
        if "\0" in value:
            yield "a NUL character"
        if any("\ud800" <= character <= "\udfff" for character in value):
            yield "half of a character (a lone surrogate)"
    elif isinstance(value, (list, tuple, set)):
        for item in value:
            yield from _find_rejected_values(item, (*above, id(value)))
    elif isinstance(value, dict):
        for item in (*value, *value.values()):
            yield from _find_rejected_values(item, (*above, id(value)))


def _check_saved_tags(entry: Entry) -> BundleProblems:
    tags = entry.item.get("tags", [])
    if isinstance(tags, (list, tuple)) and any(isinstance(tag, (list, dict, set)) for tag in tags):
        yield _refusal_to_save("tags", "holds a list or a mapping", "Write each tag as text")
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
    for sponsor in entries(entry.bundle, "sponsors"):
        if "name" not in sponsor.item:
            yield _refusal_to_save(f"{sponsor.path}.name", "is missing", "Add it")
        elif sponsor.item["name"] in names:
            continue  # the server saves the first one with this name again
        elif "website" not in sponsor.item:
            quote = "Sponsor name or url not found in YAML data."
            yield BundleProblem(f"{sponsor.path}.website", "is missing", "Add it", quote, CREATION)
        else:
            names.append(sponsor.item["name"])
            yield from _check_sponsor(sponsor)


def _check_sponsor(entry: Entry) -> BundleProblems:
    for key, field in SPONSOR.items():
        error = validate(key, entry.item[key], field)
        if error:
            # The server does not show its serializer's message here.
            yield _refusal_to_save(f"{entry.path}.{key}", f"is {entry.item[key]!r:.60}", error.message.rstrip("."))
        else:
            yield from _check_characters(entry, {key: field})


def _check_saved_prize(entry: Entry) -> BundleProblems:
    if "description" not in entry.item and {"rank", "amount"} <= {*entry.item}:
        yield _refusal_to_save(f"{entry.path}.description", "is missing", "Add it: creation fails without it")
    if not any(validate(key, entry.item.get(key), field) for key, field in PRIZE.items()):
        yield from _check_characters(entry, PRIZE)  # the server drops the others before it saves


#: An update searches phases in the database and other items in a dictionary.
_UNSEARCHABLE = "is {value!r:.60}, so an update cannot find it"
_UNHASHABLE_ID = RuleRow(CREATION, "id", lambda entry: isinstance(entry.value, (list, dict, set)), _UNSEARCHABLE,
    "Number it from 1", _NO_REASON)  # fmt: skip
_IDS_OF_UPDATE: dict[str, Check] = {
    "leaderboard": _UNHASHABLE_ID,
    "challenge_phases": RuleRow(CREATION, "id",
        lambda entry: entry.value is not None and to_integer(entry.value) is None,
        _UNSEARCHABLE, "Number it from 1", _NO_REASON),
    "dataset_splits": _UNHASHABLE_ID,
}  # fmt: skip


def _check_slugs(bundle: Bundle, state: ServerState | None) -> BundleProblems:
    """Yield the phases without a valid slug, which consists of the title's first word, the codename and the challenge's
    id.

    The server saves phases one by one, and makes slugs only for new ones.
    """
    word = first_word(bundle.config.get("title"))
    memory = state or ServerState()
    stored = dict(memory.phases)
    slugs = {*([f"{slug}-0" for slug in memory.slugs] or [phase_slug(word, codename) for codename in stored.values()])}
    added: list[str] = []
    title_is_valid = _is_slug(word)
    update = " update" if state else ""
    for entry in entries(bundle, "challenge_phases"):
        key_entry = entry.child("codename")
        codename, config_id = key_entry.value, as_integer(entry.number)
        if codename in (None, "") or isinstance(codename, bool):
            continue
        if config_id in stored:
            occupied = [name for number, name in stored.items() if number != config_id]
            stored[config_id] = str(codename).strip()
            if stored[config_id] in (*occupied, *added):
                quote = UNSAVED.format(f"challenge phase update {config_id} :{{errors}}")
                fault = f"is {stored[config_id]!r}, which another phase on EvalAI has until it is updated"
                remedy = "Choose another; to swap two codenames, push a temporary one in between"
                yield BundleProblem(key_entry.path, fault, remedy, quote, CREATION, error=_CODENAME_IN_USE)
            continue
        if not isinstance(codename, str):
            yield _refusal_to_save(key_entry.path, f"is {codename!r}, not a text", "Put it in quotes")
            continue
        quote = UNSAVED.format(f"challenge phase{update} {entry.number} :{{errors}}")
        if not title_is_valid:
            fault = f"begins with {word!r}; EvalAI makes the URLs of its phases from the first word"
            remedy = "Begin it with a word of only a-z, A-Z, 0-9, - and _, then a space"
            yield BundleProblem("title", fault, remedy, quote, CREATION, error=_NO_SLUG)
            word, title_is_valid = "x", True  # reported once
        slug = phase_slug(word, codename)
        if not _is_slug(slug):
            fault, remedy = f"is {codename!r}, from which EvalAI makes a URL", "Use only a-z, A-Z, 0-9, - and _"
            yield BundleProblem(key_entry.path, fault, remedy, quote, CREATION, error=_NO_SLUG)
        elif slug in slugs or codename.strip() in (*stored.values(), *added):
            error = _SLUG_IN_USE if slug in slugs else _CODENAME_IN_USE
            fault = f"is {codename!r}, whose URL would equal another phase's"
            remedy = "Make codenames differ in more than case, spaces and punctuation"
            yield BundleProblem(key_entry.path, fault, remedy, quote, CREATION, error=error)
        slugs.add(slug)
        if state is not None and config_id is not None:
            stored[config_id] = codename.strip()  # a second phase with this id updates it
        else:
            added.append(codename.strip())


def _is_slug(text: str) -> bool:
    return bool(re.fullmatch(r"[-a-zA-Z0-9_]+", text))


def first_word(title: object) -> str:
    """Return the start of the slugs of a challenge's phases."""
    return str(title).strip().split(" ")[0].lower()


def phase_slug(word: str, codename: str, challenge: int = 0) -> str:
    """Return a phase's slug as the server makes it, without the challenge's id."""
    text = re.sub(r"\W+", "-", codename.replace(" ", "-").lower())[:_CODENAME_LENGTH]
    return f"{word}-{text}-{challenge}"[:_SLUG_LENGTH]


def _check_references(bundle: Bundle) -> BundleProblems:
    """Yield ids that are equal as numbers, by which the server validates, and not as texts, by which it saves."""
    for row in entries(bundle, PHASE_SPLITS):
        for key, block, quote in _LOOKED_UP:
            entry, ids = row.child(key), ids_of(bundle, block)
            if entry.value in ids and str(row.item[key]) not in map(str, ids):
                fault = f"is {entry.value!r}, but the id in {block} is written differently"
                remedy, message = "Write it the same way in both places", quote.format(entry.value)
                yield BundleProblem(entry.path, fault, remedy, message, CREATION)
                break


# ── the web form ────────────────────────────────────────────────────────────────────────────────────────────────────

_QUESTIONS = ("method_name", "method_description", "project_url", "publication_url")
_ASKED = "default_submission_meta_attributes"
_QUESTION = first_of(
    RuleRow(0, "", lacks("name", "is_visible"), "lacks {missing}", "Add it",
        "Please enter the following to the default submission meta attribute in phase {number}: {missing}."),
    RuleRow(0, "name", lambda entry: entry.value not in _QUESTIONS, "is {value}", f"Use {', '.join(_QUESTIONS)}",
        "Default meta attribute: {value} in phase: {number} does not exist!"),
)  # fmt: skip


def _check_questions(entry: Entry) -> BundleProblems:
    questions = entry.child(_ASKED)
    for index, question in enumerate(questions.value):
        yield from _QUESTION(replace(questions, path=f"{questions.path}[{index}]", item=question))


def _breaks_slug(entry: Entry) -> Verdict:
    # A push replaces everything else with hyphens, the form only spaces.
    slug = f"{first_word(entry.bundle.config.get('title'))}-{entry.value}".replace(" ", "-").lower()
    return isinstance(entry.value, str) and not _is_slug(slug)


_FORM_OF_PHASE = all_of(
    RuleRow(0, "test_annotation_file", is_empty, "is missing, but the form requires an annotation file for every phase",
        "Push the bundle",
        "There is no key for test annotation file for challenge phase {name} in yaml file. Please add it and  then "
        "try again!"),
    first_of(
        RuleRow(0, _ASKED, is_no_list_of_mappings, "is not a list of mappings", "Begin each item with - name:", ""),
        _check_questions,
        unless=lambda entry: not entry.item.get(_ASKED),
    ),
    RuleRow(0, "codename", _breaks_slug, "is {value!r}, from which the form makes a URL",
        "Use only a-z, A-Z, 0-9, - and _, or push the bundle", ""),
)  # fmt: skip


def check_form_rules(bundle: Bundle) -> BundleProblems:
    """Yield the problems that only the web form rejects."""
    names = [name for name in bundle.listed_names if name.endswith((".yaml", ".yml"))]
    names = [name for name in names if not name.startswith("__MACOSX")]
    if len(names) > 1:
        quote = f"There are {len(names)} YAML files instead of one in zip folder!"
        subject = ", ".join(name for name in names if name != bundle.config_name)
        yield BundleProblem(subject, "is a second YAML file", "Remove it, or push the bundle", quote)
    yield from check_each("challenge_phases", _FORM_OF_PHASE)(Entry(bundle, "", bundle.config))
