"""No output reveals scores of a hidden split: each command, platform and built file, for every way of hiding.

A new command, or a new file of a build, fails here until the tables below say what leaves by it.  The routes of the
rehearsal are walked in `tests/server/test_hidden_routes.py`.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

from segjudge.cli import main
from segjudge.commands import COMMANDS, PLATFORMS
from segjudge.evaluation_script.main import evaluate_phase
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from segjudge.platforms.evalai.bundle.phase_splits import splits_of
from segjudge.remote_challenge_evaluation import evaluate as remote
from tests.builders import ROOT

SAMPLE = ROOT / "examples/sequences-test/strong.zip"
CODENAME, SECRET = "all", "test-hard"


class Way(NamedTuple):
    """How a challenge hides its split `test-hard`."""

    visibility: int
    in_phases: bool
    #: The flag of the phase that is not set.
    unset: str

    @property
    def hidden(self) -> bool:
        return self.visibility != 3 or self.in_phases

    @property
    def agrees(self) -> bool:
        return (self.visibility != 3) == self.in_phases

    @property
    def unpublished(self) -> bool:
        return self.hidden or bool(self.unset)

    def __str__(self) -> str:
        return f"visibility-{self.visibility}{'-phases.py' * self.in_phases}{f'-no-{self.unset}' * bool(self.unset)}"


WAYS = [Way(*way) for way in itertools.product((3, 1, 2), (False, True), ("", "is_public", "leaderboard_public"))]


@pytest.fixture(scope="module")
def challenge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a challenge with the splits test and test-hard, which are visible to everybody."""
    folder = tmp_path_factory.mktemp("new") / "challenge"
    truth = str(ROOT / "annotations/sequences-test.zip")
    assert main(["new", str(folder), "--protocol", "davis2017", "--truth", truth, "--quiet"]) == 0
    phases = folder / "evaluation_script/phases.py"
    phases.write_text(phases.read_text().replace('codename="all",', 'codename="all", report=True, detail="all",'))
    return folder


@pytest.fixture(scope="module")
def marks(challenge: Path, tmp_path_factory: pytest.TempPathFactory) -> re.Pattern[str]:
    """Return the digits of each score of test-hard, except digits that also occur in the output about test."""
    phase = find_bundle(str(challenge)).script_phase(CODENAME)
    with redirect_stdout(StringIO()):
        answer = evaluate_phase(phase, str(challenge / phase.annotations), str(SAMPLE))
    (scores,) = [entry[SECRET] for entry in answer["result"] if SECRET in entry]
    forms = [
        form
        for value in scores.values()
        if 0.05 < value < 0.999
        for form in (repr(value)[:6], repr(100 * value)[:6], f"{value:.3f}(?!\\d)", f"{100 * value:.2f}(?!\\d)")
    ]
    page = tmp_path_factory.mktemp("open") / "page.html"
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(challenge)
        _, output = run("score", SAMPLE, "--phase", CODENAME, "--split", "test", "--report", page, "--json", "-")
    shown = output + page.read_text()
    secret_forms = [form for form in forms if not re.search(form, shown)]
    assert len(secret_forms) > 6
    return re.compile(rf"(?<![\d.])(?:{'|'.join(secret_forms)})")


def hide(challenge: Path, way: Way, folder: Path) -> Path:
    """Copy the challenge, and hide its split in this way."""
    mine = folder / "mine"
    shutil.copytree(challenge, mine)
    config, phases = mine / "challenge_config.yaml", mine / "evaluation_script/phases.py"
    before, old, after = config.read_text().rpartition("visibility: 3")
    text = f"{before}visibility: {way.visibility}{after}"
    assert old
    config.write_text(text.replace(f"    {way.unset}: True", f"    {way.unset}: False") if way.unset else text)
    before, _, after = phases.read_text().rpartition("LABELS)")
    phases.write_text(f"{before}LABELS{', hidden=True' * way.in_phases}){after}")
    return mine


def run(*arguments: object) -> tuple[int, str]:
    """Run a command; return its exit code and all output."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(out):
        code = main([*map(str, arguments)])
    return code, out.getvalue()


def spill(path: Path) -> Iterator[str]:
    """Yield the text of all files below a folder, including members of zips."""
    for file in sorted(path.rglob("*")) if path.is_dir() else [path] if path.exists() else []:
        if file.is_file():
            yield from _texts_of(file.read_bytes())


def _texts_of(data: bytes) -> Iterator[str]:
    yield data.decode("utf-8", "replace")
    if zipfile.is_zipfile(BytesIO(data)):
        with zipfile.ZipFile(BytesIO(data)) as members:
            for name in members.namelist():
                yield from _texts_of(members.read(name))


# ── what leaves, door by door ───────────────────────────────────────────────────────────────────────────────────────


def leave_evalai(mine: Path, folder: Path, way: Way) -> Iterator[str]:
    """Yield the output for EvalAI's participants: a leaderboard by the YAML, and the files of the uploaded scorers."""
    code, output = run("build", mine, "--out", folder / "bundle.zip", "--no-kernel")
    assert (code == 0) == way.agrees, output
    assert (folder / "bundle.zip").exists() == way.agrees
    code, results = run("check", mine, "--quick")
    assert (code == 0) == way.agrees, results
    assert way.agrees or SECRET in results
    if way.agrees:
        source = find_bundle(str(folder / "bundle.zip"))
        with redirect_stdout(StringIO()) as stdout, redirect_stderr(stdout):
            phase = source.script_phase(CODENAME)
            answer = evaluate_phase(phase, str(mine / phase.annotations), str(SAMPLE))
        config = source.config()
        row = config["challenge_phases"][0]
        shown = {split.codename for split in splits_of(config, row) if split.row["visibility"] == 3}
        yield json.dumps([entry for entry in answer["result"] if shown & entry.keys() and not way.unset])
        if not way.unset:  # otherwise participants read it about their own submissions
            yield json.dumps(answer["submission_result"]) + stdout.getvalue()


def leave_remote(mine: Path, _folder: Path, way: Way) -> Iterator[str]:
    """Yield the report of a remote worker for participants, whether or not the two agree."""
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(StringIO()) as stdout, redirect_stderr(stdout):
        patched.setenv("BUNDLE", str(mine))
        answer = remote.evaluate(str(SAMPLE), CODENAME, str(mine / "annotations/all.zip"))
    shown = [entry for entry in answer["result"] if entry["show_to_participant"]]
    if not way.unset or way.hidden:
        yield json.dumps([shown, answer["submission_result"]]) + stdout.getvalue()


def leave_hub(mine: Path, folder: Path, _way: Way) -> Iterator[str]:
    """Yield the files that hubs and participants publish, and what a check of one prints."""
    record = folder / "record.json"
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(mine)
        run("score", SAMPLE, "--phase", CODENAME, "--results-yaml", folder / "me.yaml", "--hub-dataset", "me/data")
        run("score", SAMPLE, "--phase", CODENAME, "--record", record)
        if record.exists():
            yield run("verify", record, "--submission", SAMPLE, "--phase", CODENAME)[1]
    yield from spill(folder / "me.yaml")
    yield from spill(record)


def leave_rescore(mine: Path, folder: Path, _way: Way) -> Iterator[str]:
    """Yield the leaderboards of submissions that were scored again, and the files beside them."""
    (folder / "sent").mkdir()
    shutil.copy(SAMPLE, folder / "sent")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(mine)
        _, output = run("rescore", folder / "sent", "--phase", CODENAME, "--out", folder / "again")
    yield from (output, *spill(folder / "again"))


def leave_codabench(mine: Path, folder: Path, way: Way) -> Iterator[str]:
    """Yield Codabench's output for people who can see the competition: scores, and detailed results."""
    code, output = run("build", mine, "--platform", "codabench", "--out", folder / "codabench", "--no-kernel")
    assert (code == 0) == (way.agrees and way.unset != "leaderboard_public"), output
    if code:
        assert not (folder / "codabench").exists()
        return
    (built,) = (folder / "codabench").iterdir()
    place = folder / "app"
    with zipfile.ZipFile(built) as competition:
        for name in ("scoring_program.zip", *(name for name in competition.namelist() if "reference" in name)):
            target = place / ("program" if "scoring" in name else "input/ref")
            zipfile.ZipFile(BytesIO(competition.read(name))).extractall(target)
    zipfile.ZipFile(SAMPLE).extractall(place / "input/res")
    (place / "output").mkdir()
    done = subprocess.run(
        [sys.executable, place / "program/score.py", place / "input", place / "output"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    if way.unset != "is_public":  # otherwise the competition is not published
        yield from (done.stdout, done.stderr, *spill(place / "output"))


def leave_grand_challenge(mine: Path, folder: Path, way: Way) -> Iterator[str]:
    """Yield the output for grand-challenge's participants: the metrics, and the container's output."""
    code, output = run("build", mine, "--platform", "grand-challenge", "--out", folder / "gc", "--no-kernel")
    assert (code == 0) == (way.agrees and way.unset != "leaderboard_public"), output
    if code:
        assert not (folder / "gc").exists()
        return
    (built,) = (folder / "gc").iterdir()
    settings = json.loads((built / "phase-settings.json").read_text())
    is_published = {settings[name] for name in ("public", "auto_publish_new_results", "display_all_metrics")}
    assert is_published == {way.unset != "is_public"}
    (folder / "input").mkdir()
    (folder / "output").mkdir()
    shutil.copy(SAMPLE, folder / "input")
    done = subprocess.run(
        [sys.executable, built / "evaluate.py", folder / "input", mine / "annotations", folder / "output"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    if way.hidden or way.unset != "is_public":  # what is not public only organisers read there
        yield from (done.stdout, done.stderr, *spill(folder / "output"))


def leave_rehearsal(mine: Path, folder: Path, way: Way) -> Iterator[str]:
    """Yield the output of a rehearsal, which does not start if the two disagree; other tests visit its routes."""
    if not way.agrees:
        code, output = run("rehearse", mine, "--data", folder / "data", "--port", "0")
        assert (code, (folder / "data").exists()) == (3, False), output
        yield output


_Door = Callable[[Path, Path, Way], Iterator[str]]
DOORS: dict[str, _Door] = {
    "EvalAI": leave_evalai, "remote worker": leave_remote, "hub": leave_hub, "rescore": leave_rescore,
    "Codabench": leave_codabench, "grand-challenge": leave_grand_challenge, "rehearsal": leave_rehearsal,
}  # fmt: skip
#: Platforms on which every way takes a second or more.
_SLOW = ("Codabench", "grand-challenge")
#: The way that shows all of a challenge without secrets; a rehearsal is tested elsewhere.
_OPEN = Way(3, in_phases=False, unset="")


def _list_walks() -> Iterator[object]:
    for name, way in itertools.product(DOORS, WAYS):
        marks = [pytest.mark.long] if name in _SLOW and way.unset else []
        yield pytest.param(DOORS[name], way, marks=marks, id=f"{name}-{way}")


@pytest.mark.parametrize(("leave", "way"), [*_list_walks()])
def test_scores_leave_by_a_door_only_if_their_split_is_published(
    leave: _Door, way: Way, challenge: Path, marks: re.Pattern[str], tmp_path: Path
) -> None:
    texts = list(leave(hide(challenge, way, tmp_path), tmp_path, way))
    secrets = [match for text in texts for match in marks.findall(text)]
    if way == _OPEN and leave is not leave_rehearsal:
        assert secrets, "the walk sees no scores where they are shown, and so proves nothing"
    if way.unpublished:
        assert secrets == []


# ── what a host keeps ───────────────────────────────────────────────────────────────────────────────────────────────

REMARK = f"{SECRET} is hidden from participants"


@pytest.mark.parametrize("way", [Way(1, True, ""), Way(1, False, ""), Way(3, True, "")], ids=str)
def test_files_of_a_host_say_that_they_hold_a_hidden_split(
    way: Way, challenge: Path, marks: re.Pattern[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(hide(challenge, way, tmp_path))
    arguments = ["score", SAMPLE, "--phase", CODENAME, "--split", SECRET]
    code, output = run(*arguments, "--report", "page.html", "--save", "a.segjudge", "--json", "a.json")
    assert code == 0
    assert REMARK in output
    assert REMARK in Path("page.html").read_text()
    assert json.loads(Path("a.json").read_text())["hidden"] == [SECRET]
    shutil.copy("a.segjudge", "b.segjudge")
    files = ("a.segjudge", "b.segjudge")
    code, output = run("compare", *files, "--out", "compared.html", "--markdown", "comment.md", "--table", "table.tex")
    assert (code, REMARK in output) == (0, True)
    code, output = run("rank", *files, "--out", "ranked.html")
    assert (code, REMARK in output) == (0, True)
    code, output = run("rank", "a=a.json", "b=a.json")
    assert (code, REMARK in output) == (0, True)
    for name in ("compared.html", "comment.md", "table.tex", "ranked.html"):
        assert REMARK in Path(name).read_text(), name
    from segjudge import load

    scores = load("a.segjudge")
    assert (scores.hidden, REMARK in scores._repr_html_()) == ([SECRET], True)
    code, output = run("report", "a.json", "--out", "stored.html")
    assert (code, REMARK in Path("stored.html").read_text()) == (0, True)
    assert marks.search(Path("stored.html").read_text())


def test_a_cluster_scores_no_phase_and_so_no_hidden_split(
    challenge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(hide(challenge, Way(1, True, ""), tmp_path))
    code, output = run("score", SAMPLE, "--phase", CODENAME, "--scheduler", "tcp://127.0.0.1:1")
    assert (code, "--scheduler does not apply to --phase" in output) == (2, True)


def test_samples_of_a_phase_with_a_hidden_split_are_not_offered(challenge: Path, tmp_path: Path) -> None:
    mine = hide(challenge, Way(1, True, ""), tmp_path)
    arguments = ("build", mine, "--platform", "codabench", "--out", tmp_path / "out", "--no-kernel", "--samples")
    code, output = run(*arguments)
    assert (code, list((tmp_path / "out").glob("*"))) == (2, [])
    assert f"--samples: the samples of {CODENAME} may give away {SECRET}, which is hidden" in output
    shutil.rmtree(mine / "examples")
    assert run(*arguments)[0] == 0


# ── the tables of doors ─────────────────────────────────────────────────────────────────────────────────────────────

_WALKED, _OWN, _NONE = (
    "walked above",
    "shows its user the truth in their hands, and says what is hidden",
    "has no scores",
)
#: The output of each command.
BY_COMMAND = {
    **dict.fromkeys(("build", "check", "rehearse", "score", "verify"), _WALKED),
    **dict.fromkeys(("run", "merge", "compare", "rank", "report", "arena"), _OWN),
    **dict.fromkeys(("new", "benchmarks", "pack", "compress", "demo", "schema", "interactive"), _NONE),
    "push": "uploads what `check` lets pass",
    "leave": "writes an archive for the host, which is as private as the truth",
    "board": "walked in tests/server/test_boards.py",
    "rescore": f"{_WALKED}; archives: tests/archive/test_rescore.py",
    "worker": "reports what `remote worker` above returns, and of scorers of a host's own what test_guest_remote.py holds",
}
_HUB = "walked in tests/platforms/hugging_face/test_push.py"
BY_PLATFORM = {
    "codabench": {"run": _OWN, "build": _WALKED, "check": _NONE, "push": "uploads what `build` made"},
    "grand-challenge": {"build": _WALKED},
    "hugging-face": {"build": _HUB, "check": _NONE, "push": _HUB, "worker": "walked in tests/hub/test_evaluator.py"},
    "github": {"check": _NONE, "worker": "walked in tests/platforms/github/test_board_worker.py"},
}  # fmt: skip
#: The files of builds, apart from the scorers' and those of packages.
BY_FILE = {
    "evalai": {"challenge_config.yaml", "evaluation_script.zip", "annotations/all.zip", "logo.png", "templates/N.html"},
    "codabench": {
        *("competition.yaml", "logo.png", "terms.html", "pages/N.html", "scoring_program.zip", "reference_data/all.zip"),
    },
    "grand-challenge": {
        *("Dockerfile", ".dockerignore", "evaluate.py", "platform_input.py", "task.json", "phase-settings.json", "ground_truth.tar.gz"),
    },
}  # fmt: skip


def test_the_tables_have_every_command_and_platform() -> None:
    assert set(COMMANDS) == set(BY_COMMAND)
    assert {name: set(rows) for name, rows in PLATFORMS.items()} == {
        name: set(rows) for name, rows in BY_PLATFORM.items()
    }


def test_the_tables_have_every_file_of_a_build(challenge: Path, tmp_path: Path) -> None:
    mine = hide(challenge, Way(1, True, ""), tmp_path)
    files = {}
    for platform in BY_FILE:
        out = tmp_path / (f"{platform}.zip" if platform == "evalai" else platform)
        assert run("build", mine, "--platform", platform, "--out", out, "--no-kernel")[0] == 0
        if platform == "grand-challenge":
            (root,) = out.iterdir()
            names = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
        else:
            with zipfile.ZipFile(out if out.is_file() else next(out.iterdir())) as archive:
                names = archive.namelist()
        own_names = [name for name in names if not name.startswith("evaluation_script/")]
        files[platform] = {re.sub(r"/\w+\.html", "/N.html", name) for name in own_names}
    assert files == BY_FILE


def test_one_module_reads_visibilities() -> None:
    """Code that reads only the YAML's visibility or `phases.py` would decide differently what is hidden."""
    readers = {
        path.relative_to(ROOT).as_posix()
        for folder in ("segjudge", "remote_challenge_evaluation", "code_upload_challenge_evaluation")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"""\.visibility\b|\[?["']visibility["']|\bread_phases\(|script_phases?\(""", path.read_text())
    }
    assert readers == VISIBILITY_READERS


BUNDLE = "segjudge/platforms/evalai/bundle"
#: Where a visibility, or `phases.py` as it stands, is read, and why.
VISIBILITY_READERS = {
    f"{BUNDLE}/secrecy.py",  # decides
    f"{BUNDLE}/bundle_source.py",  # asks it
    *(
        f"{BUNDLE}/{name}.py" for name in ("agreed_splits", "agreement", "annotations", "fields", "server_state")
    ),  # compare
    f"{BUNDLE}/build.py",  # refuses disagreements for Codabench and grand-challenge
    "segjudge/platforms/evalai/boards.py",  # asks `is_visible`
    "segjudge/archive/evalai.py",  # stores it, and asks `find_unpublished` what is hidden
    *(f"segjudge/server/{name}.py" for name in ("accounts", "actions/reading", "actions/hosting")),  # ask it too
    *(f"segjudge/server/{name}.py" for name in ("api", "bundle_import", "evalai_json")),  # store, and tell hosts
    "segjudge/server/report_program.py",  # for pages of what participants see, beside the visibilities that are stored
    "segjudge/commands/rehearse.py",  # seconds of a message, not of a split
    "segjudge/commands/truths.py",  # a terminal's table
    "remote_challenge_evaluation/scorer_process.py",  # another function of that name
    "remote_challenge_evaluation/worker_loop.py",  # calls that one
}
