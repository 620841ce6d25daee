"""The answers of the scoring process to hosts' scripts, good and odd ones, as one text."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from segjudge.platforms.evalai.hosted_worker.process import DiedError, ProcessTerms, ScoringOrder, ScoringProcess
from tests.answers import fold, fold_sections
from tests.builders import written, zipped
from tests.platforms.damages import GOLDEN, new_folder

FILE = GOLDEN / "hosted_scripts.txt"
#: Runs what a submission says, and returns what that leaves.
_RUN = """
import json, os, sys

class HostError(Exception): pass
class SubmissionError(Exception): pass
class Number:
    shape = ()
    def item(self): return 0.5

def evaluate({parameters}):
    scope = {{**globals(), "given": dict(locals())}}
    exec(open({submission}).read(), scope)
    return scope.get("returned")
"""
_HOSTED = _RUN.format(parameters="truth, submission, phase, **kwargs", submission="submission")
#: What submissions to the hosted worker say.
_HOSTED_RUNS = [
    "returned = {'result': [{'dev': {'score': 0.5}}]}",
    "returned = {'result': [{'dev': {'score': 1}}, {'test': {'score': 2}}], 'error': [{'dev': {'score': 0.1}}]}",
    "returned = {'result': [{'dev': {'score': 1}, 'ignored': 7}]}", "returned = {'result': []}",
    "returned = {'result': [{'other': {'score': 1}}]}", "returned = {'result': [{'dev': {'score': float('nan')}}]}",
    "returned = {'result': [{'dev': {'score': object()}}]}", "returned = {'result': 7}", "returned = {}",
    "returned = {'error': [{'dev': {}}]}",
    "returned = {'result': [{'dev': {}}], 'submission_result': {'a': 1}, 'submission_metadata': {1, 2}.__class__}",
    "raise ValueError('no')", "print('said'); print('wrong', file=sys.stderr); returned = {'result': [{'dev': {}}]}",
    "print('x' * ((4 << 20) + 1)); returned = {'result': [{'dev': {}}]}",
    "os.write(1, b'to the log'); sys.stdout.close(); returned = {'result': [{'dev': {}}]}",
    "print(sorted(given['kwargs']), given['phase'], given['truth'][-9:]); returned = {'result': [{'dev': {}}]}",
    "returned = {'result': [{'dev': {'again': 1}}]}", "raise SystemExit(3)",
]  # fmt: skip
#: What submissions to a remote worker say.
_REMOTE_RUNS = [
    "returned = {'result': [{'dev': {'score': 0.5}}]}",
    "returned = {'result': [{'split': 'dev', 'accuracies': {'score': Number()}, 'show_to_participant': False}]}",
    "returned = {'result': [{'dev': {'score': (Number(), [1])}}, {'hard': {'score': 1}}]}",
    "returned = {'result': 7}", "returned = {'result': [7]}",
    "returned = {'result': [], 'submission_metadata': {'a': Number()}, 'submission_result': None}",
    "returned = {'result': [{'dev': {'score': object()}}]}", "returned = 7", "returned = None", "returned = {}",
    "returned = {'stderr': ' a frame is missing '}", "returned = {'error': 'a mask is missing'}",
    "raise ValueError('no')", "raise ValueError", "raise SubmissionError('a frame is missing')",
    "raise HostError('the truth is odd')", "raise SystemExit(3)",
    "print('said'); print('wrong', file=sys.stderr); returned = {'result': []}",
    "returned = {'result': [{'dev': {'given': [str(value)[-9:] for value in given.values()]}}]}",
]  # fmt: skip
_FORMS = {
    "annotations come first": "annotation_file, submission, phase_codename, submission_metadata",
    "the submission comes first": "user_submission_file, phase_codename, test_annotation_file=None, **kwargs",
    "the submission comes first, and nothing else is taken": "prediction, phase",
    "names that say nothing": "a, b, c=None",
}
#: Files, and which of them is the script, beside how a file of it is loaded.
_LAYOUTS: dict[str, tuple[dict[str, Any], str]] = {
    "a module": ({"repo/judge.py": _HOSTED, "repo/helper.py": ""}, "repo/judge.py"),
    "a module that imports from its repository": ({"repo/top.py": "", "repo/in/judge.py": "import top\n" + _HOSTED}, "repo/in/judge.py"),
    "a package": ({"repo/judge/__init__.py": _HOSTED}, "repo/judge"),
    "a module in a package": ({"repo/judge/__init__.py": "", "repo/judge/main.py": "from . import x\n" + _HOSTED, "repo/judge/x.py": ""}, "repo/judge/main.py"),
    "no module": ({"repo/judge.txt": ""}, "repo/judge.txt"),
    "a module that is not there": ({"repo/other.py": ""}, "repo/judge.py"),
    "an error of syntax": ({"repo/judge.py": "x = 1\ndef f(:\n"}, "repo/judge.py"),
    "an import that fails below": ({"repo/judge.py": "import helper\n", "repo/helper.py": "\nraise OSError('no disk')\n"}, "repo/judge.py"),
    "no evaluate": ({"repo/judge.py": ""}, "repo/judge.py"),
    "a bundle": ({"repo": zipped({"script.zip": zipped({"__init__.py": "from .main import evaluate\n", "main.py": _HOSTED})})}, "script.zip"),
}  # fmt: skip


def _ask(order: ScoringOrder, runs: list[str], **request: Any) -> Iterator[tuple[str, Any]]:
    """Yield the answer to each submission, and finally the process's leftovers."""
    Path("truth.json").write_text("{}")
    process = ScoringProcess([sys.executable, "-I", "-B"], order, ProcessTerms({"PATH": ""}, str(Path.cwd())))
    try:
        yield "ready", process.ask({"ready": True}, 60)
        for number, run in enumerate(runs):
            Path("submission.txt").write_text(run)
            given = {"annotation": str(Path("truth.json").resolve()), "phase": "first", "metadata": {"id": number}}
            where = {"submission": str(Path("submission.txt").resolve()), "splits": ["dev", "test"], "hidden": ["hard"]}
            yield run, process.ask({**given, **where, **request}, 60)
    except DiedError as error:
        yield "the end", f"{type(error).__name__}: {error}"
    finally:
        process.close()
    output, errors = process.streams()
    left = {"stdout": output, "stderr": errors, "log": process.log(), "exit code": int(process._child.end())}
    yield "its streams", left


def _show(title: str, answers: Iterator[tuple[str, Any]], folder: Path) -> Iterator[str]:
    yield f"── {title} ──\n"
    for name, answer in answers:
        texts = {key: value for key, value in answer.items() if key != "number"} if isinstance(answer, dict) else answer
        if isinstance(texts, dict):
            lines = (f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in texts.items())
            texts = "\n".join(lines)
        shown = texts.replace("\\n", "\n   ").replace(str(folder), "FOLDER")
        shown = re.sub(
            r'(?m)^ *File "[^"]*/(hosted_worker|lib/python3\.\d+|frozen)\b.*\n( {5,}.*\n)*',
            "",
            shown.replace('\\"', '"'),
        )
        shown = re.sub(r"(?m)(not JSON compliant).*|^ *when serializing .*\n", r"\1", shown)
        shown = re.sub(r"(?m)^ *[~^]+ *\n", "", re.sub(r"x{40,}", lambda run: f"{len(run[0])} x", shown))
        yield f"{name}\n{textwrap.indent(shown, '    ')}\n"


def write_text() -> str:
    texts: list[str] = []
    with new_folder() as folder:
        written(folder, {"hosted/challenge_data/__init__.py": "", "hosted/challenge_data/one/__init__.py": _HOSTED})
        order: ScoringOrder = {
            "worker": "hosted",
            "memory": 0,
            "folder": f"{folder}/hosted",
            "module": "challenge_data.one",
        }
        texts += _show("the hosted worker", _ask(order, _HOSTED_RUNS), folder)
        for name, parameters in _FORMS.items():
            first = parameters.partition(",")[0]
            submission = "submission" if "submission," in parameters else "b" if first == "a" else first
            text = _RUN.format(parameters=parameters, submission=submission)
            written(folder, {"forms/judge.py": text})
            order = {"worker": "remote", "memory": 0, "file": f"{folder}/forms/judge.py", "root": f"{folder}/forms"}
            runs = _REMOTE_RUNS if name == "annotations come first" else _REMOTE_RUNS[-1:]
            texts += _show(f"a remote worker: {name}", _ask(order, runs), folder)
        texts += _show("a remote worker without a truth", _ask(order, _REMOTE_RUNS[-1:], annotation=""), folder)
        for name, (files, path) in _LAYOUTS.items():
            place = folder / name.replace(" ", "-")
            place.mkdir()
            written(place, files)
            where = path if path == "script.zip" else str(place / path)
            order = {"worker": "remote", "memory": 1 << 34, "file": where, "root": str(place / "repo")}
            texts += _show(f"a remote worker: {name}", _ask(order, _REMOTE_RUNS[:1]), folder)
    return fold_sections(fold("".join(texts))) + "\n"


if __name__ == "__main__":
    FILE.write_text(write_text(), encoding="utf-8")
