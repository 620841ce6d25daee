"""The report of a session in a folder, and the state from which another process can go on."""

import datetime
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from segjudge.system.files import replace

from .summary import Summary

_STATE = ".state.json"


class ReportFiles:
    """The files of one session; each is written in one step, so that a killed program leaves a complete report.

    `summary_name` is the file to which the summary of a finished session is written, if there is one.
    """

    def __init__(self, folder: str | os.PathLike[str], summary_name: str | None = None) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.name = _unused_name(self.folder)
        self._summary_name = summary_name

    @property
    def temporary(self) -> Path:
        """The report while the session runs."""
        return self.folder / f"{self.name}.tmp.csv"

    @property
    def _state(self) -> Path:
        return self.folder / f"{self.name}{_STATE}"

    def write_report(self, report: pd.DataFrame) -> None:
        """Write the report so far."""
        replace(self.temporary, report.to_csv())

    def write_state(self, state: Mapping[str, object], *, private: bool = False) -> None:
        """Write the state as JSON; a private file can be read by its owner alone."""
        replace(self._state, json.dumps(state), private=private)

    def resume(self, matches: Callable[[dict[str, Any]], bool], description: str) -> dict[str, Any]:
        """Go on with the newest unfinished session whose state matches; return that state."""
        paths = sorted(self.folder.glob(f"result_*{_STATE}"), key=lambda path: path.stat().st_mtime_ns)
        for path in reversed(paths):
            state: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if matches(state):
                self.name = path.name.removesuffix(_STATE)
                return state
        raise ValueError(f"resume: {self.folder} has no unfinished session {description}")

    def finish(self, report: pd.DataFrame, summary: Summary) -> None:
        """Write the final report; the state is removed last, so that an interrupted end is repeated."""
        if self._summary_name is not None:
            replace(self.folder / self._summary_name, json.dumps(summary))
        replace(self.folder / f"{self.name}.csv", report.to_csv())
        self._state.unlink(missing_ok=True)
        self.temporary.unlink(missing_ok=True)


def _unused_name(folder: Path) -> str:
    """Return a name with the local time; with a number where another session of that second has it."""
    name = datetime.datetime.now().strftime("result_%Y%m%d_%H%M%S")  # noqa: DTZ005 - local time
    names = [name, *(f"{name}_{number}" for number in range(2, 1000))]
    return next((unused for unused in names if not any(folder.glob(f"{unused}.*"))), name)
