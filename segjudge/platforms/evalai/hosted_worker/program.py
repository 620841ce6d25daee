"""The scoring child: it imports a script, and calls its `evaluate()` once per request.

It is a program of its own without imports from Segjudge, so it runs under the script's interpreter, including Python
3.9.

usage: program.py ORDER ANSWERS LOG
ORDER is JSON: which script (`folder` and `module`; or `file` and `root`, a host's own module or package and its
repository), the `worker` that calls it, `hosted` or `remote`, and its limit of `memory` in bytes (0: none).
It reads one JSON request a line from its standard input, and writes one JSON answer a line to the descriptor ANSWERS;
the descriptor LOG is the operator's.

The hosted worker is EvalAI's, as far as `evaluate()` can tell: streams are objects with `write` and `flush` only, whose
texts are in the answer, and results are taken or refused as there (statuses, JSON without NaN).  The remote worker
calls either of the two documented forms, and the streams of the process are the participant's.
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
import tempfile
import traceback
import zipfile
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import IO, Any, Callable, Dict, Iterator, List, TextIO, Tuple

#: The two documented forms: the annotations come first, or the submission.
_HOSTED, _REMOTE = "hosted", "remote"
#: The keys of a result that `evaluate()` may add to the scores.
_EXTRAS = ("submission_result", "submission_metadata")
#: The words in the first parameter's name that reveal the form.
_ANNOTATION, _SUBMISSION = ("annotation", "truth", "gt"), ("user", "submission", "pred", "result")
#: The maximum bytes of a file written for a remote worker, which has no sandbox.
_FILE_BYTES = 4 << 30
#: The folder below the current one into which a built bundle's script is unpacked.
_UNPACKED = "evaluation_script"
#: The maximum characters of a stream in an answer.
_STREAM_CHARACTERS = 4 << 20


class _Script:
    def __init__(self, order: Dict[str, Any]) -> None:
        if "module" in order:
            self.path, root = order["module"], order["folder"]
            sys.path.append(root)
            self.module = importlib.import_module(self.path)
            if not os.path.realpath(self.module.__file__ or "").startswith(os.path.realpath(root)):
                raise ImportError(f"{self.path} was imported from {self.module.__file__}, not from {root}")
            self._is_package = False
        else:
            self.path, root = _unpack(order["file"], order["root"])
            self.module = _import_file(self.path, root)
            self._is_package = os.path.isdir(self.path)
            if not self._is_package:
                os.chdir(os.path.dirname(os.path.abspath(self.path)))  # where the starter's worker runs

    @property
    def form(self) -> str:
        """Return the form of `evaluate()`, by its first parameter, or by the script's location."""
        try:
            name = next(iter(inspect.signature(self.module.evaluate).parameters), "").lower()
        except (TypeError, ValueError):
            name = ""
        if any(word in name for word in _SUBMISSION):
            return _REMOTE
        if any(word in name for word in _ANNOTATION):
            return _HOSTED
        return _HOSTED if self._is_package else _REMOTE


def _unpack(path: str, root: str) -> Tuple[str, str]:
    """Return the module or package and its repository on disk; for a built bundle, `path` is the script's zip."""
    if not os.path.isfile(root):
        return path, root
    with zipfile.ZipFile(root) as bundle, zipfile.ZipFile(io.BytesIO(bundle.read(path))) as script:
        script.extractall(_UNPACKED)  # within the folder: zipfile drops parts that would lead elsewhere
    return os.path.abspath(_UNPACKED), os.getcwd()


def _import_file(path: str, root: str) -> ModuleType:
    """Import a host's module or package, which can import its neighbours and modules of the repository."""
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


def _forget_notes(error: BaseException) -> None:
    """Remove the notes that newer Pythons add to an error."""
    vars(error).pop("__notes__", None)


def _import_error(error: BaseException, order: Dict[str, Any]) -> str:
    """Return the last line of an error's traceback, with the place in the script that raised it."""
    _forget_notes(error)
    last_line = traceback.format_exception_only(type(error), error)[-1].strip()
    frames: List[Tuple[str, Any]] = [
        (frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)
    ]
    if isinstance(error, SyntaxError):
        frames.append((error.filename or "", error.lineno))
    folder = os.path.join(order["folder"], *order["module"].split(".")) if "module" in order else order["root"]
    places = [(name[len(folder) + 1 :], line) for name, line in frames if name.startswith(folder + os.sep)]
    return f"{last_line} ({places[-1][0]}, line {places[-1][1]})" if places else last_line


# ── as EvalAI's hosted worker ───────────────────────────────────────────────


class _Tee:
    """The hosted worker's replacement of a stream, a file with only these methods."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._room = stream, _STREAM_CHARACTERS + 1

    def write(self, text: str) -> None:
        # Text that is cut in the end must not fill the disk.
        self._stream.write(text[: self._room])
        self._room -= min(len(text), self._room)
        self._stream.flush()

    def flush(self) -> None:
        """Do nothing: every write is flushed at once."""


@contextmanager
def _catch_streams() -> Iterator[Tuple[IO[str], IO[str]]]:
    """Replace both streams, and yield the files that capture them."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        # EvalAI also writes to the real streams; here those contain only text that no participant sees.
        sys.stdout, sys.stderr = _Tee(out), _Tee(err)
        try:
            yield out, err
        finally:
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__


def _text_of(file: IO[str]) -> str:
    """Return the content of a temporary file, truncated if it is very long, while EvalAI keeps all."""
    file.flush()
    file.seek(0)
    text = file.read(_STREAM_CHARACTERS)
    return text + "\n[the rest is cut off here]\n" if file.read(1) else text


def _score_hosted(script: _Script, request: Dict[str, Any]) -> Dict[str, Any]:
    """Return a submission's status, streams and stored result."""
    answer: Dict[str, Any] = {"status": "failed", "result": None}
    with _catch_streams() as (out, err):
        try:
            returned = script.module.evaluate(
                request["annotation"],
                request["submission"],
                request["phase"],
                submission_metadata=request.get("metadata", {}),
            )
            answer.update(_read_as_server(returned, request["splits"]))
        except Exception as error:  # noqa: BLE001 - the real worker goes on too
            _forget_notes(error)
            traceback.print_exc()
        answer["stdout"], answer["stderr"] = _text_of(out), _text_of(err)
    return answer


def _read_as_server(returned: Dict[str, Any], splits: List[str]) -> Dict[str, Any]:
    """Return the stored part of a returned dict; raises if the server would fail the submission."""
    if "result" not in returned:
        return {"status": "failed"}
    answer: Dict[str, Any] = {"status": "finished"}
    for key in [key for key in ("result", "error") if key in returned]:
        # Only the first split of an entry is read.
        entries = [{split: entry[split]} for entry in returned[key] for split in list(entry.keys())[:1]]
        answer[key] = json.loads(json.dumps(entries, allow_nan=False))
    for split in [split for entry in answer["result"] for split in entry]:
        if split not in splits:
            raise ValueError(f"no split {split!r} is mapped to this phase: {splits}")
    extras = {key: json.dumps(returned[key], default=str) for key in _EXTRAS if key in returned}
    return {**answer, **extras}


# ── as a remote worker ──────────────────────────────────────────────────────


def _score_remote(script: _Script, request: Dict[str, Any]) -> Dict[str, Any]:
    """Return accuracies, `refused` for the participant, or `incident` for the host.

    As with the starter's worker, an exception's text is for the participant, except a `HostError`'s.
    """
    try:
        returned = _call_evaluate(script.module.evaluate, script.form, request)
    except SystemExit as error:
        return {"incident": f"evaluate() ended its process (SystemExit: {error})"}
    except BaseException as error:  # noqa: BLE001 - whatever a host's code raises
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if "HostError" in kinds:
            return {"incident": str(error)}
        if "SubmissionError" not in kinds:  # whose sentence is complete
            traceback.print_exc(file=sys.__stderr__)
        return {"refused": str(error) or type(error).__name__}
    if not isinstance(returned, dict):
        return {"incident": f"evaluate() returned {_kind(returned)}, not a dict: write return {{'result': ...}}"}
    if "result" not in returned:
        reason = str(returned.get("stderr") or returned.get("error") or "").strip()
        return {"refused": reason} if reason else {"incident": "evaluate() returned no result"}
    try:
        extras = {name: _to_plain(returned[name]) for name in _EXTRAS if returned.get(name) is not None}
        return {"accuracies": _accuracies_of(returned["result"], request.get("hidden", [])), "metadata": extras}
    except (ValueError, AttributeError) as error:
        return {"incident": str(error)}


def _call_evaluate(function: Callable[..., Any], form: str, request: Dict[str, Any]) -> Any:
    """Call an `evaluate()` with the arguments of its signature."""
    metadata = request["metadata"]
    annotation = request["annotation"] if os.path.isfile(request["annotation"]) else ""
    arguments = [annotation or None] if form == _HOSTED else []
    arguments += [request["submission"], request["phase"]]
    parameters = inspect.signature(function).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    options = {
        "submission_metadata": metadata,
        "challenge_pk": metadata.get("challenge"),
        "phase_pk": metadata.get("challenge_phase"),
        "submission_pk": metadata.get("id"),
    }
    if form == _REMOTE and annotation:
        options["test_annotation_file"] = annotation
    names = {*parameters, "submission_metadata"} if takes_any else {*parameters}
    return function(*arguments, **{name: value for name, value in options.items() if name in names})


def _accuracies_of(result: Any, hidden: List[str]) -> List[Dict[str, Any]]:
    """Return a result in the REST API's form; raises ValueError with a sentence for any other shape."""
    if not isinstance(result, list) or not all(isinstance(entry, dict) for entry in result):
        kind = (
            "a list of values that are not splits"
            if isinstance(result, list)
            else f"{_kind(result)}, not a list of splits"
        )
        raise ValueError(f"evaluate() returned a result that is {kind}")
    if all("accuracies" in entry for entry in result):
        return [_to_plain(_hide({"show_to_participant": True, **entry}, hidden)) for entry in result]
    return [
        {"split": split, "show_to_participant": split not in hidden, "accuracies": _to_plain(values)}
        for entry in result
        for split, values in entry.items()
    ]


def _hide(entry: Dict[str, Any], hidden: List[str]) -> Dict[str, Any]:
    """Return a split's entry; a hidden split stays hidden whatever a host's code returns."""
    return {**entry, "show_to_participant": False} if entry.get("split") in hidden else entry


def _to_plain(value: Any) -> Any:
    """Return numpy numbers and the like as plain numbers."""
    if isinstance(value, dict):
        return {str(key): _to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_plain(item) for item in value]
    return value.item() if hasattr(value, "item") and not getattr(value, "shape", ()) else value


def _kind(value: Any) -> str:
    return "None" if value is None else f"a value of the kind {type(value).__name__}"


# ── the process ─────────────────────────────────────────────────────────────


def _limit_resources(memory: int, file_bytes: int) -> None:
    """Limit this process; 0 removes a limit."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if file_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    if memory:
        # A thread of OpenBLAS reserves address space that it never uses.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def main() -> None:
    """Load the script, then answer requests until the input ends."""
    order = json.loads(sys.argv[1])
    answers, log = (os.fdopen(int(number), "w", encoding="utf-8", buffering=1) for number in sys.argv[2:4])
    for stream in (answers, log):
        os.set_inheritable(stream.fileno(), False)  # noqa: FBT003 - as the standard library has it
    is_hosted = order["worker"] == _HOSTED
    if is_hosted:
        for number in (1, 2):
            os.dup2(log.fileno(), number)  # output of C code or careless scripts is not for participants
    else:
        # Messages from scorers to the operator can reveal ground truth.
        sys.__stderr__ = log  # type: ignore[misc]
    _limit_resources(order["memory"], 0 if is_hosted else _FILE_BYTES)
    description: Dict[str, Any] = {}
    try:
        script = _Script(order)
        description = {"form": "" if is_hosted else script.form}
    except BaseException as error:  # noqa: BLE001 - a script may do anything while it is imported, and try to leave
        traceback.print_exc(file=sys.__stderr__)
        description = {"unloadable": _import_error(error, order)}
    own_pid = os.getpid()
    for line in sys.stdin.buffer:
        request, answer = json.loads(line), description
        if "submission" in request and "unloadable" not in description:
            answer = (_score_hosted if is_hosted else _score_remote)(script, request)
        if os.getpid() != own_pid:
            os._exit(0)  # a script forked, and its child returned here too
        try:
            text = json.dumps({**answer, "number": request["number"]})
        except (TypeError, ValueError) as error:
            answer = {"incident": f"evaluate() returned a value that JSON cannot represent ({error})"}
            text = json.dumps({**answer, "number": request["number"]})
        for output in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # which a script may have closed or replaced
                output.flush()
        answers.write(text + "\n")
        if "unloadable" in answer:
            sys.exit(1)


if __name__ == "__main__":
    main()
