"""The cost of hostile submissions in families that count by unit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Callable, Dict, Tuple

import pytest

from segjudge.evaluation_script.files.problems import SubmissionError
from tests.families.instances.test_hostile_instances import in_child

SECONDS, MEMORY = 5, 400 << 20
#: Makes what is sent.
Make = Callable[[], bytes]


def hostile(rows: Dict[str, Tuple[Make, str]]) -> Callable[[Any], Any]:
    """Run a test on each row, if its cost can be measured."""
    each = pytest.mark.parametrize(("make", "sentence"), list(rows.values()), ids=list(rows))
    quiet = pytest.mark.filterwarnings("ignore::DeprecationWarning")
    measured = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
    return lambda test: measured(quiet(each(test)))


def sentence_of(data: bytes, folder: Path, score: Callable[[Path], Any]) -> str:
    """`scored`, or the participant's message, within the time and memory of a submission."""
    path, output = folder / "upload", folder / "said"
    path.write_bytes(data)

    def work() -> None:
        try:
            score(path)
            output.write_text("scored", encoding="utf-8")
        except SubmissionError as error:
            output.write_text(str(error), encoding="utf-8")

    seconds, memory = in_child(work)
    assert seconds < SECONDS
    assert memory < MEMORY
    return output.read_text(encoding="utf-8")
