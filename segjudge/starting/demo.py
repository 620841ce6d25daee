"""A small synthetic truth in the form in which a benchmark publishes its own."""

from __future__ import annotations

import json
from pathlib import Path

from segjudge.evaluation_script.families.base.family import FamilyProtocol
from segjudge.families import tools_of


def write_published(protocol: FamilyProtocol, folder: str) -> str:
    """Write the truth of a benchmark into a folder; return what to name as the truth."""
    paths = []
    for name, content in tools_of(protocol.track).make_demo(protocol):
        paths.append(Path(folder, name))
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        data = content if isinstance(content, (bytes, str)) else json.dumps(content)
        paths[-1].write_bytes(data if isinstance(data, bytes) else data.encode())
    return str(paths[0]) if len(paths) == 1 else folder
