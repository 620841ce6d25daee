"""What EvalAI tests, in its order: as it validates a bundle, as it updates a challenge, and as it saves.

What only the web form refuses follows below.
"""

from __future__ import annotations

from dataclasses import replace

from .opened_bundle import Bundle
from .problems import BundleProblem, BundleProblems
from .rule_rows import RuleRow, Verdict, all_of, check_each, first_of
from .saving import check_saving, first_word, is_slug
from .server_state import ServerState
from .updating import UPDATES, order_of_update
from .validation import VALIDATIONS, Entry, is_empty, is_no_list_of_mappings, lacks


def check_server_rules(bundle: Bundle, state: ServerState | None = None) -> BundleProblems:
    """Yield what EvalAI tests, in its order, and what breaks when it saves; with `state`, in an update."""
    for block, check in VALIDATIONS.items():
        problems = [*check(Entry(bundle, "", bundle.config))]
        if state is not None and block in UPDATES:
            problems = sorted([*problems, *UPDATES[block](bundle, state)], key=order_of_update)
        yield from problems
    yield from check_saving(bundle, state)


# ── the web form ────────────────────────────────────────────────────────────────────────────────────────────────────

_QUESTIONS = ("method_name", "method_description", "project_url", "publication_url")
_ASKED = "default_submission_meta_attributes"
_QUESTION = first_of(
    RuleRow(0, "", lacks("name", "is_visible"), "lacks {missing}", "Add it",
        "Please enter the following to the default submission meta attribute in phase {number}: {missing}."),
    RuleRow(0, "name", lambda at: at.value not in _QUESTIONS, "is {value}", f"Use {', '.join(_QUESTIONS)}",
        "Default meta attribute: {value} in phase: {number} does not exist!"),
)  # fmt: skip


def _check_questions(entry: Entry) -> BundleProblems:
    at = entry.below(_ASKED)
    for index, question in enumerate(at.value):
        yield from _QUESTION(replace(at, path=f"{at.path}[{index}]", item=question))


def _breaks_slug(at: Entry) -> Verdict:
    # A push makes a hyphen of everything else; the form of spaces alone.
    slug = f"{first_word(at.bundle.config.get('title'))}-{at.value}".replace(" ", "-").lower()
    return isinstance(at.value, str) and not is_slug(slug)


_FORM_OF_PHASE = all_of(
    RuleRow(0, "test_annotation_file", is_empty, "is missing, and the form wants an annotation file for every phase",
        "Push the bundle",
        "There is no key for test annotation file for challenge phase {name} in yaml file. Please add it and  then "
        "try again!"),
    first_of(
        RuleRow(0, _ASKED, is_no_list_of_mappings, "is not a list of mappings", "Begin each item with - name:", ""),
        _check_questions,
        unless=lambda at: not at.item.get(_ASKED),
    ),
    RuleRow(0, "codename", _breaks_slug, "is {value!r}, of which the form makes an address",
        "Use a-z, 0-9, - and _ alone, or push the bundle", ""),
)  # fmt: skip


def check_form_rules(bundle: Bundle) -> BundleProblems:
    """Yield the problems that the web form alone refuses."""
    names = [name for name in bundle.listed_names if name.endswith((".yaml", ".yml"))]
    names = [name for name in names if not name.startswith("__MACOSX")]
    if len(names) > 1:
        quote = f"There are {len(names)} YAML files instead of one in zip folder!"
        subject = ", ".join(name for name in names if name != bundle.config_name)
        yield BundleProblem(subject, "is a second YAML file", "Leave it out, or push the bundle", quote)
    yield from check_each("challenge_phases", _FORM_OF_PHASE)(Entry(bundle, "", bundle.config))
