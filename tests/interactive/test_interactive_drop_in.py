"""Programs written for the DAVIS interactive framework, with its name replaced."""

from __future__ import annotations

import importlib
import json
import pathlib
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from PIL import Image
from segjudge.davisinteractive.dataset import Davis
from segjudge.davisinteractive.robot import InteractiveScribblesRobot
from segjudge.davisinteractive.session import DavisInteractiveSession

import segjudge.davisinteractive as framework

D = "segjudge.davisinteractive"

LINES = [
    "from D.session import DavisInteractiveSession", "from D.session.session import DavisInteractiveSession",
    "from D.metrics import batched_jaccard, batched_f_measure", "from D.metrics import batched_jaccard",
    "from D.metrics.jaccard import batched_jaccard, f_measure", "from D.robot import InteractiveScribblesRobot",
    "import D.robot.interactive_robot; D.robot.interactive_robot.InteractiveScribblesRobot",
    "from D.dataset import Davis", "from D.dataset.davis import Davis",
    "from D import utils; utils.scribbles.scribbles2mask; utils.mask.combine_masks",
    "from D import utils; utils.operations.bezier_curve; utils.visualization.overlay_mask",
    "from D.utils.scribbles import scribbles2mask, annotated_frames, fuse_scribbles, is_empty, scribbles2points",
    "from D.utils.scribbles import annotated_frames_object",
    "from D.utils.operations import bezier_curve, bresenham", "from D.utils.mask import combine_masks",
    "from D.utils.visualization import overlay_mask, draw_scribble, plot_scribble",
    "from D.evaluation import EvaluationService",
    "from D.evaluation.service import EvaluationService, ROBOT_DEFAULT_PARAMETERS",
    "import D; D.logging.set_info_level(2)",
    "from D import logging; logging.set_info_level(2); logging.verbose('seen', 1); logging.info('%s', 1)",
    "from D import logging; logging.set_verbosity(logging.INFO); assert logging.get_verbosity() == logging.INFO",
    "from D.common import Path; Path('.').joinpath('x')", "import D; D.common.Path",
    "from D.storage import LocalStorage, AbstractStorage; LocalStorage()",
    "from D.third_party import mask_api; mask_api.encode_batch_masks; mask_api.decode_batch_masks",
    "from D.third_party.mask_api import encode_mask, decode_mask", "from D.connector.remote import RemoteConnector",
    "from D.connector.local import LocalConnector",
    "from D.connector.fabric import ServerConnectionFabric; ServerConnectionFabric.get_connector('localhost', 'u', 's')",
    "import D; assert D.__version__ == '1.0.4'", "from D.dataset import Davis; assert len(Davis.sets['val']) == 30",
    "from D.dataset import Davis; assert Davis.dataset['bear']['num_objects'] == 1",
]  # fmt: skip


def named(line: str) -> str:
    """Return a line of LINES with the package's own name; `import D` leaves the short name, too."""
    line = line.replace("from D", f"from {D}")
    return (
        f"import {D} as D; {line.replace('import D', f'import {D}')}"
        if "import D" in line.split(";")[0].replace("import Davis", "")
        else line
    )


@pytest.mark.long
def test_every_line_of_a_program_runs_by_itself() -> None:
    """All lines run in one process, each as if none of our modules had been imported."""
    code = (
        "import json, sys\n"
        "for line in json.loads(sys.argv[1]):\n"
        "    for name in [name for name in sys.modules if name.startswith('segjudge')]: del sys.modules[name]\n"
        "    try: exec(line, {})\n"
        "    except BaseException as error: sys.exit(f'{line}: {error!r}')\n"
    )
    lines = json.dumps([named(line) for line in LINES])
    done = subprocess.run([sys.executable, "-c", code, lines], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_alias_comes_before_the_framework_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"davisinteractive{name.removeprefix(D)}" for name in sys.modules if name.startswith(D)]
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "davisinteractive", sys.modules["json"])
    with pytest.raises(ImportError, match="is already imported; call install_alias"):
        framework.install_alias()
    monkeypatch.delitem(sys.modules, "davisinteractive")
    try:
        framework.install_alias()
        framework.install_alias()
        assert importlib.import_module("davisinteractive.session.session").DavisInteractiveSession
    finally:
        for name in names:
            sys.modules.pop(name, None)


def test_names_are_the_same_objects_as_beside() -> None:
    from segjudge import interactive

    assert DavisInteractiveSession is interactive.DavisInteractiveSession
    assert framework.common.Path is pathlib.Path
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = framework.nothing
    for name in dir(framework):
        getattr(framework, name)


# ── the dataset that nobody opened ──────────────────────────────────────────


def test_the_published_sequences_are_known_before_a_root_is_opened() -> None:
    assert {name: len(names) for name, names in Davis.sets.items()} == {
        "test-dev": 30,
        "train": 60,
        "val": 30,
        "trainval": 90,
    }
    assert Davis.sets["trainval"] == Davis.sets["train"] + Davis.sets["val"]
    assert Davis.sets["val"][:3] == ["bike-packing", "blackswan", "bmx-trees"]
    assert len(Davis.dataset) == 120
    totals = {
        name: tuple(sum(Davis.dataset[item][key] for item in Davis.sets[name]) for key in ("num_frames", "num_objects"))
        for name in ("train", "val", "test-dev")
    }
    assert totals == {"train": (4209, 144), "val": (1999, 61), "test-dev": (2086, 89)}
    assert Davis.dataset["bike-packing"] == {
        "name": "bike-packing", "attributes": [], "eval_t": False, "image_size": [910, 480], "num_frames": 69,
        "num_objects": 2, "num_scribbles": 3, "set": "val", "year": 2017,
    }  # fmt: skip
    assert Davis.dataset["bear"]["attributes"] == ["DEF"]
    assert (Davis.VERSION, Davis.RESOLUTION, Davis.years) == ("2017", "480p", [2016, 2017])
    assert (Davis.IMAGES_SUBDIR, Davis.ANNOTATIONS_SUBDIR, Davis.SCRIBBLES_SUBDIR) == (
        "JPEGImages",
        "Annotations",
        "Scribbles",
    )
    with pytest.raises(KeyError):
        Davis.dataset["nobody's"]


def test_the_catalogue_is_in_the_package() -> None:
    """An installed package contains what its metadata names."""
    import tomllib

    output = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert "interactive/*.csv" in output["tool"]["setuptools"]["package-data"]["segjudge"]


def line(number: int = 1, path: Any = ((0.2, 0.5), (0.4, 0.5))) -> dict[str, Any]:
    return {"path": [list(point) for point in path], "object_id": number, "start_time": 0, "end_time": 1}


def written(root: Path, name: str, frames: int, sets: int, *, objects: int = 1, lists: int | None = None) -> None:
    """Write a sequence of 30 × 40 pixels, like some of the framework's own test data."""
    for kind in ("Annotations/480p", "JPEGImages/480p", "Scribbles"):
        (root / kind / name).mkdir(parents=True)
    for frame in range(frames):
        mask = np.zeros((30, 40), np.uint8)
        for index in range(1, objects + 1):
            mask[4:26, 15 * index - 11 + frame : 15 * index + frame] = index
        Image.fromarray(mask).save(root / f"Annotations/480p/{name}/{frame:05d}.png")
        Image.new("RGB", (40, 30)).save(root / f"JPEGImages/480p/{name}/{frame:05d}.jpg")
    for number in range(1, sets + 1):
        output = {"scribbles": [[line()], *[[] for _ in range((lists or frames) - 1)]], "sequence": name}
        (root / f"Scribbles/{name}/{number:03d}.json").write_text(json.dumps(output))


@pytest.fixture
def root(tmp_path: Path) -> Any:
    """Return a root without lists, and the catalogue changed to it, as tests of the framework do."""
    made = tmp_path / "DAVIS"
    written(made, "bear", 2, 2)
    written(made, "tennis", 2, 1, objects=2)
    changed = {
        "bear": {**Davis.dataset["bear"], "num_frames": 2, "num_scribbles": 2, "image_size": [40, 30]},
        "tennis": {
            **Davis.dataset["tennis"], "num_frames": 2, "num_scribbles": 1, "num_objects": 2, "image_size": [40, 30],
        },
    }  # fmt: skip
    with patch.dict(Davis.dataset, changed), patch.dict(Davis.sets, {"train": ["bear", "tennis"]}):
        yield made
    assert Davis.dataset["bear"]["num_frames"] == 82


def test_a_changed_catalogue_goes_before_the_disk(root: Path) -> None:
    davis = Davis(str(root))
    davis.check_files(["bear", "tennis"])
    assert davis.sets["train"] == ["bear", "tennis"]
    assert davis.dataset["bear"]["num_frames"] == 2
    masks = davis.load_annotations("bear")
    assert (masks.shape, masks.dtype) == ((2, 30, 40), np.dtype(int))
    assert davis.load_annotations("bear", dtype=np.uint8).dtype == np.uint8
    davis.load_annotations("bear", dtype=np.uint8)[:] = 7
    assert davis.load_annotations("bear").max() == 1, "arrays are the caller's own"
    images = davis.load_images("tennis")
    assert (images.shape, images.dtype) == ((2, 30, 40, 3), np.uint8)
    assert davis.load_images("tennis", dtype=float).dtype == float
    assert len(davis.load_scribble("bear", 2)["scribbles"]) == 2
    Davis.dataset["tennis"]["num_frames"] = 3
    for error in (AssertionError, FileNotFoundError):
        with pytest.raises(error, match="tennis: has 2 of 3 masks"):
            davis.check_files(["tennis"])
        with pytest.raises((AssertionError, ValueError), match="frames, height and width"):
            davis.load_annotations("tennis")


def test_a_root_with_lists_describes_itself(tmp_path: Path) -> None:
    written(tmp_path, "bear", 3, 1)
    written(tmp_path, "mine", 2, 1)
    (tmp_path / "ImageSets/2017").mkdir(parents=True)
    (tmp_path / "ImageSets/2017/val.txt").write_text("bear\nmine\n")
    davis = Davis(tmp_path)
    davis.check_files(davis.sequences("val"))
    assert davis.dataset["bear"]["num_frames"] == 3
    assert Davis.dataset["bear"]["num_frames"] == 82
    assert Davis.dataset["mine"]["num_frames"] == 2, "what was not published is the root's that was opened last"
    assert len(Davis.sets["val"]) == 30
    with patch.dict(Davis.sets, {"val": ["mine"]}):
        assert Davis(tmp_path).sequences("val") == ["mine"]


def test_a_root_comes_from_the_environment_and_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATASET_DAVIS", str(tmp_path / "made"))
    with pytest.warns(UserWarning, match="an empty one is created"):
        assert Davis().davis_root == str(tmp_path / "made")
    assert (tmp_path / "made").is_dir()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Davis("~/made").davis_root == str(tmp_path / "made")
    monkeypatch.delenv("DATASET_DAVIS")
    with pytest.raises(ValueError, match="DATASET_DAVIS"):
        Davis()


# ── sessions ────────────────────────────────────────────────────────────────


def test_the_robot_of_a_session_may_be_adjusted(root: Path, tmp_path: Path) -> None:
    def lines_after(nodes: int | None) -> int:
        with DavisInteractiveSession(
            davis_root=str(root), subset="train", report_save_dir=tmp_path / str(nodes), max_nb_interactions=1
        ) as session:
            robot = session.connector.service.robot
            assert isinstance(robot, InteractiveScribblesRobot)
            assert (robot.kernel_size, robot.max_kernel_radius, robot.min_nb_nodes, robot.nb_points) == (
                0.2,
                16,
                4,
                1000,
            )
            if nodes is not None:
                robot.min_nb_nodes = nodes
            session.next()
            session.get_scribbles()
            session.submit_masks(np.zeros((2, 30, 40)))
            assert session.sample_last_scribble is not None
            return sum(len(frame) for frame in session.sample_last_scribble["scribbles"])

    assert lines_after(None) == 1
    assert lines_after(10_000) == 0
    session = DavisInteractiveSession(davis_root=str(root), report_save_dir=tmp_path)
    with pytest.raises(RuntimeError, match="has not begun"):
        _ = session.connector.service
