"""Input that passes EvalAI's validation but not its creation; input that it accepts despite its look; its web form."""

from __future__ import annotations

import datetime
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from segjudge.platforms.evalai.bundle.build import build
from segjudge.platforms.evalai.bundle.check import check, check_web_form, refusal
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle, BundleRefusedError
from segjudge.platforms.evalai.bundle.rules import check_server_rules
from segjudge.platforms.evalai.bundle.server_state import ServerState
from segjudge.platforms.rules.problems import ERROR, BundleProblem
from tests.builders import ROOT

from .bundles import config_in, read_files, write_files

PHASE, ROW = ("challenge_phases", 0), ("challenge_phase_splits", 0)
SCHEMA = ("leaderboard", 0, "schema")
ASKED = (*PHASE, "submission_meta_attributes")
NAN = float("nan")
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class Timestamp(str):
    """A date that no YAML writer would write, but that the server's PyYAML reads."""

    __slots__ = ()


yaml.SafeDumper.add_representer(Timestamp, lambda dumper, value: dumper.represent_scalar(_TIMESTAMP, value))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = build(str(ROOT), str(tmp_path_factory.mktemp("dist") / "challenge_config.zip")).path
    return read_files(Path(path))


def written(content: dict[str, bytes], tmp_path: Path, *changes: tuple[tuple[Any, ...], Any], **files: bytes) -> str:
    config = config_in(content)
    for place, value in changes:
        holder = config
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = value
    files = {**content, "challenge_config.yaml": yaml.safe_dump(config).encode(), **files}
    return write_files(tmp_path / "bundle.zip", files)


def errors(path: str, state: ServerState | None = None) -> list[BundleProblem]:
    return [problem for problem in check(path, state) if problem.severity == ERROR and not problem.accepted]


def attribute(**more: Any) -> list[dict[str, Any]]:
    return [{"name": "x", "description": "x", "type": "radio", "options": ["a"], **more}]


SLUG = "challenge phase 4 :{'slug': [ErrorDetail(string='Enter a valid \"slug\" consisting of letters, numbers"
NONE = "Error in creating challenge: None. Please check the yaml configuration!"
REFUSED = [
    *[
        pytest.param((("title",), title), SLUG, id=title)
        for title in (
            *("MOSE/LVOS challenge", "J&F 2026", "Détection d'objets", "X: y", "C++ masks", "U.S. roads"),
            *("VOS'26 challenge", "(Semi-)supervised", "日本 challenge", "tab\there"),
        )
    ],
    *[pytest.param(((*PHASE, "codename"), name), SLUG, id=name) for name in ("é", "dév", "日本")],
    pytest.param(((*PHASE, "codename"), 5), NONE, id="codename-number"),
    pytest.param(((*PHASE, "codename"), 0), NONE, id="codename-zero"),
    pytest.param(((*PHASE, "codename"), "Sequences-Test"), "with this slug already exists.", id="codename-case"),
    pytest.param(((*PHASE, "codename"), "sequences.test"), "with this slug already exists.", id="codename-dot"),
    pytest.param(((*PHASE, "codename"), "sequences-test "), "must make a unique set.", id="codename-space"),
    *[
        pytest.param((("sponsors",), value), NONE, id=f"sponsors-{value}")
        for value in (
            *(None, 5, "ACME", {"name": "x"}, ["x"], [{"website": "https://x.org"}]),
            *([{"name": "x", "website": "x"}], [{"name": "x" * 201, "website": "https://x.org"}]),
        )
    ],
    pytest.param((("sponsors",), [{"name": "x"}]), "Sponsor name or url not found in YAML data.", id="no-website"),
    pytest.param((("tags",), [["a"]]), NONE, id="tag-list"),
    pytest.param((("tags",), [{"a": 1}]), NONE, id="tag-mapping"),
    pytest.param((("tags",), ["a\0"]), NONE, id="tag-nul"),
    pytest.param(((*SCHEMA, "metadata", "J\0"), {"sort_ascending": False}), NONE, id="label-nul"),
    pytest.param((ASKED, attribute(name="a\0b")), NONE, id="attribute-nul"),
    pytest.param((("title",), "half \ud800"), NONE, id="surrogate"),
    pytest.param(((*SCHEMA, "metadata", "x"), NAN), "Value must be valid JSON.", id="schema-nan"),
    pytest.param(
        ((*SCHEMA, "metadata", "x"), datetime.date(2026, 1, 1)), "Value must be valid JSON.", id="schema-date"
    ),
    pytest.param(
        ((*ROW, "challenge_phase_id"), 4.0), "Challenge phase with phase id 4.0 doesn't exist.", id="float-id"
    ),
    pytest.param(((*ROW, "leaderboard_id"), True), "Leaderboard with id True doesn't exist.", id="true-id"),
    pytest.param(((*ROW, "dataset_split_id"), 1.0), "Dataset split with id 1.0 doesn't exist.", id="split-id"),
    pytest.param((("prizes",), [{"rank": 1, "amount": "1EUR"}]), NONE, id="prize-description"),
    pytest.param((("slug",), "my challenge"), 'Enter a valid "slug"', id="own-slug"),
    pytest.param((("slug",), datetime.date(2026, 1, 1)), 'Enter a valid "slug"', id="slug-date"),
    pytest.param((("forum_url",), ["https://x.org"]), "Enter a valid URL.", id="url-list"),
    pytest.param((("github_branch",), "half \ud800"), NONE, id="branch-surrogate"),
    pytest.param((("tags",), "segmentation"), "Tags are limited to 4.", id="tags-long-text"),
]


@pytest.mark.long
@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_what_creation_refuses_is_reported(change: Any, message: str, bundle: dict[str, bytes], tmp_path: Path) -> None:
    path = written(bundle, tmp_path, change)
    results = [problem for problem in errors(path) if problem.quote]
    assert [message in problem.server_message for problem in results] == [True], results
    assert message in refusal(check(path))


def test_a_validation_says_nothing_of_what_only_saving_refuses(bundle: dict[str, bytes], tmp_path: Path) -> None:
    results = check(written(bundle, tmp_path, (("title",), "J&F 2026"), (("sponsors",), None)))
    real = [problem for problem in results if not problem.accepted]
    assert refusal(real, saving=False) == ""
    assert refusal(real) == NONE, "the sponsors come first, and the first reason is the whole answer"


def test_a_title_that_was_taken_once_may_be_changed(bundle: dict[str, bytes], tmp_path: Path) -> None:
    state = ServerState.after_push(config_in(bundle), source="a test", approved=True)
    assert errors(written(bundle, tmp_path, (("title",), "J&F 2026")), state) == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param((ASKED, attribute(options="a,b")), id="options-text"),
        pytest.param((("tags",), "abc"), id="tags-text"),
        pytest.param((("tags",), {"a": 1}), id="tags-mapping"),
        pytest.param((("prizes",), [{"rank": True, "amount": "1EUR", "description": "x"}]), id="rank-true"),
        pytest.param((("prizes",), ""), id="prizes-empty"),
        pytest.param((("sponsors",), []), id="sponsors-empty"),
        pytest.param((("banned_email_ids",), [""]), id="blank-address"),
        pytest.param((("worker_python_version",), ""), id="blank-choice"),
        pytest.param((("max_team_members",), "1_0"), id="number-as-python-reads-it"),
        pytest.param((("start_date",), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)), id="time-zone"),
        pytest.param(((*PHASE, "end_date"), Timestamp("2036-01-01 00:00:00Z")), id="zulu"),
        pytest.param((("start_date",), Timestamp("2026-01-01 00:00:00 -25:90")), id="odd-time-zone"),
    ],
)
def test_what_evalai_takes_is_no_error(change: Any, bundle: dict[str, bytes], tmp_path: Path) -> None:
    assert errors(written(bundle, tmp_path, change)) == []


def test_a_date_in_quotes_may_end_in_a_line_break(bundle: dict[str, bytes], tmp_path: Path) -> None:
    dates = [((*PHASE, key), f"{year}-01-01 00:00:00Z\n") for key, year in (("start_date", 2026), ("end_date", 2036))]
    assert errors(written(bundle, tmp_path, *dates)) == []


def test_a_text_of_the_challenge_may_be_empty_and_one_of_a_phase_not(bundle: dict[str, bytes], tmp_path: Path) -> None:
    assert errors(written(bundle, tmp_path, **{"templates/description.html": b""})) == []
    results = errors(written(bundle, tmp_path, **{"templates/phase_sequences_dev.html": b" \n"}))
    assert "This field may not be blank." in str(results[0])
    results = errors(written(bundle, tmp_path, **{"templates/description.html": b"a\0b"}))
    assert "Null characters are not allowed." in str(results[0])


def test_a_control_character_is_a_400_in_the_servers_words(bundle: dict[str, bytes], tmp_path: Path) -> None:
    text = bundle["challenge_config.yaml"] + b"# \x07\n"
    path = tmp_path / "bundle.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("challenge_config.yaml", text)
    assert refusal(check(str(path))) == "None in line None, column None"


def test_a_split_that_two_leaderboards_show_is_a_mistake_that_creation_accepts(
    bundle: dict[str, bytes], tmp_path: Path
) -> None:
    config = config_in(bundle)
    boards, rows = config["leaderboard"], config["challenge_phase_splits"]
    changes = (
        (("leaderboard",), [*boards, {**boards[0], "id": 99}]),
        (
            ("challenge_phase_splits",),
            [*rows, {**rows[0], "leaderboard_id": 99}],
        ),
    )
    (problem,) = [problem for problem in check(written(bundle, tmp_path, *changes)) if problem.accepted]
    fault = "shows split {dataset_split_id} of phase {challenge_phase_id} twice".format_map(rows[0])
    remedy = "Keep one: with two, EvalAI's worker fails on every submission"
    assert (problem.subject, problem.fault, problem.remedy) == ("challenge_phase_splits", fault, remedy)


@pytest.mark.parametrize(
    ("flag", "is_fifo"), [({}, False), ({"use_fifo_sqs": "True"}, True), ({"use_fifo_sqs": 0}, False)]
)
def test_a_push_records_the_kind_of_the_queue(flag: Any, is_fifo: bool, bundle: dict[str, bytes]) -> None:
    config = {key: value for key, value in config_in(bundle).items() if key != "use_fifo_sqs"}
    assert ServerState.after_push({**config, **flag}, source="a test").fifo is is_fifo


@pytest.mark.parametrize("names", [("x", "x/y"), ("x/y", "x"), ("x/y/z", "x/y")])
def test_a_name_that_is_file_and_folder_is_refused(names: Any, bundle: dict[str, bytes], tmp_path: Path) -> None:
    results = errors(written(bundle, tmp_path, **dict.fromkeys(names, b"")))
    assert "as a file, and" in str(results[0])
    assert "error 500" in str(results[0])


def test_an_update_reads_numbers_and_flags_as_the_server_does(bundle: dict[str, bytes], tmp_path: Path) -> None:
    state = ServerState.after_push(config_in(bundle), source="a test", approved=True)
    same = (((*ROW, "is_leaderboard_order_descending"), "True"), ((*ROW, "visibility"), "3"))
    assert errors(written(bundle, tmp_path, *same), state) == []
    second = ((*ROW, "is_leaderboard_order_descending"), False)
    assert [problem.rule for problem in errors(written(bundle, tmp_path, second), state)] == [63]


@pytest.mark.parametrize(
    ("names", "refused"),
    [
        (("sequences-test", "sequences-dev"), [0]),
        ((" sequences-test", "other"), [0]),
        (("other", "sequences-dev"), []),
        (("other", "sequences-test "), []),
        ((5, "a/b é"), []),
    ],
)
def test_an_update_may_not_take_the_codename_that_another_phase_still_has(
    names: Any, refused: list[int], bundle: dict[str, bytes], tmp_path: Path
) -> None:
    """These answers are the real server's, which saves one phase after the other and keeps the addresses."""
    state = ServerState.after_push(config_in(bundle), source="a test")
    renamed = [(("challenge_phases", k, "codename"), name) for k, name in enumerate(names)]
    results = errors(written(bundle, tmp_path, *renamed), state)
    assert [problem.subject for problem in results] == [f"challenge_phases[{k}].codename" for k in refused]
    if refused:
        message = "challenge phase update 4 :{'non_field_errors': [ErrorDetail(string='The fields codename, c"
        assert message in refusal(results)


def test_the_address_of_a_former_codename_stays_in_use(bundle: dict[str, bytes], tmp_path: Path) -> None:
    config = config_in(bundle)
    first, second, *others = config["challenge_phases"]
    row = {**config["challenge_phase_splits"][0], "challenge_phase_id": 9}
    mapped = (("challenge_phase_splits",), [*config["challenge_phase_splits"], row])
    phases = [first, {**second, "codename": "other"}, *others, {**second, "id": 9}]
    path = written(bundle, tmp_path, mapped, (("challenge_phases",), phases))
    state = ServerState.after_push(config, source="a test")
    (problem,) = errors(path, state)
    message = "update 9 :{'slug': [ErrorDetail(string='challenge phase with this slug already exists."
    assert message in problem.server_message
    assert errors(path, replace(state, slugs=["before-sequences-test"])) == [], "made when the title began otherwise"
    again = [*phases, {**second, "id": 9, "codename": "ä"}]
    assert errors(written(bundle, tmp_path, mapped, (("challenge_phases",), again)), replace(state, slugs=["x"])) == []
    path = written(bundle, tmp_path, mapped, (("challenge_phases",), phases))
    renamed = replace(state, phases={**state.phases, 5: "other"}, slugs=["segjudge-sequences-test"])
    assert [error.server_message for error in errors(path, renamed)] == [problem.server_message]


@pytest.mark.long
@pytest.mark.parametrize("block", ["leaderboard", "challenge_phases", "dataset_splits"])
@pytest.mark.parametrize(
    ("number", "refused"),
    [
        (None, ()),
        (0, ()),
        ("", ("challenge_phases",)),
        ("9.0", ("challenge_phases",)),
        ([], ("leaderboard", "challenge_phases", "dataset_splits")),
    ],
)
def test_an_update_searches_items_by_their_ids(
    block: str, number: Any, refused: tuple[str, ...], bundle: dict[str, bytes], tmp_path: Path
) -> None:
    config = config_in(bundle)
    another = {**config[block][0], "id": number, "name": "another", "codename": "another"}
    path = written(bundle, tmp_path, ((block,), [*config[block], another]))
    server_messages = [
        problem.server_message for problem in errors(path, ServerState.after_push(config, source="a test"))
    ]
    assert server_messages == ([NONE] if block in refused else [])
    assert errors(path) == []


@pytest.mark.parametrize("block", ["leaderboard", "dataset_splits"])
def test_with_a_new_phase_an_update_makes_numbers_of_all_ids(
    block: str, bundle: dict[str, bytes], tmp_path: Path
) -> None:
    config = config_in(bundle)
    row = {**config["challenge_phase_splits"][0], "challenge_phase_id": 9}
    phases = [*config["challenge_phases"], {**config["challenge_phases"][0], "id": 9, "codename": "another"}]
    another = {**config[block][0], "id": "9.0", "name": "another", "codename": "another"}
    rows = (("challenge_phase_splits",), [*config["challenge_phase_splits"], row])
    path = written(bundle, tmp_path, rows, (("challenge_phases",), phases), ((block,), [*config[block], another]))
    assert "error 500" in answer_to_update(path, approved=False)
    assert errors(path) == []


def test_sponsors_are_left_out_of_an_update(bundle: dict[str, bytes], tmp_path: Path) -> None:
    state = ServerState.after_push(config_in(bundle), source="a test")
    assert errors(written(bundle, tmp_path, (("sponsors",), [{"name": "x"}])), state) == []
    results = errors(written(bundle, tmp_path, (("sponsors",), None)), state)
    assert [problem.server_message for problem in results] == [NONE]


def test_an_empty_upload_is_refused_in_the_servers_words(tmp_path: Path) -> None:
    (tmp_path / "bundle.zip").touch()
    assert refusal(check(str(tmp_path / "bundle.zip"))) == "The submitted file is empty."


def test_keys_that_cannot_be_sorted_are_an_error_of_an_approved_challenge(
    bundle: dict[str, bytes], tmp_path: Path
) -> None:
    path = written(bundle, tmp_path, ((*SCHEMA, "metadata", 1), {"sort_ascending": False}))
    assert "error 500" in answer_to_update(path, approved=True)
    assert answer_to_update(path, approved=False) == ""


def answer_to_update(path: str, *, approved: bool) -> str:
    state = ServerState.after_push(
        yaml.safe_load((ROOT / "challenge_config.yaml").read_bytes()), source="a test", approved=approved
    )
    with Bundle(path) as opened:
        return refusal(list(check_server_rules(opened, state)))


@pytest.mark.parametrize(
    ("place", "value", "gone", "row"),
    [
        (("dataset_splits", 0, "name"), "x" * 300, "Dataset split 1 not", "Invalid dataset split id 1 found in"),
        ((*SCHEMA, "default_order_by"), "nope", "The leaderboard with ID: 1 not", "Invalid leaderboard id 1 found in"),
        ((*PHASE, "name"), "x" * 300, "Challenge phase 4 not", "Invalid phased id 4 found in"),
    ],
    ids=["split", "leaderboard", "phase"],
)
def test_what_an_update_refuses_is_as_good_as_gone_for_all_that_names_it(
    place: tuple[Any, ...], value: str, gone: str, row: str, bundle: dict[str, bytes], tmp_path: Path
) -> None:
    answer = answer_to_update(written(bundle, tmp_path, (place, value)), approved=True)
    assert f"ERROR: {gone} found in config. Deletion of " in answer
    assert f"ERROR: {row} challenge phase split 1." in answer
    assert "approved by an admin" not in answer


def test_an_update_is_refused_row_by_row_in_the_servers_order(bundle: dict[str, bytes], tmp_path: Path) -> None:
    """In the real server's words and order: rows of the bundle, then their ids, then missing rows."""
    answer = answer_to_update(written(bundle, tmp_path, ((*ROW, "leaderboard_id"), 99)), approved=True).splitlines()
    assert [line.split(" (")[0].split(" found")[0] for line in answer] == [
        "ERROR: Cannot add a new leaderboard/dataset-split mapping for an existing challenge phase",
        "ERROR: Invalid leaderboard id 99",
        "ERROR: Challenge phase split",
    ]


def test_without_rows_an_update_is_refused_once(bundle: dict[str, bytes], tmp_path: Path) -> None:
    answer = answer_to_update(written(bundle, tmp_path, (("challenge_phase_splits",), [])), approved=True)
    assert answer == "ERROR: There is no key for challenge phase splits."


@pytest.mark.parametrize("block", ["leaderboard", "dataset_splits"])
@pytest.mark.parametrize("number", ["1.0", []])
def test_ids_of_an_approved_challenge_are_whole_numbers(
    block: str, number: Any, bundle: dict[str, bytes], tmp_path: Path
) -> None:
    """The server's own conversion of such an id ends in an error 500."""
    path = written(bundle, tmp_path, ((block, 0, "id"), number))
    assert "error 500" in answer_to_update(path, approved=True)
    assert "error 500" not in answer_to_update(path, approved=False)


@pytest.mark.parametrize("block", ["leaderboard", "challenge_phases", "dataset_splits"])
@pytest.mark.parametrize("number", [None, 0, "", []])
def test_an_item_without_a_number_is_reported_and_never_kept(
    block: str, number: Any, bundle: dict[str, bytes], tmp_path: Path
) -> None:
    """EvalAI accepts an item that no row refers to, and fails on every later update."""
    config = config_in(bundle)
    another = {**config[block][0], "id": number, "codename": "another"}
    path = written(bundle, tmp_path, ((block,), [*config[block], another]))
    with Bundle(path) as opened:
        server_rules = list(check_server_rules(opened))
    assert [problem.accepted for problem in server_rules if problem.subject.endswith(".id")] == [True]
    assert "cannot update it" in refusal(server_rules), "the rehearsal refuses it in a sentence"


@pytest.mark.parametrize(
    ("name", "change"), [("damaged", (b"PEEK", b"PEAK")), (".", None), ("x" * 256, None), ("y/" + "é" * 128, None)]
)
def test_a_file_that_nothing_names_must_unpack_too(
    name: str, change: tuple[bytes, bytes] | None, bundle: dict[str, bytes], tmp_path: Path
) -> None:
    path = Path(written(bundle, tmp_path, **{name: b"PEEK"}))
    path.write_bytes(path.read_bytes().replace(*change) if change else path.read_bytes())
    with pytest.raises(BundleRefusedError) as refused:
        Bundle(str(path))
    assert ("cannot be extracted" if change else "error 500") in str(refused.value)


@pytest.mark.parametrize("value", ["!!bool a", "!!int ''", "!!timestamp a"])
def test_a_value_that_is_not_what_its_tag_says_is_located(value: str, tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("challenge_config.yaml", f"title: x\ny: {value}\n")
    with pytest.raises(BundleRefusedError, match=r"yaml:2:4: .*error 500"):
        Bundle(str(path))


def test_a_text_that_is_too_large_is_a_limit_of_ours(bundle: dict[str, bytes], tmp_path: Path) -> None:
    path = written(bundle, tmp_path, **{"templates/description.html": b"x" * (5 << 20)})
    (problem,) = check(path)
    assert problem.accepted
    assert not problem.quote


def test_the_queue_cannot_become_a_fifo(bundle: dict[str, bytes], tmp_path: Path) -> None:
    state = ServerState.after_push(config_in(bundle), source="a test")
    results = errors(written(bundle, tmp_path, (("use_fifo_sqs",), True)), state)
    assert "use_fifo_sqs cannot be changed after" in str(results[0])


def test_the_web_form_wants_more_than_a_push(bundle: dict[str, bytes], tmp_path: Path) -> None:
    assert check_web_form(written(bundle, tmp_path)) == []
    wrong = [{"name": "team_size", "is_visible": True}, {"name": "method_name"}]
    changes = [
        ((*PHASE, "test_annotation_file"), None),
        ((*PHASE, "default_submission_meta_attributes"), wrong),
        ((*PHASE, "codename"), "sequences.dev"),
    ]
    path = written(bundle, tmp_path, *changes, **{"data/other.yml": b"a: 1", "__MACOSX/x.yaml": b""})
    assert errors(path) == []
    name, please = "Sequences, development", "Please add it and  then try again!"
    answer = [problem.server_message or problem.fault for problem in check_web_form(path)]
    assert answer == [
        "There are 2 YAML files instead of one in zip folder!",
        f"There is no key for test annotation file for challenge phase {name} in yaml file. {please}",
        "Default meta attribute: team_size in phase: 4 does not exist!",
        "Please enter the following to the default submission meta attribute in phase 4: is_visible.",
        "is 'sequences.dev', from which the form makes a URL",
    ]


def test_problems_come_in_the_same_order_every_time(bundle: dict[str, bytes], tmp_path: Path) -> None:
    path = written(bundle, tmp_path, (("challenge_phases",), [{"codename": name} for name in "zyxwvutsrq"]))
    places = [problem.subject for problem in check(path) if problem.fault.startswith("lacks the phase")]
    assert len(places) == 10
    names = [problem.fault.split()[-1] for problem in check(path) if problem.fault.startswith("lacks the phase")]
    assert "".join(names) == "zyxwvutsrq", "the YAML's own order, not that of a set"


def test_a_snippet_of_the_hosts_page_runs_as_pasted() -> None:
    text = (ROOT / "docs/hosts.md").read_text().partition("## phases.py")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("    ") or not line.strip()]
    code = "\n".join(line.removeprefix("    ") for line in lines)
    scope: dict[str, Any] = {"__package__": "evaluation_script", "__name__": "evaluation_script.pasted"}
    exec(compile(code, "docs/hosts.md", "exec"), scope)
    assert [phase.codename for phase in scope["PHASES"]] == ["my-phase"]
