"""Plug-ins that are uninstalled, duplicated, forbidden in bundles, print, or raise: each gets a sentence."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path

import pytest

from tests.families.plugins import counting, run, run_process

#: A Segjudge with scorers, which this test does not download.
COMMIT = f"git+https://example.org/segjudge@{'0' * 40}"
ORIGIN = "segjudge-counting 1.0 (counting = segjudge_counting)"
SCORE = ("score", "answers.json", "--truth", "truth.json", "--protocol", "counting")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return counting(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def challenge(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a challenge of a plug-in's protocol, built while the plug-in was installed."""
    folder = tmp_path_factory.mktemp("challenges")
    run(site, folder, "new", "mine", "--demo", "--protocol", "counting", "--segjudge", COMMIT)
    run(site, folder / "mine", "build", "--out", "built.zip")
    return folder / "mine"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "truth.json").write_text('{"a": 3, "b": 5}')
    (tmp_path / "answers.json").write_text('{"a": 3, "b": 4}')
    return tmp_path


@pytest.fixture
def own_site(site: Path, tmp_path: Path) -> Path:
    """Return the plug-in, for changes."""
    return Path(shutil.copytree(site, tmp_path / "site"))


def append(path: Path, text: str) -> None:
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{text}\n", encoding="utf-8")


# ── bundles ─────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_nothing_is_built_once_the_plug_in_is_gone(challenge: Path, tmp_path: Path) -> None:
    for platform in ("evalai", "codabench", "grand-challenge"):
        arguments = ("build", "--bundle", str(challenge), "--platform", platform, "--out", "new.zip")
        output = run(tmp_path, tmp_path, *arguments[:-1], f"new-{platform}", code=3) if platform != "evalai" else ""
        output = output or run(tmp_path, tmp_path, *arguments, code=3)
        assert "evaluation_script/phases.py: there is no protocol 'counting'" in output
        assert output.endswith(
            "requirements.txt names segjudge-counting 1.0, which is not installed: pip install -r requirements.txt\n"
        )
        assert not (tmp_path / "new.zip").exists()


@pytest.mark.long
def test_a_built_zip_is_asked_what_it_scores(challenge: Path, tmp_path: Path) -> None:
    built = str(challenge / "built.zip")
    assert "would accept" in run(tmp_path, tmp_path, "check", built, "--quick")
    run(tmp_path, tmp_path, "build", "--platform", "codabench", "--bundle", built, "--out", "codabench")
    run(tmp_path, tmp_path, "build", "--platform", "grand-challenge", "--bundle", built, "--out", "grand")
    without = tmp_path / "without.zip"
    with zipfile.ZipFile(built) as bundle, zipfile.ZipFile(without, "w") as copy:
        for name in bundle.namelist():
            data = bundle.read(name)
            copy.writestr(name, _leave_out_plugins(data) if name == "evaluation_script.zip" else data)
    assert (
        "phases.py, val: there is no protocol 'counting'"
        in run_process(tmp_path, tmp_path, "check", str(without), "--quick", code=4).stdout
    )


def _leave_out_plugins(script: bytes) -> bytes:
    import io

    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(script)) as files, zipfile.ZipFile(out, "w") as copy:
        for name in files.namelist():
            if "counting" not in name and name != "families/plugins.py":
                copy.writestr(name, files.read(name))
    return out.getvalue()


@pytest.mark.long
def test_another_version_than_the_pinned_one_is_said(challenge: Path, own_site: Path, tmp_path: Path) -> None:
    (own_site / "segjudge_counting-1.0.dist-info").rename(own_site / "segjudge_counting-2.0.dist-info")
    metadata = own_site / "segjudge_counting-2.0.dist-info/METADATA"
    text = metadata.read_text().replace("Version: 1.0", "Version: 2.0")
    metadata.write_text(text.replace("Name: segjudge-counting", "Name: Segjudge_Counting"))
    fault = "names Segjudge_Counting 1.0, but the installed 2.0 is used"
    built = run_process(own_site, tmp_path, "build", "--bundle", str(challenge), "--out", "new.zip")
    assert (
        f"warning: requirements.txt {fault}. Install the named version: pip install -r requirements.txt" in built.stderr
    )
    checked = run_process(own_site, tmp_path, "check", str(challenge), "--quick")
    assert f"warning: requirements.txt: {fault}" in checked.stdout + checked.stderr


@pytest.mark.long
def test_what_no_bundle_takes_of_a_plug_in_is_refused(challenge: Path, own_site: Path, tmp_path: Path) -> None:
    half = own_site / "segjudge_counting/upload"
    (half / "password.py").symlink_to("/etc/passwd")
    (half / "linked").symlink_to("/etc")
    (half / "two\nlines.py").write_text("")
    (half / "table.bin").write_bytes(b"\0")
    (half / "long.py").write_bytes(b"#" * 3_000_000)
    (half / "notes.pyi").write_text("")
    os.mkfifo(half / "pipe.py")
    output = run(own_site, tmp_path, "build", "--bundle", str(challenge), "--out", "new.zip", code=3)
    assert output.splitlines() == [
        f"{ORIGIN}, upload/linked: is a link that leads out of the folder. Replace it by the file itself",
        f"{ORIGIN}, upload/long.py: has 3,000,000 bytes; the limit is 1,048,576. Make it smaller",
        f"{ORIGIN}, upload/password.py: is a link that leads out of the folder. Replace it by the file itself",
        f"{ORIGIN}, upload/pipe.py: is not a readable file. Remove it",
        f"{ORIGIN}, upload/two\\nlines.py: has an unprintable name. Rename it",
        f"{ORIGIN}, upload/table.bin: is not a module; bundles include only modules. Move it out of upload/",
    ]
    assert not (tmp_path / "new.zip").exists()
    output = run(own_site, tmp_path, "new", "other", "--demo", "--protocol", "counting", "--segjudge", COMMIT, code=3)
    assert f"{ORIGIN}, segjudge_counting/upload/password.py: is a link that leads out of the folder" in output


# ── what a plug-in prints and raises ────────────────────────────────────────


def test_what_a_plug_in_prints_when_it_is_imported_is_not_on_stdout(own_site: Path, folder: Path) -> None:
    for name in ("__init__.py", "upload/__init__.py", "upload/engine.py", "toolkit/__init__.py"):
        append(own_site / "segjudge_counting" / name, f"print('imported {name}')")
    done = run_process(own_site, folder, *SCORE, "--json", "-")
    assert json.loads(done.stdout)["result"] == [{"val": {"Error": 0.5, "Right": 0.5}}]
    assert all(f"imported {name}\n" in done.stderr for name in ("upload/__init__.py", "upload/engine.py"))
    assert "imported" not in run(own_site, folder, "benchmarks")


def test_what_a_plug_in_raises_is_its_own_and_not_ours(own_site: Path, folder: Path) -> None:
    toolkit = own_site / "segjudge_counting/toolkit/__init__.py"
    toolkit.write_text(toolkit.read_text().replace(', "Right": "share of correct numbers"', ""))
    output = run(own_site, folder, "report", *SCORE[1:], "--out", "page.html", code=3)
    line = 1 + next(n for n, text in enumerate(toolkit.read_text().splitlines()) if "return MEANINGS" in text)
    assert output.splitlines()[-1] == (
        f"segjudge: the plug-in {ORIGIN} raised KeyError: 'Right' (toolkit/__init__.py, line {line}). "
        "Tell the maintainers of segjudge-counting; neither Segjudge nor your files caused it."
    )
    assert "defect" not in output
    engine = own_site / "segjudge_counting/upload/engine.py"
    engine.write_text(engine.read_text().replace("    wrong = abs(predicted - true)", "    wrong = [][predicted]"))
    for jobs in ("1", "2"):
        output = run(own_site, folder, *SCORE, "--jobs", jobs, code=3).splitlines()[-1]
        assert output.startswith(
            f"segjudge: the plug-in {ORIGIN} raised IndexError: list index out of range (upload/engine.py, "
        )


# ── metrics ─────────────────────────────────────────────────────────────────


@pytest.mark.long
def test_a_metric_without_a_direction_is_not_ranked_without_a_word(own_site: Path, folder: Path) -> None:
    toolkit = own_site / "segjudge_counting/toolkit/__init__.py"
    (folder / "worse.json").write_text('{"a": 9, "b": 9}')
    for name in ("answers", "worse"):
        score = ("score", f"{name}.json", "--truth", "truth.json", "--protocol", "counting")
        run(own_site, folder, *score, "--json", f"scored-{name}.json")
    rank = ("rank", "scored-answers.json", "scored-worse.json", "--metric", "Error", "--draws", "5")
    stated = run_process(own_site, folder, *rank)
    assert "does not state" not in stated.stderr
    assert stated.stdout.index("scored-answers") < stated.stdout.index("scored-worse")
    toolkit.write_text(toolkit.read_text().replace('"Error": "smaller", ', ""))
    unstated = run_process(own_site, folder, *rank)
    note = (
        "counting does not state whether larger or smaller values of Error are better; larger is assumed to be better"
    )
    assert note in unstated.stderr
    compare = (
        "compare", "answers.json", "worse.json", "--truth", "truth.json", "--protocol", "counting", "--metric",
        "Error",
    )  # fmt: skip
    assert note in run_process(own_site, folder, *compare).stderr
