"""Shared by tests that damage bundles in one place each, and note the messages of `check`."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import tempfile
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from segjudge.platforms.evalai.bundle.problems import ERROR, BundleProblem
from tests.answers import lay

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


def note(title: str, cases: Mapping[str, Iterable[str]]) -> str:
    """Return the messages about several cases; cases with equal messages stand together."""
    by_words: dict[tuple[str, ...], list[str]] = {}
    for name, case in cases.items():
        by_words.setdefault(tuple(case), []).append(name)
    lines = [f"── {title} ──"]
    for case, names in by_words.items():
        lines += lay(", ".join(names), [f"    {line}" for line in case or ("nothing",)])
    return "\n".join(lines) + "\n"


#: A problem as `show` writes it: its kind and rule, the file and the place in it, the key, and the sentence.
_PROBLEM = re.compile(
    r"((?:the form: )?[a-z ]+?(?: \d+)?(?:, consequence)?): (?:(\S+?)(?::(\d+(?::\d+)?))?: )?(?:(\S+): )?(.*)"
)
#: How sentences that name a value begin, and what is no value there.
_VALUE = re.compile(r"(?:is|names|begins with) ('.*?'|[^\s,;]+?)(?=[.,;] )|(\S+\.[a-z]+) (?:is|has|holds) ")
_NO_VALUES = ("missing", "empty", "there", "nothing")


def note_by_sentence(damages: Mapping[str, Mapping[str, Iterable[str]]]) -> str:
    """Return each sentence once, with its keys and values behind or below it.

    `damages` has what is said by key and by the value that was put there. In a sentence KEY is the key's last step, and VALUE
    the value, which stands in parentheses where it is written otherwise. Most problems of a key stand at one
    line and column.
    """
    output = [
        (key, value, *_PROBLEM.fullmatch(line).groups(default=""))  # type: ignore[union-attr]
        for key, values in damages.items() for value, lines in values.items() for line in lines
    ]  # fmt: skip
    places: dict[str, str] = {}
    for key in damages:
        common = Counter(place for name, _, _, _, place, *_ in output if name == key and place).most_common(1)
        places[key] = common[0][0] if common else ""
    main_file = Counter(file for _, _, _, file, *_ in output).most_common(1)[0][0]
    takers: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for key, value, kind, file, place, where, text in output:
        sentence, shown = generalize(text, where)
        other_file = "" if file == main_file else file
        place_or_none = place or ("" if other_file else "no line")
        path = re.sub(r"\[(\d+)\]", r".\1", where)
        notes = [
            "" if shown in ("", value) else shown,
            "" if path == key else where or "no key",
            other_file,
            "" if place_or_none == places[key] else place_or_none,
        ]
        note_of_value = ", ".join(filter(None, notes))
        takers[f"{kind}: {sentence}"][key].append(f"{value} ({note_of_value})" if note_of_value else value)
    for key, values in damages.items():
        takers["nothing is said"][key] += [value for value, lines in values.items() if not list(lines)]
    blocks = {"lines and columns of keys": "; ".join(f"{key} {place}" for key, place in places.items() if place)}
    for sentence, keys in takers.items():
        blocks[sentence] = "; ".join(f"{key} = {' | '.join(values)}" for key, values in keys.items() if values)
    return "".join(f"{line}\n" for sentence, text in blocks.items() for line in lay(sentence, _wrap(text), " ← ", 400))


def generalize(text: str, where: str) -> tuple[str, str]:
    """Return a sentence without its key and value, and the value as in the sentence."""
    if key := where.rpartition(".")[2]:
        text = re.sub(rf"""(?<=['“"]){re.escape(key)}(?=['”:])""", "KEY", text)
    beginning = _VALUE.match(text)
    value = "".join(filter(None, beginning.groups())) if beginning else ""
    if not value or value in _NO_VALUES:
        return text, ""
    return re.sub(rf"(?<![\w.:-]){re.escape(value)}(?![\w:-])", "VALUE", text), value


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, 140, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
