"""Results and truths at addresses such as s3://bucket/results.zip, read through fsspec or, for S3, boto3.

A file is fetched once into a bounded cache that all processes of this machine share; a folder is listed, and only the
needed files are read. Credentials are this machine's own.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, BinaryIO

from segjudge.evaluation_script.files.archive import FolderElsewhere
from segjudge.evaluation_script.files.limits import ArchiveLimits, Files, MemberChecks, is_litter, size_text
from segjudge.evaluation_script.files.problems import Flaw, HostError, SubmissionError
from segjudge.evaluation_script.scoring import provenance
from segjudge.system.errors import UsageError
from segjudge.system.files import digest_of_bytes, file_name, redact, redact_address
from segjudge.system.python310 import Self

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

#: The variables with the cache's folder, and with its maximum gigabytes.
_FOLDER, _GIGABYTES = "SEGJUDGE_CACHE", "SEGJUDGE_CACHE_GB"
_DEFAULT_GIGABYTES = 50.0
#: The number of bytes fetched at a time.
_CHUNK = 8 << 20
#: The maximum number of a folder's files that are read ahead, and their maximum bytes.
_AHEAD_FILES, _AHEAD_BYTES = 64, 16 << 20
#: The maximum number of simultaneous requests of S3.
_REQUESTS = 16
#: The file systems' names of the property that changes with a file.
_VERSIONS = (
    "ETag", "etag", "md5Hash", "content_md5", "Content-MD5", "mtime", "LastModified", "Last-Modified", "last_modified",
    "updated", "modified",
)  # fmt: skip


class AddressError(HostError):
    """Raised if an address cannot be read at present: a network or a server fails."""


class _FetchedFile(str):
    """The path of a file in the cache, which keeps it as long as this object lives."""

    __slots__ = ("_descriptor", "address")
    #: The open file with the lock.
    _descriptor: int
    #: Its address without secrets, by which messages name it.
    address: str

    @classmethod
    def lock(cls, path: str, address: str) -> Self:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        import fcntl

        file = cls(path)
        file._descriptor, file.address = descriptor, redact_address(address)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return file

    def __del__(self) -> None:
        os.close(self._descriptor)


class RemoteFolder(FolderElsewhere):
    """The address of a remote folder and the state of its files, printed without secrets."""

    __slots__ = ("sizes",)
    #: Names under the folder, in the order of a folder on this machine, with their sizes.
    sizes: dict[str, int]

    @classmethod
    def from_sizes(cls, address: str, sizes: dict[str, int]) -> Self:
        folder = cls(address)
        folder.sizes = {name: sizes[name] for name in sorted(sizes, key=_order)}
        return folder

    def __str__(self) -> str:
        return redact_address(self[:])

    def __format__(self, form: str) -> str:
        return format(str(self), form)

    def open_files(self, limits: ArchiveLimits) -> Files:
        return _RemoteFiles(self, limits)


def digest_of(path: str) -> str:
    """Return a digest that identifies a local or remote file or folder."""
    if not isinstance(path, RemoteFolder):
        return provenance.digest_of(path)
    import hashlib  # which loads OpenSSL

    digest = hashlib.sha256()
    for name, size in path.sizes.items():
        digest.update(f"{name}\0{size}\n".encode("utf-8", "surrogateescape"))
    return f"folder:{digest.hexdigest()}"


def digest_of_content(path: str) -> str:
    """Return the SHA-256 of a local file, or of a folder's list of files as `sha256sum` prints it."""
    if os.path.isfile(path):
        return digest_of_bytes(path)
    import hashlib  # which loads OpenSSL

    files = (f"./{name}" for name, _ in provenance.list_sizes(path) if os.path.isfile(os.path.join(path, name)))
    digest, root = hashlib.sha256(), os.fsencode(path)
    for name in sorted(map(os.fsencode, files)):
        digest.update(f"{digest_of_bytes(os.path.join(root, name))}  ".encode() + name + b"\n")
    return digest.hexdigest()


def resolve_address(address: str, missing: type[Exception] = HostError) -> str:
    """Return the fetched file or remote folder of an address.  A local path is returned unchanged.

    Raises `missing` for an address that does not exist, as for a local path, and AddressError if its existence cannot
    be determined.
    """
    if "://" not in address:
        return address
    system, path = _system(address)
    with _report_errors(address, missing):
        information = system.info(path)
        if information["type"] != "directory":
            return _fetch_once(address, information)
        entries = system.find(path, detail=True)
    root = information["name"].rstrip("/") + "/"
    sizes = {name.removeprefix(root): entry["size"] for name, entry in entries.items() if not name.endswith("/")}
    return RemoteFolder.from_sizes(address, sizes)


def address_of(path: str) -> str:
    """Return the address of a fetched file, without secrets; another path is returned unchanged."""
    return path.address if isinstance(path, _FetchedFile) else path


@contextmanager
def name_addresses_in_errors(*paths: str) -> Iterator[None]:
    """Raise each error about these files with their addresses instead of paths in the cache."""
    try:
        yield
    except (HostError, SubmissionError, UsageError) as error:
        for path in paths:
            error.args = tuple(str(text).replace(path, address_of(path)) for text in error.args) if path else error.args
        raise


def _order(name: str) -> list[tuple[bool, str]]:
    """Return the sort key that puts a folder's files before its subfolders."""
    *folders, file = name.split("/")
    return [*((True, folder) for folder in folders), (False, file)]


def _system(address: str) -> tuple[AbstractFileSystem | _S3Files, str]:
    """Return the file system of an address, one per process, and the path in it."""
    scheme, _, path = address.partition("://")
    scheme = scheme.lower()
    if scheme in ("s3", "s3a"):
        return _s3_files(redact_address(address)), path
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        from segjudge.system.extras import make_error

        raise make_error("cluster", redact_address(address), "fsspec") from None
    try:
        system, inner_path = url_to_fs(f"{scheme}://{path}", use_listings_cache=False)
    except (ImportError, ValueError) as error:
        raise UsageError(f"{redact_address(address)}: {_redact(address, str(error).partition(chr(10))[0])}") from None
    except OSError as error:  # an FTP server is connected to at once
        raise AddressError(f"{redact_address(address)}: cannot be reached ({_redact(address, str(error))})") from None
    return system, str(inner_path)


def _redact(address: str, text: str) -> str:
    """Return a library's message about an address, without secrets."""
    return redact(text.replace(address, redact_address(address)))


@contextmanager
def _report_errors(address: str, missing: type[Exception] = HostError) -> Iterator[None]:
    try:
        yield
    except (UsageError, HostError):
        raise
    except Exception as error:  # each file system has its own errors
        # fsspec's HTTP reports an unreachable server in the same way.
        if isinstance(error, FileNotFoundError) and not isinstance(error.__cause__, OSError):
            raise missing(f"{redact_address(address)}: does not exist") from error
        reason = error.__cause__ if isinstance(error, FileNotFoundError) else error
        what = _redact(address, f"{type(reason).__name__}: {reason}").partition("\n")[0][:300]
        raise AddressError(f"{redact_address(address)}: cannot be read ({what})") from None


def _fetch_once(address: str, information: dict[str, Any]) -> _FetchedFile:
    import hashlib  # which loads OpenSSL

    try:
        import fcntl
    except ImportError:
        system = "Segjudge reads addresses on Linux and macOS"
        raise UsageError(f"{redact_address(address)}: {system}; fetch the file and name its path") from None
    size, base = information["size"], file_name(redact_address(address).rstrip("/").rpartition("/")[2])[-100:]
    versions = [str(information[name]) for name in _VERSIONS if information.get(name)] or [os.urandom(16).hex()]
    key = hashlib.sha256("\0".join([address, str(size), *versions]).encode()).hexdigest()[:24]
    cache = _cache()
    path = cache / key / base  # alone in its folder, where readers look for files beside it, and under its own name
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(cache / "lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _make_room(cache, size or 0, address)
            _fetch(address, path, size)
        os.utime(path)
        return _FetchedFile.lock(str(path), address)


def _cache() -> pathlib.Path:
    usual = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get(_FOLDER) or pathlib.Path(usual) / "segjudge" / "fetched")


def _cache_bytes() -> int:
    text = os.environ.get(_GIGABYTES) or str(_DEFAULT_GIGABYTES)
    try:
        return int(float(text) * 1e9)
    except (ValueError, OverflowError):
        raise UsageError(f"{_GIGABYTES} is a number of gigabytes, not {text!r}") from None


def _make_room(cache: pathlib.Path, size: int, address: str) -> None:
    """Remove the least recently used files until a file of this size fits, except those in use."""
    for partial in cache.glob("*.partial"):  # left by a process that was killed
        partial.unlink()
    contents = [path for path in cache.rglob("*") if path.is_file() and path != cache / "lock"]
    files = sorted(contents, key=lambda path: path.stat().st_mtime)
    total = sum(path.stat().st_size for path in files)
    for path in files:
        if total + size <= _cache_bytes():
            return
        import fcntl

        with open(path, "rb") as file, suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            total -= path.stat().st_size
            path.unlink()
            with suppress(OSError):  # the cache itself, which earlier versions filled, is not empty
                path.parent.rmdir()
    if total + size > _cache_bytes():
        room = f"the cache {cache}, which may hold {size_text(_cache_bytes())} and has {size_text(total)} in use"
        raise UsageError(
            f"{redact_address(address)}: {size_text(size)} do not fit into {room}; {_GIGABYTES} sets how much"
        )


def _fetch(address: str, path: pathlib.Path, size: int | None) -> None:
    """Fetch a file; raises AddressError if it exceeds its announced size or the cache."""
    system, source = _system(address)
    partial, bound, count = path.parent.with_suffix(".partial"), _cache_bytes() if size is None else size, 0
    try:
        with system.open(source, "rb") as remote, open(partial, "wb") as file:
            while data := remote.read(_CHUNK):
                count += len(data)
                if count > bound:
                    break
                file.write(data)
        if count > bound or (size is not None and count < size):
            expected = f"the {size_text(bound)} that were expected"
            raise AddressError(f"{redact_address(address)}: did not have {expected}; it may have changed")
        path.parent.mkdir(mode=0o700, exist_ok=True)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


class _RemoteFiles(Files):
    """The files of a remote folder; reading one fetches its neighbours too."""

    def __init__(self, folder: RemoteFolder, limits: ArchiveLimits) -> None:
        super().__init__()
        self._address = folder[:].rstrip("/")
        #: The names of files by the names under which they are read.
        self._names: dict[str, str] = {}
        self._read: dict[str, bytes] = {}
        checks = MemberChecks(limits)
        try:
            for name, size in folder.sizes.items():
                checks.count()
                clean = None if is_litter(name.split("/")) else checks.clean_name(name, size, size)
                if clean is not None:
                    self.sizes[clean], self._names[clean] = size, name
        except Flaw as flaw:
            raise SubmissionError.from_problem(flaw.as_problem(folder)) from None
        checks.problems.raise_if_any()
        self._order = list(self.sizes)
        self._indices = {name: index for index, name in enumerate(self._order)}

    def read_chunks(self, name: str) -> Iterator[bytes]:
        if name not in self._read:
            self._read = self._with_next(name)
        yield self._read[name]

    def _with_next(self, name: str) -> dict[str, bytes]:
        """Return a file and the next ones in its folder."""
        index, folder, total = self._indices[name], name.rpartition("/")[0], 0
        names: list[str] = []
        for next_name in self._order[index : index + _AHEAD_FILES]:
            total += self.sizes[next_name]
            if names and (total > _AHEAD_BYTES or next_name.rpartition("/")[0] != folder):
                break
            names.append(next_name)
        system, root = _system(self._address)
        filled = [name for name in names if self.sizes[name]]  # an empty range is impossible
        paths = [f"{root}/{self._names[name]}" for name in filled]
        stops = [
            self.sizes[name] + 1 for name in filled
        ]  # one byte more, so that a file that has grown does not seem complete
        with _report_errors(self._address):
            blocks = system.cat_ranges(paths, [0] * len(paths), stops, on_error="raise")
        contents = dict.fromkeys(names, b"") | {key: bytes(data) for key, data in zip(filled, blocks)}
        for key, data in contents.items():
            if len(data) != self.sizes[key]:
                raise AddressError(f"{redact_address(self._address)}: {key} changed while it was read")
        return contents


class _S3Files:
    """The files of S3 by BUCKET/KEY, with the used methods of an fsspec file system.

    It does not use s3fs, which pins a recent botocore: with another boto3, pip finds no compatible versions.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def info(self, path: str) -> dict[str, Any]:
        """Return the facts of a file or folder; raises FileNotFoundError if neither exists."""
        bucket, _, key = path.rstrip("/").partition("/")
        if key:
            try:
                properties = self._client.head_object(Bucket=bucket, Key=key)
            except self._client.exceptions.ClientError as error:
                if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:
                    raise
            else:
                values = {name: properties[name] for name in ("ETag", "LastModified")}
                return {"name": path, "type": "file", "size": properties["ContentLength"], **values}
        if next(self._list_files(bucket, f"{key}/" if key else ""), None) is None:
            raise FileNotFoundError(path)
        return {"name": path.rstrip("/"), "type": "directory", "size": 0}

    def find(self, path: str, *, detail: bool) -> dict[str, dict[str, Any]]:
        del detail
        bucket, _, key = path.rstrip("/").partition("/")
        return {
            f"{bucket}/{name}": {"name": f"{bucket}/{name}", "type": "file", "size": size}
            for name, size in self._list_files(bucket, f"{key}/" if key else "")
        }

    def _list_files(self, bucket: str, prefix: str) -> Iterator[tuple[str, int]]:
        try:
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
                for entry in page.get("Contents", []):
                    yield entry["Key"], entry["Size"]
        except self._client.exceptions.NoSuchBucket:
            raise FileNotFoundError(bucket) from None

    def open(self, path: str, mode: str) -> BinaryIO:
        del mode
        bucket, _, key = path.partition("/")
        body: Any = self._client.get_object(Bucket=bucket, Key=key)["Body"]
        stream: BinaryIO = body
        return stream

    def cat_ranges(
        self, paths: Sequence[str], starts: Sequence[int], ends: Sequence[int], on_error: str
    ) -> list[bytes]:
        del on_error

        def read_range(path: str, start: int, end: int) -> bytes:
            bucket, _, key = path.partition("/")
            body = self._client.get_object(Bucket=bucket, Key=key, Range=f"bytes={start}-{end - 1}")["Body"]
            return bytes(body.read())

        from concurrent.futures import ThreadPoolExecutor  # only of a bucket

        with ThreadPoolExecutor(_REQUESTS) as pool:
            return list(pool.map(read_range, paths, starts, ends))


def _s3_files(address: str) -> _S3Files:
    settings = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION")
    try:
        return _connect(os.getpid(), *(os.environ.get(name) for name in settings))
    except ImportError:
        from segjudge.system.extras import make_error

        raise make_error("cluster", address, "boto3") from None


@lru_cache(maxsize=4)
def _connect(*_process_and_settings: object) -> _S3Files:
    import boto3
    from botocore.config import Config

    retries = Config(max_pool_connections=_REQUESTS, retries={"mode": "standard", "max_attempts": 5})
    return _S3Files(boto3.client("s3", config=retries))
