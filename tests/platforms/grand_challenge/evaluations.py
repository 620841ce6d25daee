"""The files that grand-challenge mounts into an evaluation's container, according to its public source code.

`inputs.json` lies beside every submission.  A zip is unpacked at the top, without litter and without the folders that
all of its files share.  An algorithm's outputs lie in `JOB/output`, and `predictions.json` lists the jobs.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

#: Files of operating systems, which the platform does not unpack.
_LITTER = ("__MACOSX", ".DS_Store", "desktop.ini")


def upload(folder: Path, data: bytes, others: Mapping[str, bytes] | None = None) -> None:
    """Mount an uploaded file; `others` are further inputs of the phase, by the relative paths of their sockets."""
    if data.startswith(b"PK"):
        slug = "predictions-zip-file"
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpack(archive, folder)
    else:
        slug = "predictions-csv-file"  # what looks like plain text
        (folder / "predictions.csv").write_bytes(data)
    place = slug.removesuffix("-file").replace("-", ".")
    others = others or {}
    values = [_value(slug, place), *(_value(f"socket-{number}", another) for number, another in enumerate(others))]
    for second, content in others.items():
        _write(folder / second, content)
    _write(folder / "inputs.json", encode(values))


def unpack(archive: zipfile.ZipFile, folder: Path) -> None:
    names = [name for name in archive.namelist() if not name.endswith("/") and not any(map(name.count, _LITTER))]
    shared = os.path.dirname(names[0]) if len(names) == 1 else os.path.commonpath(names) if names else ""
    for name in names:
        _write(folder / name[len(shared) + 1 if shared else 0 :], archive.read(name))


def run_jobs(folder: Path, outputs: Mapping[str, Mapping[str, bytes]], kind: str = "Anything") -> None:
    """Mount the output of jobs: by job, the contents by the relative paths of their sockets."""
    jobs = []
    for job, files in outputs.items():
        for place, content in files.items():
            if place.endswith(".zip"):
                with zipfile.ZipFile(io.BytesIO(content)) as archive:
                    unpack(archive, (folder / job / "output" / place).parent)
            else:
                _write(folder / job / "output" / place, content)
        inputs = [_value("video", "video.mp4", "MP4 file", "File")]
        listed = [_value(place.replace("/", "-"), place, kind) for place in files]
        jobs.append({"pk": job, "url": "", "inputs": inputs, "outputs": listed, "status": "Succeeded"})
    _write(folder / "predictions.json", encode(jobs))
    values = [value for job in jobs for value in job["outputs"]]
    _write(folder / "inputs.json", encode([_value("predictions-json-file", "predictions.json"), *values]))


def ranked_value(metrics: Any, path: str) -> Any:
    """Return the platform's reading of a JSON path; "" if it reads nothing, and ranks nothing."""
    try:
        for key in path.strip().split("."):
            metrics = metrics[key]
    except (KeyError, TypeError):
        return ""
    return metrics


def encode(document: object) -> bytes:
    return json.dumps(document).encode()


def _value(slug: str, place: str, kind: str = "Anything", super_kind: str = "Value") -> dict[str, Any]:
    socket = {"title": slug, "slug": slug, "kind": kind, "super_kind": super_kind, "relative_path": place, "pk": 1}
    return {"interface": socket, "value": None, "file": None, "image": None, "pk": 7}


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def split_document(document: Any, count: int) -> Sequence[Any]:
    """Share the records of a JSON document among jobs, which may answer parts of sequences."""
    if isinstance(document, list):
        size = -(-len(document) // count)
        return [document[start * size : (start + 1) * size] for start in range(count)]
    parts: list[Any] = [{} for _ in range(count)]
    for number, (key, value) in enumerate(document.items()):
        if isinstance(value, dict):
            for position, (name, inner) in enumerate(value.items()):
                parts[(number + position) % count].setdefault(key, {})[name] = inner
        else:
            for part, share in zip(parts, split_document(value, count), strict=True):
                part[key] = share
    return parts
