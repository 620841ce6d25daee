"""The choice of EvalAI's Python, and installations for scripts.

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
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from segjudge.platforms.evalai.hosted_worker import interpreter, requirements
from segjudge.platforms.evalai.hosted_worker.folder import WorkerFolder
from segjudge.platforms.evalai.hosted_worker.interpreter import PINNED_PYTHON, Interpreter
from segjudge.platforms.evalai.hosted_worker.process import UnloadableError
from segjudge.system.processes import ExitCode
from tests.builders import written
from tests.calls import outcome

PYTHON = r"""#!/bin/sh
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
ANSWERS = dict.fromkeys(("venv", "lacking", "pip", "import"), "")
CALLS_PIP = {"main.py": "import os\nos.system('pip install x')\n"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter an empty folder, with settings of pip and no others."""
    monkeypatch.chdir(tmp_path)
    for name in [*os.environ]:
        if re.match(r"PIP_|.*_proxy$", name, re.IGNORECASE):
            monkeypatch.delenv(name)
    variables = {"PIP_INDEX_URL": "https://index.example", "https_proxy": "proxy", "PIP_TARGET": "x"}
    for name, value in {**variables, "XDG_CACHE_HOME": f"{tmp_path}/cache"}.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def make_python(folder: Path, name: str = "base/bin/python", text: str = PYTHON) -> str:
    written(folder, {name: text.replace("BASE", shlex.quote(str(folder)))})
    (folder / name).chmod(0o755)
    return str(folder / name)


def settle(text: str, folder: Path) -> str:
    """Return the text without random names and the folders of this machine."""
    temporary = rf"{re.escape(tempfile.gettempdir())}/segjudge-worker-[0-9a-f]{{32}}"
    text = re.sub(temporary, "WORKER", text.replace(sys.executable, "PYTHON"))
    text = re.sub(rf"{re.escape(str(folder))}/cache/segjudge/worker-[0-9a-f]{{16}}", "ENV", text)
    return re.sub(r"[^ '=]*/worker-3\.9\.txt", "PINS", text).replace(str(folder), "FOLDER")


@contextlib.contextmanager
def worker_with(script: Mapping[str, Any]) -> Iterator[WorkerFolder]:
    worker = WorkerFolder()
    try:
        written(Path(worker.script_folder(7)), script)
        yield worker
    finally:
        worker.remove()


class Installing:
    """An installation for a script, with what it said, made and asked of the Python."""

    def __init__(
        self, folder: Path, script: Mapping[str, Any], answers: Mapping[str, str], version: str = PINNED_PYTHON
    ) -> None:
        python = Interpreter(make_python(folder), version, ("base",))
        written(folder, {**ANSWERS, **answers})
        self.said, self.error, self.log, self.files = list[str](), "", "", list[str]()
        self.made: Interpreter | None = None
        (folder / "asked").unlink(missing_ok=True)
        with worker_with(script) as worker:
            try:
                made = requirements.install_requirements(python, worker, 7, None, self.said.append)
                self.made = None if made == python else made
            except UnloadableError as error:
                self.error, self.log = str(error).removeprefix("evaluation_script cannot be loaded: "), error.log
            asked = (folder / "asked").read_text() if (folder / "asked").exists() else ""
            self.asked = [settle(line.strip(), folder) for line in asked.splitlines()]
        self.complete = len([*(folder / "cache/segjudge").glob("worker-*/complete")])
        if self.made:
            self.home = Path(self.made.path).parent.parent
            self.files = sorted(str(path.relative_to(self.home)) for path in self.home.rglob("*") if path.is_file())


MAKES = ["-m venv ENV", "SITES", "SITES"]
INSTALLS = "-m pip install --no-input --progress-bar off"
LISTED, ONLY_ONCE = f"{INSTALLS} -r ENV/requirements.txt", "IMPORT WORKER/compute challenge_data.challenge_7"
FILES = ["bin/python", "complete", "site/inherited.pth"]
PIPS = ["bin/pip", "bin/pip3", "site/pip/__main__.py"]


@pytest.mark.parametrize(
    ("script", "lacking", "asked", "files"),
    [
        ({"main.py": "import json\n"}, "", [], []),
        ({"requirements.txt": " \n"}, "", [], []),
        ({"data/requirements.txt": "x==1\n"}, "", [], []),
        ({"main.py": "import numpy, yaml\n"}, "", ["LACKING numpy yaml"], []),
        ({"phase_data/phase_1/a.py": "import yaml\nos.system('pip')\n"}, "yaml", [], []),  # a truth with Python in it
        ({"phases.py": "", "scoring/phase.py": "", "runner/guard.py": "", "requirements.txt": "x"}, "", [], []),  # ours
        ({"requirements.txt": "x==1\n", "main.py": ""}, "", [*MAKES, LISTED], ["requirements.txt"]),
        (
            {"main.py": "import yaml\n", "a/b.py": "from PIL import Image\n", "data/odd.py": "def f(:\n"}, "PIL yaml\n",
            ["LACKING yaml PIL", *MAKES, f"{INSTALLS} pillow PyYAML"], [],
        ),
        (CALLS_PIP, "", [*MAKES, ONLY_ONCE], PIPS),
        (
            {**CALLS_PIP, "requirements.txt": "x\n", "a.py": "import cv2, scipy\n"}, "scipy",
            ["LACKING scipy", *MAKES, f"{INSTALLS} scipy", LISTED, ONLY_ONCE], ["requirements.txt", *PIPS],
        ),
    ],
)  # fmt: skip
def test_a_script_gets_what_it_asks_for(
    script: dict[str, str], lacking: str, asked: list[str], files: list[str], folder: Path
) -> None:
    made = Installing(folder, script, {"lacking": lacking})
    assert (made.error, made.asked) == ("", asked)
    if "-m venv ENV" not in asked:
        assert (made.made, made.said, made.complete) == (None, [], 0)
        return
    assert made.said == [
        "Installing the evaluation script's requirements once, over the network from this machine's package index …"
    ]
    assert (made.files, made.complete) == (sorted([*FILES, *files]), 1)
    assert made.made == Interpreter(f"{made.home}/bin/python", PINNED_PYTHON, (str(made.home), "base"))
    assert (made.home / "site/inherited.pth").read_text() == f"{folder}/base/site\n{folder}/base/other\n"
    for name in ("pip", "pip3") if "bin/pip" in files else ():
        assert (made.home / "bin" / name).read_text().splitlines()[0] == f"#!{made.home}/bin/python"


@pytest.mark.long
@pytest.mark.parametrize(
    ("script", "version", "pins"),
    [
        ({"requirements.txt": "x==1\n"}, "3.11", []),
        ({"main.py": "import yaml\n"}, PINNED_PYTHON, ["PIP_BUILD_CONSTRAINT=PINS", "PIP_CONSTRAINT=PINS"]),
    ],
)
def test_pip_has_the_settings_of_the_machine_and_no_compiler(
    script: dict[str, str], version: str, pins: list[str], folder: Path
) -> None:
    made = Installing(folder, script, {"lacking": "yaml" if pins else ""}, version)
    assert (made.error, made.made and made.made.version) == ("", version)
    settings = [settle(line, folder) for line in (folder / "settings").read_text().splitlines()]
    always = ["PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_INDEX_URL=https:…", "https_proxy=proxy"]
    assert sorted(settings) == sorted(["CC=/bin/false", "CXX=/bin/false", "PATH=ENV/bin:…", *always, *pins])


ASKS, NO_MATCH = {"requirements.txt": "x"}, "requirements.txt cannot be installed"
IMPORTS = {"main.py": "'pip'\n"}
DEEP = '  File "/x/challenge_data/challenge_7/a/b.py", line 3\n  File "/y.py", line 4\nOSError: x'


@pytest.mark.parametrize(
    ("script", "answers", "error", "log", "asked"),
    [
        (
            ASKS, {"venv": "echo 'no ensurepip'; exit 1"},
            "its environment cannot be created: no ensurepip", "no ensurepip", MAKES[:1],
        ),
        (
            ASKS, {"pip": "echo Collecting; echo 'ERROR: No matching distribution'; echo 'ERROR: more'; echo last; exit 1"},
            f"{NO_MATCH}: No matching distribution", "Collecting\nERROR: No matching distribution\nERROR: more\nlast", [*MAKES, LISTED],
        ),
        (
            ASKS, {"pip": "echo 'WARNING: Retrying after …'; echo 'ERROR: No matching'; exit 1"},
            f"{NO_MATCH}: the package index could not be reached", "WARNING: Retrying after …\nERROR: No matching", [*MAKES, LISTED],
        ),
        (
            {"main.py": "import yaml\n"}, {"lacking": "yaml", "pip": "echo odd; exit 2"},
            "the worker's own packages cannot be installed: odd", "odd", ["LACKING yaml", *MAKES, f"{INSTALLS} PyYAML"],
        ),
        (IMPORTS, {"import": f"echo '{DEEP}'; exit 1"}, "OSError: x (a/b.py, line 3)", DEEP, [*MAKES, ONLY_ONCE]),
        (IMPORTS, {"import": "echo 'ERROR: a'; echo 'OSError: x'; exit 1"}, "OSError: x", "ERROR: a\nOSError: x", [*MAKES, ONLY_ONCE]),
        (IMPORTS, {"import": "exit 3"}, "ended with exit code 3", "", [*MAKES, ONLY_ONCE]),
        (IMPORTS, {"import": "kill -9 $$"}, "was killed by SIGKILL", "", [*MAKES, ONLY_ONCE]),
    ],
)  # fmt: skip
def test_a_failed_installation_is_a_sentence_with_its_log(
    script: dict[str, str], answers: dict[str, str], error: str, log: str, asked: list[str], folder: Path
) -> None:
    made = Installing(folder, script, answers)
    assert (made.error, made.log.rstrip("\n"), made.asked, made.complete) == (error, log, asked, 0)


@pytest.mark.parametrize(
    ("script", "box", "excess", "code", "error"),
    [
        (ASKS, None, "", None, NO_MATCH),
        (CALLS_PIP, None, "", None, "it takes too long to import"),
        (ASKS, None, "it uses much", ExitCode(-9), f"{NO_MATCH}: it uses much"),
        (CALLS_PIP, None, "it uses much", ExitCode(-9), "it cannot be imported: it uses much"),
        (ASKS, "true", "", ExitCode(0), None),
    ],
)
def test_an_installation_has_bounds(
    script: Any, box: str | None, excess: str, code: ExitCode | None, error: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    runs: list[str] = []

    def run(arguments: list[str], bounds: Any, seconds: float, size: int, **how: Any) -> Any:
        assert [os.path.basename(path) for path in [*bounds.folders, how["folder"]]][::2] == ["compute", "compute"]
        assert [settle(path, folder) for path in bounds.folders][1] == "ENV"
        runs.append(
            f"{seconds} s, {size} bytes, {bounds.memory >> 20} MiB, {bounds.processes} processes, tmpfs {bounds.tmpfs}, {how['joins_streams']}"
        )
        if box:
            assert arguments[0] == box
            read, write = ([arguments[i + 1] for i, word in enumerate(arguments) if word == kind] for kind in ("--ro-bind-try", "--bind"))  # fmt: skip
            runs.append(settle(f"reads {' '.join(read[-2:])}, writes {' '.join(write)}", folder))
        if "venv" not in arguments:
            return SimpleNamespace(code=code, excess=excess, output="said")
        make_python(Path.cwd(), os.path.join(arguments[-1], "bin/python"))
        written(Path(arguments[-1]), {"site/pip/x": ""})
        return SimpleNamespace(code=ExitCode(0), excess="", output="")

    python = Interpreter(make_python(folder), PINNED_PYTHON, ("base",))
    written(folder, ANSWERS)
    monkeypatch.setattr(requirements, "run_bounded", run)
    with worker_with(script) as worker:
        made = outcome(lambda: requirements.install_requirements(python, worker, 7, box, lambda _: None))
    if error:
        assert made == f"UnloadableError: evaluation_script cannot be loaded: {error}"
    tmpfs = ("/dev/shm", "/tmp") if box else ()
    boxed = ["reads base PINS, writes WORKER/compute ENV"] if box else []
    assert [*dict.fromkeys(runs)] == [f"1800.0 s, 65536 bytes, 8192 MiB, 1024 processes, tmpfs {tmpfs}, True", *boxed]


REFUSED = "packages are installed here only while the script is imported; name it in requirements.txt"


@pytest.mark.parametrize(
    ("version", "refused"),
    [
        ("install numpy", ""), ("install -q numpy>=1 numpy[x] numpy", ""), ("install -r nothing-such", ""), ("install here", ""),
        ("install https://x.org/nothing-such", ""), ("list nothing-such", ""), ("install", ""),
        ("install nothing-such", "nothing-such"), ("install numpy nothing-such==1", "nothing-such==1"),
    ],
)  # fmt: skip
def test_pip_only_installs_while_a_script_is_imported(
    version: str, refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("here").mkdir()
    monkeypatch.setattr(sys, "argv", ["pip", *version.split()])
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        try:
            exec(compile(requirements._NO_PIP, "pip", "exec"), {})
        except SystemExit as error:
            print(f"exit: {error}")
    assert output.getvalue().strip() == (f"exit: {refused}: {REFUSED}" if refused else "installed already")


# ── the Python that is found ────────────────────────────────────────────────

REPORT = """echo warning; echo '["{}", "3.9", "/p", "/p", "/q", "/q"]'"""
GOOD = REPORT.format("/p/bin/python")


def open_python(name: str, folder: Path) -> str:
    """Return the path and the folders of an interpreter, or the end of its error."""
    made = outcome(lambda: Interpreter.open(name))
    if isinstance(made, Interpreter):
        assert made.version == "3.9"
        return " ".join([made.path, *made.folders]).replace(str(folder), "FOLDER")
    return re.sub(r"^(HostError|UsageError): --python ", "", made).replace(str(folder), "FOLDER")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD, "/p/bin/python /p /q"),
        (REPORT.format(""), "FOLDER/named /p /q"),
        ("", "FOLDER/named: does not answer as Python does ('')"),
        ("echo '[]'", "FOLDER/named: does not answer as Python does ('[]')"),
        ("echo 7", "FOLDER/named: does not answer as Python does ('7')"),
        (f"echo {'x' * 300}", f"FOLDER/named: does not answer as Python does ('{'x' * 200}')"),
        ("echo first; echo last; exit 1", "FOLDER/named: does not run (first)"),
        ("echo 'Traceback (most recent call last):' >&2; echo last >&2; exit 1", "FOLDER/named: does not run (last)"),
        (f"echo {'x' * 400} >&2; exit 1", f"FOLDER/named: does not run ({'x' * 300})"),
        ("exit 4", "FOLDER/named: does not run (exit code 4)"),
    ],
)
def test_a_named_python_answers_or_is_refused(text: str, expected: str, folder: Path) -> None:
    assert open_python(make_python(folder, "named", f"#!/bin/sh\n{text}\n"), folder) == expected


def test_a_python_is_a_file_a_link_or_a_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_python(folder, "named/good", f"#!/bin/sh\n{GOOD}\n")
    make_python(folder, "named/silent", f"#!/bin/sh\n{REPORT.format('')}\n")
    make_python(folder, "nobody", "#!/nowhere/at/all\n")
    make_python(folder, "program", "not a program")
    for link, target in (("my-link", "named/silent"), ("named/link", "../my-link"), ("loop", "loop")):
        os.symlink(target, link)
    (folder / "bin").mkdir()
    missing = "there is no such command or file; name an interpreter"
    for name, expected in (
        ("./nobody", "./nobody: does not run (No such file or directory)"),
        ("./program", "./program: does not run (Exec format error)"),
        ("./my-link", "FOLDER/my-link /p /q FOLDER/named"),
        ("my-link", "FOLDER/my-link /p /q FOLDER/named"),
        ("named/link", "FOLDER/named/link /p /q FOLDER FOLDER/named"),
        ("loop", f"loop: {missing}"),
        ("nothing", f"nothing: {missing}"),
        ("./nothing", f"./nothing: {missing}"),
        ("./bin", "./bin: does not run (Permission denied)"),
    ):
        assert open_python(name, folder) == expected
    assert len(interpreter._folders_of_links("loop")) == 40
    assert Interpreter("/a/python", "3", ()).search_path == f"/a:{os.environ['PATH']}"
    monkeypatch.setattr(interpreter, "_ANSWER_SECONDS", 0.2)
    slow = make_python(folder, "slow", "#!/bin/sh\nexec sleep 9\n")
    assert open_python(slow, folder) == "FOLDER/slow: does not run (it did not answer in 0 seconds)"
    monkeypatch.setattr(interpreter, "_ANSWER_SECONDS", 60)
    monkeypatch.setenv("PATH", "named")
    assert open_python("good", folder) == "/p/bin/python /p /q"
    monkeypatch.delenv("PATH")
    assert Interpreter("/a/python", "3", ()).search_path == f"/a:{os.defpath}"


STEPS = ("asked", "variable", "root/.venv-worker/bin/python", "here/.venv-worker/bin/python", "path/python3.9")


@pytest.mark.parametrize("first", range(len(STEPS) + 1))
def test_the_first_of_several_pythons_acts_as_the_worker(
    first: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = STEPS[first:]
    for name in STEPS:
        make_python(folder, name, f"#!/bin/sh\n{REPORT.format(name) if name in there else 'exit 1'}\n")
    monkeypatch.delenv("SEGJUDGE_WORKER_PYTHON", raising=False)
    if "variable" in there:
        monkeypatch.setenv("SEGJUDGE_WORKER_PYTHON", f"{folder}/variable")
    monkeypatch.setenv("PATH", str(folder / "path") if there else "/nowhere")
    monkeypatch.setattr(interpreter, "IMPORT_ROOT", "here")
    made = Interpreter.for_worker(f"{folder}/asked" if "asked" in there else None, "root")
    assert made.path == (there[0] if there else Interpreter.for_worker(None, "nowhere").path)
    assert (made.path in STEPS) == bool(there)


def test_a_python_without_numpy_is_not_chosen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEGJUDGE_WORKER_PYTHON", raising=False)
    make_python(folder, "path/python3.9", f'#!/bin/sh\ncase "$*" in *numpy*) exit 1;; esac\n{REPORT.format("path")}\n')
    monkeypatch.setenv("PATH", f"{folder}/path:{os.environ['PATH']}")
    monkeypatch.setattr(interpreter, "IMPORT_ROOT", "here")
    assert Interpreter.for_worker(None, "root").path != "path"


@pytest.mark.parametrize(
    ("text", "installed", "required"),
    [
        ("", "bwrap", "bwrap"),
        (
            f"echo {'x' * 400} >&2; exit 1", None,
            f"HostError: --require-sandbox: /p/python does not run in the sandbox ({'x' * 300}); name another Python",
        ),
        (None, None, None),
    ],
)  # fmt: skip
def test_a_python_runs_in_the_sandbox_or_without_it(
    text: str | None, installed: str | None, required: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = None if text is None else make_python(folder, "bwrap", f"#!/bin/sh\n{text}\n")
    monkeypatch.setattr(interpreter.sandbox, "find_sandbox", lambda **_: box)
    monkeypatch.chdir("/")
    python = Interpreter("/p/python", "3.9", ("/p",))
    for need, expected in ((False, installed), (True, required)):
        made = outcome(lambda need=need: python.find_sandbox(required=need))
        assert (made and made.replace(f"{folder}/", "")) == expected
