"""`segjudge build --platform codabench`: competitions made from EvalAI's bundle.

On Codabench, the phases of a competition may neither overlap nor touch, and share one leaderboard.
"""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from PIL import Image, UnidentifiedImageError

from segjudge.evaluation_script.families import FOLDERS, PROTOCOLS
from segjudge.evaluation_script.files.packed import replace_file
from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.scoring.phase import Phase
from segjudge.families.pins import describe_missing
from segjudge.families.plugin_files import read_toolkits
from segjudge.kernel.compiling import CompileError, cache_folder, run_pip
from segjudge.platforms.evalai.bundle.annotations import refuse_annotations
from segjudge.platforms.evalai.bundle.build import list_samples, open_built
from segjudge.platforms.evalai.bundle.bundle_source import CONFIG, PHASES_FILE, BundleSource
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
from segjudge.platforms.evalai.bundle.phase_splits import MappedSplit, has_public_board, is_published, splits_of
from segjudge.platforms.evalai.bundle.scorers import list_protocols
from segjudge.platforms.evalai.bundle.secrecy import explain_withheld_phase, find_hidden_splits, find_withheld_splits
from segjudge.platforms.imports import find_imports
from segjudge.platforms.rules.problems import mappings_in
from segjudge.report.page import templates
from segjudge.system.errors import OptionError
from segjudge.system.files import zip_files
from segjudge.system.python310 import read_moment

from . import scoring_program
from .opened_competition import CAP, TITLE

#: The image with Python 3.12 and the scientific packages; the default one has Python 3.7.
_IMAGE = "codalab/codalab-legacy:py312"
#: The seconds that a run needs in addition to scoring.
_SPARE = 120
#: The shortest pause between two phases.
_GAP = datetime.timedelta(seconds=1)
_OUT = os.path.join("dist", "codabench")
#: The formats that Codabench accepts, by the endings that it expects.
_PICTURES = {"PNG": ".png", "JPEG": ".jpg", "GIF": ".gif", "WEBP": ".webp"}
_WIDTH = 256
_PROGRAM, _COMMAND = "score.py", "command: python3 score.py /app/input /app/output\n"
_SCRIPT = "evaluation_script"
#: Packages by name and hash: for the scorers, and for pages.
_LOCK, _PAGE_LOCK = (Path(__file__).with_name(name) for name in ("wheels.txt", "page-wheels.txt"))
#: Options of pip: the image's Python and system, no compiling, and only packages with the listed hashes.
_OPTIONS = (
    *("--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--require-hashes"),
    *("--python-version", "3.12", "--implementation", "cp", "--abi", "abi3", "--abi", "cp312"),
    *("--platform", "manylinux2014_x86_64", "--platform", "manylinux_2_17_x86_64"),
    *("--platform", "manylinux_2_28_x86_64"),
)
#: The package, and the module that makes pages.
_PACKAGE, _MAKER = Path(__file__).parents[2], "segjudge.scoring.report"
#: Modules that are imported later: families' displays of a phase's data, and the search for plug-ins.
_LATER = [f"segjudge.families.{folder}{module}" for folder in FOLDERS for module in ("", ".stored")]
_LATER.append("segjudge.system.plugins")
#: Packages next to the scoring program, which are mounted in the package of the page's program.
_SCORERS = "segjudge.evaluation_script"
_MOUNT = """import os

__path__ = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../evaluation_script")]
"""
_DATA_FILES = ("report/pages/*", "families/*/pages/*", "families/*/published.json", "interactive/davis_sequences.csv")
#: The maximum characters of texts that Codabench shows, other than the title.
_LONGEST_NAME, _LONGEST_REWARD, _SHORT = 256, 256, 36
_TERMS, _LOGO, _SCORING = "terms.html", "logo", "scoring_program.zip"
_VERSION = 2
#: The folders of the truth and of the samples of a phase.
_REFERENCE, _KIT = "reference_data/{}.zip", "starting_kit/{}.zip"
#: The texts of EvalAI's pages by the titles of Codabench's.
_PAGES = {"description": "Overview", "evaluation_details": "Evaluation", "submission_guidelines": "Submission"}
#: EvalAI's keys without a counterpart.
_LOST = (
    *("allowed_email_domains", "blocked_email_domains", "banned_email_ids", "max_team_members", "sponsors"),
    *("anonymous_leaderboard", "forum_url"),
)
_LOST_OF_PHASE = {
    "max_submissions_per_month": "Codabench counts per day and in total",
    "max_concurrent_submissions_allowed": "Codabench's queue decides",
    "allowed_email_ids": "enter them in Codabench's editor",
    "is_restricted_to_select_one_submission": "the leaderboard shows each participant's best",
}


@dataclass(frozen=True)
class _BoardColumn:
    """A column of Codabench's leaderboard: a label of a split."""

    key: str
    split: str
    label: str
    ascending: bool
    precision: int
    hidden: bool
    description: str = ""


@dataclass(frozen=True)
class _DatedPhase:
    """A phase with its columns, the one that ranks first, and its dates in UTC."""

    config: dict[str, Any]
    boards: tuple[object, ...]
    columns: tuple[_BoardColumn, ...]
    start: datetime.datetime
    end: datetime.datetime
    #: Codenames of splits whose scores visitors may not see, and of omitted splits.
    hidden: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def codename(self) -> str:
        return str(self.config["codename"])


#: Phases of one competition, each of which ends before the next begins.
_Chain = list[_DatedPhase]
#: Differences from the challenge on EvalAI, with the codenames or keys that they concern.
Notes = dict[str, list[str]]


@dataclass(frozen=True)
class CodabenchOptions:
    """The host's options for competitions on Codabench."""

    #: The Docker image that scores.
    image: str = _IMAGE
    #: The UUID of a queue of your own; "" for the public one.
    queue: str = ""
    #: Keep hidden splits as columns that Codabench's page hides.
    hidden: bool = False
    #: Put the kernel into the scoring program, if there is one.
    kernel: bool = True
    #: Offer the samples for download; most samples are derived from the truth.
    samples: bool = False


@dataclass(frozen=True)
class BuiltCompetition:
    """A competition's zip, and its phases."""

    path: str
    title: str
    codenames: list[str]
    #: Whether its scorers have the kernel, in words; "" if that is not known.
    about_kernel: str = ""

    def __str__(self) -> str:
        size = f"({os.path.getsize(self.path) / 1e3:,.0f} kB)"
        about = ", ".join(filter(None, [size, self.about_kernel]))
        return f"{os.path.relpath(self.path)} {about}: {', '.join(self.codenames)}"


@dataclass(frozen=True)
class BuiltCompetitions:
    """All competitions of a bundle, and their differences from the challenge on EvalAI."""

    competitions: list[BuiltCompetition] = field(default_factory=list)
    #: Notes for the host: each text and its subject.
    notes: Notes = field(default_factory=dict)


@dataclass(frozen=True)
class _Source:
    """The opened EvalAI bundle, with the data common to all competitions."""

    root: str
    bundle: Bundle
    options: CodabenchOptions
    #: The phases of `phases.py` by codename.
    scored: Mapping[str, Phase]
    script: Mapping[str, bytes]
    notes: Notes
    about_kernel: str


def build(bundle: BundleSource, out: str = "", options: CodabenchOptions | None = None) -> BuiltCompetitions:
    """Write one zip for each competition into a folder; the same files give the same bytes."""
    options = options or CodabenchOptions()
    out = out or os.path.join(bundle.root, _OUT)
    notes: Notes = {}
    phases = {phase.codename: phase for phase in bundle.phases()}
    try:
        with open_built(bundle, kernel=options.kernel) as (opened, about_kernel):
            source = _Source(bundle.root, opened, options, phases, opened.read_script(), notes, about_kernel)
            return BuiltCompetitions(_build_all(source, out), notes)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise HostError(
            f"{CONFIG}: has missing or invalid keys by EvalAI's rules ({error!r}). Run `segjudge check`"
        ) from None


def _build_all(source: _Source, out: str) -> list[BuiltCompetition]:
    config = source.bundle.config
    if source.bundle.has_flag("is_docker_based"):
        raise HostError("is_docker_based: Codabench accepts only results here, not code; build it without that flag")
    if source.bundle.has_flag("remote_evaluation"):
        own_queue = "with --queue, your own worker scores"
        _note(source.notes, "remote_evaluation", f"Codabench's worker scores; {own_queue}")
    refuse_annotations(source.bundle, source.scored.values())
    phases = _collect_phases(config, source.scored, hidden=source.options.hidden)
    for phase in phases:
        if not phase.columns:
            reason, _ = explain_withheld_phase(phase.config)
            _note(source.notes, phase.codename, f"is omitted, because {reason} (--hidden keeps it)")
    competitions = _chain_phases([phase for phase in phases if phase.columns], source.notes)
    if not competitions:
        remedy = "Set leaderboard_public: True and visibility: 3, and remove hidden=True, for one, or name --hidden"
        raise HostError(f"no phase has a split that participants may see. {remedy}.")
    built = []
    for chain in competitions:
        names = " and ".join(str(phase.config["name"]) for phase in chain)
        title = config["title"] if len(competitions) == 1 else f"{config['title']}: {names}"
        path = os.path.join(out, "+".join(phase.codename for phase in chain) + ".zip")
        try:
            os.makedirs(out, exist_ok=True)
            with replace_file(path) as partial:
                Path(partial).write_bytes(zip_files(_collect_files(source, chain, title)))
        except OSError as error:
            raise HostError(f"{path}: cannot be written ({error.strerror})") from None
        built.append(BuiltCompetition(path, title, [phase.codename for phase in chain], source.about_kernel))
    return built


def _collect_files(source: _Source, chain: _Chain, title: str) -> dict[str, bytes]:
    config, options = source.bundle.config, source.options
    texts = {key: source.bundle.read(config[key]) for key in _PAGES if config.get(key)}
    document = _make_document(config, chain, title, texts, options.queue, options.image)
    logo, picture = _logo(source)
    document.update(image=logo, tasks=[], phases=[], leaderboards=[_leaderboard_entry(chain)])
    terms = _page_text(source.bundle.read(config["terms_and_conditions"]))
    files = {logo: picture, _TERMS: terms.encode(), _SCORING: _scoring_zip(source, chain)}
    for key in [key for key in texts if texts[key]]:
        files[f"pages/{key}.html"] = _page_text(texts[key]).encode()
        if key == "evaluation_details":  # with the meanings of columns, which Codabench's leaderboard cannot show
            columns = [column for column in _collect_columns(chain) if column.description]
            files[f"pages/{key}.html"] += templates().get_template("columns.html").render(columns=columns).encode()
    for index, phase in enumerate(chain):
        seconds = _seconds(source, phase)
        description = _page_text(source.bundle.read(phase.config["description"]))
        entry = _phase_entry(phase, index, description, seconds)
        files[_REFERENCE.format(phase.codename)] = _reference_zip(source, phase, title, seconds)
        paths = list_samples(source.root, phase.codename) if options.samples else []
        if paths and phase.hidden:
            fault = f"the samples of {phase.codename} may give away {', '.join(phase.hidden)}, which is hidden"
            remedy = f"Build it without --samples, or move them out of {os.path.dirname(paths[0])}"
            raise OptionError(f"samples: {fault}. {remedy}.")
        if paths:
            kit = {os.path.basename(path): Path(path).read_bytes() for path in paths}
            entry["starting_kit"] = _KIT.format(phase.codename)
            files[entry["starting_kit"]] = zip_files(kit)
        document["tasks"].append(_task_entry(phase, index))
        document["phases"].append(entry)
    _check_lengths(document)
    _note_losses(config, chain, source.notes)
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
    return {"competition.yaml": text.encode(), **files}


# ── phases as competitions ────────────────────────────────────────────────────────────────────────────────────────


def _note(notes: Notes, subject: str, text: str) -> None:
    """Add a note, once."""
    if subject not in notes.setdefault(text, []):
        notes[text].append(subject)


def _collect_phases(config: dict[str, Any], scored: Mapping[str, Phase], *, hidden: bool) -> list[_DatedPhase]:
    """Return the phases; with `hidden`, hidden splits become hidden columns."""
    rows = mappings_in(config, "challenge_phases")
    return [_make_phase(config, row, scored.get(str(row["codename"])), keeps_hidden=hidden) for row in rows]


def _make_phase(
    config: dict[str, Any], phase: dict[str, Any], scored: Phase | None, *, keeps_hidden: bool
) -> _DatedPhase:
    codename = str(phase["codename"])
    hidden, withheld = (find(config, codename, scored) for find in (find_hidden_splits, find_withheld_splits))
    # A hidden column cannot rank.
    splits = sorted(splits_of(config, phase), key=lambda split: split.codename in hidden)
    secret_splits = [split for split in splits if split.codename in withheld]
    shown_splits = [split for split in splits if keeps_hidden or split not in secret_splits]
    columns: list[_BoardColumn] = []
    for split in shown_splits:
        # The first split of every phase has the plain labels, so that the column that ranks is never empty.
        columns += _list_columns(split, f"{split.codename}: " if columns else "", is_hidden=split.codename in hidden)
    left_out = tuple(split.codename for split in splits if split not in shown_splits)
    boards = tuple(dict.fromkeys(split.row["leaderboard_id"] for split in shown_splits))
    start, end = _parse_date(phase["start_date"]), _parse_date(phase["end_date"])
    secrets = tuple(split.codename for split in secret_splits)
    return _DatedPhase(phase, boards, tuple(columns), start, end, secrets, left_out)


def _list_columns(split: MappedSplit, prefix: str, *, is_hidden: bool) -> list[_BoardColumn]:
    metadata = split.schema.get("metadata") or {}
    columns = []
    for label in sorted(split.schema["labels"], key=lambda label: label != split.schema["default_order_by"]):
        entry = metadata.get(label)
        about = str(entry.get("description", "")) if isinstance(entry, dict) else ""
        precision, ascending = int(split.row["leaderboard_decimal_precision"]), not split.is_descending(label)
        columns.append(_BoardColumn(f"{prefix}{label}", split.codename, label, ascending, precision, is_hidden, about))
    return columns


def _parse_date(value: object) -> datetime.datetime:
    """Return a date of the config, in UTC, without a zone, as Codabench expects."""
    moment = read_moment(str(value))
    return moment.astimezone(datetime.timezone.utc).replace(tzinfo=None) if moment.tzinfo else moment


def _chain_phases(phases: Sequence[_DatedPhase], notes: Notes) -> list[_Chain]:
    """Return chains of phases, one per competition, noting moved dates.

    A competition has phases of one leaderboard, either all public or all not.
    """
    competitions: list[_Chain] = []
    for phase in sorted(phases, key=lambda phase: phase.start):
        for chain in competitions:
            latest = chain[-1]
            same = latest.boards == phase.boards and is_published(latest.config) == is_published(phase.config)
            if not same or phase.start < latest.end:
                continue
            if phase.start == latest.end:
                _note(notes, phase.codename, "starts one second later, because phases must not touch on Codabench")
                phase = replace(phase, start=phase.start + _GAP)  # noqa: PLW2901
            chain.append(phase)
            break
        else:
            competitions.append([phase])
    order = {phase.codename: number for number, phase in enumerate(phases)}
    return sorted(competitions, key=lambda chain: order[chain[0].codename])


def _collect_columns(chain: _Chain) -> list[_BoardColumn]:
    """Return the distinct columns of the phases, the ranking one first."""
    columns: dict[str, _BoardColumn] = {}
    for phase in chain:
        for column in phase.columns:
            columns.setdefault(column.key, column)
    return list(columns.values())


# ── the written files ───────────────────────────────────────────────────────────────────────────────────────────────


def _make_document(
    config: dict[str, Any], chain: _Chain, title: str, texts: dict[str, bytes], queue: str, image: str
) -> dict[str, Any]:
    """Return the content of `competition.yaml`, without the parts that depend on the phases' files."""
    pages = [{"title": title, "file": f"pages/{key}.html"} for key, title in _PAGES.items() if texts.get(key)]
    document: dict[str, Any] = {
        "version": _VERSION,
        "title": title,
        "description": config.get("short_description") or "",
        "image": _LOGO,
        "terms": _TERMS,
        "pages": pages,
        "docker_image": image,
        "registration_auto_approve": True,
        "enable_detailed_results": True,
        "forum_enabled": bool(config.get("enable_forum", True)),
        "can_participants_make_submissions_public": any(phase.config.get("is_submission_public") for phase in chain),
    }
    prizes = sorted(config.get("prizes") or [], key=lambda prize: int(prize["rank"]))
    reward = ", ".join(f"{prize['rank']}: {prize['amount']}" for prize in prizes)
    optional = {"reward": reward, "queue": queue, "fact_sheet": _fact_sheet(chain)}
    return {**document, **{key: value for key, value in optional.items() if value}}


def _phase_entry(phase: _DatedPhase, index: int, description: str, seconds: int) -> dict[str, Any]:
    """Return the entry of a phase, with missing limits written as null."""
    return {
        "index": index,
        "name": phase.config["name"],
        "description": description,
        "start": _write_date(phase.start),
        "end": _write_date(phase.end),
        "tasks": [index],
        "max_submissions_per_day": phase.config.get("max_submissions_per_day"),
        "max_submissions": phase.config.get("max_submissions"),
        "execution_time_limit": seconds + _SPARE,
    }


def _task_entry(phase: _DatedPhase, index: int) -> dict[str, Any]:
    """Return the entry of a phase's task."""
    return {
        "index": index,
        "name": phase.config["name"],
        "description": f"{phase.codename}: {', '.join(dict.fromkeys(column.split for column in phase.columns))}",
        "scoring_program": _SCORING,
        "reference_data": _REFERENCE.format(phase.codename),
    }


def _leaderboard_entry(chain: _Chain) -> dict[str, Any]:
    return {
        "title": "Leaderboard",
        "key": "main",
        "submission_rule": "Force_Best",
        "primary_index": 0,
        "hidden": not all(has_public_board(phase.config) for phase in chain),
        "columns": [
            {
                "title": column.key,
                "key": column.key,
                "index": index,
                "sorting": "asc" if column.ascending else "desc",
                "precision": column.precision,
                "hidden": column.hidden,
            }
            for index, column in enumerate(_collect_columns(chain))
        ],
    }


def _write_date(moment: datetime.datetime) -> str:
    """Return a date as text, since unquoted dates lose their time on Codabench."""
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _fact_sheet(chain: _Chain) -> dict[str, Any]:
    """Return the questions for participants; flags are texts on Codabench."""
    sheet: dict[str, Any] = {}
    for phase in chain:
        for question in phase.config.get("submission_meta_attributes") or []:
            kind, selection = {
                "boolean": ("checkbox", [True, False]),
                "radio": ("select", question.get("options") or []),
            }.get(question["type"], ("text", ""))
            sheet[question["name"]] = {
                "key": question["name"],
                "type": kind,
                "title": question["name"],
                "selection": selection,
                "is_required": "true" if question.get("required") else "false",
                "is_on_leaderboard": "false",
            }
    return sheet


def _page_text(text: bytes) -> str:
    """Return text without indentation, which Markdown treats as code."""
    lines = text.decode("utf-8").splitlines()
    return "\n".join(lines if b"<pre" in text else [line.strip() for line in lines]) + "\n"


def _check_lengths(document: dict[str, Any]) -> None:
    """Raise `HostError` for texts that are too long for Codabench."""
    names = [(phase["name"], _LONGEST_NAME) for phase in document["phases"]]
    keys = [(column["key"], _SHORT) for board in document["leaderboards"] for column in board["columns"]]
    texts = [(document["title"], TITLE), (document.get("reward", ""), _LONGEST_REWARD), *names, *keys]
    long = [
        f"{text!r} has {len(text)} characters; Codabench allows {limit}" for text, limit in texts if len(text) > limit
    ]
    if long:
        raise HostError("\n".join(long))


def _note_losses(config: dict[str, Any], chain: _Chain, notes: Notes) -> None:
    """Record each feature that Codabench lacks, with its replacement."""
    for key in [key for key in _LOST if config.get(key)]:
        _note(notes, key, "has no counterpart on Codabench and is omitted")
    for phase in chain:
        subject = phase.codename
        for key in [key for key in _LOST_OF_PHASE if phase.config.get(key)]:
            _note(notes, subject, f"{key} is omitted; {_LOST_OF_PHASE[key]}")
        if not is_published(phase.config):
            _note(notes, subject, "is not public, so its competition stays unpublished; push publishes none")
        if not has_public_board(phase.config):
            _note(notes, subject, "only Codabench's page hides its leaderboard: the API shows it to anybody")
        if any(column.hidden for column in phase.columns):
            _note(notes, subject, "only Codabench's page hides its hidden columns: the API shows them to anybody")
        for split in phase.left_out:
            _note(notes, subject, f"{split} is omitted, because only Codabench's page hides it (--hidden keeps it)")
        for question in phase.config.get("submission_meta_attributes") or []:
            if question["type"] == "checkbox":
                _note(
                    notes,
                    subject,
                    f"the question {question['name']!r} becomes a text field: Codabench has no multiple choice",
                )
    if len({len(phase.columns) for phase in chain}) > 1:
        _note(notes, chain[0].codename, "the phases have different splits, so their leaderboard has gaps")


def _seconds(source: _Source, phase: _DatedPhase) -> int:
    limit = source.scored[phase.codename].seconds
    seconds = limit if source.options.queue else min(limit, CAP - _SPARE)
    if seconds < limit:
        cap = f"the public queue allows {CAP} for a run (--queue names your own)"
        _note(source.notes, phase.codename, f"scoring may take {seconds} seconds, not {limit}, because {cap}")
    return seconds


def _logo(source: _Source) -> tuple[str, bytes]:
    """Return the logo's name and bytes, made if missing, since Codabench requires one."""
    name = source.bundle.config.get("image")
    if not name:
        _note(source.notes, "image", "is missing, but Codabench requires one, so a plain one was made")
        return _save_picture(Image.new("RGB", (_WIDTH, _WIDTH), "#3b6fb6"))
    data = source.bundle.read(name)
    try:
        with Image.open(io.BytesIO(data)) as picture:
            ending = _PICTURES.get(picture.format or "")
            return (_LOGO + ending, data) if ending else _save_picture(picture)
    except (OSError, ValueError) as error:
        reason = "" if isinstance(error, UnidentifiedImageError) else f" ({error})"  # which names an object in memory
        raise HostError(f"{name}: is not a readable picture, but Codabench requires one{reason}") from None


def _save_picture(picture: Image.Image) -> tuple[str, bytes]:
    out = io.BytesIO()
    picture.convert("RGB").save(out, "PNG")
    return f"{_LOGO}.png", out.getvalue()


def _scoring_zip(source: _Source, chain: _Chain) -> bytes:
    """Return the zip of the scoring program: command, scorers, and missing packages."""
    files = {"metadata.yaml": _COMMAND.encode(), _PROGRAM: Path(scoring_program.__file__).read_bytes()}
    files.update({f"{_SCRIPT}/{name}": data for name, data in source.script.items()})
    scored = source.scored
    names = [split.protocol for phase in chain for split in scored[phase.codename].splits]
    protocols = list_protocols(source.bundle.script, names)
    for name in names:
        if name not in protocols:
            raise HostError(f"{_SCRIPT}/{PHASES_FILE}: {describe_missing(source.root, [name])}")
    codenames = [
        phase.codename
        for phase in chain
        if any(protocols[split.protocol].needs_packages for split in scored[phase.codename].splits)
    ]
    if codenames and source.options.image == _IMAGE:
        try:
            packages = _read_wheels()
            files.update({f"{scoring_program.PACKAGES}/{name}": data for name, data in packages.items()})
        except CompileError as error:
            reason = f"pycocotools, which the image lacks, cannot be downloaded ({error})"
            _note(source.notes, ", ".join(codenames), f"cannot be scored on Codabench, because {reason}")
    elif codenames:
        _note(source.notes, ", ".join(codenames), f"needs pycocotools, which {source.options.image} must have")
    codenames = [phase.codename for phase in chain if _page_of(source, phase)]
    if codenames:
        try:
            files.update(
                {f"{scoring_program.PACKAGES}/{name}": data for name, data in _read_wheels(_PAGE_LOCK).items()}
            )
            shown = [split.protocol for name in codenames for split in scored[name].splits]
            files.update(_read_page_files(scoring_program.PAGE_PROGRAM, shown))
            if unknown := [name for name in shown if name not in PROTOCOLS]:
                reason = f"the plug-in with {unknown[0]} is not installed here"
                _note(source.notes, ", ".join(codenames), f"has a page without its family's sections, because {reason}")
        except CompileError as error:
            reason = f"Jinja2, which makes the full page, cannot be downloaded ({error})"
            _note(source.notes, ", ".join(codenames), f"has a plain page for submissions, because {reason}")
    return zip_files(files)


def _page_of(source: _Source, phase: _DatedPhase) -> str:
    """Return the detail of a submission's page: all, means, or only the leaderboard.

    Everybody reads it, so sequences are shown only if the truth is public.
    """
    settings = source.scored[phase.codename]
    return "" if not settings.report else "all" if settings.detail == "all" else "means"


def _reference_zip(source: _Source, phase: _DatedPhase, title: str, seconds: int) -> bytes:
    """Return the zip of a phase's truth and task description."""
    name = phase.config.get("test_annotation_file")
    if not name:
        raise HostError(f"{phase.codename}: has no test_annotation_file, but Codabench's worker scores it")
    annotations = os.path.basename(name)
    task = {
        "phase": phase.codename,
        "title": f"{title}: {phase.config['name']}" if str(phase.config["name"]) not in title else title,
        "annotations": annotations,
        "seconds": seconds,
        "page": _page_of(source, phase),
        "columns": [
            {"key": column.key, "split": column.split, "label": column.label, "hidden": column.hidden}
            for column in phase.columns
        ],
    }
    text = json.dumps(task, indent=1, ensure_ascii=False) + "\n"
    return zip_files({scoring_program.TASK: text.encode(), annotations: source.bundle.read(name)})


def _read_wheels(lock: Path = _LOCK) -> dict[str, bytes]:
    """Read the locked wheels' files by their paths; pip fetches them once, into the user's cache.

    Raises `CompileError` with the reason if they are unavailable.
    """
    folder = cache_folder() / f"codabench-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
    if not folder.is_dir():
        run_pip(folder, ["download", *_OPTIONS, "-r", str(lock), "-d"])
    files: dict[str, bytes] = {}
    for path in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(path) as wheel:
            files.update({name: wheel.read(name) for name in wheel.namelist() if not name.endswith("/")})
    return files


def _read_page_files(program: str, protocols: list[str]) -> dict[str, bytes]:
    """Return the page program's files, with the package and these protocols' plug-ins."""
    folder = Path(program).parent
    paths = {Path(__file__).with_name("page_program.py"): Path(program)}
    data_files = [path for pattern in _DATA_FILES for path in sorted(_PACKAGE.glob(pattern)) if path.is_file()]
    toolkits = read_toolkits(protocols)
    modules = [data for name, data in toolkits.items() if name.endswith(".py")]
    imported = [name for text in modules for name in find_imports(text) if name.package == "segjudge"]
    for path in [*_module_files([_MAKER, *(name.name for name in imported)]), *data_files]:
        paths[path] = folder / path.relative_to(_PACKAGE.parent)
    files = {target.as_posix(): path.read_bytes() for path, target in paths.items()}
    files[(folder / _SCORERS.replace(".", "/") / "__init__.py").as_posix()] = _MOUNT.encode()
    return files | {(folder / _PACKAGE.name / name).as_posix(): data for name, data in toolkits.items()}


def _module_files(names: list[str]) -> list[Path]:
    """Return the files of modules and of the package's modules that they import."""
    paths: dict[str, Path] = {}
    pending = [*names, *_LATER]
    while pending:
        module = pending.pop()
        path = _module_file(module)
        if path is not None and module not in paths and not module.startswith(_SCORERS):
            paths[module] = path
            package = module if path.name == "__init__.py" else module.rpartition(".")[0]
            pending.append(module.rpartition(".")[0])
            for imported in find_imports(path.read_bytes()):
                if imported.is_certain and imported.members:
                    base = ".".join(filter(None, [package if imported.level else "", imported.name]))
                    pending += [base, *(f"{base}.{member}" for member in imported.members)]
    return [paths[module] for module in sorted(paths)]


def _module_file(module: str) -> Path | None:
    stem = _PACKAGE.parent / module.replace(".", "/")
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if module and path.is_file()), None)
