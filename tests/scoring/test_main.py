"""`evaluate()` as EvalAI's worker calls it."""

from __future__ import annotations

import io
import json
import math
import shutil
import subprocess
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from segjudge.evaluation_script import evaluate, main
from segjudge.evaluation_script.families.sequences import engine as sequences
from segjudge.evaluation_script.files.problems import HostError, SubmissionError
from segjudge.evaluation_script.phases import PHASES
from segjudge.evaluation_script.scoring import notify
from segjudge.evaluation_script.scoring.phase import Notify, Phase
from tests.backends import COMPILED
from tests.builders import ANNOTATIONS, DEV, ROOT, STRONG, files_of, zipped


def test_the_answer_has_evalais_shape() -> None:
    answer = evaluate(str(ANNOTATIONS), str(STRONG), DEV, submission_metadata={"id": 7})

    (entry,) = answer["result"]
    assert list(entry) == ["dev"]
    assert list(entry["dev"]) == list(PHASES[0].splits[0].metrics)
    assert all(type(value) is float and math.isfinite(value) for value in entry["dev"].values())
    (bars,) = answer["error"]
    assert set(bars["dev"]) == {f"error_{label}" for label in entry["dev"]}
    assert answer["submission_metadata"]["phase"] == DEV
    json.dumps(answer, allow_nan=False)


def test_an_unknown_phase_lists_the_known_ones() -> None:
    with pytest.raises(SubmissionError, match="no phase 'finals'.*sequences-dev, sequences-test"):
        evaluate(str(ANNOTATIONS), str(STRONG), "finals")


def test_a_submission_error_ends_a_traceback_with_its_whole_text(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(zipped({n: d for n, d in files_of().items() if "solo" not in n}))

    with pytest.raises(SubmissionError) as caught:
        evaluate(str(ANNOTATIONS), str(path), DEV)

    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [frame.name for frame in frames][-1] == "evaluate_phase", "raised from a shallow place"
    assert caught.value.__cause__ is caught.value.__context__ is None


def broken_truth(tmp_path: Path) -> Path:
    path = tmp_path / "truth.zip"
    path.write_bytes(ANNOTATIONS.read_bytes()[:-100])
    return path


def test_a_fault_of_ours_gives_the_participant_a_number_and_the_operator_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    log = io.StringIO()
    monkeypatch.setattr(sys, "__stderr__", log)

    with pytest.raises(HostError, match=r"submission is not the cause.*incident number [0-9a-f]{8}\.$") as caught:
        evaluate(str(broken_truth(tmp_path)), str(STRONG), DEV)

    number = str(caught.value).split()[-1].rstrip(".")
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert str(tmp_path) not in str(caught.value)
    assert f"incident {number}" in log.getvalue()
    assert str(tmp_path) in log.getvalue()
    assert "Traceback" not in log.getvalue(), "the sentence says it all"
    assert number not in capsys.readouterr().err


def test_a_defect_in_the_child_is_logged_with_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    monkeypatch.setattr(sys, "__stderr__", log)

    def broken(*args: Any, **kwargs: Any) -> Any:
        raise KeyError("secret/ground/truth.png")

    monkeypatch.setattr(sequences.OpenedSequences, "plan", broken)
    with pytest.raises(HostError) as caught:
        evaluate(str(ANNOTATIONS), str(STRONG), DEV)

    assert "secret" not in str(caught.value)
    assert "KeyError: 'secret/ground/truth.png'" in log.getvalue()


def test_a_worker_without_a_stream_of_its_own_scores_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "__stderr__", None)
    with pytest.raises(HostError):
        evaluate(str(broken_truth(tmp_path)), str(STRONG), DEV)


def with_phase(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Phase:
    phase = replace(PHASES[0], **changes)
    monkeypatch.setattr(main, "PHASES", (phase,))
    return phase


@pytest.mark.long
def test_a_folder_that_is_deleted_after_it_was_loaded_does_no_harm(tmp_path: Path) -> None:
    """EvalAI's own worker deletes the folders of other workers that use its temporary folder."""
    folder = tmp_path / "challenge_data" / "challenge_1"
    shutil.copytree(ROOT / "evaluation_script", folder, ignore=shutil.ignore_patterns("__pycache__", "*.so*"))
    (folder.parent / "__init__.py").touch()
    phases = folder / "phases.py"
    phases.write_text(phases.read_text().replace('="sequences-dev",', "='sequences-dev', report=True, detail='all',"))
    for path in COMPILED.parent.glob(f"{COMPILED.name}*"):
        shutil.copy(path, folder)
    shutil.copy(ANNOTATIONS, folder)
    code = (
        "import json, os, shutil, sys\n"
        "sys.path.insert(0, os.getcwd())\n"
        "from challenge_data.challenge_1 import evaluate\n"
        "truth, root = os.path.abspath('challenge_data/challenge_1/sequences-dev.zip'), sys.argv[1]\n"
        "def score(truth, sample, phase): return evaluate(truth, f'{root}/examples/{phase}/{sample}', phase)\n"
        "before = score(truth, 'strong.zip', 'sequences-dev')\n"
        "shutil.rmtree('challenge_data')\n"
        "after = score(truth, 'strong.zip', 'sequences-dev')\n"
        "assert before['result'] == after['result']\n"
        "keys = before['submission_metadata']['provenance'], after['submission_metadata']['provenance']\n"
        "assert keys[0] == keys[1], keys\n"
        "assert 'losses' in after['submission_result']\n"
        "score(f'{root}/annotations/instances-dev.zip', os.listdir(f'{root}/examples/instances-dev')[0], 'instances-dev')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("hidden", ["test", "test-hard"])
@pytest.mark.parametrize("notified", [True, False])
def test_nothing_of_a_hidden_split_reaches_a_participant(
    hidden: str, notified: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Neither names nor numbers nor times reach participants; the leaderboard has everything."""
    phase = next(phase for phase in PHASES if phase.codename == "sequences-test")
    splits = tuple(replace(shown, hidden=shown.codename == hidden) for shown in phase.splits)
    (codename,) = {shown.codename for shown in splits} - {hidden}
    monkeypatch.setattr(main, "PHASES", (replace(phase, splits=splits, notify=Notify() if notified else None),))
    sent: list[Any] = []
    monkeypatch.setenv("SEGJUDGE_WEBHOOK", "http://127.0.0.1:9/x")
    monkeypatch.setattr(notify, "_post", lambda kind, address, body, failures: sent.append(body))
    truth = str(ROOT / phase.annotations)
    sample = min((ROOT / "examples/sequences-test").iterdir())
    hidden_names = {sequence.name for sequence in main.open_truth(truth, phase)[hidden].sequences}

    answer = evaluate(truth, str(sample), phase.codename, submission_metadata={"id": 1})

    scored = {split: values for entry in answer["result"] for split, values in entry.items()}
    assert set(scored) == {hidden, codename}
    assert answer["submission_result"]["scored"] == [shown.codename for shown in splits]
    assert [set(entry) for entry in answer["submission_result"]["result"]] == [{codename}]
    assert hidden not in answer["submission_metadata"]["seconds"]
    # What only hosts read on every platform says it of all splits.
    for_hosts = [
        answer["submission_metadata"].pop("sums"),
        answer["submission_metadata"]["provenance"].pop("protocols"),
    ]
    assert [set(for_host) for for_host in for_hosts] == [{hidden, codename}] * 2
    out = capsys.readouterr().out
    shown = [json.dumps(answer["submission_result"]), json.dumps(answer["submission_metadata"]), json.dumps(sent), out]
    assert len(sent) == notified
    assert f"{hidden}: scored\n" in out
    for text in shown:
        assert not [name for name in hidden_names if name in text]
        assert not [
            metric
            for metric, value in scored[hidden].items()
            if value and str(round(value, 3)) in text and value not in scored[codename].values()
        ]
    alone = {**answer["submission_result"], "scored": []}
    assert f'"{hidden}"' not in json.dumps([alone, answer["submission_metadata"], sent])


WITH_A_MEGABYTE = """
import sys
from dataclasses import replace
from segjudge.evaluation_script import main
main.PHASES = (replace(main.PHASES[0], memory=1 << 20),)
try:
    main.evaluate(*sys.argv[1:])
except Exception as error:
    print(error)
"""


@pytest.mark.long
def test_what_takes_too_much_is_refused(tmp_path: Path) -> None:
    """The scorer runs in a separate process, since this one may keep memory that it freed."""
    large = tmp_path / "large.json"
    large.write_bytes(b'{"crossing": "' + b"x" * 40_000_000 + b'"}')
    command = [sys.executable, "-c", WITH_A_MEGABYTE, str(ANNOTATIONS), str(large), DEV]
    output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert "more than 1 MB of memory" in output


def test_what_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with_phase(monkeypatch, seconds=0)
    with pytest.raises(SubmissionError, match="longer than 0 seconds"):
        evaluate(str(ANNOTATIONS), str(STRONG), DEV)


def test_warnings_reach_the_participant_grouped_and_few(tmp_path: Path, capsys: Any) -> None:
    files = files_of()
    noisy = {f"{n.split('/')[0]}/9{n.split('/')[1]}": d for n, d in files.items()}
    path = tmp_path / "x"
    path.write_bytes(zipped({**files, **noisy, **{f"stranger{k}/0.png": b"x" for k in range(50)}}))

    answer = evaluate(str(ANNOTATIONS), str(path), DEV)

    warnings = answer["submission_result"]["warnings"]
    assert len(warnings) == 4
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line.startswith("warning: ")] == [
        f"warning: {line}" for line in warnings
    ]
    assert any("stranger0" in line and "45 more" in line for line in warnings)


def test_all_that_a_participant_reads_is_ascii_whatever_the_files_are_called(tmp_path: Path, capsys: Any) -> None:
    """EvalAI serves these texts without their charset."""
    files, path = files_of(), tmp_path / "x"
    foreign = {"日本/0.png": b"x", "\N{GRINNING FACE}/0.png": b"x"}
    path.write_bytes(zipped({**files, **foreign}))
    answer = evaluate(str(ANNOTATIONS), str(path), DEV)
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert r"\u65e5\u672c" in printed
    assert r"\U0001f600" in printed
    assert json.dumps(answer).isascii()

    path.write_bytes(zipped({**files, "../ü×….png": b"x"}))
    with pytest.raises(SubmissionError) as caught:
        evaluate(str(ANNOTATIONS), str(path), DEV)
    assert str(caught.value).isascii()
    assert r"\xfc\xd7\u2026.png" in str(caught.value)
    with pytest.raises(SubmissionError, match=r"no phase '\\xfc'"):
        evaluate(str(ANNOTATIONS), str(path), "ü")
