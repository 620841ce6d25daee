"""What `./run.sh test` counts, with real runs of pytest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from segjudge import __name__ as _toolkit  # noqa: F401 - not for the worker's interpreter

from .everything import Part, report, start

GOOD = "import pytest\n\ndef test_one(): pass\n\ndef test_two(): pytest.skip('not here')\n"
BAD = "import pytest\n\n@pytest.fixture\ndef broken(): raise OSError\n\ndef test_one(): assert 0\n\ndef test_two(broken): pass\n"
GONE = "import os\n\ndef test_one(): pass\n\ndef test_two(): os._exit(0)\n"


def parts(folder: Path, *texts: str) -> list[Part]:
    made = []
    for number, text in enumerate(texts):
        path = folder / f"test_{number}.py"
        path.write_text(text)
        made.append(Part(f"Part {number}", [sys.executable, "-m", "pytest", "-q", str(path)], folder / str(number)))
    return made


@pytest.mark.parametrize(
    ("texts", "last", "code"),
    [
        pytest.param([GOOD, GOOD], "2 passed, 0 failed, 2 skipped", 0, id="good"),
        pytest.param([GOOD, BAD], "1 passed, 2 failed, 1 skipped", 1, id="failure and error", marks=pytest.mark.long),
        pytest.param(
            [GOOD, GONE],
            "1 passed, 1 failed, 1 skipped",
            1,
            id="a process that goes with exit code 0",
            marks=pytest.mark.long,
        ),
        pytest.param(
            [GOOD, "import nothing_like_it\n"],
            "1 passed, 1 failed, 1 skipped",
            1,
            id="not importable",
            marks=pytest.mark.long,
        ),
        pytest.param(
            [GOOD, ""], "1 passed, 0 failed, 1 skipped", 0, id="nothing for this interpreter", marks=pytest.mark.long
        ),
    ],
)
def test_the_last_line_counts_all_parts(texts: list[str], last: str, code: int, tmp_path: Path, capfd: object) -> None:
    made = parts(tmp_path, *texts)
    start(made)
    assert report(made) == code
    output = capfd.readouterr().out  # type: ignore[attr-defined]
    assert output.splitlines()[-1] == last
    for number in range(len(texts)):
        assert f" Part {number} ═" in output
