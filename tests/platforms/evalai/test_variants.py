"""A variant of the bundle differs in a few keys, and every line stays in place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from segjudge.evaluation_script.files.problems import HostError
from segjudge.platforms.evalai.bundle.build import FLAGS, VARIANTS, build, make_variant
from segjudge.platforms.evalai.bundle.check import check, refusal
from segjudge.platforms.evalai.bundle.fields import DEFAULT_IMAGE
from tests.builders import ROOT
from tests.demo_challenge import CODENAMES
from tests.outcomes import outcome_of

TEXT = (ROOT / "challenge_config.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_is_accepted(variant: str, tmp_path: Path) -> None:
    built = build(str(ROOT), str(tmp_path / "x.zip"), variant, "registry.example/env:1" * (variant == "code-upload"))
    problems = check(built.path)
    assert [str(problem) for problem in problems] == []
    assert refusal(problems) == ""


@pytest.mark.parametrize("variant", VARIANTS)
def test_only_the_keys_of_the_table_change_and_lines_stay(variant: str) -> None:
    after, changes = make_variant(TEXT, variant)
    before, now = TEXT.splitlines(), after.splitlines()
    assert len(before) == len(now)
    differing = [number for number, (old, new) in enumerate(zip(before, now), 1) if old != new]
    assert differing == [change.line for change in changes]
    assert [now[change.line - 1].strip() for change in changes] == [change.after for change in changes]
    config = yaml.safe_load(after)
    assert tuple(config[key] for key in FLAGS) == VARIANTS[variant]
    for phase in config["challenge_phases"]:
        assert ("test_annotation_file" in phase) == (variant not in ("remote", "code-upload"))
        assert phase.get("environment_image") == (DEFAULT_IMAGE if variant == "code-upload" else None)


def test_the_config_of_this_repository_is_the_prediction_variant() -> None:
    assert make_variant(TEXT, "prediction") == (TEXT, [])


def test_what_the_change_did_not_reach_is_said(tmp_path: Path) -> None:
    config = (ROOT / "challenge_config.yaml").read_text()
    first = "    test_annotation_file: annotations/sequences-dev.zip\n"
    for name in ("annotations", "templates", "evaluation_script"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "challenge_config.yaml").write_text(config.replace(first, first + first))
    with pytest.raises(HostError) as caught:
        build(str(tmp_path), str(tmp_path / "x.zip"), "remote")
    assert str(caught.value) == (
        "challenge_config.yaml: the phase sequences-dev still names annotations/sequences-dev.zip; "
        "write test_annotation_file once in each phase, on its own line"
    )


def test_a_code_upload_without_an_image_is_refused(tmp_path: Path) -> None:
    """Only lenient builds, for rehearsals on this machine, accept an image that no registry has."""
    with pytest.raises(HostError) as refused:
        build(str(ROOT), str(tmp_path / "x.zip"), "code-upload")
    assert str(refused.value) == (
        f"challenge_config.yaml: no environment_image that EvalAI can pull in {', '.join(CODENAMES)}; "
        "push yours to a registry and name it: --environment-image REGISTRY/NAME:TAG"
    )
    assert not (tmp_path / "x.zip").exists()
    assert build(str(ROOT), str(tmp_path / "x.zip"), "code-upload", lenient=True).path


HOST, IMAGE = (
    "    # no test_annotation_file: it stays with the host\n",
    "    environment_image: segjudge-environment:latest\n",
)
CODE, STATIC, REMOTE = "is_docker_based: True\n", "is_static_dataset_code_upload: True\n", "remote_evaluation: True\n"
NOT_CODE, NOT_STATIC = "is_docker_based: False\n", "is_static_dataset_code_upload: False\n"
OWN_LINE = "challenge_config.yaml:{}: write {} on its own line, so that variants can change it"
ON_2, ON_1, ON_3 = (OWN_LINE.format(line, "test_annotation_file") for line in (2, 1, 3))
CODE_ON_1, NO_MAPPING = (
    OWN_LINE.format(1, "is_docker_based"),
    "challenge_config.yaml: is empty or not a mapping of keys",
)
NO_IMAGE = (
    "challenge_config.yaml:2: the phase has no environment_image: write environment_image: segjudge-environment:latest"
)
STARTER = """title: x
remote_evaluation: False
is_docker_based: False  # no code
challenge_phases:
  - id: 1
    test_annotation_file: a.zip
    environment_image: mine
"""
#: How hosts write the keys → the text, and by variant the new lines by number, or the sentence.
WRITTEN: dict[str, tuple[str, dict[str, Any]]] = {
    "as the starter": (
        STARTER,
        {
            "prediction": {},
            "remote": {2: REMOTE, 6: HOST},
            "code-upload": {3: "is_docker_based: True  # no code\n", 6: HOST},
            "static-code-upload": {3: "is_docker_based: True  # no code\n", 8: STATIC},
        },
    ),
    "without flags and a last line break": (
        "title: x\nchallenge_phases:\n  - id: 1\n    test_annotation_file: a.zip",
        {
            "prediction": {},
            "remote": {4: HOST, 5: REMOTE},
            "code-upload": {4: IMAGE, 5: CODE},
            "static-code-upload": {4: "    test_annotation_file: a.zip\n", 5: CODE, 6: STATIC},
        },
    ),
    "lines of Windows": (
        "title: x\r\nis_docker_based: yes\r\nchallenge_phases:\r\n  - id: 1\r\n    test_annotation_file: a.zip # truth\r\n",
        {
            "prediction": {2: "is_docker_based: False\r\n"},
            "remote": {
                2: "is_docker_based: False\r\n",
                5: HOST.replace("\n", "\r\n"),
                6: "remote_evaluation: True\r\n",
            },
            "code-upload": {5: "    environment_image: segjudge-environment:latest  # truth\r\n"},
            "static-code-upload": {6: "is_static_dataset_code_upload: True\r\n"},
        },
    ),
    "neither a file nor an image": (
        "challenge_phases:\n  - id: 1\n    name: x\n",
        {"prediction": {}, "remote": {4: REMOTE}, "code-upload": NO_IMAGE, "static-code-upload": {4: CODE, 5: STATIC}},
    ),
    "a file beside the dash": (
        "challenge_phases:\n  - test_annotation_file: a.zip\n    id: 1\n",
        {"prediction": {}, "remote": ON_2, "code-upload": ON_2, "static-code-upload": {4: CODE, 5: STATIC}},
    ),
    "phases in braces": (
        "challenge_phases: [{id: 1, test_annotation_file: a.zip}]\n",
        {"prediction": {}, "remote": ON_1, "code-upload": ON_1, "static-code-upload": {2: CODE, 3: STATIC}},
    ),
    "a file in two lines": (
        "challenge_phases:\n  - id: 1\n    test_annotation_file:\n      a.zip\n",
        {"prediction": {}, "remote": ON_3, "code-upload": ON_3, "static-code-upload": {5: CODE, 6: STATIC}},
    ),
    "all in braces": (
        "{title: x, is_docker_based: false}\n",
        {
            "prediction": {},
            "remote": OWN_LINE.format(1, "remote_evaluation"),
            "code-upload": CODE_ON_1,
            "static-code-upload": CODE_ON_1,
        },
    ),
    "a list": ("- a\n", dict.fromkeys(VARIANTS, NO_MAPPING)),
}


@pytest.mark.parametrize("image", ["", "me/image"])
@pytest.mark.parametrize("about", WRITTEN)
def test_a_variant_changes_lines_as_hosts_write_them(about: str, image: str) -> None:
    text, outcomes = WRITTEN[about]
    for variant, expected in outcomes.items():
        outcome = outcome_of(lambda variant=variant: make_variant(text, variant, image))  # type: ignore[misc]
        if isinstance(outcome, str):
            assert outcome.replace(image or DEFAULT_IMAGE, DEFAULT_IMAGE) == f"HostError: {expected}"
            continue
        changed, changes = outcome
        before, after = text.splitlines(keepends=True), changed.splitlines(keepends=True)
        differing = {number: line for number, line in enumerate(after, 1) if before[number - 1 : number] != [line]}
        images = {7: "    environment_image: me/image\n"} if about == "as the starter" and image else {}
        lines = {number: line.replace(DEFAULT_IMAGE, image or DEFAULT_IMAGE) for number, line in expected.items()}
        assert differing == {**lines, **(images if variant == "code-upload" else {})}
        shown = [change for change in changes if differing[change.line].lstrip().startswith(change.after)]
        assert shown == changes
        ends = {
            number for number, line in differing.items() if before[number - 1 :] and line == f"{before[number - 1]}\n"
        }
        assert {change.line for change in changes} == {*differing} - ends
        for change in changes:
            old = before[change.line - 1].strip() if change.line <= len(before) else "(nothing)"
            assert str(change) == f"challenge_config.yaml:{change.line}: {old} → {change.after}"
