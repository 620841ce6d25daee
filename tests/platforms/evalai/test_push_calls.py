"""The calls of a push, answered by a rehearsal inside the test's process."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from segjudge.platforms.evalai.bundle import push
from segjudge.platforms.evalai.bundle.push import ChallengePush, RejectedError
from segjudge.platforms.evalai.bundle.secrecy import find_withdrawn
from segjudge.platforms.evalai.bundle.server_state import ServerState
from segjudge.platforms.evalai.client import EvalAISettings
from tests.calls import outcome
from tests.server.scenario import bundle_of, config_of
from tests.server.staged import HOST, Stage, answer_clients

LAKES = config_of("Lakes")
LAKES["challenge_phases"] = LAKES["challenge_phases"][:2]
LAKES["challenge_phase_splits"] = [row for row in LAKES["challenge_phase_splits"] if row["challenge_phase_id"] < 3]
SPLIT_ROWS = [[1, 1, 1, 3, 2, True], [1, 1, 2, 1, 2, True], [1, 2, 1, 3, 2, True], [1, 2, 2, 2, 2, True]]
CODENAMES = ["practice", "final"]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("pushes")
    (folder / "lakes.zip").write_bytes(bundle_of(LAKES))
    with Stage(folder, folder / "lakes.zip") as opened:
        yield opened


@pytest.fixture
def bundle(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the path of a bundle; clients ask the rehearsal in this process."""
    answer_clients(stage, monkeypatch)
    (tmp_path / "lakes.zip").write_bytes(bundle_of(LAKES))
    return str(tmp_path / "lakes.zip")


def push_of(repository: str, **settings: str) -> ChallengePush:
    return ChallengePush(EvalAISettings.read({**os.environ, **settings}), repository)


def test_the_first_push_creates_a_challenge_and_the_second_updates_it(bundle: str) -> None:
    made = push_of("me/lakes")
    assert (made.fetch_challenge(), made.fetch_state(None)) == (None, None)
    assert made.validate(bundle) == "The challenge config has been validated successfully"
    assert made.fetch_challenge() is None, "nothing was created"
    created, updated = made.create_or_update(bundle), made.create_or_update(bundle)
    assert created.message == "Challenge Lakes has been created successfully and sent for review to EvalAI Admin."
    assert [*created.phases] == CODENAMES
    assert len({*created.phases.values()}) == len(CODENAMES)
    assert created.queue.startswith(f"lakes-{created.number}-rehearsal-")
    assert created.approved
    assert updated == replace(created, message="The challenge Lakes has been updated successfully")
    assert push_of("me/lake").fetch_challenge() is None, "another repository"


def test_the_state_of_a_challenge_is_the_servers(bundle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = push_of("me/state")
    number = made.create_or_update(bundle).number
    state = made.fetch_state(None)
    assert state == ServerState(
        f"challenge {number} of me/state on http://{HOST}", approved=True, phases=dict(enumerate(CODENAMES, 1)),
        leaderboards={1: LAKES["leaderboard"][0]["schema"]}, splits={1: ["Lakes", "lakes"], 2: ["Ponds", "ponds"]},
        rows=SPLIT_ROWS, slugs=[f"lakes-{name}" for name in CODENAMES], published=[1],
    )  # fmt: skip
    last: Any = replace(state, rows=[["of the last push"]], scoring={"lakes": {"val": "davis2017, revision 1"}})
    assert made.fetch_state(last) == replace(state, scoring=last.scoring)
    foreign = replace(last, source="challenge 1 of somebody")
    assert made.fetch_state(foreign) == state
    monkeypatch.setattr(push, "_PHASE_SPLITS", len(SPLIT_ROWS) - 1)
    assert made.fetch_state(last) == last, "too many phase splits to ask for each"
    unknown = replace(state, leaderboards=ServerState("").leaderboards, splits={}, rows=[])
    assert (made.fetch_state(None), made.fetch_state(foreign)) == (unknown, unknown)


def hide(split: bool) -> dict[str, Any]:
    """Return the config with the split lakes of practice hidden, or with its phase's leaderboard."""
    config = copy.deepcopy(LAKES)
    (config["challenge_phase_splits"][0] if split else config["challenge_phases"][0]).update(
        {"visibility": 1} if split else {"leaderboard_public": False}
    )
    return config


@pytest.mark.parametrize(
    ("split", "approved", "sentence"),
    [
        (True, False, "challenge_phase_splits[0].visibility: hides lakes of practice, which is public on EvalAI; teams keep its scores in their earlier results. Regard these scores as published; for secret scores, add a phase with another truth."),
        (True, True, "challenge_phase_splits[0].visibility: hides lakes of practice, which stays public on EvalAI, because the challenge is approved. Ask EvalAI's staff to change the visibility."),
        (False, True, "the phase practice: hides lakes of practice on EvalAI's pages only; its API still shows the public submissions to everybody. Set visibility: 1 in challenge_phase_splits[0], and hidden=True in phases.py."),
    ],
)  # fmt: skip
def test_a_split_that_is_hidden_after_its_publication_is_named(split: bool, approved: bool, sentence: str) -> None:
    state = ServerState.after_push(LAKES, source="here", approved=approved)
    assert [*find_withdrawn(LAKES, state)] == [*find_withdrawn(hide(split), None)] == []
    assert [*map(str, find_withdrawn(hide(split), state))] == [sentence]
    assert [*find_withdrawn(hide(split), ServerState.after_push(hide(split), source="here"))] == []


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"EVALAI_HOST_TEAM": "99"}, "EVALAI_HOST_TEAM is not the number of a host team there: it is in the address of your host team's page."),
        ({"EVALAI_TOKEN": "odd"}, f"HostError: http://{HOST} says: Given token not valid for any token type\nYour token is wrong, has expired"),
        ({"EVALAI_HOST_TEAM": ""}, "HostError: EVALAI_HOST_TEAM is not set: it is the number of your host team, in the address of its page"),
    ],
)  # fmt: skip
def test_a_refused_push_names_what_to_set(bundle: str, settings: dict[str, str], sentence: str) -> None:
    assert sentence in outcome(lambda: push_of("me/refused", **settings).validate(bundle))


def test_a_rejected_bundle_is_explained_by_its_keys(bundle: str) -> None:
    Path(bundle).write_bytes(bundle_of({**LAKES, "title": ""}))
    with pytest.raises(RejectedError) as rejected:
        push_of("me/rejected").create_or_update(bundle)
    assert [str(problem) for problem in rejected.value.locate(bundle)] == [
        "challenge_config.yaml:109:1: title: Please add the challenge title. Correct it and push again."
    ]
