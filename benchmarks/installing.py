"""Measure installations: packages, megabytes and seconds of pip, compared with peers.

Each is installed by pip into an empty environment, a first time to fill pip's cache, and a second time to be measured.
Packages and megabytes are those of the environment without pip; Segjudge is installed from this checkout.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import Run, Table, run
from tests.data import ROOT

#: Name of the installation → pip's arguments; {source} is a copy of this checkout.
INSTALLATIONS = {
    "Segjudge": ("{source}",),
    "Segjudge, `[serve]`": ("{source}[serve]",),
    "hotcoco": ("hotcoco",),
    "ultrafast-pycocotools": ("ultrafast-pycocotools",),
    "torchmetrics, pycocotools": ("torchmetrics", "pycocotools"),
    "TrackEval": ("trackeval",),
}
#: Distributions of pip and of the environment itself, which do not count as installed.
_TOOLS = ("pip", "setuptools", "wheel", "__pycache__")


def copy_sources(folder: Path) -> Path:
    """Copy the files that git tracks, so that nothing is built inside the checkout; without git, copy all."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, tracked.split("\0")):
        source, target = ROOT / name, folder / name
        if not name.startswith(("tests/", "examples/", "pictures/")) and (source.exists() or source.is_symlink()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    return folder


def install(environment: Path, packages: list[str]) -> Run:
    """Install packages into a new environment."""
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    command = [str(environment / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return run([*command, *packages], environment, cores=2)


def measure_environment(environment: Path) -> tuple[int, float]:
    """Return the number of packages in an environment, without pip, and their megabytes."""
    (packages,) = environment.glob("lib/python*/site-packages")
    entries = [path for path in packages.iterdir() if not path.name.partition("-")[0].startswith(_TOOLS)]
    count = sum(path.name.endswith(".dist-info") for path in entries)
    files = [file for path in entries for file in ([path] if path.is_file() else path.rglob("*"))]
    return count, sum(file.lstat().st_size for file in files if file.is_file()) / 1e6


def main(arguments: list[str] | None = None) -> Table:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which installations (default: all): {', '.join(INSTALLATIONS)}"
    )
    parser.add_argument("--repeat", type=int, default=2, help="installations of each, of which the last is measured")
    args = parser.parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory(prefix="installing-") as folder:
        source = copy_sources(Path(folder, "source"))
        for name, packages in INSTALLATIONS.items():
            if args.names and name not in args.names:
                continue
            for _ in range(args.repeat):
                shutil.rmtree(Path(folder, "environment"), ignore_errors=True)
                done = install(Path(folder, "environment"), [package.format(source=source) for package in packages])
            count, megabytes = measure_environment(Path(folder, "environment"))
            rows.append([name, str(count), f"{megabytes:.0f} MB", f"{done.wall:.0f} s"])
            print(*rows[-1], flush=True)
    table = Table(["`pip install`", "packages", "on disk", "seconds"], rows)
    print(f"\n{table}")
    return table


if __name__ == "__main__":
    main()
