"""`segjudge check`: everything by which EvalAI rejects a bundle or fails later, all at once, before it is uploaded.

Each finding quotes the server's own words, so that they can be searched for.
"""

from __future__ import annotations

import re
from dataclasses import replace

from segjudge.bundle.rules.updates import HELD_ROWS, LOST, SPLIT_NAMES
from segjudge.bundle.rules.web_form import web_form

from .agreement import Agreement
from .opened_bundle import Bundle, BundleRefusedError
from .pitfalls import pitfalls
from .problems import ERROR, BundleProblem, BundleProblems, said
from .rules import CREATION, RULES, creation
from .script_rules import script
from .server_state import State


def check(path: str, state: State | None = None) -> list[BundleProblem]:
    """What is wrong with a built bundle; `state` is what the server holds of it."""
    try:
        with Bundle(path) as bundle:
            found = [finding for finding in server_rules(bundle, state) if not finding.follows]
            for room in (pitfalls, script, _agreement):
                found += room(bundle)
            return [_placed(bundle, finding) for finding in found]
    except BundleRefusedError as refused:
        return [refused.finding]


def web_form_findings(path: str) -> list[BundleProblem]:
    """What keeps a bundle that can be pushed from EvalAI's web form, which has rules of its own."""
    with Bundle(path) as bundle:
        return [_placed(bundle, finding) for finding in web_form(bundle)]


def server_rules(bundle: Bundle, state: State | None = None) -> BundleProblems:
    """What EvalAI itself tests, in its order, and what it stumbles over when it saves."""
    for rule, update in RULES:
        if state is None or update is None:
            yield from rule(bundle)
        else:
            yield from sorted([*rule(bundle), *update(bundle, state)], key=_turn)
    yield from creation(bundle, state)


def _turn(finding: BundleProblem) -> tuple[int, int, bool]:
    """The place of a finding within its block: of an update the server tests item by item, and last what is lost."""
    item = re.match(r"\w+\[(\d+)\]", finding.where)
    if not item:
        return (2 if finding.taken or finding.rule in LOST else 0, 0, False)
    return (0 if finding.rule in SPLIT_NAMES else 1, int(item[1]), finding.rule not in HELD_ROWS)


def refusal(findings: list[BundleProblem], *, saving: bool = True) -> str:
    """The answer of the server to a bundle: its sentences, one a line; nothing when it takes the bundle.

    Where the real server breaks down without a word, or takes what breaks later, the finding itself is said.
    What only fails when the server saves is no answer to a validation, and then the first of it is the whole answer.
    """
    errors = [finding for finding in findings if finding.severity == ERROR]
    told = [finding for finding in errors if finding.rule != CREATION and not finding.taken]
    if not told and saving:
        told = [finding for finding in errors if not finding.taken][:1]
    told = told or [finding for finding in errors if finding.taken]
    sentences: dict[str, list[BundleProblem]] = {}
    # The serializer of the challenge is asked only when everything before it was right.
    early = any(8 <= finding.rule < 23 for finding in told)
    for finding in told:
        if not (early and finding.rule == 24):
            sentences.setdefault(finding.quote or str(finding), []).append(finding)
    return "\n".join(
        said(quote, [one.detail for one in group if one.detail]) if group[0].detail else quote
        for quote, group in sentences.items()
    )


def _agreement(bundle: Bundle) -> BundleProblems:
    yield from Agreement(bundle).findings()


def _placed(bundle: Bundle, finding: BundleProblem) -> BundleProblem:
    return replace(finding, at=bundle.lines.place(finding.where))
