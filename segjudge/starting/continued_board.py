"""A board that continues an event: its two repositories from an archive, and the rows with which its ledger begins."""

from __future__ import annotations

import datetime
import os
import shutil
from contextlib import suppress
from pathlib import Path

from segjudge.archive.event import open_event
from segjudge.archive.frozen_boards import copy_bundle
from segjudge.archive.ledger_history import make_history
from segjudge.evaluation_script.files.problems import HostError, quantity
from segjudge.ledger.rows import ENTRIES
from segjudge.platforms.evalai.bundle.bundle_source import CONFIG, PHASES_FILE, SCRIPT_FOLDER, BundleSource, find_bundle
from segjudge.platforms.github.build import HISTORY_FOLDER, PRIVATE_FOLDER, PUBLIC_FOLDER, build_board
from segjudge.platforms.github.challenge import read_rules
from segjudge.system.errors import UsageError
from segjudge.system.files import open_draft

from .lock import write_lock


def continue_board(folder: str, archive: str, segjudge: str) -> list[str]:
    """Write the repositories of a board for an archive's challenge, and its history; return notes for its host."""
    with open_event(archive) as event, open_draft(folder) as draft:
        private = os.path.join(draft, PRIVATE_FOLDER)
        source: BundleSource | None = None
        with suppress(UsageError):  # only archives of EvalAI have a bundle
            source = copy_bundle(event, private)
        if source is None or source.is_foreign:
            raise HostError(f"{archive}: Segjudge did not score this event. Start a board without --history")
        _use_installed_scorers(Path(private, SCRIPT_FOLDER))
        source, now = find_bundle(private), datetime.datetime.now(datetime.timezone.utc)
        write_lock(segjudge, private, source.list_protocols())
        rules = read_rules(source, {})
        history = dict(zip((PUBLIC_FOLDER, PRIVATE_FOLDER), make_history(event, rules, now), strict=True))
        for half, files in history.items():
            for path, data in files.items():
                target = Path(draft, HISTORY_FOLDER, half, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
        build_board(draft, folder, [half for half, files in history.items() if files])
        shown = sum(path.startswith(f"{ENTRIES}/") for path in history[PUBLIC_FOLDER])
        whole = quantity(len(event.submissions), "submission")
        ended = {phase.codename: phase.end for phase in rules.phases if phase.end < now}
    return [
        f"history: {shown:,} of {whole}, those of public leaderboards",
        *(f"{name} ended on {end:%Y-%m-%d}; to open it again, change {CONFIG}" for name, end in ended.items()),
    ]


def _use_installed_scorers(script: Path) -> None:
    """Remove the scorers from a bundle, so that those of its requirements score."""
    phases = (script / PHASES_FILE).read_bytes()
    shutil.rmtree(script)
    script.mkdir()
    (script / PHASES_FILE).write_bytes(phases)
