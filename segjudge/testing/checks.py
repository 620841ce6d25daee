"""The checks that all families must pass, with a truth and submissions."""

from __future__ import annotations

import io
import json
import math
import os
import random
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, is_dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, NoReturn

import segjudge.evaluation_script
from segjudge.evaluation_script import main as door
from segjudge.evaluation_script.families import (
    FAMILIES,
    FOLDERS,
    LAYOUTS,
    PROTOCOLS,
    describe_unknown,
    engine_of,
    folder_of,
    report_of,
)
from segjudge.evaluation_script.families.base.accumulator import Accumulator
from segjudge.evaluation_script.families.base.family import FamilyProtocol, ignore_progress
from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.files import limits
from segjudge.evaluation_script.files.problems import SubmissionError
from segjudge.evaluation_script.masks import backend as backends
from segjudge.evaluation_script.runner.parallel import Part
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit
from segjudge.evaluation_script.scoring.scorer import Scorer
from segjudge.families import FamilyTools, tools_of
from segjudge.families.plugin_files import check_upload, read_uploads
from segjudge.families.truths import TruthSource, pack_truth
from segjudge.scoring.arrays import score_arrays
from segjudge.scoring.parts import merge_parts
from segjudge.scoring.request import PartCounter, PreparedScoring, ScoreRequest, prepare
from segjudge.starting.new_challenge import NewChallenge, create
from segjudge.system.errors import UsageError

from .hostile import make_refused, make_variants
from .running import Outcome, run_in_child

#: Metric -> value; None if there is nothing to average.
Metrics = Mapping[str, "float | None"]
#: The variable with EvalAI's interpreter, for the check `python39`.
WORKER = "SEGJUDGE_WORKER_PYTHON"
#: The number of mishandled hostile submissions after which the check stops.
_MOST_FAULTS = 6
#: The maximum length of a sentence to a participant.
_LONGEST_SENTENCE = 20_000


@dataclass(frozen=True)
class Case:
    """A test case: a protocol, a truth, and submissions with known scores."""

    protocol: str
    #: The truth as its benchmark publishes it, or packed.
    truth: str | os.PathLike[str]
    #: Name → a submission that scores. Its units should differ from each other.
    submissions: Mapping[str, str | os.PathLike[str]]
    #: The correct numbers per name of a submission, or a function of truth and submission that returns them.
    expected: Mapping[str, Metrics] | Callable[[str, str], Metrics] | None = None
    #: The maximum difference from `expected`.
    tolerance: float = 1e-9
    #: Submission with several faults → words of each fault, all of which its rejection must contain.
    faults: Mapping[str | os.PathLike[str], Sequence[str]] = field(default_factory=dict)
    #: Submission with a common slip → words of the warning that it raises. Other submissions raise none.
    slips: Mapping[str | os.PathLike[str], str] = field(default_factory=dict)
    #: Name of a submission → a function that returns its prediction and the truth in memory.
    arrays: Mapping[str, Callable[[], tuple[object, object]]] = field(default_factory=dict)
    #: The categories of masks in memory, if the family's numbers need them.
    categories: Sequence[Mapping[str, Any]] = ()
    #: A truth of the same units, by which the same submissions have other numbers.
    other_truth: str | os.PathLike[str] = ""
    #: Limits for a hostile submission: CPU seconds, and bytes of memory that scoring may add to the process.
    seconds: float = 5.0
    memory: int = 400 << 20

    def __post_init__(self) -> None:
        """Raise AssertionError for an unknown protocol, with the faults of plug-ins."""
        if self.protocol not in PROTOCOLS:
            _fail(describe_unknown(self.protocol))

    @property
    def rules(self) -> FamilyProtocol:
        return PROTOCOLS[self.protocol]

    def prepare(self, submission: str | os.PathLike[str], truth: str = "", jobs: int = 1) -> PreparedScoring:
        """Return the prepared scoring of a submission."""
        source = TruthSource(os.fspath(truth or self.truth))
        return prepare(ScoreRequest(os.fspath(submission), source, self.rules, jobs=jobs))

    def phase(self, *, hidden: bool = False) -> Phase:
        """Return the phase that scores the case, with its family's limits."""
        name = tools_of(self.rules.family).limits
        bounds = getattr(limits, name) if name else limits.ArchiveLimits()
        split = PhaseSplit("val", self.protocol, tuple(self.rules.metrics), hidden=hidden)
        return Phase("val", "val.zip", (split,), limits=bounds, detail="all", report=True)


def check(case: Case) -> None:
    """Check all promises; raises one AssertionError with a sentence per broken promise."""
    faults = []
    for name, holds in CHECKS.items():
        try:
            holds(case)
        except AssertionError as error:
            faults.append(f"{name}: {error}")
    if faults:
        _fail("\n".join(faults))


def _fail(text: str) -> NoReturn:
    raise AssertionError(text)


def _expect(condition: object, text: str) -> None:
    if not condition:
        _fail(text)


# ── rules and numbers ───────────────────────────────────────────────────────


def _check_rules(case: Case) -> None:
    """Check that protocols are frozen rows with names, sentences, described metrics and revisions."""
    rules, tools = case.rules, tools_of(case.rules.family)
    family = FAMILIES[rules.family]
    for name, row in family.protocols.items():
        frozen = is_dataclass(row) and type(row).__dataclass_params__.frozen  # type: ignore[attr-defined]
        _expect(frozen and row == replace(row), f"{name} is not a frozen dataclass that compares by value")
        _expect(name == row.name and row.family == family.name, f"{name} has another name or family in its row")
        _expect(isinstance(row.about, str) and row.about.strip(), f"{name} has an empty `about`")
        _expect(type(row.revision) is int and row.revision > 0, f"{name} has no revision from 1")
        _expect(row.metrics and len(set(row.metrics)) == len(row.metrics), f"{name} has no metrics, or one twice")
    _expect(family.layouts, f"{family.name} names no layout, so that nothing can be packed")
    _expect(
        all(LAYOUTS[layout] == family.name for layout in family.layouts),
        f"a layout of {family.name} belongs to another family",
    )
    for row in family.protocols.values():
        for metric in (*row.metrics, *family.own_metrics):
            _check_meaning(tools, metric)
            stated = folder_of(family.name) in FOLDERS or tools.states_direction(metric)
            example = f'directions = {{"{metric}": "larger"}}'
            _expect(stated, f"{row.name}: nothing says whether larger {metric} is better; write {example} in TOOLS")


def _check_meaning(tools: FamilyTools, metric: str) -> None:
    """Check that a metric has a description."""
    remedy = "write what it means in `describe_metric`"
    try:
        meaning = tools.describe_metric(metric)
    except Exception as error:
        text = f"{metric} has no description: `describe_metric` raises {type(error).__name__}: {error}; {remedy}"
        raise AssertionError(text) from error
    _expect(isinstance(meaning, str) and meaning.strip(), f"{metric} has no description; {remedy}")


def _check_numbers(case: Case) -> None:
    """Check that submissions get the expected, finite scores within the protocol's bounds."""
    _expect(case.submissions, "there is no submission that scores")
    for name, path in case.submissions.items():
        for scorer in case.prepare(path).scorers.values():
            try:
                report = scorer.score(os.fspath(path))
            except KeyError as error:
                missing = error.args[0] in case.rules.metrics
                _expect(not missing, f"{name}: the protocol names {error.args[0]}, which the family does not compute")
                raise
            for metric, value in report.values.items():
                low, high = getattr(case.rules, "bounds", {}).get(metric, (-math.inf, math.inf))
                inside = value is None or (math.isfinite(value) and low <= value <= high)
                _expect(inside, f"{name}: {metric} is {value}, not within {low} to {high}")
            _expect_numbers(name, report.values, _compute_expected(case, name, path), case.tolerance)


def _check_suspicions(case: Case) -> None:
    """Check that good submissions raise no suspicion, and faulty ones the expected one."""
    for name, path in case.submissions.items():
        lines = _list_suspicions(case, path)
        _expect(not lines, f"{name}: gets an unexpected warning: {'; '.join(lines)}")
    for path, expected in case.slips.items():
        name, lines = os.path.basename(path), _list_suspicions(case, path)
        _expect(
            any(expected in line for line in lines),
            f"{name}: no warning says {expected!r}: {'; '.join(lines) or 'none'}",
        )
        _expect(all(map(str.isascii, lines)), f"{name}: warnings must be ASCII: {'; '.join(lines)}")


def _list_suspicions(case: Case, path: str | os.PathLike[str]) -> list[str]:
    scorers = case.prepare(path).scorers.values()
    return [line for scorer in scorers for line in scorer.score(os.fspath(path)).suspicions]


def _compute_expected(case: Case, name: str, path: str | os.PathLike[str]) -> Metrics:
    if case.expected is None:
        return {}
    if callable(case.expected):
        return case.expected(os.fspath(case.truth), os.fspath(path))
    return case.expected.get(name, {})


def _expect_numbers(name: str, values: Metrics, expected: Metrics, tolerance: float) -> None:
    for metric, right in expected.items():
        _expect(metric in values, f"{name}: {metric} is expected, but there are only {', '.join(values)}")
        value = values[metric]
        absent = right is None or math.isnan(right)
        near = value is None if absent else value is not None and abs(value - float(right or 0)) <= tolerance
        _expect(near, f"{name}: {metric} is {value}, but {right} is expected (to {tolerance:g})")


# ── the bits of one run ─────────────────────────────────────────────────────


def describe_counts(counts: Accumulator[Any, Any]) -> str:
    """Return all computed values, to the last bit, and their counts."""
    report = report_of("val", counts)
    return repr([report.values, report.errors(), report.rows(), report.warnings, counts.state_dict()])


def empty_like(counts: Accumulator[Any, Any]) -> Accumulator[Any, Any]:
    """Return an empty accumulator from another's description, as in part files."""
    description = json.loads(json.dumps(counts.describe()))
    return type(counts).make_empty(counts.protocol, description, strict=counts.strict)


def _check_sharing(case: Case) -> None:
    """Check that processes, parts (reordered, repeated), states and files give equal bits."""
    for name, path in case.submissions.items():
        for split, scorer in case.prepare(path).scorers.items():
            whole = scorer.count(os.fspath(path))
            expected = describe_counts(whole)
            engine_of(case.rules.family).check(whole)
            for jobs in (2, 5):
                counts = replace(scorer, rules=replace(scorer.rules, jobs=jobs)).count(os.fspath(path))
                _expect(describe_counts(counts) == expected, f"{name}, {split}: {jobs} processes give different scores")
            for count in (1, 3, 24):
                shared = [scorer.count(os.fspath(path), Part(number + 1, count)) for number in range(count)]
                random.Random(count).shuffle(shared)
                total = empty_like(whole)
                for counts in [*shared, shared[0], shared[-1]]:  # some of them twice
                    total.merge(counts)
                _expect(describe_counts(total) == expected, f"{name}, {split}: {count} parts give different scores")
            _check_state(f"{name}, {split}", whole, expected)
        _check_part_files(case, name, path)


def _check_state(name: str, whole: Accumulator[Any, Any], expected: str) -> None:
    state, loaded = whole.state_dict(), empty_like(whole)
    loaded.load_state_dict(state)
    _expect(loaded.state_dict() == state, f"{name}: a loaded state differs from the saved one")
    _expect(describe_counts(loaded) == expected, f"{name}: a loaded state gives different scores")
    key, data = next(iter(state.items()))
    nested = (100_000).to_bytes(4, "little") + b"[" * 100_000
    swapped = [value for entry, value in state.items() if entry != key and value != data]
    for damage in (b"", data[:-8], data + bytes(8), b"\xff" * 40, data[:9], nested, *swapped[:1]):
        try:
            empty_like(whole).load_state_dict({key: damage})
        except ValueError:
            continue
        _fail(f"{name}: counts that are damaged ({damage[:20]!r}…) are accepted; `decode` must raise ValueError")
    changed = empty_like(whole)
    changed.strict = not whole.strict
    try:
        changed.merge(whole)
    except ValueError:
        return
    _fail(f"{name}: counts of another strictness are merged")


def _check_part_files(case: Case, name: str, path: str | os.PathLike[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        prepared = case.prepare(path)
        counter = PartCounter(prepared)
        paths = [os.path.join(folder, f"{number}.part") for number in (1, 2, 3)]
        for number, target in enumerate(paths, 1):
            counter.write(Part(number, 3), target)
        counter.close()
        reports, _, _ = merge_parts(reversed(paths))
        whole = prepared.score().reports
        pairs = [
            [(each.values, each.errors(), each.rows(), _list_notes(each)) for each in side] for side in (reports, whole)
        ]
        _expect(repr(pairs[0]) == repr(pairs[1]), f"{name}: three parts give different scores")


def _list_notes(report: Report) -> list[str]:
    """Return the warnings of a report without likely mistakes, which merged parts lack."""
    return [line for line in report.warnings if line not in report.suspicions]


def _check_packing(case: Case) -> None:
    """Check that the packed truth gives the same bits as the published one."""
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        packed = _pack(case, os.fspath(case.truth), folder)
        for name, path in case.submissions.items():
            pair = [
                repr([describe_counts(scorer.count(os.fspath(path))) for scorer in prepared.scorers.values()])
                for prepared in (case.prepare(path), case.prepare(path, packed))
            ]
            _expect(pair[0] == pair[1], f"{name}: the packed and the published truth give different scores")


def _pack(case: Case, truth: str, folder: str) -> str:
    packed = os.path.join(folder, "truth.zip")
    pack_truth(TruthSource(truth), case.rules, packed, ignore_progress)
    return packed


def _check_backends(case: Case) -> None:
    """Check that kernel and numpy give equal bits."""

    def score(path: str, *, numpy: bool) -> str:
        if numpy:
            vars(backends)["_choose_backend"] = lambda: backends.NumpyBackend("in a test")
        scores = case.prepare(path).score()
        return repr([(report.values, report.rows()) for report in scores.reports])

    for name, path in case.submissions.items():
        works = [(about, partial(score, os.fspath(path), numpy=about == "numpy")) for about in ("kernel", "numpy")]
        outcomes = [outcome for _, outcome in run_in_child(works, 60.0, 4 << 30)]
        wrong = [outcome.text for outcome in outcomes if outcome.kind != "returned"]
        _expect(not wrong, f"{name}: {' '.join(wrong)}")
        _expect(outcomes[0].text == outcomes[1].text, f"{name}: the kernel and numpy give different bits")


def _check_memory(case: Case) -> None:
    """Check that masks in memory score as files do, or that the family declares none."""
    if not case.arrays:
        try:
            tools_of(case.rules.family).open_memory(case.rules, (), ())
        except UsageError:
            return
        _fail("the family takes masks in memory, and the case has no `arrays` to compare with files")
    for name, make in case.arrays.items():
        prediction, truth = make()
        scores = score_arrays(prediction, truth, case.protocol, categories=case.categories)
        (values,) = scores.metrics.values()
        (expected,) = case.prepare(case.submissions[name]).score().metrics.values()
        _expect(values == expected, f"{name}: masks in memory give {values}, files {expected}")


# ── participants' messages ──────────────────────────────────────────────────


def _check_problems(case: Case) -> None:
    """Check that rejections list every problem, in readable sentences, by every process."""
    for path, expected in case.faults.items():
        name, messages = os.path.basename(os.fspath(path)), []
        for jobs in (1, 2):
            try:
                case.prepare(path, jobs=jobs).score()
            except SubmissionError as error:
                messages.append(str(error))
            else:
                _fail(f"{name}: has faults, but is scored")
        missing = [word for word in expected if word not in messages[0]]
        _expect(not missing, f"{name}: problems do not mention {', '.join(missing)}, only: {messages[0]}")
        _expect(messages[0] == messages[1], f"{name}: two processes report different problems: {messages[1]}")
        _expect_sentence(name, messages[0])


def _expect_sentence(name: str, text: str) -> None:
    odd = sorted({letter for letter in text if not letter.isprintable() and letter != "\n"})
    _expect(not odd, f"{name}: the message holds control characters: {odd}")
    _expect(len(text) <= _LONGEST_SENTENCE, f"{name}: the message has {len(text):,} characters")
    _expect("Traceback" not in text and text.strip(), f"{name}: the message is not a sentence: {text[:200]}")
    _expect(tempfile.gettempdir() not in text, f"{name}: the message shows a path of this machine: {text[:200]}")


def _check_archives(case: Case) -> None:
    """Check that forbidden archive content is rejected with a clear sentence."""
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        for name, path in case.submissions.items():
            scorer = _first_scorer(case, path)
            upload = Path(folder, "results.zip")
            for about, data, expected in make_refused(path):
                upload.write_bytes(data)
                try:
                    scorer.score(str(upload))
                except SubmissionError as error:
                    _expect(
                        expected in str(error), f"{name}, {about}: the message does not say `{expected}`, only: {error}"
                    )
                    _expect_sentence(f"{name}, {about}", str(error))
                else:
                    _fail(f"{name}, {about}: is scored")


def _first_scorer(case: Case, path: str | os.PathLike[str]) -> Scorer:
    """Return the scorer of the first split, with a phase's limits."""
    (scorer,) = list(case.prepare(path).scorers.values())[:1]
    return replace(scorer, rules=replace(scorer.rules, limits=case.phase().limits))


def _check_hostile(case: Case) -> None:
    """Check that hostile files are scored or rejected with a sentence, quickly and in little memory."""
    faults = []
    for name, path in case.submissions.items():
        scorer = _first_scorer(case, path)
        with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
            works = (
                (about, partial(_score_variant, scorer, write, Path(folder, str(number))))
                for number, (about, write) in enumerate(make_variants(path))
            )
            for about, outcome in run_in_child(works, case.seconds, case.memory):
                fault = _fault_of(case, outcome)
                faults += [f"{name}, {about}: {fault}"] if fault else []
                if len(faults) == _MOST_FAULTS:
                    break
        if faults:
            break
    _expect(not faults, "\n".join(["hostile submissions are not rejected correctly:", *faults]))


def _score_variant(scorer: Scorer, write: Callable[[Path], Path], folder: Path) -> str:
    folder.mkdir()
    path = write(folder)
    report = scorer.score(str(path))
    odd = {name: value for name, value in report.values.items() if value is not None and not math.isfinite(value)}
    if odd:
        raise ValueError(f"scores {odd}")
    return "scored"


def _fault_of(case: Case, outcome: Outcome) -> str:
    """Return the fault in the handling of a hostile submission; "" without one."""
    if outcome.kind not in ("returned", "refused"):
        return f"{outcome.kind}: {outcome.text}"
    if outcome.kind == "refused":
        try:
            _expect_sentence("", outcome.text)
        except AssertionError as error:
            return str(error).removeprefix(": ")
    if outcome.seconds > case.seconds:
        return f"took {outcome.seconds:.1f} CPU seconds; the limit is {case.seconds:g}"
    if outcome.extra_bytes > case.memory:
        return f"took {outcome.extra_bytes >> 20} MiB; the limit is {case.memory >> 20}"
    return ""


def _check_hidden(case: Case) -> None:
    """Check that participants learn nothing about a hidden split."""
    for name, path in case.submissions.items():
        seen, reports = [], []
        for truth in [os.fspath(each) for each in (case.truth, case.other_truth) if each]:
            with tempfile.TemporaryDirectory(prefix="segjudge-") as folder, redirect_stdout(io.StringIO()) as printed:
                packed = _pack(case, truth, folder)
                answer = door.evaluate_phase(case.phase(hidden=True), packed, os.fspath(path))
            reports.append([answer.pop("result"), answer.pop("error", None), answer.pop("interval", None)])
            answer.pop("submission_metadata")  # which hosts read
            seen.append(json.dumps(answer, sort_keys=True, default=str) + printed.getvalue())
        numbers = {repr(value) for value in _numbers_in(reports[0]) if len(repr(value)) > 8}
        shown = sorted(number for number in numbers if number in seen[0])
        _expect(not shown, f"{name}: participants read scores of a hidden split: {', '.join(shown)}")
        _expect(len({*map(repr, reports)}) == len(reports), f"{name}: both truths give the same scores")
        _expect(len({*seen}) == 1, f"{name}: what participants read about a hidden split depends on its truth")


def _numbers_in(value: object) -> Iterable[float]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [number for entry in value for number in _numbers_in(entry)]
    return [value] if isinstance(value, float) else []


# ── pages, challenges, uploads ──────────────────────────────────────────────


def _check_report(case: Case) -> None:
    """Check that a page shows the metrics and a family section, reproducibly."""
    for name, path in case.submissions.items():
        pages = [case.prepare(path).score().page(title=name) for _ in range(2)]
        sections = pages[0].count("<section")
        _expect(sections > 2, f"{name}: the page has only the summary and the origins")
        _expect(pages[0] == pages[1], f"{name}: two pages of the same scores differ")
        missing = [metric for metric in case.rules.metrics if metric.replace("&", "&amp;") not in pages[0]]
        _expect(not missing, f"{name}: the page does not name {', '.join(missing)}")


def _check_challenge(case: Case) -> None:
    """Check that `segjudge new` makes a challenge whose poor sample scores no better."""
    commit = f"git+https://example.org/segjudge@{'0' * 40}"
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        try:
            create(
                NewChallenge(f"{folder}/mine", case.protocol, TruthSource(os.fspath(case.truth)), "", commit),
                ignore_progress,
            )
        except UsageError as error:
            _expect("no challenges" in str(error) or "no texts" in str(error), f"no challenge: {error}")
            return
        (phase,) = os.listdir(f"{folder}/mine/examples")
        truth, metric = f"{folder}/mine/annotations/{phase}.zip", case.rules.metrics[0]
        samples = [f"{folder}/mine/examples/{phase}/{name}.zip" for name in ("good", "poor")]
        good, poor = (next(iter(case.prepare(path, truth).score().metrics.values()))[metric] for path in samples)
        smaller = tools_of(case.rules.family).prefers_smaller(metric)
        _expect(
            good is not None and poor is not None and (good <= poor if smaller else good >= poor),
            f"`make_sample` makes a poor sample whose {metric} is {poor}, and a good one with {good}",
        )


def _check_python39(case: Case) -> None:
    """Check that EvalAI's worker can import the upload half; `SEGJUDGE_WORKER_PYTHON` runs it."""
    root = Path(segjudge.evaluation_script.__file__).parent
    folder = root / "families" / folder_of(case.rules.family)
    faults = check_upload(str(folder), case.rules.family) if folder.is_dir() else []
    _expect(not faults, "\n".join(faults))
    more = read_uploads([case.protocol])
    worker = os.environ.get(WORKER, "")
    if not worker:
        return
    with tempfile.TemporaryDirectory(prefix="segjudge-") as place_of_script:
        packed = _pack(case, os.fspath(case.truth), place_of_script)
        script = Path(place_of_script, root.name)
        for source in [path for path in root.rglob("*.py") if "__pycache__" not in path.parts]:
            target = script / source.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
        for name, data in more.items():
            (script / name).parent.mkdir(parents=True, exist_ok=True)
            (script / name).write_bytes(data)
        for name, path in case.submissions.items():
            command = [worker, "-I", "-c", _ON_WORKER, place_of_script, packed, os.path.abspath(path), case.protocol]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            _expect(not done.returncode, f"{name}: does not score on Python 3.9: {done.stderr.strip()[-2000:]}")
            values = json.loads(done.stdout.splitlines()[-1])
            for report in case.prepare(path, packed).score().reports:
                _expect_numbers(name, report.values, values[report.split], case.tolerance)


_ON_WORKER = """
import json, sys
sys.path.insert(0, sys.argv[1])
import evaluation_script.families as families
from evaluation_script.families.base.family import ScoringRules
from evaluation_script.files.limits import ArchiveLimits
from evaluation_script.scoring.scorer import Scorer, read_truth
protocol = families.PROTOCOLS[sys.argv[4]]
rules = ScoringRules(protocol, ArchiveLimits(links=True))
splits = read_truth(sys.argv[2], protocol.name).splits
print(json.dumps({name: Scorer(name, truth, rules).score(sys.argv[3]).values for name, truth in splits.items()}))
"""


def _report_exceptions(check: Callable[[Case], None]) -> Callable[[Case], None]:
    """Return a check that also reports a family's exceptions as sentences."""

    @wraps(check)
    def run(case: Case) -> None:
        try:
            check(case)
        except AssertionError:
            raise
        except Exception as error:
            kind = "is rejected, but should score" if isinstance(error, SubmissionError) else type(error).__name__
            raise AssertionError(f"{kind}: {error}") from error

    return run


#: The promises of families, by name.
CHECKS: dict[str, Callable[[Case], None]] = {
    holds.__name__.removeprefix("_check_"): _report_exceptions(holds)
    for holds in (
        *(_check_rules, _check_numbers, _check_sharing, _check_packing, _check_backends, _check_memory),
        *(_check_problems, _check_archives, _check_hostile, _check_hidden, _check_report, _check_challenge),
        *(_check_python39, _check_suspicions),
    )
}
