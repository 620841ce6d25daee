"""The sections of a page, made from the stored losses of mask sequences."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.families.sequences.losses import (
    KINDS,
    SCALE,
    SHARED,
    STATES,
    TRACKED,
    ObjectLosses,
    SequenceLosses,
)
from segjudge.evaluation_script.families.sequences.metrics import ObjectScore
from segjudge.evaluation_script.masks.stream import MOST_LABELS
from segjudge.report import page
from segjudge.report.stored import as_list, as_mapping, as_number, as_text, as_whole_numbers, refuse

from .report import MethodLosses, make_losses, make_player, make_tables, write_verdict

#: The maximum bytes of a stream's first line of JSON, and the maximum side of a frame.
_MOST_HEADER, _MOST_SIDE = 32 << 20, 1 << 12
_KINDS = {number: kind for kind, number in STATES.items()}


def make_sections(stored: Mapping[str, Any], report: Report) -> list[page.Section]:
    metric, entries = as_text(stored.get("metric")), as_list(stored.get("sequences"))
    streams: dict[str, bytes] = {}
    sequences = [_read_sequence(as_mapping(entry), report.split, metric, streams) for entry in entries]
    method = MethodLosses("", sequences, _read_shares(stored.get("shares")))
    losses = make_losses(method, sequences, metric, exact=bool(stored.get("exact")))
    if not sequences:
        return [losses, page.make_tables(report)]
    _check_rows(sequences, report)
    bare = sum(not entry.get("masks") for entry in entries)
    about = {"of": "", "bare": bare, "pictures": 0, "wanted": False, "smaller": bool(stored.get("smaller"))}
    verdict = write_verdict(method, sequences, losses, report)
    return [verdict, losses, make_player([method], sequences, about, streams), make_tables(sequences, report, {})]


def _check_rows(sequences: list[SequenceLosses], report: Report) -> None:
    """Raise UsageError for sequences and objects that the tables lack."""
    rows = report.rows()
    means = {row.get("sequence") for row in rows.get("sequences", [])}
    objects = {(row.get("sequence"), row.get("object")) for row in rows.get("objects", [])}
    if not {sequence.name for sequence in sequences} <= means:
        refuse("has losses of sequences without scores")
    if not {(sequence.name, losses.score.name) for sequence in sequences for losses in sequence.objects} <= objects:
        refuse("has losses of objects without scores")


def _read_sequence(entry: Mapping[str, Any], split: str, metric: str, streams: dict[str, bytes]) -> SequenceLosses:
    """Read the losses of a sequence, and add its streams."""
    name = as_text(entry.get("name"))
    stream = f"{split}/{name}"
    packed = [_decode_stream(as_text(stream)) for stream in as_list(entry.get("streams"))]
    if len(packed) != 2 or not streams.keys().isdisjoint((stream, f"{stream}/0")):
        refuse(f"does not have one stream of the truth and one of the prediction for {name}")
    streams[stream], streams[f"{stream}/0"] = packed
    truth, predicted = map(_read_header, packed)
    frames = [as_text(frame) for frame in as_list(truth.get("frames"))]
    objects = [as_mapping(value) for value in as_list(entry.get("objects"))]
    numbers = [as_mapping(value) for value in as_list(predicted.get("objects"))]
    if [facts.get("name") for facts in objects] != [facts.get("name") for facts in numbers]:
        refuse(f"has objects of {name} that differ from the objects of its numbers")
    losses = [
        _read_object(name, frames, facts, object_numbers, metric)
        for facts, object_numbers in zip(objects, numbers, strict=True)
    ]
    categories = {as_text(facts.get("name")): as_text(facts.get("category")) for facts in objects}
    return SequenceLosses(name, frames, losses, categories, 0, stream)


def _decode_stream(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return refuse("has a stream that is not base64")


def _read_header(stream: bytes) -> Mapping[str, Any]:
    try:
        line, newline, _ = zlib.decompressobj().decompress(stream, _MOST_HEADER).partition(b"\n")
        about = as_mapping(json.loads(line) if newline else None)
    except (zlib.error, ValueError, RecursionError):
        refuse("has a stream that cannot be read")
    as_whole_numbers(about.get("size"), 1, _MOST_SIDE)
    as_whole_numbers([about.get("runs")], 0, _MOST_HEADER)
    for group in as_list(about.get("groups")):
        as_whole_numbers(group, 0, 2 * MOST_LABELS)
    return about


def _read_object(
    sequence: str, frames: list[str], entry: Mapping[str, Any], numbers: Mapping[str, Any], metric: str
) -> ObjectLosses:
    frame = as_whole_numbers(numbers.get("at"), 0, len(frames) - 1)
    j, f = (np.array(as_whole_numbers(numbers.get(key), 0, SCALE)) / SCALE for key in ("j", "f"))
    states = as_whole_numbers(numbers.get("kinds"), min(_KINDS), max(_KINDS))
    kinds = [_KINDS[state] for state in states]
    tracked_shares = np.array(as_whole_numbers(numbers.get("parts"), 0, SCALE)) / SCALE
    if {len(frame), len(j), len(f)} != {len(kinds)} or len(tracked_shares) != kinds.count(TRACKED) * len(SHARED):
        refuse(f"does not have one number per frame for an object of {sequence}")
    score = ObjectScore(
        sequence, as_text(entry.get("name")), {}, [frames[index] for index in frame], j, f, bool(entry.get("unseen"))
    )
    parts = _share_losses(kinds, 1 - j if metric == "J" else 1 - (j + f) / 2, tracked_shares)
    area = as_number(entry.get("area"))
    return ObjectLosses(score, kinds, parts, _read_shares(entry.get("shares")), area, bool(entry.get("absent")))


def _share_losses(
    kinds: list[str], frame_losses: NDArray[np.float64], tracked_shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the loss of each frame by kind, from its total and the shares while tracked."""
    parts = np.zeros((len(kinds), len(KINDS)))
    parts[np.array([kind == TRACKED for kind in kinds], bool), -len(SHARED) :] = tracked_shares.reshape(-1, len(SHARED))
    for frame, kind in enumerate(kinds):
        if kind in KINDS:
            parts[frame, KINDS.index(kind)] = frame_losses[frame]
    return parts


def _read_shares(value: object) -> list[float]:
    shares = [as_number(share) for share in as_list(value)]
    return shares if len(shares) == len(KINDS) else refuse("does not have one loss per kind")
