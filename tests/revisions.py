"""The scores of each protocol for two samples, and for results with many mistakes, at each of its revisions.

These numbers never move.

    python -m tests.revisions

adds what protocols give that are new or have a new revision; what stands there stays.
"""

from __future__ import annotations

import tempfile
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import segjudge
from segjudge.cli import main
from segjudge.evaluation_script.families import FOLDERS, PROTOCOLS, folder_of
from segjudge.evaluation_script.families.base.family import FamilyProtocol
from segjudge.scoring.parts import rules_as_json

from .families.contract import golden_path
from .golden.rows import read_rows, write_rows

#: In the golden folder of each family's tests: truths and samples by what they hold, and the numbers: protocol →
#: revision → rules, truth, and files and metrics of each sample.
FILES, NUMBERS = "revisions.zip", "revisions.json"
SAMPLES = ("good", "poor")
#: The sample whose files are written anew each time.
MISTAKES = "mistakes"


def rules(protocol: FamilyProtocol) -> dict[str, Any]:
    """Return the rules that determine the numbers."""
    return {name: value for name, value in rules_as_json(protocol).items() if name not in ("name", "about", "metrics")}


def known(protocol: FamilyProtocol) -> dict[str, Any]:
    """Return a protocol's scores at its revision, or None."""
    rows = read_rows(golden_path(folder_of(protocol.family), NUMBERS))
    entry: dict[str, Any] = rows.get(protocol.name, {}).get(str(protocol.revision), {})
    return entry


def read_all() -> dict[str, dict[str, Any]]:
    """Return every protocol's scores, by revision."""
    return {name: rows for folder in FOLDERS for name, rows in read_rows(golden_path(folder, NUMBERS)).items()}


def extract(folder: Path) -> Path:
    """Write the truths and samples of all families into a folder."""
    for family in FOLDERS:
        with zipfile.ZipFile(golden_path(family, FILES)) as archive:
            archive.extractall(folder)
    return folder


def values_of_mistakes(protocol: str, folder: Path) -> dict[str, float | None]:
    from .scoring.mistakes import write_mistakes

    files = write_mistakes(protocol, folder)
    return values(protocol, Path(files.truth), Path(files.results))


def values(protocol: str, truth: Path, sample: Path) -> dict[str, float | None]:
    (metric,) = segjudge.score(sample, truth, protocol).metrics.values()
    return metric


def add() -> None:
    for folder in FOLDERS:
        path = golden_path(folder, NUMBERS)
        numbers = read_rows(path)
        path.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(golden_path(folder, FILES), "a") as archive:
            for name, protocol in PROTOCOLS.items():
                if folder_of(protocol.family) == folder and not known(protocol):
                    numbers.setdefault(name, {})[str(protocol.revision)] = _note(protocol, archive)
        write_rows(path, numbers)


def _note(protocol: FamilyProtocol, archive: zipfile.ZipFile) -> dict[str, Any]:
    """Score the samples of a new challenge; add its files to an archive, and return a revision's row."""
    from .published import published

    entry: dict[str, Any] = {"rules": rules(protocol), "truth": "", "samples": {}}
    with tempfile.TemporaryDirectory() as folder:
        challenge = Path(folder) / "challenge"
        truth = published(protocol.name, Path(folder))
        assert main(["host", protocol.name, "--truth", str(truth), "--out", str(challenge)]) == 0
        packed = challenge / "annotations/val.zip"
        for path in (packed, *(challenge / f"examples/val/{name}.zip" for name in SAMPLES)):
            member = f"{sha256(path.read_bytes()).hexdigest()[:16]}.zip"
            if member not in archive.namelist():
                archive.writestr(zipfile.ZipInfo(member), path.read_bytes())
            if path == packed:
                entry["truth"] = member
            else:
                entry["samples"][path.stem] = {"file": member, "values": values(protocol.name, packed, path)}
    with tempfile.TemporaryDirectory() as folder:
        entry["samples"][MISTAKES] = {"values": values_of_mistakes(protocol.name, Path(folder))}
    return entry


if __name__ == "__main__":
    add()
