"""The provenance of scores: version, protocols, counted files, and digests of truth and submission."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any, Dict, FrozenSet, Iterator, Mapping, Tuple

from ..families import PROTOCOLS
from ..families.base.family import FamilyProtocol
from ..files.limits import ArchiveLimits
from ..files.packed import table_of
from . import VERSION

#: The number of bytes read at a time.
_CHUNK = 1 << 20


def digest_of(path: str) -> str:
    """Return a digest that identifies a file or folder.

    A zip is identified by its table of contents (names, sizes, checksums, dates), a folder by names and sizes, any
    other file by its bytes; this is fast compared with scoring.
    """
    import hashlib  # which loads OpenSSL

    if os.path.isdir(path):
        lines = "".join([f"{name}\0{size}\n" for name, size in list_sizes(path)])
        return f"folder:{hashlib.sha256(lines.encode('utf-8', 'surrogateescape')).hexdigest()}"
    table = table_of(path)
    if table:
        return f"zip:{hashlib.sha256(table).hexdigest()}"
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return f"file:{digest.hexdigest()}"


def list_sizes(root: str) -> Iterator[Tuple[str, int]]:
    """Yield the name and size of each file in a folder, following links except cycles."""
    nothing: FrozenSet[Tuple[int, int]] = frozenset()
    waiting = [("", nothing)]
    while waiting:
        inside, above = waiting.pop()
        path = os.path.join(root, inside)
        try:
            status = os.stat(path)
            with os.scandir(path) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            continue
        identity = (status.st_dev, status.st_ino)
        if identity in above:
            continue
        for entry in entries:
            name = f"{inside}/{entry.name}" if inside else entry.name
            if _is_folder(entry):
                waiting.append((name, above | {identity}))
            else:
                yield name, _measure_file(entry)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _measure_file(entry: os.DirEntry[str]) -> int:
    """Return the bytes of a file; -1 for a link that leads nowhere."""
    try:
        return entry.stat().st_size
    except OSError:
        return -1


def numbers_of(limits: ArchiveLimits) -> Dict[str, int]:
    """Return the numbers of limits, without their sentences."""
    return {name: value for name, value in asdict(limits).items() if isinstance(value, int)}


def provenance(
    protocols: Mapping[str, FamilyProtocol], truth: str, submission: str, counted_by: str, limits: Mapping[str, int]
) -> Dict[str, Any]:
    """Return the provenance of scores: protocols, two digests, counted files, and limits."""
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
        "limits": dict(limits),
    }
