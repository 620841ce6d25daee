"""`segjudge check`: all reasons why EvalAI rejects a bundle or the challenge breaks later, before it is uploaded.

Each problem quotes the server's own words, so that they can be searched for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from .agreement import agreement, rescoring
from .opened_bundle import Bundle, BundleRefusedError
from .pitfalls import pitfalls
from .problems import ERROR, BundleProblem, BundleProblems, with_field_errors
from .rules import (
    check_challenge,
    check_leaderboards,
    check_mappings,
    check_phases,
    check_splits,
    check_tags_domain_and_prizes,
)
from .saving_rules import (
    CREATION,
    HELD_ROWS,
    LOST,
    SPLIT_NAMES,
    check_challenge_update,
    check_leaderboards_update,
    check_mappings_update,
    check_phases_update,
    check_saving,
    check_splits_update,
    check_web_form,
)
from .script_rules import script
from .server_state import ServerState

#: The rules of each block, and those of its updates.
_RULES: tuple[
    tuple[Callable[[Bundle], BundleProblems], Callable[[Bundle, ServerState], BundleProblems] | None], ...
] = (
    (check_challenge, check_challenge_update),
    (check_leaderboards, check_leaderboards_update),
    (check_phases, check_phases_update),
    (check_splits, check_splits_update),
    (check_mappings, check_mappings_update),
    (check_tags_domain_and_prizes, None),
)


def check(path: str, state: ServerState | None = None) -> list[BundleProblem]:
    """Return the problems of a built bundle; with `state`, also those of an update."""
    try:
        with Bundle(path) as bundle:
            # An update is pushed without sponsors.
            not_sent = "sponsors" if state and bundle.config.get("sponsors") else None
            problems = [problem for problem in server_rules(bundle, state) if not problem.consequence]
            problems = [problem for problem in problems if re.split(r"\W", problem.subject)[0] != not_sent]
            for rules in (pitfalls, script, agreement):
                problems += rules(bundle)
            problems += rescoring(bundle, state)
            return [_located(bundle, problem) for problem in problems]
    except BundleRefusedError as refused:
        return [refused.problem]


def web_form_problems(path: str) -> list[BundleProblem]:
    """Return what EvalAI's web form refuses in a bundle that can be pushed; nothing where it cannot even be opened."""
    try:
        with Bundle(path) as bundle:
            return [_located(bundle, problem) for problem in check_web_form(bundle)]
    except BundleRefusedError:
        return []


def server_rules(bundle: Bundle, state: ServerState | None = None) -> BundleProblems:
    """Yield what EvalAI tests, in its order, and what breaks when it saves."""
    for rule, update in _RULES:
        if state is None or update is None:
            yield from rule(bundle)
        else:
            yield from sorted([*rule(bundle), *update(bundle, state)], key=_order_of_update)
    yield from check_saving(bundle, state)


def _order_of_update(problem: BundleProblem) -> tuple[int, int, bool]:
    """Return the sort key within a block: the server tests updates item by item, and what is lost last."""
    item = re.match(r"\w+\[(\d+)\]", problem.subject)
    if not item:
        return (2 if problem.accepted or problem.rule in LOST else 0, 0, False)
    return (0 if problem.rule in SPLIT_NAMES else 1, int(item[1]), problem.rule not in HELD_ROWS)


def refusal(problems: list[BundleProblem], *, saving: bool = True) -> str:
    """Return the server's answer to a bundle, one sentence a line; "" when it takes the bundle.

    Where the real server breaks down without a word, or takes what breaks later, the problem itself is the sentence.
    A validation does not see what only fails when the server saves; there the first such problem is the whole answer.
    """
    errors = [problem for problem in problems if problem.severity == ERROR]
    refused = [problem for problem in errors if problem.rule != CREATION and not problem.accepted]
    if not refused and saving:
        refused = [problem for problem in errors if not problem.accepted][:1]
    refused = refused or [problem for problem in errors if problem.accepted]
    # The server runs the serializer of the challenge only when everything before it was right.
    early = any(8 <= problem.rule < 23 for problem in refused)
    by_quote: dict[str, list[BundleProblem]] = {}
    for problem in refused:
        if not (early and problem.rule == 24):
            by_quote.setdefault(problem.quote or str(problem), []).append(problem)
    return "\n".join(
        with_field_errors(quote, [problem.error for problem in group if problem.error]) if group[0].error else quote
        for quote, group in by_quote.items()
    )


def _located(bundle: Bundle, problem: BundleProblem) -> BundleProblem:
    return replace(problem, location=bundle.lines.location(problem.subject))
