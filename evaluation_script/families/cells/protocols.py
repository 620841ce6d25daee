"""The benchmarks of cells, one row each."""

from __future__ import annotations

from typing import ClassVar, Dict, Tuple

from ..base.family import ScriptedProtocol

#: The layout of published truths.
LAYOUT = "ctc"
#: The tolerances of divisions, in frames.
TOLERANCES = (0, 1, 2, 3)


def _name_tolerant(metric: str) -> Tuple[str, ...]:
    """Return the names of a metric that depends on how late a division may be."""
    return tuple(f"{metric}({frames})" for frames in TOLERANCES)


class CellProtocol(ScriptedProtocol):
    """The rules of one benchmark.

    In the script, TF stops at the first track that one label follows completely, BC is 0 without divisions, and SEG
    counts a frame once per slice with outlines.
    """

    family: ClassVar[str] = "cells"
    form: ClassVar[str] = LAYOUT

    @property
    def metrics(self) -> Tuple[str, ...]:
        fractions = ("TF",) if self.as_script else ("TF", "TF-all")
        counted = (*fractions, *_name_tolerant("BC"), "CCA", *_name_tolerant("BIO"), *_name_tolerant("OP_CLB"))
        return ("OP_CTB", "OP_CSB", "SEG", "DET", "TRA", "LNK", "CT", *counted, "HOTA", "CHOTA")


_ROWS = (
    CellProtocol(
        "ctc", "OP_CTB, SEG, TRA, BIO and CHOTA. Each is the mean over the sequences for which it is defined."
    ),
    CellProtocol(
        "ctc-official",
        "As computed by py-ctcmetrics: TF stops early, BC is 0 without divisions, SEG counts a frame once per slice.",
        as_script=True,
    ),
)

CELL_PROTOCOLS: Dict[str, CellProtocol] = {protocol.name: protocol for protocol in _ROWS}
