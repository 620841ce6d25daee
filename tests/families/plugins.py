"""Plug-ins as pip installs them: a package, and its metadata next to it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from segjudge.starting.new_family import make_files

ROOT = Path(__file__).resolve().parents[2]


def install(site: Path, name: str, files: dict[str, str], entry_points: dict[str, str]) -> Path:
    """Put a distribution's files and its description into a folder that Python imports from."""
    description = site / f"{name.replace('-', '_')}-1.0.dist-info"
    description.mkdir(parents=True)
    (description / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{point} = {module}\n" for point, module in entry_points.items()]
    (description / "entry_points.txt").write_text("".join(["[segjudge.families]\n", *lines]))
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text, encoding="utf-8")
    return site


def counting(site: Path) -> Path:
    """Return the family of the page, as a plug-in."""
    files = {path: text for path, text in make_files("counting").items() if path.startswith("segjudge_")}
    return install(site, "segjudge-counting", files, {"counting": "segjudge_counting"})


def run(site: Path, folder: Path, *arguments: str, code: int = 0) -> str:
    """Run a command with a folder of installed plug-ins; return its output, or its stderr if it fails."""
    done = run_process(site, folder, *arguments, code=code)
    return done.stdout if code == 0 else done.stderr


def run_process(site: Path, folder: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command with a folder of installed plug-ins."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "segjudge", *arguments], cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done
