"""The pages of results that phases stored, hand-made and odd ones, as one text."""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

from segjudge.evaluation_script.scoring import VERSION
from segjudge.scoring.report import make_stored_report
from segjudge.system.errors import UsageError
from tests.pages import digest, round_numbers

FILE = Path(__file__).parents[1] / "golden/stored_pages.txt"
TRUTH = {"frames": ["0"], "size": [1, 1], "groups": [[]], "runs": 0}
NUMBERS = {"name": "1", "at": [0], "j": [500], "f": [500], "kinds": [-2], "parts": [0, 0, 500, 0]}
OBJECT = {"name": "1", "category": "", "unseen": False, "frames": 1, "area": 0.5, "absent": False, "shares": [0.0] * 9}
ROW = {"split": "dev", "sequence": "a", "J-Mean": 0.5}
EVIL = "</script><script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"
#: What frames of an object are: as they should be, tracked, or of one of the nine kinds.
_FILMS = (
    "-1 -1 -1", "-2 -2 -2 -2", "0 0 -1 1 1 2 2", "-1 2 2 -1 2 -1 -1 2 -1 -1 -1 2 3 3 4", "", "3", "-1 0 -2 -1 -2 -2",
    "2 2 2 2", "-2 -1 -1 -1 -1 2", "-2 -1 -1 -1 -1 -1 2", "1 -2 -2 3 -1 4 -1 -1 -1 -1 4",
)  # fmt: skip


def pack(header: object, rest: bytes = b"") -> str:
    return base64.b64encode(zlib.compress(json.dumps(header).encode() + b"\n" + rest)).decode()


def store(truth: Any = TRUTH, numbers: Any = NUMBERS, entry: Any = OBJECT, **changes: Any) -> dict[str, Any]:
    """Make the smallest result with masks."""
    predicted = {"objects": [numbers], "size": [1, 1], "groups": [[]], "runs": 0}
    streams = changes.pop("streams", [pack(truth), pack(predicted)])
    sequence = {"name": changes.pop("name", "a"), "objects": [entry], "masks": True, "streams": streams}
    losses = {"metric": "J&F", "exact": True, "shares": [0.0] * 9, "smaller": False, "sequences": [sequence]}
    return {
        "protocol": "davis2017",
        "result": [{"dev": {"J-Mean": 0.5}}],
        "sequences": [ROW],
        "objects": [{**ROW, "object": "1"}],
        "losses": {"dev": {**losses, **changes}},
    }


def write_pages() -> str:
    lines = []
    for name, broken in _break():
        lines.append(f"{name}: {_show(broken)}")
    for metric in ("J&F", "J"):
        for films, masks, smaller in (
            (_FILMS[:4], True, False),
            (_FILMS, False, True),
            (_FILMS[:1], True, True),
            (_FILMS[5:6], True, False),
        ):
            lines += [
                f"# {metric}, {len(films)} films, masks {masks}, smaller {smaller}",
                _show(_film(metric, films, masks=masks, smaller=smaller)),
            ]
    return round_numbers("\n".join(lines)) + "\n"


def _break() -> Iterator[tuple[str, dict[str, Any]]]:
    for key, values in {
        "truth": ({"frames": [7]}, {"size": [1, 1 << 40]}, {"size": [0, 1]}, {"size": [1, 4096]}, {"size": [1, 4097]}, {"runs": -1}, {"runs": 1 << 40},
                  {"groups": [[EVIL]]}, {"groups": [[510]]}, {"groups": [[511]]}, {"groups": [[512]]}, {"groups": [[-1]]}, {"groups": 5}),
        "numbers": ({"at": [1]}, {"at": [-1]}, {"at": [EVIL]}, {"at": []}, {"at": [0, 0]}, {"j": [True]}, {"j": [1000]}, {"j": [1001]}, {"j": []}, {"f": [-1]}, {"kinds": [8], "parts": []}, {"kinds": [9]},
                    {"kinds": [-3]}, {"kinds": []}, {"parts": []}, {"parts": [0] * 5}, {"parts": [0, 0, 0, 1001]}, {"f": [500, 500]}, {"name": "2"}),
        "entry": ({"area": None}, {"area": "1"}, {"shares": [0.0]}, {"shares": [0.0] * 10}, {"shares": ["x"] * 9}, {"category": 3}, {"name": 1}, {"unseen": True, "absent": True}),
    }.items():  # fmt: skip
        base = {"truth": TRUTH, "numbers": NUMBERS, "entry": OBJECT}[key]
        for value in values:
            yield f"{key} {value}", store(**{key: {**base, **value}})
    packed = pack(TRUTH)
    for streams in (
        [],
        [packed],
        [packed] * 3,
        ["no base64!", packed],
        ["bm8gc3RyZWFt", packed],
        [packed, pack({"objects": []})],
        [packed, base64.b64encode(zlib.compress(b"{}")).decode()],
        [5, packed],
    ):
        yield f"streams {[str(text)[:12] for text in streams]}", store(streams=streams)
    yield "no names", store(truth=["no names"])
    for changes in (
        {"name": "b"},
        {"name": 5},
        {"shares": []},
        {"shares": [0.1] * 9},
        {"metric": 3},
        {"sequences": {}},
        {"sequences": []},
        {"exact": False},
        {"smaller": True},
    ):
        yield str(changes), store(**changes)
    whole = store()
    twice = whole["losses"]["dev"]["sequences"] * 2
    nested = {"truth": reduce(lambda inner, _: [inner], range(300_000), 0)}
    for changes in ({"losses": []}, {"losses": {}}, {"losses": {"val": whole["losses"]["dev"]}}, {"objects": []}, {"sequences": []}, {"provenance": nested},
                    {"objects": [{**ROW, "object": "1"}, {**ROW, "object": "2"}]}, {"losses": {"dev": {**whole["losses"]["dev"], "sequences": twice}}}):  # fmt: skip
        yield f"changed {list(changes)}", {**whole, **changes}


def _film(metric: str, films: Any, *, masks: bool, smaller: bool) -> dict[str, Any]:
    """Store three sequences of objects with these frames; their numbers follow from their positions."""
    document = store(metric=metric, smaller=smaller, shares=[0.01 * number for number in range(9)])
    document["sequences"], document["objects"], sequences = [], [], []
    for number, name in enumerate(("cat", "ant & bee", "owl")):
        frames = [f"{2 * frame:03d}" for frame in range(240)]
        entries, predicted = [], []
        for index, film in enumerate(films[number:] if number < 2 else films[-1:] * 5):
            kinds = [int(kind) for kind in film.split()] * (number * 7 + 1)
            position = list(range(index, index + len(kinds)))
            scores = [
                [(97 * frame * side + 31 * kind) % 1001 for frame, kind in zip(position, kinds, strict=True)]
                for side in (1, 3)
            ]
            parts = [(41 * place + 13 * index) % 301 for place in range(4 * kinds.count(-2))]
            label, area = str(index + 1), (0.005, 0.01, 0.02, 0.05, 0.9)[index % 5]
            shares = [0.02 * ((index + kind) % 4) for kind in range(9)]
            entries.append({"name": label, "category": ("", "bird", "dog")[(index + number) % 3], "unseen": index % 3 == 1, "frames": len(kinds),
                            "area": area, "absent": index % 2 == 0, "shares": shares})  # fmt: skip
            predicted.append(
                {"name": label, "at": position, "j": scores[0], "f": scores[1], "kinds": kinds, "parts": parts}
            )
            document["objects"].append({"split": "dev", "sequence": name, "object": label, "J-Mean": 0.1 * index})
        head = {"size": [1, 1], "groups": [[]], "runs": 0}
        streams = [pack({**head, "frames": frames}), pack({**head, "objects": predicted})]
        sequences.append({"name": name, "objects": entries, "masks": masks or number == 0, "streams": streams})
        document["sequences"].append({"split": "dev", "sequence": name, "J-Mean": 0.25 * number})
    document["losses"]["dev"]["sequences"] = sequences
    return document


def _show(document: dict[str, Any]) -> str:
    """Show the text of a page and its scripts' moments, or the reason why there is none."""
    try:
        page = make_stored_report(document, "T").replace(f"segjudge {VERSION}", "segjudge")
    except UsageError as error:
        return str(error).replace(EVIL, "EVIL")
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    body = re.sub(r"<(style|script|pre)\b.*?</\1>", "", page[page.index("<section") :], flags=re.DOTALL)
    body = round_numbers(body)
    message = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", body)))
    if len(document["objects"]) < 3:
        return f"{digest(body.encode())} {message[:110]}"
    digests = f"{digest(body.encode())} {digest(json.dumps(data).encode())}"
    return f"{message.replace(' All ', chr(10) + 'All ').replace(' Worst ', chr(10) + 'Worst ')}\n{digests}"


if __name__ == "__main__":
    FILE.write_text(write_pages())
