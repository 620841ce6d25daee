"""The participant's command line: links, the official tools' options, and common typing errors."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from segjudge.cli import main
from segjudge.evaluation_script import evaluate
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.sequences.protocols import DAVIS_TASKS
from segjudge.evaluation_script.files.problems import SubmissionError
from segjudge.families import tools_of
from segjudge.families.truths import TruthSource, open_truth
from segjudge.starting.new_challenge import write_demo_truth
from tests.builders import ANNOTATIONS, DEV, ROOT, STRONG, png, zipped
from tests.commands.test_cli import ONE, TWO, davis
from tests.data import INSTANCES
from tests.families.contract import examples
from tests.families.instances.test_places import PNGS
from tests.published import published
from tests.shared import needs_shared

TRUTH = str(ROOT / "annotations/instances-dev.zip")
SHARP = str(ROOT / "examples/instances-dev/sharp.json")


def folder_of(path: Path, names: tuple[str, ...] = ("dog", "cat"), ending: str = "png") -> Path:
    for name in names:
        (path / name).mkdir(parents=True)
        for k in range(6):
            (path / name / f"{k:05d}.{ending}").write_bytes(png(TWO if name == "dog" else ONE))
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return davis(tmp_path / "DAVIS")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "results")


def scored(path: object, root: Path, tmp_path: Path, *more: str) -> float:
    """Return the J-Mean of results against the truth."""
    target = tmp_path / "scores.json"
    arguments = ["score", str(path), "--truth", str(root), "--protocol", "davis2017", "--json", str(target), *more]
    assert main(arguments) == 0
    return float(json.loads(target.read_text())["result"][0]["val"]["J-Mean"])


# ── links ───────────────────────────────────────────────────────────────────


def files_linked(results: Path, out: Path) -> None:
    for path in results.rglob("*.png"):
        (out / path.parent.name).mkdir(parents=True, exist_ok=True)
        (out / path.parent.name / path.name).symlink_to(path)


def linked_in_the_middle(results: Path, out: Path) -> None:
    (out / "method").mkdir(parents=True)
    (out / "method/run 1").symlink_to(results)


def linked_itself(results: Path, out: Path) -> None:
    out.symlink_to(results)


def linked_in_a_circle(results: Path, out: Path) -> None:
    folder_of(out)
    (out / "loop").symlink_to(out)
    (out / "dog" / "up").symlink_to("..")
    (out / "cat" / "round").symlink_to(".")


LINKED = (files_linked, linked_in_the_middle, linked_itself, linked_in_a_circle)


@pytest.mark.parametrize("make", LINKED)
def test_links_are_followed_on_ones_own_machine(
    make: Callable[[Path, Path], None], root: Path, results: Path, tmp_path: Path
) -> None:
    make(results, tmp_path / "linked")
    assert scored(tmp_path / "linked", root, tmp_path) == 0.75


def test_a_phase_is_scored_from_links_too_and_the_server_refuses_them(tmp_path: Path, capsys: Any) -> None:
    from tests.builders import files_of

    for name, data in files_of().items():
        (tmp_path / "real" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "real" / name).write_bytes(data)
        (tmp_path / "linked" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "linked" / name).symlink_to(tmp_path / "real" / name)
    assert main(["score", str(tmp_path / "linked"), "--phase", DEV]) == 0
    linked = capsys.readouterr().out
    assert main(["score", str(tmp_path / "real"), "--phase", DEV]) == 0
    assert capsys.readouterr().out == linked
    with pytest.raises(SubmissionError, match="is a link or a device, not a file"):
        evaluate(str(ANNOTATIONS), str(tmp_path / "linked"), DEV)
    (tmp_path / "above").mkdir()
    for path in (tmp_path / "real").iterdir():
        (tmp_path / "above" / path.name).symlink_to(path)
    with pytest.raises(SubmissionError, match="is a link or a device, not a file"):
        evaluate(str(ANNOTATIONS), str(tmp_path / "above"), DEV)


def test_a_truth_with_links_and_a_circle_is_read(root: Path, results: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked-truth"
    linked.mkdir()
    for path in root.iterdir():
        (linked / path.name).symlink_to(path)
    (root / "Annotations/480p/dog/.up").symlink_to(root)
    (root / "Annotations/back").symlink_to(root)
    assert scored(results, linked, tmp_path) == 0.75


# ── as the official tools are called ────────────────────────────────────────


@pytest.mark.parametrize("task", DAVIS_TASKS)
def test_davis_script_is_called_in_its_own_words(task: str, root: Path, results: Path, capsys: Any) -> None:
    official = ["--davis_path", str(root), "--results_path", str(results), "--task", task, "--set", "val"]
    protocol = DAVIS_TASKS[task]
    assert main(["score", *official]) == 0
    output = capsys.readouterr()
    assert f"Protocol {protocol}: " in output.err
    assert main(["score", str(results), "--truth", str(root), "--subset", "val", "--protocol", protocol]) == 0
    assert capsys.readouterr().out == output.out
    with pytest.raises(SystemExit):
        main(["score", "--help"])
    assert re.search(rf"{task}\b.*--protocol\s+{protocol}\b", capsys.readouterr().out, re.DOTALL)


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["a", "--results_path", "b", "--davis_path", "c"], "results is given twice, as a and b"),
        (["a", "--davis_path", "c", "--truth", "d"], "truth is given twice, as c and d"),
        (["a", "--davis_path", "c", "--set", "val", "--subset", "train"], "subset is given twice, as train and val"),
        (["a", "--davis_path", "c", "--task", "unsupervised", "--protocol", "davis2017"], "means --protocol davis2017-uns"),
        (["a", "--phase", DEV, "--set", "val"], "--subset does not apply to --phase"),
        (["a", "--truth", "b", "--protocol", "davis2017", "--annotations", "c"], "--annotations does not apply to --truth"),
        (["a", "--truth", "b", "--protocol", "davis2017", "--categories", "c"], "--categories does not apply to sequences"),
        (["a", "--truth", SHARP, "--protocol", "coco", "--categories", "c"], "which is not a folder of PNGs"),
        (["a", "--truth", ".", "--protocol", "places2017"], "with --categories FILE a folder of Places-style PNGs"),
        ([SHARP, "--truth", TRUTH, "--protocol", "coco", "--split", "test"], "has no split 'test', only dev"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_one_sentence(
    arguments: list[str], output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "abcd":
        (tmp_path / name).touch()
    assert main(["score", *arguments]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert output in line


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """Write PNGs as Places has them, one with a name in capitals, and their categories."""
    folder = tmp_path / "png files"
    folder.mkdir()
    green = np.zeros((40, 50), np.uint8)
    green[5:20, 5:30], green[25:35, 10:40] = 3, 9
    for name in ("a.png", "b.PNG"):
        Image.fromarray(np.stack([green // 3, green, green * 0], axis=2)).save(folder / name)
    listing = tmp_path / "imgCatIds.json"
    categories = [{"id": 1, "name": "bed"}, {"id": 3, "name": "flag"}]
    images = [{"file_name": f"{name}.jpg", "id": k, "width": 50, "height": 40} for k, name in enumerate("ab")]
    listing.write_text(json.dumps({"categories": categories, "images": images}))
    return folder, listing


def test_the_converter_is_called_as_the_official_one(places: tuple[Path, Path], tmp_path: Path, capsys: Any) -> None:
    folder, listing = places
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    assert main(["convert", "places", str(folder), str(ours), "--categories", str(listing)]) == 0
    official = ["--ann_dir", str(folder), "--imgCatIdsFile", str(listing), "--output_json", str(theirs)]
    assert main(["convert", *official]) == 0
    assert ours.read_bytes() == theirs.read_bytes()
    assert len(json.loads(ours.read_text())["annotations"]) == 4
    assert main(["convert", "places", *official]) == 0
    capsys.readouterr()
    assert main(["convert", *official[:4]]) == 2
    assert "convert needs OUT or --output_json" in capsys.readouterr().err
    assert main(["convert", "places", str(folder), str(ours), *official]) == 2
    assert "OUT or --output_json, and only one of them" in capsys.readouterr().err
    assert main(["convert", *official[:4], "--output_json", str(tmp_path / "no/such/x.json")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_folder_of_pngs_is_a_truth(places: tuple[Path, Path], tmp_path: Path, capsys: Any) -> None:
    folder, listing = places
    document, out = tmp_path / "truth.json", tmp_path / "scores.json"
    main(["convert", "places", str(folder), str(document), "--categories", str(listing)])
    annotations = json.loads(document.read_text())["annotations"]
    results = tmp_path / "found.json"
    results.write_text(
        json.dumps([{**annotation, "score": 0.5 + 0.1 * k} for k, annotation in enumerate(annotations[:3])])
    )
    answers, digests = [], []
    for truth in (["--truth", str(folder), "--categories", str(listing)], ["--truth", str(document)]):
        assert main(["score", str(results), *truth, "--protocol", "places2017", "--json", str(out)]) == 0
        answers.append(json.loads(out.read_text()))
        digests.append(answers[-1]["provenance"].pop("truth"))
    assert answers[0] == answers[1]
    assert [digest.split(":")[0] for digest in digests] == ["folder", "file"]
    assert 0.5 < answers[0]["result"][0]["val"]["AP"] < 1
    official = ["--preds_json", str(results), "--dataset_json", str(folder), "--imgCatIdsFile", str(listing)]
    assert main(["score", *official]) == 0
    assert "places2017-official" in capsys.readouterr().err


@needs_shared
def test_a_folder_of_pngs_scores_as_the_golden_document(tmp_path: Path) -> None:
    import gzip

    listing, out = tmp_path / "listing.json", tmp_path / "scores.json"
    listing.write_bytes(gzip.decompress((INSTANCES / "places_inputs/official_converter_gt.json.gz").read_bytes()))
    preds = str(INSTANCES / "places_inputs/preds.json.gz")
    truth = ["--truth", str(PNGS), "--categories", str(listing)]
    assert main(["score", preds, *truth, "--protocol", "places2017-official", "--json", str(out)]) == 0
    runs = json.loads((INSTANCES / "golden_places.json").read_text())["runs"]
    golden = runs["ids_from_0_as_official_converter|percat255_as_official"]["stats"]
    assert json.loads(out.read_text())["result"][0]["val"] == pytest.approx(golden, abs=1e-12)


# ── files that are written ──────────────────────────────────────────────────


@pytest.mark.parametrize("what", [["--truth", TRUTH, "--protocol", "places2017"], ["--phase", "instances-dev"]])
def test_instances_have_csv_files_too(what: list[str], tmp_path: Path) -> None:
    folder, out = tmp_path / "csv", tmp_path / "scores.json"
    assert main(["score", SHARP, *what, "--csv", str(folder), "--json", str(out)]) == 0
    document = json.loads(out.read_text())
    with open(folder / "global_results-dev.csv", newline="") as file:
        header, values = list(csv.reader(file))
    assert header[:4] == ["AP", "AP50", "AP75", "APs"]
    assert values == [f"{document['result'][0]['dev'][name]:.3f}" for name in header]
    with open(folder / "per-category_results-dev.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["Category", "Id", "AP", "AP50", "AP75", "AR"]
    assert [(row["Category"], row["Id"], row["AR"]) for row in rows] == [
        (row["name"], str(row["id"]), f"{row['AR']:.3f}") for row in document["categories"]
    ]


def test_csv_files_in_the_results_folder_are_no_obstacle(root: Path, results: Path, tmp_path: Path) -> None:
    assert scored(results, root, tmp_path, "--csv", str(results)) == 0.75
    (results / "global_results-val.csv").write_text("J&F-Mean\n1.000\n")
    assert scored(results, root, tmp_path) == 0.75, "what a file says of the results is not believed"


# ── what people type by mistake ─────────────────────────────────────────────


@pytest.mark.parametrize("name", ["method/", "a/method", "Ünïcode ☃ and spaces"])
def test_folders_by_any_name(name: str, root: Path, tmp_path: Path) -> None:
    folder_of(tmp_path / "r" / name)
    assert scored(f"{tmp_path / 'r'}/", root, tmp_path) == 0.75


def test_the_truth_scored_against_itself(root: Path, tmp_path: Path) -> None:
    assert scored(root, root, tmp_path) == 1.0
    assert scored(root / "Annotations/480p", root, tmp_path) == 1.0


def test_a_truth_that_does_not_fit_is_one_sentence(root: Path, tmp_path: Path, capsys: Any) -> None:
    folder_of(tmp_path / "results")
    for truth, message in (
        (TRUTH, "the protocol davis2017 does not score; choose another file, or a protocol of instances: "),
        (tmp_path / "results/dog/00000.png", "is a single PNG. Name the folder or the zip of a dataset"),
    ):
        assert main(["score", str(tmp_path / "results"), "--truth", str(truth), "--protocol", "davis2017"]) == 3
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert message in line


# ── truths of another family ────────────────────────────────────────────────


#: A protocol of each family whose published truth `host` and `new` take.
FAMILIES = tuple({PROTOCOLS[protocol].family: protocol for protocol in reversed(examples("hosts"))}.values())


@pytest.mark.parametrize("content", FAMILIES)
def test_a_truth_of_another_family_is_a_sentence(content: str, tmp_path: Path, capsys: Any) -> None:
    published = write_demo_truth(PROTOCOLS[content], str(tmp_path / "published"))
    assert main(["new", str(tmp_path / "new"), "--protocol", content, "--truth", published]) == 0
    packed = str(tmp_path / "new/annotations/val.zip")
    for wanted in set(FAMILIES) - {content}:
        for truth in (packed, published):
            capsys.readouterr()
            code = main(["score", str(STRONG), "--truth", truth, "--protocol", wanted])
            text = capsys.readouterr().err
            if truth == packed:
                assert (code, text.startswith(f"{packed}: holds {PROTOCOLS[content].family}, ")) == (3, True)
            else:  # any folder of PNGs is a truth of classes, and any text file a truth of tracks
                assert code in (0, 1, 2, 3)
                assert "defect" not in text
                assert code != 3 or "your submission" not in text


@pytest.mark.parametrize("results", [True, False], ids=["results", "truth-alone"])
@pytest.mark.parametrize("protocol", examples("painted beside"))
def test_show_writes_the_player_of_other_families(protocol: str, results: bool, tmp_path: Path) -> None:
    truth, rules = str(published(protocol, tmp_path)), PROTOCOLS[protocol]
    (split,) = open_truth(TruthSource(truth), rules, lambda *_: None).splits.values()
    moved = tools_of(rules.family).make_sample([split], rules, 0.1)
    (tmp_path / "sent.zip").write_bytes(zipped(dict(moved)))
    arguments = [*([str(tmp_path / "sent.zip")] if results else []), "--truth", truth, "--protocol", protocol]
    assert main(["show", *arguments, "--out", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert 'class="player"' in text
    assert "Summary" not in text


def test_a_stored_result_is_a_submission_beside_a_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored, page = str(tmp_path / "stored.json"), ["--out", str(tmp_path / "page.html")]
    sample = str(ROOT / "examples/sequences-dev/strong.zip")
    assert main(["score", sample, "--phase", "sequences-dev", "--json", stored, "--quiet"]) == 0
    assert main(["report", stored, *page]) == 0
    truth = str(ROOT / "annotations/sequences-dev.zip")
    assert main(["report", stored, "--truth", truth, "--protocol", "davis2017", *page]) == 1
    assert "stored.json: names no sequence of this phase" in capsys.readouterr().err
