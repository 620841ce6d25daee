"""A thin install: which room needs which extra, and that everything else needs none."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement

from segjudge.commands import COMMANDS
from segjudge.system import extras
from segjudge.system.extras import CONTAINED, MODULES, MissingExtraError, install_line, require_extra

from .test_architecture import ROOT

#: Packages by the names that are imported, where these differ.
PACKAGES = {
    "PIL": "pillow", "cv2": "opencv-python-headless", "dateutil": "python-dateutil", "google.protobuf": "protobuf", "grpc": "grpcio",
    "grpc_health": "grpcio-health-checking", "multipart": "python-multipart", "python_multipart": "python-multipart",
    "skimage": "scikit-image", "yaml": "pyyaml", "google": "protobuf",
}  # fmt: skip
#: Packages that others bring, by those; code imports both.
BROUGHT = {
    "anyio": "starlette", "botocore": "boto3", "h11": "uvicorn", "httpx2": "huggingface_hub", "markupsafe": "jinja2",
    "urllib3": "requests",
}  # fmt: skip

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def package_of(module: str) -> str:
    name = BROUGHT.get(module, module)
    return PACKAGES.get(name, name)


@functools.cache
def declared(extra: str = "") -> frozenset[str]:
    """Return the packages of an extra, or of the core, including contained extras."""
    packages: set[str] = set()
    for line in PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]:
        package = Requirement(line)
        if package.marker and not package.marker.evaluate({"python_version": "3.11"}):
            continue
        packages |= {package.name} if package.name != "segjudge" else set().union(*map(declared, package.extras))
    return frozenset(packages)


def test_every_extra_has_the_modules_of_its_packages() -> None:
    for extra, modules in MODULES.items():
        inner = declared(CONTAINED[extra]) if extra in CONTAINED else frozenset()
        assert {package_of(module) for module in modules} == declared(extra) - inner, extra


def test_all_holds_every_extra_but_torch() -> None:
    assert declared("all") == frozenset().union(*(declared(extra) for extra in MODULES if extra != "torch"))


# ── the line that installs an extra ─────────────────────────────────────────


@pytest.fixture
def environment(tmp_path, monkeypatch):  # type: ignore[no-untyped-def]
    """Put an environment with pip on PATH, in which Segjudge was installed."""
    folder = tmp_path / "env"
    (folder / "bin").mkdir(parents=True)
    for name in ("python", "pip"):
        (folder / "bin" / name).write_text("#!/bin/sh\n")
        (folder / "bin" / name).chmod(0o755)
    monkeypatch.setattr(sys, "prefix", str(folder))
    monkeypatch.setattr(sys, "executable", str(folder / "bin/python"))
    monkeypatch.setenv("PATH", str(folder / "bin"))
    monkeypatch.setattr(extras, "IMPORT_ROOT", str(tmp_path / "site-packages"))
    return folder


def installed_from(monkeypatch, source) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(extras, "_read_installation", lambda: source)


COMMIT = "0123456789" * 4
SOURCES = {
    "an index": ({}, '"segjudge[serve]"'),
    "an address": ({"url": "https://a.test/segjudge-1.whl"}, '"segjudge[serve] @ https://a.test/segjudge-1.whl"'),
    "a commit": (
        {"url": "https://a.test/x.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
        f'"segjudge[serve] @ git+https://a.test/x.git@{COMMIT}"',
    ),
}


@pytest.mark.parametrize("source", SOURCES)
def test_pip_is_given_what_the_installation_came_from(source: str, environment, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    content, text = SOURCES[source]
    installed_from(monkeypatch, content)
    assert install_line("serve") == f"pip install {text}"


def test_a_wheel_and_an_editable_folder_are_named_by_their_paths(environment, monkeypatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    wheel = tmp_path / "a b" / "segjudge-1-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.touch()
    installed_from(monkeypatch, {"url": wheel.as_uri(), "archive_info": {}})
    assert install_line("serve") == f'pip install "{wheel}[serve]"'
    installed_from(monkeypatch, {"url": tmp_path.as_uri(), "dir_info": {"editable": True}})
    assert install_line("serve") == f'pip install -e "{tmp_path}[serve]"'


def test_packages_are_named_when_the_wheel_is_gone(environment, monkeypatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    installed_from(monkeypatch, {"url": (tmp_path / "gone.whl").as_uri()})
    assert install_line("tables") == "pip install 'pandas>=2'"


def test_pip_is_called_by_its_python_when_path_finds_another(environment, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    installed_from(monkeypatch, {})
    monkeypatch.setenv("PATH", os.defpath)
    assert install_line("host") == f'{sys.executable} -m pip install "segjudge[host]"'


def test_uv_installs_where_there_is_no_pip(environment, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    installed_from(monkeypatch, {})
    monkeypatch.setattr(extras, "_is_installed", lambda module: module != "pip")
    assert install_line("host") == f'uv pip install --python {sys.executable} "segjudge[host]"'


def test_a_checkout_names_run_sh_for_commands(environment, monkeypatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(extras, "IMPORT_ROOT", str(ROOT))
    monkeypatch.chdir(ROOT)
    assert install_line("serve", "rehearse") == "./run.sh rehearse"
    monkeypatch.chdir(tmp_path)
    assert install_line("serve", "rehearse") == f"{ROOT}/run.sh rehearse"


def test_an_extra_that_is_missing_is_an_error_of_usage_and_of_import(environment, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    installed_from(monkeypatch, {})
    monkeypatch.setitem(sys.modules, "nh3", None)
    with pytest.raises(MissingExtraError) as caught:
        require_extra("serve", "rehearse")
    assert str(caught.value) == ('rehearse needs the extra serve (nh3 is not installed): pip install "segjudge[serve]"')
    assert isinstance(caught.value, ImportError)


# ── without any extra ───────────────────────────────────────────────────────

HIDING = """
import sys

class Hidden:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden)
"""
#: Packages that extras bring, with their dependencies, and packages that were once required.
HIDDEN = sorted(
    {module.partition(".")[0] for modules in MODULES.values() for module in modules}
    | {name for name, owner in BROUGHT.items() if owner not in declared()}
    | {"multipart", "certifi", "idna", "charset_normalizer", "click", "greenlet", "six", "tqdm", "typing_extensions"}
)


#: Arguments that some commands need.
REQUIRED_WORDS = {
    "arena": ["agent.py"], "board": ["7", "--out", "boards"], "interactive": ["demo", "--out", "scenes"],
    "leave": ["evalai", "7", "--out", "event.zip"],
}  # fmt: skip


def run_thin(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code that cannot import packages of an extra."""
    program = HIDING.format(hidden=HIDDEN) + code
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, cwd=ROOT
    )


def test_all_helps_need_no_extra() -> None:
    code = """
from segjudge.cli import main
from segjudge.commands import COMMANDS
for words in [["--help"], ["benchmarks"], ["benchmarks", "davis2017"], *([name, "--help"] for name in COMMANDS)]:
    try:
        code = main(words)
    except SystemExit as done:
        code = done.code
    assert code == 0, words
"""
    done = run_thin(code)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_without_its_extra_prints_one_sentence() -> None:
    expected = {**{name: row.extra for name, row in COMMANDS.items() if row.extra}, "arena": "agents"}
    code = f"""
from segjudge.cli import main
words = {REQUIRED_WORDS!r}
for name in {[*expected]!r}:
    print(name, main([name, *words.get(name, [])]))
"""
    done = run_thin(code)
    lines = done.stderr.splitlines()
    assert done.stdout.split() == [word for name in expected for word in (name, "2")]
    assert len(lines) == len(expected), done.stderr
    for line, (name, extra) in zip(lines, expected.items(), strict=True):
        assert line.startswith(f"segjudge: {name} needs the extra {extra} ("), line
        arguments = "" if name == "arena" else "".join(f" {word}" for word in REQUIRED_WORDS.get(name, []))
        assert line.endswith(f" is not installed): ./run.sh {name}{arguments}"), line


def test_a_platform_may_need_another_extra_than_the_command() -> None:
    done = run_thin("from segjudge.cli import main; main(['worker', '--platform', 'hugging-face', 'lab/cats'])")
    assert done.stderr.startswith("segjudge: worker needs the extra hub ("), done.stderr


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("server", "serve"),
        ("interactive", "interactive"),
        ("agent", "agents"),
        ("torch", "torch"),
        ("remote_challenge_evaluation", "host"),
    ],
)
def test_a_room_without_its_extra_says_so_when_it_is_imported(module: str, extra: str) -> None:
    done = run_thin(f"import segjudge.{module}")
    assert f"MissingExtraError: segjudge.{module} needs the extra {extra} (" in done.stderr
