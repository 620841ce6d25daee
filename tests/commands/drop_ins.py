"""The values, output, files and errors of the stand-ins for davis2017-evaluation and vos-benchmark, as one text.

    python -m tests.commands.drop_ins

writes it to `tests/golden/drop_ins.txt`. Run it after an intended change, and review the difference.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np

from segjudge.drop_in.cocoeval import COCOeval
from segjudge.drop_in.davis2017 import DAVISEvaluation
from segjudge.drop_in.vos_benchmark import benchmark
from tests.answers import fold
from tests.builders import png, written
from tests.calls import labels, run_session
from tests.commands.test_drop_in import small
from tests.pages import digest

FILE = Path(__file__).parents[1] / "golden/drop_ins.txt"

SESSION = """
T = [np.roll(L("00000000 01100022 01100022 00003300"), k, 1) for k in range(5)]; P = [np.where(frame == 3, 0, np.roll(frame, 1, 1)) for frame in T]
lay("root", "Annotations/480p", {"dog": T, "cat": T}, {"ImageSets/2017/val.txt": "dog\\ncat\\n", "ImageSets/2017/one.txt": "cat\\n"})
lay("root", "Annotations_unsupervised/480p", {"dog": T, "cat": T})
lay("sent", "", {"dog": P, "cat": T}); lay("swapped", "", {"dog": [np.array([0, 2, 1, 3], np.uint8)[frame] for frame in T], "cat": P})
DAVISEvaluation("root", "semi-supervised", "val").evaluate("sent")
DAVISEvaluation("root", task="semi-supervised", gt_set="one").evaluate("sent", "F")
DAVISEvaluation("root", "semi-supervised", "val", ["cat"]).evaluate("sent", ("F", "J", "Q"), debug=True)
DAVISEvaluation("root", "semi-supervised", "val", "dog").evaluate("sent", ["J"])
DAVISEvaluation("root", "unsupervised", "val").evaluate("swapped")
DAVISEvaluation("root", "semi-supervised", "test").evaluate("sent")
DAVISEvaluation("root", "semi-supervised", "val", "all", codalab=True)
DAVISEvaluation("root", "semi", "val")
DAVISEvaluation("root", "unsupervised", "val").evaluate("sent", ["T", "J"])
DAVISEvaluation("root", "unsupervised", "val").evaluate("sent", ["Q"])
DAVISEvaluation("root", "semi-supervised", "val").evaluate("nothing")

# vos-benchmark
lay("truth", "", {"dog": T, "cat": T}); lay("deep/Annotations", "", {"dog": T, "cat": T}); lay("deep", "JPEGImages", {"dog": T}); lay("less", "", {"dog": P}); lay("more", "", {"dog": P, "owl": T, "ant": P, "cat": P})
shown(benchmark, ["truth"], ["sent"]); read("sent/results.csv")
shown(benchmark, ["truth"], ["sent"], verbose=False)
shown(benchmark, ["truth"], ["sent"], True, True, 1, verbose=False, skip_first_and_last=False); read("sent/results.csv")
shown(benchmark, ["deep", "truth"], ["sent", "swapped"], overwrite=True)
shown(benchmark, ["truth"], ["less"])
shown(benchmark, ["truth"], ["less"], False); read("less/results.csv")
shown(benchmark, ["truth"], ["more"])
shown(benchmark, ["truth"], ["more"], strict=False); read("more/results.csv")
lay("zoo", "", {animal: T for animal in ("ape", "bat", "cow", "dog", "elk", "fox", "gnu")}); shown(benchmark, ["truth"], ["zoo"]); lay("dogs", "", {"dog": P}); shown(benchmark, ["zoo"], ["dogs"])
shown(benchmark, ["more"], ["deep"])
shown(benchmark, ["truth"], ["less", "more"])

# pycocotools
for kind in ("segm", "bbox", "boundary"): print(kind, coco(kind), coco(kind, useCats=0), coco(kind, maxDets=[1, 2, 3]), coco(kind, imgIds=[1, 3, 5], catIds=[2, 3]), sep="\\n  ")
printed()
coco("boundary", areaRng=[[0, 1e10], [0, 300], [300, 900], [900, 1e10]])
for kind in ("segm", "boundary"): print(*(refused(lambda: coco(kind, **change)) for change in ({"maxDets": [100]}, {"maxDets": [1, 100]}, {"maxDets": [100, 1, 10]}, {"maxDets": [1, 10, 50, 100]}, {"iouThrs": np.array([0.5, 0.75])}, {"recThrs": np.linspace(0, 1, 11)}, {"useSegm": 1}, {"useSegm": 0}, {"imgIds": [3, 3, 1]}, {"catIds": [9]}, {"imgIds": []})), sep="\\n")
printed()
COCOeval(iouType="lines")
COCOeval().evaluate()
COCOeval().accumulate()
COCOeval().summarize()
curves = shape("boundary")
curves.ious
curves.evalImgs
"""


def write_drop_ins() -> str:
    """Run the session in a new folder, and return its output."""
    return fold(run_session(SESSION, {
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
    with contextlib.redirect_stdout(io.StringIO()) as output:
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
