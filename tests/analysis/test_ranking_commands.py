"""`rank` and `compare` state which methods differ, and reject what cannot be compared."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import segjudge
from segjudge import cli
from segjudge.analysis import METHODS
from segjudge.evaluation_script.families import PROTOCOLS
from tests.builders import ROOT, files_of, png, zipped
from tests.families.contract import examples
from tests.published import published, upload

EXAMPLES = ROOT / "examples/sequences-dev"
TRUTH = ["--truth", str(ROOT / "annotations/sequences-dev.zip"), "--split", "dev"]


def table(folder: Path, rows: list[str], header: str = "algorithm,case,value") -> str:
    path = folder / "scores.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return str(path)


def test_what_looks_wrong_in_a_method_is_told_wherever_it_is_compared(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    files = files_of(EXAMPLES / "strong.zip")
    mirrored = {name: png(np.fliplr(Image.open(io.BytesIO(data)))) for name, data in files.items()}
    (tmp_path / "mirrored.zip").write_bytes(zipped(mirrored))
    line = (
        "mirrored: dev: masks look mirrored, with left and right exchanged: corrected, the IoU over all pixels would be "
        "0.85 instead of 0.27 (tried on 3 of 3 sequences). Undo the flip before you save"
    )
    warning = f"warning: {line}\n"
    methods = [str(EXAMPLES / "strong.zip"), str(tmp_path / "mirrored.zip")]
    written = [str(tmp_path / name) for name in ("out.json", "out.md", "out.html")]
    outputs = ["--json", written[0], "--markdown", written[1], "--report", written[2]]
    assert cli.main(["compare", *methods, *TRUTH, *outputs]) == 0
    assert warning in capsys.readouterr().err
    assert json.loads(Path(written[0]).read_text())["warnings"] == [line]
    assert f"- **Warning:** {line}" in Path(written[1]).read_text()
    assert f"<li>{line}</li>" in Path(written[2]).read_text()

    scores = {name: segjudge.score(path, *TRUTH[1::2][:1], split="dev") for name, path in zip("ab", methods)}
    assert segjudge.compare(scores).warnings == segjudge.rank(scores).warnings == [line.replace("mirrored", "b", 1)]
    assert "⚠ b: dev: masks look mirrored" in segjudge.compare(scores)._repr_html_()
    assert "⚠ b: dev: masks look mirrored" in segjudge.rank(scores)._repr_html_()
    saved = [str(tmp_path / f"{name}.scores") for name in scores]
    for path, entry in zip(saved, scores.values(), strict=True):
        entry.save(path)
    for command in ("compare", "rank"):
        assert cli.main([command, saved[0], f"mirrored={saved[1]}", "--json", written[0], "--report", written[2]]) == 0
        assert warning in capsys.readouterr().err
        assert json.loads(Path(written[0]).read_text())["warnings"] == [line]
        assert line in Path(written[2]).read_text()


def test_what_a_program_reads_stands_alone_on_stdout(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "scores.csv"
    table.write_text("algorithm,case,value\na,1,0.5\na,2,0.25\nb,1,0.75\nb,2,0.5\n")
    assert cli.main(["rank", str(table), "--draws", "5"]) == 0
    output = capsys.readouterr()
    assert cli.main(["rank", str(table), "--draws", "5", "--json", "-"]) == 0
    alone = capsys.readouterr()
    assert (alone.err, output.err) == (output.out, "")
    assert json.loads(alone.out)["tasks"][0]["algorithms"] == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"result": 5}', "[" * 100_000, '{"result": [{"a": {}}], "objects": 5, "protocol": "x"}',
        *(
            json.dumps(item).replace('"?"', odd)
            for odd in ("[]", "1e400")
            for item in (
                {"result": [{"a": {"J": "?"}}], "objects": [], "protocol": "x"},
                {"result": [{"a": {"J": 1}}], "objects": [{"split": "a", "sequence": "b", "J": "?"}], "protocol": "x"},
                {"result": [{"a": {"J": 1}}], "objects": [{"split": "a", "sequence": "?", "J": 1}], "protocol": "x"},
                {"result": [{"a": "?"}], "objects": [{"split": "a", "sequence": "?"}], "protocol": "x"},
            )
        ),
    ],
)  # fmt: skip
def test_a_file_that_score_did_not_write_is_refused(
    text: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text)
    assert cli.main(["rank", str(path)]) == 2
    assert "was written neither by `score --json`" in capsys.readouterr().err


ORIGINS = {
    "truth": (lambda one: one["provenance"].update(truth="zip:2"), "b and a were scored on different truths"),
    "revision": (lambda one: one["provenance"]["protocols"]["dev"].update(revision=2), "by different revisions of p"),
    "changed": (lambda one: one["provenance"]["protocols"]["dev"].update(changed=True), "by different rules of p"),
    "rules": (lambda one: one.update(rules={"dev": {"cap": "image"}}), "by different rules of p"),
    "cases": (
        lambda one: one.get("groups", {"dev": {}})["dev"].update(cases="y"),
        "on different images, videos, sequences or categories",
    ),
}


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize(("edit", "sentence"), ORIGINS.values(), ids=ORIGINS)
def test_scores_of_other_truths_revisions_and_rules_are_not_ranked_together(
    edit: Any, sentence: str, groups: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = [{"split": "dev", "sequence": name, "object": "1", "J-Mean": 0.5} for name in ("dog", "cat")]
    protocols = {"dev": {"name": "p", "revision": 1, "changed": False}}
    first: dict[str, Any] = {"protocol": "p", "result": [{"dev": {"J-Mean": 0.5}}]}
    first["provenance"] = {"truth": "zip:1", "submission": "zip:3", "protocols": protocols}
    first |= {"groups": {"dev": {"cases": "x", "values": {"J-Mean": [0.5, 0.5]}}}} if groups else {"objects": rows}
    document = json.loads(json.dumps(first))
    edit(document)
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, text in zip(
        paths, (first, {**document, "provenance": {**document["provenance"], "submission": "zip:4"}})
    ):
        path.write_text(json.dumps(text))
    assert cli.main(["rank", str(paths[0]), f"same={paths[0]}", "--draws", "2"]) == 0
    assert cli.main(["rank", *map(str, paths), "--draws", "2"]) == (2 if groups or sentence[:2] != "on" else 0)
    assert sentence in capsys.readouterr().err or (not groups and sentence[:2] == "on")


@pytest.mark.parametrize("protocol", examples("rankings"))
def test_scores_of_every_track_are_ranked(protocol: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    truth = published(protocol, tmp_path / "truth")
    data = upload(protocol, truth)
    results = tmp_path / ("results.json" if data[:1] in (b"[", b"{") else "results.zip")
    results.write_bytes(data)
    arguments = ["score", str(results), "--truth", str(truth), "--protocol", protocol, "--json"]
    for name in ("a", "b"):
        assert cli.main([*arguments, str(tmp_path / f"{name}.json")]) == 0
    segjudge.score(results, truth, protocol).save(tmp_path / "c.zip")
    files = [str(tmp_path / name) for name in ("a.json", "b.json", "c.zip")]
    capsys.readouterr()
    assert cli.main(["rank", *files, "--draws", "2", "--json", str(tmp_path / "ranked.json")]) == 0
    (task,) = json.loads((tmp_path / "ranked.json").read_text())["tasks"]
    (split,) = json.loads((tmp_path / "a.json").read_text())["result"]
    metric = PROTOCOLS[protocol].metrics[0]
    assert (task["task"], task["ranks"]) == (metric, [1, 1, 1])
    assert task["values"] == pytest.approx([next(iter(split.values()))[metric]] * 3)
    assert cli.main(["compare", f"A={results}", f"B={results}", "--truth", str(truth), "--protocol", protocol]) == 0


MISSING_WINS = {
    "smaller": (["--smaller"], ["A,c1,0.9", "A,c2,", "A,c3,", "B,c1,0.2", "B,c2,0.3", "B,c3,0.1"]),
    "negative": ([], ["A,c1,-0.9", "A,c2,", "A,c3,", "B,c1,-0.2", "B,c2,-0.3", "B,c3,-0.1"]),
    "partly negative": ([], ["A,c1,0.1", "A,c2,", "A,c3,", "B,c1,0.2", "B,c2,-0.3", "B,c3,-0.1"]),
    "good where it is there": (["--smaller"], ["A,c1,0.1", "A,c2,", "A,c3,", "B,c1,0.2", "B,c2,0.3", "B,c3,0.4"]),
}


@pytest.mark.parametrize(("arguments", "rows"), MISSING_WINS.values(), ids=MISSING_WINS)
def test_nobody_wins_by_missing_values(
    arguments: list[str], rows: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    scores = table(tmp_path, rows)
    for method in METHODS:
        for missing in ([], ["--missing", "last"]):
            more = ["--method", method, "--draws", "20", "--json", str(tmp_path / "out.json")]
            assert cli.main(["rank", scores, *arguments, *missing, *more]) == 0
            assert "missing values are the worst of their case" in capsys.readouterr().err
            (task,) = json.loads((tmp_path / "out.json").read_text())["tasks"]
            assert task["algorithms"] == ["A", "B"]
            for ranks in (task["ranks"], *task["by_method"].values()):
                assert ranks[1] <= ranks[0] or rows[0] == "A,c1,0.1"
            assert not task["better"][0][1]
    assert cli.main(["rank", scores, *arguments, "--missing", "zero"]) == 2
    assert "--missing zero: some values are worse than 0, so 0 would win" in capsys.readouterr().err
