"""A storage in a data set of the played Hub, by the real client."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import HfApi

from segjudge.evaluation_script.files.problems import HostError
from segjudge.ledger.hub_dataset import PACK, HubDataset
from segjudge.ledger.storage import MovedError
from segjudge.platforms.hugging_face.requests import Request, clean_file, clean_text, read_requests

from .played import FAULTS, PlayedHub

NAME = "ann/cats-results"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedHub]:
    monkeypatch.setattr("segjudge.system.network.FIRST", 0.01)
    monkeypatch.setattr("segjudge.system.network.LONGEST", 0.01)
    played = PlayedHub()
    open_api(played).create_repo(NAME, repo_type="dataset")
    yield played
    played.close()


def open_api(hub: PlayedHub, rights: dict[str, str] | None = None) -> HfApi:
    return HfApi(hub.url, token=hub.add_token("ann", rights))


def rows_of(storage: HubDataset) -> dict[str, bytes]:
    return {path: data for path, data in storage.read().items() if path != ".gitattributes"}


def test_a_storage_reads_what_another_wrote_and_refuses_to_write_on_an_older_state(hub: PlayedHub) -> None:
    one, two = HubDataset(open_api(hub), NAME), HubDataset(open_api(hub), NAME)
    assert rows_of(one) == rows_of(two) == {}
    one.write({"a/1.json": b"{}", "page/index.html": "ä".encode()}, "one")
    with pytest.raises(MovedError):
        two.write({"a/2.json": b"[]"}, "two")
    assert rows_of(two) == {"a/1.json": b"{}", "page/index.html": "ä".encode()}
    two.write({"a/2.json": b"[]", "page/index.html": None}, "two")
    assert rows_of(one) == rows_of(two) == {"a/1.json": b"{}", "a/2.json": b"[]"}
    assert hub.list_commits(NAME)[1:] == ["one", "two"]


def test_writers_at_the_same_time_lose_nothing(hub: PlayedHub) -> None:
    def write(writer: int) -> None:
        storage = HubDataset(open_api(hub), NAME)
        for index in range(5):
            while True:
                files = storage.read()
                try:
                    storage.write({f"{len(files)}.json": f"{writer}.{index}".encode()}, f"{writer}.{index}")
                    break
                except MovedError:
                    pass

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = rows_of(HubDataset(open_api(hub), NAME))
    assert sorted(rows.values()) == sorted(f"{writer}.{index}".encode() for writer in range(4) for index in range(5))


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_a_hub_in_trouble_at_each_call_gets_one_commit(fault: str, hub: PlayedHub) -> None:
    hub.first_fault = FAULTS[fault]
    storage = HubDataset(open_api(hub), NAME)
    storage.read()
    storage.write({"1.json": b"{}"}, "once")
    assert rows_of(storage) == {"1.json": b"{}"}
    assert hub.list_commits(NAME)[1:] == ["once"]


def test_thousands_of_rows_are_read_with_few_calls(hub: PlayedHub) -> None:
    writer = HubDataset(open_api(hub), NAME)
    for start in range(0, 1200, 60):
        writer.read()
        writer.write({f"rows/{number}.json": f"{number}\n".encode() for number in range(start, start + 60)}, "rows")
    hub.calls.clear()
    reader = HubDataset(open_api(hub), NAME)
    rows = rows_of(reader)
    assert rows == {f"rows/{number}.json": f"{number}\n".encode() for number in range(1200)}
    assert len(hub.calls) < 120
    hub.calls.clear()
    assert rows_of(reader) == rows
    assert len(hub.calls) == 1
    assert PACK in hub.list_files(NAME)


def test_files_of_the_ignored_folder_are_written_by_lfs_and_not_read(hub: PlayedHub, tmp_path: Path) -> None:
    large = tmp_path / "large.zip"
    large.write_bytes(bytes(20_000_000))
    storage = HubDataset(open_api(hub), NAME, ignored="files")
    storage.read()
    storage.write({"files/1/large.zip": large, "files/1/text.json": b"{}", "requests/1.json": b"{}"}, "request")
    assert rows_of(storage) == {"requests/1.json": b"{}"}
    assert hub.read(NAME, "files/1/large.zip") == large.read_bytes()


def test_a_token_without_the_right_is_said(hub: PlayedHub) -> None:
    open_api(hub).create_repo("ann/secret", repo_type="dataset", private=True)
    with pytest.raises(HostError, match=r"ann/secret: the Hub answers 404\. Does it exist, and"):
        HubDataset(open_api(hub, {NAME: "read"}), "ann/secret").read()
    storage = HubDataset(open_api(hub, {NAME: "read"}), NAME)
    storage.read()
    with pytest.raises(HostError, match="the Hub answers 403"):
        storage.write({"1.json": b""}, "no")


# ── requests ────────────────────────────────────────────────────────────────


def make_request(**fields: object) -> Request:
    values = {"number": 7, "account": "a1", "team": "ann", "at": "2026-11-30T20:00:00+00:00", "method": "net"}
    return Request(**{**values, "phase": "val", "file": "a.zip", "sha256": "0" * 64, **fields})  # type: ignore[arg-type]


def test_requests_are_read_in_their_order_and_others_are_not() -> None:
    requests = [make_request(number=number) for number in (10, 9)] + [make_request(number=11, file="", withdraws=9)]
    files = {request.path: request.to_bytes() for request in requests}
    bad = [make_request(file="../a"), make_request(sha256="x"), make_request(account=""), make_request(at="soon")]
    files |= {f"requests/{100 + index}.json": request.to_bytes() for index, request in enumerate(bad)}
    files |= {"requests/8.json": make_request().to_bytes(), "files/1/requests/1.json": b"{}", "requests/12.json": b"["}
    assert [request.number for request in read_requests(files)] == [9, 10, 11]


def test_names_become_safe() -> None:
    for name in ("../../etc/passwd", "a b (1).zip", "$(id).zip", "ä" * 300 + ".zip", "", ".git", "<b>"):
        assert make_request(file=clean_file(name)).is_valid(), name
    assert clean_text(" a\n\nb\x00\u202e").startswith("a b")
    assert len(clean_text("x" * 1000)) == 100
