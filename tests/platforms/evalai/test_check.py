"""Each rule by which EvalAI rejects a bundle has a bundle that breaks it."""

from __future__ import annotations

import copy
import datetime
import io
import re
import shutil
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from segjudge.evaluation_script.files.problems import HostError
from segjudge.evaluation_script.phases import PHASES
from segjudge.evaluation_script.scoring.phase import Notify
from segjudge.platforms import imports
from segjudge.platforms.evalai.bundle import agreement
from segjudge.platforms.evalai.bundle.build import build
from segjudge.platforms.evalai.bundle.bundle_source import find_bundle
from segjudge.platforms.evalai.bundle.check import check, refusal
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle
from segjudge.platforms.evalai.bundle.phase_splits import splits_of
from segjudge.platforms.evalai.bundle.secrecy import find_hidden_splits
from segjudge.platforms.evalai.bundle.server_state import (
    ServerState,
)
from segjudge.platforms.evalai.bundle.yaml_lines import read_yaml, yaml_problem
from segjudge.platforms.rules.problems import ERROR, WARNING, BundleProblem
from tests.builders import ROOT, zipped

from .bundles import config_in, read_files, write_files


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(build(str(ROOT), str(tmp_path_factory.mktemp("dist") / "challenge_config.zip")).path)


def changed(
    bundle: Path, tmp_path: Path, change: Any = None, files: Any = None, state: ServerState | None = None
) -> list[BundleProblem]:
    """Return the problems of a bundle with another config or other files."""
    content = read_files(bundle)
    if change is not None:
        config = config_in(content)
        returned = change(config)
        content["challenge_config.yaml"] = yaml.safe_dump(config if returned is None else returned).encode()
    return check(write_files(tmp_path / "bundle.zip", {**content, **(files or {})}), state)


def test_the_bundle_of_this_repository_is_accepted(bundle: Path) -> None:
    assert [str(problem) for problem in check(str(bundle))] == []


def test_the_same_files_give_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    assert Path(build(str(ROOT), str(tmp_path / "again.zip")).path).read_bytes() == bundle.read_bytes()


def test_the_bundle_holds_what_the_config_names_and_no_more(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        names = set(archive.namelist())
        with zipfile.ZipFile(io.BytesIO(archive.read("evaluation_script.zip"))) as script:
            shown = {"__init__.py", "main.py", "phases.py", "requirements.txt"}
            assert {name for name in script.namelist() if "/" not in name} == shown
    config = find_bundle(str(ROOT)).config()
    values = [value for item in (config, *config["challenge_phases"]) for value in item.values()]
    named = {value for value in values if isinstance(value, str) and (ROOT / value).is_file()}
    assert names == {"challenge_config.yaml", "evaluation_script.zip", *named}


def test_config_and_phases_agree() -> None:
    config = find_bundle(str(ROOT)).config()
    labels = {board["id"]: board["schema"]["labels"] for board in config["leaderboard"]}
    splits = {split["id"]: split["codename"] for split in config["dataset_splits"]}
    for phase, configured in zip(PHASES, config["challenge_phases"]):
        assert (phase.codename, phase.annotations) == (configured["codename"], configured["test_annotation_file"])
        rows = [row for row in config["challenge_phase_splits"] if row["challenge_phase_id"] == configured["id"]]
        assert [splits[row["dataset_split_id"]] for row in rows] == [shown.codename for shown in phase.splits]
        for row, shown in zip(rows, phase.splits):
            assert labels[row["leaderboard_id"]] == list(shown.metrics)


def put(*path: Any, value: Any) -> Any:
    """Return a change that sets (or with None removes) a value in the config."""

    def change(config: Any) -> None:
        for step in path[:-1]:
            config = config[step]
        if value is None:
            del config[path[-1]]
        else:
            config[path[-1]] = None if value is NULL else value

    return change


def twice(block: str) -> Any:
    return lambda config: config[block].append(copy.deepcopy(config[block][0]))


def dated(value: Any) -> Any:
    return lambda config: config.update(start_date=value, end_date=value)


def attribute(kind: str) -> dict[str, str]:
    return {"name": "x", "description": "x", "type": kind}


def prize(rank: Any, amount: Any = "10EUR") -> dict[str, Any]:
    return {"rank": rank, "amount": amount, "description": "x"}


def without_limits(config: Any) -> None:
    del config["challenge_phases"][0]["max_submissions"]
    del config["challenge_phases"][0]["max_submissions_per_month"]


def drop(config: Any, row: int) -> None:
    del config["challenge_phase_splits"][row]


def without(block: str, index: int) -> Any:
    return lambda config: config.update({block: [item for k, item in enumerate(config[block]) if k != index]})


NULL = object()
EVALAI = "https://eval.ai"
LATE = datetime.datetime(2037, 1, 1)
PHASE, BOARD, SPLIT, ROW = (
    ("challenge_phases", 0),
    ("leaderboard", 0),
    ("dataset_splits", 0),
    ("challenge_phase_splits", 0),
)
SCHEMA = (*BOARD, "schema")

ATTRIBUTES = (*PHASE, "submission_meta_attributes")
TEXTS = ["description", "evaluation_details", "terms_and_conditions", "submission_guidelines"]
CRASH = "error 500"

#: The server's rules by their number: a change that breaks it, and words of what is said.
BROKEN = [
    *[pytest.param(14, put(key, value="../x.html"), f"Invalid file path for {key}.", id=f"14-{key}") for key in TEXTS],
    pytest.param(
        24,
        put("title", value="x" * 101),
        "{'title': [ErrorDetail(string='Ensure this field has no more than 100 characters.', code='max_length')]}",
        id="24-title",
    ),
    pytest.param(34, put("challenge_phases", value=["a"]), CRASH, id="34-no-mappings"),
    pytest.param(
        37,
        put(*PHASE, "description", value="x.html"),
        "{'description': [ErrorDetail(string='This field may not be null.'",
        id="37-file",
    ),
    pytest.param(41, put(*ATTRIBUTES, value=[{"name": "x"}]), "phase 4: description, type", id="41"),
    pytest.param(
        44,
        without_limits,
        "{'max_submissions_per_month': [ErrorDetail(string='This field may not be null.'",
        id="44-limits",
    ),
    pytest.param(44, put(*PHASE, "codename", value="x" * 101), "more than 100 characters", id="44-codename"),
    pytest.param(66, put("prizes", value=[prize(1, "10 EUR")]), "Invalid amount value 10 EUR.", id="66-no-amount"),
]


@pytest.mark.parametrize(("rule", "change", "message"), BROKEN)
def test_a_broken_rule_is_reported(rule: int, change: Any, message: str, bundle: Path, tmp_path: Path) -> None:
    problems = [problem for problem in changed(bundle, tmp_path, change) if problem.rule == rule]
    assert any(message in str(problem) for problem in problems), changed(bundle, tmp_path, change)
    assert all(problem.location.startswith("challenge_config.yaml") for problem in problems)


def test_an_update_says_which_annotation_files_the_server_keeps(bundle: Path, tmp_path: Path) -> None:
    config = config_in(read_files(bundle))
    number = config["challenge_phases"][0]["id"]
    state = replace(ServerState.after_push(config, source="a"), kept_truths=[number])
    (problem,) = changed(bundle, tmp_path, state=state)
    assert (problem.severity, problem.subject) == (WARNING, "challenge_phases[0].test_annotation_file")
    assert "is ignored: EvalAI keeps the phase's annotation file" in problem.fault
    first_push = put(*PHASE, "annotations_uploaded_using_cli", value=True)
    first_push(config)
    assert ServerState.after_push(config, source="a").kept_truths == [number]


@pytest.mark.parametrize("name", ["../evil.py", "/evil.py", "a/../../evil.txt"])
def test_a_member_that_leads_out_of_the_script_is_refused(name: str, bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(read_files(bundle)["evaluation_script.zip"])) as script:
        members = {member: script.read(member) for member in script.namelist()}
    built = {"evaluation_script.zip": zipped({**members, name: b""})}
    problems = [problem for problem in changed(bundle, tmp_path, files=built) if "points outside" in problem.fault]
    assert [(problem.severity, problem.subject) for problem in problems] == [(ERROR, "evaluation_script.zip")]
    with Bundle(str(tmp_path / "bundle.zip")) as opened, pytest.raises(HostError, match="which points outside"):
        opened.read_script()


BEYOND = [
    pytest.param(put("remote_evaluation", value=True), WARNING, "should stay on your machine", id="remote-file"),
    pytest.param(put("worker_memory", value=4096), WARNING, "ignored by EvalAI: CPU and memory are set", id="ignored"),
    pytest.param(put("publishd", value=True), WARNING, "Write published if you mean that", id="misspelt"),
    pytest.param(
        put(*PHASE, "is_active", value=True),
        WARNING,
        "ignored by EvalAI: it follows from the dates",
        id="ignored-phase",
    ),
    *(
        pytest.param(put(*PHASE, f"max_{limit}", value=0), WARNING, f"max_{limit}: is 0, so EvalAI", id=limit)
        for limit in (
            "submissions_per_day",
            "submissions_per_month",
            "submissions",
            "concurrent_submissions_allowed",
        )
    ),
    pytest.param(
        put(*PHASE, "annotations_uploaded_using_cli", value=True), WARNING, "ignores those of later", id="kept-truth"
    ),
    *(
        pytest.param(put(*SCHEMA, "metadata", value=value), ERROR, "leaderboard with error 500", id=f"{value!r}")
        for value in ("x", [], "")
    ),
    pytest.param(put(*SCHEMA, "metadata", "J&F-Mean", value="x"), ERROR, "is an error 500", id="metadata-text"),
]


@pytest.mark.long
@pytest.mark.parametrize(("change", "severity", "message"), BEYOND)
def test_what_the_server_lets_pass_is_reported_too(
    change: Any, severity: str, message: str, bundle: Path, tmp_path: Path
) -> None:
    problems = [problem for problem in changed(bundle, tmp_path, change) if message in str(problem)]
    assert [problem.severity for problem in problems][:1] == [severity], changed(bundle, tmp_path, change)


@pytest.mark.parametrize("visibility", [1, 2, 3])
def test_a_split_that_phases_py_hides_may_have_any_visibility_but_that_of_everybody(
    visibility: int, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = tuple(
        replace(phase, splits=tuple(replace(shown, hidden=True) for shown in phase.splits)) for phase in PHASES
    )
    monkeypatch.setattr(agreement, "read_phases", lambda *_: hidden)

    def hide_all(config: Any) -> None:
        for row in config["challenge_phase_splits"]:
            row["visibility"] = 1
        config["challenge_phase_splits"][0]["visibility"] = visibility

    problems = list(map(str, changed(bundle, tmp_path, hide_all)))
    assert len(problems) == (visibility == 3)
    assert all(
        "hides the scores of dev, but visibility: 3 in the YAML shows them to everybody" in line for line in problems
    )


def test_a_notification_that_waits_for_a_hidden_split_is_reported(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be visible to readers of the channel, and so it is never sent."""
    first, *others = PHASES
    (shown,) = first.splits
    waiting = replace(first, splits=(replace(shown, hidden=True),), notify=Notify("dev", "J&F-Mean", 0.5))
    monkeypatch.setattr(agreement, "read_phases", lambda *_: (waiting, *others))
    (problem,) = changed(bundle, tmp_path, put(*ROW, "visibility", value=1))
    assert "notify names J&F-Mean of dev, which participants may not see" in str(problem)


def test_a_value_beyond_its_limit_is_told_the_limit(bundle: Path, tmp_path: Path) -> None:
    limits = {
        "title": ("x" * 101, "has 101 characters. Shorten it to 100"),
        "max_team_members": (-1, "is -1. Write 0 or more"),
        "worker_disk_size": (2**31, "is 2147483648. Write 2147483647 or less"),
        "allowed_email_domains": (["a.org", "x" * 51], "has 51 characters. Shorten it to 50"),
    }
    problems = changed(
        bundle, tmp_path, lambda config: config.update({key: value for key, (value, _) in limits.items()})
    )
    for key, (_, message) in limits.items():
        assert any(f"{key}: {message}" in str(problem) for problem in problems), problems


@pytest.mark.parametrize("value", [None, ""])
def test_texts_that_the_server_does_not_keep_may_be_empty(value: str | None, bundle: Path, tmp_path: Path) -> None:
    empty = {"github_branch": value, "evaluation_module_error": value}
    assert [
        problem for problem in changed(bundle, tmp_path, lambda config: config.update(empty)) if problem.error
    ] == []


def test_a_report_is_left_or_not(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = PHASES
    monkeypatch.setattr(agreement, "read_phases", lambda *_: (replace(first, report="all"), *others))  # type: ignore[arg-type]
    (problem,) = changed(bundle, tmp_path, put(*ROW, "visibility", value=3))
    assert "has report='all'. Write True or False" in str(problem)


@pytest.mark.long
def test_a_protocol_or_metric_that_there_is_not_is_reported(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others = PHASES
    (split,) = first.splits
    for change, message in (
        ({"protocol": "sharpness"}, "there is no protocol 'sharpness' (`segjudge benchmarks`"),
        ({"protocol": "sharpness"}, "Name one, or install its plug-in"),
        ({"protocol": "coco"}, "coco has no metric J&F-Mean"),
    ):
        changed_phase = replace(first, splits=(replace(split, **change),))
        monkeypatch.setattr(agreement, "read_phases", lambda *_: (changed_phase, *others))  # noqa: B023
        assert any(message in str(problem) for problem in changed(bundle, tmp_path, put(*ROW, "visibility", value=3)))


def test_an_annotation_file_of_the_other_track_is_reported(bundle: Path, tmp_path: Path) -> None:
    second = (ROOT / "annotations/sequences-dev.zip").read_bytes()
    problems = [str(problem) for problem in changed(bundle, tmp_path, files={"annotations/instances-dev.zip": second})]
    assert any("holds sequences, not instances" in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("data", "rule"), [(b"", 1), (b"PK\x03\x04", 2), (b"no zip", 2), (b"PK\x05\x06" + bytes(18), 3)], ids=repr
)
def test_what_is_no_zip_is_refused_in_a_sentence(data: bytes, rule: int, tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(data)
    assert [problem.rule for problem in check(str(path))] == [rule]


def test_a_long_path_is_reported(bundle: Path, tmp_path: Path) -> None:
    path = f"annotations/{'x' * 60}.zip"
    truth = {path: (ROOT / "annotations/sequences-dev.zip").read_bytes()}
    problems = changed(bundle, tmp_path, put(*PHASE, "test_annotation_file", value=path), truth)
    assert any(
        "{'test_annotation': [ErrorDetail(string='Ensure this filename has at most 100 characters (it has 104)."
        in str(problem)
        for problem in problems
    ), problems


FROZEN = [
    pytest.param(33, put(*SCHEMA, "default_order_by", value="J-Mean"), "Leaderboard 1 cannot be changed", id="33"),
    pytest.param(54, put(*SPLIT, "name", value="Other"), "Dataset split 1 cannot be changed after", id="54"),
    pytest.param(63, put(*ROW, "visibility", value=1), "dataset_split_id: 1) cannot be changed after", id="63"),
]


@pytest.mark.parametrize(("rule", "change", "message"), FROZEN)
def test_before_approval_an_update_may(rule: int, change: Any, message: str, bundle: Path, tmp_path: Path) -> None:
    state = ServerState.after_push(find_bundle(str(ROOT)).config(), source="a test")
    assert rule not in {problem.rule for problem in changed(bundle, tmp_path, change, state=state)}, message


def test_an_unchanged_bundle_is_an_update_that_passes(bundle: Path, tmp_path: Path) -> None:
    state = ServerState.after_push(find_bundle(str(ROOT)).config(), source="a test", approved=True)
    state.save(str(tmp_path), EVALAI, "me/x")
    assert ServerState.load(str(tmp_path), EVALAI, "me/x") == state
    assert changed(bundle, tmp_path, state=ServerState.load(str(tmp_path), EVALAI, "me/x")) == []


def test_without_a_push_nothing_is_remembered(tmp_path: Path) -> None:
    assert ServerState.load(str(tmp_path), EVALAI, "me/x") is None


def test_a_broken_memory_says_which_file(tmp_path: Path) -> None:
    path = Path(ServerState().save(str(tmp_path), EVALAI, "me/x"))
    path.write_text("[]")
    with pytest.raises(HostError, match=re.escape(f"{path}: cannot be read")):
        ServerState.load(str(tmp_path), EVALAI, "me/x")


def test_the_servers_answer_joins_its_sentences(bundle: Path, tmp_path: Path) -> None:
    def change(config: Any) -> None:
        config.update(published="perhaps", max_team_members="many", worker_memory=1, tags=list("abcde"))

    def more(config: Any) -> None:
        change(config)
        del config["title"]

    tags = "ERROR: Tags are limited to 4. Please remove extra tags then try again!"
    early = refusal(changed(bundle, tmp_path, more))
    assert early == f"Please add the challenge title\n{tags}", "the serializer comes only when all before was right"
    answer = refusal(changed(bundle, tmp_path, change))
    assert answer == (
        "ERROR: Unable to serialize the challenge because of the following errors: "
        "{'published': [ErrorDetail(string='Must be a valid boolean.', code='invalid')], "
        "'max_team_members': [ErrorDetail(string='A valid integer is required.', code='invalid')]}.\n" + tags
    )


@pytest.mark.parametrize(("rule", "answer"), [(7, "a\nb"), (8, "a"), (22, "a"), (23, "a\nb")])
def test_the_serializer_speaks_only_where_what_comes_before_it_is_right(rule: int, answer: str) -> None:
    assert refusal([BundleProblem("x", "f", "r", "a", rule), BundleProblem("x", "f", "r", "b", 24)]) == answer


WEIRD = [None, [], {}, "", "x", 5, -1, 2.5, True, datetime.date(2026, 1, 1), [None], [[]], {"a": []}, [{"id": []}]]


def places(node: Any, path: tuple[Any, ...] = ()) -> Any:
    if path:
        yield path
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from places(value, (*path, key))


@pytest.mark.long
def test_whatever_stands_in_the_yaml_nothing_breaks(bundle: Path, tmp_path: Path) -> None:
    config = find_bundle(str(ROOT)).config()
    state, script = (
        ServerState.after_push(config, source="a test", approved=True),
        zipped({"__init__.py": b"evaluate = 1"}),
    )
    spots = [path for path in places(config) if not ({1, 2, 3, 4} & set(path))]
    assert len(spots) > 60
    for number, path in enumerate(spots):
        for value in WEIRD[number % 7 :: 7]:
            change = put(*path, value=NULL if value is None else value)
            results = changed(bundle, tmp_path, change, {"evaluation_script.zip": script}, state=state)
            assert all(str(problem) and problem.as_json() for problem in results)
            refusal(results)


TEXT = """\
title: x
leaderboard:
  - id: 1
    schema:
      labels: ["J"]
challenge_phases:
  - id: 1
  - name: second
    max_submissions: many
title: y
"""


@pytest.mark.parametrize(
    ("path", "place"),
    [
        pytest.param("title", "10:1", id="last-of-two-keys"),
        pytest.param("leaderboard", "2:1", id="block"),
        pytest.param("leaderboard[0].schema.labels", "5:7", id="key"),
        pytest.param("leaderboard[0].schema.default_order_by", "4:5", id="missing-key"),
        pytest.param("challenge_phases[1].max_submissions", "9:5", id="second-item"),
        pytest.param("challenge_phases[1]", "8:5", id="item"),
        pytest.param("challenge_phases[7]", "6:1", id="no-such-item"),
    ],
)
def test_a_problem_has_line_and_column(path: str, place: str) -> None:
    _, lines = read_yaml("c.yaml", TEXT.encode())
    assert lines.location(path) == f"c.yaml:{place}"


@pytest.mark.parametrize("path", ["phases.py, sequences-dev", "annotations/a.zip"])
def test_what_is_not_in_the_yaml_has_no_line(path: str) -> None:
    assert read_yaml("c.yaml", TEXT.encode())[1].location(path) == ""


def test_a_key_that_is_missing_has_its_file() -> None:
    assert read_yaml("c.yaml", TEXT.encode())[1].location("description") == "c.yaml"


def test_a_duplicate_key_is_reported() -> None:
    assert list(read_yaml("c.yaml", TEXT.encode())[1].duplicate_keys) == ["title"]


def test_the_line_is_that_of_the_file_that_the_host_edits(tmp_path: Path, bundle: Path) -> None:
    text = (ROOT / "challenge_config.yaml").read_text()
    line = next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith("image:"))
    broken = text.replace("image: logo.png", "image: nowhere.png").encode()
    problems = [str(problem) for problem in changed(bundle, tmp_path, files={"challenge_config.yaml": broken})]
    assert [problem.split(" names ")[0] for problem in problems] == [f"challenge_config.yaml:{line}:1: image:"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(b"a: 1\nb: [c\n", "c.yaml:3:1: c.yaml: is not valid YAML: expected ',' or ']'", id="unclosed"),
        pytest.param(
            b"a: 1\nb: 2026-13-45\n",
            "c.yaml:2:4: c.yaml: holds an invalid value: month must be in 1..12",
            id="date",
        ),
        pytest.param(b"a: \xff\n", "c.yaml: is not valid YAML", id="no-utf-8"),
        pytest.param(b"\ta: 1\n", "c.yaml:1:1: c.yaml: is not valid YAML: found character '\\t'", id="tab"),
    ],
)
def test_no_yaml_names_the_place(text: bytes, message: str) -> None:
    with pytest.raises(yaml.YAMLError) as raised:
        read_yaml("c.yaml", text)
    assert str(yaml_problem("c.yaml", raised.value)).startswith(message)


def test_broken_yaml_is_quoted_as_the_server_says_it() -> None:
    with pytest.raises(yaml.YAMLError) as raised:
        read_yaml("c.yaml", b"a: 1\nb: [c\n")
    assert "Expected ',' or ']'" in yaml_problem("c.yaml", raised.value).quote
    assert yaml_problem("c.yaml", raised.value).quote.endswith("in line 3, column 1")


@pytest.mark.parametrize(
    "path", ["./templates/description.html", "templates//description.html", "a/../templates/description.html"]
)
def test_a_path_may_be_written_in_many_ways(path: str, tmp_path: Path) -> None:
    fork = Path(
        shutil.copytree(
            ROOT,
            tmp_path / "fork",
            symlinks=True,
            ignore=shutil.ignore_patterns(".*", "dist", "tests", "docs", "__pycache__"),
        )
    )
    config = (fork / "challenge_config.yaml").read_text()
    (fork / "challenge_config.yaml").write_text(config.replace("templates/description.html", path))
    assert check(build(str(fork)).path) == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param("title: x\n".encode("utf-16"), "is not UTF-8", id="utf-16"),
        pytest.param(b"a: " + b"[" * 5000, "nested too deeply", id="deep"),
        pytest.param(
            b"a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n"
            + b"".join(b"a%d: &a%d [%s]\n" % (k, k, b",".join([b"*a%d" % (k - 1)] * 10)) for k in range(1, 7)),
            "aliases unfold to more than",
            id="aliases",
        ),
        pytest.param(b"#" * (5 << 20), "unpacks to", id="large"),
    ],
)
def test_a_hostile_config_is_refused_at_once(data: bytes, message: str, bundle: Path, tmp_path: Path) -> None:
    started = time.process_time()
    problems = [str(problem) for problem in changed(bundle, tmp_path, files={"challenge_config.yaml": data})]
    assert any(message in problem for problem in problems), problems
    assert time.process_time() - started < 2 * 2, "seconds of work, twice the promise"


def test_a_damaged_zip_is_reported(bundle: Path, tmp_path: Path) -> None:
    data = bytearray(bundle.read_bytes())
    for place in range(2000, len(data) - 4000, 4999):
        broken = bytearray(data)
        broken[place : place + 10] = bytes(10)
        (tmp_path / "broken.zip").write_bytes(broken)
        assert all(str(problem) for problem in check(str(tmp_path / "broken.zip")))


def test_merged_keys_are_not_there_twice() -> None:
    text = b"base: &b {a: 1, b: 2}\nother:\n  <<: *b\n  a: 3\n"
    assert list(read_yaml("c.yaml", text)[1].duplicate_keys) == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(put("is_docker_based", value="False"), id="text-for-a-flag"),
        pytest.param(put("banned_email_ids", value=NULL), id="null-list"),
        pytest.param(put("job_memory", value=""), id="blank-text"),
        pytest.param(put("worker_disk_size", value=-1), id="negative"),
        pytest.param(put(*PHASE, "max_submissions_per_month", value=NULL), id="copied-limit"),
        pytest.param(put(*ROW, "visibility", value="3"), id="text-for-a-number"),
        pytest.param(put("forum_url", value="http://\u00e4.de"), id="address"),
        pytest.param(put("image", value="./logo.png"), id="dotted-path"),
    ],
)
def test_what_the_server_takes_is_no_error(change: Any, bundle: Path, tmp_path: Path) -> None:
    problems = changed(bundle, tmp_path, change)
    assert [str(problem) for problem in problems if problem.severity == ERROR] == []


def test_each_server_and_repository_has_a_memory_of_its_own(tmp_path: Path) -> None:
    root, rehearsal = str(tmp_path), "http://127.0.0.1:8899"
    ServerState.after_push(find_bundle(str(ROOT)).config(), source="a rehearsal").save(root, rehearsal, "me/x")
    ServerState("EvalAI").save(root, EVALAI, "me/y")
    assert ServerState.load(root, EVALAI, "me/x") is None
    assert ServerState.load(root, rehearsal, "me/y") is None
    assert [ServerState.load(root, rehearsal, "me/x").source, ServerState.load(root, EVALAI, "me/y").source] == [  # type: ignore[union-attr]
        "a rehearsal",
        "EvalAI",
    ]
    names = {
        ServerState().save(root, server, name)
        for server in (EVALAI, "https://eval.ai:8443")
        for name in ("a/b-c", "a-b/c")
    }
    assert len(names) == 4, "nothing that looks alike in a file's name is mixed up"


@pytest.mark.parametrize(
    ("start", "end", "warned"),
    [
        ("2026-01-01 00:00:00", "2099-01-01 00:00:00Z", "end_date"),
        ("2026-01-01T00:00:00+02:00", "2099-01-01 00:00:00", "start_date"),
        ("2026-01-01 00:00:00 -5", "2099-01-01 00:00:00Z", ""),
        ("2026-01-01 00:00:00", "2099-01-01 00:00:00", ""),
    ],
)
@pytest.mark.parametrize("of_phase", [False, True])
def test_a_time_zone_in_one_date_alone_is_a_warning(
    start: str, end: str, warned: str, of_phase: bool, bundle: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(bundle) as archive:
        text = archive.read("challenge_config.yaml").decode()
    indent = "    " if of_phase else ""
    for key, date in (("start_date", start), ("end_date", end)):
        text = re.sub(rf"^{indent}{key}: .*$", f"{indent}{key}: {date}", text, count=1, flags=re.MULTILINE)
    problems = changed(bundle, tmp_path, files={"challenge_config.yaml": text.encode()})
    zones = [problem for problem in problems if "has a time zone" in problem.fault]
    where = f"challenge_phases[0].{warned}" if of_phase else warned
    assert [(problem.subject, problem.severity) for problem in zones] == ([(where, WARNING)] if warned else [])


@pytest.mark.long
def test_a_module_is_parsed_once_for_each_content(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    parsed = []
    real = imports._parse
    monkeypatch.setattr(imports, "_parse", lambda text, version: parsed.append(text) or real(text, version))
    assert changed(bundle, tmp_path) == []
    with zipfile.ZipFile(bundle) as archive, zipfile.ZipFile(io.BytesIO(archive.read("evaluation_script.zip"))) as own:
        modules = {name: own.read(name) for name in own.namelist()}
    assert sorted(parsed) == sorted(text for name, text in modules.items() if name.endswith(".py"))
    parsed.clear()
    memory = tmp_path / "cache/segjudge/modules.json"
    written_at = memory.stat().st_mtime_ns
    assert changed(bundle, tmp_path) == []
    assert parsed == []
    assert memory.stat().st_mtime_ns == written_at
    broken = b"from .nowhere import nothing\nfrom .masks import Array\n"
    script = zipped({**modules, "scoring/answer.py": broken})
    first = [str(problem) for problem in changed(bundle, tmp_path, files={"evaluation_script.zip": script})]
    assert parsed == [broken]
    assert any("imports .nowhere, which is not in the zip" in problem for problem in first)
    assert [str(problem) for problem in changed(bundle, tmp_path, files={"evaluation_script.zip": script})] == first
    for damage in ("[]", "{", '{"%s": 3}'):
        memory.write_text(damage)
        assert changed(bundle, tmp_path) == []


def test_a_codename_that_is_a_number_is_the_text_that_evalai_keeps() -> None:
    row = {"challenge_phase_id": 1, "leaderboard_id": 2, "dataset_split_id": 3, "visibility": 1}
    phase = {"id": 1, "codename": 8}
    splits = [{"id": 3, "codename": 2019}]
    config = {"dataset_splits": splits, "challenge_phases": [phase], "challenge_phase_splits": [row]}
    assert [split.codename for split in splits_of(config, phase)] == ["2019"]
    assert find_hidden_splits(config, "8") == {"2019"}
