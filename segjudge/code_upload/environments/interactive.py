"""The interactive session as an environment: it sends scribbles and frames, and receives masks."""

import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from segjudge.code_upload.messages import Labels, Picture
from segjudge.evaluation_script.files.problems import Flaw
from segjudge.interactive.dataset import InteractiveDataset, SequenceRecord, shape_of
from segjudge.interactive.mask_datasets import open_dataset
from segjudge.interactive.reports import ReportFiles
from segjudge.interactive.scribbles import ScribbleLine, scribbles2mask
from segjudge.interactive.session import LocalConnector, Session, SessionTerms
from segjudge.masks.run_lengths import decode_labels

from .tasks import SPLIT, ActionError, Observation, Result, StepResult, TaskEnvironment, read_picture

#: The metrics of an interactive leaderboard.
_AREA, _AT = "AUC", "J&F@60s"


class _SingleSequence:
    """A dataset with one of its sequences in each subset."""

    def __init__(self, dataset: InteractiveDataset, sequence: str) -> None:
        self._dataset, self._sequence = dataset, sequence
        self.check_files, self.num_scribbles = dataset.check_files, dataset.num_scribbles
        self.load_scribble, self.load_annotations = dataset.load_scribble, dataset.load_annotations
        self.image_paths = dataset.image_paths

    @property
    def dataset(self) -> Mapping[str, SequenceRecord]:
        return self._dataset.dataset

    def sequences(self, subset: str) -> list[str]:
        """Return the one sequence; raises ValueError if the subset lacks it."""
        if self._sequence not in self._dataset.sequences(subset):
            raise ValueError(f"there is no sequence {self._sequence!r} in {subset}")
        return [self._sequence]


class _InteractiveTask:
    """All samples of a subset; the clock runs from the scribbles to the masks."""

    def __init__(
        self, dataset: InteractiveDataset, subset: str = "val", interactions: int = 5,
        clock: Callable[[], float] | None = None,
    ) -> None:  # fmt: skip
        self._dataset, self._clock = dataset, clock
        self._terms = SessionTerms(subset, max_nb_interactions=interactions)
        self._session: Session | None = None
        self._remove_folder: Callable[[], object] = lambda: None

    def space(self) -> dict[str, Any]:
        """Return the action space: masks of all frames, and candidate frames for the robot."""
        return {
            "type": "mapping",
            "values": {"masks": {"type": "list", "of": "labels"}, "candidates": {"type": "list", "of": "integer"}},
        }

    def begin(self) -> Observation:
        self.close()
        folder = tempfile.mkdtemp(prefix="segjudge-")
        # Notebooks seldom close an environment.
        self._remove_folder = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        connector = LocalConnector(clock=self._clock or time.time, dataset=self._dataset)
        files = ReportFiles(Path(folder))
        self._session = Session(connector, self._terms, files, self._clock or time.monotonic)
        self._session.enter(resume=False)
        return self._next()

    def act(self, action: Any) -> Observation:
        """Submit `{"masks": [Labels…] or an array, "candidates": [frames…]}`; return the next scribbles."""
        session = self._session
        if session is None or not session.running:
            raise ActionError("the episode is over; call reset to begin another")
        if not isinstance(action, dict) or "masks" not in action:
            raise ActionError('the action is not a mapping with "masks"')
        masks = action["masks"]
        if isinstance(masks, list):
            if not all(isinstance(labels, Labels) for labels in masks) or len({labels.size for labels in masks}) != 1:
                raise ActionError("masks is not a list of masks of the same size")
            try:
                masks = np.stack([decode_labels(labels.objects.items(), labels.size) for labels in masks])
            except Flaw as flaw:
                raise ActionError(f"a mask {flaw.fault}. {flaw.remedy}") from None
        candidates = action.get("candidates")
        try:
            session.submit(masks, list(candidates) if candidates is not None and len(candidates) else None)
        except (ValueError, TypeError, OverflowError) as error:
            raise ActionError(str(error)) from None
        return self._next()

    @property
    def _current_session(self) -> Session:
        assert self._session is not None  # noqa: S101 - a task is begun first
        return self._session

    def _next(self) -> Observation:
        session = self._current_session
        if not session.next():
            return Observation({}, done=True)
        sequence, scribbles, new = session.read_scribbles(only_last=False)
        frames, height, width = shape_of(self._dataset.dataset[sequence])
        paths = self._dataset.image_paths(sequence) if new else ()  # later the agent has them
        lines_with_frames = [
            {"object_id": line["object_id"], "frame": frame, "path": np.asarray(line["path"], np.float32)}
            for frame, lines in enumerate(scribbles["scribbles"])
            for line in lines
        ]
        values = {
            "sequence": sequence,
            "frames": [Picture(Path(path).read_bytes()) for path in paths],
            "size": [frames, height, width],
            "scribbles": lines_with_frames,
            "new_sequence": int(new),
        }
        position = f"{sequence}, interaction {session.interaction}"
        return Observation(values, position=position, sizes=[(height, width)] * frames)

    def result(self) -> Result:
        """Return the area under the curve, and its value after a minute."""
        summary = self._current_session.summary
        return [{SPLIT: {_AREA: summary["auc"], _AT: summary["metric_at_threshold"]["J_AND_F"]}}]

    def last_score(self) -> float:
        """Return the mean J&F of the last submitted masks."""
        report = self._current_session.report()
        return float(report["j_and_f"][report["interaction"] == report["interaction"].iloc[-1]].mean())

    def close(self) -> None:
        self._remove_folder()


class InteractiveSegmentation(TaskEnvironment):
    """An environment that shows padded frames, scribbles as ids (-1 elsewhere), and whether the sample is new.

    An action holds the masks of all frames, and the frames in which the robot may draw next (empty: any). The first
    number of the result is the area under the curve; with `reward=True`, each step's reward is the mean J&F.
    """

    task: _InteractiveTask

    def __init__(  # noqa: PLR0913 - options by name
        self,
        truth: str,
        frames: str | None = None,
        sequence: str | None = None,
        *,
        subset: str = "val",
        layout: str | None = None,
        draw: int = 0,
        interactions: int = 5,
        reward: bool = False,
        clock: Callable[[], float] | None = None,
        render_mode: str | None = None,
    ) -> None:
        del render_mode
        dataset = open_dataset(truth, layout or ("generic" if frames else None), frames, draw)
        dataset = _SingleSequence(dataset, sequence) if sequence else dataset
        sizes = [shape_of(dataset.dataset[name]) for name in dataset.sequences(subset)]
        #: The size of the shown sequence; before the first, of the largest.
        self._size = tuple(int(side) for side in np.max(sizes, axis=0))
        masks, candidates = spaces.Box(0, 255, self._size, np.uint8), spaces.MultiBinary(self._size[0])
        self.action_space = spaces.Dict({"masks": masks, "candidates": candidates})
        pictures = spaces.Box(0, 255, (*self._size, 3), np.uint8)
        spaces_of_values: dict[str, spaces.Space[Any]] = {
            "frames": pictures,
            "scribbles": spaces.Box(-1, 255, self._size, np.int16),
        }
        self._frames = np.zeros(pictures.shape, np.uint8)
        task = _InteractiveTask(dataset, subset, interactions, clock)
        super().__init__(task, self._size, spaces_of_values, reward=reward)

    def step(self, action: dict[str, Any]) -> StepResult:
        count, height, width = self._size
        candidates = np.flatnonzero(action["candidates"][:count])
        masks = np.asarray(action["masks"])[:count, :height, :width]
        observation = self.task.act({"masks": masks, "candidates": candidates})
        return self._step_to(observation, self.task.last_score() if self._reward else 0.0)

    def _pad(self, values: dict[str, Any]) -> dict[str, Any]:
        padded = super()._pad(values)
        count, height, width = self._size = values["size"]
        if values["new_sequence"]:
            self._frames[:] = 0
            for index, picture in enumerate(values["frames"]):
                self._frames[index, :height, :width] = read_picture(picture)
        lines: list[list[ScribbleLine]] = [[] for _ in range(count)]
        for line in values["scribbles"]:
            lines[line["frame"]].append(line)
        padded["frames"] = self._frames.copy()
        padded["scribbles"][:count, :height, :width] = scribbles2mask(
            {"scribbles": lines, "sequence": values["sequence"]}, (height, width)
        )
        return padded
