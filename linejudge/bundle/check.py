"""`linejudge check`: the rules by which EvalAI rejects a bundle, all at once, before it is uploaded.

Each finding quotes the server's own words, so that they can be searched for.
Rules that need the server's state (what an update may change) are not here.
"""

from __future__ import annotations

import datetime
import io
import os
import re
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import yaml
from PIL import Image

from .agreement import Agreement
from .finding import Finding, Findings, items
from .lines import read, unreadable

HTML_KEYS = {
    "description": "Please add the challenge description",
    "evaluation_details": "Please add the evaluation details",
    "terms_and_conditions": "Please add the terms and conditions.",
    "submission_guidelines": "Please add the submission guidelines.",
}
MAPPING_KEYS = {
    "leaderboard_id": ("leaderboard", "Invalid leaderboard id {} found in challenge phase split {}."),
    "challenge_phase_id": ("challenge_phases", "Invalid phased id {} found in challenge phase split {}."),
    "dataset_split_id": ("dataset_splits", "Invalid dataset split id {} found in challenge phase split {}."),
}
SHOWN_KEYS = ("visibility", "leaderboard_decimal_precision", "is_leaderboard_order_descending")
WHOLE_NUMBERS = ("max_submissions_per_day", "max_submissions_per_month", "max_submissions")
META_TYPES = ("boolean", "text", "radio", "checkbox")
DOMAINS = ("CV", "NLP", "RL", "MM", "AUD", "TAB")
PYTHONS = ("3.7", "3.8", "3.9")
TITLE_LENGTH = 100
TAGS = 4
#: The server stores a file under a long temporary path of at most 100 characters.
PATH_LENGTH = 70
#: Its web server takes no larger upload.
UPLOAD_BYTES = 200 * 10**6


def check(bundle: str) -> list[Finding]:
    """Everything wrong with a built bundle."""
    if os.path.getsize(bundle) > UPLOAD_BYTES:
        return [Finding(bundle, "is larger than 200 MB", "Upload large annotation files with the evalai client")]
    with zipfile.ZipFile(bundle) as files:
        names = set(files.namelist())
        configs = [name for name in ("challenge_config.yaml", "challenge_config.yml") if name in names]
        if len(configs) != 1:
            quote = (
                "There is no YAML file in the zip file you uploaded!"
                if not configs
                else f"There are {len(configs)} challenge config YAML files instead of 1 in the zip file!"
            )
            return [Finding(bundle, f"holds {len(configs)} challenge configs", "Keep exactly one", quote)]
        try:
            config, lines = read(configs[0], files.read(configs[0]))
        except yaml.YAMLError as error:
            return [unreadable(configs[0], error)]
        if not isinstance(config, dict):
            return [Finding(configs[0], "is empty or no mapping of keys", "Write it as key: value")]
        checker = Checker(config, files)
        rules: list[Callable[[], Findings]] = [
            checker.challenge,
            checker.leaderboards,
            checker.phases,
            checker.splits,
            checker.mappings,
            checker.rest,
            Agreement(config, files).findings,
        ]
        return [replace(finding, at=lines.place(finding.where)) for rule in rules for finding in rule()]


class Checker:
    """The rules, block by block of the YAML."""

    def __init__(self, config: dict[str, Any], files: zipfile.ZipFile) -> None:
        self._config, self._files = config, files
        self._names = set(files.namelist())

    def challenge(self) -> Findings:
        """Title, texts, image, script and dates."""
        config = self._config
        title = config.get("title")
        if not title:
            yield Finding("title", "is missing", "Give the challenge a title", "Please add the challenge title")
        elif not isinstance(title, str):
            yield Finding("title", "is no text", "Put it in quotes")
        elif len(title) > TITLE_LENGTH:
            quote = "Ensure this field has no more than 100 characters."
            yield Finding("title", f"has {len(title)} characters", "Shorten it to 100", quote)
        for key, quote in HTML_KEYS.items():
            yield from self._html(key, config.get(key), quote)
        yield from self._image(config.get("image"))
        yield from self._script(config.get("evaluation_script"))
        yield from _dates("", config, "ERROR: Please add the start_date and end_date.", "")
        python = str(config.get("worker_python_version", "3.9"))
        if python not in PYTHONS:
            yield Finding(
                "worker_python_version",
                f"is {python}",
                "Use 3.9, which this bundle is written for",
                f'"{python}" is not a valid choice.',
            )

    def _html(self, where: str, path: Any, quote: str) -> Findings:
        key = where.rpartition(".")[2]
        if not path or not isinstance(path, str):
            yield Finding(where, "is missing", "Name an .html file of templates/", quote)
        elif _escapes(path):
            yield Finding(where, f"points outside the bundle ({path})", "Name a file", f"Invalid file path for {key}.")
        elif path not in self._names:
            quote = f"File at path {key} not found. Please specify a valid file path"
            yield Finding(where, f"names {path}, which is not there", "Add the file", quote)
        elif not path.endswith(".html"):
            quote = f"File {key} is not a HTML file. Please specify a valid HTML file"
            yield Finding(where, f"names {path}, which is no .html file", "Rename it", quote)
        else:
            yield from self._text(where, path)

    def _text(self, where: str, path: str) -> Findings:
        try:
            empty = not self._files.read(path).decode("utf-8").strip()
        except UnicodeDecodeError:
            yield Finding(where, f"{path} is not UTF-8", "Save it as UTF-8")
        else:
            if empty:
                yield Finding(where, f"{path} is empty", "Write the text", "This field may not be blank.")
        if len(path) > PATH_LENGTH:
            quote = "Ensure this filename has at most 100 characters"
            yield Finding(where, f"the path has {len(path)} characters", f"Keep it below {PATH_LENGTH}", quote)

    def _image(self, path: Any) -> Findings:
        if path is None:
            return
        quote = "The submitted data was not a file. Check the encoding type on the form."
        if not isinstance(path, str) or path not in self._names or not path.endswith((".jpg", ".jpeg", ".png")):
            yield Finding("image", f"names {path}, which is no .png or .jpg of the bundle", "Add the picture", quote)
            return
        try:
            Image.open(io.BytesIO(self._files.read(path))).verify()
        except (OSError, SyntaxError, ValueError):
            quote = "Upload a valid image. The file you uploaded was either not an image or a corrupted image."
            yield Finding("image", f"{path} is no picture", "Replace it", quote)

    def _script(self, path: Any) -> Findings:
        where = "evaluation_script"
        if not path:
            quote = (
                "ERROR: There is no key for the evaluation script in the YAML file. Please add it and then try again!"
            )
            yield Finding(where, "is missing", "Write evaluation_script: evaluation_script.zip", quote)
        elif not str(path).endswith(".zip"):
            quote = "ERROR: Please pass in a zip file as evaluation script."
            yield Finding(where, f"is {path}, no .zip", "Write evaluation_script.zip; the build makes it", quote)
        elif path not in self._names:
            quote = "ERROR: No evaluation script is present in the zip file. Please add it and then try again!"
            yield Finding(where, f"names {path}, which is not there", "Write evaluation_script.zip", quote)
        else:
            with zipfile.ZipFile(io.BytesIO(self._files.read(path))) as script:
                names = script.namelist()
            if "__init__.py" not in names or any("/" in name for name in names):
                yield Finding(where, "is not a flat package with __init__.py", "Keep all modules in one folder")

    def leaderboards(self) -> Findings:
        """Labels and ordering."""
        boards = items(self._config, "leaderboard")
        if not boards:
            quote = "ERROR: There is no key for the leaderboard in the YAML file. Please add it and then try again!"
            yield Finding("leaderboard", "is missing or empty", "Add a leaderboard", quote)
        for place, board in enumerate(boards):
            where, number = f"leaderboard[{place}]", board.get("id")
            if number is None:
                yield Finding(where, "has no id", "Number it", "ERROR: There is no leaderboard ID for the leaderboard.")
            schema = board.get("schema")
            if not isinstance(schema, dict):
                quote = f"ERROR: There is no leaderboard schema for the leaderboard with ID: {number}."
                yield Finding(where, "has no schema", "Add schema with labels and default_order_by", quote)
                continue
            yield from _schema(where, number, schema)

    def phases(self) -> Findings:
        """Codenames, files, dates and limits."""
        phases = items(self._config, "challenge_phases")
        if not phases:
            quote = "ERROR: No challenge phase key found. Please add challenge phases in the YAML file and try again!"
            yield Finding("challenge_phases", "is missing or empty", "Add a phase", quote)
        seen: Counter[Any] = Counter()
        for place, phase in enumerate(phases):
            where, codename = f"challenge_phases[{place}]", phase.get("codename")
            for key in ("id", "name"):
                if phase.get(key) is None:
                    yield Finding(f"{where}.{key}", "is missing", "Add it; the server answers with an error 500")
            seen[codename] += 1
            if not codename:
                quote = "ERROR: No codename found for the challenge phase. Please add a codename and try again!"
                yield Finding(f"{where}.codename", "is missing", "Add one, as in phases.py", quote)
            elif seen[codename] > 1:
                quote = f"ERROR: Duplicate codename {codename} for phase {phase.get('name')}."
                yield Finding(f"{where}.codename", f"{codename} is there twice", "Rename one of them", quote)
            quote = f" ERROR: There is no key for description in phase {phase.get('name')}."
            yield from self._html(f"{where}.description", phase.get("description"), quote)
            yield from self._annotation(where, phase)
            yield from _dates(
                where, phase, "ERROR: Please add the start_date and end_date in challenge phase {}.", where
            )
            yield from _phase_rules(where, phase)

    def _annotation(self, where: str, phase: dict[str, Any]) -> Findings:
        path = phase.get("test_annotation_file")
        where = f"{where}.test_annotation_file"
        quote = f"ERROR: No test annotation file found in the zip file for challenge phase {phase.get('name')}"
        if path is None:
            if not self._config.get("remote_evaluation") and not self._config.get("is_docker_based"):
                yield Finding(where, "is missing", "Name one: EvalAI's worker dies without, though it says nothing")
        elif not isinstance(path, str) or _escapes(path) or path not in self._names:
            yield Finding(where, f"names {path}, which is not there", "Make it with linejudge pack", quote)
        elif not self._files.getinfo(path).file_size:
            yield Finding(where, f"{path} is empty", "Make it anew", "The submitted file is empty.")

    def splits(self) -> Findings:
        """Dataset splits."""
        splits = items(self._config, "dataset_splits")
        if not splits:
            yield Finding(
                "dataset_splits", "is missing or empty", "Add a split", "ERROR: There is no key for dataset splits."
            )
        seen: Counter[Any] = Counter()
        for place, split in enumerate(splits):
            where, number = f"dataset_splits[{place}]", split.get("id")
            if number is None:
                yield Finding(f"{where}.id", "is missing", "Number it; the server answers with an error 500")
            for key in ("name", "codename"):
                if not split.get(key):
                    quote = f"ERROR: There is no {key} for dataset split {number}."
                    yield Finding(f"{where}.{key}", "is missing", "Add it", quote)
            seen[split.get("codename")] += 1
            if split.get("codename") and seen[split["codename"]] > 1:
                quote = f"ERROR: Duplicate codename {split['codename']} for dataset split {split.get('name')}."
                yield Finding(f"{where}.codename", "is there twice", "Rename one of them", quote)

    def mappings(self) -> Findings:
        """Which phase shows which split on which leaderboard."""
        rows = items(self._config, "challenge_phase_splits")
        if not rows:
            quote = "ERROR: There is no key for challenge phase splits."
            yield Finding("challenge_phase_splits", "is missing or empty", "Map each phase to its splits", quote)
        triples: Counter[tuple[Any, ...]] = Counter()
        pairs: Counter[tuple[Any, Any]] = Counter()
        for place, row in enumerate(rows):
            where = f"challenge_phase_splits[{place}]"
            missing = [key for key in SHOWN_KEYS if row.get(key) is None]
            if missing:
                quote = "ERROR: The following keys are missing in the challenge phase splits of YAML file"
                yield Finding(where, f"lacks {', '.join(missing)}", "Add them: none has a default here", quote)
            if row.get("visibility") not in (None, 1, 2, 3, "1", "2", "3"):
                quote = f'"{row["visibility"]}" is not a valid choice.'
                yield Finding(f"{where}.visibility", "is not 1, 2 or 3", "1 host, 2 owner and host, 3 public", quote)
            for key, (block, words) in MAPPING_KEYS.items():
                if row.get(key) not in [item.get("id") for item in items(self._config, block)]:
                    quote = "ERROR: " + words.format(row.get(key), place + 1)
                    yield Finding(f"{where}.{key}", f"{row.get(key)!r} is no id of {block}", "Mend the id", quote)
            triples[tuple(row.get(key) for key in MAPPING_KEYS)] += 1
            pairs[row.get("challenge_phase_id"), row.get("dataset_split_id")] += 1
        if any(count > 1 for count in triples.values()):
            quote = "ERROR: Duplicate combinations of leaderboard_id {}, challenge_phase_id {} and dataset_split_id {}"
            yield Finding("challenge_phase_splits", "maps a split twice", "Remove one of them", quote)
        elif any(count > 1 for count in pairs.values()):
            yield Finding(
                "challenge_phase_splits", "shows a split of a phase twice", "The worker fails on two: keep one"
            )

    def rest(self) -> Findings:
        """Tags, domain and sponsors."""
        tags = self._config.get("tags") or []
        if len(tags) > TAGS:
            quote = "ERROR: Tags are limited to 4. Please remove extra tags then try again!"
            yield Finding("tags", f"has {len(tags)} tags", "Keep four", quote)
        if "domain" in self._config and self._config["domain"] not in DOMAINS:
            quote = "ERROR: Domain name is incorrect. Please enter correct domain name then try again!"
            yield Finding("domain", f"is {self._config['domain']}", f"Use one of {', '.join(DOMAINS)}", quote)


def _schema(where: str, number: Any, schema: dict[str, Any]) -> Findings:
    labels, order = schema.get("labels"), schema.get("default_order_by")
    if not labels:
        quote = f"ERROR: There is no 'labels' key in the schema for the leaderboard with ID: {number}."
        yield Finding(f"{where}.schema.labels", "is missing", "List the metrics", quote)
    if not order:
        quote = f"ERROR: There is no 'default_order_by' key in the schema for the leaderboard with ID: {number}."
        yield Finding(f"{where}.schema.default_order_by", "is missing", "Name one of the labels", quote)
    elif labels and order not in labels:
        quote = (
            f"ERROR: The 'default_order_by' value '{order}' in the schema for the leaderboard "
            f"with ID: {number} is not a valid label."
        )
        yield Finding(f"{where}.schema.default_order_by", f"{order} is no label", "Name one of the labels", quote)
    metadata = schema.get("metadata") or {}
    for label, entry in metadata.items() if isinstance(metadata, dict) else ():
        if label not in (labels or []):
            yield Finding(f"{where}.schema.metadata", f"{label} is no label", "Remove it or mend its name")
        elif not isinstance(entry, dict) or "sort_ascending" not in entry:
            yield Finding(
                f"{where}.schema.metadata.{label}", "lacks sort_ascending", "Add it: without it EvalAI sorts upwards"
            )


def _phase_rules(where: str, phase: dict[str, Any]) -> Findings:
    name, number = phase.get("name"), phase.get("id")
    if phase.get("is_submission_public") and phase.get("is_restricted_to_select_one_submission"):
        quote = (
            f"ERROR: is_submission_public can't be 'True' for challenge phase '{name}' with "
            "is_restricted_to_select_one_submission 'True'."
        )
        yield Finding(f"{where}.is_submission_public", "contradicts the restriction to one", "Set it to False", quote)
    for key in WHOLE_NUMBERS:
        value = phase.get(key)
        if value is not None and not re.fullmatch(r"\d+", str(value)):
            yield Finding(f"{where}.{key}", f"is {value!r}", "Write a whole number", "A valid integer is required.")
    if phase.get("max_submissions") is None and phase.get("max_submissions_per_month") is None:
        yield Finding(where, "has no max_submissions", "Add it", "This field may not be null.")
    for attribute in phase.get("submission_meta_attributes") or []:
        missing = [key for key in ("name", "description", "type") if not attribute.get(key)]
        if missing:
            quote = "ERROR: Please enter the following fields for the submission meta attribute in challenge phase"
            yield Finding(f"{where}.submission_meta_attributes", f"lacks {', '.join(missing)}", "Add them", quote)
        elif attribute["type"] not in META_TYPES:
            quote = (
                f"ERROR: Please ensure that the submission meta attribute types for the attribute '{attribute['type']}'"
            )
            yield Finding(f"{where}.submission_meta_attributes", "has a type of its own", f"Use {META_TYPES}", quote)
        elif attribute["type"] in ("radio", "checkbox") and not attribute.get("options"):
            quote = f"ERROR: Please include at least one option in the attribute for challenge phase {number}"
            yield Finding(f"{where}.submission_meta_attributes", "has no options", "Add some", quote)


def _dates(where: str, holder: dict[str, Any], quote: str, phase: str) -> Findings:
    prefix = f"{where}." if where else ""
    start, end = holder.get("start_date"), holder.get("end_date")
    if start is None or end is None:
        yield Finding(f"{prefix}start_date", "or end_date is missing", "Add both", quote.format(holder.get("id")))
        return
    for key, value in (("start_date", start), ("end_date", end)):
        if not isinstance(value, datetime.datetime):
            yield Finding(
                f"{prefix}{key}",
                f"is {value!r}, no date with a time",
                "Write it unquoted, as 2026-01-01 00:00:00",
                "Datetime has wrong format." if isinstance(value, str) else "Expected a datetime but got a date.",
            )
            return
    if _utc(start) > _utc(end):
        tail = f" in challenge phase {holder.get('id')}." if phase else "."
        yield Finding(
            f"{prefix}start_date",
            "is after the end",
            "Mend the dates",
            f"ERROR: Start date cannot be greater than end date{tail}",
        )


def _utc(moment: datetime.datetime) -> datetime.datetime:
    return moment.replace(tzinfo=datetime.UTC) if moment.tzinfo is None else moment.astimezone(datetime.UTC)


def _escapes(path: str) -> bool:
    return os.path.isabs(path) or os.path.normpath(path).startswith("..")
