"""A challenge bundle rebuilt from EvalAI's answers, and its differences from the host's own."""

from __future__ import annotations

import datetime
import io
import os
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from segjudge.evaluation_script.files import HostError, printable
from segjudge.platforms.evalai.bundle.build import build
from segjudge.platforms.evalai.bundle.bundle_source import CONFIG, SCRIPT_FOLDER, UNREADABLE
from segjudge.platforms.evalai.bundle.fields import CHALLENGE, FILES, MAPPING, PHASE, PRIZE, SPONSOR, TEXTS
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle, BundleRefusedError, escapes
from segjudge.platforms.evalai.bundle.yaml_lines import parse_config
from segjudge.platforms.rules.fields import MOMENT, Field, as_datetime
from segjudge.system.files import file_name

#: Keys whose values are people's addresses.
PEOPLE_KEYS = ("allowed_email_ids", "banned_email_ids")
#: Keys that EvalAI sets, which a host does not write.
_SET_BY_SERVER = ("annotations_uploaded_using_cli", "id")


@dataclass(frozen=True)
class ChallengeRows:
    """The server's rows of a challenge: everything that its YAML holds."""

    challenge: dict[str, Any]
    phases: list[dict[str, Any]]
    #: Phase splits, and their leaderboards and dataset splits by number.
    mappings: list[dict[str, Any]]
    leaderboards: dict[int, dict[str, Any]]
    splits: dict[int, dict[str, Any]]
    prizes: list[dict[str, Any]] = field(default_factory=list)
    sponsors: list[dict[str, Any]] = field(default_factory=list)


def rebuild_config(
    rows: ChallengeRows, files: Mapping[str, str], *, people: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a challenge's YAML as a mapping, and the texts that it names by their paths.

    `files` has the paths of the bundle's fetched files: the "image", and annotations by the codenames of phases.
    """
    texts = {f"templates/{key}.html": str(rows.challenge.get(key) or "") for key in TEXTS}
    config = _copy_fields(rows.challenge, CHALLENGE, people=people)
    config |= {key: f"templates/{key}.html" for key in TEXTS} | {"evaluation_script": f"{SCRIPT_FOLDER}.zip"}
    if "image" in files:
        config["image"] = files["image"]
    config["tags"] = [str(tag) for tag in rows.challenge.get("list_tags") or []]
    for key, table, fields in (("prizes", rows.prizes, PRIZE), ("sponsors", rows.sponsors, SPONSOR)):
        if table:
            config[key] = [{name: row.get(name) for name in fields} for row in table]
    boards, splits = _number(rows.leaderboards.values()), _number(rows.splits.values())
    phases = _number(rows.phases)
    config["leaderboard"] = [{"id": boards[key], "schema": row["schema"]} for key, row in rows.leaderboards.items()]
    config["challenge_phases"] = []
    for row in rows.phases:
        codename = str(row["codename"])
        page = f"templates/phase-{file_name(codename)}.html"
        texts[page] = str(row.get("description") or "")
        phase = {"id": phases[row["id"]], **_copy_fields(row, PHASE, people=people), "description": page}
        if codename in files:
            phase["test_annotation_file"] = files[codename]
        config["challenge_phases"].append(phase)
    config["dataset_splits"] = [
        {"id": splits[key], "name": row["name"], "codename": row["codename"]} for key, row in rows.splits.items()
    ]
    config["challenge_phase_splits"] = [
        {
            "challenge_phase_id": phases[row["challenge_phase"]],
            "leaderboard_id": boards[row["leaderboard"]],
            "dataset_split_id": splits[row["dataset_split"]],
            **{key: row[key] for key in MAPPING if not key.endswith("_id")},
        }
        for row in rows.mappings
    ]
    return config, texts


def _copy_fields(row: Mapping[str, Any], fields: Mapping[str, Field], *, people: bool) -> dict[str, Any]:
    """Return the values of a row that the YAML has as well, without files and empty ones."""
    copied = {}
    for key, about in fields.items():
        value = row.get(key)
        if about.kind in FILES or value in (None, "", []) or key in _SET_BY_SERVER:
            continue
        if key in PEOPLE_KEYS and not people:
            continue
        copied[key] = _read_date(value) if about.kind == MOMENT else value
    return copied


def _read_date(value: object) -> datetime.datetime:
    date = as_datetime(str(value).replace("Z", "+00:00"))
    if date is None:
        raise HostError(f"the platform answers with the date {printable(value)}, which is none")
    return date.astimezone(datetime.timezone.utc).replace(tzinfo=None)


def _number(rows: Iterable[dict[str, Any]]) -> dict[int, int]:
    """Return the number in the YAML of each row; if EvalAI's web form made them without, the rows' keys."""
    numbers = {int(row["id"]): row.get("config_id") for row in rows}
    given_numbers = {key: int(number) for key, number in numbers.items() if number is not None}
    return given_numbers if len({*given_numbers.values()}) == len(numbers) else {key: key for key in numbers}


def read_host_bundle(folder: str) -> dict[str, bytes]:
    """Return the files of a host's own bundle as `segjudge build` packs them; raises HostError for a faulty one."""
    with tempfile.TemporaryDirectory(prefix="segjudge-") as temporary:
        path = build(folder, os.path.join(temporary, "bundle.zip"), lenient=True).path
        try:
            with Bundle(path) as bundle:
                return {name: bundle.read(name) for name in bundle.names if not name.endswith("/")}
        except BundleRefusedError as error:
            raise HostError(str(error.problem)) from None


def unpack_script(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return a bundle's files with those of its evaluation script in a folder, in the place of their zip."""
    script = files.get(f"{SCRIPT_FOLDER}.zip")
    if script is None:
        return files
    try:
        with zipfile.ZipFile(io.BytesIO(script)) as archive:
            members = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    except UNREADABLE:
        return files
    if any(map(escapes, members)):
        return files
    further_files = {name: data for name, data in files.items() if name != f"{SCRIPT_FOLDER}.zip"}
    return {**further_files, **{f"{SCRIPT_FOLDER}/{name}": data for name, data in members.items()}}


def list_differences(ours: Mapping[str, bytes], theirs: Mapping[str, bytes]) -> list[str]:
    """Return what differs between the platform's bundle and the host's own, a line each.

    Files that the YAML names are compared by content, wherever they lie.
    """
    platform_values, bundle_values = (_as_values(files) for files in (ours, theirs))
    return [
        f"{key}: the platform has {_show(platform_values.get(key))}, the bundle {_show(bundle_values.get(key))}"
        for key in sorted(platform_values.keys() | bundle_values.keys())
        if platform_values.get(key) != bundle_values.get(key)
    ]


def _as_values(files: Mapping[str, bytes]) -> dict[str, object]:
    """Return a bundle as a flat mapping: keys of the YAML with plain values or contents, and files of the script."""
    config = parse_config(CONFIG, files.get(CONFIG, b"{}"))
    values = dict(_flatten("", config, files))
    return {**values, **{name: data for name, data in files.items() if name.startswith(f"{SCRIPT_FOLDER}/")}}


def _flatten(name: str, value: object, files: Mapping[str, bytes]) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flatten(f"{name}.{key}" if name else str(key), item, files)
    elif isinstance(value, list) and all(isinstance(item, dict) for item in value):
        for item in value:
            label = item.get("codename") or "-".join(str(item[key]) for key in item if key.endswith("id"))
            yield from _flatten(f"{name}[{label}]", item, files)
    else:
        yield name, files.get(os.path.normpath(value), value) if isinstance(value, str) else value


def _show(value: object) -> str:
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    return "nothing" if value is None else printable(value)
