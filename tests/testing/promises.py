"""The conformance kit's messages about invented families that keep or break each promise, as one text."""

from __future__ import annotations

import itertools
import math
import os
import re
import resource
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from segjudge.evaluation_script.files.problems import SubmissionError
from segjudge.families import FamilyTools
from segjudge.system.errors import UsageError
from segjudge.testing import checks, running
from segjudge.testing.running import Outcome

FILE = Path(__file__).parent.parent / "golden/promises.txt"


@dataclass(frozen=True)
class Row:
    """A protocol."""

    name: str = "row"
    family: str = "family"
    about: str = "Counts."
    revision: Any = 1
    metrics: tuple[str, ...] = ("A", "B&C")
    bounds: dict[str, tuple[float, float]] = field(default_factory=lambda: {"A": (0.0, 1.0)})


@dataclass
class Report:
    """The scores of one submission."""

    values: dict[str, Any]
    split: str = "val"
    sections: tuple[int, ...] = (1, 2, 3)

    def errors(self) -> list[str]:
        return []

    def rows(self) -> list[Any]:
        return [[*self.values]]

    warnings: tuple[str, ...] = ()


class Case:
    """A case with invented scores, rejections and truths."""

    protocol, truth, other_truth, tolerance, seconds, memory = "row", "truth", "others", 1e-9, 5.0, 400 << 20

    def __init__(self, **given: Any) -> None:
        self.rules: Any = Row()
        self.submissions: dict[str, str] = {"good": "folder/good.zip"}
        self.expected: Any = None
        self.faults: dict[str, tuple[str, ...]] = {}
        self.arrays: dict[str, Any] = {}
        self.categories: tuple[Any, ...] = ()
        self.values: Any = {"A": 0.5, "B&C": None}
        vars(self).update(given)

    def prepare(self, path: str, truth: str = "", jobs: int = 1) -> Any:
        def score(_path: str = "") -> Any:
            values = self.values(path, truth, jobs) if callable(self.values) else self.values
            if isinstance(values, Exception):
                raise values
            return Report(values)

        scores = SimpleNamespace(metrics={"val": self.values}, reports=[Report({})])
        return SimpleNamespace(scorers={"val": SimpleNamespace(score=score)}, score=lambda: score() and scores)

    def phase(self, *, hidden: bool = False) -> Any:
        return SimpleNamespace(hidden=hidden, limits="limits")


class Ledger:
    """The text up to now."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, about: str, work: Callable[[], object]) -> None:
        try:
            value = work()
        except AssertionError as error:
            value = f"FAILS: {error}"
        except Exception as error:  # noqa: BLE001
            value = f"{type(error).__name__}: {error}"
        self.lines.append(f"{about}: {'is kept' if value is None else value}")

    def check(self, name: str, about: str, case: Case) -> None:
        self.say(f"{name}, {about}", lambda: checks.CHECKS[name](case))  # type: ignore[arg-type]


def rules_and_numbers(ledger: Ledger) -> None:
    class Loose(SimpleNamespace):
        """A row that is not a dataclass."""

    @dataclass
    class Thawed(Row.__mro__[1]):  # type: ignore[misc]
        """A row that can change."""

        name: str = "row"

    layouts = {"own": "family", "foreign": "other"}
    for about, row, taken, meaning in (
        ("kept", Row(), ("own",), "m"), ("another name", Row(name="x"), ("own",), "m"), ("another family", Row(family="x"), ("own",), "m"),
        ("no words", Row(about=" "), ("own",), "m"), ("no text", Row(about=3), ("own",), "m"), ("revision 0", Row(revision=0), ("own",), "m"),  # type: ignore[arg-type]
        ("revision true", Row(revision=True), ("own",), "m"), ("no metrics", Row(metrics=()), ("own",), "m"), ("metrics twice", Row(metrics=("A", "A")), ("own",), "m"),
        ("no layout", Row(), (), "m"), ("another's layout", Row(), ("own", "foreign"), "m"), ("no meaning", Row(), ("own",), " "),
        ("no direction", Row(), ("own",), "m"),
        ("not frozen", Thawed(), ("own",), "m"), ("no dataclass", Loose(name="row"), ("own",), "m"), ("unlike itself", Row(bounds={"A": (math.nan, 1.0)}), ("own",), "m"),
    ):  # fmt: skip
        family = SimpleNamespace(name="family", protocols={"row": row}, layouts=taken, own_metrics=("C",))
        tools = FamilyTools()
        tools.directions = {} if about == "no direction" else dict.fromkeys("ABC", "larger")  # type: ignore[misc]
        tools.directions |= {"B&C": "smaller"}  # type: ignore[misc, operator]
        tools.describe_metric = lambda _, meaning=meaning: meaning  # type: ignore[method-assign, misc]
        with mock.patch.multiple(
            checks, FAMILIES={"family": family}, LAYOUTS=layouts, tools_of=lambda _, tools=tools: tools, folder_of=str
        ):  # type: ignore[misc]
            ledger.check("rules", about, Case())
    for about, changes in (
        ("kept", {}), ("no submission", {"submissions": {}}), ("beyond", {"values": {"A": 1.01}}), ("below", {"values": {"A": -0.01}}),
        ("at both ends", {"values": {"A": 1.0, "B&C": 0.0}}), ("not finite", {"values": {"B&C": math.inf}}), ("not a number", {"values": {"A": math.nan}}),
        ("missing", {"values": KeyError("A")}), ("missing elsewhere", {"values": KeyError("x")}), ("refused", {"values": SubmissionError("no")}),
        ("expected", {"expected": {"good": {"A": 0.5, "B&C": None}}}), ("near", {"expected": {"good": {"A": 0.5 + 9e-10}}}),
        ("far", {"expected": {"good": {"A": 0.5 + 2e-9}}}), ("expected by a call", {"expected": lambda truth, path: {"A": len(truth) + len(path)}}),
        ("of another", {"expected": {"bad": {"A": 9}}}), ("nothing expected", {"expected": {"good": {"A": math.nan}}}),
        ("a number expected", {"expected": {"good": {"B&C": 0}}}), ("an unknown one", {"expected": {"good": {"D": 0}}}),
    ):  # fmt: skip
        ledger.check("numbers", about, Case(**changes))
    ledger.say("numbers in", lambda: [*checks._numbers_in([{"a": (1.5, 2), "b": [None, "x", {"c": 0.25}]}, 3.5])])


def memory_and_problems(ledger: Ledger) -> None:
    def refuse(*_: object) -> None:
        raise UsageError("takes none")

    for about, open_memory, values in (
        ("takes none", refuse, 0),
        ("takes some", lambda *_: None, 0),
        ("the same", refuse, {"A": 0.5, "B&C": None}),
        ("others", refuse, {"A": 0.25}),
    ):
        tools, scores = SimpleNamespace(open_memory=open_memory), SimpleNamespace(metrics={"val": values})
        with mock.patch.multiple(
            checks, tools_of=lambda _, tools=tools: tools, score_arrays=lambda *_, scores=scores, **_options: scores
        ):  # type: ignore[misc]
            ledger.check("memory", about, Case(arrays={"good": lambda: (1, 2)} if values else {}))

    def said(text: str, other: str = "") -> Any:
        return lambda _path, _truth, jobs: SubmissionError(other if other and jobs == 2 else text)

    for about, values in (
        ("all", said("one and two")), ("a part", said("one")), ("scored", {"A": 1}), ("another, by two", said("one two", "two one")),
        ("a bell", said("one two\a")), ("lines", said("one\ntwo")), ("a traceback", said("one two Traceback")), ("a path", said(f"one two {tempfile.gettempdir()}/x")),
        ("long", said("one two" + "x" * 19_993)), ("longer", said("one two" + "x" * 19_994)),
    ):  # fmt: skip
        ledger.check("problems", about, Case(faults={"folder/faulty.json": ("one", "two")}, values=values))
    ledger.say("an empty sentence", lambda: checks._expect_sentence("it", " \n"))
    case: Any = Case()
    for outcome in (
        Outcome("returned", "", 5.0, 400 << 20), Outcome("returned", "", 5.01, 0), Outcome("refused", "no", 0, (400 << 20) + (1 << 20)), Outcome("refused", "no\a"),
        Outcome("refused", "no", 1, 1), Outcome("died", "it died"), Outcome("KeyError", "x"),
    ):  # fmt: skip
        ledger.say(str(outcome), lambda outcome=outcome: checks._fault_of(case, outcome) or None)  # type: ignore[misc]


@dataclass(frozen=True)
class Limited:
    """The rules of a scorer."""

    limits: str = ""


@dataclass(frozen=True)
class Scored:
    """A scorer of files."""

    answer: Any
    rules: Any = field(default_factory=Limited)

    def score(self, path: str) -> Any:
        return self.answer(Path(path).read_bytes())


def archives_and_hostile_ones(ledger: Ledger) -> None:
    def meet(data: bytes) -> Report:
        if data == b"good":
            return Report({"A": 1.0, "B": None})
        if data == b"odd":
            return Report({"A": math.nan, "B": math.inf, "C": None, "D": 0.0})
        raise SubmissionError(data.decode())

    case = Case()
    case.prepare = lambda _path: SimpleNamespace(scorers={"a": Scored(meet), "b": None})  # type: ignore[method-assign,assignment,misc]
    ledger.say("limits of a phase", lambda: checks._first_scorer(case, "x").rules.limits)  # type: ignore[arg-type]
    for about, data, message in (
        ("refused", b"is a link", "a link"),
        ("otherwise", b"is odd", "a link"),
        ("scored", b"good", "a link"),
        ("a bell", b"a link\a", "a link"),
    ):
        with mock.patch.object(checks, "make_refused", lambda _, row=(about, data, message): [row]):  # type: ignore[misc]
            ledger.check("archives", about, case)

    def variants(*sent: bytes) -> Any:
        return lambda _path: [
            (f"variant {number}", lambda folder, data=data: _write(folder, data)) for number, data in enumerate(sent)
        ]  # type: ignore[misc]

    def here(works: Any, seconds: float, memory: int) -> Iterator[tuple[str, Outcome]]:
        assert (seconds, memory) == (case.seconds, case.memory)
        for about, work in works:
            try:
                yield about, Outcome("returned", work())
            except SubmissionError as error:
                yield about, Outcome("refused", str(error))
            except ValueError as error:
                yield about, Outcome("ValueError", str(error))

    for about, sent in (
        ("met", (b"good", b"no")),
        ("odd scores", (b"odd", b"good")),
        ("many", (b"a\a",) * 9),
        ("two", (b"odd", b"a\a")),
    ):
        with mock.patch.multiple(checks, make_variants=variants(*sent), run_in_child=here):
            ledger.check("hostile", about, case)
    with mock.patch.multiple(checks, make_variants=variants(*(b"a\a",) * 5), run_in_child=here):
        two = Case(submissions={"good": "a", "other": "b"}, prepare=case.prepare)
        ledger.check("hostile", "in the first of two", two)


def _write(folder: Path, data: bytes) -> Path:
    (folder / "results").write_bytes(data)
    return folder / "results"


def what_is_shown(ledger: Ledger) -> None:
    def answer(score: Any, *, printed: bool = False, more: Any = None) -> Any:
        def evaluate(phase: Any, packed: str, path: str) -> dict[str, Any]:
            assert phase.hidden
            value = score(packed)
            if printed:
                print(value)
            return {
                "result": [{"val": {"A": value}}],
                "submission_metadata": {"secret": value},
                "detail": more(packed) if more else path,
                "error": 1,
                "interval": 2,
            }

        return evaluate

    def length(packed: str) -> float:
        return 0.123456789 * len(packed)

    for about, evaluate in (
        ("hidden", answer(length)), ("printed", answer(length, printed=True)), ("in the answer", answer(length, more=length)), ("the truth", answer(length, more=len)),
        ("one score", answer(lambda _: 0.123456789)), ("short", answer(lambda packed: len(packed) / 4, more=lambda _: "0.5 1.25")),
    ):  # fmt: skip
        with (
            mock.patch.object(checks.door, "evaluate_phase", evaluate),
            mock.patch.object(checks, "_pack", lambda _case, truth, _folder: truth),
        ):
            ledger.check("hidden", about, Case())
            ledger.check("hidden", f"{about}, of one truth", Case(other_truth=""))
    numbers = itertools.count()
    for about, sections, text in (
        ("kept", 3, lambda: "A B&amp;C"), ("no section", 2, lambda: "A B&amp;C"), ("two pages", 3, lambda: f"A B&amp;C {next(numbers)}"), ("no name", 3, lambda: "A B&C"),
    ):  # fmt: skip

        def page(title: str, sections: int = sections, text: Any = text) -> str:
            return f"{title} {'<section' * sections} {text()}"

        ledger.check(
            "report",
            about,
            Case(prepare=lambda _path, page=page: SimpleNamespace(score=lambda: SimpleNamespace(page=page))),
        )  # type: ignore[misc]

    def make(good: Any, poor: Any) -> tuple[Any, Any]:
        def create(challenge: Any, _progress: object) -> None:
            assert challenge[1] == "row"
            os.makedirs(os.path.join(challenge[0], "examples", "phase"))

        def values(path: str, truth: str, _jobs: int) -> Any:
            assert truth.endswith("/mine/annotations/phase.zip")
            return {"A": good if path.endswith("phase/good.zip") else poor}

        return create, values

    for about, good, poor in (("kept", 0.9, 0.1), ("equal", 0.5, 0.5), ("worse", 0.1, 0.9), ("nothing", None, 0.5)):
        for smaller in (False, True):
            create, values = make(good, poor)
            case = Case()

            def prepare(path: str, truth: str = "", values: Any = values) -> Any:
                return SimpleNamespace(score=lambda: SimpleNamespace(metrics={"val": values(path, truth, 1)}))

            case.prepare = prepare  # type: ignore[method-assign,assignment]
            tools = SimpleNamespace(prefers_smaller=lambda _, smaller=smaller: smaller)  # type: ignore[misc]
            kit = mock.patch.multiple(checks, NewChallenge=lambda *words: words, tools_of=lambda _, tools=tools: tools)
            with mock.patch.object(checks, "create", create), kit:  # type: ignore[misc]
                ledger.check("challenge", f"{about}, smaller is better: {smaller}", case)
    for message in ("there are no challenges of it", "there are no texts", "the disk is full"):
        with (
            mock.patch.object(checks, "create", side_effect=UsageError(message)),
            mock.patch.object(checks, "NewChallenge"),
        ):
            ledger.check("challenge", message, Case())
    for about, outcomes in (("equal", ("1", "1")), ("other bits", ("1", "2")), ("died", ("1", ""))):
        apart = [("n", Outcome("returned" if text else "died", text or "it died")) for text in outcomes]
        with mock.patch.object(checks, "run_in_child", return_value=apart) as ran:
            ledger.check("backends", about, Case())
        ledger.lines.append(f"  {[name for name, _ in ran.call_args[0][0]]} {ran.call_args[0][1:]}")


class Counts:
    """An accumulator of numbers, which can lose, duplicate or exchange them."""

    def __init__(self, numbers: tuple[int, ...] = (), *, strict: bool = True, mistake: str = "") -> None:
        self.numbers, self.strict, self.mistake, self.protocol = {*numbers}, strict, mistake, "row"

    def describe(self) -> dict[str, str]:
        return {"mistake": self.mistake}

    @classmethod
    def make_empty(cls, protocol: str, description: dict[str, str], *, strict: bool) -> Counts:
        assert protocol == "row"
        return cls(strict=strict, mistake=description["mistake"])

    def merge(self, other: Counts) -> None:
        if self.strict != other.strict and self.mistake != "loose":
            raise ValueError
        self.numbers |= {number + len(self.numbers) * (self.mistake == "order") for number in other.numbers}

    def state_dict(self) -> dict[str, bytes]:
        return {"a": repr(sorted(self.numbers)).encode(), "b": b"other bytes of it"}

    def load_state_dict(self, state: dict[str, bytes]) -> None:
        if (
            state["a"].endswith(b"]") and len(state["a"]) > 3 and state["a"] != b"[" * 100_000
        ) or self.mistake == "takes all":
            self.numbers = (
                {int(number) for number in state["a"][1:-1].split(b",")} if state["a"].endswith(b"]") else set()
            )
            self.numbers -= {2} if self.mistake == "forgets" else set()
            return
        raise ValueError


@dataclass(frozen=True)
class Jobs:
    """Rules with a number of processes."""

    jobs: int = 1


@dataclass(frozen=True)
class Counter:
    """Counts a part of ten numbers."""

    mistake: str
    rules: Any = field(default_factory=Jobs)

    def count(self, _path: str, part: Any = None) -> Counts:
        numbers = tuple(number for number in range(10) if part is None or number % part.count == part.number - 1)
        if (self.mistake == "processes" and self.rules.jobs == 5) or (
            self.mistake == "parts" and part and part.count == 3
        ):
            numbers = numbers[1:]
        return Counts(numbers, mistake=self.mistake)


def sharing_and_packing(ledger: Ledger) -> None:
    engine = SimpleNamespace(check=lambda _: None)

    def report_of(_split: str, counts: Counts) -> Report:
        return Report({"sum": sum(counts.numbers)})

    for mistake in ("", "processes", "parts", "order", "forgets", "takes all", "loose"):
        case = Case(prepare=lambda _path, mistake=mistake: SimpleNamespace(scorers={"val": Counter(mistake)}))  # type: ignore[misc]
        with mock.patch.multiple(
            checks, engine_of=lambda _: engine, report_of=report_of, _check_part_files=lambda *_: None
        ):
            ledger.check("sharing", mistake or "kept", case)
    for about, of_parts in (("kept", 0.5), ("other bits", 0.25)):
        written: list[str] = []
        counter = SimpleNamespace(
            write=lambda part, path: written.append(f"{part.number} of {part.count} {os.path.basename(path)}"),  # noqa: B023
            close=lambda: written.append("closed"),  # noqa: B023
        )
        merged = ([Report({"A": of_parts})], None, None)
        case = Case(prepare=lambda _path: SimpleNamespace(score=lambda: SimpleNamespace(reports=[Report({"A": 0.5})])))
        with mock.patch.multiple(
            checks,
            PartCounter=lambda _, counter=counter: counter,
            merge_parts=lambda paths, merged=merged: (
                written.append(str([os.path.basename(path) for path in paths])) or merged  # noqa: B023
            ),
        ):  # type: ignore[misc]
            ledger.say(f"files of parts, {about}", lambda: checks._check_part_files(case, "good", "x"))  # type: ignore[arg-type]  # noqa: B023
        ledger.lines.append(f"  {written}")
    for mistake in ("", "parts"):

        def prepare(_path: str, truth: str = "", mistake: str = mistake) -> Any:
            return SimpleNamespace(scorers={"val": Counter("processes" if mistake and truth else "", Jobs(5))})

        with mock.patch.multiple(checks, _pack=lambda *_: "packed", report_of=report_of):
            ledger.check("packing", (mistake and "other bits") or "kept", Case(prepare=prepare))


def works_apart(ledger: Ledger) -> None:
    """Run in this process what would run in a separate one."""

    def refuse() -> None:
        raise SubmissionError("no masks")

    def fail() -> None:
        raise KeyError("x")

    written, limits = list[bytes](), list[Any]()

    def write(_descriptor: int, data: bytes) -> int:
        written.append(data[:40])
        return min(len(data), 40)

    for system in ("linux", "darwin"):
        with (
            mock.patch.multiple(running.os, write=write, _exit=lambda code: limits.append(f"exits with {code}")),
            mock.patch.object(running.sys, "platform", system),
            mock.patch.object(resource, "setrlimit", lambda _, bounds: limits.append(bounds)),
            mock.patch.object(running, "_peak", lambda *, reset=False: 3 if reset else 10),
            mock.patch.object(running, "_read_process_bytes", len),
            mock.patch.object(running.time, "process_time", iter(range(99)).__next__),
        ):
            running._run_jobs([lambda: 4, lambda: "long" * 20, refuse, fail], 7, 1000)
    lengths = [int.from_bytes(data, "little") for data in written if len(data) == 4]
    text = b"".join(data for data in written if len(data) != 4).decode()
    ledger.lines += [
        re.sub(r'"  File.*?KeyError', '"… KeyError', text),
        f"{lengths == lengths[:4] * 2} {lengths[:3]}",
        str(limits),
    ]
    ledger.say(
        "memory",
        lambda: (
            running._read_process_bytes("VmRSS:") >> 20 > 20,
            running._read_process_bytes("nothing:"),
            running._peak(reset=True) > 0,
            running._peak() > 0,
        ),
    )


def another_python(ledger: Ledger) -> None:
    """Check with a Python 3.9, which is missing."""
    answer: list[Any] = []

    def run(arguments: list[str], **options: Any) -> Any:
        script = Path(arguments[4])
        places = [(script / "evaluation_script" / name).read_bytes()[:9] for name in ("main.py", "more/file.py")]
        hidden = [path for path in script.rglob("*") if "__pycache__" in path.parts]
        ledger.lines.append(
            f"  runs {[arguments[0], arguments[1], arguments[2], len(arguments[3]) > 99, arguments[5], os.path.relpath(arguments[6]), arguments[7]]} {options} {places} {hidden}"
        )
        return SimpleNamespace(
            returncode=answer[0], stderr="it broke, " * 300, stdout=f'odd\n{{"val": {{"A": {answer[1]}}}}}\n'
        )

    for about, faults, worker, code, number in (
        ("kept", [], "python3.9", 0, 0.5), ("cannot be imported", ["x.py: no pairwise"], "python3.9", 0, 0.5), ("no Python", [], "", 0, 0.5),
        ("it fails", [], "python3.9", 1, 0.5), ("other numbers", [], "python3.9", 0, 0.25), ("near", [], "python3.9", 0, 0.5 + 5e-10),
    ):  # fmt: skip
        answer[:] = [code, number]
        case = Case(rules=Row(family="saliency"), values={"A": 0.5})
        case.prepare = lambda _path, _truth="": SimpleNamespace(  # type: ignore[method-assign,assignment,misc]
            score=lambda: SimpleNamespace(reports=[Report({"A": 0.5})])
        )
        with (
            mock.patch.multiple(
                checks, check_upload=lambda path, name, faults=faults: [*faults, *([] if path.endswith(name) else [path])],
                read_uploads=lambda names: {"more/file.py": f"of {names}".encode()}, _pack=lambda _case, truth, _folder: f"{truth} packed",
            ),
            mock.patch.object(checks.subprocess, "run", run), mock.patch.dict(os.environ, {checks.WORKER: worker}),
        ):  # fmt: skip
            ledger.check("python39", about, case)


PARTS = (
    works_apart,
    another_python,
    rules_and_numbers,
    memory_and_problems,
    archives_and_hostile_ones,
    what_is_shown,
    sharing_and_packing,
)


def write_promises() -> str:
    texts = []
    for part in PARTS:
        ledger = Ledger()
        part(ledger)
        text = "\n".join(line if len(line) < 700 else f"{line[:300]}… {len(line)} letters" for line in ledger.lines)
        texts.append(f"═══ {part.__name__.replace('_', ' ')}\n{text}\n")
    return "\n".join(texts).replace(tempfile.gettempdir(), "TEMPORARY").replace("\a", "BELL")


if __name__ == "__main__":
    FILE.write_text(write_promises(), encoding="utf-8")
