"""Scoring the submissions of an archive or a folder again, and comparing their numbers with the published ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from segjudge.evaluation_script.families import FAMILIES
from segjudge.evaluation_script.families.base.family import FamilyProtocol, Progress, ignore_progress
from segjudge.families import prefers_smaller
from segjudge.report.sentences import HIDDEN
from segjudge.scoring.request import ScoreRequest, prepare
from segjudge.system.addresses import digest_of, resolve_address

from .event_source import EventSource
from .published import FolderSource
from .rescored import BoardOrder, RescoredBoard, RescoredEvent
from .rescoring import EntryOutcome, Rescoring, SubmissionEntry, choose_splits

if TYPE_CHECKING:
    from segjudge.scoring.sharing import DaskClient


def rescore(
    source: EventSource | FolderSource,
    request: ScoreRequest,
    folder: str,
    client: DaskClient | None = None,
    bars: tuple[Progress, Progress] = (ignore_progress, ignore_progress),
) -> RescoredEvent:
    """Score submissions by a request without results, and compare their scores with the published ones.

    The folder keeps each outcome; `bars` show the progress within submissions and over them.
    """
    prepared = prepare(request, bars[0])
    hidden = source.find_hidden(prepared.scorers)
    shown = choose_splits(prepared, hidden)
    protocols = {split: scorer.rules.protocol for split, scorer in shown.scorers.items()}
    metrics = {split: _list_metrics(protocol) for split, protocol in protocols.items()}
    entries, notes = source.list_entries(metrics)
    outcomes = Rescoring(request, prepared, hidden, folder).score(entries, client, bars)
    scored = [(entry, outcomes[entry.name]) for entry in entries]
    boards = [_make_board(source, split, protocol, metrics[split], scored) for split, protocol in protocols.items()]
    notes += [f"{split} is hidden from visitors, and omitted" for split in sorted(hidden)]
    remark = "is hidden from participants: publish its scores only if you release them"
    remarks = [note for note in [*source.notes, *shown.notes] if note.removesuffix(f" {HIDDEN}") not in hidden]
    notes += dict.fromkeys(note.replace(HIDDEN, remark) for note in remarks)
    provenance = replace(shown, digests=(digest_of(resolve_address(shown.truth)), "-")).provenance()
    del provenance["submission"]
    return RescoredEvent(source.title, boards, provenance, notes)


def _make_board(
    source: EventSource | FolderSource,
    split: str,
    protocol: FamilyProtocol,
    metrics: list[str],
    scored: list[tuple[SubmissionEntry, EntryOutcome]],
) -> RescoredBoard:
    """Return the leaderboard of a split, with the published metrics, or with the protocol's if there are none."""
    published = {label.metric for entry, _ in scored for label in entry.numbers if label.split == split}
    metrics = [metric for metric in metrics if metric in published] or list(protocol.metrics)
    order = source.find_order(split)
    if order is None or order.metric not in metrics:
        order = BoardOrder(metrics[0], prefers_smaller(metrics[0], protocol.name))
    about = split, protocol.name, order, source.explain_difference(split, protocol.name)
    return RescoredBoard.compare(about, metrics, scored, source.scale)


def _list_metrics(protocol: FamilyProtocol) -> list[str]:
    """Return the metrics of a protocol, and those that its family adds."""
    family = FAMILIES.get(protocol.family)
    return list(dict.fromkeys([*protocol.metrics, *(family.own_metrics if family else ())]))
