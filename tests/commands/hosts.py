"""The output and files of hosts' commands, with simulated EvalAI, Codabench and compilers."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Self
from unittest.mock import patch

import yaml

from segjudge.commands.shared import be_quiet
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.scoring import VERSION
from segjudge.kernel import compiling
from segjudge.platforms.codabench import trial as codabench_trial
from segjudge.platforms.evalai import boards
from segjudge.platforms.evalai.bundle import build, push, trial
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
from segjudge.platforms.evalai.bundle.server_state import ServerState
from segjudge.platforms.evalai.client import ApiError
from segjudge.platforms.evalai.hosted_worker import interpreter
from segjudge.platforms.rules.problems import BundleProblem, warning
from segjudge.report.boards import Board
from tests.answers import Book, join_json, write_answers
from tests.builders import written
from tests.codabench_server import TOKEN, CodabenchServer, codabench_server
from tests.platforms.damages import Config, put, write_yaml
from tests.platforms.evalai.bundles import CONFIG, FILES
from tests.scoring.mistakes import write_mistakes
from tests.transcript import run, settle, shorten

FOLDER = Path(__file__).with_name("hosting")
#: Command lines, run one after the other in one folder; a line that begins with a colon names an event between.
COMMANDS = """
check own --quick
check own --quick --strict
check own --quick --json
check own --starter --quick --strict
check odd --quick
check odd --quick --json
check lost --quick
check .
check own --bundle odd
run mixed --python PYTHON
run odd --python PYTHON
run remote --python PYTHON
build own --out own.zip
check own.zip --quick
check own.zip --variant remote
check own --variant remote --starter
check own --variant remote --quick
build own.zip
build own --variant remote --out remote.zip
build own --variant code-upload --environment-image me/image --out code.zip
build own --environment-image me/image
build own --variant nothing
build own --kernel
build odd --out odd.zip
build odd --platform codabench
build own --platform codabench
schema --out schema.json
:own is a git checkout
check own --starter --quick --strict
check own --starter --quick --json
:trials are played
check own --python PYTHON
check own --python PYTHON --strict
check own --python PYTHON --json
check odd --python PYTHON
:this Python is EvalAI's
check own --python PYTHON
host davis2017 --truth truth.zip --out mine --title "Mine only" --build
new mine --protocol davis2017 --truth truth.zip
new other --protocol davis2017 --truth lost.zip
new other --protocol davis2107 --truth truth.zip
new other
new other --family mine --title Mine
new other --demo --truth truth.zip
:mine names another Segjudge
build mine --no-kernel --out mine.zip
:mine names this Segjudge
:no kernel can be compiled
build mine --no-kernel --out mine.zip
build mine --kernel --out mine.zip
:the kernel can be compiled
build mine --kernel --out mine.zip
build mine --platform codabench --kernel --out competitions
build mine --platform codabench --no-kernel --out competitions --samples --hidden --image me/image --queue 01234567-89ab-cdef-0123-456789abcdef
:Codabench's worker is played
check mine --platform codabench --no-kernel --image me/image
check mine --platform codabench --no-kernel --image me/image --json --strict
check competitions/val.zip --platform codabench
check odd.zip --platform codabench
check lost --platform codabench
check own/truth.txt --platform codabench
check competitions/val.zip --platform codabench --strict
check odd/challenge_config.yaml --platform codabench
check mine --bundle own --platform codabench
check damaged --platform codabench
check damaged --platform codabench --json
check damaged/competition.yaml --platform codabench
run mine --platform codabench --no-kernel --image me/image --pages pages
run competitions/val.zip --platform codabench
run competitions/val.zip --platform codabench --submission mine/examples/val/good.zip
:there is no sandbox
run damaged --platform codabench
build own --platform grand-challenge --out methods
build mine --platform kaggle
push own
:EvalAI is played
push own --dry-run
push own
push own --dry-run
check own --quick
:the YAML of own has sponsors
push own
:EvalAI refuses what it gets
push own
:EvalAI takes what it gets
push own.zip --repository me/zip
push own.zip --variant remote
push own.zip --no-kernel
push own --environment-image me/image
push own --variant remote --repository me/remote
push odd --repository me/odd
push own --repository odd
:no kernel can be compiled
push mine --repository me/mine --dry-run
push own --repository me/own --kernel
:what is pushed cannot be noted
push own
board 1 --out board
:board/index.html is read
board 2 --out boards
board 2 --out board --as-host
board 2 --out board
board 99 --out boards
:the token is gone
board 1 --out boards
board 1 --out boards --as-host
check own --quick
:EvalAI has stopped
check own --quick
push own
push competitions/val.zip --platform codabench --dry-run
push competitions/val.zip --platform codabench
:Codabench runs
push competitions --platform codabench
push competitions/val.zip --platform codabench
push competitions/val.zip --platform codabench
:competitions/val.zip is another
push competitions/val.zip --platform codabench
:Codabench refuses what it gets
push competitions/val.zip --platform codabench --again
push damaged --platform codabench
worker --print service
worker --print dockerfile
worker --print compose
worker --print nothing
:the worker's process is played
worker
worker --bundle own --evaluate x.py --python p --check --once --jobs 3
:EvalAI's worker is played
run mine
run mine.zip
:its log has an incident
run mine
rehearse own --workers many
rehearse lost
chekc
score --trut x
score a --truth
score a --truth truth.zip --protocol davis2017 --jobs 0
score a --truth truth.zip --protocol davis2017 --part 3/2
merge
interactive serve --port 99999
arena
board
"""
_SCRIPTS = {
    "own": """
        value = float(open(submission).read())
        return {"result": [{"dev": {"score": value, "loss": 1 - value}}]}
    """,
    "mixed": """
        value = float(open(submission).read())
        if value < 0.3:
            raise ValueError("no")
        return {"result": [{"dev": {"score": value, "loss": 1}} if value > 0.5 else {"other": {"score": 1, "loss": 0}}]}
    """,
}
_SPONSOR = {"name": "a", "website": "https://a.org"}
_PHASE = {
    **CONFIG["challenge_phases"][0],
    "is_public": True,
    "leaderboard_public": True,
    "submission_meta_attributes": None,
}
_ROW = CONFIG["challenge_phase_splits"][0]
#: A challenge with one public phase and one that is not public.
_CONFIG: Config = {
    **CONFIG,
    "evaluation_script": "evaluation_script.zip",
    "challenge_phases": [_PHASE, {**_PHASE, "id": 2, "name": "Closed", "codename": "closed", "is_public": False}],
    "challenge_phase_splits": [_ROW, {**_ROW, "challenge_phase_id": 2}],
}


# ── the bundles ─────────────────────────────────────────────────────────────


def _write_config(name: str, config: Config) -> None:
    """Write a host's YAML."""
    text = yaml.safe_dump(yaml.safe_load(write_yaml(config)), sort_keys=False)
    Path(name, "challenge_config.yaml").write_text(text, encoding="utf-8")


def add_sponsors() -> None:
    _write_config("own", put(_CONFIG, "sponsors", [_SPONSOR]))


def _write_bundles(folder: Path) -> None:
    """Write the bundles of other scorers, and a truth for those of Segjudge."""
    configs = {
        "own": _CONFIG,
        "mixed": _CONFIG,
        "odd": put(_CONFIG, "challenge_phases.0.codename", None),
        "remote": put(_CONFIG, "remote_evaluation", True),
    }
    texts = {name: FILES[name] for name in ("text.html", "logo.png", "truth.txt")}
    for name, config in configs.items():
        (folder / name).mkdir()
        body = textwrap.indent(textwrap.dedent(_SCRIPTS.get(name, _SCRIPTS["own"])), "    ")
        scripts = {
            "evaluation_script/__init__.py": "from .main import evaluate\n",
            "evaluation_script/main.py": f"def evaluate(truth, submission, phase, **_):\n{body}\n",
        }
        samples = {"examples/first/good.txt": b"0.75", "examples/first/poor.txt": b"0.25"}
        samples |= {"examples/closed/one.txt": b"0.5"} if name == "own" else {}
        samples |= {"examples/first/best.txt": b"0.9", "examples/first/last.txt": b"0.4"} if name == "mixed" else {}
        written(folder / name, {**texts, **scripts, **samples})
        _write_config(name, config)
    (folder / "damaged").mkdir()
    written(folder / "damaged", {"competition.yaml": "version: 2\ntitle: x\n"})
    (folder / "files").mkdir()
    Path(write_mistakes("davis2017", folder / "files").truth).rename("truth.zip")


# ── what is played ──────────────────────────────────────────────────────────


class _EvalAI:
    """A server that accepts every push, unless configured otherwise."""

    challenges: ClassVar[dict[str, int]] = {}
    fault = refusal = ""

    def __init__(self, _settings: object, repository: str) -> None:
        self._repository = repository

    def fetch_challenge(self) -> dict[str, Any] | None:
        if self.fault:
            raise HostError(self.fault)
        number = self.challenges.get(self._repository)
        return {"id": number} if number else None

    def fetch_state(self, last_push: ServerState | None, _challenge: object = None) -> ServerState | None:
        return last_push if self.fetch_challenge() else None

    def describe_challenge(self, number: int) -> str:
        return f"challenge {number} of {self._repository}"

    def validate(self, bundle: str) -> str:
        if self.refusal:
            raise push.RejectedError({"error": self.refusal})
        with zipfile.ZipFile(bundle) as archive:
            return f"{Path(bundle).name} has {len(archive.namelist())} files"

    def create_or_update(self, bundle: str) -> push.PushedChallenge:
        number = self.challenges.setdefault(self._repository, len(self.challenges) + 1)
        phases = {"closed": 4, "lost": 9, "first": 3}
        queue = f"queue-{number}" if number < 3 else ""
        return push.PushedChallenge(f"Took {Path(bundle).name}", number, queue, phases, approved=number > 1)


def _fetch_boards(_address: str, challenge: int) -> tuple[str, list[Board]]:
    if challenge > 9:
        raise ApiError(404, f"there is no challenge {challenge}")
    row = {"rank": 1, "team": "=1+1", "method": "-x", "score": 0.123456789, "submitted": "2026-01-02"}
    rows = [row, {**row, "rank": 2, "team": "+a", "method": "@b", "score": -0.5}, {**row, "team": "", "method": "a=b"}]
    many = [Board(5, "First / Dev", "score", 2, rows), Board(7, "Closed / Dev", "loss", 3, [])]
    return "Small <nobody>", many if challenge == 1 else many[:1]


def _fetch_boards_of_host(address: str, token: str, challenge: int) -> tuple[str, list[Board]]:
    _, shown = _fetch_boards(address, challenge)
    return f"Small <{token}>", [*shown, replace(shown[0], number=8, name="First / Hard", hidden=True)]


@dataclass(frozen=True)
class _Run:
    phase: str
    sample: str
    outcome: codabench_trial.ScoredSubmission
    problems: list[BundleProblem]

    def __str__(self) -> str:
        return f"{self.phase} ← {self.sample}"


class _HostedWorker:
    """A simulated EvalAI worker, which scores the good sample and fails on the others."""

    output = "a warning"

    def __init__(self, bundle: str, python: interpreter.Interpreter, notice: Callable[[str], object]) -> None:
        notice(f"{python.path} plays the worker.")
        with Bundle(bundle) as opened:
            self.config = opened.config
        self._events = [self.output]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def load(self) -> None:
        self._events.append("loaded")

    def log(self) -> str:
        return "\n".join(self._events) if self.output else ""

    def evaluate(self, phase: dict[str, Any], path: str, number: int) -> trial.SubmissionOutcome:
        labels = self.config["leaderboard"][0]["schema"]["labels"]
        self._events.append(f"{number} {phase['codename']} {Path(path).name}")
        if number > 1:
            return trial.SubmissionOutcome("failed", "", "one line\nanother")
        scores = dict.fromkeys(labels[:-1], 0.25)
        return trial.SubmissionOutcome("finished", "", "", {"val": scores}, {"val": 3}, {"val": labels[1:3]})


class _Trial:
    """A simulated Codabench worker, which ends each sample differently."""

    columns = ("a", "b")
    ascending = frozenset({"a"})

    def __init__(self, _bundle: object, worker: object) -> None:
        assert isinstance(worker, codabench_trial.ComputeWorker)

    def solutions(self) -> dict[str, list[str]]:
        return {"P": []}

    def run(self, samples: dict[str, list[str]]) -> Iterator[_Run]:
        made = codabench_trial.ScoredSubmission
        outcomes = (
            made("Finished", scores={"a": Decimal("0.25"), "b": Decimal(2)}, seconds=1.2345, page="<p>good"),
            made("Failed", "It is odd", stderr="line 1\nline 2\n", log="ground truth\n\n"),
            made("Failed", "first\nlast"),
            made("Finished", scores={"a": Decimal("0.125"), "b": Decimal(3)}),
        )
        results = [[warning("b", "is late", "Be early", 5)], [], [], []]
        paths = [(phase, os.path.basename(path)) for phase, listed in samples.items() for path in (*listed, *listed)]
        for (phase, name), number, outcome, problems in zip(paths, range(4), outcomes, results, strict=False):
            yield _Run(phase, f"{number}-{name}", outcome, problems)


def _try_requirements(root: str, bundle: str) -> Iterator[BundleProblem]:
    raise trial.UntriedError(f"pip, of {root} and {Path(bundle).name}")
    yield


def _try_samples(root: str, bundle: str, python: interpreter.Interpreter) -> Iterator[BundleProblem]:
    yield warning("one.txt", f"is poor \x1b[2J in {root}, {Path(bundle).name} on {python.path}", "Mend it", 61)


class _World:
    """The simulated services, and the changes between commands."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._codabench: CodabenchServer | None = None
        #: The text shown instead of addresses.
        self.names: dict[str, str] = {}
        _EvalAI.challenges, _EvalAI.fault, _EvalAI.refusal = {}, "", ""

    def change(self, event: str) -> str:
        """Trigger an event; return its messages."""
        actions: dict[str, Callable[[], object]] = {
            "own is a git checkout": _make_checkout,
            "trials are played": lambda: self._patch(
                trial, try_requirements=_try_requirements, try_samples=_try_samples
            ),
            "this Python is EvalAI's": lambda: self._patch(
                interpreter, PINNED_PYTHON=interpreter.Interpreter.open(sys.executable).version
            ),
            "mine names another Segjudge": lambda: _rename(VERSION, "0.0.1"),
            "mine names this Segjudge": lambda: _rename("0.0.1", VERSION),
            "no kernel can be compiled": lambda: self._play_compiler(compiling.CompileError("no compiler")),
            "the kernel can be compiled": lambda: self._play_compiler(None),
            "Codabench's worker is played": lambda: (
                self._patch(codabench_trial, CompetitionTrial=_Trial),
                self._patch(codabench_trial.ComputeWorker, is_boxed=True, missing_bounds=lambda _: ["CPU is free."]),
            ),
            "there is no sandbox": lambda: self._patch(codabench_trial.ComputeWorker, is_boxed=False),
            "EvalAI is played": self._play_evalai,
            "EvalAI refuses what it gets": lambda: setattr(_EvalAI, "refusal", "ERROR: Leaderboard 1 is odd\nSo it is"),
            "EvalAI takes what it gets": lambda: setattr(_EvalAI, "refusal", ""),
            "EvalAI has stopped": lambda: (
                setattr(_EvalAI, "fault", "EvalAI does not answer"),
                os.environ.update(EVALAI_TOKEN="token"),
            ),
            "the YAML of own has sponsors": add_sponsors,
            "what is pushed cannot be noted": lambda: self._patch(ServerState, save=_refuse_to_save),
            "board/index.html is read": lambda: _read_page(Path("board/index.html")),
            "the token is gone": lambda: os.environ.pop("EVALAI_TOKEN"),
            "the worker's process is played": lambda: self._patch(os, execve=_become),
            "EvalAI's worker is played": lambda: self._patch(trial, open_hosted_worker=_HostedWorker),
            "its log has an incident": lambda: self._patch(_HostedWorker, output="incident 12"),
            "Codabench runs": self._start_codabench,
            "competitions/val.zip is another": _add_file,
            "Codabench refuses what it gets": lambda: setattr(self._codabench, "refusal", "It is odd"),
        }
        output = actions[event]()
        return output if isinstance(output, str) else ""

    def _patch(self, target: Any, **changes: Any) -> None:
        self._stack.enter_context(patch.multiple(target, **changes))

    def _play_compiler(self, error: Exception | None) -> None:
        def compile_for_worker() -> None:
            if error:
                raise error

        self._patch(compiling, find_for_worker=lambda: None, compile_for_worker=compile_for_worker)
        self._patch(build, find_for_worker=lambda: None)

    def _play_evalai(self) -> None:
        values = {"HOST": "https://evalai.example", "TOKEN": "token", "HOST_TEAM": "1"}
        os.environ.update({f"EVALAI_{name}": value for name, value in values.items()}, GITHUB_REPOSITORY="me/own")
        self._patch(push, ChallengePush=_EvalAI)
        self._patch(boards, fetch_boards=_fetch_boards, fetch_boards_of_host=_fetch_boards_of_host)

    def _start_codabench(self) -> None:
        self._codabench = start_codabench(self._stack, self.names)


def _make_checkout() -> None:
    Path("own/dist").mkdir(exist_ok=True)
    written(Path("own"), {"notes.py": "", ".hidden": "", "__pycache__/a.pyc": ""})
    for arguments in (["init", "-q"], ["add", "-A", "-f"]):
        subprocess.run(["git", "-C", "own", *arguments], check=True, capture_output=True)


def _read_page(path: Path) -> str:
    """Return the text of a page without styles and scripts."""
    text = re.sub(r"(?s)<(style|script)\b.*?</\1>", "", path.read_text("utf-8"))
    return "\n".join(filter(None, map(str.strip, re.sub(r"<[^>]*>", "\n", text).splitlines())))


def _become(program: str, arguments: list[str], environment: dict[str, str]) -> NoReturn:
    print(program, *arguments, f"PYTHONPATH={environment['PYTHONPATH']}", len(environment) - len(os.environ))
    raise SystemExit(7)


def _rename(before: str, after: str) -> None:
    file = Path("mine/requirements.txt")
    file.write_text(file.read_text().replace(before, after))


def _add_file() -> None:
    with zipfile.ZipFile("competitions/val.zip", "a") as archive:
        archive.writestr("notes.txt", "another one")


def _refuse_to_save(*_: object) -> None:
    raise OSError(28, "No space left on device")


# ── the text ────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def new_host() -> Iterator[Path]:
    """Work in a new folder with the bundles, without the user's settings about servers."""
    private = ("PYTHONPATH", "EVALAI_", "GITHUB_", "CODABENCH_", "XDG_", "SEGJUDGE_BUNDLE", "FORCE_COLOR")
    with (
        tempfile.TemporaryDirectory(prefix="segjudge-") as folder, contextlib.chdir(folder),
        tempfile.TemporaryDirectory(prefix="segjudge-") as home, patch.dict(os.environ),
    ):  # fmt: skip
        for name in [name for name in os.environ if name.startswith(private)]:
            del os.environ[name]
        os.environ.update(HOME=home, COLUMNS="100")
        _write_bundles(Path(folder))
        yield Path(folder)


def start_codabench(stack: contextlib.ExitStack, names: dict[str, str]) -> CodabenchServer:
    """Start Codabench until the stack ends, and let commands use it; `names` replaces its address in output."""
    server = stack.enter_context(codabench_server())
    server.looks = 0
    os.environ.update(CODABENCH_HOST=server.address, CODABENCH_TOKEN=TOKEN)
    names[server.address] = "CODABENCH"
    return server


def play(
    commands: str, change: Callable[[str], str], names: dict[str, str], leave_out: str = r"\A\Z"
) -> dict[str, str]:
    """Run the commands in this folder; return output, files except `leave_out`, and messages between them."""
    folder, book = os.getcwd(), Book()
    be_quiet(False)
    for line in filter(None, commands.splitlines()):
        is_event = line.startswith(":")
        output = change(line[1:]) if is_event else run(line.replace("PYTHON", shlex.quote(sys.executable)))
        paths = {os.path.relpath(folder, _ROOT): "FOLDER", folder: "FOLDER", os.path.realpath(sys.executable): "PYTHON"}
        for value, name in {sys.executable: "PYTHON", **paths, _ROOT: "CHECKOUT", **names}.items():
            output = output.replace(value, name)
        output = shorten(join_json(re.sub(leave_out, "", _settle(settle(output)))))
        if is_event and not output.strip():
            book.happen(line[1:])
        elif is_event:
            book.add("events", line[1:], output)
        else:
            book.add(line.split()[0], f"segjudge {line}", output)
    return book.texts()


_ROOT = str(Path(__file__).resolve().parents[2])
#: Texts that differ between runs, machines and Pythons → the text shown instead.
_OTHERWISE = {
    r"\b\d{1,3}\.\d\d s\b": "N s",
    r"\b[\d.,]+ (kB|MB)\b": r"N \1",
    r"with(out)? kernel( \(`segjudge build --kernel` compiles it\))?": "with or without kernel",
    r'("kernel"): (true|false)': r"\1: …",
    r"segjudge-[0-9a-z_]{8}\b": "segjudge-TEMPORARY",
    r"(\S-rehearsal-)[0-9a-f]{8}": r"\1ID",
    r"(?m)^ *[~^]+\n": "",
    r"127\.0\.0\.1-\d+-(\S+)-[0-9a-f]{8}": r"SERVER-\1-DIGEST",
    r"\bon Python 3\.\d+": "on Python 3.N",
    r"(?m)^ +[\d,]+(  \S+\.zip)$": r"           N\1",
    r"(?m)^(No sandbox|The kernel does not limit processes|CPU is not limited|EvalAI uses Python).*\n": "",
    r"processes=(?!5\b)\d+": "processes=N",  # depends on the number of cores
    r"Scored here by: .*?\)\.": "Scored here by: ….",
    r'(?m)^  File "CHECKOUT.*\n(    .*\n)*': "",
    r"(?m)^(ProtectHome)=.*": r"\1=…",  # depends on the checkout's path
    r'File ".*?/segjudge-worker-': 'File "segjudge-worker-',
    # A new benchmark, or a new file of the scorers, does not change this text.
    rf"(generic )?{next(iter(PROTOCOLS))}(,? [\w.-]+){{8,}}": "PROTOCOLS",
    r"── \S*evaluation_script/\S+ ──\n\(not shown\)\n?": "",
    r"CHECKOUT/\.environments/\S+/bin/python": "PYTHON",
}


def _settle(text: str) -> str:
    for pattern, shown in _OTHERWISE.items():
        text = re.sub(pattern, shown, text)
    return text


def write_hosts() -> dict[str, str]:
    """Run the commands in a new folder; return everything that they print and write."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(new_host())
        world = _World(stack)
        return play(COMMANDS, world.change, world.names)


if __name__ == "__main__":
    write_answers(Path(sys.argv[1]).resolve() if sys.argv[1:] else FOLDER, write_hosts())
