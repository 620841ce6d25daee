"""One word, one meaning: a public name is unique, and abandoned words do not return."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .test_architecture import nodes_of, tree_of

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "evaluation_script", "segjudge", "remote_challenge_evaluation", "code_upload_challenge_evaluation", "benchmarks",
    "tests",
)  # fmt: skip
PRODUCT = FOLDERS[:4]

#: Words that docs/glossary.md replaces, as whole words of an identifier.
BANNED = frozenset(
    {
        "gt", "dt", "pred", "desk", "deed", "deeds", "told", "life", "lives", "piece", "pieces", "stranger", "strangers",
        "mend", "mends", "finding", "findings",
    }
)  # fmt: skip

#: Identifiers that keep such a word, and why.
ALLOWED = {
    "y_pred": "an argument that `davisinteractive` published",
    "pred_masks": "an argument that `davisinteractive` published",
    "pred_mask": "an argument that `davisinteractive` published",
    "gt_masks": "an argument that `davisinteractive` published",
}

#: Names that stand in two modules on purpose, and why.
TWICE: dict[str, str] = {}


def files(*folders: str) -> list[Path]:
    links = {ROOT / "segjudge" / name for name in PRODUCT}
    return [
        path
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        # Drop-ins have the names of what they stand in for.
        if not links & set(path.parents) and not {"davisinteractive", "drop_in"} & set(path.parts)
    ]


@cache
def identifiers(path: Path) -> dict[str, int]:
    """Return the identifiers of a file, each with a line."""
    return dict(_identifiers(path))


def _identifiers(path: Path) -> Iterator[tuple[str, int]]:
    for node in nodes_of(path):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Name):
            yield node.id, line
        elif isinstance(node, ast.Attribute):
            yield node.attr, line
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, line
        elif isinstance(node, ast.arg):
            yield node.arg, line


@cache
def words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def test_a_public_class_has_its_name_for_itself() -> None:
    places = defaultdict(list)
    for path in files(*PRODUCT):
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(ROOT).as_posix())
    assert {name: place for name, place in places.items() if len(place) > 1 and name not in TWICE} == {}


def test_a_word_that_was_given_up_does_not_come_back() -> None:
    results = sorted(
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in files(*FOLDERS)
        if words(path.read_text(encoding="utf-8")) & BANNED
        for name, line in identifiers(path).items()
        if name not in ALLOWED and not name.startswith("test_") and words(name) & BANNED
    )
    assert results == []
