"""The generated sets of each family: the names of its module `benchmarks/families/NAME.py`.

| name | what it is |
| --- | --- |
| `TRACK_SETS` | set → data whose scores `tracks` compares with the official evaluator's |
| `NOISY_SETS` | set → those of `TRACK_SETS` that `noisy_families` scores clean and with noise |
| `SPECKLED_SETS` | protocol → truths whose smooth and speckled predictions `noise` scores |
| `ORPHANS` | benchmarks without a server, which `orphans` scores at their real size |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.drawing import Lot
from benchmarks.instances import Size
from segjudge.evaluation_script.families import FOLDERS

HD = (720, 1280)
HERE = Path(__file__).parent

#: How a script begins that runs an official evaluator on data, in a process of its own, and prints its numbers under our
#: names. It gets the evaluator's folder and that of the data. What old code expects of numpy is put back first; no number
#: depends on it.
COMPAT = """
import builtins, importlib.util, json, os, runpy, sys, types
import numpy as np
sys.path.insert(0, sys.argv[1])
checkout, data = sys.argv[1:3]
builtins.unicode = str
for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object)):
    if name not in np.__dict__:
        setattr(np, name, kind)
linspace = np.linspace
np.linspace = lambda start, stop, num=50, **more: linspace(start, stop, int(num), **more)
say, sys.stdout = sys.stdout, sys.stderr

def number(value):
    return None if value is None or value != value or value == -1 else float(value)

def answer(values):
    print(json.dumps({name: number(value) for name, value in values.items()}), file=say)
"""


@dataclass(frozen=True)
class TrackSet:
    """Generated data of one benchmark."""

    make: Callable[[Path, np.random.Generator, float, Size], None]
    #: In pixels; of instances in images the generator's own.
    size: Size
    #: Protocol → its official evaluator, and the script that runs it.
    peers: dict[str, tuple[str, str]]
    truth: str = "truth.json"
    results: str = "results.json"
    #: The table of the docs that shows it, if any.
    figure: str = ""
    #: Which share of the benchmark two processes score in `cores`, by the first protocol; 0 for none.
    shared: float = 0.0


@dataclass(frozen=True)
class NoisyTracks:
    """A set of `TRACK_SETS` with further predictions, which are noisy."""

    track_set: str
    protocol: str
    #: How many thousandths of the benchmark a scale of 1 has.
    thousandths: int
    #: Writes the set in another way.
    make: Callable[..., None] | None = None


@dataclass(frozen=True)
class SpeckledSet:
    """Truths with both kinds of predictions of `speckle`."""

    #: Writes so many images or scans.
    write: Callable[[Path, int], None]
    #: How many a scale of 1 has.
    units: int
    #: A plain program that scores folders of truths and predictions, what it is, and the metric that it writes.
    loop: str = ""
    about: str = ""
    metric: str = ""


@dataclass(frozen=True)
class Orphan:
    """A benchmark without a server."""

    protocol: str
    #: Of the test set, in words and as a number.
    about: str
    count: int
    #: Writes the truth and the submission of so many images or videos into a folder.
    write: Callable[[Path, Lot, int], None]
    #: The limits of its phase: those of instances, of units or of sequences.
    limits: str = "INSTANCE"
    #: The layout of its truth.
    layout: str = "coco"
    #: The table of the docs that shows it, if any.
    figure: str = "orphans"


def merge_rows(name: str) -> dict[str, Any]:
    """Return the rows of all families under a name, in the order of the families."""
    modules = [import_module(f"{__name__}.{folder}") for folder in FOLDERS if (HERE / f"{folder}.py").exists()]
    return {key: row for module in modules for key, row in getattr(module, name, {}).items()}


def select(rows: dict[str, Any], names: list[str]) -> list[str]:
    """Return the keys of rows that are among the names, or that a named table of the docs shows; all without names."""
    return [key for key, row in rows.items() if not names or key in names or row.figure in names]
