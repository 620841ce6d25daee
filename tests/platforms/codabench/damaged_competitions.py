"""The messages of `check` about small competitions for Codabench, each damaged in one place, as one text."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from PIL import Image

from segjudge.platforms.codabench import opened_competition, pitfalls
from segjudge.platforms.codabench.check import check
from segjudge.system.errors import UsageError
from tests.builders import drawn, png, written, zipped
from tests.platforms.damages import (
    GOLDEN,
    GONE,
    VALUES,
    Config,
    change,
    grow,
    new_folder,
    note,
    note_by_sentence,
    plain,
    put,
    show,
    write_yaml,
)

FILE = GOLDEN / "damaged_competitions.txt"
_UUID = "01234567-89ab-cdef-0123-456789abcdef"
CONFIG: Config = {
    "version": 2,
    "title": "Small",
    "description": "text",
    "image": "logo.png",
    "terms": "text.md",
    "docker_image": "codalab/codalab-legacy:py312",
    "registration_auto_approve": True,
    "contact_email": "a@example.org",
    "fact_sheet": {
        "size": {
            "key": "size",
            "type": "text",
            "title": "Size",
            "selection": "",
            "is_required": "false",
            "is_on_leaderboard": "false",
        }
    },
    "pages": [{"title": "Overview", "file": "text.md"}],
    "tasks": [{"index": 0, "name": "T", "scoring_program": "program.zip", "reference_data": "truth.zip"}],
    "solutions": [{"index": 0, "name": "S", "tasks": [0], "path": "truth.zip"}],
    "phases": [
        {
            "index": 0,
            "name": "P",
            "description": "",
            "start": "2026-01-01",
            "end": "2046-01-01",
            "tasks": [0],
            "execution_time_limit": 600,
            "max_submissions_per_day": None,
            "max_submissions": None,
        }
    ],
    "leaderboards": [
        {
            "title": "Results",
            "key": "main",
            "primary_index": 0,
            "submission_rule": "Force_Best",
            "columns": [
                {"title": "A", "key": "a", "index": 0, "sorting": "desc", "precision": 3},
                {"title": "B", "key": "b", "index": 1, "computation": "avg", "computation_indexes": [0]},
            ],
        }
    ],
}
_PROGRAM = {"metadata.yaml": "command: python3 score.py", "score.py": "import numpy, os, helper\n", "helper.py": ""}
_DOCUMENT = json.dumps({"columns": [{"key": "a"}], "seconds": 300})


def _save_bitmap() -> bytes:
    out = io.BytesIO()
    Image.new("L", (3, 2)).save(out, "BMP")
    return out.getvalue()


FILES: dict[str, bytes] = {
    "logo.png": png(drawn("#.", ".#")),
    "wide.png": png(np.zeros((1, 200), np.uint8)),
    "logo.bmp": b"BM",
    "picture.bmp": _save_bitmap(),
    "half.png": png(np.arange(4096, dtype=np.uint8).reshape(64, 64))[:-40],
    "text.md": b"text",
    "empty.md": b"",
    "nul.md": b"a\n\0b",
    "latin.md": b"\xe9",
    "folder/file.md": b"text",
    "program.zip": zipped(_PROGRAM),
    "truth.zip": zipped({"truth.txt": "1"}),
    "odd.zip": b"odd",
}
_TEXT = "gone, null, 7, true, empty, blank, 300 letters, NUL, half a character, date, [], {a: 1}"
_FLAG = "gone, null, 0, 7, text, yes, []"
_NUMBER = "gone, null, 0, 7, -1, 2.5, 2147483648, true, empty, text, '1', []"
_FILE = "gone, null, 7, empty, text, [], folder, empty.md, nul.md, latin.md, ../text.md, /etc"
_DATA = "gone, null, 7, text, odd.zip, folder, /, the key of something, NUL, half a character, ../truth.zip, []"
_LIST = "gone, null, 0, 7, empty, text, [], [text, 7, null], [{}], {}, {a: 1}"
_PARTS = "gone, null, 7, text, '1', [], [text, 7, null], [{}], {a: 1}"
#: What is put in the place of each value.
_DAMAGES = {
    "version": "gone, null, 1, 1.5, 7, '2', text",
    "title": f"{_TEXT}, 200 letters, 240 letters",
    "description": "gone, null, 7, empty, NUL, []",
    "image": f"{_FILE}, wide.png, logo.bmp, text.md, picture.bmp, half.png",
    "terms": _FILE,
    "docker_image": "gone, null, 7, empty, 300 letters, text, []",
    "registration_auto_approve": _FLAG,
    "auto_run_submissions": "true, text, nan",
    "competition_type": "null, 7, text, benchmark",
    "reward": "null, 300 letters, []",
    "contact_email": 'gone, null, 7, empty, text, a@b, a@é.org, a@[1.2.3.4], a@[x], a b@c.org, a@localhost, a@é..org, "a b"@c.org, 400 letters, []',
    "fact_sheet": "gone, null, 7, text, [], {}, {a: 1}, date, nan in it, half in it, NUL in it",
    "fact_sheet.size.key": "gone, 7, text",
    "fact_sheet.size.type": "gone, null, text, checkbox",
    "fact_sheet.size.is_required": "true, null",
    "queue": "null, empty, text, 7, the key of something",
    "pages": _LIST,
    "pages.0.title": "gone, null, empty, 300 letters, []",
    "pages.0.file": f"{_FILE}, /proc/self/mem",
    "tasks": _LIST,
    "tasks.0.index": _PARTS,
    "tasks.0.key": "null, 7, text, the key of something",
    "tasks.0.name": "gone, null, 7, empty, 300 letters",
    "tasks.0.scoring_program": _DATA,
    "tasks.0.reference_data": "gone, text, odd.zip, folder",
    "tasks.0.input_data": "null, text, the key of something",
    "solutions": _LIST,
    "solutions.0.index": "gone, null",
    "solutions.0.key": "text, the key of something",
    "solutions.0.tasks": _PARTS,
    "solutions.0.path": _DATA,
    "solutions.0.name": "gone, empty, 300 letters, []",
    "phases": _LIST,
    "phases.0.index": _PARTS,
    "phases.0.name": "gone, null, 7, empty, 300 letters, []",
    "phases.0.start": "gone, null, text, empty, date, moment, moment with a zone, moment in quotes, 01/02/2026, 2026-01-01 10:00 CET, late, []",
    "phases.0.end": "gone, null, text, date, past, 2026-01-01",
    "phases.0.tasks": _PARTS,
    "phases.0.execution_time_limit": f"{_NUMBER}, 601",
    "phases.0.max_submissions_per_day": _NUMBER,
    "phases.0.max_submissions": "gone, text, -1",
    "phases.0.auto_migrate_to_this_phase": _FLAG,
    "phases.0.starting_kit": "null, 7, text, odd.zip, the key of something",
    "leaderboards": _LIST,
    "leaderboards.0.title": "gone, null, empty, 300 letters, []",
    "leaderboards.0.key": "gone, 300 letters",
    "leaderboards.0.primary_index": f"{_NUMBER}, 1",
    "leaderboards.0.submission_rule": "gone, null, text, Add",
    "leaderboards.0.hidden": _FLAG,
    "leaderboards.0.columns": _LIST,
    "leaderboards.0.columns.0.title": "gone, null, empty, 300 letters",
    "leaderboards.0.columns.0.key": "gone, null, 7, b",
    "leaderboards.0.columns.0.index": f"{_NUMBER}, 1",
    "leaderboards.0.columns.0.sorting": "gone, null, text, asc",
    "leaderboards.0.columns.0.precision": f"{_NUMBER}, 11, 10",
    "leaderboards.0.columns.0.hidden": _FLAG,
    "leaderboards.0.columns.0.computation_indexes": "null, [], [text, 7, null], 7, blank",
    "leaderboards.0.columns.1.computation": "gone, null, empty, text",
    "leaderboards.0.columns.1.computation_indexes": "gone, null, 7, blank, '0', '1', text, [], [0], [1], [9], [text, 7, null], {}",
}
_VALUES = VALUES | {
    "1": 1,
    "1.5": 1.5,
    "'0'": "0",
    "'2'": "2",
    "[0]": [0],
    "[1]": [1],
    "[9]": [9],
    "10": 10,
    "11": 11,
    "601": 601,
    "200 letters": "x" * 200,
    "240 letters": "x" * 240,
    "400 letters": f"{'x' * 400}@example.org",
    "the key of something": _UUID,
    "past": "2020-01-01",
    "nan in it": {"size": {"selection": [plain(".nan")]}},
    "half in it": {"size": {**CONFIG["fact_sheet"]["size"], "title": "a\ud800"}},
    "NUL in it": {"size": {**CONFIG["fact_sheet"]["size"], "title": "a\0"}},
}


def _value(name: str) -> Any:
    return _VALUES.get(name, name)  # other names stand for themselves


def _change(*changes: tuple[str, Any], config: Config = CONFIG) -> Config:
    return change(config, *changes)


def _grow(block: str, **values: Any) -> Config:
    return grow(CONFIG, block, **values)


def _follow(**values: Any) -> Config:
    """Return the config with a second phase, which comes after the first."""
    phase = CONFIG["phases"][0]
    first, second = {**phase, "end": "2030-01-01"}, {**phase, "index": 1, "name": "Q", "start": "2030-01-02"}
    return {**CONFIG, "phases": [first, {**second, **values}]}


_COLUMN = CONFIG["leaderboards"][0]["columns"][0]
#: Competitions that are damaged in more than one value.
_TOGETHER: dict[str, Config] = {
    "nothing": CONFIG,
    "two tasks of one index": _grow("tasks"),
    "a task that no phase has": _grow("tasks", index=1),
    "two tasks in a phase": put(_grow("tasks", index=1), "phases.0.tasks", [0, 1]),
    "a task without a name and an index": _change(("tasks.0.name", GONE), ("tasks.0.index", GONE)),
    "a task without a name and a program": _change(("tasks.0.name", GONE), ("tasks.0.scoring_program", GONE)),
    "a solution of the site for a task that there is not": _change(
        ("solutions.0.key", _UUID), ("solutions.0.tasks", [9]), ("solutions.0.path", GONE)
    ),
    "a phase after another": _follow(),
    "phases that overlap": _follow(start="2029-12-31"),
    "phases that touch": _follow(start="2030-01-01"),
    "a phase after one without an end": put(_follow(), "phases.0.end", None),
    "a phase without a start after another": _follow(start=None),
    "phases in another order": put(_follow(), "phases.0.index", 2),
    "phases whose indexes cannot be compared": _follow(index="a"),
    "a second phase that takes submissions over": _follow(auto_migrate_to_this_phase=True),
    "a first phase that takes submissions over": put(_follow(), "phases.0.auto_migrate_to_this_phase", "yes"),
    "phases of the past": _change(("phases.0.start", "2019-01-01"), ("phases.0.end", "2020-01-01")),
    "a phase that ends before it starts": _change(("phases.0.start", "2027-01-01"), ("phases.0.end", "2026-01-01")),
    "a long run on a queue of one's own": _change(("phases.0.execution_time_limit", 3600), ("queue", _UUID)),
    "two leaderboards": _grow("leaderboards", key="b"),
    "two columns of one index and key": put(CONFIG, "leaderboards.0.columns", [_COLUMN, _COLUMN]),
    "columns that are all hidden": put(CONFIG, "leaderboards.0.columns", [{**_COLUMN, "hidden": True}]),
    "keys that nobody reads": {
        **CONFIG,
        "leaderbords": 1,
        "leaderboard": 1,
        "published": 1,
        "odd": 1,
        "phases": [{**CONFIG["phases"][0], "max_submissions_per_person": 1, "nam": 1}],
        "leaderboards": [{**CONFIG["leaderboards"][0], "columns": [{**_COLUMN, "sort": "asc", "rank": 1}]}],
    },
    "a bundle of CodaLab's": _change(("version", 1), ("html", {})),
    "an old image": put(CONFIG, "docker_image", "codalab/codalab-legacy:py37"),
}
_WRITTEN = write_yaml(CONFIG)
#: YAML as it is written.
_TEXTS = {
    "no text": b"",
    "a list": b"- a\n",
    "an open bracket": b"title: [x\n",
    "a tab": b"title: x\n\ty: 1",
    "half of UTF-8": b"title: \xe9\n",
    "a tag of Python's": b"title: !!python/object:os.system x\n",
    "keys that are written twice": _WRITTEN.replace(b'"index": 0,', b'"index": 3, "index": 0,'),
}


def _program(**files: str | None) -> dict[str, bytes]:
    every = {**_PROGRAM, **{name.replace("__", "/").replace("_", "."): text for name, text in files.items()}}
    return {"program.zip": zipped({name: text for name, text in every.items() if text is not None})}


def _command(text: str) -> dict[str, bytes]:
    return _program(metadata_yaml=f"command: {text}")


#: Files that are others.
_FILES: dict[str, Mapping[str, bytes]] = {
    "a program in a folder": {"program.zip": zipped({f"program/{name}": text for name, text in _PROGRAM.items()})},
    "a program without a command": _program(metadata_yaml="title: x"),
    "a program whose command is a number": _command("7"),
    "a program without metadata": _program(metadata_yaml=None),
    "a program with other metadata": _program(metadata_yaml=None, metadata="command: python3 /app/program/score.py"),
    "metadata that is no YAML": _program(metadata_yaml="a: ["),
    "a command for a shell": _command("python3 score.py && ls"),
    "a command with an open quote": _command("python3 'score.py"),
    "a command whose script is not there": _command("python3 $program/lost.py score.py"),
    "a command whose script is elsewhere": _command("python3 /usr/lost.py"),
    "a command without a script": _command("ls"),
    "a program that is not Python": _program(score_py="a b"),
    "a program that imports what there is not": _program(
        score_py="import torch, cv2, PIL.Image\nfrom helper import x\ntry:\n    import lost\nexcept ImportError:\n    pass\n"
    ),
    "a truth that says its columns": {"truth.zip": zipped({"task.json": _DOCUMENT})},
    "a truth of other columns": {"truth.zip": zipped({"task.json": _DOCUMENT.replace('"a"', '"b"')})},
    "a truth of a column more": {"truth.zip": zipped({"task.json": _DOCUMENT.replace('"a"}', '"a"}, {"key": "c"}')})},
    "a truth that takes long": {"truth.zip": zipped({"task.json": _DOCUMENT.replace("300", "601")})},
    "a truth whose columns are no list": {"truth.zip": zipped({"task.json": '{"columns": 7}'})},
    "a truth in a folder": {"truth.zip": zipped({"data/truth.txt": "1", "data/more/x": ""})},
}


def _look(config: Any, files: Mapping[str, bytes] | None = None) -> list[str]:
    """Return the messages about a folder with some files changed."""
    Path("c/competition.yaml").write_bytes(config if isinstance(config, bytes) else write_yaml(config))
    for name, data in (files or {}).items():
        Path("c", name).write_bytes(data)
    try:
        return [show(problem) for problem in check("c")]
    except UsageError as error:
        return [f"usage: {error}"]
    finally:
        for name in files or {}:
            Path("c", name).write_bytes(FILES[name])


def encrypt(data: bytes) -> bytes:
    """Mark the first file of a zip as encrypted."""
    encrypted = bytearray(data)
    encrypted[6] |= 1
    encrypted[encrypted.index(b"PK\x01\x02") + 8] |= 1
    return bytes(encrypted)


def _look_at_zips() -> dict[str, list[str]]:
    """Return the messages about zips, and about a folder without a config."""
    whole = {"competition.yaml": _WRITTEN, **FILES}
    zips = {
        "a zip": zipped(whole),
        "a zip of a folder": zipped({f"c/{name}": data for name, data in whole.items()}),
        "a zip whose config is a folder": zipped({"competition.yaml/x": ""}),
        "a zip with a password": encrypt(zipped(whole)),
        "no zip": b"odd",
        "nothing": b"",
        "a zip that is cut": zipped(whole)[:-40],
    }
    output = {}
    for name, data in zips.items():
        Path("c.zip").write_bytes(data)
        output[name] = [show(problem) for problem in check("c.zip")]
    return output


def _look_at_limits() -> dict[str, list[str]]:
    """Return the messages at each limit, and one below it."""
    solutions = [
        {"index": index, "tasks": [0], "path": path} for index, path in enumerate(("truth.zip", "folder", "odd.zip"))
    ]
    whole = {"competition.yaml": write_yaml({**CONFIG, "solutions": solutions}), **FILES}
    Path("c.zip").write_bytes(zipped(whole))
    limits = [
        (pitfalls, "_LARGE", Path("c.zip").stat().st_size),
        (pitfalls, "_LARGE_SOLUTIONS", len(FILES["truth.zip"]) + len(FILES["odd.zip"])),
        (opened_competition, "_UNPACKED_BYTES", sum(map(len, whole.values()))),
    ]
    output = {}
    for module, name, limit in limits:
        for value in (limit, limit - 1):
            with mock.patch.object(module, name, value):
                output[f"{name} {'of so much' if value == limit else 'of one less'}"] = [*map(show, check("c.zip"))]
    return output


def write_text() -> str:
    with new_folder() as folder:
        Path("c").mkdir()
        written(Path("c"), FILES)
        damages = {
            path: {name: _look(put(CONFIG, path, _value(name))) for name in names.split(", ")}
            for path, names in _DAMAGES.items()
        }
        notes = [note_by_sentence(damages)]
        notes.append(note("the competition", {name: _look(config) for name, config in _TOGETHER.items()}))
        notes.append(note("texts of the YAML", {name: _look(text) for name, text in _TEXTS.items()}))
        notes.append(note("other files", {name: _look(CONFIG, files) for name, files in _FILES.items()}))
        notes.append(note("zips", _look_at_zips()))
        notes.append(note("limits", _look_at_limits()))
    return re.sub("<ZipInfo.*?>", "<ZipInfo …>", "".join(notes).replace(str(folder), "FOLDER"))


if __name__ == "__main__":
    FILE.write_text(write_text(), encoding="utf-8")
