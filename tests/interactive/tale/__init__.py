"""The lines of robots, the answers of sessions and the rejections of servers, on two small sequences, as one text."""

from __future__ import annotations

import contextlib
import datetime
import io
import itertools
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from segjudge.interactive import DavisInteractiveSession, dataset, davis_session, remote_session, reports, session_host
from tests.answers import fold_sections
from tests.interactive.scene import Clock, answer, write_root

FILE = Path(__file__).parents[2] / "golden/sessions.txt"
ANN, BOB = "ann-key-0123456789", "bob-key-0123456789"


class Tale:
    """The text up to now, and a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.lines, self.clock = folder, list[str](), Clock()
        self.root = folder / "davis"
        #: The errors noted so far, each with the number of its line.
        self._errors: dict[str, int] = {}

    def say(self, *arguments: object) -> None:
        self.lines.append(" ".join(str(settle(word)) for word in arguments).replace(str(self.folder), "FOLDER"))

    def try_out(self, about: str, work: Callable[[], object]) -> Any:
        """Describe an outcome: a value, warnings, an error."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                value = work()
            except Exception as error:  # noqa: BLE001 - its sentence is what is held
                kinds = [kind.__name__ for kind in type(error).__mro__[:-2] if kind is not Exception]
                why = (
                    f" ({type(error.__cause__).__name__}: {error.__cause__}; {vars(error)})" if error.__cause__ else ""
                )
                sentence, value = f"{' < '.join(kinds[:3])}: {error}{why}", None
                if self._errors.get(sentence) == len(self.lines) - 1:
                    shown = f": {sentence}".replace(str(self.folder), "FOLDER")
                    self.lines[-1] = f"{self.lines[-1].removesuffix(shown)}; {about}{shown}"
                else:
                    self.say(f"{about}: {sentence}")
                self._errors[sentence] = len(self.lines) - 1
            else:
                self.say(f"{about}: {settle(value)}" if value is not None else f"{about}.")
        for warning in caught:
            self.say(f"   warning: {warning.message}")
        return value


def settle(value: Any) -> Any:
    """Round numbers, and convert arrays to lists."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return round(float(value), 5)
    if isinstance(value, (list, tuple)):
        return type(value)(settle(each) for each in value) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {key: settle(each) for key, each in value.items()}
    return value


def drawn(*rows: str) -> Any:
    return np.array([[character != "." for character in row] for row in rows])


def play(tale: Tale, session: DavisInteractiveSession, *, seconds: float = 9.0, most: int = 99, late: int = 0) -> None:
    """Describe each interaction of a session, and the faults of its masks; leave it after this many."""
    with session:
        tale.say(f"limits {session.max_time}, {session.max_nb_interactions}; samples {session.samples}")
        for number, (name, lines, new) in enumerate(session.scribbles_iterator(only_last=number_is_odd(session)), 1):
            if number > most:
                break
            interaction, sample = (session.interaction_nb or 0) + 1, session.samples[session.sample_idx or 0]
            counts = {frame: len(each) for frame, each in enumerate(lines["scribbles"]) if each}
            shown = [(line["object_id"], len(line["path"]), line["path"][0], line["path"][-1])
                     for each in lines["scribbles"] for line in each]  # fmt: skip
            tale.say(f"{sample} {interaction}{' new' if new else ''}: {counts}, {settle(shown[-2:])}")
            tale.clock.now += seconds * number if number != late else 1000
            guess = answer(name, len(lines["scribbles"]), interaction)
            candidates = [1, 9] if number == 2 else None
            before = len(tale.lines)
            tale.try_out("  submitted", lambda: session.submit_masks(guess, candidates))  # noqa: B023
            if tale.lines[before] == "  submitted.":
                del tale.lines[before]
        tale.say(f"running {session.running}, files {sorted(path.name for path in session.report_save_dir.iterdir())}")
        report = session.get_report()
        columns = ["sequence", "scribble_idx", "interaction", "object_id"]
        means = report.groupby(columns, sort=False)[["j_and_f", "timing"]].mean().reset_index().values.tolist()
        tale.say("means", *(f"{row[0]} {row[1]}.{row[2]} {row[3]}: {settle(row[4:])};" for row in means))
        tale.try_out("summary", session.get_global_summary)


def number_is_odd(session: DavisInteractiveSession) -> bool:
    return (session.max_nb_interactions or 0) % 2 == 1


@contextlib.contextmanager
def _same_everywhere() -> Iterator[None]:
    """Make keys, names and waits constant until the block ends."""
    keys = itertools.count(1)
    secrets = SimpleNamespace(token_hex=lambda size: f"{next(keys):0{2 * size}x}")
    days = itertools.count(1)
    today = SimpleNamespace(now=lambda: datetime.datetime(2026, 1, next(days) % 28 + 1, 8))
    opened, warned = dataset.Davis.opened, io.StringIO()
    with (
        mock.patch.object(davis_session, "secrets", secrets), mock.patch.object(session_host, "secrets", secrets),
        mock.patch.object(remote_session, "secrets", secrets), mock.patch.object(reports, "datetime", SimpleNamespace(datetime=today)),
        mock.patch.object(remote_session.time, "sleep"), mock.patch.dict(os.environ), contextlib.redirect_stderr(warned),
    ):  # fmt: skip
        os.environ.pop("DATASET_DAVIS", None)
        mask = os.umask(0o077)
        try:
            yield
        finally:
            os.umask(mask)
            dataset.Davis.opened = opened


def write_part(part: Callable[[Tale], None]) -> str:
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder, _same_everywhere():
        tale = Tale(Path(folder))
        write_root(tale.root)
        part(tale)
    text = re.sub(r"(?m)^((progress|draws): .*)(?:\n\2: .*)+", _join, "\n".join(tale.lines).replace("\n  - ", "; "))
    return f"═══ {part.__name__.replace('_', ' ')}\n{fold_sections(text)}\n\n"


def _join(steps: re.Match[str]) -> str:
    """Return the steps of a run in one line."""
    return steps[0].replace(f"\n{steps[2]}:", "")
