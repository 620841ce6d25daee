"""Score on this machine: the scorers of `evaluation_script`, on any truth."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from segjudge.datasets import places
from segjudge.datasets.packing import ALIASES
from segjudge.evaluation_script import dataset_reader, instance_truth, instances, packed_file, sequence_truth
from segjudge.evaluation_script.answer import InstanceReport, Report
from segjudge.evaluation_script.archive_limits import ArchiveLimits
from segjudge.evaluation_script.errors import Problem, SubmissionError
from segjudge.evaluation_script.instance_protocols import INSTANCE_PROTOCOLS, PER_CATEGORY, PER_IMAGE, InstanceProtocol
from segjudge.evaluation_script.main import open_truth, phase_named, score_sequences, score_split
from segjudge.evaluation_script.sequence_protocols import SEQUENCE_PROTOCOLS

_COUNTED = {PER_IMAGE: "image", PER_CATEGORY: "image and category"}

Progress = Callable[[str, int, int], None]

#: A participant's own machine has more room than EvalAI's worker, and links in a folder are the participant's own.
LOCAL_LIMITS = ArchiveLimits(
    members=5_000_000, total_bytes=1 << 40, memory_bytes=1 << 32, json_bytes=1 << 31, links=True
)


class UsageError(Exception):
    """The command was called in a way that makes no sense."""


def reports_of_phase(root: str, args: argparse.Namespace, progress: Progress) -> list[Report]:
    """Score as a phase of this bundle does, limits included."""
    try:
        phase = phase_named(args.phase)
    except SubmissionError as error:
        raise UsageError(str(error)) from None
    phase = replace(phase, strict=args.strict or phase.strict, limits=replace(phase.limits, links=True))
    opened = open_truth(args.annotations or os.path.join(root, phase.annotations))
    parts = {name: _part(split, args.sequences) for name, split in opened.items()}
    wanted = [shown for shown in phase.splits if args.split in (None, shown.codename)]
    if not wanted:
        raise UsageError(
            f"{args.phase} has no split {args.split!r}, only {', '.join(one.codename for one in phase.splits)}"
        )
    return [score_split(phase, parts, shown, args.results, progress) for shown in wanted]


def reports_of_truth(args: argparse.Namespace, progress: Progress) -> tuple[list[Report], list[str]]:
    """Score against a packed file or a dataset; and what is odd about the truth."""
    if os.path.isfile(args.results) and packed_file.track_of(args.results):
        found = "is an annotation file that `pack` made, not results"
        raise SubmissionError.of(Problem(args.results, found, "Name the results first, and this file with --truth"))
    if args.protocol in INSTANCE_PROTOCOLS:
        return _instance_reports(args, progress)
    opened = _opened(args)
    wanted = _wanted(args, list(opened.splits))
    protocol = SEQUENCE_PROTOCOLS[args.protocol]
    notes = list(opened.notes)
    reports: list[Report] = []
    for name in wanted:
        whole = opened.splits[name]
        if protocol.by_class and not whole.unseen_known:
            notes.append(f"{name}: nothing says which classes are unseen (--unseen FILE); all count as seen")
        named = (name, _sequences_part(whole, args.sequences))
        reports.append(
            score_sequences(
                args.results, named, opened.splits, protocol, LOCAL_LIMITS, strict=args.strict, progress=progress
            )
        )
    return reports, notes


def _changed(protocol: InstanceProtocol, args: argparse.Namespace) -> InstanceProtocol:
    """The protocol with the rules that were asked for, which its line then tells."""
    cap = args.cap or protocol.cap
    quirk = protocol.id_zero_quirk if args.id_zero_quirk is None else args.id_zero_quirk == "on"
    if (cap, quirk) == (protocol.cap, protocol.id_zero_quirk):
        return protocol
    lost = "cannot be matched" if quirk else "is as any other"
    about = f"changed: up to {protocol.detections[-1]} for each {_COUNTED[cap]}; the annotation with id 0 {lost}."
    return replace(protocol, cap=cap, id_zero_quirk=quirk, about=about)


def _instance_reports(args: argparse.Namespace, progress: Progress) -> tuple[list[Report], list[str]]:
    protocol = _changed(INSTANCE_PROTOCOLS[args.protocol], args)
    opened, notes = open_instances(args.truth, args.categories, args.subset or "val", progress)
    reports: list[Report] = []
    for name in _wanted(args, list(opened)):
        notes += [f"{name}: {note}" for note in opened[name].notes]
        progress(name, 0, 1)
        score = instances.score(
            args.results, opened[name], protocol, LOCAL_LIMITS, strict=args.strict, jobs=args.jobs or 1
        )
        progress(name, 1, 1)
        reports.append(InstanceReport(name, protocol, score))
    return reports, notes


def open_instances(
    path: str, categories: str | None, split: str, progress: Progress
) -> tuple[dict[str, instance_truth.InstanceTruth], list[str]]:
    """The truth of instances by split: a document, a packed file, or Places-style PNGs; and what is odd about it."""
    if not os.path.isdir(path):
        if categories:
            raise UsageError(f"--categories has no meaning for {path}, which is not a folder of PNGs")
        return instance_truth.read(path, split), []
    if not categories:
        raise UsageError(
            f"{path}: is a folder. The truth of instances is COCO's JSON, a packed file, or with --categories FILE a "
            "folder of Places-style PNGs"
        )
    document, odd = places.convert(path, categories, progress)
    return {split: instance_truth.read_document(json.dumps(document).encode(), path)}, odd


def _wanted(args: argparse.Namespace, splits: list[str]) -> list[str]:
    wanted = args.split or args.subset  # in a packed file a subset is a split
    if wanted and wanted not in splits:
        raise UsageError(f"{args.truth} has no split {wanted!r}, only {', '.join(splits)}")
    return [wanted] if wanted else splits


def _opened(args: argparse.Namespace) -> sequence_truth.Truth:
    if os.path.isfile(args.truth) and packed_file.track_of(args.truth):
        for name in ("layout", "unseen"):
            if getattr(args, name):
                raise UsageError(f"--{name} has no meaning for {args.truth}, which is a packed file")
        return sequence_truth.read(args.truth)
    name = ALIASES.get(args.layout or args.protocol, args.layout or args.protocol)
    layout = dataset_reader.LAYOUTS.get(name, dataset_reader.GENERIC)
    return dataset_reader.read(args.truth, layout, args.subset, unseen=args.unseen or "")


def _part(split: sequence_truth.Split | instance_truth.InstanceTruth, names: str | None) -> Any:
    return split if isinstance(split, instance_truth.InstanceTruth) else _sequences_part(split, names)


def _sequences_part(split: sequence_truth.Split, names: str | None) -> sequence_truth.Split:
    """Some of a split's sequences."""
    if not names:
        return split
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    held = {one.name: one for one in split.sequences}
    unknown = [name for name in wanted if name not in held]
    if unknown:
        raise UsageError(f"the truth has no sequence {', '.join(unknown)}")
    return replace(split, sequences=[held[name] for name in wanted])
