"""Pictures, truths and results as files, reproducibly."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image

from segjudge.evaluation_script.files.packed import EPOCH
from segjudge.families.truths import TruthSource, pack

#: The split of every phase of photographs.
SPLIT = "dev"
_QUALITY = 66


def pack_truth(path: Path, layout: str, published: Mapping[str, bytes]) -> None:
    """Write the annotation file of a truth published as these files."""
    path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        for name, data in published.items():
            replace(Path(folder, name), data)
        pack(TruthSource(folder, layout), str(path), SPLIT)


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return a zip of these files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), data)
    return out.getvalue()


def compressed(document: object) -> bytes:
    """Return JSON, gzipped."""
    return gzip.compress(json.dumps(document, separators=(",", ":")).encode(), 9, mtime=0)


def encode_picture(picture: Any) -> bytes:
    """Return a picture as a JPEG."""
    out = io.BytesIO()
    Image.fromarray(picture).save(out, "JPEG", quality=_QUALITY, optimize=True, progressive=True)
    return out.getvalue()


def replace(path: Path, data: bytes) -> None:
    """Write a file, creating its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
