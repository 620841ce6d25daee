"""The wheel in an empty environment: pip installs it without an extra, then with each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import ANNOTATIONS, STRONG

from .test_wheel import wheel

assert wheel  # the fixture

pytestmark = pytest.mark.long

CORE = {"deflate", "jinja2", "markupsafe", "numpy", "pillow", "pycocotools", "pyyaml", "scipy"}
#: Extra → a command that needs it, and what it prints once it is installed.
ATTEMPTS = {
    "host": (["new", "mine", "--demo"], "mine: a challenge scored by davis2017"),
    "serve": (["rehearse", "--bundle", "mine", "--now", "never"], "never"),
    "interactive": (["interactive", "demo", "--out", "scenes"], "scenes"),
    "agents": (["arena", "gone.py"], "gone.py: there is no such agent"),
    "cluster": (
        ["score", str(STRONG), "--truth", "ftp://127.0.0.1:9/x.zip", "--protocol", "davis2017"],
        "ftp://127.0.0.1:9/x.zip",
    ),
}


@pytest.fixture(scope="module")
def thin(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment into which pip installed only the wheel."""
    folder = tmp_path_factory.mktemp("thin") / "env"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    done = subprocess.run([folder / "bin/pip", "install", "-q", wheel], capture_output=True, text=True, check=False)
    if "No matching distribution" in done.stderr or "onnection" in done.stderr:
        pytest.skip("PACKAGES ABSENT: pip cannot fetch them")
    assert done.returncode == 0, done.stderr
    return folder


def run(thin: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {"PATH": f"{thin}/bin:{os.environ['PATH']}", "HOME": str(folder), "AWS_EC2_METADATA_DISABLED": "true"}
    variables |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    return subprocess.run(arguments, cwd=folder, env=variables, capture_output=True, text=True, check=False)


def segjudge(thin: Path, folder: Path, *arguments: str) -> str:
    done = run(thin, folder, str(thin / "bin/segjudge"), *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_brings_eight_packages(thin: Path, tmp_path: Path) -> None:
    listed = json.loads(run(thin, tmp_path, "pip", "list", "--format", "json").stdout)
    assert {each["name"].lower() for each in listed} - {"pip", "setuptools", "segjudge"} == CORE


def test_scores_are_made_merged_reported_compared_and_ranked(thin: Path, tmp_path: Path) -> None:
    truth = ("--truth", str(ANNOTATIONS), "--protocol", "davis2017")
    whole = segjudge(thin, tmp_path, "score", str(STRONG), *truth, "--json", "a.json")
    assert "J&F" in whole
    for part in ("1", "2"):
        segjudge(thin, tmp_path, "score", str(STRONG), *truth, "--part", f"{part}/2", "--out", f"part-{part}.json")
    segjudge(thin, tmp_path, "merge", "part-1.json", "part-2.json", "--json", "b.json")
    merged, alone = (json.loads((tmp_path / name).read_text())["result"] for name in ("b.json", "a.json"))
    assert merged == alone
    segjudge(thin, tmp_path, "report", str(STRONG), *truth, "--out", "report.html")
    segjudge(thin, tmp_path, "compare", f"A={STRONG}", f"B={STRONG}", *truth, "--out", "compare.html")
    segjudge(thin, tmp_path, "rank", "A=a.json", "B=b.json", "--out", "rank.html")
    assert all((tmp_path / name).stat().st_size > 10_000 for name in ("report.html", "compare.html", "rank.html"))
    segjudge(thin, tmp_path, "compress", str(STRONG), "--out", "small.zip")
    assert "davis2017" in segjudge(thin, tmp_path, "benchmarks")
    code = f"import segjudge; print(segjudge.score({str(STRONG)!r}, {str(ANNOTATIONS)!r}, 'davis2017')['J&F-Mean'])"
    assert 0 < float(run(thin, tmp_path, "python", "-c", code).stdout) < 1


def test_a_published_truth_is_packed(thin: Path, tmp_path: Path) -> None:
    code = (
        "import numpy as np, os\n"
        "from PIL import Image\n"
        "os.makedirs('masks/cat')\n"
        "for number in range(3):\n"
        "    image = Image.fromarray(np.eye(20, 30, number, dtype=np.uint8), 'P')\n"
        "    image.putpalette([0, 0, 0, 128, 0, 0])\n"
        "    image.save(f'masks/cat/{number:05d}.png')\n"
    )
    assert run(thin, tmp_path, "python", "-W", "ignore", "-c", code).stderr == ""
    segjudge(thin, tmp_path, "pack", "--layout", "generic", "--root", "masks", "--out", "truth.zip")
    table = segjudge(thin, tmp_path, "score", "masks", "--truth", "truth.zip", "--protocol", "davis2017")
    assert table.splitlines()[1].split()[:3] == ["cat", "1.000", "1.000"]


def test_every_command_starts_once_its_line_was_typed(thin: Path, tmp_path: Path) -> None:
    for extra, (arguments, text) in ATTEMPTS.items():
        before = run(thin, tmp_path, "segjudge", *arguments)
        assert f" needs the extra {extra} (" in before.stderr
        line = before.stderr.partition(" is not installed): ")[2]
        installing = run(thin, tmp_path, "sh", "-c", line)
        assert installing.returncode == 0, installing.stderr
        after = run(thin, tmp_path, "segjudge", *arguments)
        assert " needs the extra " not in after.stderr
        assert text in after.stdout + after.stderr
        assert "Traceback" not in after.stderr
    assert "1. good.zip" in segjudge(thin, tmp_path, "run", "mine")
