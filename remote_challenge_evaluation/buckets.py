"""Buckets of the host's own in S3: where annotations come from, and where reports are kept."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from segjudge.platforms.evalai.client import StoppedError, Watch, call_watched, with_deadline

from .journal import JobReport
from .operator_log import Log
from .owners import FETCHED
from .startup_check import StartError

#: Seconds within which AWS answers.
AWS_SECONDS = 60.0


def aws_client(service: str) -> Any:
    """Return a client of AWS that does not wait for ever."""
    import boto3
    from botocore.config import Config

    config = Config(connect_timeout=10, read_timeout=60, retries={"max_attempts": 3})
    return boto3.client(service, config=config)  # type: ignore[call-overload]


def _bucket_and_prefix(address: str) -> tuple[str, str]:
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    return bucket, prefix.strip("/")


def keep_report(address: str, submission: int, report: JobReport, log: Log) -> None:
    """Write a report into the bucket of this address; nothing where none is set."""
    if not address:
        return
    bucket, prefix = _bucket_and_prefix(address)
    body = json.dumps(report, indent=1, default=str).encode()
    fields = {"Bucket": bucket, "Key": os.path.join(prefix, f"submission_{submission}.json"), "Body": body}
    try:
        call_watched(
            lambda: aws_client("s3").put_object(**fields, ContentType="application/json"), with_deadline(AWS_SECONDS)
        )
    except Exception as error:  # noqa: BLE001 - the result is reported; this copy of it is optional
        log("not kept", submission=submission, where=address, why=str(error)[:300])


def annotations_from(address: str, folder: str, names: list[str], owner: str, watch: Watch) -> str:
    """Return the folder with the annotations; from a bucket they are fetched into ours, if they have changed."""
    if not address.startswith("s3://"):
        return os.path.abspath(address)
    try:
        return call_watched(lambda: _fetch(address, folder, names, owner), watch)
    except StoppedError:
        raise
    except Exception as error:  # noqa: BLE001 - botocore's errors have no family; all of them say what is wrong
        raise StartError(f"ANNOTATIONS {address}: {error}") from None


def _fetch(address: str, folder: str, names: list[str], owner: str) -> str:
    bucket, prefix = _bucket_and_prefix(address)
    s3 = aws_client("s3")
    target = os.path.join(folder, FETCHED)
    os.makedirs(target, mode=0o700, exist_ok=True)
    for name in names:
        key = os.path.join(prefix, name)
        tag_path, path = Path(target, f"{name}.etag"), os.path.join(target, name)
        tag = s3.head_object(Bucket=bucket, Key=key)["ETag"]
        if os.path.exists(path) and tag_path.exists() and tag_path.read_text(encoding="utf-8") == tag:
            continue
        partial = f"{path}-{owner}.partial"
        s3.download_file(bucket, key, partial)
        os.replace(partial, path)
        tag_path.write_text(tag, encoding="utf-8")
    return target
