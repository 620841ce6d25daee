"""A host's own `evaluate()`, called as EvalAI's worker or the starter's remote worker calls it.

A program of its own that imports nothing of ours, so that it runs under the host's interpreter too.

usage: host_program.py FILE ROOT describe | score ANSWER LOG
FILE is a module of Python or the folder of a package, ROOT its repository; where ROOT is a built bundle, FILE is the
script's zip in it, which is unpacked into the current folder.  `describe` prints which form its
`evaluate()` has; `score` reads a request from its standard input and writes the answer to the descriptor ANSWER.  Its
output is the participant's log, the descriptor LOG is the operator's.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import io
import json
import os
import resource
import sys
import traceback
import zipfile
from types import ModuleType
from typing import Any, Callable, Dict, List, Tuple

#: The two documented forms: the annotations come first, or the submission does.
HOSTED, REMOTE = "hosted", "remote"
#: What an `evaluate()` may leave beside the scores.
EXTRAS = ("submission_result", "submission_metadata")
_FILE_BYTES = 4 << 30
_UNPACKED = "evaluation_script"
_ANNOTATION, _SUBMISSION = ("annotation", "truth", "gt"), ("user", "submission", "pred", "result")


def unpack_script(path: str, root: str) -> Tuple[str, str]:
    """Return the module or package, and its repository, both as they lie on the disk."""
    if not os.path.isfile(root):
        return path, root
    with zipfile.ZipFile(root) as bundle, zipfile.ZipFile(io.BytesIO(bundle.read(path))) as script:
        script.extractall(_UNPACKED)  # within the folder: zipfile leaves out what would lead elsewhere
    return os.path.abspath(_UNPACKED), os.getcwd()


def load(path: str, root: str) -> ModuleType:
    """Import a host's module or package; what lies beside it and in the repository is found by its name."""
    path = os.path.abspath(path)
    folder, name = os.path.dirname(path), os.path.splitext(os.path.basename(path))[0]
    sys.path[:0] = [folder, os.path.abspath(root)]
    if os.path.isdir(path):
        return importlib.import_module(name)
    if os.path.isfile(os.path.join(folder, "__init__.py")):
        sys.path.insert(2, os.path.dirname(folder))
        return importlib.import_module(f"{os.path.basename(folder)}.{name}")
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise ImportError(f"{path} is not a module of Python")
    module = sys.modules[name] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def form_of(function: Callable[..., Any], *, package: bool) -> str:
    """Return the form of an `evaluate()` by its first parameter's name; unclear ones by where they stand."""
    try:
        first = next(iter(inspect.signature(function).parameters), "").lower()
    except (TypeError, ValueError):
        first = ""
    if any(word in first for word in _SUBMISSION):
        return REMOTE
    if any(word in first for word in _ANNOTATION):
        return HOSTED
    return HOSTED if package else REMOTE


def call_evaluate(function: Callable[..., Any], form: str, request: Dict[str, Any]) -> Any:
    """Call an `evaluate()` with what its form takes."""
    metadata = request["submission_metadata"]
    annotation = request["annotation"] if os.path.isfile(request["annotation"]) else ""
    arguments = [annotation or None] if form == HOSTED else []
    arguments += [request["submission"], request["codename"]]
    parameters = inspect.signature(function).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    options = {
        "submission_metadata": metadata,
        "challenge_pk": metadata.get("challenge"),
        "phase_pk": metadata.get("challenge_phase"),
        "submission_pk": metadata.get("id"),
    }
    if form == REMOTE and annotation:
        options["test_annotation_file"] = annotation
    taken = {*parameters, "submission_metadata"} if takes_any else {*parameters}
    return function(*arguments, **{name: value for name, value in options.items() if name in taken})


def accuracies_of(returned: Any, hidden: List[str]) -> List[Dict[str, Any]]:
    """Return a result as the REST API takes it; raise ValueError with a sentence if it is neither of the two."""
    result = returned["result"]
    if not isinstance(result, list) or not all(isinstance(entry, dict) for entry in result):
        raise ValueError(f"evaluate() returned a result that is {_kind(result)}, not a list of splits")
    if all("accuracies" in entry for entry in result):
        return [_plain({"show_to_participant": True, **entry}) for entry in result]
    return [
        {"split": split, "show_to_participant": split not in hidden, "accuracies": _plain(values)}
        for entry in result
        for split, values in entry.items()
    ]


def _plain(value: Any) -> Any:
    """Return a value with numbers of numpy and the like as plain ones."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.item() if hasattr(value, "item") and not getattr(value, "shape", ()) else value


def _kind(value: Any) -> str:
    return "None" if value is None else f"of the kind {type(value).__name__}"


def answer_to(path: str, root: str, request: Dict[str, Any], log: Any) -> Dict[str, Any]:
    """Score a submission; an exception's text is for the participant, as with the starter's worker."""
    try:
        module = load(path, root)
        form = form_of(module.evaluate, package=os.path.isdir(path))
        if os.path.isfile(path):
            os.chdir(os.path.dirname(os.path.abspath(path)))  # where the starter's worker runs
    except BaseException as error:  # noqa: BLE001 - a module may do anything while it is imported
        traceback.print_exc(file=log)
        return {"incident": f"{path} cannot be loaded ({type(error).__name__}: {error})"}
    try:
        returned = call_evaluate(module.evaluate, form, request)
    except SystemExit as error:
        return {"incident": f"evaluate() ended its process (SystemExit: {error})"}
    except BaseException as error:  # noqa: BLE001 - whatever a host's code raises
        traceback.print_exc(file=log)
        return {"refused": str(error) or type(error).__name__}
    if not isinstance(returned, dict):
        return {"incident": f"evaluate() returned {_kind(returned)}, not a dict with a result"}
    if "result" not in returned:
        reason = str(returned.get("stderr") or returned.get("error") or "").strip()
        return {"refused": reason} if reason else {"incident": "evaluate() returned no result"}
    try:
        return {
            "accuracies": accuracies_of(returned, request.get("hidden", [])),
            "metadata": {name: _plain(returned[name]) for name in EXTRAS if returned.get(name) is not None},
        }
    except (ValueError, AttributeError) as error:
        return {"incident": str(error)}


def limit(memory: int) -> None:
    """Limit this process."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each thread reserves address space that it never uses
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def main() -> None:
    """Answer one request."""
    path, root = unpack_script(*sys.argv[1:3])
    action = sys.argv[3]
    if action == "describe":
        with os.fdopen(os.dup(1), "w") as answers:
            os.dup2(2, 1)
            form = form_of(load(path, root).evaluate, package=os.path.isdir(path))
            answers.write(json.dumps({"form": form}))
        return
    answer_descriptor, log_descriptor = (int(word) for word in sys.argv[4:6])
    request = json.load(sys.stdin.buffer)
    limit(request["memory"])
    with os.fdopen(log_descriptor, "w", encoding="utf-8") as log:
        answer = answer_to(path, root, request, log)
    try:
        text = json.dumps(answer)
    except (TypeError, ValueError) as error:
        text = json.dumps({"incident": f"evaluate() returned what JSON cannot hold ({error})"})
    sys.stdout.flush()
    with os.fdopen(answer_descriptor, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
