"""An environment in a process of its own, reached over a real channel as in a container."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc

from segjudge.code_upload.environments import VIDEO
from segjudge.code_upload.messages import SERVICE, Action, Reply
from segjudge.families.truths import TruthSource, pack
from segjudge.interactive.mask_datasets import write_demo_root
from segjudge.masks.demo import make_scene

#: The limit of the specification: no agent may make an environment larger.
MEMORY = 400 << 20
VIDEOS = [make_scene("drift", 2017, objects=1, frames=6), make_scene("pair", 2018, objects=2, frames=5)]
SIZE = VIDEOS[0].size


def dataset(folder: Path) -> list[str]:
    """Return the options of a small video environment."""
    if not (folder / "truth.zip").exists():
        write_demo_root(folder / "root", VIDEOS, sets=0)
        pack(TruthSource(str(folder / "root"), "davis2017", "val"), str(folder / "truth.zip"), split="test")
    return ["--env", VIDEO, "--option", f"truth={folder / 'truth.zip'}", "--option", f"frames={folder / 'root'}"]


class Served:
    """A running environment."""

    def __init__(
        self, folder: Path, *arguments: str, python: list[str] | None = None, cwd: Path | None = None, **variables: str
    ) -> None:
        self.file = folder / f"result-{os.urandom(4).hex()}.json"
        entry = python or [sys.executable, "-m", "segjudge.code_upload_challenge_evaluation.environment"]
        command = [*entry, "--port", "0"]
        environment = {**os.environ, "LOCAL_EVALUATION": "1", **variables}
        self.log = open(folder / "environment.log", "ab")  # noqa: SIM115 - closed by end()
        self.process = subprocess.Popen(
            [*command, "--result", str(self.file), *arguments], stdout=subprocess.PIPE, stderr=self.log, text=True,
            env=environment, cwd=cwd,
        )  # fmt: skip
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, (folder / "environment.log").read_text()
        self.address = f"127.0.0.1:{int(line)}"
        self.most = 0

    def memory(self) -> int:
        """Return the peak memory of the process."""
        try:
            text = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return self.most
        results = [int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("VmHWM")]
        self.most = max(self.most, *results) if results else self.most
        return self.most

    def outcome(self, seconds: float = 120) -> dict[str, Any]:
        """Wait for the end, check the peak memory, and return the saved result."""
        assert self.memory() < MEMORY
        assert self.process.stdout
        self.process.wait(timeout=seconds)
        self.end()
        output: dict[str, Any] = json.loads(self.file.read_text())
        assert "Traceback" not in json.dumps(output)
        return output

    def end(self) -> None:
        """Kill the process and close its output."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()
        self.log.close()


class Caller:
    """An agent that sends anything."""

    def __init__(self, address: str, **options: Any) -> None:
        size = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1), *options.items()]
        self.channel = grpc.insecure_channel(address, options=size)
        self.session, self.step = "", 0

    def raw(self, name: str, data: bytes, **more: Any) -> bytes:
        call: Any = self.channel.unary_unary(f"/{SERVICE}/{name}")
        results: bytes = call(data, timeout=more.pop("timeout", 120), **more)
        return results

    def begin(self, nonce: str = "me") -> Reply:
        reply = Reply.read(self.raw("reset", Action(session_id=nonce).pack()))
        self.session, self.step = reply.session_id, reply.step
        return reply

    def act(self, value: Any, **more: Any) -> Reply:
        action = Action(more.get("session", self.session), more.get("step", self.step), value)
        reply = Reply.read(self.raw("act_on_environment", action.pack(), timeout=more.get("timeout", 120)))
        self.step = reply.step
        return reply

    def refused(self, name: str, data: bytes, **more: Any) -> tuple[grpc.StatusCode, str]:
        """Return the error of a rejected call."""
        try:
            self.raw(name, data, **more)
        except grpc.RpcError as error:
            return error.code(), error.details() or ""
        raise AssertionError("it was not refused")

    def close(self) -> None:
        self.channel.close()
