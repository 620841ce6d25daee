"""What `check` and `run` print about a built zip and its samples."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from segjudge.cli import main
from segjudge.commands import evalai
from segjudge.platforms.evalai.bundle.trial import SubmissionOutcome
from tests.builders import written
from tests.platforms.damages import put, write_yaml
from tests.platforms.evalai.bundles import CONFIG, FILES, write_files
from tests.server.staged import Stage, answer_clients

WHOLE = {**{name: FILES[name] for name in ("text.html", "logo.png", "truth.txt", "script.zip")}, "challenge_config.yaml": write_yaml(CONFIG)}  # fmt: skip
ACCEPTED = "EvalAI's own rules would accept this bundle by push and by its web form. The script itself was not run.\n"


@pytest.mark.parametrize(
    ("changes", "code", "printed"),
    [
        ({}, 0, ACCEPTED),
        ({"logo.png": None}, 3, "image: names logo.png, which is not a .png, .jpg or .jpeg file in the bundle"),
        ({"text.html": b" "}, 3, "description: text.html is empty"),
    ],
)
def test_a_built_zip_is_checked_and_nothing_is_built(
    changes: dict[str, Any], code: int, printed: str, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path / "b.zip", {**WHOLE, **changes})
    assert main(["check", "b.zip", "--quick"]) == code
    assert printed in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["b.zip"]


class Worker:
    """Gives each sample its outcome."""

    def __init__(self, outcomes: dict[str, SubmissionOutcome]) -> None:
        self.config, self.outcomes = CONFIG, outcomes

    def evaluate(self, phase: dict[str, Any], sample: str, number: int) -> SubmissionOutcome:
        return self.outcomes[f"{number}: {Path(sample).name} in {phase['codename']}"]


def test_samples_are_printed_with_their_leaderboard_and_failures_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(written(tmp_path, {f"examples/first/{name}.zip": "" for name in "abc"}))
    worker = Worker(
        {
            "1: a.zip in first": SubmissionOutcome("finished", "", "", {"dev": {"score": 1, "loss": 2}}, {}, {}),
            "2: b.zip in first": SubmissionOutcome("failed", "", "no mask", {}, {}, {}),
            "3: c.zip in first": SubmissionOutcome("finished", "", "", {"dev": {"score": 3, "loss": 0}}, {}, {}),
        }
    )
    assert evalai._score_samples(worker, ".") == 1  # type: ignore[arg-type]
    printed = re.sub(r"(?m)[\d.]+ s$", "0 s", capsys.readouterr().out)
    assert printed.splitlines() == [
        "first ← a.zip: finished in 0 s", "first ← b.zip: failed in 0 s", "no mask", "first ← c.zip: finished in 0 s",
        "", "First / dev  score  loss", "1. c.zip         3     0", "2. a.zip         1     2", "",
    ]  # fmt: skip


def test_a_sample_without_a_table_of_scores_has_an_empty_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(written(tmp_path, {"examples/first/a.zip": ""}))
    worker = Worker({"1: a.zip in first": SubmissionOutcome("finished", "", "", {"dev": 5}, {}, {})})
    assert evalai._score_samples(worker, ".") == 0  # type: ignore[arg-type]
    first, problem, *board = capsys.readouterr().out.splitlines()
    assert problem.startswith("error: a.zip: dev: score is 5, which EvalAI cannot sort")
    assert (first[:23], board) == (
        "first ← a.zip: finished",
        ["", "First / dev  score  loss", "1. a.zip         –     –", ""],
    )


# ── push ────────────────────────────────────────────────────────────────────


def test_a_push_prints_the_numbers_and_the_next_one_updates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    bundle = Path(write_files(Path("b.zip"), WHOLE))
    push = ["push", "b.zip", "--repository", "me/small"]
    with Stage(tmp_path, bundle) as stage:
        answer_clients(stage, monkeypatch)
        assert main([*push, "--dry-run"]) == 0
        assert capsys.readouterr().out.endswith("\nme/small would become a new challenge.\n")
        assert not Path(".segjudge").exists()
        assert main(push) == 0
        first, number, queue, *phases = capsys.readouterr().out.splitlines()
        assert first == "Challenge Small challenge has been created successfully and sent for review to EvalAI Admin."
        assert (number, queue[:39]) == ("challenge  2", "queue      small-challenge-2-rehearsal-")
        assert phases == ["phase      2  first"]
        assert len([*Path(".segjudge/pushes").iterdir()]) == 1
        assert main([*push, "--dry-run"]) == 0
        assert capsys.readouterr().out.endswith("\nme/small would update challenge 2.\n")
        write_files(bundle, {**WHOLE, "challenge_config.yaml": write_yaml(put(CONFIG, "sponsors", [{"name": "x"}]))})
        assert main(push) == 0
        printed = capsys.readouterr()
        assert "The challenge Small challenge has been updated successfully\nchallenge  2\n" in printed.out
        assert "warning: sponsors are omitted" in printed.err
        write_files(bundle, {**WHOLE, "challenge_config.yaml": write_yaml(put(CONFIG, "challenge_phases.0.id", 7))})
        assert main(push) == 3
        assert "challenge_phases: lacks id 1 (first), which already exists on EvalAI" in capsys.readouterr().out
