"""The output and files of `interactive`, with a clock that calls advance, as one text."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from segjudge.commands import interactive
from segjudge.commands.shared import be_quiet
from segjudge.interactive import davis_session, server
from segjudge.system.extras import MissingExtraError
from tests.answers import Answers
from tests.pages import digest
from tests.transcript import run, settle

FILE = Path(__file__).with_name("interactions.txt")
#: Command lines, run one after the other in one folder; a line that begins with a colon names an event between.
COMMANDS = """
interactive demo --out scenes
interactive demo --out methods.py
interactive run methods:lines --root scenes --out runs --max-nb-interactions 2 --steps
interactive run methods:Lines --root scenes --out areas --max-nb-interactions 1 --metric J --images scenes/JPEGImages/480p
interactive run methods:lines --root scenes --out short --max-nb-interactions 2 --max-time 4 --quiet
interactive run methods:pictures --root scenes --out pictures --max-nb-interactions 1 --images scenes/ImageSets
interactive run methods:pictures --root scenes/Annotations/480p --layout davis2017 --out pictures --max-nb-interactions 1
interactive run methods:breaks --root scenes --out broken
interactive run methods:none --root scenes --out broken
interactive run methods:small --root scenes --out broken
interactive run methods:tired --root scenes --out tired --max-nb-interactions 2
interactive run methods:lines --root scenes --out tired --max-nb-interactions 2 --resume
interactive run methods:weary --root scenes --out weary --max-nb-interactions 2 --max-time 9
interactive run methods:breaks --root scenes --out weary --max-nb-interactions 2 --max-time 9 --resume
interactive run methods:Broken --root scenes --out broken
interactive run methods:absent --root scenes
interactive run methods --root scenes
interactive run absent:lines --root scenes
interactive run methods:lines
interactive run methods:lines --root absent
interactive run methods:lines --root scenes --subset test
interactive run methods:lines --root scenes --max-nb-interactions 0
interactive run methods:lines --root scenes --max-nb-interactions 17
interactive run methods:lines --root scenes --max-time 0
interactive run methods:lines --host http://127.0.0.1:9
interactive run methods:lines --host http://127.0.0.1:9 --user-key somebody
interactive run methods:lines --host http://me:secret@127.0.0.1:9 --user-key somebody
interactive run methods:lines --host http://me:secret@[::1 --user-key somebody
interactive run methods:lines --host http:// --user-key somebody
:a key is in the environment
interactive run methods:lines --host http://127.0.0.1:9
interactive plot runs.csv --out page
interactive plot a=runs.csv b=runs.csv --out page
interactive plot runs.csv short.csv --out page
interactive plot half=half.csv --out half
interactive plot half=half.csv --out half --root scenes
interactive plot runs.csv areas.csv --out page
interactive plot absent.csv --out page
interactive plot users --out page
interactive plot runs.csv --out users
interactive serve --root scenes
interactive serve --root scenes --users absent
interactive serve --root scenes --users users --port 0 --max-nb-interactions 0
interactive serve --root scenes --users users
interactive serve --root scenes --users users --port 0 --data kept --bind 0.0.0.0 --shuffle --max-time 7 --max-nb-interactions 3 --metric F --max-body 2 --max-runs 3 --max-pixels 5 --sessions 6 --sessions-per-sequence 7 --idle 8
interactive serve --root scenes --users users --bind ::1 --draw 2
interactive serve --root scenes --users users --bind localhost --subset test
interactive run methods:lines --root scenes --max-tmie 3
interactive --quiet run methods:lines --roots scenes
:the extra is not installed
interactive run methods:lines --root scenes
"""
_METHODS = """
import warnings
import numpy as np
from examples.interactive.baseline import lines
calls = 0
class Lines:
    def __call__(self, **told): return lines(**told)
class Broken:
    def __init__(self): raise RuntimeError("no weights")
def breaks(**told): raise KeyError("weights")
def none(**told): return None
def small(*, images, **told): return np.zeros((len(images), 2, 2))
def tired(**told):
    global calls
    calls += 1
    if calls > 2: raise ValueError("tired")
    return lines(**told)
def weary(**told):
    if not told["new_sequence"]: raise ValueError("weary")
    warnings.warn("of the method")
    return lines(**told)
def pictures(*, images, **told):
    print(len(images), images.paths[0][-12:])
    return lines(images=images, **told)
"""


def write_interactions() -> str:
    """Run the commands in a new folder; return everything that they print and write."""
    ticks = itertools.count(1_000_000, 0.5)
    times = SimpleNamespace(time=lambda: next(ticks), monotonic=lambda: next(ticks))
    cases = Answers()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="segjudge-"))
        stack.enter_context(contextlib.chdir(folder))
        stack.enter_context(patch.object(davis_session, "time", times))
        stack.enter_context(patch.object(server, "serve", lambda host, _port: print(host.terms, host.limits, sep="\n")))
        stack.enter_context(patch.object(interactive, "listen", _listen))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("always")
        stack.enter_context(patch.object(warnings, "showwarning", _show_warning))
        stack.enter_context(patch.dict(os.environ))
        stack.enter_context(patch.dict(sys.modules))
        stack.enter_context(patch.object(sys, "path", [*sys.path]))
        os.environ.pop("SEGJUDGE_USER_KEY", None)
        be_quiet(False)
        Path("methods.py").write_text(_METHODS)
        Path("users").write_text("ann ann-key-0123456789\nbob bob-key-0123456789\n")
        for line in filter(None, COMMANDS.splitlines()):
            if line.startswith(":"):
                _change(line[1:], stack)
                cases.happen(line[1:])
                continue
            output = run(line).replace(folder, "FOLDER")
            _name_reports()
            cases.add(f"segjudge {line}", _settle(settle(output)))
    return "\n".join(cases.texts)


def _listen(host: str, port: int) -> SimpleNamespace:
    return SimpleNamespace(getsockname=lambda: (host, port or 4711))


def _show_warning(message: Warning | str, *_place: object) -> None:
    print(f"warns: {message}", file=sys.stderr)


def _change(event: str, stack: contextlib.ExitStack) -> None:
    if event == "a key is in the environment":
        os.environ["SEGJUDGE_USER_KEY"] = "somebody"
    else:
        message = "segjudge.interactive needs the extra interactive (x is not installed): pip install x"
        stack.enter_context(patch.object(interactive, "_load_model", side_effect=MissingExtraError(message)))


def _name_reports() -> None:
    """Rename the reports without the time; a half-finished one has no summary."""
    for path in Path().glob("*/result_*.csv"):
        name = Path(f"{path.parent}.csv")
        for ending in (".csv", ".summary.json"):
            if path.with_suffix(ending).exists() and not name.with_suffix(ending).exists():
                shutil.copy(path.with_suffix(ending), name.with_suffix(ending))
        if path.parent.name == "runs" and not Path("half.csv").exists():
            rows = name.read_text().splitlines(keepends=True)
            Path("half.csv").write_text("".join(row for row in rows if "drift" not in row))
            shutil.copytree(path.with_suffix(".steps"), name.with_suffix(".steps"))


def _settle(text: str) -> str:
    text = re.sub(r"result_\d{8}_\d{6}(_\d+)?", "result_TIME", text)
    text = re.sub(r"(── scenes/\S+\.json ──\n).*", r"\1(not shown)", text)
    text = re.sub(r"(── \S+\.steps/\S+ ──\n).*", r"\1(not shown)", text)
    text = re.sub(r'(?m)^  File ".*\n(    .*\n)*', "", text)
    # Of a report the first rows, and a digest of the others.
    text = re.sub(
        r"(,session_id.*\n(?:\d.*\n){3})((?:\d.*\n)+)", lambda rows: f"{rows[1]}… {digest(rows[2].encode())}\n", text
    )
    text = re.sub(r"(?m)^(.{300}).{100,}$", lambda line: f"{line[1]}… {digest(line[0].encode())}", text)
    return re.sub(r"(?m)^── (scenes|page|half|kept|\.segjudge)/.* ──\n\(not shown\)\n?", "", text)


if __name__ == "__main__":
    FILE.write_text(write_interactions(), encoding="utf-8")
