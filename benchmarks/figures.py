"""The figures in the docs: the command, the last result and the place of each.

    python -m benchmarks.figures [NAME …] [--machine TEXT] [--peers FOLDER] [--peer-python PYTHON]
    python -m benchmarks.figures --list

The benchmarks of these names, or all, are run one after the other; `figures.json` keeps their tables with command, date
and machine, and every marked place of README.md and docs shows them:

    <!-- figures: NAME -->
    <!-- /figures -->
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measuring import Table, add_peers
from tests.data import ROOT

DATA = ROOT / "benchmarks/figures.json"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "benchmarks/README.md"]
MARKED = re.compile(r"(<!-- figures: ([\w-]+) -->\n)(.*?)(<!-- /figures -->)", re.DOTALL)

#: Name → the benchmark and its options, for the figures and for a test that it runs.
FIGURES: dict[str, tuple[str, str]] = {
    "sequences": ("sequences --set B", "sequences --set empty --repeat 1"),
    "instances": ("instances --images 1000", "instances --images 4 --repeat 0"),
    "drop-in": ("drop_in", "drop_in --images 4 --repeat 0"),
    "keypoints": ("keypoints", "keypoints --images 20 --repeat 0"),
    "scans": ("scans", "scans --scans 2 --repeat 0"),
    "scans-of-points": ("scans --wrong points", "scans --scans 2 --wrong points --repeat 0"),
    "noise": ("noise", "noise --scale 0.02 --repeat 0"),
    "noisy-families": (
        "noisy_families --scale 0.5 --repeat 1",
        "noisy_families sequences panoptic --scale 0.05 --repeat 0",
    ),
    "saliency": ("saliency", "saliency --images 1 --large 1 --repeat 0"),
    "volumes": ("volumes", "volumes --scale 0.1 --repeat 0"),
    "volume-sets": ("volume_sets --cases 10 --repeat 2", "volume_sets --cases 2 --scale 0.1 --repeat 1"),
    "cells": ("cells --frames 12 --repeat 1", "cells --frames 2 --repeat 0"),
    "phrases": ("phrases", "phrases --pairs 14 --expressions 4 --repeat 0"),
    "cellpose": ("cellpose", "cellpose --images 2 --repeat 0"),
    "orphans": (
        "orphans orphans",
        "orphans --scale 0.0005",
    ),
    "orphans-of-expressions": (
        "orphans orphans-of-expressions",
        "orphans orphans-of-expressions --scale 0.005",
    ),
    "small-sets": (
        "tracks small-sets --scale 0.02",
        "tracks small-sets --scale 0.001 --size 60x90 --repeat 0",
    ),
    "label-maps": (
        "tracks label-maps --scale 0.02",
        "tracks label-maps --scale 0.004 --size 60x90 --repeat 0",
    ),
    "street-instances": (
        "tracks street-instances --scale 0.02",
        "tracks street-instances --scale 0.004 --size 60x90 --repeat 0",
    ),
    "stages": ("stages --functions 5", "stages --set empty --repeat 1"),
    "stages-of-instances": ("stages --images 1000 --functions 5", "stages --images 4 --repeat 1"),
    "cores": ("cores --repeat 2", "cores vspw-official --scale 0.001 --repeat 1"),
    "dask": ("cores --dask --scale 0.6 --repeat 1", "cores places2017-official --scale 0.001 --repeat 1 --dask"),
    "scale": ("scale --sequences 100 --parts 2", "scale --sequences 10 --parts 2 --repeat 1"),
    "interactive": ("interactive", "interactive --repeat 1 --frames 4 --regions 4"),
    "installing": ("installing --repeat 1", "installing Segjudge --repeat 1"),
    "arena": ("arena", "arena --synthetic --repeat 0"),
    "rehearsal": (
        "rehearsal --submissions 40 --rows 200 --requests 50",
        "rehearsal --submissions 4 --teams 2 --workers 2 --kill-every 60 --rows 10 --requests 5",
    ),
    "fleet": (
        "fleet --submissions 12 --hostile 0 --throttled 0 --idle 20",
        "fleet --submissions 2 --kill-every 60 --hostile 0 --throttled 0 --idle 0",
    ),
}
#: Options that all benchmarks with peers share.
WITH_PEERS = (
    "sequences",
    "instances",
    "drop_in",
    "keypoints",
    "tracks",
    "scans",
    "saliency",
    "volumes",
    "cells",
    "cellpose",
    "noisy_families",
)


def machine() -> str:
    """Return the class of this machine."""
    return f"{os.cpu_count()} cores, {platform.machine().replace('_', '-')}"


def measure(name: str, peers: Sequence[str] = (), where: str = "") -> dict[str, Any]:
    """Run a benchmark and return its entry in the data."""
    command, _ = FIGURES[name]
    module, *words = shlex.split(command)
    table: Table = import_module(f"benchmarks.{module}").main([*words, *(peers if module in WITH_PEERS else ())])
    today = datetime.datetime.now(tz=datetime.UTC).date()
    about = {"command": f"python -m benchmarks.{command}", "date": str(today), "machine": where or machine()}
    return {**about, "head": table.head, "rows": table.rows}


def shown(figures: dict[str, Any]) -> str:
    """Return the text of a marked place."""
    table = Table(figures["head"], figures["rows"])
    return f"{table}\n\n`{figures['command']}`, {figures['date']}, {figures['machine']}.\n\n"


def filled(text: str, data: dict[str, Any]) -> str:
    """Return a page's text with the figures at its marked places."""
    return MARKED.sub(lambda match: f"{match[1]}\n{shown(data[match[2]])}{match[4]}", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which figures (default: all)")
    parser.add_argument("--list", action="store_true", help="list the names and commands, and run nothing")
    parser.add_argument("--machine", default="", help="what to call this machine")
    add_peers(parser)
    args = parser.parse_args()
    if args.list:
        print("\n".join(f"{name}: python -m benchmarks.{command}" for name, (command, _) in FIGURES.items()))
        return
    for name in args.names or FIGURES:
        print(f"\n{name}: {FIGURES[name][0]}", flush=True)
        entry = measure(name, ["--peers", str(args.peers), "--peer-python", args.peer_python], args.machine)
        data = {**(json.loads(DATA.read_text()) if DATA.exists() else {}), name: entry}
        data = {key: data[key] for key in FIGURES if key in data}
        DATA.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
        write_pages(data)


def write_pages(data: dict[str, Any], pages: Sequence[Path] = tuple(PAGES)) -> None:
    """Write the known figures into the pages."""
    for page in pages:
        text = page.read_text()
        if all(name in data for _, name, *_ in MARKED.findall(text)):
            page.write_text(filled(text, data))


if __name__ == "__main__":
    sys.exit(main())
