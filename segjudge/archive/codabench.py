"""`segjudge leave codabench`: a competition of a Codabench server, with its organiser's token, as an archive.

A dump holds the competition only; the API's rows hold its history. Addresses of files live five days.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from segjudge.evaluation_script.files import HostError
from segjudge.platforms.codabench.routes import COMPETITION, DETAILS, DUMP, FILES, PARTICIPANTS, SUBMISSIONS
from segjudge.platforms.evalai.client import ApiError
from segjudge.platforms.evalai.rows import is_number, parse_key

from .codalab import find_missing_files
from .collecting import Collector, ending_of_address, list_rows
from .event import BUNDLE, RESULT, EventBoard, EventRow, EventSubmission, EventTeam, EventWriter, Exported, file_path

#: The seconds between two looks for a new dump, and the looks before giving up: the site's worker has ten minutes.
_LOOK, _LOOKS = 15.0, 48
_FAILED = "Failed"
_FILES = {"prediction_result": "prediction", "scoring_result": "result", "detailed_result": "detailed"}


def export_codabench(
    collector: Collector, writer: EventWriter, competition: int, say: Callable[[str], None], *, people: bool = False
) -> Exported:
    """Fetch a competition into the folder of a collector and a writer; raises HostError if it cannot be read."""
    try:
        return _Export(collector, writer, competition, people=people).run(say)
    except ApiError as error:
        raise HostError(f"competition {competition} of {collector.client.host}: {error}") from None


class _Export:
    def __init__(self, collector: Collector, writer: EventWriter, competition: int, *, people: bool) -> None:
        self._collector, self._writer, self._people = collector, writer, people
        self._number = {"competition": competition}
        self._exported = Exported()

    def run(self, say: Callable[[str], None]) -> Exported:
        competition: dict[str, Any] = self._collector.get(COMPETITION, self._number)
        self._exported.title = str(competition.get("title") or "")
        self._fetch_bundle(say)
        columns = [column for board in list_rows(competition["leaderboards"]) for column in list_rows(board["columns"])]
        teams: dict[str, EventTeam] = {}
        for row in list_rows(self._collector.get(PARTICIPANTS, {}, competition=self._number["competition"])):
            name, email = str(row.get("username")), str(row.get("email") or "")
            members = [{"name": name, "email": email}] if self._people else []
            teams[name] = EventTeam(
                parse_key(row.get("id")), name, approved=row.get("status") == "approved", members=members
            )
        for phase in list_rows(competition["phases"]):
            rows = self._read_submissions(phase["id"])
            for row in rows:  # people who left
                teams.setdefault(row["owner"], EventTeam(10**9 + len(teams), row["owner"], approved=False))
            self._add_phase(str(phase["name"]), rows, columns, teams)
            say(f"{phase['name']}: {len(rows)} submissions fetched")
        self._exported.teams = [*teams.values()]
        self._exported.missing += self._collector.gaps.values()
        return self._exported

    def _fetch_bundle(self, say: Callable[[str], None]) -> None:
        """Fetch the competition as it was uploaded, and a dump of what it is now."""
        files = self._collector.get(FILES, self._number)
        if not files.get("dumps"):
            say("The platform makes a dump of the competition; this takes some minutes.")
            self._collector.post(DUMP, self._number, {"keys_instead_of_files": False})
            for _ in range(_LOOKS):
                files = self._collector.get(FILES, self._number, fresh=True)
                if files.get("dumps"):
                    break
                self._collector.sleep(_LOOK)
        addresses = {"uploaded.zip": files.get("bundle"), "dump.zip": ([*files.get("dumps", [])] or [None])[-1]}
        for name, row in addresses.items():
            path = f"{BUNDLE}/{name}"
            if self._collector.fetch(row and row["url"], path, "", name.removesuffix(".zip")):
                self._writer.names.add(path)
                self._exported.missing += find_missing_files(str(self._collector.folder / path))

    def _read_submissions(self, phase: int) -> list[dict[str, Any]]:
        """Read the rows of a phase until two readings agree."""
        rows = list_rows(self._collector.get(SUBMISSIONS, {}, phase=phase, show_is_soft_deleted="true"))
        for _ in range(4):
            earlier = {(row["id"], row["status"]) for row in rows}
            rows = list_rows(self._collector.get(SUBMISSIONS, {}, fresh=True, phase=phase, show_is_soft_deleted="true"))
            if earlier == {(row["id"], row["status"]) for row in rows}:
                break
        else:
            self._exported.is_complete = False
        return sorted(rows, key=lambda row: row["id"])

    def _add_phase(
        self, name: str, rows: list[dict[str, Any]], columns: list[dict[str, Any]], teams: dict[str, EventTeam]
    ) -> None:
        labels, numbers = [str(column["key"]) for column in columns], dict.fromkeys(teams, 0)
        board: list[EventRow] = []
        for row in rows:
            numbers[row["owner"]] += 1
            scores = _read_scores(row)
            team = teams[row["owner"]].id
            if row.get("on_leaderboard"):
                board.append(EventRow(row["id"], team, labels[0] if labels else "", scores))
            paths = self._fetch_files(row, name)
            self._exported.submissions.append(
                EventSubmission(
                    row["id"],
                    name,
                    team,
                    numbers[row["owner"]],
                    str(row["status"]).lower(),
                    str(row.get("created_when") or ""),
                    method={"description": str(row["description"])} if row.get("description") else {},
                    is_public=bool(row.get("is_public")),
                    is_ignored=bool(row.get("is_soft_deleted")),
                    cause=str(row.get("status_details") or "") or None if row["status"] == _FAILED else None,
                    file=paths.pop("submitted", None),
                    extra_files=paths,
                    scores={name: scores} if scores else {},
                    trust=RESULT if scores else None,
                )
            )
        ascending = [str(column["key"]) for column in columns if column.get("sorting") == "asc"]
        ordering = labels[0] if labels else ""
        sign = 1 if ordering in ascending else -1
        board.sort(key=lambda row: (sign * row.scores.get(ordering, 0.0), row.submission))
        hidden = any(column.get("hidden") for column in columns)
        self._exported.boards.append(
            EventBoard(name, name, "1" if hidden else "3", hidden, ordering, labels, ascending, rows=board)
        )

    def _fetch_files(self, row: dict[str, Any], phase: str) -> dict[str, str]:
        """Fetch a submission's files; return their paths by name."""
        number, paths = row["id"], {}
        if row.get("is_soft_deleted"):
            self._collector.note_gap(phase, "files", "withdrawn by its owner, which destroyed its files", number)
            return {}
        try:
            details = self._collector.get(DETAILS, {"submission": number}, fresh=True)
        except (ApiError, HostError) as error:  # an outage, or a submission that the site cannot show
            self._collector.note_gap(phase, "files", str(error), number)
            self._exported.is_complete = False
            return {}
        addresses = {"submitted": details.get("data_file")}
        addresses |= {name: details[key] for key, name in _FILES.items() if details.get(key)}
        addresses |= {str(log["name"]): log["data_file"] for log in list_rows(details.get("logs") or [])}
        for name, address in addresses.items():
            ending = ending_of_address(address)
            path = file_path(phase, number, name if name.endswith(ending) else f"{name}{ending}")
            if self._collector.fetch(address, path, phase, name, number):
                paths[name] = path
        return paths


def _read_scores(row: dict[str, Any]) -> dict[str, float]:
    """Return a submission's scores by the keys of columns; the API gives decimals as texts."""
    scores = {}
    for cell in list_rows(row.get("scores") or []):
        with suppress(TypeError, ValueError):
            scores[str(cell["column_key"])] = float(cell["score"])
    return {key: value for key, value in scores.items() if is_number(value)}
