"""The actions, messages and files of set-ups, with programs that only record their arguments, as one text."""

from __future__ import annotations

import compileall
import contextlib
import errno
import fcntl
import io
import itertools
import os
import re
import shutil
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from segjudge.kernel import compiling
from segjudge.set_up import environment
from segjudge.set_up import main as command
from segjudge.set_up.environment import PythonEnvironment, SetUpError
from tests.answers import count_repeats, fold_sections, lay

FILE = Path(__file__).with_name("sessions.txt")
#: uv: makes folders, and fails with the words of a file.
_UV = """#!/bin/sh
[ "$1" = --version ] && echo uv 1.0 && exit
echo "  $(env | grep -E '^(UV_|PIP_|SSL|ALL_PROXY|PYTHON)' | sort | tr '\\n' ' ')uv $*" >> "$SAID"
[ "$1" = venv ] && { for folder; do :; done; mkdir -p "$folder/bin" "$folder/lib/python3.11/site-packages"
  ln -s "${SAID%/said}/tools/true" "$folder/bin/python"; touch "$folder/lib/python3.11/site-packages/__editable___segjudge_finder.py"; }
echo "Resolved 3 packages"; echo "Using Python 3.11"; echo " + numpy==1.26.4"; echo "Bytecode compiled"
[ -e "$FAULT" ] && cat "$FAULT" && exit 2
exit 0
"""
#: Python with pip, as far as it is asked.
_PYTHON = """#!/bin/sh
[ "$*" = "-I -m pip --version" ] && { [ -e "$NO_PIP" ] && exit 1; echo pip 1.0; exit; }
[ "$*" = "-I -m pip config list" ] && { cat "$CONFIG" 2> /dev/null; exit; }
case "$*" in *sys.version_info*) echo "$0"; exit;; esac
echo "  python $*" | sed "s/-c .*/-c …/" >> "$SAID"
for folder; do :; done
case "$*" in
  *" install "*) [ -e "$FAULT" ] && cat "$FAULT" && exit 2; mkdir -p "$8/bin"; cp "$SOURCE" "$8/bin/uv";;
esac
exit 0
"""
#: What the sessions themselves do without.
_COMPILE_KERNEL = command._compile_kernel
#: How pip is configured, in its own form.
_CONFIG = r"""global.index-url='https://index.test/simple'
global.extra-index-url='https://more.test\nhttps://most.test'
global.find-links='/some /other'
global.timeout='30'
global.proxy='it\'s'
install.no-index='Yes'
install.cert='/certificate'
install.timeout='40'
search.retries='3'
"""
_DIGEST = re.compile(r"\b[0-9a-f]{12}\b")


class _Session:
    """A small checkout, whose programs are scripts."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.checkout = folder, folder / "checkout"
        self.said = folder / "said"
        for file in {name for names in environment._FILES.values() for name in names}:
            (self.checkout / file).parent.mkdir(parents=True, exist_ok=True)
            (self.checkout / file).write_text(file)
        for name in ("uv", "pip"):
            file = {"pip": "toolkit"}.get(name, name)
            (self.checkout / f"packaging/locks/{file}.txt").write_text(f"{name}==1.0 --hash=sha256:00\n")
        (folder / "home/.cache").mkdir(parents=True)
        (folder / "programs").mkdir()
        self.write("hidden/uv", _UV)
        self.write("python", _PYTHON)
        self.write("programs/uv", _UV)
        (folder / "tools").mkdir()
        for tool in ("sh", "env", "grep", "sort", "tr", "sed", "mkdir", "ln", "touch", "cat", "cp", "true"):
            (folder / "tools" / tool).symlink_to(str(shutil.which(tool)))
        self.lines: list[str] = []
        self._digests: list[str] = []
        self._listed = ""

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def play(self, title: str, action: Callable[[], object], **variables: str) -> None:
        """Act, and note messages, the programs' arguments, the outcome, and the files."""
        names = {name.upper(): str(self.folder / name) for name in ("said", "fault", "no_pip", "config")}
        fixed = {"HOME": str(self.folder / "home"), "PATH": f"{self.folder}/programs:{self.folder}/tools", **names}
        output, printed = io.StringIO(), io.TextIOWrapper(io.BytesIO())
        seconds = itertools.count(0, 7)
        with (
            patch.dict(os.environ, {**fixed, "SOURCE": str(self.folder / "hidden/uv"), **variables}, clear=True),
            patch.object(environment, "CHECKOUT", str(self.checkout)),
            patch.object(environment, "ENVIRONMENTS", str(self.checkout / ".environments")),
            patch.object(command, "CHECKOUT", str(self.checkout)),
            patch.object(command, "_compile_kernel", lambda: None),
            patch.object(command, "mark_in_use", lambda folder: print(f"in use: {folder}", file=output)),
            patch.object(sys, "executable", str(self.folder / "python")),
            patch.object(ssl, "get_default_verify_paths", lambda: ("/certificates", None)),
            patch.object(time, "monotonic", lambda: next(seconds)),
            patch.object(
                compileall,
                "compile_dir",
                lambda folder, quiet: print(f"compiles {folder} {quiet}", file=output),
            ),
            patch.object(sys, "stdout", printed),
            contextlib.redirect_stderr(output),
        ):
            try:
                result = str(action())
            except (SetUpError, OSError) as error:
                result = f"{type(error).__name__}: {error}"
        programs = self.said.read_text() if self.said.exists() else ""
        self.said.unlink(missing_ok=True)
        shown = printed.buffer.getvalue().decode()  # type: ignore[attr-defined]
        text = self._settle(f"# {title}\n{output.getvalue()}{programs}{shown}→ {result}")
        listed, before = self._list(), self._listed
        gone = [f"gone {line.strip()}" for line in before.splitlines() if line not in listed.splitlines()]
        new = [f"new {line.strip()}" for line in listed.splitlines() if line not in before.splitlines()]
        self.lines.append(
            "; ".join([text, *gone, *new]).replace("FOLDER/checkout/.environments", "ENVIRONMENTS") + "\n"
        )
        self._listed = listed

    def _settle(self, text: str) -> str:
        """Number digests in the order of their appearance."""
        self._digests += dict.fromkeys(item for item in _DIGEST.findall(text) if item not in self._digests)
        text = _DIGEST.sub(lambda found: str(1 + self._digests.index(found[0])), text)
        return re.sub(rf"→ {os.getpid()}$", "→ PID", text.replace(str(self.folder), "FOLDER"))

    def _list(self) -> str:
        root = self.checkout / ".environments"
        entries = [
            f"  {self._settle(path.name)}" + ("" if path.is_file() else f": {' '.join(sorted(os.listdir(path)))}")
            for path in root.iterdir()
        ]
        links = [path for path in self.checkout.glob(".venv*") if path.is_symlink()]
        lines = [*entries, *(self._settle(f"  {path.name} → {os.readlink(path)}") for path in links)]
        return "".join(f"{line}\n" for line in sorted(lines))

    def environments(self, name: str = "") -> list[Path]:
        return sorted((self.checkout / ".environments").glob(f"{name}*-*/"))

    def age(self) -> None:
        """Let every environment be long unused."""
        for path in self.environments():
            os.utime(path / "in-use", (1, 1))

    def change(self) -> None:
        with open(self.checkout / "pyproject.toml", "a", encoding="utf-8") as file:
            file.write("more")


def write_sessions(folder: Path) -> str:
    session = _Session(folder)
    _play_making(session)
    _play_repairs(session)
    _play_faults(session)
    _play_settings(session)
    _play_pythons(session)
    _play_command(session)
    text = count_repeats("\n".join(session.lines)).replace(_USUAL, "(usual) ")
    return _shorten(fold_sections(_MADE.sub(_tell_making, text), "# ")) + "\n"


#: The usual settings of uv, and the messages of an environment that was made.
_USUAL = "PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_REQUIRE_VIRTUALENV=0 PIP_USER=0 UV_NATIVE_TLS=true UV_SYSTEM_CERTS=true "
_MADE = re.compile(
    r"Setting up (.*): downloading and installing packages…\n((?:Downloading uv.*\n)?  Resolved .*)\nSet up in 7 s\.\n"
)


def _tell_making(made: re.Match[str]) -> str:
    return f"Sets up {made[1]}: {'; '.join(line.strip() for line in made[2].splitlines())}\n"


def _shorten(text: str) -> str:
    """Return the text with each case of one line behind its title, if both fit."""
    cases = (case.splitlines() for case in re.split(r"(?m)\n+(?=#|certificates)", text))
    return "\n".join("\n".join(lay(title, lines, "  ")) for title, *lines in cases)


def _ensure(kind: str, extra: str = "") -> Callable[[], str]:
    return lambda: PythonEnvironment(kind, extra).ensure_folder()


def _play_making(session: _Session) -> None:
    """Make each environment; old ones are removed."""
    session.play("a first environment", _ensure("toolkit", "test"))
    hooks = [*session.checkout.glob(".environments/*/lib/*/site-packages/*")]
    session.lines.append(
        "".join(f"{hook.name}: {len(hook.read_text().splitlines())} lines\n" for hook in sorted(hooks))
    )
    session.play("the same again", _ensure("toolkit", "test"))
    session.play("one with fewer packages is there", _ensure("toolkit"))
    session.play("the worker's, where no Python 3.9 is", _ensure("worker"))
    session.write("programs/python3.9", _PYTHON)
    session.age()
    with open(session.checkout / "packaging/locks/worker.txt", "a", encoding="utf-8") as file:
        file.write("more")
    session.play("the worker's, with Python 3.9; the old one goes", _ensure("worker"), PYTHONDONTWRITEBYTECODE="1")
    session.play("the client's", _ensure("client"))
    session.change()
    session.play(
        "other dependencies: what the link had is there again, and the old one stays a moment", _ensure("toolkit")
    )
    session.age()
    session.play("later it goes", _ensure("toolkit"))
    session.age()
    old = session.environments("toolkit")[0]
    with _held(old / "in-use", fcntl.LOCK_SH):
        session.change()
        session.play("one that is in use stays", _ensure("toolkit", "all"))
        session.age()
        session.play("as long as it is used", _ensure("toolkit", "all"))
    session.play("and no longer", _ensure("toolkit", "all"))


def _play_repairs(session: _Session) -> None:
    """Meet a broken environment, an obstructed link, and another process at work."""
    (session.environments("client")[0] / "stamp").unlink()
    session.play("one that was never finished is made again", _ensure("client"))
    python = session.environments("client")[0] / "bin/python"
    python.unlink()
    session.play("so is one whose interpreter is gone", _ensure("client"))
    failing = session.environments("client")[0] / "bin/python"
    failing.unlink()
    failing.symlink_to(session.write("failing", "#!/bin/sh\nexit 1\n"))
    session.play("and one whose interpreter fails", _ensure("client"))
    (session.environments("client")[0] / "bin/python").unlink()
    with _held(session.environments("client")[0] / "in-use", fcntl.LOCK_SH):
        session.play("but not while it is used", _ensure("client"))
    (session.environments("client")[0] / "bin/python").symlink_to(str(shutil.which("true")))
    link = session.checkout / ".venv-client"
    link.unlink()
    link.mkdir()
    session.play("a folder that is not ours", _ensure("client"))
    link.rmdir()
    link.symlink_to("nowhere")
    session.play("a link that leads nowhere", _ensure("client"))
    locks = [os.open(session.checkout / ".environments/client.lock", os.O_RDWR)]
    fcntl.flock(locks[0], fcntl.LOCK_EX)
    os.pwrite(locks[0], b"4711", 0)
    os.ftruncate(locks[0], 4)
    link.unlink()

    say = environment.say

    def say_and_release(text: str) -> None:
        say(text)
        if locks:
            os.close(locks.pop())

    with patch.object(environment, "say", say_and_release):
        session.play("another process sets up the same", _ensure("client"))
    with patch.object(fcntl, "flock", side_effect=OSError(errno.ENOLCK, "No locks available")):
        link.unlink()
        session.play("a file system without locks", _ensure("client"))
    _play_no_access(session, link)


def _play_no_access(session: _Session, link: Path) -> None:
    """Meet old environments that another process sets up, and a read-only checkout."""
    old = session.checkout / ".environments/toolkit-test-000000000000"
    old.mkdir()
    (old / "in-use").touch()
    os.utime(old / "in-use", (1, 1))
    lock = os.open(session.checkout / ".environments/toolkit-test.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with patch.object(environment, "say", side_effect=AssertionError("it waits")):
        session.play("an old one that another process is about to set up again", _ensure("client"))
    os.close(lock)
    link.unlink()
    link.symlink_to("nowhere")
    with patch.object(os, "symlink", side_effect=PermissionError(errno.EACCES, "Permission denied")):
        session.play("a checkout that cannot be written, where that is no matter", _ensure("client"))
    (session.checkout / ".environments/client.lock").write_text("4711" * 9)

    def read_lock() -> str:
        with environment._hold_lock("client"):
            return (session.checkout / ".environments/client.lock").read_text()

    session.play("who sets up the client", read_lock)
    session.play("it can be written again", _ensure("client"))


@contextlib.contextmanager
def _held(path: Path, kind: int) -> Iterator[None]:
    lock = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(lock, kind)
        yield
    finally:
        os.close(lock)


def _play_faults(session: _Session) -> None:
    with patch.object(sys.implementation, "cache_tag", "cpython-399"):
        session.play("of another Python it is another", _ensure("toolkit", "test"))
        session.play("but not the worker's", _ensure("worker"))
    session.change()
    for name in ("error: No space left on device", "error: Failed to fetch x", "error: something else"):
        session.write("fault", f"{name}\n")
        session.play(f"uv says {name!r}", _ensure("toolkit", "test"))
    session.write("programs/uv", "#!/bin/sh\nexit 1\n")
    for name in ("Retrying (Retry(total=4))", "No module named x"):
        session.write("fault", f"{name}\n")
        session.play(f"there is no uv, and pip says {name!r}", _ensure("toolkit", "test"))
    (session.folder / "fault").unlink()
    session.write("no_pip", "")
    session.play("there is no uv, and no pip", _ensure("toolkit", "test"))
    (session.folder / "no_pip").unlink()
    session.play("pip fetches uv", _ensure("toolkit", "test"))
    session.change()
    session.play("which is used from then on", _ensure("toolkit", "test"))
    session.write("programs/uv", _UV)


def _play_settings(session: _Session) -> None:
    session.write("config", _CONFIG)
    session.change()
    session.play(
        "what pip is told is told to uv", _ensure("toolkit", "test"),
        PIP_RETRIES="7", PIP_TARGET="/elsewhere", PYTHONPATH="/elsewhere", UV_HTTP_TIMEOUT="50", XDG_CACHE_HOME=str(session.folder / "none/cache"),
    )  # fmt: skip
    (session.folder / "config").unlink()
    session.change()
    session.play(
        "without a place for what is fetched", _ensure("toolkit", "test"), PIP_NO_INDEX="0", XDG_CACHE_HOME="/dev/null"
    )
    second = session.write("other/python", _PYTHON)
    (session.folder / "python").chmod(0o644)
    session.change()
    with patch.object(sys, "executable", str(second)):
        session.play("an interpreter whose base cannot be run", _ensure("toolkit", "test"))
    (session.folder / "python").chmod(0o755)


def _play_pythons(session: _Session) -> None:
    """Search for a Python 3.9: in PATH, in the home's pyenv and in another one."""
    failing = "#!/bin/sh\nexit 1\n"
    kept = (session.folder / "programs/python3.9").read_text()
    session.play("a Python 3.9 in PATH", environment._worker_python)
    session.write("programs/python3.9", failing)
    session.play("one that does not run", environment._worker_python)
    for name in ("home/.pyenv/versions/3.9.7", "home/.pyenv/versions/3.11.2", "other/[pyenv]/versions/3.9.1"):
        (session.folder / name / "bin").mkdir(parents=True)
        session.write(f"{name}/bin/python", _PYTHON)
    root = str(session.folder / "other/[pyenv]")
    session.play("one of pyenv's", environment._worker_python, PYENV_ROOT=root)
    session.write("home/.pyenv/versions/3.9.7/bin/python", "#!/bin/sh\necho /nowhere/python3.9\n")
    session.play("one whose base is not there", environment._worker_python)
    session.play("one of another pyenv's", environment._worker_python, PYENV_ROOT=root)
    session.write("programs/python3.9", kept)


def _play_command(session: _Session) -> None:
    def run(*words: str) -> Callable[[], object]:
        def execute(python: str, arguments: list[str], variables: dict[str, str]) -> Any:
            results = {name: value for name, value in variables.items() if name.startswith("SEGJUDGE")}
            raise SetUpError(f"runs {python} with {arguments} and {results}")

        def note_signal(how: object, numbers: object) -> None:
            names = ", ".join(number.name for number in numbers) if isinstance(numbers, tuple) else "by a handler"
            print(f"signals: {getattr(how, 'name', how)} {names}", file=sys.stderr)

        def act() -> object:
            signals = SimpleNamespace(**{**vars(command.signal), "signal": note_signal, "pthread_sigmask": note_signal})
            with patch.object(os, "execve", execute), patch.object(command, "signal", signals):
                return command.main([*words])

        return act

    def find_no_place() -> object:
        with patch.object(environment, "ENVIRONMENTS", "/dev/null/environments"):
            return run("toolkit", "--", "-m", "x")()

    session.play("no place for environments", find_no_place)
    session.play("all three", run("toolkit[test]", "client", "try:worker", "--", "-m", "segjudge", "score"))
    session.play("found, or not", run("found:worker", "toolkit", "--", "-m", "x"))
    for name in ("segjudge", "scorers"):
        (session.checkout / name).mkdir(exist_ok=True)
        (session.checkout / name / "module.py").touch()
    (session.checkout / "segjudge/mounted").symlink_to(session.checkout / "scorers")
    python = session.environments("worker")[0] / "bin/python"
    python.unlink()
    python.symlink_to(session.folder / "python")
    session.play("without compiled files", run("toolkit", "worker", "--", "-m", "x"), PYTHONDONTWRITEBYTECODE="1")
    session.play("without compiled files, nor a worker", run("toolkit", "--", "-m", "x"), PYTHONDONTWRITEBYTECODE="1")
    session.write("choosy", '#!/bin/sh\n[ "$2" = -S ]\n')
    for compiled in (True, False):
        with patch.object(compiling, "compile_local", lambda _folder, compiled=compiled: compiled):
            session.play(f"the kernel, which was compiled: {compiled}", _COMPILE_KERNEL)
    with patch.object(compiling, "compile_local", side_effect=compiling.NoCompilerError("no compiler")):
        session.play("the kernel, which cannot be compiled", _COMPILE_KERNEL)
    session.play(
        "compiled files, of which the worker's Python makes none",
        lambda: command.compile_bytecode(session.checkout / "segjudge", str(session.folder / "choosy")),
        PYTHONDONTWRITEBYTECODE="1",
    )
    with open(session.checkout / "packaging/locks/client.txt", "a", encoding="utf-8") as file:
        file.write("more")
    session.play("found is not made", run("toolkit", "found:client", "--", "-m", "x"))
    session.write("fault", "error: Failed to fetch x\n")
    session.play("without what need not be", run("toolkit", "try:client", "--", "-m", "x"))
    session.play("but not without what must be", run("toolkit", "client", "--", "-m", "x"))
    (session.checkout / "packaging/locks/client.txt").unlink()
    session.play("a file is missing", run("toolkit", "client", "--", "-m", "x"))
    session.play("nor where it need not be", run("toolkit", "try:client", "--", "-m", "x"))

    def interrupt(_words: list[str]) -> None:
        raise KeyboardInterrupt

    with patch.object(command, "prepare_environments", interrupt):
        session.play("interrupted", run("toolkit", "--", "-m", "x"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="segjudge-") as scratch:
        FILE.write_text(write_sessions(Path(scratch)), encoding="utf-8")
