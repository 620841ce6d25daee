"""`linejudge check`: everything by which EvalAI rejects a bundle or fails later, all at once, before it is uploaded.

Each finding quotes the server's own words, so that they can be searched for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .agreement import Agreement
from .finding import ERROR, Finding, Findings, said
from .opened import Bundle, RefusedError
from .rules import RULES
from .rules.updates import updates
from .script import script
from .state import State
from .traps import traps


def check(path: str, state: State | None = None) -> list[Finding]:
    """What is wrong with a built bundle; `state` is what the server holds of it."""
    try:
        with Bundle(path) as bundle:
            found = list(server_rules(bundle, state))
            for room in (traps, script, _agreement):
                found += room(bundle)
            return [_placed(bundle, finding) for finding in found]
    except RefusedError as refused:
        return [refused.finding]


def server_rules(bundle: Bundle, state: State | None = None) -> Findings:
    """What EvalAI itself tests, in its order."""
    rooms: list[Callable[[Bundle], Findings]] = [*RULES]
    for room in rooms:
        yield from room(bundle)
    if state is not None:
        yield from updates(bundle, state)


def refusal(findings: list[Finding]) -> str:
    """The answer of the server to a bundle: its sentences, one a line; nothing when it takes the bundle.

    Where the real server breaks down without a word, or takes what breaks later, the finding itself is said.
    """
    sentences: dict[str, list[Finding]] = {}
    # The serializer of the challenge is asked only when everything before it was right.
    early = any(8 <= finding.rule < 23 and finding.severity == ERROR for finding in findings)
    for finding in findings:
        if finding.severity == ERROR and not (early and finding.rule == 24):
            sentences.setdefault(finding.quote or str(finding), []).append(finding)
    return "\n".join(
        said(quote, [one.detail for one in group if one.detail]) if group[0].detail else quote
        for quote, group in sentences.items()
    )


def _agreement(bundle: Bundle) -> Findings:
    yield from Agreement(bundle).findings()


def _placed(bundle: Bundle, finding: Finding) -> Finding:
    return replace(finding, at=bundle.lines.place(finding.where))
