"""What the server says against a bundle, and which key of the YAML each sentence speaks of."""

from __future__ import annotations

import json
import re
from typing import Any

from segjudge.bundle.rules.mappings import POINTERS

from .opened_bundle import Bundle
from .problems import BundleProblem, BundleProblems, items

#: The block whose rows the server counts.
_ROWS = "challenge_phase_splits"


class RejectedError(Exception):
    """The server did not take the bundle; its sentences."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = sentences


def sentences(body: dict[str, Any]) -> list[str]:
    """One for each thing that is wrong."""
    told = body.get("error") or body.get("detail") or body
    if isinstance(told, dict):
        told = "; ".join(f"{key}: {value}" for key, value in told.items())
    words = str(told)
    reason = str(body.get("error_message") or "")
    if reason and _unquoted(reason) not in words:
        words += f"\n{reason}"
    # A serializer's errors stand on a line of their own, and belong to the sentence before.
    lines = [line for line in re.split(r"\n(?! ?\{)", words) if line.strip()]
    return lines or ["EvalAI refused it and gave no reason"]


def _unquoted(reason: str) -> str:
    """The server says the reason a second time, as JSON."""
    try:
        told = json.loads(reason)
    except ValueError:
        return reason
    return told if isinstance(told, str) else reason


def mapped(bundle: str, told: list[str]) -> BundleProblems:
    """The server's sentences with the line of the YAML that each speaks of."""
    with Bundle(bundle) as opened:
        for sentence in told:
            where = _place(opened.config, sentence)
            words = " ".join(sentence.split())
            remedy = "Correct it and push again"
            if words.startswith(_UNEXPLAINED):
                remedy = "EvalAI gives no reason: look for what was added last, and push again without it"
            yield BundleProblem(where or "EvalAI", words, remedy, at=opened.lines.place(where))


_UNEXPLAINED = "Error in creating challenge: None"
#: What the server's sentences call a key otherwise than the YAML.
_KEYS = {
    "slug": "codename",
    "non_field_errors": "codename",
    "config_id": "id",
    "test_annotation": "test_annotation_file",
}


#: How a sentence names an item, the item's block, and by which key it is found; rows are counted.
_NAMED = (
    (r"leaderboard_id:? (\d+), challenge_phase_id:? (\d+)(?:,| and) dataset_split_id:? (\d+)", _ROWS, tuple(POINTERS)),
    (r"[Cc]hallenge phase split (\d+)|phase_split: (\d+)", _ROWS, ()),
    (r"leaderboard with ID: (\d+)|[Ll]eaderboard (?:with )?(?:id |update )?(\d+)", "leaderboard", ("id",)),
    (r"[Dd]ataset split (?:with )?(?:id |update )?(\d+)", "dataset_splits", ("id",)),
    (r"[Cc]hallenge [Pp]hase (?:with phase id |update )?'?(\d+)", "challenge_phases", ("id",)),
    (r"for dataset split (.+?)\.? Please", "dataset_splits", ("name",)),
    (r"(?:challenge phase|for phase|in phase) '?(.+?)'?(?: with |\. |\.?$)", "challenge_phases", ("name",)),
)


def _place(config: dict[str, Any], sentence: str) -> str:
    """The path of the key or item that a sentence names."""
    for pattern, block, keys in _NAMED:
        found = re.search(pattern, sentence.strip())
        if not found:
            continue
        told = tuple(group for group in found.groups() if group)
        listed = items(config, block)
        places = [k for k, item in enumerate(listed) if keys and tuple(str(item.get(key)) for key in keys) == told]
        if not keys and 0 < int(told[0]) <= len(listed):
            places = [int(told[0]) - 1]
        if places:
            return _within(config, sentence, f"{block}[{places[0]}]", listed[places[0]])
    return _key(config, sentence)


def _within(config: dict[str, Any], sentence: str, place: str, item: dict[str, Any]) -> str:
    """The key of an item that a sentence speaks of, in so far as the item has it."""
    field = re.search(r"\{'(\w+)'", sentence)
    if not field:
        return place
    word = str(config.get("title")).strip().split(" ")[0]
    if field.group(1) == "slug" and not re.fullmatch(r"[-\w]+", word, re.ASCII):
        return "title"  # of whose first word the slug is made
    key = field.group(1) if field.group(1) in item else _KEYS.get(field.group(1), field.group(1))
    return f"{place}.{key}"


def _key(config: dict[str, Any], sentence: str) -> str:
    """The key of the challenge that a sentence names, in its own words or in a host's."""
    for said, key in (
        ("terms and conditions", "terms_and_conditions"),
        ("submission guidelines", "submission_guidelines"),
    ):
        if said in sentence:
            return key
    words = re.findall(r"'(\w+)'|\b([a-z]+_[a-z_]+)\b|\b(title|description|tags|image|domain)\b", sentence)
    return next((word for group in words for word in group if word in config), "")
