"""A phase of an archive: the rules in its bundle, its hidden splits, and its submissions with their numbers."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from segjudge.evaluation_script.files.problems import HostError, name_hint, name_list, near_hint, printable
from segjudge.evaluation_script.scoring.phase import Phase
from segjudge.platforms.evalai.bundle.bundle_source import BundleSource, find_bundle
from segjudge.platforms.evalai.bundle.secrecy import find_unpublished
from segjudge.platforms.rules.problems import mappings_in
from segjudge.report.sentences import HIDDEN
from segjudge.system.errors import UsageError

from .event import BOARD, BUNDLE, Event, EventSubmission
from .rescored import BoardOrder, Scale
from .rescoring import Label, Number, SubmissionEntry

#: The status of a scored submission on all platforms, in lower case.
_FINISHED = "finished"


class EventSource:
    """A phase of an archive, whose submissions are scored again."""

    def __init__(
        self, event: Event, phase: str, folder: str, renames: Mapping[str, str], *, is_percent: bool, as_host: bool
    ) -> None:
        """Open a phase ("": the only one), and copy the bundle into a folder.

        `renames` has metrics by labels of the archive; `as_host` includes hidden splits and private submissions.
        """
        self.event, self.codename = event, _choose_phase(event, phase)
        self._renames, self._is_percent, self._as_host = renames, is_percent, as_host
        self._boards = {board.split: board for board in event.boards if board.phase == self.codename}
        self._hidden = event.find_hidden(self.codename)
        #: Its row of `phases.py`, None if other scripts scored; and its annotation file in the bundle, "" without one.
        self.rules: Phase | None = None
        self.annotations = ""
        event.copy_folder(BUNDLE, folder)
        with suppress(UsageError):  # a dump may lack the bundle
            self._read_bundle(find_bundle(folder))

    def _read_bundle(self, bundle: BundleSource) -> None:
        config = bundle.config()
        with suppress(HostError):  # it has scripts of its own
            self.rules = next((phase for phase in bundle.phases() if phase.codename == self.codename), None)
        self._hidden |= find_unpublished(config, self.codename, self.rules)  # which also knows `phases.py`
        rows = [row for row in mappings_in(config, "challenge_phases") if str(row.get("codename")) == self.codename]
        names = [row.get("test_annotation_file") for row in rows] + [self.rules.annotations if self.rules else None]
        path = os.path.join(bundle.root, str(next(filter(None, names), "")))
        self.annotations = path if os.path.isfile(path) else ""

    @property
    def title(self) -> str:
        return f"{self.event.info.title}: {self.codename}"

    @property
    def scale(self) -> Scale:
        """Return the scale of the platform, which shows 0 for a metric without a value."""
        is_percent = self._is_percent or bool(self.rules and self.rules.percent)
        return Scale(100.0 if is_percent else 1.0, 0.0)

    @property
    def notes(self) -> list[str]:
        """Return the remark on each hidden split that is scored."""
        return [f"{split} {HIDDEN}" for split in sorted(self._hidden)] if self._as_host else []

    def find_hidden(self, truths: Collection[str]) -> frozenset[str]:
        """Return the truth's splits that are not scored: hidden ones, and ones that the archive does not know."""
        matched = self._match_splits(truths)
        shown = {truth for name, truth in matched.items() if self._as_host or name not in self._hidden}
        if not shown:
            fault = f"{self.event.path}: the platform hides the scores of {name_list([*matched])}"
            raise UsageError(f"{fault}. If you release them, add --as-host")
        return frozenset(truths) - shown

    def list_entries(self, metrics: Mapping[str, Sequence[str]]) -> tuple[list[SubmissionEntry], list[str]]:
        """Return the submissions that visitors may see, or all, with their numbers of these metrics, and notes."""
        everything = [each for each in self.event.submissions.values() if each.phase == self.codename]
        chosen = [each for each in everything if self._as_host or each.is_shown]
        labels, notes = dict[tuple[str, str], Label](), list[str]()
        for split, truth in self._match_splits(metrics).items():
            names = self._boards[split].labels if split in self._boards else list(metrics[truth])
            metric_names = {name: self._renames.get(name, name) for name in names}
            labels |= {
                (split, name): Label(truth, metric_names[name])
                for name in names
                if metric_names[name] in metrics[truth]
            }
            if unknown := [name for name in names if metric_names[name] not in metrics[truth]]:
                hint = f"{near_hint(metric_names[unknown[0]], metrics[truth])}; --rename LABEL=METRIC compares them"
                notes.append(f"{split}: {name_list(unknown)} of the leaderboard are not metrics of the protocol{hint}")
        if omitted := len(everything) - len(chosen):
            notes.append(f"{omitted} of {len(everything)} submissions are private and omitted; --as-host includes them")
        return [self._make_entry(each, _list_numbers(each, labels)) for each in chosen], notes

    def find_order(self, truth: str) -> BoardOrder | None:
        """Return the order of a split's leaderboard; None if the archive has none."""
        names = {matched: name for name, matched in self._match_splits([truth]).items()}
        board = self._boards.get(names.get(truth, ""))
        if board is None:
            return None
        return BoardOrder(self._renames.get(board.order, board.order), board.order in board.ascending)

    def explain_difference(self, split: str, protocol: str) -> str:
        """Return why a protocol may give other numbers in a split than the archive has."""
        names = {each.codename: each.protocol for each in self.rules.splits} if self.rules else {}
        if names.get(split, protocol) != protocol:
            return f"{protocol} scores now, {names[split]} did then"
        if self.rules:
            return "the protocol is the archive's: another version, truth or file may have been scored then"
        return f"{protocol} scores now, the challenge's own script did then"

    def _match_splits(self, truths: Collection[str]) -> dict[str, str]:
        """Return the truth's name of each split that it has; if both have one split, names do not matter."""
        names = list(
            dict.fromkeys([*self._boards, *(each.codename for each in (self.rules.splits if self.rules else ()))])
        )
        matched = {name: name for name in names if name in truths}
        if not matched and len(names) == len(truths) == 1:
            matched = dict(zip(names, truths, strict=True))
        if not matched:
            fault = f"the truth has {name_list([*truths])}, the phase {self.codename} {name_list(names)}"
            raise UsageError(f"no split of the truth is one of the archive: {fault}. Name another truth with --truth")
        return matched

    def _make_entry(self, submission: EventSubmission, numbers: Mapping[Label, Number]) -> SubmissionEntry:
        event, file = self.event, submission.file or ""
        team = event.teams.get(submission.team) if submission.team is not None else None
        archive, is_zip = os.path.abspath(event.path), os.path.isfile(event.path)
        reasons = [row.reason for row in event.missing if row.submission == submission.id]
        is_finished = submission.status.lower() == _FINISHED
        absence = reasons[0] if reasons else "the archive has no file"
        absence += "" if is_finished else f"; it was {submission.status} then"
        may_rank = submission.is_baseline or team is None or not team.is_host
        return SubmissionEntry(
            name=str(submission.id),
            path="" if not file else archive if is_zip else os.path.join(archive, file),
            member=file if is_zip else "",
            digest=event.digests.get(file, ""),
            absence="" if file else absence,
            team=team.name if team else "",
            method=submission.method.get("name", ""),
            group="" if team is None or submission.is_baseline else f"team {team.id}",
            numbers=numbers,
            is_ranked=is_finished and not submission.is_ignored and may_rank,
            was_ranked=submission.trust == BOARD,
        )


def _choose_phase(event: Event, codename: str) -> str:
    """Return the phase of this name, or the only one; raises UsageError without it."""
    codenames = list(dict.fromkeys(each.phase for each in event.submissions.values()))
    if codename in codenames:
        return codename
    if codename or not codenames:
        fault = f" of the phase {printable(codename)!r}{name_hint(codename, codenames)}" if codename else ""
        raise UsageError(f"{event.path}: has no submissions{fault}")
    if len(codenames) > 1:
        fault = f"has submissions of the phases {name_list(codenames)}; name one with --phase"
        raise UsageError(f"{event.path}: {fault}")
    return codenames[0]


def _list_numbers(submission: EventSubmission, labels: Mapping[tuple[str, str], Label]) -> dict[Label, Number]:
    """Return the compared numbers of a submission; Segjudge's files of results round them to three decimals."""
    return {
        labels[split, label]: Number(value, None if submission.trust == BOARD or round(value, 3) != value else 3)
        for split, scores in submission.scores.items()
        for label, value in scores.items()
        if (split, label) in labels
    }
