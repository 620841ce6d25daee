"""The input, output and messages of evaluation methods for grand-challenge.org, and their builds, as one text."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from segjudge.cli import main
from segjudge.evaluation_script.files import archive
from segjudge.evaluation_script.files.limits import UNIT_LIMITS
from segjudge.platforms.grand_challenge import build, evaluate, platform_input
from tests.answers import fold, join_json
from tests.builders import ROOT, written, zipped
from tests.calls import read_session, run_calls
from tests.platforms.damages import GOLDEN, new_folder, put, write_yaml
from tests.platforms.evalai.bundles import FILES
from tests.platforms.small_challenge import HTML, MINE, TABLE, TWO

FILE = GOLDEN / "grand_challenge.txt"
_TASK = {
    "phase": "p",
    "annotations": "a.zip",
    "splits": {
        "dev": {"key": "dev", "labels": {"A": "A", "B": "B", "error_": "error_"}},
        "a.b": {"key": "a_b", "labels": {"P@0.5": "P@0_5"}},
    },
}
_ANSWER: dict[str, Any] = {
    "result": [{"dev": {"A": 0.5, "error_": 1}, "a.b": {"P@0.5": 2}}, {"hard": {"A": 3}}],
    "error": [{"dev": {"error_A": 0.01, "error_B": 4}}, {"hard": {"error_A": 5}}],
}


def _job(pk: str, *places: str) -> dict[str, Any]:
    return {"pk": pk, "outputs": [{"socket": {"relative_path": place, "slug": f"slug-of-{place}"}} for place in places]}


#: Of a submission's files, and of the JSON of jobs.
_LIMITS, _PHASE_LIMITS = replace(UNIT_LIMITS, members=2), replace(UNIT_LIMITS, json_bytes=99)
_LIMIT = len(json.dumps([_job("a", "m.json")]))
#: The phase of the calls, whose protocol reads images only if a call says so.
_PHASE = SimpleNamespace(codename="p", limits=_PHASE_LIMITS, splits=[SimpleNamespace(protocol="masks")])
_PROTOCOLS = {"masks": SimpleNamespace(), "volumes": SimpleNamespace(reads_jobs=True)}


def _fail(kind: str, text: str) -> Any:
    def evaluate_submission(*given: object) -> None:
        raise type(kind, (Exception,), {})(text)

    return evaluate_submission


def _read_submission(files: dict[str, Any], link: str = "") -> str:
    with new_folder() as folder:
        written(folder, {"truth.json": "{}", **{f"input/{name}": data for name, data in files.items()}})
        os.makedirs("input", exist_ok=True)
        os.makedirs("temporary")
        if link:
            os.symlink("../truth.json", f"input/{link}")
        try:
            path = platform_input.find_submission(f"{folder}/input", "p", f"{folder}/temporary")
            names = sorted(path.open_files(_LIMITS).sizes) if isinstance(path, archive.FolderElsewhere) else []
        except Exception as error:  # noqa: BLE001 - what is said is noted
            return f"{type(error).__name__}: {error}".replace(str(folder), "FOLDER")
        text = Path(path).read_text() if path.endswith("submission.json") else " ".join(names)
        return f"{os.path.relpath(path)} {text}".strip()


def _list_inputs(*places: str) -> str:
    """Return the platform's list of an upload, and of further inputs at these relative paths."""
    uploaded = {"interface": {"slug": "predictions-zip-file", "relative_path": "predictions.zip"}}
    others = [{"socket": {"slug": "x", "relative_path": place}} for place in places]
    return json.dumps([uploaded, *others, {"interface": 1}, {"socket": {"relative_path": 1}}])


def _read_jobs(listed: Any, files: dict[str, Any] | None = None, **how: Any) -> str:
    protocol = "volumes" if how.get("images") else "masks"
    with (
        mock.patch.object(platform_input, "_LIST_BYTES", how.get("bytes", 1 << 20)),
        mock.patch.object(_PHASE, "splits", [SimpleNamespace(protocol=protocol)]),
        mock.patch.object(_PHASE, "socket", how.get("socket", ""), create=True),
    ):
        return _read_submission({"predictions.json": json.dumps(listed), "other.txt": "", **(files or {})})


def _run(evaluate_submission: Any, *, folders: bool = True) -> list[str]:
    """Return the files and messages of `main`: with named folders, and with those of the platform."""
    asked, errors = list[str](), io.StringIO()

    def noted(*given: object) -> Any:
        asked.append(f"asked {given}")
        return evaluate_submission(*given)

    with new_folder() as folder, contextlib.redirect_stderr(errors):
        written(folder, {"here/task.json": json.dumps(_TASK), "in/a.json": "{}", "out/x": ""})
        places = [str(folder / "in"), "/truth", str(folder / "out")]
        argv = ["evaluate.py", *places] if folders else ["evaluate.py", *places[:2]]
        modules = {"evaluation_script": SimpleNamespace(evaluate=noted), "platform_input": platform_input}
        with (
            mock.patch.dict(sys.modules, modules),
            mock.patch.multiple(
                evaluate, _HERE=str(folder / "here"), _FOLDERS=("/none",) * 3 if folders else tuple(places)
            ),
            mock.patch.object(sys, "argv", argv),
        ):
            code = evaluate.main()
        metrics = folder / "out/metrics.json"
        left = [f"metrics {metrics.read_text()}"] if metrics.exists() else []
        lines = errors.getvalue().splitlines()
        traced = ["a traceback"] if len(lines) > 1 else []
        return [
            f"exit code {code}",
            *(text.replace(str(folder), "FOLDER") for text in asked),
            *left,
            *traced,
            *lines[-1:],
        ]


def _list_calls() -> Iterator[str]:
    named = {
        name: importlib.import_module(f"segjudge.{name}")
        for name in (f"evaluation_script.files{module}" for module in ("", ".archive", ".limits", ".problems"))
    }
    scorers = SimpleNamespace(phase_named=lambda codename: _PHASE)
    families = SimpleNamespace(PROTOCOLS=_PROTOCOLS)
    names = {
        "gc": evaluate, "answer": _ANSWER, "task": _TASK, "submission": _read_submission, "jobs": _read_jobs, "job": _job,
        "run": _run, "fail": _fail, "limit": _LIMIT,
        "keys": lambda *names: list(build._path_keys(names, "warnings").values()), "listed": _list_inputs,
    }  # fmt: skip
    with mock.patch.dict(
        sys.modules, {**named, "evaluation_script.main": scorers, "evaluation_script.families": families}
    ):  # type: ignore[dict-item]
        yield run_calls(read_session(FILE, "what a method reads and says"), names).rstrip("\n")


_TRUTH = "ground_truth.tar.gz"
#: Challenges that become evaluation methods.
_METHODS = {
    "one phase": MINE,
    "two phases, and two splits": put(put(TWO, "challenge_phases.1.codename", "both"), "challenge_phase_splits", [
        MINE["challenge_phase_splits"][0],
        *({**MINE["challenge_phase_splits"][0], "challenge_phase_id": 2, "dataset_split_id": number, "visibility": visibility}
          for number, visibility in ((1, 3), (2, 1))),
    ]),
}  # fmt: skip
_METHODS["two phases, the first with hidden splits alone"] = put(
    _METHODS["two phases, and two splits"], "challenge_phase_splits.0.visibility", 1
)
_METHODS["two phases, the first without a public leaderboard"] = put(
    TWO, "challenge_phases.0.leaderboard_public", False
)
_METHODS["a phase that is not public"] = put(MINE, "challenge_phases.0.is_public", False)
_HIDDEN = TABLE.replace("(VAL,), seconds", '(PhaseSplit("val", "davis2017", LABELS, hidden=True),), seconds')


def _list_methods() -> Iterator[str]:
    from segjudge.platforms.evalai.bundle.bundle_source import find_bundle

    with new_folder():
        truth = str(ROOT / "annotations/sequences-dev.zip")
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main(["new", "mine", "--protocol", "davis2017", "--truth", truth, "--quiet"])
        os.rename(next(Path("mine/annotations").iterdir()), "mine/annotations/val.zip")
        written(Path("mine"), {"text.html": HTML, "logo.png": FILES["logo.png"], "evaluation_script/phases.py": TABLE})
        for name, config in _METHODS.items():
            Path("mine/challenge_config.yaml").write_bytes(write_yaml(config))
            Path("mine/evaluation_script/phases.py").write_text(_HIDDEN if "alone" in name else TABLE)
            yield name
            with mock.patch("time.time", return_value=0):
                truths = {
                    folder: Path(folder, _TRUTH).read_bytes() for folder in build.build(find_bundle("mine"), "out")
                }
            for folder in truths:
                Path(folder, "left").write_text("")
            for folder, method in build.build(find_bundle("mine"), "out").items():  # over what was written before
                assert Path(folder, _TRUTH).read_bytes() == truths[folder], "the same files give the same bytes"
                yield f"    {folder}: {', '.join(method.notes) or 'nothing is left out'}"
                yield f"        {' '.join(sorted(os.listdir(folder)))}"
                for path in sorted(Path(folder).iterdir()):
                    if path.suffix == ".json":
                        yield from (f"        {path.name}: {line}" for line in join_json(path.read_text()).splitlines())
                with tarfile.open(Path(folder, _TRUTH)) as archive:
                    yield from (f"        {member.name} {oct(member.mode)}" for member in archive)
        both = write_yaml(_METHODS["two phases, and two splits"])
        written(Path("mine"), {"challenge_config.yaml": both, "evaluation_script/phases.py": TABLE})
        yield "in the bundle's folder"
        with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(printed):
            main(["build", "mine", "--platform", "grand-challenge", "--no-kernel", "--quiet"])
        yield from (f"    {line}" for line in printed.getvalue().splitlines())
        written(Path("other"), {"first/thesis.tex": "years"})
        written(Path("empty"), {"both/x": ""})
        os.remove("empty/both/x")
        os.makedirs("empty/first")
        Path("file").write_text("")
        for out in ("other", "empty", "file"):
            try:
                yield f"{out}: {len(build.build(find_bundle('mine'), out))} folders"
            except Exception as error:  # noqa: BLE001 - what is said is noted
                yield f"{out}: {type(error).__name__}: {error}"
        refused = {
            "hidden splits alone": (put(MINE, "challenge_phase_splits.0.visibility", 1), _HIDDEN),
            "no public leaderboard": (put(MINE, "challenge_phases.0.leaderboard_public", False), TABLE),
        }
        for name, (config, table) in refused.items():
            written(Path("mine"), {"challenge_config.yaml": write_yaml(config), "evaluation_script/phases.py": table})
            try:
                build.build(find_bundle("mine"), "hidden")
            except Exception as error:  # noqa: BLE001 - likewise
                yield f"{name}: {type(error).__name__}: {error}"
            assert not Path("hidden").exists()
        Path("mine/evaluation_script/phases.py").write_text(TABLE)
        odd = put(MINE, "challenge_phases.0.test_annotation_file", "truth.txt")
        Path("mine/challenge_config.yaml").write_bytes(write_yaml(odd))
        written(Path("mine"), {"truth.txt": zipped({})})
        try:
            build.build(find_bundle("mine"), "odd")
        except Exception as error:  # noqa: BLE001 - likewise
            yield f"another truth in the YAML: {type(error).__name__}: {error}"


def write_text() -> str:
    parts = {"what a method reads and says": _list_calls, "what is built": _list_methods}
    text = "".join(f"── {title} ──\n" + "".join(f"{line}\n" for line in lines()) for title, lines in parts.items())
    return fold(re.sub(r"\bErrno \d+\b", "Errno N", text))


if __name__ == "__main__":
    FILE.write_text(write_text(), encoding="utf-8")
