"""The results and errors of scores, requests, figures and executors, call by call, as one text."""

from __future__ import annotations

import json
import os
import queue
import re
import sys
import zipfile
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

import segjudge
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit
from segjudge.families.truths import TruthSource, pack
from segjudge.scoring import figures, notebook, parts, request, scores, sharing
from segjudge.scoring.parts import merge_parts
from segjudge.system.errors import UsageError
from tests.builders import label_zip
from tests.calls import read_session, run_session

FILE = Path(__file__).parent / "score_calls.txt"
TRUTH = TruthSource("truth.zip")
#: The line that installs an extra, which depends on where the tests run.
LINE = mock.patch("segjudge.system.extras.install_line", "the line for {}{}".format)
CHANGED = replace(PROTOCOLS["davis2017"], revision=99)


class Pool(Executor):
    """A pool that does its tasks at once; some parts fail this often."""

    def __init__(
        self, fails: dict[int, int] | None = None, error: BaseException | None = None, refuses: Exception | None = None
    ) -> None:
        self._fails, self._error, self._refuses = dict(fails or {}), error or OSError("a disk"), refuses
        self.calls: list[Any] = []

    def submit(self, work: Any, /, *arguments: Any, **_: Any) -> Future[Any]:
        if self._refuses:
            raise self._refuses
        _, _, _, number, count, attempt = arguments
        self.calls.append((number, count, attempt))
        future: Future[Any] = Future()
        if self._fails.get(number):
            self._fails[number] -= 1
            future.set_exception(self._error)
        else:
            future.set_result(work(*arguments))
        return future


def _share(
    pool: Any, results: str = "sent.zip", protocol: Any = PROTOCOLS["davis2017"], truth: Any = TRUTH, **options: Any
) -> str:
    output: list[Any] = []
    try:
        by_workers: object = sharing.score_by_workers(
            pool, request.ScoreRequest(results, truth, protocol, **options), lambda *words: output.append(words)
        )
        by_workers = by_workers.metrics  # type: ignore[attr-defined]
    except Exception as error:  # noqa: BLE001 - its sentence is what is held
        by_workers = f"{type(error).__name__}: {error}"
    return f"{getattr(pool, 'calls', '')}\n{output}\n{by_workers}"


def _describe_figure(figure: Any) -> str:
    (axes,) = figure.axes
    bars = [round(float(bar.get_width()), 4) for bar in axes.patches[: len(axes.get_yticks())]]
    lines = [[round(float(x), 4) for x in line.get_xdata()] for line in axes.lines]
    spans = [
        [round(float(x), 4) for x in (patch.get_x(), patch.get_x() + patch.get_width())]
        for patch in axes.patches[len(bars) :]
    ]
    looks = [
        (
            patch.get_linewidth(),
            round(float(patch.get_height()), 2),
            patch.get_alpha(),
            [round(float(share), 2) for share in patch.get_facecolor()],
        )
        for patch in (axes.patches[0], axes.patches[-1])
    ]
    names = [label.get_text() for label in axes.get_yticklabels()]
    ends = axes.get_ylim()
    return f"{figure.get_size_inches().tolist()} {axes.get_title()} / {axes.get_xlabel()}\n{dict(zip(names, bars, strict=True))}\n{lines} {spans} {looks} {ends[0] > ends[1]}"


def _film(one: Any, **options: Any) -> str:
    with mock.patch.object(figures, "save_figure") as save:
        one.film("film.pdf", **options)
    figure, path, dots = save.call_args[0]
    cells = [[axes.get_title(), axes.get_ylabel(), axes.images[0].get_array().shape, axes.images[0].get_interpolation(), len(axes.collections),
              [round(float(side), 2) for side in axes.get_position().bounds], any(spine.get_visible() for spine in axes.spines.values())]
             for axes in figure.axes]  # fmt: skip
    lines = [f"{path} {dots} {[round(float(side), 3) for side in figure.get_size_inches()]}", *map(str, cells)]
    return "\n".join(lines)


def _save(figure: Any, name: str) -> Any:
    figures.save_figure(figure, name)
    text = Path(name).read_bytes()
    figures.save_figure(figure, name)
    return Path(name).read_bytes() == text, b"dc:date" in text, b"Software" in text


def _say_prepared(prepared: Any) -> Any:
    rules = {
        name: (scorer.rules.jobs, scorer.rules.strict, [*scorer.truth.item_names])
        for name, scorer in prepared.scorers.items()
    }
    return prepared.results, prepared.truth, rules, prepared.notes, prepared.digests


def _prepare_phase(phase: Phase, split: str = "", sequences: Any = None) -> Any:
    results = request.prepare_phase("sent.zip", phase, "both.zip", split, sequences)
    return (
        results.results,
        results.truth,
        {name: [*scorer.truth.item_names] for name, scorer in results.scorers.items()},
    )


def _wait(coming: list[Any], workers: list[int] | None = None) -> Any:
    """Wait for a result of a queue that is empty this often, with this many workers."""
    looks, patience = iter(workers or [1] * 99), list[float]()

    def get(*, timeout: float) -> Any:
        patience.append(timeout)
        results = coming.pop(0)
        if results is None:
            raise queue.Empty
        return results

    try:
        return sharing._wait_for_next(SimpleNamespace(get=get), lambda: next(looks)), patience[0], len(patience)  # type: ignore[arg-type]
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}", patience[0], len(patience)


def _connect(module: Any, answer: Any = None) -> str:
    output: list[Any] = []
    client = SimpleNamespace(close=lambda: output.append("closed"))

    async def look(address: str) -> bool:
        output.append(address)
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)

    made = (
        module
        if module is None
        else SimpleNamespace(Client=lambda *words, **options: output.append((words, options)) or client)
    )
    with mock.patch.dict(sys.modules, {"distributed": made}), mock.patch.object(sharing, "_has_workers", look), LINE:
        try:
            with sharing.connect("tcp://user:secret@host:8786") as results:
                output.append(results is client)
        except UsageError as error:
            output.append(f"UsageError: {error}")
    return "\n".join(map(str, output))


def _show_page(one: Any) -> tuple[int, bool]:
    pages: list[dict[str, str]] = []
    shell = SimpleNamespace(kernel=object(), display_pub=SimpleNamespace(publish=pages.append))
    with mock.patch("segjudge.report.browser._find_notebook", return_value=shell):
        one.show(title="A title of its own")
    return len(pages), "A title of its own" in pages[0]["text/html"]


def _change_manifest(path: str, **changes: object) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members[parts.MANIFEST] = json.dumps({**json.loads(members[parts.MANIFEST]), **changes}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def _limit(name: str, number: int) -> str:
    with mock.patch.object(parts, name, number):
        try:
            return str(merge_parts(["one.saved"]))
        except UsageError as error:
            return f"{name}: {error}"


def _do_without(module: str, call: Any) -> str:
    with mock.patch.dict(sys.modules, {module: None}), LINE:
        try:
            return str(call())
        except UsageError as error:
            return str(error)


def _make_absolute(results: str, *truth: str) -> Any:
    resolved = sharing._with_absolute_paths(
        request.ScoreRequest(
            results, TruthSource(truth[0], unseen=truth[1], categories=truth[2]), PROTOCOLS["davis2017"]
        )
    )
    return [
        path.replace(os.getcwd(), "HERE")
        for path in (resolved.results, resolved.truth.path, resolved.truth.unseen, resolved.truth.categories)
    ]


def write_calls() -> str:
    truth = np.zeros((4, 24, 32), np.uint8)
    truth[:, 4:16, 4:14] = 1
    truth[1:, 10:20, 18:28] = 2
    others = {"cat": truth, "dog": truth[:3, ::-1], "owl": truth[:, :, ::-1], "yak": np.where(truth == 2, 0, truth)}
    sent = {name: np.roll(masks, number, 2) for number, (name, masks) in enumerate(others.items())}
    few = {name: others[name] for name in ("cat",)}
    first = segjudge.score_arrays(sent, others, "davis2017")
    with mock.patch.object(sharing, "cores", return_value=3):
        text = run_session(read_session(FILE), {
            "segjudge": segjudge, "request": request, "figures": figures, "sharing": sharing, "notebook": notebook, "np": np, "TruthSource": TruthSource,
            "PROTOCOLS": PROTOCOLS, "memory": first, "few": segjudge.score_arrays(few, few, "davis2017"), "Path": Path, "label_zip": label_zip, "TRUTH": others,
            "SENT": sent, "pack": pack, "SimpleNamespace": SimpleNamespace, "Pool": Pool, "shared": _share, "drawn": _describe_figure, "film": _film,
            "saved": _save, "prepared": lambda ask: _say_prepared(request.prepare(ask)), "for_phase": _prepare_phase, "waited": _wait,
            "connected": _connect, "absolute": _make_absolute, "merge_parts": merge_parts, "BrokenExecutor": BrokenExecutor, "CancelledError": CancelledError,
            "many": segjudge.score_arrays(*({f"v{number:02d}": np.roll(truth, step * number, 2) for number in range(42)} for step in (0, 1)), "davis2017"),
            "PHASE": Phase("dev", "both.zip", (PhaseSplit("val", "davis2017", ("J&F",)), PhaseSplit("test", "davis2017", ("J",)))),
            "ask": lambda results="sent.zip", truth=TRUTH, **options: request.ScoreRequest(results, truth, PROTOCOLS["davis2017"], **options),
            "shown_page": _show_page, "manifest": _change_manifest, "limited": _limit, "without": _do_without, "read_costs": parts.read_costs,
            "changed": CHANGED, "scores": scores, "strange": segjudge.score_arrays(sent, others, CHANGED),
            "images": segjudge.score_arrays(*([{"labels": [1], "masks": truth[[number]] > 0, "scores": [0.5]} for number in pair] for pair in ((1, 2), (1, 1))), "coco"),
        })  # fmt: skip
    text = re.sub(r"a worker on \S+ has segjudge \S+;", "a worker on HOST has segjudge VERSION;", text)
    return text.replace(os.getcwd(), "HERE")


#: The files that the session reads.
SETTING = """
Path("truth.zip").write_bytes(label_zip(TRUTH)) and None
Path("sent.zip").write_bytes(label_zip(SENT)) and None
pack(TruthSource("truth.zip", "davis2017"), "packed.zip", split="val")
pack(TruthSource("truth.zip", "davis2017"), "both.zip", split="val")
pack(TruthSource("truth.zip", "davis2017"), "both.zip", split="test")
two = segjudge.score("sent.zip", "both.zip", "davis2017")
"""


if __name__ == "__main__":
    FILE.write_text(write_calls(), encoding="utf-8")
