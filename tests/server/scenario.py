"""A rehearsal's answers to hosts, teams and strangers, page by page.

    python -m tests.server.scenario

asks again what the chapters in `tests/server/scenario/` ask, one after the other, and writes the answers there: for changes that
are meant to be seen, look at the difference; for a further question, write its line first.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import tempfile
from html import unescape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import requests
import yaml

from segjudge.server.models import Challenge
from tests.answers import Answers, lay, write_answers
from tests.builders import png, zipped

from .staged import Stage

#: Behind `$` everything that is asked: of whom, what, with which fields (`name=value`), files (`name@file=content`), JSON
#: (`json=…`) and headers (`+Name=value`); `> name: a.b` keeps a value of the answer as `$name`; `later` lets seconds pass.
#: Behind `| ` stand words, with `, ` between them: only the lines that contain one are noted. A file is a chapter; chapters
#: follow each other by name.
FOLDER = Path(__file__).with_name("scenario")
_LABELS = {"labels": ["Score", "Loss"], "default_order_by": "Score", "metadata": {
    "Score": {"sort_ascending": False, "description": "How good"}, "Loss": {"sort_ascending": True, "description": ""},
}}  # fmt: skip
_QUESTIONS = [
    {"name": "Data", "description": "What it learnt from", "type": "text", "required": True},
    {"name": "Open", "description": "Is the code public?", "type": "boolean"},
    {"name": "Hardware", "description": "", "type": "checkbox", "options": ["GPU", "CPU"]},
    {"name": "Kind", "description": "", "type": "radio", "options": ["online", "offline"]},
]
#: What the scorer leaves for hosts: of Aurora, who is better than all others case by case, of two who cannot be told
#: apart, and of a baseline.
_SUMS = {
    f"{team}_sums": json.dumps({
        "sums": {"lakes": {"Score": [cases * 4, [1] * len(cases * 4)]}},
        "provenance": {"protocols": {"lakes": "any"}, "truth": "any"},
    })
    for team, cases in {
        "aurora": [0.8, 0.9, 0.85], "borealis": [0.5, 0.4, 0.6], "cygnus": [0.4, 0.5, 0.6], "host": [0.4, 0.3, 0.5],
    }.items()
}  # fmt: skip
_PERIOD = {"start_date": "2030-01-01 00:00:00", "end_date": "2030-12-31 23:59:59"}


def config_of(title: str, **changes: Any) -> dict[str, Any]:
    """Return a challenge with a phase of each kind; phases without `is_public` are public."""
    phases: list[dict[str, Any]] = [
        {"name": "Practice", "codename": "practice", "submission_meta_attributes": _QUESTIONS, "is_submission_public": True,
         "max_submissions_per_day": 9, "max_submissions_per_month": 30, "max_submissions": 40,
         "max_concurrent_submissions_allowed": 4, "allowed_submission_file_types": ".zip, .JSON",
         "is_partial_submission_evaluation_enabled": True},
        {"name": "Final", "codename": "final", "leaderboard_public": False, "max_submissions_per_day": 2,
         "max_submissions_per_month": 2, "max_submissions": 3, "allowed_submission_file_types": "*"},
        {"name": "Secret", "codename": "secret", "is_public": False},
        {"name": "Over", "codename": "over", "end_date": "2030-02-01 00:00:00"},
        {"name": "Paused", "codename": "paused", "is_submission_paused": True, "is_submission_public": "True"},
        {"name": "Invited", "codename": "invited", "allowed_email_ids": ["borealis@rehearsal.invalid"]},
    ]  # fmt: skip
    for number, phase in enumerate(phases, 1):
        common = {
            "id": number,
            "description": "phase.html",
            "is_public": True,
            "leaderboard_public": True,
            "max_submissions_per_month": 90,
        }
        phase |= {key: value for key, value in {**common, **_PERIOD}.items() if key not in phase}
    boards = [(1, 1, 3), (1, 2, 1), (2, 1, 3), (3, 1, 3), (4, 1, 3), (5, 1, 3), (6, 1, 3), (2, 2, 2)]
    return {
        "title": title, "short_description": "Find lakes.", "description": "about.html", "evaluation_details": "about.html",
        "terms_and_conditions": "about.html", "submission_guidelines": "about.html", "image": "logo.png",
        "evaluation_script": "evaluation_script.zip", "remote_evaluation": True, "published": True, **_PERIOD,
        "tags": ["water"], "domain": "CV", "leaderboard": [{"id": 1, "schema": _LABELS}],
        "challenge_phases": phases,
        "dataset_splits": [{"id": 1, "name": "Lakes", "codename": "lakes"}, {"id": 2, "name": "Ponds", "codename": "ponds"}],
        "challenge_phase_splits": [
            {"challenge_phase_id": phase, "dataset_split_id": split, "leaderboard_id": 1, "visibility": visibility,
             "leaderboard_decimal_precision": 2, "is_leaderboard_order_descending": True}
            for phase, split, visibility in boards
        ],
        **changes,
    }  # fmt: skip


def bundle_of(config: dict[str, Any], truth: str = "") -> bytes:
    about = "<p>Segment <b>lakes</b>.</p><script>alert(1)</script>"
    script = zipped({"__init__.py": "def evaluate(truth, submission, phase, **kwargs):\n    return {'result': []}\n"})
    files = {
        "about.html": about,
        "phase.html": "<p>A phase.</p>",
        "logo.png": png(np.eye(9, dtype=np.uint8)),
        "evaluation_script.zip": script,
        "truth.json": truth,
    }
    return zipped({"challenge_config.yaml": yaml.safe_dump(config), **files})


def write_scenario(folder: Path) -> dict[str, str]:
    """Play the chapters; return the requests and answers of each."""
    (folder / "lakes.zip").write_bytes(bundle_of(config_of("Lakes & ponds", allow_resuming_submissions=True)))
    with Stage(folder, folder / "lakes.zip", "dora") as stage:
        stage.services.accounts.create("cygnus", "secret")
        stage.people["cygnus"] = {"password": "secret", "token": ""}
        player = _Player(stage)
        for chapter in sorted(FOLDER.glob("*.txt")):
            player.open_chapter(chapter.stem)
            for line in chapter.read_text(encoding="utf-8").splitlines():
                if line.startswith("$ "):
                    player.play(line[2:].partition("  → ")[0])
    return {name: "".join(map(_shorten, cases.texts)) for name, cases in player.chapters.items()}


def _shorten(case: str) -> str:
    """Return a case in one line, if its answer is one and both fit."""
    title, *answer = case.splitlines()
    return "\n".join([*lay(title, answer, "  → "), ""])


class _Player:
    """Reads lines, and notes their outcome."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.chapters: dict[str, Answers] = {}
        self._names: dict[str, Any] = {**_SUMS, "queue": stage.services.store.require(Challenge, 1).queue}
        self._frames: set[str] = set()
        self._cases = Answers()
        self._files = {
            name: bundle_of(config_of(name, **changes)) for name, changes in {
                "past": {"end_date": "2030-04-30 00:00:00"}, "future": {"start_date": "2030-06-01 00:00:00"},
                "code": {"is_docker_based": True, "remote_evaluation": False},
                "sponsored": {"sponsors": [{"name": "a", "website": "https://a.org"}]},
                "banned": {"banned_email_ids": ["aurora@rehearsal.invalid"]},
            }.items()
        }  # fmt: skip

    def open_chapter(self, name: str) -> None:
        self._cases = self.chapters[name] = Answers()

    def play(self, line: str) -> None:
        if line.startswith("later "):
            self._stage.now += float(line.split()[1])
            self._cases.add(line, "")
        else:
            asked, _, rest = line.partition(" | ")
            asked, _, kept = asked.partition(" > ")
            answer = self._ask([Template(word).safe_substitute(self._names) for word in shlex.split(asked)])
            for name, path in re.findall(r"(\w+): (\S+)", kept):
                self._names[name] = _pick(answer, path)
            frame, content = map(_settle, self._show(answer, asked))
            if rest:
                shown = [row for row in content.splitlines() if any(word in row for word in rest.split(", "))]
                content = "\n".join([content.split(" ")[0], *shown])
            self._cases.add(line, content, frame)

    def _ask(self, arguments: list[str]) -> requests.Response:
        who, *arguments = arguments
        method = arguments.pop(0) if arguments[0].isupper() else "GET"
        path, *fields = arguments
        options: dict[str, Any] = {"data": {}, "headers": {}}
        for field in fields:
            name, _, value = field.partition("=")
            if name == "json":
                options = {"json": json.loads(value), "headers": options["headers"]}
            elif name.startswith("+"):
                options["headers"][name[1:]] = value
            elif "@" in name:
                name, _, file = name.partition("@")
                options.setdefault("files", {})[name] = (file, self._files.get(value, value.encode()))
            elif name == "body":
                options["data"] = value.encode()
            else:
                options["data"][name] = value.replace("\\n", "\n")
        api = path.startswith(("/api/", "/media/", "/upload/", "http"))
        ask = self._stage.call if api else self._stage.browse
        return ask(method, path.removeprefix(self._stage.address), who.strip("-"), **options)

    def _show(self, answer: requests.Response, asked: str) -> tuple[str, str]:
        """Return a page's frame, or its new lines and another's account, and the rest of the answer."""
        kind = answer.headers.get("Content-Type", "").partition(";")[0]
        headers = [f"{name}: {answer.headers[name]}" for name in _HEADERS if name in answer.headers]
        body, frame = answer.text, ""
        if kind == "application/json":
            body = json.dumps(_without_nulls(answer.json()), ensure_ascii=False)
        elif kind == "text/html":
            frame, begin, content = _read_page(answer.text).partition("<main")
            who = asked.partition(" ")[0]
            is_theirs = "Log out" not in frame if who == "-" else f"account: {who} [/logout" in frame
            body = _ERROR.sub(r"\1: \2 (back to \3)", _FILE.sub(r"file \2\1: \3 (\4)", f"{begin}{content}"))
            rows = [
                (row, re.sub(r' aria-current="page"|\?next=[^"]*|expires=\d+', "", _settle(row)))
                for row in frame.splitlines()
            ]
            frame = "\n".join(
                row for row, kind in rows if kind not in self._frames or ("account:" in row and not is_theirs)
            )
            self._frames.update(kind for _, kind in rows)
        return frame, " ".join([str(answer.status_code), *filter(None, ["; ".join(headers), body])])


def _without_nulls(value: Any) -> Any:
    """Return the document without the empty values of its rows."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def _pick(answer: requests.Response, path: str) -> Any:
    value = answer.headers if path in answer.headers else answer.json()
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


_HEADERS = ("Location", "Set-Cookie", "Content-Disposition", "ETag", "Refresh", "Retry-After")
_BLOCKS = "h1|h2|h3|p|li|tr|form|fieldset|label|dl|nav|section|main|pre|details|svg|button|legend"
#: A file of a submission: its beginning, and where to get it.
_FILE = re.compile(
    r'<details class="board"( open|)><summary>(.*)\n<pre tabindex="0" aria-label="\2">(.*)\n<p><a href="(.*)">Download \2'
)
#: A page that says why a request was refused.
_ERROR = re.compile(r'<main>\n<h1>(.*)\n<p>(.*)\n<p><a href="(.*)">Back to the challenge')
#: A form that is a button.
_FORM = re.compile(
    r'<form method="post" action="([^"]*)"><input type="hidden" name="form_token" value="[^"]*">'
    r'(?:<input type="hidden" name="what" value="([^"]*)">)?<button[^>]*>([^<]*)</button></form>'
)


def _read_page(text: str) -> str:
    """Return a page as text: a line per block, tags with their attributes, without the parts of all pages."""
    text = text.partition('<header class="top">')[2].partition('<p id="said"')[0]
    text = re.sub(r'(?s)(<svg class="history".*?>)(.*?)</svg>', lambda found: f"{found[1]} {_describe(found[2])}", text)
    text = re.sub(r"(?s)<pre.*?</pre>", lambda found: found[0].replace("\n", "⏎"), text)
    text = text.replace('<svg viewBox="0 0 24 8" aria-hidden="true"><path d="M0 4H24"/></svg>', "[line]")
    text = _FORM.sub(lambda found: f" [{' '.join(filter(None, found.groups()))}]", re.sub(r"\s+", " ", text))
    text = text.replace(' id="main" tabindex="-1"', "").replace('<nav aria-label="Account">', "account:")
    text = re.sub(r'<(td|th)(?: scope="\w+"| class="(?:number|short)")*', r"<\1", text)
    text = re.sub(r"</[^>]*>|<(?:b|br|strong|code|dd|span|thead|tbody|div|fieldset)>", " ", text)
    text = re.sub(r"<(dt|abbr)\b", r" <\1", re.sub(r"<t[dh]>", " | ", re.sub(r"<t[dh] ([^>]*)>", r" | {\1} ", text)))
    text = re.sub(rf"<(?=(?:{_BLOCKS})\b)", "\n<", text)
    return unescape("\n".join(re.sub(" +", " ", line).strip() for line in text.splitlines() if line.strip()))


def _describe(drawing: str) -> str:
    """Return the teams in a drawing of scores over time, its words, and a digest of its lines and points."""
    texts = re.findall(r"<(?:title|text)[^>]*>([^<]*)", drawing)
    return f"{' '.join(dict.fromkeys(texts))} ({hashlib.sha256(drawing.encode()).hexdigest()[:8]})"


def _settle(text: str) -> str:
    """Omit random values, and what follows from them."""
    text = re.sub(r'(name="form_token" value=")[^"]*', r"\1TOKEN", text)
    text = re.sub(r"signature=[\w-]+", "signature=SIGNED", text)
    text = re.sub(r"rehearsal/[0-9a-f]{16}\b", "rehearsal/ID", text)  # of the checkout
    return re.sub(r"\b[0-9a-f]{24,64}\b", "ID", text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="segjudge-") as scratch:
        write_answers(FOLDER, write_scenario(Path(scratch)))
