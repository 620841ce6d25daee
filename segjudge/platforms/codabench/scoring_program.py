"""Codabench's scoring program: call `evaluate()`, and write Codabench's files.

It imports only the `evaluation_script` beside it, so it runs in the image that the competition names. Everything that
it prints is shown to the participant. The log, in which a traceback may show the truth, goes to the file in
SEGJUDGE_LOG or nowhere; a rejected submission gives one message on stderr and exit code 1.

usage: score.py [INPUT OUTPUT]
"""

from __future__ import annotations

import html
import importlib
import json
import math
import os
import signal
import subprocess
import sys
import traceback
from typing import Any, Dict, List, NoReturn

#: The container paths of both folders.
_INPUT, _OUTPUT = "/app/input", "/app/output"
#: The file that the worker adds to every submission.
ADDED = "metadata"
#: The endings of single files in a zip, which other platforms accept.
_SINGLE_FILES = (".json", ".gz", ".tar", ".zip")
#: The limit of a score on Codabench: twenty digits, ten of them decimals.
TOO_LARGE = 1e10
#: Packages for images that lack them; those of the image come first.
PACKAGES = "packages"
#: The program that makes the page of a submission, if the phase has one, and its time limit in seconds.
PAGE_PROGRAM, PAGE_SECONDS = "page/page_program.py", 60
#: The keys that a page shows of a non-public truth, since everybody may read the page.
SHOWN = ("protocol", "result", "scored", "warnings", "versions", "intervals", "provenance")
LOG = "SEGJUDGE_LOG"
_FOLDER = os.path.dirname(os.path.abspath(__file__))
#: The file with the bundle's facts about the phase, beside its truth.
TASK = "task.json"
#: The maximum seconds of an alarm on every system.
_LONGEST = 2**31 - 1
#: Codabench keeps no log, so no incident number leads to one: what each side can do instead.
_TELL_ORGANISERS = "Tell the organisers the ID of your submission. Organisers: {}"
_REBUILD = "rebuild the competition with `segjudge build --platform codabench`, and upload its reference data."
_NOT_YOURS = "Scoring failed; your submission is not the cause. " + _TELL_ORGANISERS.format(
    "download that submission into examples/ of your bundle, in the phase's folder; "
    "`segjudge run --platform codabench` shows the log that Codabench does not keep."
)

_PAGE = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem; color: #222 }}
table {{ border-collapse: collapse; margin: .5rem 0 1.5rem }}
th, td {{ padding: .25rem .9rem .25rem 0; text-align: left; border-bottom: 1px solid #ddd }}
td.number {{ text-align: right; font-variant-numeric: tabular-nums }}
td.bar {{ width: 12rem }}
td.bar div {{ height: .7rem; background: #3b6fb6 }}
footer {{ color: #777; font-size: 13px }}
</style>
<h1>{title}</h1>
{body}
<footer>{footer}</footer>
</html>
"""


class _TaskError(Exception):
    """Raised for a bundle without a task description; the text is for participant and organiser."""


def main() -> None:
    """Score the submission in the input folder."""
    source, target = (*sys.argv[1:3], _INPUT, _OUTPUT)[:2] if len(sys.argv) > 2 else (_INPUT, _OUTPUT)
    participant = _keep_log_from_participant()

    def refuse(text: str) -> NoReturn:
        sys.stdout.flush()
        os.write(participant, (text.rstrip() + "\n").encode("utf-8", "replace"))
        os._exit(1)  # everything else ends with this process

    def stop(*_: object) -> NoReturn:
        refuse(f"Your submission could not be scored: it takes longer than {task['seconds']} s.")

    try:
        task = _read_task(os.path.join(source, "ref", TASK))
        signal.signal(signal.SIGALRM, stop)
        signal.alarm(task["seconds"])
        sys.path.append(os.path.join(_FOLDER, PACKAGES))
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy starts in half the time with one thread
        script = importlib.import_module("evaluation_script")
        annotations = os.path.join(source, "ref", task["annotations"])
        answer = script.evaluate(annotations, _find_submission(source), task["phase"], submission_metadata={})
        values = _fill_columns(task, answer)
        _check_shown(task, answer)
        page = _submission_page(task, answer, signal.alarm(0))
        _write(target, "detailed_results.html", page)
        _write(target, "scores.json", json.dumps(values, allow_nan=False))
    except BaseException as error:  # noqa: BLE001 - nothing else may reach a participant
        signal.alarm(0)
        text = str(error)
        if not isinstance(error, _TaskError) and type(error).__name__ != "SubmissionError":
            traceback.print_exc()  # with the incident that a HostError numbers
            text = _NOT_YOURS
        refuse(text)


def _read_task(path: str) -> Dict[str, Any]:
    """Return the task of the phase; raises `_TaskError` with a message for both sides."""
    try:
        with open(path, encoding="utf-8") as file:
            task: Dict[str, Any] = json.load(file)
        texts = [task["phase"], task["annotations"], task["title"]]
        texts += [column[key] for column in task["columns"] for key in ("key", "split", "label")]
        flags = [column["hidden"] for column in task["columns"]]
        if not all(isinstance(text, str) for text in texts) or not all(isinstance(flag, bool) for flag in flags):
            raise TypeError("a value has the wrong type")
        return {**task, "seconds": min(max(int(task["seconds"]), 1), _LONGEST)}
    except FileNotFoundError:
        reason = "is not in its reference data"
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        reason = f"in its reference data cannot be read ({type(error).__name__}: {error})"
    raise _TaskError(f"This competition cannot score anything: {TASK} {reason}. {_TELL_ORGANISERS.format(_REBUILD)}")


def _keep_log_from_participant() -> int:
    """Point the stream of errors elsewhere, also for libraries in C; return a descriptor of the real one."""
    participant = os.dup(2)
    log = os.open(os.environ.get(LOG) or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    os.close(log)
    return participant


def _find_submission(source: str) -> str:
    """Return the submission's folder, or its only file."""
    folder = os.path.join(source, "res")
    added = os.path.join(folder, ADDED)
    if os.path.isfile(added):
        os.remove(added)
    names = os.listdir(folder)
    path = os.path.join(folder, names[0]) if len(names) == 1 else ""
    return path if os.path.isfile(path) and path.endswith(_SINGLE_FILES) else folder


def _fill_columns(task: Dict[str, Any], answer: Dict[str, Any]) -> Dict[str, float]:
    """Return a number for every column, since empty ones rank first."""
    results = {split: values for entry in answer["result"] for split, values in entry.items()}
    values = {}
    for column in task["columns"]:
        value = float(results[column["split"]][column["label"]])
        if not math.isfinite(value) or abs(value) >= TOO_LARGE:
            raise ValueError(f"{column['key']} is {value}")
        values[column["key"]] = value
    return values


def _write(folder: str, name: str, text: str) -> None:
    """Write a file in one step: Codabench's worker sends the page whenever it has changed."""
    partial = os.path.join(folder, f".{name}.partial")
    with open(partial, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(partial, os.path.join(folder, name))


# ── the page beside the scores, which everybody may read who sees the competition ───────────────────────────────────


def _submission_page(task: Dict[str, Any], answer: Dict[str, Any], seconds: int) -> str:
    """Return the page of a submission, by the page program, or a plain one."""
    program = os.path.join(_FOLDER, PAGE_PROGRAM)
    if task.get("page") and os.path.isfile(program):
        try:
            text = json.dumps({"title": task["title"], "result": _select_public(task, answer)})
            process = subprocess.run(
                [sys.executable, program], input=text.encode(), stdout=subprocess.PIPE,
                timeout=min(max(seconds, 1), PAGE_SECONDS), check=True,
            )  # fmt: skip
            return process.stdout.decode("utf-8")
        except Exception:  # noqa: BLE001 - the scores stay, and so does the plain page
            traceback.print_exc()
    return _results_page(task, answer)


def _check_shown(task: Dict[str, Any], answer: Dict[str, Any]) -> None:
    """Raise ValueError if the phase leaves public scores that no column shows."""
    public = {column["split"] for column in task["columns"] if not column["hidden"]}
    entries = (answer.get("submission_result") or {}).get("result") or []
    unseen = sorted({split for entry in entries for split in entry} - public)
    if unseen:
        raise ValueError(f"the phase returns scores of {unseen}, which no visible column shows")


def _select_public(task: Dict[str, Any], answer: Dict[str, Any]) -> Dict[str, Any]:
    stored: Dict[str, Any] = answer["submission_result"]
    return stored if task["page"] == "all" else {key: stored[key] for key in SHOWN if key in stored}


def _results_page(task: Dict[str, Any], answer: Dict[str, Any]) -> str:
    """Return the plain page: leaderboard values, error bars, warnings and versions."""
    results = {split: values for entry in answer["result"] for split, values in entry.items()}
    errors = {split: values for entry in answer.get("error") or [] for split, values in entry.items()}
    intervals = {split: values for entry in answer.get("interval") or [] for split, values in entry.items()}
    public = answer.get("submission_result") or {}
    labels_of: Dict[str, List[str]] = {}
    for column in task["columns"]:
        if not column["hidden"]:
            labels_of.setdefault(column["split"], []).append(column["label"])
    body = [
        _make_table(split, labels, results[split], errors.get(split, {}), intervals.get(split, {}))
        for split, labels in labels_of.items()
    ]
    warnings = [f"<li>{html.escape(str(line))}</li>" for line in public.get("warnings", [])]
    if warnings:
        body += ["<h2>Warnings</h2>", "<ul>", *warnings, "</ul>"]
    footer = " · ".join(f"{name} {version}" for name, version in (public.get("versions") or {}).items())
    return _PAGE.format(title=html.escape(task["title"]), body="\n".join(body), footer=html.escape(footer))


def _make_table(
    split: str, labels: List[str], values: Dict[str, float], errors: Dict[str, float], ends: Dict[str, List[float]]
) -> str:
    rows = []
    for label in labels:
        value, error = float(values[label]), errors.get(f"error_{label}")
        width = max(0.0, min(1.0, value / 100 if value > 1 else value))
        number = f"{value:.3f}" if error is None else f"{value:.3f} ± {float(error):.3f}"
        if label in ends:
            low, high = map(float, ends[label])
            number += f' <span title="Student’s t interval, 95 %">({low:.3f} to {high:.3f})</span>'
        rows.append(
            f'<tr><th>{html.escape(label)}</th><td class="number">{number}</td>'
            f'<td class="bar"><div style="width: {100 * width:.1f}%"></div></td></tr>'
        )
    return f"<h2>{html.escape(split)}</h2>\n<table>\n" + "\n".join(rows) + "\n</table>"


if __name__ == "__main__":
    main()
