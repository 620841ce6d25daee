"""What the kit says of each promise that is not kept, on two images of cells and with one thing changed, as one text.

    python -m tests.testing.kit_sentences

writes it to `tests/golden/kit_sentences.txt`, for changes that are meant to be seen.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

import segjudge
from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS
from segjudge.evaluation_script.files import limits
from segjudge.evaluation_script.scoring.scorer import Scorer
from segjudge.families import tools_of
from segjudge.testing import CHECKS, Case, check, checks
from segjudge.testing.running import Outcome
from tests.builders import png, written, zipped
from tests.calls import labels, run_calls

FILE = Path(__file__).parents[1] / "golden/kit_sentences.txt"

SESSION = """
holds("rules")
holds("rules", FAMILIES=family(revision=0)); holds("rules", FAMILIES=family(revision=True)); holds("rules", FAMILIES=family(revision=1))
holds("rules", FAMILIES=family(about=" ")); holds("rules", FAMILIES=family(about=5))
holds("rules", FAMILIES=family(name="another")); holds("rules", FAMILIES=family({"b": RULES}))
holds("rules", FAMILIES=family({"cellpose-ap": SimpleNamespace(**vars(RULES))})); holds("rules", FAMILIES=family(layouts=())); holds("rules", FAMILIES=family(layouts=("coco",)))
holds("rules", tools_of=tools(describe_metric=lambda metric: metric[:2] * (metric != "AP75")))

holds("numbers")
holds("numbers", case(submissions={}))
holds("numbers", case(expected={"good": {"AP50": 1.0, "AP75": 1, "AP90": 1.0}, "poor": {"AP90": 0.0}, "other": {"AP50": 5}}))
holds("numbers", case(expected={"poor": {"AP50": 0.5}})); holds("numbers", case(expected={"poor": {"AP60": 0.5}})); holds("numbers", case(expected={"poor": {"AP50": None}}))
holds("numbers", case(expected={"poor": {"AP90": 2e-3}}, tolerance=1e-2)); holds("numbers", case(expected={"poor": {"AP90": 2e-3}}, tolerance=1e-3))
holds("numbers", case(expected=lambda truth, sent: {"AP50": float(os.path.basename(truth) == "truth" and os.path.basename(sent) == "good.zip")}))
numbers({"a": None, "b": 0.5}, {"a": float("nan"), "b": 0.5}); numbers({"a": 0.0}, {"a": None}); numbers({"a": None}, {"a": 0.0}); numbers({"a": 1.0}, {"a": 1 + 1e-10}); numbers({"a": 1.0}, {"b": 1}); numbers({"a": 1.0, "c": 2}, {})
scores("numbers", AP50=float("inf")); scores("numbers", AP50=1.5); scores("numbers", AP50=-0.5); scores("numbers", AP50=None); scores("numbers", AP50=0.0)

holds("sharing"); holds("packing"); holds("backends")
holds("sharing", describe_counts=changing()); holds("packing", describe_counts=changing())
with_change("sharing", "empty_like", lambda make: lambda counts: setattr(make(counts), "x", 1) or counts)
holds("backends", run_apart=lambda works, seconds, memory: [(about, Outcome("returned", about)) for about, _ in works])
holds("backends", run_apart=lambda works, seconds, memory: [(about, Outcome("died", f"{about}, {seconds}, {memory}.")) for about, _ in works])

holds("memory"); holds("memory", case(arrays={"good": lambda: (DRAWN, DRAWN), "poor": lambda: (MOVED, DRAWN)})); holds("memory", case(arrays={"good": lambda: (MOVED, DRAWN)}))
holds("problems", case(faults={"faulty.zip": ["a_masks.png"]})); holds("problems", case(faults={"faulty.zip": ["a_masks.png", "cat", "dog"]})); holds("problems", case(faults={"good.zip": []}))
sentence("fine\\nwords"); sentence("a\\x1b[2J\\x07"); sentence("x" * 20_000); sentence("x" * 20_001); sentence("Traceback of it"); sentence(" \\n"); sentence(f"in {tempfile.gettempdir()}/x")
holds("archives", make_refused=lambda path: [("a trick", zipped({"a_masks.png": png(T)}), "lacks")]); holds("archives", make_refused=lambda path: [("a trick", b"", "is a link")]); holds("archives", make_refused=lambda path: [("a trick", b"", "is empty")])
holds("hostile", run_apart=met(Outcome("returned", "scored"))); holds("hostile", run_apart=met(Outcome("TypeError", "a\\nb"))); holds("hostile", run_apart=met(Outcome("refused", "no"), Outcome("refused", "\\x1b")))
holds("hostile", run_apart=met(Outcome("returned", "", 5.0, 400 << 20))); holds("hostile", run_apart=met(Outcome("returned", "", 5.01))); holds("hostile", case(seconds=0.5, memory=1 << 20), run_apart=met(Outcome("refused", "no", 0.1, (1 << 20) + 1), Outcome("refused", "no", 0.75, 9 << 20)))
outcome(lambda folder: folder / "nothing"); outcome(lambda folder: written(folder, {"a_masks.png": png(T), "b_masks.png": png(T)}))
odd(float("nan")); odd(None)

holds("hidden"); holds("hidden", case(other_truth="")); holds("hidden", case(other_truth="truth"))
answers(lambda answer: {**answer, "x": answer["result"]}); answers(lambda answer: {**answer, "x": next(numbers_seen)})
_numbers({"a": [1, 2.5, {"b": (0.25, "c")}], "d": None, "e": True}), _numbers(3.5), _numbers(3), _numbers("x")
holds("report"); holds("report", page=lambda: "<section" * 4 + f"AP50 AP75 AP90 {next(numbers_seen)}"); holds("report", page=lambda: "<section" * 3 + "AP50"); holds("report", page=lambda: "<section" * 2 + "AP50 AP75 AP90")
holds("challenge"); holds("challenge", tools_of=tools(prefers_smaller=lambda metric: True))
challenge(segjudge.UsageError("no challenges of x can be made yet")); challenge(segjudge.UsageError("no texts")); challenge(segjudge.UsageError("no truth")); challenge(OSError("x"))
holds("python39"); holds("python39", check_upload=lambda *_: ["one", "two"])

# All of them
every({"rules": fail("a"), "numbers": fail(""), "packing": None}); every({"rules": None})
case().phase(), case().phase(hidden=True).splits, case().rules.name
case(protocol="cellpose")
kinds = {name: refused(lambda: CHECKS["numbers"](Raising(name))) for name in ("SubmissionError", "HostError", "KeyError", "AssertionError")}; kinds
list(CHECKS), [check.__doc__ for check in CHECKS.values()]
"""


def write_sentences() -> str:
    """Return what the session says, in a folder of its own."""
    here, seen = os.getcwd(), count()
    drawn = {"a": np.kron(labels("0000000 0110220 0110220 0000000"), np.ones((6, 6), np.uint8))}
    drawn["b"] = np.roll(drawn["a"], 3, 0)
    moved = {name: np.roll(frame, 2, 1) for name, frame in drawn.items()}
    space = {
        "RULES": PROTOCOLS["cellpose-ap"], "T": drawn["a"], "DRAWN": drawn, "MOVED": moved, "CHECKS": CHECKS, "Outcome": Outcome,
        "SimpleNamespace": SimpleNamespace, "os": os, "tempfile": tempfile, "segjudge": segjudge, "zipped": zipped, "png": png,
        "written": written, "case": _make_case, "holds": _hold, "family": _make_family, "tools": _make_tools, "refused": _refuse,
        "numbers": lambda values, right: _refuse(lambda: checks._expect_numbers("x", values, right, 1e-9)),
        "sentence": lambda text: _refuse(lambda: checks._expect_sentence("x", text)), "met": _meet, "scores": _score_otherwise,
        "changing": lambda: lambda counts: str(next(seen)), "numbers_seen": seen, "_numbers": lambda value: list(checks._numbers_in(value)),
        "with_change": lambda name, what, change: _hold(name, **{what: change(getattr(checks, what))}), "outcome": _score_variant,
        "odd": lambda value: _score_variant(lambda folder: Path("good.zip"), AP50=value), "answers": _answer, "every": _check_all,
        "challenge": _refuse_challenge, "fail": lambda text: lambda case: checks._fail(f"{case.protocol}{text}"), "Raising": _Raising,
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        os.chdir(folder)
        try:
            for name, maps in (("truth", drawn), ("other", {name: np.flipud(frame) for name, frame in moved.items()})):
                written(Path(name), {f"{stem}_masks.png": png(frame) for stem, frame in maps.items()})
            for name, maps in (("good", drawn), ("poor", moved)):
                Path(f"{name}.zip").write_bytes(
                    zipped({f"{stem}_masks.png": png(frame) for stem, frame in maps.items()})
                )
            Path("faulty.zip").write_bytes(zipped({"a_masks.png": png(drawn["a"][:3]), "b_masks.png": b"x"}))
            with patch.dict(os.environ):
                os.environ.pop(checks.WORKER, None)
                text = run_calls(SESSION.lstrip(), space)
        finally:
            os.chdir(here)
    return re.sub(
        r"segjudge-\w+", "segjudge-NAME", text.replace(folder, "FOLDER").replace(tempfile.gettempdir(), "TEMPORARY")
    )


def _make_case(**changes: Any) -> Case:
    values = {
        "protocol": "cellpose-ap", "truth": "truth", "submissions": {"good": "good.zip", "poor": "poor.zip"}, "other_truth": "other",
    }  # fmt: skip
    return Case(**{**values, **changes})


def _refuse(call: Callable[[], object]) -> str:
    try:
        return repr(call())
    except Exception as error:  # noqa: BLE001 - whatever is raised is what is looked for
        return f"{type(error).__name__}: {error}"


def _hold(name: str, case: Case | None = None, **changes: Any) -> str:
    """Check a promise with other names in the kit's module; `page` is what scores have as theirs."""
    page = changes.pop("page", None)
    pages = patch.object(segjudge.Scores, "page", lambda *_, **__: page()) if page else patch.dict({})
    with patch.dict(vars(checks), changes), pages:
        return _refuse(lambda: CHECKS[name](case or _make_case()))


def _make_family(rows: Any = None, layouts: Any = None, **changes: Any) -> Any:
    family = FAMILIES["microscopy"]
    rows = rows or {"cellpose-ap": replace(PROTOCOLS["cellpose-ap"], **changes)}
    layouts = family.layouts if layouts is None else layouts
    return {"microscopy": SimpleNamespace(name="microscopy", protocols=rows, layouts=layouts)}


def _make_tools(**changes: Any) -> Any:
    tools = tools_of("microscopy")
    names = ("describe_metric", "prefers_smaller", "limits", "pack", "read_published")
    return lambda family: SimpleNamespace(**{**{name: getattr(tools, name) for name in names}, **changes})


def _meet(*outcomes: Outcome) -> Any:
    return lambda works, seconds, memory: [
        (about, outcomes[number % len(outcomes)]) for number, (about, _) in zip(range(9), works, strict=False)
    ]


def _score_otherwise(name: str, **values: Any) -> str:
    score = Scorer.score

    def give(scorer: Scorer, *arguments: Any) -> Any:
        report = score(scorer, *arguments)
        report.values.update(values)
        return report

    with patch.object(Scorer, "score", give):
        return _hold(name)


def _score_variant(write: Callable[[Path], Path], **values: Any) -> str:
    case = _make_case()
    scorer = checks._first_scorer(case, "good.zip")
    assert scorer.rules.limits == getattr(limits, tools_of("microscopy").limits)
    if values:
        scorer = SimpleNamespace(score=lambda path: SimpleNamespace(values=values))  # type: ignore[assignment]
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        return _refuse(lambda: checks._score_variant(scorer, write, Path(folder, "new"))).replace(folder, "FOLDER")


def _answer(change: Callable[[Any], Any]) -> str:
    evaluate = checks.door.evaluate_phase
    with patch.object(checks.door, "evaluate_phase", lambda *arguments: change(evaluate(*arguments))):
        return _hold("hidden")


def _check_all(promises: Any) -> str:
    kept = {name: holds or (lambda _: None) for name, holds in promises.items()}
    with patch.object(checks, "CHECKS", kept):
        return _refuse(lambda: check(_make_case()))


def _refuse_challenge(error: Exception) -> str:
    def create(*_: object) -> None:
        raise error

    return _hold("challenge", create=create)


class _Raising:
    """A case that cannot be opened."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def submissions(self) -> None:
        kinds = {"SubmissionError": segjudge.SubmissionError, "HostError": segjudge.HostError}
        raise {**kinds, "KeyError": KeyError, "AssertionError": AssertionError}[self._name]("x")


if __name__ == "__main__":
    FILE.write_text(write_sentences())
