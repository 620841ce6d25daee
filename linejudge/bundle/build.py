"""`linejudge build`: the zip that EvalAI takes, from a list of what goes in."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from typing import Any

import yaml

from evaluation_script.errors import HostError
from evaluation_script.truth import add_member

from .lines import read, unreadable

CONFIG = "challenge_config.yaml"
SCRIPT = "evaluation_script"
OUT = os.path.join("dist", "challenge_config.zip")

#: Keys of the YAML whose value is a path to a file of the bundle.
CHALLENGE_FILES = ("description", "evaluation_details", "terms_and_conditions", "submission_guidelines", "image")
PHASE_FILES = ("description", "test_annotation_file")


def build(root: str, out: str = "") -> str:
    """Write the bundle below `dist/`; the same files give the same bytes."""
    out = out or os.path.join(root, OUT)
    config = read_config(root)
    os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
    partial = out + ".partial"
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as bundle:
        add_member(bundle, CONFIG, _bytes(root, CONFIG))
        add_member(bundle, f"{SCRIPT}.zip", script_zip(root))
        for name in dict.fromkeys(files_named(config)):
            add_member(bundle, name, _bytes(root, name))
    os.replace(partial, out)
    return out


def read_config(root: str) -> dict[str, Any]:
    """The YAML, which must be a mapping."""
    try:
        config, _ = read(CONFIG, _bytes(root, CONFIG))
    except yaml.YAMLError as error:
        raise HostError(str(unreadable(CONFIG, error))) from None
    if not isinstance(config, dict):
        raise HostError(f"{CONFIG}: is empty or no mapping of keys")
    return config


def files_named(config: dict[str, Any]) -> Iterator[str]:
    """Files that the YAML names and that lie in the bundle as they are."""
    phases = config.get("challenge_phases")
    for holder, keys in (
        (config, CHALLENGE_FILES),
        *((phase, PHASE_FILES) for phase in (phases if isinstance(phases, list) else [])),
    ):
        if isinstance(holder, dict):
            yield from (holder[key] for key in keys if isinstance(holder.get(key), str))


def script_zip(root: str) -> bytes:
    """`evaluation_script/` as a flat zip: the modules and the requirements, nothing else."""
    folder = os.path.join(root, SCRIPT)
    if not os.path.isdir(folder):
        raise HostError(f"{SCRIPT}/: is not there")
    names = sorted(name for name in os.listdir(folder) if name.endswith(".py") or name == "requirements.txt")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as script:
        for name in names:
            add_member(script, name, _bytes(root, os.path.join(SCRIPT, name)))
    return out.getvalue()


def _bytes(root: str, name: str) -> bytes:
    path = os.path.realpath(os.path.join(root, name))
    if not path.startswith(os.path.realpath(root) + os.sep):
        raise HostError(f"{name}: lies outside the bundle")
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise HostError(f"{name}: cannot be read ({error.strerror}); {CONFIG} names it") from None
