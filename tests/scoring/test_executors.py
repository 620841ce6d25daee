"""The workers of an executor share scoring, with the bits and sentences of one process."""

from __future__ import annotations

import os
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from segjudge import HostError, Scores, SubmissionError, UsageError, score
from segjudge.evaluation_script.families.base.engine import Engine
from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS, PER_IMAGE
from segjudge.evaluation_script.families.sequences.protocols import SEQUENCE_PROTOCOLS
from segjudge.evaluation_script.runner.parallel import cores
from segjudge.scoring import sharing
from segjudge.system.errors import OptionError
from tests.families.choices import BOXES
from tests.families.contract import examples
from tests.scoring.shares import SENT, write_instances, write_sequences


def content(scores: Scores) -> str:
    """Return all results, to the last bit."""
    rows = repr(scores.metrics) + repr(scores.standard_errors) + repr(scores.tables)
    return rows + repr(scores.warnings) + repr(scores.notes)


class Faulty(ThreadPoolExecutor):
    """Threads that fail at their first tasks."""

    def __init__(self, failures: int) -> None:
        super().__init__(2)
        self._failures = failures

    def submit(self, call: Any, /, *args: Any, **options: Any) -> Future[Any]:
        self._failures -= 1
        return super().submit(_fails if self._failures >= 0 else call, *args, **options)


def _fails(*_: object) -> bytes:
    raise ConnectionError("the network is down")


def _dies(*_: object) -> bytes:
    os._exit(1)


@pytest.fixture
def given(tmp_path: Path) -> tuple[str, str]:
    return write_sequences(tmp_path)


@pytest.mark.parametrize("protocol", examples("frames"))
@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_any_executor_gives_the_bits_of_one_process(
    pool: type[ThreadPoolExecutor], protocol: str, given: tuple[str, str]
) -> None:
    expected, steps = content(score(*given, protocol)), []
    with pool(3) as executor:
        assert (
            content(score(*given, protocol, executor=executor, progress=lambda *step: steps.append(step))) == expected
        )
        assert content(score(*given, protocol, executor=executor, jobs=1)) == expected
        assert content(score(*given, protocol, executor=executor, jobs=20)) == expected
    count = cores() * Engine.parts_each  # such an executor does not say how many workers it has
    assert [(done, of) for _, done, of in steps] == [(done, count) for done in range(count + 1)]


@pytest.mark.long
def test_instance_masks_are_shared_too(tmp_path: Path) -> None:
    given, changed = write_instances(tmp_path), replace(INSTANCE_PROTOCOLS["coco"], cap=PER_IMAGE)
    with ThreadPoolExecutor(2) as executor:
        for protocol in ("coco", BOXES, changed):
            assert content(score(*given, protocol, executor=executor)) == content(score(*given, protocol))
            assert content(score(*given, protocol, executor=executor, jobs=7)) == content(score(*given, protocol))


@pytest.mark.parametrize("strict", [False, True])
def test_problems_are_reported_as_by_one_process(strict: bool, tmp_path: Path) -> None:
    bad = {name: [frame if k % 3 else frame[:-1] for k, frame in enumerate(v)] for name, v in SENT.items()}
    for sent in (bad, {name: frames for name, frames in SENT.items() if name != "b"}, b"no archive"):
        given = write_sequences(tmp_path, sent)
        with pytest.raises(SubmissionError) as alone:
            score(*given, strict=strict)
        with ThreadPoolExecutor(2) as executor, pytest.raises(SubmissionError) as shared:
            score(*given, strict=strict, executor=executor)
        assert str(shared.value) == str(alone.value)


def test_arguments_are_refused_as_by_one_process(given: tuple[str, str]) -> None:
    path, truth = given
    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(UsageError, match="no split 'x'"):
            score(path, truth, split="x", executor=executor)
        with pytest.raises(OptionError, match="categories does not apply"):
            score(path, truth, categories="c", executor=executor)
        with pytest.raises(HostError, match=r"\S"):
            score(path, path + "x", executor=executor)
        changed = replace(SEQUENCE_PROTOCOLS["davis2017"], proposals=3)
        with pytest.raises(UsageError, match="the rules of davis2017 were changed"):
            score(path, truth, changed, executor=executor)
        assert content(score(path, truth, sequences=["b", "c"], executor=executor)) == content(
            score(path, truth, sequences=["b", "c"])
        )
    with pytest.raises(UsageError, match="neither from concurrent.futures nor a Dask client"):
        score(path, truth, executor="no executor")  # type: ignore[arg-type]


def test_a_part_that_failed_is_done_again_twice(given: tuple[str, str]) -> None:
    with Faulty(2) as executor:
        assert content(score(*given, executor=executor)) == content(score(*given))
    with Faulty(3) as executor, pytest.raises(HostError, match="part 1 of 1 failed 3 times: .*network is down"):
        score(*given, executor=executor, jobs=1)


def test_a_broken_pool_is_reported_in_a_sentence(given: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "count_part", _dies)
    with (
        ProcessPoolExecutor(1) as executor,
        pytest.raises(HostError, match="workers were lost .*create a new executor"),
    ):
        score(*given, executor=executor)
    executor.shutdown()
    with pytest.raises(HostError, match="workers were lost"):
        score(*given, executor=executor)


def test_a_worker_of_another_version_is_reported(given: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    class Elsewhere(Executor):
        """A worker with another version."""

        def submit(self, call: Any, /, version: str, *args: Any) -> Future[Any]:
            future: Future[Any] = Future()
            monkeypatch.setattr(sharing, "VERSION", "0.0.1")
            future.set_result(call(version, *args))
            monkeypatch.undo()
            return future

    with pytest.raises(UsageError, match="has segjudge 0.0.1; this is .*; install the same version everywhere"):
        score(*given, executor=Elsewhere())


def test_parts_of_different_files_are_refused(given: tuple[str, str], tmp_path: Path) -> None:
    class Changing(Executor):
        """A worker that reads another file at the same path each time."""

        def submit(self, call: Any, /, version: str, run: str, *args: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_result(call(version, run + str(len(done)), *args))
            done.append(write_sequences(tmp_path, {name: frames[::-1] for name, frames in SENT.items()}))
            return future

    done: list[object] = []
    with pytest.raises(
        UsageError, match="^part 1 and part 2 were scored from different predictions; merge only parts of one"
    ):
        score(*given, executor=Changing(), jobs=2)


def test_an_interrupt_cancels_the_parts_that_wait(given: tuple[str, str]) -> None:
    class Recorder(ThreadPoolExecutor):
        def submit(self, *call: Any, **options: Any) -> Future[Any]:
            futures.append(super().submit(*call, **options))
            return futures[-1]

    def interrupted(_name: str, done: int, _count: int) -> None:
        if done:
            raise KeyboardInterrupt

    futures: list[Future[Any]] = []
    with Recorder(1) as executor, pytest.raises(KeyboardInterrupt):
        score(*given, executor=executor, jobs=200, progress=interrupted)
    assert sum(future.cancelled() for future in futures) > 100
