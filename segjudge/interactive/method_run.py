"""Run a method through a session, and keep the scribbles and masks of each interaction."""

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image

from segjudge.evaluation_script.masks.stack import Array
from segjudge.interactive.utils.mask import encode_frames
from segjudge.interactive.utils.scribbles import Scribbles
from segjudge.system.files import file_name, replace

from .davis_session import DavisInteractiveSession
from .metrics import as_ids
from .summary import Summary

Progress = Callable[[str, int, int], None]
#: One point of a line in so many is kept, which looks the same.
THINNED = 10


class Frames(Sequence[Array]):
    """The images of a sequence as arrays (height, width, 3), read when they are used."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        self._read = lru_cache(maxsize=256)(lambda path: np.asarray(Image.open(path).convert("RGB")))

    def __len__(self) -> int:
        return len(self.paths)

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> list[Array]: ...
    def __getitem__(self, index: int | slice) -> Array | list[Array]:
        if isinstance(index, slice):
            return [self._read(path) for path in self.paths[index]]
        if not self.paths:
            raise FileNotFoundError("there are no pictures of this sequence here; name their folder with --images")
        return self._read(self.paths[index])


class Model(Protocol):
    """A method: answers scribbles with masks (frames, height, width)."""

    def __call__(self, *, sequence: str, scribbles: Scribbles, new_sequence: bool, images: Frames) -> ArrayLike | None:
        """Return the masks of all frames."""


def _thinned(path: list[list[float]]) -> list[list[float]]:
    kept = [*path[::THINNED], path[-1]] if len(path) > THINNED else path
    return [[round(x, 4), round(y, 4)] for x, y in kept]


class ModelError(Exception):
    """Raised when the method failed; `where` names the interaction."""

    def __init__(self, where: str, *, first: bool) -> None:
        super().__init__(where)
        #: Whether nothing was submitted yet, so that there is nothing to resume.
        self.where, self.first = where, first


def run(
    session: DavisInteractiveSession,
    model: Model,
    paths: Callable[[str], list[str]],
    progress: Progress,
    *,
    steps: bool,
) -> Summary:
    """Return the summary of a complete session; write it beside the report and, with `steps`, every interaction."""
    with session:
        per_sample = session.max_nb_interactions or 1
        total = len(session.samples) * per_sample
        images = Frames([])
        done = 0
        for sequence, scribbles, new in session.scribbles_iterator():
            interaction = (session.interaction_nb or 0) + 1
            number = session.samples[session.sample_idx or 0][1]
            done = max(done + 1, (session.sample_idx or 0) * per_sample + interaction - 1)
            progress(f"{sequence} {number}", min(done, total), total)
            if new:
                images = Frames(paths(sequence))
            where = f"{sequence}, scribbles {number}, interaction {interaction}"
            try:
                masks = model(sequence=sequence, scribbles=scribbles, new_sequence=new, images=images)
            except Exception as error:
                raise ModelError(where, first=done == 1) from error
            if masks is None:
                raise ModelError(where, first=done == 1) from TypeError("it returned None instead of masks")
            try:
                session.submit_masks(masks)
            except (ValueError, TypeError, OverflowError) as error:
                raise ModelError(where, first=done == 1) from error
            if steps:
                key = {"sequence": sequence, "scribble_idx": number, "interaction": interaction}
                _write_step(session, key, scribbles, masks, images.paths)
    summary = session.global_summary
    replace(session.report_save_dir / f"{session.report_name}.summary.json", json.dumps(summary))
    return summary


def _write_step(
    session: DavisInteractiveSession, key: dict[str, Any], scribbles: Scribbles, masks: ArrayLike, images: list[str]
) -> None:
    """Write one interaction, as the page of a run shows it: with fewer points for each line."""
    folder = steps_of(session.report_save_dir / f"{session.report_name}.csv")
    folder.mkdir(exist_ok=True)
    lines = [
        [{"path": _thinned(line["path"]), "object_id": line["object_id"]} for line in frame]
        for frame in scribbles["scribbles"]
    ]
    step = {**key, "scribbles": lines, **encode_frames(as_ids(masks)), "images": images}
    name = "{}-{scribble_idx}-{interaction:02d}.json".format(file_name(key["sequence"]), **key)
    replace(folder / name, json.dumps(step, separators=(",", ":")))


def steps_of(report: Path) -> Path:
    """Return the folder with the interactions of a report."""
    return report.with_suffix(".steps")
