"""EvalAI's code upload on a laptop: agents that the host knows, run against the host's environments, without AWS.

Only commands that the host wrote into a table are run; participants send the name of an image, a key of that table.
"""

import json
import os
import sys
from dataclasses import dataclass, field

import requests

from segjudge.code_upload import PORT, arena
from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.rows import CANCELLED, FAILED, FINISHED
from segjudge.system.extras import require_extra
from segjudge.system.sandbox import MEMORY, PROCESSES, ProcessLimits

from .background import Background
from .models import Challenge, Submission, User
from .services import Services
from .store import outage_of, unless_away
from .submissions import ReceivedMessage

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_ENDED = (FINISHED, FAILED, CANCELLED)
#: The keys of the table, and the kinds of their values.
_KINDS: dict[str, type] = {
    "images": dict, "environments": dict, "data": str, "seconds": float, "memory_mb": int, "processes": int,
    "look_every": float, "sandbox": bool, "hidden": list,
}  # fmt: skip
_EXAMPLE = '[images."team/name:1"] with command = ["python", "agent.py"] and folder = "…"'


@dataclass(frozen=True)
class AgentTable:
    """`agents.toml`: the commands of images, and the environments of phases."""

    images: dict[str, arena.Agent]
    #: Phase codename -> the command line of our environment, or the host's own environment.
    environments: dict[str, list[str] | arena.HostEnvironment]
    #: The folder at /dataset for static submissions.
    data: str = ""
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    look_every: float = 1.0
    #: Files and folders that agents cannot see in a sandbox.
    hidden: tuple[str, ...] = ()


def read_table(path: str, *, sandbox: bool = False) -> AgentTable:
    """Return the host's table; folders and paths are relative to it.  Raises HostError if it is wrong."""
    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise HostError(f"{path}: cannot be read ({error})") from None
    unknown = sorted(set(table) - set(_KINDS))
    if unknown:
        raise HostError(f"{path}: has {unknown[0]!r}, which is not a known key")
    for key, kind in _KINDS.items():
        if not isinstance(table.get(key, kind()), (int, float) if kind is float else kind):
            raise HostError(f"{path}: {key} is {table[key]!r}, which is not of the type {kind.__name__}")
    home = os.path.dirname(os.path.abspath(path))
    images = {name: _make_agent(path, home, name, entry) for name, entry in table.get("images", {}).items()}
    environments: dict[str, list[str] | arena.HostEnvironment] = {}
    for phase, phase_command in table.get("environments", {}).items():
        if isinstance(phase_command, dict):
            agent = _make_agent(path, home, f"environments.{phase}", phase_command)
            port = phase_command.get("port", PORT)
            if not isinstance(port, int) or not 0 < port < 1 << 16:
                raise HostError(f"{path}: environments.{phase} has the port {port!r}, which is not between 1 and 65535")
            environments[phase] = arena.HostEnvironment(agent.command, agent.folder, port)
            continue
        if not isinstance(phase_command, list) or not all(isinstance(word, str) for word in phase_command):
            raise HostError(f'{path}: environments.{phase} is not a list of words such as ["--env", "…"]')
        environments[phase] = [_with_path(home, word) for word in phase_command]
    if any(isinstance(phase_command, list) for phase_command in environments.values()):
        require_extra("agents", "rehearse --agents", "rehearse --agents")
    limits = ProcessLimits(
        seconds=float(table.get("seconds", ProcessLimits.seconds)),
        memory=int(table.get("memory_mb", MEMORY >> 20)) << 20,
        sandbox=sandbox or bool(table.get("sandbox", False)),
        processes=int(table.get("processes", PROCESSES)),
    )
    data = os.path.join(home, table["data"]) if table.get("data") else ""
    hidden = tuple(os.path.join(home, name) for name in table.get("hidden", []))
    return AgentTable(images, environments, data, limits, float(table.get("look_every", 1.0)), hidden)


def _make_agent(path: str, home: str, name: str, entry: object) -> arena.Agent:
    entry = entry if isinstance(entry, dict) else {}
    command = entry.get("command")
    if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
        raise HostError(f"{path}: the image {name!r} does not have the form {_EXAMPLE}")
    folder = os.path.join(home, str(entry.get("folder", "")))
    if not os.path.isdir(folder):
        raise HostError(f"{path}: the folder of the image {name!r}, {folder}, does not exist")
    return arena.Agent(arena.replace_python(command), os.path.abspath(folder))


def _with_path(home: str, word: str) -> str:
    """Return `truth=annotations/x.zip` with a path from the table's folder."""
    name, equals, value = word.partition("=")
    return f"{name}={os.path.join(home, value)}" if equals and name in ("truth", "frames") else word


class CodeUploads(Background):
    """A thread that receives code uploads from the queues and runs them, one after the other.

    After a stop, an environment's reports fail because the server has ended; such failures are ignored.
    """

    STOP_SECONDS = 10.0

    def __init__(self, services: Services, table: AgentTable, address: str, host: User) -> None:
        super().__init__(services.store, "code uploads")
        self._services, self._table, self._address, self._host = services, table, address, host
        # An agent's folder may contain ours.
        self._hidden = (*table.hidden, services.store.folder)
        self._add(self._turn)

    def _interrupt(self) -> None:
        arena.end_all()

    def _turn(self) -> bool:
        for challenge in self._services.store.find(Challenge):
            if not challenge.flag("is_docker_based") or challenge.flag("remote_evaluation"):
                continue
            message = self._services.queue.receive(challenge.queue, hosted=False)
            if message is not None:
                self._answer(challenge, message)
                return True
        return False

    def _answer(self, challenge: Challenge, message: ReceivedMessage) -> None:
        submission = self._services.submissions.of_message(challenge.queue, message)
        if submission is None:
            return
        if submission.status not in _ENDED:
            try:
                failure = self._run_submission(challenge, submission, message)
            except Exception:
                if not self._stop.is_set():
                    raise
                failure = ""
            row_after = self._services.submissions.get(submission.id)
            produced = challenge.flag("is_static_dataset_code_upload") and row_after.submission_input_file is not None
            if self._stop.is_set() and row_after.status not in _ENDED and not produced:
                self._services.submissions.give_back(submission.id, challenge.queue, message.handle)
                return
            if failure and row_after.status not in _ENDED:
                self._retry_during_outages(lambda: self._services.submissions.fail(submission.id, failure))
        self._retry_during_outages(lambda: self._services.queue.delete(challenge.queue, message.handle))

    def _run_submission(self, challenge: Challenge, submission: Submission, message: ReceivedMessage) -> str:
        """Run a submission, and return why it failed if nobody has reported that to the server."""
        image = str(message.body.get("submitted_image_uri", ""))
        agent = self._table.images.get(image)
        if agent is None:
            names = ", ".join(sorted(self._table.images)) or "none"
            return f"The image {image[:200]!r} is not in the host's table, which has: {names}."
        if not self._services.submissions.begin(submission.id):
            return ""
        token = self._services.accounts.mint_token(self._host, "profile")[0]
        try:
            if challenge.flag("is_static_dataset_code_upload"):
                return self._run_static(challenge, submission, agent, token)
            return self._run_duel(submission, agent, message, token)
        except arena.SubmissionFileError as error:
            return f"{error}. Write a plain file."
        except (HostError, OSError, requests.RequestException) as error:
            if outage_of(error) is not None:
                raise  # the message returns, and it runs then
            return f"It could not be run, and it is not your fault: {error}"

    def _run_duel(self, submission: Submission, agent: arena.Agent, message: ReceivedMessage, token: str) -> str:
        phase = self._services.submissions.phase_of(submission).codename
        command = self._table.environments.get(phase)
        if command is None:
            return f"The host's table has no environment for the phase {phase}; tell the organisers."
        variables = {
            "AUTH_TOKEN": token, "EVALAI_API_SERVER": self._address, "BODY": json.dumps(message.body),
            "QUEUE_NAME": self._services.submissions.challenge_of(submission).queue,
        }  # fmt: skip
        if isinstance(command, arena.HostEnvironment):
            return self._host_duel(submission, agent, command, variables)
        run = arena.duel(agent, command, self._table.limits, variables, self._hidden)
        self._services.submissions.keep_texts(submission.id, environment_log_file=run.log)
        return "Submission Job Failed." + (f"\n{run.log}" if run.log else "")

    def _host_duel(
        self, submission: Submission, agent: arena.Agent, environment: arena.HostEnvironment, variables: dict[str, str]
    ) -> str:
        def has_ended() -> bool:
            row = unless_away(lambda: self._services.submissions.get(submission.id))
            return self._stop.is_set() or (row is not None and row.status in _ENDED)

        logs = arena.duel_with_host(agent, environment, self._table.limits, variables, self._hidden, has_ended)
        self._services.submissions.keep_texts(submission.id, environment_log_file=logs.environment)
        return f"Submission Job Failed. {logs.sentence}" + (f"\n{logs.agent}" if logs.agent else "")

    def _run_static(self, challenge: Challenge, submission: Submission, agent: arena.Agent, token: str) -> str:
        if not self._table.data:
            return "The host's table has no data folder for static submissions; tell the organisers."

        def upload(path: str) -> None:
            """Upload a file as EvalAI's sidecar does."""
            with open(path, "rb") as file:
                requests.patch(
                    self._address + routes.path(routes.UPDATE_SUBMISSION, challenge=challenge.id),
                    data={"submission": submission.id, "submission_status": "submitted"},
                    files={"submission_input_file": (os.path.basename(path), file)},
                    headers={"Authorization": f"Bearer {token}"},
                    timeout=120,
                ).raise_for_status()

        variables = {"CHALLENGE_PK": str(challenge.id), "PHASE_PK": str(submission.phase_id)}
        run = arena.run_static(
            arena.Agent(agent.command, agent.folder, variables),
            self._table.data, self._table.limits, self._table.look_every, upload, self._hidden,
        )  # fmt: skip
        if (run.result or {})["taken"] is None:
            ended_early = (run.result or {})["early"]
            how = f"ended with code {run.code}" if ended_early else f"ran for {self._table.limits.seconds:.0f} seconds"
            return f"The command {how} and wrote no submission.csv or submission.json.\n{run.log}"
        return ""
