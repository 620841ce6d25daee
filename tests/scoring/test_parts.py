"""Processes and parts share the scoring: the same bits whatever the split, and the same sentences."""

from __future__ import annotations

import json
import os
import random
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.families.sequences import dataset as dataset_reader
from segjudge.evaluation_script.families.sequences import truth as sequence_truth
from segjudge.evaluation_script.families.sequences.counting import SequenceAccumulator, decode_counts
from segjudge.evaluation_script.families.sequences.metrics import score_objects
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.families.sequences.truth import Split
from segjudge.evaluation_script.files.limits import ArchiveLimits
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.runner import parallel
from segjudge.evaluation_script.runner.parallel import Part, cores, results_of_processes, shares
from tests.builders import count_results, label_zip, tarred
from tests.families.sequences.test_sequences import sent

toolkit = pytest.mark.skipif(sys.version_info < (3, 11), reason="the toolkit needs Python 3.11")

RNG = np.random.default_rng(5)
NAMES = "abcdefg"


def video(frames: int, labels: int) -> list[Any]:
    return [np.kron(RNG.integers(0, labels + 1, (6, 7)), np.ones((9, 8))).astype(np.uint8) for _ in range(frames)]


TRUTH = {name: video(4 + 5 * index, 3) for index, name in enumerate(NAMES)}
SENT = {name: [np.roll(frame, 1, 1) for frame in frames] for name, frames in TRUTH.items()}
SENT["c"] = [np.where(frame == 2, 7, frame).astype(np.uint8) for frame in SENT["c"]]


def files(tmp_path: Path, sent: Any = SENT) -> tuple[str, Split]:
    (tmp_path / "truth.zip").write_bytes(label_zip(TRUTH))
    dataset = dataset_reader.read(str(tmp_path / "truth.zip"))
    sequence_truth.write(str(tmp_path / "packed.zip"), dataset.splits)
    (tmp_path / "sent.zip").write_bytes(sent if isinstance(sent, bytes) else label_zip(sent))
    return str(tmp_path / "sent.zip"), sequence_truth.read(str(tmp_path / "packed.zip")).splits["val"]


def counted(path: str, split: Split, protocol: str, *, jobs: int = 1, **options: Any) -> SequenceAccumulator:
    rules = ScoringRules(SEQUENCE_PROTOCOLS[protocol], ArchiveLimits(), jobs=jobs, strict=options.pop("strict", False))
    counts: SequenceAccumulator = count_results(path, split, rules, **options)
    return counts


def result(accumulator: SequenceAccumulator) -> str:
    """Return everything that was computed, to the last bit."""
    scores, warnings = score_objects(accumulator)
    return repr([(replace(one, j=one.j.tolist(), f=one.f.tolist())) for one in scores]) + repr(warnings)


@pytest.mark.long
@pytest.mark.parametrize("protocol", SEQUENCE_PROTOCOLS)
def test_processes_and_parts_give_the_same_bits(protocol: str, tmp_path: Path) -> None:
    if protocol in ("lvos-unsupervised-single", "davis2016"):
        path, split = files(tmp_path, {name: [(f > 0).astype(np.uint8) for f in v] for name, v in SENT.items()})
    else:
        path, split = files(tmp_path, sent(SENT, SEQUENCE_PROTOCOLS[protocol]))
    whole = counted(path, split, protocol)
    expected = result(whole)
    for jobs in (2, 5, 64):
        assert result(counted(path, split, protocol, jobs=jobs)) == expected
    for count in (1, 2, 7, 64):
        parts = [counted(path, split, protocol, share=Part(number + 1, count)) for number in range(count)]
        random.Random(count).shuffle(parts)
        merged = SequenceAccumulator(SEQUENCE_PROTOCOLS[protocol], parts[0].names, parts[0].notes)
        for part in [*parts, parts[0]]:  # one of them twice
            merged.merge(part)
        assert result(merged) == expected


@pytest.mark.parametrize("protocol", ["davis2017", "mosev2"])
def test_the_frames_of_a_sequence_merge_in_any_order_and_with_repeats(protocol: str, tmp_path: Path) -> None:
    path, split = files(tmp_path, TRUTH)
    whole = counted(path, split, protocol)
    expected, generator = result(whole), random.Random(3)
    merged = SequenceAccumulator(SEQUENCE_PROTOCOLS[protocol], whole.names)
    updates = []
    for data in whole.state_dict().values():
        counts = decode_counts(data)
        for row in range(len(counts.rows)):
            strict = counts.strict[..., [row]] if counts.strict.size else counts.strict
            part = replace(counts, rows=counts.rows[[row]], counts=counts.counts[..., [row]], strict=strict)
            updates += [part, part]
        if not len(counts.rows):
            updates.append(counts)
    generator.shuffle(updates)
    for update in updates:
        merged.update(update)
    assert result(merged) == expected
    counts = next(decode_counts(data) for data in whole.state_dict().values() if len(decode_counts(data).rows))
    with pytest.raises(ValueError, match="counted twice, with different results"):
        merged.update(replace(counts, counts=counts.counts + 1))
    with pytest.raises(ValueError, match="described in two ways"):
        merged.update(replace(counts, frames=[*counts.frames, "more"]))
    with pytest.raises(HostError, match="1 sequence not counted yet"):
        partial = SequenceAccumulator(SEQUENCE_PROTOCOLS[protocol], [counts.name])
        score_objects(partial)


def test_a_state_is_loaded_as_it_was_saved_and_checked(tmp_path: Path) -> None:
    path, split = files(tmp_path)
    whole = counted(path, split, "davis2017")
    state = whole.state_dict()
    loaded = SequenceAccumulator(SEQUENCE_PROTOCOLS["davis2017"], whole.names, whole.notes)
    loaded.load_state_dict(state)
    assert result(loaded) == result(whole)
    assert loaded.state_dict() == state
    nested = (100_000).to_bytes(4, "little") + b"[" * 100_000
    for data in (b"", state["a"][:-8], state["a"] + bytes(8), b"\xff" * 40, state["a"][:9], nested):
        with pytest.raises(ValueError, match=r"."):
            loaded.load_state_dict({"a": data})
    with pytest.raises(ValueError, match="a holds b"):
        loaded.load_state_dict({"a": state["b"]})


@pytest.mark.parametrize("jobs", [2, 3])
@pytest.mark.parametrize("strict", [False, True])
def test_problems_are_told_alike_by_any_number_of_processes(jobs: int, strict: bool, tmp_path: Path) -> None:
    bad = {name: [frame if k % 3 else frame[:-1] for k, frame in enumerate(v)] for name, v in SENT.items()}
    path, split = files(tmp_path, bad)
    with pytest.raises(SubmissionError) as alone:
        score_objects(counted(path, split, "davis2017", strict=strict))
    with pytest.raises(SubmissionError) as shared:
        score_objects(counted(path, split, "davis2017", strict=strict, jobs=jobs))
    assert str(shared.value) == str(alone.value)
    assert "problems found in your submission" in str(alone.value)


def test_a_tar_is_read_by_several_processes(tmp_path: Path) -> None:
    from tests.builders import png

    masks = {f"{name}/{k:05d}.png": png(frame) for name, v in SENT.items() for k, frame in enumerate(v)}
    path, split = files(tmp_path, tarred(masks))
    assert result(counted(path, split, "davis2017", jobs=4)) == result(counted(path, split, "davis2017"))


def test_one_process_scores_where_no_other_may_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, split = files(tmp_path)
    expected = result(counted(path, split, "davis2017"))

    def forbidden() -> int:
        raise PermissionError(1, "no")

    monkeypatch.setattr(os, "fork", forbidden)
    assert result(counted(path, split, "davis2017", jobs=4)) == expected


def test_what_a_process_raises_is_raised_again() -> None:
    def fails(number: int) -> bytes:
        raise HostError(f"item {number}")

    def dies(number: int) -> bytes:
        os._exit(3)

    def defect(number: int) -> bytes:
        raise KeyError("no such key")

    for work, error, words in ((fails, HostError, "item"), (dies, MemoryError, "ended"), (defect, RuntimeError, "key")):
        with pytest.raises(error, match=words):
            list(results_of_processes(work, [1, 2, 3], 2, lambda number: None))


def test_more_items_than_tickets_are_all_done() -> None:
    started: list[int] = []
    results = list(results_of_processes(lambda number: b"%d" % number, [1] * 5000, 3, started.append))
    assert sorted(map(int, results)) == list(range(5000)) == sorted(started)


def test_shares_cost_about_the_same() -> None:
    costs = [7, 1, 1, 5, 9, 3, 2, 8]
    dealt = shares(costs, 3)
    assert sorted(number for share in dealt for number in share) == list(range(8))
    assert [sum(costs[number] for number in share) for share in dealt] == [12, 12, 12]
    assert shares([], 2) == [[], []]


def test_the_quota_of_the_control_group_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    for quota, allowed in ((0.5, 1), (2.5, 2), (float("inf"), 8)):
        monkeypatch.setattr(parallel, "_quota", lambda quota=quota: quota)
        monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
        assert cores() == allowed


@toolkit
def test_the_command_takes_jobs_for_phases_and_truths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from segjudge import cli

    path, _ = files(tmp_path)
    given = [path, "--truth", str(tmp_path / "packed.zip"), "--protocol", "davis2017"]
    outputs = []
    for jobs in ([], ["--jobs", "3"], ["--jobs", "auto"]):
        assert cli.main(["score", *given, *jobs, "--json", "-"]) == 0
        outputs.append(capsys.readouterr())
    assert outputs[0] == outputs[1] == outputs[2]


def scored_parts(tmp_path: Path, count: int, *more: str, folder: str = "parts") -> list[str]:
    """Score the files of `files` in so many parts; return their paths."""
    from segjudge import cli

    (tmp_path / folder).mkdir(exist_ok=True)
    given = [str(tmp_path / "sent.zip"), "--truth", str(tmp_path / "packed.zip"), "--protocol", "davis2017", *more]
    paths = [str(tmp_path / folder / f"part-{number}.segjudge") for number in range(1, count + 1)]
    for number, path in enumerate(paths, 1):
        assert cli.main(["score", *given, "--part", f"{number}/{count}", "--out", path]) == 0
    return paths


@toolkit
@pytest.mark.parametrize("count", [1, 3, 20])
def test_merged_parts_print_what_one_run_prints(count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from segjudge import cli

    files(tmp_path)
    given = [str(tmp_path / "sent.zip"), "--truth", str(tmp_path / "packed.zip"), "--protocol", "davis2017"]
    outputs = ["--csv", str(tmp_path / "csv"), "--json", "-"]
    assert cli.main(["score", *given, *outputs]) == 0
    expected, tables = capsys.readouterr(), {p.name: p.read_bytes() for p in (tmp_path / "csv").iterdir()}
    paths = scored_parts(tmp_path, count)
    random.Random(count).shuffle(paths)
    capsys.readouterr()
    assert cli.main(["merge", *paths, *outputs]) == 0
    assert capsys.readouterr() == expected
    assert {p.name: p.read_bytes() for p in (tmp_path / "csv").iterdir()} == tables


@toolkit
def test_parts_that_do_not_fit_are_refused_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from segjudge import cli

    files(tmp_path)
    one, two, three = scored_parts(tmp_path, 3)
    strict = scored_parts(tmp_path, 3, "--protocol", "vost", folder="vost")
    others = scored_parts(tmp_path, 2, folder="two")
    some = scored_parts(tmp_path, 3, "--sequences", "a,b", folder="some")
    (tmp_path / "sent.zip").write_bytes(label_zip(TRUTH))
    predictions = scored_parts(tmp_path, 3, folder="predictions")
    (tmp_path / "not.segjudge").write_bytes(b"not")
    damaged = bytearray(Path(two).read_bytes())
    damaged[damaged.index(b"counts/0/000000") + 40] ^= 0xFF
    (tmp_path / "damaged.segjudge").write_bytes(damaged)
    for parts, words in (
        ([one, two], "part 3 of 3 missing"),
        ([one, two, three, two], "are both part 2"),
        ([one, strict[1], three], "different protocols"),
        ([one, others[1]], "different numbers of parts"),
        ([one, some[1], three], "different sequences"),
        ([one, predictions[1], three], "different predictions"),
        ([one, str(tmp_path / "not.segjudge")], "is not a part that"),
        ([one, str(tmp_path / "none.segjudge")], "cannot be opened"),
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
    for key in manifest:
        for value in (None, -1, "x", [], {}, [[]], [{}], 10**30):
            with zipfile.ZipFile(path, "w") as archive:
                for name, data in members.items():
                    archive.writestr(name, json.dumps({**manifest, key: value}) if name == "manifest.json" else data)
            capsys.readouterr()
            code = cli.main(["merge", path])
            assert code in (0, 2), (key, value)
            if code == 2:
                assert len(capsys.readouterr().err.strip().splitlines()) == 1


@toolkit
def test_a_manifest_of_millions_of_lists_is_refused_unread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from segjudge import cli
    from segjudge.scoring import parts

    path = tmp_path / "part"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", '{"members": [' + "[]," * 9_000_000 + "[]]}")
    monkeypatch.setattr(parts.json, "loads", pytest.fail)
    assert cli.main(["merge", str(path)]) == 2
    assert "is not a part that `score --part` wrote, or is damaged" in capsys.readouterr().err


@toolkit
def test_a_part_with_a_bad_mask_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from segjudge import cli

    files(tmp_path, {name: [frame[:-1] for frame in v] for name, v in SENT.items()})
    given = [str(tmp_path / "sent.zip"), "--truth", str(tmp_path / "packed.zip"), "--protocol", "davis2017"]
    assert cli.main(["score", *given, "--part", "1/2", "--out", str(tmp_path / "part")]) == 1
    assert "problems found" in capsys.readouterr().err
    assert not (tmp_path / "part").exists()
    assert cli.main(["score", *given, "--part", "1/2"]) == 2
    assert "--part and --out go together" in capsys.readouterr().err
