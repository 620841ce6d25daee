"""The output and files of hosts' commands, with EvalAI, Codabench and their workers simulated on this machine.

With a folder as argument, the module writes there. `hosts` has the commands that need no server and no worker.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from tests.answers import write_answers
from tests.rehearsals import Rehearsal
from tests.transcript import run

from .hosts import add_sponsors, change_leaderboard, new_host, play, start_codabench

FOLDER = Path(__file__).resolve().parent / "serving"
#: Command lines, run one after the other in one folder; a line that begins with a colon names an event between.
COMMANDS = """
run own --python PYTHON
run failing --python PYTHON
run unshown --python PYTHON
check unshown --python PYTHON
run empty --python PYTHON
:mine is a new challenge of davis2017
check mine --quick
run mine --python PYTHON
build mine --platform codabench --no-kernel --out competitions
check mine --platform codabench --no-kernel
run mine --platform codabench --no-kernel --pages pages
build mine --platform grand-challenge --out methods
:EvalAI runs
push own --dry-run
push own
push own --dry-run
push own
check own --quick
:the YAML of own has sponsors
push own
:the YAML of own has another leaderboard
check own --quick
push own
push mine --repository me/mine --no-kernel
board 1 --out board
board 2 --out boards
board 99 --out boards
:the token is another
push own
check own --quick
:EvalAI has stopped
push own
check own --quick
board 2 --out boards
push mine --platform codabench --no-kernel --dry-run
:Codabench runs
push mine --platform codabench --no-kernel
rehearse --now yesterday
"""


class _World:
    """The services beside the commands, and the changes between them."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._evalai: Rehearsal | None = None
        #: The text shown instead of addresses.
        self.names: dict[str, str] = {}

    def change(self, event: str) -> str:
        """Trigger an event; return its messages."""
        actions: dict[str, Callable[[], object]] = {
            "EvalAI runs": self._start_evalai,
            "mine is a new challenge of davis2017": self._make_challenge,
            "the YAML of own has sponsors": add_sponsors,
            "the YAML of own has another leaderboard": change_leaderboard,
            "the token is another": lambda: os.environ.update(EVALAI_TOKEN="0" * 40),
            "EvalAI has stopped": self.close,
            "Codabench runs": lambda: start_codabench(self._stack, self.names),
        }
        output = actions[event]()
        return output if isinstance(output, str) else ""

    def _make_challenge(self) -> None:
        run('new mine --protocol davis2017 --truth truth.zip --title "Mine only" --quiet')

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
        return server.output

    def close(self) -> None:
        if self._evalai is not None:
            self._evalai.stop()
            self._evalai = None


def write_transcript() -> dict[str, str]:
    """Run the commands in a new folder; return everything that they print and write."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(new_host())
        world = stack.enter_context(contextlib.closing(_World(folder, stack)))
        return play(COMMANDS, world.change, world.names, r"(?m)^There is no sandbox: .*\n")


if __name__ == "__main__":
    write_answers(Path(sys.argv[1]).resolve() if sys.argv[1:] else FOLDER, write_transcript())
