"""Tables of agents, and outcomes of submissions that are agents, whose duels and runs are played."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from segjudge.code_upload import arena
from segjudge.evaluation_script.files.problems import HostError
from segjudge.server import code_uploads
from segjudge.server.code_uploads import AgentTable, CodeUploads, read_table
from segjudge.server.models import Challenge
from segjudge.system.sandbox import PROCESSES, ProcessLimits
from tests.calls import outcome

from .hosted import Hosted, hosted_stage

HOUR = ProcessLimits(seconds=3600.0, memory=8 << 30, sandbox=False, processes=PROCESSES)
FORM = 'does not have the form [images."team/name:1"] with command = ["python", "agent.py"] and folder = "…"'
WORDS, PORT = 'is not a list of words such as ["--env", "…"]', "which is not between 1 and 65535"
ENVIRONMENT = "[environments.a]\ncommand = ['x']\nport = "
WHOLE = """\
sandbox = true
seconds = 5
memory_mb = 3
processes = 2
look_every = 0.5
data = 'data'
hidden = ['a', '/b']
[images.a]
command = ['x', '-u']
folder = 'agents'
[environments]
one = ['--env', 'truth=t.zip', 'frames=f', 'size=3', 'truth']
[environments.two]
command = ['y']
folder = 'agents'
[environments.three]
command = ['y']
port = 65535
"""


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("nothing = 1", "has 'nothing', which is not a known key"),
        ("seconds = 'x'", "seconds is 'x', which is not of the type float"),
        ("images = 3", "images is 3, which is not of the type dict"),
        ("[images.a]", f"the image 'a' {FORM}"),
        ("[images.a]\ncommand = []", f"the image 'a' {FORM}"),
        ("[images.a]\ncommand = ['x', 3]", f"the image 'a' {FORM}"),
        ("[images.a]\ncommand = ['x']\nfolder = 'none'", "the folder of the image 'a', HERE/none, does not exist"),
        ("[environments]\na = 3", f"environments.a {WORDS}"),
        ("[environments]\na = ['x', 3]", f"environments.a {WORDS}"),
        (f"{ENVIRONMENT}0", f"environments.a has the port 0, {PORT}"),
        (f"{ENVIRONMENT}65536", f"environments.a has the port 65536, {PORT}"),
        (f"{ENVIRONMENT}'80'", f"environments.a has the port '80', {PORT}"),
        ("[environments.a]\nport = 3", f"the image 'environments.a' {FORM}"),
        (None, "cannot be read ([Errno 2] No such file or directory: 'HERE/agents.toml')"),
    ],
)
def test_a_table_of_another_form_is_refused(text: str | None, error: str, tmp_path: Path) -> None:
    path = tmp_path / "agents.toml"
    if text is not None:
        path.write_text(text)
    assert outcome(lambda: read_table(str(path))) == f"HostError: HERE/agents.toml: {error}".replace(
        "HERE", str(tmp_path)
    )


def test_a_table_names_agents_environments_and_limits(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    path, here = tmp_path / "agents.toml", str(tmp_path)
    for text, table in (
        ("", AgentTable({}, {}, "", HOUR)),
        (f"{ENVIRONMENT}1", AgentTable({}, {"a": arena.HostEnvironment(["x"], here, 1)}, "", HOUR)),
        (
            WHOLE,
            AgentTable(
                {"a": arena.Agent(["x", "-u"], f"{here}/agents")},
                {
                    "one": ["--env", f"truth={here}/t.zip", f"frames={here}/f", "size=3", "truth"],
                    "two": arena.HostEnvironment(["y"], f"{here}/agents"),
                    "three": arena.HostEnvironment(["y"], here, 65535),
                },
                f"{here}/data",
                ProcessLimits(seconds=5.0, memory=3 << 20, sandbox=True, processes=2),
                look_every=0.5,
                hidden=(f"{here}/a", "/b"),
            ),
        ),
    ):
        path.write_text(text)
        assert read_table(str(path)) == table
    path.write_text("")
    assert read_table(str(path), sandbox=True).limits.sandbox


# ── outcomes ────────────────────────────────────────────────────────────────

AGENT = arena.Agent(["agent"], "/agent")
ENVIRONMENTS = {"practice": ["--env", "x"], "secret": arena.HostEnvironment(["host"], "/host", 99)}
FAULTS: dict[str, Exception] = {
    "odd file": arena.SubmissionFileError("x is a link"), "host": HostError("no sandbox"), "defect": KeyError("x"), "stopped defect": KeyError("x"),
    "unreachable": requests.ConnectionError("nobody"), "away": OSError(errno.ENOSPC, "No space left on device"),
}  # fmt: skip


class Uploads:
    """A server with two challenges for agents, and what is played of their runs."""

    def __init__(self, server: Hosted) -> None:
        self.server, self.services = server, server.services
        host = self.services.accounts.find_user("host")
        assert host is not None
        self.host = host
        self.uploads = CodeUploads(self.services, AgentTable({"known": AGENT, "other": AGENT}, ENVIRONMENTS, "/data", hidden=("/hidden",)), "http://address", host)  # fmt: skip
        self.turn = server.turns[-1][1]
        self.docker = server.push("Docker", is_docker_based=True)
        self.static = server.push("Static", is_docker_based=True, is_static_dataset_code_upload=True)
        self.ending = ""
        self.number = 0
        self.called: list[Any] = []

    def send(self, challenge: int, index: int, image: str) -> int:
        self.number = self.server.send(
            challenge, self.server.phase(challenge, index), json.dumps({"submitted_image_uri": image}), "host"
        )
        return self.number

    def happen(self, *called: Any) -> None:
        self.called.append(called)
        assert self.services.submissions.get(self.number).status == "running"
        if self.ending == "reported":
            self.services.submissions.end(self.number, "finished")
        if self.ending in ("stop", "stopped defect"):
            self.uploads._stop.set()
        if self.ending in FAULTS:
            raise FAULTS[self.ending]

    def duel(self, agent: object, words: object, limits: object, variables: dict[str, str], hidden: object) -> Any:
        self.happen("duel", agent, words, variables, hidden)
        return SimpleNamespace(log="" if self.ending == "reported" else "the log")

    def duel_with_host(self, agent: object, environment: object, limits: object, variables: Any, hidden: object, ended: Any) -> Any:  # fmt: skip
        assert not ended()
        self.happen("duel with the host", agent, environment, variables, hidden)
        assert ended() == (self.ending == "stop")
        return SimpleNamespace(
            agent="" if self.ending == "stop" else "agent", environment="environment", sentence="It ended."
        )

    def run_static(self, agent: object, data: object, limits: object, look: object, take: Any, hidden: object) -> Any:
        self.happen("run", agent, data, look, hidden)
        if self.ending == "produced":
            product = self.server.folder / "submission.json"
            product.write_text("produced")
            take(str(product))
        taken = "submission.json" if self.ending == "produced" else None
        return SimpleNamespace(result={"taken": taken, "early": self.ending == "early"}, code=4, log="its log")

    def patch(self, url: str, **options: Any) -> Any:
        path = url.removeprefix("http://address")
        answer = self.server.stage.call(
            "PATCH", path, data=options["data"], files=options["files"], headers=options["headers"]
        )
        self.called.append(("sends", path, options["data"], answer.status_code))
        return SimpleNamespace(raise_for_status=lambda: self.called.append(("checks the answer",)))


@pytest.fixture(scope="module")
def module_uploads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Uploads]:
    with hosted_stage(tmp_path_factory.mktemp("agents")) as server:
        yield Uploads(server)


@pytest.fixture
def uploads(module_uploads: Uploads, monkeypatch: pytest.MonkeyPatch) -> Uploads:
    for name in ("duel", "duel_with_host", "run_static"):
        monkeypatch.setattr(arena, name, getattr(module_uploads, name))
    monkeypatch.setattr(code_uploads.requests, "patch", module_uploads.patch)
    module_uploads.server.clear()
    module_uploads.called.clear()
    module_uploads.uploads._stop.clear()
    return module_uploads


def end(uploads: Uploads, challenge: int, index: int, image: str, ending: str) -> tuple[Any, ...]:
    """Let an agent run to this ending; return the status and the texts of its submission, and the waits of its messages."""
    uploads.ending = ending
    number = uploads.send(challenge, index, image)
    try:
        assert uploads.turn()
    except (KeyError, OSError) as error:
        assert error is FAULTS[ending]
    return (*uploads.server.end_of(number), uploads.server.queued())


def stderr(text: str) -> dict[str, str]:
    return {"stderr": text}


@pytest.mark.parametrize(
    ("index", "image", "ending", "expected"),
    [
        (0, "unknown", "", ("failed", stderr("The image 'unknown' is not in the host's table, which has: known, other."), [])),
        (0, "known", "", ("failed", {**stderr("Submission Job Failed.\nthe log"), "environment_log": "the log"}, [])),
        (0, "known", "reported", ("finished", {}, [])),
        (0, "known", "odd file", ("failed", stderr("x is a link. Write a plain file."), [])),
        (0, "known", "host", ("failed", stderr("It could not be run, and it is not your fault: no sandbox"), [])),
        (0, "known", "defect", ("running", {}, [3600])),
        (0, "known", "away", ("running", {}, [3600])),
        (0, "known", "stop", ("submitted", {"environment_log": "the log"}, [0])),
        (0, "known", "stopped defect", ("submitted", {}, [0])),
        (1, "known", "", ("failed", stderr("The host's table has no environment for the phase final; tell the organisers."), [])),
        (2, "known", "", ("failed", {**stderr("Submission Job Failed. It ended.\nagent"), "environment_log": "environment"}, [])),
        (2, "other", "stop", ("submitted", {"environment_log": "environment"}, [0])),
    ],
)  # fmt: skip
def test_a_duel_ends_with_an_outcome(index: int, image: str, ending: str, expected: Any, uploads: Uploads) -> None:
    assert end(uploads, uploads.docker, index, image, ending) == expected
    assert uploads.uploads._hidden == ("/hidden", f"{uploads.server.folder}/data")
    if not uploads.called:
        return
    ((kind, agent, environment, variables, hidden),) = uploads.called
    usual = ("duel", ENVIRONMENTS["practice"]) if index == 0 else ("duel with the host", ENVIRONMENTS["secret"])
    assert ((kind, environment), agent, hidden) == (usual, AGENT, uploads.uploads._hidden)
    queue = uploads.services.store.require(Challenge, uploads.docker).queue
    assert uploads.server.settle(variables.pop("AUTH_TOKEN")) == "ID"
    assert json.loads(variables.pop("BODY")) == {
        "challenge_pk": str(uploads.docker), "phase_pk": str(uploads.server.phase(uploads.docker, index)),
        "is_static_dataset_code_upload_submission": False, "submission_pk": uploads.number, "submitted_image_uri": image,
    }  # fmt: skip
    assert variables == {"EVALAI_API_SERVER": "http://address", "QUEUE_NAME": queue}


NO_FILE = "wrote no submission.csv or submission.json.\nits log"


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        ("produced", ("submitted", {}, [0])),
        ("early", ("failed", stderr(f"The command ended with code 4 and {NO_FILE}"), [])),
        ("late", ("failed", stderr(f"The command ran for 3600 seconds and {NO_FILE}"), [])),
        ("unreachable", ("failed", stderr("It could not be run, and it is not your fault: nobody"), [])),
        ("stop", ("submitted", {}, [0])),
    ],
)
def test_a_run_on_data_ends_with_an_outcome(ending: str, expected: Any, uploads: Uploads) -> None:
    assert end(uploads, uploads.static, 0, "known", ending) == expected
    phase = str(uploads.server.phase(uploads.static))
    agent = arena.Agent(["agent"], "/agent", {"CHALLENGE_PK": str(uploads.static), "PHASE_PK": phase})
    path = f"/api/jobs/challenge/{uploads.static}/update_submission/"
    sent = ("sends", path, {"submission": uploads.number, "submission_status": "submitted"}, 200)
    run = ("run", agent, "/data", 1.0, uploads.uploads._hidden)
    assert uploads.called == [run, *([sent, ("checks the answer",)] if ending == "produced" else [])]


def test_a_table_without_data_runs_no_static_submission(uploads: Uploads) -> None:
    without = CodeUploads(uploads.services, AgentTable({"known": AGENT}, {}), "http://address", uploads.host)
    number = uploads.send(uploads.static, 0, "known")
    failed = ("failed", stderr("The host's table has no data folder for static submissions; tell the organisers."))
    without._turn()
    assert uploads.server.end_of(number) == failed
    queue = uploads.services.store.require(Challenge, uploads.static).queue
    uploads.services.queue.send(queue, {"submission_pk": 999, "submitted_image_uri": ""})
    without._turn()
    assert uploads.server.end_of(number) == failed
