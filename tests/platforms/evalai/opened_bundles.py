"""The content and limits of bundles for EvalAI, and the messages of trials about their samples, as one text."""

from __future__ import annotations

import contextlib
import datetime
import os
import re
import shlex
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

from segjudge.platforms.evalai.bundle import bundle_source, opened_bundle, trial, yaml_lines
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle, BundleRefusedError
from segjudge.platforms.evalai.bundle.trial import SubmissionOutcome
from segjudge.platforms.rules import fields, problems
from tests.builders import written, zipped
from tests.calls import read_session, run_calls
from tests.platforms.damages import GOLDEN, new_folder, show, write_yaml

from .bundles import CONFIG, FILES

FILE = GOLDEN / "opened_bundles.txt"

# ── YAML ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_with_nodes(nodes: int, text: str) -> object:
    yaml_lines._parse.cache_clear()
    with mock.patch.object(yaml_lines, "_NODES", nodes):
        return yaml_lines.read_yaml("c.yaml", text.encode())[0]


def _read(text: str) -> object:
    try:
        return yaml_lines.read_yaml("c.yaml", text.encode())[0]
    except yaml.YAMLError as error:
        return show(yaml_lines.yaml_problem("c.yaml", error))


def _list_yaml() -> Iterator[str]:
    names = {
        "read": _read, "with_nodes": _read_with_nodes,
        "read_lines": lambda text: yaml_lines.read_yaml("c.yaml", text.encode())[1],
    }  # fmt: skip
    yield run_calls(read_session(FILE, "YAML"), names).rstrip("\n")


# ── bundles ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_LIMITS = ("_MEMBERS", "_TEXT_BYTES", "_UNPACKED_BYTES", "_NAME_BYTES", "_CHUNK_BYTES", "UPLOAD_BYTES")


def _try_open(**how: Any) -> str:
    try:
        Bundle("b.zip", **how).__exit__()
    except BundleRefusedError as error:
        return show(error.problem)
    return "is taken"


def _list_limits() -> Iterator[str]:
    """Yield the accepted content at each limit, and one below it."""
    with new_folder():
        files = {
            "challenge_config.yaml": b"{}", "a.html": b"x" * 90, "b.yml": b"x" * 80, "c" * 30: b"x" * 200, "d/": b"",
        }  # fmt: skip
        Path("b.zip").write_bytes(zipped(files, method=zipfile.ZIP_STORED))
        size = os.path.getsize("b.zip")
        most = {
            "_MEMBERS": 5, "_TEXT_BYTES": 90, "_UNPACKED_BYTES": 372, "_NAME_BYTES": 30, "_CHUNK_BYTES": 7,
            "UPLOAD_BYTES": size,
        }  # fmt: skip
        assert most.keys() == {*_LIMITS}
        for name, limit in most.items():
            for value in (limit, limit - 1):
                with mock.patch.object(opened_bundle, name, value):
                    yield f"{name} of {'so much' if value == limit else 'one less'}: {_try_open()}"
                    if name == "UPLOAD_BYTES" and value < limit:
                        yield f"for another platform: {_try_open(for_evalai=False)}"
        with mock.patch.object(opened_bundle, "UPLOAD_BYTES", 3 << 20):
            Path("b.zip").write_bytes(b"x" * (3_600_000))
            yield f"more than EvalAI takes: {_try_open()}"
        for name in ("_SCRIPT_BYTES",):
            for value in (3, 2):
                with mock.patch.object(bundle_source, name, value), contextlib.suppress(ValueError):
                    yield f"{name} of {value}: {bundle_source.script_files(zipped({'a.py': 'ab', 'requirements.txt': 'c', 'd.txt': 'def'}))}"
        for names in (
            ["/a"],
            ["../a"],
            ["a/../../b"],
            ["a/../b"],
            ["..a"],
            ["."],
            ["/"],
            ["a", "a/b"],
            ["a/b", "a"],
            ["a/b/", "a/b"],
            ["x" * 255],
            ["x" * 256],
            ["é" * 128],
        ):
            Path("b.zip").write_bytes(zipped(dict.fromkeys(["challenge_config.yaml", *names], b"{}")))
            output = re.sub(r"x{40,}", lambda run: f"{len(run[0])} x", f"{names}: {_try_open()}")
            yield output
        whole = bytearray(zipped({"challenge_config.yaml": b"{}", "a": b"x" * 50}, method=zipfile.ZIP_STORED))
        whole[whole.index(b"x" * 50)] = 0
        Path("b.zip").write_bytes(whole)
        yield f"a damaged file: {_try_open()}"


def _list_fields() -> Iterator[str]:
    def validate(kind: str, value: object, **how: Any) -> str:
        error = fields.validate("k", value, fields.Field(getattr(fields, kind), "", **how))
        return re.sub(r"ErrorDetail\(string=(.*?), code=.*?\)", r"\1", error.text) if error else "taken"

    def name_host(length: int, letter: str = "x") -> str:
        return f"http://{(f'{letter * 49}.' * 6)[: length - 4].rstrip('.').ljust(length - 4, letter)}.org"

    names = {
        "fields": fields, "said": validate, "host": name_host, "nan": float("nan"), "day": datetime.date(2026, 1, 2),
        "date": datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
    }  # fmt: skip
    yield run_calls(read_session(FILE, "fields"), names).rstrip("\n")


def _list_problems() -> Iterator[str]:
    names = {
        "problems": problems, "list_json": lambda problem: [*problem.as_json().values()],
        "at": lambda location: problems.BundleProblem("a", "b.", "c", "q {errors}", 5, fields.FieldError("x", "y", "z"), location=location),
    }  # fmt: skip
    yield run_calls(read_session(FILE, "problems"), names).rstrip("\n")


# ── trials ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _outcome(status: str = "finished", stderr: str = "", undefined: Any = None, **result: Any) -> SubmissionOutcome:
    error = result.pop("error", {})
    return SubmissionOutcome(status, "", stderr, result or {"dev": {"score": 1, "loss": 2}}, error, undefined or {})


class _Worker:
    """Gives the outcomes one after the other, and notes its requests."""

    def __init__(self, outcomes: list[SubmissionOutcome]) -> None:
        self.config, self.outcomes, self.asked = CONFIG, outcomes, list[str]()

    def evaluate(self, phase: dict[str, Any], sample: str, number: int) -> SubmissionOutcome:
        self.asked.append(f"{number}: {sample} in {phase['codename']}")
        return self.outcomes.pop(0)


def _list_trials() -> Iterator[str]:
    phase = CONFIG["challenge_phases"][0]

    def try_samples(*outcomes: SubmissionOutcome) -> str:
        worker = _Worker([*outcomes])
        output = [show(problem) for problem in trial._score_samples(worker, ".")]  # type: ignore[arg-type]
        return "\n".join([*worker.asked, *output])

    names = {
        "trial": trial, "outcome": _outcome, "samples": try_samples,
        "unshown": lambda outcome: "\n".join(map(show, trial.find_unshown_scores(CONFIG, phase, "a.zip", outcome))) or "nothing",
        "undefined": lambda *outcomes: "\n".join(map(show, trial.find_undefined_labels("first", [*outcomes]))) or "nothing",
    }  # fmt: skip
    with new_folder() as folder:
        written(folder, {"examples/first/a.zip": "", "examples/first/b.zip": ""})
        yield run_calls(read_session(FILE, "what trials say"), names).rstrip("\n")


#: What pip says, and its exit code.
_PIP = {
    "it takes all": ("echo taken", 0),
    "it is not here": ("echo '/usr/bin/python: No module named pip' >&2", 1),
    "it does not reach the index": ("echo 'WARNING: Retrying (Retry(total=0))' >&2; echo 'ERROR: No matching' >&2", 1),
    "it finds nothing": ("echo 'ERROR: No matching distribution for x.' >&2; echo 'ERROR: more' >&2", 1),
    "it fails without a word": ("", 2),
}


def _list_pips() -> Iterator[str]:
    with new_folder() as folder:
        Path("b.zip").write_bytes(
            zipped(
                {
                    "challenge_config.yaml": write_yaml(CONFIG),
                    **FILES,
                    "script.zip": zipped({"requirements.txt": "x\n"}),
                }
            )
        )
        for name, (output, code) in _PIP.items():
            written(
                folder, {"python": f'#!/bin/sh\necho "$*" >> {shlex.quote(str(folder))}/asked\n{output}\nexit {code}\n'}
            )
            (folder / "python").chmod(0o755)
            for again in (False, True) if code == 0 else (False,):
                yield f"{name}{', again' if again else ''}"
                with mock.patch.object(sys, "executable", f"{folder}/python"):
                    try:
                        yield from (f"    {show(problem)}" for problem in trial.try_requirements(".", "b.zip"))
                    except trial.UntriedError as reason:
                        yield f"    untried: {reason}"
                asked = (folder / "asked").read_text() if (folder / "asked").exists() else ""
                (folder / "asked").unlink(missing_ok=True)
                asked = re.sub(
                    rf"{re.escape(tempfile.gettempdir())}/segjudge-\w+|\S*/worker-3\.9\.txt",
                    lambda path: "PINS" if "worker" in path[0] else "TEMPORARY",
                    asked,
                )
                yield f"    asked {asked.count('pip install')} times{': ' + asked.strip() if name == 'it takes all' and not again else ''}"
            accepted = Path(".segjudge/requirements")
            yield f"    noted: {len(accepted.read_text()) if accepted.exists() else None}"
            accepted.unlink(missing_ok=True)


def write_text() -> str:
    parts = {
        "YAML": _list_yaml, "limits of bundles": _list_limits, "fields": _list_fields, "problems": _list_problems,
        "what trials say": _list_trials, "what pip is asked": _list_pips,
    }  # fmt: skip
    text = "".join(f"── {title} ──\n" + "".join(f"{line}\n" for line in lines()) for title, lines in parts.items())
    return re.sub(r"x{40,}", lambda run: f"{len(run[0])} x", text)


if __name__ == "__main__":
    FILE.write_text(write_text(), encoding="utf-8")
