"""A ledger's files in one branch of a git repository: a push that is no fast-forward is refused."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping

from segjudge.evaluation_script.files.problems import HostError
from segjudge.system.files import redact
from segjudge.system.network import pauses

from .storage import MovedError, Storage

#: The maximum seconds of one git command, and the attempts at one that needs the network.
_SECONDS, _TRIES = 300, 4
_NO_BLOB = b"0" * 40
_AUTHOR = "segjudge"
_MAIL = "segjudge@users.noreply.github.com"


class GitBranch(Storage):
    """A branch of a remote repository, which the first writing creates."""

    def __init__(self, remote: str, branch: str, folder: str, environment: Mapping[str, str]) -> None:
        """Keep a shallow copy in a folder; the environment has what git needs to reach the remote."""
        self._remote, self._branch, self._folder = remote, f"refs/heads/{branch}", folder
        names = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER")
                 for key, value in (("NAME", _AUTHOR), ("EMAIL", _MAIL))}  # fmt: skip
        self._environment = {**environment, **names, "GIT_TERMINAL_PROMPT": "0"}
        self._head = ""
        os.makedirs(folder, exist_ok=True)
        self._git("init", "--quiet", "--bare")

    def read(self) -> dict[str, bytes]:
        self._head = self._fetch_head()
        if not self._head:
            return {}
        listed = self._git("ls-tree", "-r", "-z", self._head).split(b"\0")[:-1]
        entries = [entry.partition(b"\t") for entry in listed]
        hashes = [facts.split()[2] for facts, _, _ in entries]
        blobs = self._git("cat-file", "--batch", stdin=b"".join(each + b"\n" for each in hashes))
        files, at = dict[str, bytes](), 0
        for _, _, name in entries:
            line_end = blobs.index(b"\n", at)
            size = int(blobs[at:line_end].split()[2])
            files[name.decode()] = blobs[line_end + 1 : line_end + 1 + size]
            at = line_end + size + 2
        return files

    def write(self, files: Mapping[str, bytes | None], why: str) -> None:
        entries = b""
        for path, data in sorted(files.items()):
            blob = _NO_BLOB if data is None else self._git("hash-object", "-w", "--stdin", stdin=data).strip()
            entries += (b"0 " if data is None else b"100644 ") + blob + b"\t" + path.encode() + b"\0"
        self._git("read-tree", *([self._head] if self._head else ["--empty"]))
        self._git("update-index", "-z", "--index-info", stdin=entries)
        tree = self._git("write-tree").decode().strip()
        parents = ["-p", self._head] if self._head else []
        commit = self._git("commit-tree", tree, *parents, "-m", why).decode().strip()
        self._push(commit)
        self._head = commit

    def _push(self, commit: str) -> None:
        """Push a commit on top of the state that was read; a lost answer is looked up."""
        for pause in (*pauses(_TRIES), None):
            try:
                self._git("push", "--quiet", self._remote, f"{commit}:{self._branch}")
            except HostError as error:
                head = self._list_head()
                if head == commit:
                    return
                if head != self._head:
                    raise MovedError from None
                if pause is None:
                    raise HostError(f"{error}; may the key or token write to this repository?") from None
                time.sleep(pause)
            else:
                return

    def _fetch_head(self) -> str:
        """Return the branch's last commit, which is fetched; "" without the branch."""
        for pause in (*pauses(_TRIES), None):
            try:
                head = self._list_head()
                if head:
                    self._git("fetch", "--quiet", "--depth", "1", "--no-tags", self._remote, head)
                return head
            except HostError:
                if pause is None:
                    raise
                time.sleep(pause)
        return ""

    def _list_head(self) -> str:
        return self._git("ls-remote", self._remote, self._branch).decode().partition("\t")[0].strip()

    def _git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        return run_git(*arguments, folder=self._folder, environment=self._environment, stdin=stdin)


def run_git(*arguments: str, folder: str, environment: Mapping[str, str], stdin: bytes = b"") -> bytes:
    """Return the output of a git command; raises HostError with its last words."""
    command = ["git", *arguments]
    try:
        done = subprocess.run(
            command, cwd=folder, env=dict(environment), input=stdin, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(f"git {arguments[0]}: {redact(str(error))}") from None
    if done.returncode:
        words = " ".join(done.stderr.decode("utf-8", "replace").split())
        raise HostError(f"git {arguments[0]} failed: {redact(words)[-500:]}")
    return done.stdout
