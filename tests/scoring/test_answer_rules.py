"""Messages about a score and about a mistake: rounding, counting, and the visible numbers."""

from __future__ import annotations

import json
import math
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script import main
from segjudge.evaluation_script.families.instances.metrics import InstanceAccumulator, InstanceReport, InstanceScore
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.families.sequences.metrics import ObjectScore, SequenceReport
from segjudge.evaluation_script.families.sequences.protocols import BESIDE, SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.files.problems import (
    Flaw,
    HostError,
    Problem,
    Problems,
    SubmissionError,
    inflect,
    name_list,
    printable,
    quantity,
)
from segjudge.evaluation_script.masks.overlaps import best_proposals
from segjudge.evaluation_script.phases import PHASES
from segjudge.evaluation_script.runner import guard
from segjudge.evaluation_script.scoring import VERSION, answer, notify, scorer
from segjudge.evaluation_script.scoring.answer import build_answer, limit_warnings, public_result, tables
from segjudge.evaluation_script.scoring.phase import Notify, Phase, PhaseSplit
from tests.builders import ANNOTATIONS, ROOT, label_zip, png, zipped
from tests.families.choices import SKIPS_MISSING, WITH_UNSEEN
from tests.families.sequences.test_sequences import ONE, TRUTH

PLAIN = SEQUENCE_PROTOCOLS[SKIPS_MISSING]


def scored(sequence: str, name: str, j: float, f: float) -> ObjectScore:
    return ObjectScore(
        sequence, name, {"J-Mean": j, "F-Mean": f, "J&F-Mean": (j + f) / 2}, [], np.array([]), np.array([])
    )


SCORES = [scored("a", "1", 0.5, 0.25), scored("a", "2", 1.0, 0.75), scored("b", "1", 0.12345, 0.0)]


def report(split: str = "dev", warnings: Any = (), scores: Any = SCORES) -> SequenceReport:
    return SequenceReport(split, PLAIN, scores, list(warnings))


def phase_of(*splits: PhaseSplit, **options: Any) -> Phase:
    return Phase("phase", "", splits or (PhaseSplit("dev", PLAIN.name, ("J-Mean", "F-Mean")),), **options)


# ── sentences ───────────────────────────────────────────────────────────────


def test_a_name_is_shown_up_to_a_hundred_and_twenty_characters() -> None:
    assert printable("x" * 120) == "x" * 120
    assert printable("x" * 121) == "x" * 120 + "..."
    assert printable("a\x1b[2Jb\nc\u202eü") == r"a\x1b[2Jb\nc\u202eü"
    assert printable(5) == "5"


def test_a_list_names_the_first_and_counts_the_rest() -> None:
    assert [name_list(list("abcd")[:count]) for count in range(5)] == ["", "a", "a, b", "a, b, c", "a, b, c and 1 more"]
    assert name_list(list("abcdefg"), 5) == "a, b, c, d, e and 2 more"
    assert [quantity(count, "frame") for count in (0, 1, 2, 2000)] == [
        "0 frames",
        "1 frame",
        "2 frames",
        "2,000 frames",
    ]
    assert [quantity(1, "frame", 3), quantity(3, "frame", 3), quantity(1, "frame", 1)] == [
        "1 of 3 frames",
        "3 of 3 frames",
        "1 of 1 frame",
    ]
    assert [inflect(count, "lacks", "lack") for count in (0, 1, 2)] == ["lack", "lacks", "lack"]


def test_problems_are_listed_up_to_twenty() -> None:
    problems = Problems()
    problems.raise_if_any()
    assert not problems
    problems.add(Flaw("is red", "Paint it").as_problem("a\nb"))
    assert problems.text() == "a\\nb: is red. Paint it."
    for k in range(19):
        problems.add(Problem(f"{k}", "is red", "Paint it"))
    lines = problems.text().splitlines()
    assert (lines[0], lines[1], len(lines)) == (
        "20 problems found in your submission:",
        "  1. a\\nb: is red. Paint it.",
        21,
    )
    problems.add(Problem("x", "is red", "Paint it"))
    assert problems.text().splitlines()[-1] == "  ... and 1 more like these."

    assert (len(list(problems)), problems.count, bool(problems)) == (20, 21, True)
    problems.stop()
    assert problems.text().startswith("21 or more problems found")
    with pytest.raises(SubmissionError, match="^21 or more problems"):
        problems.raise_if_any()


# ── numbers ─────────────────────────────────────────────────────────────────


def test_what_participants_read_has_three_decimals_and_no_rows() -> None:
    answer = public_result(phase_of(), [report(warnings=["w"])])
    assert answer["result"] == [{"dev": {"J-Mean": 0.541, "F-Mean": 0.333}}]
    assert (answer["protocol"], answer["scored"], answer["warnings"]) == (PLAIN.name, ["dev"], ["dev: w"])
    (ours,) = answer["versions"].keys() - {"python", "numpy", "pillow"}
    assert answer["versions"][ours] == VERSION


def test_since_when_an_object_is_not_there_is_kept_from_participants() -> None:
    line = "a: object 9 (first in frame 00003) is not in the truth and was ignored"
    text = "a: object 9 (first in frame 00003) is here"
    answer = public_result(phase_of(), [report(warnings=[line, text])])
    assert answer["warnings"] == ["dev: a: object 9 is not in the truth and was ignored", f"dev: {text}"]
    assert tables([report(warnings=[line])])["warnings"] == [f"dev: {line}"]


@pytest.mark.parametrize(("count", "shown_lines"), [(0, 0), (19, 19), (20, 20), (21, 20), (50, 20)])
def test_at_most_twenty_warnings_are_shown(count: int, shown_lines: int) -> None:
    lines = limit_warnings([str(k) for k in range(count)])
    assert len(lines) == shown_lines
    assert lines[: min(count, 19)] == [str(k) for k in range(min(count, 19))]
    if count > 20:
        assert lines[-1] == f"... and {count - 19} more warnings"


def test_the_leaderboard_has_full_numbers_percent_and_errors() -> None:
    mean, splits = (0.5 + 1.0 + 0.12345) / 3, (PhaseSplit("dev", PLAIN.name, ("J-Mean",)),)
    for percent, factor in ((False, 1), (True, 100)):
        given = build_answer(phase_of(*splits, percent=percent), [report()], {"open": 0.4, "dev": 1.6})
        assert given["result"] == [{"dev": {"J-Mean": pytest.approx(factor * mean)}}]
        jackknife = abs(0.75 - 0.12345) / 2
        assert given["error"] == [{"dev": {"error_J-Mean": pytest.approx(factor * jackknife)}}]
        assert given["submission_metadata"]["phase"] == "phase"
        assert given["submission_metadata"]["seconds"] == {"open": 0, "dev": 2}


@pytest.mark.parametrize(("count", "detail", "there"), [(9, "means", False), (10, "means", True), (9, "all", True)])
def test_intervals_are_rounded_and_of_enough_sequences(count: int, detail: str, there: bool) -> None:
    """For a hidden truth, few sequences would reveal more than their mean."""
    scores = [
        SCORES[0]._replace(sequence=str(k), values={**SCORES[0].values, "J-Mean": 0.5 + k / 40}) for k in range(count)
    ]
    item = report(scores=scores)
    low, high = item.intervals(metrics=["J-Mean"])["J-Mean"]
    for percent, ends in (
        (False, [round(low, 3), round(high, 3)]),
        (True, [round(100 * low, 1), round(100 * high, 1)]),
    ):
        phase = replace(phase_of(PhaseSplit("dev", PLAIN.name, ("J-Mean",)), percent=percent), detail=detail)
        assert build_answer(phase, [item], {})["interval"] == ([{"dev": {"J-Mean": ends}}] if there else [])


@pytest.mark.parametrize(("count", "detail", "there"), [(9, "means", False), (10, "means", True), (9, "all", True)])
def test_hosts_read_sums_where_places_may_be_shown(count: int, detail: str, there: bool) -> None:
    """Hosts read each sequence's sum and number of objects, and for a mean of means its contribution to each."""
    scores = [
        SCORES[0]._replace(sequence=f"{k:02d}", name=name, unseen=k % 3 == 0, values={"J-Mean": 0.5 + k / 40})
        for k in range(count)
        for name in ("1", "2")[: 1 + k % 2]
    ]
    phase = replace(phase_of(PhaseSplit("dev", PLAIN.name, ("J-Mean",), hidden=True)), detail=detail)
    given = build_answer(phase, [report(scores=scores)], {})["submission_metadata"]["sums"]["dev"]
    objects = [1 + k % 2 for k in range(count)]
    expected = [[number * (0.5 + k / 40) for k, number in enumerate(objects)], objects]
    assert given == ({"J-Mean": [pytest.approx(numbers) for numbers in expected]} if there else {})
    by_class = SequenceReport("dev", SEQUENCE_PROTOCOLS[WITH_UNSEEN], scores, [])
    sums, counts = by_class.sums(["J-Mean"])["J-Mean"]
    assert counts.tolist() == [1] * count
    assert sums.mean() == pytest.approx(by_class.values["J-Mean"])
    assert sums.std(ddof=1) / math.sqrt(count) == pytest.approx(by_class.errors()["J-Mean"])


def test_a_split_without_an_error_leaves_all_errors_out() -> None:
    two = phase_of(
        PhaseSplit("dev", PLAIN.name, ("J-Mean",)), PhaseSplit("alone", PLAIN.name, ("J-Mean",)), percent=True
    )
    reports = [report(), report("alone", scores=SCORES[2:])]
    assert "error" not in build_answer(two, reports, {})
    assert "error" in build_answer(two, [report(), report("alone")], {})
    assert build_answer(two, reports, {})["result"][1] == {"alone": {"J-Mean": pytest.approx(12.345)}}


def test_a_number_that_is_none_is_zero_on_the_leaderboard() -> None:
    nothing = report(scores=[])
    given = build_answer(phase_of(percent=True), [nothing], {})
    assert given["result"] == [{"dev": {"J-Mean": 0.0, "F-Mean": 0.0}}]
    assert given["submission_result"]["result"] == [{"dev": {"J-Mean": None, "F-Mean": None}}]
    assert given["submission_metadata"]["undefined"] == {"dev": ["J-Mean", "F-Mean"]}
    assert "undefined" not in build_answer(phase_of(percent=True), [report()], {})["submission_metadata"]
    assert nothing.warnings == ["dev: nothing to average for J&F-Mean, J-Mean, F-Mean"]
    with pytest.raises(HostError, match=rf"phases\.py: {PLAIN.name} has no metric AP, AR"):
        build_answer(phase_of(PhaseSplit("dev", PLAIN.name, ("AP", "J-Mean", "AR"))), [report()], {})


def test_hidden_splits_are_scored_and_that_is_all_that_is_said() -> None:
    two = phase_of(PhaseSplit("dev", PLAIN.name, ("J-Mean",)), PhaseSplit("test", PLAIN.name, ("J-Mean",), hidden=True))
    given = build_answer(two, [report(), report("test", ["secret"])], {"open": 1, "dev": 2, "test": 3})
    assert given["submission_result"]["scored"] == ["dev", "test"]
    assert given["submission_result"]["result"] == [{"dev": {"J-Mean": 0.541}}]
    assert given["submission_result"]["warnings"] == []
    assert given["submission_metadata"]["seconds"] == {"open": 1, "dev": 2}
    assert [set(item) for item in given["result"]] == [{"dev"}, {"test"}]


class _Drawn:
    """A report with this many rows, whose family draws the loss."""

    def __init__(self, family: str, rows: int) -> None:
        self.protocol, self._rows = SimpleNamespace(family=family), rows

    def intervals(self, *, metrics: Any) -> Any:
        return dict.fromkeys(metrics, (0.12345, 0.67891))

    def count_cases(self, metric: str) -> int:
        return {"J-Mean": 10, "F-Mean": 9}[metric]

    def errors(self, metrics: Any) -> Any:
        return dict.fromkeys(metrics, 0.1)

    def rows(self) -> Any:
        return {"objects": [0] * self._rows, "frames": [0]}


ROUNDED, EXACT = (0.123, 0.679), (0.12345, 0.67891)


@pytest.mark.parametrize(
    ("detail", "shown"),
    [
        ("means", {"intervals": [{split: {"J-Mean": ROUNDED}} for split in ("a", "b", "c")]}),
        (
            "sequences",
            {
                "intervals": [{split: {"J-Mean": ROUNDED}} for split in ("a", "b", "c")],
                "losses": {split: {"shares": [0.123, 0.0], "room": 0} for split in ("a", "b")},
            },
        ),
        (
            "all",
            {
                "intervals": [{split: {"J-Mean": EXACT, "F-Mean": EXACT}} for split in ("a", "b", "c")],
                "errors": [{split: {"J-Mean": 0.1, "F-Mean": 0.1}} for split in ("a", "b", "c")],
                # 3 MB without 250 kB and 2 kB for each of 9 rows, for two splits
                "losses": {split: {"shares": [0.12345, 0.0], "room": 1_366_000} for split in ("a", "b")},
            },
        ),
    ],
)
def test_a_page_gets_what_its_phase_shows(detail: str, shown: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def read_losses(opened: Any, report: Any, room: int, jobs: int) -> Any:
        asked.append((opened.split, jobs))
        return {"shares": [0.12345, 0.0], "room": room}

    def run(job: Any, *, memory: int, seconds: float, say: Any) -> Any:
        asked.append((memory, seconds))
        return job(say("nobody hears it"))

    engines = {"sequences": lambda: read_losses, "depths": None}
    monkeypatch.setattr(answer, "engine_of", lambda family: SimpleNamespace(load_losses=engines[family]))
    monkeypatch.setattr(answer, "time", SimpleNamespace(monotonic=lambda: 100.0))
    monkeypatch.setattr(guard, "run_guarded", run)
    splits, closed = [], []
    for name, family, rows in (
        ("a", "sequences", 5),
        ("hidden", "sequences", 5),
        ("b", "sequences", 2),
        ("c", "depths", 9),
    ):
        opened = SimpleNamespace(split=name, close=lambda name=name: closed.append(name))
        scorer = SimpleNamespace(
            rules=SimpleNamespace(jobs=3), open=lambda path, opened=opened: asked.append(path) or opened
        )
        split = PhaseSplit(name, PLAIN.name, ("J-Mean", "F-Mean"), hidden=name == "hidden")
        splits.append((split, scorer, _Drawn(family, rows)))
    phase = phase_of(*(split for split, *_ in splits), detail=detail, memory=7)
    given: dict[str, Any] = {"submission_result": {}}
    assert answer.add_page_data(given, phase, splits, "s.zip", 150.0) == ""  # type: ignore[arg-type]
    assert given == {"submission_result": shown}
    is_asked = "losses" in shown
    assert asked == [(7, 40.0), "s.zip", ("a", 3), "s.zip", ("b", 3)] * is_asked
    assert closed == ["a", "b"] * is_asked
    asked.clear()
    answer.add_page_data(given, phase, splits[:1], "s.zip", 90.0)  # type: ignore[arg-type]
    assert asked[:1] == [(7, 0.8)] * is_asked
    if detail == "all":  # one split has all the room
        assert given["submission_result"]["losses"]["a"]["room"] == 3_000_000 - 250_000 - 6 * 2_000

    def fail(*_: object, **__: object) -> None:
        raise SubmissionError("it takes too long")

    monkeypatch.setattr(guard, "run_guarded", fail)
    text = "phase: the page of a submission lacks the causes of loss (SubmissionError: it takes too long)"
    assert answer.add_page_data(given, phase, splits, "s.zip", 150.0) == text * is_asked  # type: ignore[arg-type]


def test_tables_hold_every_row() -> None:
    answer = tables([report("dev"), report("test", scores=SCORES[:1])])
    assert answer["protocol"] == PLAIN.name
    assert [(row["split"], row["sequence"], row["J-Mean"]) for row in answer["sequences"]] == [
        ("dev", "a", 0.75),
        ("dev", "b", 0.12345),
        ("test", "a", 0.5),
    ]
    assert answer["objects"][1] == {"split": "dev", "sequence": "a", "object": "2", **SCORES[1].values}
    assert list(answer["result"][0]["dev"]) == [*PLAIN.metrics, *BESIDE]
    assert report().metrics == ["J&F-Mean", "J-Mean", "F-Mean"]
    other_report = SequenceReport("x", SEQUENCE_PROTOCOLS["mose"], SCORES, [])
    assert (tables([report(), other_report])["protocol"], tables([])["protocol"]) == ("several", "")


def test_instances_have_rows_of_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = INSTANCE_PROTOCOLS["coco"]
    values = dict.fromkeys(protocol.metrics, 0.5)
    accumulator = InstanceAccumulator(protocol, [], [])
    monkeypatch.setattr(
        accumulator, "compute", lambda: InstanceScore({**values, "APl": None}, [{"id": 3, "AP": 0.5}], ["w"])
    )
    report = InstanceReport("val", accumulator)
    assert protocol.metrics == (
        *("AP", "AP50", "AP75", "APs", "APm", "APl"),
        *("AR@1", "AR@10", "AR@100", "ARs", "ARm", "ARl"),
    )
    assert report.rows() == {"categories": [{"split": "val", "id": 3, "AP": 0.5}]}
    assert (report.errors(), report.warnings) == ({}, ["val: w", "val: nothing to average for APl"])
    assert answer.DECIMALS == 3


# ── the whole way ───────────────────────────────────────────────────────────


def test_each_object_gets_the_best_proposal_that_is_left() -> None:
    assert best_proposals(np.array([[0.9, 0.8], [0.7, 0.1], [0.0, 0.0]])) == [1, 0]
    assert best_proposals(np.array([[0.0, 0.0, 0.9], [0.0, 0.8, 0.0]])) == [0, 1, 0], "for lack of others the first"


def test_progress_is_told_in_twentieths() -> None:
    for total, lines in ((1, 1), (20, 20), (21, 20), (100, 20)):
        output: list[str] = []
        tell = main._progress(PhaseSplit("dev", "", ()), output.append, {})
        for done in range(total + 1):
            tell(f"v{done}", done, total)
        assert output[0] == f"dev: v0 (1 of {total})"
        assert len(output) == lines


def test_of_instances_beginning_and_end_are_told() -> None:
    output: list[str] = []
    (phase,) = [phase for phase in PHASES if phase.splits[0].protocol in INSTANCE_PROTOCOLS]
    truth = main.open_truth(str(ROOT / phase.annotations), phase)
    given = main.score_phase(phase, truth, str(ROOT / "examples/instances-dev/sharp.json"), output.append, 0.0)
    assert output == ["dev: detections (1 of 1)", "dev: 1 of 1 scored"]
    assert list(given["result"][0]["dev"]) == list(INSTANCE_PROTOCOLS["places2017"].metrics)


@pytest.mark.parametrize("hidden", [False, True])
def test_a_split_is_called_scored_when_all_are_and_of_a_hidden_one_nothing_else(hidden: bool, tmp_path: Path) -> None:
    output: list[str] = []
    phase = next(phase for phase in PHASES if phase.codename == "sequences-test")
    splits = tuple(replace(split, hidden=hidden) for split in phase.splits)
    truth = main.open_truth(str(ROOT / phase.annotations), phase)
    strong = ROOT / "examples/sequences-test/strong.zip"
    main.score_phase(replace(phase, splits=splits), truth, str(strong), output.append, 0.0)
    names = [f"{split.codename}: {'' if hidden else '{0} of {0} '}scored" for split in splits]
    ends = [name.format(len(truth[split.codename].sequences)) for name, split in zip(names, splits)]
    assert output[-len(ends) :] == ends
    assert bool(output[: -len(ends)]) != hidden

    output.clear()
    path, later = tmp_path / "half.zip", {sequence.name for sequence in truth[splits[1].codename].sequences}
    with zipfile.ZipFile(strong) as whole:
        path.write_bytes(zipped({n: whole.read(n) for n in whole.namelist() if not later & set(n.split("/"))}))
    with pytest.raises(SubmissionError):
        main.score_phase(replace(phase, splits=splits), truth, str(path), output.append, 0.0)
    assert not [line for line in output if line.endswith("scored")]


def test_sequences_of_the_other_splits_are_no_strangers(tmp_path: Path) -> None:
    from segjudge.evaluation_script.families.sequences import dataset as dataset_reader
    from segjudge.evaluation_script.families.sequences import truth as sequence_truth

    def split(name: str, videos: Any) -> Any:
        (tmp_path / name).write_bytes(label_zip(videos))
        return dataset_reader.read(str(tmp_path / name)).splits["val"]

    packed, others = str(tmp_path / "packed.zip"), {"other": [ONE] * 4, "a": TRUTH["a"]}
    sequence_truth.write(packed, {"dev": split("dev.zip", TRUTH), "test": split("test.zip", others)})
    phase = phase_of(PhaseSplit("dev", "davis2017", ("J-Mean",)), PhaseSplit("test", "davis2017", ("J-Mean",)))
    splits = main.open_truth(packed, phase)
    sent = str(tmp_path / "sent.zip")
    Path(sent).write_bytes(label_zip({**TRUTH, "other": [ONE] * 4}))
    output: list[str] = []
    given = main.score_phase(phase, splits, sent, output.append, 0.0)
    assert given["result"] == [{"dev": {"J-Mean": 1.0}}, {"test": {"J-Mean": 1.0}}]
    assert given["submission_result"]["warnings"] == []
    assert output[-1] == "test: 2 of 2 scored"
    assert set(given["submission_metadata"]["seconds"]) == {"open", "dev", "test"}
    with pytest.raises(HostError, match="of phase has no split 'dev', only"):
        main.score_phase(phase, {"x": splits["dev"], "y": splits["test"]}, sent, output.append, 0.0)
    unknown = phase_of(PhaseSplit("dev", "davis2071", ("J-Mean",)))
    with pytest.raises(HostError, match="^phases.py: phase: there is no protocol 'davis2071'; did you mean davis2017"):
        main.score_phase(unknown, splits, sent, output.append, 0.0)
    strict = replace(phase, strict=True)
    Path(sent).write_bytes(label_zip({**TRUTH, "other": [ONE] * 4, "stranger": [ONE]}))
    with pytest.raises(SubmissionError, match="stranger"):
        main.score_phase(strict, splits, sent, output.append, 0.0)


def test_a_plain_annotation_file_is_read_as_the_protocol_says(tmp_path: Path) -> None:
    files = {"broken": b"PK no zip", "none.zip": zipped({"a.json": b"{}"}), "masks.zip": zipped({"a/0.PNG": png(ONE)})}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    (split,) = scorer.read_truth(str(tmp_path / "masks.zip"), "davis2017").splits.values()
    assert [sequence.name for sequence in split.sequences] == ["a"]  # type: ignore[attr-defined]
    for name, protocol, sentence in (
        ("masks.zip", "coco", "holds no JSON file"),
        ("none.zip", "davis2017", "holds no PNG masks"),
        ("broken", "davis2017", "broken: "),
        ("broken", "other", "there is no protocol 'other'"),
    ):
        with pytest.raises(HostError, match=sentence):
            scorer.read_truth(str(tmp_path / name), protocol)
    with pytest.raises(HostError, match="nowhere: cannot be opened"):
        main.open_truth(str(tmp_path / "nowhere"), phase_of(PhaseSplit("dev", "davis2017", ())))


def test_a_line_for_a_closed_or_narrow_stream_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Narrow:
        written = ""

        def write(self, text: str) -> None:
            self.written += text.encode("ascii").decode()

        def flush(self) -> None:
            pass

    class Closed(Narrow):
        def write(self, text: str) -> None:
            raise ValueError("closed")

    narrow = Narrow()
    monkeypatch.setattr(main.sys, "stdout", narrow)
    main._say("über")
    assert narrow.written == "\\xfcber\n"
    monkeypatch.setattr(main.sys, "stdout", Closed())
    main._say("a")
    log = Narrow()
    monkeypatch.setattr(main.sys, "__stderr__", log)
    main._log("")
    assert log.written == ""
    main._log("x")
    assert log.written == "x\n"


# ── notifications ───────────────────────────────────────────────────────────


def test_a_notification_says_who_what_and_four_numbers() -> None:
    given = {"result": [{"dev": dict.fromkeys("abcde", 0.123456)}, {"test": {"a": 1.0}}]}
    phase = phase_of(PhaseSplit("dev", "", ()), PhaseSplit("test", "", (), hidden=True))
    sent = {"id": 7, "participant_team_name": "T", "method_name": "m", "input_file": "secret", "is_baseline": False}
    output = notify.make_message(phase, given, sent)
    numbers = ", ".join(f"{name} 0.1235" for name in "abcd")
    assert output["text"] == f"Submission 7 of T in phase scored dev: {numbers}"
    assert (output["phase"], output["result"]) == ("phase", [given["result"][0]])
    assert output["submission"] == {
        "id": 7,
        "participant_team_name": "T",
        "method_name": "m",
        "challenge_phase": None,
        "submitted_at": None,
        "is_baseline": False,
    }
    assert notify.make_message(phase, {"result": []}, {})["text"] == "Submission ? of a team in phase scored"
    assert (
        "dev: a 1; x: a 2"
        in notify.make_message(phase_of(), {"result": [{"dev": {"a": 1.0}}, {"x": {"a": 2.0}}]}, {})["text"]
    )


def test_a_hidden_split_does_not_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Notify("", "J", 0.5)
    given = {"result": [{"dev": {"J": 0.1}}, {"test": {"J": 0.9}}]}
    for hidden in (True, False):
        phase = phase_of(PhaseSplit("dev", "", ()), PhaseSplit("test", "", (), hidden=hidden), notify=rule)
        assert notify.is_asked_for(phase, given) != hidden
    monkeypatch.setattr(notify, "read_addresses", lambda: {"slack": "http://x"})
    sent: list[Any] = []
    monkeypatch.setattr(notify, "_post", lambda *what: sent.append(what))
    assert notify.notify(phase, {"result": [{"dev": {"J": 0.1}}]}, {}) == ""
    assert not sent
    assert notify.notify(phase, given, "not a dict") == ""
    assert [item[:2] for item in sent] == [("slack", "http://x")]
    monkeypatch.setattr(notify, "read_addresses", lambda: 1 / 0)
    assert notify.notify(phase, given, {}) == "notification failed: ZeroDivisionError"


def test_what_evaluate_returns_is_json() -> None:
    given = main.evaluate(
        str(ANNOTATIONS), str(ANNOTATIONS.parent.parent / "examples/sequences-dev/strong.zip"), "sequences-dev"
    )
    numbers = [value for split in given["result"] for values in split.values() for value in values.values()]
    assert all(math.isfinite(value) for value in numbers)
    assert json.loads(json.dumps(given, allow_nan=False)) == given


def test_a_phase_says_how_much_participants_may_read() -> None:
    splits = (
        PhaseSplit("dev", PLAIN.name, ("J-Mean", "F-Mean")),
        PhaseSplit("test", PLAIN.name, ("J-Mean",), hidden=True),
    )
    reports = [report(), report("test")]

    def read(detail: str) -> dict[str, Any]:
        return public_result(replace(phase_of(), splits=splits, detail=detail), reports)

    assert "sequences" not in read("means")
    assert read("sequences")["sequences"] == [
        {"split": "dev", "sequence": "a", "J-Mean": 0.75, "F-Mean": 0.5},
        {"split": "dev", "sequence": "b", "J-Mean": 0.12, "F-Mean": 0.0},
    ]
    assert "objects" not in read("sequences")
    everything = read("all")
    assert everything["objects"][2]["J-Mean"] == 0.12345
    assert all("test" not in json.dumps(read(detail).get("sequences", [])) for detail in ("means", "sequences", "all"))


def test_truths_that_score_alike_give_the_same_answer_where_only_means_are_shown() -> None:
    near = [score._replace(values={name: value + 1e-6 for name, value in score.values.items()}) for score in SCORES]
    item, two = (json.dumps(public_result(phase_of(), [report(scores=scores)])) for scores in (SCORES, near))
    assert item == two


def test_the_same_mistake_in_a_folder_is_one_problem() -> None:
    problems = Problems()
    for where in ("a/b/1.png", "a/b/2.png", "a/c/1.png", "a/b/3.png", "1.png", "2.png", "v, frame 1", "v, frame 2"):
        problems.add(Problem(where, "is odd", "Mend it"))
    problems.add(Problem("a/b/4.png", "is another", "Mend it"))
    assert [str(problem) for problem in problems] == [
        "a/b: each of 3 files (1.png, 2.png, 3.png) is odd. Mend it.",
        "a/c/1.png: is odd. Mend it.",
        "1.png: is odd. Mend it.",
        "2.png: is odd. Mend it.",
        "v: each of 2 frames (1, 2) is odd. Mend it.",
        "a/b/4.png: is another. Mend it.",
    ]
    assert problems.count == 6
    for number in range(4, 100):
        problems.add(Problem(f"a/b/{number}.png", "is odd", "Mend it"))
    assert "a/b: each of 99 files (1.png, 2.png, 3.png and 96 more) is odd" in problems.text()
    assert problems.count == 6
