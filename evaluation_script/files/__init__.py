"""Submission files: read in place, never unpacked, within limits checked before anything inflates.

The contract: `limits` (limits and checks of a submission) and `problems` (faults of files, in sentences for
participants) are imported from here. The modules that open files are imported by name, because few commands need them:
`archive` (zip, tar, gzip, JSON or folder → names and bytes), `inflate`, and `packed` (the packed annotation file).
"""

from .limits import (
    CHUNK_BYTES,
    HOST_LIMITS,
    INSTANCE_LIMITS,
    LETTER,
    UNIT_LIMITS,
    ArchiveLimits,
    Files,
    check_memory,
    kind_of,
    read_json,
    size_text,
    unique_keys,
)
from .problems import (
    Flaw,
    HostError,
    Problem,
    Problems,
    SubmissionError,
    TruthFlaw,
    ascii_text,
    inflect,
    name_hint,
    name_list,
    nearest,
    printable,
    quantity,
)

__all__ = [
    "CHUNK_BYTES",
    "HOST_LIMITS",
    "INSTANCE_LIMITS",
    "LETTER",
    "UNIT_LIMITS",
    "ArchiveLimits",
    "Files",
    "Flaw",
    "HostError",
    "Problem",
    "Problems",
    "SubmissionError",
    "TruthFlaw",
    "archive",
    "ascii_text",
    "check_memory",
    "inflate",
    "inflect",
    "kind_of",
    "limits",
    "name_hint",
    "name_list",
    "nearest",
    "packed",
    "printable",
    "problems",
    "quantity",
    "read_json",
    "size_text",
    "unique_keys",
]
