"""`segjudge build`: the zip that EvalAI takes, from a list of what goes in."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from segjudge.evaluation_script.errors import HostError
from segjudge.evaluation_script.packed_file import add_member, replaced

from .fields import CHALLENGE, CONFIG, FILES, PHASE, SCRIPT
from .opened_bundle import escapes
from .problems import items
from .variants import Change, as_wanted, changed
from .yaml_lines import read, unreadable

SCRIPT_FOLDER = "evaluation_script"
OUT = os.path.join("dist", "challenge_config.zip")
_CHALLENGE_FILES = [key for key, field in CHALLENGE.items() if field.kind in FILES and field.kind != SCRIPT]
_PHASE_FILES = [key for key, field in PHASE.items() if field.kind in FILES]


@dataclass(frozen=True)
class Built:
    """A zip, and how its config differs from the host's."""

    path: str
    changes: list[Change] = field(default_factory=list)


def build(root: str, out: str = "", variant: str = "", image: str = "", *, lenient: bool = False) -> Built:
    """Write the bundle below `dist/`; the same files give the same bytes.

    Without a variant the config goes in as it is.  `lenient` leaves out what is not there, for `check` to tell.
    """
    out = out or os.path.join(root, OUT)
    text = _bytes(root, CONFIG)
    changes: list[Change] = []
    config = _config(text, lenient=lenient)
    if variant and config:
        edited, changes = changed(text.decode("utf-8"), variant, image)
        text = edited.encode("utf-8")
        config = _config(text)
        as_wanted(config, variant)
    names = {os.path.normpath(name): name for name in files_named(config)}
    missing = [name for name in names if not _there(root, name)]
    if missing and not lenient:
        raise HostError("\n".join(f"{name}: {_absent(root, name)}, and {CONFIG} names it" for name in missing))
    inputs = [os.path.realpath(os.path.join(root, name)) for name in (CONFIG, *names)]
    if os.path.realpath(out) in inputs:
        raise HostError(f"{out}: is a file of the bundle, and would be written over")
    try:
        os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
        with replaced(out) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as bundle:
            add_member(bundle, CONFIG, text)
            add_member(bundle, f"{SCRIPT_FOLDER}.zip", script_zip(root))
            for name in names:
                if name not in missing:
                    add_member(bundle, name, _bytes(root, name))
    except OSError as error:
        raise HostError(f"{out}: cannot be written ({error.strerror})") from None
    return Built(out, changes)


def read_config(root: str) -> dict[str, Any]:
    """The YAML, which must be a mapping."""
    return _config(_bytes(root, CONFIG))


def _config(text: bytes, *, lenient: bool = False) -> dict[str, Any]:
    try:
        config, _ = read(CONFIG, text)
    except yaml.YAMLError as error:
        if lenient:
            return {}
        raise HostError(str(unreadable(CONFIG, error))) from None
    if isinstance(config, dict):
        return config
    if lenient:
        return {}
    raise HostError(f"{CONFIG}: is empty or no mapping of keys")


def files_named(config: dict[str, Any]) -> Iterator[str]:
    """Files that the YAML names and that lie in the bundle as they are."""
    holders = [(config, _CHALLENGE_FILES), *((phase, _PHASE_FILES) for phase in items(config, "challenge_phases"))]
    for holder, keys in holders:
        yield from (holder[key] for key in keys if isinstance(holder.get(key), str) and holder[key])


def script_zip(root: str) -> bytes:
    """`evaluation_script/` as a flat zip: the modules and the requirements, nothing else."""
    folder = os.path.join(root, SCRIPT_FOLDER)
    if not os.path.isdir(folder):
        raise HostError(f"{SCRIPT_FOLDER}/: is not there")
    names = sorted(name for name in os.listdir(folder) if name.endswith(".py") or name == "requirements.txt")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as script:
        for name in names:
            add_member(script, name, _bytes(root, os.path.join(SCRIPT_FOLDER, name)))
    return out.getvalue()


def _there(root: str, name: str) -> bool:
    return not escapes(name) and _inside(root, name) and os.path.isfile(os.path.join(root, name))


def _absent(root: str, name: str) -> str:
    return "is a link that leads outside the bundle" if os.path.exists(os.path.join(root, name)) else "is not there"


def _inside(root: str, name: str) -> bool:
    return os.path.realpath(os.path.join(root, name)).startswith(os.path.realpath(root) + os.sep)


def _bytes(root: str, name: str) -> bytes:
    if not _inside(root, name):
        raise HostError(f"{name}: lies outside the bundle")
    try:
        with open(os.path.join(root, name), "rb") as file:
            return file.read()
    except OSError as error:
        raise HostError(f"{name}: cannot be read ({error.strerror})") from None
