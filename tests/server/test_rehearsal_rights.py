"""Who may push to the rehearsal, the limits of a pushed script, and participants' view of hidden splits."""

from __future__ import annotations

import functools
import json
import os
import re
import stat
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from segjudge.server.models import Submission
from segjudge.server.stored_files import FileStore
from segjudge.server.submissions import MessageQueues, Submissions
from segjudge.system import sandbox
from tests.builders import ROOT
from tests.rehearsals import (
    Rehearsal,
    bundle_with,
    edit_phases,
    many,
    omit_varying_digits,
    private,
    started,
    without_sandbox,
)

needs_bwrap = pytest.mark.skipif(sandbox.find_sandbox() is None, reason="BWRAP DOES NOT WORK HERE: install bubblewrap")
WITHHELD = "[withheld: only hosts may see some splits of this phase, and its script might print their scores here]"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    folder = tmp_path_factory.mktemp("rights")
    with started(folder, environment={"SECRET_OF_MINE": "a-secret-in-the-environment"}) as running:
        yield running


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    folder = tmp_path_factory.mktemp("open")
    environment = {**without_sandbox(folder / "bin"), "SECRET_OF_MINE": "a-secret-in-the-environment"}
    with started(folder, environment=environment) as running:
        yield running


def output(server: Rehearsal, code: str) -> Any:
    """Return the output of a script that runs this code, or its failure."""
    number = server.submit("aurora", code.encode()).json()["id"]
    done = server.settled(number)
    text = server.text(done["stdout_file"]) if done["stdout_file"] else ""
    match = re.search(r"^TOLD(.*)$", text, re.MULTILINE)
    return json.loads(match.group(1)) if match else server.text(done["stderr_file"])


# ── what a script can reach ─────────────────────────────────────────────────

#: The files below these folders, other processes, a connection, and a file written outside.
LOOK_AROUND = """
answers = {{"seen": [], "others": "", "connects": True}}
for folder in ({folder!r}, {root!r}, "/root", "/home", "/work", "/etc"):
    try:
        answers["seen"] += [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        pass
for place in glob.glob("/proc/[0-9]*"):
    try:
        answers["others"] += open(place + "/cmdline").read() + open(place + "/environ").read()
    except OSError:
        pass
try:
    socket.create_connection(("127.0.0.1", {port}), 2)
except OSError:
    answers["connects"] = False
for place in {places!r}:
    try:
        os.makedirs(place, exist_ok=True)
        open(place + "/segjudge-was-here", "w").close()
        subprocess.run(["mount", "-o", "remount,rw", place])
    except OSError:
        pass
"""


@needs_bwrap
def test_in_the_sandbox_nothing_outside_is_seen_reached_or_written(server: Rehearsal, tmp_path: Path) -> None:
    port = int(server.address.rpartition(":")[2])
    places = [str(tmp_path), str(ROOT), "/usr", "/etc", os.path.dirname(sys.executable), "/var/tmp"]
    answers = output(server, LOOK_AROUND.format(folder=str(server.data), root=str(ROOT), port=port, places=places))
    ours = ("/files", "/annotations")
    assert not [path for path in answers["seen"] if "sqlite" in path or "passwd" in path or path.endswith(ours)]
    assert "hosted_worker" in answers["others"]
    assert not [word for word in ("rehearse", "a-secret-in-the-environment") if word in answers["others"]]
    assert not answers["connects"]
    assert not [place for place in places if os.path.exists(f"{place}/segjudge-was-here")]
    reached = output(server, f"answers = open({str(server.data / 'rehearsal.sqlite3')!r}, 'rb').read(16)")
    assert "FileNotFoundError" in reached


@needs_bwrap
def test_a_link_in_the_place_of_the_next_submission_leads_nowhere(server: Rehearsal, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.mkdir()
    code = f"""
folder = os.path.dirname(os.path.dirname(submission))
answers = []
for number in range(1, 500):
    try:
        os.symlink({str(target)!r}, os.path.join(folder, f"submission_{{number}}"))
    except OSError:
        pass
try:
    os.rename(folder, folder + "-away")
    os.symlink({str(target)!r}, folder)
    answers = "renamed"
except OSError as error:
    answers = str(error)
"""
    assert "renamed" not in output(server, code)
    assert output(server, "answers = 'fine'") == "fine"
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("kind", ["server", "open_server"])
def test_a_script_gets_no_environment_no_descriptor_and_no_folder_of_ours(
    request: pytest.FixtureRequest, kind: str
) -> None:
    server = request.getfixturevalue(kind)
    assert "a-secret-in-the-environment" not in json.dumps(output(server, "answers = dict(os.environ)"))
    places = output(
        server,
        "answers = [os.readlink(one) for one in glob.glob('/proc/self/fd/*') if os.path.islink(one)] + [os.getcwd()]",
    )
    ours = (str(server.data), str(ROOT))
    opened = [place for place in places if place.startswith((*ours, "socket:"))]
    # The interpreter's own: every process in an environment holds the lock that keeps it from being removed.
    assert not [
        place for place in opened if not re.fullmatch(rf"{re.escape(str(ROOT))}/\.environments/[^/]+/in-use", place)
    ]
    variables = output(server, "answers = [submission, truth, __file__ if '__file__' in globals() else '', *sys.path]")
    assert not [path for path in variables if path.startswith(str(server.data))]
    assert not [
        name for name in output(server, "answers = list(os.environ)") if name.startswith(("SEGJUDGE", "EVALAI"))
    ]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["server", "open_server"])
def test_a_flood_of_words_fills_no_disk(request: pytest.FixtureRequest, kind: str) -> None:
    server = request.getfixturevalue(kind)
    code = """
for _ in range(300):
    os.write(2, b"x" * (1 << 20))
    sys.stdout.write("y" * (1 << 20))
answers = sum(os.lstat(one).st_blocks * 512 for one in glob.glob("/tmp/*") if os.path.isfile(one))
"""
    number = server.submit("aurora", code.encode()).json()["id"]
    done = server.settled(number)
    assert len(server.text(done["stdout_file"])) < 5 << 20
    database = sum(path.stat().st_size for path in server.data.glob("rehearsal.sqlite3"))
    assert database < 20 << 20
    used = int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{server.process.pid}/status").read_text()).group(1))  # type: ignore[union-attr]
    assert used < 300_000


def test_a_folder_is_noted_before_it_exists() -> None:
    """A process killed in between leaves a record of an absent folder, never an unrecorded folder."""
    from segjudge.platforms.evalai.hosted_worker.folder import WorkerFolder

    noted = {}
    folder = WorkerFolder(lambda path: noted.update({path: os.path.exists(path)}))
    try:
        assert noted == {folder.path: False}
        assert os.stat(folder.path).st_mode & 0o777 == 0o700
    finally:
        folder.remove()
    assert not os.path.exists(folder.path)


@pytest.mark.long
@needs_bwrap
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("for _ in range(8):\n  if os.fork() == 0:\n   held = bytearray(b'x' * (60 << 20)); time.sleep(60)", "memory together"),
        ("maps = [mmap.mmap(-1, 40 << 20) for _ in range(8)]\nfor part in maps: part.write(bytes(40 << 20))", "Cannot allocate memory"),
        ("open('/dev/shm/x', 'wb').write(bytes(500 << 20))", "No space left on device|MemoryError"),
        ("open('/x', 'wb')", "Read-only file system: '/x'"),
        ("os.memfd_create('x')", "Function not implemented"),
    ],
    ids=["children", "shared", "shm", "root", "memfd"],
)  # fmt: skip
def test_a_script_cannot_exhaust_the_machine(code: str, message: str) -> None:
    from segjudge.platforms.evalai.hosted_worker import process
    from segjudge.platforms.evalai.hosted_worker.folder import WorkerFolder
    from segjudge.platforms.evalai.hosted_worker.interpreter import Interpreter

    compute = WorkerFolder()
    try:
        place = Path(compute.root) / "challenge_data/challenge_1"
        place.mkdir()
        lines = textwrap.indent(f"{code}\ntime.sleep(60)", "    ")
        (place / "__init__.py").write_text(f"import mmap, os, time\ndef evaluate(*a, **k):\n{lines}\n")
        python = Interpreter.open(sys.executable)
        terms = process.WorkerTerms(memory=300 << 20, sandbox_program=python.find_sandbox())
        child = process.WorkerProcess(python, compute, 1, terms)
        path = compute.add_submission(1, __file__, ".txt")
        try:
            text = child.ask({"annotation": "", "submission": path, "phase": "p", "splits": []}, 60)["stderr"]
        except process.DiedError as death:
            text = str(death)
        child.kill()
        assert re.search(message, text), text
    finally:
        compute.remove()


# ── who may see what ────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    folder = tmp_path_factory.mktemp("closed")
    (folder / "data").mkdir(mode=0o755)
    with started(folder, "--workers", "0", change=private) as running:
        yield running


@pytest.mark.long
def test_a_folder_that_others_could_read_is_closed_with_its_files(closed: Rehearsal) -> None:
    assert stat.S_IMODE(closed.data.stat().st_mode) == 0o700
    for folder, _, names in os.walk(closed.data):
        for path in [folder, *(os.path.join(folder, name) for name in names)]:
            assert stat.S_IMODE(os.stat(path).st_mode) & 0o077 == 0, path


# ── hidden splits ───────────────────────────────────────────────────────────

HIDING = b"""
import json

ANSWERS = json.loads('''%s''')

def evaluate(truth, submission, phase, **kwargs):
    word = open(submission).read().strip()
    print("secret 0.4312, or about 43 in a hundred")
    if word == "fails":
        raise ValueError("after 0.4312")
    return {
        "result": [{"dev": {"J&F-Mean": 0.7512}}, {"secret": {"J&F-Mean": 0.4312}}],
        "submission_result": ANSWERS[word],
        "submission_metadata": {"secret": {"J&F-Mean": 0.4312}},
    }
"""
ROW = {"sequence": "bear", "J": 0.431234}
#: What a script leaves as its result file, and what a participant reads of it; None where all of it is withheld.
ANSWERS: dict[str, tuple[Any, Any]] = {
    "as-ours": (
        {
            "protocol": "davis2017",
            "result": [{"dev": {"J": 0.7512}}, {"secret": {"J": 0.4312}}],
            "sequences": [{"split": "dev", "J": 0.7511}, {"split": "secret", **ROW}],
            "warnings": ["dev: nothing", "secret: nothing to average for J"],
        },
        {"result": [{"dev": {"J": 0.7512}}], "sequences": [{"split": "dev", "J": 0.7511}]},
    ),
    "nested": ({"dev": {"J": 0.7512}, "all": {"secret": {"sequences": [ROW]}}}, {"dev": {"J": 0.7512}}),
    "bare": ({"J": 0.4312}, None),
    # What belongs to a visible split is shown whole, whatever it is named and whatever it scores.
    "named-as-a-sequence": ({"dev": {"secret": {"J": 0.7512}, "J": 75.12}}, {"dev": {"secret": {"J": 0.7512}, "J": 75.12}}),
    "deep": (functools.reduce(lambda inner, _: [inner], range(300), {"dev": {"J": 0.7512}}), None),  # type: ignore[arg-type, return-value]
}  # fmt: skip


def hiding(config: Any) -> None:
    many(config)
    split = dict(config["dataset_splits"][0], id=99, codename="secret", name="The secret split")
    config["dataset_splits"].append(split)
    row = dict(config["challenge_phase_splits"][0], dataset_split_id=99, visibility=1)
    config["challenge_phase_splits"].append(row)


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    script = HIDING % json.dumps({word: given for word, (given, _) in ANSWERS.items()}).encode()
    with started(tmp_path_factory.mktemp("hidden"), script=script, change=hiding) as running:
        yield running


@pytest.mark.parametrize("word", ANSWERS)
def test_a_participant_reads_nothing_of_a_hidden_split(hidden: Rehearsal, word: str) -> None:
    number = hidden.submit("aurora", word.encode(), is_public="true").json()["id"]
    assert hidden.settled(number)["status"] == "finished"
    mine = hidden.get(f"/api/jobs/submission/{number}", "aurora").json()
    theirs = hidden.get(f"/api/jobs/submission/{number}", "host").json()
    form = {"username": "aurora", "password": hidden.people["aurora"]["password"], "next": f"/submissions/{number}"}
    with requests.Session() as session:
        page = session.post(f"{hidden.address}/login", data=form, headers={"Origin": hidden.address}, timeout=60).text
        links = re.findall(r'href="(/media[^"]+|http[^"]+/media[^"]+)"', page)
    texts = [hidden.text(mine[key]) for key in ("submission_result_file", "stdout_file")]
    texts += [requests.get(link.replace("&amp;", "&"), timeout=60).text for link in links if "/txt" not in link]
    texts += [page, hidden.get("/api/jobs/challenge/1/challenge_phase/1/submission/", "aurora").text]
    texts.append(hidden.get("/challenges/1/leaderboard").text)
    for text in texts:
        of_scores = omit_varying_digits(text)
        assert "4312" not in of_scores
        assert "43.12" not in of_scores
    given, shown = ANSWERS[word]
    assert texts[0] == (WITHHELD if shown is None else json.dumps(shown))
    assert texts[1] == WITHHELD
    assert json.loads(hidden.text(theirs["submission_result_file"])) == given
    assert "secret 0.4312" in hidden.text(theirs["stdout_file"])
    assert "submission_metadata_file" not in mine


def test_what_the_rehearsal_says_of_a_failure_is_not_withheld(hidden: Rehearsal) -> None:
    number = hidden.submit("aurora", b"unknown").json()["id"]
    assert hidden.settled(number)["status"] == "failed"
    with hidden.store() as store:
        ended = Submissions(store, FileStore(store), MessageQueues(store, 30))
        store.change(Submission, number, status="running")
        ended.fail(number, "On EvalAI this would hang.")
    row = hidden.get(f"/api/jobs/submission/{number}", "aurora").json()
    assert hidden.text(row["stderr_file"]) == "On EvalAI this would hang."


def ours_with_a_hidden_split(config: Any) -> None:
    """Change the demo: only hosts see a split of the second phase, named like a sequence of the first."""
    many(config)
    config["challenge_phase_splits"][2]["visibility"] = 1
    for split in config["dataset_splits"]:
        if split["id"] == config["challenge_phase_splits"][2]["dataset_split_id"]:
            split["name"] = "bear"


@pytest.mark.long
def test_files_of_our_scorers_are_as_they_were_written(tmp_path: Path) -> None:
    bundle = bundle_with(tmp_path, ours_with_a_hidden_split)
    edit_phases(bundle, ('"test-hard", "davis2017", LABELS', '"test-hard", "davis2017", LABELS, hidden=True'))
    with Rehearsal(tmp_path / "data", ("--requests-per-minute", "100000"), bundle=bundle).start() as server:
        number = server.submit("aurora", ROOT / "examples/sequences-test/strong.zip", phase=2).json()["id"]
        assert server.settled(number)["status"] == "finished"
        mine, theirs = (server.get(f"/api/jobs/submission/{number}", who).json() for who in ("aurora", "host"))
        for key in ("submission_result_file", "stdout_file"):
            assert server.text(mine[key]) == server.text(theirs[key])
        assert json.loads(server.text(mine["submission_result_file"]))["provenance"]["limits"]


@pytest.mark.long
def test_no_rehearsal_starts_where_phases_py_shows_what_the_yaml_hides(tmp_path: Path) -> None:
    bundle = bundle_with(tmp_path, ours_with_a_hidden_split)
    with pytest.raises(AssertionError, match="shows the scores of test-hard, but the visibility in the YAML hides"):
        Rehearsal(tmp_path / "data", bundle=bundle).start()
    assert not (tmp_path / "data").exists()


def test_a_participants_link_cannot_be_made_into_a_hosts(hidden: Rehearsal) -> None:
    number = hidden.submit("aurora", b"nested").json()["id"]
    hidden.settled(number)
    link = hidden.get(f"/api/jobs/submission/{number}", "aurora").json()["submission_result_file"]
    for second in (link.replace(f"of={number}&", ""), link.replace(f"of={number}&", "of=0&"), link + "&of=0"):
        assert requests.get(second, timeout=60).status_code == 403
    for second in (f"of={number - 1}&", "of=x&", "of=%F0%9D%9F%99&"):
        assert requests.get(link.replace(f"of={number}&", second), timeout=60).status_code == 403
