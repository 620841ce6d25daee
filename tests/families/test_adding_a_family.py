"""A family written as in `docs/adding-a-family.md`, installed next to Segjudge; and broken or removed families."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from segjudge.evaluation_script.families import FOLDERS, PROTOCOLS, folder_of
from segjudge.families.plugin_files import check_upload
from tests.families.plugins import ROOT, counting, install, run

#: A Segjudge with scorers, which this test does not download.
COMMIT = f"git+https://example.org/segjudge@{'0' * 40}"
#: Families of ours that are taken away, and one whose name a plug-in wants.
REMOVED, TAKEN = FOLDERS[2:5], FOLDERS[3]
TRUTH, ANSWERS = {"a": 3, "b": 5, "c": 9}, {"a": 3, "b": 4, "c": 6}
ON_TRUTH = ("answers.json", "--truth", "truth.json", "--protocol")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an installation of the page's family with unusable plug-ins, and one that adds to another's family."""
    folder = counting(tmp_path_factory.mktemp("site"))
    rows = (
        "from ..counting.protocols import CountingProtocol\nPROTOCOLS = [CountingProtocol({!r}, 'As counting.', 2)]\n"
    )
    uploads = {
        "absent": None,
        "broken": "import nowhere",
        "exits": "raise SystemExit",
        "empty": "",
        TAKEN: "",
        "thief": rows.format("coco"),
        "squatter": "from ..base.family import Family\nFAMILY = Family('saliency', {}, (), ('cellpose',))\n",
        "wide": rows.format("counting-wide"),
        "engineless": "from ..base.family import Family\n"
        "from ..counting.protocols import CountingProtocol\n"
        "class Rules(CountingProtocol):\n    family = form = 'engineless'\n"
        "FAMILY = Family('engineless', {'engineless': Rules('engineless', 'No engine.')}, (), ('engineless',))\n",
    }
    for name, text in uploads.items():
        files = {f"segjudge_{name}/__init__.py": ""} if name != "absent" else {}
        files |= {f"segjudge_{name}/upload/__init__.py": text} if text is not None else {}
        install(folder, f"segjudge-{name}", files, {name: f"segjudge_{name}"})
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, document in (("truth", TRUTH), ("answers", ANSWERS)):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    return tmp_path


def scores(site: Path, folder: Path, *arguments: str) -> dict[str, float | None]:
    document = json.loads(run(site, folder, *arguments, "--json", "-"))
    values: dict[str, float | None] = document["result"][0]["val"]
    return values


@pytest.mark.long
def test_a_plug_in_is_scored_as_ours_are(site: Path, folder: Path) -> None:
    assert scores(site, folder, "score", *ON_TRUTH, "counting") == {"Error": 4 / 3, "Right": 1 / 3}
    run(site, folder, "score", *ON_TRUTH, "counting", "--csv", "tables")
    assert (folder / "tables/per-image_results-val.csv").read_text().splitlines()[:2] == ["Image,Id,Error", "a,,0.000"]
    assert scores(site, folder, "score", *ON_TRUTH, "counting-loose") == {"Error": 4 / 3, "Right": 2 / 3}
    assert scores(site, folder, "score", *ON_TRUTH, "counting", "--sequences", "a,b") == {"Error": 0.5, "Right": 0.5}
    run(site, folder, "pack", "--layout", "counting", "--root", "truth.json", "--out", "truth.zip")
    packed = ("score", "answers.json", "--truth", "truth.zip", "--protocol", "counting")
    assert scores(site, folder, *packed, "--jobs", "2") == {"Error": 4 / 3, "Right": 1 / 3}
    for number in ("1", "2"):
        run(site, folder, *packed, "--part", f"{number}/2", "--out", f"{number}.part")
    assert scores(site, folder, "merge", "2.part", "1.part") == {"Error": 4 / 3, "Right": 1 / 3}


@pytest.mark.long
def test_what_is_wrong_with_a_submission_to_it_is_a_sentence(site: Path, folder: Path) -> None:
    (folder / "some.json").write_text('{"a": 3}')
    (folder / "text.json").write_text('{"a": "three", "b": 5, "c": null}')
    on = ("--truth", "truth.json", "--protocol", "counting")
    assert "2 of 3 images are missing: b, c. Send every image." in run(site, folder, "score", "some.json", *on, code=1)
    assert "2. image c: has no whole number." in run(site, folder, "score", "text.json", *on, code=1)
    message = run(site, folder, "score", "some.json", *on, "--layout", "generic", code=2)
    assert "layout does not apply to counting" in message


@pytest.mark.long
def test_a_plug_in_that_cannot_be_used_is_a_sentence_and_hurts_nobody(site: Path, folder: Path) -> None:
    listed = run(site, folder, "benchmarks")
    assert "\n  counting-wide " in listed
    assert f"\n  {list(PROTOCOLS)[-1]} " in listed
    output = run(site, folder, "score", *ON_TRUTH, "countin", code=2)
    assert "'countin' does not exist; did you mean counting?" in output
    begin, taken = (
        "the plug-in segjudge-",
        f"{TAKEN} cannot name a family: the name is taken, or is not a valid module name",
    )
    faults = [line.removeprefix(begin) for line in output.splitlines() if line.startswith(begin)]
    assert faults == [
        "absent 1.0 (absent = segjudge_absent) cannot be used: ModuleNotFoundError: there is no package segjudge_absent",
        "broken 1.0 (broken = segjudge_broken) cannot be used: ModuleNotFoundError: No module named 'nowhere'",
        "exits 1.0 (exits = segjudge_exits) cannot be used: SystemExit: ",
        f"{TAKEN} 1.0 ({TAKEN} = segjudge_{TAKEN}) cannot be used: {taken}",
        "squatter 1.0 (squatter = segjudge_squatter) cannot be used: these names are already taken: a family saliency, a layout cellpose",
        "empty 1.0 (empty = segjudge_empty) cannot be used: it has neither FAMILY nor PROTOCOLS",
        "thief 1.0 (thief = segjudge_thief) cannot be used: these names are already taken: a protocol coco",
    ]
    assert run(site, folder, "score", *ON_TRUTH, "engineless", code=3) == (
        "the plug-in segjudge-engineless 1.0 (engineless = segjudge_engineless) cannot be used: ModuleNotFoundError: "
        "No module named 'segjudge.evaluation_script.families.engineless.engine'\n"
    )


def test_no_plug_in_is_looked_for_where_a_name_is_ours(site: Path, folder: Path) -> None:
    program = (
        "import sys\n"
        "from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS\n"
        "from segjudge.families import tools_of\n"
        "assert PROTOCOLS['davis2017'].family in FAMILIES and tools_of('panoptic').groups\n"
        "assert 'segjudge.system.plugins' not in sys.modules\n"
        "assert 'counting' in FAMILIES and 'segjudge_counting' not in sys.modules\n"
    )
    paths = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(site)!r}]\n"
    subprocess.run([sys.executable, "-P", "-c", paths + program], check=True, cwd=folder)


@pytest.mark.long
def test_python_scores_it_and_workers_too(site: Path, folder: Path) -> None:
    program = (
        "import segjudge\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from multiprocessing import get_context\n"
        "if __name__ == '__main__':\n"
        "    alone = segjudge.score('answers.json', 'truth.json', 'counting')\n"
        "    with ProcessPoolExecutor(2, get_context('spawn')) as pool:\n"
        "        assert segjudge.score('answers.json', 'truth.json', 'counting', executor=pool) == alone\n"
        "    print(alone.metrics)\n"
    )
    (folder / "program.py").write_text(f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(site)!r}]\n{program}")
    done = subprocess.run([sys.executable, "program.py"], check=True, cwd=folder, capture_output=True, text=True)
    assert done.stdout == "{'val': {'Error': 1.3333333333333333, 'Right': 0.3333333333333333}}\n"


@pytest.mark.long
def test_its_mirror_makes_challenges_and_a_section_of_the_report(site: Path, folder: Path) -> None:
    run(site, folder, "report", *ON_TRUTH, "counting", "--out", "page.html")
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "Miscounted images" in page
    assert page.index("<td>c</td>") < page.index("<td>b</td>")
    run(site, folder, "new", "mine", "--demo", "--protocol", "counting-wide", "--segjudge", COMMIT)
    config = (folder / "mine/challenge_config.yaml").read_text(encoding="utf-8")
    assert 'description: "mean error of numbers; lower is better"' in config
    assert "sort_ascending: True" in config
    guide = (folder / "mine/templates/submission_guidelines.html").read_text(encoding="utf-8")
    assert '{"street": 3, …}' in guide
    lock = (folder / "mine/requirements.txt").read_text(encoding="utf-8").splitlines()
    assert [line.partition("#")[0] for line in lock[1:]] == [
        "file:./wheels/segjudge_counting-1.0-py3-none-any.whl", "file:./wheels/segjudge_wide-1.0-py3-none-any.whl"
    ]  # fmt: skip
    sample = ("score", "mine/examples/val/poor.zip", "--truth", "mine/annotations/val.zip")
    assert scores(site, folder, *sample, "--protocol", "counting") == {"Error": 3.0, "Right": 0.0}


@pytest.mark.long
def test_its_upload_half_goes_into_bundles_and_scores_there_alone(site: Path, folder: Path) -> None:
    run(site, folder, "new", "mine", "--demo", "--protocol", "counting-wide", "--segjudge", COMMIT)
    printed = run(site, folder / "mine", "run")
    assert "1. good.zip  0.0000  1.0000" in printed
    assert "2. poor.zip       3  0.0000" in printed
    run(site, folder / "mine", "build", "--platform", "grand-challenge")
    script = folder / "mine/dist/grand-challenge/val/evaluation_script"
    assert "segjudge-wide 1.0" in (script / "families/plugins.py").read_text()
    assert not (script / "families/engineless").exists()
    program = "import evaluation_script, sys; print(evaluation_script.evaluate(*sys.argv[1:], 'val')['result'])"
    arguments = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(script.parent)!r}); {program}"]
    files = [str(folder / "mine" / name) for name in ("annotations/val.zip", "examples/val/poor.zip")]
    done = subprocess.run([*arguments, *files], check=True, capture_output=True, text=True, cwd=folder)
    assert done.stdout.splitlines()[-1] == "[{'val': {'Error': 3.0, 'Right': 0.0}}]"


@pytest.mark.long
def test_codabench_scores_it_and_shows_its_page(site: Path, folder: Path) -> None:
    run(site, folder, "new", "mine", "--demo", "--protocol", "counting", "--segjudge", COMMIT)
    phases = folder / "mine/evaluation_script/phases.py"
    phases.write_text(phases.read_text().replace("Phase(\n", "Phase(\n        report=True, detail='all',\n"))
    printed = run(site, folder / "mine", "run", "--platform", "codabench")
    assert "2. poor.zip       3  0.0000" in printed
    assert "Traceback" not in printed
    run(site, folder / "mine", "build", "--platform", "codabench")
    (built,) = (folder / "mine/dist/codabench").glob("*.zip")
    with zipfile.ZipFile(built) as competition, competition.open("scoring_program.zip") as program:
        assert "page/segjudge/families/counting/__init__.py" in zipfile.ZipFile(program).namelist()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("import segjudge.scoring\n", "imports segjudge.scoring, which the upload can only import relatively"),
        ("from ....scoring import score\n", "imports a module above the upload, which is not uploaded"),
        ("import pandas\n", "imports pandas, which EvalAI's worker does not have: there are PIL, numpy"),
        ("import tomllib\n", "imports tomllib, which Python 3.9 does not have"),
        ("from itertools import pairwise\n", "itertools of Python 3.9 has no pairwise"),
        ("rows = list(zip([1], [2], strict=True))\n", "zip of Python 3.9 has no argument strict"),
        ("def f(a: int | str): ...\n", "joins types by |, for which Python 3.9 needs"),
        ("match 1:\n    case 1: ...\n", "is not Python 3.9, which EvalAI runs"),
    ],
)
def test_what_evalai_could_not_run_of_an_upload_half_is_a_sentence(text: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "half").mkdir()
    (tmp_path / "half/more.py").write_text(text)
    (sentence,) = check_upload(str(tmp_path / "half"), "x")
    assert sentence.startswith("x, upload/more.py, line ")
    assert fault in sentence


@pytest.mark.long
def test_a_family_without_a_mirror_scores_and_shows_its_tables(folder: Path) -> None:
    site = counting(folder / "site")
    shutil.rmtree(site / "segjudge_counting/toolkit")
    assert scores(site, folder, "score", *ON_TRUTH, "counting") == {"Error": 4 / 3, "Right": 1 / 3}
    run(site, folder, "report", *ON_TRUTH, "counting", "--out", "page.html")
    assert "Error" in (folder / "page.html").read_text(encoding="utf-8")
    demo = ("new", "mine", "--demo", "--protocol", "counting", "--segjudge", COMMIT)
    assert "counting has no synthetic truth" in run(site, folder, *demo, code=2)


@pytest.mark.long
def test_a_family_that_is_uninstalled_leaves_no_trace(folder: Path) -> None:
    site = counting(folder / "site")
    before = run(folder, folder, "benchmarks")
    assert run(site, folder, "benchmarks") != before
    run(site, folder, "pack", "--layout", "counting", "--root", "truth.json", "--out", "truth.zip")
    shutil.rmtree(site)
    assert run(folder, folder, "benchmarks") == before
    packed = ("score", "answers.json", "--truth", "truth.zip", "--protocol", "davis2017")
    assert "holds counting, which the protocol davis2017 does not score" in run(folder, folder, *packed, code=3)
    assert "'counting' does not exist" in run(folder, folder, "score", *ON_TRUTH, "counting", code=2)


@pytest.mark.long
@pytest.mark.parametrize("family", REMOVED)
def test_without_its_folders_and_its_word_a_family_of_ours_is_gone_and_the_rest_scores(
    site: Path, folder: Path, family: str
) -> None:
    for name in ("segjudge", "evaluation_script"):
        ignored = shutil.ignore_patterns("__pycache__", "*.c")
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
        shutil.rmtree(folder / name / "families" / family)
    for name in ("logo.png", "CHANGELOG.md", "adding-a-family.md"):  # links to files outside the folders
        (folder / "segjudge/starting" / name).unlink()
        shutil.copyfile(ROOT / "segjudge/starting" / name, folder / "segjudge/starting" / name)
    registry = folder / "evaluation_script/families/__init__.py"
    text = registry.read_text(encoding="utf-8")
    assert f' "{family}",' in text
    registry.write_text(text.replace(f' "{family}",', "", 1), encoding="utf-8")

    def run_copy(*arguments: str) -> str:
        paths = f"import sys; sys.path[:0] = [{str(folder)!r}, {str(site)!r}]; from segjudge.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-P", "-c", paths, *arguments], cwd=folder, capture_output=True, text=True, check=True
        )
        return done.stdout

    run_copy("report", *ON_TRUTH, "counting", "--out", "page.html")
    listed = run_copy("benchmarks")
    assert "davis2017" in listed
    gone = [name for name, rules in PROTOCOLS.items() if folder_of(rules.family) == family]
    assert not any(f"\n  {name} " in listed for name in gone)
    assert run_copy("new", "other", "--demo", "--segjudge", COMMIT).startswith("other")
