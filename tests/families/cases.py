"""The calls in the texts of `golden/`: masks and files that are scored, truths that are read.

    python -m tests.families.cases tests/families/NAME/golden/files.txt

notes the answers that the calls of a text give now. Run it after an intended change, and review the difference.
"""

from __future__ import annotations

import json
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import segjudge
from segjudge import FrameAccumulator
from segjudge.evaluation_script.families import PROTOCOLS, engine_of
from segjudge.evaluation_script.families.base.units import UnitTruth
from segjudge.evaluation_script.files.limits import LOCAL_LIMITS
from segjudge.evaluation_script.masks.run_lengths import MaskTexts
from segjudge.families import tools_of
from segjudge.families.base.unit_tools import UnitTools
from segjudge.families.truths import TruthSource, open_truth
from segjudge.masks.run_lengths import runs_of_mask
from segjudge.masks.tiff import encode_tiff
from segjudge.testing.checks import empty_like
from tests.backends import use_numpy
from tests.builders import png, run_length_text, written, zipped
from tests.calls import labels
from tests.cases import Case, read_cases, write_cases
from tests.families.drawings import name_drawings
from tests.families.offers import name_offers
from tests.pages import digest

FAMILY_MODULES = "segjudge.evaluation_script.families."


def hold_cases(module: str) -> Callable[..., None]:
    """Return the test of all cases of the family whose folder contains a module; by numpy too, if there is time."""
    files = sorted((Path(module).parent / "golden").glob("*.txt"))
    backends = [True, pytest.param(False, marks=pytest.mark.long)]

    @pytest.mark.parametrize("kernel", backends, ids=["kernel", "numpy"])
    @pytest.mark.parametrize("case", [case for file in files for case in read_cases(file)], ids=str)
    def test_a_case_is_answered_as_was_noted(case: Case, kernel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        if not kernel:
            use_numpy(monkeypatch)
        case.hold(give_names)

    return test_a_case_is_answered_as_was_noted


@contextmanager
def give_names() -> Iterator[Mapping[str, Any]]:
    """Define the names for a case; its limits hold until it ends. Numpy's warnings of odd numbers do not matter."""
    with ExitStack() as limits, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numbers = count(1)
        yield {
            **name_offers(), **name_drawings(),
            "np": np, "labels": labels, "encode": encode_mask, "runs": list_runs, "dumps": lambda value: json.dumps(_drop(value)),
            "score": score_masks, "result": score_accumulator, "reload": reload_counts, "forms": list_forms,
            "FrameAccumulator": FrameAccumulator, "protocols_of": list_protocols,
            "publish": lambda files, *protocols, file="": PublishedTruth(next(numbers), files, protocols, file),
            "limit": partial(set_limits, limits), "colours": encode_colours, "png": png,
            "grey": lambda ids: png(ids.astype(np.uint8)), "wide": lambda ids: png(ids.astype(np.uint16)),
            "tiff": lambda *pages: encode_tiff(np.stack(pages).astype(np.uint16)),
            "picture": lambda *size: png(np.indices((*size[::-1], 3), np.uint8)[2]),
        }  # fmt: skip


def list_protocols(family: str) -> list[str]:
    return [name for name, rules in PROTOCOLS.items() if rules.family == family]


def encode_mask(mask: Any) -> dict[str, Any]:
    """Return run lengths as COCO's text."""
    return {"size": list(mask.shape), "counts": run_length_text(np.asarray(mask) > 0)}


def list_runs(mask: Any) -> dict[str, Any]:
    """Return run lengths as a list of numbers."""
    return {"size": list(mask.shape), "counts": [int(run) for run in runs_of_mask(np.asarray(mask))]}


def encode_colours(ids: Any) -> bytes:
    """Return a PNG whose colours are the ids of segments."""
    return png(np.stack([ids & 255, ids >> 8 & 255, ids >> 16 & 255], axis=-1).astype(np.uint8))


def set_limits(limits: ExitStack, module: str = "", **values: int) -> None:
    """Lower a limit of a family's module, or of local scoring."""
    if module:
        limits.enter_context(mock.patch.multiple(f"segjudge.evaluation_script.families.{module}", **values))
    else:
        limits.enter_context(mock.patch("segjudge.scoring.request.LOCAL_LIMITS", replace(LOCAL_LIMITS, **values)))


def score_masks(prediction: Any, truth: Any, *protocols: str, **options: Any) -> str:
    """Score masks in memory by protocols; return a line for each, and one line for equal answers."""
    return _answer_each(protocols, lambda name: describe(segjudge.score_arrays(prediction, truth, name, **options)))


def list_forms(prediction: Any, truth: Any, *protocols: str, **options: Any) -> str:
    """Return the allowed shapes of a unit's tables in a part: "n" may be longer, and "±" may be below zero."""
    return _answer_each(
        protocols,
        lambda name: "; ".join(
            _name_forms(segjudge.score_arrays(prediction, truth, name, **options).reports[0].counts)
        ),
    )


def _answer_each(protocols: Sequence[str], answer: Callable[[str], str]) -> str:
    lines: dict[str, list[str]] = {}
    for protocol in protocols:
        sentence = _catch(partial(answer, protocol)).replace(f": {protocol} ", ": PROTOCOL ")
        lines.setdefault(sentence, []).append(protocol)
    return "\n".join(f"{', '.join(names)}: {sentence}" for sentence, names in lines.items())


def _catch(call: Callable[[], str]) -> str:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - whatever is raised is what is looked for
        return f"{type(error).__name__}: {error}"


def _name_forms(counts: Any) -> Iterator[str]:
    """Describe the allowed tables of the first unit, by the rejections of others."""
    unit = counts.all_counts()[0]

    def refuse(**tables: Any) -> str:
        changed = empty_like(counts)
        changed.update(replace(unit, tables=tables))
        try:
            return str(engine_of(counts.protocol.family).check(changed) or "")
        except ValueError as error:
            return str(error)

    for key, table in unit.tables.items():
        grown = [np.pad(table, [(0, int(side == axis)) for side in range(table.ndim)]) for axis in range(table.ndim)]
        taken = [not refuse(**{**unit.tables, key: more}) for more in grown]
        sides = ["n" if any_size else f"{size}" for size, any_size in zip(table.shape, taken, strict=True)]
        below = -np.ones_like(grown[taken.index(True)] if any(taken) else table)
        yield f"{key} {' × '.join(sides)}{'' if refuse(**{**unit.tables, key: below}) else ' ±'}"
    yield refuse(**{**unit.tables, "more": np.zeros(1)})


def reload_counts(protocol: str, prediction: Any, truth: Any, **options: Any) -> str:
    """Score stored counts; then try to load bytes that are not counts, and counts of another family."""
    stored = FrameAccumulator(protocol, **options)
    stored.update("v", None, prediction, truth)
    alien = FrameAccumulator(next(name for name in PROTOCOLS if PROTOCOLS[name].family != stored.protocol.family))
    alien.update("v", 0, np.eye(3, dtype=np.uint8), np.eye(3, dtype=np.uint8))
    state = stored.state_dict()

    def load(frames: Any) -> str:
        loaded = FrameAccumulator(protocol, **options)
        loaded.load_state_dict({**state, "frames": frames})
        return score_accumulator(loaded)

    stored_frames = (state["frames"], {"v": {"": b"not counts"}}, alien.state_dict()["frames"])
    return "\n".join(_catch(partial(load, frames)) for frames in stored_frames)


def score_accumulator(accumulator: FrameAccumulator) -> str:
    return describe(accumulator.compute())


def describe(scores: Any) -> str:
    """Write the metrics, the warnings, and a digest of all rows of tables."""
    (report,) = scores.reports
    values = ", ".join(f"{name} {value if value is None else f'{value:.5g}'}" for name, value in report.values.items())
    rows = json.dumps(json.loads(json.dumps(report.rows()), parse_float=lambda text: f"{float(text):.5g}"))
    return "; ".join([values, *report.warnings, digest(rows.encode()), *_list_losses(report)])


def _list_losses(report: Any) -> list[str]:
    """Write the losses of a family that counts by unit: by unit and kind, and by category and kind."""
    tools = tools_of(report.protocol.family)
    if not isinstance(tools, UnitTools):
        return []
    losses = tools.measure_losses(tools.counts_of(report))
    tables = (losses.by_unit, losses.by_category)
    text = " ".join(str((np.asarray(table) + 0.0).round(4).tolist()) for table in tables)
    return [f"lost {text if len(text) < 120 else digest(text.encode())}"]


class PublishedTruth:
    """A truth in files, and the protocols that score against it."""

    def __init__(self, number: int, files: dict[str, Any], protocols: Sequence[str], file: str) -> None:
        suffix = "" if number == 1 else f"-{number}"
        self._path = written(Path.cwd() / f"truth{suffix}", _fill(files)) / file
        self._results, self._protocols = Path.cwd() / f"results{suffix}", protocols

    def score(self, files: Any, **options: Any) -> str:
        """Score files by name, or one file: text, bytes or a document."""
        self._write(files)

        def score(protocol: str) -> str:
            return _describe_file(segjudge.score(self._results, self._path, protocol, **options))

        answer = _answer_each(self._protocols, score)
        return answer.replace(str(self._results), "RESULTS").replace(str(self._path), "TRUTH")

    def read(self, subset: str = "", fields: str = "") -> str:
        """Describe the truth that was read: completely, or fields by name."""
        protocol, source = PROTOCOLS[self._protocols[0]], TruthSource(str(self._path), subset=subset)
        answer = _catch(lambda: "\n".join(_list_truth(open_truth(source, protocol), fields.split())))
        return answer.replace(str(self._path), "TRUTH")

    def _write(self, files: Any) -> None:
        several = isinstance(files, dict)
        filled = _fill(files if several else {self._results.name: files})
        written(Path.cwd(), {self._results.name: zipped(filled, zipfile.ZIP_STORED)} if several else filled)


def _describe_file(scores: Any) -> str:
    """Add a digest of the metrics without each unit or group."""
    (report,) = scores.reports
    without = {name: np.round(values, 5).tolist() for name, values in report.without_each().items()}
    return f"{describe(scores)}; without {digest(repr(without).encode())}"


def _fill(files: dict[str, Any]) -> dict[str, Any]:
    """Remove `...` from documents, and write bytes unchanged."""
    filled = {name: data for name, data in files.items() if data is not ...}
    return {name: data if isinstance(data, (bytes, str)) else json.dumps(_drop(data)) for name, data in filled.items()}


def _drop(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop(item) for key, item in value.items() if item is not ...}
    return [_drop(item) for item in value] if isinstance(value, (list, tuple)) else value


def _list_truth(file: Any, fields: list[str]) -> Iterator[str]:
    for split, truth in file.splits.items():
        if not isinstance(truth, UnitTruth):
            yield f"{split}: {file.notes}, {truth.form}, {truth.read_through()}"
            texts = {name: _list_fields(value) for name, value in vars(truth).items()}
            shown = fields or [name for name, text in texts.items() if text not in ("", "None", "[]", "{}")]
            yield from (f"  {name}: {texts[name]}" for name in shown)
            continue
        yield f"{split}: {truth.form}, {truth.facts}, elsewhere {sorted(truth.elsewhere)}, notes {[*file.notes, *truth.notes]}"
        for unit in truth.units:
            yield f"  {unit.name}: {unit.cost}, {unit.facts}"
            yield from (f"    {frame.name} {frame.size} {frame.rows}" for frame in unit.load())


def _list_fields(value: Any) -> str:
    """Write arrays as lists, and the fields of the families' classes."""
    if isinstance(value, np.ndarray):
        return str(value.tolist())
    if type(value).__module__.startswith(FAMILY_MODULES):
        return ", ".join(f"{name} {_list_fields(field)}" for name, field in vars(value).items() if name[0] != "_")
    return str(list(value)) if isinstance(value, MaskTexts) else str(value)


if __name__ == "__main__":
    for path in sys.argv[1:]:
        write_cases(Path(path), give_names)
