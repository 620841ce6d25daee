"""What the Space stores and shows, against the stand-in, without its pages."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import HfApi

from segjudge.ledger.hub_dataset import HubDataset
from segjudge.ledger.ledger import Ledger
from segjudge.ledger.rows import LedgerEntry, RunOutcome
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from segjudge.platforms.hugging_face.settings import SpaceSettings, find_rules
from segjudge.platforms.hugging_face.space import Account, Space, render_boards, render_list, render_rules
from tests.hub.played import PlayedHub

from .boards import OWNER, REPOSITORY, make_challenge, open_hub, push, submissions_of

ANN, BOB = Account("a1", "ann"), Account("b2", "<b>bob</b>")


@pytest.fixture(scope="module")
def challenge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_challenge(tmp_path_factory.mktemp("new") / "cats")
    config = folder / "challenge_config.yaml"
    config.write_text(config.read_text().replace("per_day: 10", "per_day: 2"))
    return folder


@pytest.fixture
def hub(challenge: Path) -> Iterator[PlayedHub]:
    with open_hub() as played:
        push(challenge)
        yield played


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "results.zip"
    path.write_bytes(b"PK")
    return str(path)


def open_space(hub: PlayedHub, challenge: Path) -> Space:
    """Open the Space with the token that its host makes, and the settings from its file."""
    settings = SpaceSettings.of_challenge(find_bundle(str(challenge)), REPOSITORY)
    token = hub.add_token(OWNER, {f"{REPOSITORY}-submissions": "write"})
    return Space.open(SpaceSettings.from_json(settings.to_json()), HfApi(hub.url, token=token))


def evaluate(challenge: Path, number: int, outcome: RunOutcome) -> Ledger:
    """Do what an evaluator does with a request."""
    rules = find_rules(find_bundle(str(challenge)))
    ledger = Ledger(
        HubDataset(HfApi(), f"{REPOSITORY}-results"), HubDataset(HfApi(), f"{REPOSITORY}-private", "bundle"), rules
    )
    ledger.enter([LedgerEntry(number, ANN.key, ANN.name, "net", "val", "", "", ledger.stamp())])
    ledger.settle({(number, ledger.claim([number], "worker", 60)[number]): outcome})
    return ledger


def test_settings_survive_their_file(challenge: Path) -> None:
    settings = SpaceSettings.of_challenge(find_bundle(str(challenge)), REPOSITORY)
    assert SpaceSettings.from_json(settings.to_json()) == settings


def test_submissions_of_two_spaces_at_once_get_numbers_of_their_own(hub: PlayedHub, challenge: Path, file: str) -> None:
    accounts = [Account(f"k{number}", f"team {number}") for number in range(6)]
    spaces = [open_space(hub, challenge) for _ in range(2)]
    threads = [
        threading.Thread(target=spaces[at % 2].submit, args=(account, "net", "val", file))
        for at, account in enumerate(accounts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = submissions_of(hub)
    assert [row["number"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert {row["account"] for row in rows} == {account.key for account in accounts}
    assert hub.read(f"{REPOSITORY}-submissions", "files/6/results.zip") == b"PK"


def test_the_space_says_in_a_sentence_why_a_submission_is_not_accepted(
    hub: PlayedHub, challenge: Path, file: str, tmp_path: Path
) -> None:
    space = open_space(hub, challenge)
    wrong = tmp_path / "results.exe"
    wrong.write_bytes(b"MZ")
    assert space.submit(ANN, "  ", "val", file) == "Write the name of your method."
    assert space.submit(ANN, "net", "val", "") == "Choose a file."
    assert space.submit(ANN, "net", "val", str(wrong)).startswith("results.exe is no .zip or ")
    assert space.submit(ANN, "net", "test", file) == "This challenge has no such phase; its phases are: val."
    assert space.withdraw(ANN, "9") == "Your account has no submission 9."
    assert space.withdraw(ANN, "-1") == "Write the number of the submission, such as 12."
    for _ in range(2):
        assert "was stored" in space.submit(ANN, "net", "val", file)
    assert space.submit(ANN, "net", "val", file) == "Your account has used its 2 submissions today (UTC)."
    assert "was stored" in space.submit(BOB, "net", "val", file)
    assert space.withdraw(BOB, "1") == "Your account has no submission 1."


def test_an_account_sees_what_became_of_its_submissions(hub: PlayedHub, challenge: Path, file: str) -> None:
    space = open_space(hub, challenge)
    for account in (ANN, ANN, BOB):
        space.submit(account, "net", "val", file)
    assert [row["state"] for row in space.list_submissions(ANN)] == ["waiting, 1 submission before it", "next"]
    assert [row["state"] for row in space.list_submissions(BOB)] == ["waiting, 2 submissions before it"]
    evaluate(challenge, 1, RunOutcome("2027-01-01", {"val": {"J&F-Mean": 0.75, "J-Mean": 0.5}}))
    evaluate(challenge, 2, RunOutcome("2027-01-01", refused="<i>a.png</i> is no mask."))
    space = open_space(hub, challenge)
    assert [row["state"] for row in space.list_submissions(ANN)] == [
        "Rejected: <i>a.png</i> is no mask.",
        "Scored: val: place 1 of 1; J&F-Mean 0.7500, J-Mean 0.5000",
    ]
    assert "&lt;i&gt;a.png&lt;/i&gt;" in render_list(space.list_submissions(ANN))
    assert [row["state"] for row in space.list_submissions(BOB)] == ["next"]
    assert "0.75" in render_boards(space.list_boards())

    assert space.withdraw(ANN, "1") == "Submission 1 was withdrawn."
    assert space.withdraw(ANN, "1") == "Submission 1 was withdrawn."
    assert len(submissions_of(hub)) == 4
    assert "0.75" not in render_boards(space.list_boards())


def test_a_blind_phase_shows_its_day_and_no_score(hub: PlayedHub, challenge: Path, file: str) -> None:
    board = challenge / "board.yaml"
    board.write_text(f"reveal:\n  val: {datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=2)}\n")
    try:
        space = open_space(hub, challenge)
        space.submit(ANN, "net", "val", file)
        evaluate(challenge, 1, RunOutcome("2027-01-01", {"val": {"J&F-Mean": 0.75}}))
    finally:
        board.unlink()
    shown = render_boards(space.list_boards()) + str(space.list_submissions(ANN)) + render_rules(space.settings)
    assert "The results of this phase appear on 2" in str(open_space_again(space, hub).list_submissions(ANN))
    assert "0.75" not in shown + hub.history(f"{REPOSITORY}-results")


def open_space_again(space: Space, hub: PlayedHub) -> Space:
    """Open a Space that has read nothing yet."""
    return Space.open(space.settings, HfApi(hub.url))
