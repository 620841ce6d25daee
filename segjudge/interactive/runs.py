"""Run a method through a session and keep its steps; draw the curves of several runs, with a page of their steps."""

import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, cast, overload

import numpy as np
import pandas as pd
from markupsafe import Markup
from numpy.typing import ArrayLike
from PIL import Image

from segjudge.evaluation_script.masks.png import davis_palette
from segjudge.evaluation_script.masks.stack import Array
from segjudge.report.colours import line_of_method
from segjudge.report.labels import shorten_name, spread_labels
from segjudge.report.page import ReportPage, Section, render_page
from segjudge.system.files import file_name, make_folder, replace

from .dataset import SessionInputError
from .davis_session import DavisInteractiveSession
from .masks import as_ids, encode_frames
from .reports import METRICS, Sample, Summary, SummaryTerms, read_report
from .scribbles import Scribbles
from .session import MOST_INTERACTIONS

_PACKAGE = "segjudge.interactive"
_Progress = Callable[[str, int, int], None]
#: The step between kept points of a line, which looks the same.
_POINTS_TO_ONE = 10


class Frames(Sequence[Array]):
    """The images of a sequence as arrays (height, width, 3), read when they are used."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        self._read = lru_cache(maxsize=256)(lambda path: np.asarray(Image.open(path).convert("RGB")))

    def __len__(self) -> int:
        return len(self.paths)

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> list[Array]: ...
    def __getitem__(self, index: int | slice) -> Array | list[Array]:
        if isinstance(index, slice):
            return [self._read(path) for path in self.paths[index]]
        if not self.paths:
            raise FileNotFoundError("no pictures of this sequence were found; name their folder with --images")
        return self._read(self.paths[index])


class Model(Protocol):
    """A method: answers scribbles with masks (frames, height, width)."""

    def __call__(self, *, sequence: str, scribbles: Scribbles, new_sequence: bool, images: Frames) -> ArrayLike | None:
        """Answer with the masks of all frames."""


def _thin_line(path: list[list[float]]) -> list[list[float]]:
    points = [*path[::_POINTS_TO_ONE], path[-1]] if len(path) > _POINTS_TO_ONE else path
    return [[round(x, 4), round(y, 4)] for x, y in points]


class ModelError(Exception):
    """Raised if the method failed; `interaction` names the interaction."""

    def __init__(self, interaction: str, *, is_first: bool) -> None:
        super().__init__(interaction)
        #: Whether nothing has been submitted, so that nothing can be resumed.
        self.interaction, self.is_first = interaction, is_first


def run(
    session: DavisInteractiveSession,
    model: Model,
    paths: Callable[[str], list[str]],
    progress: _Progress,
    *,
    steps: bool,
) -> Summary:
    """Run a complete session; write its summary beside the report and, with `steps`, every interaction."""
    with session:
        per_sample = session.max_nb_interactions or 1
        total = len(session.samples) * per_sample
        images = Frames([])
        done = 0
        for sequence, scribbles, new in session.scribbles_iterator():
            interaction = (session.interaction_nb or 0) + 1
            number = session.samples[session.sample_idx or 0][1]
            done = max(done + 1, (session.sample_idx or 0) * per_sample + interaction - 1)
            progress(f"{sequence} {number}", min(done, total), total)
            if new:
                images = Frames(paths(sequence))
            name = f"{sequence}, scribbles {number}, interaction {interaction}"
            is_first = not session.sample_idx and interaction == 1
            try:
                masks = model(sequence=sequence, scribbles=scribbles, new_sequence=new, images=images)
            except Exception as error:
                raise ModelError(name, is_first=is_first) from error
            if masks is None:
                raise ModelError(name, is_first=is_first) from TypeError("it returned None instead of masks")
            try:
                session.submit_masks(masks)
            except (ValueError, TypeError, OverflowError) as error:
                raise ModelError(name, is_first=is_first) from error
            if steps:
                key = {"sequence": sequence, "scribble_idx": number, "interaction": interaction}
                _write_step(session, key, scribbles, masks, images.paths)
    replace(session.report_save_dir / f"{session.report_name}.summary.json", json.dumps(session.global_summary))
    return session.global_summary


def _write_step(
    session: DavisInteractiveSession, key: dict[str, Any], scribbles: Scribbles, masks: ArrayLike, images: list[str]
) -> None:
    """Write one interaction, as the page of a run shows it: with fewer points for each line."""
    folder = _folder_of_steps(session.report_save_dir / f"{session.report_name}.csv")
    folder.mkdir(exist_ok=True)
    lines = [
        [{"path": _thin_line(line["path"]), "object_id": line["object_id"]} for line in frame]
        for frame in scribbles["scribbles"]
    ]
    step = {**key, "scribbles": lines, **encode_frames(as_ids(masks)), "images": images}
    name = "{}-{scribble_idx}-{interaction:02d}.json".format(file_name(key["sequence"]), **key)
    replace(folder / name, json.dumps(step, separators=(",", ":")))


def _folder_of_steps(report: Path) -> Path:
    return report.with_suffix(".steps")


METRIC_NAMES = {"J": "J", "F": "F", "J_AND_F": "J&F"}
#: The distance between the names of curves, as a share of the height.
_LABEL = 0.11
#: The maximum width in pixels of the page's images.
_IMAGE_WIDTH = 640


@dataclass(frozen=True)
class _Run:
    """A report and its summary."""

    name: str
    report: pd.DataFrame
    summary: Summary
    steps: Path
    #: Whether samples without masks in time count as 0.
    complete: bool = True

    @property
    def metric(self) -> str:
        """Return the metric of the curve."""
        return next(name for name in METRICS if name in self.summary["curve"])


def read_run(name_and_report: str, samples: Mapping[Sample, int] | None = None) -> _Run:
    """Read a run from `[NAME=]REPORT.csv`; its summary is read from the same folder, or computed.

    `samples` are the session's samples with their numbers of objects, because a report has no rows for samples without
    masks in time.
    """
    has_name = "=" in name_and_report and not Path(name_and_report).exists()
    name, _, path = name_and_report.rpartition("=") if has_name else ("", "", name_and_report)
    file = Path(path)
    try:
        report = read_report(file)
        needed = {"sequence", "scribble_idx", "interaction", "object_id", *METRICS.values(), "timing"}
        missing = needed - {*report.columns}
        if missing:
            raise ValueError(f"it has no column {', '.join(sorted(missing))}")
        if len(report) and not report["interaction"].between(1, MOST_INTERACTIONS).all():
            raise ValueError(f"interactions go from 1 to {MOST_INTERACTIONS}")
        summary_file = file.with_suffix(".summary.json")
        has_summary = summary_file.exists()
        of_run = _read_summary(summary_file) if has_summary else SummaryTerms(samples=samples).summarize(report)
        return _Run(name or file.stem, report, of_run, _folder_of_steps(file), has_summary or samples is not None)
    except FileNotFoundError:
        raise SessionInputError(f"{file}: there is no such report") from None
    except ValueError as error:
        raise SessionInputError(f"{file}: is not a report of an interactive session ({error})") from None


def _read_summary(path: Path) -> Summary:
    """Return the summary that `run` wrote beside a report; raises ValueError for anything else."""
    values = json.loads(path.read_text())
    try:
        curve = values["curve"]
        (metric,) = curve.keys() - {"time"}
        numbers = [values["auc"], values["metric_at_threshold"][metric], *curve["time"], *curve[metric]]
        valid = metric in METRICS and len(curve["time"]) == len(curve[metric]) >= 2
    except (KeyError, TypeError, ValueError, AttributeError):
        valid, numbers = False, []
    if not valid or not all(isinstance(number, (int, float)) and math.isfinite(number) for number in numbers):
        raise ValueError(f"{path.name} beside it is not a summary")
    return cast("Summary", values)


def plot(runs: list[_Run], out: Path, progress: _Progress) -> None:
    """Write the curves as PNG and SVG, and `index.html` with everything."""
    if len({run.metric for run in runs}) > 1:
        metrics = ", ".join(f"{run.name}: {METRIC_NAMES[run.metric]}" for run in runs)
        raise SessionInputError(f"the runs were measured by different metrics ({metrics})")
    make_folder(out)
    svg = _write_curves(runs, out)
    _write_page(runs, _write_steps(runs, out, progress), svg, out)


def _write_curves(runs: list[_Run], out: Path) -> str:
    """Write `curves.png` and `curves.svg`; return the SVG."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # Without a date, and with constant names, equal runs give equal files.
    with mpl.rc_context({"svg.hashsalt": "segjudge", "svg.fonttype": "none", "font.size": 11}):
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        axes = figure.subplots()
        metric = runs[0].metric
        curves = [run.summary["curve"] for run in runs]
        ends = spread_labels([curve[metric][-1] for curve in curves], _LABEL)
        latest = max(curve["time"][-1] for curve in curves)
        for index, (run, curve, end) in enumerate(zip(runs, curves, ends, strict=True)):
            colour, dashes = line_of_method(index)
            axes.plot(curve["time"], curve[metric], color=colour, linestyle=dashes, marker="o", markersize=4)
            label = f"{shorten_name(run.name)}\nAUC {run.summary['auc']:.3f}"
            axes.text(latest * 1.06, end, label, color=colour, va="center", fontsize=9, parse_math=False)
        axes.set(xlabel="seconds", ylabel=METRIC_NAMES[metric], ylim=(0, 1), xlim=(0, None))
        axes.grid(visible=True, alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(out / "curves.png", dpi=150)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    replace(out / "curves.svg", text.getvalue())
    return text.getvalue()


def _write_steps(runs: list[_Run], out: Path, progress: _Progress) -> list[dict[str, object]]:
    """Write each interaction as a script, since a page opened as a file cannot fetch; return their list."""
    steps, images = [], dict[str, list[str]]()
    files = [(index, path) for index, run in enumerate(runs) for path in sorted(run.steps.glob("*.json"))]
    values = [_list_values(run.report) for run in runs]
    for done, (index, path) in enumerate(files):
        progress(path.stem, done, len(files))
        step = _read_step(path)
        sequence, paths = step["sequence"], step.pop("images")
        if sequence not in images:
            images[sequence] = _write_small_images(out, f"frames/{len(images)}", paths)
        key = (sequence, step["scribble_idx"], step["interaction"])
        step["values"] = values[index].get(key, [])
        (out / "steps").mkdir(exist_ok=True)
        name = f"{index}-{path.stem}.js"
        replace(out / "steps" / name, f"page.step({json.dumps(name)},{json.dumps(step, separators=(',', ':'))})")
        steps.append({"run": index, "file": name, "key": list(key), "images": images[sequence]})
    return steps


def _write_page(runs: list[_Run], steps: list[dict[str, object]], svg: str, out: Path) -> None:
    metric = METRIC_NAMES[runs[0].metric]
    curves = {
        "curves": Markup(svg[svg.index("<svg") :]),  # noqa: S704 - Matplotlib escapes the names
        "columns": ["run", "AUC", f"{metric} at 60 s", f"{metric} at the end", "seconds of a sample"],
        "rows": [_make_row(run) for run in runs],
        "steps": bool(steps),
    }
    data = {
        "runs": [run.name for run in runs],
        "steps": steps,
        "palette": ["#" + bytes(colour).hex() for colour in davis_palette()[:256].tolist()],
    }
    sections = [Section("interactive", "Curves", curves, package=_PACKAGE)]
    if steps:
        sections.append(Section("steps", "Step by step", {}, data, package=_PACKAGE))
    replace(out / "index.html", render_page(ReportPage("Interactive runs", sections, beside=("img", "script"))))


def _make_row(run: _Run) -> list[object]:
    curve = run.summary["curve"]
    at_threshold = run.summary["metric_at_threshold"][run.metric]
    return [run.name, run.summary["auc"], at_threshold, curve[run.metric][-1], round(curve["time"][-2], 1)]


def _read_step(path: Path) -> dict[str, Any]:
    """Read an interaction that `run` kept; raises ValueError for anything else."""
    try:
        step: dict[str, Any] = json.loads(path.read_text())
        frames, height, width = step["size"]
        types = {"sequence": str, "scribble_idx": int, "interaction": int, "images": list, "scribbles": list}
        valid = (
            all(isinstance(step[name], kind) for name, kind in types.items())
            and min(height, width) > 0
            and len(step["frames"]) == len(step["scribbles"]) == frames
            and all(isinstance(image, str) for image in step["images"])
        )
    except (KeyError, TypeError, ValueError):
        valid = False
    if not valid:
        raise SessionInputError(f"{path}: is not an interaction as `interactive run --steps` keeps them")
    return step


def _list_values(report: pd.DataFrame) -> dict[tuple[str, int, int], list[float]]:
    """Return the value of each frame per interaction; empty for reports with only means."""
    if "frame" not in report.columns or not len(report):
        return {}
    keys = ["sequence", "scribble_idx", "interaction"]
    groups = report.groupby([*keys, "frame"])["j_and_f"].mean().groupby(level=keys)
    rounded = ((key, [round(value, 4) for value in group.tolist()]) for key, group in groups)
    return {cast("tuple[str, int, int]", key): values for key, values in rounded}


def _write_small_images(out: Path, folder: str, paths: list[str]) -> list[str]:
    """Write a sequence's images for the page; return their addresses relative to it, none if any image is gone."""
    if not paths or not all(Path(path).exists() for path in paths):
        return []
    make_folder(out / folder)
    addresses = [f"{folder}/{number:05d}.jpg" for number in range(len(paths))]
    for path, address in zip(paths, addresses, strict=True):
        image = Image.open(path).convert("RGB")
        image.thumbnail((_IMAGE_WIDTH, _IMAGE_WIDTH))
        image.save(out / address, quality=80)
    return addresses
