"""Processes and parts share the scoring of instance masks: the same bits whatever the split, and the same sentences."""

from __future__ import annotations

import json
import random
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.families.base.reports import standard_errors
from segjudge.evaluation_script.families.instances import matching, metrics
from segjudge.evaluation_script.families.instances import truth as instance_truth
from segjudge.evaluation_script.families.instances.matching import decode_counts
from segjudge.evaluation_script.families.instances.metrics import InstanceAccumulator
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.families.instances.truth import LABELS
from segjudge.evaluation_script.files.limits import INSTANCE_LIMITS
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.runner.parallel import Part
from tests.builders import count_results
from tests.families.instances.test_instances import GOOD, document

toolkit = pytest.mark.skipif(sys.version_info < (3, 11), reason="the toolkit needs Python 3.11")

IMAGES = 23


def as_videos(truth: Any, records: Any) -> tuple[Any, Any]:
    """Return images as videos of two frames, the second with every other instance."""
    videos = [{**image, "length": 2} for image in truth["images"]]

    def seen(one: Any, number: int) -> Any:
        masks = [one["segmentation"], one["segmentation"] if number % 2 else None]
        return {**one, "video_id": one["image_id"], "segmentations": masks, "areas": [one.get("area"), None]}

    known = [
        {**seen(one, number), "occlusion": [list(LABELS)[number % 3], None]}
        for number, one in enumerate(truth["annotations"])
    ]
    found = [seen(one, number) for number, one in enumerate(records)]
    return {"videos": videos, "categories": truth["categories"], "annotations": known}, found


def files(tmp_path: Path, found: Any = None, *, videos: bool = False) -> tuple[str, str]:
    truth, lot = document(11, images=IMAGES, categories=3)
    if videos:
        truth, lot = as_videos(truth, lot)
    known = [{**record, "bbox": [0, 0, 5, 5]} for record in lot] * 2
    random.Random(1).shuffle(known)
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    (tmp_path / "sent.json").write_text(json.dumps(known if found is None else found))
    return str(tmp_path / "sent.json"), str(tmp_path / "truth.json")


def matched(tmp_path: Path, name: str = "coco", **options: Any) -> InstanceAccumulator:
    truth = instance_truth.read(str(tmp_path / "truth.json"))["val"]
    protocol = INSTANCE_PROTOCOLS[name]
    protocol = replace(protocol, detections=(1, 2, 4)) if name != "coco-box" else protocol
    given = {key: options.pop(key) for key in ("jobs", "strict") if key in options}
    rules = ScoringRules(protocol, INSTANCE_LIMITS, **given)
    counts: InstanceAccumulator = count_results(str(tmp_path / "sent.json"), truth, rules, **options)
    return counts


def emptied(like: InstanceAccumulator) -> InstanceAccumulator:
    return InstanceAccumulator(like.protocol, like.images, like.categories, like.notes)


def result(accumulator: InstanceAccumulator) -> str:
    """Return everything that was computed, to the last bit, and what it was computed from."""
    return (
        repr(accumulator.compute())
        + repr(standard_errors(accumulator.without_groups()))
        + repr(accumulator.state_dict())
    )


@pytest.mark.parametrize("name", INSTANCE_PROTOCOLS)
def test_processes_blocks_and_parts_give_the_same_bits(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "BLOCK", 5)
    files(tmp_path, videos=INSTANCE_PROTOCOLS[name].tubes)
    whole = matched(tmp_path, name)
    expected = result(whole)
    assert any("were dropped" in line for line in whole.compute().warnings) == (name != "coco-box")
    for jobs in (2, 5) if name == "coco" else (2,):
        assert result(matched(tmp_path, name, jobs=jobs)) == expected
    monkeypatch.setattr(matching, "_RECORDS_AT_ONCE", 3)
    assert result(matched(tmp_path, name)) == expected
    for count in (1, 2, 7, 64) if name == "coco" else (3,):  # 64 are more than there are images
        parts = [matched(tmp_path, name, share=Part(number + 1, count)) for number in range(count)]
        random.Random(count).shuffle(parts)
        total = emptied(whole)
        for part in [*parts, parts[0], parts[-1]]:  # some of them twice
            total.merge(part)
        assert len(total) == IMAGES
        assert result(total) == expected


def test_images_merge_in_any_order_and_with_repeats_and_contradictions_are_refused(tmp_path: Path) -> None:
    files(tmp_path)
    whole = matched(tmp_path)
    expected, total = result(whole), emptied(whole)
    (counts,) = map(decode_counts, whole.state_dict().values())
    updates = [counts.of(np.array(chosen)) for chosen in ([3], [0, 3, 7], *([image] for image in range(IMAGES)))] * 2
    random.Random(5).shuffle(updates)
    for update in updates:
        total.update(update)
    assert result(total) == expected
    changed = counts.detections.copy()
    changed["score"][0] += 0.5
    with pytest.raises(ValueError, match="matched twice, with different results"):
        total.update(replace(counts, detections=changed))
    dropped = counts.images.copy()
    dropped["dropped"][0] += 1
    with pytest.raises(ValueError, match="matched twice, with different results"):
        total.update(replace(counts, images=dropped))
    changed["category"][0] = 3
    for part in (replace(counts, detections=changed), replace(counts, images=counts.images[:0])):
        with pytest.raises(ValueError, match=r"."):
            fresh = emptied(whole)
            fresh.load_state_dict({"0": part.encode()})
    with pytest.raises(ValueError, match="different splits"):
        total.merge(InstanceAccumulator(whole.protocol, whole.images, whole.categories))
    partial = emptied(whole)
    partial.update(updates[0])
    with pytest.raises(HostError, match="22 images not counted yet"):
        partial.compute()


def test_a_state_is_loaded_as_it_was_saved_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "BLOCK", 10)
    files(tmp_path)
    whole = matched(tmp_path)
    state, loaded = whole.state_dict(), emptied(whole)
    assert list(state) == ["0", "1", "2"]
    loaded.load_state_dict(state)
    assert loaded.state_dict() == state
    assert result(loaded) == result(whole)
    for data in (b"", state["1"][:-8], state["1"] + bytes(8), b"\xff" * 40, state["1"][:9], state["0"]):
        with pytest.raises(ValueError, match=r"."):
            loaded.load_state_dict({"1": data})
    detections = decode_counts(state["1"]).detections
    for rows in (detections[::-1], np.repeat(detections, 2)):
        with pytest.raises(ValueError, match="not in order"):
            loaded.load_state_dict({"1": replace(decode_counts(state["1"]), detections=rows).encode()})
    endless = detections.copy()
    endless["score"][0] = np.inf
    with pytest.raises(ValueError, match="not finite"):
        loaded.load_state_dict({"1": replace(decode_counts(state["1"]), detections=endless).encode()})


def test_when_strict_the_warnings_of_all_parts_refuse(tmp_path: Path) -> None:
    files(tmp_path)
    with pytest.raises(SubmissionError, match="beyond 4 in .* scored strictly") as alone:
        matched(tmp_path, strict=True).compute()
    parts = [matched(tmp_path, strict=True, share=Part(number, 2)) for number in (1, 2)]
    parts[0].merge(parts[1])
    with pytest.raises(SubmissionError) as merged:
        parts[0].compute()
    assert str(merged.value) == str(alone.value)


def scored_parts(tmp_path: Path, count: int, *more: str, folder: str = "parts") -> list[str]:
    """Score the files of `files` in so many parts; return their paths."""
    from segjudge import cli

    (tmp_path / folder).mkdir(exist_ok=True)
    given = [str(tmp_path / "sent.json"), "--truth", str(tmp_path / "truth.json"), "--protocol", "places2017", *more]
    paths = [str(tmp_path / folder / f"part-{number}.segjudge") for number in range(1, count + 1)]
    for number, path in enumerate(paths, 1):
        assert cli.main(["score", *given, "--part", f"{number}/{count}", "--out", path]) == 0
    return paths


@toolkit
@pytest.mark.parametrize("more", [[], ["--cap", "category", "--id-zero-quirk", "on", "--jobs", "2"]])
@pytest.mark.parametrize("count", [1, 3, 30])
def test_merged_parts_print_what_one_run_prints(
    count: int, more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from segjudge import cli

    sent, truth = files(tmp_path)
    outputs = ["--csv", str(tmp_path / "csv"), "--json", "-"]
    assert cli.main(["score", sent, "--truth", truth, "--protocol", "places2017", *more, *outputs]) == 0
    expected, tables = capsys.readouterr(), {p.name: p.read_bytes() for p in (tmp_path / "csv").iterdir()}
    paths = scored_parts(tmp_path, count, *more)
    random.Random(count).shuffle(paths)
    capsys.readouterr()
    assert cli.main(["merge", *paths, *outputs]) == 0
    assert capsys.readouterr() == expected
    assert {p.name: p.read_bytes() for p in (tmp_path / "csv").iterdir()} == tables


@toolkit
@pytest.mark.parametrize("jobs", [None, 7])
def test_an_executors_workers_give_the_same_scores(jobs: int | None, tmp_path: Path) -> None:
    from concurrent.futures import ProcessPoolExecutor

    import segjudge

    sent, truth = files(tmp_path)
    expected = segjudge.score(sent, truth, "places2017")
    with ProcessPoolExecutor(2) as executor:
        shared = segjudge.score(sent, truth, "places2017", executor=executor, jobs=jobs)
        assert (shared.metrics, shared.standard_errors, shared.tables, shared.warnings) == (
            expected.metrics, expected.standard_errors, expected.tables, expected.warnings,
        )  # fmt: skip
        files(tmp_path, [{**GOOD, "image_id": 999}])
        with pytest.raises(SubmissionError, match="image 999"):
            segjudge.score(sent, truth, "places2017", executor=executor, jobs=jobs)


@toolkit
def test_parts_that_do_not_fit_are_refused_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from segjudge import cli

    _, truth = files(tmp_path)
    one, two, three = scored_parts(tmp_path, 3)
    rules = scored_parts(tmp_path, 3, "--cap", "category", folder="rules")
    protocols = scored_parts(tmp_path, 3, "--protocol", "coco", folder="protocols")
    document = json.loads(Path(truth).read_text())
    Path(truth).write_text(
        json.dumps({**document, "images": [*document["images"], {**document["images"][0], "id": 9}]})
    )
    truths = scored_parts(tmp_path, 3, folder="truths")
    _, truth = files(tmp_path, [GOOD | {"image_id": 7, "category_id": 1}])
    predictions = scored_parts(tmp_path, 3, folder="predictions")
    damaged = bytearray(Path(two).read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    (tmp_path / "damaged.segjudge").write_bytes(damaged)
    for parts, words in (
        ([one, two], "part 3 of 3 missing"),
        ([one, two, three, two], "are both part 2"),
        ([one, rules[1], three], "different rules of the same protocol"),
        ([one, protocols[1], three], "different protocols"),
        ([one, truths[1], three], "different truths"),
        ([one, predictions[1], three], "different predictions"),
        ([one, str(tmp_path / "damaged.segjudge"), three], "damaged"),
    ):
        capsys.readouterr()
        assert cli.main(["merge", *parts]) == 2
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert words in line


@toolkit
def test_a_part_reads_any_manifest_without_a_crash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from segjudge import cli

    files(tmp_path)
    (path,) = scored_parts(tmp_path, 1)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    (split,) = manifest["splits"]
    for changed in (
        *({key: [{**split, key: value}]} for key in split for value in (None, -1, "x", [], {}, [[]], [{}], [1e999])),
        *({"rules": {**manifest["rules"], key: value}} for key in manifest["rules"] for value in (None, 1, [], "x")),
    ):
        given = changed if "rules" in changed else {"splits": next(iter(changed.values()))}
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, json.dumps({**manifest, **given}) if name == "manifest.json" else data)
        capsys.readouterr()
        code = cli.main(["merge", path])
        assert code in (0, 2), given
        if code == 2:
            assert len(capsys.readouterr().err.strip().splitlines()) == 1


@toolkit
def test_a_part_checks_every_record_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from segjudge import cli

    sent, truth = files(tmp_path, [GOOD | {"image_id": 7, "category_id": 1}, {**GOOD, "image_id": 999}])
    for number in (1, 2):
        given = [sent, "--truth", truth, "--protocol", "coco", "--part", f"{number}/2", "--out", str(tmp_path / "part")]
        assert cli.main(["score", *given]) == 1
        assert "record 1 (image 999)" in capsys.readouterr().err
        assert not (tmp_path / "part").exists()
