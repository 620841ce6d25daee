"""The tasks behind environments: each observation, each action that they reject, and the scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from segjudge.code_upload.environments import INTERACTIVE, VIDEO, tasks, video
from segjudge.code_upload.environments.tasks import ActionError, Observation
from segjudge.code_upload.messages import Labels
from segjudge.families.truths import TruthSource, pack
from segjudge.masks.run_lengths import encode_labels
from tests.interactive.scene import Clock, answer, draw_truth, write_root
from tests.outcomes import outcome_of

OVER = "ActionError: the episode is over; call reset to begin another"
SIZE = (40, 60)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    write_root(folder / "davis")
    pack(TruthSource(str(folder / "davis"), "davis2017", "val"), str(folder / "truth.zip"), split="test")
    return folder / "davis"


class Lamp(gymnasium.Env[Any, Any]):
    """An environment with three actions, whose episodes end after two steps."""

    def __init__(self) -> None:
        self.action_space, self.observation_space, self._steps = spaces.Discrete(3, start=1), spaces.Discrete(9), 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        del options
        self._steps = 0
        return {"seed": seed}, {}

    def step(self, action: Any) -> Any:
        self._steps += 1
        return {"step": self._steps}, float(action), self._steps == 2, self._steps > 5, {}


def test_episodes_of_any_environment_are_played_one_after_the_other() -> None:
    task = tasks._GymTask(Lamp(), 2, 7)
    assert outcome_of(lambda: task.act(1)) == OVER
    assert task.space() == {"type": "discrete", "n": 3, "start": 1}
    assert task.begin() == Observation({"seed": 7}, 0.0, done=False, position="episode 1, step 0", sizes=[])
    odd = "ActionError: the action does not match Discrete(3, start=1) "
    for action, sentence in (
        (0, "ActionError: the action 0 is not in Discrete(3, start=1)"),
        ("x", f"{odd}(invalid literal for int() with base 10: 'x')"),
        (None, f"{odd}(int() argument must be a string, a bytes-like object or a real number, not 'NoneType')"),
    ):
        assert outcome_of(lambda action=action: task.act(action)) == sentence  # type: ignore[misc]
    assert task.act(3) == Observation({"step": 1}, 3.0, position="episode 1, step 1")
    assert task.act(1) == Observation({"seed": 8}, 1.0, position="episode 2, step 0")
    assert task.act(2) == Observation({"step": 1}, 2.0, position="episode 2, step 1")
    assert task.act(3) == Observation({"step": 2}, 3.0, done=True)
    assert outcome_of(lambda: task.act(1)) == OVER
    assert task.result() == [{"test": {"score": 4.5}}]


BOX = spaces.Box(0, 1, (2,), np.float32)
PAIR = spaces.Dict({"n": spaces.Discrete(2), "t": spaces.Tuple([BOX, spaces.Text(3)])})


def test_spaces_are_described() -> None:
    box = {"type": "box", "shape": [2], "dtype": "float32"}
    pair = {"type": "tuple", "values": [box, {"type": "text", "shape": [], "dtype": "<U0"}]}
    number = {"type": "discrete", "n": 2, "start": 0}
    assert tasks._describe_space(PAIR) == {"type": "mapping", "values": {"n": number, "t": pair}}
    assert tasks._describe_space(spaces.MultiBinary(3)) == {"type": "multibinary", "shape": [3], "dtype": "int8"}


@pytest.mark.parametrize(
    ("space", "action", "sentence"),
    [
        (BOX, [0, 1], ""),
        (BOX, np.ones(2), ""),
        (BOX, [0, 2], "the action [0. 2.] is not in SPACE"),
        (BOX, [[0], [1]], "the action [[0.]\n [1.]] is not in SPACE"),
        (BOX, True, "the action 1.0 is not in SPACE"),
        (BOX, ["x", 1], "the action does not match SPACE (list instead of numbers)"),
        (BOX, "ab", "the action does not match SPACE (str instead of numbers)"),
        (BOX, None, "the action does not match SPACE (NoneType instead of numbers)"),
        (PAIR, {"n": 1, "t": [[0.5, 0.5], "ab"]}, ""),
        (PAIR, {"n": 1}, "the action does not match SPACE ('t')"),
        (PAIR, {"n": 1, "t": [[0.5, 0.5]]}, "the action does not match SPACE (the action does not match TUPLE (zip() argument 2 is shorter than argument 1))"),
        (PAIR, 3, "the action does not match SPACE ('int' object is not subscriptable)"),
        (PAIR, {"n": 2, "t": [[0.5, 0.5], "ab"]}, "the action does not match SPACE (the action 2 is not in Discrete(2))"),
        (spaces.MultiBinary(2), [1, 0], ""),
    ],
)  # fmt: skip
def test_an_action_becomes_a_member_of_its_space(space: Any, action: Any, sentence: str) -> None:
    if not sentence:
        assert tasks._member(space, action) in space
        return
    known = sentence.replace("SPACE", str(space)).replace("TUPLE", str(PAIR["t"]))
    assert outcome_of(lambda: tasks._member(space, action)) == f"ActionError: {known}"


def runs(mask: Any) -> dict[int, str]:
    return dict(encode_labels(mask.astype(np.uint8)))


COUNTS = "the mask has counts that add up to {}, not to the 2400 pixels of the frame. Encode it with pycocotools or as it does"
WHOLE = "the mask is not a two-dimensional array of whole numbers but "
#: Actions that are no mask of a frame.
MASKS: list[tuple[Any, str]] = [
    (None, f"{WHOLE}NoneType"),
    ([[1]], f"{WHOLE}list"),
    (np.zeros(SIZE), f"{WHOLE}float64 (40, 60)"),
    (np.zeros(3, int), f"{WHOLE}int64 (3,)"),
    (np.zeros((39, 60), int), "the mask is (39, 60), smaller than the frame (40, 60) (height, width)"),
    (np.full(SIZE, 256), "the mask has ids outside 0 to 255"),
    (np.full(SIZE, -1), "the mask has ids outside 0 to 255"),
    (Labels((40, 61), {}), "the mask is (40, 61), and the frame (40, 60) (height, width)"),
    (Labels(SIZE, {1: "00"}), COUNTS.format(0)),
    (Labels(SIZE, {1: "5"}), COUNTS.format(5)),
]


def _options(root: Path) -> dict[str, Any]:
    return {"truth": str(root.parent / "truth.zip"), "frames": str(root)}


def test_frames_of_videos_are_shown_in_turn_and_scored_as_uploads(root: Path) -> None:
    task: Any = tasks.make_task(VIDEO, _options(root))
    assert task.space() == {"type": "labels", "of": "the frame that was shown", "dtype": "uint8"}
    seen = task.begin()
    for number, (name, frame) in enumerate(
        [*(("box", frame) for frame in range(3)), *(("duo", frame) for frame in range(4))]
    ):
        assert (seen.position, seen.sizes, seen.done) == (f"{name}/{frame:05d}", [SIZE], False)
        first = Labels(
            SIZE, runs(np.where(draw_truth(name, 0) == 255, 0, draw_truth(name, 0)) if frame == 0 else np.zeros(SIZE))
        )
        values = {key: value for key, value in seen.values.items() if key != "frame"}
        assert values == {"size": [40, 60], "first_mask": first, "new_sequence": int(frame == 0)}
        assert np.array_equal(task.truth(), draw_truth(name, frame))
        for action, sentence in MASKS if number == 1 else ():
            assert outcome_of(lambda action=action: task.act(action)) == f"ActionError: {sentence}"  # type: ignore[misc]
        guess = answer(name, 4, 2)[frame]
        padded = np.pad(guess, 3)[3:, 3:]  # an array may be larger than the frame
        seen = task.act(padded if number % 2 else Labels(SIZE, runs(guess)))
    assert seen == Observation({}, 0.0, done=True)
    ((scores),) = task.result()
    assert scores["test"] == pytest.approx(
        {"J&F-Mean": 0.45863, "J-Mean": 0.51604, "J-Recall": 2 / 3, "J-Decay": 0, "F-Mean": 0.40121, "F-Recall": 1 / 3, "F-Decay": 0},
        abs=1e-5,
    )  # fmt: skip
    assert outcome_of(lambda: task.act(None)) == OVER


PHASES = "sequences-dev, sequences-test, instances-dev, photo-videos, photo-panoptic"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"truth": "nowhere"}, "HostError: nowhere: there is no such truth"),
        ({"sequence": "nobody"}, "HostError: ROOT/truth.zip: has no sequence 'nobody'"),
        ({"frames": "/nowhere"}, "HostError: /nowhere: lacks pictures of box, which needs one per frame (such as 00000.jpg)"),
        ({"protocol": "coco"}, "HostError: there is no protocol 'coco', only davis2017"),
        ({"phase": "nothing"}, f"SubmissionError: There is no phase 'nothing' in this challenge; its phases are: {PHASES}."),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_video_task_lacks_is_named(changes: dict[str, str], sentence: str, root: Path) -> None:
    with mock.patch.object(video, "SEQUENCE_PROTOCOLS", {"davis2017": video.SEQUENCE_PROTOCOLS["davis2017"]}):
        outcome = outcome_of(lambda: tasks.make_task(VIDEO, {**_options(root), **changes}))
    assert outcome == sentence.replace("ROOT", str(root.parent))


def test_rewards_of_a_video_are_the_similarity_with_each_frame(root: Path) -> None:
    environment: Any = gymnasium.make(VIDEO, **_options(root), sequence="duo", reward=True)
    assert environment.action_space == spaces.Box(0, 255, SIZE, np.uint8)
    values, facts = environment.reset()
    assert (int(values["first_mask"].sum()), values["new_sequence"], facts) == (864, 1, {"where": "duo/00000"})
    for frame in range(4):
        assert values["frame"].mean() == pytest.approx(100, abs=0.5)
        values, reward, ended, _, facts = environment.step(answer("duo", 4, 2)[frame].astype(np.uint8))
        assert (values["first_mask"].any(), values["new_sequence"], ended) == (False, 0, frame == 3)
        assert reward == pytest.approx(0.36066, abs=1e-5)
        assert frame == 3 or facts == {"where": f"duo/0000{frame + 1}"}
    assert (values["frame"].any(), values["size"].tolist()) == (False, [1, 1])
    assert facts["result"][0]["test"]["J&F-Mean"] == reward
    assert facts["result"][0]["test"]["J-Mean"] == pytest.approx(0.35099, abs=1e-5)
    environment.close()


@pytest.mark.parametrize(
    ("truth", "mask", "similarity"),
    [([[0, 0]], [[0, 0]], 1.0), ([[0, 255]], [[0, 1]], 0.0), ([[1, 1]], [[1, 0]], 0.25)],
)
def test_similarity_of_a_mask(truth: Any, mask: Any, similarity: float) -> None:
    assert video._similarity(np.array(truth, np.uint8), np.array(mask)) == similarity


LIST = "masks is not a list of masks of the same size"
ANSWERS: list[tuple[Any, str]] = [
    (None, 'the action is not a mapping with "masks"'),
    ({}, 'the action is not a mapping with "masks"'),
    ({"masks": [1]}, LIST),
    ({"masks": []}, LIST),
    ({"masks": [Labels((1, 1), {1: "5"})]},
     "a mask has counts below zero or beyond the frame. Encode it with pycocotools or as it does"),
    ({"masks": [Labels((1, 1), {}), Labels((1, 2), {})]}, LIST),
    ({"masks": np.zeros((1, 2, 3), int)}, "y_true and y_pred must have the same shape. (3, 40, 60) != (1, 2, 3)"),
]  # fmt: skip
#: Of each interaction: its position, its lines as (object, frame, points), and the score of the answer.
ROBOT = (0, 0, 1000), (1, 0, 1000)
INTERACTIONS = [
    ("box, interaction 1", [(1, 0, 2)], 0.65456),
    ("box, interaction 2", [(1, 0, 2), *ROBOT], 0.65456),
    ("box, interaction 1", [(1, 2, 2)], 0.65456),
    ("box, interaction 2", [*ROBOT, (1, 2, 2)], 0.65456),
    ("duo, interaction 1", [(1, 1, 2)], 0.48662),
    ("duo, interaction 2", [(1, 1, 2), *[(0, 1, 1000)] * 3, *[(1, 1, 1000)] * 2, (2, 1, 1000)], 0.48662),
]


def test_interactions_are_shown_in_turn_and_scored_as_a_session(root: Path) -> None:
    clock = Clock()
    options = {"truth": str(root), "interactions": 2, "clock": clock, "subset": "val"}
    task: Any = tasks.make_task(INTERACTIVE, options)
    lists = {"masks": {"type": "list", "of": "labels"}, "candidates": {"type": "list", "of": "integer"}}
    assert task.space() == {"type": "mapping", "values": lists}
    assert outcome_of(lambda: task.act({})) == OVER
    seen = task.begin()
    for position, lines, score in INTERACTIONS:
        name, count, begins = position[:3], 3 + (position[:3] == "duo"), position.endswith("1")
        assert (seen.position, seen.sizes) == (position, [SIZE] * count)
        values = {**seen.values, "frames": len(seen.values["frames"])}
        assert [(line["object_id"], line["frame"], len(line["path"])) for line in values.pop("scribbles")] == lines
        frames, new = (count, 1) if begins else (0, 0)
        assert values == {"sequence": name, "frames": frames, "size": [count, *SIZE], "new_sequence": new}
        for action, sentence in ANSWERS if position == "box, interaction 1" else ():
            assert outcome_of(lambda action=action: task.act(action)) == f"ActionError: {sentence}"  # type: ignore[misc]
        clock.now += 6
        masks = [Labels(SIZE, runs(frame)) for frame in answer(name, count, 2)]
        seen = task.act({"masks": masks, "candidates": [1] if name == "duo" else []})
        assert task.last_score() == pytest.approx(score, abs=1e-5)
    assert seen == Observation({}, 0.0, done=True)
    assert task.result()[0]["test"] == pytest.approx({"AUC": 0.38071, "J&F@60s": 0.50761}, abs=1e-5)
    assert outcome_of(lambda: task.act({"masks": []})) == OVER
    task.close()


@pytest.mark.parametrize("rewarded", [True, False])
def test_an_interactive_environment_pads_what_it_shows(rewarded: bool, root: Path) -> None:
    taken = {"masks": answer("duo", 4, 2).astype(np.uint8), "candidates": np.array([0, 1, 0, 0])}
    environment: Any = gymnasium.make(
        INTERACTIVE, truth=str(root), sequence="duo", interactions=2, clock=Clock(), reward=rewarded
    )
    masks = spaces.Box(0, 255, (4, *SIZE), np.uint8)
    assert environment.action_space == spaces.Dict({"candidates": spaces.MultiBinary(4), "masks": masks})
    values, facts = environment.reset()
    for number, pixels in enumerate([{-1: 9589, 1: 11}, {-1: 9423, 0: 70, 1: 74, 2: 33}], 1):
        assert facts == {"where": f"duo, interaction {number}"}
        assert (values["size"].tolist(), values["new_sequence"]) == ([4, *SIZE], int(number == 1))
        assert [round(float(frame.mean())) for frame in values["frames"]] == [100] * 4
        assert dict(zip(*np.unique(values["scribbles"], return_counts=True), strict=True)) == pixels
        values, reward, ended, _, facts = environment.step(taken)
        assert (reward, ended) == (pytest.approx(0.36066 * rewarded, abs=1e-5), number == 2)
    assert facts["result"][0]["test"] == pytest.approx({"AUC": 0, "J&F@60s": 0.36066}, abs=1e-5)
    environment.close()


def test_an_interactive_sequence_that_does_not_exist_is_named(root: Path) -> None:
    made = outcome_of(lambda: gymnasium.make(INTERACTIVE, truth=str(root), sequence="nobody"))
    assert made == "ValueError: there is no sequence 'nobody' in val"
    assert issubclass(ActionError, ValueError)
