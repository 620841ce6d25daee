"""What pages assume: files in the reader's folder, by page; their Python imports `prelude.py`."""

from __future__ import annotations

#: Python with these words is parsed alone: it needs another process.
PARSED_PYTHON = ("http://", "segjudge.agent import", "with Environment()")

_METHOD = """
def answer(*, sequence, scribbles, new_sequence, images):
    import numpy as np
    return np.zeros((len(images), *images[0].shape[:2]), int)
"""
_INTERACTIVE = """
import numpy as np
from tests.snippets.inputs import quietly, truth
quietly(["interactive", "demo", "--out", "data/DAVIS"])
truth("data/LVOS/valid", "lvos", "valid")
masks = None
def my_method(sequence, scribbles, new_sequence):
    return np.zeros((len(scribbles["scribbles"]), 120, 160), int)
"""
_ARRAYS = """
import numpy as np
from tests.snippets.inputs import results, truth as published
published("data/DAVIS", "davis2017", "val")
results("results.zip", "data/DAVIS", "davis2017")
truth = np.zeros((5, 40, 60), np.uint8)
truth[:, 10:30, 10:40] = 1
prediction = np.roll(truth, 1, axis=2)
loader = [("dog", f"{k:05d}", prediction[k], truth[k]) for k in range(5)]
"""
PRELUDES: dict[str, dict[str, str]] = {
    "interactive.md": {"my_method.py": _METHOD, "prelude.py": _INTERACTIVE},
    "participant.md": {"prelude.py": _ARRAYS},
    "benchmark.md": {"prelude.py": _ARRAYS},
    "rescoring.md": {"board.csv": "submission,J&F-Mean\nstrong,0.933\nfirst-mask,0.237\n"},
    "scale.md": {"prelude.py": "import segjudge\nfrom concurrent.futures import ProcessPoolExecutor\n"},
}
