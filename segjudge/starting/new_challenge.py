"""A challenge as a small repository: its files, made from a truth and a protocol."""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import tempfile
import zipfile
from dataclasses import dataclass, field, replace
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from segjudge.datasets import packing
from segjudge.datasets.layouts import LAYOUTS
from segjudge.datasets.opening import TruthSource
from segjudge.errors import UsageError
from segjudge.evaluation_script import annotation_file, packed_file
from segjudge.evaluation_script.engine import check_fits
from segjudge.evaluation_script.errors import HostError, listed
from segjudge.evaluation_script.instance_protocols import InstanceProtocol
from segjudge.evaluation_script.phase import PROTOCOLS, TrackProtocol
from segjudge.evaluation_script.progress import Progress
from segjudge.evaluation_script.sequence_protocols import SequenceProtocol

from .hosted_tracks import HOSTED
from .lock import FILE as LOCK
from .lock import requirement
from .meanings import meaning, rises
from .moving import SAMPLES

#: Templates by the file that is made of each.
_FILES = {
    "challenge_config.yaml": "challenge_config.yaml",
    "evaluation_script/phases.py": "phases.py",
    **{
        f"templates/{name}.html": f"{name}.html"
        for name in (
            "description", "evaluation_details", "submission_guidelines", "terms_and_conditions", "phase",
        )
    },
    ".github/workflows/evalai.yml": "evalai.yml",
    ".gitignore": "gitignore",
    "README.md": "README.md",
}  # fmt: skip
_LOGO = os.path.join(os.path.dirname(__file__), "logo.png")
#: What EvalAI takes as a codename, and what may be a file's name.
_CODENAME = re.compile(r"[A-Za-z0-9][\w-]*")


@dataclass(frozen=True)
class NewChallenge:
    """What a host says of a challenge that is to be made."""

    folder: str
    protocol: str
    source: TruthSource
    title: str = ""
    #: The version, wheel or git address of the Segjudge that scores (default: this one).
    segjudge: str = ""
    today: datetime.date = field(default_factory=datetime.date.today)


def create(challenge: NewChallenge, progress: Progress) -> list[str]:
    """Write a repository in one step; return what is odd about the truth."""
    folder = os.path.abspath(challenge.folder)
    if os.path.lexists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise UsageError(
            f"{challenge.folder}: is there already, and nothing in it is written over; name another folder"
        )
    folder = os.path.realpath(folder)  # a link to an empty folder stays
    above = os.path.dirname(folder)
    try:
        os.makedirs(above, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=above, prefix=f".{os.path.basename(folder)}-") as temporary:
            made = os.path.join(temporary, "challenge")
            os.mkdir(made)
            notes = _write(challenge, made, progress)
            os.replace(made, folder)
    except OSError as error:
        raise HostError(f"{error.filename or folder}: cannot be written ({error.strerror})") from None
    return notes


def _write(challenge: NewChallenge, folder: str, progress: Progress) -> list[str]:
    protocol = PROTOCOLS[challenge.protocol]
    track = HOSTED[protocol.track]
    with open(os.path.join(folder, LOCK), "w", encoding="utf-8") as file:
        file.write(requirement(challenge.segjudge, folder))
    shutil.copyfile(_LOGO, os.path.join(folder, "logo.png"))
    os.mkdir(os.path.join(folder, "annotations"))
    packed = os.path.join(folder, "annotations", "truth.zip")
    notes = _pack(challenge.source, protocol, packed, progress)
    splits = annotation_file.read(packed, protocol.name).splits
    for name, truth in splits.items():
        check_fits(truth, protocol, name)
    truths = list(splits.values())
    wrong = [name for name in splits if not _CODENAME.fullmatch(name)]
    if wrong:
        raise UsageError(f"{listed(wrong)}: cannot be a codename on EvalAI; pack the truth with --split NAME first")
    phase = next(iter(splits)) if len(splits) == 1 else "all"
    annotations = f"annotations/{phase}.zip"
    os.rename(packed, os.path.join(folder, annotations))
    samples = os.path.join(folder, "examples", phase)
    os.makedirs(samples)
    for name, share in SAMPLES.items():
        with zipfile.ZipFile(os.path.join(samples, f"{name}.zip"), "w") as archive:
            for member, data in track.files(truths, protocol, share):
                form = zipfile.ZIP_STORED if member.endswith(".png") else zipfile.ZIP_DEFLATED
                archive.writestr(zipfile.ZipInfo(member, packed_file.EPOCH), data, form)
    title = re.sub(r"[-_]+", " ", os.path.basename(os.path.abspath(challenge.folder))).strip().capitalize()
    values = {
        "title": challenge.title or title,
        "start": challenge.today,
        "end": challenge.today + datetime.timedelta(days=365),
        "phase": phase,
        "annotations": annotations,
        "splits": list(splits),
        "protocol": protocol,
        "limits": track.limits,
        **track.facts(truths, protocol),
    }
    _render(folder, values)
    return notes


def _pack(source: TruthSource, protocol: TrackProtocol, out: str, progress: Progress) -> list[str]:
    """Write the truth as an annotation file; return what is odd about it."""
    if annotation_file.is_packed(source.path):
        shutil.copyfile(source.path, out)
        return []
    if isinstance(protocol, InstanceProtocol):
        return packing.pack_instances(source, out, split=source.subset, progress=progress)[1]
    if isinstance(protocol, SequenceProtocol):
        layout = source.layout or (protocol.name if protocol.name in LAYOUTS else "")
        return packing.pack(replace(source, layout=layout), out, progress=progress).notes
    return packing.pack_units(source, protocol.track, out)[1].notes


def _render(folder: str, values: dict[str, Any]) -> None:
    environment = Environment(
        loader=PackageLoader("segjudge.starting", "files"),
        autoescape=select_autoescape(["html.jinja"]),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters.update(quoted=_quoted, meaning=meaning, rises=rises)
    for path, template in _FILES.items():
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as file:
            file.write(environment.get_template(f"{template}.jinja").render(values))


def _quoted(text: str) -> str:
    """Return a text as a string of YAML and of Python."""
    return json.dumps(text, ensure_ascii=False)
