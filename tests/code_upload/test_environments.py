"""The Gymnasium environments, used as in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from PIL import Image

from segjudge.code_upload.environments import INTERACTIVE, VIDEO
from segjudge.code_upload.environments.tasks import SPLIT, ActionError
from segjudge.evaluation_script import main
from segjudge.families.truths import TruthSource, pack
from segjudge.interactive.mask_datasets import make_demo_scenes, write_demo_root
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


@pytest.mark.filterwarnings("ignore:.*It seems a Box observation space is an image", "ignore:.*is not within the obs")
@pytest.mark.long
def test_the_environments_pass_gymnasiums_check(root: Path, packed: str) -> None:
    check_env(made(root, packed, sequence="pair").unwrapped, skip_render_check=True)
    interactive = gymnasium.make(INTERACTIVE, truth=str(root), sequence="drift", interactions=2, clock=Clock())
    check_env(interactive.unwrapped, skip_render_check=True)


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


def test_candidates_that_are_no_frames_are_the_agents_mistake(root: Path) -> None:
    task = gymnasium.make(INTERACTIVE, truth=str(root), sequence="drift").unwrapped.task
    masks = np.zeros(task.begin().values["size"], np.uint8)
    for wrong in (np.inf, np.nan, "one"):
        with pytest.raises(ActionError):
            task.act({"masks": masks, "candidates": [wrong]})
    assert task.act({"masks": masks, "candidates": [0]}).position == "drift, interaction 2"
    task.close()
