"""Ctrl-C, SIGTERM, a vanished reader and a full disk, in the middle of a command."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from segjudge.cli import main
from segjudge.evaluation_script.families.sequences import engine as sequences
from segjudge.interactive.mask_datasets import write_demo_root
from segjudge.masks.demo import make_scene
from tests.builders import ANNOTATIONS, ROOT

COMMAND = [sys.executable, "-P", "-m", "segjudge"]
STOPS = (signal.SIGINT, signal.SIGTERM)
STRONG = ROOT / "examples/sequences-dev/strong.zip"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write some videos."""
    root = tmp_path_factory.mktemp("davis") / "root"
    write_demo_root(root, [make_scene(f"video{number}", number, objects=3, frames=50) for number in range(8)], sets=0)
    return root


def begun(*arguments: str | Path, cwd: Path = ROOT, **options: Any) -> Any:
    """Start a command in a group that Ctrl-C reaches, as in a terminal, and wait for Python to start."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **{"preexec_fn": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, STOPS), **options},
    )


def pack(dataset: Path, out: Path) -> list[str | Path]:
    return ["pack", "--layout", "davis2017", "--root", dataset, "--subset", "val", "--out", out]


def zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def met(process: Any, look: Callable[[], Any]) -> bool:
    """Return whether a check succeeded before the command ended; it never pauses, since the moment is short."""
    while not zombie(process.pid):
        if look():
            return True
    return False


@pytest.mark.long
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_while_it_writes_it_leaves_the_file_of_before(
    number: int, times: int, dataset: Path, tmp_path: Path
) -> None:
    out = tmp_path / "truth.zip"
    for _ in range(20):
        out.write_bytes(b"of before")
        process = begun(*pack(dataset, out))
        landed = met(process, lambda: list(tmp_path.glob("*.partial")))
        for _ in range(times):
            os.killpg(process.pid, number)
        output = process.communicate(timeout=60)[1]
        assert os.listdir(tmp_path) == ["truth.zip"]
        if landed and process.returncode:
            assert output == "segjudge: stopped\n"
            assert process.returncode == (130 if number == signal.SIGINT else -number)
            assert out.read_bytes() == b"of before"
            return
    raise AssertionError("it was never met while it wrote")


@pytest.mark.long
@pytest.mark.parametrize("command", ["build", "check", "score", "pack"])
def test_stopped_anywhere_nothing_half_written_is_left(command: str, dataset: Path, tmp_path: Path) -> None:
    chosen = random.Random(command)
    message: dict[str, list[str | Path]] = {
        "build": ["build", "--out", tmp_path / "out.zip"],
        "check": ["check"],
        "score": ["score", STRONG, "--phase", "sequences-dev", "--json", tmp_path / "out.json"],
        "pack": pack(dataset, tmp_path / "out.zip"),
    }
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    for _ in range(8):
        process = begun(*message[command])
        time.sleep(chosen.uniform(0, 1.5))
        os.killpg(process.pid, signal.SIGINT)
        output = process.communicate(timeout=60)[1]
        assert process.returncode in (0, 130), output
        # What the command says of the files themselves is no word about its end.
        of_files = ("warning: ", "note: ", "Protocol ")
        last = [line for line in output.splitlines() if not line.startswith(of_files)]
        assert last in ([], ["segjudge: stopped"]) or command == "score", output
        assert output.count("segjudge: stopped") == (process.returncode == 130), output
        assert "Traceback" not in output, output
        assert not list(tmp_path.glob("*.partial"))
        if (tmp_path / "out.zip").exists():
            assert zipfile.ZipFile(tmp_path / "out.zip").testzip() is None
        if (tmp_path / "out.json").exists():
            json.loads((tmp_path / "out.json").read_text())


def test_processes_that_score_beside_say_nothing() -> None:
    truth = ROOT / "annotations/sequences-dev.zip"
    for _ in range(20):
        process = begun("score", STRONG, "--truth", truth, "--protocol", "davis2017", "--jobs", "3")
        landed = met(process, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text)
        os.killpg(process.pid, signal.SIGINT)
        output = process.communicate(timeout=60)[1]
        assert "Traceback" not in output
        if landed and process.returncode:
            assert process.returncode == 130
            assert output.splitlines()[-1] == "segjudge: stopped"
            return
    raise AssertionError("it was never met while it scored")


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "import os, signal, time\nfrom segjudge.system.interrupts import *\n" + code],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("buffered", [True, False])
def test_a_reader_that_goes_away_is_no_error(buffered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if buffered:
        monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    else:
        monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    for taken in (0, 1):
        process = begun("score", "--help")
        for _ in range(taken):
            process.stdout.readline()
        process.stdout.close()
        output = process.stderr.read()
        process.stderr.close()
        assert process.wait() == 0
        assert output == ""


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("arguments", [["--json", "scores.json"], ["--part", "1/1", "--out", "scores.json"]])
def test_a_process_that_was_ended_while_it_scored_is_a_sentence(
    kind: int, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sequences, "count_sequence", lambda *_: os.kill(os.getpid(), kind))
    monkeypatch.chdir(tmp_path)
    given = ["score", str(STRONG), "--truth", str(ANNOTATIONS), "--protocol", "davis2017", "--jobs", "2"]
    before = signal.getsignal(signal.SIGTERM)
    try:
        for handler in (signal.default_int_handler, lambda *_: None):  # of the program that scores in its own process
            signal.signal(signal.SIGTERM, handler)
            assert main([*given, *arguments]) == 3
            line = "memory ran out, or the system ended a process (a scoring process was killed); try fewer --jobs"
            printed = capfd.readouterr().err
            assert printed.strip().splitlines()[-1] == f"segjudge: {line}"
            assert "Traceback" not in printed
            assert not os.listdir(tmp_path)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "code", "line"),
    [("segjudge.system.interrupts", -signal.SIGINT, ""), ("segjudge.cli", 128 + signal.SIGINT, "segjudge: stopped\n")],
)
def test_an_interrupt_during_the_imports_shows_no_traceback(module: str, code: int, line: str) -> None:
    program = f"""
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from segjudge.__main__ import main
sys.argv = ["segjudge", "protocols"]
main()
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (run.returncode, run.stdout, run.stderr) == (code, "", line)


@pytest.mark.long
def test_a_disk_that_is_full_is_a_sentence(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "truth.zip"
    out.write_bytes(b"of before")
    process = begun(*pack(dataset, out), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)))
    output = process.communicate(timeout=60)[1]
    assert process.returncode == 3
    assert output == f"segjudge: {out}: cannot be written (File too large)\n"
    assert out.read_bytes() == b"of before"
    assert os.listdir(tmp_path) == ["truth.zip"]
