"""Shared by tests that damage bundles in one place each, and note the messages of `check`."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from segjudge.platforms.rules.problems import ERROR, BundleProblem

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
Config = dict[str, Any]
#: Marks what stands in the YAML as it is written here, such as a date without quotes.
_PLAIN = "plain:"
GONE = object()
#: What is put in the place of values, by the words that the text has for it.
VALUES: dict[str, Any] = {
    "gone": GONE, "null": None, "0": 0, "2": 2, "7": 7, "-1": -1, "2.5": 2.5, "2147483648": 2**31, "true": True,
    "empty": "", "blank": " ", "text": "text", "'1'": "1", "300 letters": "x" * 300, "NUL": "a\0b",
    "half a character": "a\ud800b", "date": _PLAIN + "2026-01-01", "moment": _PLAIN + "2026-01-01 00:00:00",
    "late": _PLAIN + "2047-01-01 00:00:00", "moment with a zone": _PLAIN + "2026-01-01 12:30:00+02:00",
    "moment in quotes": "2026-01-01 12:30:00", "nan": _PLAIN + ".nan", "[]": [],
    "[text, 7, null]": ["text", 7, None], "[{}]": [{}], "{}": {}, "{a: 1}": {"a": 1},
}  # fmt: skip


def plain(text: str) -> str:
    return _PLAIN + text


def write_yaml(config: Any) -> bytes:
    """Write a config as JSON, which is YAML too, and faster to write."""
    return re.sub(rf'"{_PLAIN}([^"]*)"', r"\1", json.dumps(config, indent=1)).encode()


def put(config: Config, path: str, value: Any) -> Config:
    """Return a copy of a config with another value at a path, whose steps are separated by dots."""
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
    """Return a copy of a config with a second item in a block: the first one with other values."""
    return put(config, block, [config[block][0], {**config[block][0], **values}])


@contextlib.contextmanager
def new_folder() -> Iterator[Path]:
    """Work in a new folder, and cache the reading of scripts there too."""
    start_folder, cache = os.getcwd(), os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory(prefix="segjudge-") as folder:
        os.chdir(folder)
        os.environ["XDG_CACHE_HOME"] = os.path.join(folder, "cache")
        try:
            yield Path(folder)
        finally:
            os.chdir(start_folder)
            os.environ.pop("XDG_CACHE_HOME")
            os.environ.update({"XDG_CACHE_HOME": cache} if cache is not None else {})


def show(problem: BundleProblem) -> str:
    """Return a problem in one line."""
    kind = problem.severity if problem.severity != ERROR else "breaks later" if problem.accepted else "refused"
    rule, also = f" {problem.rule}" if problem.rule else "", ", consequence" if problem.consequence else ""
    text = str(problem).encode("utf-8", "backslashreplace").decode().replace("\n", "\\n").replace("\0", "\\0")
    text = re.sub(
        r"day \d+ must be in range .*? in year \d+", "day is out of range for month", text
    )  # Python 3.14's words
    text = re.sub(
        r"(is not Python [\d.]+) \(.*?\)(, which|\. Correct)", r"\1 (…)\2", text
    )  # other Pythons say it otherwise
    text = re.sub(r"(SyntaxError): .*?(?=\)\. Correct)", r"\1: …", re.sub(r"\band \d+ more\b", "and N more", text))
    return re.sub(r"x{40,}", lambda run: f"{len(run[0])} x", f"{kind}{rule}{also}: {text}")


#: How sentences that name a value begin, and what is no value there.
_VALUE = re.compile(r"(?:is|names|begins with) ('.*?'|[^\s,;]+?)(?=[.,;] )|(\S+\.[a-z]+) (?:is|has|holds) ")
_NO_VALUES = ("missing", "empty", "there", "nothing")


def generalize(text: str, where: str) -> tuple[str, str]:
    """Return a sentence without its key and value, and the value as in the sentence."""
    if key := where.rpartition(".")[2]:
        text = re.sub(rf"""(?<=['“"]){re.escape(key)}(?=['”:])""", "KEY", text)
    beginning = _VALUE.match(text)
    value = "".join(filter(None, beginning.groups())) if beginning else ""
    if not value or value in _NO_VALUES:
        return text, ""
    return re.sub(rf"(?<![\w.:-]){re.escape(value)}(?![\w:-])", "VALUE", text), value


#: The rules whose message frames the errors of a serializer, always in the same words.
_FRAMED = (24, 44)


def brief(problem: BundleProblem, path: str = "", mark: str = "") -> str:
    """Return a problem in one line: where it is not about `path`, what is wrong, and how to correct it.

    A mark may follow the number of the rule. `|` stands before the server's words. KEY and VALUE stand for the key and the
    value that are damaged.
    """
    kind = "" if problem.severity == ERROR else problem.severity
    marks = "".join(filter(None, (kind, "later" if problem.accepted else "", str(problem.rule or ""))))
    where = re.sub(r"\[(\d+)\]", r".\1", problem.subject)
    text, _ = generalize(f"{problem.fault}. {problem.remedy}", problem.subject)
    sentence = problem.quote.replace("{errors}", "") if problem.rule not in _FRAMED or not problem.error else ""
    if problem.error:
        sentence += re.sub(r"ErrorDetail\(string='(.*?)', code='(\w+)'\)", r"\1 (\2)", str(problem.error)).partition(
            ": "
        )[2]
    line = (
        f"{marks}{mark} {'' if where == path else problem.subject + ': '}{text}{' | ' + sentence if sentence else ''}"
    )
    line = line.replace("; EvalAI answers with error 500 and no reason", " (500)")
    line = re.sub(
        r"(is not Python [\d.]+) \(.*?\)(\.|, which)", r"\1\2", re.sub(r"x{40,}", lambda run: f"{len(run[0])} x", line)
    )
    line = re.sub(
        r"day \d+ must be in range .*? in year \d+", "day is out of range for month", line
    )  # Python 3.14's words
    line = re.sub(r"(SyntaxError): .*?(?=\)\. Correct)", r"\1", line)
    return line.strip().encode("utf-8", "backslashreplace").decode().replace("\n", "\\n").replace("\0", "\\0")
