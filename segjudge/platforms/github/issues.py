"""GitHub's API as far as a board needs it: open issues, one comment for each, and the keys of the server."""

from __future__ import annotations

import time
from typing import Any

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.client import ApiError, Client, with_retries

#: All that a board calls on GitHub's API.
META = "/meta"
ISSUES = "/repos/{repository}/issues"
ISSUE = "/repos/{repository}/issues/{number:int}"
COMMENTS = "/repos/{repository}/issues/{number:int}/comments"
COMMENT = "/repos/{repository}/issues/comments/{comment:int}"
#: The rows of a page, which is the most that GitHub gives, and the most pages.
_ROWS, _PAGES = 100, 100
#: The account that a workflow's token writes as.
_BOT = "github-actions[bot]"


class _GitHubClient(Client):
    SERVER, SCHEME = "GitHub's API", "Bearer"


class Issues:
    """The issues of one repository."""

    def __init__(self, api: str, token: str, repository: str) -> None:
        self._client, self._repository = _GitHubClient(api, token), repository

    def list_open(self) -> list[dict[str, Any]]:
        """Return the open issues without pull requests, the oldest first."""
        rows = self._list(ISSUES, state="open", sort="created", direction="asc")
        return sorted((row for row in rows if "pull_request" not in row), key=lambda row: int(row["number"]))

    def answer(self, number: int, mark: str, text: str) -> None:
        """Write the one comment of an issue and close it; a comment with this mark stays as it is."""
        with_retries(lambda: self._comment(number, mark, text), time.sleep)
        self._call("PATCH", ISSUE, number=number, json={"state": "closed", "state_reason": "completed"})

    def _comment(self, number: int, mark: str, text: str) -> None:
        """Create or replace the comment; before each try its presence is looked up, since an answer may be lost."""
        comments = self._list(COMMENTS, number=number)
        earlier = [row for row in comments if _is_ours(row)]
        body = {"body": f"{mark}\n{text}"}
        if not earlier:
            self._try("POST", COMMENTS, number=number, json=body)
        elif not str(earlier[0].get("body")).startswith(mark):
            self._try("PATCH", COMMENT, comment=int(earlier[0]["id"]), json=body)

    def fetch_host_keys(self) -> list[str]:
        """Return the public keys of GitHub's SSH server."""
        keys = self._call("GET", META).get("ssh_keys")
        if not isinstance(keys, list) or not keys:
            raise HostError("GitHub's API names no SSH keys, so the private repository cannot be reached")
        return [str(key) for key in keys]

    def _list(self, route: str, number: int = 0, **query: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for page in range(1, _PAGES + 1):
            params = {**query, "per_page": _ROWS, "page": page}
            more = self._call("GET", route, number=number, params=params)
            rows += more
            if len(more) < _ROWS:
                break
        return rows

    def _call(self, method: str, route: str, number: int = 0, **options: Any) -> Any:
        return with_retries(lambda: self._try(method, route, number=number, **options), time.sleep)

    def _try(self, method: str, route: str, number: int = 0, comment: int = 0, **options: Any) -> Any:
        values: dict[str, int | str] = {"repository": self._repository, "number": number, "comment": comment}
        try:
            return self._client.call(method, route, values, **options)
        except ApiError as error:
            if error.status == 403 and error.wait is not None:  # too many calls, which GitHub also answers with 429
                raise ApiError(429, error.message, error.body, error.wait) from None
            raise


def _is_ours(comment: dict[str, Any]) -> bool:
    """Return whether a workflow of this repository wrote a comment, whatever others write into theirs."""
    user = comment.get("user")
    return isinstance(user, dict) and user.get("login") == _BOT and user.get("type") == "Bot"
