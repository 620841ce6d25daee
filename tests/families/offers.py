"""The offers of a family beside scoring, as its texts call them: descriptions, opened and packed truths, samples."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import segjudge
from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS, folder_of
from segjudge.evaluation_script.families.base.family import ignore_progress
from segjudge.evaluation_script.masks.run_lengths import compress
from segjudge.families import FamilyTools, prefers_smaller, tools_of
from segjudge.families.base.challenges import move_image, move_runs, shift_of
from segjudge.families.base.tools import ScoredMethod
from segjudge.families.plugin_files import check_upload
from segjudge.families.truths import TruthSource, open_truth, pack, pack_truth
from segjudge.masks.demo import first_scenes
from tests import published
from tests.builders import written
from tests.pages import digest


def name_offers() -> Mapping[str, Any]:
    """Return the names for texts."""
    return {
        "segjudge": segjudge, "json": json, "Path": Path, "PROTOCOLS": PROTOCOLS, "tools_of": tools_of, "FamilyTools": FamilyTools,
        "ScoredMethod": ScoredMethod, "compress": compress, "move_runs": move_runs, "move_image": move_image, "shift_of": shift_of,
        "check_upload": check_upload, "list_metrics": list_metrics, "list_rules": list_rules, "offer": describe_offer,
        "open_truth": open_published, "pack": pack_published, "published": write_published, "write_files": write_files,
        "write_json": write_json, "list_demo": list_demo, "list_files": list_files,
    }  # fmt: skip


def list_metrics(family: str) -> str:
    """Describe each metric and its direction; restrictions of several metrics are listed once."""
    rows = FAMILIES[family].protocols.values()
    metrics = dict.fromkeys([*(metric for row in rows for metric in row.metrics), *FAMILIES[family].own_metrics])
    meanings = {metric: tools_of(family).describe_metric(metric) for metric in metrics}
    names = {meaning: metric for metric, meaning in meanings.items()}
    restricted: dict[str, list[str]] = {}
    lines = []
    for metric, meaning in meanings.items():
        signs = "".join(sorted({"↓" if prefers_smaller(metric, name) else "↑" for name in FAMILIES[family].protocols}))
        general, message = _split_meaning(meaning)
        if general in names:
            restricted.setdefault(message, []).append(f"{metric} {signs} of {names[general]}")
        else:
            lines.append(f"{metric} {signs}: {meaning}")
    return "\n".join([*lines, *(f"{text}: {', '.join(metrics)}" for text, metrics in restricted.items())])


def _split_meaning(meaning: str) -> tuple[str, str]:
    """Split off the restriction of a metric: "Recall, over static expressions" or "Recall (car)"."""
    general, _, message = meaning[:-1].rpartition(" (") if meaning.endswith(")") else meaning.rpartition(", ")
    return general, message


def list_rules(family: str) -> str:
    """List for all protocols the names of losses, the limits, and whether mistakes have kinds."""
    lines: dict[str, list[str]] = {}
    tools = tools_of(family)
    for protocol, row in FAMILIES[family].protocols.items():
        losses = tools.name_losses(row) if hasattr(tools, "name_losses") else ""
        kinds = _catch(lambda: tools.check_kinds(row)).replace(f" {protocol} ", " PROTOCOL ")  # noqa: B023
        lines.setdefault(f"losses {losses}, limits {tools.limits!r}, kinds {kinds}", []).append(protocol)
    return "\n".join(
        [
            f"layouts {', '.join(FAMILIES[family].layouts)}",
            *(f"{', '.join(names)}: {rules}" for rules, names in lines.items()),
        ]
    )


def describe_offer(protocol: str) -> str:
    """Describe a published truth: the facts for new challenges, its packed form, and the sample made from it."""
    rules, path = PROTOCOLS[protocol], write_published(protocol)
    (truth,) = open_truth(TruthSource(path), rules).splits.values()
    facts = tools_of(rules.family).describe_truth([truth], rules)
    notes = pack_truth(TruthSource(path), rules, f"{protocol}.zip", ignore_progress)
    with zipfile.ZipFile(f"{protocol}.zip") as archive:
        packed = [(name, archive.read(name)) for name in archive.namelist()]
    return "\n".join([
        f"facts {_sort(facts)}", f"packed {list_files(packed)}; notes {notes}",
        f"sample {list_files(tools_of(rules.family).make_sample([truth], rules, 0.07))}",
    ])  # fmt: skip


def open_published(
    protocol: str, path: str = "", layout: str = "", subset: str = "", unseen: str = "", categories: str = ""
) -> Any:
    return open_truth(TruthSource(path, layout, subset, unseen, categories), PROTOCOLS[protocol])


def pack_published(layout: str, path: str, split: str = "", out: str = "out.zip", **source: str) -> Any:
    return pack(TruthSource(path, layout, **source), out, split)


def write_published(protocol: str) -> str:
    """Write a truth as its benchmark publishes it; return its path."""
    folder = Path(protocol)
    folder.mkdir(exist_ok=True)
    return os.path.relpath(published.published(protocol, folder))


def list_demo(protocol: str) -> str:
    """List the synthetic truth of two short videos."""
    rules, short = PROTOCOLS[protocol], [replace(video, frames=6) for video in first_scenes()[:2]]
    module = import_module(f"segjudge.families.{folder_of(rules.family)}.challenges")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "first_scenes", lambda: short)
        content = [*tools_of(rules.family).make_demo(rules)]
    return list_files([(name, data if isinstance(data, bytes) else _sort(data).encode()) for name, data in content])


def write_files(folder: str, files: Any) -> None:
    written(Path(folder), files)


def write_json(name: str, document: Any) -> str:
    return str(written(Path(), {name: document}) / name)


def list_files(files: Iterable[tuple[str, bytes]]) -> str:
    """List the first files, and a digest of all content; of pictures, of the pixels."""
    listed = [(name, _decode(data)) for name, data in files]
    first = ", ".join(f"{name} {digest(data)}" for name, data in listed[:2])
    return f"{len(listed)} files: {first}, … {digest(repr(listed).encode())}"


def _decode(data: bytes) -> bytes:
    """Return the parts that do not change with the version of zlib."""
    if data.startswith((b"\x89PNG", b"II*\0")):
        with Image.open(io.BytesIO(data)) as image:
            return f"{image.mode} {image.size} {digest(image.tobytes())}".encode()
    with suppress(zlib.error):
        return zlib.decompress(data)
    return data


def _sort(facts: Any) -> str:
    return json.dumps(facts, sort_keys=True, default=str, ensure_ascii=False)


def _catch(call: Callable[[], Any]) -> str:
    try:
        return repr(call())
    except segjudge.UsageError as error:
        return f"UsageError: {error}"
