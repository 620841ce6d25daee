"""Sessions in this process, interaction by interaction, with a simulated clock; the service and its storage."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.interactive import DavisInteractiveSession, evaluation, reports
from tests.outcomes import outcome_of, outcome_with_warnings

from .plays import IGNORED, LATE, Play, means_of, rounded, summary_of
from .scene import Clock, answer


@pytest.fixture
def begin(davis: Path, clock: Clock) -> Callable[..., DavisInteractiveSession]:
    """How sessions begin, with one folder of reports and one clock."""
    usual = {"davis_root": str(davis), "report_save_dir": davis.parent / "reports", "clock": clock}
    return lambda **terms: DavisInteractiveSession(**{**usual, **terms})


#: Options and how the program plays → the steps, the means and the summary.
PLAYS: dict[str, Any] = {
    "two interactions": (
        {"max_nb_interactions": 2}, {},
        ["box 1.1 new {0: 1}", f"box 1.2 {{0: 1, 2: 2}}{IGNORED}", "box 2.1 new {2: 1}", "box 2.2 {2: 3}",
         "duo 1.1 new {1: 1}", "duo 1.2 {0: 5, 1: 1}"],
        means_of(("box 1.1", 9), ("box 1.2", 18), ("box 2.1", 27), ("box 2.2", 36), ("duo 1.1", 45), ("duo 1.2", 54)),
        summary_of("J_AND_F", 0.3952, 0.4936, [27, 63, 108], [0.3399, 0.5076, 0.5076]),
    ),
    "a limit of time alone": (
        {"max_nb_interactions": None, "max_time": 40, "metric_to_optimize": "J", "subset": "mine", "user_key": "me"}, {},
        ["box 1.1 new {0: 1}", f"box 1.2 {{0: 1, 2: 2}}{IGNORED}", f"box 1.3 {{0: 1, 1: 2, 2: 2}}{LATE}",
         "box 2.1 new {2: 1}", f"box 2.2 {{2: 3}}{LATE}"],
        means_of(("box 1.1", 9), ("box 1.2", 18), ("box 2.1", 36)),
        summary_of("J", 0.5038, 0.7523, [22.5, 31.5, 40], [0.6585, 0.7523, 0.7523]),
    ),
    "an answer that is late": (
        {"max_nb_interactions": 3, "max_time": 100, "metric_to_optimize": "F"}, {"seconds": 1, "late": 2},
        ["box 1.1 new {0: 1}", f"box 1.2 {{1: 2}}{LATE}", "box 2.1 new {2: 1}", "box 2.2 {1: 2}", "box 2.3 {0: 2}",
         "duo 1.1 new {1: 1}", "duo 1.2 {0: 5}", "duo 1.3 {1: 6}"],
        means_of(("box 1.1", 1), ("box 2.1", 3), ("box 2.2", 4), ("box 2.3", 5), ("duo 1.1", 6), ("duo 1.2", 7), ("duo 1.3", 8)),
        summary_of("F", 0.7697, 0.8026, [3.3333, 7, 11.3333, 150], [0.2596, 0.3781, 0.8026, 0.8026]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("about", PLAYS)
def test_a_session_is_played(about: str, begin: Callable[..., DavisInteractiveSession], clock: Clock) -> None:
    terms, how, steps, means, summary = PLAYS[about]
    play = Play(begin(**terms), clock, **how)
    assert (play.steps, play.means) == (steps, means)
    assert (rounded(play.summary), play.warned) == (summary, [])
    assert (play.is_running, play.files) == (False, [".csv"])


def test_a_session_that_was_left_is_resumed(
    begin: Callable[..., DavisInteractiveSession], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random, "shuffle", lambda samples: samples.reverse())
    terms = {"max_nb_interactions": 2, "shuffle": True}
    play = Play(begin(**terms), clock, most=3)
    samples = [("duo", 1), ("box", 2), ("box", 1)]
    steps = ["duo 1.1 new {1: 1}", f"duo 1.2 {{0: 5, 1: 1}}{IGNORED}", "box 2.1 new {2: 1}"]
    means = means_of(("duo 1.1", 9), ("duo 1.2", 18), ("box 2.1", 27))
    assert (play.samples, play.steps, play.means) == (samples, steps, means)
    assert (play.is_running, play.files) == (True, [".state.json", ".tmp.csv"])
    assert (play.summary, play.warned) == ({}, ["The summary exists only after the session has ended."])
    clock.now += 5000
    play = Play(begin(**terms, resume=True), clock)
    steps = ["box 2.2 new {2: 3}", f"box 1.1 new {{0: 1}}{IGNORED}", "box 1.2 {0: 1, 1: 2}"]
    means |= means_of(("box 2.2", 9), ("box 1.1", 18), ("box 1.2", 27))
    assert (play.samples, play.steps, play.means) == (samples, steps, means)
    assert (play.is_running, play.files) == (False, [".csv"])
    assert rounded(play.summary) == summary_of("J_AND_F", 0.3671, 0.5076, [18, 36, 54], [0.3399, 0.5076, 0.5076])


SUBSETS = "For local connector, `subset` must be a valid subset: ['train', 'val', 'trainval', 'mine', 'none', 'twice']"

NO_JSON = "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ({"max_nb_interactions": None}, "ValueError: Both max_time and max_nb_interactions can not be None"),
        ({"metric_to_optimize": "IoU"}, "ValueError: metric_to_optimize not between available metrics: ('J', 'F', 'J_AND_F')"),
        ({"subset": "nobody"}, f"SessionInputError: {SUBSETS}"),
        ({"subset": "test-dev"}, f"SessionInputError: {SUBSETS}"),
        ({"subset": "none"}, "SessionInputError: DAVIS/ImageSets/2017/none.txt: names no sequence"),
        ({"subset": "twice"}, "SessionInputError: DAVIS/ImageSets/2017/twice.txt: names box twice"),
        ({"resume": True}, "SessionInputError: resume: REPORTS has no unfinished session of this subset with these samples and limits"),
        ({"resume": True, "state": "{"}, f"SessionInputError: REPORTS/result_1.state.json: cannot be read ({NO_JSON})"),
    ],
    ids=str,
)  # fmt: skip
def test_a_session_that_cannot_begin(
    terms: dict[str, Any], sentence: str, begin: Callable[..., DavisInteractiveSession], davis: Path
) -> None:
    folder = davis.parent / "reports"
    folder.mkdir()
    if "state" in terms:
        (folder / "result_1.state.json").write_text(terms["state"])
    session = begin(**{name: value for name, value in terms.items() if name != "state"})
    outcome = outcome_of(session.__enter__)
    assert outcome.replace(str(davis), "DAVIS").replace(str(folder), "REPORTS") == sentence


def test_calls_out_of_order_change_nothing(
    begin: Callable[..., DavisInteractiveSession], clock: Clock, davis: Path
) -> None:
    session = begin(max_nb_interactions=1, subset="mine")
    unused = "RuntimeError: The session has not begun: use it as `with DavisInteractiveSession(...) as session`."
    assert outcome_of(session.next) == unused
    with session:
        assert (session.sample_idx, session.interaction_nb) == (-1, -1)
        nothing = (
            "RuntimeError: There is nothing to segment: call next() first, and continue only while it returns True."
        )
        early = "RuntimeError: You must have called .get_scribbles before submiting the masks"
        assert outcome_of(session.get_scribbles) == nothing
        assert outcome_of(lambda: session.submit_masks(0)) == early
        late = ["The summary exists only after the session has ended."]
        assert outcome_with_warnings(session.get_global_summary) == ({}, late)
        assert session.next()
        session.get_scribbles()
        twice = "RuntimeError: You can not call get_scribbles twice without submitting the masks first"
        assert outcome_of(session.get_scribbles) == twice
        for guess, sentence in (
            (None, "TypeError: int() argument must be a string, a bytes-like object or a number, not 'NoneType'"),
            (1, "ValueError: y_pred array must have 3 dimensions."),
            (
                np.zeros((2, 40, 60)),
                "ValueError: y_true and y_pred must have the same shape. (3, 40, 60) != (2, 40, 60)",
            ),
            (
                np.full((3, 40, 60), np.inf),
                "ValueError: The masks hold values that are not finite numbers (NaN or infinity).",
            ),
        ):
            assert outcome_of(lambda guess=guess: session.submit_masks(guess)) == sentence  # type: ignore[misc]
        clock.now += 4
        session.submit_masks(answer("box", 3, 1), [0])
        assert (session.running_model, session.interaction_nb, session.sample_idx) == (False, 1, 0)
        assert session.interaction_start_time == session.sample_start_time == clock.now - 4
        frames = session.connector.storage.annotated_frames.drop(columns="session_id")
        assert frames.to_dict("records") == [{"sequence": "box", "scribble_idx": 1, "frame": 0, "override": True}]
        assert (session.next(), session.get_scribbles()[0]) == (True, "box")
        session.submit_masks(answer("box", 3, 2))
        assert (session.next(), session.next(), session.running) == (False, False, False)
        session.get_global_summary(davis.parent / "summary.json")
    summary = json.loads((davis.parent / "summary.json").read_text())
    assert summary["auc"] == pytest.approx(0.42681620402555476, abs=1e-12)


@pytest.fixture
def service(davis: Path, clock: Clock) -> evaluation.EvaluationService:
    return evaluation.EvaluationService("val", davis_root=str(davis), max_i=2, max_t=9.0, clock=clock)


@pytest.mark.parametrize(
    ("sample", "interaction", "sentence"),
    [
        (("nobody", 1), None, "ValueError: Invalid sequence: nobody"),
        (("box", 0), None, "ValueError: Invalid scribble index: 0"),
        (("box", 3), None, "ValueError: Invalid scribble index: 3"),
        (("box", 1), 3, "ValueError: Interaction 3 is higher than the maximum number of interactions 2"),
        (("box", 1), 0, "ValueError: Interaction value invalid. Should be higher than 0."),
        (("nobody", 1), 1, "ValueError: Sequence: nobody and scribble index: 1 invalid"),
        (("box", 0), 1, "ValueError: Sequence: box and scribble index: 0 invalid"),
        (("box", 3), 1, "ValueError: Sequence: box and scribble index: 3 invalid"),
        (("box", 1), 2, "RuntimeError: For box and scribble 1 does not exist a result for previous interaction 1"),
    ],
)
def test_a_service_rejects_what_is_not_due(
    sample: tuple[str, int], interaction: int | None, sentence: str, service: evaluation.EvaluationService
) -> None:
    if interaction is None:
        assert outcome_of(lambda: service.get_scribble(*sample)) == sentence
        return
    masks = answer("box", 3, 1)
    assert outcome_of(lambda: service.post_predicted_masks(*sample, masks, 1.0, interaction)) == sentence


def store(
    storage: reports.LocalStorage, interaction: int = 1, jaccard: Any = (0.5, 1.0), frames: Any = (0, 1)
) -> object:
    return outcome_of(
        lambda: storage.store_interactions_results(
            "u", "s", "box", 1, interaction, 3, [1, 1], frames, jaccard, [0.0, 1.0]
        )
    )


def test_a_storage_takes_each_interaction_once_and_in_turn() -> None:
    storage = reports.LocalStorage()
    share = "ValueError: Jaccard values must be between 0 and 1"
    lengths = "ValueError: Objects, frames, Jaccard and contour values must have the same length, not {1, 2}"
    early = "RuntimeError: For box and scribble 1 does not exist a result for previous interaction 1"
    again = "RuntimeError: For box and scribble 1 already exist a result for interaction 1"
    assert store(storage, jaccard=[0.5, 1.01]) == store(storage, jaccard=[-0.01, 1]) == share
    assert (store(storage, frames=[0]), store(storage, 2)) == (lengths, early)
    assert (store(storage), store(storage), store(storage, 2)) == (True, again, True)


def test_a_storage_is_restored_with_the_frames_of_the_robot() -> None:
    storage, twin = reports.LocalStorage(), reports.LocalStorage()
    assert (store(storage), storage.store_annotated_frame("s", "box", 1, 1, True)) == (True, True)
    progress = storage.progress("s")
    twin.restore("s", json.loads(json.dumps(progress)), storage.get_report("s"))
    assert twin.progress("s") == progress == {"done": [("box", 1, 1)], "annotated": [("box", 1, 1, True)]}
    assert twin.get_report().equals(storage.get_report("s"))


@pytest.mark.parametrize(
    ("terms", "metric", "auc", "score", "times", "values", "empty_times"),
    [
        (reports.SummaryTerms(), "J_AND_F", 0.4688, 0.625, [3, 6, 6], [0.625] * 3, [0]),
        (reports.SummaryTerms("J", 3, 10.0, 2.0), "J", 0.6937, 0.75, [3, 6, 6, 20], [0.75] * 4, [0, 0, 0, 20]),
        (reports.SummaryTerms("F", 2, None, 1.0, 4.0, {("box", 1): 1, ("duo", 1): 2}), "F", 0.1458, 0.1667,
         [1.5, 3, 6], [0.1667] * 3, [0, 0, 0]),
    ],
)  # fmt: skip
def test_a_summary_is_the_area_below_the_curve(
    terms: reports.SummaryTerms, metric: str, auc: float, score: float, times: Any, values: Any, empty_times: Any
) -> None:
    storage = reports.LocalStorage()
    assert (store(storage), store(storage, 2)) == (True, True)
    threshold = {"threshold": 4.0} if metric == "F" else {"threshold": 60}
    expected = summary_of(metric, auc, score, times, values)
    expected["metric_at_threshold"] |= threshold
    assert rounded(terms.summarize(storage.get_report())) == expected
    empty = summary_of(metric, 0, 0, empty_times, [0] * len(empty_times))
    empty["metric_at_threshold"] |= threshold
    assert rounded(terms.summarize(reports.LocalStorage().get_report())) == empty
