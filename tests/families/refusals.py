"""The sentence by which `segjudge.score` refuses an upload or a truth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from segjudge import SubmissionError, score
from segjudge.evaluation_script.files.problems import HostError
from tests.builders import written, zipped

#: A protocol, the files of the truth and of the upload, and the sentence that refuses one of them.
Refusal = tuple[str, dict[str, bytes], dict[str, bytes], str]


def refuse(
    folder: Path, protocol: str, truth: Mapping[str, bytes], upload: Mapping[str, bytes], file: str = "", **options: Any
) -> str:
    """Return the refusal of `up.zip` by the truth in the folder `truth`, or in one file of it."""
    written(folder / "truth", dict(truth))
    (folder / "up.zip").write_bytes(zipped(dict(upload)))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with pytest.raises((SubmissionError, HostError)) as caught:
            score("up.zip", Path("truth", file), protocol, **options)
    return str(caught.value)
