"""Results and truths at addresses: S3, as moto's server implements it, and any fsspec file system."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import pytest

from segjudge import HostError, SubmissionError, UsageError, cli, score
from segjudge.evaluation_script.files.archive import open_files
from segjudge.evaluation_script.files.limits import ArchiveLimits
from segjudge.platforms.evalai.client import ApiError
from segjudge.system.addresses import AddressError, RemoteFolder, _FetchedFile, resolve_address
from segjudge.system.files import redact, redact_address
from tests.builders import ANNOTATIONS, STRONG, png
from tests.clusters import cluster
from tests.remote.test_remote_aws import KEYS, aws, client
from tests.scoring.shares import SENT, TRUTH, write_sequences
from tests.scoring.test_executors import content

__all__ = ["aws"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEGJUDGE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def memory() -> Iterator[Any]:
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def cached(cache: Path) -> list[bytes]:
    """Return the contents of the cache."""
    return sorted(path.read_bytes() for path in cache.rglob("*") if path.is_file() and path.name != "lock")


def masks(videos: Any) -> dict[str, bytes]:
    return {f"{name}/{k:05d}.png": png(frame) for name, v in videos.items() for k, frame in enumerate(v)}


def test_a_file_is_fetched_once_until_it_changes(memory: Any, cache: Path) -> None:
    source = cache.parent / "source"
    source.write_bytes(b"one")
    first = resolve_address(f"file://{source}")
    assert (Path(first).read_bytes(), Path(first).name) == (b"one", "source")
    assert list(Path(first).parent.iterdir()) == [Path(first)], "readers look for files beside it"
    assert resolve_address(f"file://{source}") == first
    source.write_bytes(b"two")
    os.utime(source, ns=(1, 1))
    assert Path(resolve_address(f"file://{source}")).read_bytes() == b"two"
    assert cached(cache) == [b"one", b"two"]
    assert resolve_address("plain/path") == "plain/path"


def test_the_date_that_a_web_server_tells_is_enough(cache: Path) -> None:
    (cache.parent / "source").write_bytes(b"one")
    handler = partial(SimpleHTTPRequestHandler, directory=str(cache.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/source"
        assert resolve_address(address) == resolve_address(address)
        os.utime(cache.parent / "source", (1, 1))
        assert Path(resolve_address(address)).read_bytes() == b"one"
        server.shutdown()
    assert cached(cache) == [b"one", b"one"]


def test_the_cache_keeps_its_bound_and_what_is_in_use(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEGJUDGE_CACHE_GB", str(250e-9))
    paths = [cache.parent / f"{name}.zip" for name in "abcd"]
    for path in paths:
        path.write_bytes(path.stem.encode() * 100)
    kept = resolve_address(f"file://{paths[0]}")
    (cache / "left.partial").write_bytes(b"of a process that was killed")
    for path in paths[1:]:
        resolve_address(f"file://{path}")
        time.sleep(0.01)
    assert isinstance(kept, _FetchedFile)
    assert cached(cache) == [b"a" * 100, b"d" * 100]
    others = resolve_address(f"file://{paths[3]}")
    with pytest.raises(UsageError, match="100 bytes do not fit into the cache .* 200 bytes in use; SEGJUDGE_CACHE_GB"):
        resolve_address(f"file://{paths[1]}")
    del kept
    assert Path(resolve_address(f"file://{paths[1]}")).read_bytes() == b"b" * 100
    assert Path(others).read_bytes() == b"d" * 100
    assert len(list(cache.iterdir())) == 3, "of removed files, no folder stays"
    monkeypatch.setenv("SEGJUDGE_CACHE_GB", "much")
    with pytest.raises(UsageError) as caught:
        resolve_address(f"file://{paths[2]}")
    assert str(caught.value) == "SEGJUDGE_CACHE_GB is a number of gigabytes, not 'much'"


def test_what_cannot_be_reached_is_reported_in_a_sentence(memory: Any, tmp_path: Path, capsys: Any) -> None:
    for address, message, code in (
        ("memory://nothing/here.zip", "segjudge: memory://nothing/here.zip: does not exist", 2),
        ("MEMORY://nothing/here.zip", "segjudge: MEMORY://nothing/here.zip: does not exist", 2),
        (
            str(tmp_path / "nothing"),
            f"segjudge: {tmp_path}/nothing: there is no such file or folder; correct the path",
            2,
        ),
        ("nonsense://a/b", "segjudge: nonsense://a/b: Protocol not known: nonsense", 2),
    ):
        assert cli.main(["score", address, "--truth", str(ANNOTATIONS), "--protocol", "davis2017"]) == code
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert line == message
    for truth in ("memory://nothing/truth.zip", str(tmp_path / "nothing")):
        assert cli.main(["score", str(STRONG), "--truth", truth, "--protocol", "davis2017"]) == 2
    memory.pipe("/masks/a.png", b"")
    with pytest.raises(UsageError) as caught:
        score("x", "memory://masks", "places2017", categories="c")
    assert str(caught.value) == "memory://masks: a folder of PNGs must be on this machine; copy it, or pack it"


def test_fetched_files_are_named_by_their_addresses(memory: Any, tmp_path: Path) -> None:
    memory.pipe("/a ✓/broken ✓.json", b'{"images": [')
    memory.pipe("/a ✓/sent ✓.json", b"[")
    (tmp_path / "truth.json").write_text('{"images": [], "annotations": [], "categories": [{"id": 1, "name": "cat"}]}')
    sent, broken = "memory://a ✓/sent ✓.json", "memory://a ✓/broken ✓.json"
    with pytest.raises(HostError, match=rf"^{broken}: is not an annotation file in COCO's format"):
        score(sent, broken, "coco")
    with pytest.raises(HostError, match=rf"^{broken}: cannot be read as a panoptic truth"):
        score(sent, broken, "cityscapes-panoptic")
    with pytest.raises(SubmissionError, match=r"^sent ✓\.json: is not valid JSON"):
        score(sent, str(tmp_path / "truth.json"), "coco")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://user:password@host/no.zip?sig=secret", "http://host/no.zip"),
        ("https://user:pa@ss#w?rd@host:80/a@b.zip#secret", "https://host:80/a@b.zip"),
        ("ftp://user:pass/word@host/no.zip", "ftp://host/no.zip"),
        ("http://host:8080/a@b/no.zip", "http://host:8080/a@b/no.zip"),
        ("s3://bucket/a key.zip?X-Amz-Signature=secret&x=1", "s3://bucket/a key.zip"),
        ("what?/is/no@address.zip", "what?/is/no@address.zip"),
    ],
)
def test_what_may_be_secret_in_an_address_is_not_shown(address: str, expected: str) -> None:
    assert redact_address(address) == expected
    if " " not in address:
        assert redact(f"of '{address}': no.") == f"of '{expected}': no."


def test_no_sentence_shows_a_password_or_a_signature(tmp_path: Path, memory: Any, capsys: Any) -> None:
    for scheme in ("http", "HTTP", "ftp", "s3", "nonsense"):
        address = f"{scheme}://user:password@127.0.0.1:9/no.zip?sig=signature"
        for arguments in ([address, "--truth", str(ANNOTATIONS)], [str(STRONG), "--truth", address]):
            for option in ([], ["--report", str(tmp_path / "page.html")]):
                assert cli.main(["score", *arguments, "--protocol", "davis2017", *option]) != 0
    memory.pipe("/sent/no.zip?sig=signature", STRONG.read_bytes())
    page = tmp_path / "page.html"
    arguments = [
        "memory://sent/no.zip?sig=signature", "--truth", str(ANNOTATIONS), "--report", str(page), "--json", "-",
    ]  # fmt: skip
    assert cli.main(["score", *arguments, "--protocol", "davis2017"]) == 0
    text = "".join(capsys.readouterr()) + page.read_text() + "".join(path.name for path in tmp_path.rglob("*"))
    assert "password" not in text
    assert "signature" not in text
    assert "no.zip" in page.read_text()


def test_what_an_api_answers_shows_no_password_and_no_signature() -> None:
    error = ApiError(0, "https://user:password@host/a.zip?X-Amz-Signature=signature does not answer")
    assert (str(error), error.message) == ("https://host/a.zip does not answer",) * 2


def test_a_folder_is_listed_as_one_on_this_machine(memory: Any, tmp_path: Path) -> None:
    names = ["b/0.png", "a.txt", "a/1.png", "a/b/2.png", "z", ".hidden", "__MACOSX/x", "a/.x/3.png", "empty.png"]
    for name in names:
        data = b"" if "empty" in name else name.encode()
        memory.pipe(f"/sent/{name}", data)
        path = tmp_path / "sent" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    local = open_files(str(tmp_path / "sent"), ArchiveLimits())
    remote = open_files(resolve_address("memory://sent/"), ArchiveLimits())
    assert list(remote.sizes.items()) == list(local.sizes.items())
    assert {name: remote.read(name) for name in remote.sizes} == {name: local.read(name) for name in local.sizes}
    with pytest.raises(SubmissionError, match="holds more than 3 files"):
        open_files(resolve_address("memory://sent"), ArchiveLimits(members=3))
    with pytest.raises(SubmissionError, match="is 2 folders deep; the limit is 1"):
        open_files(resolve_address("memory://sent"), ArchiveLimits(depth=2))


@pytest.mark.parametrize("data", [b"longer than it was", b"no"])
def test_a_file_that_changes_while_it_is_read_is_reported(memory: Any, data: bytes) -> None:
    memory.pipe("/sent/a", b"content")
    folder = resolve_address("memory://sent")
    assert isinstance(folder, RemoteFolder)
    memory.pipe("/sent/a", data)
    with pytest.raises(AddressError, match="a changed while it was read"):
        open_files(folder, ArchiveLimits()).read("a")


@pytest.fixture
def bucket(aws: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the address of a bucket with results and truths, as files and as folders."""
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": aws}.items():
        monkeypatch.setenv(name, value)
    s3, name = client(aws, "s3"), f"data-{time.monotonic_ns()}"
    s3.create_bucket(Bucket=name)
    files = write_sequences(tmp_path)
    objects = {f"sent/{file}": data for file, data in masks(SENT).items()}
    objects |= {f"root/{file}": data for file, data in masks(TRUTH).items()}
    objects |= {"sent.zip": Path(files.results).read_bytes(), "packed.zip": Path(files.truth).read_bytes()}
    for key, data in objects.items():
        s3.put_object(Bucket=name, Key=key, Body=data)
    return f"s3://{name}"


@pytest.mark.long
def test_results_and_truths_in_a_bucket_score_as_those_on_this_machine(bucket: str, tmp_path: Path, aws: str) -> None:
    expected = content(score(tmp_path / "sent.zip", tmp_path / "packed.zip"))
    for results in ("sent.zip", "sent"):
        for jobs in (1, 3):
            assert content(score(f"{bucket}/{results}", f"{bucket}/packed.zip", jobs=jobs)) == expected
    plain = score(tmp_path / "sent.zip", tmp_path / "truth.zip")
    assert content(score(f"{bucket}/sent.zip", f"{bucket}/root")) == content(plain)
    with pytest.raises(SubmissionError, match="does not exist"):
        score(f"{bucket}/none.zip", f"{bucket}/packed.zip")
    with pytest.raises(SubmissionError, match="does not exist"):
        score(f"{bucket}-none/none.zip", f"{bucket}/packed.zip")
    with pytest.raises(HostError, match="does not exist"):
        score(f"{bucket}/sent.zip", f"{bucket}/none.zip")


@pytest.mark.long
def test_a_server_that_refuses_is_reported(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(HostError, match=f"^{bucket}/sent.zip: cannot be read"):
        resolve_address(f"{bucket}/sent.zip")


def without_provenance(text: str) -> object:
    """Return the scores without their provenance, which names the address."""
    return {**json.loads(text), "provenance": None}


@pytest.mark.long
def test_the_workers_of_a_cluster_read_a_bucket_by_themselves(
    bucket: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["--protocol", "davis2017", "--json", "-"]
    assert cli.main(["score", str(tmp_path / "sent.zip"), "--truth", str(tmp_path / "packed.zip"), *given]) == 0
    expected = without_provenance(capfd.readouterr().out)
    with cluster(tmp_path / "dask") as made:
        monkeypatch.delenv("AWS_ENDPOINT_URL")  # the client needs none
        for results in ("sent.zip", "sent"):
            command = ["score", f"{bucket}/{results}", "--truth", f"{bucket}/packed.zip", *given]
            assert cli.main([*command, "--scheduler", made.address]) == 0
            assert without_provenance(capfd.readouterr().out) == expected
