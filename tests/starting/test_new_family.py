"""`segjudge new --family`: a plug-in's repository, as the page on families shows it; it passes its tests with pip."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from segjudge.cli import main
from segjudge.evaluation_script.families import FOLDERS
from segjudge.evaluation_script.scoring import VERSION
from segjudge.families.plugin_files import check_upload
from segjudge.starting.new_family import make_files
from segjudge.testing import CHECKS
from tests.families.plugins import ROOT, counting, install, run

FILES = {
    "pyproject.toml", "README.md", "LICENSE", ".gitignore", ".github/workflows/tests.yml", "requirements.txt",
    f"wheels/segjudge-{VERSION}-py3-none-any.whl", "tests/test_my_spots.py",
    *(f"segjudge_my_spots/{name}" for name in (
        "__init__.py", "upload/__init__.py", "upload/engine.py", "upload/protocols.py", "toolkit/__init__.py",
        "toolkit/texts.html.jinja")),
}  # fmt: skip
PAGE = (ROOT / "docs" / "adding-a-family.md").read_text(encoding="utf-8")


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """Return a repository with the family `my_spots`."""
    assert main(["new", str(tmp_path / "plugin"), "--family", "my_spots"]) == 0
    return tmp_path / "plugin"


def paths(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_it_is_a_repository_under_the_name_that_was_asked_for(plugin: Path) -> None:
    assert paths(plugin) == FILES
    texts = {name: (plugin / name).read_text(encoding="utf-8") for name in FILES if not name.endswith(".whl")}
    assert [name for name, text in texts.items() if "counting" in text.lower()] == []
    for name in [name for name in FILES if name.endswith(".py")]:
        ast.parse(texts[name])
    project = tomllib.loads(texts["pyproject.toml"])["project"]
    assert (project["name"], project["entry-points"]) == (
        "segjudge-my-spots",
        {"segjudge.families": {"my_spots": "segjudge_my_spots"}},
    )
    assert "class MySpotsProtocol:" in texts["segjudge_my_spots/upload/protocols.py"]
    assert "MY_SPOTS_PROTOCOLS" in texts["segjudge_my_spots/upload/__init__.py"]
    assert texts["requirements.txt"].startswith(
        f"segjudge[host] @ file:./wheels/segjudge-{VERSION}-py3-none-any.whl#sha256="
    )
    assert check_upload(str(plugin / "segjudge_my_spots/upload"), "x") == []
    steps = yaml.safe_load(texts[".github/workflows/tests.yml"])["jobs"]["tests"]["steps"]
    assert [step["with"]["python-version"] for step in steps if "python" in step.get("uses", "")] == ["3.9", "3.11"]
    for name in re.findall(r"^\| `([^`]+)`", texts["README.md"], re.MULTILINE):
        assert (plugin / name).exists(), name


def test_its_files_are_what_the_page_shows_word_for_word() -> None:
    files = make_files("counting")
    shown = dict(re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    pairs = {
        "evaluation_script/families/counting/protocols.py": "segjudge_counting/upload/protocols.py",
        "evaluation_script/families/counting/engine.py": "segjudge_counting/upload/engine.py",
        "evaluation_script/families/counting/__init__.py": "segjudge_counting/upload/__init__.py",
        "segjudge/families/counting/__init__.py": "segjudge_counting/toolkit/__init__.py",
        "segjudge/families/counting/texts.html.jinja": "segjudge_counting/toolkit/texts.html.jinja",
        "tests/test_counting.py": "tests/test_counting.py",
        "pyproject.toml": "pyproject.toml",
    }
    assert {title: files[path] for title, path in pairs.items()} == {title: shown[title] for title in pairs}
    assert shown.keys() - pairs.keys() == {"upload/__init__.py"}


def run_pytest(python: str, folder: Path, **variables: str) -> None:
    """Run the tests of a plug-in: each check of the kit, without skipping any."""
    done = subprocess.run(
        [python, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(CHECKS)} passed" in done.stdout


@pytest.mark.long
def test_the_tests_that_the_page_shows_pass(tmp_path: Path) -> None:
    site = counting(tmp_path / "site")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_counting.py").write_text(make_files("counting")["tests/test_counting.py"])
    run_pytest(sys.executable, tmp_path, PYTHONPATH=f"{site}{os.pathsep}{ROOT}")


@pytest.mark.parametrize(
    "name", ["", "Spots", "my-spots", "1st", "_my", "spots_", "a__b", "class", "fünf", "a b", "../a"]
)
def test_a_name_that_no_module_has_is_a_sentence(name: str, tmp_path: Path, capsys: Any) -> None:
    assert main(["new", str(tmp_path / "plugin"), "--family", name]) == 2
    expected = f"--family {name}: is not a module name; use small letters, digits and _, as in my_family"
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "plugin").exists()


@pytest.mark.parametrize("name", [*FOLDERS, "base", "plugins", "plugin_files", "unit", "family", "coco"])
def test_a_name_that_is_taken_is_a_sentence(name: str, tmp_path: Path, capsys: Any) -> None:
    assert main(["new", str(tmp_path / "plugin"), "--family", name]) == 2
    expected = f"--family {name}: is already used in Segjudge or a plug-in; choose another name"
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "plugin").exists()


@pytest.mark.long
def test_the_name_of_a_plug_in_is_taken_even_where_that_lacks_its_package(tmp_path: Path) -> None:
    site = counting(tmp_path / "site")
    install(site, "segjudge-absent", {}, {"absent": "segjudge_absent"})
    for name in ("counting", "absent"):
        assert "is already used in Segjudge or a plug-in" in run(
            site, tmp_path, "new", "mine", "--family", name, code=2
        )


def test_nothing_is_written_over_and_nothing_of_a_challenge_is_taken(plugin: Path, capsys: Any) -> None:
    assert main(["new", str(plugin), "--family", "spots"]) == 2
    assert "plugin: already exists and is not overwritten" in capsys.readouterr().err
    assert paths(plugin) == FILES
    for arguments in (["--protocol", "coco"], ["--demo"], ["--title", "x"], ["--subset", "val"]):
        assert main(["new", str(plugin.parent / "other"), "--family", "spots", *arguments]) == 2
        assert f"writes a plug-in, not a challenge; omit {arguments[0]}" in capsys.readouterr().err
    assert {path.name for path in plugin.parent.iterdir()} == {"plugin"}


@pytest.mark.long
def test_pip_installs_it_as_a_newcomer_would_and_takes_it_away_again(plugin: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "fresh", with_pip=False)
    python = str(tmp_path / "fresh/bin/python")
    packages = next((tmp_path / "fresh").glob("lib/python*/site-packages"))
    beside = sysconfig.get_paths()["purelib"]  # pip, Segjudge and what it needs
    (packages / "beside.pth").write_text(f"import site; site.addsitedir({beside!r})\n")
    folder = tmp_path / "elsewhere"
    folder.mkdir()

    def do(*arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [python, "-P", "-m", *arguments], cwd=folder, capture_output=True, text=True, timeout=280, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    before = do("segjudge", "benchmarks")
    do("pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "-e", str(plugin))
    run_pytest(python, plugin)
    assert "\n  my_spots-loose " in do("segjudge", "benchmarks")

    (folder / "truth.json").write_text('{"a": 3, "b": 5}')
    (folder / "answers.json").write_text('{"a": 3, "b": 4}')
    on = ("answers.json", "--truth", "truth.json", "--protocol", "my_spots")
    result = json.loads(do("segjudge", "score", *on, "--json", "-"))["result"]
    assert result == [{"val": {"Error": 0.5, "Right": 0.5}}]
    do("segjudge", "report", *on, "--out", "page.html")
    assert "Miscounted images" in (folder / "page.html").read_text(encoding="utf-8")
    do("segjudge", "pack", "--layout", "my_spots", "--root", "truth.json", "--out", "truth.zip")
    do("segjudge", "new", "mine", "--demo", "--protocol", "my_spots")
    carried = folder / "mine/wheels/segjudge_my_spots-0.1.0-py3-none-any.whl"
    members = zipfile.ZipFile(carried).namelist()
    assert {"segjudge_my_spots/toolkit/texts.html.jinja", "segjudge_my_spots-0.1.0.dist-info/entry_points.txt"} <= {
        *members
    }
    do("segjudge", "build", "mine")
    assert "1. good.zip" in do("segjudge", "run", "mine")

    do("pip", "uninstall", "--quiet", "--yes", "segjudge-my-spots")
    assert {path.name for path in packages.iterdir()} == {"beside.pth"}
    assert do("segjudge", "benchmarks") == before
    assert "'my_spots' does not exist" in do("segjudge", "score", *on, code=2)

    # The wheel that the challenge carries is the plug-in, too.
    do("pip", "install", "--quiet", "--no-deps", str(carried))
    assert "1. good.zip" in do("segjudge", "run", "mine")
