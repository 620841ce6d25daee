"""Code upload without containers: `segjudge arena`, and both kinds on the rehearsal server."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from segjudge.cli import main
from segjudge.code_upload import arena
from segjudge.evaluation_script import evaluate
from segjudge.masks.demo import write_frames
from segjudge.platforms.evalai.bundle.build import build
from segjudge.system import sandbox
from tests.builders import ANNOTATIONS, DEV, ROOT
from tests.environments import dataset
from tests.rehearsals import Rehearsal, waited

AGENTS = ROOT / "examples/agents"
STATIC = ROOT / "code_upload_challenge_evaluation/static/main.py"
needs_bwrap = pytest.mark.skipif(sandbox.find_sandbox() is None, reason="BWRAP DOES NOT WORK HERE: install bubblewrap")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arena")
    dataset(folder)
    write_frames(str(folder / "frames"))
    return folder


def duel(data: Path, *agent: str, more: tuple[str, ...] = ()) -> int:
    arguments = ["arena", "--truth", str(data / "truth.zip"), "--frames", str(data / "root"), *more, "--", *agent]
    return main(arguments)


def agent(folder: Path, text: str) -> str:
    path = folder / "mine.py"
    path.write_text(f"import os, sys\nfrom segjudge.agent import Environment\n{text}\n")
    return str(path)


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("raise RuntimeError('no weights')", "ended before the evaluation did, at its start, before it called reset"),
        ("e = Environment(quiet=True); e.reset(); raise SystemExit(0)", "ended before the evaluation did, at drift/00000"),
        pytest.param(
            "e = Environment(quiet=True); e.reset(); import time; time.sleep(60)",
            "The time limit of 3 seconds ended at drift/00000",
            marks=pytest.mark.long,
        ),
        pytest.param("e = Environment(quiet=True); e.reset(); x = bytearray(400 << 20)", "MemoryError", marks=pytest.mark.long),
    ],
    ids=["raises", "leaves", "hangs", "eats memory"],
)  # fmt: skip
def test_agents_that_fail(data: Path, tmp_path: Path, text: str, output: str, capsys: Any) -> None:
    seconds = "3" if "sleep" in text else "30"
    code = duel(data, agent(tmp_path, text), more=("--seconds", seconds, "--memory", "300"))
    assert code == 1
    assert output in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("boxed", [pytest.param(True, marks=needs_bwrap), False], ids=["sandbox", "no sandbox"])
@pytest.mark.parametrize("kind", ["duel", "static"])
def test_nothing_of_an_agent_outlives_its_evaluation(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, boxed: bool
) -> None:
    """Processes that left the agent's session end too; survivors would be found by their arguments."""
    if not boxed:
        monkeypatch.setattr(sandbox, "find_sandbox", lambda **_: None)
    mark = f"outlives-{kind}-{boxed}-{os.getpid()}"
    text = f"""
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(1000)", {mark!r}])
    os._exit(0)
os.wait()
"""
    play = {
        "duel": "with Environment(quiet=True) as e:\n    seen = e.reset()\n    while not e.done: seen = e.act(seen['first_mask'])",
        "static": "open(os.environ['SUBMISSION_PATH'] + '/submission.json', 'w').write('{}')",
    }
    run = {"duel": duel, "static": static}[kind]
    assert run(data, agent(tmp_path, text + play[kind])) == (0 if kind == "duel" else 1)
    assert mark not in everything_running()


def everything_running() -> str:
    """Return the arguments of all processes except zombies."""
    results = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            results.append(path.read_text(errors="replace"))
        except OSError:
            pass
    return "\n".join(results)


def settled(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.long
@pytest.mark.parametrize("boxed", [pytest.param(True, marks=needs_bwrap), False], ids=["sandbox", "no sandbox"])
def test_an_agents_log_fills_no_disk_and_its_end_is_kept(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boxed: bool
) -> None:
    if not boxed:
        monkeypatch.setattr(sandbox, "find_sandbox", lambda **_: None)
    text = "print('the beginning')\nline = 'x' * 999\nfor k in range(100_000): print(line)\nprint('the end')"
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_oublock
    ended = arena.run_static(
        arena.find_agent([agent(tmp_path, text)]), str(data / "frames"), sandbox.ProcessLimits(60), 0.2, print
    )
    assert ended.log.endswith("x\nthe end\n")
    assert ended.log.startswith("the beginning\nxxx")
    assert re.search(r"\n… 99,9\d\d,\d\d\d bytes are omitted here …\n", ended.log)
    assert len(ended.log) < arena._LOG + 100
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_oublock - spent < 10_000, "of 512 bytes; the log has 200,000"


GREEDY = """
import ctypes, mmap, time
MB = 1 << 20
def fill(path, first=lambda path: None):
    with open(path, "wb") as file:
        first(path)
        for _ in range(400):
            file.write(bytes(MB))
            file.flush()
        print("unbounded")
        time.sleep(20)
def fork(work, count=600):
    for _ in range(count):
        if os.fork() == 0:
            work()
            time.sleep(20)
            os._exit(0)
    print("unbounded")
    time.sleep(20)
def share():
    maps = [mmap.mmap(-1, 20 * MB) for _ in range(20)]
    for part in maps: part.write(bytes(20 * MB))
    print("unbounded")
    time.sleep(20)
def dig(depth):
    os.chdir(os.environ["SUBMISSION_PATH"])
    for _ in range(depth):
        os.mkdir("d")
        os.chdir("d")
    print("dug", flush=True)
    if depth > 2000: time.sleep(20)
def leave(work):
    # As a grandchild in a session of its own, whose parent is gone.
    if os.fork() == 0:
        os.setsid()
        if os.fork(): os._exit(0)
        work()
        os._exit(0)
    os.wait()
    time.sleep(20)
def mount():
    c = ctypes.CDLL(None, use_errno=True)
    assert c.unshare(0x10020000) and c.mount(b"none", b"/tmp", b"tmpfs", 0, None), "unbounded"
    assert c.shmget(0, 400 * MB, 0o1600) == -1, "unbounded"
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
"""
TOGETHER = "The agent was killed: its processes took more than 200 MB of memory together."
MANY = "The agent was killed: it had more than 40 processes and threads."


def greedy(data: Path, tmp_path: Path, code: str) -> str:
    """Return the log of an agent that takes all it can get, within small limits."""
    limits = sandbox.ProcessLimits(seconds=30, memory=200 << 20, processes=40)
    command = arena.find_agent([agent(tmp_path, GREEDY + code)])
    return arena.run_static(command, str(data / "frames"), limits, 0.2, print).log


@pytest.mark.long
@needs_bwrap
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("fill('/dev/shm/x')", f"No space left on device|{TOGETHER}"),
        ("for number in range(10**7): open(f'/tmp/{number}', 'w').close()", TOGETHER),
        ("share()", TOGETHER),
        ("fork(lambda: bytearray(b'x' * MB) and time.sleep(20))", f"Resource temporarily unavailable|{MANY}"),
        ("fill(os.environ['SUBMISSION_PATH'] + '/x')", "The agent was killed: it wrote more than 4 MB to the disk."),
        ("dig(1500)", "^dug\n$"),
        ("leave(share)", TOGETHER),
        ("fill(os.environ['SUBMISSION_PATH'] + '/x', os.unlink)", "it wrote more than 4 MB to the disk."),
    ],
    ids=["shm", "tmpfs inodes", "shared", "forks", "folder", "deep", "orphan", "removed"],
)
def test_an_agent_cannot_exhaust_the_machine(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, message: str
) -> None:
    # Folders take memory as well, but that must not be what ends the process that creates them.
    monkeypatch.setattr(arena, "_FILE_BYTES", (64 if code.startswith("dig(") else 2) << 20)
    log = greedy(data, tmp_path, code)
    assert re.search(message, log), log


@pytest.mark.long
@needs_bwrap
def test_in_the_sandbox_there_is_no_truth_and_no_network(data: Path, capsys: Any) -> None:
    """The agent is next to the truth, but sees neither it nor the user's home."""
    text = f"""
import socket, urllib.request
seen = [path for path in {[str(data / "truth.zip"), str(data / "root")]!r} if os.path.exists(path) and (os.path.isfile(path) and os.path.getsize(path) or os.path.isdir(path) and os.listdir(path))]
assert not seen, seen
assert not os.path.exists({str(ROOT / "annotations")!r})
try:
    socket.create_connection(("127.0.0.1", 22), timeout=1)
except OSError as error:
    reason = str(error)
try:
    open({str(data / "written")!r}, "w")
    raise SystemExit("the folder can be written")
except OSError:
    pass
with Environment(quiet=True) as e:
    seen = e.reset()
    while not e.done: seen = e.act(seen["first_mask"])
"""
    assert duel(data, agent(data, text), more=("--require-sandbox",)) == 0, capsys.readouterr().err


@pytest.mark.long
def test_without_a_sandbox_it_says_so(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sandbox, "shutil", SimpleNamespace(which=lambda _name: None))
    assert duel(data, str(AGENTS / "agent.py"), more=("--require-sandbox",)) == 3
    assert "no working bwrap was found" in capsys.readouterr().err
    needy = agent(tmp_path, "x = bytearray(400 << 20)")
    assert duel(data, needy, more=("--memory", "300")) == 1
    assert "MemoryError" in capsys.readouterr().err, "its limits hold there, too"
    assert duel(data, str(AGENTS / "agent.py")) == 0
    assert "limits stop accidents, not attackers" in capsys.readouterr().err


# ── static ──────────────────────────────────────────────────────────────────


def static(data: Path, *command: str, more: tuple[str, ...] = ()) -> int:
    arguments = ["arena", "--static", "--data", str(data / "frames"), "--phase", DEV, "--look-every", "0.2"]
    return main([*arguments, *more, "--", *command])


@pytest.mark.long
def test_a_static_submission_is_taken_and_scored(data: Path, tmp_path: Path, capsys: Any) -> None:
    result = tmp_path / "result.json"
    assert static(data, str(STATIC), more=("--result", str(result))) == 0
    out = capsys.readouterr()
    assert "J&F-Mean" in out.out
    assert "wait for completed.txt" not in out.err, "the writer stayed until it was taken"
    output = json.loads(result.read_text())["result"]
    (sample,) = (ROOT / "examples" / DEV).glob("first-mask.json")
    assert output == evaluate(str(ANNOTATIONS), str(sample), DEV)["result"], "to the last digit"


@pytest.mark.parametrize(
    ("text", "code", "output"),
    [
        ("print('nothing')", 1, "ended with code 0 and wrote no submission.csv or submission.json"),
        ("raise SystemExit('no data')", 1, "no data"),
        ("import time; time.sleep(30)", 1, "wrote no submission.csv or submission.json within 2 seconds"),
        ("open(os.environ['SUBMISSION_PATH'] + '/submission.json', 'w').write('{')", 1, "your file"),
        ("open(os.environ['SUBMISSION_PATH'] + '/submission.json', 'w').write('{}')", 1, "3 of 3 sequences are missing"),
    ],
    ids=["nothing", "fails", "hangs", "half", "empty"],
)  # fmt: skip
def test_static_submissions_that_fail(
    data: Path, tmp_path: Path, text: str, code: int, output: str, capsys: Any
) -> None:
    seconds = "2" if "sleep" in text else "60"
    assert static(data, agent(tmp_path, text), more=("--seconds", seconds)) == code
    assert output in capsys.readouterr().err


def link(name: str, target: str) -> str:
    """Return the program of an agent that leaves something other than a file as its result."""
    folder = "os.environ['SUBMISSION_PATH']"
    made = {"fifo": f"os.mkfifo({folder} + '/{name}')", "folder": f"os.mkdir({folder} + '/{name}')"}
    return made.get(target, f"os.symlink({target!r}, {folder} + '/{name}')")


def test_what_the_platform_writes_follows_no_link(data: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    text = f"{link('completed.txt', str(precious))}\nopen(os.environ['SUBMISSION_PATH'] + '/submission.json', 'w').write('{{}}')"
    assert static(data, agent(tmp_path, text), more=("--seconds", "20")) == 1
    assert precious.read_text() == "kept"


@needs_bwrap
def test_no_way_leads_to_the_truth(data: Path, tmp_path: Path, capsys: Any) -> None:
    """The truth stays hidden if an option names it, a link points to it, or it lies next to the data."""
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(data / "truth.zip", home / "truth.zip")
    (tmp_path / "linked").symlink_to(home)
    look = (
        f"assert not any(os.path.exists(p) and os.path.getsize(p) for p in [{str(home / 'truth.zip')!r}, "
        f"{str(tmp_path / 'linked/truth.zip')!r}]), 'the truth is there'\n"
    )
    play = look + "e = Environment(quiet=True); seen = e.reset()\nwhile not e.done: seen = e.act(seen['first_mask'])"
    mine = agent(home, play)
    for options in (
        ("--option", f"truth={home / 'truth.zip'}", "--option", f"frames={data / 'root'}"),
        ("--truth", str(tmp_path / "linked/truth.zip"), "--frames", str(data / "root")),
    ):
        assert main(["arena", *options, "--require-sandbox", "--", mine]) == 0, capsys.readouterr().err
    among = data / "frames/truth.zip"
    shutil.copy(ANNOTATIONS, among)
    try:
        looking = f"assert not os.path.getsize({str(among)!r}), 'the truth is there'; raise SystemExit('hidden')"
        assert static(data, agent(tmp_path, looking), more=("--truth", str(among), "--require-sandbox")) == 1
        assert "hidden" in capsys.readouterr().err
    finally:
        among.unlink()


@pytest.mark.long
def test_a_writer_that_dies_leaves_nothing_half(tmp_path: Path) -> None:
    code = (
        "import os, sys, threading, time\n"
        "from segjudge.static import write_submission\n"
        "threading.Thread(target=lambda: (time.sleep(0.05), os._exit(9)), daemon=True).start()\n"
        "for k in range(10**6): write_submission({str(k): 'x' * 10**6}, patience=0)\n"
    )
    environment = {"SUBMISSION_PATH": str(tmp_path), "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    for _ in range(3):
        subprocess.run([sys.executable, "-c", code], env=environment, check=False)
        whole = tmp_path / "submission.json"
        if whole.exists():
            json.loads(whole.read_text())


# ── on the rehearsal server ─────────────────────────────────────────────────


@pytest.fixture(scope="module")
def server(data: Path) -> Iterator[Rehearsal]:
    table = data / "agents.toml"
    shutil.copytree(AGENTS, data / "agents")
    (data / "agents/broken.py").write_text("raise RuntimeError('no weights')\n")
    (data / "agents/wrong.py").write_text(
        "import numpy as np\nfrom segjudge.agent import Environment\n"
        "with Environment(quiet=True) as e: e.reset(); e.act(np.zeros((10, 20), np.uint8))\n"
    )
    truth = ROOT / "annotations/sequences-dev.zip"
    arguments = ["--env", "segjudge/VideoObjectSegmentation-v0", "--option", f"truth={truth}", "--option", "frames=frames",
             "--option", "phase=sequences-dev", "--gone-seconds", "1"]  # fmt: skip
    table.write_text(
        'data = "frames"\nlook_every = 0.2\nseconds = 60\n'
        '[images."aurora/flow:1"]\ncommand = ["python", "optical_flow.py"]\nfolder = "agents"\n'
        '[images."aurora/wrong:1"]\ncommand = ["python", "wrong.py"]\nfolder = "agents"\n'
        '[images."aurora/broken:1"]\ncommand = ["python", "broken.py"]\nfolder = "agents"\n'
        f'[images."aurora/static:1"]\ncommand = ["python", "{STATIC}"]\n'
        f"[environments]\nsequences-dev = {json.dumps(arguments)}\n"
    )
    options = ("--requests-per-minute", "100000", "--agents", str(table))
    running = Rehearsal(data / "rehearsal", options).start()
    yield running
    running.stop()
    assert "Traceback" not in running.errors()


def pushed(server: Rehearsal, tmp_path: Path, variant: str) -> dict[str, Any]:
    """Push a challenge of a variant to the server, and return its row."""
    path = build(str(ROOT), str(tmp_path / f"{variant}.zip"), variant=variant, lenient=True).path
    changed = tmp_path / f"{variant}-titled.zip"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(changed, "w") as out:
        for name in source.namelist():
            content = source.read(name)
            if name == "challenge_config.yaml":
                config = yaml.safe_load(content)
                config["title"] = variant
                content = yaml.safe_dump(config).encode()
            out.writestr(name, content)
    assert server.push(changed, repository=f"me/{variant}").status_code == 201
    return next(
        item
        for item in server.get("/api/challenges/challenge/all/all/all").json()["results"]
        if item["title"] == variant
    )


def sent(server: Rehearsal, challenge: int, image: str) -> dict[str, Any]:
    """Submit an image as a participant, and return the outcome."""
    phases = server.get(f"/api/challenges/challenge/{challenge}/challenge_phase", "aurora").json()["results"]
    phase = next(phase for phase in phases if phase["codename"] == DEV)["id"]
    team = server.people["aurora"]["team"]
    server.call("POST", f"/api/challenges/challenge/{challenge}/participant_team/{team}", "aurora")
    answer = server.submit("aurora", json.dumps({"submitted_image_uri": image}).encode(), phase, challenge)
    assert answer.status_code == 201, answer.text
    return {**server.settled(answer.json()["id"]), "phase": phase}


def agent_log(server: Rehearsal, row: dict[str, Any]) -> str:
    """Return the output of an agent, which is kept for a while after the environment has reported."""
    return server.text(
        waited(lambda: server.get(f"/api/jobs/submission/{row['id']}", "host").json()["environment_log_file"])
    )


def score(server: Rehearsal, challenge: int, phase: int) -> list[float]:
    """Return the only row of a leaderboard."""
    splits = server.get(f"/api/challenges/{challenge}/challenge_phase_split").json()
    board = next(split["id"] for split in splits if split["challenge_phase"] == phase)
    (row,) = server.get(f"/api/jobs/challenge_phase_split/{board}/leaderboard/").json()["results"]
    return [float(value) for value in row["result"]]


@pytest.mark.long
def test_code_upload_ends_on_the_leaderboard(server: Rehearsal, tmp_path: Path) -> None:
    challenge = pushed(server, tmp_path, "code-upload")["id"]
    done = sent(server, challenge, "aurora/flow:1")
    assert done["status"] == "finished", server.text(done["stderr_file"])
    unknown = sent(server, challenge, "aurora/flow:2; touch /tmp/x")
    assert unknown["status"] == "failed"
    assert "is not in the host's table, which has: aurora/broken:1, aurora/flow:1" in server.text(
        unknown["stderr_file"]
    )
    broken = sent(server, challenge, "aurora/broken:1")
    assert broken["status"] == "failed"
    assert "no weights" in agent_log(server, broken)
    wrong = sent(server, challenge, "aurora/wrong:1")
    assert wrong["status"] == "failed"
    output = server.text(wrong["stderr_file"])
    assert "Its last call was rejected: " in output
    assert re.search(r"the mask is 10 x 20, but the frame \d+ x \d+ \(height x width\)\.", output)
    assert "RefusedError" in agent_log(server, wrong), "the agent was told, too"
    assert score(server, challenge, done["phase"])[0] > 0.4


@pytest.mark.long
def test_static_code_upload_ends_on_the_leaderboard(server: Rehearsal, tmp_path: Path) -> None:
    challenge = pushed(server, tmp_path, "static-code-upload")["id"]
    done = sent(server, challenge, "aurora/static:1")
    assert done["status"] == "finished", server.text(done["stderr_file"])
    (sample,) = (ROOT / "examples" / DEV).glob("first-mask.json")
    wanted = evaluate(str(ANNOTATIONS), str(sample), DEV)["result"][0]["dev"]
    assert np.allclose(score(server, challenge, done["phase"]), list(wanted.values()), atol=1e-9)
