"""Every route of the rehearsal, called by every user: only a host's answers contain scores of hidden splits.

A route with a parameter that `VALUES` lacks fails here: say which values it takes.
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from segjudge.server import api, pages
from segjudge.server.models import Challenge, ChallengePhase, Submission, Team
from segjudge.server.report_answers import ProgramAnswer, SplitSummary, read_answer
from segjudge.server.report_pages import PageOrder
from segjudge.server.report_program import COMPARED, LEVELS, STORED
from segjudge.server.submissions import SplitScores
from tests.rehearsals import omit_varying_digits

from .scenario import bundle_of, config_of
from .staged import Stage

#: Scores of splits that everybody sees; of those whose phase or leaderboard is not public; of hidden ones.
PUBLIC, CLOSED, HIDDEN = 0.7512987, 0.2987612, 0.4312765
PATHS = sorted({
    route.path.rstrip("/") or "/"
    for route in [*api.ROUTES, *pages.ROUTES]
    if "GET" in (getattr(route, "methods", None) or ())
})  # fmt: skip
#: The parameters of routes that the walk leaves to links: signed addresses of files.
_LINKED = ("/media/{file}/{name}",)
_PAGES = [path for path in PATHS if not path.startswith("/api") and path not in _LINKED]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Yield a server with splits of visibility 1 to 3, a private leaderboard and phase, and submissions."""
    folder = tmp_path_factory.mktemp("routes")
    (folder / "lakes.zip").write_bytes(bundle_of(config_of("Lakes", remote_evaluation=True)))
    with Stage(folder, folder / "lakes.zip") as opened:
        for phase, who in itertools.product(opened.services.store.phases(1), ("aurora", "host")):
            send(opened, phase, who)
        yield opened


def send(stage: Stage, phase: Any, who: str, private: float = 0.0) -> None:
    """Send a submission that is scored and visible; or hidden, with a score of its own."""
    path = f"/api/jobs/challenge/1/challenge_phase/{phase.id}/submission/"
    files = {"input_file": (f"{who}.zip", b"masks")}
    number = stage.call("POST", path, who, data={"is_public": "true"}, files=files).json().get("id")
    if number is None:  # the phase takes none of theirs
        return
    is_ours, scores, shown = not stage.services.store.require(Challenge, 1).flag("remote_evaluation"), [], {}
    for split in stage.services.store.splits_of(phase.id):
        is_closed = phase.codename in ("final", "secret")
        score = private or (HIDDEN if split.visibility != 3 else CLOSED if is_closed else PUBLIC)
        scores.append(SplitScores(split.id, dict.fromkeys(split.labels, score)))
        if split.visibility == 3 or not is_ours:  # Segjudge's scorers write no score of a hidden split
            shown[split.dataset_split.codename] = score
    texts = {"stdout_file": f"scored {shown}", "metadata_file": json.dumps(shown)}
    stage.services.submissions.end(number, "finished", scores, submission_result_file=json.dumps(shown), **texts)
    stage.services.submissions.update(number, is_public=not private, is_baseline=who == "host")


def list_values(stage: Stage) -> dict[str, list[object]]:
    """Return the values of routes' parameters."""
    store = stage.services.store
    phases, challenge = store.phases(1), stage.services.submissions.challenge_of(stage.services.submissions.get(1))
    return {
        "challenge": [1], "phase": [phase.id for phase in phases], "slug": [phase.slug for phase in phases],
        "split": [split.id for phase in phases for split in store.splits_of(phase.id)],
        "submission": [row.id for row in sorted(store.find(Submission), key=lambda row: row.phase_id)],
        "leaderboard": [1], "team": [team.id for team in store.find(Team)], "queue": [challenge.queue],
        "time": ["all", "past", "present", "future"], "approved": ["approved"], "published": ["public"],
        "page": ["leaderboard", "overview", "submit"],
    }  # fmt: skip


def fill(path: str, values: dict[str, list[object]]) -> Iterator[str]:
    """Yield the addresses of a route; for comparisons, those of each submission with the next two.

    They are ordered by phase, which has at most three: each meets all of its phase, and submissions of the next one.
    """
    names = re.findall(r"{(\w+)(?::\w+)?}", path)
    for chosen in itertools.product(*(values[name] for name in names)):
        address = path
        for name, value in zip(names, chosen, strict=True):
            address = re.sub(rf"{{{name}(?::\w+)?}}", str(value), address)
        if path.endswith("/compare"):
            yield from (
                f"{address}?submission={first}&submission={second}"
                for first, second in _neighbours(values["submission"])
            )
        else:
            yield address


def _neighbours(values: list[object]) -> Iterator[tuple[object, object]]:
    return itertools.chain(itertools.pairwise(values), zip(values, values[2:], strict=False))


def walk(stage: Stage, who: str) -> dict[str, str]:
    """Request everything with a token and as a browser, including the files that answers link to."""
    values, answers = list_values(stage), dict[str, str]()
    for path in PATHS:
        for address in fill(path, values) if path not in _LINKED else ():
            for ask, ending in ((stage.call, "/" if path.startswith("/api") else ""), (stage.browse, "")):
                answers[f"{ask.__name__} {address}{ending}"] = ask("GET", address + ending, who).text
    links = {html.unescape(link) for text in answers.values() for link in re.findall(r'/media/[^"\'<>\s]+', text)}
    return answers | {link: stage.get(link.rstrip("\\")).text for link in sorted(links)}


def walk_pages(stage: Stage, who: str) -> dict[str, str]:
    """Request every page as a browser."""
    values = list_values(stage)
    return {address: stage.browse("GET", address, who).text for path in _PAGES for address in fill(path, values)}


def find(score: float, answers: dict[str, str]) -> list[str]:
    """List the addresses whose answers have the digits of a score."""
    form = re.compile(rf"(?<![\d.]){score:.2f}|(?<![\d.]){repr(score)[:5]}")
    return [address for address, text in answers.items() if form.search(omit_varying_digits(text))]


@pytest.mark.parametrize("who", ["", "borealis"], ids=["nobody", "another team"])
def test_visitors_and_other_teams_read_nothing_that_is_not_public(stage: Stage, who: str) -> None:
    answers = walk(stage, who)
    assert find(PUBLIC, answers)
    assert find(HIDDEN, answers) == []
    assert find(CLOSED, answers) == []


@pytest.mark.long
def test_a_team_reads_of_its_own_submissions_nothing_that_is_hidden(stage: Stage) -> None:
    answers = walk(stage, "aurora")
    assert find(PUBLIC, answers)
    assert find(CLOSED, answers), "its own, in a phase whose leaderboard is not public"
    assert find(HIDDEN, answers) == []


@pytest.mark.long
def test_a_host_reads_all(stage: Stage) -> None:
    answers = walk(stage, "host")
    assert all(find(score, answers) for score in (PUBLIC, CLOSED, HIDDEN))


# ── reports ─────────────────────────────────────────────────────────────────

#: A score of a submission that its team does not show.
PRIVATE = 0.6123498
_JANUARY = 1_895_000_000.0


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Yield a server of Segjudge's scorers, every phase with `detail="all"`, whose reports are made at once.

    A full one has all scores of its submission, hidden ones too, and so have its summaries.
    """
    folder = tmp_path_factory.mktemp("reported")
    config = config_of("Lakes", remote_evaluation=False)
    for phase in config["challenge_phases"]:
        phase |= {"test_annotation_file": "truth.json"}
    (folder / "lakes.zip").write_bytes(bundle_of(config, "truth"))
    with pytest.MonkeyPatch.context() as patched, Stage(folder, folder / "lakes.zip") as opened:
        patched.setattr("segjudge.server.actions.reading._has_our_scorers", lambda *_: True)
        patched.setattr(opened.services.report_pages, "find_or_order", lambda order, _: make_at_once(opened, order))
        later, opened.now = opened.now, _JANUARY
        for phase, who in itertools.product(opened.services.store.phases(1), ("aurora", "host")):
            send(opened, phase, who)
            opened.now += 86400 * 1.5
        over = next(phase for phase in opened.services.store.phases(1) if phase.codename == "over")
        opened.now = _JANUARY
        send(opened, over, "aurora", PRIVATE)
        opened.now = later
        yield opened


def make_at_once(stage: Stage, order: PageOrder) -> ProgramAnswer:
    services = stage.services
    if order.kind == LEVELS:
        phases = services.store.phases(1)
        return ProgramAnswer(levels={phase.codename: ["all", [], list_splits(stage, phase)] for phase in phases})
    if order.kind == STORED:
        path = services.files.path(order.files["result"])
        with open(path, encoding="utf-8") as file:
            scores = json.load(file)
    else:
        rows = [row for row in services.store.find(Submission) if row.input_file in order.files.values()]
        assert len(rows) == 1 + (order.kind == COMPARED)
        scores = {
            split.dataset_split.codename: value["Score"]
            for row in rows
            for split in services.store.splits_of(row.phase_id)
            for number, value in services.submissions.scores(row.id).items()
            if number == split.id
        }
    split_summaries = {
        split: SplitSummary(
            ["Score.", f"Most is lost to {score}."], f"pond {score}", [("1", "data:image/webp;base64,AA==")]
        )
        for split, score in scores.items()
    }
    return ProgramAnswer(f"<!doctype html>\n<body>\n{scores}", split_summaries)


def list_splits(stage: Stage, phase: ChallengePhase) -> list[str]:
    return sorted(split.dataset_split.codename for split in stage.services.store.splits_of(phase.id))


@pytest.mark.long
@pytest.mark.parametrize("who", ["", "borealis"], ids=["nobody", "another team"])
def test_visitors_and_other_teams_read_only_reports_without_secrets(reported: Stage, who: str) -> None:
    answers = walk_pages(reported, who)
    opened = find(PUBLIC, answers)
    for page in (r"/submissions/\d+/report", r"/leaderboard/\d+/compare.*", "/challenges/1/leaderboard.*"):
        assert any(re.fullmatch(page, address) for address in opened), page
    over = next(address for address in opened if "leaderboard/" in address and "Most is lost" in answers[address])
    assert re.search(r'href="/submissions/\d+/report"', answers[over])
    for secret in (HIDDEN, CLOSED, PRIVATE):
        assert find(secret, answers) == []


def test_a_team_reads_its_own_reports_without_what_is_hidden(reported: Stage) -> None:
    answers = walk_pages(reported, "aurora")
    for shown in (PUBLIC, CLOSED, PRIVATE):
        assert any("/report" in address for address in find(shown, answers))
    assert find(HIDDEN, answers) == []


@pytest.mark.long
def test_a_host_reads_all_reports(reported: Stage) -> None:
    answers = walk_pages(reported, "host")
    for shown in (PUBLIC, CLOSED, HIDDEN, PRIVATE):
        assert any("/report" in address for address in find(shown, answers))


@pytest.mark.long
def test_a_split_that_only_the_script_has_closes_its_reports(reported: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(order: PageOrder, _team: int) -> ProgramAnswer:
        answer = make_at_once(reported, order)
        levels = {
            codename: [detail, hidden, [*splits, "z"]] for codename, (detail, hidden, splits) in answer.levels.items()
        }
        return replace(answer, levels=levels)

    monkeypatch.setattr(reported.services.report_pages, "find_or_order", make)
    answers = walk_pages(reported, "")
    assert [address for address in find(PUBLIC, answers) if "report" in address or "compare" in address] == []


@pytest.mark.long
def test_a_submission_that_is_named_twice_is_compared_once(reported: Stage) -> None:
    answers = walk_pages(reported, "")
    address = next(address for address in find(PUBLIC, answers) if "/compare?" in address)
    first = re.findall(r"submission=\d+", address)[0]
    assert reported.browse("GET", f"{address}&{first}").text == reported.browse("GET", address).text
    path = address.partition("?")[0]
    assert reported.browse("GET", f"{path}?{first}&{first}").status_code == 400


def test_the_walk_knows_every_parameter_of_a_route(stage: Stage) -> None:
    known = set(list_values(stage))
    names = {path: set(re.findall(r"{(\w+)(?::\w+)?}", path)) - known for path in PATHS if path not in _LINKED}
    assert {path: unknown for path, unknown in names.items() if unknown} == {}
    assert len(PATHS) > 30


@pytest.mark.parametrize("style", ["x; y", "a b c", "", "<b>"])
def test_a_legend_with_something_else_than_styles_is_refused(style: str) -> None:
    """The page program reads untrusted files, so its answer is untrusted too."""
    fields: dict[str, Any] = {
        "verdict": [],
        "subject": "",
        "film": [],
        "legend": [["missing under", "too little"], [style, "x"]],
    }
    with pytest.raises(ValueError, match="^has a legend with something other than styles$"):
        read_answer(json.dumps({"split_summaries": {"dev": fields}}))
    with pytest.raises(ValueError, match="^has a film of something other than pictures$"):
        read_answer(json.dumps({"split_summaries": {"dev": {**fields, "film": [["1", "http://a"]]}}}))
    del fields["legend"][1]
    split_summary = read_answer(json.dumps({"split_summaries": {"dev": fields}})).split_summaries["dev"]
    assert list(split_summary.legend) == [("missing under", "too little")]


@pytest.mark.parametrize(
    ("verdict", "cause"),
    [([], ""), (["Score 0.5."], ""), (["Score 0.5.", "Most is missing."], "Most is missing.")],
    ids=["nothing", "a score alone", "a score and its cause"],
)
def test_the_cause_of_a_page_follows_its_score(verdict: list[str], cause: str) -> None:
    fields = {"verdict": verdict, "subject": "", "film": [], "legend": []}
    assert read_answer(json.dumps({"split_summaries": {"dev": fields}})).split_summaries["dev"].cause == cause
