"""The commands, as people type them."""

from __future__ import annotations

import csv
import json
import os
import re
import socket
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock, call, patch

import numpy as np
import pytest
import yaml

from segjudge.cli import main
from segjudge.commands import COMMANDS, GROUPS, PLATFORMS
from segjudge.commands.evalai import fetch_kernel
from segjudge.commands.shared import listen
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.scoring import scorer
from segjudge.kernel import compiling
from segjudge.platforms.evalai.bundle.build import build
from segjudge.platforms.evalai.bundle.bundle_source import BundleKind, BundleSource
from segjudge.starting.new_challenge import write_demo_truth
from segjudge.system.errors import UsageError
from tests.builders import ANNOTATIONS, ROOT, STRONG, files_of, label_zip, png
from tests.demo_challenge import CODENAMES, SAMPLE_COUNT

ONE = np.zeros((40, 60), np.uint8)
ONE[5:20, 5:30] = 1
TWO = ONE.copy()
TWO[25:35, 30:50] = 2


def davis(root: Path) -> Path:
    """A DAVIS root with two sequences in its val list."""
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


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return davis(tmp_path / "DAVIS")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "results.zip"
    path.write_bytes(label_zip({"dog": [TWO] * 6, "cat": [ONE] * 6}))
    return path


def test_a_results_zip_is_scored_against_a_dataset(root: Path, results: Path, capsys: Any) -> None:
    code = main(["score", str(results), "--truth", str(root), "--protocol", "davis2017", "--subset", "val"])

    out, err = capsys.readouterr()
    assert code == 0
    assert "dog" in out
    assert "this submission" in out
    assert "PReMVOS" not in out, "its numbers are of other sequences"
    assert "Protocol davis2017: The first and the last frame are skipped" in err


def test_a_model_hub_reads_one_value_for_each_split(root: Path, results: Path, tmp_path: Path) -> None:
    target, full = tmp_path / "me.yaml", tmp_path / "scores.json"
    words = ["score", str(results), "--truth", str(root), "--protocol", "davis2017", "--subset", "val"]
    words += ["--results-yaml", str(target), "--hub-dataset", "someone/davis", "--json", str(full)]

    assert main(words) == 0

    (entry,) = yaml.safe_load(target.read_text())
    assert entry["dataset"] == {"id": "someone/davis", "task_id": "val"}
    assert entry["value"] == json.loads(full.read_text())["result"][0]["val"]["J&F-Mean"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", entry["date"])  # a text: hubs refuse a YAML date
    assert "protocol davis2017" in entry["notes"]
    assert "J-Mean" in entry["notes"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--results-yaml", "me.yaml"], "--results-yaml needs --hub-dataset OWNER/NAME"),
        (["--results-yaml", "me.yaml", "--hub-dataset", "coco"], "'coco' is not that"),
        (["--results-yaml", "me.yaml", "--hub-dataset", "a/b/c"], "'a/b/c' is not that"),
        (["--hub-dataset", "a/b"], "--hub-dataset goes with --results-yaml"),
    ],
)
def test_a_file_for_model_hubs_names_their_data_set(
    options: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["score", "sent.zip", "--truth", "truth.zip", "--protocol", "coco"], ["merge", "a.part"]):
        assert main([*words, *options]) == 2
        assert sentence in capsys.readouterr().err
    assert not (tmp_path / "me.yaml").exists()


def test_json_holds_everything_with_full_precision(root: Path, results: Path, tmp_path: Path) -> None:
    target = tmp_path / "scores.json"
    main(["score", str(results), "--truth", str(root), "--protocol", "davis2017", "--json", str(target)])

    document = json.loads(target.read_text())
    assert document["protocol"] == "davis2017"
    assert document["result"][0]["val"]["J-Mean"] == 0.75
    assert document["objects"][0] == {
        "split": "val",
        "sequence": "dog",
        "object": "1",
        **{k: v for k, v in document["objects"][0].items() if k[0] in "JF"},
    }
    assert {row["sequence"]: row["J-Mean"] for row in document["sequences"]} == {"dog": 1.0, "cat": 0.5}
    assert document["warnings"] == []


def test_csv_files_have_the_official_form(root: Path, results: Path, tmp_path: Path) -> None:
    for protocol in ("davis2017", "vost", "lvos", "vos-benchmark"):
        main(["score", str(results), "--truth", str(root), "--protocol", protocol, "--csv", str(tmp_path / protocol)])

    with open(tmp_path / "davis2017/global_results-val.csv", newline="") as file:
        assert list(csv.reader(file)) == [
            ["J&F-Mean", "J-Mean", "J-Recall", "J-Decay", "F-Mean", "F-Recall", "F-Decay"],
            ["0.750", "0.750", "0.750", "0.000", "0.750", "0.750", "0.000"],
        ]
    assert (tmp_path / "davis2017/per-sequence_results-val.csv").read_text() == (
        "Sequence,J-Mean,F-Mean\ndog_1,1.000,1.000\ndog_2,1.000,1.000\ncat_1,1.000,1.000\ncat_2,0.000,0.000\n"
    )
    assert (tmp_path / "vost/per-sequence_results-val.csv").read_text().startswith("Sequence,J-Mean,J_last-Mean\n")
    assert (tmp_path / "lvos/per-sequence_results-val.csv").read_text().startswith("Sequence,J-Mean,F-Mean,V-Mean\n")
    assert (tmp_path / "vos-benchmark/results.csv").read_text() == (
        "sequence    ,obj,  J&F,    J,    F\n"
        "Global score,   , 75.0, 75.0, 75.0\n"
        "dog         ,001, 100.0, 100.0, 100.0\n"
        "dog         ,002, 100.0, 100.0, 100.0\n"
        "cat         ,001, 100.0, 100.0, 100.0\n"
        "cat         ,002,  0.0,  0.0,  0.0\n"
    )


@pytest.mark.parametrize("nested", ["method", "a/b"])
def test_results_in_a_deeper_folder_are_found(nested: str, root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results" / nested
    for name in ("dog", "cat"):
        (folder / name).mkdir(parents=True)
        for k in range(6):
            (folder / name / f"{k:05d}.png").write_bytes(png(TWO))
    assert main(["score", str(tmp_path / "results"), "--truth", str(root), "--protocol", "davis2017"]) == 0


def test_a_part_can_be_scored(root: Path, results: Path, capsys: Any) -> None:
    main(["score", str(results), "--truth", str(root), "--protocol", "davis2017", "--sequences", "dog", "--json", "-"])
    document = json.loads(capsys.readouterr().out)
    assert [row["sequence"] for row in document["sequences"]] == ["dog"]
    assert document["result"][0]["val"]["J-Mean"] == 1.0


def test_a_phase_scores_as_the_server_does(capsys: Any) -> None:
    assert main(["score", str(STRONG), "--phase", "sequences-dev"]) == 0
    assert "0.933" in capsys.readouterr().out


def test_packing_and_scoring_give_the_same_as_the_dataset(root: Path, results: Path, tmp_path: Path) -> None:
    packed = tmp_path / "a" / "truth.zip"
    assert main(["pack", "--layout", "davis2017", "--root", str(root), "--subset", "val", "--out", str(packed)]) == 0
    answers = []
    for truth in (root, packed):
        target = tmp_path / "x.json"
        main(["score", str(results), "--truth", str(truth), "--protocol", "davis2017", "--json", str(target)])
        answers.append(json.loads(target.read_text()))
        assert answers[-1]["provenance"].pop("truth")
    assert answers[0] == answers[1]


def test_datasets_are_added_as_splits(root: Path, results: Path, tmp_path: Path, capsys: Any) -> None:
    packed = str(tmp_path / "truth.zip")
    for split, subset in (("easy", "val"), ("hard", "train")):
        main(
            [
                "pack",
                "--layout",
                "davis2017",
                "--root",
                str(root),
                "--subset",
                subset,
                "--out",
                packed,
                "--split",
                split,
            ]
        )
    assert main(["score", str(results), "--truth", packed, "--protocol", "davis2017"]) == 1
    assert "train-only" in capsys.readouterr().err
    assert main(["score", str(results), "--truth", packed, "--protocol", "davis2017", "--split", "easy"]) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["score", "{bad}", "--truth", "{root}", "--protocol", "davis2017"], 1, "is empty"),
        (["score", "{nowhere}", "--truth", "{root}", "--protocol", "davis2017"], 1, "cannot be opened"),
        (["score", "{results}", "--truth", "{root}"], 2, "--truth needs --protocol"),
        (["score"], 2, "needs the results to score"),
        (["score", "{results}"], 2, "needs either --phase, or --truth"),
        (
            ["score", "{results}", "--truth", "{nowhere}", "--protocol", "davis2017"],
            3,
            "there is no such file or folder",
        ),
        (["score", "{results}", "--truth", "{bad}", "--protocol", "davis2017"], 3, "is empty"),
        (
            ["score", "{results}", "--truth", "{root}", "--protocol", "davis2017", "--subset", "test"],
            3,
            "found train, val",
        ),
        (
            ["score", "{results}", "--truth", "{root}", "--protocol", "davis2017", "--sequences", "cow"],
            2,
            "no sequence cow",
        ),
        (["score", "{results}", "--phase", "finals"], 2, "its phases are: sequences-dev"),
        (
            ["pack", "--layout", "lvos", "--root", "{nowhere}", "--out", "{nowhere}.zip"],
            3,
            "there is no such file or folder",
        ),
    ],
)
def test_exit_codes_say_whose_mistake_it_is(
    arguments: list[str], code: int, words: str, root: Path, results: Path, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "bad").write_bytes(b"")
    places = {"root": root, "results": results, "bad": tmp_path / "bad", "nowhere": tmp_path / "nowhere"}
    assert main([part.format(**places) for part in arguments]) == code
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--phase", "instances-dev", "--cap", "image"], "--cap has no meaning for --phase"),
        (["--truth", "{root}", "--protocol", "davis2017", "--cap", "image"], "--cap has no meaning for sequences"),
        (
            ["--truth", "{root}", "--protocol", "davis2017", "--style", "official"],
            "--style has no meaning for sequences",
        ),
        (["--truth", "{root}", "--protocol", "coco", "--layout", "vost"], "--layout has no meaning for instances"),
        (["--truth", "{root}", "--protocol", "davis2017", "--json", "/nowhere/x.json"], "cannot be written"),
    ],
)
def test_no_option_is_ignored_in_silence(
    arguments: list[str], words: str, root: Path, results: Path, capsys: Any
) -> None:
    assert main(["score", str(results), *(part.format(root=root) for part in arguments)]) == 2
    assert words in capsys.readouterr().err


def test_files_are_written_though_nobody_reads_the_tables(root: Path, results: Path, tmp_path: Path) -> None:
    target = tmp_path / "scores.json"
    command = f"{sys.executable} -m segjudge score {results} --truth {root} --protocol davis2017 --json {target} | true"
    subprocess.run(command, shell=True, cwd=ROOT, check=True, capture_output=True)
    assert json.loads(target.read_text())["result"]


@pytest.mark.long
def test_a_mistake_in_phases_py_is_told_with_its_line(tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "fork"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(".*", "dist", "*.egg-info", "__pycache__"))
    phases = copy / "evaluation_script/phases.py"
    for broken in (
        phases.read_text().replace("codename=", "codenam=", 1),
        phases.read_text().replace("splits=(", "splits=((", 1),
    ):
        original = phases.read_text()
        phases.write_text(broken)
        done = subprocess.run(
            [sys.executable, "-m", "segjudge", "check"], cwd=copy, capture_output=True, text=True, check=False
        )
        phases.write_text(original)
        assert "phases.py, line " in done.stdout
        assert "Traceback" not in done.stdout + done.stderr
        assert done.returncode


WORKER = os.environ.get("SEGJUDGE_WORKER_PYTHON", "")
#: What none of these needs, and takes long to load.
_SLOW = {
    *("PIL.Image", "asyncio", "concurrent.futures", "email", "http", "logging", "multiprocessing", "numpy.ma"),
    *("pandas", "scipy", "sqlite3", "yaml"),
}
#: The rows of a family, which are loaded of every family there is.
_ROW = re.compile(r"evaluation_script\.families\.\w+(\.protocols)?$")
#: What scoring does not need; on a truth there is no phase, and nothing that guards a worker.
_SCORING = _SLOW | {"segjudge.platforms.evalai.bundle.fields", "segjudge.analysis.score_tables", "segjudge.report.page"}
_ON_TRUTH = _SCORING | {"segjudge.evaluation_script.runner.guard", "segjudge.platforms", "socket"}
_TRUTHS = str(ANNOTATIONS), str(ROOT / "annotations/instances-dev.zip")
_SHARP = str(ROOT / "examples/instances-dev/sharp.json")


@pytest.mark.parametrize(
    ("statement", "ours", "others", "slow"),
    [
        ("import segjudge", 1, 8, _SLOW | {"numpy", "argparse", "typing", "pathlib"}),
        ("main(['--help'])", 6, 50, _SLOW | {"numpy", "dataclasses", "json", "zipfile", "pathlib"}),
        ("main(['score', '--help'])", 26, 102, _SLOW | {"numpy"}),
        (f"main(['score', {str(STRONG)!r}, '--phase', 'sequences-dev'])", 69, 197, _SCORING),
        (f"main(['score', {str(STRONG)!r}, '--truth', {_TRUTHS[0]!r}, '--protocol', 'davis2017'])", 59, 193, _ON_TRUTH),
        (f"main(['score', {_SHARP!r}, '--truth', {_TRUTHS[1]!r}, '--protocol', 'places2017'])", 61, 194, _ON_TRUTH),
    ],
    ids=["import", "help", "score --help", "score --phase", "score sequences", "score instances"],
)
def test_nothing_is_loaded_that_is_not_needed(statement: str, ours: int, others: int, slow: set[str]) -> None:
    modules = _modules_of(
        sys.executable, f'main = lambda words: __import__("segjudge.cli").cli.main(words)\n{statement}'
    )
    assert modules & slow == set()
    assert len({name for name in modules if name.startswith("segjudge") and not _ROW.search(name)}) <= ours, modules
    assert len({name for name in modules if not name.startswith("segjudge")}) <= others, modules


def test_numpys_docstrings_are_written_when_a_program_asks_for_them() -> None:
    statement = (
        "import sys, segjudge.commands, numpy; before = numpy.ndarray.__doc__\n"
        "[module.add_newdoc for name, module in list(sys.modules.items()) if name.endswith('._add_newdocs')]\n"
        "print(before, len(numpy.ndarray.__doc__) > 1000)"
    )
    words = subprocess.run([sys.executable, "-c", statement], capture_output=True, text=True, check=True).stdout.split()
    assert words == ["None", "True"]


@pytest.mark.skipif(not WORKER, reason="PYTHON 3.9 ABSENT: use ./run.sh test")
def test_the_upload_loads_on_the_worker_what_its_phases_need() -> None:
    truth, results = str(ANNOTATIONS), str(STRONG)
    call = f"evaluate({truth!r}, {results!r}, 'sequences-dev')"
    modules = _modules_of(WORKER, f"sys.path.insert(0, {str(ROOT)!r})\nfrom evaluation_script import evaluate\n{call}")
    assert modules & (_SLOW - {"numpy.ma"}) == set()  # which numpy 1 imports itself
    own = {name for name in modules if name.startswith("evaluation_script") and not _ROW.search(name)}
    assert len(own) <= 56, modules  # of the three families that the phases of this challenge score
    assert len({name for name in modules if not name.startswith("evaluation_script")}) <= 225, modules


def _modules_of(python: str, statement: str) -> set[str]:
    program = f"""
import atexit, sys
before = set(sys.modules)
atexit.register(lambda: print(*sorted(set(sys.modules) - before)))
{statement}"""
    done = subprocess.run([python, "-I", "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_every_command_has_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    listing = capsys.readouterr().out
    for name in COMMANDS:
        with pytest.raises(SystemExit) as caught:
            main([name, "--help"])
        assert caught.value.code == 0
        assert f"usage: segjudge {name}" in capsys.readouterr().out
        assert f"\n    {name}" in listing


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


def test_usage_is_two() -> None:
    for arguments in ([], ["dance"], ["score", "x", "--protocol", "none"], ["interactive", "plot", __file__]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2


def test_lvos_without_a_list_of_unseen_says_so(root: Path, results: Path, capsys: Any) -> None:
    main(["score", str(results), "--truth", str(root), "--protocol", "lvos"])
    out, err = capsys.readouterr()
    assert "nothing says which classes are unseen" in err
    assert "nothing to average for J-unseen-Mean" in err
    assert "–" in out


def test_a_host_sees_every_problem(tmp_path: Path, capsys: Any) -> None:
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("challenge_config.yaml", "title: x\n")
    assert main(["check", str(tmp_path / "b.zip")]) == 3
    out = capsys.readouterr().out
    assert "errors" in out.splitlines()[-2]
    assert out.splitlines()[-1] == "EvalAI would refuse this bundle."
    assert "    EvalAI: ERROR: There is no key for dataset splits.\n" in out


def test_what_evalai_takes_and_what_it_refuses_are_two_verdicts_with_two_exit_codes(
    tmp_path: Path, capsys: Any
) -> None:
    with zipfile.ZipFile(build(str(ROOT), str(tmp_path / "a.zip")).path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    text = content["challenge_config.yaml"].decode()
    annotation = "    test_annotation_file: annotations/sequences-dev.zip\n"
    bundles = {
        "title": (text.replace("title: ", "title_: ", 1), 3, "EvalAI would refuse this bundle."),
        "annotation": (text.replace(annotation, "", 1), 4, "EvalAI would take this bundle by push alone, and the challenge would not work"),
        "labels": (text.replace("J&F-Mean", "J&F", 1), 3, "EvalAI would refuse this bundle."),
        "phase": (text.replace("codename: sequences-dev", "codename: other"), 4, "EvalAI would take this bundle by push and by its web form, and the challenge would not work"),
        "nothing": (text, 0, "EvalAI would accept this bundle, by push and by its web form."),
    }  # fmt: skip
    for name, (changed, code, verdict) in bundles.items():
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            for member, data in content.items():
                archive.writestr(member, changed if member == "challenge_config.yaml" else data)
        assert main(["check", "--quick", str(tmp_path / f"{name}.zip")]) == code, name
        out = capsys.readouterr().out
        assert verdict in out, out
        assert len(re.findall(r"EvalAI would (accept|take|refuse) ", out)) == 1


def test_check_says_for_programs_whether_the_kernel_is_in_the_bundle(capsys: Any) -> None:
    assert main(["check", "--quick", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["kernel"]
    assert main(["check", "--quick"]) == 0
    assert f"It was checked with{'' if found else 'out'} kernel" in capsys.readouterr().out


@pytest.mark.long
def test_the_program_runs_the_whole_challenge() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "segjudge", "run"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("finished in") == SAMPLE_COUNT
    assert "1. strong.zip" in done.stdout
    assert "worker's own log" not in done.stdout, "nothing went wrong"
    assert "\n  upload  " in done.stdout
    assert re.match("Scored here by: .*. The bundle was built with(out)? kernel", done.stdout.rstrip().splitlines()[-1])


def test_scoring_what_was_packed_needs_no_dataset(tmp_path: Path) -> None:
    unpacked = tmp_path / "masks"
    for name, data in files_of().items():
        (unpacked / name).parent.mkdir(parents=True, exist_ok=True)
        (unpacked / name).write_bytes(data)
    assert main(["score", str(unpacked), "--truth", str(ANNOTATIONS), "--protocol", "vos-benchmark"]) == 0


def test_a_server_listens_at_once_where_another_has_just_ended() -> None:
    for host, family in (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)):
        with patch("socket.socket") as made:
            listen(host, 5)
        assert made.call_args.args == (family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        reuse = call.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        assert made.return_value.method_calls == [reuse, call.bind((host, 5)), call.listen(1024)]
    with listen("127.0.0.1", 0) as port:
        number = port.getsockname()[1]
        reason = (
            rf"^port {number} of 127\.0\.0\.1 cannot be taken \(Address already in use\); name another with --port$"
        )
        with pytest.raises(UsageError, match=reason):
            listen("127.0.0.1", number)


# ── names that there are not ────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["score", "--protocol", "davs2017"], "there is no 'davs2017'; did you mean davis2017? There are davis2016, "),
        (["score", "--protocol", "DAVIS2017"], "there is no 'DAVIS2017'; did you mean davis2017?"),
        (["scoer"], "there is no 'scoer'; did you mean score?"),
        (["pack", "--layout", "davis", "--root", "x", "--out", "y"], "did you mean davis2017?"),
        (["benchmarks", "--nonsense"], "unrecognized arguments: --nonsense\nSee segjudge benchmarks --help."),
        (["score", "{results}", "--phase", "sequence-dev"], f"{CODENAMES[-1]}. Did you mean sequences-dev?"),
        (
            ["score", "{results}", "--phase", "sequences-dev", "--split", "dve"],
            "no split 'dve', only dev; did you mean",
        ),
        (
            [*["score", "{results}", "--truth", "{packed}", "--protocol", "davis2017", "--split", "dve"]],
            "only dev; did you mean dev?",
        ),
        (
            [*["score", "{results}", "--truth", "{packed}", "--protocol", "davis2017", "--sequences", "sloo"]],
            "the truth has no sequence sloo, only crossing, late-guest, solo; did you mean solo?",
        ),
        (
            [*["report", "--truth", "{packed}", "--out", "x.html", "--sequences", ","]],
            "sequences names none",
        ),
        (
            [*["report", "--truth", "{packed}", "--out", "x.html", "--split", "dve"]],
            "no split 'dve', only dev; did you mean dev?",
        ),
        (
            [*["compare", "{results}", "b={results}", "--truth", "{packed}", "--metric", "J-Deca"]],
            "davis2017 has no metric J-Deca, only J&F-Mean, ",
        ),
        (
            [*["compare", "{results}", "b={results}", "--truth", "{packed}", "--metric", "J-Deca"]],
            "did you mean J-Decay?",
        ),
    ],
)
def test_a_name_that_there_is_not_gets_the_nearest_and_the_list(
    words: list[str], expected: str, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = {"results": STRONG, "packed": ANNOTATIONS}
    try:
        code = main([word.format(**paths) for word in words])
    except SystemExit as error:
        code = int(str(error.code))
    assert code == 2
    output = capsys.readouterr().err
    assert expected in output
    assert "usage:" not in output


@pytest.mark.parametrize(
    "protocol",
    [
        "davis2017",
        "mevis",
        "ref-youtube-vos",
        "coco",
        "lvis",
        "vipseg",
        "coco-panoptic",
        "vspw",
        "mots",
        "burst",
        "sav",
    ],
)
def test_a_subset_that_there_is_not_is_refused_in_every_family(protocol: str, tmp_path: Path, capsys: Any) -> None:
    truth = write_demo_truth(PROTOCOLS[protocol], str(tmp_path))
    assert main(["score", str(STRONG), "--truth", truth, "--protocol", protocol, "--subset", "nope"]) == 3
    assert "'nope'" in capsys.readouterr().err
    if PROTOCOLS[protocol].family != "sequences":  # others have no lists, and their one split is called val
        assert main(["score", str(STRONG), "--truth", truth, "--protocol", protocol, "--subset", "val"]) in (0, 1)


@pytest.mark.parametrize("protocol", ["davis2017", "ref-davis17", "vipseg", "vspw", "mots", "burst"])
def test_sequences_are_chosen_by_the_names_of_the_tables(protocol: str, tmp_path: Path, capsys: Any) -> None:
    assert main(["new", str(tmp_path / "new"), "--demo", "--protocol", protocol]) == 0
    words = ["score", str(tmp_path / "new/examples/val/poor.zip"), "--protocol", protocol, "--strict"]
    words += ["--truth", str(tmp_path / "new/annotations/val.zip"), "--json", "-"]
    capsys.readouterr()
    assert main(words) == 0
    whole = json.loads(capsys.readouterr().out)
    rows = {row["sequence"]: row for row in whole.get("sequences", []) if "sequence" in row}
    (truth,) = scorer.read_truth(str(tmp_path / "new/annotations/val.zip"), protocol).splits.values()
    chosen = [*(rows or truth.item_names)][1:]
    assert main([*words, "--sequences", ",".join(chosen)]) == 0
    output = capsys.readouterr()
    assert "not in the truth" not in output.err
    part = json.loads(output.out)
    if rows:
        assert {row["sequence"]: row for row in part["sequences"]} == {name: rows[name] for name in chosen}
    assert main([*words, "--sequences", ",".join([*chosen, chosen[0]])]) == 0
    assert json.loads(capsys.readouterr().out)["result"] == part["result"]
    for option in ("", ","):
        assert main([*words, "--sequences", option]) == 2
        assert "sequences names none: give a list of names" in capsys.readouterr().err


# ── the terminal ────────────────────────────────────────────────────────────


def test_the_help_shows_every_command_once_and_what_is_done_daily_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = re.findall(r"^    ([a-z]+) ", capsys.readouterr().out, re.MULTILINE)
    assert listed == [name for names in GROUPS.values() for name in names]
    assert listed[:3] == ["score", "report", "compare"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["compare", "a", "b", "--truht", "x", "--truth", "y"],
            "unrecognized arguments: --truht x; did you mean --truth?",
        ),
        (["benchmarks", "--jsn"], "unrecognized arguments: --jsn; did you mean --json?"),
        (["report", "--imags=here"], "did you mean --images?"),
    ],
)
def test_an_option_that_there_is_not_gets_the_nearest(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert expected in capsys.readouterr().err


def test_options_of_other_tools_are_taken_and_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for command, options in (("score", ("--davis_path", "--preds_json", "--task")), ("convert", ("--ann_dir",))):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        text = capsys.readouterr().out
        assert [option for option in options if option in text] == []
        described = (ROOT / "docs/participants.md").read_text()
        assert options[0] in described


def test_quiet_leaves_results_warnings_and_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["score", str(STRONG), "--phase", "sequences-dev", "--json", str(tmp_path / "a.json")]
    assert main(words) == 0
    loud = capsys.readouterr()
    assert main([*words, "--quiet"]) == 0
    quiet = capsys.readouterr()
    assert quiet.out == loud.out
    assert "Protocol " in loud.err
    assert quiet.err == ""
    assert main(["score", "no-such.zip", "--phase", "sequences-dev", "--quiet"]) == 1
    assert "no-such.zip" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colours_are_for_terminals_and_those_who_ask(
    variables: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main(["score", str(STRONG), "--phase", "sequences-dev"]) == 0
    assert ("\x1b[1m" in capsys.readouterr().out) == coloured
    assert main(["score", "no-such.zip", "--phase", "sequences-dev"]) == 1
    assert ("\x1b[31m" in capsys.readouterr().err) == coloured


def test_on_a_terminal_tables_fit_and_have_colours() -> None:
    import pty

    program = f"import sys; sys.argv[0] = 'segjudge'\nfrom segjudge.cli import main\nsys.exit(main({['score', str(STRONG), '--phase', 'sequences-dev']!r}))"
    leader, follower = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")} | {
        "COLUMNS": "50",
        "TERM": "xterm",
    }
    with subprocess.Popen(
        [sys.executable, "-P", "-c", program], cwd=ROOT, stdout=follower, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        os.close(follower)
        text = ""
        while True:
            try:
                data = os.read(leader, 1 << 16)
            except OSError:
                break
            if not data:
                break
            text += data.decode()
    os.close(leader)
    assert process.returncode == 0
    assert "\x1b[1m" in text
    tables = [re.sub(r"\x1b\[\d+m", "", line).rstrip("\r") for line in text.split("\n")]
    assert [line for line in tables if len(line) > 50 and not line.startswith("Beside")] == []


@pytest.mark.parametrize("words", [["--help"], ["benchmarks"]])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_listings_fit_a_terminal(
    words: list[str], width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with suppress(SystemExit):
        main(words)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 20
    assert [line for line in lines if len(line) > width] == []


def test_benchmarks_are_listed_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmarks", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == list(PROTOCOLS)
    assert rows["davis2017"]["metrics"] == list(PROTOCOLS["davis2017"].metrics)


def test_a_kernel_is_compiled_for_the_worker_or_it_says_why_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever waits for the compiler reads so, once; a bundle with other scorers takes no kernel."""
    ours, foreign = BundleSource(str(ROOT), BundleKind.SMALL), BundleSource(str(tmp_path), BundleKind.FOREIGN)
    for compiler, said in (
        ("zig", ""),
        (None, "Compiling the kernel for EvalAI's worker; its compiler is fetched once"),
    ):
        with patch.multiple(compiling, find_for_worker=lambda found=compiler: found, compile_for_worker=lambda: None):
            fetch_kernel(ours)
        assert capsys.readouterr().err.partition(" (")[0] == said
    fault = compiling.CompileError("no compiler")
    with (
        patch.multiple(compiling, find_for_worker=lambda: "zig", compile_for_worker=Mock(side_effect=fault)),
        pytest.raises(HostError, match=r"worker cannot be compiled: no compiler\. Go on with --no-kernel$"),
    ):
        fetch_kernel(ours)
    with pytest.raises(UsageError, match=r"^kernel: is for Segjudge's own scorers, and this bundle has others$"):
        fetch_kernel(foreign)
