"""`segjudge leave codalab`: the dump of a CodaLab competition as an archive; and files that a dump names but lacks.

Dumps of CodaLab and Codabench hold the competition, not its submissions. If a file cannot be read, both leave it out
without a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from segjudge.evaluation_script.files import Files, HostError, printable
from segjudge.platforms.evalai.bundle.yaml_lines import parse_config

from .event import BUNDLE, EventBoard, EventWriter, Exported, MissingFile, open_container

_CONFIG = "competition.yaml"
#: The keys of phases and tasks that name files, and a key of the site in the place of a path.
_DATA = ("reference_data", "scoring_program", "input_data", "ingestion_program", "starting_kit", "public_data")
_is_key = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_KEY = "named by a key, which only the live site resolves"
#: The first bytes of a zip.
_ZIP = b"PK"


def export_codalab(dump: str, writer: EventWriter) -> Exported:
    """Copy a dump's files to a writer's folder, and return its records; raises HostError for another file."""
    with _open(dump) as (files, config):
        if "version" in config:
            raise HostError(f"{dump}: is a bundle of Codabench. Use `segjudge leave codabench NUMBER` for its history")
        missing = list(_find_missing(files, config))
        for row in (row for row in missing if row.reason == _KEY):
            raise HostError(f"{dump}: {row.phase} names {row.what} by a key. This dump holds keys; make one with files")
        for name in files.sizes:
            writer.write(f"{BUNDLE}/{name}", files.read(name))
    boards = [EventBoard(phase, phase, "3", hidden=False, **_read_columns(config)) for phase, _ in _list_phases(config)]
    history = "a dump holds no submissions and scores; download them from the competition's pages while it runs"
    missing.append(MissingFile("", "submissions and scores", history))
    return Exported(str(config.get("title") or ""), is_complete=True, boards=boards, missing=missing)


def find_missing_files(dump: str) -> list[MissingFile]:
    """Return the files that a competition's zip names but lacks, by phase."""
    try:
        with _open(dump) as (files, config):
            return list(_find_missing(files, config))
    except HostError as error:
        return [MissingFile("", "content of the bundle", str(error))]


@contextmanager
def _open(dump: str) -> Iterator[tuple[Files, dict[str, Any]]]:
    with open_container(dump, "the dump of a competition") as files:
        if _CONFIG not in files.sizes:
            raise HostError(f"{dump}: lacks {_CONFIG} at its top. Name the zip that the platform's dump gave")
        yield files, parse_config(_CONFIG, files.read(_CONFIG))


def _list_phases(config: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the mapping of each phase, and of each task of Codabench."""
    for key in ("phases", "tasks"):
        rows = config.get(key) or []
        for index, row in enumerate(rows.values() if isinstance(rows, dict) else rows):
            if isinstance(row, dict):
                yield str(row.get("label") or row.get("name") or f"{key[:-1]} {index}"), row


def _find_missing(files: Files, config: dict[str, Any]) -> Iterator[MissingFile]:
    pages = config.get("html") or {}
    named = [("", "image", config.get("image")), ("", "terms", config.get("terms"))]
    named += [("", f"page {key}", name) for key, name in (pages.items() if isinstance(pages, dict) else ())]
    named += [("", "page", page.get("file")) for page in config.get("pages") or [] if isinstance(page, dict)]
    named += [(phase, key, row.get(key)) for phase, row in _list_phases(config) for key in _DATA]
    for phase, what, path in named:
        if not path:
            continue
        if _is_key(str(path)):
            yield MissingFile(phase, what, _KEY)
        elif str(path) not in files.sizes:
            yield MissingFile(phase, what, f"the dump names {printable(path)} but lacks it: the site could not read it")
        elif str(path).endswith(".zip") and not files.read(str(path)).startswith(_ZIP):
            yield MissingFile(phase, what, f"{printable(path)} is no zip; it may be an error of the site's storage")


def _read_columns(config: dict[str, Any]) -> dict[str, Any]:
    """Return the labels of a CodaLab leaderboard, the first of which orders it."""
    columns = (config.get("leaderboard") or {}).get("columns") or {}
    ranked = sorted(columns, key=lambda key: (columns[key].get("rank") or 0, str(key)))
    ascending = [str(key) for key in ranked if columns[key].get("sort") == "asc"]
    labels = [str(key) for key in ranked]
    return {"order": labels[0] if labels else "", "labels": labels, "ascending": ascending}
