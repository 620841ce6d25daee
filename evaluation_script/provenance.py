"""What scores come from: the version, the protocol of each split, what counted, and digests of truth and submission."""

from __future__ import annotations

import hashlib
import os
from typing import Any, Dict, Mapping

from . import kernel
from .packed_file import table_of
from .phase import PROTOCOLS, TrackProtocol
from .version import VERSION

#: Bytes read at a time.
_CHUNK = 1 << 20


def digest_of(path: str) -> str:
    """Return what tells files or folders apart.

    Of a zip its table of contents counts (names, sizes, checksums, dates), of a folder names and sizes, of any
    other file its bytes: that takes little time beside scoring.
    """
    digest = hashlib.sha256()
    if os.path.isdir(path):
        for folder, folders, names in os.walk(path, followlinks=True):
            folders.sort()
            for name in sorted(names):
                file = os.path.join(folder, name)
                size = os.path.getsize(file) if os.path.exists(file) else -1
                digest.update(f"{os.path.relpath(file, path)}\0{size}\n".encode("utf-8", "surrogateescape"))
        return f"folder:{digest.hexdigest()}"
    table = table_of(path)
    if table:
        return f"zip:{hashlib.sha256(table).hexdigest()}"
    with open(path, "rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return f"file:{digest.hexdigest()}"


def counting() -> str:
    """Return what counts pixels in this process; scores do not depend on it."""
    return "numpy" if kernel.library() is None else "kernel"


def provenance(protocols: Mapping[str, TrackProtocol], truth: str, submission: str, counted_by: str) -> Dict[str, Any]:
    """Return what scores come from: the protocol of each split, two digests, and what counted."""
    return {
        "version": VERSION,
        "protocols": {
            split: {
                "name": protocol.name,
                "revision": protocol.revision,
                "changed": protocol != PROTOCOLS.get(protocol.name),
            }
            for split, protocol in protocols.items()
        },
        "truth": truth,
        "submission": submission,
        "counted_by": counted_by,
    }
