"""Zips for EvalAI from small bundles: what they hold, what is missing, and what a starter should not upload."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from segjudge.platforms.evalai.bundle import build as evalai_build
from segjudge.platforms.evalai.bundle.build import build, find_unwanted_files
from tests.builders import ROOT, written, zipped
from tests.outcomes import outcome_of
from tests.platforms.damages import show, write_yaml
from tests.platforms.evalai.bundles import CONFIG as FOREIGN
from tests.platforms.evalai.bundles import FILES, SCRIPT
from tests.platforms.small_challenge import HTML, MINE, TABLE

CONFIG = {**FOREIGN, "evaluation_script": "evaluation_script.zip"}
WHOLE: dict[str, Any] = {
    "challenge_config.yaml": write_yaml(CONFIG),
    **{name: FILES[name] for name in ("text.html", "logo.png", "truth.txt")},
    **{f"evaluation_script/{name}": text for name, text in SCRIPT.items()},
}
SCRIPT_FILES = ["__init__.py", "main.py"]
NO_SCRIPT = {"evaluation_script/main.py": None, "evaluation_script/__init__.py": None}
GONE = {"text.html": None, "truth.txt": None}
UNREADABLE = {"challenge_config.yaml": b"a: ["}
HIDDEN = dict.fromkeys(
    (f"evaluation_script/{name}" for name in (".hidden", "a.pyc", "__pycache__/b.py", "data/c.txt", ".d/e.py")), ""
)
TWO_CONFIGS = "holds challenge_config.yaml and challenge_config.yml, but EvalAI accepts only one; remove the other"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def script_of(bundle: zipfile.ZipFile, name: str = "evaluation_script.zip") -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(bundle.read(name)))


@pytest.mark.parametrize(
    ("changes", "options", "names", "script"),
    [
        pytest.param({}, {}, ["evaluation_script.zip", "text.html", "logo.png", "truth.txt"], SCRIPT_FILES, id="as it should be"),
        pytest.param(
            HIDDEN, {}, ["evaluation_script.zip", "text.html", "logo.png", "truth.txt"], [*SCRIPT_FILES, "data/c.txt"],
            id="hidden and compiled files",
        ),
        pytest.param(GONE, {"lenient": True}, ["evaluation_script.zip", "logo.png"], SCRIPT_FILES, id="files may be missing"),
        pytest.param(
            {**NO_SCRIPT, "own.zip": zipped(SCRIPT), "challenge_config.yaml": write_yaml({**CONFIG, "evaluation_script": "own.zip"})},
            {}, ["text.html", "logo.png", "truth.txt", "own.zip"], SCRIPT_FILES, id="a script of its own",
        ),
        pytest.param(UNREADABLE, {"lenient": True}, ["evaluation_script.zip"], SCRIPT_FILES, id="YAML that may be unreadable"),
    ],
)  # fmt: skip
def test_a_zip_holds_the_files_that_the_config_names(
    changes: dict[str, Any], options: dict[str, Any], names: list[str], script: list[str]
) -> None:
    written(Path("b"), {name: data for name, data in {**WHOLE, **changes}.items() if data is not None})
    built = build("b", **options)
    assert re.fullmatch(r"b/dist/challenge_config\.zip \([0-9.]+ kB\)", str(built))
    with zipfile.ZipFile(built.path) as bundle:
        assert bundle.namelist() == ["challenge_config.yaml", *names]
        with script_of(bundle, next(name for name in names if name.endswith(".zip"))) as inner:
            assert sorted(inner.namelist()) == sorted(script)


@pytest.mark.parametrize(
    ("changes", "options", "sentence"),
    [
        pytest.param(GONE, {}, "HostError: text.html: does not exist, and challenge_config.yaml names it\n"
                     "truth.txt: does not exist, and challenge_config.yaml names it", id="missing files"),
        pytest.param({"challenge_config.yaml": write_yaml({**CONFIG, "image": "../logo.png"})}, {},
                     "HostError: ../logo.png: does not exist, and challenge_config.yaml names it", id="a file elsewhere"),
        pytest.param(NO_SCRIPT, {}, "HostError: evaluation_script.zip: does not exist, and challenge_config.yaml names it", id="no script"),
        pytest.param(UNREADABLE, {}, "HostError: challenge_config.yaml:1:5: challenge_config.yaml: is not valid YAML: expected the node "
                     "content, but found '<stream end>'. Correct that line or the one above. EvalAI says: \"Expected the node content, "
                     "but found '<stream end>' in line 1, column 5\"", id="no YAML"),
        pytest.param({"challenge_config.yaml": b"- a"}, {}, "HostError: challenge_config.yaml: is empty or not a mapping of keys", id="a list"),
        pytest.param({"challenge_config.yml": b"a: 1"}, {}, f"UsageError: FOLDER/b: {TWO_CONFIGS}", id="two configs"),
        pytest.param({"challenge_config.yaml": None}, {}, "UsageError: FOLDER/b: holds no challenge_config.yaml", id="no config"),
        pytest.param({}, {"out": "b/logo.png"}, "HostError: b/logo.png: is a file of the bundle and would be overwritten", id="over a file"),
        pytest.param({}, {"out": "b/logo.png/x.zip"},
                     "HostError: b/logo.png/x.zip: cannot be written (File exists); choose another path with --out", id="into a file"),
        pytest.param({"challenge_config.yaml": b"a: &a {is_docker_based: True}\n<<: *a\n"}, {"variant": "prediction", "lenient": True},
                     "HostError: challenge_config.yaml: is_docker_based is True after the change; write it once, as is_docker_based: True",
                     id="a variant that is not reached"),
    ],
)  # fmt: skip
def test_a_bundle_that_cannot_be_built(changes: dict[str, Any], options: dict[str, Any], sentence: str) -> None:
    written(Path("b"), {name: data for name, data in {**WHOLE, **changes}.items() if data is not None})
    assert outcome_of(lambda: build("b", **options)).replace(str(Path.cwd()), "FOLDER") == sentence


PLUGINS = {"families/odd/__init__.py", "families/plugins.py", "requirements.txt"}
KERNEL = {"masks/k.so", "masks/k.so.sha256"}
NO_KERNEL = "without kernel (`segjudge build --kernel` compiles it)"


@pytest.mark.parametrize(
    ("table", "options", "added", "about", "protocols"),
    [
        (TABLE, {}, PLUGINS | KERNEL, "with kernel", ["davis2017"] * 4),
        (TABLE, {"kernel": False}, PLUGINS, NO_KERNEL, ["davis2017"] * 4),
        ("PHASES = 1 / 0", {"lenient": True}, PLUGINS | KERNEL, "with kernel", []),
    ],
)
def test_a_bundle_of_phases_gets_the_installed_scorers_and_plug_ins(
    table: str, options: Any, added: set[str], about: str, protocols: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scorers = ROOT / "evaluation_script"
    installed = {path.relative_to(scorers).as_posix() for path in scorers.rglob("*.py")}
    asked = list[list[str]]()

    def read_uploads(protocols: list[str]) -> dict[str, bytes]:
        asked.append(protocols)
        return {"families/odd/__init__.py": b"", "families/plugins.py": b"", "phases.py": b"", "main.py": b"odd"}

    config = write_yaml({**MINE, "challenge_phases": []})
    written(
        Path("b"),
        {"challenge_config.yaml": config, "text.html": HTML, "evaluation_script/phases.py": table, "logo.png": b""},
    )
    written(Path(), {"k.so": "kernel", "k.so.sha256": "sum"})
    library = SimpleNamespace(path=Path("k.so").absolute(), checksum=Path("k.so.sha256").absolute())
    monkeypatch.setattr(evalai_build, "read_uploads", read_uploads)
    monkeypatch.setattr(evalai_build, "find_for_worker", lambda: library)
    built = build("b", **options)
    with zipfile.ZipFile(built.path) as bundle, script_of(bundle) as script:
        names = script.namelist()
        assert ({*names} - installed, installed - {*names}, len({*names})) == (added, set(), len(names))
        assert script.read("phases.py").decode() == table
        assert script.read("main.py") != b"odd", "a plug-in replaces no file"
    assert (asked, built.about_kernel(), str(built).endswith(f", {about}")) == ([protocols], about, True)
    assert built.describe_kernel() == f" The bundle was built {about}."


SECRET = "-----BEGIN RSA " + "PRIVATE KEY-----\n"  # in two parts, so that this file holds none
NAMED = ".env", "a/.env.local", "credentials", "id_rsa", "token.txt", "x.pem"
JOURNALS = ".segjudge/x", "a.db-wal", "a.sqlite3", "b.journal"
HELD: dict[str, tuple[Any, list[str]]] = {
    "notes.txt": (
        SECRET + f"ghp_{'a' * 36} AKIA{'B' * 16} eyJ{'a' * 10}.eyJ{'b' * 10}.{'c' * 10} hooks.slack.com/{'services'}/a/b/c",
        ["an EvalAI token", "a key of AWS", "a token of GitHub", "a private key", "a Slack address"],
    ),
    "large.txt": (" " * (1 << 20) + SECRET, ["a private key"]),
    "short.bin": (SECRET, ["a private key"]),
}  # fmt: skip
#: Files that look like these but are none: larger binaries are not read, and examples may hold truths.
FINE: dict[str, Any] = {
    **dict.fromkeys(("tokens.txt", "my_credentials", "journal.txt"), "x"),
    "large.bin": " " * (1 << 20) + SECRET,
    "examples/truth.zip": (ROOT / "annotations/sequences-dev.zip").read_bytes(),
}
TRUTHS: dict[str, Any] = {
    "annotations/other.txt": "x",
    "truth-of-others.zip": (ROOT / "annotations/sequences-dev.zip").read_bytes(),
}


def test_secrets_journals_and_truths_do_not_belong_into_a_starter() -> None:
    unwanted = {**dict.fromkeys((*NAMED, *JOURNALS), "x"), **TRUTHS, **{name: text for name, (text, _) in HELD.items()}}
    config = {"challenge_config.yaml": write_yaml(CONFIG)}
    Path("starter.zip").write_bytes(zipped({**config, **FILES, **unwanted, **FINE}, method=0))
    renew, keep = "Remove it from the repository, and renew it.", "Keep it out of the repository"
    sentences = [f"{name}: has the name of a secret. {renew}" for name in NAMED]
    sentences += [f"{name}: is a journal. {keep}, and in .gitignore." for name in JOURNALS]
    sentences += [f"{name}: is an annotation that challenge_config.yaml does not name. {keep}." for name in TRUTHS]
    sentences += [f"{name}: holds {each}. {renew}" for name, (_, held) in HELD.items() for each in held]
    reported = [show(problem) for problem in find_unwanted_files("starter.zip")]
    assert sorted(reported) == sorted(f"refused: {sentence}" for sentence in sentences)
