"""The messages of `check` about small bundles for EvalAI, each damaged in one place, as one text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from segjudge.platforms.evalai.bundle.check import check, check_web_form, refusal
from segjudge.platforms.evalai.bundle.server_state import ServerState
from tests.builders import ROOT, zipped
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

from .bundles import CONFIG, FILES, SCRIPT

FILE = GOLDEN / "damaged_bundles.txt"
_TEXT = "gone, null, 0, 7, true, empty, blank, 300 letters, NUL, half a character, date, [], {a: 1}"
_NUMBER = "gone, null, 0, 7, -1, 2.5, 2147483648, true, empty, text, '1', nan, [], {}"
_FLAG = "gone, null, 0, 7, '1', text, []"
_LIST = "gone, null, 0, 7, empty, text, [], [text, 7, null], [{}], {}, {a: 1}, date"
_DATE = "gone, null, 7, text, date, late, moment with a zone, moment in quotes, []"
_ID = "gone, null, 0, 7, 2.5, '1', text, nan, []"
_FILE = "gone, null, 7, empty, text, [], logo.png, ../text.html, empty.html, blank.html, nul.html, latin.html"
#: What is put in the place of each value.
_DAMAGES = {
    "title": f"{_TEXT}, two words, a/b",
    "description": _FILE,
    "evaluation_details": "gone",
    "terms_and_conditions": "gone",
    "submission_guidelines": "gone",
    "image": "gone, null, 0, 7, text, empty, [], text.html, truth.txt, odd.png, empty.png",
    "evaluation_script": "gone, null, 7, text, [], logo.png, none.zip, empty.zip, odd.zip, bare.zip, long.zip",
    "start_date": _DATE,
    "end_date": "gone, null, text, moment, late, moment with a zone, past, far",
    "published": _FLAG,
    "max_team_members": _NUMBER,
    "max_docker_image_size": "2147483648, -1",
    "forum_url": f"{_TEXT}, text, ftp://a.b, http://é.org/?a b, http://[::1]:80/, http://[::x]/, http://a@1.2.3.4",
    "allowed_email_domains": _LIST,
    "banned_email_ids": "null, [text, 7, null]",
    "worker_python_version": "null, 2.5, text, empty, [], 3.8",
    "worker_image_url": "null, empty, 7, text, 300 letters, other account",
    "slug": "text, 7, a/b, empty, NUL, [], 300 letters",
    "use_fifo_sqs": "true",
    "tags": f"{_LIST}, five",
    "domain": "gone, null, 7, text",
    "prizes": _LIST,
    "prizes.0.rank": _NUMBER,
    "prizes.0.amount": "gone, null, 7, empty, text, 10.5EUR, 10.555EUR, NUL",
    "prizes.0.description": "gone, null, 7, 300 letters, NUL, []",
    "sponsors": _LIST,
    "leaderboard": "gone, null, 7, text, [], [{}], {a: 1}",
    "leaderboard.0.id": _ID,
    "leaderboard.0.schema": "gone, null, 7, empty, text, [], {}, {a: 1}, default_order_by",
    "leaderboard.0.schema.labels": "gone, null, 7, text, score, [], [text, 7, null], {a: 1}, twice, date",
    "leaderboard.0.schema.default_order_by": "gone, null, 7, text, [], {}",
    "leaderboard.0.schema.metadata": "gone, null, 7, text, [], {}, {a: 1}, date",
    "leaderboard.0.schema.metadata.score": "gone, null, text, {}",
    "leaderboard.0.schema.metadata.score.sort_ascending": "gone, null, true, text",
    "challenge_phases": "gone, null, 7, text, [], [{}], {a: 1}",
    "challenge_phases.0.id": f"{_ID}, true",
    "challenge_phases.0.name": "gone, null, 7, empty, 300 letters, NUL, []",
    "challenge_phases.0.codename": "gone, null, 7, true, empty, 300 letters, a/b, é, two words, half a character, []",
    "challenge_phases.0.description": _FILE,
    "challenge_phases.0.start_date": "gone, null, 7, text, date, late, moment with a zone, past",
    "challenge_phases.0.end_date": "gone, null, 7, moment, late, moment in quotes, moment with a zone",
    "challenge_phases.0.test_annotation_file": "gone, null, 7, empty, text, [], ../text.html, empty.html, long.zip",
    "challenge_phases.0.max_submissions_per_day": "gone, null, 0, -1, text",
    "challenge_phases.0.max_submissions_per_month": "gone, null, -1, text, []",
    "challenge_phases.0.max_submissions": "gone, null, -1, text",
    "challenge_phases.0.is_submission_public": "gone, null, true, text, '1'",
    "challenge_phases.0.allowed_email_ids": "null, 7, [text, 7, null], NUL in a list",
    "challenge_phases.0.submission_meta_attributes": "gone, null, 0, 7, text, [], [{}], {a: 1}, date",
    "challenge_phases.0.submission_meta_attributes.0.type": "gone, null, text, checkbox",
    "challenge_phases.0.submission_meta_attributes.0.options": "gone, null, 7, text, []",
    "challenge_phases.0.default_submission_meta_attributes": "gone, null, 7, text, [], [{}], {a: 1}",
    "challenge_phases.0.default_submission_meta_attributes.0.name": "gone, null, text",
    "dataset_splits": "gone, null, 7, text, [], [{}], {a: 1}",
    "dataset_splits.0.id": _ID,
    "dataset_splits.0.name": "gone, null, 7, empty, 300 letters, half a character",
    "dataset_splits.0.codename": "gone, null, 7, empty, 300 letters",
    "challenge_phase_splits": "gone, null, 0, empty, 7, text, [], [{}], {}, {a: 1}",
    "challenge_phase_splits.0.challenge_phase_id": _ID,
    "challenge_phase_splits.0.leaderboard_id": "gone, null, 7, '1'",
    "challenge_phase_splits.0.dataset_split_id": "gone, null, 7, '1', []",
    "challenge_phase_splits.0.visibility": "gone, null, 0, 2, text, '1', []",
    "challenge_phase_splits.0.leaderboard_decimal_precision": "gone, null, 7, -1, text, '1', []",
    "challenge_phase_splits.0.is_leaderboard_order_descending": "gone, null, 0, 7, '1', text",
}
_VALUES = VALUES | {
    "two words": "Two words",
    "past": plain("2020-01-01 00:00:00"),
    "moment": plain("2021-01-01 00:00:00"),
    "far": plain("2066-01-01 00:00:00"),
    "five": list("abcde"),
    "long.zip": f"{'long/' * 17}s.zip",
    "other account": "1.dkr.ecr.us.amazonaws.com/other-x",
    "twice": ["score", "score"],
    "checkbox": "checkbox",
    "NUL in a list": ["a\0b", {"a": "\0"}],
}


def _value(name: str) -> Any:
    return _VALUES.get(name, name)  # other names stand for themselves


def _look(config: Any, state: ServerState | None = None, files: Mapping[str, bytes | None] | None = None) -> list[str]:
    """Return the messages about a bundle, about an update if there is a state, and by the form."""
    text = config if isinstance(config, bytes) else write_yaml(config)
    content = {"challenge_config.yaml": text, **FILES, **(files or {})}
    Path("b.zip").write_bytes(zipped({name: data for name, data in content.items() if data is not None}, method=0))
    problems = check("b.zip", state)
    output = {*map(show, problems)}
    form = [] if state else [f"the form: {text}" for text in map(show, check_web_form("b.zip")) if text not in output]
    return [*map(show, problems), *form]


def _change(*changes: tuple[str, Any], config: Config = CONFIG) -> Config:
    return change(config, *changes)


def _grow(block: str, **values: Any) -> Config:
    return grow(CONFIG, block, **values)


_PHASE, _ROW, _ATTRIBUTE = (
    CONFIG["challenge_phases"][0],
    CONFIG["challenge_phase_splits"][0],
    {"name": "a", "type": "text"},
)
#: Challenges that are damaged in more than one value.
_TOGETHER: dict[str, Config] = {
    "nothing": CONFIG,
    "two leaderboards of one id": _grow("leaderboard"),
    "a leaderboard that no row names": _grow("leaderboard", id=2),
    "two phases of one id": _grow("challenge_phases", codename="second"),
    "two phases of one codename": _grow("challenge_phases", id=2),
    "two phases of one codename, one without a name": _change(
        ("challenge_phases.1.name", GONE), config=_grow("challenge_phases", id=2)
    ),
    "two phases of one address": _grow("challenge_phases", id=2, codename="FIRST"),
    "two phases, the second odd": _grow("challenge_phases", id=2, codename="b", description=7, start_date=None),
    "two splits of one id": _grow("dataset_splits", codename="other"),
    "two splits of one codename": _grow("dataset_splits", id=2),
    "a split without a name, whose codename is another's": _change(
        ("dataset_splits.1.name", GONE), config=_grow("dataset_splits", id=2)
    ),
    "a row twice": _grow("challenge_phase_splits"),
    "a split twice in a phase": _change(
        ("challenge_phase_splits", [_ROW, {**_ROW, "leaderboard_id": 2}]), config=_grow("leaderboard", id=2)
    ),
    "a row without its settings": put(
        _grow("challenge_phase_splits", dataset_split_id=2), "challenge_phase_splits.1.visibility", GONE
    ),
    "rows one after the other": put(
        CONFIG, "challenge_phase_splits", [{"visibility": 3}, {**_ROW, "visibility": 9}, {**_ROW, "leaderboard_id": 8}]
    ),
    "two prizes of one rank": _grow("prizes"),
    "a prize after one that is odd": put(CONFIG, "prizes", [{"rank": 1}, {"rank": 1, "amount": "1EUR"}]),
    "an attribute that lacks much": put(CONFIG, "challenge_phases.0.submission_meta_attributes", [_ATTRIBUTE, {}]),
    "sponsors": put(CONFIG, "sponsors", [{"name": "a", "website": "https://a.org"}, {"name": "a"}, {"name": "b"}]),
    "odd sponsors": put(
        CONFIG,
        "sponsors",
        [{"website": "x"}, {"name": "b"}, {"name": 7, "website": "x"}, {"name": "c\0", "website": ""}],
    ),
    "one submission, and it is public": _change(
        ("challenge_phases.0.is_submission_public", True),
        ("challenge_phases.0.is_restricted_to_select_one_submission", True),
    ),
    "one submission that is public, in a phase without a name": _change(
        ("challenge_phases.0.is_submission_public", True),
        ("challenge_phases.0.is_restricted_to_select_one_submission", True),
        ("challenge_phases.0.name", GONE),
    ),
    "no limits": _change(
        ("challenge_phases.0.max_submissions_per_month", GONE), ("challenge_phases.0.max_submissions", GONE)
    ),
    "an odd limit that is taken twice": _change(
        ("challenge_phases.0.max_submissions_per_month", None), ("challenge_phases.0.max_submissions", "text")
    ),
    "dates in quotes": _change(("start_date", "2026-01-01 00:00:00"), ("end_date", "2046-01-01T00:00:00.25Z")),
    "odd dates in quotes": _change(("start_date", "2026-01-01 00:00"), ("end_date", "2046-13-01 00:00:00")),
    "thirty years": _change(("start_date", plain("2026-12-31 00:00:00")), ("end_date", plain("2056-01-01 00:00:00"))),
    "dates without times": _change(("start_date", plain("2026-01-01")), ("end_date", plain("2046-01-01"))),
    "a challenge of the past": _change(
        ("start_date", plain("2019-01-01 00:00:00")), ("end_date", plain("2020-01-01 00:00:00"))
    ),
    "a direction that contradicts": _change(
        ("challenge_phase_splits.0.is_leaderboard_order_descending", False),
        ("leaderboard.0.schema.metadata.loss.sort_ascending", 7),
        ("leaderboard.0.schema.metadata.other", {"sort_ascending": True}),
    ),
    "ids in quotes": _change(("leaderboard.0.id", "1"), ("challenge_phases.0.id", "1"), ("dataset_splits.0.id", "1")),
    "ids with points": _change(("leaderboard.0.id", 1.0), ("dataset_splits.0.id", "1.0")),
    "keys that nobody reads": {
        **CONFIG,
        "titel": 1,
        "queue": 1,
        "odd": 1,
        "leaderboard": [
            {**CONFIG["leaderboard"][0], "scheme": 1, "schema": {**CONFIG["leaderboard"][0]["schema"], "label": 1}}
        ],
        "challenge_phases": [
            {
                **_PHASE,
                "codenam": 1,
                "challenge": 1,
                "submission_meta_attributes": [{**_ATTRIBUTE, "description": "x", "kind": 1}],
            }
        ],
    },
    "remote evaluation": _change(("remote_evaluation", True)),
    "remote evaluation, without a file": _change(
        ("remote_evaluation", "yes"),
        ("challenge_phases.0.test_annotation_file", None),
        ("evaluation_script", "odd.zip"),
    ),
    "code": _change(("is_docker_based", True)),
    "code, without a file": _change(("is_docker_based", True), ("challenge_phases.0.test_annotation_file", None)),
    "code for a worker": _change(("is_docker_based", True), ("remote_evaluation", True)),
    "code in the image of the documentation": _change(
        ("is_docker_based", True), ("challenge_phases.0.environment_image", "segjudge-environment:latest")
    ),
    "code on a fixed dataset": _change(("is_docker_based", True), ("is_static_dataset_code_upload", True)),
    "a fixed dataset alone": _change(("is_static_dataset_code_upload", 1)),
    "an old Python": _change(("worker_python_version", "3.7")),
}
_SECOND: Config = {
    **_grow("challenge_phases", id=2, codename="second"),
    "challenge_phase_splits": [_ROW, {**_ROW, "challenge_phase_id": 2}],
}
_APPROVED = ServerState.after_push(CONFIG, source="a test", approved=True)
_SECOND_APPROVED = ServerState.after_push(_SECOND, source="a test", approved=True, scoring={"first": "otherwise"})
_SPLITS = put(CONFIG, "dataset_splits", [*CONFIG["dataset_splits"], {"id": 2, "name": "b", "codename": "b"}])
_SPLITS_APPROVED = ServerState.after_push(_SPLITS, source="a test", approved=True)
#: Updates: the state of the challenge, and what is pushed.
_UPDATES: dict[str, tuple[ServerState, Config]] = {
    "the same": (_APPROVED, CONFIG),
    "a phase more": (_APPROVED, _SECOND),
    "a phase more, and a number in quotes": (_APPROVED, put(_SECOND, "leaderboard.0.id", "1.0")),
    "a phase more, on a leaderboard that there is not": (
        _APPROVED,
        _change(
            ("challenge_phase_splits.1.leaderboard_id", 9),
            ("challenge_phase_splits.1.dataset_split_id", 8),
            config=_SECOND,
        ),
    ),
    "a phase less": (_SECOND_APPROVED, CONFIG),
    "a phase and its row less, before approval": (replace(_SECOND_APPROVED, approved=False), CONFIG),
    "codenames that are swapped": (
        _SECOND_APPROVED,
        _change(("challenge_phases.0.codename", "second"), ("challenge_phases.1.codename", "first"), config=_SECOND),
    ),
    "a codename of an earlier phase": (
        replace(_APPROVED, slugs=["small-second"]),
        _SECOND,
    ),
    "a row more of a phase": (
        _APPROVED,
        _change(
            ("dataset_splits", [CONFIG["dataset_splits"][0], {"id": 2, "name": "b", "codename": "b"}]),
            ("challenge_phase_splits", [_ROW, {**_ROW, "dataset_split_id": 2}]),
        ),
    ),
    "another schema": (_APPROVED, put(CONFIG, "leaderboard.0.schema.labels", ["score", "other"])),
    "another schema, before approval": (
        replace(_APPROVED, approved=False),
        put(CONFIG, "leaderboard.0.schema.labels", ["score", "other"]),
    ),
    "a schema with keys of two kinds": (
        _APPROVED,
        put(
            CONFIG,
            "leaderboard.0.schema.metadata",
            plain("{1: {sort_ascending: true}, score: {sort_ascending: false}}"),
        ),
    ),
    "another name of a split, before one whose codename is another's": (
        _SPLITS_APPROVED,
        _change(("dataset_splits.0.name", "Other"), ("dataset_splits.1.codename", "dev"), config=_SPLITS),
    ),
    "another name of a split, before one without a name and a codename": (
        _SPLITS_APPROVED,
        _change(("dataset_splits.0.name", "Other"), ("dataset_splits.1", {"id": 2}), config=_SPLITS),
    ),
    "another name of a split": (_APPROVED, put(CONFIG, "dataset_splits.0.name", "Other")),
    "other settings of a row": (
        _APPROVED,
        _change(
            ("challenge_phase_splits.0.visibility", "1"),
            ("challenge_phase_splits.0.is_leaderboard_order_descending", 0),
        ),
    ),
    "other settings of a row, after a row that lacks some": (
        _APPROVED,
        put(
            CONFIG,
            "challenge_phase_splits",
            [{key: value for key, value in _ROW.items() if key != "visibility"}, {**_ROW, "visibility": 1}],
        ),
    ),
    "settings of a row that are no numbers": (_APPROVED, put(CONFIG, "challenge_phase_splits.0.visibility", "text")),
    "a setting of a row that is no number to Python": (
        _APPROVED,
        _change(
            ("challenge_phase_splits.0.leaderboard_decimal_precision", "2.0"),
            ("challenge_phase_splits.0.is_leaderboard_order_descending", "maybe"),
        ),
    ),
    "all ids are others": (
        _APPROVED,
        _change(
            *((f"{key}.0.id", 5) for key in ("leaderboard", "challenge_phases", "dataset_splits")),
            *((f"challenge_phase_splits.0.{key}", 5) for key in list(_ROW)[:3]),
        ),
    ),
    "all ids are texts": (
        _APPROVED,
        _change(*((f"{key}.0.id", "one") for key in ("leaderboard", "challenge_phases", "dataset_splits"))),
    ),
    "all ids are lists": (
        _APPROVED,
        _change(*((f"{key}.0.id", [1]) for key in ("leaderboard", "challenge_phases", "dataset_splits"))),
    ),
    "a queue of another kind": (_APPROVED, put(CONFIG, "use_fifo_sqs", True)),
    "sponsors": (_APPROVED, put(CONFIG, "sponsors", [{"name": 7}])),
    "no rows": (_APPROVED, put(CONFIG, "challenge_phase_splits", [])),
    "no phases": (_APPROVED, put(CONFIG, "challenge_phases", [])),
    "a title of another word": (_APPROVED, put(_SECOND, "title", "ü x")),
}
_WRITTEN = write_yaml(CONFIG)
#: YAML as it is written.
_TEXTS = {
    "no text": b"",
    "a number": b"7",
    "a tab": b"title: x\n\ty: 1",
    "an open bracket": b"title: [x\n",
    "an open quote": b"title: 'x\n",
    "two colons": b"title: a: b\n",
    "a control character": b"title: \x07\n",
    "half of UTF-8": b"title: \xe9\n",
    "a date that there is not": b"title: x\nstart_date: 2026-02-31 00:00:00\n",
    "an anchor that there is not": b"title: *x\n",
    "a tag of Python's": b"title: !!python/object:os.system x\n",
    "a number that is none": b"title: !!int x\n",
    "a list as a key": b"? [a]\n: 1\n",
    "a mapping as a key": b"{a: 1}: 1\n",
    "keys that are written twice": _WRITTEN.replace(b'"id": 1', b'"id": 2, "id": 1').replace(
        b'"title"', b'"title": "x", "title"'
    ),
    "two documents": b"title: a\n---\ntitle: b\n",
    "a merge": _WRITTEN.replace(b'"name": "First"', b'"<<": {name: First}'),
    "a merge of a text": b"<<: x\n",
}
#: Files of the zip that are others; None is not there.
_ZIPS: dict[str, dict[str, bytes | None]] = {
    "no config": {"challenge_config.yaml": None},
    "a config in a folder": {"challenge_config.yaml": None, "x/challenge_config.yml": b"a: 1"},
    "two configs": {"challenge_config.yml": b"a: 1"},
    "a second YAML": {"data/other.yml": b"a: 1", "__MACOSX/x.yaml": b""},
    "a name that leads out": {"../x": b""},
    "a name from the root": {"/x": b""},
    "a file and a folder": {"x": b"", "x/y": b""},
    "a long name": {"é" * 128: b""},
    "no name": {".": b""},
    "no texts": {"text.html": None, "logo.png": None, "script.zip": None, "truth.txt": None},
    "a truth of nothing": {"truth.txt": b""},
    "a large text": {"text.html": b"x" * ((4 << 20) + 1)},
    "annotations that stay": {"annotations/a.txt": b"", "annotations/b.txt": b""},
}
_MODULES = {"modules/__init__.py": "", "modules/a.py": "from .. import main\nfrom ..main import x\nfrom ... import y\n"}
#: Files of the script that are others, where the script is not Segjudge's.
_SCRIPTS: dict[str, dict[str, str]] = {
    "as it should be": {},
    "no evaluate": {"__init__.py": ""},
    "a star": {"__init__.py": "from .main import *\n"},
    "not Python 3.9": {"main.py": "def f(x):\n    match x:\n        case 1: pass\n"},
    "not Python, and not loaded": {"other.py": "a b\n"},
    "a NUL": {"main.py": "a = '\0'\n"},
    "its own modules absolutely": {
        "main.py": "import other\nfrom other import x\nimport script.other\n",
        "other.py": "",
    },
    "its own modules with a path": {"main.py": "import sys\nsys.path.append('.')\nimport other\n", "other.py": ""},
    "its own modules, where they may be missing": {
        "main.py": "try:\n    import other\nexcept ImportError:\n    pass\n",
        "other.py": "",
    },
    "modules that are not there": {
        "main.py": "from .lost import x\nfrom . import gone, here\nfrom .here import y\n",
        "here.py": "from . import *\n",
    },
    "folders": {"main.py": "from .modules import a\nfrom .modules.a import x\nfrom .modules.b import y\n", **_MODULES},
    "a module that only an unused one lacks": {"unused.py": "from .lost import x\n"},
    "requirements": {
        "requirements.txt": "# none\n\nnumpy\nnumpy==1.0  # old\nnumpy>=1.0\n-e .\ngit+https://x/y\n./wheel\nx @ git+https://x\n"
        "--find-links x\n-r other.txt\na b c\nPillow==1; python_version < '3'\nscipy==9 \\\n  --hash=sha256:0\nhttps://x/y.whl\n"
        "six>=99\nSIX==0.1"
    },
}
_LABELS = ["J&F-Mean", "J-Mean"]
_OURS = _change(
    ("leaderboard.0.schema", {"labels": _LABELS, "default_order_by": "J-Mean"}),
    ("challenge_phases.0.test_annotation_file", "truth.zip"),
)
_TABLE = """from .files import UNIT_LIMITS
from .scoring import Phase, PhaseSplit
from .scoring.phase import Notify

LABELS = ("J&F-Mean", "J-Mean")
PHASES = (
    Phase("first", "truth.zip", (PhaseSplit("dev", "davis2017", LABELS),)),
)
"""
_SPLIT = 'PhaseSplit("dev", "davis2017", LABELS)'
#: What is written otherwise in `phases.py`: the text that is replaced, and the other one.
_PHASES: dict[str, tuple[str, str]] = {
    "as the YAML": ("", ""),
    "a syntax error": ("PHASES = (", "PHASES = (("),
    "an error": ("LABELS = ", "LABELS = 1 / 0, "),
    "no phases": ("PHASES", "OTHERS"),
    "phases in a list": ("PHASES = (", "PHASES = list, ("),
    "another codename": ('"first"', '"fist"'),
    "another file": ('"truth.zip"', '"annotations/other.zip"'),
    "another detail": ("),)),", '),), detail="much"),'),
    "another report": ("),)),", '),), report="yes"),'),
    "a report": ("),)),", "),), report=True),"),
    "other metrics": ("LABELS),", '("J&F-Mean", "J-Meen")),'),
    "another order of metrics": ("LABELS),", '("J-Mean", "J&F-Mean")),'),
    "another protocol": ('"davis2017"', '"davis2071"'),
    "a protocol of another family": ('"davis2017"', '"places2017"'),
    "a split that the truth lacks": (f"{_SPLIT},", f'{_SPLIT}, PhaseSplit("test", "davis2017", LABELS),'),
    "a hidden split": ("LABELS),", "LABELS, hidden=True),"),
    "a notification": ("),)),", '),), notify=Notify("dev", "J-Mean", 0.5)),'),
    "a notification without a metric": ("),)),", "),), notify=Notify(threshold=0.5)),"),
    "a notification of another metric": ("),)),", '),), notify=Notify("dev", "AP", 0.5)),'),
    "a notification of another split": ("),)),", '),), notify=Notify("test", "J-Mean", 0.5)),'),
    "a notification of a hidden split": ("LABELS),)),", 'LABELS, hidden=True),), notify=Notify("", "J-Mean", 0.5)),'),
    "a notification of all": ("),)),", "),), notify=Notify()),"),
}
#: The YAML beside a `phases.py` that is right.
_BESIDE: dict[str, Config] = {
    "a split that participants may not see": put(_OURS, "challenge_phase_splits.0.visibility", 1),
    "a visibility in quotes": put(_OURS, "challenge_phase_splits.0.visibility", "3"),
    "remote evaluation, and a report": put(_OURS, "remote_evaluation", True),
    "no annotation file": put(_OURS, "challenge_phases.0.test_annotation_file", None),
    "an annotation file that is none": put(_OURS, "challenge_phases.0.test_annotation_file", "truth.txt"),
    "an old Python": put(_OURS, "worker_python_version", "3.8"),
    "code": put(_OURS, "is_docker_based", True),
}


def _look_at_ours(config: Config, table: str, state: ServerState | None = None) -> list[str]:
    """Return the messages about a bundle whose scorers are Segjudge's, judged by their names."""
    others = dict.fromkeys(("files.py", "scoring/__init__.py", "scoring/phase.py", "runner/guard.py"), "")
    script = zipped({**SCRIPT, **others, "phases.py": table})
    truth = (ROOT / "annotations/sequences-dev.zip").read_bytes()
    return _look(config, state, files={"script.zip": script, "truth.zip": truth})


def _list_of_ours() -> Iterator[tuple[str, list[str]]]:
    for name, arguments in _PHASES.items():
        yield name, _look_at_ours(_OURS, _TABLE.replace(*arguments))
    for name, config in _BESIDE.items():
        yield name, _look_at_ours(config, _TABLE.replace("),)),", "),), report=True),"))
    for name, arguments in (("the same", "dev by davis2017, revision 1; from 0 to 1"), ("others", "by hand")):
        state = ServerState.after_push(_OURS, source="a test", scoring={"first": arguments, "gone": "x"})
        yield f"after a push with {name}", _look_at_ours(_OURS, _TABLE, state)
    truth_of_others = _TABLE.replace('"truth.zip"', '"truth.txt"')
    yield "a truth that is none", _look_at_ours(_BESIDE["an annotation file that is none"], truth_of_others)


def _answer(state: ServerState | None, config: Config) -> list[str]:
    """Return the server's complete answer, in addition to the messages."""
    output = _look(config, state)
    problems = check("b.zip", state)
    answers = {f"the answer{name}": refusal(problems, saving=not name) for name in ("", ", validated")}
    lines = [f"{name}: {text!r}" for name, text in answers.items() if text]
    return [*output, *lines[: 1 + (len({*answers.values()}) > 1)]]


def write_text() -> str:
    with new_folder():
        damages = {
            path: {name: _look(put(CONFIG, path, _value(name))) for name in names.split(", ")}
            for path, names in _DAMAGES.items()
        }
        notes = [note_by_sentence(damages)]
        notes.append(note("the challenge", {name: _answer(None, config) for name, config in _TOGETHER.items()}))
        notes.append(note("updates", {name: _answer(*update) for name, update in _UPDATES.items()}))
        notes.append(note("texts of the YAML", {name: _look(text) for name, text in _TEXTS.items()}))
        notes.append(note("files of the zip", {name: _look(CONFIG, files=files) for name, files in _ZIPS.items()}))
        scripts = {name: zipped({**SCRIPT, **files}) for name, files in _SCRIPTS.items()}
        notes.append(
            note("scripts", {name: _look(CONFIG, files={"script.zip": data}) for name, data in scripts.items()})
        )
        notes.append(note("scorers of Segjudge's", dict(_list_of_ours())))
    return "".join(notes)


if __name__ == "__main__":
    FILE.write_text(write_text(), encoding="utf-8")
