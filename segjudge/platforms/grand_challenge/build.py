"""`segjudge build --platform grand-challenge`: for each phase, an image's context, its truth and its settings."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.scoring.phase import Phase, PhaseSplit
from segjudge.platforms.evalai.bundle.annotations import refuse_annotations
from segjudge.platforms.evalai.bundle.build import open_built
from segjudge.platforms.evalai.bundle.bundle_source import SCRIPT_FOLDER, BundleSource
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
from segjudge.platforms.evalai.bundle.phase_splits import is_published, splits_of
from segjudge.platforms.evalai.bundle.secrecy import explain_withheld_phase, find_withheld_splits
from segjudge.platforms.rules.problems import mappings_in
from segjudge.system.errors import UsageError
from segjudge.system.files import file_name, open_draft

from . import evaluate, platform_input

_OUT = os.path.join("dist", "grand-challenge")
#: The maximum characters of a JSON path and of a score's title in the form of a phase.
_LONGEST_PATH, _LONGEST_TITLE = 255, 64
#: The fields of that form that publish a phase, its results, and all of `metrics.json`; set by default.
_PUBLISHING = ("public", "auto_publish_new_results", "display_all_metrics")
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


class BuiltMethod(NamedTuple):
    """An evaluation method, in a folder of its own."""

    #: The JSON path of the ranking score.
    score_path: str
    #: Omitted features.
    notes: list[str]
    #: Whether its scorers have the kernel, in words; "" if that is not known.
    about_kernel: str = ""


def build(source: BundleSource, out: str = "", *, kernel: bool = True) -> dict[str, BuiltMethod]:
    """Write a folder for each phase with a split to publish; return the methods by folder."""
    out = out or os.path.join(source.root, _OUT)
    phases = {phase.codename: phase for phase in source.phases()}
    written: dict[str, BuiltMethod] = {}
    omitted: dict[str, tuple[str, str]] = {}
    with open_built(source, kernel=kernel) as (bundle, about_kernel):
        refuse_annotations(bundle, phases.values())
        for configured in mappings_in(bundle.config, "challenge_phases"):
            phase = phases[str(configured.get("codename"))]
            withheld = find_withheld_splits(bundle.config, phase.codename, phase)
            if all(split.codename in withheld for split in phase.splits):
                omitted[phase.codename] = explain_withheld_phase(configured)
                continue
            folder = os.path.join(out, file_name(phase.codename))
            if os.path.isdir(folder) and "task.json" not in os.listdir(folder) and os.listdir(folder):
                raise UsageError(f"{folder}: already holds other files; choose another folder with --out")
            try:
                with open_draft(folder, replaces=True) as draft:
                    method = _write(bundle, configured, phase, draft)
                written[folder] = method._replace(about_kernel=about_kernel)
            except OSError as error:
                fault = f"{folder}: cannot be written ({error.strerror})"
                raise HostError(f"{fault}; choose another path with --out") from None
    for name, (reason, remedy) in omitted.items():
        if not written:
            raise HostError(f"{name}: {reason}, and everybody may read metrics.json on grand-challenge. {remedy}")
        next(iter(written.values())).notes.append(f"{name} is omitted, because {reason}")
    return written


def _write(bundle: Bundle, configured: dict[str, Any], phase: Phase, folder: str) -> BuiltMethod:
    if not bundle.has(phase.annotations):
        raise HostError(f"{phase.annotations}: is not in the bundle, so grand-challenge cannot score {phase.codename}")
    files = {f"{SCRIPT_FOLDER}/{name}": data for name, data in bundle.read_script().items()}
    truth = os.path.basename(phase.annotations)
    public_splits = [split for split in phase.splits if not split.hidden]
    split_keys = _path_keys([split.codename for split in public_splits], evaluate.WARNINGS)
    keys = {
        split.codename: {"key": split_keys[split.codename], "labels": _path_keys(split.metrics)}
        for split in public_splits
    }
    task = {"phase": phase.codename, "annotations": truth, "splits": keys}
    programs = [Path(module.__file__ or "") for module in (evaluate, platform_input)]
    files |= {"task.json": _json(task), **{path.name: path.read_bytes() for path in programs}}
    files |= {"Dockerfile": _DOCKERFILE.encode(), ".dockerignore": b"ground_truth.tar.gz\nphase-settings.json\n"}
    settings = _settings(bundle.config, configured, public_splits, keys)
    files["phase-settings.json"] = _json(settings)
    for name, content in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    _write_truth(os.path.join(folder, "ground_truth.tar.gz"), truth, bundle.read(phase.annotations))
    hidden = [split.codename for split in phase.splits if split.hidden]
    notes = [f"{name} is hidden and therefore omitted: everybody may read metrics.json there" for name in hidden]
    if not is_published(configured):
        fault = "is not public, but grand-challenge publishes phases and results by default"
        notes.append(f"{phase.codename} {fault}: clear {', '.join(_PUBLISHING)} in its form")
    return BuiltMethod(settings["score_jsonpath"], notes)


def _write_truth(path: str, name: str, data: bytes) -> None:
    """Write a tarball of one file; the same file gives the same bytes, without a time."""
    with (
        open(path, "wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        member = tarfile.TarInfo(name)
        member.size, member.mode = len(data), 0o644
        archive.addfile(member, io.BytesIO(data))


def _path_keys(names: Sequence[str], *reserved: str) -> dict[str, str]:
    """Return a key of `metrics.json` for each name, usable in grand-challenge's JSON paths, and not reserved.

    The platform splits paths at dots and strips spaces; keys may have all other characters. Keys of standard errors end
    in `_error`, so no two keys are equal.
    """
    keys: dict[str, str] = {}
    taken_keys = set(reserved)
    for name in names:
        key = name.strip().replace(".", "_")
        while {key, f"{key}_error"} & taken_keys:
            key += "_"
        taken_keys |= {key, f"{key}_error"}
        keys[name] = key
    return keys


def _settings(
    config: dict[str, Any], configured: dict[str, Any], splits: list[PhaseSplit], keys: dict[str, Any]
) -> dict[str, Any]:
    """Return the values of a phase's form under the form's own names; the ranking label comes first."""
    boards = {split.codename: split for split in splits_of(config, configured)}
    columns = []
    for split in splits:
        board, names = boards[split.codename], keys[split.codename]
        for label in sorted(split.metrics, key=lambda label: label != board.schema["default_order_by"]):
            path = f"{names['key']}.{names['labels'][label]}"
            title = label if len(splits) == 1 else f"{split.codename} {label}"
            order = "desc" if board.is_descending(label) else "asc"
            columns.append({"title": title, "path": path, "error_path": f"{path}_error", "order": order})
    ranking, *more = columns
    if len(ranking["error_path"]) > _LONGEST_PATH:
        fault = (
            f"the JSON path {ranking['path']} is too long for grand-challenge, which allows {_LONGEST_PATH} characters"
        )
        raise HostError(f"{configured['codename']}: {fault}; shorten the split's codename or the label")
    return {
        "score_title": ranking["title"][:_LONGEST_TITLE],
        "score_jsonpath": ranking["path"],
        "score_error_jsonpath": ranking["error_path"],
        "score_default_sort": ranking["order"],
        "extra_results_columns": more,
        **dict.fromkeys(_PUBLISHING, is_published(configured)),
    }


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()
