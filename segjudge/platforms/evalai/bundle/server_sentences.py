"""The server's sentences about a rejected bundle, and which key of the YAML each is about."""

from __future__ import annotations

import json
import re
from typing import Any

from .opened_bundle import Bundle
from .problems import BundleProblem, BundleProblems, mappings_in
from .server_state import REFERENCES

#: The block whose items the server counts.
_ROWS = "challenge_phase_splits"
_UNEXPLAINED = "Error in creating challenge: None"
#: Keys that the server's sentences call otherwise than the YAML.
_KEYS = {
    "slug": "codename",
    "non_field_errors": "codename",
    "config_id": "id",
    "test_annotation": "test_annotation_file",
}
#: How a sentence names an item, the item's block, and the keys by which it is found; without keys by its position.
_NAMED_ITEMS = (
    (
        r"leaderboard_id:? (\d+), challenge_phase_id:? (\d+)(?:,| and) dataset_split_id:? (\d+)",
        _ROWS,
        tuple(REFERENCES),
    ),
    (r"[Cc]hallenge phase split (\d+)|phase_split: (\d+)", _ROWS, ()),
    (r"leaderboard with ID: (\d+)|[Ll]eaderboard (?:with )?(?:id |update )?(\d+)", "leaderboard", ("id",)),
    (r"[Dd]ataset split (?:with )?(?:id |update )?(\d+)", "dataset_splits", ("id",)),
    (r"[Cc]hallenge [Pp]hase (?:with phase id |update )?'?(\d+)", "challenge_phases", ("id",)),
    (r"for dataset split (.+?)\.? Please", "dataset_splits", ("name",)),
    (r"(?:challenge phase|for phase|in phase) '?(.+?)'?(?: with |\. |\.?$)", "challenge_phases", ("name",)),
)


class RejectedError(Exception):
    """Raised with the server's sentences when it rejects a bundle."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = sentences


def sentences(body: dict[str, Any]) -> list[str]:
    """Return the sentences of an answer, one for each problem."""
    error = body.get("error") or body.get("detail") or body
    if isinstance(error, dict):
        error = "; ".join(f"{key}: {value}" for key, value in error.items())
    text = str(error)
    reason = str(body.get("error_message") or "")
    if reason and _decoded(reason) not in text:
        text += f"\n{reason}"
    # A serializer's errors are on a line of their own, and belong to the sentence before.
    lines = [line for line in re.split(r"\n(?! ?\{)", text) if line.strip()]
    return lines or ["EvalAI refused it and gave no reason"]


def _decoded(reason: str) -> str:
    """Return the text of a reason that the server repeats as JSON."""
    try:
        text = json.loads(reason)
    except ValueError:
        return reason
    return text if isinstance(text, str) else reason


def located_sentences(bundle: str, sentences: list[str]) -> BundleProblems:
    """Yield the server's sentences as problems, each with the line of the YAML that it is about."""
    with Bundle(bundle) as opened:
        for sentence in sentences:
            where = _path_in(opened.config, sentence)
            found = " ".join(sentence.split())
            remedy = "Correct it and push again"
            if found.startswith(_UNEXPLAINED):
                remedy = "EvalAI gives no reason: look for what was added last, and push again without it"
            yield BundleProblem(where or "EvalAI", found, remedy, location=opened.lines.location(where))


def _path_in(config: dict[str, Any], sentence: str) -> str:
    """Return the path of the key or item that a sentence names; "" when it names none."""
    for pattern, block, keys in _NAMED_ITEMS:
        match = re.search(pattern, sentence.strip())
        if not match:
            continue
        names = tuple(group for group in match.groups() if group)
        items = mappings_in(config, block)
        if keys:
            indices = [k for k, item in enumerate(items) if tuple(str(item.get(key)) for key in keys) == names]
        else:
            indices = [int(names[0]) - 1] if 0 < int(names[0]) <= len(items) else []
        if indices:
            return _path_in_item(config, sentence, f"{block}[{indices[0]}]", items[indices[0]])
    return _challenge_key(config, sentence)


def _path_in_item(config: dict[str, Any], sentence: str, path: str, item: dict[str, Any]) -> str:
    """Return the path of the key that a serializer's error names, or of the item itself."""
    field = re.search(r"\{'(\w+)'", sentence)
    if not field:
        return path
    word = str(config.get("title")).strip().split(" ")[0]
    if field.group(1) == "slug" and not re.fullmatch(r"[-\w]+", word, re.ASCII):
        return "title"  # EvalAI makes the slug of its first word
    key = field.group(1) if field.group(1) in item else _KEYS.get(field.group(1), field.group(1))
    return f"{path}.{key}"


def _challenge_key(config: dict[str, Any], sentence: str) -> str:
    """Return the key of the challenge that a sentence names as a key or in plain words."""
    for key in ("terms_and_conditions", "submission_guidelines"):
        if key.replace("_", " ") in sentence:
            return key
    words = re.findall(r"'(\w+)'|\b([a-z]+_[a-z_]+)\b|\b(title|description|tags|image|domain)\b", sentence)
    return next((word for group in words for word in group if word in config), "")
