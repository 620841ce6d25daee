"""Pages and terminals show the noted texts, which only an intended change renews."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import pages
from tests.families.contract import examples

WHOLE = examples("pages shown whole")
#: Of the others so much is quick as has code of its own; methods are compared alike in all.
OWN = {
    **dict.fromkeys(examples("pages"), ("challenge", "report")),
    **dict.fromkeys(examples("pages of reports"), ("report",)),
    **dict.fromkeys(examples("pages of challenges"), ("challenge",)),
}
CASES = [
    *[
        pytest.param(name, pages.SHOWS, id=name, marks=[pytest.mark.long] * (name not in WHOLE))
        for name in examples("pages")
    ],
    *[pytest.param(name, OWN[name], id=f"{name}-alone") for name in examples("pages") if name not in WHOLE],
]


@pytest.mark.parametrize(("protocol", "shows"), CASES)
def test_what_is_shown_of_mistakes_is_what_was_noted(protocol: str, shows: tuple[str, ...]) -> None:
    noted, shown = pages.read_digests(protocol), pages.digest_all(pages.run(protocol, shows))
    changed = [f"{name}: {part}" for name, parts in shown.items() for part in parts.items()
               if part not in noted.get(name, {}).items()]  # fmt: skip
    assert not changed, "see tests/pages.py on how to look at what changed, and how to note it"
    assert shown == {name: noted[name] for name in shows}, "a part is no longer shown"


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["--all"], 1), (["scans", "other"], 1)])
def test_the_command_that_notes_pages_prints_its_usage(
    arguments: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_info:
        pages.main(arguments)
    assert exit_info.value.code == code
    assert "python -m tests.pages FOLDER" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
