"""The zip that EvalAI's starter uploads: the whole checkout but for a few names.

A host who keeps the starter's GitHub action uploads this, so nothing secret may lie in the repository.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import zipfile
from pathlib import Path

from segjudge.evaluation_script.files import packed as packed_file
from segjudge.evaluation_script.files.packed import add_member
from segjudge.evaluation_script.files.problems import HostError

from .build import files_named
from .bundle_source import SCRIPT_FOLDER
from .fields import CONFIG
from .opened_bundle import Bundle
from .problems import BundleProblem, BundleProblems

_SKIPPED_FOLDERS = {".git", ".github", "github", "code_upload_challenge_evaluation", "remote_challenge_evaluation"}
_SKIPPED_FILES = {".gitignore", "challenge_config.zip", "README.md", "run.sh", "submission.json"}

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
_JOURNAL_NAMES = re.compile(r"\.(sqlite3?|db)(-wal|-shm|-journal)?$|(^|/)\.segjudge/|(^|/)last_push\.json$|\.journal$")
#: Larger files are searched for secrets only when they are texts.
_SEARCHED_BYTES, _TEXTS = 1 << 20, (".txt", ".log", ".json", ".yaml", ".env", ".sh")


def uploaded_files(root: str) -> list[str]:
    """Return the files that the starter uploads from a fresh clone: those that git tracks or would add."""
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard"],  # noqa: S607 - the host's git
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        raise HostError(f"{root}: is not a git checkout, and the starter uploads a checkout")
    names = {name for name in os.fsdecode(listed.stdout).split("\0") if os.path.isfile(os.path.join(root, name))}
    return sorted(name for name in names if not _is_skipped(name))


def build_starter_zip(root: str, out: str) -> str:
    """Write the zip as the starter makes it; return its path."""
    names = uploaded_files(root)
    script = io.BytesIO()
    with zipfile.ZipFile(script, "w", zipfile.ZIP_DEFLATED) as inner:
        for name in names:
            if name.startswith(f"{SCRIPT_FOLDER}/"):
                add_member(inner, os.path.relpath(name, SCRIPT_FOLDER), Path(root, name).read_bytes())
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as bundle:
        add_member(bundle, f"{SCRIPT_FOLDER}.zip", script.getvalue())
        for name in names:
            add_member(bundle, name, Path(root, name).read_bytes())
    return out


def unwanted_files(bundle: str) -> BundleProblems:
    """Yield the files of a bundle that should not be uploaded: annotations, journals and secrets."""
    with Bundle(bundle) as opened:
        named = {os.path.normpath(name) for name in files_named(opened.config)} | {CONFIG}
        for name in sorted(opened.names):
            if name == f"{SCRIPT_FOLDER}.zip" or name.endswith("/"):
                continue
            if name not in named and (name.startswith("annotations/") or _is_truth(opened, name)):
                fault = f"is an annotation that {CONFIG} does not name"
                yield BundleProblem(name, fault, "Keep it out of the repository")
            elif _JOURNAL_NAMES.search(name):
                yield BundleProblem(name, "is a journal", "Keep it out of the repository, and in .gitignore")
            elif _SECRET_NAMES.search(name):
                yield BundleProblem(name, "has the name of a secret", "Keep it out of the repository, and renew it")
            elif opened.size(name) <= _SEARCHED_BYTES or name.endswith(_TEXTS):
                data = opened.read(name)
                for what in [what for what, pattern in _SECRETS.items() if pattern.search(data)]:
                    yield BundleProblem(name, f"holds {what}", "Take it out of the repository, and renew it")


def _is_truth(bundle: Bundle, name: str) -> bool:
    """Return whether a file is a packed truth, wherever it lies."""
    return (
        name.endswith(".zip")
        and not name.startswith("examples/")
        and bool(packed_file.track_of(io.BytesIO(bundle.read(name))))
    )


def _is_skipped(name: str) -> bool:
    *folders, file = name.split("/")
    return bool(_SKIPPED_FOLDERS & {*folders}) or file in _SKIPPED_FILES
