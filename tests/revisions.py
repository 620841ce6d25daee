"""What each protocol gives for two samples, and for results with many mistakes, at each of its revisions.

These numbers never move.

    python -m tests.revisions

adds what protocols give that are new or have a new revision; what stands there stays.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import segjudge
from segjudge.cli import main
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.family import FamilyProtocol
from segjudge.scoring.parts import rules_as_json

FOLDER = Path(__file__).parent / "golden"
#: Truths and samples by what they hold, and the numbers: protocol → revision → rules, files, and metrics of each sample.
FILES, NUMBERS = FOLDER / "revisions.zip", FOLDER / "revisions.json"
SAMPLES = ("good", "poor")
#: The numbers of results with many mistakes, whose files are written anew each time: protocol → revision → metrics.
MISTAKES = FOLDER / "mistakes.json"


def rules(protocol: FamilyProtocol) -> dict[str, Any]:
    """The rules by which numbers come about."""
    return {name: value for name, value in rules_as_json(protocol).items() if name not in ("name", "about", "metrics")}


def known() -> dict[str, dict[str, Any]]:
    return json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {}


def known_mistakes() -> dict[str, dict[str, Any]]:
    return json.loads(MISTAKES.read_text()) if MISTAKES.exists() else {}


def values_of_mistakes(protocol: str, folder: Path) -> dict[str, float | None]:
    from .scoring.mistakes import write_mistakes

    files = write_mistakes(protocol, folder)
    return values(protocol, Path(files.truth), Path(files.results))


def values(protocol: str, truth: Path, sample: Path) -> dict[str, float | None]:
    (found,) = segjudge.score(sample, truth, protocol).metrics.values()
    return found


def add() -> None:
    from .published import published

    numbers = known()
    with zipfile.ZipFile(FILES, "a") as archive, tempfile.TemporaryDirectory() as folder:
        for name, protocol in PROTOCOLS.items():
            if str(protocol.revision) in numbers.setdefault(name, {}):
                continue
            challenge = Path(folder) / name / "challenge"
            challenge.parent.mkdir()
            truth = published(name, challenge.parent)
            assert main(["host", name, "--truth", str(truth), "--out", str(challenge)]) == 0
            entry: dict[str, Any] = {"rules": rules(protocol), "truth": "", "samples": {}}
            for path in (
                challenge / "annotations/val.zip",
                *(challenge / f"examples/val/{one}.zip" for one in SAMPLES),
            ):
                member = f"{sha256(path.read_bytes()).hexdigest()[:16]}.zip"
                if member not in archive.namelist():
                    archive.writestr(zipfile.ZipInfo(member), path.read_bytes())
                if path.stem in SAMPLES:
                    found = values(name, challenge / "annotations/val.zip", path)
                    entry["samples"][path.stem] = {"file": member, "values": found}
                else:
                    entry["truth"] = member
            numbers[name][str(protocol.revision)] = entry
    NUMBERS.write_text(json.dumps(numbers, indent=1, sort_keys=True) + "\n")
    mistakes = known_mistakes()
    for name, protocol in PROTOCOLS.items():
        if str(protocol.revision) not in mistakes.setdefault(name, {}):
            with tempfile.TemporaryDirectory() as folder:
                mistakes[name][str(protocol.revision)] = values_of_mistakes(name, Path(folder))
    MISTAKES.write_text(json.dumps(mistakes, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    add()
