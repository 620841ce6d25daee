"""The commands, as people type them."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock, call

import numpy as np
import pytest
import yaml

from segjudge.cli import main, make_parser
from segjudge.commands import COMMANDS, EARLIER, EXIT_CODES, GROUPS, PLATFORMS, RARE
from segjudge.commands.score import _OFFICIAL
from segjudge.commands.shared import listen
from segjudge.evaluation_script.families import PROTOCOLS, folder_of
from segjudge.evaluation_script.phases import PHASES
from segjudge.evaluation_script.scoring import scorer
from segjudge.platforms.evalai.bundle.build import build
from segjudge.starting.new_challenge import write_demo_truth
from segjudge.system.errors import UsageError
from tests.builders import ANNOTATIONS, ROOT, STRONG, label_zip, png
from tests.demo_challenge import CODENAMES
from tests.families.choices import SKIPS_MISSING, WITH_UNSEEN
from tests.families.contract import examples

ONE = np.zeros((40, 60), np.uint8)
ONE[5:20, 5:30] = 1
TWO = ONE.copy()
TWO[25:35, 30:50] = 2


def davis(root: Path) -> Path:
    """Write a DAVIS root with two sequences in its val list."""
    for name in ("dog", "cat", "train-only"):
        folder = root / "Annotations/480p" / name
        folder.mkdir(parents=True)
        for k in range(6):
            (folder / f"{k:05d}.png").write_bytes(png(TWO))
    lists = root / "ImageSets/2017"
    lists.mkdir(parents=True)
    (lists / "val.txt").write_text("dog\ncat\n")
    (lists / "train.txt").write_text("train-only\n")
    return root


def of_davis(root: Path, subset: str = "val") -> list[str]:
    """Return the command that packs a subset of a DAVIS folder, without its output."""
    return ["pack", "--layout", "davis2017", "--root", str(root), "--subset", subset]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return davis(tmp_path / "DAVIS")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "results.zip"
    path.write_bytes(label_zip({"dog": [TWO] * 6, "cat": [ONE] * 6}))
    return path


def test_a_model_hub_reads_one_value_for_each_split(root: Path, results: Path, tmp_path: Path) -> None:
    target, full = tmp_path / "me.yaml", tmp_path / "scores.json"
    arguments = ["score", str(results), "--truth", str(root), "--protocol", "davis2017", "--subset", "val"]
    arguments += ["--results-yaml", str(target), "--hub-dataset", "someone/davis", "--json", str(full)]

    assert main(arguments) == 0

    (entry,) = yaml.safe_load(target.read_text())
    assert entry["dataset"] == {"id": "someone/davis", "task_id": "val"}
    assert entry["value"] == json.loads(full.read_text())["result"][0]["val"]["J&F-Mean"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", entry["date"])  # a text, because hubs refuse a YAML date
    assert "protocol davis2017" in entry["notes"]
    assert "J-Mean" in entry["notes"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--results-yaml", "me.yaml"], "--results-yaml needs --hub-dataset OWNER/NAME"),
        (["--results-yaml", "me.yaml", "--hub-dataset", "coco"], "'coco' does not have that form"),
        (["--results-yaml", "me.yaml", "--hub-dataset", "a/b/c"], "'a/b/c' does not have that form"),
        (["--hub-dataset", "a/b"], "--hub-dataset needs --results-yaml"),
    ],
)
def test_a_file_for_model_hubs_names_their_data_set(
    options: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("sent.zip", "truth.zip", "a.part"):
        (tmp_path / name).touch()
    for arguments in (["score", "sent.zip", "--truth", "truth.zip", "--protocol", "coco"], ["merge", "a.part"]):
        assert main([*arguments, *options]) == 2
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "me.yaml").exists()


def test_csv_files_have_the_official_form(root: Path, results: Path, tmp_path: Path) -> None:
    for protocol in ("davis2017", SKIPS_MISSING):
        main(["score", str(results), "--truth", str(root), "--protocol", protocol, "--csv", str(tmp_path / protocol)])

    with open(tmp_path / "davis2017/global_results-val.csv", newline="") as file:
        assert list(csv.reader(file)) == [
            ["J&F-Mean", "J-Mean", "J-Recall", "J-Decay", "F-Mean", "F-Recall", "F-Decay"],
            ["0.750", "0.750", "0.750", "0.000", "0.750", "0.750", "0.000"],
        ]
    assert (tmp_path / "davis2017/per-sequence_results-val.csv").read_text() == (
        "Sequence,J-Mean,F-Mean\ndog_1,1.000,1.000\ndog_2,1.000,1.000\ncat_1,1.000,1.000\ncat_2,0.000,0.000\n"
    )
    assert (tmp_path / SKIPS_MISSING / "results.csv").read_text() == (
        "sequence    ,obj,  J&F,    J,    F\n"
        "Global score,   , 75.0, 75.0, 75.0\n"
        "dog         ,001, 100.0, 100.0, 100.0\n"
        "dog         ,002, 100.0, 100.0, 100.0\n"
        "cat         ,001, 100.0, 100.0, 100.0\n"
        "cat         ,002,  0.0,  0.0,  0.0\n"
    )


@pytest.fixture
def challenge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """Create a challenge of instances with one phase, and run commands in its folder."""
    assert main(["new", str(tmp_path / "mine"), "--demo", "--protocol", "coco"]) == 0
    monkeypatch.chdir(tmp_path / "mine")
    capsys.readouterr()
    return tmp_path / "mine"


@pytest.mark.long
@pytest.mark.parametrize("phase", [[], ["--phase", "val"]])
def test_commands_in_a_challenges_folder_score_by_its_phase(
    phase: list[str], challenge: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, poor = "examples/val/good.zip", "examples/val/poor.zip"
    truth = ["--truth", "annotations/val.zip", "--protocol", "coco"]

    def run_twice(arguments: list[str], out: str, *images: str) -> tuple[str, str]:
        """Return a command's output with the phase and with the truth's path, which has no images of its own."""
        for by in (phase, [*truth, *images]):
            assert main([*arguments, *by, "--quiet"]) == 0, capsys.readouterr().err
            written.append(Path(out).read_text())
        capsys.readouterr()
        return written[-2], written[-1]

    written = list[str]()
    by_phase, by_truth = (json.loads(text) for text in run_twice(["score", good, "--json", "a.json"], "a.json"))
    assert by_phase["result"] == by_truth["result"]
    by_phase, by_truth = (json.loads(text) for text in run_twice(["compare", good, poor, "--json", "c.json"], "c.json"))
    assert by_phase == by_truth
    by_phase, by_truth = run_twice(["report", good, "--out", "r.html"], "r.html", "--images", "pictures/val")
    assert abs(len(by_phase) - len(by_truth)) < len(by_truth) / 50
    assert "Average precision" in by_phase


def test_a_challenge_of_several_phases_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["score", str(STRONG)], ["report"], ["compare", str(STRONG), f"b={STRONG}"]):
        assert main(arguments) == 2
        assert f"--phase CODENAME ({', '.join(CODENAMES)})" in capsys.readouterr().err


def test_datasets_are_added_as_splits(root: Path, results: Path, tmp_path: Path, capsys: Any) -> None:
    packed = str(tmp_path / "truth.zip")
    for split, subset in (("easy", "val"), ("hard", "train")):
        main([*of_davis(root, subset), "--out", packed, "--split", split])
    assert main(["score", str(results), "--truth", packed, "--protocol", "davis2017"]) == 1
    assert "train-only" in capsys.readouterr().err
    assert main(["score", str(results), "--truth", packed, "--protocol", "davis2017", "--split", "easy"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--phase", "instances-dev", "--cap", "image"], "--cap does not apply to --phase"),
        (["--truth", "{root}", "--protocol", "davis2017", "--cap", "image"], "--cap does not apply to sequences"),
        (
            ["--truth", "{root}", "--protocol", "davis2017", "--style", "official"],
            "--style does not apply to sequences",
        ),
        (["--truth", "{root}", "--protocol", "coco", "--layout", "generic"], "--layout does not apply to instances"),
        (["--truth", "{root}", "--protocol", "davis2017", "--json", "/nowhere/x.json"], "cannot be written"),
    ],
)
def test_no_option_is_ignored_in_silence(
    arguments: list[str], message: str, root: Path, results: Path, capsys: Any
) -> None:
    assert main(["score", str(results), *(part.format(root=root) for part in arguments)]) == 2
    assert message in capsys.readouterr().err


def test_files_are_written_though_nobody_reads_the_tables(root: Path, results: Path, tmp_path: Path) -> None:
    target = tmp_path / "scores.json"
    arguments = [
        sys.executable, "-m", "segjudge", "score", results, "--truth", root, "--protocol", "davis2017", "--json",
        target,
    ]  # fmt: skip
    subprocess.run(f"{shlex.join(map(str, arguments))} | true", shell=True, cwd=ROOT, check=True, capture_output=True)
    assert json.loads(target.read_text())["result"]


WORKER = os.environ.get("SEGJUDGE_WORKER_PYTHON", "")
#: Modules that none of these commands needs, and that take long to load.
_SLOW = {
    *("PIL.Image", "asyncio", "concurrent.futures", "email", "http", "logging", "multiprocessing", "numpy.ma"),
    *("pandas", "scipy", "sqlite3", "yaml"),
}
#: The rows of a family; the rows of every family are loaded.
_ROW = re.compile(r"evaluation_script\.families\.\w+(\.protocols)?$")
_TRUTHS = str(ANNOTATIONS), str(ROOT / "annotations/instances-dev.zip")
_SHARP = str(ROOT / "examples/instances-dev/sharp.json")


@pytest.mark.skipif(not WORKER, reason="PYTHON 3.9 ABSENT: use ./run.sh test")
def test_the_upload_loads_all_that_its_phases_may_need_before_the_worker_may_lose_its_folder() -> None:
    modules = _modules_of(WORKER, f"sys.path.insert(0, {str(ROOT)!r})\nfrom evaluation_script import evaluate")
    script = ROOT / "evaluation_script"
    families = {PROTOCOLS[split.protocol].family for phase in PHASES for split in phase.splits}
    folders = {"base", *map(folder_of, families)}
    needed = {path.relative_to(ROOT).with_suffix("") for path in script.rglob("*.py") if path.name != "__init__.py"}
    needed = {path for path in needed if path.parts[1] != "families" or path.parts[2] in folders}

    loaded = {name for name in modules if name.startswith("evaluation_script") and not _ROW.search(name)}
    rows = {f"evaluation_script.families.{folder}.protocols" for folder in folders}
    packages = {
        "evaluation_script",
        *(f"evaluation_script.{path.parent.name}" for path in script.glob("*/__init__.py")),
    }
    packages |= {"evaluation_script.families.base"}
    assert loaded - packages == {".".join(path.parts) for path in needed} - rows
    assert modules & (_SLOW - {"numpy.ma"}) == set()  # which numpy 1 imports itself


def _modules_of(python: str, statement: str) -> set[str]:
    program = f"""
import atexit, sys
before = set(sys.modules)
atexit.register(lambda: print(*sorted(set(sys.modules) - before)))
{statement}"""
    done = subprocess.run([python, "-I", "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def _help_of(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(arguments)
    return capsys.readouterr().out.splitlines()


def test_every_help_begins_with_an_example_that_the_command_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = [*COMMANDS, *(f"{name} --platform {key}" for key, table in PLATFORMS.items() for name in table)]
    actions = [f"interactive {name}" for name in ("serve", "run", "demo", "plot")]
    for command in ["", *commands, *actions]:
        lines = _help_of([*command.split(), "--help"], monkeypatch, capsys)
        assert lines[0] == "example:"
        assert max(map(len, lines)) <= 80, command
        example = lines[1].strip().removeprefix('eval "$(').removesuffix(')"')
        arguments = shlex.split(example)
        assert arguments[0] == "segjudge"
        assert arguments[1] == (command.split() or ["score"])[0]
        make_parser(arguments[1:]).parse_args(arguments[1:])


def test_help_needs_nothing_but_the_standard_library() -> None:
    code = """
import sys
sys.path.append(sys.argv[1])
from segjudge.cli import main
for words in sys.argv[2:]:
    try:
        main([*words.split(), "--help"])
    except SystemExit:
        continue
    print(words, "has no help without packages", file=sys.stderr)
"""
    commands = [*COMMANDS, *(f"{name} --platform {key}" for key, table in PLATFORMS.items() for name in table)]
    arguments = [sys.executable, "-I", "-S", "-B", "-c", code, str(ROOT), *commands]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    assert done.stdout.count("usage: ") == len(commands)


def test_a_score_without_a_list_of_unseen_objects_says_so(root: Path, results: Path, capsys: Any) -> None:
    main(["score", str(results), "--truth", str(root), "--protocol", WITH_UNSEEN])
    out, err = capsys.readouterr()
    assert "the unseen classes are unknown" in err
    assert "nothing to average for J-unseen-Mean" in err
    assert "–" in out


def test_what_evalai_takes_and_what_it_refuses_are_two_verdicts_with_two_exit_codes(
    tmp_path: Path, capsys: Any
) -> None:
    with zipfile.ZipFile(build(str(ROOT), str(tmp_path / "a.zip")).path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    text = content["challenge_config.yaml"].decode()
    annotation = "    test_annotation_file: annotations/sequences-dev.zip\n"
    bundles = {
        "title": (text.replace("title: ", "title_: ", 1), 3, "EvalAI would reject this bundle."),
        "annotation": (text.replace(annotation, "", 1), 4, "EvalAI would accept this bundle by push only, but the challenge would not work"),
        "labels": (text.replace("J&F-Mean", "J&F", 1), 3, "EvalAI would reject this bundle."),
        "phase": (text.replace("codename: sequences-dev", "codename: other"), 4, "EvalAI would accept this bundle by push and by its web form, but the challenge would not work"),
        "nothing": (text, 0, "EvalAI's own rules would accept this bundle by push and by its web form."),
    }  # fmt: skip
    for name, (changed, code, verdict) in bundles.items():
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            for member, data in content.items():
                archive.writestr(member, changed if member == "challenge_config.yaml" else data)
        assert main(["check", "--quick", str(tmp_path / f"{name}.zip")]) == code, name
        out = capsys.readouterr().out
        assert verdict in out, out
        assert len(re.findall(r"EvalAI(?:'s own rules)? would (accept|reject) ", out)) == 1


def test_check_says_for_programs_whether_the_kernel_is_in_the_bundle(capsys: Any) -> None:
    assert main(["check", "--quick", "--json"]) == 0
    kernel = json.loads(capsys.readouterr().out)["kernel"]
    assert main(["check", "--quick"]) == 0
    assert f"It was checked with{'' if kernel else 'out'} kernel" in capsys.readouterr().out


def test_a_port_that_is_taken_is_said_with_what_to_do() -> None:
    with listen("127.0.0.1", 0) as port:
        number = port.getsockname()[1]
        reason = (
            rf"^port {number} of 127\.0\.0\.1 is not available \(Address already in use\); choose another with --port$"
        )
        with pytest.raises(UsageError, match=reason):
            listen("127.0.0.1", number)


# ── names that there are not ────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["score", "--protocol", "davs2017"], "'davs2017' does not exist; did you mean davis2017?"),
        (["scoer"], "there is no command 'scoer'; did you mean score?"),
        (["pack", "--layout", "davis", "--root", "x", "--out", "y"], "did you mean davis2017?"),
        (["score", "{results}", "--phase", "sequence-dev"], f"{CODENAMES[-1]}. Did you mean sequences-dev?"),
        (["score", "{results}", "--phase", "sequences-dev", "--split", "dve"], "no split 'dve', only dev; did you mean"),
        ([*["score", "{results}", "--truth", "{packed}", "--protocol", "davis2017", "--split", "dve"]], "only dev; did you mean dev?"),
        (
            [*["score", "{results}", "--truth", "{packed}", "--protocol", "davis2017", "--sequences", "sloo"]],
            "the truth has no sequence sloo, only crossing, late-guest, solo; did you mean solo?",
        ),
        ([*["report", "--truth", "{packed}", "--out", "x.html", "--sequences", ","]], "sequences names none"),
        ([*["compare", "{results}", "b={results}", "--truth", "{packed}", "--metric", "J-Deca"]], "did you mean J-Decay?"),
    ],
)  # fmt: skip
def test_a_name_that_there_is_not_gets_the_nearest_and_the_list(
    arguments: list[str], expected: str, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = {"results": STRONG, "packed": ANNOTATIONS}
    try:
        code = main([word.format(**paths) for word in arguments])
    except SystemExit as error:
        code = int(str(error.code))
    assert code == 2
    output = capsys.readouterr().err
    assert expected in output
    assert "usage:" not in output


@pytest.mark.parametrize("protocol", examples("subsets"))
def test_a_subset_that_there_is_not_is_refused_in_every_family(protocol: str, tmp_path: Path, capsys: Any) -> None:
    truth = write_demo_truth(PROTOCOLS[protocol], str(tmp_path))
    assert main(["score", str(STRONG), "--truth", truth, "--protocol", protocol, "--subset", "nope"]) == 3
    error = capsys.readouterr().err
    assert "'nope'" in error or "ImageSets/2017/nope.txt" in error
    if PROTOCOLS[protocol].family != "sequences":  # other layouts have no lists, and their only split is called val
        assert main(["score", str(STRONG), "--truth", truth, "--protocol", protocol, "--subset", "val"]) in (0, 1)


@pytest.mark.parametrize("protocol", examples("chosen units"))
def test_sequences_are_chosen_by_the_names_of_the_tables(protocol: str, tmp_path: Path, capsys: Any) -> None:
    assert main(["new", str(tmp_path / "new"), "--demo", "--protocol", protocol]) == 0
    arguments = ["score", str(tmp_path / "new/examples/val/poor.zip"), "--protocol", protocol, "--strict"]
    arguments += ["--truth", str(tmp_path / "new/annotations/val.zip"), "--json", "-"]
    capsys.readouterr()
    assert main(arguments) == 0
    whole = json.loads(capsys.readouterr().out)
    rows = {row["sequence"]: row for row in whole.get("sequences", []) if "sequence" in row}
    (truth,) = scorer.read_truth(str(tmp_path / "new/annotations/val.zip"), protocol).splits.values()
    chosen = [*(rows or truth.item_names)][1:]
    assert main([*arguments, "--sequences", ",".join(chosen)]) == 0
    output = capsys.readouterr()
    assert "not in the truth" not in output.err
    part = json.loads(output.out)
    if rows:
        assert {row["sequence"]: row for row in part["sequences"]} == {name: rows[name] for name in chosen}
    assert main([*arguments, "--sequences", ",".join([*chosen, chosen[0]])]) == 0
    assert json.loads(capsys.readouterr().out)["result"] == part["result"]
    for option in ("", ","):
        assert main([*arguments, "--sequences", option]) == 2
        assert "sequences names none: give a list of names" in capsys.readouterr().err


# ── the terminal ────────────────────────────────────────────────────────────


def _read_output(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[object, str]:
    """Run a command that argparse ends; return its exit code and output."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return caught.value.code, "".join(capsys.readouterr())


def test_the_help_shows_every_command_once_and_what_is_done_daily_first(capsys: pytest.CaptureFixture[str]) -> None:
    shown, rare = ([name for names in table.values() for name in names] for table in (GROUPS, RARE))
    assert sorted([*shown, *rare]) == sorted(COMMANDS)
    for arguments, expected in (
        ([], shown),
        (["help"], shown),
        (["--help"], shown),
        (["help", "--all"], [*shown, *rare]),
    ):
        code, text = _read_output(arguments, capsys)
        assert code == 0
        assert re.findall(r"^  ([a-z]+)  ", text, re.MULTILINE) == expected
    assert shown[:3] == ["score", "report", "compare"]


def test_all_commands_have_one_table_of_exit_codes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    _, text = _read_output(["help", "--all"], capsys)
    for code, meaning in EXIT_CODES.items():
        assert re.search(rf"^  {code} +{re.escape(meaning)}$", text, re.MULTILINE)
    page = (ROOT / "docs/participants.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE)) == {str(k): v for k, v in EXIT_CODES.items()}
    for name in COMMANDS:
        assert "Exit codes: 0 success, 1 " in _read_output([name, "--help"], capsys)[1]


def test_earlier_names_are_taken_and_shown_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    listing = _read_output(["help", "--all"], capsys)[1]
    for name in EARLIER:
        assert f"\n  {name} " not in listing
        code, text = _read_output([name, "--help"], capsys)
        assert code == 0
        arguments = shlex.split(re.findall(r"Earlier name of `([^`]+)`", " ".join(text.split()))[0])
        assert arguments[0] in COMMANDS
        shown = _read_output([arguments[0], "--help"], capsys)[1]
        assert {word for word in arguments if word.startswith("--")} <= set(re.findall("--[a-z]+", shown))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["new", "x", "--protocol", "coco"], "new needs --truth PATH, or --demo for a small synthetic truth"),
        (["new", "x"], "new needs --protocol NAME, or --demo for a small synthetic truth"),
        (["report", "--draw", "x", "--out", "y.html", "--phase", "instances-dev"], "--out does not apply to --draw"),
        (["report", "--iou", "0.3", "--phase", "instances-dev"], "--iou and --score need --draw FOLDER"),
        (
            ["report", _SHARP, "--truth", _TRUTHS[1], "--protocol", "coco-keypoints", "--draw", "x"],
            "coco-keypoints compares keypoints, but drawings show masks. Write its page with `report --out FILE`",
        ),
    ],
)
def test_what_lacks_an_option_names_it_and_what_may_stand_instead(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main(arguments) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["score", "{missing}", "--phase", "sequences-dev"], ["score", "{there}", "--truth", "{missing}"],
        ["score", "{there}", "--phase", "sequences-dev", "--annotations", "{missing}"], ["merge", "{there}", "{missing}"],
        ["score", "{there}", "--truth", "{there}", "--protocol", WITH_UNSEEN, "--unseen", "{missing}"],
        ["compare", "{there}", "b={missing}"], ["rank", "{missing}"], ["report", "{missing}"],
        ["report", "{there}", "--phase", "sequences-dev", "--images", "{missing}"], ["compress", "{missing}", "--out", "x.zip"],
        ["pack", "--layout", "davis2017", "--root", "{missing}", "--out", "x.zip"], ["run", "{missing}"],
        ["new", "x", "--protocol", "davis2017", "--truth", "{missing}"], ["check", "{missing}"], ["build", "--bundle", "{missing}"],
        ["push", "{missing}"], ["check", "{missing}", "--platform", "codabench"], ["rehearse", "--agents", "{missing}"],
        ["interactive", "plot", "{missing}", "--out", "x"], ["interactive", "serve", "--root", ".", "--users", "{missing}"],
        ["arena", "--truth", "{missing}", "agent.py"], ["run", "--python", "{missing}"], ["arena", "{missing}.py"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_is_named_and_does_not_exist_ends_every_command_with_one_code(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "results.zip"
    there.write_bytes(STRONG.read_bytes())
    monkeypatch.chdir(tmp_path)
    assert main([word.format(there=there, missing=tmp_path / "resluts.zip") for word in arguments]) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert re.search(r"resluts\.zip(\.py)?: there is no such (file|agent|command)", line)
    if "such file or" in line:
        assert line.endswith(f"; did you mean {there}?")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["build", "--platform", "codabench", "--out", "x.zip"], "x.zip: names a file, but the output is a folder"),
        (["build", "--platform", "grand-challenge", "--out", "x.tgz"], "x.tgz: names a file, but the output is a folder"),
        (["new", "x.zip", "--demo"], "x.zip: names a file, but the output is a folder; name a folder"),
        (["score", str(STRONG), "--phase", "sequences-dev", "--csv", "x.csv"], "x.csv: names a file, but the output is a folder"),
        (["build", "--out", "x/"], "x/: names a folder, but the output is a file; name a file in it"),
        (["score", str(STRONG), "--phase", "sequences-dev", "--json", "x/"], "x/: names a folder, but the output is a file"),
        (["report", "--phase", "sequences-dev", "--draw", "x.png"], "x.png: names a file, but the output is a folder"),
    ],
)  # fmt: skip
def test_an_output_of_the_other_kind_is_refused(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("layout", examples("wrong roots"))
def test_a_wrong_root_is_told_with_where_the_right_one_is_shown(
    layout: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").mkdir()
    arguments = ["pack", "--layout", layout, "--root", str(tmp_path / "data"), "--out", str(tmp_path / "x.zip")]
    assert main(arguments) == 3
    error = capsys.readouterr().err
    assert error.startswith(f"{tmp_path / 'data'}: ")
    shown = re.findall(r"`(?:segjudge|\./run\.sh) (benchmarks [\w-]+)` shows the files of", error)
    assert main(shlex.split(shown[0])) == 0
    assert f"(--layout {layout})" in capsys.readouterr().out


@pytest.mark.long
def test_a_wrong_root_of_an_interactive_dataset_is_no_fault_of_a_sequence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong").mkdir()
    assert main(["interactive", "run", "shlex:split", "--root", "wrong"]) == 3
    error = capsys.readouterr().err
    assert f"{tmp_path / 'wrong'}: is not DAVIS' root: it has no folder Annotations; name the folder" in error


def test_an_unknown_command_gets_the_nearest_or_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no command 'socre'; did you mean score?\n" in _read_output(["socre"], capsys)[1]
    assert "there is no command 'dance'; choose from score, report, " in _read_output(["dance"], capsys)[1]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["compare", "a", "b", "--truht", "x", "--truth", "y"], "unrecognized arguments: --truht x; did you mean --truth?"),
        (["report", "--imags=here"], "did you mean --images?"),
        (["score", "--lvos_path", "x", "--results_path", "y"], "unrecognized arguments: --lvos_path; here it is --truth PATH --protocol NAME"),
        (["run", "--phase", "val"], "unrecognized arguments: --phase\nSee --help."),
    ],
)  # fmt: skip
def test_an_option_that_there_is_not_gets_the_nearest(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert expected in capsys.readouterr().err


def test_the_help_shows_options_of_other_tools_and_what_they_mean(capsys: pytest.CaptureFixture[str]) -> None:
    _, text = _read_output(["score", "--help"], capsys)
    shown = text[text.index("options of other tools") :]
    for names in _OFFICIAL.values():
        assert all(f"--{name} " in shown for name in names)
    assert "--task" in shown


def test_quiet_leaves_results_warnings_and_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["score", str(STRONG), "--phase", "sequences-dev", "--json", str(tmp_path / "a.json")]
    assert main(arguments) == 0
    loud = capsys.readouterr()
    assert main([*arguments, "--quiet"]) == 0
    quiet = capsys.readouterr()
    assert quiet.out == loud.out
    assert "Protocol " in loud.err
    assert quiet.err == ""
    assert main(["score", "no-such.zip", "--phase", "sequences-dev", "--quiet"]) == 2
    assert "no-such.zip" in capsys.readouterr().err


def test_benchmarks_are_listed_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmarks", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == list(PROTOCOLS)
    assert rows["davis2017"]["metrics"] == list(PROTOCOLS["davis2017"].metrics)


@pytest.mark.parametrize("scheduler", ["", "tcp://cluster:8786"])
def test_the_scheduler_reaches_the_scoring(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = Mock(side_effect=UsageError("enough"))
    monkeypatch.setattr("segjudge.scoring.sharing.connect", connect)
    options = ["--scheduler", scheduler] if scheduler else []
    code = main(["score", str(STRONG), "--truth", _TRUTHS[0], "--protocol", "davis2017", *options])
    assert (code, connect.call_args_list) == ((2, [call(scheduler)]) if scheduler else (0, []))


def test_what_workers_score_is_saved_as_what_this_process_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segjudge.scoring.sharing.connect", lambda _: ThreadPoolExecutor(1))
    saved = [tmp_path / "own.json", tmp_path / "shared.json"]
    for path, options in zip(saved, ([], ["--scheduler", "tcp://x"]), strict=True):
        command = ["score", str(STRONG), "--truth", _TRUTHS[0], "--protocol", "davis2017", "--save", str(path)]
        assert main([*command, *options]) == 0
    assert saved[0].read_bytes() == saved[1].read_bytes()
