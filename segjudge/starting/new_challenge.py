"""A challenge as a small repository, made from a truth and a protocol."""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import unicodedata
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, DictLoader, Environment, PackageLoader, StrictUndefined, select_autoescape

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.family import FamilyProtocol, Progress, ScoringRules
from segjudge.evaluation_script.files import packed as packed_file
from segjudge.evaluation_script.files.limits import LOCAL_LIMITS
from segjudge.evaluation_script.files.problems import HostError, SubmissionError, name_list
from segjudge.evaluation_script.scoring.scorer import Scorer, read_truth
from segjudge.families import FamilyTools, tools_of
from segjudge.families.truths import TruthSource, pack_truth
from segjudge.system.errors import UsageError
from segjudge.system.files import open_draft

_PAGES = ("description", "evaluation_details", "submission_guidelines", "terms_and_conditions", "phase")
#: Templates by the file that is made of each.
_FILES = {
    "challenge_config.yaml": "challenge_config.yaml",
    "evaluation_script/phases.py": "phases.py",
    **{f"templates/{name}.html": f"{name}.html" for name in _PAGES},
    ".github/workflows/evalai.yml": "evalai.yml",
    ".gitignore": "gitignore",
    "README.md": "README.md",
}
_LOGO = os.path.join(os.path.dirname(__file__), "logo.png")
#: The distance by which each sample's masks are moved, as a share of the width.
_SAMPLES = {"good": 0.0012, "poor": 0.03}
#: The maximum characters of a title on EvalAI, and in the texts.
_MOST, _MOST_IN_TEXTS = 100, 1000
#: The maximum columns of a leaderboard that fit a page.
MOST_LABELS = 7
_ADDRESS = re.compile(r"[-a-zA-Z0-9_]+")
#: The codenames that EvalAI accepts and that are valid file names.
_CODENAME = re.compile(r"[A-Za-z0-9][\w-]{,49}", re.ASCII)


@dataclass(frozen=True)
class NewChallenge:
    """The choices of a host for a new challenge."""

    folder: str
    protocol: str
    source: TruthSource
    title: str = ""
    #: The wheel of the Segjudge that scores, or the git address of a commit (default: a wheel of this one).
    segjudge: str = ""
    #: Whether leaderboards show all metrics, or only the first ones.
    all_metrics: bool = False
    #: Whether the truth is the synthetic one, for which there are pictures.
    is_demo: bool = False
    #: The platform of a board without a server, for which there are two repositories; "" for one repository.
    board: str = ""
    today: datetime.date = field(default_factory=datetime.date.today)


def create(challenge: NewChallenge, progress: Progress) -> list[str]:
    """Write a repository, or the two of a board, in one step; return notes for their host."""
    with open_draft(challenge.folder) as draft:
        if not challenge.board:
            return _write(challenge, draft, progress)
        from segjudge.platforms.github.build import PRIVATE_FOLDER, build_board

        private = os.path.join(draft, PRIVATE_FOLDER)
        os.mkdir(private)
        notes = _write(challenge, private, progress)
        build_board(draft, challenge.folder)
        return notes


def _write(challenge: NewChallenge, folder: str, progress: Progress) -> list[str]:
    protocol = PROTOCOLS[challenge.protocol]
    tools = tools_of(protocol.family)
    from .lock import write_lock  # which needs the extra `host`, and a synthetic truth does not

    write_lock(challenge.segjudge, folder, [protocol.name])
    shutil.copyfile(_LOGO, os.path.join(folder, "logo.png"))
    os.mkdir(os.path.join(folder, "annotations"))
    packed = os.path.join(folder, "annotations", "truth.zip")
    notes = [f"truth: {note}" for note in pack_truth(challenge.source, protocol, packed, progress)]
    try:
        splits, rules = read_truth(packed, protocol.name).splits, ScoringRules(protocol, LOCAL_LIMITS)
    except HostError as error:  # `pack_truth` copies a packed truth unread
        raise HostError(str(error).replace(packed, str(challenge.source.path))) from None
    scorers = [Scorer(name, truth, rules) for name, truth in splits.items()]
    truths = list(splits.values())
    phase = _name_phase(list(splits))
    annotations = f"annotations/{phase}.zip"
    os.rename(packed, os.path.join(folder, annotations))
    sample, further = _write_samples(truths, protocol, os.path.join(folder, "examples", phase))
    notes += further
    pictures = tools.make_demo_pictures(protocol) if challenge.is_demo else ()
    photographs = _write_files(pictures, os.path.join(folder, "pictures", phase))
    metrics_of, further = _choose_boards(_select_metrics(sample, scorers, protocol), challenge)
    notes += further
    of_folder = re.sub(r"[-_]+", " ", os.path.basename(os.path.abspath(challenge.folder))).strip().capitalize()
    title = _plain_title(challenge.title) or _plain_title(of_folder) or "Challenge"
    short = _evalai_title(title)
    if short != title:
        notes = [*notes, f"EvalAI rejects the title {title!r:.120}: it will show {short!r}; all texts keep your title"]
    values = {
        "title": title,
        "evalai_title": short,
        "start": challenge.today,
        "end": challenge.today + datetime.timedelta(days=365),
        "phase": phase,
        "annotations": annotations,
        "pictures": bool(photographs),
        "splits": list(splits),
        "protocol": protocol,
        "metrics": [metric for metric in protocol.metrics if any(metric in metrics for metrics in metrics_of.values())],
        "metrics_of": metrics_of,
        "other_metrics": tools.other_metrics,
        "boards": list(dict.fromkeys(metrics_of.values())),
        "limits": tools.limits,
        "upload_types": tools.upload_types,
        **tools.describe_truth(truths, protocol),
    }
    _render(folder, values, tools)
    return notes


def _name_phase(splits: list[str]) -> str:
    """Return the codename of the phase of a truth's splits; raises UsageError if a split cannot be a codename."""
    wrong = [name for name in splits if not _CODENAME.fullmatch(name)]
    if wrong:
        rule = "which has up to 50 characters of a-z, 0-9, - and _"
        raise UsageError(f"{name_list(wrong)}: cannot be a codename, {rule}; pack the truth with --split NAME first")
    return splits[0] if len(splits) == 1 else "all"


def _write_samples(truths: list[Any], protocol: FamilyProtocol, folder: str) -> tuple[str, list[str]]:
    """Write samples made from the truth into a new folder; return the path of the best one, and notes for the host."""
    os.makedirs(folder)
    paths = [os.path.join(folder, f"{name}.zip") for name in _SAMPLES]
    for path, share in zip(paths, _SAMPLES.values(), strict=True):
        with zipfile.ZipFile(path, "w") as archive:
            for member, data in tools_of(protocol.family).make_sample(truths, protocol, share):
                form = zipfile.ZIP_STORED if member.endswith(".png") else zipfile.ZIP_DEFLATED
                archive.writestr(packed_file.make_entry(member), data, form)
    if len({Path(path).read_bytes() for path in paths}) == 1:
        names = " and ".join(map(os.path.basename, paths))
        return paths[0], [f"samples: {names} are equal: the truth is too small to move masks by several distances"]
    return paths[0], []


def _select_metrics(sample: str, scorers: list[Scorer], protocol: FamilyProtocol) -> dict[str, tuple[str, ...]]:
    """Return the metrics of each split that a sample of the truth defines; a leaderboard would show 0 for others."""
    metrics_of = {}
    for scorer in scorers:
        try:
            values = scorer.score(sample, examines=False).values
        except SubmissionError as error:
            raise HostError(f"the samples made from this truth cannot be scored: {error}") from None
        metrics_of[scorer.split] = tuple(metric for metric in protocol.metrics if values[metric] is not None)
        if not metrics_of[scorer.split]:
            raise HostError(f"the truth of {scorer.split} holds nothing that {protocol.name} can score")
    return metrics_of


def _choose_boards(
    metrics_of: dict[str, tuple[str, ...]], challenge: NewChallenge
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return each split's leaderboard columns, chosen among its defined metrics, and notes on omitted metrics."""
    notes = []
    for split, metrics in metrics_of.items():
        if without := [metric for metric in PROTOCOLS[challenge.protocol].metrics if metric not in metrics]:
            notes.append(f"truth: nothing to average for {', '.join(without)} in {split}: its leaderboard omits them")
    if challenge.all_metrics:
        return metrics_of, notes
    groups = tools_of(PROTOCOLS[challenge.protocol].family).label_groups
    boards = {split: choose_labels(metrics, groups) for split, metrics in metrics_of.items()}
    if boards != metrics_of:
        columns, count = max(map(len, boards.values())), max(map(len, metrics_of.values()))
        notes.append(f"leaderboard: {columns} of {count} metrics; choose others in phases.py, all with --all-metrics")
    return boards, notes


def choose_labels(metrics: tuple[str, ...], groups: Sequence[tuple[str, ...]] = ()) -> tuple[str, ...]:
    """Return the metrics of a leaderboard that fit a page: of each group all or none.

    Groups are those of the family, and parts of one metric beside each other: `Dice_WT`, `Dice_TC` and their like.
    """
    if len(metrics) <= MOST_LABELS:
        return metrics
    chosen: set[str] = set()
    is_cut = False
    for metric in metrics:
        named = next((group for group in groups if metric in group), ())
        members = {member for member in named if member in metrics} or _list_parts(metric, metrics)
        if metric in chosen or (is_cut and not named):
            continue
        if len(chosen | members) <= MOST_LABELS:
            chosen |= members
        else:
            is_cut = True
    return tuple(metric for metric in metrics if metric in chosen)


def _list_parts(metric: str, metrics: tuple[str, ...]) -> set[str]:
    """Return a metric and its siblings, parts of the same metric: `Dice_WT` for `Dice_TC`."""
    stem = re.match(r"[^-_@(]+[-_@(]", metric)
    runs = groupby(metrics, lambda name: bool(stem) and name.startswith(stem[0])) if stem else []
    return next((set(run) for run in (list(run) for _, run in runs) if metric in run), {metric})


def _render(folder: str, values: dict[str, Any], tools: FamilyTools) -> None:
    environment = Environment(
        loader=ChoiceLoader(
            [PackageLoader("segjudge.starting", "files"), DictLoader({"family.html.jinja": tools.read_template()})]
        ),
        autoescape=select_autoescape(["html.jinja"]),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    # A string in quotes is the same in YAML and in Python.
    environment.filters.update(
        quoted=partial(json.dumps, ensure_ascii=False), meaning=tools.describe_column, rises=tools.prefers_smaller
    )
    for path, template in _FILES.items():
        target = Path(folder, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(environment.get_template(f"{template}.jinja").render(values), encoding="utf-8")


def write_demo_truth(protocol: FamilyProtocol, folder: str) -> str:
    """Write a small synthetic truth in a benchmark's published form; return the path to pass as the truth."""
    paths = _write_files(tools_of(protocol.family).make_demo(protocol), folder)
    return str(paths[0]) if len(paths) == 1 else folder


def _write_files(content: Iterable[tuple[str, Any]], folder: str) -> list[Path]:
    """Write files by path below a folder: bytes, texts, or documents as JSON."""
    paths = []
    for name, file_content in content:
        paths.append(Path(folder, name))
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        data = file_content if isinstance(file_content, (bytes, str)) else json.dumps(file_content)
        paths[-1].write_bytes(data if isinstance(data, bytes) else data.encode())
    return paths


# ── titles ──────────────────────────────────────────────────────────────────


def _plain_title(text: str) -> str:
    """Return a title on one line, without unprintable characters."""
    words = "".join(char if char.isprintable() else " " for char in text).split()
    return " ".join(words)[:_MOST_IN_TEXTS]


def _evalai_title(title: str) -> str:
    """Return a title that EvalAI accepts: short, with a first word of a-z, 0-9, - and _, which URLs contain.

    The first word loses its accents, and its other marks become hyphens. If it is in another script, "Challenge" is put
    before it.
    """
    word, space, words = title.partition(" ")
    if not _ADDRESS.fullmatch(word):
        ascii_word = unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode()
        whole = sum(map(str.isalnum, ascii_word)) == sum(map(str.isalnum, unicodedata.normalize("NFKC", word)))
        address = re.sub(r"[^a-zA-Z0-9_]+", "-", ascii_word).strip("-")
        title = f"{address}{space}{words}" if address and whole else f"Challenge {title}"
    if len(title) <= _MOST:
        return title
    beginning, _, last_word = title[: _MOST - 1].rpartition(" ")
    if not beginning:
        return title[:_MOST]
    return f"{beginning} …" if len(last_word) < _MOST // 2 else f"{beginning} {last_word}…"
