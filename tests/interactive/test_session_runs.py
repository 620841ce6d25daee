"""Runs of methods over all interactions, their files, and the page of several runs."""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from PIL import Image

from segjudge.davisinteractive import logging
from segjudge.interactive import DavisInteractiveSession, dataset, runs
from segjudge.report import colours
from tests.outcomes import outcome_of, outcome_with_warnings

from .plays import rounded, summary_of
from .scene import Clock, answer, write_root


def answer_better(*, sequence: str, scribbles: Any, new_sequence: bool, images: Any) -> Any:
    del new_sequence
    return answer(sequence, len(images), 1 + len(scribbles["scribbles"]) % 3)


class MethodRunner:
    """Run methods over a dataset, in a folder and with a clock."""

    def __init__(self, davis: Path, clock: Clock) -> None:
        self.davis, self.folder, self.clock = davis, davis.parent, clock
        self.images = dataset.Davis(str(davis)).image_paths
        self.progress: list[Any] = []

    def begin(self, name: str, **terms: Any) -> DavisInteractiveSession:
        options = {"max_nb_interactions": 2, "report_save_dir": self.folder / name, "clock": self.clock, **terms}
        return DavisInteractiveSession(davis_root=str(self.davis), **options)

    def run(self, session: DavisInteractiveSession, method: Any = answer_better, *, steps: bool = False) -> Any:
        self.progress.clear()

        def note(*facts: object) -> None:
            self.clock.now += 2.5
            self.progress.append(facts)

        return runs.run(session, method, self.images, note, steps=steps)

    def keep(self, name: str, subset: str, *, steps: bool = False) -> str:
        """Run the method, and return the path of its report."""
        self.run(self.begin(name, subset=subset), steps=steps)
        for path in [*(self.folder / name).glob("result*")]:
            path.rename(path.with_name("r" + path.name[22:]))
        return f"{self.folder / name}/r.csv"


@pytest.fixture
def runner(davis: Path, clock: Clock) -> MethodRunner:
    return MethodRunner(davis, clock)


def test_a_run_plays_all_interactions_and_reports_its_progress(runner: MethodRunner) -> None:
    summary = rounded(runner.run(runner.begin("all")))
    assert runner.progress == [(f"{name} {sample}", number, 6) for number, (name, sample) in
                             enumerate([("box", 1)] * 2 + [("box", 2)] * 2 + [("duo", 1)] * 2, 1)]  # fmt: skip
    assert summary == summary_of("J_AND_F", 0.3166, 0.4221, [2.5, 5, 5], [0.4221] * 3)
    summary = rounded(runner.run(runner.begin("mine", subset="mine")))
    assert runner.progress[-1] == ("box 2", 4, 4)
    assert summary == summary_of("J_AND_F", 0.3627, 0.4836, [2.5, 5, 5], [0.4836] * 3)


@pytest.mark.long
def test_a_method_that_is_too_slow_goes_on_with_the_next_sample(runner: MethodRunner) -> None:
    def dawdle(*, sequence: str, new_sequence: bool, **more: Any) -> Any:
        runner.clock.now += 1000 * (sequence == "box" and new_sequence)
        return answer_better(sequence=sequence, new_sequence=new_sequence, **more)

    session = runner.begin("slow", max_nb_interactions=3, max_time=500, subset="val")
    summary, warned = outcome_with_warnings(lambda: runner.run(session, dawdle))
    assert runner.progress == [("box 1", 1, 9), ("box 2", 3, 9), ("duo 1", 6, 9), ("duo 1", 7, 9), ("duo 1", 8, 9)]
    assert summary["auc"] == pytest.approx(0.18023, abs=1e-5)
    assert warned == ["The time for box is over; these masks do not count."] * 2


@pytest.mark.parametrize(
    ("method", "cause"),
    [
        (lambda **_: None, "TypeError: it returned None instead of masks"),
        (lambda **_: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda **_: [[1]], "ValueError: y_pred array must have 3 dimensions."),
    ],
    ids=["nothing", "an error", "wrong masks"],
)
def test_a_method_that_fails_is_named_with_its_interaction(method: Any, cause: str, runner: MethodRunner) -> None:
    with pytest.raises(runs.ModelError) as caught:
        runner.run(runner.begin("bad"), method)
    error: Any = caught.value
    assert (str(error), error.is_first) == ("box, scribbles 1, interaction 1", True)
    assert f"{type(error.__cause__).__name__}: {error.__cause__}" == cause


@pytest.mark.long
def test_runs_are_drawn_on_a_page(runner: MethodRunner) -> None:
    mine, second = runner.keep("mine", "val", steps=True), runner.keep("second", "mine")
    ran = [runs.read_run(f"mine={mine}"), runs.read_run(second)]
    assert [(run.name, run.complete, run.metric, run.steps.name) for run in ran] == [
        ("mine", True, "J_AND_F", "r.steps"), ("r", True, "J_AND_F", "r.steps")]  # fmt: skip
    rows = [["mine", 0.3166, 0.42214, 0.42214, 5.0], ["r", 0.36271, 0.48362, 0.48362, 5.0]]
    for run, row in zip(ran, rows, strict=True):
        name, *values = runs._make_row(run)
        assert (name, values) == (row[0], pytest.approx(row[1:], abs=1e-5))
    step = json.loads((runner.folder / "mine/r.steps/duo-1-02.json").read_text())
    assert {key: step[key] for key in ("sequence", "scribble_idx", "interaction", "size")} == {
        "sequence": "duo", "scribble_idx": 1, "interaction": 2, "size": [4, 40, 60]}  # fmt: skip
    assert [path[-9:] for path in step["images"]] == [f"0000{frame}.jpg" for frame in range(4)]
    assert [[each["object_id"] for each in frame] for frame in step["frames"]] == [[1, 2]] * 4
    page, drawn = runner.folder / "plot", list[Any]()
    runs.plot(ran, page, lambda *facts: drawn.append(facts))
    names = [f"{sample}-0{number}" for sample in ("box-1", "box-2", "duo-1") for number in (1, 2)]
    assert drawn == [(name, number, 6) for number, name in enumerate(names)]
    assert {path.relative_to(page).as_posix() for path in page.rglob("*") if path.is_file()} == {
        "curves.png", "curves.svg", "index.html", *(f"steps/0-{name}.js" for name in names),
        *(f"frames/0/0000{frame}.jpg" for frame in range(3)), *(f"frames/1/0000{frame}.jpg" for frame in range(4)),
    }  # fmt: skip
    images = [f"frames/0/0000{frame}.jpg" for frame in range(3)]
    first = json.dumps(
        {"run": 0, "file": "0-box-1-01.js", "key": ["box", 1, 1], "images": images}, separators=(",", ":")
    )
    assert f'{{"runs":["mine","r"],"steps":[{first}' in (page / "index.html").read_text()
    assert (page / "steps/0-duo-1-02.js").read_text().endswith('"values":[0.3607,0.3607,0.3607,0.3607]})')
    for name, size in (("frames/1/00000.jpg", (60, 40)), ("curves.png", (1200, 675))):
        with Image.open(page / name) as image:
            assert image.size == size
    svg = (page / "curves.svg").read_text()
    texts = re.findall(r">([^<\n]*[a-zA-Z][^<\n]*)</text>", svg)
    assert texts == ["seconds", "J&amp;F", "mine", "AUC 0.317", "r", "AUC 0.363"]
    assert [colour in svg for colour in colours.METHODS[:3]] == [True, True, False]


@pytest.fixture(scope="module")
def report_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of a run over one sequence."""
    folder = tmp_path_factory.mktemp("report") / "davis"
    write_root(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset.Davis, "opened", dataset.Davis.opened)
        return Path(MethodRunner(folder, Clock()).keep("mine", "mine")).read_text()


NO_SUMMARY = "r.summary.json beside it is not a summary"
COLUMNS = "it has no column contour, interaction, j_and_f, jaccard, object_id, scribble_idx, sequence, timing"
RANGE = "interactions go from 1 to 16"


def summary_with(metric: str = "J", **curve: Any) -> str:
    times = {"time": [0, 1], metric: [0, 1], **curve}
    return json.dumps({"auc": 1, "metric_at_threshold": {metric: 1}, "curve": times})


@pytest.mark.parametrize(
    ("old", "new", "summary", "why"),
    [
        (None, "a,b\n1,2\n", None, COLUMNS),
        (",box,1,1,", ",box,1,17,", None, RANGE),
        (",box,1,1,", ",box,1,0,", None, RANGE),
        ("", "", "{}", NO_SUMMARY),
        ("", "", "{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("", "", summary_with().replace(": 1,", ": NaN,", 1), NO_SUMMARY),
        ("", "", summary_with(time=[0], J=[0]), NO_SUMMARY),
        ("", "", summary_with(J=[0, 1, 1]), NO_SUMMARY),
        ("", "", summary_with("I"), NO_SUMMARY),
    ],
    ids=["no columns", "interaction 17", "interaction 0", "no summary", "no JSON", "not finite", "short", "uneven", "IoU"],
)  # fmt: skip
def test_a_file_that_is_no_report(
    old: str | None, new: str, summary: str | None, why: str, report_text: str, tmp_path: Path
) -> None:
    report = tmp_path / "r.csv"
    report.write_text(new if old is None else report_text.replace(old, new) if old else report_text)
    if summary is not None:
        (tmp_path / "r.summary.json").write_text(summary)
    outcome = outcome_of(lambda: runs.read_run(str(report)))
    assert outcome == f"SessionInputError: {report}: is not a report of an interactive session ({why})"


def test_a_report_is_read_with_and_without_its_summary(runner: MethodRunner) -> None:
    report = Path(runner.keep("mine", "mine"))
    twin = report.with_name("twin.csv")
    twin.write_text(report.read_text())
    run = runs.read_run(str(twin), {("box", 3): 2})
    assert (run.name, run.complete, run.summary["auc"]) == ("twin", True, pytest.approx(0.20151, abs=1e-5))
    twin.with_name("twin.summary.json").write_text(summary_with())
    one = runs.read_run(str(twin))
    assert (one.complete, one.summary["auc"]) == (True, 1)
    assert (
        outcome_of(lambda: runs.read_run("x=nowhere.csv")) == "SessionInputError: nowhere.csv: there is no such report"
    )
    differ = outcome_of(lambda: runs.plot([runs.read_run(str(report)), one], runner.folder / "p", lambda *_: None))
    assert differ == "SessionInputError: the runs were measured by different metrics (r: J&F, twin: J)"


@pytest.mark.long
def test_steps_of_a_run_that_cannot_be_drawn(runner: MethodRunner) -> None:
    ran = [runs.read_run(runner.keep("mine", "val", steps=True))]
    path = runner.folder / "mine/r.steps/duo-1-02.json"
    step = json.loads(path.read_text())
    changes: list[dict[str, Any]] = [{"size": [4, 0, 1]}, {"size": 3}, {"images": [1]}, {"images": 1}, {"frames": []},
                                     {"interaction": "1"}, {"scribbles": [[]]}]  # fmt: skip
    for change in changes:
        path.write_text(json.dumps({**step, **change}))
        outcome = outcome_of(lambda: runs.plot(ran, runner.folder / "p", lambda *_: None))
        assert outcome == f"SessionInputError: {path}: is not an interaction as `interactive run --steps` keeps them"
    path.write_text(json.dumps({**step, "images": ["gone.jpg"]}))
    runs.plot(ran, runner.folder / "q", lambda *_: None)
    names = ["00000.jpg", "00000.jpg", "00001.jpg", "00001.jpg", "00002.jpg", "00002.jpg", "00003.jpg"]
    assert sorted(each.name for each in (runner.folder / "q").rglob("*.jpg")) == names, "of the other interactions"


USAGE = "SystemExit: usage: python -m segjudge.davisinteractive PROGRAM.py …, or -m MODULE …"


@pytest.mark.parametrize(
    ("arguments", "outcome"),
    [
        (["FOLDER/program.py", "a", "-b"], "__main__ ['a', '-b'] FOLDER segjudge.davisinteractive\n"),
        (["-m", "module", "c"], "__main__ ['FOLDER/module.py', 'c']\n"),
        ([], USAGE),
        (["-m"], USAGE),
        (["-x"], USAGE),
        (["FOLDER/nowhere.py"], "FileNotFoundError: [Errno 2] No such file or directory: 'FOLDER/nowhere.py'"),
    ],
    ids=str,
)
def test_a_program_of_the_framework_runs_as_python_runs_it(
    arguments: list[str], outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    program = "import sys, davisinteractive\nprint(__name__, sys.argv[1:], sys.path[0], davisinteractive.__name__)\n"
    (tmp_path / "program.py").write_text(program)
    (tmp_path / "module.py").write_text("import sys\nprint(__name__, sys.argv)\n")
    monkeypatch.setattr(sys, "argv", ["x", *(word.replace("FOLDER", str(tmp_path)) for word in arguments)])
    monkeypatch.setattr(sys, "path", ["first", str(tmp_path), *sys.path[1:]])
    module = "segjudge.davisinteractive.__main__"
    with mock.patch.dict(sys.modules):
        for name in [name for name in sys.modules if name.split(".")[0] == "davisinteractive"]:
            del sys.modules[name]
        try:
            runpy.run_module(module, run_name=module)
            result = capsys.readouterr().out
        except (SystemExit, OSError) as error:
            result = f"{type(error).__name__}: {error}"
    assert result.replace(str(tmp_path), "FOLDER") == outcome


@pytest.fixture
def logger(monkeypatch: pytest.MonkeyPatch) -> mock.Mock:
    logger = mock.Mock(handlers=[])
    monkeypatch.setattr(logging, "_levels", dict(logging._levels))
    monkeypatch.setattr(logging, "_logger", logger)
    monkeypatch.setattr(logging, "info", logger.info)
    return logger


@pytest.mark.parametrize(("verbosity", "level"), [(-9, 50), (-3, 50), (-1, 30), (0, 20), (1, 10), (9, 10)])
def test_a_verbosity_is_a_level(verbosity: int, level: int, logger: mock.Mock) -> None:
    logging.set_verbosity(verbosity)
    logger.setLevel.assert_called_once_with(level)
    assert logging.get_verbosity() == verbosity
