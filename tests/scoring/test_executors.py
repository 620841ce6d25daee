"""The workers of an executor share scoring, with the bits and sentences of one process."""

from __future__ import annotations

import os
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from segjudge import HostError, Scores, SubmissionError, score
from segjudge.evaluation_script.families.base.engine import Engine
from segjudge.evaluation_script.runner.parallel import cores
from segjudge.scoring import sharing
from tests.families.contract import examples
from tests.scoring.shares import SENT, write_sequences


def content(scores: Scores) -> str:
    """Return all results, to the last bit."""
    rows = repr(scores.metrics) + repr(scores.standard_errors) + repr(scores.tables)
    return rows + repr(scores.warnings) + repr(scores.notes)


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
