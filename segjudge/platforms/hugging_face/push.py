"""`segjudge push --platform hugging-face`: create a board's repositories, or bring them up to date."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from segjudge.evaluation_script.files.problems import HostError
from segjudge.ledger.hub_dataset import HubDataset, repeat_call
from segjudge.ledger.ledger import add_files
from segjudge.ledger.storage import repeat_moved

from .build import list_folders
from .requests import PRIVATE, RESULTS, SUBMISSIONS
from .settings import BUNDLE

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_Result = TypeVar("_Result")
#: The secret of the Space with its token, and the variable that `push` reads it from.
SECRET = "SUBMISSIONS_TOKEN"  # noqa: S105 - a name
#: What the push may remove where it uploads: what an earlier push wrote.
_OURS = {PRIVATE: f"{BUNDLE}/*", "": "*"}


@dataclass(frozen=True)
class HubPush:
    """A host's pushes to the Hub."""

    api: HfApi

    def push(self, repository: str, folder: str, token: str) -> Iterator[str]:
        """Upload the folders of `build`, and (if given) the token of the Space; yield a line for each change."""
        folders = list_folders(folder, repository)
        # No file is uploaded before each repository has the right visibility.
        for name in (*folders, repository + RESULTS):
            yield from self._create(name, "gradio" if name == repository else "")
        for name, path in folders.items():
            yield from self._upload(name, path, "" if name == repository else name.removeprefix(repository))
        if token:
            yield from self._set_secret(repository, token)

    def add_history(self, repository: str, public: Mapping[str, bytes], private: Mapping[str, bytes]) -> Iterator[str]:
        """Add the rows with which a board begins, unless it has them; yield a line for each change."""
        for name, rows in ((repository + PRIVATE, private), (repository + RESULTS, public)):
            if add_files(HubDataset(self.api, name, ignored=BUNDLE), rows, "History"):
                yield f"added the history to {name}"

    def push_static(self, repository: str, folder: str) -> Iterator[str]:
        """Upload a folder as a Static Space, in place of the Space of the board."""
        yield from self._create(repository, "static")
        yield from self._upload(repository, folder, "")

    def has_secret(self, repository: str) -> bool:
        """Return whether the Space has its token."""
        return SECRET in _call(repository, lambda: self.api.get_space_secrets(repository))

    def _create(self, name: str, sdk: str) -> Iterator[str]:
        """Create a repository unless there is one; raises HostError if everybody sees one that must be private."""
        kind, is_private = "space" if sdk else "dataset", name.endswith((PRIVATE, SUBMISSIONS))
        if not _call(name, lambda: self.api.repo_exists(name, repo_type=kind)):
            options: dict[str, Any] = {"space_sdk": sdk} if sdk else {}
            options |= {"repo_type": kind, "private": is_private, "exist_ok": True}
            _call(name, lambda: self.api.create_repo(name, **options))
            yield f"created {name} ({'private' if is_private else 'public'})"
        if is_private and not self._inspect(name, kind).private:
            raise HostError(f"{name}: is public, but would hold the truth or submissions. Make it private; push again")

    def _upload(self, name: str, folder: str, suffix: str) -> Iterator[str]:
        """Upload a folder, and remove the files of an earlier push that it lacks."""
        kind = "dataset" if suffix else "space"
        before = self._inspect(name, kind).sha
        options: dict[str, Any] = {
            "repo_id": name,
            "repo_type": kind,
            "folder_path": folder,
            "commit_message": "Update by push",
        }
        _call(name, lambda: self.api.upload_folder(**options, delete_patterns=_OURS.get(suffix)))
        if self._inspect(name, kind).sha != before:
            yield f"updated {name}"

    def _inspect(self, name: str, kind: str) -> Any:
        return _call(name, lambda: self.api.repo_info(name, repo_type=kind))

    def _set_secret(self, repository: str, token: str) -> Iterator[str]:
        """Set the token of the Space, which restarts it, unless it has this one already."""
        self._check_token(repository, token)
        about = f"SHA-256 {digest_of_token(token)}"
        secret = _call(repository, lambda: self.api.get_space_secrets(repository)).get(SECRET)
        if secret is None or secret.description != about:
            _call(repository, lambda: self.api.add_space_secret(repository, SECRET, token, description=about))
            yield f"set the secret {SECRET} of {repository}"

    def _check_token(self, repository: str, token: str) -> None:
        """Raise HostError for a token that may do too much, or too little."""
        submissions, private = repository + SUBMISSIONS, repository + PRIVATE
        if may_read(self.api, private, token):
            fault = f"may read {private}, so a fault of the Space could reveal the truth"
            raise HostError(f"{SECRET}: {fault}. Make a fine-grained token that may only write to {submissions}")
        if not may_read(self.api, submissions, token):
            raise HostError(f"{SECRET}: may not read {submissions}. Allow it to read and write that data set")


def digest_of_token(token: str) -> str:
    """Return what tells a token from others, and may be shown."""
    return hashlib.sha256(token.encode()).hexdigest()[:16]


def may_read(api: HfApi, name: str, token: str) -> bool:
    """Return whether a token may read a data set."""
    return repeat_call(lambda: api.repo_exists(name, repo_type="dataset", token=token), name)


def _call(name: str, call: Callable[[], _Result]) -> _Result:
    """Call the Hub about a repository, also while the evaluator writes to it; raises HostError."""
    return repeat_moved(lambda: repeat_call(call, name), name)
