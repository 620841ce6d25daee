"""What EvalAI's web form (`zip_upload`) asks beyond a push: a bundle may take one way and not the other."""

from __future__ import annotations

import re
from typing import Any

from segjudge.bundle.opened_bundle import Bundle
from segjudge.bundle.problems import BundleProblem, BundleProblems

from .blocks import entries

_QUESTIONS = ("method_name", "method_description", "project_url", "publication_url")


def web_form(bundle: Bundle) -> BundleProblems:
    """Beyond what a push is refused for."""
    yield from _one_yaml(bundle)
    word = str(bundle.config.get("title")).strip().split(" ")[0].lower()
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
    found = [one for one in bundle.listed if one.endswith((".yaml", ".yml")) and not one.startswith("__MACOSX")]
    if len(found) > 1:
        quote = f"There are {len(found)} YAML files instead of one in zip folder!"
        others = [name for name in found if name != bundle.config_name]
        yield BundleProblem(", ".join(others), "is a second YAML file", "Leave it out, or push the bundle", quote)


def _questions(where: str, phase: dict[str, Any]) -> BundleProblems:
    asked = phase.get("default_submission_meta_attributes")
    if not asked:
        return
    if not isinstance(asked, list) or any(not isinstance(one, dict) for one in asked):
        yield BundleProblem(where, "is not a list of mappings", "Begin each item with - name:")
        return
    for place, one in enumerate(asked):
        missing = [key for key in ("name", "is_visible") if key not in one]
        if missing:
            quote = (
                "Please enter the following to the default submission meta attribute in phase "
                f"{phase.get('id')}: {', '.join(missing)}."
            )
            yield BundleProblem(f"{where}[{place}]", f"lacks {', '.join(missing)}", "Add it", quote)
        elif one["name"] not in _QUESTIONS:
            quote = f"Default meta attribute: {one['name']} in phase: {phase.get('id')} does not exist!"
            yield BundleProblem(f"{where}[{place}].name", f"is {one['name']}", f"Use {', '.join(_QUESTIONS)}", quote)
