"""What tests of bundles share that damage them in one place each, and note what `check` says of each."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from segjudge.platforms.evalai.bundle.problems import ERROR, BundleProblem

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
Config = dict[str, Any]
#: Marks what stands in the YAML as it is written here, such as a date without quotes.
_PLAIN = "plain:"
GONE = object()
#: What is put in the place of values, by the words that the text has for it.
VALUES: dict[str, Any] = {
    "gone": GONE,
    "null": None,
    "0": 0,
    "2": 2,
    "7": 7,
    "-1": -1,
    "2.5": 2.5,
    "2147483648": 2**31,
    "true": True,
    "empty": "",
    "blank": " ",
    "text": "text",
    "'1'": "1",
    "300 letters": "x" * 300,
    "NUL": "a\0b",
    "half a character": "a\ud800b",
    "date": _PLAIN + "2026-01-01",
    "moment": _PLAIN + "2026-01-01 00:00:00",
    "late": _PLAIN + "2047-01-01 00:00:00",
    "moment with a zone": _PLAIN + "2026-01-01 12:30:00+02:00",
    "moment in quotes": "2026-01-01 12:30:00",
    "nan": _PLAIN + ".nan",
    "[]": [],
    "[text, 7, null]": ["text", 7, None],
    "[{}]": [{}],
    "{}": {},
    "{a: 1}": {"a": 1},
}


def plain(text: str) -> str:
    return _PLAIN + text


def write_yaml(config: Any) -> bytes:
    """Write a config as JSON, which is YAML too, and quicker to write."""
    return re.sub(rf'"{_PLAIN}([^"]*)"', r"\1", json.dumps(config, indent=1)).encode()


def put(config: Config, path: str, value: Any) -> Config:
    """Return a copy of a config with another value at a path, whose steps have dots between them."""
    changed = item = copy.deepcopy(config)
    *steps, key = [int(step) if step.isdecimal() else step for step in path.split(".")]
    for step in steps:
        item = item[step]
    if value is GONE:
        item.pop(key, None)
    else:
        item[key] = value
    return changed


def change(config: Config, *changes: tuple[str, Any]) -> Config:
    """Return a copy of a config with other values at several paths."""
    for path, value in changes:
        config = put(config, path, value)
    return config


def grow(config: Config, block: str, **values: Any) -> Config:
    """Return a copy of a config with a second item in a block, which is the first one with other values."""
    return put(config, block, [config[block][0], {**config[block][0], **values}])


@contextlib.contextmanager
def new_folder() -> Iterator[Path]:
    """Work in a new folder, and remember what is read of scripts there too."""
    here, cache = os.getcwd(), os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        os.chdir(folder)
        os.environ["XDG_CACHE_HOME"] = os.path.join(folder, "cache")
        try:
            yield Path(folder)
        finally:
            os.chdir(here)
            os.environ.pop("XDG_CACHE_HOME")
            os.environ.update({"XDG_CACHE_HOME": cache} if cache is not None else {})


def show(problem: BundleProblem) -> str:
    """Return all of a problem in a line."""
    kind = problem.severity if problem.severity != ERROR else "breaks later" if problem.accepted else "refused"
    rule, also = f" {problem.rule}" if problem.rule else "", ", consequence" if problem.consequence else ""
    text = str(problem).encode("utf-8", "backslashreplace").decode().replace("\n", "\\n").replace("\0", "\\0")
    text = re.sub(
        r"(is not Python [\d.]+) \(.*?\)(, which|\. Correct)", r"\1 (…)\2", text
    )  # other Pythons say it otherwise
    text = re.sub(r"(SyntaxError): .*?(?=\)\. Correct)", r"\1: …", re.sub(r"\band \d+ more\b", "and N more", text))
    return re.sub(r"x{40,}", lambda run: f"{len(run[0])} x", f"{kind}{rule}{also}: {text}")


def note(title: str, cases: Mapping[str, Iterable[str]]) -> str:
    """Return what is said of several cases; those of which the same is said stand together."""
    by_words: dict[tuple[str, ...], list[str]] = {}
    for name, words in cases.items():
        by_words.setdefault(tuple(words), []).append(name)
    lines = [f"── {title} ──"]
    for words, names in by_words.items():
        lines += [f"{', '.join(names)}{'' if words else ': nothing'}", *(f"    {line}" for line in words)]
    return "\n".join(lines) + "\n"
