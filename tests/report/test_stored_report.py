"""The page of a submission's data in a phase, made without its truth."""

from __future__ import annotations

import base64
import copy
import json
import re
import shutil
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from segjudge.cli import main
from segjudge.evaluation_script.main import evaluate_phase
from segjudge.evaluation_script.phases import PHASES
from segjudge.evaluation_script.scoring.phase import DETAILS, Phase, PhaseSplit
from segjudge.scoring.report import make_stored_report
from segjudge.system.errors import UsageError
from tests import calls
from tests.browser import chromium, fresh_page, needs_chromium
from tests.builders import ROOT
from tests.golden.pairs import write_pair
from tests.report import stored_pages
from tests.report.stored_pages import EVIL, pack, store
from tests.scoring.test_phase_report import left_by
from tests.shared import needs_shared


@pytest.fixture(scope="module", params=DETAILS)
def left(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the data that a phase of each level stores of a sample."""
    return left_by(detail=request.param)


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return left_by(detail="all", report=True)


def test_every_level_has_its_page(left: dict[str, Any]) -> None:
    text = make_stored_report(left, "Ours <b>")
    assert "Ours &lt;b&gt;" in text
    value = left["result"][0]["dev"]["J&F-Mean"]
    assert f'<p class="big">{value:.3f} <small>J&amp;F-Mean' in text
    assert ("All sequences" in text) == ("sequences" in left)
    assert make_stored_report(left, "Ours <b>") == text


def test_instances_have_one_too() -> None:
    text = make_stored_report(left_by(2, detail="all"), "coarse")
    assert "All categories" in text
    assert "Protocol places2017" in text


def test_a_phase_that_shows_nothing_has_a_page_that_says_so() -> None:
    split = replace(PHASES[0].splits[0], hidden=True)
    text = make_stored_report(left_by(splits=(split,), detail="all"), "hidden")
    assert "The scores of this phase are not shown." in text
    assert "J-Mean" not in text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("result", None),
        ("result", [{"dev": {"J-Mean": float("inf")}}]),
        ("intervals", [{"dev": {"J-Mean": [0.5]}}]),
        ("errors", 7),
        ("provenance", {"protocols": {"dev": "davis2017"}}),
        ("sequences", [{"split": "dev", "J": 0.5}, {"split": "dev", "F": 0.5}]),
    ],
)
def test_another_shape_is_refused_in_a_sentence(left: dict[str, Any], key: str, value: object) -> None:
    broken = copy.deepcopy(left)
    broken[key] = value
    with pytest.raises(UsageError, match=r"^this is not a stored result: it has "):
        make_stored_report(broken, "broken")


# ── what a phase leaves for it ──────────────────────────────────────────────


def without_streams(text: str) -> str:
    return re.sub(r"<script type=.*?</script>|<pre>.*?</pre>", "", text, flags=re.DOTALL)


def test_the_page_is_that_which_report_makes_with_the_truth(
    whole: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(ROOT / "examples/sequences-dev/lagging.zip"), "--truth", str(ROOT / "annotations/sequences-dev.zip")]
    assert main(["report", *paths, "--title", "lagging", "--out", str(tmp_path / "live.html")]) == 0
    (tmp_path / "left.json").write_text(json.dumps(whole))
    assert (
        main(["report", str(tmp_path / "left.json"), "--title", "lagging", "--out", str(tmp_path / "left.html")]) == 0
    )
    live, left = (without_streams((tmp_path / name).read_text("utf-8")) for name in ("live.html", "left.html"))
    # The moments are those of thousandths.
    moments = re.compile(r"<ol class=\"moments\">.*?</ol>|<a href=\"#verdict\".*?</a>", re.DOTALL)
    # Results hold numbers: only the page with the masks names the slip in its verdict, and counts their pixels.
    slip = re.search(r"Each frame of the masks looks as if .*? in the names of frames\. ", live)
    assert slip is not None
    mixed = "28 of 87 masks are mixed with a neighbour (objects 2 and 3 of late-guest)."
    live_cause = f"56 of 87 masks are inexact: 27\u00a0% of their pixels are missing, 28\u00a0% are surplus; {mixed}"
    left_cause = f"56 of 87 masks are inexact; {mixed}"
    printed = capsys.readouterr().err
    assert all(f" is 0.445. {cause}\n" in printed for cause in (slip[0].rstrip(), left_cause)), printed
    assert live.count(live_cause) == left.count(left_cause) == 1
    assert moments.sub("", live).replace(slip[0], "").replace(live_cause, left_cause) == moments.sub("", left)
    arguments = [re.sub(r"0\.\d+", "", "".join(moments.findall(text))) for text in (live, left)]
    assert arguments[0] == arguments[1]


@needs_shared
@pytest.mark.long
def test_a_page_of_the_size_of_davis_has_at_most_three_megabytes(tmp_path: Path) -> None:
    """1,220 frames of real masks, and 14 of the 20 sequences again."""
    shared = write_pair("L", tmp_path)  # other tests read them
    paths = [Path(shutil.copy(path, tmp_path / f"longer-{path.name}")) for path in shared]
    for path in paths:
        with zipfile.ZipFile(path, "a") as archive:
            again = sorted({name.split("/")[0] for name in archive.namelist()})[:14]
            for name in archive.namelist():
                if name.split("/")[0] in again:
                    archive.writestr(f"again-{name}", archive.read(name))
    assert main(["pack", "--layout", "davis2017", "--root", str(paths[0]), "--out", str(tmp_path / "packed.zip")]) == 0
    phase = Phase("dev", "", (PhaseSplit("val", "davis2017", ("J&F-Mean",)),), detail="all", report=True)
    left = evaluate_phase(phase, str(tmp_path / "packed.zip"), str(paths[1]))["submission_result"]
    assert all(entry["masks"] for entry in left["losses"]["val"]["sequences"])
    frames = sum(item["frames"] for entry in left["losses"]["val"]["sequences"] for item in entry["objects"])
    assert frames > 3000  # of objects
    size = len(make_stored_report(left, "davis").encode())
    assert 1_000_000 < size < 3_000_000


# ── from strangers ──────────────────────────────────────────────────────────


def test_strange_results_show_or_are_refused_as_was_noted() -> None:
    calls.hold(stored_pages.write_pages(), stored_pages.FILE)


@pytest.mark.long
def test_a_bomb_in_a_stream_is_not_unpacked() -> None:
    bomb = base64.b64encode(zlib.compress(b"{" + b" " * (200 << 20))).decode()
    with pytest.raises(UsageError, match="that is not a mapping"):
        make_stored_report(store(streams=[bomb, pack({})]), "bomb")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", "[" * 100_000, '{"result": NaN}', "\udcff", '{"result": ' + "1" * 5000 + "}"]
)
def test_a_file_of_something_else_ends_in_a_sentence(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "left.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert main(["report", str(tmp_path / "left.json"), "--out", str(tmp_path / "out.html")]) == 2
    assert not (tmp_path / "out.html").exists()
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.long
@needs_chromium
def test_names_of_strangers_run_nothing_and_frames_are_drawn(whole: dict[str, Any], tmp_path: Path) -> None:
    evil = json.loads(json.dumps(whole).replace("crossing", json.dumps(EVIL + "\ud800")[1:-1]))
    pages = {"whole": whole, "evil": evil, "small": store()}
    with chromium() as browser:
        for name, left in pages.items():
            (tmp_path / f"{name}.html").write_text(make_stored_report(left, name), encoding="utf-8")
            with fresh_page(browser, {"width": 1440, "height": 900}) as (page, asked):
                page.goto((tmp_path / f"{name}.html").as_uri())
                page.wait_for_selector(".player:not([hidden])")
                page.keyboard.press("ArrowRight")
                assert page.title() == name
                drawn = "new Set(new Uint32Array(document.querySelector('canvas').getContext('2d').getImageData(0, 0, 400, 200).data.buffer)).size"
                assert page.evaluate(drawn) > (name != "small")
                assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
