"""What the commands of hosts print and write, with EvalAI and Codabench played on this machine, as one text.

    python -m tests.commands.hosts_transcript

writes it to `tests/golden/hosts_transcript.txt`, for changes that are meant to be seen: look at the difference. With a path it
writes it there.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from tests.builders import written
from tests.codabench_server import TOKEN, CodabenchServer, codabench_server
from tests.platforms.damages import Config, put, write_yaml
from tests.platforms.evalai.damaged_bundles import CONFIG, FILES
from tests.rehearsals import Rehearsal
from tests.scoring.mistakes import write_mistakes
from tests.transcript import run, settle, shorten

FILE = Path(__file__).resolve().parents[1] / "golden/hosts_transcript.txt"
#: What is typed, one after the other, in one folder; a line that begins with a colon says what happens between.
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
run own --python PYTHON
run odd --python PYTHON
run failing --python PYTHON
run remote --python PYTHON
run unshown --python PYTHON
check unshown --python PYTHON
run empty --python PYTHON
build own --out own.zip
check own.zip --quick
check own.zip --variant remote
check own --variant remote --starter
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
new mine --protocol davis2017 --truth truth.zip --title "Mine only"
new mine --protocol davis2017 --truth truth.zip
new other --protocol davis2017 --truth lost.zip
new other --protocol davis2107 --truth truth.zip
new other
host davis2017 --truth truth.zip --out other --build
check mine --quick
build mine --no-kernel --out mine.zip
run mine --python PYTHON
build mine --platform codabench --no-kernel --out competitions
build mine --platform codabench --no-kernel --out competitions --samples --hidden --image me/image --queue 01234567-89ab-cdef-0123-456789abcdef
check mine --platform codabench --no-kernel
check mine --platform codabench --no-kernel --quick --strict --image me/image
check mine --platform codabench --no-kernel --quick --json --image me/image
check competitions/val.zip --platform codabench
check odd.zip --platform codabench
check lost --platform codabench
check mine --bundle own --platform codabench
check damaged --platform codabench
check damaged --platform codabench --json
check damaged/competition.yaml --platform codabench
run mine --platform codabench --no-kernel --pages pages
run damaged --platform codabench
build mine --platform grand-challenge --out methods
build own --platform grand-challenge --out methods
build mine --platform kaggle
push own
push own --repository me/own --dry-run
:EvalAI runs
push own --repository me/own --dry-run
push own --repository me/own
push own --repository me/own --dry-run
push own --repository me/own
check own --quick
:the YAML of own has sponsors
push own --repository me/own
:the YAML of own has another leaderboard
check own --quick
push own --repository me/own
push own.zip --repository me/zip --variant remote
push own.zip --repository me/zip --no-kernel
push own --repository me/zip --environment-image me/image
push own.zip --repository me/zip
push odd --repository me/odd
push own --repository odd
push mine --repository me/mine --no-kernel
board 1 --out board
board 2 --out boards
board 99 --out boards
:the token is another
push own --repository me/own
check own --quick
:EvalAI has stopped
push own --repository me/own
check own --quick
board 2 --out boards
push mine --platform codabench --no-kernel --dry-run
push mine --platform codabench --no-kernel
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
rehearse --faults 7
rehearse --now yesterday
rehearse own --workers many
rehearse lost
completion bash
completion fish
completion zsh
completion csh
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
    "failing": "raise ValueError('no')",
    "unshown": """
        is_good = float(open(submission).read()) > 0.5
        return {"result": [{"dev": {"score": 1}} if is_good else {"other": {"score": 1, "loss": 0}}]}
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
#: A challenge with a phase for all, and one that is not public.
_CONFIG: Config = {
    **CONFIG,
    "evaluation_script": "evaluation_script.zip",
    "challenge_phases": [_PHASE, {**_PHASE, "id": 2, "name": "Closed", "codename": "closed", "is_public": False}],
    "challenge_phase_splits": [_ROW, {**_ROW, "challenge_phase_id": 2}],
}


def _write_config(name: str, config: Config) -> None:
    """Write the YAML as a host does."""
    text = yaml.safe_dump(yaml.safe_load(write_yaml(config)), sort_keys=False)
    Path(name, "challenge_config.yaml").write_text(text, encoding="utf-8")


def _write_bundles(folder: Path) -> None:
    """Write the bundles of other scorers, and a truth for those of Segjudge."""
    configs = {
        **dict.fromkeys(("own", "failing", "unshown", "empty"), _CONFIG),
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
        samples = {} if name == "empty" else {"examples/first/good.txt": b"0.75", "examples/first/poor.txt": b"0.25"}
        samples |= {"examples/closed/one.txt": b"0.5"} if name == "own" else {}
        written(folder / name, {**texts, **scripts, **samples})
        _write_config(name, config)
    (folder / "damaged").mkdir()
    written(folder / "damaged", {"competition.yaml": "version: 2\ntitle: x\n"})
    (folder / "files").mkdir()
    Path(write_mistakes("davis2017", folder / "files").truth).rename("truth.zip")


class _World:
    """What runs beside the commands, and what changes between them."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._evalai: Rehearsal | None = None
        self._codabench: CodabenchServer | None = None
        #: What is shown instead of addresses.
        self.names: dict[str, str] = {}

    def change(self, event: str) -> str:
        """Have something happen; return what was said of it."""
        actions: dict[str, Callable[[], str | None]] = {
            "EvalAI runs": self._start_evalai,
            "the YAML of own has sponsors": lambda: _write_config("own", put(_CONFIG, "sponsors", [_SPONSOR])),
            "the YAML of own has another leaderboard": lambda: _write_config(
                "own", put(_CONFIG, "leaderboard.0.id", 2)
            ),
            "the token is another": lambda: os.environ.update(EVALAI_TOKEN="0" * 40),
            "EvalAI has stopped": self._stop_evalai,
            "Codabench runs": self._start_codabench,
            "competitions/val.zip is another": lambda: run(
                "build mine --platform codabench --no-kernel --out competitions --quiet"
            ),
            "Codabench refuses what it gets": self._refuse,
        }
        return actions[event]() or ""

    def _start_evalai(self) -> str:
        options = ("--requests-per-minute", "10000", "--workers", "1", "--seed-demo")
        server = Rehearsal(self._folder / "rehearsal/data", options, bundle=self._folder / "own")
        server.data.parent.mkdir()
        self._evalai = server.start()
        host = server.people["host"]
        os.environ.update(EVALAI_HOST=server.address, EVALAI_TOKEN=host["token"], EVALAI_HOST_TEAM=host["team"])
        os.environ["GITHUB_REPOSITORY"] = "me/own"
        self.names[server.address] = "EVALAI"
        for number in (1, 2):
            server.settled(number)
        return server.said

    def _stop_evalai(self) -> None:
        if self._evalai is not None:
            self._evalai.stop()
            self._evalai = None

    def close(self) -> None:
        self._stop_evalai()

    def _start_codabench(self) -> None:
        self._codabench = self._stack.enter_context(codabench_server())
        self._codabench.looks = 0
        os.environ.update(CODABENCH_HOST=self._codabench.address, CODABENCH_TOKEN=TOKEN)
        self.names[self._codabench.address] = "CODABENCH"

    def _refuse(self) -> None:
        if self._codabench is not None:
            self._codabench.refusal = "It is odd"


@contextlib.contextmanager
def _own_environment(home: Path) -> Iterator[None]:
    """Leave out what the user's environment and home say of servers, and put it back."""
    before = dict(os.environ)
    for name in [
        name for name in before if name.startswith(("EVALAI_", "GITHUB_", "CODABENCH_", "XDG_", "SEGJUDGE_BUNDLE"))
    ]:
        del os.environ[name]
    os.environ["HOME"] = str(home)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def write_transcript() -> str:
    """Run the commands in a new folder; return all that they print and write."""
    here, texts = os.getcwd(), []
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="segjudge-")))
        stack.enter_context(contextlib.chdir(folder))
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="segjudge-"))
        stack.enter_context(_own_environment(Path(home)))
        _write_bundles(folder)
        world = stack.enter_context(contextlib.closing(_World(folder, stack)))
        for line in filter(None, COMMANDS.splitlines()):
            is_event = line.startswith(":")
            said = world.change(line[1:]) if is_event else run(line.replace("PYTHON", shlex.quote(sys.executable)))
            folders = dict.fromkeys((os.path.relpath(folder, here), str(folder)), "FOLDER")
            names = {sys.executable: "PYTHON", **folders, here: "CHECKOUT", **world.names}
            for value, name in names.items():
                said = said.replace(value, name)
            head = f"({line[1:]})" if is_event else f"$ segjudge {line}"
            texts.append(f"{head}\n{shorten(_settle(settle(said)))}\n")
    return "".join(texts)


#: What other runs, machines and Pythons say otherwise, with what is shown instead.
_OTHERWISE = {
    r"\b[\d.,]+ (s|kB|MB)\b": r"N \1",
    r"segjudge-[0-9a-z_]{8}\b": "segjudge-TEMPORARY",
    r"(\S-rehearsal-)[0-9a-f]{8}": r"\1ID",
    r"(?m)^ *[~^]+\n": "",
    r"127\.0\.0\.1-\d+-(\S+)-[0-9a-f]{8}": r"SERVER-\1-DIGEST",
    r"\bon Python 3\.\d+": "on Python 3.N",
    r"(?m)^(There is no sandbox|No sandbox|The kernel refuses no process|CPU is not limited|EvalAI has Python).*\n": "",
    r"Scored here by: .*?\)\.": "Scored here by: ….",
    r'(?m)^  File "CHECKOUT.*\n(    .*\n)*': "",
    r'File ".*?/segjudge-worker-': 'File "segjudge-worker-',
    # Whoever adds a benchmark, or a file of the scorers, need not think of this text.
    r"(generic )?davis2016(,? [\w.-]+){8,}": "PROTOCOLS",
    r"── \S*evaluation_script/\S+ ──\n\(not shown\)\n?": "",
    r"CHECKOUT/\.environments/\S+/bin/python": "PYTHON",
}


def _settle(text: str) -> str:
    for pattern, shown in _OTHERWISE.items():
        text = re.sub(pattern, shown, text)
    return text


if __name__ == "__main__":
    os.environ.pop("FORCE_COLOR", None)
    os.environ["COLUMNS"] = "100"  # as wide as the test's terminal
    if sys.argv[1:]:
        Path(sys.argv[1]).resolve().write_text(write_transcript(), encoding="utf-8")
    else:
        FILE.write_text(write_transcript(), encoding="utf-8")
