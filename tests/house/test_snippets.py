"""The snippets of README and docs run as shown: commands in a shell, Python in Python, files by their readers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from segjudge.commands import COMMANDS
from tests.builders import ROOT
from tests.house.test_python_pages import PAGES as PYTHON_PAGES
from tests.snippets.__main__ import WITH_INPUTS
from tests.snippets.inputs import MAKERS
from tests.snippets.preludes import PARSED_PYTHON, PRELUDES
from tests.snippets.reading import DONE_VARIABLE, FILE, Snippet, script_of, snippets

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
#: Commands that a test cannot run; the shell reads their lines.
ABSENT = (
    "pip", "uv", "uvx", "pipx", "docker", "rattler-build", "systemctl", "evalai", "dask", "sqlite3", "aws", "sbatch",
    "sudo",
)  # fmt: skip
#: Python programs that do not end, or that test themselves.
NOT_RUN = (
    "-m segjudge.code_upload", "-m http.server", "-m pip", "main.py", "-m tests", "-m pytest",
    "-m benchmarks.interactive",
)  # fmt: skip
#: Most of the samples, so that commands that score all take a third of the time; other tests score these.
UNUSED = tuple(
    f"examples/{name}"
    for name in (
        "photo-", "sequences-dev/lag", "sequences-test/lag", "sequences-test/first", "instances-dev/coarse",
        "instances-dev/wild",
    )
)  # fmt: skip
#: The folders of the hosts' tables, which import from files next to them.
PACKAGE = "import segjudge.evaluation_script\n__package__ = 'segjudge.evaluation_script'\n"
#: A reader's paths → the paths here.
PLACES = {" /data/": " data/", " /path/to/": " path/to/", "&& cd segjudge": ""}
SEGJUDGE = f'exec "{sys.executable}" -P -m tests.snippets "$@"\n'


def found(kind: str) -> list[tuple[Path, Snippet]]:
    return [(page, snippet) for page in PAGES for snippet in snippets(page) if snippet.kind == kind]


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project's files, in which commands run."""
    folder = tmp_path_factory.mktemp("pages") / "checkout"
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not names:
        pytest.skip("NO GIT CHECKOUT: what belongs to the project is not known")
    for name in filter(None, names.split("\0")):
        shown = name.startswith(("tests/", "docs/")) and name != "docs/adding-a-family.md"  # which the package holds
        if (ROOT / name).exists() and not shown and not name.startswith(UNUSED):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    objects = subprocess.run(
        ["git", "rev-parse", "--git-path", "objects"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    borrowed = f"{(ROOT / objects.stdout.strip()).resolve()}\n"  # so that copies of the copy have half the files
    (folder / ".git/objects/info/alternates").write_text(borrowed)
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    git = shutil.which("git")
    program(folder / ".bin/git", f'case "$1" in clone|tag|push) exit 0;; esac\nexec {git} "$@"')
    for command in ABSENT:
        program(folder / ".bin" / command, "exit 0")
    skipped = "\n".join(f'case "$*" in "{item}"*) exit 0;; esac' for item in NOT_RUN)
    program(folder / ".bin/python", f'{skipped}\nexec "{sys.executable}" "$@"')
    program(folder / ".venv/bin/python", f'{skipped}\nexec "{sys.executable}" "$@"')
    program(folder / ".bin/segjudge", SEGJUDGE)
    program(folder / "run.sh", f'case "$1" in test|format|site) exit 0;; esac\n[ $# -gt 0 ] || set -- run\n{SEGJUDGE}')
    (folder / "path/to/starter/remote_challenge_evaluation").mkdir(parents=True)
    (folder / "code_upload_challenge_evaluation/agent").mkdir()  # a fork of EvalAI's starter has its agents there
    return folder


@pytest.fixture
def stage(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(DONE_VARIABLE, str(checkout.parent / "done"))
    folder = tmp_path / "stage"
    shutil.copytree(checkout, folder, symlinks=True)
    return folder


def environment(stage: Path) -> dict[str, str]:
    return {
        **os.environ,
        "XDG_CACHE_HOME": str(Path(os.environ[DONE_VARIABLE]).with_name("cache")),
        "PATH": f"{stage / '.bin'}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}:{stage}",
        "HOME": str(stage),
        "SEGJUDGE_BUNDLE": str(stage),
        "K": "1",  # the number of a task, as Slurm gives it
    }


@pytest.mark.long  # `tests/families/test_benchmark_pages.py` runs those of benchmarks
@pytest.mark.parametrize(
    "page",
    [
        page
        for page in PAGES
        if page.parent.name != "benchmarks" and any(item.kind != "text" for item in snippets(page))
    ],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_what_a_page_shows_is_what_works(page: Path, checkout: Path, stage: Path) -> None:
    every = snippets(page)
    for item in every:
        if item.kind == "file":
            (stage / FILE.match(item.text)[1]).write_text(item.text, encoding="utf-8")  # type: ignore[index]
    for name, text in PRELUDES.get(page.name, {}).items():
        (stage / name).write_text(text, encoding="utf-8")
    folder = str(stage)
    for item in every:
        if item.kind == "shell":
            script = script_of(item.text)
            if "--starter" in script:  # it reads the whole checkout
                folder = str(shutil.copytree(checkout, stage / "fork", symlinks=True))
            for shown, here in PLACES.items():
                script = script.replace(shown, here)

            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", f"{script}pwd > {stage}/.folder"], cwd=folder,
                env=environment(stage), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, (
                f"{page.name}, line {item.line}:\n{item.text}\n{done.stdout[-1500:]}{done.stderr[-3000:]}"
            )
            folder = (stage / ".folder").read_text().strip()  # where the reader would be now
    if page.stem not in (*PYTHON_PAGES, "adding-a-family"):  # whose tests compare their numbers too
        run_python(page, [entry for entry in every if entry.kind == "python"], stage)


def run_python(page: Path, every: list[Snippet], stage: Path) -> None:
    """Run the Python of a page as one program, in the order of the page."""
    run = [item for item in every if not any(arguments in item.text for arguments in PARSED_PYTHON)]
    if not run:
        return
    lines = [f"# line {item.line}\n{item.text}" for item in run]
    program = "from prelude import *\n" * (stage / "prelude.py").exists() + PACKAGE + "\n".join(lines)
    (stage / "page.py").write_text(program.replace("…", "...").replace('"/data/', '"data/'), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-P", "page.py"], cwd=stage, env=environment(stage), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{page.name}:\n{done.stdout[-1500:]}{done.stderr[-3000:]}"


def test_missing_inputs_are_made_for_the_commands_that_have_some() -> None:
    assert (*MAKERS,) == WITH_INPUTS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_snippet_is_of_a_kind_that_is_tested(page: Path) -> None:
    for snippet in snippets(page):
        if snippet.kind == "text":
            assert not any(
                f" {line}".startswith((" segjudge ", " ./run.sh", " import ", " from "))
                for line in snippet.text.splitlines()
            ), snippet
        elif snippet.kind == "file":
            tomllib.loads(snippet.text)


def test_a_clone_can_be_copied_and_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address = project.get("urls", {}).get("Repository", "REPOSITORY")
    clones = [(page, line) for page, item in found("shell") for line in item.text.splitlines() if "git clone" in line]
    assert {page.name for page, _ in clones} >= {"README.md", "installing.md"}
    for page, line in clones:
        assert line == f"git clone {address} segjudge && cd segjudge", page
        if address == "REPOSITORY":
            assert "eplace `REPOSITORY` with the address of this repository" in page.read_text(encoding="utf-8"), page


def test_every_command_is_shown_somewhere() -> None:
    shown = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in COMMANDS if f"./run.sh {name}" not in shown and f"segjudge {name}" not in shown] == []
    assert len(found("python")) >= 10
