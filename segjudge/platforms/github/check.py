"""The check of a board's two folders: what a workflow would fail on, or publish, only later."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from segjudge.platforms.rules.problems import BundleProblem, BundleProblems, breaks_later, publishes_hidden, warning
from segjudge.system.files import digest_of_bytes

from .build import LOCK, PRIVATE_FOLDER, PUBLIC_FOLDER, SUBMIT_FORM, WORKFLOW, render_files
from .challenge import read_reveal, read_rules

#: The maximum bytes of a file that GitHub accepts.
_MOST_BYTES = 100_000_000
_WRITE = "Write it anew: segjudge new --board github, with another folder, has the text"


def check_board(folder: str) -> BundleProblems:
    """Yield the problems of a board beyond those of its challenge."""
    private, public = (os.path.join(folder, name) for name in (PRIVATE_FOLDER, PUBLIC_FOLDER))
    try:
        texts = render_files(private)
        read_rules(find_bundle(private), read_reveal(public))
    except HostError as error:
        yield BundleProblem("the board", str(error), "Correct it")
        return
    for path in (WORKFLOW, SUBMIT_FORM):
        yield from _check_text(path, texts[path], os.path.join(public, path))
    private_files, public_files = dict(_list_files(private)), dict(_list_files(public))
    for path in sorted({*private_files, *public_files}):
        if path.split("/")[0] in LOCK and private_files.get(path) != public_files.get(path):
            fault = "differs between the two folders, so the board scores by another Segjudge than you check with"
            yield breaks_later(path, fault, f"Copy it from {PRIVATE_FOLDER}/ to {PUBLIC_FOLDER}/")
    secrets = {digest: path for path, digest in private_files.items() if path.startswith(("annotations/", "examples/"))}
    for path, digest in public_files.items():
        if digest in secrets:
            fault = f"is {PRIVATE_FOLDER}/{secrets[digest]}, which everybody could read"
            yield publishes_hidden(f"{PUBLIC_FOLDER}/{path}", fault, "Remove it, also from the repository's history")
    for root, files in ((private, private_files), (public, public_files)):
        for path in files:
            if (size := os.path.getsize(os.path.join(root, path))) > _MOST_BYTES:
                fault = f"has {size:,} bytes; GitHub accepts files of {_MOST_BYTES:,}"
                yield breaks_later(path, fault, "Pack a smaller truth, or host it on EvalAI or Codabench")


def _check_text(path: str, expected: str, file: str) -> BundleProblems:
    """Yield a problem of a workflow or form that is not the one for this challenge."""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError):
        yield breaks_later(path, "cannot be read, so nothing is scored", _WRITE)
        return
    if text != expected:
        fault = "is not the text that this Segjudge writes for the phases of the challenge"
        yield warning(path, fault, f"{_WRITE}. If the change is yours, check it with zizmor and actionlint")


def _list_files(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the files below a folder with their digests, except git's own."""
    for file in sorted(Path(folder).rglob("*")):
        path = file.relative_to(folder).as_posix()
        if file.is_file() and not path.startswith(".git/"):
            yield path, digest_of_bytes(str(file))
