"""For any content of a file of saved scores, reading it gives scores or a sentence."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import segjudge
from segjudge import UsageError, score_arrays
from tests.families.contract import merge_rows

MASKS: dict[str, tuple[Any, list[dict[str, Any]]]] = merge_rows("SAVED_MASKS")
Change = Callable[[dict[str, Any]], object]


def saved(path: Path, protocol: str) -> dict[str, bytes]:
    """Save perfect scores; return the members of the file."""
    masks, categories = MASKS[protocol]
    score_arrays(masks, masks, protocol, categories=categories).save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path: Path, members: dict[str, bytes]) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return str(path)


def with_header(data: bytes, change: Change) -> bytes:
    (length,) = struct.unpack_from("<I", data)
    header = json.loads(data[4 : 4 + length])
    change(header)
    text = json.dumps(header).encode()
    return struct.pack("<I", len(text)) + text + data[4 + length :]


@pytest.mark.parametrize("protocol", MASKS)
def test_damaged_numbers_end_with_scores_or_in_a_sentence(protocol: str, tmp_path: Path) -> None:
    path, draw = tmp_path / "saved.segjudge", np.random.default_rng(0)
    members = saved(path, protocol)
    name = "counts/0/000000"
    for _ in range(150):
        data = bytearray(members[name])
        place = int(draw.integers(0, len(data) - 8))
        data[place : place + 8] = draw.choice(
            [b"\xff" * 8, b"\0" * 8, b"\xff\xff\xff\x7f" * 2, b"\0" * 6 + b"\xf8\x7f"]
        )
        try:
            scores = segjudge.load(written(path, {**members, name: bytes(data)}))
            assert repr(scores)
            assert scores.table("metrics") is not None
        except UsageError as error:
            assert len(str(error).splitlines()) == 1


def change_table(form: str) -> Change:
    """Change the form of the first table in a header."""
    return lambda header: next(iter(header["tables"].values())).__setitem__(0, form)


#: A change of the header, or bytes in the place of the last ones, and what is said of the counts.
DAMAGES: dict[str, tuple[str, Change, tuple[int, bytes], str]] = {
    "a number of problems": ("davis2017", lambda header: header.update(problem_count=1), (0, b""), "has problems that cannot be counted"),
    "a number of rows": ("davis2017", lambda header: header.update(rows=-1), (0, b""), "has impossible numbers of rows or labels"),
    "an object behind the frames": ("davis2017", lambda header: header["objects"][0].__setitem__(1, [[0, 99]]), (0, b""), "has an object outside its frames"),
    "a table of texts": ("vspw", change_table("<U8"), (0, b""), "has a table with an unknown form"),
    "a table of short numbers": ("vspw", change_table("<i4"), (0, b""), "has a table with an unknown form"),
    "a number too many": ("vspw", lambda header: None, (0, bytes(8)), "has more numbers than tables"),
    "a number too few": ("vspw", lambda header: None, (8, b""), "has fewer numbers than its tables"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_counts_are_named_by_their_damage(name: str, tmp_path: Path) -> None:
    protocol, change, (length, last), fault = DAMAGES[name]
    path, member = tmp_path / "saved.segjudge", "counts/0/000000"
    members = saved(path, protocol)
    data = with_header(members[member], change)
    with pytest.raises(UsageError) as caught:
        segjudge.load(written(path, {**members, member: data[: len(data) - length] + last}))
    assert str(caught.value) == f"{path}: is damaged ({fault}). Score it again"


@pytest.mark.parametrize(
    ("protocol", "facts"),
    [(protocol, facts) for protocol, rows in merge_rows("DAMAGED_FACTS").items() for facts in rows],
)
def test_facts_that_are_none_are_one_sentence(protocol: str, facts: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "saved.segjudge"
    members = saved(path, protocol)
    manifest = json.loads(members["manifest.json"])
    manifest["splits"][0]["facts"] = facts
    with pytest.raises(UsageError) as caught:
        segjudge.load(written(path, {**members, "manifest.json": json.dumps(manifest).encode()}))
    assert len(str(caught.value).splitlines()) == 1


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "saved.segjudge"
    members = saved(path, "davis2017")
    manifest = json.loads(members["manifest.json"])
    manifest["splits"][0]["sequences"] = ["a"] * 10_000 + ["b"]
    with pytest.raises(UsageError, match="twice"):
        segjudge.load(written(path, {**members, "manifest.json": json.dumps(manifest).encode()}))
