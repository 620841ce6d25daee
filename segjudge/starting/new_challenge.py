"""A challenge as a small repository: its files, made from a truth and a protocol."""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import tempfile
import zipfile
from dataclasses import dataclass, field
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from segjudge.datasets import packing
from segjudge.datasets.layouts import LAYOUTS
from segjudge.datasets.opening import DEFAULT_SPLIT, TruthSource, is_packed
from segjudge.errors import UsageError
from segjudge.evaluation_script import annotation_file, instance_truth
from segjudge.evaluation_script.annotation_file import SplitTruth
from segjudge.evaluation_script.archive_gzip import MAGIC as GZIP
from segjudge.evaluation_script.errors import HostError, counted, listed, verb
from segjudge.evaluation_script.instance_protocols import InstanceProtocol
from segjudge.evaluation_script.instance_truth import InstanceTruth
from segjudge.evaluation_script.phase import PROTOCOLS
from segjudge.evaluation_script.progress import Progress
from segjudge.evaluation_script.sequence_protocols import SequenceProtocol
from segjudge.evaluation_script.sequence_truth import Split

from .lock import FILE as LOCK
from .lock import requirement
from .meanings import meaning, rises
from .samples import HostedProtocol, write_samples

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
    if not isinstance(protocol, (SequenceProtocol, InstanceProtocol)):
        raise UsageError(f"there is no template of a challenge for {protocol.name}")
    with open(os.path.join(folder, LOCK), "w", encoding="utf-8") as file:
        file.write(requirement(challenge.segjudge, folder))
    shutil.copyfile(_LOGO, os.path.join(folder, "logo.png"))
    os.mkdir(os.path.join(folder, "annotations"))
    packed = os.path.join(folder, "annotations", "truth.zip")
    notes = _pack(challenge.source, protocol, packed, progress)
    truths = dict(annotation_file.read(packed).splits)
    wrong = [name for name in truths if not _CODENAME.fullmatch(name)]
    if wrong:
        raise UsageError(f"{listed(wrong)}: cannot be a codename on EvalAI; pack the truth with --split NAME first")
    phase = next(iter(truths)) if len(truths) == 1 else "all"
    annotations = f"annotations/{phase}.zip"
    os.rename(packed, os.path.join(folder, annotations))
    truths = dict(annotation_file.read(os.path.join(folder, annotations)).splits)
    samples = os.path.join(folder, "examples", phase)
    os.makedirs(samples)
    write_samples(truths, protocol, samples)
    values = {"phase": phase, "annotations": annotations, "splits": list(truths), "protocol": protocol.name}
    _render(folder, {**values, **_facts(challenge, protocol, truths)})
    return notes


def _pack(source: TruthSource, protocol: HostedProtocol, out: str, progress: Progress) -> list[str]:
    """Write the truth as an annotation file; return what is odd about it."""
    if is_packed(source.path) or (isinstance(protocol, InstanceProtocol) and zipfile.is_zipfile(source.path)):
        shutil.copyfile(source.path, out)
        return []
    if not isinstance(protocol, InstanceProtocol):
        layout = source.layout or (protocol.name if protocol.name in LAYOUTS else "")
        source = TruthSource(source.path, layout, source.subset, source.unseen)
        return packing.pack(source, out, progress=progress).notes
    if os.path.isdir(source.path):
        if not source.categories:
            raise UsageError(f"{source.path}: is a folder of PNGs, which needs --categories FILE")
        return packing.pack_places(source, out, split=source.subset, progress=progress)[1]
    opened = instance_truth.read(source.path)  # says what is wrong
    with open(source.path, "rb") as file:
        data = file.read()
    if data.startswith(GZIP):
        import gzip

        data = gzip.decompress(data)
    instance_truth.write(out, {source.subset or DEFAULT_SPLIT: data})
    return [note for truth in opened.values() for note in truth.notes]


def _facts(challenge: NewChallenge, protocol: HostedProtocol, truths: dict[str, SplitTruth]) -> dict[str, Any]:
    """Return what the templates say of a truth and a protocol."""
    name = os.path.basename(os.path.abspath(challenge.folder))
    title = challenge.title or re.sub(r"[-_]+", " ", name).strip().capitalize()
    facts: dict[str, Any] = {
        "title": title,
        "metrics": protocol.metrics,
        "rules": protocol.about,
        "start": challenge.today,
        "end": challenge.today + datetime.timedelta(days=365),
        "instances": isinstance(protocol, InstanceProtocol),
    }
    if isinstance(protocol, InstanceProtocol):
        images = [truth for truth in truths.values() if isinstance(truth, InstanceTruth)]
        first = images[0]
        kind, lengths = "video" if protocol.tubes else "image", first.images.frames
        total = counted(sum(len(truth.images.ids) for truth in images), kind)
        facts["content"] = (
            f"{total} with {len(first.categories):,} {verb(len(first.categories), 'category', 'categories')}"
        )
        facts["examples"] = [int(first.images.ids[0]), first.categories[0].id]
        height, width = first.images.sizes[0].tolist()
        facts["size"], facts["kind"] = [height, width if lengths is None else width // int(lengths[0])], kind
        facts["boxes"] = protocol.boxes
        facts["about"] = f"Find every object in {total}."
        return facts
    sequences = [sequence for truth in truths.values() if isinstance(truth, Split) for sequence in truth.sequences]
    frames = counted(sum(len(sequence.frames) for sequence in sequences), "frame")
    facts["content"] = f"{counted(len(sequences), 'video')} with {frames}"
    facts["overlapping"] = protocol.overlapping
    within = f"{protocol.rounds[0]}/" if protocol.rounds else ""
    facts["examples"] = [
        f"{within}{sequence.name}/{next(iter(sequence.objects), '1') + '/' if protocol.overlapping else ''}{frame}.png"
        for sequence in sequences[:2]
        for frame in sequence.frames[:2]
    ]
    facts["about"] = f"Segment the objects of {counted(len(sequences), 'video')}."
    return facts


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
