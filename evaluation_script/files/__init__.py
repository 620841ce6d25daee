"""Submission files: read in place, never unpacked, within limits checked before anything inflates.

The contract: the limits and checks of what may be sent (`limits`), and what is wrong with a file, in sentences for the
participant (`problems`), are imported from here; what opens files is imported by its module, since few commands do:
`archive` (zip, tar, gzip, JSON or folder → names and bytes), `inflate` and `packed` (the packed annotation file).
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
