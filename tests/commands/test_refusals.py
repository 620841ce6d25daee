"""Refused parts, annotation files and options, by the whole sentence on the error stream, and the exit code."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge.cli import main
from segjudge.evaluation_script.families import FAMILIES
from segjudge.evaluation_script.scoring import VERSION
from tests.builders import png, written, zipped

MASKS = {
    f"{name}/{number:05d}.png": png(np.array([[0, 0, 0], [0, 1, 2], [0, 1, 2]], np.uint8))
    for name in "ab"
    for number in range(3)
}
DAVIS = ["--truth", "truth", "--protocol", "davis2017"]


def replace_member(source: str, target: str, member: str, change: Callable[[bytes], bytes]) -> None:
    """Write a zip again, with one member changed."""
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(target, "w") as out:
        for name in archive.namelist():
            data = archive.read(name)
            out.writestr(name, change(data) if name == member else data)


def with_keys(**keys: Any) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps({**json.loads(data), **keys}).encode()


#: Parts and annotation files with one change each: source, member, change.
CHANGED: dict[str, tuple[str, str, Callable[[bytes], bytes]]] = {
    "old.part": ("1.part", "manifest.json", with_keys(format="old")),
    "other.part": ("1.part", "manifest.json", with_keys(protocol="nobody")),
    "rules.part": ("1.part", "manifest.json", with_keys(rules={})),
    "odd.part": ("1.part", "manifest.json", with_keys(part="x")),
    "third.part": ("1.part", "manifest.json", with_keys(part=3)),
    "strict.part": ("1.part", "manifest.json", with_keys(strict=True)),
    "damaged.part": ("1.part", "counts/0/000000", lambda data: data[:-3]),
    "old.zip": ("truth.zip", "manifest.json", with_keys(format="old")),
    "empty.zip": ("truth.zip", "manifest.json", with_keys(splits={})),
    "broken.zip": ("truth.zip", "manifest.json", lambda _data: b"{"),
}

IMAGES = {"images": [{"id": 1, "height": 2, "width": 2}], "annotations": [], "categories": [{"id": 1, "name": "x"}]}
#: Annotation files like COCO's.
ANNOTATIONS = {
    "coco.json": json.dumps(IMAGES).encode(),
    "videos.json": json.dumps(
        {
            "annotations": [],
            "categories": IMAGES["categories"],
            "videos": [{"id": 1, "height": 2, "width": 2, "length": 1, "file_names": ["a"]}],
        }
    ).encode(),
    "deep.json": b"[" * 100_000,
    "cut.json": b"PK\x03\x04",
    "text.zip": zipped({"a.txt": b"x"}),
    "two.zip": zipped({"a.json": b"{}", "b.json": b"{}"}),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a truth, an upload, a stored result, parts, and damaged ones of each."""
    folder = tmp_path_factory.mktemp("refusals")
    written(folder / "truth", MASKS)
    written(folder / "volumes", {"a.nii.gz": b"x"})
    written(folder / "texts", {"a.txt": b"x"})
    written(folder, {"up.zip": zipped(MASKS), "text.part": b"x", "x.yaml": b"a: 1", **ANNOTATIONS})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for part in (1, 2):
            assert main(["score", "up.zip", *DAVIS, "--part", f"{part}/2", "--out", f"{part}.part"]) == 0
        assert main(["score", "up.zip", *DAVIS, "--json", "a.json", "--quiet"]) == 0
        assert main(["pack", "--layout", "generic", "--root", "truth", "--out", "truth.zip"]) == 0
        for name, (source, member, change) in CHANGED.items():
            replace_member(source, name, member, change)
        scored = json.loads((folder / "a.json").read_text())
        (folder / "bare.json").write_text(
            json.dumps({key: scored[key] for key in ("protocol", "result", "provenance")})
        )
    return folder


NEITHER = "was written neither by `score --part` nor by `score --save`, or is damaged; score the results first"
LACKS = f"of segjudge {VERSION}, whose rules this version ({VERSION}) lacks"
MASKS_OF_PLACES = ["pack", "--layout", "places2017", "--root", "truth", "--out", "a.json"]
METRICS = "J&F-Mean, J-Mean, J-Recall, J-Decay, F-Mean, F-Recall, F-Decay, J-Volume, F-Volume, J-Visible, F-Visible, False-Alarm"
RECORDS = '[{"image_id": 1, "category_id": 1, "segmentation": {"size": [h, w], "counts": "..."}, "score": 0.9}, ...]'
REFUSED: list[tuple[list[str], int, str]] = [
    (["merge", "old.part", "2.part"], 2, "segjudge: old.part: has the format old; this version reads 'segjudge part 1'. Score it again"),
    (["merge", "other.part", "2.part"], 2, f"segjudge: other.part: was scored by nobody {LACKS}"),
    (["merge", "rules.part", "2.part"], 2, f"segjudge: rules.part: was scored by davis2017 {LACKS}"),
    (["merge", "odd.part", "2.part"], 2, "segjudge: odd.part: has a manifest that cannot be read. Score it again"),
    (["merge", "third.part", "2.part"], 2, "segjudge: third.part: has a manifest that cannot be read. Score it again"),
    (["merge", "1.part", "strict.part"], 2, "segjudge: 1.part and strict.part differ in --strict; merge only parts of one run"),
    (["merge", "1.part", "1.part"], 2, "segjudge: 1.part and 1.part are both part 1; give each part once"),
    (["merge", "damaged.part", "2.part"], 2, "segjudge: damaged.part: is damaged (has 117 bytes of numbers, not 120). Score it again"),
    (["merge", "1.part", "text.part"], 2, f"segjudge: text.part: {NEITHER}"),
    (["merge", "1.part"], 2, "segjudge: part 2 of 2 missing; score the missing parts, then merge all"),
    (["merge", "none.part"], 2, "segjudge: none.part: there is no such file or folder; correct the path"),
    (["rank", "a.json", "up.zip"], 2, f"segjudge: up.zip: {NEITHER}"),
    (["score", "up.zip", "--truth", "old.zip", "--protocol", "davis2017"], 3, "old.zip: has the format 'old'; this version reads 'segjudge truth 1'. Pack it again"),
    (["score", "up.zip", "--truth", "empty.zip", "--protocol", "davis2017"], 3, "empty.zip: holds no splits, so nothing can be scored. Pack it again"),
    (["score", "up.zip", "--truth", "broken.zip", "--protocol", "davis2017"], 3, "broken.zip: is not a readable annotation file (JSONDecodeError('Expecting property name enclosed in double quotes: line 1 column 2 (char 1)')). Pack it again"),
    (["score", "up.zip", *DAVIS, "--results-yaml", "r.yaml"], 2, "segjudge: --results-yaml needs --hub-dataset OWNER/NAME, the data set on the hub: by its name there"),
    (["score", "up.zip", "--truth", "volumes"], 2, "segjudge: volumes holds a.nii.gz, which davis2017 cannot read; add --protocol volumes, or another one that `segjudge benchmarks` lists"),
    (["score", "up.zip", *DAVIS, "--split", "none"], 2, "segjudge: truth has no split 'none', only val"),
    (["score", "up.zip", *DAVIS, "--sequences", "c"], 2, "segjudge: the truth has no sequence c, only a, b"),
    (["score", "up.zip", *DAVIS, "--phase", "dev"], 2, "segjudge: score scores by --phase or by --truth, not both; omit one of them"),
    (["score", "up.zip", *DAVIS, "--csv", "up.zip"], 2, "segjudge: up.zip: cannot be written (Not a directory); choose another path with --csv"),
    (["compress", "up.zip", "--out", "a.rar"], 2, "segjudge: --out ends in .json.gz (run lengths, the smallest) or in .zip (PNGs), not a.rar"),
    (["pack", "--layout", "generic", "--root", "truth", "--out", "a.json"], 2, "segjudge: a.json: ends in .json, which needs a folder of PNGs and --layout places2017; name the annotation file a.zip"),
    (MASKS_OF_PLACES, 2, "segjudge: truth: is a folder of PNGs, which needs --categories FILE"),
    ([*MASKS_OF_PLACES, "--subset", "val"], 2, "segjudge: --subset does not apply to COCO's JSON"),
    ([*MASKS_OF_PLACES, "--split", "val"], 2, "segjudge: --split does not apply to COCO's JSON"),
    (["report", "a.json", "--jobs", "2", "--out", "p.html"], 2, "segjudge: --jobs needs --truth or --phase: a.json is a stored result"),
    (["report", "a.json", "--region", "x", "--out", "p.html"], 2, "segjudge: --region needs --truth or --phase: a.json is a stored result"),
    (["report", "a.json", "--split", "x", "--out", "p.html"], 2, "segjudge: --split needs --truth or --phase: a.json is a stored result"),
    (["rank", "a.json", "a.json"], 2, "segjudge: two have the name a; name them as NAME=FILE"),
    (["rank", "a=a.json", "b=a.json", "--method", "challenge"], 2, "segjudge: davis2017 does not define the ranking of its own challenge; choose another method"),
    (["rank", "a=a.json", "b=a.json", "--method", "challenge", "--metric", "J-Mean"], 2, "segjudge: --metric: the protocol's challenge ranks its own metrics; omit it"),
    (["score", "up.zip", "--truth", "deep.json", "--protocol", "coco"], 3, "deep.json: cannot be read (its JSON is nested too deeply: name the file that the dataset publishes)"),
    (["score", "up.zip", "--truth", "cut.json", "--protocol", "coco"], 3, "cut.json: is a zip that was cut off: its table of contents is missing. Create it again"),
    (["score", "up.zip", "--truth", "text.zip", "--protocol", "coco"], 3, "text.zip: holds no JSON file; an annotation file has one"),
    (["score", "up.zip", "--truth", "two.zip", "--protocol", "coco"], 3, "two.zip: holds 2 JSON files; an annotation file has one"),
    (["score", "up.zip", "--truth", "truth", "--protocol", "coco"], 2, "segjudge: truth: is a folder. The truth of instances is COCO's JSON, a packed file, Cityscapes' gtFine, or with --categories FILE a folder of Places-style PNGs"),
    (["score", "up.zip", "--truth", "truth.zip", "--protocol", "coco"], 3, f"truth.zip: holds sequences, which the protocol coco does not score; choose another file, or a protocol of sequences: {', '.join(sorted(FAMILIES['sequences'].protocols)[:3])} and 20 more"),
    (["score", "truth.zip", *DAVIS], 1, "truth.zip: is an annotation file of `pack`, not results. Name the results first, and this file as the truth."),
    (["score", "tow.zip", *DAVIS], 2, "segjudge: tow.zip: there is no such file or folder; did you mean two.zip?"),
    (["score", "up.zip", *DAVIS, "--subset", "x"], 3, "truth: has no lists of sequences such as ImageSets/2017/x.txt; name the folder that holds them"),
    (["score", "up.zip", *DAVIS, "--json", "truth"], 2, "segjudge: truth: cannot be written (Is a directory); choose another path with --json"),
    (["score", "up.zip", *DAVIS, "--part", "1/2"], 2, "segjudge: --part and --out only work together"),
    (["score", "up.zip", *DAVIS, "--out", "x.part"], 2, "segjudge: --part and --out only work together"),
    (["score", "up.zip", *DAVIS, "--part", "1/2", "--out", "x.part", "--json", "x.json"], 2, "segjudge: --json does not apply to --part"),
    (["score", "up.zip", *DAVIS, "--part", "1/2", "--out", "x.part", "--csv", "tables"], 2, "segjudge: --csv does not apply to --part"),
    (["merge", "1.part", "2.part", "--json", "1.part"], 2, "segjudge: 1.part: is an input and would be overwritten; name another file"),
    (["pack", "--layout", "coco", "--root", "coco.json", "--split", "b", "--out", "truth.zip"], 3, "truth.zip: holds no packed instance masks, so no split can be added."),
    (["pack", "--layout", "generic", "--root", "truth", "--out", "truth"], 2, "segjudge: truth: cannot be written (Is a directory); choose another path with --out"),
    (["pack", "--layout", "generic", "--root", "texts", "--out", "t.zip"], 3, "texts: holds no PNG masks. `segjudge benchmarks vos-benchmark` shows the files of generic: name the folder that holds them, or another --layout"),
    (["compress", "up.zip", "--out", "up.zip"], 2, "segjudge: up.zip: is an input and would be overwritten; name another file"),
    (["report", "--truth", "coco.json", "--protocol", "coco", "--out", "p.html"], 2, "segjudge: a truth of instances has no page of its own; `report --draw FOLDER` draws the truth of instances"),
    (["report", "--draw", "d", "--truth", "coco.json", "--protocol", "coco", "--out", "p.html"], 2, "segjudge: --out does not apply to --draw"),
    (["report", "--draw", "d", "--truth", "coco.json", "--protocol", "coco", "--split", "none"], 2, "segjudge: coco.json has no split 'none', only val"),
    (["report", "--draw", "d", "--truth", "videos.json", "--protocol", "youtube-vis-2019"], 2, "segjudge: videos.json: holds videos, but only images can be drawn"),
    (["report", "up.zip", *DAVIS, "--images", "volumes", "--out", "p.html"], 3, "volumes: has no pictures of all frames of any sequence; expected folders such as a, b"),
    (["report", "a.json", "--images", "truth", "--out", "p.html"], 2, "segjudge: --images needs --truth or --phase: a.json is a stored result"),
    (["rank", "a=bare.json", "b=a.json"], 2, "segjudge: a has no values per object or group; score it again with this version of segjudge, which writes them"),
    (["rank", "a=a.json", "b=a.json", "--metric", "none"], 2, f"segjudge: davis2017 has no metric none, only {METRICS}"),
    (["rank", "a=a.json", "b=a.json", "--split", "none"], 2, "segjudge: a has no split 'none', only val"),
    (["compare", "up.zip"], 2, "segjudge: compare needs at least two results, such as old.zip new.zip"),
    (["compare", "up.zip", "up.zip", *DAVIS], 2, "segjudge: two results have the same name; name them as NAME=RESULTS"),
    (["compare", "a=up.zip", "b=up.zip", *DAVIS, "--metric", "none"], 2, f"segjudge: davis2017 has no metric none, only {METRICS}"),
    (["build", "--bundle", "x.yaml"], 2, "segjudge: x.yaml: EvalAI reads only challenge_config.yaml; rename it"),
    (["new", "ch", "--truth", "truth"], 2, "segjudge: new needs --protocol NAME, or --demo for a small synthetic truth; see segjudge help new"),
    (["score", "texts", "--truth", "coco.json", "--protocol", "coco"], 1, f"texts/: holds no JSON file, only a.txt. Send one JSON file, plain, gzipped or zipped, with a list of records: {RECORDS}."),
    (["score", "coco.json", "--truth", "coco.json", "--protocol", "coco"], 1, f"coco.json: is not a list of records. Write {RECORDS}."),
    (["score", "deep.json", "--truth", "coco.json", "--protocol", "coco"], 1, f"deep.json: is nested too deeply. Write {RECORDS}."),
    (["score", "cut.json", "--truth", "coco.json", "--protocol", "coco"], 1, "cut.json: is a zip that was cut off: its table of contents is missing. Create the archive again and upload it."),
    (["compress", "a.json", "--out", "c.zip"], 1, "the results: hold no PNGs. Name the output with the ending .json.gz."),
    (["report", "texts", *DAVIS, "--out", "p.html"], 1, "texts/: holds no PNG and no JSON file, only a.txt. Send one folder of PNG masks for each sequence."),
    (["rank", "texts/a.txt"], 2, "segjudge: texts/a.txt: was written neither by `score --json` nor by `score --save`; do that first"),
    (["new", "truth", *DAVIS], 2, "segjudge: truth: already exists and is not overwritten; name another folder"),
    (["new", "--family", "x"], 2, "segjudge: new needs FOLDER; see segjudge help new"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "code", "sentence"), REFUSED, ids=[" ".join(row[0]) for row in REFUSED])
def test_a_refusal_is_one_sentence_and_an_exit_code(
    arguments: list[str],
    code: int,
    sentence: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    assert main(arguments) == code
    output = capsys.readouterr()
    assert output.err.splitlines()[-1] == sentence
    assert output.out == ""
    assert sorted(folder.iterdir()) == before, "nothing is written"
