"""What passes validation, and fails when the server saves it: `push` would hear of it only at its second call.

The server answers such a bundle with 400 or 406, and mostly gives no reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from segjudge.bundle.field_values import judged, whole
from segjudge.bundle.fields import CHALLENGE, FILES, PRIZE, SPONSOR, Field
from segjudge.bundle.opened_bundle import Bundle
from segjudge.bundle.problems import BundleProblem, BundleProblems, Detail, items
from segjudge.bundle.server_state import State

from .blocks import entries

#: After every rule of the validation.
CREATION = 68
UNSAVED = "Error in creating challenge: {}. Please check the yaml configuration!"
_SLUG = re.compile(r"[-a-zA-Z0-9_]+")
_SLUG_WORDS = 'Enter a valid "slug" consisting of letters, numbers, underscores or hyphens.'
#: The server cuts the slug off here, and the title's or codename's part of it there.
_SLUG_MOST, _PART_MOST = 198, 180
_POINTED = (
    ("challenge_phase_id", "challenge_phases", "Challenge phase with phase id {} doesn't exist."),
    ("leaderboard_id", "leaderboard", "Leaderboard with id {} doesn't exist."),
    ("dataset_split_id", "dataset_splits", "Dataset split with id {} doesn't exist."),
)


def creation(bundle: Bundle, state: State | None) -> BundleProblems:
    """In the order in which the server saves."""
    config = bundle.config
    plain = {key: field for key, field in CHALLENGE.items() if field.items is None and key != "tags"}
    yield from _unsaved("", config, plain)
    yield from _tags(config.get("tags", []))
    yield from _sponsors(bundle)
    for where, prize in entries(bundle, "prizes"):
        if "description" not in prize and {"rank", "amount"} <= {*prize}:
            yield _refused(f"{where}.description", "is missing", "Add it: creation fails without")
        if not any(judged(key, prize.get(key), field) for key, field in PRIZE.items()):
            yield from _unsaved(f"{where}.", prize, PRIZE)  # others are dropped before
    for block in ("leaderboard", "challenge_phases", "dataset_splits"):
        for where, item in entries(bundle, block):
            yield from _unsaved(f"{where}.", item, CHALLENGE[block].items or {})
        if block == "challenge_phases":
            yield from _slugs(bundle, state)
    yield from _pointers(bundle)


def _refused(where: str, found: str, remedy: str, reason: str = "None") -> BundleProblem:
    return BundleProblem(where, found, remedy, UNSAVED.format(reason), rule=CREATION)


def _tags(tags: Any) -> BundleProblems:
    if isinstance(tags, (list, tuple)) and any(isinstance(tag, (list, dict, set)) for tag in tags):
        yield _refused("tags", "holds a list or a mapping", "Write each tag as a text")
        return
    if isinstance(tags, (list, tuple, set, dict, str)):
        yield from _unsaved("", {"tags": [str(tag) for tag in tags]}, {"tags": CHALLENGE["tags"]})


def _sponsors(bundle: Bundle) -> BundleProblems:
    config, remedy = bundle.config, "Write each as - name: …, with website: https://…; or remove the line"
    sponsors = config.get("sponsors", [])
    if sponsors in ([], {}, "") or (isinstance(sponsors, (set, bytes)) and not sponsors):
        return
    if not isinstance(sponsors, list) or any(not isinstance(one, dict) for one in sponsors):
        yield _refused("sponsors", "is not a list of mappings", remedy)
        return
    names = []
    for where, one in entries(bundle, "sponsors"):
        if "name" not in one:
            yield _refused(f"{where}.name", "is missing", "Add it")
        elif one["name"] in names:
            continue  # the server has it already, and saves the one before it again
        elif "website" not in one:
            quote = "Sponsor name or url not found in YAML data."
            yield BundleProblem(f"{where}.website", "is missing", "Add it", quote, rule=CREATION)
        else:
            names.append(one["name"])
            yield from _sponsor(where, one)


def _sponsor(where: str, one: dict[str, Any]) -> BundleProblems:
    for key, field in SPONSOR.items():
        wrong = judged(key, one[key], field)
        if wrong:
            yield _refused(f"{where}.{key}", f"is {one[key]!r:.60}", _said(wrong))
        else:
            yield from _unsaved(f"{where}.", {key: one[key]}, SPONSOR)


def _said(wrong: Detail) -> str:
    """The serializer's complaint, which the server keeps to itself here."""
    return wrong.words.rstrip(".")


def _slugs(bundle: Bundle, state: State | None) -> BundleProblems:
    """The address of a phase: the title's first word, the codename, and the challenge's number."""
    word = str(bundle.config.get("title")).strip().split(" ")[0].lower()
    held = state.phases if state else {}
    seen = {_slug(word, name) for name in held.values()}
    codenames = {*held.values()}
    sound = bool(_SLUG.fullmatch(word))
    for where, phase in entries(bundle, "challenge_phases"):
        codename, number = phase.get("codename"), phase.get("id")
        if whole(number) in held or codename in (None, "") or isinstance(codename, bool):
            continue
        if not isinstance(codename, str):
            yield _refused(f"{where}.codename", f"is {codename!r}, not a text", "Put it in quotes")
            continue
        if not sound:
            yield _sluggish("title", word, codename, number, Detail("slug", _SLUG_WORDS, "invalid"), state)
            word, sound = "x", True  # said once
        slug, details = _slug(word, codename), []
        if not _SLUG.fullmatch(slug):
            details.append((f"{where}.codename", Detail("slug", _SLUG_WORDS, "invalid")))
        elif slug in seen:
            told = "challenge phase with this slug already exists."
            details.append((f"{where}.codename", Detail("slug", told, "unique")))
        elif codename.strip() in codenames:
            told = "The fields codename, challenge must make a unique set."
            details.append((f"{where}.codename", Detail("non_field_errors", told, "unique")))
        seen.add(slug)
        codenames.add(codename.strip())
        yield from (_sluggish(at, word, codename, number, detail, state) for at, detail in details)


def _sluggish(where: str, word: str, codename: str, number: Any, detail: Detail, state: State | None) -> BundleProblem:
    update = " update" if state else ""
    quote = UNSAVED.format(f"challenge phase{update} {number} :{{errors}}")
    if detail.code == "unique":
        found = f"is {codename!r}, which in an address is the same as another phase's"
        remedy = "Let codenames differ in more than case, spaces and punctuation"
    elif where == "title":
        found = f"begins with {word!r}, and EvalAI makes the addresses of its phases of the first word"
        remedy = "Begin it with a word of a-z, 0-9, - and _ alone, then a space"
    else:
        found, remedy = f"is {codename!r}, of which EvalAI makes an address", "Use a-z, 0-9, - and _ alone"
    return BundleProblem(where, found, remedy, quote, rule=CREATION, detail=detail)


def _slug(word: str, codename: str) -> str:
    """As the server makes it, but for the number of the challenge, of which `0` is as good as any."""
    part = re.sub(r"\W+", "-", codename.replace(" ", "-").lower())[:_PART_MOST]
    return f"{word}-{part}-0"[:_SLUG_MOST]


def _pointers(bundle: Bundle) -> BundleProblems:
    """Ids are compared once as numbers, and then as texts: 1.0 and True are 1 at first, and unknown later."""
    known = {block: [str(item.get("id")) for item in items(bundle.config, block)] for _, block, _ in _POINTED}
    numbers = {block: [item.get("id") for item in items(bundle.config, block)] for _, block, _ in _POINTED}
    for where, row in entries(bundle, "challenge_phase_splits"):
        for key, block, quote in _POINTED:
            if row.get(key) in numbers[block] and str(row[key]) not in known[block]:
                found = f"is {row[key]!r}, and the id in {block} is written otherwise"
                yield BundleProblem(
                    f"{where}.{key}", found, "Write it the same at both places", quote.format(row[key]), rule=CREATION
                )
                break


def _unsaved(where: str, item: dict[str, Any], fields: dict[str, Field]) -> BundleProblems:
    """Texts of an item that the server's database does not take."""
    for key, field in fields.items():
        if key in item and field.kind not in FILES:
            for found in dict.fromkeys(_impossible(item[key])):
                yield _refused(f"{where}{key}", f"holds {found}, which EvalAI's database does not take", "Remove it")


def _impossible(value: Any) -> Iterator[str]:
    """What PostgreSQL does not keep."""
    if isinstance(value, str):
        if "\0" in value:
            yield "a NUL character"
        if any("\ud800" <= one <= "\udfff" for one in value):
            yield "half of a character (a lone surrogate)"
    elif isinstance(value, (list, tuple, set)):
        for one in value:
            yield from _impossible(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _impossible(key)
            yield from _impossible(one)
