"""A stand-in for the Hugging Face Hub, which the real `huggingface_hub` works against unchanged.

Where the Hub's documentation and its client's code leave a choice, it is the stricter side: a private repository does not
exist for others, a token has rights to named repositories only, a file that must be LFS is refused in a commit, and the
calls of a token are counted.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

#: What a fault does instead of an answer: a status with headers, or a connection that is cut before or after the call.
Fault = tuple[int, dict[str, str]] | str
RATE_LIMIT = {"RateLimit": '"api";r=0;t=0', "RateLimit-Policy": '"fixed window";"api";q=1000;w=300'}
FAULTS: dict[str, Fault] = {"429": (429, RATE_LIMIT), "500": (500, {}), "before": "cut before", "after": "cut after"}
#: Endings that the Hub keeps by LFS, and the size from which it keeps every file so.
_LFS = (".zip", ".gz", ".tar", ".npz", ".npy", ".png", ".whl", ".nii", ".bin", ".parquet")
_LFS_BYTES, _WINDOW = 10_000_000, 300.0
#: The rows of a page of a tree and of commits.
_PAGE, _COMMITS = 1000, 50
Answer = tuple[int, Any, dict[str, str]]


class HubError(Exception):
    """An answer that is not a success."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        self.answer: Answer = (status, {"error": message}, {"X-Error-Message": message, "X-Error-Code": code})


@dataclass(frozen=True)
class Stored:
    """A file of a commit: its git object, and its SHA-256 if it is kept by LFS."""

    oid: str
    size: int
    sha256: str = ""


@dataclass(frozen=True)
class Commit:
    oid: str
    title: str
    description: str
    account: str
    at: str
    files: dict[str, Stored]


@dataclass
class Repository:
    """A repository, whose only branch is main."""

    kind: str
    name: str
    private: bool
    commits: list[Commit]
    sdk: str = ""
    secrets: dict[str, str] = field(default_factory=dict)
    #: Key of a secret or variable → its description.
    about: dict[str, str | None] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    stage: str = "RUNNING"

    def find(self, revision: str) -> Commit:
        for commit in reversed(self.commits):
            if revision in ("main", commit.oid):
                return commit
        raise HubError(404, f"Invalid rev id: {revision}", "RevisionNotFound")


@dataclass(frozen=True)
class Token:
    """A token of an account: repository (or * for all of the account's) → "read" or "write"."""

    account: str
    rights: dict[str, str]


class PlayedHub:
    """A server with the repositories of some accounts."""

    def __init__(self) -> None:
        self.repositories: dict[tuple[str, str], Repository] = {}
        self.tokens: dict[str, Token] = {}
        self.blobs: dict[str, bytes] = {}
        self.large: dict[str, bytes] = {}
        #: The Jobs that were started, and the webhooks by their ids.
        self.jobs: list[dict[str, Any]] = []
        self.webhooks: dict[str, dict[str, Any]] = {}
        self.faults: list[Fault] = []
        #: What goes wrong at the first call of each address that has a text.
        self.first_fault: Fault = ""
        self.fault_at = ""
        #: The time, bucket and address of each call.
        self.calls: list[tuple[float, str, str]] = []
        self._seen: set[str] = set()
        self.limit = 1000
        self._lock = threading.RLock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _make_handler(self))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    # ── what tests look at ──────────────────────────────────────────────────

    def add_token(self, account: str, rights: dict[str, str] | None = None) -> str:
        """Return a new token; without rights it may do everything with the repositories of its account."""
        token = f"hf_{account}{len(self.tokens)}"
        self.tokens[token] = Token(account, rights or {"*": "write"})
        return token

    def read(self, name: str, path: str, kind: str = "dataset") -> bytes:
        """Return a file of a repository as it is now."""
        return self._open(self.repositories[kind, name].commits[-1].files[path])

    def list_files(self, name: str, kind: str = "dataset") -> list[str]:
        return sorted(self.repositories[kind, name].commits[-1].files)

    def list_commits(self, name: str, kind: str = "dataset") -> list[str]:
        return [commit.title for commit in self.repositories[kind, name].commits]

    def history(self, name: str, kind: str = "dataset") -> str:
        """Return all that a repository ever held."""
        texts = []
        for commit in self.repositories[kind, name].commits:
            texts += [commit.title, commit.description, *commit.files]
            texts += [self._open(stored).decode("utf-8", "replace") for stored in commit.files.values()]
        return "\n".join(dict.fromkeys(texts))

    def count_calls(self, bucket: str = "api", seconds: float = _WINDOW) -> int:
        """Return the largest number of calls within such a time."""
        times = [at for at, kind, _ in self.calls if kind == bucket]
        return max((sum(start <= at < start + seconds for at in times) for start in times), default=0)

    def _open(self, stored: Stored) -> bytes:
        return self.large[stored.sha256] if stored.sha256 else self.blobs[stored.oid]

    # ── rights ──────────────────────────────────────────────────────────────

    def _find(self, kind: str, name: str, token: Token | None, right: str = "read") -> Repository:
        repository = self.repositories.get((kind, name))
        rights = token.rights if token else {}
        own = rights.get("*", "") if token and name.split("/", maxsplit=1)[0] == token.account else ""
        granted = {rights.get(name, ""), own}
        if repository is None or (repository.private and not granted & {"read", "write"}):
            raise HubError(404 if token else 401, "Repository not found", "RepoNotFound")
        if right == "write" and "write" not in granted:
            raise HubError(403, "You don't have the required permissions to perform this action")
        return repository

    # ── calls ───────────────────────────────────────────────────────────────

    def answer(self, method: str, target: str, body: bytes, login: str) -> Answer:
        """Answer a call."""
        parts = urlsplit(target)
        path, query = parts.path, parse_qs(parts.query)
        if match := re.fullmatch(r"/cdn/([0-9a-f]{64})", path):
            if login:
                raise HubError(400, "only one way to authenticate is allowed")
            return self._serve_large(method, match[1], body)
        token = self.tokens.get(login.removeprefix("Bearer "))
        if login and token is None:
            raise HubError(401, "Invalid credentials in Authorization header")
        bucket = "resolve" if "/resolve/" in path else "api"
        now = time.monotonic()
        self.calls.append((now, bucket, f"{method} {path}"))
        if bucket == "api" and sum(at > now - _WINDOW for at, kind, _ in self.calls if kind == "api") > self.limit:
            return 429, {"error": "Too many requests"}, {**RATE_LIMIT, "RateLimit": '"api";r=0;t=1'}
        for name, pattern, act in self._routes():
            if name == method.replace("HEAD", "GET") and (match := re.fullmatch(pattern, path)):
                words = {key: unquote(value or "") for key, value in match.groupdict().items()}
                return act(token=token, body=body, query=query, **words)
        raise HubError(404, f"the stand-in has no {method} {path}")

    def _routes(self) -> list[tuple[str, str, Callable[..., Answer]]]:
        api = r"/api/(?P<kind>model|dataset|space)s/(?P<name>[^/]+/[^/]+)"
        space = r"/api/spaces/(?P<name>[^/]+/[^/]+)"
        return [
            ("GET", "/api/whoami-v2", self._name_account),
            ("POST", "/api/validate-yaml", lambda **_: (200, {"errors": [], "warnings": []}, {})),
            ("POST", "/api/repos/create", self._create),
            ("DELETE", "/api/repos/delete", self._delete),
            ("GET", api, self._describe),
            ("GET", rf"{api}/revision/(?P<revision>[^/]+)", self._describe),
            ("GET", rf"{api}/tree/(?P<revision>[^/]+)(?:/(?P<path>.+))?", self._list_tree),
            ("GET", rf"{api}/commits/(?P<revision>[^/]+)", self._list_commits),
            ("POST", rf"{api}/paths-info/(?P<revision>[^/]+)", self._describe_paths),
            ("POST", rf"{api}/preupload/(?P<revision>[^/]+)", self._choose_modes),
            ("POST", rf"{api}/commit/(?P<revision>[^/]+)", self._commit),
            ("POST", r"/(?P<kind>dataset|space)s/(?P<name>[^/]+/[^/]+)\.git/info/lfs/objects/batch", self._batch),
            ("GET", r"/(?P<kind>dataset|space)s/(?P<name>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)",
             self._resolve),
            *[(method, f"{space}/(?P<field>secrets|variables)", self._keep_settings)
              for method in ("GET", "POST", "DELETE")],
            ("POST", r"/api/jobs/(?P<owner>[^/]+)", self._run_job),
            *[(method, r"/api/settings/webhooks(?:/(?P<number>\d+))?", self._keep_webhooks)
              for method in ("GET", "POST", "DELETE")],
            ("GET", f"{space}/runtime", self._describe_runtime),
            ("POST", f"{space}/restart", self._describe_runtime),
        ]  # fmt: skip

    def _name_account(self, token: Token | None, **_: Any) -> Answer:
        if token is None:
            raise HubError(401, "Invalid username or password.")
        right = "write" if "write" in token.rights.values() else "read"
        auth = {"type": "access_token", "accessToken": {"displayName": "token", "role": right}}
        return 200, {"type": "user", "id": token.account, "name": token.account, "orgs": [], "auth": auth}, {}

    def _create(self, token: Token | None, body: bytes, **_: Any) -> Answer:
        content = json.loads(body)
        owner = content.get("organization") or (token.account if token else "")
        if token is None or token.rights.get("*") != "write" or owner != token.account:
            raise HubError(403, "You don't have the rights to create a repository under this namespace")
        kind, name = content.get("type") or "model", f"{owner}/{content['name']}"
        url = f"{self.url}/{'' if kind == 'model' else f'{kind}s/'}{name}"
        if (kind, name) in self.repositories:
            return 409, {"error": "You already created this repo", "url": url}, {}
        private = content.get("private") or content.get("visibility") == "private"
        repository = Repository(kind, name, bool(private), [], content.get("sdk") or "")
        attributes = "".join(f"*{ending} filter=lfs diff=lfs merge=lfs -text\n" for ending in _LFS).encode()
        self._add_commit(repository, "initial commit", "", owner, {".gitattributes": self._store(attributes)})
        self.repositories[kind, name] = repository
        self._set(repository, "secrets", content.get("secrets") or [])
        self._set(repository, "variables", content.get("variables") or [])
        return 200, {"url": url, "name": name, "id": name}, {}

    def _delete(self, token: Token | None, body: bytes, **_: Any) -> Answer:
        content = json.loads(body)
        owner = content.get("organization") or (token.account if token else "")
        kind, name = content.get("type") or "model", f"{owner}/{content['name']}"
        self._find(kind, name, token, "write")
        del self.repositories[kind, name]
        return 200, {}, {}

    def _describe(
        self, kind: str, name: str, token: Token | None, query: dict[str, list[str]], revision: str = "main", **_: Any
    ) -> Answer:
        repository = self._find(kind, name, token)
        commit = repository.find(revision)
        facts: dict[str, Any] = {
            "sha": commit.oid, "private": repository.private, "author": name.split("/", maxsplit=1)[0], "tags": [],
            "lastModified": commit.at, "downloads": 0, "likes": 0, "gated": False, "disabled": False,
            "siblings": [{"rfilename": path} for path in sorted(commit.files)],
        }  # fmt: skip
        facts |= {"sdk": repository.sdk} if kind == "space" else {}
        shown = query.get("expand") or facts
        return 200, {"_id": name, "id": name, **{key: facts[key] for key in shown if key in facts}}, {}

    def _list_tree(
        self, kind: str, name: str, revision: str, path: str, token: Token | None, query: dict[str, Any], **_: Any
    ) -> Answer:
        files = self._find(kind, name, token).find(revision).files
        within = f"{path}/" if path else ""
        rows = [self._row(each, stored) for each, stored in files.items() if each.startswith(within)]
        folders = {
            each[:at] for each in files for at in range(len(each)) if each[at] == "/" and each.startswith(within)
        }
        rows += [{"type": "directory", "oid": "0" * 40, "size": 0, "path": each} for each in folders if each != path]
        if query.get("recursive", ["false"])[0].lower() != "true":
            rows = [row for row in rows if "/" not in row["path"][len(within) :]]
        if path and not rows:
            raise HubError(404, f"{path} does not exist on {revision}", "EntryNotFound")
        rows.sort(key=lambda row: str(row["path"]))
        return self._page(rows, _PAGE, f"/api/{kind}s/{name}/tree/{revision}{path and '/'}{quote(path)}", query)

    def _page(self, rows: list[Any], size: int, address: str, query: dict[str, list[str]]) -> Answer:
        start = int(query.pop("cursor", ["0"])[0])
        kept = "".join(f"&{key}={value[0]}" for key, value in query.items())
        more = f'<{self.url}{address}?cursor={start + size}{kept}>; rel="next"'
        return 200, rows[start : start + size], {"Link": more} if start + size < len(rows) else {}

    def _row(self, path: str, stored: Stored) -> dict[str, Any]:
        lfs = {"lfs": {"oid": stored.sha256, "size": stored.size, "pointerSize": 130}} if stored.sha256 else {}
        return {"type": "file", "oid": stored.oid, "size": stored.size, "path": path, **lfs}

    def _list_commits(
        self, kind: str, name: str, revision: str, token: Token | None, query: dict[str, list[str]], **_: Any
    ) -> Answer:
        repository = self._find(kind, name, token)
        commits = repository.commits[: repository.commits.index(repository.find(revision)) + 1]
        rows = [
            {"id": each.oid, "title": each.title, "message": each.description, "date": each.at, "authors": [{"user": each.account}]}
            for each in reversed(commits)
        ]  # fmt: skip
        return self._page(rows, _COMMITS, f"/api/{kind}s/{name}/commits/{revision}", query)

    def _describe_paths(
        self, kind: str, name: str, revision: str, token: Token | None, body: bytes, **_: Any
    ) -> Answer:
        files = self._find(kind, name, token).find(revision).files
        paths = parse_qs(body.decode()).get("paths", [])
        return 200, [self._row(path, files[path]) for path in paths if path in files], {}

    def _choose_modes(self, kind: str, name: str, revision: str, token: Token | None, body: bytes, **_: Any) -> Answer:
        files = self._find(kind, name, token, "write").find(revision).files
        rows = []
        for each in json.loads(body)["files"]:
            path, sample = each["path"], base64.b64decode(each["sample"])
            mode = "lfs" if _is_large(path, each["size"], sample) else "regular"
            oid = files[path].sha256 or files[path].oid if path in files else None
            rows.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        return 200, {"files": rows}, {}

    def _batch(self, kind: str, name: str, token: Token | None, body: bytes, **_: Any) -> Answer:
        self._find(kind, name, token, "write")
        rows = []
        for each in json.loads(body)["objects"]:
            upload = {"actions": {"upload": {"href": f"{self.url}/cdn/{each['oid']}", "header": {}}}}
            rows.append({**each, **({} if each["oid"] in self.large else upload)})
        return 200, {"transfer": "basic", "objects": rows}, {}

    def _serve_large(self, method: str, sha256: str, body: bytes) -> Answer:
        if method == "PUT":
            if hashlib.sha256(body).hexdigest() != sha256:
                raise HubError(400, "the bytes have another SHA-256")
            self.large[sha256] = body
            return 200, b"", {}
        return 200, self.large[sha256], {"ETag": f'"{sha256}"'}

    def _commit(self, kind: str, name: str, revision: str, token: Token | None, body: bytes, **_: Any) -> Answer:
        repository = self._find(kind, name, token, "write")
        head = repository.find(revision)
        header, *lines = [json.loads(line) for line in body.splitlines()]
        if header["value"].get("parentCommit") not in (None, head.oid):
            raise HubError(412, "The branch has moved since the parent commit")
        files = dict(head.files)
        for line in lines:
            path = line["value"]["path"]
            if re.search(r"(^|/)(\.{0,2}|\.git)(/|$)", path):
                raise HubError(400, f"invalid path {path}")
            if line["key"] == "deletedFile":
                if files.pop(path, None) is None:
                    raise HubError(404, "A file with this name doesn't exist", "EntryNotFound")
            elif line["key"] == "lfsFile":
                sha256 = line["value"]["oid"]
                if sha256 not in self.large:
                    raise HubError(400, f"{path}: its LFS object was not uploaded")
                files[path] = Stored(hashlib.sha1(sha256.encode()).hexdigest(), len(self.large[sha256]), sha256)
            else:
                data = base64.b64decode(line["value"]["content"])
                if data and _is_large(path, len(data), data[:512]):
                    raise HubError(400, f"{path}: must be kept by LFS")
                files[path] = self._store(data)
        account = token.account if token else ""
        value = header["value"]
        commit = self._add_commit(repository, value["summary"], value["description"], account, files)
        url = f"{self.url}/{kind}s/{name}/commit/{commit.oid}"
        self._start_jobs(repository)
        return 200, {"success": True, "commitOid": commit.oid, "commitUrl": url, "hookOutput": ""}, {}

    def _store(self, data: bytes) -> Stored:
        oid = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        self.blobs[oid] = data
        return Stored(oid, len(data))

    def _add_commit(
        self, repository: Repository, title: str, description: str, account: str, files: dict[str, Stored]
    ) -> Commit:
        oid = hashlib.sha1(f"{repository.name}{len(repository.commits)}{title}{time.time_ns()}".encode()).hexdigest()
        at = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        repository.commits.append(Commit(oid, title, description, account, at, files))
        return repository.commits[-1]

    def _resolve(self, kind: str, name: str, revision: str, path: str, token: Token | None, **_: Any) -> Answer:
        commit = self._find(kind, name, token).find(revision)
        if path not in commit.files:
            raise HubError(404, "Entry not found", "EntryNotFound")
        stored = commit.files[path]
        headers = {"X-Repo-Commit": commit.oid, "ETag": f'"{stored.oid}"'}
        if stored.sha256:
            linked = {"X-Linked-ETag": f'"{stored.sha256}"', "X-Linked-Size": str(stored.size)}
            # Another host, which gets no token.
            return (
                302,
                b"",
                {**headers, **linked, "Location": f"{self.url}/cdn/{stored.sha256}".replace("127.0.0.1", "localhost")},
            )
        return 200, self.blobs[stored.oid], headers

    def _set(self, repository: Repository, name: str, rows: list[dict[str, str]]) -> None:
        getattr(repository, name).update({row["key"]: row["value"] for row in rows})
        repository.about.update({row["key"]: row.get("description") for row in rows})

    def _keep_settings(self, name: str, field: str, token: Token | None, body: bytes, **_: Any) -> Answer:
        repository = self._find("space", name, token, "write")
        settings: dict[str, str] = getattr(repository, field)
        if body:
            content = json.loads(body)
            settings.pop(content["key"], None)
            self._set(repository, field, [content] if "value" in content else [])
        shown = {
            key: {"key": key, "description": repository.about[key], **({"value": text} if field == "variables" else {})}
            for key, text in settings.items()
        }
        return 200, shown, {}

    def _run_job(self, owner: str, token: Token | None, body: bytes, **_: Any) -> Answer:
        if token is None or token.rights.get("*") != "write" or owner != token.account:
            raise HubError(403, "You don't have the rights to run Jobs in this namespace")
        self.jobs.append(json.loads(body))
        facts = {
            "id": str(len(self.jobs)),
            "owner": {"id": owner, "name": owner, "type": "user"},
            "status": {"stage": "RUNNING"},
        }
        return 200, {**facts, "secrets": [*self.jobs[-1].get("secrets", {})]}, {}

    def _keep_webhooks(self, number: str, token: Token | None, body: bytes, **_: Any) -> Answer:
        if token is None or token.rights.get("*") != "write":
            raise HubError(403, "You don't have the rights to see or change webhooks")
        if number:
            return 200, {"deleted": bool(self.webhooks.pop(number))}, {}
        if not body:
            return 200, [{key: hook[key] for key in hook if key != "secrets"} for hook in self.webhooks.values()], {}
        content = json.loads(body)
        source = self.jobs[int(content.pop("jobSourceId")) - 1]
        spec = {key: value for key, value in source.items() if key != "secrets"}  # which are not copied
        key = str(len(self.jobs))
        self.webhooks[key] = {"id": key, "disabled": False, "job": spec, **content}
        return 200, {"webhook": self.webhooks[key]}, {}

    def _start_jobs(self, repository: Repository) -> None:
        """Start the Jobs of the webhooks that watch a repository."""
        for hook in self.webhooks.values():
            if {"type": repository.kind, "name": repository.name} in hook["watched"]:
                self.jobs.append({**hook["job"], "secrets": hook["secrets"]})

    def _describe_runtime(self, name: str, token: Token | None, **_: Any) -> Answer:
        repository = self._find("space", name, token)
        hardware = {"current": "cpu-basic", "requested": "cpu-basic"}
        return 200, {"stage": repository.stage, "hardware": hardware, "gcTimeout": 172800}, {}


def _is_large(path: str, size: int, sample: bytes) -> bool:
    """Return whether the Hub keeps a file by LFS."""
    return size > _LFS_BYTES or path.endswith(_LFS) or b"\0" in sample


def _make_handler(hub: PlayedHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version, wbufsize = "HTTP/1.1", 1 << 16

        def log_message(self, *_: Any) -> None:
            pass

        def _serve(self) -> None:
            body = self._read_body()
            call = f"{self.command} {self.path.partition('?')[0]}"
            with hub._lock:
                fault = (
                    hub.faults.pop(0)
                    if hub.faults
                    else ""
                    if call in hub._seen or hub.fault_at not in call
                    else hub.first_fault
                )
                hub._seen.add(call)
                if fault:
                    hub.calls.append((time.monotonic(), "fault", call))
                if isinstance(fault, tuple):
                    return self._send(fault[0], {"error": "fault"}, fault[1])
                if fault != "cut before":
                    try:
                        answer = hub.answer(self.command, self.path, body, self.headers.get("Authorization", ""))
                    except HubError as error:
                        answer = error.answer
            if fault:
                self.close_connection = True
                return self.connection.close()
            return self._send(*answer)

        def _read_body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def _send(self, status: int, content: Any, headers: dict[str, str]) -> None:
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            if status == 200 and (match := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))):
                headers = {**headers, "Content-Range": f"bytes {match[1]}-{len(data) - 1}/{len(data)}"}
                status, data = 206, data[int(match[1]) :]
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), "X-Request-Id": "1", **headers}.items():
                if value:
                    self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815

    return Handler
