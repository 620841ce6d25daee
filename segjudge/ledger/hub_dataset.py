"""A ledger's files in a data set of the Hugging Face Hub: a commit whose parent is not the last one is refused.

Each file is fetched once, by its git object. Since the Hub limits the calls of five minutes, small files are also kept
together in one file, so that a reader without a cache needs few calls.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import httpx2
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, get_session, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status, parse_ratelimit_headers

from segjudge.evaluation_script.files.problems import HostError
from segjudge.system.files import redact
from segjudge.system.network import pauses

from .storage import MovedError, Storage

_Result = TypeVar("_Result")
#: The attempts at a call, and how many files are fetched at the same time.
_TRIES, _THREADS = 8, 8
#: The file with the small files, the number of others with which it is written anew, and the bytes of a small one.
PACK, _MOST_OTHERS, _SMALL = "packed.json", 100, 4096
_REJECTED, _MOVED, _PASSING = (401, 403, 404), 412, (408, 429)


class HubDataset(Storage):
    """A data set, of which one folder may hold files that no ledger has."""

    def __init__(self, api: HfApi, repository: str, ignored: str = "") -> None:
        """Use the endpoint and token of a client; files below the ignored folder are not read."""
        self._api, self._repository, self._ignored = api, repository, ignored
        self._head = ""
        #: Path → git object of the files at the head; git object → content; the objects in the pack.
        self._tree: dict[str, str] = {}
        self._blobs: dict[str, bytes] = {}
        self._packed: set[str] = set()

    def read(self) -> dict[str, bytes]:
        head = repeat_call(lambda: self._api.dataset_info(self._repository, expand=["sha"]).sha, self._repository) or ""
        if head != self._head:
            listed = repeat_call(lambda: self._list_tree(head), self._repository)
            if PACK in listed and listed[PACK] not in self._blobs:
                self._fetch(head, {listed[PACK]: PACK})
            self._unpack(listed)
            self._fetch(head, {blob: path for path, blob in listed.items() if blob not in self._blobs})
            self._head, self._tree = head, listed
        return {path: self._blobs[blob] for path, blob in self._tree.items() if path != PACK}

    def write(self, files: Mapping[str, bytes | Path | None], why: str) -> None:
        """Change files in one commit; a large one may be given by its path."""
        added = {path: self._keep(data) for path, data in files.items() if isinstance(data, bytes)}
        if pack := self._pack(added):
            files = {**files, PACK: pack}
            self._keep(pack)
        mark, tried = secrets.token_hex(16), False

        def commit() -> None:
            nonlocal tried
            if tried and self._has_commit(mark):  # the answer was lost
                return
            tried = True
            operations = [
                CommitOperationDelete(path) if data is None else CommitOperationAdd(path, data)
                for path, data in files.items()
            ]
            self._api.create_commit(
                self._repository, operations, commit_message=why, commit_description=mark, repo_type="dataset",
                parent_commit=self._head,
            )  # fmt: skip

        try:
            repeat_call(commit, self._repository)
        finally:
            self._head = ""  # without changes the Hub makes no commit, so the new head is read

    def _list_tree(self, head: str) -> dict[str, str]:
        entries = self._api.list_repo_tree(self._repository, recursive=True, revision=head, repo_type="dataset")
        skipped = f"{self._ignored}/"
        return {
            entry.path: entry.blob_id
            for entry in entries
            if isinstance(entry, RepoFile) and not entry.lfs and not entry.path.startswith(skipped)
        }

    def _fetch(self, head: str, paths: Mapping[str, str]) -> None:
        """Fetch git objects, each by one of its paths."""
        with ThreadPoolExecutor(_THREADS) as pool:
            fetched = pool.map(lambda path: self._download(head, path), paths.values())
            for (blob, path), data in zip(paths.items(), fetched, strict=True):
                if _hash_blob(data) != blob:
                    raise HostError(f"{self._repository}: {path} arrived damaged; run again")
                self._blobs[blob] = data

    def _download(self, head: str, path: str) -> bytes:
        url = hf_hub_url(self._repository, path, repo_type="dataset", revision=head, endpoint=self._api.endpoint)

        def fetch() -> bytes:
            answer = get_session().get(url, headers=build_hf_headers(token=self._api.token))
            hf_raise_for_status(answer)
            return answer.content

        return repeat_call(fetch, self._repository)

    def _has_commit(self, mark: str) -> bool:
        """Return whether one of the last commits has a mark."""
        url = f"{self._api.endpoint}/api/datasets/{self._repository}/commits/main"
        answer = get_session().get(url, headers=build_hf_headers(token=self._api.token))
        hf_raise_for_status(answer)
        return any(mark in str(commit.get("message")) for commit in answer.json())

    def _keep(self, data: bytes) -> str:
        """Keep the content of a git object, and return its name."""
        blob = _hash_blob(data)
        self._blobs[blob] = data
        return blob

    # ── the pack ────────────────────────────────────────────────────────────

    def _unpack(self, tree: Mapping[str, str]) -> None:
        """Take over the small files of the pack; one that is damaged has other objects."""
        if PACK in tree:
            texts = [text.encode() for text in json.loads(self._blobs[tree[PACK]])]
            self._packed = {self._keep(text) for text in texts}

    def _pack(self, added: Mapping[str, str]) -> bytes:
        """Return a new pack if too many small files are in none, with the objects of added files; else b""."""
        tree = {**self._tree, **added}
        small = {blob for path, blob in tree.items() if path != PACK and len(self._blobs[blob]) <= _SMALL}
        if len(small - self._packed) <= _MOST_OTHERS:
            return b""
        return json.dumps(sorted(self._blobs[blob].decode() for blob in small), indent=0).encode()


def repeat_call(call: Callable[[], _Result], repository: str) -> _Result:
    """Return the result of a call of the Hub, which is repeated while the Hub or the network is in trouble."""
    for pause in (*pauses(_TRIES), None):
        try:
            return call()
        except (httpx2.HTTPError, LocalEntryNotFoundError, RuntimeError) as error:
            status = error.response.status_code if isinstance(error, HfHubHTTPError) else 0
            if status == _MOVED:
                raise MovedError from None
            if status in _REJECTED:
                text = f"{repository}: the Hub answers {status}. Does it exist, and has the token the right to it?"
                raise HostError(text) from None
            if pause is None or (status in range(400, 500) and status not in _PASSING):
                raise HostError(f"{repository}: {redact(str(error))[-500:]}") from None
            time.sleep(max(pause, _seconds_until_reset(error)))
    raise AssertionError


def _seconds_until_reset(error: Exception) -> float:
    """Return how long the Hub asks to wait; 0 if it does not."""
    limit = parse_ratelimit_headers(error.response.headers) if isinstance(error, HfHubHTTPError) else None
    return limit.reset_in_seconds + 1.0 if limit and not limit.remaining else 0.0


def _hash_blob(data: bytes) -> str:
    """Return the name of a git object."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
