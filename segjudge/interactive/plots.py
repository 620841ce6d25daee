"""`segjudge interactive plot`: J&F over time of several runs, and a page to step through them."""

from __future__ import annotations

import html
import io
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image

from segjudge.evaluation_script.png import davis_palette
from segjudge.files import replace

from .method_run import steps_of
from .session import MOST_INTERACTIONS
from .summary import METRICS, SummaryTerms, read_report, summary

#: Told apart without colour vision, too (Okabe and Ito's order); more runs have other dashes.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
DASHES = ("-", "--", ":", "-.")
NAMES = {"J": "J", "F": "F", "J_AND_F": "J&F"}
#: Pictures of the page are at most so wide.
WIDTH = 640


@dataclass(frozen=True)
class Run:
    """One report and what it comes to."""

    name: str
    report: pd.DataFrame
    summary: dict[str, Any]
    steps: Path
    #: Whether samples without masks in time count, as 0.
    complete: bool = True

    @property
    def metric(self) -> str:
        """What its curve shows."""
        return next(name for name in METRICS if name in self.summary["curve"])


def opened(told: str, samples: Mapping[tuple[str, int], int] | None = None) -> Run:
    """A run from `[NAME=]REPORT.csv`; its summary is beside it, or is made of it.

    `samples` are those of the session with their numbers of objects, since a report has no row for a sample without
    masks in time.
    """
    name, _, path = told.rpartition("=") if "=" in told and not Path(told).exists() else ("", "", told)
    file = Path(path)
    try:
        report = read_report(file)
        missing = {"sequence", "scribble_idx", "interaction", "object_id", *METRICS.values(), "timing"} - {
            *report.columns
        }
        if missing:
            raise KeyError(", ".join(sorted(missing)))
        if len(report) and not report["interaction"].between(1, MOST_INTERACTIONS).all():
            raise ValueError(f"interactions go from 1 to {MOST_INTERACTIONS}")
        beside = file.with_suffix(".summary.json")
        known = beside.exists()
        found = _summary(beside) if known else summary(report, SummaryTerms(samples=samples))
        return Run(name or file.stem, report, found, steps_of(file), known or samples is not None)
    except FileNotFoundError:
        raise ValueError(f"{file}: there is no such report") from None
    except (KeyError, UnicodeDecodeError, ValueError) as error:
        raise ValueError(f"{file}: is no report of an interactive session ({type(error).__name__}: {error})") from None


def _summary(path: Path) -> dict[str, Any]:
    """What `run` wrote beside a report; raises ValueError for anything else."""
    found = json.loads(path.read_text())
    try:
        (metric,) = found["curve"].keys() - {"time"}
        curve = found["curve"]
        numbers = [found["auc"], found["metric_at_threshold"][metric], *curve["time"], *curve[metric]]
        good = metric in METRICS and len(curve["time"]) == len(curve[metric]) >= 2
    except (KeyError, TypeError, ValueError, AttributeError):
        good, numbers = False, []
    if not good or not all(isinstance(one, (int, float)) and math.isfinite(one) for one in numbers):
        raise ValueError(f"{path.name} beside it is no summary")
    return dict(found)


def plot(runs: list[Run], out: Path, progress: Callable[[str, int, int], None]) -> None:
    """Curves as PNG and SVG, and `index.html` with everything."""
    if len({run.metric for run in runs}) > 1:
        told = ", ".join(f"{run.name}: {NAMES[run.metric]}" for run in runs)
        raise ValueError(f"the runs were measured by different metrics ({told})")
    out.mkdir(parents=True, exist_ok=True)
    vector = _curves(runs, out)
    _page(runs, out, vector, progress)


def _curves(runs: list[Run], out: Path) -> str:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # No day in the file, and names that do not change: equal runs give equal pictures.
    with mpl.rc_context({"svg.hashsalt": "segjudge", "svg.fonttype": "none", "font.size": 11}):
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        axes = figure.subplots()
        metric = runs[0].metric
        for place, run in enumerate(runs):
            curve = run.summary["curve"]
            axes.plot(
                curve["time"], curve[metric], DASHES[place // len(COLOURS) % len(DASHES)],
                color=COLOURS[place % len(COLOURS)], marker="o", markersize=4,
                label=f"{run.name}   AUC {run.summary['auc']:.3f}".replace("$", r"\$"),
            )  # fmt: skip
        axes.set(xlabel="seconds", ylabel=NAMES[metric], ylim=(0, 1), xlim=(0, None))
        axes.grid(visible=True, alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(handles=axes.get_lines(), frameon=False, loc="lower right")
        figure.savefig(out / "curves.png", dpi=150)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    replace(out / "curves.svg", text.getvalue())
    return text.getvalue()


def _page(runs: list[Run], out: Path, vector: str, progress: Callable[[str, int, int], None]) -> None:
    """Everything beside the page is a script, since a page that was opened as a file may fetch nothing."""
    folder = out / "steps"
    shown, frames = [], _Pictures(out / "frames")
    files = [(place, path) for place, run in enumerate(runs) for path in sorted(run.steps.glob("*.json"))]
    by_sample = {place: _by_sample(run.report) for place, run in enumerate(runs)}
    for done, (place, path) in enumerate(files):
        progress(path.stem, done, len(files))
        step = _step(path)
        images = frames.of(step["sequence"], step.pop("images"))
        key = (step["sequence"], step["scribble_idx"], step["interaction"])
        step["values"] = by_sample[place].get(key, [])
        folder.mkdir(exist_ok=True)
        name = f"{place}-{path.stem}.js"
        replace(folder / name, f"step({json.dumps(name)},{json.dumps(step, separators=(',', ':'))})")
        shown.append({"run": place, "file": name, "key": list(key), "images": images})
    told = {
        "runs": [run.name for run in runs],
        "steps": shown,
        "palette": ["#" + bytes(colour).hex() for colour in davis_palette()[:256].tolist()],
        "metric": NAMES[runs[0].metric],
    }
    assets = resources.files(__package__) / "page"
    text = (assets / "page.html").read_text(encoding="utf-8")
    parts = {
        "STYLE": (assets / "page.css").read_text(encoding="utf-8"),
        "SCRIPT": (assets / "page.js").read_text(encoding="utf-8"),
        # Names come from files and reports: nothing of them may end the script or begin a tag.
        "DATA": json.dumps(told, separators=(",", ":")).replace("<", "\\u003c"),
        "ROWS": "\n".join(_row(run) for run in runs),
        "METRIC": html.escape(NAMES[runs[0].metric]),
        "CURVES": vector[vector.index("<svg") :],
        "STEPPED": "" if shown else "hidden",
        "UNSTEPPED": "hidden" if shown else "",
    }
    # In one pass: a run may be called @ROWS@.
    replace(out / "index.html", re.sub(r"@([A-Z]+)@", lambda found: parts[found.group(1)], text))


def _step(path: Path) -> dict[str, Any]:
    """An interaction that `run` kept; raises ValueError for anything else."""
    try:
        step = json.loads(path.read_text())
        frames, height, width = step["size"]
        kinds = {"sequence": str, "scribble_idx": int, "interaction": int, "images": list, "scribbles": list}
        good = all(isinstance(step[name], kind) for name, kind in kinds.items()) and min(height, width) > 0
        good = good and len(step["frames"]) == len(step["scribbles"]) == frames
        good = good and all(isinstance(one, str) for one in step["images"])
    except (KeyError, TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(f"{path}: is no interaction as `interactive run --steps` keeps them")
    return dict(step)


def _row(run: Run) -> str:
    threshold, curve = run.summary["metric_at_threshold"], run.summary["curve"]
    last = curve[run.metric][-1] if curve[run.metric] else 0.0
    seconds = curve["time"][-2] if len(curve["time"]) > 1 else 0.0
    cells = [run.summary["auc"], threshold[run.metric], last]
    numbers = "".join(f"<td>{cell:.3f}</td>" for cell in cells)
    return f'<tr><th scope="row">{html.escape(run.name)}</th>{numbers}<td>{seconds:.1f} s</td></tr>'


def _by_sample(report: pd.DataFrame) -> dict[tuple[str, int, int], list[float]]:
    """For each interaction the value of each frame; none for a report that has means alone."""
    if "frame" not in report.columns or not len(report):
        return {}
    found = report.groupby(["sequence", "scribble_idx", "interaction", "frame"])["j_and_f"].mean().reset_index()
    columns = (found[name].tolist() for name in ("sequence", "scribble_idx", "interaction", "j_and_f"))
    rows: dict[tuple[str, int, int], list[float]] = {}
    for sequence, number, interaction, value in zip(*columns, strict=True):
        rows.setdefault((str(sequence), number, interaction), []).append(round(value, 4))
    return rows


class _Pictures:
    """The frames of the page: small ones, each sequence once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[str, list[str]] = {}

    def of(self, sequence: str, paths: list[str]) -> list[str]:
        """Addresses relative to the page; none where the pictures are gone."""
        if sequence not in self._made:
            there = [path for path in paths if Path(path).exists()]
            self._made[sequence] = self._small(sequence, paths) if there and len(there) == len(paths) else []
        return self._made[sequence]

    def _small(self, sequence: str, paths: list[str]) -> list[str]:
        place = len(self._made)
        (self._folder / str(place)).mkdir(parents=True, exist_ok=True)
        names = []
        for number, path in enumerate(paths):
            picture = Image.open(path).convert("RGB")
            picture.thumbnail((WIDTH, WIDTH))
            picture.save(self._folder / str(place) / f"{number:05d}.jpg", quality=80)
            names.append(f"frames/{place}/{number:05d}.jpg")
        del sequence
        return names
