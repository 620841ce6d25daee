"""A queue and buckets of the host's own, with a server that speaks SQS and S3."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import requests

from tests.builders import ROOT
from tests.rehearsals import Rehearsal, steady_port, waited
from tests.remote_workers import Operator, operator_of, remote_server, status, submitted

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    """Start moto's server as a process."""
    port = steady_port()
    with subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        address = f"http://127.0.0.1:{port}"
        try:
            waited(lambda: _answers(address), 60)
            yield address
        finally:
            process.kill()


def _answers(address: str) -> bool:
    try:
        return requests.get(address, timeout=2).status_code < 500
    except (requests.ConnectionError, requests.Timeout):
        return False


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    yield from remote_server(tmp_path_factory.mktemp("aws"))


@pytest.fixture
def operator(server: Rehearsal, aws: str, tmp_path: Path) -> Operator:
    made = operator_of(server, tmp_path)
    made.environment.update(KEYS, AWS_ENDPOINT_URL=aws)
    return made


def client(aws: str, name: str) -> Any:
    return boto3.client(
        name, endpoint_url=aws, aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1"
    )


@pytest.fixture
def bucket(aws: str) -> str:
    s3 = client(aws, "s3")
    name = f"host-{time.monotonic_ns()}"
    s3.create_bucket(Bucket=name)
    for path in (ROOT / "annotations").iterdir():
        s3.upload_file(str(path), name, f"truth/{path.name}")
    return name


def newer(path: Path) -> bytes:
    """Return the same truth as another file."""
    made = io.BytesIO(path.read_bytes())
    with zipfile.ZipFile(made, "a") as archive:
        archive.comment = b"newer"
    return made.getvalue()


@pytest.mark.long
def test_truth_comes_from_a_bucket_and_results_go_there(
    server: Rehearsal, operator: Operator, aws: str, bucket: str
) -> None:
    operator.environment.update(ANNOTATIONS=f"s3://{bucket}/truth", ARTIFACTS=f"s3://{bucket}/results")
    number = submitted(server)
    operator.run("--once")
    assert server.settled(number)["status"] == "finished"
    stored = client(aws, "s3").get_object(Bucket=bucket, Key=f"results/submission_{number}.json")["Body"].read()
    assert json.loads(stored)["accuracies"][0]["split"] == "dev"
    kept = operator.folder / "machine/annotations/sequences-dev.zip"
    first = kept.stat().st_mtime_ns
    operator.run("--check")
    assert kept.stat().st_mtime_ns == first, "fetched once"
    client(aws, "s3").put_object(Bucket=bucket, Key="truth/sequences-dev.zip", Body=newer(kept))
    operator.run("--check")
    assert kept.stat().st_mtime_ns == first, "a check touches nothing"
    operator.run("--once")
    assert kept.stat().st_mtime_ns != first
    assert zipfile.ZipFile(kept).comment == b"newer"


@pytest.fixture
def queue(aws: str) -> str:
    sqs = client(aws, "sqs")
    return str(sqs.create_queue(QueueName=f"own-{time.monotonic_ns()}")["QueueUrl"])


@pytest.mark.long
def test_a_queue_of_the_hosts_own(server: Rehearsal, operator: Operator, aws: str, queue: str) -> None:
    sqs = client(aws, "sqs")
    number = submitted(server)
    body = json.dumps({"submission_pk": str(number), "phase_pk": "1", "challenge_pk": "1"})
    sqs.send_message(QueueUrl=queue, MessageBody=body)
    process = operator.start(SQS_QUEUE_URL=queue)
    try:
        assert server.settled(number)["status"] == "finished"
        waited(lambda: _count(sqs, queue) == 0, 20)
        time.sleep(0.5)  # idle now, and still listening
        number = submitted(server)
        body = json.dumps({"submission_pk": number, "phase_pk": 1, "challenge_pk": 1})
        sqs.send_message(QueueUrl=queue, MessageBody=body)
        waited(lambda: status(server, number) != "submitted", 20)
    finally:
        process.terminate()
        process.communicate(timeout=40)


def _count(sqs: Any, queue: str) -> int:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    attributes = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"]
    return sum(int(value) for value in attributes.values())
