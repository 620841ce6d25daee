"""Files of S3, read through boto3 by the methods of an fsspec file system that addresses need.

Not s3fs: it pins the botocore of a few weeks, so that pip finds no versions for whoever has another boto3.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, BinaryIO

from segjudge.system.errors import UsageError, install_line

#: Requests at a time.
AT_A_TIME = 16


class S3Files:
    """The files of S3, by BUCKET/KEY."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def info(self, path: str) -> dict[str, Any]:
        """Return what a file is, or that a folder is one; raises FileNotFoundError where nothing is there."""
        bucket, _, key = path.rstrip("/").partition("/")
        if key:
            try:
                found = self._client.head_object(Bucket=bucket, Key=key)
            except self._client.exceptions.ClientError as error:
                if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:
                    raise
            else:
                properties = {"ETag": found["ETag"], "LastModified": found["LastModified"]}
                return {"name": path, "type": "file", "size": found["ContentLength"], **properties}
        if next(self._listed(bucket, f"{key}/" if key else ""), None) is None:
            raise FileNotFoundError(path)
        return {"name": path.rstrip("/"), "type": "directory", "size": 0}

    def find(self, path: str, *, detail: bool) -> dict[str, dict[str, Any]]:
        """Return the files under a folder."""
        del detail
        bucket, _, key = path.rstrip("/").partition("/")
        return {
            f"{bucket}/{name}": {"name": f"{bucket}/{name}", "type": "file", "size": size}
            for name, size in self._listed(bucket, f"{key}/" if key else "")
        }

    def _listed(self, bucket: str, prefix: str) -> Iterator[tuple[str, int]]:
        try:
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
                for entry in page.get("Contents", []):
                    yield entry["Key"], entry["Size"]
        except self._client.exceptions.NoSuchBucket:
            raise FileNotFoundError(bucket) from None

    def open(self, path: str, mode: str) -> BinaryIO:
        """Return a file as a stream."""
        del mode
        bucket, _, key = path.partition("/")
        body: Any = self._client.get_object(Bucket=bucket, Key=key)["Body"]
        stream: BinaryIO = body
        return stream

    def cat_ranges(
        self, paths: Sequence[str], starts: Sequence[int], ends: Sequence[int], on_error: str
    ) -> list[bytes]:
        """Return parts of files."""
        del on_error

        def part(path: str, start: int, end: int) -> bytes:
            bucket, _, key = path.partition("/")
            body = self._client.get_object(Bucket=bucket, Key=key, Range=f"bytes={start}-{end - 1}")["Body"]
            return bytes(body.read())

        with ThreadPoolExecutor(AT_A_TIME) as pool:
            return list(pool.map(part, paths, starts, ends))


def s3_files(address: str) -> S3Files:
    """Return the files of S3, for this process and its credentials."""
    settings = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION")
    try:
        return _connected(os.getpid(), *(os.environ.get(name) for name in settings))
    except ImportError:
        raise UsageError(f"{address}: addresses need boto3: {install_line('cluster')}") from None


@lru_cache(maxsize=4)
def _connected(*_process_and_settings: object) -> S3Files:
    import boto3
    from botocore.config import Config

    retries = Config(max_pool_connections=AT_A_TIME, retries={"mode": "standard", "max_attempts": 5})
    return S3Files(boto3.client("s3", config=retries))
