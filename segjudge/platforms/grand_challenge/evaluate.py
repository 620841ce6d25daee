"""The entry point of an evaluation method: score `/input`, and write what grand-challenge ranks.

A program of its own that imports nothing but the `evaluation_script` beside it.  Participants are shown the last line
of stderr, so that line is for them, and what is above it for the organisers.

usage: evaluate.py [INPUT TRUTH OUTPUT]
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

_FOLDERS = ("/input", "/opt/ml/input/data/ground_truth", "/output")
_HERE = os.path.dirname(os.path.abspath(__file__))
#: Written by the platform: the jobs of an algorithm, whose outputs lie in folders of their own.
_JOBS = "predictions.json"
#: The most bytes of the list of jobs, which is the platform's.
_JOBS_BYTES = 64 << 20
#: What a participant may have uploaded as one file.
_SINGLE_FILES = (".json", ".gz", ".tar", ".tgz", ".zip")


def main() -> int:
    """Score what lies in the input; the exit code is 1 where there are no metrics."""
    source, truth, target = sys.argv[1:4] if len(sys.argv) == 4 else _FOLDERS
    try:
        script: Any = importlib.import_module("evaluation_script")
        with open(os.path.join(_HERE, "task.json"), encoding="utf-8") as file:
            task = json.load(file)
        with tempfile.TemporaryDirectory(prefix="segjudge-") as temporary:
            annotations, submission = os.path.join(truth, task["annotations"]), _submission(source, task, temporary)
            metrics = _metrics(script.evaluate(annotations, submission, task["phase"]), task)
        text = json.dumps(metrics, allow_nan=False)
        with open(os.path.join(target, "metrics.json"), "w", encoding="utf-8") as file:
            file.write(text)
    except Exception as error:  # noqa: BLE001 - the last line is read by a participant
        text = str(error)
        if type(error).__name__ not in ("SubmissionError", "HostError"):
            traceback.print_exc()
            text = "Scoring failed, and it is not your fault. Tell the organisers."
        sys.stderr.write(" ".join(text.split()) + "\n")
        return 1
    return 0


def _metrics(answer: dict[str, Any], task: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The scores of each split that participants may see, with their standard errors."""
    metrics: dict[str, dict[str, float]] = {}
    for entry in (*answer["result"], *answer.get("error", ())):
        for split, values in entry.items():
            if split in task["keys"]:
                renamed = {
                    f"{label.removeprefix('error_')}_error" if label.startswith("error_") else label: value
                    for label, value in values.items()
                }
                metrics.setdefault(task["keys"][split], {}).update(renamed)
    return metrics


def _submission(source: str, task: dict[str, Any], temporary: str) -> str:
    """The folder, the file that is alone in it, or what an algorithm's jobs wrote."""
    list_path = os.path.join(source, _JOBS)
    if os.path.isfile(list_path) and os.path.getsize(list_path) <= _JOBS_BYTES:
        with open(list_path, encoding="utf-8") as file:
            jobs = json.load(file)
        if isinstance(jobs, list) and jobs and all(isinstance(job, dict) and "outputs" in job for job in jobs):
            return _join(_outputs(source, jobs), task, temporary)
    names = os.listdir(source)
    path = os.path.join(source, names[0]) if len(names) == 1 else ""
    is_file = os.path.isfile(path) and not os.path.islink(path)
    return path if is_file and path.endswith(_SINGLE_FILES) else source


def _outputs(source: str, jobs: list[dict[str, Any]]) -> list[str]:
    """The files that the jobs wrote: JSON, or archives of PNGs.

    A participant may send a list of jobs too, so it leads to nothing outside of what was sent.
    """
    errors: Any = importlib.import_module("evaluation_script.files.problems")
    inside, paths = os.path.realpath(source) + os.sep, []
    try:
        for job in jobs:
            for output in job["outputs"]:
                target = (output.get("socket") or output["interface"])["relative_path"]
                path = os.path.realpath(os.path.join(source, str(job["pk"]), "output", target))
                if path.endswith(_SINGLE_FILES) and path.startswith(inside):
                    if not os.path.isfile(path):
                        raise errors.SubmissionError(f"Job {job['pk']} has written no {target}; write it in each job.")
                    paths.append(path)
    except (KeyError, TypeError, AttributeError, ValueError):
        raise errors.SubmissionError(f"{_JOBS} is not a list of jobs with their outputs.") from None
    return paths


def _join(paths: list[str], task: dict[str, Any], temporary: str) -> str:
    """One submission of the JSON that several jobs wrote, within the phase's limits."""
    errors: Any = importlib.import_module("evaluation_script.files.problems")
    if len(paths) == 1:
        return paths[0]
    reader: Any = importlib.import_module("evaluation_script.files.limits")
    limits = importlib.import_module("evaluation_script.main").phase_named(task["phase"]).limits
    if not paths or sum(map(os.path.getsize, paths)) > limits.json_bytes or not paths[0].endswith(".json"):
        raise errors.SubmissionError("The algorithm has to write one JSON file in each job, within the phase's limits.")
    joined: Any = None
    for path in paths:
        try:
            document = reader.read_json(Path(path).read_bytes(), limits, "the same form in each job")
        except errors.Flaw as flaw:
            raise errors.SubmissionError.of(flaw.at(os.path.relpath(path))) from None
        if joined is None:
            joined = document
        elif type(document) is not type(joined) or not isinstance(document, (dict, list)):
            raise errors.SubmissionError("The algorithm's jobs wrote JSON of several kinds; write the same in each.")
        elif isinstance(document, dict):
            joined.update(document)
        else:
            joined += document
    out = os.path.join(temporary, "submission.json")
    with open(out, "w", encoding="utf-8") as file:
        json.dump(joined, file)
    return out


if __name__ == "__main__":
    sys.exit(main())
