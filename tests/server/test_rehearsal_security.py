"""Forbidden actions of strangers, participants and other web sites on the rehearsal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.builders import ROOT
from tests.rehearsals import Rehearsal, bundle_with

STRONG = ROOT / "examples/sequences-dev/strong.zip"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    with Rehearsal(
        tmp_path_factory.mktemp("security") / "data", ("--requests-per-minute", "100000")
    ).start() as running:
        yield running


@pytest.fixture(scope="module")
def done(server: Rehearsal) -> dict[str, Any]:
    return server.settled(server.submit("aurora", STRONG).json()["id"])


def token_of(page: str) -> str:
    match = re.search(r'name="form_token" value="([\w-]+)"', page)
    assert match
    return match.group(1)


def test_it_listens_on_this_machine_alone(server: Rehearsal) -> None:
    port = int(server.address.rpartition(":")[2])
    wanted = f"{port:04X}"
    table = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = {row[1].split(":")[0] for row in table if row[3] == "0A" and row[1].endswith(f":{wanted}")}
    assert listening == {"0100007F"}


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8899", "127.0.0.1.evil.example", ""])
def test_another_name_for_this_machine_is_refused(server: Rehearsal, host: str) -> None:
    answer = server.get("/api/challenges/challenge/1/", headers={"Host": host})
    assert answer.status_code == 400


def test_tokens_and_passwords_are_not_kept_as_they_are(server: Rehearsal) -> None:
    server.session("aurora")
    kept = b"".join(path.read_bytes() for path in server.data.iterdir() if path.is_file())
    for person in server.people.values():
        assert person["token"].encode() not in kept
        assert person["password"].encode() not in kept


def test_file_links_are_signed_and_end(server: Rehearsal, done: Any) -> None:
    url = done["input_file"]
    answer = requests.get(url, timeout=60)
    assert answer.content == STRONG.read_bytes()
    bare, _, query = url.partition("?")
    assert requests.get(bare, timeout=60).status_code == 403
    swapped = re.sub(r"signature=(.)", lambda match: f"signature={'y' if match[1] == 'x' else 'x'}", query)
    for changed in (swapped, query[:-9], re.sub("signature=.*", "signature=", query), "expires=9999999999&signature=é"):
        assert requests.get(f"{bare}?{changed}", timeout=60).status_code == 403
    second = done["stdout_file"].partition("?")[0]
    assert requests.get(f"{second}?{query}", timeout=60).status_code == 403, "a signature is for one file"
    later = re.sub(r"expires=(\d+)", lambda found: f"expires={int(found.group(1)) + 9}", url)
    assert requests.get(later, timeout=60).status_code == 403


def test_files_are_downloads_that_no_browser_guesses_about(server: Rehearsal) -> None:
    page = server.settled(server.submit("aurora", b"<script>alert(1)</script>", file_name="x.html").json()["id"])
    for key in ("input_file", "stderr_file"):
        answer = requests.get(page[key], timeout=60)
        assert answer.headers["Content-Disposition"].startswith("attachment")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Type"] == "application/octet-stream"


@pytest.mark.parametrize(
    "path",
    [
        "/media/../rehearsal.sqlite3/x",
        "/media/..%2f..%2frehearsal.sqlite3/x",
        "/media/%2e%2e/x",
        "/static/../pages.py",
        "/static/..%2fpages.py",
        "/static/%2e%2e/pages.py",
        "/static//etc/passwd",
        "/upload/../../x/1",
    ],
)
def test_no_path_of_a_request_reaches_the_disk(server: Rehearsal, path: str) -> None:
    host, port = server.address.removeprefix("http://").split(":")
    import http.client

    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status in (403, 404, 405)
    assert b"import" not in answer.read()
    connection.close()


def test_an_endless_upload_is_cut_off(server: Rehearsal) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        yield b'--b\r\nContent-Disposition: form-data; name="input_file"; filename="x.zip"\r\n\r\n'
        while sent < 400 << 20:
            sent += 1 << 20
            yield bytes(1 << 20)

    path = "/api/jobs/challenge/1/challenge_phase/1/submission/"
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    try:
        answer = server.call("POST", path, "aurora", data=endless(), headers=kind)
        assert answer.status_code in (400, 413)
    except requests.ConnectionError:
        pass
    assert sent <= 260 << 20
    used = int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{server.process.pid}/status").read_text()).group(1))  # type: ignore[union-attr]
    assert used < 300_000


# ── the pages ───────────────────────────────────────────────────────────────


def test_a_logout_ends_the_session_on_the_server(server: Rehearsal) -> None:
    aurora = server.session("aurora")
    kept = dict(aurora.cookies)
    page = aurora.get(f"{server.address}/challenges/1", timeout=60).text
    aurora.post(
        f"{server.address}/logout", data={"form_token": token_of(page)}, headers={"Origin": server.address}, timeout=60
    )
    answer = requests.get(f"{server.address}/challenges/1/submit", cookies=kept, allow_redirects=False, timeout=60)
    assert answer.status_code == 303


HOSTILE = b"""<p onclick="alert(1)">Read <b>this</b></p><script>alert(2)</script><img src=x onerror=alert(3)>
<a href="javascript:alert(4)">x</a><iframe src="http://evil.example"></iframe><style>body{display:none}</style>"""


def test_templates_run_nothing(server: Rehearsal, tmp_path: Path) -> None:
    path = bundle_with(tmp_path, lambda config: config.update(title="X <script>alert(0)</script>"))
    import zipfile

    with zipfile.ZipFile(path) as files:
        content = {name: files.read(name) for name in files.namelist()}
    content["templates/description.html"] = HOSTILE
    with zipfile.ZipFile(path, "w") as files:
        for name, data in content.items():
            files.writestr(name, data)
    assert server.push(path, repository="me/hostile").status_code == 201
    listed = server.get("/api/challenges/challenge/all/all/all").json()["results"]
    number = max(item["id"] for item in listed)
    page = requests.get(f"{server.address}/challenges/{number}", timeout=60)
    body = page.text.partition("<main")[2]
    for word in ("onclick", "alert(2)", "onerror", "javascript:", "<iframe", "<style"):
        assert word not in body
    assert "<b>this</b>" in body
    assert "<script>alert(0)" not in page.text
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
