"""Bundles and trials give the noted messages, which only an intended change renews."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest

from segjudge.platforms.evalai.bundle import opened_bundle
from tests.builders import zipped
from tests.calls import hold, outcome

from . import opened_bundles


def test_bundles_are_opened_and_tried_as_noted() -> None:
    hold(opened_bundles.write_text(), opened_bundles.FILE)


def archive_of(members: dict[str, Any]) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(zipped(members)))


@pytest.mark.parametrize("name", ["a.html", "a.yaml", "a.yml"])
def test_a_text_has_at_most_the_bytes_of_the_limit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened_bundle, "_TEXT_BYTES", 1 << 20)
    opened_bundle._check_sizes(archive_of({name: b"x" * (1 << 20), "b.json": b"x" * (2 << 20)}), "b.zip")
    refused = outcome(lambda: opened_bundle._check_sizes(archive_of({name: b"x" * ((1 << 20) + 1)}), "b.zip"))
    assert f"{name} in it unpacks to 1,048,577 bytes. Keep each text file below 1 MiB" in refused


def test_a_bundle_has_limits_of_bytes_files_and_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_UNPACKED_BYTES": 10, "_MEMBERS": 2, "_NAME_BYTES": 4}.items():
        monkeypatch.setattr(opened_bundle, name, value)
    opened_bundle._check_sizes(archive_of({"a": b"x" * 6, "b": b"x" * 4}), "b.zip")
    assert "unpacks to more than 0 GiB" in outcome(
        lambda: opened_bundle._check_sizes(archive_of({"a": b"x" * 6, "b": b"x" * 5}), "b.zip")
    )
    unpacked = opened_bundle._list_unpacked_files(archive_of({"a/b/abcd": b"x", "./c": b"x"}), "b.zip")
    assert sorted(unpacked) == ["a/b/abcd", "c"]
    for members, fault in (
        ({"a": b"", "b": b"", "c": b""}, "holds more than 2 files"),
        ({"abcde": b""}, "holds 'abcde', which is not a file name"),
        ({"a": b"", "a/b": b""}, "holds a as a file, and a/b in it"),
        ({"a/b/c": b"", "a/b": b""}, "holds a/b as a file, and a/b/c in it"),
    ):
        refused = outcome(lambda members=members: opened_bundle._list_unpacked_files(archive_of(members), "b.zip"))
        assert fault in refused
