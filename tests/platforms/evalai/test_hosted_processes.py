"""The folder of a hosted worker, the ends of its process, and what it may use."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from segjudge.platforms.evalai.hosted_worker import process
from segjudge.platforms.evalai.hosted_worker.folder import WorkerFolder
from segjudge.platforms.evalai.hosted_worker.process import DiedError, ProcessTerms, ScoringProcess
from tests.builders import written, zipped
from tests.calls import outcome


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerFolder]:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, {"answer.txt": "41", "script.zip": zipped({"__init__.py": "", "../odd.py": ""})})
    noted: list[str] = []
    made = WorkerFolder(noted.append)
    assert noted == [made.path]
    yield made
    made.remove()
    assert not os.path.exists(made.path)


RANDOM = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def tree(worker: WorkerFolder) -> list[str]:
    """Return the files of a worker below `compute`, without random names, and its other folders."""
    paths = sorted(str(path.relative_to(worker.path)) + "/" * path.is_dir() for path in Path(worker.path).rglob("*"))
    return [
        re.sub(RANDOM, "RANDOM", path.removeprefix("compute/"))
        for path in paths
        if path[-1] != "/" or path.count("/") == 1
    ]


def test_a_worker_has_a_folder_of_its_own(worker: WorkerFolder) -> None:
    assert oct(os.stat(worker.path).st_mode) == "0o40700"
    folders = ["", "challenge_data/__init__.py"]
    assert tree(worker) == [*folders, "incoming/", "tmp/"]
    with zipfile.ZipFile("script.zip") as script:
        worker.add_script(7, script)
    home = "challenge_data/challenge_7"
    assert worker.script_folder(7) == f"{worker.path}/compute/{home}"
    truth = worker.annotation_path(7, 3, ".zip")
    assert re.fullmatch(f"{worker.script_folder(7)}/phase_data/phase_3/{RANDOM}.zip", truth)
    assert outcome(lambda: worker.annotation_path(7, 3, ".zip")) == (
        f"FileExistsError: [Errno 17] File exists: '{worker.script_folder(7)}/phase_data/phase_3'"
    )
    for ending in (".txt", ""):
        path = worker.add_submission(5, "answer.txt", ending)
        assert Path(path).read_text() == "41"
        assert re.fullmatch(f"{worker.submissions}/submission_5/{RANDOM}{ending}", path)
    scripts = [*folders, f"{home}/__init__.py", f"{home}/odd.py"]
    assert tree(worker) == [*scripts, "submission_files/submission_5/RANDOM", "incoming/", "tmp/"]
    worker.remove_submission(5)
    worker.remove_submission(6)
    assert tree(worker) == [*scripts, "incoming/", "tmp/"]


def test_a_submission_replaces_what_is_in_its_way(worker: WorkerFolder) -> None:
    os.symlink("/etc", os.path.join(worker.submissions, "submission_8"))
    worker.remove_submission(8)
    assert os.path.isdir("/etc")
    Path(worker.submissions, "submission_9").write_text("x")
    for name in ("answer.txt", "lost.txt", "answer.txt"):
        added = outcome(lambda name=name: Path(worker.add_submission(9, name, ".txt")).read_text())
        assert added == (
            "41" if name[0] == "a" else "FileNotFoundError: [Errno 2] No such file or directory: 'lost.txt'"
        )
    assert tree(worker) == [
        "", "challenge_data/__init__.py", "submission_files/submission_9/RANDOM.txt", "incoming/", "tmp/",
    ]  # fmt: skip


# ── how a process ends ──────────────────────────────────────────────────────

READ = 'read line; number=$(echo "$line" | sed \'s/.*"number": "\\([0-9a-f]*\\)".*/\\1/\'); answer() { echo "$1" > /proc/self/fd/$ANSWERS; }; '
NUMBERED, NO_ANSWER = '{\\"number\\": \\"$number\\"', "DiedError: its process did not send an answer"
LATE = "HungError: it did not answer for 0.25 seconds"
ENDS: dict[str, tuple[str, str | None]] = {
    "it answers": (READ + f'answer "{NUMBERED}, \\"a\\": 1}}"; read more', None),
    "it answers twice": (READ + f'answer "{NUMBERED}}}\n{{}}"; read more', NO_ANSWER),
    "it cannot be loaded": (
        READ + f'answer "{NUMBERED}, \\"unloadable\\": \\"x\\"}}"; read more',
        "UnloadableError: evaluation_script cannot be loaded: x",
    ),
    "it answers another request": (READ + 'answer "{\\"number\\": \\"0\\"}"; read more', NO_ANSWER),
    "it answers without a number": (READ + "answer '{}'; read more", NO_ANSWER),
    "it answers with a list": (READ + "answer '[]'; read more", NO_ANSWER),
    "it answers with half of JSON": (READ + "answer '{'; read more", NO_ANSWER),
    "it answers with much": (
        READ + "head -c 3000 /dev/zero > /proc/self/fd/$ANSWERS; read more", "DiedError: its answer is larger than 0 MB",
    ),
    "it answers with as much as it may": (READ + "head -c 2998 /dev/zero > /proc/self/fd/$ANSWERS; answer; read more", NO_ANSWER),
    "it ends": ("exit 3", "DiedError: its process ended with exit code 3"),
    "it is killed": ("kill -9 $$", "DiedError: its process was killed by SIGKILL"),
    **{f"it ends with {code}": (f"exit {code}", f"DiedError: its process ended with exit code {code}") for code in (128, 129, 192, 193)},
    "it ends with 128 in a sandbox": ("exit 128", "DiedError: its process ended with exit code 128"),
    "it ends with 129 in a sandbox": ("exit 129", "DiedError: its process was killed by SIGHUP"),
    "it ends with 192 in a sandbox": ("exit 192", "DiedError: its process was killed by SIGRTMAX"),
    "it ends with 193 in a sandbox": ("exit 193", "DiedError: its process ended with exit code 193"),
    "it hangs": ("exec sleep 9", LATE),
    "it hangs before it reads much": ("exec sleep 9", LATE),
    "it reads much, and late": ("sleep 0.3; " + READ + f'answer "{NUMBERED}}}"; read more', None),
    "nobody waits": ("exec sleep 9", "UnwantedError: the request was cancelled"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", ENDS)
def test_a_process_answers_or_dies_with_a_sentence(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, sentence = ENDS[name]
    for constant, value in {"_TICK": 0.05, "_FAREWELL": 0.05, "_ANSWER_BYTES": 2999}.items():
        monkeypatch.setattr(process, constant, value)
    # after the words of a Python come the program, the order, and the numbers of two descriptors
    arguments = ["/bin/sh", "-c", f"ANSWERS=$2; echo said; echo wrong >&2; echo noted > /proc/self/fd/$3; {text}"]
    terms = ProcessTerms({"PATH": os.environ["PATH"]}, str(tmp_path), is_boxed="sandbox" in name)
    asked = ScoringProcess(arguments, {"worker": "remote", "memory": 0}, terms)
    seconds, sent = 0.25 if "hangs" in name else 30, "x" * (70_000 if "much" in name else 1)
    error: DiedError | None = None
    try:
        for _ in range(2 if "twice" in name else 1):
            answer = asked.ask({"x": sent}, seconds, lambda: name == "nobody waits")
            assert {**answer, "number": 0} == {"number": 0, **({"a": 1} if name == "it answers" else {})}
    except DiedError as raised:
        error = raised
    assert (error and f"{type(error).__name__}: {error}") == sentence
    is_killed = any(word in str(error) for word in ("killed", "did not answer for", "cancelled"))
    assert error is None or error.killed is is_killed
    assert asked.alive is (sentence is None or "cannot be loaded" in sentence)
    asked.close()
    asked.close()
    assert not asked.alive
    if "hangs" not in name and name != "nobody waits":  # these may have said nothing yet
        assert (asked.streams(), asked.log()) == (("said\n", "wrong\n"), "noted\n")


# ── what a worker may use ───────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        (1 << 50, (("a", "b"), 22548578304)),
        (1 << 30, (("a", "b"), 536870912)),
        (16 << 20, (("a", "b"), 8388608)),
        ((16 << 20) - 1, "OSError: [Errno 28] No space left on device: 'a'"),
    ],
)
def test_a_worker_may_write_half_of_the_free_disk(free: int, expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.shutil, "disk_usage", lambda name: SimpleNamespace(free=free * (name == "a")))
    assert outcome(lambda: process.disk_bounds("a", "b")) == expected
