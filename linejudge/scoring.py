"""Score on this machine: the scorers of `evaluation_script`, on any truth."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import replace

from evaluation_script import published, sequences, truth
from evaluation_script.answer import Report
from evaluation_script.errors import HostError
from evaluation_script.main import open_truth, phase_named
from evaluation_script.members import Limits
from evaluation_script.sequence_protocols import PROTOCOLS
from linejudge.datasets.pack import ALIASES

Progress = Callable[[str, int, int], None]

#: A participant's own machine has more room than EvalAI's worker.
LOCAL_LIMITS = Limits(members=5_000_000, total_bytes=1 << 40, memory_bytes=1 << 32, json_bytes=1 << 30)


def reports_of_phase(root: str, args: argparse.Namespace, progress: Progress) -> list[Report]:
    """Score as a phase of this bundle does, limits included."""
    phase = phase_named(args.phase)
    opened = open_truth(args.annotations or os.path.join(root, phase.annotations))
    known = {one.name for split in opened.splits.values() for one in split.sequences}
    reports = []
    for shown in phase.splits:
        if args.split and shown.codename != args.split:
            continue
        split = _part(opened.splits[shown.codename], args.sequences)
        scores, warnings = sequences.score(
            args.results,
            split,
            PROTOCOLS[shown.protocol],
            phase.limits,
            strict=args.strict or phase.strict,
            elsewhere=known - {one.name for one in split.sequences},
            progress=progress,
        )
        reports.append(Report(shown.codename, shown.protocol, scores, warnings))
    if not reports:
        raise HostError(f"{args.phase} has no split {args.split!r}, only {[one.codename for one in phase.splits]}")
    return reports


def reports_of_truth(args: argparse.Namespace, progress: Progress) -> tuple[list[Report], list[str]]:
    """Score against a packed file or a dataset; and what is odd about the truth."""
    opened = _opened(args)
    wanted = [args.split] if args.split else list(opened.splits)
    if not set(wanted) <= set(opened.splits):
        raise HostError(f"{args.truth} has no split {args.split!r}, only {list(opened.splits)}")
    protocol = PROTOCOLS[args.protocol]
    notes = list(opened.notes)
    reports = []
    known = {one.name for split in opened.splits.values() for one in split.sequences}
    for name in wanted:
        whole = opened.splits[name]
        if protocol.by_class and not whole.tells_unseen:
            notes.append(f"{name}: nothing says which classes are unseen (--unseen FILE); all count as seen")
        split = _part(whole, args.sequences)
        scores, warnings = sequences.score(
            args.results,
            split,
            protocol,
            LOCAL_LIMITS,
            strict=args.strict,
            elsewhere=known - {one.name for one in split.sequences},
            progress=progress,
        )
        reports.append(Report(name, args.protocol, scores, warnings))
    return reports, notes


def _opened(args: argparse.Namespace) -> truth.Truth:
    if os.path.isfile(args.truth) and truth.is_packed(args.truth):
        return truth.read(args.truth)
    name = ALIASES.get(args.layout or args.protocol, args.layout or args.protocol)
    layout = published.LAYOUTS.get(name, published.GENERIC)
    return published.read(args.truth, layout, args.subset, unseen=args.unseen or "")


def _part(split: truth.Split, names: str | None) -> truth.Split:
    """Some of a split's sequences."""
    if not names:
        return split
    wanted = names.split(",")
    held = {one.name: one for one in split.sequences}
    unknown = [name for name in wanted if name not in held]
    if unknown:
        raise HostError(f"the truth has no sequence {', '.join(unknown)}")
    return replace(split, sequences=[held[name] for name in wanted])
