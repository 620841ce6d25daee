"""What EvalAI's starter would upload: it zips the whole checkout but for a few names.

A host who keeps the starter's GitHub action instead of ours uploads this, so
nothing secret may lie in the repository.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import zipfile

from segjudge.evaluation_script import packed_file
from segjudge.evaluation_script.errors import HostError
from segjudge.evaluation_script.packed_file import add_member

from .build import SCRIPT_FOLDER, files_named
from .fields import CONFIG
from .opened_bundle import Bundle
from .problems import BundleProblem, BundleProblems

_FOLDERS = {".git", ".github", "github", "code_upload_challenge_evaluation", "remote_challenge_evaluation"}
_FILES = {".gitignore", "challenge_config.zip", "README.md", "run.sh", "submission.json"}

_SECRET_NAMES = re.compile(
    r"(^|/)(\.env(\..*)?|\.netrc|id_(rsa|dsa|ecdsa|ed25519)|credentials|host_config\.json|token(\.json|\.txt)?|.*\.(pem|key|p12))$"
)
_SECRETS = {
    "an EvalAI token": re.compile(rb"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    "a key of AWS": re.compile(rb"\bAKIA[0-9A-Z]{16}\b"),
    "a token of GitHub": re.compile(rb"\b(gh[pousr]_\w{36}|github_pat_\w{22,})"),
    "a private key": re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "a Slack address": re.compile(rb"hooks\.slack\.com/services/\w+/\w+/\w+"),
}
_JOURNAL = re.compile(r"\.(sqlite3?|db)(-wal|-shm|-journal)?$|(^|/)\.segjudge/|(^|/)last_push\.json$|\.journal$")
_SEARCHED = 1 << 20


def files(root: str) -> list[str]:
    """Names of what lies in a checkout and is not left out; a fresh one has what git knows or would take."""
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard"],  # noqa: S607 - the host's git
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        raise HostError(f"{root}: is no git checkout, and the starter uploads a checkout")
    names = {name for name in os.fsdecode(listed.stdout).split("\0") if os.path.isfile(os.path.join(root, name))}
    return sorted(name for name in names if not _left_out(name))


def build(root: str, out: str) -> str:
    """The zip as the starter makes it."""
    names = files(root)
    script = io.BytesIO()
    with zipfile.ZipFile(script, "w", zipfile.ZIP_DEFLATED) as inner:
        for name in names:
            if name.startswith(f"{SCRIPT_FOLDER}/"):
                _add(inner, os.path.relpath(name, SCRIPT_FOLDER), root, name)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as whole:
        add_member(whole, f"{SCRIPT_FOLDER}.zip", script.getvalue())
        for name in names:
            _add(whole, name, root, name)
    return out


def strays(bundle: str) -> BundleProblems:
    """What should not leave the house with it."""
    with Bundle(bundle) as opened:
        named = {os.path.normpath(name) for name in files_named(opened.config)} | {CONFIG}
        for name in sorted(opened.names):
            if name == f"{SCRIPT_FOLDER}.zip" or name.endswith("/"):
                continue
            if name not in named and (name.startswith("annotations/") or _is_truth(opened, name)):
                yield BundleProblem(
                    name, f"is an annotation that {CONFIG} does not name", "Keep it out of the repository"
                )
            elif _JOURNAL.search(name):
                yield BundleProblem(name, "is a journal", "Keep it out of the repository, and in .gitignore")
            elif _SECRET_NAMES.search(name):
                yield BundleProblem(name, "has the name of a secret", "Keep it out of the repository, and renew it")
            elif opened.size(name) <= _SEARCHED or name.endswith((".txt", ".log", ".json", ".yaml", ".env", ".sh")):
                yield from _content(name, opened.read(name))


def _is_truth(bundle: Bundle, name: str) -> bool:
    """Whether a zip somewhere is a packed annotation file."""
    return (
        name.endswith(".zip")
        and not name.startswith("examples/")
        and bool(packed_file.track_of(io.BytesIO(bundle.read(name))))
    )


def _content(name: str, data: bytes) -> BundleProblems:
    for what, pattern in _SECRETS.items():
        if pattern.search(data):
            yield BundleProblem(name, f"holds {what}", "Take it out of the repository, and renew it")


def _left_out(name: str) -> bool:
    *folders, file = name.split("/")
    return bool(_FOLDERS & {*folders}) or file in _FILES


def _add(archive: zipfile.ZipFile, member: str, root: str, name: str) -> None:
    with open(os.path.join(root, name), "rb") as file:
        add_member(archive, member, file.read())
