"""Rules of what passes validation and fails when the server saves the challenge, of updates, and of the web form.

What fails while it is saved is answered with 400 or 406, and mostly without a reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from .field_values import SLUG_MESSAGE, as_flag, as_integer, validate
from .fields import CHALLENGE, FILES, MAPPING, PRIZE, SPONSOR, UNKEPT, Field
from .opened_bundle import Bundle
from .problems import BundleProblem, BundleProblems, FieldError, crash, mappings_in
from .rules import entries, ids_known_to_server, is_list_of_mappings, items_known_to_server, python_integer
from .server_state import REFERENCES, SPLIT_SETTINGS, ServerState

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
#: The rules by which the server tests a block in another order than item by item: those of items that are gone come
#: last, names of splits come first, and stored rows come before the ids of a row.
LOST, SPLIT_NAMES, HELD_ROWS = (32, 46, 53, 62), (48, 49, 50), (60, 61, 63)
_ROW = "(leaderboard_id: {}, challenge_phase_id: {}, dataset_split_id: {})"
_APPROVED = "cannot be changed after the challenge is approved by an admin. Revert"
_NOT_ALLOWED = "after challenge creation is not allowed."
_SUPPORT = "to match the approved configuration or contact support."
_QUESTIONS = ("method_name", "method_description", "project_url", "publication_url")


def check_saving(bundle: Bundle, state: ServerState | None) -> BundleProblems:
    """Yield the problems in the order in which the server saves."""
    config = bundle.config
    plain = {key: field for key, field in CHALLENGE.items() if field.items is None and key != "tags"}
    yield from _refused_texts("", config, {**plain, **UNKEPT})
    yield from _tags(config.get("tags", []))
    yield from _sponsors(bundle)
    for subject, prize in entries(bundle, "prizes"):
        if "description" not in prize and {"rank", "amount"} <= {*prize}:
            yield _unsaved(f"{subject}.description", "is missing", "Add it: creation fails without")
        if not any(validate(key, prize.get(key), field) for key, field in PRIZE.items()):
            yield from _refused_texts(f"{subject}.", prize, PRIZE)  # the server drops the others before it saves
    for block in ("leaderboard", "challenge_phases", "dataset_splits"):
        for subject, item in entries(bundle, block):
            yield from _refused_texts(f"{subject}.", item, CHALLENGE[block].items or {})
            if state is not None:
                yield from _unsearchable_id(f"{subject}.id", item.get("id"), block)
        if block == "challenge_phases":
            yield from _slugs(bundle, state)
    yield from _references(bundle)


def _unsaved(subject: str, fault: str, remedy: str) -> BundleProblem:
    return BundleProblem(subject, fault, remedy, UNSAVED.format(None), CREATION)


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
    for subject, sponsor in entries(bundle, "sponsors"):
        if "name" not in sponsor:
            yield _unsaved(f"{subject}.name", "is missing", "Add it")
        elif sponsor["name"] in names:
            continue  # the server saves the first one of this name again
        elif "website" not in sponsor:
            quote = "Sponsor name or url not found in YAML data."
            yield BundleProblem(f"{subject}.website", "is missing", "Add it", quote, CREATION)
        else:
            names.append(sponsor["name"])
            yield from _sponsor(subject, sponsor)


def _sponsor(subject: str, sponsor: dict[str, Any]) -> BundleProblems:
    for key, field in SPONSOR.items():
        error = validate(key, sponsor[key], field)
        if error:
            # The server keeps its serializer's message to itself here.
            yield _unsaved(f"{subject}.{key}", f"is {sponsor[key]!r:.60}", error.message.rstrip("."))
        else:
            yield from _refused_texts(f"{subject}.", {key: sponsor[key]}, SPONSOR)


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
    for subject, phase in entries(bundle, "challenge_phases"):
        codename, number = phase.get("codename"), phase.get("id")
        if codename in (None, "") or isinstance(codename, bool):
            continue
        path, config_id = f"{subject}.codename", as_integer(number)
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


def _codename_in_use(subject: str, codename: str, config_id: int) -> BundleProblem:
    quote = UNSAVED.format(f"challenge phase update {config_id} :{{errors}}")
    fault = f"is {codename!r}, which another phase on EvalAI has when this one is saved"
    remedy = "Choose another; to swap two, push a third codename in between"
    return BundleProblem(subject, fault, remedy, quote, CREATION, error=_SAME_CODENAME)


def _slug_problem(
    subject: str, text: str, number: object, error: FieldError, state: ServerState | None
) -> BundleProblem:
    update = " update" if state else ""
    quote = UNSAVED.format(f"challenge phase{update} {number} :{{errors}}")
    if error.code == "unique":
        fault = f"is {text!r}, which in an address is the same as another phase's"
        remedy = "Let codenames differ in more than case, spaces and punctuation"
    elif subject == "title":
        fault = f"begins with {text!r}, and EvalAI makes the addresses of its phases of the first word"
        remedy = "Begin it with a word of a-z, 0-9, - and _ alone, then a space"
    else:
        fault, remedy = f"is {text!r}, of which EvalAI makes an address", "Use a-z, 0-9, - and _ alone"
    return BundleProblem(subject, fault, remedy, quote, CREATION, error=error)


def first_word(title: object) -> str:
    """Return what the slugs of a challenge's phases begin with."""
    return str(title).strip().split(" ")[0].lower()


def phase_slug(word: str, codename: str, challenge: int = 0) -> str:
    """Return a phase's slug as the server makes it; the challenge's id does not matter where slugs are compared."""
    part = re.sub(r"\W+", "-", codename.replace(" ", "-").lower())[:_MOST_SLUG_PART]
    return f"{word}-{part}-{challenge}"[:_MOST_SLUG]


def _unsearchable_id(subject: str, number: object, block: str) -> BundleProblems:
    """Yield an id by which an update cannot search: for a phase in the database, for other items in a dictionary."""
    if block == "challenge_phases":
        unsearchable = number is not None and python_integer(number) is None
    else:
        unsearchable = isinstance(number, (list, dict, set))
    if unsearchable:
        yield _unsaved(subject, f"is {number!r:.60}, by which an update cannot find anything", "Number it from 1")


def _references(bundle: Bundle) -> BundleProblems:
    """Yield ids that are equal as numbers, by which the server validates, and not as texts, by which it saves."""
    ids = {block: [item.get("id") for item in mappings_in(bundle.config, block)] for _, block, _ in _LOOKED_UP}
    for subject, row in entries(bundle, "challenge_phase_splits"):
        for key, block, quote in _LOOKED_UP:
            if row.get(key) in ids[block] and str(row[key]) not in map(str, ids[block]):
                fault = f"is {row[key]!r}, and the id in {block} is written otherwise"
                remedy, message = "Write it the same at both places", quote.format(row[key])
                yield BundleProblem(f"{subject}.{key}", fault, remedy, message, CREATION)
                break


def _refused_texts(subject: str, item: dict[str, Any], fields: dict[str, Field]) -> BundleProblems:
    """Yield the texts of an item that the server's database refuses."""
    for key, field in fields.items():
        if key in item and field.kind not in FILES:
            for kind in dict.fromkeys(_refused_characters(item[key])):
                yield _unsaved(f"{subject}{key}", f"holds {kind}, which EvalAI's database does not take", "Remove it")


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


def check_challenge_update(bundle: Bundle, state: ServerState) -> BundleProblems:
    """Yield a change of the kind of queue, which is set once; a validation does not test it."""
    fifo = as_flag(bundle.config.get("use_fifo_sqs", state.fifo))
    if state.fifo is None or fifo is None or fifo == state.fifo:
        return
    words = "use_fifo_sqs cannot be changed after the challenge queue has been created."
    error = FieldError("use_fifo_sqs", words, "invalid")
    quote, fault = UNSAVED.format("challenge :{errors}"), f"is {fifo}, and was {state.fifo}"
    yield BundleProblem("use_fifo_sqs", fault, "Put it back", quote, CREATION, error=error)


def check_leaderboards_update(bundle: Bundle, state: ServerState) -> BundleProblems:
    """Yield the leaderboards that are gone, and changes of schemas of an approved challenge."""
    known = items_known_to_server(bundle, "leaderboard_id")
    if state.leaderboards:
        yield from _unreadable_ids(bundle, state, known, 33)
    for subject, board in known if state.approved else []:
        number = as_integer(board.get("id"))
        if number not in state.leaderboards:
            continue
        schema = _canonical(board["schema"])
        if schema is None:
            fault = "has texts and other values as keys of one mapping"
            yield crash(f"{subject}.schema", fault, "Put the keys in quotes", 33)
        elif schema != _canonical(state.leaderboards[number]):
            quote = f"ERROR: Leaderboard {board['id']} {_APPROVED} the leaderboard block {_SUPPORT}"
            yield _changed(f"{subject}.schema", f"of id {number}", quote, 33)
    names = {number: f"id {number}" for number in state.leaderboards}
    deletion = f"Deletion of an existing leaderboard {_NOT_ALLOWED}"
    quote = f"ERROR: The leaderboard with ID: {{}} not found in config. {deletion}"
    yield from _missing_items(bundle, "leaderboard_id", names, quote, 32)


def check_splits_update(bundle: Bundle, state: ServerState) -> BundleProblems:
    """Yield the splits that are gone, and changes of names of an approved challenge."""
    known = items_known_to_server(bundle, "dataset_split_id")
    if state.splits:
        yield from _unreadable_ids(bundle, state, known, 54)
    for subject, split in known if state.approved else []:
        number, name = as_integer(split.get("id")), [split.get("name"), split.get("codename")]
        if number in state.splits and name != state.splits[number]:
            quote = f"ERROR: Dataset split {split['id']} {_APPROVED} the dataset split block {_SUPPORT}"
            yield _changed(subject, f"id {number}", quote, 54)
    names = {number: f"id {number} ({split[1]})" for number, split in state.splits.items()}
    quote = f"ERROR: Dataset split {{}} not found in config. Deletion of existing dataset split {_NOT_ALLOWED}"
    yield from _missing_items(bundle, "dataset_split_id", names, quote, 53)


def check_phases_update(bundle: Bundle, state: ServerState) -> BundleProblems:
    """Yield the phases that are gone."""
    if bundle.config.get("challenge_phases"):
        names = {number: f"id {number} ({codename})" for number, codename in state.phases.items()}
        quote = f"ERROR: Challenge phase {{}} not found in config. Deletion of existing challenge phase {_NOT_ALLOWED}"
        yield from _missing_items(bundle, "challenge_phase_id", names, quote, 46)


def _unreadable_ids(
    bundle: Bundle, state: ServerState, items: list[tuple[str, dict[str, Any]]], rule: int
) -> BundleProblems:
    """Yield the ids that the server's update cannot read, though its serializers can.

    The update itself reads them of an approved challenge, or with rows of new phases.
    """
    rows = [row for _, row in entries(bundle, "challenge_phase_splits") if {*REFERENCES, *SPLIT_SETTINGS} <= {*row}]
    reads = state.approved or any(python_integer(row["challenge_phase_id"]) not in state.phases for row in rows)
    for subject, item in items if reads else []:
        if "id" in item and python_integer(item["id"]) is None:
            yield crash(f"{subject}.id", f"is {item['id']!r:.60}, not a whole number", "Number it from 1", rule)


def _missing_items(bundle: Bundle, key: str, names: dict[int, str], quote: str, rule: int) -> BundleProblems:
    block, known = REFERENCES[key][0], ids_known_to_server(bundle, key)
    written = [item.get("id") for item in mappings_in(bundle.config, block)]
    for number in sorted(number for number in names if number not in known):
        quoted = str(number) in written
        fault = f"lacks {names[number]}, which is on EvalAI already" + (": in quotes it is another" if quoted else "")
        remedy = "Remove the quotes" if quoted else "Put it back: what was pushed can be changed, not deleted"
        yield BundleProblem(block, fault, remedy, quote.format(number), rule, consequence=number in written)


def _canonical(schema: object) -> str | None:
    """Return a schema as the server compares it; None where its keys cannot be sorted."""
    try:
        return json.dumps(schema, sort_keys=True, default=str)
    except TypeError:
        return None


def _changed(subject: str, what: str, quote: str, rule: int) -> BundleProblem:
    return BundleProblem(subject, f"{what} differs from what was approved", "Put back what was approved", quote, rule)


def check_mappings_update(bundle: Bundle, state: ServerState) -> BundleProblems:
    """Yield new rows of stored phases, rows that are gone, and changes of rows of an approved challenge."""
    stored = {tuple(row[:3]): row[3:] for row in state.rows}
    if not stored or not bundle.config.get("challenge_phase_splits"):
        return  # a new challenge, or reported by `check_mappings`
    kept: list[tuple[int | None, ...]] = []
    for subject, row in entries(bundle, "challenge_phase_splits"):
        if any(key not in row for key in (*REFERENCES, *SPLIT_SETTINGS)):
            continue
        triple = tuple(python_integer(row[key]) for key in REFERENCES)
        if triple in stored:
            kept.append(triple)
            yield from _changed_settings(subject, row, stored[triple], approved=state.approved)
        elif triple[1] in state.phases:
            quote = (
                "ERROR: Cannot add a new leaderboard/dataset-split mapping for an existing challenge phase "
                f"{_ROW.format(*(row[key] for key in REFERENCES))}. New mappings are only allowed for newly added "
                "challenge phases."
            )
            fault = "shows {2} on leaderboard {0} anew in phase {1}, which is on EvalAI already".format(*triple)
            yield BundleProblem(subject, fault, "Add a new phase for it, or remove the row", quote, 60)
        else:
            yield from _undeclared_ids(bundle, state, subject, triple)
    for triple in sorted(stored.keys() - {*kept}):
        quote = (
            f"ERROR: Challenge phase split {_ROW.format(*triple)} not found in config. Deletion of existing challenge "
            f"phase split {_NOT_ALLOWED}"
        )
        fault = "lacks leaderboard {}, phase {}, split {}, which is on EvalAI already".format(*triple)
        remedy = "Put it back: what was pushed can be changed, not deleted"
        yield BundleProblem("challenge_phase_splits", fault, remedy, quote, 62)


def _changed_settings(subject: str, row: dict[str, Any], stored: list[Any], *, approved: bool) -> BundleProblems:
    """Yield what differs from the approved row; the server compares `int` and `bool` of the values."""
    if not approved or None in stored:
        return
    try:
        settings = [int(row[SPLIT_SETTINGS[0]]), int(row[SPLIT_SETTINGS[1]]), bool(row[SPLIT_SETTINGS[2]])]
    except (TypeError, ValueError, OverflowError):
        invalid = [key for key in SPLIT_SETTINGS[:2] if validate(key, row[key], MAPPING[key])]
        key = (invalid or [SPLIT_SETTINGS[0]])[0]
        yield crash(f"{subject}.{key}", f"is {row[key]!r:.60}", "Write a number", 63)
        return
    if settings != stored:
        triple = _ROW.format(*(row[key] for key in REFERENCES))
        quote = f"ERROR: Challenge phase split {triple} {_APPROVED} visibility / ordering fields {_SUPPORT}"
        yield _changed(
            subject, "leaderboard {}, phase {}, split {}".format(*(row[key] for key in REFERENCES)), quote, 63
        )


def _undeclared_ids(bundle: Bundle, state: ServerState, subject: str, triple: tuple[int | None, ...]) -> BundleProblems:
    """Yield the ids in a row of a new phase that neither the config nor the challenge has."""
    for index, key, stored, what, rule in (
        (0, "leaderboard_id", state.leaderboards, "Leaderboard", "may only use leaderboards"),
        (2, "dataset_split_id", state.splits, "Dataset split", "must use dataset splits"),
    ):
        if triple[index] in stored or triple[index] in map(python_integer, ids_known_to_server(bundle, key)):
            continue
        quote = (
            f"ERROR: {what} id {triple[index]} is not part of this challenge or the uploaded configuration. "
            f"New challenge phases {rule} declared in the configuration."
        )
        fault = f"names {key} {triple[index]}, which is not in {REFERENCES[key][0]}"
        yield BundleProblem(subject, fault, "Correct the id", quote, 61)


def check_web_form(bundle: Bundle) -> BundleProblems:
    """Yield the problems that the web form alone refuses."""
    yield from _one_yaml(bundle)
    word = first_word(bundle.config.get("title"))
    for subject, phase in entries(bundle, "challenge_phases"):
        if not phase.get("test_annotation_file"):
            quote = (
                f"There is no key for test annotation file for challenge phase {phase.get('name')} in yaml file. "
                "Please add it and  then try again!"
            )
            fault = "is missing, and the form wants an annotation file for every phase"
            yield BundleProblem(f"{subject}.test_annotation_file", fault, "Push the bundle", quote)
        yield from _questions(f"{subject}.default_submission_meta_attributes", phase)
        codename = phase.get("codename")
        # A push makes a hyphen of everything else; the form of spaces alone.
        slug = f"{word}-{codename}".replace(" ", "-").lower()
        if isinstance(codename, str) and not re.fullmatch(r"[-a-zA-Z0-9_]+", slug):
            fault = f"is {codename!r}, of which the form makes an address"
            yield BundleProblem(f"{subject}.codename", fault, "Use a-z, 0-9, - and _ alone, or push the bundle")


def _one_yaml(bundle: Bundle) -> BundleProblems:
    names = [name for name in bundle.listed_names if name.endswith((".yaml", ".yml"))]
    names = [name for name in names if not name.startswith("__MACOSX")]
    if len(names) > 1:
        quote = f"There are {len(names)} YAML files instead of one in zip folder!"
        others = [name for name in names if name != bundle.config_name]
        yield BundleProblem(", ".join(others), "is a second YAML file", "Leave it out, or push the bundle", quote)


def _questions(subject: str, phase: dict[str, Any]) -> BundleProblems:
    questions = phase.get("default_submission_meta_attributes")
    if not questions:
        return
    if not is_list_of_mappings(questions):
        yield BundleProblem(subject, "is not a list of mappings", "Begin each item with - name:")
        return
    for index, question in enumerate(questions):
        missing = [key for key in ("name", "is_visible") if key not in question]
        if missing:
            quote = (
                "Please enter the following to the default submission meta attribute in phase "
                f"{phase.get('id')}: {', '.join(missing)}."
            )
            yield BundleProblem(f"{subject}[{index}]", f"lacks {', '.join(missing)}", "Add it", quote)
        elif question["name"] not in _QUESTIONS:
            quote = f"Default meta attribute: {question['name']} in phase: {phase.get('id')} does not exist!"
            fault = f"is {question['name']}"
            yield BundleProblem(f"{subject}[{index}].name", fault, f"Use {', '.join(_QUESTIONS)}", quote)
