"""The entry point of an evaluation method: score `/input`, and write grand-challenge's metrics.

It is a program of its own that imports only the folders beside it. Participants see the last line of stderr, so that
line is for them; lines above it are for the organisers.

usage: evaluate.py [INPUT TRUTH OUTPUT]
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import traceback
from typing import Any

_FOLDERS = ("/input", "/opt/ml/input/data/ground_truth", "/output")
_HERE = os.path.dirname(os.path.abspath(__file__))
#: The key of `metrics.json` beside those of the splits.
WARNINGS = "warnings"


def main() -> int:
    """Score the input, write `metrics.json`, and return the exit code: 0, or 1 without metrics."""
    source, truth, target = sys.argv[1:4] if len(sys.argv) == 4 else _FOLDERS
    try:
        script: Any = importlib.import_module("evaluation_script")
        platform_input: Any = importlib.import_module("platform_input")
        with open(os.path.join(_HERE, "task.json"), encoding="utf-8") as file:
            task = json.load(file)
        with tempfile.TemporaryDirectory(prefix="segjudge-") as temporary:
            annotations = os.path.join(truth, task["annotations"])
            submission = platform_input.find_submission(source, task["phase"], temporary)
            answer = script.evaluate(annotations, submission, task["phase"])
            metrics = {**_metrics(answer, task), **_warnings(answer)}
        text = json.dumps(metrics, allow_nan=False)
        with open(os.path.join(target, "metrics.json"), "w", encoding="utf-8") as file:
            file.write(text)
    except Exception as error:  # noqa: BLE001 - the last line is read by a participant
        text = str(error)
        if type(error).__name__ not in ("SubmissionError", "HostError"):
            traceback.print_exc()
            text = "Scoring failed; your submission is not the cause. Tell the organisers."
        sys.stderr.write(" ".join(text.split()) + "\n")
        return 1
    return 0


def _metrics(answer: dict[str, Any], task: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the scores of the visible splits, with their standard errors, by the keys of the task."""
    metrics: dict[str, dict[str, float]] = {}
    for entries, before, after in ((answer["result"], "", ""), (answer.get("error", ()), "error_", "_error")):
        for split, values in (pair for entry in entries for pair in entry.items()):
            if split in task["splits"]:
                key, keys = task["splits"][split]["key"], task["splits"][split]["labels"]
                renamed = {f"{keys[label.removeprefix(before)]}{after}": value for label, value in values.items()}
                metrics.setdefault(key, {}).update(renamed)
    return metrics


def _warnings(answer: dict[str, Any]) -> dict[str, list[str]]:
    """Return the entry of the visible splits' warnings; empty if there are none."""
    warnings = answer.get("submission_result", {}).get("warnings")
    return {WARNINGS: warnings} if warnings else {}


if __name__ == "__main__":
    sys.exit(main())
