"""Every public name of `segjudge` answers unusable arguments with the product's sentence, not with Python's error."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

import segjudge
from segjudge import FrameAccumulator, HostError, Scores, SubmissionError, UsageError
from segjudge.system.errors import ArgumentTypeError, UnknownMetricError
from tests.families.contract import examples

#: Values that a caller may pass by mistake; numbers and truth values of numpy come from a data frame or a
#: configuration.
ODD_VALUES = (
    None, True, 3, -1, 2.5, float("nan"), 10**30, b"x", "", "nowhere", "\0", "two\nlines", Path("nowhere"), [], (), {},
    set(), [None], ["x"], {"a": None}, {1: 2}, object(), np.zeros((2, 3)), np.zeros(0), np.int64(2), np.bool_(True),
    len, int,
)  # fmt: skip
SENTENCES = (HostError, SubmissionError, UsageError)


def write_truth(folder: Path) -> None:
    """Write a truth and results in COCO's form, which are scored in milliseconds."""
    box = {"image_id": 1, "category_id": 1, "bbox": [1, 1, 4, 4], "area": 16.0, "iscrowd": 0, "id": 1}
    segmentation = {"segmentation": [[1.0, 1.0, 5.0, 1.0, 5.0, 5.0, 1.0, 5.0]]}
    images = [{"id": 1, "file_name": "a.png", "width": 8, "height": 8}]
    truth = {"images": images, "categories": [{"id": 1, "name": "cat"}], "annotations": [{**box, **segmentation}]}
    (folder / "truth.json").write_text(json.dumps(truth))
    results = [{"image_id": 1, "category_id": 1, "score": 0.9, **segmentation}]
    (folder / "results.json").write_text(json.dumps(results))


def make_scores(shift: int = 0, videos: int = 8) -> Scores:
    """Score squares that are predicted with an offset."""
    truths = {f"v{number}": np.zeros((3, 24, 24), np.uint8) for number in range(videos)}
    for masks in truths.values():
        masks[:, 6:14, 4:16] = 1
    predictions = {
        name: np.roll(masks, shift + index % 3, axis=2) for index, (name, masks) in enumerate(truths.items())
    }
    return segjudge.score_arrays(predictions, truths)


@pytest.fixture(scope="module")
def methods() -> dict[str, Scores]:
    return {"A": make_scores(), "B": make_scores(2)}


#: The calls, with arguments of which one is changed at a time.
_Call = tuple[Callable[..., object], Mapping[str, object]]
MASKS = np.ones((2, 8, 8), np.uint8)


def list_calls(methods: dict[str, Scores]) -> dict[str, list[_Call]]:
    """Return the calls of each public name: functions, and the methods of their results."""
    scores, comparison, ranking = methods["A"], segjudge.compare(methods), segjudge.rank(methods)
    frame = {"sequence": "v", "frame": 0, "prediction": MASKS[0], "truth": MASKS[0]}
    in_memory = {"prediction": {"v": MASKS}, "truth": {"v": MASKS}}
    return {
        "Comparison": list_methods(comparison),
        "FrameAccumulator": [
            (FrameAccumulator, {}),
            (lambda **arguments: FrameAccumulator().update(**{**frame, **arguments}), frame),
            (lambda accumulator: FrameAccumulator().merge(accumulator), {"accumulator": None}),
            (lambda state: FrameAccumulator().load_state_dict(state), {"state": None}),
            (
                lambda state: FrameAccumulator().load_state_dict({"protocol": "davis2017", "frames": state}),
                {"state": 0},
            ),
            (lambda state: FrameAccumulator().load_state_dict({"protocol": state, "frames": {}}), {"state": 0}),
        ],
        "HostError": [],
        "Ranking": list_methods(ranking),
        "Scores": [*list_methods(scores), (scores.__getitem__, {"metric": ""}), (scores.__contains__, {"metric": ""})],
        "SubmissionError": [],
        "UsageError": [],
        "compare": [
            (lambda **options: segjudge.compare(methods, **options), {"metric": "", "split": ""}),
            (lambda first: segjudge.compare(first, split=""), {"first": None}),
            (lambda second: segjudge.compare(scores, second), {"second": None}),
            (lambda scores: segjudge.compare({"A": methods["A"], "B": scores}), {"scores": None}),
        ],
        "load": [(segjudge.load, {"path": ""})],
        "rank": [
            (lambda **options: segjudge.rank(methods, draws=2, **options), dict.fromkeys(RANK_OPTIONS)),
            (lambda draws: segjudge.rank(methods, draws=draws), {"draws": 2}),
            (lambda first: segjudge.rank(first, draws=2), {"first": None}),
            (lambda second: segjudge.rank(scores, second), {"second": None}),
        ],
        "score": [(segjudge.score, {"results": "results.json", "truth": "truth.json", "protocol": "coco"})],
        "score_arrays": [
            (segjudge.score_arrays, in_memory),
            *((segjudge.score_arrays, {**in_memory, "protocol": protocol}) for protocol in examples("no label maps")),
        ],
    }


#: Default arguments, changed one at a time.
RANK_OPTIONS = ("metric", "split", "missing")


def list_methods(instance: object) -> list[_Call]:
    """Return the public methods and their arguments, except `show`, which opens a browser."""
    needed = {
        "path": "out.png", "metric": "J&F-Mean", "name": "metrics", "options": None, "outputs": None, "row": "A",
        "column": "B",
    }  # fmt: skip
    names = [name for name in dir(type(instance)) if not name.startswith("_") and name != "show"]
    calls: list[_Call] = []
    for name in names:
        if inspect.isfunction(inspect.getattr_static(type(instance), name)):
            method = getattr(instance, name)
            required = [each.name for each in parameters_of(method) if each.default is each.empty]
            calls.append((method, {key: needed[key] for key in required}))
    return calls


def parameters_of(function: Callable[..., object]) -> list[inspect.Parameter]:
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each for each in inspect.signature(function).parameters.values() if each.kind not in several]


def test_every_public_name_is_in_the_table(methods: dict[str, Scores]) -> None:
    assert sorted(list_calls(methods)) == sorted(segjudge.__all__)


@pytest.mark.parametrize("name", segjudge.__all__)
def test_what_a_public_name_cannot_use_is_a_sentence(
    name: str, methods: dict[str, Scores], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_truth(tmp_path)
    faults = []
    for function, arguments in list_calls(methods)[name]:
        names = dict.fromkeys([*arguments, *(each.name for each in parameters_of(function))])
        for argument in names:
            for value in ODD_VALUES:
                if argument == "progress" and callable(value):
                    continue  # its exceptions are its own
                about = f"{getattr(function, '__qualname__', function)}({argument}={value!r:.40})"
                fault = find_fault(function, {**arguments, argument: value})
                faults += [f"{about}: {fault}"] if fault else []
    assert not faults, "\n".join(faults)


def find_fault(function: Callable[..., object], arguments: Mapping[str, object]) -> str:
    """Call a function; return its error unless it is the product's sentence."""
    try:
        function(**arguments)
    except SENTENCES as error:
        return "" if len(str(error)) > 10 else f"says {error}"
    except Exception as error:  # noqa: BLE001 - these are what the test looks for
        return f"{type(error).__name__}: {error}"
    return ""


# ── single sentences ────────────────────────────────────────────────────────


def test_an_unknown_metric_is_a_key_error_with_what_was_meant(methods: dict[str, Scores]) -> None:
    for name, meant in (("JF", "J&F-Mean"), ("j_mean", "J-Mean"), ("F", "F-Mean"), ("f-decay", "F-Decay")):
        with pytest.raises(KeyError) as error:
            methods["A"][name]
        assert isinstance(error.value, UnknownMetricError)
        assert str(error.value).startswith(f"davis2017 has no metric {name}, only J&F-Mean, ")
        assert str(error.value).endswith(f"; did you mean {meant}?")
    assert "JF" not in methods["A"]
    assert methods["A"]["J&F-Mean"] == methods["A"].metrics["all"]["J&F-Mean"]


def test_a_metric_of_several_splits_says_how_to_name_one(methods: dict[str, Scores]) -> None:
    reports = methods["A"].reports
    with pytest.raises(UsageError, match=r"the splits all, all; name one: scores\.metrics\['all'\]\['J-Mean'\]"):
        Scores([*reports, *reports])["J-Mean"]


def test_an_argument_of_another_type_is_a_type_error_that_says_what_to_give() -> None:
    for call, sentence in (
        (lambda: segjudge.score(None, "truth.zip"), "results is None; give a path or an address"),  # type: ignore[arg-type]
        (lambda: segjudge.load(3), "path is 3, of type int; give a path, as text or from pathlib"),  # type: ignore[arg-type]
        (lambda: segjudge.score("a", "b", 3), "protocol is 3, of type int; give the name of a protocol"),  # type: ignore[arg-type]
        (lambda: FrameAccumulator().merge(None), "accumulator is None; give a FrameAccumulator"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ArgumentTypeError) as error:
            call()
        assert isinstance(error.value, TypeError)
        assert str(error.value).startswith(sentence)


def test_nothing_to_rank_is_a_sentence() -> None:
    for nothing in ({}, []):
        with pytest.raises(UsageError, match="rank needs scores|is not scores"):
            segjudge.rank(nothing)  # type: ignore[arg-type]
