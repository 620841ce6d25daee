"""The workers of an executor share scoring, with the bits and sentences of one process."""

from __future__ import annotations

from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from segjudge import Scores, score
from segjudge.evaluation_script.families.base.engine import Engine
from segjudge.evaluation_script.runner.parallel import cores
from tests.families.contract import examples
from tests.scoring.shares import write_sequences


def content(scores: Scores) -> str:
    """Return all results, to the last bit."""
    rows = repr(scores.metrics) + repr(scores.standard_errors) + repr(scores.tables)
    return rows + repr(scores.warnings) + repr(scores.notes)


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
