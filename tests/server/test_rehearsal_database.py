"""The promises of the rehearsal's database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.build import build
from segjudge.server import first_run
from segjudge.server.actions import submitting
from segjudge.server.actions.submitting import PhaseTarget
from segjudge.server.models import ChallengePhase, Setting, StoredFile, StoredMessage, Submission, Team
from segjudge.server.services import Services
from segjudge.server.store import SCHEMA, Store
from segjudge.server.wire import Refusal
from tests.builders import ROOT

#: Workers, or participants, that do the same at once.
THREADS = 8


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(str(tmp_path / "data"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> str:
    return build(str(ROOT), str(tmp_path_factory.mktemp("bundle") / "challenge_config.zip"), lenient=True).path


@pytest.fixture
def services(tmp_path: Path, bundle: str) -> Iterator[Services]:
    """Yield a rehearsal with its people and its challenge, without a server."""
    made = Services(str(tmp_path / "data"), hosts={first_run.HOST_NAME})
    first_run.create_people(made, {first_run.HOST_NAME})
    first_run.create_challenge(made, bundle, bundle, str(tmp_path))
    yield made
    made.store.close()


def at_once(action: Callable[[int], object]) -> list[object]:
    """Return the outcome of an action that several threads begin together."""
    ready = threading.Barrier(THREADS)

    def begin(number: int) -> object:
        ready.wait(120)
        return action(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


# ── one writer, all or nothing ──────────────────────────────────────────────


def test_of_two_processes_one_receives_a_message(services: Services, tmp_path: Path) -> None:
    services.queue.send("queue", {"submission_pk": 1})
    others = [Services(str(tmp_path / "data")) for _ in range(THREADS)]
    received = at_once(lambda number: others[number].queue.receive("queue"))
    assert len([message for message in received if message is not None]) == 1
    for second in others:
        second.store.close()


def test_submissions_at_once_do_not_pass_the_limit(services: Services) -> None:
    phase = services.store.phases(1)[0]
    most = phase.config["max_concurrent_submissions_allowed"]
    user = services.accounts.find_user("aurora")
    assert user is not None
    assert most < THREADS

    def submit(number: int) -> str:
        file = services.files.keep(b"zip", f"{number}.zip", "input_file")
        try:
            submitting.send(services, user, PhaseTarget(1, phase.id), {}, file)
        except Refusal as refusal:
            return str(refusal)
        return "taken"

    assert at_once(submit).count("taken") == most
    assert services.store.count(Submission) == services.store.count(StoredMessage) == most
    files = [services.store.exists(StoredFile.id == row.input_file) for row in services.store.find(Submission)]
    assert files == [True] * most
    assert services.store.count(StoredFile, StoredFile.kind == "input_file") == most


def test_a_write_that_fails_leaves_nothing(services: Services) -> None:
    folder = Path(services.store.folder) / "files"
    before, teams = set(folder.iterdir()), services.store.count(Team)
    kept = services.files.keep(b"kept", "kept.txt", "input_file")
    user = services.accounts.find_user("aurora")
    assert user is not None
    with pytest.raises(ZeroDivisionError), services.store.write():
        services.files.keep(b"new", "new.txt", "input_file")
        services.files.drop(kept)
        services.accounts.create_team(user, "participant", "Never")
        raise ZeroDivisionError
    assert {path.name for path in set(folder.iterdir()) - before} == {kept}
    assert services.files.text(kept) == "kept"
    assert services.store.count(Team) == teams


def test_texts_come_back_as_they_were_without_nul(services: Services) -> None:
    body = {"text": 'ä\0"\\u0000', "number": 0.1 + 0.2, "list": [None, True, 10**30]}
    services.queue.send("queue\0", body)
    message = services.queue.receive("queue\0")
    assert message is not None
    assert message.body == body
    assert services.accounts.authenticate("aurora\0", "x") is None


# ── what counts and who sees it ─────────────────────────────────────────────


def sent(services: Services, who: str = "aurora") -> int:
    user, phase = services.accounts.find_user(who), services.store.phases(1)[0]
    assert user is not None
    return submitting.send(
        services, user, PhaseTarget(1, phase.id), {}, services.files.keep(b"x", "x.zip", "input_file")
    )


@pytest.mark.parametrize(
    ("status", "left"),
    [("submitted", 4), ("running", 4), ("finished", 4), ("partially_evaluated", 4), ("failed", 5), ("cancelled", 5)],
)
def test_what_failed_or_was_cancelled_uses_up_no_limit(services: Services, status: str, left: int) -> None:
    phase, number = services.store.phases(1)[0], sent(services)
    limits = ("max_submissions", "max_submissions_per_month", "max_submissions_per_day")
    services.store.change(ChallengePhase, phase.id, config={**phase.config, **dict.fromkeys(limits, 5)})
    services.submissions.update(number, status=status)
    team = services.submissions.get(number).team_id
    assert submitting.count_remaining(services, team, services.store.phases(1)[0]) == left


# ── clocks and folders ──────────────────────────────────────────────────────


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_no_message_is_lost_to_a_clock_that_jumps(
    services: Services, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    services.queue.send("queue", {"submission_pk": 1})
    services.queue.send("queue", {"submission_pk": 2})
    assert services.queue.receive("queue") is not None
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + jump)
    received = [services.queue.receive("queue") for _ in range(3)]
    assert [message.body["submission_pk"] for message in received if message] == [1, 2]
    number = sent(services)
    services.submissions.begin(number)
    monkeypatch.setattr(time, "time", lambda: clock() + jump - 60)
    services.submissions.fail(number, "words")
    assert services.submissions.get(number).execution_time == 0


# ── versions ────────────────────────────────────────────────────────────────


def reopened(store: Store) -> None:
    Store(store.folder).close()


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (SCHEMA - 1, "was made by an older version of the rehearsal (schema {}, this one has {}). {}, or use the version that made it"),
        (SCHEMA + 1, "was made by a newer version of the rehearsal (schema {}, this one has {}). {}, or update segjudge to the version that made it"),
    ],
    ids=["older", "newer"],
)  # fmt: skip
def test_another_version_is_refused_with_what_to_do(store: Store, version: int, message: str) -> None:
    store.change(Setting, "schema", value=str(version))
    with pytest.raises(HostError) as caught:
        reopened(store)
    remedy = "Start over with --reset, which deletes what is stored"
    assert str(caught.value) == f"{store.name}: {message.format(version, SCHEMA, remedy)}"


def test_a_database_of_something_else_is_left_alone(store: Store) -> None:
    store.remove(Setting, Setting.key == "secret")
    with pytest.raises(HostError) as caught:
        reopened(store)
    assert (
        str(caught.value) == f"{store.name}: holds something other than a rehearsal. Name an empty folder with --data"
    )
