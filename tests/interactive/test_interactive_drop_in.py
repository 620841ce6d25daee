"""Programs written for the DAVIS interactive framework, with its name replaced."""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from segjudge.davisinteractive.dataset import Davis
from segjudge.davisinteractive.evaluation import EvaluationService
from segjudge.davisinteractive.metrics import batched_f_measure, batched_jaccard
from segjudge.davisinteractive.robot import InteractiveScribblesRobot
from segjudge.davisinteractive.session import DavisInteractiveSession
from segjudge.davisinteractive.storage import AbstractStorage, LocalStorage
from segjudge.davisinteractive.third_party import mask_api
from segjudge.davisinteractive.utils import operations, scribbles, visualization

import segjudge.davisinteractive as framework
from tests.builders import ROOT

D = "segjudge.davisinteractive"

LINES = [
    "from D.session import DavisInteractiveSession",
    "from D.session.session import DavisInteractiveSession",
    "from D.metrics import batched_jaccard, batched_f_measure",
    "from D.metrics import batched_jaccard",
    "from D.metrics.jaccard import batched_jaccard, f_measure",
    "from D.robot import InteractiveScribblesRobot",
    "import D.robot.interactive_robot; D.robot.interactive_robot.InteractiveScribblesRobot",
    "from D.dataset import Davis",
    "from D.dataset.davis import Davis",
    "from D import utils; utils.scribbles.scribbles2mask; utils.mask.combine_masks",
    "from D import utils; utils.operations.bezier_curve; utils.visualization.overlay_mask",
    "from D.utils.scribbles import scribbles2mask, annotated_frames, fuse_scribbles, is_empty, scribbles2points",
    "from D.utils.scribbles import annotated_frames_object",
    "from D.utils.operations import bezier_curve, bresenham",
    "from D.utils.mask import combine_masks",
    "from D.utils.visualization import overlay_mask, draw_scribble, plot_scribble",
    "from D.evaluation import EvaluationService",
    "from D.evaluation.service import EvaluationService, ROBOT_DEFAULT_PARAMETERS",
    "import D; D.logging.set_info_level(2)",
    "from D import logging; logging.set_info_level(2); logging.verbose('seen', 1); logging.info('%s', 1)",
    "from D import logging; logging.set_verbosity(logging.INFO); assert logging.get_verbosity() == logging.INFO",
    "from D.common import Path; Path('.').joinpath('x')",
    "import D; D.common.Path",
    "from D.storage import LocalStorage, AbstractStorage; LocalStorage()",
    "from D.third_party import mask_api; mask_api.encode_batch_masks; mask_api.decode_batch_masks",
    "from D.third_party.mask_api import encode_mask, decode_mask",
    "from D.connector.remote import RemoteConnector",
    "from D.connector.local import LocalConnector",
    "from D.connector.fabric import ServerConnectionFabric; ServerConnectionFabric.get_connector('localhost', 'u', 's')",
    "import D; assert D.__version__ == '1.0.4'",
    "from D.dataset import Davis; assert len(Davis.sets['val']) == 30",
    "from D.dataset import Davis; assert Davis.dataset['bear']['num_objects'] == 1",
]


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


PROGRAM = """
import sys
import davisinteractive
import davisinteractive.robot.interactive_robot
from davisinteractive import logging, utils
from davisinteractive.session import DavisInteractiveSession
from davisinteractive.utils.scribbles import scribbles2mask
from beside import NAME

assert utils.scribbles.scribbles2mask is scribbles2mask
logging.set_info_level(1)
if __name__ == "__main__":
    print(NAME, DavisInteractiveSession.__module__, davisinteractive.__version__, *sys.argv[1:])
"""


@pytest.mark.long
@pytest.mark.parametrize("options", [("program.py",), ("-m", "program")], ids=["file", "module"])
def test_a_program_runs_without_an_edit_where_that_is_asked_for(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "beside.py").write_text("NAME = 'beside'\n")
    # If one is requested, another installed framework is not used; without a request none is.
    (tmp_path / "davisinteractive.py").write_text("raise ImportError('the other one')\n")
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}

    def run(*command: str) -> Any:
        command = (sys.executable, *command, "--root", "x")
        return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)

    done = run("-m", D, *options)
    assert done.stdout == "beside segjudge.interactive.davis_session 1.0.4 --root x\n", done.stderr
    assert "the other one" in run(*options).stderr
    usage = subprocess.run([sys.executable, "-m", D], env=variables, capture_output=True, text=True, check=False)
    assert usage.stderr.startswith("usage: python -m segjudge.davisinteractive PROGRAM.py")


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


def test_messages_have_levels(caplog: Any) -> None:
    logging = importlib.import_module(f"{D}.logging")
    logging.set_info_level(2)
    with caplog.at_level("INFO", "segjudge.davisinteractive"):
        for level in (1, 2, 3):
            logging.verbose(f"level {level}", level)
    assert [record.message for record in caplog.records] == ["level 1", "level 2"]


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
            **Davis.dataset["tennis"],
            "num_frames": 2,
            "num_scribbles": 1,
            "num_objects": 2,
            "image_size": [40, 30],
        },
    }
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


def test_first_scribbles_may_be_of_the_whole_sequence(tmp_path: Path) -> None:
    """One frame on the disk, and scribbles of all 82: only existing frames are read."""
    written(tmp_path, "bear", 1, 1, lists=82)
    scribble = Davis(tmp_path).load_scribble("bear", 1)
    assert len(scribble["scribbles"]) == 82
    assert scribbles.annotated_frames(scribble) == [0]
    with pytest.raises(AssertionError, match="has 1 of 82 masks"):
        Davis(tmp_path).check_files(["bear"])
    path = tmp_path / "Scribbles/bear/001.json"
    path.write_text(path.read_text().replace('"bear"', '"cow"'))
    with pytest.raises(AssertionError, match="belongs to the sequence 'cow'"):
        Davis(tmp_path).load_scribble("bear", 1)


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


def answered(session: DavisInteractiveSession, masks: Any) -> list[tuple[str, bool]]:
    seen = []
    for sequence, _, new in session.scribbles_iterator():
        seen.append((sequence, new))
        session.submit_masks(masks(sequence))
    return seen


@pytest.mark.parametrize("metric", ["J", "F", "J_AND_F"])
def test_a_session_on_the_frameworks_kind_of_root(root: Path, tmp_path: Path, metric: str) -> None:
    session = DavisInteractiveSession(
        host="localhost", davis_root=str(root), subset="train", max_nb_interactions=4,
        metric_to_optimize=metric, report_save_dir=str(tmp_path / "reports"),
    )  # fmt: skip
    assert (session.sample_idx, session.interaction_nb, session.running, session.running_model) == (
        None,
        None,
        True,
        False,
    )
    assert (len(session.session_key), session.global_summary, session.samples) == (64, {}, [])
    with session:
        assert session.samples == [("bear", 1), ("bear", 2), ("tennis", 1)]
        seen = answered(session, lambda _sequence: np.ones((2, 30, 40)))
        assert len(seen) == 12
        assert [new for _, new in seen] == [True, False, False, False] * 3
        report = session.get_report()
        assert len(report) == 4 * (2 * 2 + 2 * 2)
    summary = session.get_global_summary()
    assert set(summary) == {"auc", "metric_at_threshold", "curve"}
    assert set(summary["metric_at_threshold"]) == {"threshold", metric}
    assert set(summary["curve"]) == {"time", metric}
    assert len(summary["curve"]["time"]) == len(summary["curve"][metric]) == 4 + 2
    share = 22 * 11 / (30 * 40)
    wanted = {"J": share * 3 / 4, "F": 0.0, "J_AND_F": share * 3 / 8}[metric]
    assert summary["metric_at_threshold"] == {"threshold": 60, metric: pytest.approx(wanted)}
    (kept,) = (tmp_path / "reports").iterdir()
    csv = pd.read_csv(kept, index_col=0)
    assert list(csv.columns) == [
        "session_id", "sequence", "scribble_idx", "interaction", "object_id", "frame", "jaccard", "contour", "j_and_f", "timing",
    ]  # fmt: skip
    assert set(csv["session_id"]) == {session.session_key}


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


@pytest.mark.parametrize("size", [(800, 2), (600, 3), (2, 800)], ids=str)
def test_the_robot_draws_in_pictures_that_are_narrower_than_its_disk(size: tuple[int, int]) -> None:
    missing = np.ones((1, *size), np.uint8)
    drawn = InteractiveScribblesRobot(kernel_size=0.2).interact("strip", np.zeros_like(missing), missing, 1, 0)
    assert [line["object_id"] for line in drawn["scribbles"][0]] == [1]


@pytest.mark.parametrize("subset", ["test-dev", "xxxx"])
def test_a_subset_is_checked_before_the_root_is(subset: str, tmp_path: Path) -> None:
    text = r"For local connector, `subset` must be a valid subset: \['train', 'val', 'trainval'\]"
    for place in ({"davis_root": str(tmp_path / "nowhere")}, {}):
        with (
            pytest.raises(ValueError, match=text),
            DavisInteractiveSession(subset=subset, report_save_dir=tmp_path, **place),
        ):  # type: ignore[arg-type]
            pass
    assert not (tmp_path / "nowhere").exists()


def test_which_connector_a_host_needs() -> None:
    from segjudge.davisinteractive.connector.fabric import ServerConnectionFabric
    from segjudge.davisinteractive.connector.local import LocalConnector
    from segjudge.davisinteractive.connector.remote import RemoteConnector

    assert isinstance(ServerConnectionFabric.get_connector("localhost", None, None), LocalConnector)
    for user, session in ((None, "s"), ("u", None), ("", "")):
        with pytest.raises(ValueError, match="user_key and session_key must be specified"):
            ServerConnectionFabric.get_connector("http://127.0.0.1:9", user, session)
        with pytest.raises(ValueError, match="user_key and session_key must be specified"):
            RemoteConnector(user, session, "http://127.0.0.1:9")


def test_a_connector_by_itself(root: Path) -> None:
    from segjudge.davisinteractive.connector.local import LocalConnector

    connector = LocalConnector("me", "key")
    samples, max_t, max_i = connector.get_samples("train", str(root), 10, 2)
    assert (samples, max_t, max_i) == ([("bear", 1), ("bear", 2), ("tennis", 1)], 10, 2)
    assert connector.get_scribble("bear", 1)["sequence"] == "bear"
    drawn = connector.post_predicted_masks("bear", 1, np.zeros((2, 30, 40), int), 1.5, 1)
    assert drawn["sequence"] == "bear"
    assert connector.get_report()["timing"].tolist() == [1.5, 1.5]
    assert connector.post_finish()["curve"]["time"] == [0.0, 0.5, 0.5, 15.0]


# ── the service and its storage ─────────────────────────────────────────────


def test_how_many_rows_a_report_will_have(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Davis, "check_files", lambda *_: None)
    made = {
        subset: EvaluationService(subset, davis_root=str(tmp_path))
        for subset in ("train", "val", "trainval", "test-dev")
    }
    assert made["val"].num_entries == 11952
    assert EvaluationService("val", davis_root=str(tmp_path), max_i=5).num_entries == 59760
    assert made["val"].avg_nb_objects == pytest.approx(61 / 30)
    assert made["train"].avg_nb_objects == pytest.approx(144 / 60)
    assert made["test-dev"].avg_nb_objects == pytest.approx(89 / 30)
    samples, max_t, max_i = made["val"].get_samples()
    assert (len(samples), max_t, max_i) == (90, None, None)
    assert samples[:4] == [("bike-packing", 1), ("bike-packing", 2), ("bike-packing", 3), ("blackswan", 1)]
    assert len(made["train"].get_samples()[0]) == 180
    assert made["val"].robot_parameters == {
        "kernel_size": 0.2,
        "max_kernel_radius": 16,
        "min_nb_nodes": 4,
        "nb_points": 1000,
    }


def test_a_service_refuses_what_it_does_not_know(root: Path) -> None:
    with pytest.raises(
        ValueError, match=r"Subset must be a valid subset: dict_keys\(\['test-dev', 'train', 'val', 'trainval'\]\)"
    ):
        EvaluationService("nothing", davis_root=str(root))
    with pytest.raises(ValueError, match="metric_to_optimize not between available metrics"):
        EvaluationService("train", davis_root=str(root), metric_to_optimize="mean")
    service = EvaluationService("train", davis_root=str(root), time_threshold=0, robot_parameters={"kernel_size": 0.1})
    assert (service.time_threshold, service.robot.kernel_size) == (60, 0.1)
    for call in (service.get_scribble, service.get_starting_scribble):
        with pytest.raises(ValueError, match="Invalid sequence: zzz"):
            call("zzz", 1)
        for number in (0, 3):
            with pytest.raises(ValueError, match=f"Invalid scribble index: {number}"):
                call("bear", number)
    with pytest.raises(ValueError, match="Sequence: bear and scribble index: 4 invalid"):
        service.post_predicted_masks("bear", 4, np.zeros((2, 30, 40)), 1.0, 1)


def kept(storage: Any, **more: Any) -> Any:
    output = {
        "user_id": "u", "session_id": "s", "sequence": "bear", "scribble_idx": 1, "interaction": 1, "timing": 2.5,
        "objects_idx": [1, 1], "frames": [0, 1], "jaccard": [0.5, 1.0], "contour": [0.0, 1.0],
    }  # fmt: skip
    return storage.store_interactions_results(**{**output, **more})


def test_a_storage_keeps_rows_and_frames() -> None:
    storage = LocalStorage()
    assert isinstance(storage, AbstractStorage)
    assert len(storage.get_report(session_id="s")) == 0
    kept(storage)
    kept(storage, session_id="other")
    report = storage.get_report(session_id="s")
    assert report["j_and_f"].tolist() == [0.25, 1.0]
    assert report.index.tolist() == [0, 1]
    assert report["timing"].tolist() == [2.5, 2.5]
    assert len(storage.get_report()) == 4
    storage.store_annotated_frame("s", "bear", 1, 7, False)
    storage.store_annotated_frame("s", "bear", 1, 3, True)
    assert storage.get_annotated_frames("s", "bear", 1) == (7, 3)
    assert storage.get_annotated_frames("s", "bear", 2) == ()
    assert storage.annotated_frames["override"].tolist() == [False, True]


@pytest.mark.parametrize("order", [range(82), reversed(range(82))], ids=["forwards", "backwards"])
def test_frames_of_a_sequence_that_was_annotated_all_over_are_none(order: Any) -> None:
    storage = LocalStorage()
    for count, frame in enumerate(order):
        assert len(storage.get_annotated_frames("s", "bear", 1)) == count
        storage.store_annotated_frame("s", "bear", 1, frame, False)
    assert storage.get_annotated_frames("s", "bear", 1) == ()
    storage.store_annotated_frame("s", "bear", 1, 3, True)
    assert storage.get_annotated_frames("s", "bear", 1) == ()


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"jaccard": [0.5, 1.1]}, ValueError, "Jaccard"),
        ({"contour": [-0.1, 1.0]}, ValueError, "Contour"),
        ({"jaccard": [0.5, float("nan")]}, ValueError, "Jaccard"),
        ({"frames": [0]}, ValueError, "same length"),
        ({"objects_idx": [1, 1, 1]}, ValueError, "same length"),
        ({"interaction": 1}, RuntimeError, "For bear and scribble 1 already exist a result for interaction 1"),
        (
            {"interaction": 3},
            RuntimeError,
            "For bear and scribble 1 does not exist a result for previous interaction 2",
        ),
    ],
)
def test_a_storage_refuses_what_cannot_be(more: dict[str, Any], error: Any, message: str) -> None:
    storage = LocalStorage()
    kept(storage)
    with pytest.raises(error, match=message):
        kept(storage, **{"interaction": 2, **more})
    assert len(storage.get_report("s")) == 2
    with pytest.raises(TypeError):
        AbstractStorage()  # type: ignore[abstract]


def test_a_program_may_bring_its_own_storage(root: Path) -> None:
    class Counting(LocalStorage):
        stored = 0

        def store_interactions_results(self, *args: Any, **more: Any) -> bool:
            self.stored += 1
            return super().store_interactions_results(*args, **more)

    storage = Counting()
    service = EvaluationService("train", storage=storage, davis_root=str(root))
    for interaction in (1, 2, 3):
        drawn = service.post_predicted_masks("bear", 1, np.zeros((2, 30, 40), int), 1.0, interaction, "u", "s")
        assert set(drawn) == {"scribbles", "sequence"}
    assert storage.stored == 3
    # Each frame once, and then the worst every time.
    assert storage.annotated_frames["frame"].tolist() == [0, 1, 0]
    assert storage.get_annotated_frames("s", "bear", 1) == ()
    assert service.get_report(session_id="s")["interaction"].max() == 3


# ── what a function takes and gives ─────────────────────────────────────────


@pytest.mark.parametrize("measure", [batched_jaccard, batched_f_measure])
def test_measures_have_shapes_and_limits(measure: Any) -> None:
    rng = np.random.default_rng(0)
    truth, prediction = rng.integers(0, 4, (5, 20, 30)), rng.integers(0, 4, (5, 20, 30))
    assert (measure(truth, prediction).shape, measure(truth, prediction).dtype) == ((5,), np.float64)
    each = measure(truth, prediction, average_over_objects=False)
    assert each.shape == (5, 3)
    assert measure(truth, prediction) == pytest.approx(each.mean(axis=1))
    assert measure(truth, prediction, average_over_objects=False, nb_objects=6).shape == (5, 6)
    assert (measure(truth, prediction, False, 6)[:, 3:] == 1).all(), "absent from both"
    assert measure(truth, truth) == pytest.approx(1)
    assert measure(truth.tolist(), prediction.astype(float)) == pytest.approx(measure(truth, prediction))
    assert measure(np.where(truth == 3, 255, truth), prediction, False).shape == (5, 2), "void is no object"
    for a, b, message in (
        (truth[0], prediction, "y_true array must have 3 dimensions."),
        (truth, prediction[0], "y_pred array must have 3 dimensions."),
        (truth, prediction[:, :, 1:], r"y_true and y_pred must have the same shape. \(5, 20, 30\) != \(5, 20, 29\)"),
        (truth * 0, prediction, "Number of objects in y_true should be higher than 0."),
    ):
        with pytest.raises(ValueError, match=message):
            measure(a, b)


def test_f_of_one_pair_of_masks() -> None:
    from segjudge.davisinteractive.metrics.jaccard import f_measure

    mask = np.zeros((40, 40), bool)
    mask[10:30, 10:30] = True
    assert f_measure(mask, mask) == 1.0
    assert f_measure(mask, ~mask) == 1.0, "one boundary"
    assert f_measure(mask, np.zeros_like(mask)) == 0.0
    assert f_measure(np.zeros_like(mask), np.zeros_like(mask)) == 1.0
    assert f_measure(mask, np.roll(mask, 3, axis=1), bound_th=3) > f_measure(mask, np.roll(mask, 3, axis=1), bound_th=1)


@pytest.mark.parametrize("size", [-0.1, 1, 1.5])
def test_a_robots_kernel_is_a_share(size: float) -> None:
    with pytest.raises(ValueError, match=r"kernel_size must be a value between \[0, 1\)."):
        InteractiveScribblesRobot(kernel_size=size)


def test_a_robot_draws_on_what_is_missing() -> None:
    robot = InteractiveScribblesRobot()
    assert (robot.kernel_size, robot.max_kernel_radius, robot.min_nb_nodes, robot.nb_points) == (0.15, 16, 4, 1000)
    truth = np.zeros((3, 60, 80), int)
    truth[:, 10:30, 10:60] = 1
    truth[:, 40:50, 10:60] = 2
    prediction = truth.copy()
    prediction[1] = 0
    drawn = robot.interact("box", prediction, truth)
    assert set(drawn) == {"scribbles", "sequence"}
    assert drawn["sequence"] == "box"
    assert [len(lines) > 0 for lines in drawn["scribbles"]] == [False, True, False]
    assert [entry["object_id"] for entry in drawn["scribbles"][1]] == [1, 2]
    for item in drawn["scribbles"][1]:
        assert set(item) == {"path", "object_id", "start_time", "end_time"}
        assert np.asarray(item["path"]).shape == (1000, 2)
        assert type(item["object_id"]) is int
        under = [truth[1, round(y * 60), round(x * 80)] == item["object_id"] for x, y in item["path"]]
        assert np.mean(under) > 0.9, "the disk of an opening has its centre between pixels, which shifts a line by one"
    json.dumps(drawn)
    assert scribbles.is_empty(robot.interact("box", truth, truth))
    assert scribbles.annotated_frames(robot.interact("box", prediction * 0, truth, nb_objects=2, frame=2)) == [2]
    ground = robot.interact("box", np.ones_like(truth), truth * 0, nb_objects=1, frame=0)
    assert {entry["object_id"] for entry in ground["scribbles"][0]} == {0}
    with pytest.raises(ValueError, match="Number of objects in y_true should be higher than 0."):
        robot.interact("box", truth * 0, truth * 0)


def test_scribbles_there_and_back() -> None:
    output = {"scribbles": [[], [line(2, [(0.0, 0.0), (1.0, 1.0)])], [line(1), line(3)]], "sequence": "box"}
    assert scribbles.annotated_frames(output) == [1, 2]
    assert scribbles.annotated_frames_object(output, 3) == [2]
    assert scribbles.annotated_frames_object(output, 9) == []
    assert (scribbles.is_empty(output), scribbles.is_empty({"scribbles": [[], []], "sequence": "box"})) == (False, True)
    masks = scribbles.scribbles2mask(output, (11, 11))
    assert (masks.shape, masks.dtype) == ((3, 11, 11), np.dtype(int))
    assert (masks[0] == -1).all()
    assert (np.diag(masks[1]) == 2).all()
    dots = scribbles.scribbles2mask(output, (11, 11), bresenham=False, default_value=0)
    assert (dots[1] > 0).sum() == 2
    assert scribbles.scribbles2mask(output, (11, 11), bezier_curve_sampling=True, nb_points=50)[1].max() == 2
    points, ids = scribbles.scribbles2points(output)
    assert (points.shape, points.dtype, ids.shape, ids.dtype) == ((6, 3), np.dtype(float), (6,), np.dtype(int))
    assert points[1].tolist() == [1.0, 1.0, 1.0]
    scaled, _ = scribbles.scribbles2points(output, output_resolution=(11, 21))
    assert (scaled[1].tolist(), scaled.dtype) == ([1, 10, 20], np.dtype(int))
    for size in ((0, 10), (10, -1), (10,), (1, 2, 3)):
        with pytest.raises(ValueError, match="Invalid output resolution"):
            scribbles.scribbles2mask(output, size)  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        scribbles.scribbles2mask({"scribbles": [[line(1, [(1.2, 0.5)])]], "sequence": "box"}, (10, 10))


def test_fused_scribbles_hold_both() -> None:
    a = {"scribbles": [[line(1)], []], "sequence": "box", "annotated_frame": 0}
    b = {"scribbles": [[line(2)], [line(3)]], "sequence": "box"}
    fused = scribbles.fuse_scribbles(a, b)
    assert [[line["object_id"] for line in lines] for lines in fused["scribbles"]] == [[1, 2], [3]]
    assert fused["annotated_frame"] == 0
    with pytest.raises(ValueError, match="not from the same sequence"):
        scribbles.fuse_scribbles(a, {**b, "sequence": "other"})
    with pytest.raises(ValueError, match="does not have the same number of frames"):
        scribbles.fuse_scribbles(a, {**b, "scribbles": [[]]})


def test_curves_and_lines_have_shapes() -> None:
    points = np.array([[0, 0], [4, 8], [10, 0]])
    curve = operations.bezier_curve(points, nb_points=50)
    assert (curve.shape, curve.dtype) == ((50, 2), np.dtype(float))
    assert (curve[0].tolist(), curve[-1].tolist()) == ([10.0, 0.0], [0.0, 0.0])
    assert operations.bezier_curve(points.tolist()).shape == (1000, 2)
    assert operations.bezier_curve(points, nb_points=5000).shape == (1000, 2)
    assert operations.bezier_curve(np.zeros((60, 2), int), nb_points=50).shape == (60, 2)
    for wrong in (np.zeros((3, 3)), np.zeros(4), np.zeros((2, 2, 2))):
        with pytest.raises(ValueError, match=r"`points` should be two dimensional and have shape: \(N, 2\)"):
            operations.bezier_curve(wrong)
    pixels = operations.bresenham(np.array([[0, 0], [3, 3], [3, 0]]))
    assert (pixels.dtype, pixels.tolist()) == (
        np.dtype(int),
        [[0, 0], [1, 1], [2, 2], [3, 3], [3, 3], [3, 2], [3, 1], [3, 0]],
    )
    assert operations.bresenham(np.array([[1, 2]])).tolist() == [[1, 2]]


def test_scribbles_are_drawn_into_pictures_and_plots() -> None:
    lines = {"scribbles": [[line(2, [(0.0, 0.5), (1.0, 0.5)])], []], "sequence": "box"}
    image = np.asarray(visualization.draw_scribble(Image.new("RGB", (40, 21)), lines, 0, width=1))
    assert (image[10] == [0, 128, 0]).all(), "the second colour of DAVIS's palette"
    assert not image[5].any()
    assert not np.asarray(visualization.draw_scribble(Image.new("RGB", (40, 21)), lines, 1)).any()
    small = visualization.draw_scribble(Image.new("RGB", (40, 21)), lines, 0, output_size=(11, 5), width=1)
    assert [row.any() for row in np.asarray(small)[1:4]] == [False, True, False]

    class Axes:
        def plot(self, xs: Any, ys: Any, **line: Any) -> None:
            self.drawn = (xs.tolist(), ys.tolist(), line["color"].tolist(), line["linewidth"])

    colour = [0, 128 / 255, 0]
    assert visualization.plot_scribble(Axes(), lines, 0, linewidth=3).drawn == ([0, 1], [0.5, 0.5], colour, 3)
    assert visualization.plot_scribble(Axes(), lines, 0, (11, 5), linewidth=3).drawn == ([0, 10], [2, 2], colour, 3)
    for frame in (-1, 2):
        with pytest.raises(ValueError, match="Frame value not valid"):
            visualization.draw_scribble(Image.new("RGB", (40, 21)), lines, frame)


def test_objects_are_laid_over_a_picture() -> None:
    picture, objects = np.full((5, 5, 3), 100, np.uint8), np.zeros((5, 5), int)
    objects[2, 2] = 1
    overlaid = visualization.overlay_mask(picture, objects)
    assert overlaid[2, 2].tolist() == [114, 50, 50], "half the picture, half the object's colour"
    assert (overlaid[objects == 0] == 100).all()
    assert (picture == 100).all()
    assert visualization.overlay_mask(picture, objects, 0.2)[2, 2].tolist() == [122, 20, 20]
    coloured = visualization.overlay_mask(picture, objects, colors=[[0, 0, 0], [200, 0, 100]], contour_thickness=1)
    assert coloured[2, 1:4].tolist() == [[200, 0, 100], [150, 50, 100], [200, 0, 100]], "the rim lies around the object"
    assert coloured[1, 1].tolist() == [100, 100, 100]
    with pytest.raises(ValueError, match="First two dimensions of `im` and `ann` must match"):
        visualization.overlay_mask(picture, objects[:2])
    for second in (picture[..., 0], picture[..., :2]):
        with pytest.raises(ValueError, match="`im` must have three channels"):
            visualization.overlay_mask(second, objects)


def test_masks_as_run_lengths() -> None:
    masks = np.random.default_rng(0).integers(0, 4, (3, 12, 9))
    assert (mask_api.decode_batch_masks(mask_api.encode_batch_masks(masks)) == masks).all()
    output = mask_api.encode_mask(masks[0], nb_objects=2)
    assert output["size"] == [12, 9]
    assert [item["object_id"] for item in output["objects"]] == [1, 2]
    back = mask_api.decode_mask(output)
    assert (back.dtype, back.shape) == (np.uint8, (12, 9))
    assert (back == np.where(masks[0] == 3, 0, masks[0])).all()
    json.dumps(output)
    for wrong, encode in ((masks, mask_api.encode_mask), (masks[0], mask_api.encode_batch_masks)):
        with pytest.raises(AssertionError):
            encode(wrong)


@pytest.mark.parametrize("shape", [(4, 5, 4), (4, 5), (4, 5, 1)])
@pytest.mark.parametrize("ann", [np.zeros((4, 5), int), np.eye(4, 5, dtype=int)], ids=["nothing", "something"])
def test_masks_are_laid_over_colours_alone(shape: tuple[int, ...], ann: Any) -> None:
    with pytest.raises(ValueError, match="three channels"):
        visualization.overlay_mask(np.zeros(shape, np.uint8), ann)
    with pytest.raises(ValueError, match="First two dimensions of `im` and `ann` must match"):
        visualization.overlay_mask(np.zeros((4, 6, 3), np.uint8), ann)
    assert visualization.overlay_mask(np.zeros((4, 5, 3), np.uint8), ann).dtype == np.uint8


def test_the_reference_names_everything() -> None:
    """The reference names every argument, column and key of the code."""
    import inspect

    from segjudge.interactive.reports import COLUMNS

    text = (Path(__file__).parents[2] / "docs/interactive-reference.md").read_text()
    session = inspect.signature(DavisInteractiveSession.__init__).parameters
    for name, parameter in list(session.items())[1:]:
        assert f"`{name}`" in text, name
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and name != "report_save_dir":
            shown = repr(parameter.default).replace("'", '"')
            assert f"| `{name}` | `{shown}` |" in text, name
    for name in COLUMNS:
        assert f"\n| `{name}` |" in text, name
    for function in (
        EvaluationService, EvaluationService.post_predicted_masks, InteractiveScribblesRobot, batched_jaccard,
        scribbles.scribbles2mask, scribbles.scribbles2points, operations.bezier_curve, visualization.overlay_mask,
        visualization.draw_scribble, LocalStorage.store_interactions_results,
    ):  # fmt: skip
        (line,) = [
            part for part in text.replace(",\n", ", ").replace(",\ncontour", ", contour").splitlines()
            if f"{function.__name__}(" in part and "batched_f" not in part
        ][:1]  # fmt: skip
        for name, parameter in inspect.signature(function).parameters.items():
            if name != "self" and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                assert name in line, (function, name)
    for line in LINES:
        if line.startswith("from D."):
            for name in line.split(";")[0].partition(" import ")[2].split(", "):
                assert name in text, name
    for key in ("auc", "metric_at_threshold", "curve", "session_key"):
        assert f"\n| `{key}` |" in text
