"""The values, output, files and errors of the stand-ins for davis2017-evaluation and vos-benchmark, as one text."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from segjudge.drop_in.cocoeval import COCOeval
from segjudge.drop_in.davis2017 import DAVISEvaluation
from segjudge.drop_in.vos_benchmark import benchmark
from tests.answers import fold
from tests.builders import png, written
from tests.calls import labels, read_session, run_session
from tests.commands.test_drop_in import small
from tests.pages import digest

FILE = Path(__file__).parents[1] / "golden/drop_ins.txt"


def write_drop_ins() -> str:
    """Run the session in a new folder, and return its output."""
    return fold(run_session(read_session(FILE), {
        "np": np, "L": labels, "lay": _lay, "shown": _show, "DAVISEvaluation": DAVISEvaluation, "benchmark": benchmark,
        "read": lambda path: Path(path).read_text(), "coco": _evaluate, "COCOeval": COCOeval, "refused": _refuse,
        "shape": _make_curves,
    }))  # fmt: skip


def _lay(root: str, below: str, videos: Any, files: Any = ()) -> None:
    masks = {
        f"{name}/{number:05d}.png": png(frame) for name, frames in videos.items() for number, frame in enumerate(frames)
    }
    written(Path(root, below), masks)
    written(Path(root), dict(files))


def _show(call: Any, *arguments: Any, **options: Any) -> str:
    """Return the output and the value."""
    with contextlib.redirect_stdout(io.StringIO()) as output, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the toy masks look late
        result = call(*arguments, **options)
    return f"{output.getvalue()}{result!r}"


def _refuse(call: Any) -> str:
    try:
        return str(call())
    except Exception as error:  # noqa: BLE001 - whatever is raised is what is looked for
        return f"{type(error).__name__}: {error}"


def _make_curves(kind: str) -> COCOeval:
    evaluation = COCOeval(*small(8, "both"), kind)
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation.evaluate()
        evaluation.accumulate()
    return evaluation


def _evaluate(kind: str, **changes: Any) -> str:
    """Evaluate small detections as programs do; return the statistics, and digests of the curves."""
    truth, sent = small(8, "both")
    evaluation = COCOeval(truth, sent, kind)
    for name, value in changes.items():
        setattr(evaluation.params, name, value)
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    curves = [digest(np.round(evaluation.eval[name], 9).tobytes()) for name in ("precision", "recall", "scores")]
    return f"{[round(value, 5) for value in evaluation.stats.tolist()]} {evaluation.eval['counts']} {curves}"


if __name__ == "__main__":
    FILE.write_text(write_drop_ins())
