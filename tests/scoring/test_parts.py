"""Processes, parts and executors share the scoring of every family: the same bits, and the same sentences."""

from __future__ import annotations

import json
import random
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import segjudge
from segjudge import cli
from segjudge.evaluation_script.families import PROTOCOLS, report_of
from segjudge.evaluation_script.files.problems import SubmissionError
from segjudge.evaluation_script.runner.parallel import Part
from segjudge.evaluation_script.scoring import VERSION
from segjudge.evaluation_script.scoring.scorer import Scorer
from segjudge.families.truths import TruthSource
from segjudge.scoring import parts
from segjudge.scoring.request import ScoreRequest, prepare
from segjudge.system.errors import UsageError
from segjudge.testing.checks import empty_like
from tests.builders import zipped
from tests.families.choices import BOXES
from tests.families.contract import examples
from tests.families.instances.test_instances import GOOD
from tests.scoring.shares import SENT, Files, write_files, write_instances, write_sequences


def scorer_of(files: Files, protocol: str, *, jobs: int = 1, strict: bool = False) -> Scorer:
    rules = PROTOCOLS[protocol]
    source = TruthSource(files.truth, "", "", "", "")
    (scorer,) = prepare(ScoreRequest(files.results, source, rules, strict=strict, jobs=jobs)).scorers.values()
    if rules.family == "instances" and protocol != BOXES:  # so few that some are beyond them
        return replace(scorer, rules=replace(scorer.rules, protocol=replace(rules, detections=(1, 2, 4))))
    return scorer


@pytest.mark.parametrize("protocol", examples("sharing"))
def test_counts_of_other_rules_or_strictness_are_not_merged(protocol: str, tmp_path: Path) -> None:
    files = write_files(protocol, tmp_path)
    whole = scorer_of(files, protocol).count(files.results)
    second = next(
        rules for rules in PROTOCOLS.values() if rules.family == whole.protocol.family and rules != whole.protocol
    )
    for changes in ({"protocol": second}, {"strict": True}):
        total = empty_like(whole)
        vars(total).update(changes)
        with pytest.raises(ValueError, match="different splits, protocols or submissions"):
            total.merge(whole)


@pytest.mark.parametrize(
    ("protocol", "warning"), [("davis2017", "is not in the truth"), ("coco", "beyond 4 in .* Scoring is strict")]
)
def test_when_strict_the_warnings_of_all_parts_refuse(protocol: str, warning: str, tmp_path: Path) -> None:
    files = write_files(protocol, tmp_path)
    scorer = scorer_of(files, protocol, strict=True)
    with pytest.raises(SubmissionError, match=warning) as alone:
        scorer.score(files.results)
    first, second = (scorer.count(files.results, Part(number, 2)) for number in (1, 2))
    first.merge(second)
    with pytest.raises(SubmissionError) as merged:
        report_of(scorer.split, first)
    assert str(merged.value) == str(alone.value)


@pytest.mark.parametrize("jobs", [2, 3])
@pytest.mark.parametrize("strict", [False, True])
def test_problems_are_told_alike_by_any_number_of_processes(jobs: int, strict: bool, tmp_path: Path) -> None:
    bad = {name: [frame if k % 3 else frame[:-1] for k, frame in enumerate(v)] for name, v in SENT.items()}
    files = write_sequences(tmp_path, bad)
    with pytest.raises(SubmissionError, match="problems found in your submission") as alone:
        scorer_of(files, "davis2017", strict=strict).score(files.results)
    with pytest.raises(SubmissionError) as shared:
        scorer_of(files, "davis2017", strict=strict, jobs=jobs).score(files.results)
    assert str(shared.value) == str(alone.value)


def test_the_command_takes_jobs_for_phases_and_truths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write_sequences(tmp_path)
    outputs = []
    for jobs in ([], ["--jobs", "3"], ["--jobs", "auto"]):
        assert cli.main(["score", *words_of(files, "davis2017"), *jobs, "--json", "-"]) == 0
        outputs.append(capsys.readouterr())
    assert outputs[0] == outputs[1] == outputs[2]


def words_of(files: Files, protocol: str) -> list[str]:
    return [files.results, "--truth", files.truth, "--protocol", protocol]


def score_parts(files: Files, count: int, protocol: str, *more: str, folder: str = "parts") -> list[str]:
    """Score the files in this many parts; return their paths."""
    parts_folder = Path(files.results).parent / folder
    parts_folder.mkdir(exist_ok=True)
    paths = [str(parts_folder / f"part-{number}.segjudge") for number in range(1, count + 1)]
    for number, path in enumerate(paths, 1):
        arguments = [*words_of(files, protocol), *more, "--part", f"{number}/{count}", "--out", path]
        assert cli.main(["score", *arguments]) == 0
    return paths


ADJUSTED = ["--cap", "category", "--id-zero-quirk", "on", "--jobs", "2"]


@pytest.mark.parametrize(
    ("protocol", "count", "more"),
    [
        *((protocol, 3, []) for protocol in examples("sharing")),
        pytest.param("places2017", 1, ADJUSTED, marks=pytest.mark.long),
        ("places2017", 3, ADJUSTED),
        pytest.param("places2017", 30, [], marks=pytest.mark.long),
        pytest.param("davis2017", 1, [], marks=pytest.mark.long),
        pytest.param("davis2017", 20, [], marks=pytest.mark.long),
    ],
)
def test_merged_parts_print_what_one_run_prints(
    protocol: str, count: int, more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write_files(protocol, tmp_path)
    outputs = ["--csv", str(tmp_path / "csv"), "--json", "-"]
    assert cli.main(["score", *words_of(files, protocol), *more, *outputs]) == 0
    expected, tables = capsys.readouterr(), {p.name: p.read_bytes() for p in (tmp_path / "csv").iterdir()}
    paths = score_parts(files, count, protocol, *more)
    random.Random(count).shuffle(paths)
    capsys.readouterr()
    assert cli.main(["merge", *paths, *outputs]) == 0
    assert capsys.readouterr() == expected
    assert {p.name: p.read_bytes() for p in (tmp_path / "csv").iterdir()} == tables


def refused(paths: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert cli.main(["merge", *paths]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line


def test_parts_of_instances_that_do_not_fit_are_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write_instances(tmp_path)
    item, two, three = score_parts(files, 3, "places2017")
    rules = score_parts(files, 3, "places2017", "--cap", "category", folder="rules")
    protocols = score_parts(files, 3, "coco", folder="protocols")
    document = json.loads(Path(files.truth).read_text())
    images = [*document["images"], {**document["images"][0], "id": 9}]
    Path(files.truth).write_text(json.dumps({**document, "images": images}))
    truths = score_parts(files, 3, "places2017", folder="truths")
    write_instances(tmp_path, [GOOD | {"image_id": 7, "category_id": 1}])
    predictions = score_parts(files, 3, "places2017", folder="predictions")
    damaged = bytearray(Path(two).read_bytes())
    damaged[damaged.index(b"counts/0/") + 99] ^= 0xFF  # within the counts, not in a field that zips repeat
    (tmp_path / "damaged.segjudge").write_bytes(damaged)
    for paths, message in (
        ([item, two], "part 3 of 3 missing"),
        ([item, two, three, two.replace("/", "//")], "are both part 2"),
        ([item, rules[1], three], "different rules of the same protocol"),
        ([item, protocols[1], three], "different protocols"),
        ([item, truths[1], three], "different truths"),
        ([item, predictions[1], three], "different predictions"),
        ([item, str(tmp_path / "damaged.segjudge"), three], "damaged"),
    ):
        refused(paths, message, capsys)


ODD = (None, -1, "x", [], {}, [[]], [{}], 1e999, 10**30)


@pytest.mark.parametrize("protocol", examples("sharing"))
def test_a_part_reads_any_manifest_without_a_crash(
    protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = score_parts(write_files(protocol, tmp_path), 1, protocol)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    (split,) = manifest["splits"]
    for changes in (
        *({key: value} for key in manifest for value in ODD),
        *({"splits": [{**split, key: value}]} for key in split for value in ODD),
        *({"rules": {**manifest["rules"], key: value}} for key in manifest["rules"] for value in (None, 1, [], "x")),
    ):
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, json.dumps({**manifest, **changes}) if name == "manifest.json" else data)
        capsys.readouterr()
        code = cli.main(["merge", path])
        assert code in (0, 2), changes
        if code == 2:
            assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_manifest_of_millions_of_lists_is_refused_unread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "part"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", '{"members": [' + "[]," * 9_000_000 + "[]]}")
    monkeypatch.setattr(parts.json, "loads", pytest.fail)
    refused(
        [str(path)],
        "was written neither by `score --part` nor by `score --save`, or is damaged; score the results first",
        capsys,
    )


def test_a_part_checks_every_record_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write_instances(tmp_path, [GOOD | {"image_id": 7, "category_id": 1}, {**GOOD, "image_id": 999}])
    for number in (1, 2):
        arguments = [*words_of(files, "coco"), "--part", f"{number}/2", "--out", str(tmp_path / "part")]
        assert cli.main(["score", *arguments]) == 1
        assert "record 1 (image 999)" in capsys.readouterr().err
        assert not (tmp_path / "part").exists()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format": "7"}, "has the format 7; this version reads 'segjudge part 1'. Score it again"),
        ({"part": 2}, "has a manifest that cannot be read. Score it again"),
        ({"results": "a.zip"}, "has a manifest that cannot be read. Score it again"),
        ({"results": ["a.zip", 1]}, "has a manifest that cannot be read. Score it again"),
        ({"protocol": "other"}, f"was scored by other of segjudge {VERSION}, whose rules this version ({VERSION}) lacks"),
        ({"rules": {}}, f"was scored by davis2017 of segjudge {VERSION}, whose rules this version ({VERSION}) lacks"),
        ({"members": [["odd"]]}, "is damaged (odd holds a). Score it again"),
        ({"members": [[]]}, "the parts lack a, b, c and 4 more of val; score them again"),
    ],
)  # fmt: skip
def test_a_changed_manifest_is_refused_word_for_word(changes: dict[str, object], sentence: str, tmp_path: Path) -> None:
    (path,) = score_parts(write_sequences(tmp_path), 1, "davis2017")
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["manifest.json"] = json.dumps({**json.loads(members["manifest.json"]), **changes}).encode()
    Path(path).write_bytes(zipped(members))
    with pytest.raises(UsageError) as caught:
        segjudge.load(path)
    assert str(caught.value) == (sentence if sentence.startswith("the parts") else f"{path}: {sentence}")
