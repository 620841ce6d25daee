"""Each result states its origin; this changes no score, and reveals nothing more of the truth to participants."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from segjudge import score
from segjudge.cli import main as command
from segjudge.evaluation_script import evaluate, main
from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.masks.backend import NumpyBackend, backend
from segjudge.evaluation_script.scoring import VERSION
from segjudge.evaluation_script.scoring.provenance import digest_of, provenance
from segjudge.evaluation_script.scoring.scorer import TruthCache
from tests.backends import use
from tests.data import ROOT

TRUTH, STRONG = ROOT / "annotations/sequences-dev.zip", ROOT / "examples/sequences-dev/strong.zip"
INSTANCES, SHARP = ROOT / "annotations/instances-dev.zip", ROOT / "examples/instances-dev/sharp.json"


def test_a_zip_is_what_its_table_says_and_other_files_are_their_bytes(tmp_path: Path) -> None:
    plain = tmp_path / "x.json"
    plain.write_bytes(b"[]PK\5\6")
    assert digest_of(str(plain)) == f"file:{hashlib.sha256(plain.read_bytes()).hexdigest()}"
    digests = []
    for name, content in (("one", b"0" * 100), ("same", b"0" * 100), ("other", b"1" * 100)):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(zipfile.ZipInfo("a/0.png"), content)
        digests.append(digest_of(str(tmp_path / name)))
    assert digests[0] == digests[1] != digests[2]
    assert digests[0].startswith("zip:")
    (tmp_path / "folder/a").mkdir(parents=True)
    before = digest_of(str(tmp_path / "folder"))
    (tmp_path / "folder/a/0.png").write_bytes(b"0")
    assert before != digest_of(str(tmp_path / "folder"))


def test_a_truth_that_has_gone_stays_what_it_was_and_another_is_opened(tmp_path: Path) -> None:
    output: list[str] = []
    truths, path = TruthCache(output.append), tmp_path / "truth.zip"
    with pytest.raises(HostError, match=r"truth\.zip: cannot be opened \(No such file or directory\)$"):
        truths.open(str(path), "davis2017")
    path.write_bytes(TRUTH.read_bytes())
    before = truths.open(str(path), "davis2017")
    os.utime(path, (1, 1))  # as if it were another file of the same size
    splits, digest = truths.open(str(path), "davis2017"), truths.digest(str(path))
    assert splits is not before
    path.unlink()
    assert truths.open(str(path), "davis2017") is splits
    assert truths.digest(str(path)) == digest == digest_of(str(TRUTH))
    assert not output


def test_a_folder_with_circles_of_links_has_a_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / "real" / name).mkdir(parents=True)
        (tmp_path / "real" / name / "0.png").write_bytes(b"0")
    before = digest_of(str(tmp_path / "real"))
    (tmp_path / "real/loop").symlink_to(tmp_path / "real")
    for name, target in (("a", ".."), ("b", "."), ("c", "c")):
        (tmp_path / "real" / name / "up").symlink_to(target)
    listed: list[str] = []
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: listed.append(path) or listdir(path))
    assert digest_of(str(tmp_path / "real")) != before  # the link to itself counts as an entry
    assert len(listed) < 100
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    assert digest_of(str(tmp_path / "linked")) == digest_of(str(tmp_path / "real"))


def test_every_protocol_has_a_revision_and_says_where_its_rules_were_changed() -> None:
    assert all(type(protocol.revision) is int and protocol.revision > 0 for protocol in PROTOCOLS.values())
    changed = replace(PROTOCOLS["davis2017"], skip_first=False)  # type: ignore[call-arg]
    protocols = provenance({"a": PROTOCOLS["davis2017"], "b": changed}, "t", "s", "numpy", {})["protocols"]
    assert protocols == {
        "a": {"name": "davis2017", "revision": 1, "changed": False},
        "b": {"name": "davis2017", "revision": 1, "changed": True},
    }


@pytest.mark.parametrize("hidden", [False, True])
def test_both_files_of_a_submission_say_it(hidden: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    (phase,) = (phase for phase in main.PHASES if phase.codename == "sequences-dev")
    splits = tuple(replace(split, hidden=hidden) for split in phase.splits)
    monkeypatch.setattr(main, "PHASES", (replace(phase, splits=splits),))
    answer = evaluate(str(TRUTH), str(STRONG), "sequences-dev")
    kept, shown = (answer[name]["provenance"] for name in ("submission_metadata", "submission_result"))
    assert kept == {
        "version": VERSION,
        "protocols": {"dev": {"name": "davis2017", "revision": 1, "changed": False}},
        "truth": digest_of(str(TRUTH)),
        "submission": digest_of(str(STRONG)),
        "counted_by": backend().name,
        "limits": kept["limits"],
    }
    assert kept["limits"].items() >= {"members": phase.limits.members, "links": False, "seconds": phase.seconds}.items()
    assert not any(isinstance(value, str) for value in kept["limits"].values())
    public = {name: value for name, value in kept.items() if name != "truth"} if hidden else kept
    assert shown == ({**public, "protocols": {}} if hidden else public)


@pytest.mark.parametrize(
    ("truth", "results", "protocol"), [(TRUTH, STRONG, "davis2017"), (INSTANCES, SHARP, "places2017")]
)
def test_what_counted_differs_and_no_score_does(
    truth: Path, results: Path, protocol: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    documents = []
    for chosen in (backend(), NumpyBackend()):
        use(monkeypatch, chosen)
        assert command(["score", str(results), "--truth", str(truth), "--protocol", protocol, "--json", "-"]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    origins = [document.pop("provenance") for document in documents]
    assert documents[0] == documents[1]
    assert origins[1]["counted_by"] == "numpy"
    assert {**origins[0], "counted_by": "numpy"} == origins[1]
    assert score(results, truth, protocol).provenance == origins[1]
