"""Every route of the rehearsal, asked by everybody: scores of hidden splits are in no answer but a host's.

A route with a parameter that `VALUES` lacks fails here: say which values it takes.
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from segjudge.server import api, pages
from segjudge.server.models import Submission, Team
from segjudge.server.submissions import SplitScores

from .scenario import bundle_of, config_of
from .staged import Stage

#: Scores of splits that everybody sees; of those whose phase or leaderboard is not public; of hidden ones.
PUBLIC, CLOSED, HIDDEN = 0.7512987, 0.2987612, 0.4312765
PATHS = sorted({
    route.path.rstrip("/") or "/"
    for route in [*api.ROUTES, *pages.ROUTES]
    if "GET" in (getattr(route, "methods", None) or ())
})  # fmt: skip
#: The parameters of routes that the walk leaves to links: signed addresses of files.
_LINKED = ("/media/{file}/{name}",)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server with splits of visibility 1, 2 and 3, a leaderboard and a phase that are not public, and submissions."""
    folder = tmp_path_factory.mktemp("routes")
    (folder / "lakes.zip").write_bytes(bundle_of(config_of("Lakes", remote_evaluation=True)))
    with Stage(folder, folder / "lakes.zip") as opened:
        for phase, who in itertools.product(opened.services.store.phases(1), ("aurora", "host")):
            send(opened, phase, who)
        yield opened


def send(stage: Stage, phase: Any, who: str) -> None:
    path = f"/api/jobs/challenge/1/challenge_phase/{phase.id}/submission/"
    files = {"input_file": (f"{who}.zip", b"masks")}
    number = stage.call("POST", path, who, data={"is_public": "true"}, files=files).json().get("id")
    if number is None:  # the phase takes none of theirs
        return
    scores, shown = [], {}
    for split in stage.services.store.splits_of(phase.id):
        is_closed = phase.codename in ("final", "secret")
        score = HIDDEN if split.visibility != 3 else CLOSED if is_closed else PUBLIC
        scores.append(SplitScores(split.id, dict.fromkeys(split.labels, score)))
        shown[split.dataset_split.codename] = score
    texts = {"stdout_file": f"scored {shown}", "metadata_file": json.dumps(shown)}
    stage.services.submissions.end(number, "finished", scores, submission_result_file=json.dumps(shown), **texts)
    stage.services.submissions.update(number, is_public=True, is_baseline=who == "host")


def list_values(stage: Stage) -> dict[str, list[object]]:
    """The values that parameters of routes take."""
    store = stage.services.store
    phases, challenge = store.phases(1), stage.services.submissions.challenge_of(stage.services.submissions.get(1))
    return {
        "challenge": [1],
        "phase": [phase.id for phase in phases],
        "slug": [phase.slug for phase in phases],
        "split": [split.id for phase in phases for split in store.splits_of(phase.id)],
        "submission": [row.id for row in store.find(Submission)],
        "leaderboard": [1],
        "team": [team.id for team in store.find(Team)],
        "queue": [challenge.queue],
        "time": ["all", "past", "present", "future"],
        "approved": ["approved"],
        "published": ["public"],
        "page": ["leaderboard", "overview", "submit"],
    }


def fill(path: str, values: dict[str, list[object]]) -> Iterator[str]:
    """Yield the addresses of a route, of comparisons those of every two submissions."""
    names = re.findall(r"{(\w+)(?::\w+)?}", path)
    for chosen in itertools.product(*(values[name] for name in names)):
        address = path
        for name, value in zip(names, chosen, strict=True):
            address = re.sub(rf"{{{name}(?::\w+)?}}", str(value), address)
        if path.endswith("/compare"):
            yield from (
                f"{address}?submission={first}&submission={second}"
                for first, second in itertools.combinations(values["submission"], 2)
            )
        else:
            yield address


def walk(stage: Stage, who: str) -> dict[str, str]:
    """Ask for everything with a token and as a browser, and for the files that answers link to."""
    values, answers = list_values(stage), dict[str, str]()
    for path in PATHS:
        for address in fill(path, values) if path not in _LINKED else ():
            for ask, ending in ((stage.call, "/" if path.startswith("/api") else ""), (stage.browse, "")):
                answers[f"{ask.__name__} {address}{ending}"] = ask("GET", address + ending, who).text
    links = {html.unescape(link) for text in answers.values() for link in re.findall(r'/media/[^"\'<>\s]+', text)}
    return answers | {link: stage.get(link.rstrip("\\")).text for link in sorted(links)}


def find(score: float, answers: dict[str, str]) -> list[str]:
    """List the addresses whose answers have the digits of a score."""
    form = re.compile(rf"(?<![\d.]){score:.2f}|(?<![\d.]){repr(score)[:5]}")
    unsigned = {
        address: re.sub(r"(expires|signature)=[\w-]+|[0-9a-f]{32,}", "", text) for address, text in answers.items()
    }
    return [address for address, text in unsigned.items() if form.search(text)]


@pytest.mark.parametrize("who", ["", "borealis"], ids=["nobody", "another team"])
def test_visitors_and_other_teams_read_nothing_that_is_not_public(stage: Stage, who: str) -> None:
    answers = walk(stage, who)
    assert find(PUBLIC, answers)
    assert find(HIDDEN, answers) == []
    assert find(CLOSED, answers) == []


def test_a_team_reads_of_its_own_submissions_nothing_that_is_hidden(stage: Stage) -> None:
    answers = walk(stage, "aurora")
    assert find(PUBLIC, answers)
    assert find(CLOSED, answers), "its own, in a phase whose leaderboard is not public"
    assert find(HIDDEN, answers) == []


def test_a_host_reads_all(stage: Stage) -> None:
    answers = walk(stage, "host")
    assert all(find(score, answers) for score in (PUBLIC, CLOSED, HIDDEN))


def test_the_walk_knows_every_parameter_of_a_route(stage: Stage) -> None:
    known = set(list_values(stage))
    names = {path: set(re.findall(r"{(\w+)(?::\w+)?}", path)) - known for path in PATHS if path not in _LINKED}
    assert {path: unknown for path, unknown in names.items() if unknown} == {}
    assert len(PATHS) > 30
