"""Sentences about problems: repeated ones are joined, many are counted, and names are safe to print."""

from __future__ import annotations

import pytest

from segjudge.evaluation_script.files.problems import (
    Flaw,
    Problem,
    Problems,
    SubmissionError,
    ascii_text,
    name_hint,
    name_list,
    near_hint,
    nearest,
    printable,
    printable_lines,
    quantity,
)


def collect(*subjects: str, fault: str = "is empty", stop: bool = False) -> Problems:
    problems = Problems()
    for subject in subjects:
        problems.add(Problem(subject, fault, "Draw it"))
    if stop:
        problems.stop()
    return problems


@pytest.mark.parametrize(
    ("subjects", "text"),
    [
        (["a/1.png"], "a/1.png: is empty. Draw it."),
        (["a/1.png", "a/2.png"], "a: each of 2 files (1.png, 2.png) is empty. Draw it."),
        (
            [f"a/{number}.png" for number in range(4)],
            "a: each of 4 files (0.png, 1.png, 2.png and 1 more) is empty. Draw it.",
        ),
        (["dog, frame 7", "dog, frame 9"], "dog: each of 2 frames (7, 9) is empty. Draw it."),
        (["dog, mask 1", "dog, mask 2"], "dog: each of 2 masks (1, 2) is empty. Draw it."),
        (
            [f"r.json, record {number} (image 3)" for number in range(5)],
            "r.json, records 0 (image 3), 1 (image 3), 2 (image 3) and 2 more: each is empty. Draw it.",
        ),
        (["line 1", "line 1,200"], "lines 1, 1,200: each is empty. Draw it."),
    ],
)
def test_one_mistake_in_many_places_is_one_problem(subjects: list[str], text: str) -> None:
    problems = collect(*subjects)
    assert (problems.text(), problems.count, problems.places) == (text, 1, len(subjects))
    with pytest.raises(SubmissionError) as caught:
        problems.raise_if_any()
    assert str(caught.value) == text


def test_a_stopped_check_says_that_there_may_be_more() -> None:
    assert collect(*(f"record {number}" for number in range(3)), stop=True).text() == (
        "records 0, 1, 2: each is empty. Draw it."
    )
    assert collect(*(f"record {number}" for number in range(7)), stop=True).text() == (
        "records 0, 1, 2 and at least 4 more: each is empty. Draw it."
    )
    assert collect("a", "b", stop=True).text().splitlines() == [
        "2 or more problems found in your submission:",
        "  1. a: is empty. Draw it.",
        "  2. b: is empty. Draw it.",
    ]


def test_twenty_problems_are_shown_and_the_rest_counted() -> None:
    problems = collect(*(f"{chr(97 + number)}" for number in range(20)))
    assert problems.text("the truth").splitlines()[-1] == "  20. t: is empty. Draw it."
    for subject in ("u", "v", "v/1", "v/2"):
        problems.add(Problem(subject, "is empty", "Draw it"))
    first, *lines, last = problems.text("the truth").splitlines()
    assert (first, len(lines), last) == (
        "24 problems found in the truth:", 20, "  ... and 4 more like these.",
    )  # fmt: skip
    others = Problems()
    others.extend(list(problems), problems.count)
    others.extend(list(problems), problems.count)
    assert (len(list(others)), others.count, others.places, bool(others)) == (20, 48, 48, True)
    assert (list(Problems()), bool(Problems())) == ([], False)
    Problems().raise_if_any()


def test_a_flaw_becomes_a_problem_of_its_file() -> None:
    flaw = Flaw("holds \x1b", "Save it again")
    assert (str(flaw), str(flaw.as_problem("a\nb.png"))) == ("holds \x1b", "a\\nb.png: holds \\x1b. Save it again.")
    assert str(SubmissionError.from_problem(flaw.as_problem("a"))) == "a: holds \\x1b. Save it again."


def test_names_are_short_and_move_no_cursor() -> None:
    assert [printable("x" * length) for length in (120, 121)] == ["x" * 120, "x" * 120 + "..."]
    assert printable("a\u202eb\x1b[2J") == "a\\u202eb\\x1b[2J"
    assert printable_lines("a\x07\nb") == "a\\x07\nb"
    assert ascii_text("f\u00fcnf") == "f\\xfcnf"


def test_lists_of_names_end_with_the_number_of_the_rest() -> None:
    names = ["a", "b", "c", "d", "e"]
    assert name_list(names[:3]) == "a, b, c"
    assert name_list(names) == "a, b, c and 2 more"
    assert name_list(names, 4) == "a, b, c, d and 1 more"


def test_a_similar_name_is_proposed() -> None:
    names = ["J-Mean", "F-Mean"]
    assert (nearest("j-maen", names), nearest("precision", names)) == ("J-Mean", "")
    assert (near_hint("j-maen", names), near_hint("precision", names)) == ("; did you mean J-Mean?", "")
    assert name_hint("j-maen", names) == ", only J-Mean, F-Mean; did you mean J-Mean?"
    assert name_hint("precision", names, 1) == ", only J-Mean and 1 more"
    assert nearest("dog", ["Dog", "DOG"]) == "Dog"


def test_quantities_agree_with_their_nouns() -> None:
    assert [quantity(count, "frame") for count in (0, 1, 2, 1200)] == [
        "0 frames",
        "1 frame",
        "2 frames",
        "1,200 frames",
    ]
    assert [quantity(1, "frame", of) for of in (1, 3)] == ["1 of 1 frame", "1 of 3 frames"]
