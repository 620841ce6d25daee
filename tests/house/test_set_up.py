"""Environments: created once, extended, replaced while in use; with the real uv, and packages made here."""

from __future__ import annotations

import ensurepip
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.builders import ROOT
from tests.rehearsals import waited

#: A build backend that needs nothing, and takes as long as a file `slow` lies beside it.
BACKEND = """
import pathlib, time, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    here = pathlib.Path.cwd()
    (here / "building").touch()
    while (here / "slow").exists():
        time.sleep(0.05)
    name = "segjudge-0.0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as wheel:
        wheel.writestr("segjudge.pth", str(here))
        wheel.writestr("segjudge-0.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: segjudge\\nVersion: 0.0\\nRequires-Dist: base-thing\\n")
        wheel.writestr("segjudge-0.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("segjudge-0.0.dist-info/RECORD", "")
    return name
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "segjudge"
version = "0.0"
dependencies = ["base-thing"]
[project.optional-dependencies]
serve = []
more = ["extra-thing"]
all = ["segjudge[more]"]
"""
#: Prints the version of a checkout.
VERSION_FILE = "evaluation_script/scoring/__init__.py"
MAIN = "import os, sys; print(os.path.realpath(sys.prefix)); import base_thing; print('base', base_thing.VERSION)\n"


def wheel(folder: Path, name: str, version: str, needs: str = "") -> Path:
    module, info = name.replace("-", "_"), f"{name.replace('-', '_')}-{version}.dist-info"
    path = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{module}/__init__.py", f"VERSION = '{version}'\n")
        file.writestr(f"{module}/late.py", "HERE = __file__\n")
        needed = f"Requires-Dist: {needs}\n" if needs else ""
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
    return path


def locked(*wheels: Path) -> str:
    """Return the lines of a lock with these wheels."""
    lines = []
    for path in wheels:
        name, version = path.name.split("-")[:2]
        lines.append(f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n")
    return "".join(lines)


def real_uv() -> str:
    path = shutil.which("uv") or str(ROOT / ".environments/uv/bin/uv")
    if not os.access(path, os.X_OK):
        pytest.skip("UV ABSENT: ./run.sh fetches it")
    return path


def uv_wheel(folder: Path) -> Path:
    """Write a wheel with a program, as in the package index."""
    path = folder / "uv-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        program = zipfile.ZipInfo("uv-1.0.data/scripts/uv")
        program.external_attr = 0o100755 << 16
        file.writestr(program, f'#!/bin/sh\n[ "$1" = --version ] && echo uv 1.0 && exit\nexec "{real_uv()}" "$@"\n')
        file.writestr("uv-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: uv\nVersion: 1.0\n")
        file.writestr("uv-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("uv-1.0.dist-info/RECORD", "")
    return path


class Checkout:
    """A small checkout with the real run.sh."""

    def __init__(self, folder: Path, *, has_uv: bool = True) -> None:
        self.folder, self.wheels, self.programs = folder / "a chéckout", folder / "wheels", folder / "programs"
        self.wheels.mkdir(parents=True)
        self.programs.mkdir()
        locks = self.folder / "packaging/locks"
        locks.mkdir(parents=True)
        (locks / "uv.txt").write_text("uv==1.0\n")
        if has_uv:
            (self.programs / "uv").symlink_to(real_uv())
        else:
            program = self.programs / "uv"  # before this machine's, if it has one
            program.write_text("#!/bin/sh\nexit 1\n")
            program.chmod(0o755)
            (locks / "uv.txt").write_text(locked(uv_wheel(self.wheels)))
        (self.folder / "segjudge").mkdir(parents=True)
        (self.folder / "segjudge/__init__.py").touch()
        (self.folder / "segjudge/__main__.py").write_text(MAIN)
        (self.folder / "backend.py").write_text(BACKEND)
        (self.folder / "pyproject.toml").write_text(PROJECT)
        (self.folder / "evaluation_script/scoring").mkdir(parents=True)
        (self.folder / VERSION_FILE).write_text('VERSION = "0.1.0"\n')
        shutil.copy(ROOT / "run.sh", self.folder)
        shutil.copytree(
            ROOT / "segjudge/set_up", self.folder / "segjudge/set_up", ignore=shutil.ignore_patterns("__pycache__")
        )
        (self.folder / "segjudge/system").mkdir()
        shutil.copy(ROOT / "segjudge/system/__init__.py", self.folder / "segjudge/system")
        things = [wheel(self.wheels, name, "1.0") for name in ("base-thing", "extra-thing")]
        pip = next(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"))
        shutil.copy(pip, self.wheels)
        self.lock = locks / "toolkit.txt"
        self.lock.write_text(locked(*things, pip))

    def start(self, *arguments: str, **settings: str) -> Any:
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "UV_"))},
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "UV_NO_INDEX": "1",
            "UV_FIND_LINKS": str(self.wheels),
            "PATH": os.pathsep.join([str(self.programs), os.environ["PATH"]]),
            **settings,
        }
        return subprocess.Popen(
            [str(self.folder / "run.sh"), *(arguments or ("--version",))],
            env={key: value for key, value in environment.items() if value},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str, expected: int = 0, **settings: str) -> str:
        process = self.start(*arguments, **settings)
        output: str = process.communicate(timeout=300)[0]
        assert process.returncode == expected, output
        return output

    def change(self) -> None:
        """Change the checkout as a `git pull` with other dependencies does."""
        with open(self.folder / "pyproject.toml", "a", encoding="utf-8") as file:
            file.write("# changed\n")

    def environments(self) -> list[Path]:
        return sorted(path for path in (self.folder / ".environments").glob("*-*") if path.is_dir())

    def current(self) -> Path:
        assert (self.folder / ".venv").is_symlink()
        return (self.folder / ".venv").resolve()

    def user(self) -> Any:
        """Return a program in the environment, started like a service; it imports a module on request."""
        code = (
            "import base_thing, sys; print('ready', flush=True); sys.stdin.readline(); "
            "import base_thing.late; print(base_thing.late.HERE, sys.executable)"
        )
        process = subprocess.Popen(
            [str(self.folder / ".venv/bin/python"), "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    def age(self) -> None:
        for path in self.environments():
            if (path / "in-use").exists():
                os.utime(path / "in-use", (0, 0))


@pytest.fixture
def fresh(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Return a checkout with an environment; its tests leave it working."""
    checkout = Checkout(tmp_path_factory.mktemp("made"), has_uv=False)
    output = checkout.run()
    assert "Downloading uv" in output
    assert "Setting up the toolkit in .venv" in output
    assert "Set up in" in output
    return checkout


@pytest.mark.long
def test_packages_with_another_content_than_locked_are_rejected(fresh: Checkout) -> None:
    text = fresh.lock.read_text()
    fresh.lock.write_text(re.sub(r"(base_thing\S* --hash=sha256:)\w{4}", r"\g<1>0000", text))
    assert "Hash mismatch" in fresh.run(expected=3)
    fresh.lock.write_text(re.sub("base_thing.*\n", "", text))
    assert "no trusted hash" in fresh.run(expected=3)
    assert fresh.environments() == []


@pytest.mark.long
def test_two_at_once_in_a_fresh_clone_make_one_environment(fresh: Checkout) -> None:
    both = [fresh.start(), fresh.start()]
    output = [process.communicate(timeout=300)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], output
    assert sum("Setting up the toolkit" in text for text in output) == 1
    assert len(fresh.environments()) == 1


@pytest.mark.long
def test_help_is_given_at_once_whatever_is_missing_or_sets_up(fresh: Checkout) -> None:
    (fresh.folder / "segjudge/__main__.py").write_text("import sys\ndef main(): print('usage of', *sys.argv[1:])\n")
    output = fresh.run("rehearse", "--agents", "a.toml", "--help")
    assert output == "usage of rehearse --agents a.toml --help\n"
    assert not (fresh.folder / ".environments").exists()
    (fresh.folder / "slow").touch()
    process = fresh.start()
    waited((fresh.folder / "building").exists, 120)
    assert fresh.run("-h") == "usage of -h\n"
    (fresh.folder / "slow").unlink()
    process.communicate()
    assert process.returncode == 0
    (fresh.folder / "segjudge/__main__.py").write_text("import base_thing\ndef main(): print(base_thing.VERSION)\n")
    assert fresh.run("score", "--help") == "1.0\n"


@pytest.mark.long
def test_extras_are_made_beside_what_is_in_use(fresh: Checkout) -> None:
    fresh.run()
    before = fresh.current()
    user = fresh.user()
    assert "base 1.0" in fresh.run("rank", "a.json", "--plots", "plots")
    after = fresh.current()
    assert after != before
    assert fresh.run().splitlines() == [str(after), "base 1.0"], "one with more packages serves all"
    for words in (["arena"], ["interactive"], ["score", "s3://a", "--truth", "b"]):
        assert fresh.run(*words).splitlines() == [str(after), "base 1.0"]
    assert user.communicate("\n")[0].startswith(str(before))
    fresh.age()
    fresh.run()
    assert fresh.environments() == [after]
    fresh.change()
    fresh.run()
    assert fresh.current().name.startswith("toolkit-all-"), "a change takes no package away"


@pytest.mark.long
def test_a_running_program_keeps_its_environment_and_the_last_one_takes_it_along(fresh: Checkout) -> None:
    fresh.run()
    before = fresh.current()
    user = fresh.user()
    fresh.change()
    assert "Setting up" in fresh.run()
    assert fresh.current() != before
    fresh.age()
    fresh.run()
    assert before in fresh.environments(), "it is in use"
    output = user.communicate("\n")[0].split(str(before))
    assert len(output) == 3, "its packages and its interpreter are those it started with"
    assert user.returncode == 0
    fresh.run()
    assert fresh.environments() == [fresh.current()], "nothing uses it any more"


@pytest.mark.long
def test_killed_while_it_installs_it_starts_over(fresh: Checkout) -> None:
    (fresh.folder / "slow").touch()
    process = fresh.start()
    waited((fresh.folder / "building").exists, 120)
    process.kill()
    process.communicate()
    again = fresh.start()
    line = again.stdout.readline()
    assert "Waiting for process" in line, "uv outlives who started it, and is not disturbed"
    (fresh.folder / "slow").unlink()
    output = again.communicate(timeout=300)[0]
    assert again.returncode == 0, output
    assert "Setting up" in output
    assert "base 1.0" in output
    assert fresh.environments() == [fresh.current()]


@pytest.mark.long
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_while_it_installs_it_leaves_nothing(fresh: Checkout, number: int, code: int) -> None:
    (fresh.folder / "slow").touch()
    process = fresh.start()
    waited((fresh.folder / "building").exists, 120)
    process.send_signal(number)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == code, output
    assert "Traceback" not in output
    assert fresh.environments() == []
    assert not os.path.lexists(fresh.folder / ".venv")


@pytest.mark.long
def test_without_a_network_it_says_so_and_leaves_what_was_there(made: Checkout) -> None:
    before = made.current()
    text = (made.folder / "pyproject.toml").read_text()
    offline = {
        "UV_NO_INDEX": "",
        "UV_FIND_LINKS": "",
        "UV_DEFAULT_INDEX": "http://127.0.0.1:9/",
        "UV_HTTP_RETRIES": "1",
    }
    try:
        made.change()
        output = made.run(expected=3, **offline)
        assert "the package index cannot be reached" in output
        assert "Traceback" not in output
        assert made.environments() == [before]
    finally:
        (made.folder / "pyproject.toml").write_text(text)
    assert "Setting up" not in made.run()


def test_a_program_keeps_the_environment_that_was_marked_before_it_replaced_the_process(tmp_path: Path) -> None:
    (tmp_path / "in-use").touch()
    code = (
        "import os, sys; from segjudge.set_up.environment import mark_in_use; mark_in_use(sys.argv[1]);"
        "os.execv(sys.executable, [sys.executable, '-c', 'print(flush=True); input()'])"
    )
    with (
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as program,
        open(tmp_path / "in-use", "rb") as used,
    ):
        assert program.stdout is not None
        program.stdout.readline()
        with pytest.raises(BlockingIOError):
            fcntl.flock(used, fcntl.LOCK_EX | fcntl.LOCK_NB)
        program.communicate(b"\n")
        fcntl.flock(used, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("bwrap"), reason="BWRAP ABSENT")
def test_a_checkout_that_cannot_be_written_runs(made: Checkout) -> None:
    seal = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    seal += ["--ro-bind", made.folder.parent, made.folder.parent]  # which may lie below /dev
    if subprocess.run([*seal, "true"], capture_output=True, check=False).returncode:
        pytest.skip("BWRAP DOES NOT WORK HERE")
    done = subprocess.run([*seal, made.folder / "run.sh", "--version"], capture_output=True, text=True, check=False)
    assert done.stdout.startswith(f"{made.current()}\nbase "), done.stderr
    assert done.stderr == ""
    done = subprocess.run([*seal, made.folder / "run.sh", "arena"], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert re.match(r"run.sh: .*toolkit-all.lock: Read-only file system, so .* clone the repository ", done.stderr)


def start(message: str, **variables: str) -> Any:
    """Run a line of the shell in this checkout, whose environment exists."""
    environment = {**{key: value for key, value in os.environ.items() if key != "SEGJUDGE_BUNDLE"}, **variables}
    return subprocess.run(
        ["bash", "-c", message], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("message", "code"), [("--version", 0), ("score --help", 0), ("arena --static", 2)])
def test_closed_streams_are_no_errors(message: str, code: int, closed: str) -> None:
    done = start(f"./run.sh {message} {closed}")
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "write error" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full ABSENT")
def test_help_that_cannot_be_written_blames_no_environment() -> None:
    done = start("./run.sh score --help > /dev/full")
    assert (done.returncode, done.stderr) == (3, "segjudge: the output: cannot be written (No space left on device)\n")
    assert start("./run.sh score --help | true; exit ${PIPESTATUS[0]}").stderr == ""


def test_the_python_of_the_surroundings_does_not_reach_ours(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise ImportError('built for another Python')\n")
    done = start("./run.sh --version", PYTHONPATH=str(tmp_path), PYTHONHOME=str(tmp_path), PYTHONPLATLIBDIR="none")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("segjudge ")
