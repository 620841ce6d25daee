"""The choice of EvalAI's Python, installations for scripts, the worker's folder, and its end, as one text.

A Python is a shell script here, which notes what it is asked and answers as the files beside it say.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.hosted_worker import interpreter, process, requirements
from segjudge.platforms.evalai.hosted_worker.folder import WorkerFolder
from segjudge.platforms.evalai.hosted_worker.interpreter import PINNED_PYTHON, Interpreter
from segjudge.platforms.evalai.hosted_worker.process import DiedError, ProcessTerms, ScoringProcess, UnloadableError
from segjudge.system.errors import UsageError
from segjudge.system.processes import ExitCode
from tests.answers import fold
from tests.builders import written, zipped
from tests.calls import read_session, run_calls
from tests.platforms.damages import GOLDEN, new_folder

FILE = GOLDEN / "hosted_pythons.txt"
_PYTHON = r"""#!/bin/sh
here=BASE
folder=$(dirname "$(dirname "$0")")
for word in "$@"; do
  case "$word" in -I|-c) ;; *find_spec*) printf ' LACKING';; *sysconfig*) printf ' SITES';; *import_module*) printf ' IMPORT';; *) printf ' %s' "$word";; esac
done >> "$here/asked"
echo >> "$here/asked"
case "$*" in
  *"-m venv"*) mkdir "$4/bin" "$4/site" "$4/site/pip"; cp "$0" "$4/bin/python"; . "$here/venv";;
  *find_spec*) cat "$here/lacking";;
  *sysconfig*) echo "$folder/site"; echo "$folder/other";;
  *"-m pip"*) env | grep -E '^(PIP|CC|CXX|https_proxy|PATH)' | sed "s|:.*|:…|" | sort > "$here/settings"; . "$here/pip";;
  *import_module*) . "$here/import";;
esac
"""
#: What the Python beside these files answers where nothing else is said.
_ANSWERS = dict.fromkeys(("venv", "lacking", "pip", "import"), "")
_PIP_SCRIPT = {"main.py": "import os\nos.system('pip install x')\n"}
#: What a challenge's script is, and what the Python answers.
_SCRIPTS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "nothing is asked for": ({"main.py": "import json\n"}, {}),
    "blank requirements": ({"requirements.txt": " \n"}, {}),
    "requirements": ({"requirements.txt": "x==1\n", "main.py": ""}, {}),
    "requirements in a folder below": ({"data/requirements.txt": "x==1\n"}, {}),
    "packages that are there": ({"main.py": "import numpy, yaml\n"}, {}),
    "packages that are not": (
        {"main.py": "import yaml\n", "a/b.py": "from PIL import Image\n", "data/odd.py": "def f(:\n"},
        {"lacking": "PIL yaml\n"},
    ),
    "a script that calls pip": (_PIP_SCRIPT, {}),
    "all of it": ({**_PIP_SCRIPT, "requirements.txt": "x\n", "a.py": "import cv2, scipy\n"}, {"lacking": "scipy"}),
    "a truth with Python in it": ({"phase_data/phase_1/a.py": "import yaml\nos.system('pip')\n"}, {"lacking": "yaml"}),
    "ours": ({"phases.py": "", "scoring/phase.py": "", "runner/guard.py": "", "requirements.txt": "x"}, {}),
    "no environment": ({"requirements.txt": "x"}, {"venv": "echo 'no ensurepip'; exit 1"}),
    "requirements that there are not": (
        {"requirements.txt": "x"},
        {"pip": "echo Collecting; echo 'ERROR: No matching distribution'; echo 'ERROR: more'; echo last; exit 1"},
    ),
    "an index that is not reached": (
        {"requirements.txt": "x"}, {"pip": "echo 'WARNING: Retrying after …'; echo 'ERROR: No matching'; exit 1"}),
    "packages that cannot be had": ({"main.py": "import yaml\n"}, {"lacking": "yaml", "pip": "echo odd; exit 2"}),
    "an import that fails": (
        {"main.py": "'pip'\n"},
        {"import": "echo '  File \"/x/challenge_data/challenge_7/a/b.py\", line 3'; echo '  File \"/y.py\", line 4'; echo 'OSError: x'; exit 1"},
    ),
    "an import that fails elsewhere": ({"main.py": "'pip'\n"}, {"import": "echo 'ERROR: a'; echo 'OSError: x'; exit 1"}),
    "an import that says nothing": ({"main.py": "'pip'\n"}, {"import": "exit 3"}),
    "an import that is killed": ({"main.py": "'pip'\n"}, {"import": "kill -9 $$"}),
}  # fmt: skip


def _make_python(folder: Path, name: str = "base/bin/python", text: str = _PYTHON) -> str:
    written(folder, {name: text.replace("BASE", shlex.quote(str(folder)))})
    (folder / name).chmod(0o755)
    return str(folder / name)


def _try_install(python: Interpreter, folder: Path, script: Mapping[str, Any], box: str | None = None) -> Iterator[str]:
    worker = WorkerFolder()
    output = list[str]()
    try:
        written(Path(worker.script_folder(7)), script)
        made = requirements.install_requirements(python, worker, 7, box, output.append)
        yield from output
        if made == python:
            yield "the same Python"
        else:
            home = Path(made.path).parent.parent
            yield f"{made}"
            yield f"made: {sorted(str(path.relative_to(home)) for path in home.rglob('*') if path.is_file())}"
            yield f"inherited: {(home / 'site/inherited.pth').read_text()!r}"
            yield from (
                f"{name} begins with {(home / 'bin' / name).read_text().splitlines()[0]}"
                for name in ("pip", "pip3")
                if (home / "bin" / name).exists()
            )
    except UnloadableError as error:
        yield from (*output, f"{error}", *(f"log: {line}" for line in error.log.splitlines()))
    finally:
        yield f"environments: {len(list((folder / 'cache/segjudge').glob('worker-*/complete')))}"
        worker.remove()


def _settle(text: str, folder: Path) -> str:
    temporary = rf"{re.escape(tempfile.gettempdir())}/segjudge-worker-[0-9a-f]{{32}}"
    text = re.sub(temporary, "WORKER", text.replace(sys.executable, "PYTHON"))
    text = re.sub(r"worker-[0-9a-f]{16}", "worker-DIGEST", text.replace(str(folder), "FOLDER"))
    return re.sub(r"'[^']*/worker-3\.9\.txt'", "'PINS'", re.sub(r"=\S*/worker-3\.9\.txt", "=PINS", text))


def _list_installations() -> Iterator[str]:
    setting = {"PIP_INDEX_URL": "https://index.example", "https_proxy": "proxy", "PIP_TARGET": "x"}
    for name, (script, answers) in _SCRIPTS.items():
        others = {
            key: value for key, value in os.environ.items() if not re.match(r"PIP_|.*_proxy$", key, re.IGNORECASE)
        }
        with new_folder() as folder, mock.patch.dict(os.environ, {**others, **setting}, clear=True):
            os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
            python = Interpreter(_make_python(folder), "3.11" if name == "requirements" else PINNED_PYTHON, ("base",))
            written(folder, {**_ANSWERS, **answers})
            yield name
            for again in (False, True) if name in ("requirements", "requirements that there are not") else (False,):
                lines = [*_try_install(python, folder, script)]
                asked = (folder / "asked").read_text().splitlines() if (folder / "asked").exists() else []
                (folder / "asked").unlink(missing_ok=True)
                lines += [f"asked: {line.strip()}" for line in asked]
                if name in ("requirements", "packages that are not") and not again:
                    lines += [f"with {line}" for line in (folder / "settings").read_text().splitlines()]
                yield from (f"    {'again: ' if again else ''}{_settle(line, folder)}" for line in lines)


def _note_runs(runs: list[str], box: str | None, excess: str, code: ExitCode | None) -> Callable[..., Any]:
    """Note which commands may use that installation, and how the second one ends."""

    def run(arguments: list[str], bounds: Any, seconds: float, size: int, **how: Any) -> Any:
        folders = [os.path.basename(path) for path in bounds.folders]
        runs.append(f"{seconds} s, {size} bytes, in {os.path.basename(how['folder'])}, joined: {how['joins_streams']}")
        runs.append(f"{bounds.memory >> 20} MiB, {bounds.processes} processes, tmpfs {bounds.tmpfs}, {folders}")
        if box:
            assert arguments[0] == box
            runs.append(
                f"reads {[arguments[i + 1] for i, word in enumerate(arguments) if word == '--ro-bind-try'][-2:]}"
            )
            runs.append(f"writes {[arguments[i + 1] for i, word in enumerate(arguments) if word == '--bind']}")
        if "venv" not in arguments:
            return SimpleNamespace(code=code, excess=excess, output="said")
        _make_python(Path.cwd(), os.path.join(arguments[-1], "bin/python"))
        written(Path(arguments[-1]), {"site/pip/x": ""})
        return SimpleNamespace(code=ExitCode(0), excess="", output="")

    return run


def _list_bounds() -> Iterator[str]:
    asks, imports = {"requirements.txt": "x"}, _PIP_SCRIPT
    cases: list[tuple[Any, str | None, str, ExitCode | None]] = [
        (asks, None, "", None),
        (imports, None, "", None),
        (asks, None, "it uses much", ExitCode(-9)),
        (imports, None, "it uses much", ExitCode(-9)),
        (asks, "true", "", ExitCode(0)),
    ]
    for script, box, excess, code in cases:
        with new_folder() as folder:
            python, runs = Interpreter(_make_python(folder), PINNED_PYTHON, ("base",)), list[str]()
            written(folder, _ANSWERS)
            with mock.patch.object(requirements, "run_bounded", _note_runs(runs, box, excess, code)):
                lines = [*_try_install(python, folder, script, box)]
            yield f"{'in a sandbox' if box else 'without one'}, {excess or code}"
            yield from (f"    {_settle(line, folder)}" for line in [*dict.fromkeys(runs), *lines])


def _ask_no_pip(*arguments: str) -> str:
    """Return the output in place of pip's."""
    output = io.StringIO()
    with mock.patch.object(sys, "argv", ["pip", *arguments]), contextlib.redirect_stdout(output):
        try:
            exec(compile(requirements._NO_PIP, "pip", "exec"), {})
        except SystemExit as error:
            return f"{output.getvalue()}exit: {error}"
    return output.getvalue()


# ── the Python that is found ────────────────────────────────────────────────────────────────────────────────────────


def _answer(text: str) -> str:
    return f"#!/bin/sh\n{text}\n"


_REPORT = """echo warning; echo '["{}", "3.9", "/p", "/p", "/q", "/q"]'"""
#: What is named as the Python, and what it does.
_NAMED: dict[str, str] = {
    "good": _REPORT.format("/p/bin/python"),
    "good, without a path": _REPORT.format(""),
    "silent": "",
    "short": "echo '[]'",
    "a number": "echo 7",
    "much": f"echo {'x' * 300}",
    "failing": "echo first; echo last; exit 1",
    "failing by Python": "echo 'Traceback (most recent call last):' >&2; echo last >&2; exit 1",
    "failing with a long text": f"echo {'x' * 400} >&2; exit 1",
    "failing and silent": "exit 4",
}


def _list_interpreters() -> Iterator[str]:
    with new_folder() as folder:
        for name, text in _NAMED.items():
            path = _make_python(folder, f"named/{name.replace(' ', '-').replace(',', '')}", _answer(text))
            yield f"{name}: {_try_open(path, folder)}"
        for name, text in (("of nobody", "#!/nowhere/at/all\n"), ("no program", "not a program")):
            yield f"{name}: {_try_open(_make_python(folder, f'named/{name[-7:].strip()}', text), folder)}"
        os.symlink("named/good-without-a-path", "my-link")
        os.symlink("../my-link", "named/link")
        os.symlink("loop", "loop")
        (folder / "bin").mkdir()
        for name in ("./my-link", "named/link", "loop", "nothing", "./nothing", "my-link", "./bin"):
            yield f"{name}: {_try_open(name, folder)}"
        yield f"the folders of a loop: {len(interpreter._link_folders('loop'))}"
        search = Interpreter("/a/python", "3", ()).search_path
        yield f"its PATH: {search == '/a:' + os.environ['PATH']}"
        with mock.patch.dict(os.environ, {"PATH": "named"}):
            yield f"good in the PATH: {_try_open('good', folder)}"
            del os.environ["PATH"]
            yield f"without a PATH: {Interpreter('/a/python', '3', ()).search_path == '/a:' + os.defpath}"
        with mock.patch.object(interpreter, "_ANSWER_SECONDS", 0.2):
            path = _make_python(folder, "named/slow", _answer("exec sleep 9"))
            yield f"slow: {_try_open(path, folder)}"


def _try_open(name: str, folder: Path) -> str:
    try:
        text = str(Interpreter.open(name))
    except (HostError, UsageError) as error:
        text = str(error)
    return re.sub(r"x{40,}", lambda run: f"{len(run[0])} x", _settle(text, folder))


def _list_choices() -> Iterator[str]:
    """Yield the Python that acts as the worker, if several exist."""
    with new_folder() as folder:
        broken, numpy = _answer("exit 1"), 'case "$*" in *numpy*) exit 1;; esac\n'
        for name in (
            "asked",
            "variable",
            "root/.venv-worker/bin/python",
            "here/.venv-worker/bin/python",
            "path/python3.9",
        ):
            _make_python(folder, name, _answer(_REPORT.format(name)))
        steps = ["asked", "variable", "root", "here", "path"]
        for left in range(len(steps) + 1):
            there = steps[left:]
            os.environ.pop("SEGJUDGE_WORKER_PYTHON", None)
            environment = {"PATH": str(folder / "path") if "path" in there else "/nowhere"}
            environment |= {"SEGJUDGE_WORKER_PYTHON": f"{folder}/variable"} if "variable" in there else {}
            for name in {"root", "here"} - {*there}:
                _make_python(folder, f"{name}/.venv-worker/bin/python", broken)
            with mock.patch.dict(os.environ, environment), mock.patch.object(interpreter, "IMPORT_ROOT", "here"):
                results = Interpreter.for_worker(f"{folder}/asked" if "asked" in there else None, "root")
            yield f"{', '.join(there) or 'none'}: {'ours' if left == len(steps) else results.path}"
        _make_python(folder, "path/python3.9", _answer(numpy + _REPORT.format("path")))
        search = {"PATH": f"{folder}/path:{os.environ['PATH']}"}
        with mock.patch.dict(os.environ, search), mock.patch.object(interpreter, "IMPORT_ROOT", "here"):
            yield f"one without numpy: {'ours' if Interpreter.for_worker(None, 'root').path != 'path' else 'it'}"
        python = Interpreter("/p/python", "3.9", ("/p",))
        for name, text in {
            "a sandbox": "",
            "one that does not start": f"echo {'x' * 400} >&2; exit 1",
        }.items():
            _make_python(folder, "bwrap", _answer(text))
            for required in (False, True):
                with mock.patch.object(interpreter.sandbox, "find_sandbox", return_value=f"{folder}/bwrap"):
                    try:
                        output = str(python.find_sandbox(required=required))
                    except HostError as error:
                        output = str(error)
                output = re.sub(r"x{40,}", lambda run: f"{len(run[0])} x", _settle(output, folder))
                yield f"{name}{', which is required' if required else ''}: {output}"
        with mock.patch.object(interpreter.sandbox, "find_sandbox", return_value=None):
            yield f"no sandbox: {python.find_sandbox()}"


# ── the folder ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _list_folder() -> Iterator[str]:
    def tree(worker: WorkerFolder) -> list[str]:
        return sorted(str(path.relative_to(worker.path)) + "/" * path.is_dir() for path in Path(worker.path).rglob("*"))

    def open_path(path: str) -> str:
        return f"{path}: {Path(path).read_text()}"

    with new_folder() as folder:
        noted = list[str]()
        written(folder, {"answer.txt": "41", "script.zip": zipped({"__init__.py": "", "../odd.py": ""})})
        with zipfile.ZipFile("script.zip") as script:
            names = {
                "make": lambda: WorkerFolder(noted.append), "noted": noted, "script": script, "tree": tree,
                "open_path": open_path, "os": os, "Path": Path,
            }  # fmt: skip
            text = run_calls(read_session(FILE, "the worker's folder"), names)
        text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "RANDOM", _settle(text, folder))
        yield text.rstrip("\n")


# ── how a process ends ──────────────────────────────────────────────────────────────────────────────────────────────

_READ = 'read line; number=$(echo "$line" | sed \'s/.*"number": "\\([0-9a-f]*\\)".*/\\1/\'); answer() { echo "$1" > /proc/self/fd/$ANSWERS; }; '
#: What a process does with a request, and how long it may take.
_ENDS: dict[str, str] = {
    "it answers": _READ + 'answer "{\\"number\\": \\"$number\\", \\"a\\": 1}"; read more',
    "it answers twice": _READ + 'answer "{\\"number\\": \\"$number\\"}\n{}"; read more',
    "it cannot be loaded": _READ + 'answer "{\\"number\\": \\"$number\\", \\"unloadable\\": \\"x\\"}"; read more',
    "it answers another request": _READ + 'answer "{\\"number\\": \\"0\\"}"; read more',
    "it answers without a number": _READ + "answer '{}'; read more",
    "it answers with a list": _READ + "answer '[]'; read more",
    "it answers with half of JSON": _READ + "answer '{'; read more",
    "it answers with much": _READ + "head -c 3000 /dev/zero > /proc/self/fd/$ANSWERS; read more",
    "it answers with as much as it may": _READ + "head -c 2998 /dev/zero > /proc/self/fd/$ANSWERS; answer; read more",
    "it ends": "exit 3",
    "it is killed": "kill -9 $$",
    **{f"it ends with {code}": f"exit {code}" for code in (128, 129, 192, 193)},
    "it hangs": "exec sleep 9",
    "it hangs before it reads much": "exec sleep 9",
    "it reads much, and late": "sleep 0.3; " + _READ + 'answer "{\\"number\\": \\"$number\\"}"; read more',
    "nobody waits": "exec sleep 9",
}


def _list_ends() -> Iterator[str]:
    for name, text in _ENDS.items():
        for boxed in (False, True) if "exit 1" in text else (False,):
            with new_folder() as folder:
                # after the words of a Python come the program, the order, and the numbers of two descriptors
                arguments = [
                    "/bin/sh",
                    "-c",
                    f"ANSWERS=$2; echo said; echo wrong >&2; echo noted > /proc/self/fd/$3; {text}",
                ]
                terms = ProcessTerms({"PATH": os.environ["PATH"]}, str(folder), is_boxed=boxed)
                with mock.patch.multiple(process, _TICK=0.05, _FAREWELL=0.05, _ANSWER_BYTES=2999):
                    asked = ScoringProcess(arguments, {"worker": "remote", "memory": 0}, terms)
                    yield f"{name}{', in a sandbox' if boxed else ''}"
                    try:
                        seconds, sent = 0.25 if "hangs" in name else 30, "x" * (70_000 if "much" in name else 1)
                        for _ in range(2 if "twice" in name else 1):
                            answer = asked.ask({"x": sent}, seconds, lambda n=name: n == "nobody waits")
                            yield f"    {[key for key in answer if key != 'number']}, alive: {asked.alive}"
                    except DiedError as error:
                        yield f"    {type(error).__name__}: {error} | killed: {error.killed}, alive: {asked.alive}"
                    asked.close()
                    asked.close()
                    is_late = "hangs" in name or name == "nobody waits"  # and may have said nothing yet
                    output = "" if is_late else f", streams {asked.streams()}, log {asked.log()!r}"
                    yield f"    alive: {asked.alive}{output}"


def _start(terms: process.WorkerTerms, error: OSError) -> list[str]:
    """Return the command line of a worker's process, and the message if it cannot start."""
    noted, bounds = list[str](), list[str]()

    def child(arguments: list[str], streams: Any, *, environment: Mapping[str, str], folder: str) -> None:
        order = next(word for word in arguments if word.startswith("{"))
        kept_variables = {key: environment[key] for key in ("HOME", "TMPDIR", "PATH")}
        noted.extend([f"{arguments[0]} {order}", f"{kept_variables} in {folder}, {len(streams.passed)} pipes passed"])
        raise error

    def bound(*given: object, **more: object) -> None:
        bounds.append(f"{given} {more}")

    folder = SimpleNamespace(
        path="/w", temporary="/w/tmp", root="/w/compute", submissions="/w/compute/submission_files"
    )
    usage = SimpleNamespace(free=1 << 30)
    with (
        mock.patch.multiple(process, Child=child, TreeBounds=bound),
        mock.patch.object(process.shutil, "disk_usage", return_value=usage),
        mock.patch.dict(os.environ, {"PATH": "/bin"}),
    ):
        try:
            process.WorkerProcess(Interpreter("/p/python", "3.9", ()), folder, 7, terms)  # type: ignore[arg-type]
        except DiedError as death:
            return [*noted, *bounds, f"{death}, killed: {death.killed}"]
    raise AssertionError


def _list_bounds_of_workers() -> Iterator[str]:
    def disk(free: int) -> Any:
        with mock.patch.object(process.shutil, "disk_usage", lambda name: SimpleNamespace(free=free * (name == "a"))):
            return process.disk_bounds("a", "b")

    group = SimpleNamespace(enter=lambda words: ["group", *words])
    folder = SimpleNamespace(temporary="/w/tmp", root="/w/compute", submissions="/w/compute/submission_files")
    names = {
        "process": process, "disk": disk, "group": group, "start": _start,
        "enclosed": lambda terms: process._enclose(["python"], Interpreter("/p", "3.9", ()), folder, terms),  # type: ignore[arg-type]
    }  # fmt: skip
    yield run_calls(read_session(FILE, "what a worker may use"), names).rstrip("\n")


def _list_no_pip() -> Iterator[str]:
    with new_folder():
        Path("here").mkdir()
        yield run_calls(read_session(FILE, "what stands in pip's place"), {"pip": _ask_no_pip}).rstrip("\n")


def write_text() -> str:
    parts = {
        "what is installed for scripts": _list_installations,
        "within which bounds": _list_bounds,
        "what stands in pip's place": _list_no_pip,
        "Pythons that are named": _list_interpreters,
        "the Python that is chosen": _list_choices,
        "the worker's folder": _list_folder,
        "how a process ends": _list_ends,
        "what a worker may use": _list_bounds_of_workers,
    }
    texts = (f"── {title} ──\n" + "".join(f"{line}\n" for line in lines()) for title, lines in parts.items())
    return fold("".join(texts))


if __name__ == "__main__":
    FILE.write_text(write_text(), encoding="utf-8")
