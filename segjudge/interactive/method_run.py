"""Drive a method through a session, and keep what it was given and what it answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, overload

import numpy as np
from PIL import Image

from segjudge.files import replace
from segjudge.interactive.utils.mask import encode_frames
from segjudge.interactive.utils.scribbles import Scribbles

from .metrics import as_ids
from .session import DavisInteractiveSession

#: Called with `sequence`, `scribbles`, `new_sequence` and `images`; answers with masks (frames, height, width).
Model = Callable[..., Any]
Progress = Callable[[str, int, int], None]
#: Every so many points of a line are kept: as many as the eye can tell.
THINNED = 10


class Frames(Sequence[Any]):
    """The pictures of a sequence as arrays (height, width, 3), read when they are asked for."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        self._read = lru_cache(maxsize=256)(lambda path: np.asarray(Image.open(path).convert("RGB")))

    def __len__(self) -> int:
        return len(self.paths)

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> list[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self._read(path) for path in self.paths[place]]
        if not self.paths:
            raise FileNotFoundError("there are no pictures of this sequence here; name their folder with --images")
        return self._read(self.paths[place])


@dataclass(frozen=True)
class Step:
    """One interaction, as the page of a run shows it."""

    sequence: str
    scribble_idx: int
    interaction: int
    scribbles: Scribbles
    masks: Any

    def told(self) -> dict[str, Any]:
        """As JSON."""
        lines = [
            [{"path": _thinned(line["path"]), "object_id": line["object_id"]} for line in frame]
            for frame in self.scribbles["scribbles"]
        ]
        encoded = encode_frames(as_ids(self.masks))
        names = ("sequence", "scribble_idx", "interaction")
        return {**{name: getattr(self, name) for name in names}, "scribbles": lines, **encoded}


def _thinned(path: list[list[float]]) -> list[list[float]]:
    kept = [*path[::THINNED], path[-1]] if len(path) > THINNED else path
    return [[round(x, 4), round(y, 4)] for x, y in kept]


class ModelError(Exception):
    """The method failed; where says at what."""

    def __init__(self, where: str, *, first: bool) -> None:
        super().__init__(where)
        #: Nothing was submitted yet, so there is nothing to go on with.
        self.where, self.first = where, first


def run(
    session: DavisInteractiveSession,
    model: Model,
    paths: Callable[[str], list[str]],
    progress: Progress,
    *,
    steps: bool,
) -> dict[str, Any]:
    """The summary of a whole session; beside its report lie the summary and, with `steps`, every interaction."""
    with session:
        total = len(session.samples) * (session.max_nb_interactions or 1)
        images = Frames([])
        done = 0
        for sequence, scribbles, new in session.scribbles_iterator():
            interaction = (session.interaction_nb or 0) + 1
            number = session.samples[session.sample_idx or 0][1]
            place = (session.sample_idx or 0) * (session.max_nb_interactions or 1) + interaction - 1
            done = max(done + 1, place)
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
                step = Step(sequence, number, interaction, scribbles, masks)
                _keep(session, step, images.paths)
    found = session.get_global_summary()
    replace(session.report_save_dir / f"{session.report_name}.summary.json", json.dumps(found))
    return found


def _keep(session: DavisInteractiveSession, step: Step, images: list[str]) -> None:
    folder = steps_of(session.report_save_dir / f"{session.report_name}.csv")
    folder.mkdir(exist_ok=True)
    name = f"{step.sequence}-{step.scribble_idx}-{step.interaction:02d}.json"
    replace(folder / name, json.dumps({**step.told(), "images": images}, separators=(",", ":")))


def steps_of(report: Path) -> Path:
    """Where the interactions of a report are kept."""
    return report.with_suffix(".steps")
