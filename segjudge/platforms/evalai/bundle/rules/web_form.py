"""Rules of EvalAI's web form (`zip_upload`) beyond those of a push."""

from __future__ import annotations

import re
from typing import Any

from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
from segjudge.platforms.evalai.bundle.problems import BundleProblem, BundleProblems

from .blocks import entries, is_list_of_mappings
from .creation import first_word

_QUESTIONS = ("method_name", "method_description", "project_url", "publication_url")


def web_form(bundle: Bundle) -> BundleProblems:
    """Yield the problems that the web form alone refuses."""
    yield from _one_yaml(bundle)
    word = first_word(bundle.config.get("title"))
    for where, phase in entries(bundle, "challenge_phases"):
        if not phase.get("test_annotation_file"):
            quote = (
                f"There is no key for test annotation file for challenge phase {phase.get('name')} in yaml file. "
                "Please add it and  then try again!"
            )
            found = "is missing, and the form wants an annotation file for every phase"
            yield BundleProblem(f"{where}.test_annotation_file", found, "Push the bundle", quote)
        yield from _questions(f"{where}.default_submission_meta_attributes", phase)
        codename = phase.get("codename")
        # A push makes a hyphen of everything else; the form of spaces alone.
        slug = f"{word}-{codename}".replace(" ", "-").lower()
        if isinstance(codename, str) and not re.fullmatch(r"[-a-zA-Z0-9_]+", slug):
            found = f"is {codename!r}, of which the form makes an address"
            yield BundleProblem(f"{where}.codename", found, "Use a-z, 0-9, - and _ alone, or push the bundle")


def _one_yaml(bundle: Bundle) -> BundleProblems:
    names = [name for name in bundle.listed_names if name.endswith((".yaml", ".yml"))]
    names = [name for name in names if not name.startswith("__MACOSX")]
    if len(names) > 1:
        quote = f"There are {len(names)} YAML files instead of one in zip folder!"
        others = [name for name in names if name != bundle.config_name]
        yield BundleProblem(", ".join(others), "is a second YAML file", "Leave it out, or push the bundle", quote)


def _questions(where: str, phase: dict[str, Any]) -> BundleProblems:
    questions = phase.get("default_submission_meta_attributes")
    if not questions:
        return
    if not is_list_of_mappings(questions):
        yield BundleProblem(where, "is not a list of mappings", "Begin each item with - name:")
        return
    for index, question in enumerate(questions):
        missing = [key for key in ("name", "is_visible") if key not in question]
        if missing:
            quote = (
                "Please enter the following to the default submission meta attribute in phase "
                f"{phase.get('id')}: {', '.join(missing)}."
            )
            yield BundleProblem(f"{where}[{index}]", f"lacks {', '.join(missing)}", "Add it", quote)
        elif question["name"] not in _QUESTIONS:
            quote = f"Default meta attribute: {question['name']} in phase: {phase.get('id')} does not exist!"
            found = f"is {question['name']}"
            yield BundleProblem(f"{where}[{index}].name", found, f"Use {', '.join(_QUESTIONS)}", quote)
