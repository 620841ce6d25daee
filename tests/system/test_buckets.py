"""A bucket and a cache without a network: what they are asked, what is kept, and what is said of failures."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from segjudge.evaluation_script.files.problems import HostError
from segjudge.system import addresses
from segjudge.system.addresses import RemoteFolder, _S3Files, digest_of, resolve_address
from segjudge.system.errors import UsageError
from tests.calls import outcome

ADDRESS = "https://u:p@x.test/y?z"
OBJECTS = {"a.zip": b"zip", "sent/b/1": b"one", "sent/c": b"two", "sent/": b"", "sentinel": b"x", "sent/b/0": b""}


class Client:
    """A minimal S3, which notes its requests."""

    class exceptions:  # noqa: N801 - boto3's name
        class ClientError(Exception):
            def __init__(self, status: int) -> None:
                super().__init__(f"status {status}")
                self.response = {"ResponseMetadata": {"HTTPStatusCode": status}}

        class NoSuchBucket(Exception):
            pass

    def __init__(self) -> None:
        self.asked = list[str]()

    def head_object(self, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        self.asked.append(f"head {Bucket} {Key}")
        if Key not in OBJECTS:
            raise self.exceptions.ClientError(403 if Key == "refused" else 404)
        return {"ETag": "tag", "LastModified": "day", "ContentLength": len(OBJECTS[Key])}

    def get_paginator(self, name: str) -> Any:
        def paginate(Bucket: str, Prefix: str) -> Iterator[dict[str, Any]]:  # noqa: N803
            self.asked.append(f"{name} {Bucket} {Prefix}")
            if Bucket == "none":
                raise self.exceptions.NoSuchBucket
            for key, data in OBJECTS.items():
                if key.startswith(Prefix):
                    yield {"Contents": [{"Key": key, "Size": len(data)}]}
            yield {}

        return SimpleNamespace(paginate=paginate)

    def get_object(self, Bucket: str, Key: str, Range: str = "bytes=0-999") -> dict[str, Any]:  # noqa: N803
        self.asked.append(f"get {Bucket} {Key} {Range}")
        begin, end = re.findall(r"\d+", Range)
        return {"Body": io.BytesIO(OBJECTS[Key][int(begin) : int(end) + 1])}


@pytest.fixture
def client() -> Client:
    return Client()


FOLDER = {"type": "directory", "size": 0}


@pytest.mark.parametrize(
    ("path", "expected", "asked"),
    [
        ("bucket/a.zip", {"name": "bucket/a.zip", "type": "file", "size": 3, "ETag": "tag", "LastModified": "day"}, ["head bucket a.zip"]),
        ("bucket/sent", {"name": "bucket/sent", **FOLDER}, ["head bucket sent", "list_objects_v2 bucket sent/"]),
        ("bucket/sent/", {"name": "bucket/sent", **FOLDER}, ["head bucket sent", "list_objects_v2 bucket sent/"]),
        ("bucket", {"name": "bucket", **FOLDER}, ["list_objects_v2 bucket "]),
        ("bucket/none", "FileNotFoundError: bucket/none", ["head bucket none", "list_objects_v2 bucket none/"]),
        ("bucket/refused", "ClientError: status 403", ["head bucket refused"]),
        ("none/x", "FileNotFoundError: none", ["head none x", "list_objects_v2 none x/"]),
        ("none", "FileNotFoundError: none", ["list_objects_v2 none "]),
    ],
)  # fmt: skip
def test_a_path_is_an_object_or_a_folder_of_objects(path: str, expected: Any, asked: list[str], client: Client) -> None:
    assert outcome(lambda: _S3Files(client).info(path)) == expected
    assert client.asked == asked


def test_objects_are_listed_and_read_in_ranges(client: Client) -> None:
    bucket = _S3Files(client)
    listed = bucket.find("bucket/sent/", detail=True)
    assert [(name, entry["size"]) for name, entry in listed.items()] == [
        ("bucket/sent/b/1", 3), ("bucket/sent/c", 3), ("bucket/sent/", 0), ("bucket/sent/b/0", 0),
    ]  # fmt: skip
    assert listed["bucket/sent/c"] == {"name": "bucket/sent/c", "type": "file", "size": 3}
    assert [*bucket.find("bucket", detail=True)] == [f"bucket/{key}" for key in OBJECTS]
    client.asked.clear()
    assert bucket.cat_ranges(["bucket/a.zip", "bucket/sent/c"], [0, 1], [2, 9], on_error="raise") == [b"zi", b"wo"]
    assert sorted(client.asked) == ["get bucket a.zip bytes=0-1", "get bucket sent/c bytes=1-8"]


def test_addresses_of_a_bucket_are_files_and_folders(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = _S3Files(client)
    monkeypatch.setenv("SEGJUDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(addresses, "_s3_files", lambda _address: bucket)
    assert Path(resolve_address("s3://bucket/a.zip")).read_bytes() == b"zip"
    assert Path(resolve_address("S3A://bucket/a.zip")).name == "a.zip"
    folder = resolve_address("s3://user:secret@bucket/sent/")
    assert isinstance(folder, RemoteFolder)
    assert f"{folder:>20}" == "   s3://bucket/sent/"
    assert folder.sizes == {"c": 3, "b/0": 0, "b/1": 3}
    assert digest_of(folder) == "folder:7e5aef6b027c9d264c453450c8116a8c573a43af508c44d6652da43db1add8cf"
    for address, error in (
        ("s3://none/x", "UsageError: s3://none/x: does not exist"),
        ("s3://bucket/none", "UsageError: s3://bucket/none: does not exist"),
        ("s3://bucket/refused", "AddressError: s3://bucket/refused: cannot be read (ClientError: status 403)"),
    ):
        assert outcome(lambda address=address: resolve_address(address, UsageError)) == error


# ── the cache ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("size", "data", "accepted"),
    [(4, b"1234", True), (4, b"123", False), (4, b"12345", False), (0, b"", True), (None, b"x" * 50, True), (None, b"x" * 51, False)],
)  # fmt: skip
def test_a_file_is_kept_if_it_has_the_expected_bytes(
    size: int | None, data: bytes, accepted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = SimpleNamespace(open=lambda _source, _mode: io.BytesIO(data))
    monkeypatch.setattr(addresses, "_system", lambda _address: (system, "x"))
    monkeypatch.setattr(addresses, "_cache_bytes", lambda: 50)
    monkeypatch.setattr(addresses, "_CHUNK", 3)
    changed = f"did not have the {size or 50} bytes that were expected; it may have changed"
    error = None if accepted else f"AddressError: https://x.test/y: {changed}"
    assert outcome(lambda: addresses._fetch(ADDRESS, tmp_path / "fetched", size)) == error
    assert [path.read_bytes() for path in tmp_path.iterdir()] == ([data] if accepted else [])


def fail(error: Exception) -> Callable[[], None]:
    def read() -> None:
        with addresses._report_errors(ADDRESS):
            raise error

    return read


def test_an_address_that_cannot_be_read_shows_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as bare:
        bare.setattr("segjudge.system.extras.install_line", "the line for {}{}".format)
        for package, address, shown in (
            ("fsspec.core", ADDRESS, "https://x.test/y needs the extra cluster (fsspec"),
            ("boto3", "s3://u:p@bucket/y?z", "s3://bucket/y needs the extra cluster (boto3"),
        ):
            addresses._connect.cache_clear()
            bare.setitem(sys.modules, package, None)
            error = f"MissingExtraError: {shown} is not installed): the line for cluster"
            assert outcome(lambda address=address: addresses._system(address)) == error
    sentence = "UsageError: nothing://x.test/y: Protocol not known: nothing"
    assert outcome(lambda: addresses._system("nothing://u:p@x.test/y?z")) == sentence
    assert type(addresses._system(ADDRESS.upper())[0]).__name__ == "HTTPFileSystem"
    cannot = "AddressError: https://x.test/y: cannot be read"
    assert outcome(fail(OSError("x" * 400 + "\nsecond"))) == f"{cannot} (OSError: {'x' * 291})"
    assert outcome(fail(OSError(f"at {ADDRESS}"))) == f"{cannot} (OSError: at https://x.test/y)"
    assert issubclass(addresses.AddressError, HostError)
