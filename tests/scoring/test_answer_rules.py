"""Messages about a score and about a mistake: rounding, counting, and the visible numbers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script import main
from segjudge.evaluation_script.families.sequences.metrics import ObjectScore, SequenceReport
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.scoring import VERSION, notify
from segjudge.evaluation_script.scoring.answer import build_answer, limit_warnings, public_result, tables
from segjudge.evaluation_script.scoring.phase import Notify, Phase, PhaseSplit
from tests.builders import label_zip
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


# ── the whole way ───────────────────────────────────────────────────────────


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
    for truths in ({"x": splits["dev"], "y": splits["test"]}, {"x": splits["dev"]}):
        with pytest.raises(HostError, match="of phase has no split 'dev', only"):
            main.score_phase(phase, truths, sent, output.append, 0.0)
    unknown = phase_of(PhaseSplit("dev", "davis2071", ("J-Mean",)))
    with pytest.raises(HostError, match="^phases.py: phase: there is no protocol 'davis2071'; did you mean davis2017"):
        main.score_phase(unknown, splits, sent, output.append, 0.0)
    strict = replace(phase, strict=True)
    Path(sent).write_bytes(label_zip({**TRUTH, "other": [ONE] * 4, "stranger": [ONE]}))
    with pytest.raises(SubmissionError, match="stranger"):
        main.score_phase(strict, splits, sent, output.append, 0.0)


def test_a_notification_says_who_what_and_four_numbers() -> None:
    given = {"result": [{"dev": dict.fromkeys("abcde", 0.123456)}, {"test": {"a": 1.0}}]}
    phase = phase_of(PhaseSplit("dev", "", ()), PhaseSplit("test", "", (), hidden=True))
    sent = {"id": 7, "participant_team_name": "T", "method_name": "m", "input_file": "secret", "is_baseline": False}
    output = notify.make_message(phase, given, sent)
    numbers = ", ".join(f"{name} 0.1235" for name in "abcd")
    assert output["text"] == f"Submission 7 of T in phase scored dev: {numbers}"
    assert (output["phase"], output["result"]) == ("phase", [given["result"][0]])
    assert output["submission"] == {
        "id": 7, "participant_team_name": "T", "method_name": "m", "challenge_phase": None, "submitted_at": None,
        "is_baseline": False,
    }  # fmt: skip
    assert notify.make_message(phase, {"result": []}, {})["text"] == "Submission ? of a team in phase scored"
    assert (
        "dev: a 1; x: a 2"
        in notify.make_message(phase_of(), {"result": [{"dev": {"a": 1.0}}, {"x": {"a": 2.0}}]}, {})["text"]
    )


# ── notifications ───────────────────────────────────────────────────────────


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
