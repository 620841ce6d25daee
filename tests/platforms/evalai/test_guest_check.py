"""`check` of bundles with their own scorers: the server's rules and the worker's traps, and none of ours."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

from segjudge.cli import main
from segjudge.platforms.evalai.bundle.build import build
from segjudge.platforms.evalai.bundle.check import check
from segjudge.platforms.rules.problems import ERROR, BundleProblem
from tests import guests
from tests.builders import zipped


def problems_of(folder: Path) -> list[BundleProblem]:
    return check(build(str(folder), str(folder / "b.zip"), lenient=True).path)


def errors_of(folder: Path) -> list[str]:
    return [str(problem) for problem in problems_of(folder) if problem.severity == ERROR]


def test_hosted_and_remote_bundles_of_the_starters_form_are_accepted(tmp_path: Path) -> None:
    assert problems_of(guests.starter(tmp_path / "hosted")) == []
    assert problems_of(guests.remote(tmp_path / "remote")) == []


def test_the_whole_script_goes_in_but_what_is_hidden_or_compiled(tmp_path: Path) -> None:
    folder = guests.starter(tmp_path, {".env": "SECRET=1", "__pycache__/main.pyc": "", "weights/a.bin": "x"})
    with zipfile.ZipFile(build(str(folder), str(tmp_path / "b.zip")).path) as bundle:
        names = zipfile.ZipFile(io.BytesIO(bundle.read("evaluation_script.zip"))).namelist()
    assert set(names) == {*guests.SCRIPT, "weights/a.bin"}


def test_a_script_that_its_host_has_zipped_goes_in_as_it_is(tmp_path: Path) -> None:
    folder = guests.starter(tmp_path / "x")
    (folder / "evaluation_script").rename(folder / "scripts")
    data = zipped({"__init__.py": b"from .main import evaluate", "main.py": b"def evaluate(*_, **__): pass"})
    (folder / "evaluation_script.zip").write_bytes(data)
    assert problems_of(folder) == []
    with zipfile.ZipFile(folder / "b.zip") as bundle:
        assert bundle.read("evaluation_script.zip") == data


@pytest.mark.parametrize(
    "script",
    [
        pytest.param({"__init__.py": "from .main import *\n"}, id="star"),
        pytest.param(
            {
                "__init__.py": "import os, sys\nsys.path.append(os.path.dirname(__file__))\nfrom main import evaluate\n",
                "main.py": "import helpers\n\n\ndef evaluate(*_, **__):\n    return {}\n",
            },
            id="search-path",
        ),
        pytest.param(
            {"main.py": "try:\n    import helpers\nexcept ImportError:\n    from . import helpers\nevaluate = 1\n"},
            id="either",
        ),
        pytest.param({"main.py": "def evaluate(*_):\n    import helpers\n    return {}\n"}, id="late"),
        pytest.param({"json.py": "x = 1\n", "main.py": "import json\nevaluate = 1\n"}, id="standard-library"),
        pytest.param({"__init__.py": "from .main import evaluate\nVERSION = 1\n", "helpers.py": "from . import VERSION\n"}, id="name"),
        pytest.param({"measures/deep/more.py": "from ... import helpers\nfrom ..accuracy import accuracy\n"}, id="dots"),
    ],
)  # fmt: skip
def test_scripts_that_the_worker_imports_have_no_errors(script: dict[str, str], tmp_path: Path) -> None:
    assert errors_of(guests.starter(tmp_path, script)) == []


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ({"main.py": "import helpers\nevaluate = 1\n"}, "main.py:1: imports helpers absolutely"),
        ({"main.py": "from .measures import nothing\nevaluate = 1\n"}, ""),
        ({"main.py": "from .measures.nothing import x\nevaluate = 1\n"}, "imports .measures.nothing, which is not in"),
        ({"main.py": "from ..helpers import x\nevaluate = 1\n"}, "imports ..helpers, which is not in the zip"),
        ({"main.py": "type Score = float\nevaluate = 1\n"}, "main.py:1: is not Python 3.9"),
        ({"__init__.py": "from .main import run\n"}, "has no evaluate, so every submission fails"),
        ({"requirements.txt": "numpy>=2\n"}, "pins numpy 1.26.4"),
    ],
)
def test_what_the_worker_cannot_import_is_an_error(script: dict[str, str], message: str, tmp_path: Path) -> None:
    errors = errors_of(guests.starter(tmp_path, script))
    assert any(message in problem for problem in errors) if message else errors == []


def test_a_main_that_is_not_there_is_one_error_and_may_be_a_folder(tmp_path: Path) -> None:
    folder = guests.starter(tmp_path)
    (folder / "evaluation_script" / "main.py").unlink()
    (problem,) = errors_of(folder)
    assert "__init__.py:1: imports .main, which is not in the zip" in problem
    guests.written(folder, {"evaluation_script/main/__init__.py": "def evaluate(*_):\n    return {}\n"})
    assert errors_of(folder) == []


def test_a_module_that_nothing_imports_is_only_warned_of(tmp_path: Path) -> None:
    (problem,) = problems_of(guests.starter(tmp_path, {"tools/train.py": "match 1:\n    case 1: pass\n"}))
    assert problem.severity != ERROR
    assert "tools/train.py:2: is not Python 3.9" in str(problem)


def test_a_script_in_a_folder_of_its_zip_is_an_error(tmp_path: Path) -> None:
    folder = guests.starter(tmp_path)
    (folder / "evaluation_script").rename(folder / "inner")
    guests.written(folder, {"evaluation_script/evaluation_script/__init__.py": "from .main import evaluate\n"})
    (problem,) = errors_of(folder)
    assert "has no __init__.py at its top" in problem


def test_a_remote_bundle_with_annotations_is_warned_of_and_accepted(tmp_path: Path) -> None:
    config = guests.CONFIG.replace("remote_evaluation: False", "remote_evaluation: True")
    broken = {"main.py": "import nothing_here\n", "__init__.py": ""}
    problems = problems_of(guests.starter(tmp_path, broken, config))
    assert {problem.severity for problem in problems} == {"warning"}
    assert any("truth should stay on your machine" in str(problem) for problem in problems)


@pytest.mark.parametrize(("flag", "severity"), [("True", "warning"), ("False", ERROR)])
def test_a_code_upload_needs_an_image_only_where_evalai_starts_it(tmp_path: Path, flag: str, severity: str) -> None:
    config = guests.CONFIG.replace("is_docker_based: False", "is_docker_based: True")
    folder = guests.starter(tmp_path, config=config.replace("remote_evaluation: False", f"remote_evaluation: {flag}"))
    results = [problem for problem in problems_of(folder) if problem.subject.endswith(".environment_image")]
    assert [problem.severity for problem in results] == [severity] * 2


def test_an_older_python_is_its_hosts_choice(tmp_path: Path) -> None:
    assert errors_of(guests.starter(tmp_path, config=guests.CONFIG + "worker_python_version: 3.8\n")) == []


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"README.md": b"x"}, "holds no challenge config"),
        ({"repo-main/challenge_config.yaml": b"title: x"}, "at its top, only repo-main/challenge_config.yaml"),
        ({"challenge_config.yaml": b"a: 1", "challenge_config.yml": b"a: 1"}, "holds challenge_config.yaml and"),
        ({"challenge_config.yaml": b"title: \xff\xfe"}, "challenge_config.yaml"),
        ({"challenge_config.yml": b"title: Colours\nevaluation_script: evaluation_script.zip",
          "evaluation_script.zip": zipped({"__init__.py": b"\xff\xfe def"})}, "error"),
    ],
)  # fmt: skip
def test_a_zip_that_is_no_bundle_is_explained(
    files: dict[str, bytes], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "b.zip").write_bytes(zipped(files))
    assert main(["check", "--quick", "--bundle", str(tmp_path / "b.zip")]) == 3
    assert message in capsys.readouterr().out


def test_nobody_is_advised_to_build_a_kernel_for_scorers_that_look_for_none(tmp_path: Path, capsys: Any) -> None:
    folder = guests.starter(tmp_path / "hosted")
    for command in (["build"], ["check", "--quick"], ["run"]):
        main([*command, str(folder)])
        assert "kernel" not in capsys.readouterr().out, command
    assert main(["build", "--kernel", str(folder)]) == 2
    assert "--kernel: works only with Segjudge's own scorers, and this bundle has others" in capsys.readouterr().err
