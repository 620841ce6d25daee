"""EvalAI's submission worker, as far as `evaluate()` can tell.

A program of its own that imports nothing of ours, so that it runs under the
worker's Python 3.9 as well: it loads `challenge_data.challenge_<pk>` from the
folder given, then reads one JSON request a line and answers one JSON a line.
Streams are replaced by objects with `write` and `flush` only, and results are
taken or refused as the real worker does (statuses, JSON without NaN).

usage: program.py FOLDER CHALLENGE_PK [BYTES]
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import tempfile
import traceback
from contextlib import contextmanager
from types import ModuleType
from typing import IO, Any, Dict, Iterator, List, TextIO, Tuple

#: The most characters of a stream that are kept.
KEPT = 4 << 20


class Tee:
    """What the worker puts in the place of a stream: a file with only these methods."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._room = stream, KEPT + 1

    def write(self, text: str) -> None:
        # The disk is not filled by what is cut off in the end.
        self._stream.write(text[: self._room])
        self._room -= min(len(text), self._room)
        self._stream.flush()

    def flush(self) -> None:
        self._stream.flush()


@contextmanager
def replaced_streams() -> Iterator[Tuple[IO[str], IO[str]]]:
    """Replace both streams, and yield the files that catch what is written."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        # EvalAI's go to the real streams as well; here those hold what no participant sees, and nothing else.
        sys.stdout, sys.stderr = Tee(out), Tee(err)
        try:
            yield out, err
        finally:
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__


def text_of(file: IO[str]) -> str:
    """Return what a temporary file caught: of very much only the beginning, while EvalAI keeps all."""
    file.flush()
    file.seek(0)
    text = file.read(KEPT)
    return text + "\n[the rest is cut off here]\n" if file.read(1) else text


def run(module: ModuleType, request: Dict[str, Any]) -> Dict[str, Any]:
    """Evaluate one submission, and return its status, its streams and what would be stored."""
    answer: Dict[str, Any] = {"status": "failed", "result": None}
    with replaced_streams() as (out, err):
        try:
            returned = module.evaluate(
                request["annotation"],
                request["submission"],
                request["phase"],
                submission_metadata=request.get("metadata", {}),
            )
            answer.update(stored(returned, request["splits"]))
        except Exception:  # noqa: BLE001 - the real worker goes on too
            traceback.print_exc()
        answer["stdout"], answer["stderr"] = text_of(out), text_of(err)
    return answer


def stored(returned: Dict[str, Any], splits: List[str]) -> Dict[str, Any]:
    """Return what the server keeps of a returned dict; raise if the server would mark the submission failed."""
    if "result" not in returned:
        return {"status": "failed"}
    kept: Dict[str, Any] = {}
    for key in [key for key in ("result", "error") if key in returned]:
        # Of an entry the first split alone is read.
        entries = [{split: entry[split]} for entry in returned[key] for split in list(entry.keys())[:1]]
        kept[key] = json.loads(json.dumps(entries, allow_nan=False))
    for split in [split for entry in kept["result"] for split in entry]:
        if split not in splits:
            raise ValueError(f"no split {split!r} is mapped to this phase: {splits}")
    files: Dict[str, Any] = {
        key: json.dumps(returned[key], default=str)
        for key in ("submission_result", "submission_metadata")
        if key in returned
    }
    return {"status": "finished", **kept, **files}


def import_error(error: BaseException, folder: str) -> str:
    """Return the last line of an error's traceback, with the place in the script that raised it."""
    last = traceback.format_exception_only(type(error), error)[-1].strip()
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        frames.append((error.filename or "", error.lineno))
    own = [(name.split(os.sep, 2)[2], line) for name, line in _below(frames, os.path.join(folder, "challenge_data"))]
    return f"{last} ({own[-1][0]}, line {own[-1][1]})" if own else last


def _below(frames: List[Tuple[str, Any]], folder: str) -> List[Tuple[str, Any]]:
    """Return the frames of files in a folder of scripts, by their paths as `/challenge_1/main.py`."""
    return [(name[len(folder) :], line) for name, line in frames if name.startswith(folder + os.sep)]


def main() -> None:
    """Load the challenge, then answer requests until the input ends."""
    folder, challenge = sys.argv[1], sys.argv[2]
    if sys.argv[3:] and int(sys.argv[3]):
        # A thread of OpenBLAS reserves address space that it never uses.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[3]), int(sys.argv[3])))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what C code or a careless script prints is not an answer
    sys.path.append(folder)
    try:
        module = importlib.import_module(f"challenge_data.challenge_{challenge}")
    except BaseException as error:  # noqa: BLE001 - a script may also try to leave
        traceback.print_exc()
        sys.stdin.readline()
        print(json.dumps({"unloadable": import_error(error, folder)}), file=answers, flush=True)
        raise SystemExit(1) from None
    if not os.path.realpath(module.__file__ or "").startswith(os.path.realpath(folder)):
        raise SystemExit("the challenge was not loaded from the extracted bundle")
    own_pid = os.getpid()
    for line in sys.stdin:
        request = json.loads(line)
        answer = {"ready": True} if "ready" in request else run(module, request)
        if os.getpid() != own_pid:
            os._exit(0)  # a script forked, and its child came back here too
        print(json.dumps({**answer, "number": request.get("number")}), file=answers, flush=True)


if __name__ == "__main__":
    main()
