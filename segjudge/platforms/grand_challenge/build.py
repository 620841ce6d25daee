"""`segjudge build --platform grand-challenge`: for each phase the context of an image, its truth, and its settings."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit
from segjudge.platforms.evalai.bundle.agreement import check_secrecy, splits_of
from segjudge.platforms.evalai.bundle.build import build as build_for_evalai
from segjudge.platforms.evalai.bundle.bundle_source import SCRIPT_FOLDER, BundleSource
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
from segjudge.platforms.evalai.bundle.problems import mappings_in
from segjudge.system.errors import UsageError
from segjudge.system.files import file_name

from . import evaluate

_OUT = os.path.join("dist", "grand-challenge")
_DOCKERFILE = """\
# An evaluation method of grand-challenge.org:
#   docker build --platform linux/amd64 -t evaluation . && docker save evaluation | gzip > evaluation.tar.gz
FROM --platform=linux/amd64 python:3.12-slim-bookworm
RUN useradd --create-home evaluator
WORKDIR /opt/app
COPY evaluation_script/requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt
COPY . .
USER evaluator
ENTRYPOINT ["python", "-B", "/opt/app/evaluate.py"]
"""


def build(source: BundleSource, out: str = "") -> dict[str, list[str]]:
    """Write a folder for each phase; return what each leaves out, by folder."""
    out = out or os.path.join(source.root, _OUT)
    phases = {phase.codename: phase for phase in source.phases()}
    written: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="segjudge-") as temporary:
        built = source.archive or build_for_evalai(source.root, os.path.join(temporary, "bundle.zip")).path
        with Bundle(built, for_evalai=False) as bundle:
            check_secrecy(bundle.config, phases.values())
            for configured in mappings_in(bundle.config, "challenge_phases"):
                phase = phases[str(configured.get("codename"))]
                folder = os.path.join(out, file_name(phase.codename))
                if os.path.isdir(folder) and "task.json" not in os.listdir(folder) and os.listdir(folder):
                    raise UsageError(f"{folder}: holds something else; name another folder with --out")
                try:
                    written[folder] = _write(bundle, configured, phase, folder)
                except OSError as error:
                    fault = f"{folder}: cannot be written ({error.strerror})"
                    raise HostError(f"{fault}; name another place with --out") from None
    return written


def _write(bundle: Bundle, configured: dict[str, Any], phase: Phase, folder: str) -> list[str]:
    if not bundle.has(phase.annotations):
        raise HostError(f"{phase.annotations}: is not in the bundle, so {phase.codename} cannot be scored elsewhere")
    shutil.rmtree(folder, ignore_errors=True)
    with zipfile.ZipFile(io.BytesIO(bundle.read(f"{SCRIPT_FOLDER}.zip"))) as script:
        files = {f"{SCRIPT_FOLDER}/{name}": script.read(name) for name in script.namelist()}
    truth = os.path.basename(phase.annotations)
    public_splits = [split for split in phase.splits if not split.hidden]
    keys = {split.codename: split.codename.replace(".", "_") for split in public_splits}
    task = {"phase": phase.codename, "annotations": truth, "keys": keys}
    files |= {"evaluate.py": Path(evaluate.__file__).read_bytes(), "task.json": _json(task)}
    files |= {"Dockerfile": _DOCKERFILE.encode(), ".dockerignore": b"ground_truth.tar.gz\nphase-settings.json\n"}
    files["phase-settings.json"] = _json(_settings(bundle.config, configured, public_splits, keys))
    for name, content in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    data = bundle.read(phase.annotations)
    with tarfile.open(os.path.join(folder, "ground_truth.tar.gz"), "w:gz") as archive:
        member = tarfile.TarInfo(truth)
        member.size, member.mode = len(data), 0o644
        archive.addfile(member, io.BytesIO(data))
    hidden = [split.codename for split in phase.splits if split.hidden]
    return [f"{name} is hidden, and left out: participants may read metrics.json there" for name in hidden]


def _settings(
    config: dict[str, Any], configured: dict[str, Any], splits: list[PhaseSplit], keys: dict[str, str]
) -> dict[str, Any]:
    """What the form of a phase asks for, in its own words; the label that ranks comes first."""
    boards = {split.codename: split for split in splits_of(config, configured)}
    columns = [
        {
            "title": label if len(splits) == 1 else f"{split.codename} {label}",
            "path": f"{keys[split.codename]}.{label}",
            "error_path": f"{keys[split.codename]}.{label}_error",
            "order": "desc" if boards[split.codename].is_descending(label) else "asc",
        }
        for split in splits
        for label in sorted(split.metrics, key=lambda label: label != boards[split.codename].schema["default_order_by"])
    ]
    if not columns:
        return {}
    ranking, *more = columns
    return {
        "score_title": ranking["title"],
        "score_jsonpath": ranking["path"],
        "score_error_jsonpath": ranking["error_path"],
        "score_default_sort": ranking["order"],
        "extra_results_columns": more,
    }


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()
