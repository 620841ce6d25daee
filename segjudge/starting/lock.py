"""The line of `requirements.txt` with the Segjudge that scores, and what changed in scores since."""

from __future__ import annotations

import json
import os
import re
import shutil
import urllib.parse
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.version import InvalidVersion, Version

from segjudge.bundle.problems import BundleProblems, warning
from segjudge.errors import UsageError
from segjudge.evaluation_script.version import VERSION

FILE = "requirements.txt"
WHEELS = "wheels"
_CHANGELOG = os.path.join(os.path.dirname(__file__), "CHANGELOG.md")
_ACCEPTED = re.compile(r"^[^#\n]*\bsegjudge\b[^#\n]*#\s*scores as of (\S+)", re.MULTILINE)


def requirement(source: str, folder: str) -> str:
    """Return the line that locks a version, a wheel (which is copied into the folder) or a git address."""
    source = source or _installed_from()
    if "://" in source:
        is_whole = source.startswith("git+") or source.endswith(".whl")
        wanted = f"segjudge @ {source if is_whole else f'git+{source}'}"
    elif source.endswith(".whl"):
        if not os.path.isfile(source):
            raise UsageError(f"--segjudge {source}: there is no such wheel")
        os.makedirs(os.path.join(folder, WHEELS))
        wanted = f"./{WHEELS}/{os.path.basename(source)}"
        shutil.copyfile(source, os.path.join(folder, wanted))
    else:
        try:
            wanted = f"segjudge=={Version(source)}"
        except InvalidVersion:
            raise UsageError(f"--segjudge {source}: is not a version, a wheel or a git address") from None
    return f"{wanted}  # scores as of {VERSION}\n"


def _installed_from() -> str:
    """Return the wheel or git address that Segjudge was installed from, else its version."""
    try:
        origin = json.loads(distribution("segjudge").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        origin = {}
    url = str(origin.get("url", ""))
    if "vcs_info" in origin:
        return f"git+{url}@{origin['vcs_info']['commit_id']}"
    path = urllib.parse.unquote(urllib.parse.urlsplit(url).path)
    return path if path.endswith(".whl") and os.path.isfile(path) else VERSION


def score_moves(root: str) -> BundleProblems:
    """Yield a warning for each change of scores since the version that a repository's lock names."""
    try:
        accepted = _ACCEPTED.search(Path(root, FILE).read_text(encoding="utf-8"))
        before = Version(accepted[1]) if accepted else None
    except (OSError, ValueError):
        return
    if before is None or before == Version(VERSION):
        return
    if before > Version(VERSION):
        found = f"has scores as of {before}, and Segjudge {VERSION} is installed"
        yield warning(FILE, found, f"Install what it names: pip install -r {FILE}")
        return
    for version, change in _changes():
        if before < version:
            remedy = f"Score again what is on the leaderboard, then write # scores as of {VERSION}"
            yield warning(FILE, f"has scores as of {before}; {version} changed them: {change}", remedy)


def _changes() -> Iterator[tuple[Version, str]]:
    """Yield the changelog's entries about scores with their versions; what is not released is part of this one."""
    text = Path(_CHANGELOG).read_text(encoding="utf-8")
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        number = re.match(r"\[?v?(\d[\w.]*)", section)
        for block in re.findall(r"^### Scores\n(.*?)(?=^#|\Z)", section, re.MULTILINE | re.DOTALL):
            for entry in re.findall(r"^- (.*(?:\n  .*)*)", block, re.MULTILINE):
                yield Version(number[1] if number else VERSION), " ".join(entry.split()).rstrip(".")
