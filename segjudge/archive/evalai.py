"""`segjudge leave evalai`: a challenge of an EvalAI server, with its host's token, as an archive.

Truths and script come first. Lists of submissions are read until two passes agree, since submissions arrive meanwhile:
the workers' list has the keys and the ignored submissions, the hosts' list their numbers and names. Nothing is written
to the platform.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from segjudge.evaluation_script.files import HostError, printable
from segjudge.platforms.evalai import routes
from segjudge.platforms.evalai.bundle import secrecy
from segjudge.platforms.evalai.bundle.bundle_source import CONFIG, SCRIPT_FOLDER
from segjudge.platforms.evalai.client import ApiError
from segjudge.platforms.evalai.rows import FAILED, FINISHED, is_descending, is_number, parse_key
from segjudge.system.files import file_name

from .collecting import Collector, ending_of_address, list_rows, name_of_address, read_result
from .evalai_bundle import PEOPLE_KEYS, ChallengeRows, list_differences, read_host_bundle, rebuild_config, unpack_script
from .event import (
    BOARD,
    BUNDLE,
    FILES,
    METHOD,
    RESULT,
    EventBoard,
    EventRow,
    EventSubmission,
    EventTeam,
    EventWriter,
    Exported,
    file_path,
)

#: The passes after which the export ends although the platform still changes.
_PASSES = 6
#: The rows of a split that EvalAI's leaderboards look at, the newest ones; and the rows of a page.
_BOARD_ROWS, _PAGE = 10_000, 1000
#: The bytes at the end of a submission's stderr in which the cause of its failure is looked for.
_END_BYTES = 1 << 16
_KEEPS = "keep_forever"
_WITHHELD = "people's addresses are exported only with --people; without this list the phase is open to everybody"
#: Scores by submission, split and label.
_Scores = dict[int, dict[str, dict[str, float]]]


def export_evalai(
    collector: Collector,
    writer: EventWriter,
    challenge: int,
    say: Callable[[str], None],
    *,
    people: bool = False,
    bundle: str = "",
) -> Exported:
    """Fetch a challenge into the folder of a collector and a writer; raises HostError if it cannot be read.

    `bundle` is the folder of the host's own bundle; "" to rebuild it.
    """
    try:
        return _Export(collector, writer, challenge, people=people).run(say, bundle)
    except ApiError as error:
        raise HostError(f"challenge {challenge} of {collector.client.host}: {error}") from None


class _Export:
    def __init__(self, collector: Collector, writer: EventWriter, challenge: int, *, people: bool) -> None:
        self._collector, self._writer, self._people = collector, writer, people
        self._challenge = {"challenge": challenge}
        self._exported = Exported(is_complete=False)

    def run(self, say: Callable[[str], None], own_bundle: str) -> Exported:
        rows = self._read_challenge(self._find_challenge())
        codenames = {row["id"]: str(row["codename"]) for row in rows.phases}
        config = self._write_bundle(rows, own_bundle)
        lists = self._read_lists(rows.phases)
        for _ in range(_PASSES):
            boards, scores = self._read_boards(rows, config, fresh=lists is not None and lists.is_fresh)
            if lists is not None:
                self._fetch_files(lists, rows.phases, say)
            earlier, lists = lists, self._read_lists(rows.phases, fresh=True)
            if earlier is not None and lists is not None and earlier.state == lists.state:
                self._exported.is_complete = True
                break
        else:
            fault = f"the platform still changed after {_PASSES} passes; export it again later"
            self._collector.note_gap("", "agreement of two passes", fault)
        lists = lists or earlier
        if lists is None:
            raise HostError("the lists of submissions never agreed. Run the same command later")
        self._exported.boards = boards
        self._exported.submissions = [self._make_submission(row, lists, codenames, scores) for row in lists.rows]
        self._exported.teams = self._list_teams(lists)
        self._exported.missing = [*self._collector.gaps.values()]
        return self._exported

    # ── the challenge and its bundle ─────────────────────────────────────────

    def _find_challenge(self) -> dict[str, Any]:
        """Return the challenge as one of the host's teams sees it."""
        self._hosts = self._collector.get_pages(routes.HOST_TEAMS, {})
        for team in self._hosts:
            values = {"team": parse_key(team.get("id")), **self._challenge}
            try:
                answer: dict[str, Any] = self._collector.get(routes.CHALLENGE_OF_HOST, values)
            except ApiError as error:
                if error.status == 401:
                    raise
                continue
            if parse_key(answer.get("id")) == self._challenge["challenge"]:
                return answer
        teams = ", ".join(printable(team.get("team_name")) for team in self._hosts) or "none"
        raise HostError(
            f"challenge {self._challenge['challenge']}: none of your host teams ({teams}) hosts it. "
            "Use a host's token, in EVALAI_TOKEN"
        )

    def _read_challenge(self, challenge: dict[str, Any]) -> ChallengeRows:
        get, whole = self._collector.get, self._challenge
        self._exported.title = str(challenge.get("title") or "")
        script = get(routes.CHALLENGE_OF_QUEUE, {"queue": str(challenge["queue"])})
        phases = sorted(list_rows(get(routes.PHASES_OF_HOST, whole)), key=lambda row: row["id"])
        listed = list_rows(get(routes.PHASE_SPLITS, whole))
        mappings = [get(routes.PHASE_SPLIT, {"split": key}) for key in sorted(row["id"] for row in listed)]
        boards = sorted({row["leaderboard"] for row in mappings})
        splits = sorted({row["dataset_split"] for row in mappings})
        return ChallengeRows(
            {**script, **challenge, "evaluation_script": script.get("evaluation_script")},
            phases,
            mappings,
            {key: get(routes.LEADERBOARD_SCHEMA, {"leaderboard": key}) for key in boards},
            {key: get(routes.DATASET_SPLIT, {"split": key}) for key in splits},
            list_rows(get(routes.PRIZES, whole)),
            list_rows(get(routes.SPONSORS, whole)),
        )

    def _write_bundle(self, rows: ChallengeRows, own_bundle: str) -> dict[str, Any]:
        """Fetch the truths and the script, write the bundle, and return its YAML."""
        files: dict[str, str] = {}
        for row in rows.phases:
            codename = str(row["codename"])
            if row.get("test_annotation"):
                ending = name_of_address(row["test_annotation"]).partition(".")[2]
                path = f"annotations/{file_name(codename)}.{ending}".rstrip(".")
                if self._collector.fetch(row["test_annotation"], f"{BUNDLE}/{path}", codename, "annotation file"):
                    files[codename] = path
            else:
                self._collector.note_gap(codename, "annotation file", "the phase has none on the platform")
            if row.get("allowed_email_ids") and not self._people:
                self._collector.note_gap(codename, "allowed_email_ids", _WITHHELD)
        if rows.challenge.get(PEOPLE_KEYS[1]) and not self._people:
            self._collector.note_gap("", PEOPLE_KEYS[1], "people's addresses are exported only with --people")
        script, image = f"{BUNDLE}/{SCRIPT_FOLDER}.zip", rows.challenge.get("image")
        self._collector.fetch(rows.challenge.get("evaluation_script"), script, "", "evaluation script")
        if image:
            path = f"logo.{name_of_address(image).rpartition('.')[2]}"
            if self._collector.fetch(image, f"{BUNDLE}/{path}", "", "logo"):
                files["image"] = path
        config, texts = rebuild_config(rows, files, people=self._people)
        text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=120)
        bundle = {CONFIG: text.encode(), **{name: text.encode() for name, text in texts.items()}}
        bundle |= self._read_files([f"{SCRIPT_FOLDER}.zip"])
        if own_bundle:
            theirs = unpack_script(read_host_bundle(own_bundle))
            fetched = self._read_files(files.values())
            self._exported.differences = list_differences(unpack_script({**bundle, **fetched}), theirs)
            bundle = theirs
        else:
            self._writer.names.update(f"{BUNDLE}/{name}" for name in files.values())
        for name, data in unpack_script(bundle).items():
            self._writer.write(f"{BUNDLE}/{name}", data)
        return config

    def _read_files(self, names: Iterable[str]) -> dict[str, bytes]:
        folder = self._collector.folder / BUNDLE
        return {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}

    # ── leaderboards ─────────────────────────────────────────────────────────

    def _read_boards(
        self, rows: ChallengeRows, config: dict[str, Any], *, fresh: bool
    ) -> tuple[list[EventBoard], _Scores]:
        """Return the leaderboards as visitors see them by every label, and the scores of all entries that hosts see."""
        boards: list[EventBoard] = []
        scores: _Scores = {}
        phases = {row["id"]: row for row in rows.phases}
        for mapping in rows.mappings:
            phase, split = phases[mapping["challenge_phase"]], rows.splits[mapping["dataset_split"]]
            codename, schema = str(phase["codename"]), rows.leaderboards[mapping["leaderboard"]]["schema"]
            labels, name = [str(label) for label in schema["labels"]], str(split["codename"])
            parsed: list[EventRow] = []
            for label in labels:
                for route in (routes.LEADERBOARD, routes.LEADERBOARD_OF_HOST):
                    entries = self._collector.get_pages(
                        route, {"split": mapping["id"]}, fresh=fresh, order_by=label, page_size=_PAGE
                    )
                    read = [_read_entry(entry, label, labels) for entry in entries]
                    parsed += read if route == routes.LEADERBOARD else []
                    for row in read:
                        scores.setdefault(row.submission, {}).setdefault(name, {}).update(row.scores)
                    if len(entries) >= _BOARD_ROWS:
                        fault = "EvalAI looks at the newest 10,000 rows only"
                        self._collector.note_gap(codename, f"leaderboard of {name}", fault)
            descending = mapping.get("is_leaderboard_order_descending")
            boards.append(
                EventBoard(
                    codename,
                    name,
                    str(mapping.get("visibility")),
                    name in secrecy.find_unpublished(config, codename),
                    str(schema.get("default_order_by") or ""),
                    labels,
                    [label for label in labels if not is_descending(schema, label, descending)],
                    int(mapping["leaderboard_decimal_precision"]),
                    parsed,
                )
            )
        return boards, scores

    # ── submissions ──────────────────────────────────────────────────────────

    def _read_lists(self, phases: list[dict[str, Any]], *, fresh: bool = False) -> _Lists | None:
        """Read the workers' list, the hosts' lists and the workers' list; None if they or the counts disagree."""
        get, key = self._collector.get, routes.SUBMISSIONS_OF_CHALLENGE
        earlier = list_rows(get(key, self._challenge, fresh=fresh))
        named: dict[int, dict[str, Any]] = {}
        for phase in phases:
            values = {**self._challenge, "phase": phase["id"]}
            pages = self._collector.get_pages(routes.SUBMISSIONS_OF_PHASE, values, fresh=fresh)
            named |= {row["id"]: row for row in pages}
        last = list_rows(get(key, self._challenge, fresh=True))
        counts = Counter[tuple[int, str]]()
        for phase in phases:
            answer = get(routes.SUBMISSION_COUNTS, {"phase": phase["id"]}, fresh=True)
            counts.update({(phase["id"], str(row["status"])): int(row["count"]) for row in answer["status"]})
        lists = _Lists(sorted(last, key=lambda row: row["id"]), named, fresh)
        listed = {row["id"] for row in last if not row.get("ignore_submission")}
        statuses = Counter((row["challenge_phase"], str(row["status"])) for row in last)
        agrees = lists.state == _Lists(earlier, named, fresh).state and listed == named.keys() and statuses == counts
        return lists if agrees else None

    def _fetch_files(self, lists: _Lists, phases: list[dict[str, Any]], say: Callable[[str], None]) -> None:
        by_key = {row["id"]: row for row in phases}
        for index, row in enumerate(lists.rows, 1):
            phase = by_key[row["challenge_phase"]]
            retention = str(phase.get("submission_artifact_retention_policy") or _KEEPS)
            note = "" if retention == _KEEPS else f"; the phase keeps files for {retention.replace('_', ' ')}"
            for key, address, path in lists.files(row, str(phase["codename"])):
                what = key.replace("_", " ")
                self._collector.fetch(address, path, str(phase["codename"]), what, row["id"], note)
            if not row.get("input_file"):
                self._collector.note_gap(str(phase["codename"]), "input file", "the platform names none", row["id"])
            if index % 50 == 0 or index == len(lists.rows):
                say(f"{index} of {len(lists.rows)} submissions fetched")

    def _make_submission(
        self, row: dict[str, Any], lists: _Lists, codenames: Mapping[int, str], scores: _Scores
    ) -> EventSubmission:
        number, phase = row["id"], codenames[row["challenge_phase"]]
        paths = {key: path for key, _, path in lists.files(row, phase) if (self._collector.folder / path).is_file()}
        on_boards = scores.get(number, {})
        numbers = {**self._read_scores(paths.get("submission_result_file"), phase), **on_boards}
        unknown = [
            board.split for board in self._exported.boards if board.phase == phase and board.split not in numbers
        ]
        if unknown and row["status"] == FINISHED:
            what = f"scores of {', '.join(unknown)}" if numbers else "scores"
            fault = "neither a leaderboard nor a result file has them; score its file again"
            self._collector.note_gap(phase, what, fault, number)
        return EventSubmission(
            number,
            phase,
            team=parse_key(row.get("participant_team")) or None,
            number=int(lists.named.get(number, {}).get("submission_number") or 0),
            status=row["status"],
            submitted=str(row.get("submitted_at") or ""),
            started=row.get("started_at"),
            completed=row.get("completed_at"),
            method={ours: str(row[theirs]) for theirs, ours in METHOD.items() if row.get(theirs)},
            is_public=bool(row.get("is_public")),
            is_baseline=bool(row.get("is_baseline")),
            is_ignored=bool(row.get("ignore_submission") or row.get("is_flagged")),
            cause=self._read_cause(paths.get("stderr_file")) if row["status"] == FAILED else None,
            file=paths.get("input_file"),
            extra_files={FILES[key]: path for key, path in paths.items() if key in FILES},
            scores=numbers,
            trust=(BOARD if numbers.keys() == on_boards.keys() else RESULT) if numbers else None,
        )

    def _read_scores(self, path: str | None, phase: str) -> dict[str, dict[str, float]]:
        """Return the scores in a result file by split: those under its name, or those of the only shown split."""
        content = read_result(self._collector.folder / path) if path else None
        boards = [board for board in self._exported.boards if board.phase == phase]
        scores = {board.split: _find_labels(content, board.split, board.labels) for board in boards}
        shown = [board for board in boards if not board.hidden]
        if len(shown) == 1 and isinstance(content, list) and len(content) == 1 and not any(scores.values()):
            scores[shown[0].split] = _numbers(content[0], shown[0].labels)  # as a remote worker's result is stored
        return {split: numbers for split, numbers in scores.items() if numbers}

    def _read_cause(self, path: str | None) -> str | None:
        """Return the last line of a failed submission's stderr."""
        if path is None:
            return None
        with (self._collector.folder / path).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
        return next((line.strip()[:300] for line in reversed(lines) if line.strip()), None)

    # ── teams ────────────────────────────────────────────────────────────────

    def _list_teams(self, lists: _Lists) -> list[EventTeam]:
        """Return the teams that take part, and those that only submitted."""
        answer = self._collector.get(routes.TEAMS_OF_CHALLENGE, self._challenge)
        hosts = {member.get("user") for team in self._hosts for member in team.get("members") or []}
        teams = {}
        for row in answer["participant_teams"]:
            people = [member for member in row.get("members") or [] if isinstance(member, dict)]
            names = {member.get("member_name") for member in people}
            members = [_read_member(member) for member in people] if self._people else []
            name, approved = str(row.get("team_name")), row.get("approved") is not False
            teams[row["id"]] = EventTeam(row["id"], name, bool(names & hosts), approved, members)
        for row in lists.rows:
            team = row["participant_team"]
            teams.setdefault(team, EventTeam(team, str(row.get("participant_team_name")), approved=False))
        return [*teams.values()]


@dataclass(frozen=True)
class _Lists:
    """The submissions of a pass: the workers' rows by key, and the hosts' rows with numbers and names."""

    rows: list[dict[str, Any]]
    named: dict[int, dict[str, Any]]
    is_fresh: bool

    @property
    def state(self) -> frozenset[tuple[int, str]]:
        """Return what must not change between two passes: keys and statuses."""
        return frozenset((row["id"], str(row["status"])) for row in self.rows)

    def files(self, row: dict[str, Any], phase: str) -> Iterator[tuple[str, object, str]]:
        """Yield the key, the address and the path in the archive of each of a submission's files."""
        both = {**row, **self.named.get(row["id"], {})}
        extra_files = {key: f"{name}{ending_of_address(both[key])}" for key, name in FILES.items() if both.get(key)}
        if both.get("input_file"):
            name = name_of_address(both["input_file"])
            name = f"submitted-{name}" if name in extra_files.values() else name
            yield "input_file", both["input_file"], file_path(phase, row["id"], name)
        for key, name in extra_files.items():
            yield key, both[key], file_path(phase, row["id"], name)


def _read_entry(entry: Mapping[str, Any], by: str, labels: list[str]) -> EventRow:
    """Return a row of a leaderboard; `#` stands for a missing label."""
    results, errors = entry.get("result") or [], entry.get("error") or []
    return EventRow(
        parse_key(entry.get("submission__id")),
        parse_key(entry.get("submission__participant_team")) or None,
        by,
        {label: value for label, value in zip(labels, results, strict=False) if is_number(value)},
        {label: value for label, value in zip(labels, errors, strict=False) if is_number(value)},
        entry.get("submission__is_baseline") is True,
    )


def _find_labels(value: object, split: str, labels: list[str], depth: int = 4) -> dict[str, float]:
    """Return the numbers below the name of a split in nested lists and mappings."""
    if isinstance(value, dict) and (numbers := _numbers(value.get(split), labels)):
        return numbers
    inner = value if isinstance(value, list) else [*value.values()] if isinstance(value, dict) else []
    inner_numbers = (_find_labels(item, split, labels, depth - 1) for item in inner if depth)
    return next(filter(None, inner_numbers), {})


def _numbers(value: object, labels: list[str]) -> dict[str, float]:
    if not isinstance(value, dict):
        return {}
    return {label: value[label] for label in labels if is_number(value.get(label))}


def _read_member(member: Mapping[str, Any]) -> dict[str, str]:
    name = " ".join(str(member.get(key) or "") for key in ("first_name", "last_name")).strip()
    return {"name": name or str(member.get("member_name")), "email": str(member.get("email") or "")}
