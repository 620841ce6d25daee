"""The Gymnasium environments, used as in a notebook."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from PIL import Image

import segjudge.code_upload.environments
from segjudge.code_upload.environments import INTERACTIVE, VIDEO
from segjudge.code_upload.environments.tasks import SPLIT, ActionError, make_task
from segjudge.evaluation_script import main
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit
from segjudge.families.truths import TruthSource, pack
from segjudge.interactive import DavisInteractiveSession
from segjudge.interactive.mask_datasets import make_demo_scenes, write_demo_root
from segjudge.masks.run_lengths import decode_labels, encode_labels
from tests.builders import png, zipped
from tests.interactive.scene import Clock

VIDEOS = make_demo_scenes()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environments") / "root"
    write_demo_root(folder, VIDEOS)
    return folder


@pytest.fixture(scope="module")
def packed(root: Path) -> str:
    path = str(root.parent / "truth.zip")
    pack(TruthSource(str(root), "davis2017", "val"), path, split=SPLIT)
    return path


def made(root: Path, packed: str, **more: Any) -> Any:
    return gymnasium.make(VIDEO, truth=packed, frames=str(root), **more)


def guess(scene: Any, frame: int) -> Any:
    """Return the true masks of two frames ago."""
    return scene.labels(max(frame - 2, 0))


def padded(mask: Any, space: Any) -> Any:
    out = np.zeros(space.shape, np.uint8)
    out[: mask.shape[0], : mask.shape[1]] = mask
    return out


@pytest.mark.filterwarnings("ignore:.*It seems a Box observation space is an image", "ignore:.*is not within the obs")
@pytest.mark.long
def test_the_environments_pass_gymnasiums_check(root: Path, packed: str) -> None:
    check_env(made(root, packed, sequence="pair").unwrapped, skip_render_check=True)
    interactive = gymnasium.make(INTERACTIVE, truth=str(root), sequence="drift", interactions=2, clock=Clock())
    check_env(interactive.unwrapped, skip_render_check=True)


def test_the_scores_are_those_of_prediction_upload(root: Path, packed: str, tmp_path: Path) -> None:
    environment = made(root, packed)
    observation, _ = environment.reset(seed=1)
    begun, done, rewards, result = 0, False, [], None
    for scene in VIDEOS:
        for frame in range(scene.frames):
            assert observation["new_sequence"] == (frame == 0)
            begun += observation["new_sequence"]
            assert tuple(observation["size"]) == scene.size
            if frame == 0:
                assert np.array_equal(observation["first_mask"], scene.truth(0) % 255)
            assert not done
            action = padded(guess(scene, frame), environment.action_space)
            observation, reward, done, _, info = environment.step(action)
            rewards.append(reward)
            result = info.get("result")
    assert done
    assert begun == 2
    upload = tmp_path / "masks.zip"
    upload.write_bytes(
        zipped({f"{video.name}/{k:05d}.png": png(guess(video, k)) for video in VIDEOS for k in range(video.frames)})
    )
    phase = Phase("x", "", (PhaseSplit(SPLIT, "davis2017", ("J&F-Mean", "J-Mean", "F-Mean", "J-Decay")),))
    output = main.score_phase(phase, main.open_truth(packed, phase), str(upload), lambda _: None, 0.0)["result"]
    assert result is not None
    for name, value in output[0][SPLIT].items():
        assert result[0][SPLIT][name] == value
    assert rewards[:-1] == [0.0] * (len(rewards) - 1)
    assert rewards[-1] == next(iter(result[0][SPLIT].values()))


def test_rewards_frame_by_frame_are_for_notebooks(root: Path, packed: str) -> None:
    environment = made(root, packed, sequence="pair", reward=True)
    environment.reset()
    scene = VIDEOS[1]
    rewards = [
        environment.step(padded(scene.truth(k) % 255 if k < 5 else 0 * scene.truth(k), environment.action_space))[1]
        for k in range(10)
    ]
    assert rewards == [1.0] * 5 + [0.0] * 5


def test_an_action_that_is_none_changes_nothing(root: Path, packed: str) -> None:
    task = made(root, packed, sequence="drift").unwrapped.task
    with pytest.raises(ActionError, match="the episode is over"):
        task.act(np.zeros((120, 160), np.uint8))
    first = task.begin()
    for wrong in (np.zeros((3, 3), int), np.zeros((120, 160)), np.full((120, 160), 300), None, "mask", [[1, 2], [3]]):
        with pytest.raises((ActionError, ValueError)):
            task.act(wrong)
    assert task.act(np.zeros((120, 160), int)).position == "drift/00001"
    assert first.position == "drift/00000"


def test_objects_that_enter_later_are_shown_when_they_do(tmp_path: Path) -> None:
    """As in YouTube-VOS, an object's mask is shown in its first frame."""
    for folder in ("Annotations/late", "JPEGImages/late"):
        (tmp_path / folder).mkdir(parents=True)
    for k in range(4):
        mask = np.zeros((20, 30), np.uint8)
        mask[2:8, 2:8] = 1
        mask[10:18, 10:18] = 2 * (k >= 2)
        Image.fromarray(mask).save(tmp_path / f"Annotations/late/{k:05d}.png")
        Image.fromarray(mask).convert("RGB").save(tmp_path / f"JPEGImages/late/{k:05d}.jpg")
    environment = gymnasium.make(VIDEO, truth=str(tmp_path))
    seen = [environment.reset()[0]["first_mask"]]
    seen += [environment.step(np.zeros((20, 30), np.uint8))[0]["first_mask"] for _ in range(3)]
    assert [sorted(np.unique(item).tolist()) for item in seen] == [[0, 1], [0], [0, 2], [0]]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"truth": "/nowhere"}, "/nowhere: there is no such truth"),
        ({"sequence": "cat"}, "TRUTH: has no sequence 'cat'"),
        ({"frames": "/nowhere"}, "/nowhere: lacks pictures of drift, which needs one per frame (such as 00000.jpg)"),
        ({"protocol": "davis"}, f"there is no protocol 'davis', only {', '.join(SEQUENCE_PROTOCOLS)}"),
    ],
    ids=str,
)
def test_what_is_missing_is_named(root: Path, packed: str, more: dict[str, Any], message: str) -> None:
    with pytest.raises(HostError) as caught:
        gymnasium.make(VIDEO, **{"truth": packed, "frames": str(root), **more})
    assert str(caught.value).replace(packed, "TRUTH") == message


def test_a_phase_of_the_challenge_is_scored_by_its_own_splits(root: Path, tmp_path: Path) -> None:
    from tests.builders import ANNOTATIONS

    frames = tmp_path / "frames"
    from segjudge.evaluation_script.families.sequences import truth as sequence_truth

    for sequence in sequence_truth.read(str(ANNOTATIONS)).splits["dev"].sequences:
        (frames / sequence.name).mkdir(parents=True)
        for frame, block in ((frame, sequence.blocks[0]) for frame in sequence.frames):
            Image.new("RGB", block.size[::-1]).save(frames / sequence.name / f"{frame}.jpg")
    environment = gymnasium.make(VIDEO, truth=str(ANNOTATIONS), frames=str(frames), phase="sequences-dev")
    environment.reset()
    done = False
    while not done:
        _, _, done, _, info = environment.step(np.zeros(environment.action_space.shape, np.uint8))
    assert list(info["result"][0]["dev"]) == list(main.phase_named("sequences-dev").splits[0].metrics)


@pytest.mark.long
def test_the_interactive_environment_is_the_session(root: Path, tmp_path: Path) -> None:
    def answer(frames: int, size: tuple[int, int], k: int) -> Any:
        masks = np.zeros((frames, *size), np.uint8)
        masks[:, 20 + k : 80, 30:120] = 1
        return masks

    environment = gymnasium.make(INTERACTIVE, truth=str(root), interactions=3, clock=Clock())
    observation, _ = environment.reset()
    done, k = False, 0
    while not done:
        count, height, width = observation["size"]
        assert (observation["scribbles"] >= 0).any()
        assert observation["frames"].any()
        action = {"masks": np.zeros(environment.action_space["masks"].shape, np.uint8),
                  "candidates": np.zeros(24, np.int8)}  # fmt: skip
        action["masks"][:count, :height, :width] = answer(count, (height, width), k % 3)
        observation, reward, done, _, info = environment.step(action)
        k += 1
    with DavisInteractiveSession(
        davis_root=str(root), max_nb_interactions=3, report_save_dir=tmp_path, clock=Clock()
    ) as session:
        for k, _ in enumerate(session.scribbles_iterator()):
            session.submit_masks(answer(24, (120, 160), k % 3))
    summary = session.get_global_summary()
    assert reward == info["result"][0][SPLIT]["AUC"] == summary["auc"]
    assert info["result"][0][SPLIT]["J&F@60s"] == summary["metric_at_threshold"]["J_AND_F"]


def test_candidates_that_are_no_frames_are_the_agents_mistake(root: Path) -> None:
    task = gymnasium.make(INTERACTIVE, truth=str(root), sequence="drift").unwrapped.task
    masks = np.zeros(task.begin().values["size"], np.uint8)
    for wrong in (np.inf, np.nan, "one"):
        with pytest.raises(ActionError):
            task.act({"masks": masks, "candidates": [wrong]})
    assert task.act({"masks": masks, "candidates": [0]}).position == "drift, interaction 2"
    task.close()


def test_run_lengths_of_labels_come_back() -> None:
    lot = np.random.default_rng(3)
    from pycocotools import mask as coco

    for shape in ((1, 1), (5, 7), (64, 33), (0, 4)):
        for top in (1, 2, 9, 256):
            labels = lot.integers(0, top, shape).astype(np.uint8)
            runs = encode_labels(labels)
            assert np.array_equal(decode_labels(runs.items(), shape), labels)
            for item, counts in runs.items():
                output: Any = coco.encode(np.asfortranarray(labels == item))
                assert counts == output["counts"].decode()


class Spaces(gymnasium.Env[Any, Any]):
    """Another author's environment, with actions of every kind."""

    action_space = gymnasium.spaces.Dict({
        "which": gymnasium.spaces.Discrete(3, start=1),
        "both": gymnasium.spaces.Tuple([gymnasium.spaces.MultiBinary(4), gymnasium.spaces.Box(0, 1, (2, 5))]),
    })  # fmt: skip


def test_an_agent_is_told_what_its_actions_are_made_of() -> None:
    gymnasium.register("Spaces-v0", Spaces)
    task = make_task("Spaces-v0", {"disable_env_checker": True})
    assert task.space() == {
        "type": "mapping",
        "values": {
            "which": {"type": "discrete", "n": 3, "start": 1},
            "both": {
                "type": "tuple",
                "values": [
                    {"type": "multibinary", "shape": [4], "dtype": "int8"},
                    {"type": "box", "shape": [2, 5], "dtype": "float32"},
                ],
            },
        },
    }


def test_importing_twice_registers_once() -> None:
    import importlib

    importlib.reload(segjudge.code_upload.environments)
    assert json.dumps(sorted(name for name in gymnasium.registry if name.startswith("segjudge/"))) == json.dumps(
        sorted([INTERACTIVE, VIDEO])
    )
