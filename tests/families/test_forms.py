"""In every family, results score the same in every form, and names in every spelling."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pytest

from segjudge.evaluation_script.families import PROTOCOLS
from segjudge.evaluation_script.families.base.family import ScoringRules
from segjudge.evaluation_script.files.limits import LOCAL_LIMITS, UNIT_LIMITS
from segjudge.evaluation_script.files.problems import SubmissionError
from segjudge.evaluation_script.scoring.scorer import Scorer
from segjudge.families import tools_of
from segjudge.families.truths import TruthSource
from segjudge.scoring.request import ScoreRequest, prepare
from segjudge.starting.new_challenge import write_demo_truth
from tests import published
from tests.builders import png, tarred, written, zipped
from tests.families.contract import examples, merge_rows

Members = dict[str, bytes]
UPLOADS, REFUSALS = merge_rows("UPLOADS"), merge_rows("REFUSALS")


NAMED = examples("any names")


def members(upload: bytes) -> Members:
    """Return the files of an upload; JSON that is submitted alone is one."""
    if not upload.startswith(b"PK"):
        return {"results.json": upload}
    with zipfile.ZipFile(io.BytesIO(upload)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def uploaded(protocol: str, truth: Path) -> Members:
    return members(published.upload(protocol, truth))


def file(data: bytes, path: Path) -> Path:
    path.write_bytes(data)
    return path


def windows(files: Members) -> Members:
    return {name.replace("/", "\\"): data for name, data in files.items()}


def raised(files: Members) -> Members:
    """Return the files with endings in capitals."""
    return {f"{name.rpartition('.')[0]}.{name.rpartition('.')[2].upper()}": data for name, data in files.items()}


def pax(files: Members) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.pax_headers = len(data), {"path": name}
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


FORMS: dict[str, Callable[[Members, Path], Path]] = {
    "folder": lambda files, path: written(path / "results", files),
    "zip": lambda files, path: file(zipped(files), path / "results.zip"),
    "stored zip": lambda files, path: file(zipped(files, zipfile.ZIP_STORED), path / "results.zip"),
    "tar": lambda files, path: file(tarred(files), path / "results.tar"),
    "tar with long headers": lambda files, path: file(pax(files), path / "results.tar"),
    "tar.gz": lambda files, path: file(tarred(files, "w:gz"), path / "results.tar.gz"),
    "zip from Windows": lambda files, path: file(zipped(windows(files)), path / "results.zip"),
    "tar from Windows": lambda files, path: file(tarred(windows(files)), path / "results.tar"),
    "tar.gz from Windows": lambda files, path: file(tarred(windows(files), "w:gz"), path / "results.tar.gz"),
    "zip from Windows, unpacked elsewhere": lambda files, path: written(path / "results", windows(files)),
    "one folder more": lambda files, path: file(
        tarred({f"my results/{name}": data for name, data in files.items()}, "w:gz"), path / "results.tgz"
    ),
    "endings in capitals": lambda files, path: file(zipped(raised(files)), path / "results.zip"),
}
#: These too, for a single JSON file.
ALONE: dict[str, Callable[[Members, Path], Path]] = {
    "JSON": lambda files, path: file(*files.values(), path / "results.json"),
    "gzipped JSON": lambda files, path: file(gzip.compress(*files.values()), path / "results.json.gz"),
}


class Scored:
    """A protocol's published truth, and scores of results by the server's scorer."""

    def __init__(self, protocol: str, path: Path) -> None:
        self.truth = published.published(protocol, path)
        job = prepare(ScoreRequest("", TruthSource(str(self.truth), "", "", "", ""), PROTOCOLS[protocol]))
        ((_, scorer),) = job.scorers.items()
        self.split = scorer.truth
        self.protocol = PROTOCOLS[protocol]

    def report(self, results: Path, *, strict: bool = False) -> Any:
        limits = LOCAL_LIMITS if self.protocol.family in ("sequences", "instances") else UNIT_LIMITS
        return Scorer("val", self.split, ScoringRules(self.protocol, limits, strict=strict)).score(str(results))


@pytest.mark.parametrize("protocol", UPLOADS)
def test_every_form_of_results_is_the_same_submission(protocol: str, tmp_path: Path) -> None:
    scored = Scored(protocol, tmp_path)
    files = uploaded(protocol, scored.truth)
    alone = ALONE if len(files) == 1 and "results.json" in files else {}
    expected = scored.report(FORMS["zip"](files, tmp_path))
    for number, (form, make) in enumerate({**FORMS, **alone}.items()):
        (tmp_path / str(number)).mkdir()
        results = scored.report(make(files, tmp_path / str(number)))
        assert (results.values, results.warnings) == (expected.values, expected.warnings), form


@pytest.mark.parametrize("protocol", UPLOADS)
def test_what_is_no_form_of_results_is_told_what_its_family_sends(protocol: str, tmp_path: Path) -> None:
    scored = Scored(protocol, tmp_path)
    with pytest.raises(SubmissionError) as caught:
        scored.report(file(b"\xfd7zXZ\0" + bytes(range(99)), tmp_path / "results.tar.xz"))
    assert f"your file: is an xz file. {REFUSALS[protocol]}" in str(caught.value)


def videos_named(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "VIDEOS", {name: number for number, name in enumerate(names, 1)})


@pytest.mark.parametrize("protocol", NAMED)
def test_a_backslash_in_a_name_of_the_truth_is_a_letter_in_every_form(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    videos_named(["back\\slash", "goat"], monkeypatch)
    scored = Scored(protocol, tmp_path)
    files = uploaded(protocol, scored.truth)
    expected = scored.report(FORMS["folder"](files, tmp_path))
    assert all(value == 1 for metric, value in expected.values.items() if metric in ("J&F-Mean", "VPQ", "mIoU", "HOTA"))
    for number, (form, make) in enumerate(FORMS.items()):
        if "Windows" not in form:
            (tmp_path / str(number)).mkdir()
            results = scored.report(make(files, tmp_path / str(number)))
            assert (results.values, results.warnings) == (expected.values, expected.warnings), form


def respelled(name: str, data: bytes, form: str) -> bytes:
    """Return the content of a text or JSON, with its letters in another form."""
    if name.endswith(".png"):
        return data
    text = json.dumps(json.loads(data), ensure_ascii=False) if name.endswith(".json") else data.decode()
    return normalize(form, text).encode()


@pytest.mark.parametrize("protocol", NAMED)
@pytest.mark.parametrize(("truth", "sent"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_a_name_in_another_unicode_form_is_the_same_name(
    protocol: str, truth: str, sent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["caf\u00e9", "goat", "\ud55c\uad6d"]
    videos_named([normalize(truth, name) for name in names], monkeypatch)
    scored = Scored(protocol, tmp_path)
    as_truth = uploaded(protocol, scored.truth)
    expected = scored.report(FORMS["folder"](as_truth, tmp_path))
    files = {normalize(sent, name): respelled(name, data, sent) for name, data in as_truth.items()}
    for number, (form, make) in enumerate(FORMS.items()):
        (tmp_path / str(number)).mkdir()
        results = scored.report(make(files, tmp_path / str(number)), strict=True)
        assert results.values == expected.values, form
        (warning,) = [line for line in results.warnings if line not in expected.warnings]
        assert "2 names are in another Unicode form than the truth's, and were treated as equal" in warning, form


def test_names_that_the_truth_has_in_both_forms_are_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    videos_named([normalize(form, "caf\u00e9") for form in ("NFC", "NFD")], monkeypatch)
    scored = Scored("davis2017", tmp_path)
    report = scored.report(FORMS["zip"](uploaded("davis2017", scored.truth), tmp_path))
    assert report.values["J&F-Mean"] == 1
    assert report.warnings == []


@pytest.mark.parametrize("protocol", NAMED)
def test_what_a_choice_leaves_out_is_no_surplus(protocol: str, tmp_path: Path) -> None:
    scored = Scored(protocol, tmp_path)
    results = FORMS["zip"](uploaded(protocol, scored.truth), tmp_path)
    whole = scored.report(results)
    names = [unit.name for unit in getattr(scored.split, "units", None) or scored.split.sequences]
    scored.split = scored.split.select(names[:1], scored.protocol)
    assert scored.report(results, strict=True).warnings == whole.warnings


@pytest.mark.parametrize("protocol", NAMED)
def test_surplus_names_are_listed_in_order(protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scored = Scored(protocol, tmp_path)
    monkeypatch.setattr(published, "VIDEOS", {**published.VIDEOS, **{f"more-{k}": 1 for k in range(6, 0, -1)}})
    folder = tmp_path / "other"
    folder.mkdir()
    more = published.published(protocol, folder)
    warnings = scored.report(FORMS["tar.gz"](uploaded(protocol, more), tmp_path)).warnings
    (warning,) = [line for line in warnings if "more-1" in line]
    places = [warning.find(f"more-{k}") for k in (1, 2, 3)]
    assert -1 < places[0] < places[1] < places[2]


@pytest.mark.parametrize("protocol", examples("folders"))
def test_one_mistake_in_all_files_of_a_folder_is_one_line(protocol: str, tmp_path: Path) -> None:
    scored = Scored(protocol, tmp_path)
    small = png(np.zeros((4, 5, 3) if protocol in examples("no label maps") else (4, 5), np.uint8))
    files = uploaded(protocol, scored.truth)
    wrong = {name: small if name.endswith(".png") else data for name, data in files.items()}
    with pytest.raises(SubmissionError) as caught:
        scored.report(FORMS["zip"](wrong, tmp_path))
    first, *lines = str(caught.value).splitlines()
    assert first == "2 problems found in your submission:"
    frames = len([name for name in files if "swan" in name])
    for line, video in zip(lines, ("swan", "goat"), strict=True):
        count = frames - 2 if protocol == "davis2017" else frames  # the first and the last are not read
        assert f"{video}: each of {count} files (0000" in line
        assert f" and {count - 3} more) is 5x4 pixels but the frame is 128x96. Save masks at the size" in line


@pytest.mark.parametrize("protocol", examples("lists"))
def test_a_list_may_name_folders_in_another_unicode_form(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    videos_named(["cafe\u0301", "goat" if protocol == "davis2017" else "a goat"], monkeypatch)
    truth = published.published(protocol, tmp_path)
    (lists,) = truth.rglob("val.txt")
    lists.write_text(normalize("NFC", lists.read_text(encoding="utf-8")), encoding="utf-8")
    job = prepare(ScoreRequest("", TruthSource(str(truth), "", "", "", ""), PROTOCOLS[protocol]))
    ((_, scorer),) = job.scorers.items()
    split: Any = scorer.truth
    names = [unit.name for unit in getattr(split, "units", None) or split.sequences]
    assert names == list(published.VIDEOS)


OTHER_UNITS = merge_rows("OTHER_UNITS")


@pytest.mark.parametrize("protocol", OTHER_UNITS)
def test_the_files_of_the_only_sequence_may_lie_at_the_top(protocol: str, tmp_path: Path) -> None:
    """Platforms that unpack a zip remove the folders that all of its files share."""
    truth = Path(write_demo_truth(PROTOCOLS[protocol], str(tmp_path / "demo")))
    for place in OTHER_UNITS[protocol]:
        shutil.rmtree(truth / place)
    for listing in truth.rglob("val.txt"):
        listing.write_text("crossing\n")
    ((_, scorer),) = prepare(
        ScoreRequest("", TruthSource(str(truth), "", "", "", ""), PROTOCOLS[protocol])
    ).scorers.items()
    sample = dict(tools_of(PROTOCOLS[protocol].family).make_sample([scorer.truth], PROTOCOLS[protocol], 0.01))
    bare = {name.rpartition("/")[2]: data for name, data in sample.items()}
    expected, report = (scorer.score(str(file(zipped(files), tmp_path / "results.zip"))) for files in (sample, bare))
    assert (report.values, report.warnings) == (expected.values, expected.warnings)
