"""A family's texts in the documentation's list of benchmarks, beside its rows.

A family's mirror defines `ENTRY` in its `benchmarks.py`. `docs/site/tables.py` writes the list, and `segjudge
benchmarks` links a protocol's page. Texts are Markdown, with links relative to `docs/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["BenchmarkEntry", "FamilyEntry", "MemoryForm"]


class BenchmarkEntry(NamedTuple):
    """A benchmark, or several with the same file format."""

    #: The name or names of the benchmark.
    title: str
    #: Its protocols.
    protocols: tuple[str, ...]
    #: The evaluator with equal numbers, and the protocols that equal it, unless all do.
    evaluator: str
    #: Its page in `docs/benchmarks/`, with an anchor if needed; "" for none.
    page: str
    #: The published truth for `--truth` and `--root`.
    truth: str
    #: The files of a submission.
    submission: str


class MemoryForm(NamedTuple):
    """The arguments of `score_arrays` and `FrameAccumulator` for one kind of masks."""

    kind: str
    whole: str
    update: str


class FamilyEntry(NamedTuple):
    """A family's section in the list of benchmarks."""

    #: Its heading.
    title: str
    benchmarks: tuple[BenchmarkEntry, ...]
    #: Further columns of the protocols, and their cells by protocol.
    columns: tuple[str, ...] = ()
    cells: Mapping[str, tuple[str, ...]] = {}
    #: A list below the table of protocols.
    notes: str = ""
    memory: tuple[MemoryForm, ...] = ()
    #: A list of the formats of masks in memory.
    arrays: str = ""
