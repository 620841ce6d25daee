"""Small bundles for EvalAI, each damaged in one place, and all that `check` says about them and the server answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from segjudge.platforms.evalai.bundle.check import check, check_web_form, refusal
from segjudge.platforms.evalai.bundle.server_state import ServerState
from segjudge.platforms.rules.problems import BundleProblem
from tests.builders import ROOT, zipped
from tests.platforms.damages import GONE, VALUES, Config, brief, change, grow, plain, put, show, write_yaml
from tests.platforms.evalai.bundles import CONFIG, FILES, SCRIPT


def mark_answer(problem: BundleProblem, answers: tuple[str, str]) -> str:
    """Return `*` for words of the server's answer, `+` if only saving finds them, and `-` where nothing else is refused."""
    answer, validation = [(str(problem.error or "") or problem.quote or str(problem)) in text for text in answers]
    return {(True, True): "*", (True, False): "+", (False, True): "-"}.get((answer, validation), "")


def examine(
    config: Any, state: ServerState | None = None, files: Mapping[str, bytes | None] | None = None, path: str = ""
) -> list[str]:
    """Return what is said about a bundle, about an update if there is a state, and by the form."""
    content = {
        "challenge_config.yaml": config if isinstance(config, bytes) else write_yaml(config),
        **FILES,
        **(files or {}),
    }
    Path("b.zip").write_bytes(zipped({name: data for name, data in content.items() if data is not None}, method=0))
    problems = check("b.zip", state)
    answers = refusal(problems), refusal(problems, saving=False)
    form = [] if state else [problem for problem in check_web_form("b.zip") if problem not in problems]
    return [
        *(brief(problem, path, mark_answer(problem, answers)) for problem in problems),
        *(f"form {brief(problem, path)}" for problem in form),
    ]


def examine_ours(config: Config, table: str, state: ServerState | None = None) -> list[str]:
    """Return what is said about a bundle whose scorers are Segjudge's, judged by their names."""
    others = dict.fromkeys(("files.py", "scoring/__init__.py", "scoring/phase.py", "runner/guard.py"), "")
    script = zipped({**SCRIPT, **others, "phases.py": table})
    truth = (ROOT / "annotations/sequences-dev.zip").read_bytes()
    return examine(config, state, files={"script.zip": script, "truth.zip": truth})


OTHERS = VALUES | {
    "two words": "Two words", "past": plain("2020-01-01 00:00:00"), "moment": plain("2021-01-01 00:00:00"),
    "far": plain("2066-01-01 00:00:00"), "five": list("abcde"), "long.zip": f"{'long/' * 17}s.zip",
    "other account": "1.dkr.ecr.us.amazonaws.com/other-x", "twice": ["score", "score"], "checkbox": "checkbox",
    "NUL in a list": ["a\0b", {"a": "\0"}],
}  # fmt: skip


def alter(*changes: tuple[str, Any], config: Config = CONFIG) -> Config:
    return change(config, *changes)


def extend(block: str, **values: Any) -> Config:
    return grow(CONFIG, block, **values)


PHASE, ROW, ATTRIBUTE = (
    CONFIG["challenge_phases"][0],
    CONFIG["challenge_phase_splits"][0],
    {"name": "a", "type": "text"},
)

#: A key, the values that are put there (`VALUES` has what they stand for), and what is said of each.
DAMAGES: list[tuple[str, ...]] = [
    ("title", "gone, null, 0", "8* is missing. Give the challenge a title | Please add the challenge title"),
    ("title", "7, true, date", "8* is VALUE, not a text (500). Put it in quotes"),
    ("title", "300 letters", "24* has 300 characters. Shorten it to 100 | [Ensure this field has no more than 100 characters. (max_length)]"),
    ("title", "half a character",
     "68+ holds half of a character (a lone surrogate), which EvalAI's database rejects. Remove it | Error in creating challenge: None. Please check the yaml configuration!",
     '68 begins with VALUE; EvalAI makes the URLs of its phases from the first word. Begin it with a word of only a-z, A-Z, 0-9, - and _, then a space | Error in creating challenge: challenge phase 1 :. Please check the yaml configuration![Enter a valid "slug" consisting of letters, numbers, underscores or hyphens. (invalid)]',
     "form challenge_phases[0].codename: is VALUE, from which the form makes a URL. Use only a-z, A-Z, 0-9, - and _, or push the bundle"),
    ("title", "{a: 1}", "24* is {'a': 1}. Write a text | [Not a valid string. (invalid)]",
     '68 begins with VALUE; EvalAI makes the URLs of its phases from the first word. Begin it with a word of only a-z, A-Z, 0-9, - and _, then a space | Error in creating challenge: challenge phase 1 :. Please check the yaml configuration![Enter a valid "slug" consisting of letters, numbers, underscores or hyphens. (invalid)]',
     "form challenge_phases[0].codename: is VALUE, from which the form makes a URL. Use only a-z, A-Z, 0-9, - and _, or push the bundle"),
    ("description", "gone, null, empty, []", "10* is missing. Name an .html file in templates/ | Please add the challenge description"),
    ("description", "7", "8* is VALUE, not a path (500). Name an .html file in templates/"),
    ("description", "text",
     "15* names VALUE, which does not exist. Add the file, or correct the path | File at path description not found. Please specify a valid file path"),
    ("description", "logo.png", "16* names VALUE, which is not an .html file. Rename it | File description is not a HTML file. Please specify a valid HTML file"),
    ("description", "../text.html", "14* points outside the bundle (../text.html). Name a file in it | Invalid file path for description."),
    ("description", "empty.html, blank.html", "warning VALUE is empty. Write the text, unless the page is meant to be empty"),
    ("description", "nul.html", "24* VALUE holds a NUL character. Remove it | [Null characters are not allowed. (null_characters_not_allowed)]"),
    ("description", "latin.html", "* VALUE is not UTF-8 (500). Save it as UTF-8"),
    ("evaluation_details", "gone", "11* is missing. Name an .html file in templates/ | Please add the evaluation details"),
    ("terms_and_conditions", "gone", "12* is missing. Name an .html file in templates/ | Please add the terms and conditions."),
    ("submission_guidelines", "gone", "13* is missing. Name an .html file in templates/ | Please add the submission guidelines."),
    ("image", "gone, null"),
    ("image", "0, empty, []",
     "24* names nothing, which is not a .png, .jpg or .jpeg file in the bundle (with a lower-case ending). Add the picture, or correct the path | [The submitted data was not a file. Check the encoding type on the form. (invalid)]"),
    ("image", "7", "9* is VALUE, not a path (500). Name a picture in the bundle"),
    ("image", "text, text.html, truth.txt",
     "24* names VALUE, which is not a .png, .jpg or .jpeg file in the bundle (with a lower-case ending). Add the picture, or correct the path | [The submitted data was not a file. Check the encoding type on the form. (invalid)]"),
    ("image", "odd.png",
     "24* VALUE is not a picture. Replace it | [Upload a valid image. The file you uploaded was either not an image or a corrupted image. (invalid_image)]"),
    ("image", "empty.png", "24* VALUE is empty. Replace it | [The submitted file is empty. (empty)]"),
    ("evaluation_script", "gone, null, []",
     "17* is missing. Write evaluation_script.zip; the build makes it | ERROR: There is no key for the evaluation script in the YAML file. Please add it and then try again!"),
    ("evaluation_script", "7", "8* is VALUE, not a path (500). Write evaluation_script.zip; the build makes it"),
    ("evaluation_script", "text, logo.png",
     "18* is VALUE, not a .zip. Write evaluation_script.zip; the build makes it | ERROR: Please pass in a zip file as evaluation script. If using the `evaluation_script` directory (recommended), it should be `evaluation_script.zip`."),
    ("evaluation_script", "none.zip",
     "19* names VALUE, which does not exist. Write evaluation_script.zip; the build makes it | ERROR: No evaluation script is present in the zip file. Please add it and then try again!"),
    ("evaluation_script", "empty.zip", "24* VALUE is empty. Write evaluation_script.zip; the build makes it | [The submitted file is empty. (empty)]"),
    ("evaluation_script", "odd.zip", "later* VALUE is not a zip. Rebuild it with __init__.py at the top, not in a folder"),
    ("evaluation_script", "bare.zip", "later* VALUE has no __init__.py at its top. Rebuild it with __init__.py at the top, not in a folder"),
    ("evaluation_script", "long.zip", "24* names a path of 90 characters. Keep it to 72 | [Ensure this filename has at most 100 characters (it has 118). (max_length)]"),
    ("start_date", "gone, null, []", "20* is missing. Write it as 2026-01-01 00:00:00 | ERROR: Please add the start_date and end_date."),
    ("start_date", "7", "22* and end_date have different types (7 and 2046-01-01 00:00:00) (500). Write both unquoted, as 2026-01-01 00:00:00",
     "24 is VALUE. Write it unquoted, as 2026-01-01 00:00:00 | [Datetime has wrong format. Use one of these formats instead: YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]. (invalid)]"),
    ("start_date", "date", "22* and end_date have different types (2026-01-01 and 2046-01-01 00:00:00) (500). Write both unquoted, as 2026-01-01 00:00:00",
     "24 is VALUE. Add the time, as VALUE 00:00:00 | [Expected a datetime but got a date. (date)]"),
    ("start_date", "late", "21* is after end_date. Correct one | ERROR: Start date cannot be greater than end date.",
     "warning challenge_phases[0].start_date: is before the challenge starts. Nobody can submit until then"),
    ("start_date", "moment in quotes",
     "22* and end_date have different types ('2026-01-01 12:30:00' and 2046-01-01 00:00:00) (500). Write both unquoted, as 2026-01-01 00:00:00",
     "warning is in quotes. Write it unquoted: a quoted and an unquoted date together fail",
     "warning challenge_phases[0].start_date: is before the challenge starts. Nobody can submit until then"),
    ("end_date", "text", "22* start_date: and end_date have different types (2026-01-01 00:00:00 and 'text') (500). Write both unquoted, as 2026-01-01 00:00:00",
     "24 is VALUE. Write it unquoted, as 2026-01-01 00:00:00 | [Datetime has wrong format. Use one of these formats instead: YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]. (invalid)]",
     "warning is in quotes. Write it unquoted: a quoted and an unquoted date together fail"),
    ("end_date", "moment", "21* start_date: is after end_date. Correct one | ERROR: Start date cannot be greater than end date.",
     "warning lies in the past (2021-01-01). EvalAI would accept no submissions",
     "warning challenge_phases[0].end_date: is after the challenge ends. Nobody can submit after that"),
    ("end_date", "moment with a zone", "warning lies in the past (2026-01-01). EvalAI would accept no submissions",
     "warning has a time zone, but the other date has none: a server with PyYAML 6 rejects the pair. Write both the same way, preferably in UTC without a zone",
     "warning challenge_phases[0].end_date: is after the challenge ends. Nobody can submit after that"),
    ("end_date", "past", "21* start_date: is after end_date. Correct one | ERROR: Start date cannot be greater than end date.",
     "warning lies in the past (2020-01-01). EvalAI would accept no submissions",
     "warning challenge_phases[0].end_date: is after the challenge ends. Nobody can submit after that"),
    ("end_date", "far", "warning is 40 years after the start. Write an earlier year, unless this is intended"),
    ("published", "null", "24* is empty. Give it a value, or remove the line | [This field may not be null. (null)]"),
    ("published", "7, text, []", "24* is VALUE. Write True or False | [Must be a valid boolean. (invalid)]"),
    ("published", "'1'", "warning is VALUE, which EvalAI reads as True. Write True"),
    ("max_team_members", "-1", "24* is VALUE. Write 0 or more | [Ensure this value is greater than or equal to 0. (min_value)]"),
    ("max_team_members", "2.5, true, empty, text, nan, [], {}", "24* is VALUE. Write a whole number | [A valid integer is required. (invalid)]"),
    ("max_team_members", "2147483648", "24* is VALUE. Write 2147483647 or less | [Ensure this value is less than or equal to 2147483647. (max_value)]"),
    ("forum_url", "gone, null, empty, blank, http://[::1]:80/, http://a@1.2.3.4"),
    ("forum_url", "0, 7, true, date, [], text, ftp://a.b, http://é.org/?a b, http://[::x]/", "24* is VALUE. Write a URL | [Enter a valid URL. (invalid)]"),
    ("forum_url", "300 letters",
     "24* has 300 characters. Shorten it to 100 | [Ensure this field has no more than 100 characters. (max_length), Enter a valid URL. (invalid)]"),
    ("forum_url", "NUL", "24* is VALUE. Write a URL | [Null characters are not allowed. (null_characters_not_allowed), Enter a valid URL. (invalid)]",
     "68 holds a NUL character, which EvalAI's database rejects. Remove it | Error in creating challenge: None. Please check the yaml configuration!"),
    ("allowed_email_domains", "0, 7, 7", '24* is VALUE. Begin each item with - | [Expected a list of items but got type "int". (not_a_list)]'),
    ("allowed_email_domains", "empty, text, [text, null]", '24* is VALUE. Begin each item with - | [Expected a list of items but got type "str". (not_a_list)]'),
    ("allowed_email_domains", "[{}]", "24* is VALUE. Begin each item with - | {0: [Not a valid string. (invalid)]}"),
    ("allowed_email_domains", "{}", '24* is VALUE. Begin each item with - | [Expected a list of items but got type "dict". (not_a_list)]'),
    ("allowed_email_domains", "date", '24* is VALUE. Begin each item with - | [Expected a list of items but got type "date". (not_a_list)]'),
    ("worker_python_version", "null", "24* is empty. Use one of 3.7, 3.8, 3.9 | [This field may not be null. (null)]"),
    ("worker_python_version", "2.5", '24* is VALUE. Use one of 3.7, 3.8, 3.9 | ["2.5" is not a valid choice. (invalid_choice)]'),
    ("worker_image_url", "7, text, other account",
     "24* is your own image. Remove it | [worker_image_url must be an EC2 AMI (ami-...) or an EvalAI ECR image in this AWS account (evalai-* repositories). (invalid)]"),
    ("worker_image_url", "300 letters", "24* has 300 characters. Shorten it to 200 | [Ensure this field has no more than 200 characters. (max_length)]"),
    ("slug", "a/b, []", '24* is VALUE. Remove the line: the server makes it | [Enter a valid "slug" consisting of letters, numbers, underscores or hyphens. (invalid)]',
     "warning is ignored by EvalAI: the server makes it from the title. Remove it"),
    ("slug", "NUL",
     '24* is VALUE. Remove the line: the server makes it | [Null characters are not allowed. (null_characters_not_allowed), Enter a valid "slug" consisting of letters, numbers, underscores or hyphens. (invalid)]',
     "68 holds a NUL character, which EvalAI's database rejects. Remove it | Error in creating challenge: None. Please check the yaml configuration!",
     "warning is ignored by EvalAI: the server makes it from the title. Remove it"),
    ("tags", "null, 0, 7, 7", "64* is VALUE, not a list (500). Begin each tag with -, or remove the line"),
    ("tags", "text", "warning is not a list: EvalAI reads it as the tags t, e, x, t. Begin each tag with -, or remove the line"),
    ("tags", "[text, null]",
     "64* has 5 letters, and EvalAI makes each of them a tag. Begin each tag with -, or remove the line | ERROR: Tags are limited to 4. Please remove extra tags then try again!"),
    ("tags", "[{}]", "68+ holds a list or a mapping. Write each tag as text | Error in creating challenge: None. Please check the yaml configuration!"),
    ("tags", "{a: 1}", "warning is not a list: EvalAI reads it as the tags a. Begin each tag with -, or remove the line"),
    ("tags", "date", "64* is VALUE, 1, 1), not a list (500). Begin each tag with -, or remove the line"),
    ("tags", "five", "64* has 5 tags. Keep four | ERROR: Tags are limited to 4. Please remove extra tags then try again!"),
    ("domain", "null, 7, text",
     "65* is VALUE. Use one of CV, NLP, RL, MM, AUD, TAB, or remove the line | ERROR: Domain name is incorrect. Please enter correct domain name then try again!"),
    ("prizes", "null, 0, 7, text, [text, 7, null], {a: 1}, date", "66* is not a list of mappings (500). Begin each item with - rank:, or remove the line"),
    ("prizes", "[{}]", "66* prizes[0]: lacks rank, amount (500). Add it"),
    ("prizes.0.rank", "gone", "66* prizes[0]: lacks rank (500). Add it"),
    ("prizes.0.rank", "null", "66* is VALUE. Write 1 for the winner | ERROR: Invalid rank value None. Rank should be an integer."),
    ("prizes.0.rank", "2147483648",
     "warning cannot be stored (Ensure this value is less than or equal to 2147483647), so EvalAI silently drops the prize. Write 1 for the winner"),
    ("prizes.0.rank", "true", "warning cannot be stored (A valid integer is required), so EvalAI silently drops the prize. Write 1 for the winner"),
    ("prizes.0.rank", "empty", "66* is VALUE. Write 1 for the winner | ERROR: Invalid rank value . Rank should be an integer."),
    ("prizes.0.rank", "'1'", "66* is VALUE. Write 1 for the winner | ERROR: Invalid rank value 1. Rank should be an integer."),
    ("prizes.0.rank", "[], {}", "66* is VALUE (500). Write 1 for the winner"),
    ("prizes.0.amount", "null, 7", "66* is VALUE, not a text (500). Write it as 100.00USD"),
    ("prizes.0.amount", "empty",
     "66* is . Write it as 100.00USD | ERROR: Invalid amount value . Amount should be in decimal format with three-letter currency code (e.g. 100.00USD, 500EUR, 1000INR)."),
    ("prizes.0.amount", "text",
     "66* is VALUE. Write it as 100.00USD | ERROR: Invalid amount value text. Amount should be in decimal format with three-letter currency code (e.g. 100.00USD, 500EUR, 1000INR)."),
    ("prizes.0.amount", "NUL",
     "66* is VALUE. Write it as 100.00USD | ERROR: Invalid amount value a\\0b. Amount should be in decimal format with three-letter currency code (e.g. 100.00USD, 500EUR, 1000INR)."),
    ("prizes.0.description", "gone", "68+ is missing. Add it: creation fails without it | Error in creating challenge: None. Please check the yaml configuration!"),
    ("prizes.0.description", "300 letters",
     "warning cannot be stored (Ensure this field has no more than 25 characters), so EvalAI silently drops the prize. Write what it is; required by the server"),
    ("prizes.0.description", "NUL",
     "warning cannot be stored (Null characters are not allowed), so EvalAI silently drops the prize. Write what it is; required by the server"),
    ("prizes.0.description", "[]", "warning cannot be stored (Not a valid string), so EvalAI silently drops the prize. Write what it is; required by the server"),
    ("sponsors", "null, 0",
     "68+ is not a list of mappings. Write each as - name: …, with website: https://…; or remove the line | Error in creating challenge: None. Please check the yaml configuration!"),
    ("sponsors", "[{}]", "68+ sponsors[0].name: is missing. Add it | Error in creating challenge: None. Please check the yaml configuration!",
     "warning make every push after the first fail on EvalAI. Omit them from later pushes, as segjudge push does"),
    ("leaderboard", "gone", "25* is missing. Add a leaderboard | ERROR: There is no key for the leaderboard in the YAML file. Please add it and then try again!",
     "58* challenge_phase_splits[0].leaderboard_id: 1 is not an id of leaderboard. Write an id of that block | ERROR: Invalid leaderboard id 1 found in challenge phase split 1."),
    ("leaderboard", "null, []", "25* is empty. Add a leaderboard | ERROR: There is no key for the leaderboard in the YAML file. Please add it and then try again!",
     "58* challenge_phase_splits[0].leaderboard_id: 1 is not an id of leaderboard. Write an id of that block | ERROR: Invalid leaderboard id 1 found in challenge phase split 1."),
    ("leaderboard", "7, text, {a: 1}", "25* is not a list of mappings (500). Begin each item with - and its first key",
     "58* challenge_phase_splits[0].leaderboard_id: 1 is not an id of leaderboard. Write an id of that block | ERROR: Invalid leaderboard id 1 found in challenge phase split 1."),
    ("leaderboard", "[{}]", "26* leaderboard[0].id: is missing. Number it | ERROR: There is no leaderboard ID for the leaderboard.",
     "27* leaderboard[0].schema: is missing. Add labels and default_order_by | ERROR: There is no leaderboard schema for the leaderboard with ID: None.",
     "58* challenge_phase_splits[0].leaderboard_id: 1 is not an id of leaderboard. Write an id of that block | ERROR: Invalid leaderboard id 1 found in challenge phase split 1."),
    ("leaderboard.0.id", "gone", "26* is missing. Number it | ERROR: There is no leaderboard ID for the leaderboard.",
     "58* challenge_phase_splits[0].leaderboard_id: 1 is not an id of leaderboard. Write an id of that block | ERROR: Invalid leaderboard id 1 found in challenge phase split 1."),
    ("leaderboard.0.id", "null", "later is empty (None): EvalAI stores the item without a number and cannot update it. Number it from 1",
     "58* challenge_phase_splits[0].leaderboard_id: 1 is not an id of leaderboard. Write an id of that block | ERROR: Invalid leaderboard id 1 found in challenge phase split 1."),
    ("leaderboard.0.id", "0", "later is empty (0): EvalAI stores the item without a number and cannot update it. Number it from 1",
     "58* challenge_phase_splits[0].leaderboard_id: 1 is not an id of leaderboard. Write an id of that block | ERROR: Invalid leaderboard id 1 found in challenge phase split 1.",
     "warning leaderboard[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("leaderboard.0.id", "2.5",
     "31* is VALUE. Write a whole number | ERROR: The leaderboard with ID: 2.5 has the following schema errors:\\n [A valid integer is required. (invalid)]",
     "58* challenge_phase_splits[0].leaderboard_id: 1 is not an id of leaderboard. Write an id of that block | ERROR: Invalid leaderboard id 1 found in challenge phase split 1.",
     "warning leaderboard[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("leaderboard.0.schema", "gone", "27* is missing. Add labels and default_order_by | ERROR: There is no leaderboard schema for the leaderboard with ID: 1."),
    ("leaderboard.0.schema", "null, 7, default_order_by", "27* is not a mapping (500). Write labels and default_order_by into it"),
    ("leaderboard.0.schema", "{a: 1}",
     "28* leaderboard[0].schema.labels: is missing. List the metrics | ERROR: There is no 'labels' key in the schema for the leaderboard with ID: 1.",
     "29* leaderboard[0].schema.default_order_by: is missing. Name one of the labels | ERROR: There is no 'default_order_by' key in the schema for the leaderboard with ID: 1.",
     "warning leaderboard[0].schema.a: is ignored by EvalAI. Remove it"),
    ("leaderboard.0.schema.labels", "gone", "28* is missing. List the metrics | ERROR: There is no 'labels' key in the schema for the leaderboard with ID: 1."),
    ("leaderboard.0.schema.labels", "null, 7, 7, date", "30* leaderboard[0].schema.default_order_by: cannot be found in labels ('score') (500). Name one of the labels",
     'later is not a list of names. Write ["J&F-Mean", "J-Mean"]: the page breaks'),
    ("leaderboard.0.schema.labels", "[]",
     "30* leaderboard[0].schema.default_order_by: score is not a label. Name one of the labels | ERROR: The 'default_order_by' value 'score' in the schema for the leaderboard with ID: 1 is not a valid label.",
     'later is not a list of names. Write ["J&F-Mean", "J-Mean"]: the page breaks',
     "warning leaderboard[0].schema.metadata.score: score is not a label. Remove it, or correct its name",
     "warning leaderboard[0].schema.metadata.loss: loss is not a label. Remove it, or correct its name"),
    ("leaderboard.0.schema.labels", "twice", "later* names a metric twice. Keep one: the columns are found by name",
     "warning leaderboard[0].schema.metadata.loss: loss is not a label. Remove it, or correct its name"),
    ("leaderboard.0.schema.default_order_by", "gone",
     "29* is missing. Name one of the labels | ERROR: There is no 'default_order_by' key in the schema for the leaderboard with ID: 1."),
    ("leaderboard.0.schema.default_order_by", "null",
     "30* None is not a label. Name one of the labels | ERROR: The 'default_order_by' value 'None' in the schema for the leaderboard with ID: 1 is not a valid label."),
    ("leaderboard.0.schema.default_order_by", "text",
     "30* text is not a label. Name one of the labels | ERROR: The 'default_order_by' value 'text' in the schema for the leaderboard with ID: 1 is not a valid label."),
    ("leaderboard.0.schema.metadata", "{a: 1}", "warning leaderboard[0].schema.metadata.a: a is not a label. Remove it, or correct its name"),
    ("leaderboard.0.schema.metadata", "date",
     "later is not a mapping: EvalAI accepts it, but answers every request for the leaderboard with error 500. Write label: {sort_ascending: False}, or remove it",
     "31* leaderboard[0].schema: is {'labels': ['score', 'loss'], 'default_order_by': 'score', 'metadata': datetime.…. Use only text, numbers, lists and mappings; put a date in quotes | ERROR: The leaderboard with ID: 1 has the following schema errors:\\n [Value must be valid JSON. (invalid)]"),
    ("leaderboard.0.schema.metadata.score", "null, {}", "later* has no sort_ascending. Add sort_ascending: False, or EvalAI sorts in ascending order"),
    ("leaderboard.0.schema.metadata.score", "text", "later* is not a mapping: if EvalAI sorts by it, the leaderboard is an error 500. Write {sort_ascending: False}"),
    ("leaderboard.0.schema.metadata.score.sort_ascending", "gone, null, text",
     "later* leaderboard[0].schema.metadata.score: has no sort_ascending. Add sort_ascending: False, or EvalAI sorts in ascending order"),
    ("leaderboard.0.schema.metadata.score.sort_ascending", "true",
     "warning and is_leaderboard_order_descending of the phase split contradict each other. Make them agree: EvalAI follows this one"),
    ("challenge_phases", "gone", "34* is missing. Add a phase | ERROR: No challenge phase key found. Please add challenge phases in the YAML file and try again!",
     "58* challenge_phase_splits[0].challenge_phase_id: 1 is not an id of challenge_phases. Write an id of that block | ERROR: Invalid phased id 1 found in challenge phase split 1."),
    ("challenge_phases", "null, []", "34* is empty. Add a phase | ERROR: No challenge phase key found. Please add challenge phases in the YAML file and try again!",
     "58* challenge_phase_splits[0].challenge_phase_id: 1 is not an id of challenge_phases. Write an id of that block | ERROR: Invalid phased id 1 found in challenge phase split 1."),
    ("challenge_phases", "[{}]",
     "35* challenge_phases[0].codename: is missing. Add it, as in phases.py | ERROR: No codename found for the challenge phase. Please add a codename and try again!",
     "37* challenge_phases[0].description: is missing (500). Name an .html file in templates/",
     "40* challenge_phases[0].start_date: is missing. Write it as 2026-01-01 00:00:00 | ERROR: Please add the start_date and end_date in challenge phase None.",
     "45* challenge_phases[0].id: is missing (500). Number it",
     "58* challenge_phase_splits[0].challenge_phase_id: 1 is not an id of challenge_phases. Write an id of that block | ERROR: Invalid phased id 1 found in challenge phase split 1.",
     "later challenge_phases[0].test_annotation_file: is missing, so EvalAI's worker dies at every start. Name a file of annotations/",
     "form challenge_phases[0].test_annotation_file: is missing, but the form requires an annotation file for every phase. Push the bundle | There is no key for test annotation file for challenge phase None in yaml file. Please add it and  then try again!"),
    ("challenge_phases.0.id", "gone", "45* is missing (500). Number it",
     "58* challenge_phase_splits[0].challenge_phase_id: 1 is not an id of challenge_phases. Write an id of that block | ERROR: Invalid phased id 1 found in challenge phase split 1."),
    ("challenge_phases.0.id", "true", "44* is VALUE. Write a whole number | [A valid integer is required. (invalid)]",
     "68 challenge_phase_splits[0].challenge_phase_id: is VALUE, but the id in challenge_phases is written differently. Write it the same way in both places | Challenge phase with phase id 1 doesn't exist.",
     "later challenge_phases[0]: is not in challenge_phase_splits. Map it, or every submission to it fails"),
    ("challenge_phases.0.name", "gone", "44* is missing. Add it | [This field is required. (required)]"),
    ("challenge_phases.0.name", "empty", "44* is empty. Give it a value, or remove the line | [This field may not be blank. (blank)]"),
    ("challenge_phases.0.name", "NUL", "44* is VALUE. Write a text | [Null characters are not allowed. (null_characters_not_allowed)]",
     "68 holds a NUL character, which EvalAI's database rejects. Remove it | Error in creating challenge: None. Please check the yaml configuration!"),
    ("challenge_phases.0.name", "[]", "44* is VALUE. Write a text | [Not a valid string. (invalid)]"),
    ("challenge_phases.0.codename", "gone",
     "35* is missing. Add it, as in phases.py | ERROR: No codename found for the challenge phase. Please add a codename and try again!"),
    ("challenge_phases.0.codename", "7", "68+ is VALUE, not a text. Put it in quotes | Error in creating challenge: None. Please check the yaml configuration!"),
    ("challenge_phases.0.codename", "é",
     '68+ is VALUE, from which EvalAI makes a URL. Use only a-z, A-Z, 0-9, - and _ | Error in creating challenge: challenge phase 1 :. Please check the yaml configuration![Enter a valid "slug" consisting of letters, numbers, underscores or hyphens. (invalid)]',
     "form is VALUE, from which the form makes a URL. Use only a-z, A-Z, 0-9, - and _, or push the bundle"),
    ("challenge_phases.0.description", "gone, null, empty, []",
     "37* is missing. Name an .html file in templates/ |  ERROR: There is no key for description in phase First."),
    ("challenge_phases.0.description", "text, logo.png, ../text.html",
     "37* names VALUE, which is not an .html file in the bundle. Add the file, or correct the path | ERROR: Challenge phase 1 has the following schema errors:\\n [This field may not be null. (null)]"),
    ("challenge_phases.0.description", "empty.html, blank.html", "44* VALUE is empty. Write the text | [This field may not be blank. (blank)]"),
    ("challenge_phases.0.start_date", "gone, null",
     "40* is missing. Write it as 2026-01-01 00:00:00 | ERROR: Please add the start_date and end_date in challenge phase 1."),
    ("challenge_phases.0.start_date", "late", "40* is after end_date. Correct one | ERROR: Start date cannot be greater than end date in challenge phase 1."),
    ("challenge_phases.0.start_date", "past", "warning is before the challenge starts. Nobody can submit until then"),
    ("challenge_phases.0.end_date", "7",
     "45* challenge_phases[0].start_date: and end_date have different types (2026-01-01 00:00:00 and 7) (500). Write both unquoted, as 2026-01-01 00:00:00",
     "44* is VALUE. Write it unquoted, as 2026-01-01 00:00:00 | [Datetime has wrong format. Use one of these formats instead: YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]. (invalid)]"),
    ("challenge_phases.0.end_date", "moment",
     "40* challenge_phases[0].start_date: is after end_date. Correct one | ERROR: Start date cannot be greater than end date in challenge phase 1."),
    ("challenge_phases.0.end_date", "late", "warning is after the challenge ends. Nobody can submit after that"),
    ("challenge_phases.0.end_date", "moment in quotes",
     "45* challenge_phases[0].start_date: and end_date have different types (2026-01-01 00:00:00 and '2026-01-01 12:30:00') (500). Write both unquoted, as 2026-01-01 00:00:00",
     "warning is in quotes. Write it unquoted: a quoted and an unquoted date together fail"),
    ("challenge_phases.0.test_annotation_file", "gone, null, empty, []", "later* is missing, so EvalAI's worker dies at every start. Name a file of annotations/",
     "form is missing, but the form requires an annotation file for every phase. Push the bundle | There is no key for test annotation file for challenge phase First in yaml file. Please add it and  then try again!"),
    ("challenge_phases.0.test_annotation_file", "7", "45* is VALUE, not a path (500). Name a file of annotations/"),
    ("challenge_phases.0.test_annotation_file", "text, ../text.html",
     "38* names VALUE, which does not exist. Add the file, or correct the path | ERROR: No test annotation file found in the zip file for challenge phase First"),
    ("challenge_phases.0.test_annotation_file", "empty.html", "44* VALUE is empty. Write it again | [The submitted file is empty. (empty)]"),
    ("challenge_phases.0.max_submissions_per_day", "0", "warning is VALUE, so EvalAI accepts no submissions. The phase is closed; write 1 or more to open it"),
    ("challenge_phases.0.is_submission_public", "gone, true"),
    ("challenge_phases.0.allowed_email_ids", "NUL in a list",
     "44* is VALUE, {'a': '\\x00'}]. Begin each item with - | {0: [Null characters are not allowed. (null_characters_not_allowed)], 1: [Not a valid string. (invalid)]}",
     "68 holds a NUL character, which EvalAI's database rejects. Remove it | Error in creating challenge: None. Please check the yaml configuration!"),
    ("challenge_phases.0.submission_meta_attributes", "[{}]",
     "41* challenge_phases[0].submission_meta_attributes[0]: lacks name, description, type. Add them | ERROR: Please enter the following fields for the submission meta attribute in challenge phase 1: name, description, type"),
    ("challenge_phases.0.submission_meta_attributes", "date", "41* is not a list of mappings (500). Begin each with - name:",
     "44* is VALUE. Use only text, numbers, lists and mappings; put a date in quotes | [Value must be valid JSON. (invalid)]"),
    ("challenge_phases.0.submission_meta_attributes.0.type", "gone",
     "41* challenge_phases[0].submission_meta_attributes[0]: lacks type. Add them | ERROR: Please enter the following fields for the submission meta attribute in challenge phase 1: type"),
    ("challenge_phases.0.submission_meta_attributes.0.type", "null",
     "42* is VALUE. Use one of boolean, text, radio, checkbox | ERROR: Please ensure that the submission meta attribute types for the attribute 'None' in challenge phase 1 are among the following: boolean, text, radio, or checkbox."),
    ("challenge_phases.0.submission_meta_attributes.0.options", "gone, null, []",
     "43* is missing. List the options | ERROR: Please include at least one option in the attribute for challenge phase 1"),
    ("challenge_phases.0.submission_meta_attributes.0.options", "7", "43* is VALUE, not a list (500). List the options"),
    ("challenge_phases.0.default_submission_meta_attributes", "7, text, {a: 1}", "form is not a list of mappings. Begin each item with - name:"),
    ("challenge_phases.0.default_submission_meta_attributes", "[{}]",
     "form challenge_phases[0].default_submission_meta_attributes[0]: lacks name, is_visible. Add it | Please enter the following to the default submission meta attribute in phase 1: name, is_visible."),
    ("challenge_phases.0.default_submission_meta_attributes.0.name", "gone",
     "form challenge_phases[0].default_submission_meta_attributes[0]: lacks name. Add it | Please enter the following to the default submission meta attribute in phase 1: name."),
    ("challenge_phases.0.default_submission_meta_attributes.0.name", "null",
     "form is VALUE. Use method_name, method_description, project_url, publication_url | Default meta attribute: None in phase: 1 does not exist!"),
    ("dataset_splits", "gone", "47* is missing. Add a split | ERROR: There is no key for dataset splits.",
     "58* challenge_phase_splits[0].dataset_split_id: 1 is not an id of dataset_splits. Write an id of that block | ERROR: Invalid dataset split id 1 found in challenge phase split 1."),
    ("dataset_splits", "null, []", "47* is empty. Add a split | ERROR: There is no key for dataset splits.",
     "58* challenge_phase_splits[0].dataset_split_id: 1 is not an id of dataset_splits. Write an id of that block | ERROR: Invalid dataset split id 1 found in challenge phase split 1."),
    ("dataset_splits", "[{}]", "48* dataset_splits[0].name: is missing. Add it | ERROR: There is no name for dataset split None.",
     "49* dataset_splits[0].codename: is missing. Add it | ERROR: There is no codename for dataset split None.",
     "52* dataset_splits[0].id: is missing (500). Number it",
     "58* challenge_phase_splits[0].dataset_split_id: 1 is not an id of dataset_splits. Write an id of that block | ERROR: Invalid dataset split id 1 found in challenge phase split 1."),
    ("dataset_splits.0.id", "2.5",
     "51* is VALUE. Write a whole number | ERROR: Dataset split 2.5 has the following schema errors:\\n [A valid integer is required. (invalid)]",
     "58* challenge_phase_splits[0].dataset_split_id: 1 is not an id of dataset_splits. Write an id of that block | ERROR: Invalid dataset split id 1 found in challenge phase split 1.",
     "warning dataset_splits[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("dataset_splits.0.name", "gone", "48* is missing. Add it | ERROR: There is no name for dataset split 1.",
     "51* is missing. Add it | ERROR: Dataset split 1 has the following schema errors:\\n [This field is required. (required)]"),
    ("dataset_splits.0.name", "300 letters",
     "51* has 300 characters. Shorten it to 100 | ERROR: Dataset split 1 has the following schema errors:\\n [Ensure this field has no more than 100 characters. (max_length)]"),
    ("dataset_splits.0.codename", "gone", "49* is missing. Add it | ERROR: There is no codename for dataset split 1.",
     "51* is missing. Add it | ERROR: Dataset split 1 has the following schema errors:\\n [This field is required. (required)]"),
    ("dataset_splits.0.codename", "null",
     "51* is empty. Give it a value, or remove the line | ERROR: Dataset split 1 has the following schema errors:\\n [This field may not be null. (null)]"),
    ("dataset_splits.0.codename", "empty",
     "51* is empty. Give it a value, or remove the line | ERROR: Dataset split 1 has the following schema errors:\\n [This field may not be blank. (blank)]"),
    ("challenge_phase_splits", "gone, null, 0", "55* is missing (500). Map each phase to its splits",
     "later challenge_phases[0]: is not in challenge_phase_splits. Map it, or every submission to it fails",
     "warning leaderboard[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed",
     "warning dataset_splits[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("challenge_phase_splits", "empty, [], {}", "55* is empty. Map each phase to its splits | ERROR: There is no key for challenge phase splits.",
     "later challenge_phases[0]: is not in challenge_phase_splits. Map it, or every submission to it fails",
     "warning leaderboard[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed",
     "warning dataset_splits[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("challenge_phase_splits", "[{}]", "55* challenge_phase_splits[0]: lacks leaderboard_id, challenge_phase_id, dataset_split_id (500). Add it",
     "57* challenge_phase_splits[0]: lacks visibility, leaderboard_decimal_precision, is_leaderboard_order_descending. Add them: none has a default here | ERROR: The following keys are missing in the challenge phase splits of YAML file (phase_split: 1): visibility, leaderboard_decimal_precision, is_leaderboard_order_descending",
     "later challenge_phases[0]: is not in challenge_phase_splits. Map it, or every submission to it fails",
     "warning leaderboard[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed",
     "warning dataset_splits[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("challenge_phase_splits.0.challenge_phase_id", "gone", "55* challenge_phase_splits[0]: lacks challenge_phase_id (500). Add it",
     "later challenge_phases[0]: is not in challenge_phase_splits. Map it, or every submission to it fails"),
    ("challenge_phase_splits.0.challenge_phase_id", "null, text, nan, []", "58* is VALUE, not a number (500). Write an id of that block",
     "later challenge_phases[0]: is not in challenge_phase_splits. Map it, or every submission to it fails"),
    ("challenge_phase_splits.0.challenge_phase_id", "0",
     "58* 0 is not an id of challenge_phases. Write an id of that block | ERROR: Invalid phased id 0 found in challenge phase split 1.",
     "later challenge_phases[0]: is not in challenge_phase_splits. Map it, or every submission to it fails"),
    ("challenge_phase_splits.0.challenge_phase_id", "'1'",
     "58* '1' is not an id of challenge_phases. Remove the quotes | ERROR: Invalid phased id 1 found in challenge phase split 1."),
    ("challenge_phase_splits.0.leaderboard_id", "gone", "55* challenge_phase_splits[0]: lacks leaderboard_id (500). Add it",
     "warning leaderboard[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("challenge_phase_splits.0.leaderboard_id", "7",
     "58* 7 is not an id of leaderboard. Write an id of that block | ERROR: Invalid leaderboard id 7 found in challenge phase split 1.",
     "warning leaderboard[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("challenge_phase_splits.0.leaderboard_id", "'1'",
     "58* '1' is not an id of leaderboard. Remove the quotes | ERROR: Invalid leaderboard id 1 found in challenge phase split 1."),
    ("challenge_phase_splits.0.dataset_split_id", "gone", "55* challenge_phase_splits[0]: lacks dataset_split_id (500). Add it",
     "warning dataset_splits[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("challenge_phase_splits.0.dataset_split_id", "7",
     "58* 7 is not an id of dataset_splits. Write an id of that block | ERROR: Invalid dataset split id 7 found in challenge phase split 1.",
     "warning dataset_splits[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("challenge_phase_splits.0.dataset_split_id", "'1'",
     "58* '1' is not an id of dataset_splits. Remove the quotes | ERROR: Invalid dataset split id 1 found in challenge phase split 1."),
    ("challenge_phase_splits.0.visibility", "null",
     "59* is empty. Use one of 1, 2, 3 | ERROR: Challenge phase split 1 has the following schema errors:\\n [This field may not be null. (null)]"),
    ("challenge_phase_splits.0.visibility", "0",
     '59* is VALUE. Use one of 1, 2, 3 | ERROR: Challenge phase split 1 has the following schema errors:\\n ["0" is not a valid choice. (invalid_choice)]'),
    ("challenge_phase_splits.0.leaderboard_decimal_precision", "gone",
     "57* challenge_phase_splits[0]: lacks leaderboard_decimal_precision. Add them: none has a default here | ERROR: The following keys are missing in the challenge phase splits of YAML file (phase_split: 1): leaderboard_decimal_precision"),
    ("challenge_phase_splits.0.leaderboard_decimal_precision", "null",
     "59* is empty. Give it a value, or remove the line | ERROR: Challenge phase split 1 has the following schema errors:\\n [This field may not be null. (null)]"),
    ("challenge_phase_splits.0.leaderboard_decimal_precision", "-1",
     "59* is VALUE. Write 0 or more | ERROR: Challenge phase split 1 has the following schema errors:\\n [Ensure this value is greater than or equal to 0. (min_value)]"),
    ("challenge_phase_splits.0.leaderboard_decimal_precision", "text, []",
     "59* is VALUE. Write a whole number | ERROR: Challenge phase split 1 has the following schema errors:\\n [A valid integer is required. (invalid)]"),
    ("challenge_phase_splits.0.is_leaderboard_order_descending", "gone",
     "57* challenge_phase_splits[0]: lacks is_leaderboard_order_descending. Add them: none has a default here | ERROR: The following keys are missing in the challenge phase splits of YAML file (phase_split: 1): is_leaderboard_order_descending"),
    ("challenge_phase_splits.0.is_leaderboard_order_descending", "0", "warning is VALUE, which EvalAI reads as False. Write False",
     "warning leaderboard[0].schema.metadata.score.sort_ascending: and is_leaderboard_order_descending of the phase split contradict each other. Make them agree: EvalAI follows this one"),
    ("challenge_phase_splits.0.is_leaderboard_order_descending", "7, text",
     "59* is VALUE. Write True or False | ERROR: Challenge phase split 1 has the following schema errors:\\n [Must be a valid boolean. (invalid)]"),
]  # fmt: skip

#: Challenges whose values do not agree.
CHALLENGES: list[tuple[Any, ...]] = [
    ("two leaderboards of one id", extend("leaderboard"), "later* leaderboard[1].id: 1 occurs twice. Make each unique: EvalAI keeps only one of them"),
    ("two phases of one id", extend("challenge_phases", codename="second"),
     "later* challenge_phases[1].id: 1 occurs twice. Make each unique: EvalAI keeps only one of them"),
    ("two phases of one codename", extend("challenge_phases", id=2),
     "36* challenge_phases[1].codename: first occurs twice. Rename one of them | ERROR: Duplicate codename first for phase First. Please ensure codenames are unique",
     "68 challenge_phases[1].codename: is VALUE, whose URL would equal another phase's. Make codenames differ in more than case, spaces and punctuation | Error in creating challenge: challenge phase 2 :. Please check the yaml configuration![challenge phase with this slug already exists. (unique)]",
     "later challenge_phases[1]: is not in challenge_phase_splits. Map it, or every submission to it fails"),
    ("two phases of one codename, one without a name", alter(("challenge_phases.1.name", GONE), config=extend("challenge_phases", id=2)),
     "36* challenge_phases[1].codename: first occurs twice (500). Rename one of them",
     "44* challenge_phases[1].name: is missing. Add it | [This field is required. (required)]",
     "68 challenge_phases[1].codename: is VALUE, whose URL would equal another phase's. Make codenames differ in more than case, spaces and punctuation | Error in creating challenge: challenge phase 2 :. Please check the yaml configuration![challenge phase with this slug already exists. (unique)]",
     "later challenge_phases[1]: is not in challenge_phase_splits. Map it, or every submission to it fails"),
    ("two phases of one address", extend("challenge_phases", id=2, codename="FIRST"),
     "68+ challenge_phases[1].codename: is VALUE, whose URL would equal another phase's. Make codenames differ in more than case, spaces and punctuation | Error in creating challenge: challenge phase 2 :. Please check the yaml configuration![challenge phase with this slug already exists. (unique)]",
     "later- challenge_phases[1]: is not in challenge_phase_splits. Map it, or every submission to it fails"),
    ("two phases, the second odd", extend("challenge_phases", id=2, codename="b", description=7, start_date=None),
     "45* challenge_phases[1].description: is VALUE, not a path (500). Name an .html file in templates/",
     "40* challenge_phases[1].start_date: is missing. Write it as 2026-01-01 00:00:00 | ERROR: Please add the start_date and end_date in challenge phase 2.",
     "later challenge_phases[1]: is not in challenge_phase_splits. Map it, or every submission to it fails"),
    ("two splits of one id", extend("dataset_splits", codename="other"), "later* dataset_splits[1].id: 1 occurs twice. Make each unique: EvalAI keeps only one of them"),
    ("two splits of one codename", extend("dataset_splits", id=2),
     "50* dataset_splits[1].codename: dev occurs twice. Rename one of them | ERROR: Duplicate codename dev for dataset split Dev. Please ensure codenames are unique.",
     "warning dataset_splits[1]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("a split without a name, whose codename is another's", alter(("dataset_splits.1.name", GONE), config=extend("dataset_splits", id=2)),
     "48* dataset_splits[1].name: is missing. Add it | ERROR: There is no name for dataset split 2.",
     "50* dataset_splits[1].codename: dev occurs twice (500). Rename one of them",
     "51* dataset_splits[1].name: is missing. Add it | ERROR: Dataset split 2 has the following schema errors:\\n [This field is required. (required)]",
     "warning dataset_splits[1]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("a split twice in a phase", alter(("challenge_phase_splits", [ROW, {**ROW, "leaderboard_id": 2}]), config=extend("leaderboard", id=2)),
     "later* challenge_phase_splits: shows split 1 of phase 1 twice. Keep one: with two, EvalAI's worker fails on every submission"),
    ("a row without its settings", put(extend("challenge_phase_splits", dataset_split_id=2), "challenge_phase_splits.1.visibility", GONE),
     "57* challenge_phase_splits[1]: lacks visibility. Add them: none has a default here | ERROR: The following keys are missing in the challenge phase splits of YAML file (phase_split: 2): visibility"),
    ("rows one after the other", put(CONFIG, "challenge_phase_splits", [{"visibility": 3}, {**ROW, "visibility": 9}, {**ROW, "leaderboard_id": 8}]),
     "55* challenge_phase_splits[0]: lacks leaderboard_id, challenge_phase_id, dataset_split_id (500). Add it",
     "57* challenge_phase_splits[0]: lacks leaderboard_decimal_precision, is_leaderboard_order_descending. Add them: none has a default here | ERROR: The following keys are missing in the challenge phase splits of YAML file (phase_split: 1): leaderboard_decimal_precision, is_leaderboard_order_descending",
     '59* challenge_phase_splits[1].visibility: is VALUE. Use one of 1, 2, 3 | ERROR: Challenge phase split 1 has the following schema errors:\\n ["9" is not a valid choice. (invalid_choice)]',
     "58* challenge_phase_splits[2].leaderboard_id: 8 is not an id of leaderboard. Write an id of that block | ERROR: Invalid leaderboard id 8 found in challenge phase split 2.",
     "later challenge_phase_splits: shows split 1 of phase 1 twice. Keep one: with two, EvalAI's worker fails on every submission"),
    ("two prizes of one rank", extend("prizes"), "66* prizes[1].rank: 1 occurs twice. Renumber | ERROR: Duplicate rank 1 found in YAML data."),
    ("a prize after one that is odd", put(CONFIG, "prizes", [{"rank": 1}, {"rank": 1, "amount": "1EUR"}]), "66* prizes[0]: lacks amount (500). Add it",
     "68 prizes[1].description: is missing. Add it: creation fails without it | Error in creating challenge: None. Please check the yaml configuration!"),
    ("an attribute that lacks much", put(CONFIG, "challenge_phases.0.submission_meta_attributes", [ATTRIBUTE, {}]),
     "41* challenge_phases[0].submission_meta_attributes[0]: lacks description. Add them | ERROR: Please enter the following fields for the submission meta attribute in challenge phase 1: description",
     "41* challenge_phases[0].submission_meta_attributes[1]: lacks name, description, type. Add them | ERROR: Please enter the following fields for the submission meta attribute in challenge phase 1: name, description, type"),
    ("sponsors", put(CONFIG, "sponsors", [{"name": "a", "website": "https://a.org"}, {"name": "a"}, {"name": "b"}]),
     "68+ sponsors[2].website: is missing. Add it | Sponsor name or url not found in YAML data.",
     "warning sponsors: make every push after the first fail on EvalAI. Omit them from later pushes, as segjudge push does"),
    ("odd sponsors", put(CONFIG, "sponsors", [{"website": "x"}, {"name": "b"}, {"name": 7, "website": "x"}, {"name": "c\0", "website": ""}]),
     "68+ sponsors[0].name: is missing. Add it | Error in creating challenge: None. Please check the yaml configuration!",
     "68 sponsors[1].website: is missing. Add it | Sponsor name or url not found in YAML data.",
     "68+ sponsors[2].website: is VALUE. Enter a valid URL | Error in creating challenge: None. Please check the yaml configuration!",
     "68+ sponsors[3].name: is VALUE. Null characters are not allowed | Error in creating challenge: None. Please check the yaml configuration!",
     "warning sponsors: make every push after the first fail on EvalAI. Omit them from later pushes, as segjudge push does"),
    ("one submission, and it is public", alter(("challenge_phases.0.is_submission_public", True), ("challenge_phases.0.is_restricted_to_select_one_submission", True)),
     "39* challenge_phases[0].is_submission_public: contradicts the restriction. Set it to False | ERROR: is_submission_public can't be 'True' for challenge phase 'First' with is_restricted_to_select_one_submission 'True'. Please change is_submission_public to 'False' and try again!"),
    ("one submission that is public, in a phase without a name", alter(("challenge_phases.0.is_submission_public", True), ("challenge_phases.0.is_restricted_to_select_one_submission", True), ("challenge_phases.0.name", GONE)),
     "39* challenge_phases[0].is_submission_public: contradicts the restriction (500). Set it to False",
     "44* challenge_phases[0].name: is missing. Add it | [This field is required. (required)]"),
    ("no limits", alter(("challenge_phases.0.max_submissions_per_month", GONE), ("challenge_phases.0.max_submissions", GONE)),
     "44* challenge_phases[0].max_submissions: and max_submissions_per_month are missing. Add one of them | [This field may not be null. (null)]"),
    ("an odd limit that is taken twice", alter(("challenge_phases.0.max_submissions_per_month", None), ("challenge_phases.0.max_submissions", "text")),
     "44* challenge_phases[0].max_submissions: is VALUE. Write a whole number | [A valid integer is required. (invalid)]"),
    ("odd dates in quotes", alter(("start_date", "2026-01-01 00:00"), ("end_date", "2046-13-01 00:00:00")),
     "24* end_date: is VALUE. Write it unquoted, as 2026-01-01 00:00:00 | [Datetime has wrong format. Use one of these formats instead: YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]. (invalid)]",
     "warning start_date: is in quotes. Write it unquoted: a quoted and an unquoted date together fail",
     "warning end_date: is in quotes. Write it unquoted: a quoted and an unquoted date together fail"),
    ("dates without times", alter(("start_date", plain("2026-01-01")), ("end_date", plain("2046-01-01"))),
     "24* start_date: is VALUE. Add the time, as VALUE 00:00:00 | [Expected a datetime but got a date. (date)]",
     "24* end_date: is VALUE. Add the time, as 2026-01-01 00:00:00 | [Expected a datetime but got a date. (date)]"),
    ("a challenge of the past", alter(("start_date", plain("2019-01-01 00:00:00")), ("end_date", plain("2020-01-01 00:00:00"))),
     "warning end_date: lies in the past (2020-01-01). EvalAI would accept no submissions",
     "warning challenge_phases[0].end_date: is after the challenge ends. Nobody can submit after that"),
    ("a direction that contradicts", alter(("challenge_phase_splits.0.is_leaderboard_order_descending", False), ("leaderboard.0.schema.metadata.loss.sort_ascending", 7), ("leaderboard.0.schema.metadata.other", {"sort_ascending": True})),
     "warning leaderboard[0].schema.metadata.score.sort_ascending: and is_leaderboard_order_descending of the phase split contradict each other. Make them agree: EvalAI follows this one",
     "later* leaderboard[0].schema.metadata.loss: has no sort_ascending. Add sort_ascending: False, or EvalAI sorts in ascending order",
     "warning leaderboard[0].schema.metadata.other: other is not a label. Remove it, or correct its name"),
    ("ids in quotes", alter(("leaderboard.0.id", "1"), ("challenge_phases.0.id", "1"), ("dataset_splits.0.id", "1")),
     "58* challenge_phase_splits[0].leaderboard_id: 1 is not an id of leaderboard. Remove the quotes | ERROR: Invalid leaderboard id 1 found in challenge phase split 1.",
     "58* challenge_phase_splits[0].challenge_phase_id: 1 is not an id of challenge_phases. Remove the quotes | ERROR: Invalid phased id 1 found in challenge phase split 1.",
     "58* challenge_phase_splits[0].dataset_split_id: 1 is not an id of dataset_splits. Remove the quotes | ERROR: Invalid dataset split id 1 found in challenge phase split 1."),
    ("ids with points", alter(("leaderboard.0.id", 1.0), ("dataset_splits.0.id", "1.0")),
     "58* challenge_phase_splits[0].dataset_split_id: 1 is not an id of dataset_splits. Write an id of that block | ERROR: Invalid dataset split id 1 found in challenge phase split 1.",
     "68 challenge_phase_splits[0].leaderboard_id: is VALUE, but the id in leaderboard is written differently. Write it the same way in both places | Leaderboard with id 1 doesn't exist.",
     "warning leaderboard[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed",
     "warning dataset_splits[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("keys that nobody reads", {**CONFIG, "titel": 1, "queue": 1, "odd": 1, "leaderboard": [{**CONFIG["leaderboard"][0], "scheme": 1, "schema": {**CONFIG["leaderboard"][0]["schema"], "label": 1}}], "challenge_phases": [{**PHASE, "codenam": 1, "challenge": 1, "submission_meta_attributes": [{**ATTRIBUTE, "description": "x", "kind": 1}]}]},
     "warning titel: is ignored by EvalAI. Write title if you mean that",
     "warning queue: is ignored by EvalAI: the server makes it. Remove it",
     "warning odd: is ignored by EvalAI. Remove it",
     "warning leaderboard[0].scheme: is ignored by EvalAI. Write schema if you mean that",
     "warning leaderboard[0].schema.label: is ignored by EvalAI. Write labels if you mean that",
     "warning challenge_phases[0].submission_meta_attributes[0].kind: is ignored by EvalAI. Remove it",
     "warning challenge_phases[0].codenam: is ignored by EvalAI. Write codename if you mean that",
     "warning challenge_phases[0].challenge: is ignored by EvalAI: the server knows it. Remove it"),
    ("remote evaluation, without a file", alter(("remote_evaluation", "yes"), ("challenge_phases.0.test_annotation_file", None), ("evaluation_script", "odd.zip")),
     "later* evaluation_script: VALUE is not a zip. Rebuild it with __init__.py at the top, not in a folder",
     "warning remote_evaluation: is VALUE, which EvalAI reads as True. Write True",
     "form challenge_phases[0].test_annotation_file: is missing, but the form requires an annotation file for every phase. Push the bundle | There is no key for test annotation file for challenge phase First in yaml file. Please add it and  then try again!"),
    ("code for a worker", alter(("is_docker_based", True), ("remote_evaluation", True)),
     "warning challenge_phases[0].test_annotation_file: would upload truth.txt to EvalAI, which does not need it. Remove it, as segjudge build --variant does",
     "warning challenge_phases[0].environment_image: is missing. Name the image of your environment, unless your worker needs none"),
    ("code in the image of the documentation", alter(("is_docker_based", True), ("challenge_phases.0.environment_image", "segjudge-environment:latest")),
     "warning challenge_phases[0].test_annotation_file: would upload truth.txt to EvalAI, which does not need it. Remove it, as segjudge build --variant does",
     "warning challenge_phases[0].environment_image: is VALUE, which is in no registry. Push yours: segjudge build --environment-image NAME"),
    ("a fixed dataset alone", alter(("is_static_dataset_code_upload", 1)), "warning is_static_dataset_code_upload: is VALUE, which EvalAI reads as True. Write True",
     "later* is_static_dataset_code_upload: is True without is_docker_based: True. Set both, as segjudge build --variant does"),
]  # fmt: skip

SECOND: Config = {
    **extend("challenge_phases", id=2, codename="second"),
    "challenge_phase_splits": [ROW, {**ROW, "challenge_phase_id": 2}],
}
APPROVED = ServerState.after_push(CONFIG, source="a test", approved=True)
SECOND_APPROVED = ServerState.after_push(SECOND, source="a test", approved=True, scoring={"first": "otherwise"})
SPLITS = put(CONFIG, "dataset_splits", [*CONFIG["dataset_splits"], {"id": 2, "name": "b", "codename": "b"}])
SPLITS_APPROVED = ServerState.after_push(SPLITS, source="a test", approved=True)
#: Updates: the state of the challenge, and what is pushed.
UPDATES: list[tuple[Any, ...]] = [
    ("a phase more", APPROVED, SECOND),
    ("a phase more, and a number in quotes", APPROVED, put(SECOND, "leaderboard.0.id", "1.0"),
     "33* leaderboard[0].id: is VALUE, not a whole number (500). Number it from 1",
     "32* leaderboard: lacks id 1, which already exists on EvalAI. Restore it: pushed parts can be changed, not deleted | ERROR: The leaderboard with ID: 1 not found in config. Deletion of an existing leaderboard after challenge creation is not allowed.",
     "58* challenge_phase_splits[0].leaderboard_id: 1 is not an id of leaderboard. Write an id of that block | ERROR: Invalid leaderboard id 1 found in challenge phase split 1.",
     "58* challenge_phase_splits[1].leaderboard_id: 1 is not an id of leaderboard. Write an id of that block | ERROR: Invalid leaderboard id 1 found in challenge phase split 2.",
     "warning leaderboard[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("a phase more, on a leaderboard that there is not", APPROVED, alter(("challenge_phase_splits.1.leaderboard_id", 9), ("challenge_phase_splits.1.dataset_split_id", 8), config=SECOND),
     "61* challenge_phase_splits[1]: names leaderboard_id 9, which is not in leaderboard. Correct the id | ERROR: Leaderboard id 9 is not part of this challenge or the uploaded configuration. New challenge phases may only use leaderboards declared in the configuration.",
     "61* challenge_phase_splits[1]: names dataset_split_id 8, which is not in dataset_splits. Correct the id | ERROR: Dataset split id 8 is not part of this challenge or the uploaded configuration. New challenge phases must use dataset splits declared in the configuration.",
     "58* challenge_phase_splits[1].leaderboard_id: 9 is not an id of leaderboard. Write an id of that block | ERROR: Invalid leaderboard id 9 found in challenge phase split 2.",
     "58* challenge_phase_splits[1].dataset_split_id: 8 is not an id of dataset_splits. Write an id of that block | ERROR: Invalid dataset split id 8 found in challenge phase split 2."),
    ("a phase and its row less, before approval", replace(SECOND_APPROVED, approved=False), CONFIG,
     "46* challenge_phases: lacks id 2 (second), which already exists on EvalAI. Restore it: pushed parts can be changed, not deleted | ERROR: Challenge phase 2 not found in config. Deletion of existing challenge phase after challenge creation is not allowed.",
     "62* challenge_phase_splits: lacks leaderboard 1, phase 2, split 1, which already exists on EvalAI. Restore it: pushed parts can be changed, not deleted | ERROR: Challenge phase split (leaderboard_id: 1, challenge_phase_id: 2, dataset_split_id: 1) not found in config. Deletion of existing challenge phase split after challenge creation is not allowed."),
    ("codenames that are swapped", SECOND_APPROVED, alter(("challenge_phases.0.codename", "second"), ("challenge_phases.1.codename", "first"), config=SECOND),
     "68+ challenge_phases[0].codename: is VALUE, which another phase on EvalAI has until it is updated. Choose another; to swap two codenames, push a temporary one in between | Error in creating challenge: challenge phase update 1 :. Please check the yaml configuration![The fields codename, challenge must make a unique set. (unique)]"),
    ("a codename of an earlier phase", replace(APPROVED, slugs=["small-second"]), SECOND,
     "68+ challenge_phases[1].codename: is VALUE, whose URL would equal another phase's. Make codenames differ in more than case, spaces and punctuation | Error in creating challenge: challenge phase update 2 :. Please check the yaml configuration![challenge phase with this slug already exists. (unique)]"),
    ("a row more of a phase", APPROVED, alter(("dataset_splits", [CONFIG["dataset_splits"][0], {"id": 2, "name": "b", "codename": "b"}]), ("challenge_phase_splits", [ROW, {**ROW, "dataset_split_id": 2}])),
     "60* challenge_phase_splits[1]: adds 2 on leaderboard 1 to phase 1, which already exists on EvalAI. Add a new phase for it, or remove the row | ERROR: Cannot add a new leaderboard/dataset-split mapping for an existing challenge phase (leaderboard_id: 1, challenge_phase_id: 1, dataset_split_id: 2). New mappings are only allowed for newly added challenge phases."),
    ("another schema", APPROVED, put(CONFIG, "leaderboard.0.schema.labels", ["score", "other"]),
     "33* leaderboard[0].schema: of id 1 differs from the approved value. Restore the approved value | ERROR: Leaderboard 1 cannot be changed after the challenge is approved by an admin. Revert the leaderboard block to match the approved configuration or contact support.",
     "warning leaderboard[0].schema.metadata.loss: loss is not a label. Remove it, or correct its name"),
    ("a schema with keys of two kinds", APPROVED, put(CONFIG, "leaderboard.0.schema.metadata", plain("{1: {sort_ascending: true}, score: {sort_ascending: false}}")),
     "33* leaderboard[0].schema: has a mapping with both text and other keys (500). Put the keys in quotes",
     "warning leaderboard[0].schema.metadata.1: 1 is not a label. Remove it, or correct its name"),
    ("another name of a split, before one whose codename is another's", SPLITS_APPROVED, alter(("dataset_splits.0.name", "Other"), ("dataset_splits.1.codename", "dev"), config=SPLITS),
     "50* dataset_splits[1].codename: dev occurs twice. Rename one of them | ERROR: Duplicate codename dev for dataset split b. Please ensure codenames are unique.",
     "54* dataset_splits[0]: id 1 differs from the approved value. Restore the approved value | ERROR: Dataset split 1 cannot be changed after the challenge is approved by an admin. Revert the dataset split block to match the approved configuration or contact support.",
     "warning dataset_splits[1]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("another name of a split, before one without a name and a codename", SPLITS_APPROVED, alter(("dataset_splits.0.name", "Other"), ("dataset_splits.1", {"id": 2}), config=SPLITS),
     "48* dataset_splits[1].name: is missing. Add it | ERROR: There is no name for dataset split 2.",
     "49* dataset_splits[1].codename: is missing. Add it | ERROR: There is no codename for dataset split 2.",
     "54* dataset_splits[0]: id 1 differs from the approved value. Restore the approved value | ERROR: Dataset split 1 cannot be changed after the challenge is approved by an admin. Revert the dataset split block to match the approved configuration or contact support.",
     "51* dataset_splits[1].name: is missing. Add it | ERROR: Dataset split 2 has the following schema errors:\\n [This field is required. (required)]",
     "51* dataset_splits[1].codename: is missing. Add it | ERROR: Dataset split 2 has the following schema errors:\\n [This field is required. (required)]",
     "warning dataset_splits[1]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("another name of a split", APPROVED, put(CONFIG, "dataset_splits.0.name", "Other"),
     "54* dataset_splits[0]: id 1 differs from the approved value. Restore the approved value | ERROR: Dataset split 1 cannot be changed after the challenge is approved by an admin. Revert the dataset split block to match the approved configuration or contact support."),
    ("other settings of a row", APPROVED, alter(("challenge_phase_splits.0.visibility", "1"), ("challenge_phase_splits.0.is_leaderboard_order_descending", 0)),
     "63* challenge_phase_splits[0]: leaderboard 1, phase 1, split 1 differs from the approved value. Restore the approved value | ERROR: Challenge phase split (leaderboard_id: 1, challenge_phase_id: 1, dataset_split_id: 1) cannot be changed after the challenge is approved by an admin. Revert visibility / ordering fields to match the approved configuration or contact support.",
     "warning challenge_phase_splits[0].is_leaderboard_order_descending: is VALUE, which EvalAI reads as False. Write False",
     "warning leaderboard[0].schema.metadata.score.sort_ascending: and is_leaderboard_order_descending of the phase split contradict each other. Make them agree: EvalAI follows this one",
     "warning challenge_phase_splits[0].visibility: hides dev of first, which stays public on EvalAI, because the challenge is approved. Ask EvalAI's staff to change the visibility"),
    ("other settings of a row, after a row that lacks some", APPROVED, put(CONFIG, "challenge_phase_splits", [{key: value for key, value in ROW.items() if key != "visibility"}, {**ROW, "visibility": 1}]),
     "56* challenge_phase_splits: maps leaderboard 1, phase 1 and split 1 twice. Remove one of them | ERROR: Duplicate combinations of leaderboard_id {}, challenge_phase_id {} and dataset_split_id {} found in challenge phase splits.\\nERROR: Duplicate combinations of leaderboard_id 1, challenge_phase_id 1 and dataset_split_id 1 found in challenge phase splits.",
     "57* challenge_phase_splits[0]: lacks visibility. Add them: none has a default here | ERROR: The following keys are missing in the challenge phase splits of YAML file (phase_split: 1): visibility",
     "63* challenge_phase_splits[1]: leaderboard 1, phase 1, split 1 differs from the approved value. Restore the approved value | ERROR: Challenge phase split (leaderboard_id: 1, challenge_phase_id: 1, dataset_split_id: 1) cannot be changed after the challenge is approved by an admin. Revert visibility / ordering fields to match the approved configuration or contact support.",
     "warning challenge_phase_splits[0].visibility: hides dev of first, which stays public on EvalAI, because the challenge is approved. Ask EvalAI's staff to change the visibility",
     "warning challenge_phase_splits[1].visibility: hides dev of first, which stays public on EvalAI, because the challenge is approved. Ask EvalAI's staff to change the visibility"),
    ("settings of a row that are no numbers", APPROVED, put(CONFIG, "challenge_phase_splits.0.visibility", "text"),
     "63* challenge_phase_splits[0].visibility: is VALUE (500). Write a number",
     '59* challenge_phase_splits[0].visibility: is VALUE. Use one of 1, 2, 3 | ERROR: Challenge phase split 1 has the following schema errors:\\n ["text" is not a valid choice. (invalid_choice)]'),
    ("a setting of a row that is no number to Python", APPROVED, alter(("challenge_phase_splits.0.leaderboard_decimal_precision", "2.0"), ("challenge_phase_splits.0.is_leaderboard_order_descending", "maybe")),
     "63* challenge_phase_splits[0].leaderboard_decimal_precision: is VALUE (500). Write a number",
     "59* challenge_phase_splits[0].is_leaderboard_order_descending: is VALUE. Write True or False | ERROR: Challenge phase split 1 has the following schema errors:\\n [Must be a valid boolean. (invalid)]"),
    ("all ids are others", APPROVED, alter(*((f"{key}.0.id", 5) for key in ("leaderboard", "challenge_phases", "dataset_splits")), *((f"challenge_phase_splits.0.{key}", 5) for key in list(ROW)[:3])),
     "32* leaderboard: lacks id 1, which already exists on EvalAI. Restore it: pushed parts can be changed, not deleted | ERROR: The leaderboard with ID: 1 not found in config. Deletion of an existing leaderboard after challenge creation is not allowed.",
     "46* challenge_phases: lacks id 1 (first), which already exists on EvalAI. Restore it: pushed parts can be changed, not deleted | ERROR: Challenge phase 1 not found in config. Deletion of existing challenge phase after challenge creation is not allowed.",
     "53* dataset_splits: lacks id 1 (dev), which already exists on EvalAI. Restore it: pushed parts can be changed, not deleted | ERROR: Dataset split 1 not found in config. Deletion of existing dataset split after challenge creation is not allowed.",
     "62* challenge_phase_splits: lacks leaderboard 1, phase 1, split 1, which already exists on EvalAI. Restore it: pushed parts can be changed, not deleted | ERROR: Challenge phase split (leaderboard_id: 1, challenge_phase_id: 1, dataset_split_id: 1) not found in config. Deletion of existing challenge phase split after challenge creation is not allowed.",
     "68 challenge_phases[0].codename: is VALUE, whose URL would equal another phase's. Make codenames differ in more than case, spaces and punctuation | Error in creating challenge: challenge phase update 5 :. Please check the yaml configuration![challenge phase with this slug already exists. (unique)]"),
    ("all ids are texts", APPROVED, alter(*((f"{key}.0.id", "one") for key in ("leaderboard", "challenge_phases", "dataset_splits"))),
     "31* leaderboard[0].id: is VALUE. Write a whole number | ERROR: The leaderboard with ID: one has the following schema errors:\\n [A valid integer is required. (invalid)]",
     "32* leaderboard: lacks id 1, which already exists on EvalAI. Restore it: pushed parts can be changed, not deleted | ERROR: The leaderboard with ID: 1 not found in config. Deletion of an existing leaderboard after challenge creation is not allowed.",
     "44* challenge_phases[0].id: is VALUE. Write a whole number | [A valid integer is required. (invalid)]",
     "46* challenge_phases: lacks id 1 (first), which already exists on EvalAI. Restore it: pushed parts can be changed, not deleted | ERROR: Challenge phase 1 not found in config. Deletion of existing challenge phase after challenge creation is not allowed.",
     "51* dataset_splits[0].id: is VALUE. Write a whole number | ERROR: Dataset split one has the following schema errors:\\n [A valid integer is required. (invalid)]",
     "53* dataset_splits: lacks id 1 (dev), which already exists on EvalAI. Restore it: pushed parts can be changed, not deleted | ERROR: Dataset split 1 not found in config. Deletion of existing dataset split after challenge creation is not allowed.",
     "58* challenge_phase_splits[0].leaderboard_id: 1 is not an id of leaderboard. Write an id of that block | ERROR: Invalid leaderboard id 1 found in challenge phase split 1.",
     "58* challenge_phase_splits[0].challenge_phase_id: 1 is not an id of challenge_phases. Write an id of that block | ERROR: Invalid phased id 1 found in challenge phase split 1.",
     "58* challenge_phase_splits[0].dataset_split_id: 1 is not an id of dataset_splits. Write an id of that block | ERROR: Invalid dataset split id 1 found in challenge phase split 1.",
     "68 challenge_phases[0].id: is VALUE, so an update cannot find it. Number it from 1 | Error in creating challenge: None. Please check the yaml configuration!",
     "68 challenge_phases[0].codename: is VALUE, whose URL would equal another phase's. Make codenames differ in more than case, spaces and punctuation | Error in creating challenge: challenge phase update one :. Please check the yaml configuration![challenge phase with this slug already exists. (unique)]",
     "later challenge_phases[0]: is not in challenge_phase_splits. Map it, or every submission to it fails",
     "warning leaderboard[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed",
     "warning dataset_splits[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("all ids are lists", APPROVED, alter(*((f"{key}.0.id", [1]) for key in ("leaderboard", "challenge_phases", "dataset_splits"))),
     "31* leaderboard[0].id: is VALUE. Write a whole number | ERROR: The leaderboard with ID: [1] has the following schema errors:\\n [A valid integer is required. (invalid)]",
     "32* leaderboard: lacks id 1, which already exists on EvalAI. Restore it: pushed parts can be changed, not deleted | ERROR: The leaderboard with ID: 1 not found in config. Deletion of an existing leaderboard after challenge creation is not allowed.",
     "44* challenge_phases[0].id: is VALUE. Write a whole number | [A valid integer is required. (invalid)]",
     "46* challenge_phases: lacks id 1 (first), which already exists on EvalAI. Restore it: pushed parts can be changed, not deleted | ERROR: Challenge phase 1 not found in config. Deletion of existing challenge phase after challenge creation is not allowed.",
     "51* dataset_splits[0].id: is VALUE. Write a whole number | ERROR: Dataset split [1] has the following schema errors:\\n [A valid integer is required. (invalid)]",
     "53* dataset_splits: lacks id 1 (dev), which already exists on EvalAI. Restore it: pushed parts can be changed, not deleted | ERROR: Dataset split 1 not found in config. Deletion of existing dataset split after challenge creation is not allowed.",
     "58* challenge_phase_splits[0].leaderboard_id: 1 is not an id of leaderboard. Write an id of that block | ERROR: Invalid leaderboard id 1 found in challenge phase split 1.",
     "58* challenge_phase_splits[0].challenge_phase_id: 1 is not an id of challenge_phases. Write an id of that block | ERROR: Invalid phased id 1 found in challenge phase split 1.",
     "58* challenge_phase_splits[0].dataset_split_id: 1 is not an id of dataset_splits. Write an id of that block | ERROR: Invalid dataset split id 1 found in challenge phase split 1.",
     "68 leaderboard[0].id: is VALUE, so an update cannot find it. Number it from 1 | Error in creating challenge: None. Please check the yaml configuration!",
     "68 challenge_phases[0].id: is VALUE, so an update cannot find it. Number it from 1 | Error in creating challenge: None. Please check the yaml configuration!",
     "68 challenge_phases[0].codename: is VALUE, whose URL would equal another phase's. Make codenames differ in more than case, spaces and punctuation | Error in creating challenge: challenge phase update [1] :. Please check the yaml configuration![challenge phase with this slug already exists. (unique)]",
     "68 dataset_splits[0].id: is VALUE, so an update cannot find it. Number it from 1 | Error in creating challenge: None. Please check the yaml configuration!",
     "later challenge_phases[0]: is not in challenge_phase_splits. Map it, or every submission to it fails",
     "warning leaderboard[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed",
     "warning dataset_splits[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("a queue of another kind", APPROVED, put(CONFIG, "use_fifo_sqs", True),
     "68+ use_fifo_sqs: is VALUE, and was False. Restore the earlier value | Error in creating challenge: challenge :. Please check the yaml configuration![use_fifo_sqs cannot be changed after the challenge queue has been created. (invalid)]"),
    ("no rows", APPROVED, put(CONFIG, "challenge_phase_splits", []),
     "55* challenge_phase_splits: is empty. Map each phase to its splits | ERROR: There is no key for challenge phase splits.",
     "later challenge_phases[0]: is not in challenge_phase_splits. Map it, or every submission to it fails",
     "warning leaderboard[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed",
     "warning dataset_splits[0]: is not in challenge_phase_splits. Map it, or remove it: it can never be deleted once pushed"),
    ("no phases", APPROVED, put(CONFIG, "challenge_phases", []),
     "34* challenge_phases: is empty. Add a phase | ERROR: No challenge phase key found. Please add challenge phases in the YAML file and try again!",
     "58* challenge_phase_splits[0].challenge_phase_id: 1 is not an id of challenge_phases. Write an id of that block | ERROR: Invalid phased id 1 found in challenge phase split 1."),
    ("a title of another word", APPROVED, put(SECOND, "title", "ü x"),
     '68+ title: begins with VALUE; EvalAI makes the URLs of its phases from the first word. Begin it with a word of only a-z, A-Z, 0-9, - and _, then a space | Error in creating challenge: challenge phase update 2 :. Please check the yaml configuration![Enter a valid "slug" consisting of letters, numbers, underscores or hyphens. (invalid)]'),
]  # fmt: skip

WRITTEN = write_yaml(CONFIG)
#: YAML as it is written.
TEXTS: list[tuple[Any, ...]] = [
    ("no text", b"", "7* challenge_config.yaml: is empty or not a mapping (500). Write it as key: value"),
    ("a number", b"7", "7* challenge_config.yaml: is empty or not a mapping (500). Write it as key: value"),
    ("a tab", b"title: x\n\ty: 1",
     "5* challenge_config.yaml: is not valid YAML: found character '\\t' that cannot start any token. Correct that line or the one above | Found character '\\t' that cannot start any token in line 2, column 1"),
    ("an open bracket", b"title: [x\n",
     "5* challenge_config.yaml: is not valid YAML: expected ',' or ']', but got '<stream end>'. Correct that line or the one above | Expected ',' or ']', but got '<stream end>' in line 2, column 1"),
    ("an open quote", b"title: 'x\n",
     "5* challenge_config.yaml: is not valid YAML: found unexpected end of stream. Correct that line or the one above | Found unexpected end of stream in line 2, column 1"),
    ("two colons", b"title: a: b\n",
     "5* challenge_config.yaml: is not valid YAML: mapping values are not allowed here. Correct that line or the one above | Mapping values are not allowed here in line 1, column 9"),
    ("a control character", b"title: \x07\n",
     "5* challenge_config.yaml: is not valid YAML: special characters are not allowed (character 7, at 7). Remove that character | None in line None, column None"),
    ("half of UTF-8", b"title: \xe9\n", "5* challenge_config.yaml: is not valid YAML: it is not UTF-8 (invalid continuation byte) (500). Correct it, and save it as UTF-8"),
    ("a date that there is not", b"title: x\nstart_date: 2026-02-31 00:00:00\n",
     "5* challenge_config.yaml: holds an invalid value: day is out of range for month (500). Correct that value"),
    ("an anchor that there is not", b"title: *x\n",
     "5* challenge_config.yaml: is not valid YAML: found undefined alias 'x'. Correct that line or the one above | Found undefined alias 'x' in line 1, column 8"),
    ("a tag of Python's", b"title: !!python/object:os.system x\n",
     "5* challenge_config.yaml: is not valid YAML: could not determine a constructor for the tag 'tag:yaml.org,2002:python/object:os.system'. Correct that line or the one above | Could not determine a constructor for the tag 'tag:yaml.org,2002:python/object:os.system' in line 1, column 8"),
    ("a number that is none", b"title: !!int x\n",
     "5* challenge_config.yaml: holds an invalid value: invalid literal for int() with base 10: 'x' (500). Correct that value"),
    ("a list as a key", b"? [a]\n: 1\n",
     "5* challenge_config.yaml: is not valid YAML: found unhashable key. Correct that line or the one above | Found unhashable key in line 1, column 3"),
    ("a mapping as a key", b"{a: 1}: 1\n",
     "5* challenge_config.yaml: is not valid YAML: found unhashable key. Correct that line or the one above | Found unhashable key in line 1, column 1"),
    ("keys that are written twice", WRITTEN.replace(b'"id": 1', b'"id": 2, "id": 1').replace(b'"title"', b'"title": "x", "title"'),
     "warning title: occurs twice; the last one counts. Remove one",
     "warning leaderboard[0].id: occurs twice; the last one counts. Remove one",
     "warning challenge_phases[0].id: occurs twice; the last one counts. Remove one",
     "warning dataset_splits[0].id: occurs twice; the last one counts. Remove one"),
    ("two documents", b"title: a\n---\ntitle: b\n",
     "5* challenge_config.yaml: is not valid YAML: but found another document. Correct that line or the one above | But found another document in line 2, column 1"),
    ("a merge", WRITTEN.replace(b'"name": "First"', b'"<<": {name: First}'), "44* challenge_phases[0].name: is missing. Add it | [This field is required. (required)]",
     "warning challenge_phases[0].<<: is ignored by EvalAI. Remove it"),
    ("a merge of a text", b"<<: x\n",
     "5* challenge_config.yaml: is not valid YAML: expected a mapping or list of mappings for merging, but found scalar. Correct that line or the one above | Expected a mapping or list of mappings for merging, but found scalar in line 1, column 5"),
]  # fmt: skip

#: Files of the zip that are others; None is not there.
ZIPS: list[tuple[Any, ...]] = [
    ("no config", {"challenge_config.yaml": None}, "3* b.zip: holds no challenge config. Put it at the top | There is no YAML file in the zip file you uploaded!"),
    ("a config in a folder", {"challenge_config.yaml": None, "x/challenge_config.yml": b"a: 1"},
     "3* b.zip: holds no challenge config at its top, only x/challenge_config.yml. Put it at the top | There is no YAML file in the zip file you uploaded!"),
    ("two configs", {"challenge_config.yml": b"a: 1"},
     "4* b.zip: holds challenge_config.yaml and challenge_config.yml. Keep one | There are 2 challenge config YAML files instead of 1 in the zip file!"),
    ("a second YAML", {"data/other.yml": b"a: 1", "__MACOSX/x.yaml": b""},
     "form data/other.yml: is a second YAML file. Remove it, or push the bundle | There are 2 YAML files instead of one in zip folder!"),
    ("a name that leads out", {"../x": b""},
     "2* b.zip: holds ../x, which points outside. Make it with segjudge build | The zip file contents cannot be extracted. Please check the format!"),
    ("a name from the root", {"/x": b""},
     "2* b.zip: holds /x, which points outside. Make it with segjudge build | The zip file contents cannot be extracted. Please check the format!"),
    ("a file and a folder", {"x": b"", "x/y": b""}, "2* b.zip: holds x as a file, and x/y in it (500). Rename one of them"),
    ("a long name", {"é" * 128: b""}, "2* b.zip: holds 'ééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé, which is not a file name (500). Rename it"),
    ("no name", {".": b""}, "2* b.zip: holds '.', which is not a file name (500). Rename it"),
    ("no texts", {"text.html": None, "logo.png": None, "script.zip": None, "truth.txt": None},
     "15* description: names VALUE, which does not exist. Add the file, or correct the path | File at path description not found. Please specify a valid file path",
     "15* evaluation_details: names VALUE, which does not exist. Add the file, or correct the path | File at path evaluation_details not found. Please specify a valid file path",
     "15* terms_and_conditions: names VALUE, which does not exist. Add the file, or correct the path | File at path terms_and_conditions not found. Please specify a valid file path",
     "15* submission_guidelines: names VALUE, which does not exist. Add the file, or correct the path | File at path submission_guidelines not found. Please specify a valid file path",
     "19* evaluation_script: names VALUE, which does not exist. Write evaluation_script.zip; the build makes it | ERROR: No evaluation script is present in the zip file. Please add it and then try again!",
     "24 image: names VALUE, which is not a .png, .jpg or .jpeg file in the bundle (with a lower-case ending). Add the picture, or correct the path | [The submitted data was not a file. Check the encoding type on the form. (invalid)]",
     "38* challenge_phases[0].test_annotation_file: names VALUE, which does not exist. Add the file, or correct the path | ERROR: No test annotation file found in the zip file for challenge phase First",
     "37* challenge_phases[0].description: names VALUE, which is not an .html file in the bundle. Add the file, or correct the path | ERROR: Challenge phase 1 has the following schema errors:\\n [This field may not be null. (null)]"),
    ("a truth of nothing", {"truth.txt": b""}, "44* challenge_phases[0].test_annotation_file: VALUE is empty. Write it again | [The submitted file is empty. (empty)]"),
    ("a large text", {"text.html": b"x" * ((4 << 20) + 1)}, "later* b.zip: text.html in it unpacks to 4,194,305 bytes. Keep each text file below 4 MiB"),
    ("annotations that stay", {"annotations/a.txt": b"", "annotations/b.txt": b""}),
]  # fmt: skip

MODULES = {"modules/__init__.py": "", "modules/a.py": "from .. import main\nfrom ..main import x\nfrom ... import y\n"}
#: Files of the script that are others, where the script is not Segjudge's.
SCRIPTS: list[tuple[Any, ...]] = [
    ("as it should be", {}),
    ("no evaluate", {"__init__.py": ""}, "later* script/__init__.py: has no evaluate, so every submission fails. Write: from .main import evaluate"),
    ("a star", {"__init__.py": "from .main import *\n"}),
    ("not Python 3.9", {"main.py": "def f(x):\n    match x:\n        case 1: pass\n"}, "later* script/main.py:3: is not Python 3.9. Correct it"),
    ("not Python, and not loaded", {"other.py": "a b\n"}, "warninglater script/other.py:1: is not Python 3.9. Correct it"),
    ("a NUL", {"main.py": "a = '\0'\n"}, "later* script/main.py: is not Python 3.9. Correct it"),
    ("its own modules absolutely", {"main.py": "import other\nfrom other import x\nimport script.other\n", "other.py": ""},
     "later* script/main.py:1: imports other absolutely, but EvalAI's worker cannot find that module. Write it with a dot: from .other import …",
     "later* script/main.py:2: imports other absolutely, but EvalAI's worker cannot find that module. Write it with a dot: from .other import …",
     "later* script/main.py:3: imports script.other absolutely, but EvalAI's worker cannot find that module. Write it with a dot: from .other import …"),
    ("its own modules with a path", {"main.py": "import sys\nsys.path.append('.')\nimport other\n", "other.py": ""}),
    ("its own modules, where they may be missing", {"main.py": "try:\n    import other\nexcept ImportError:\n    pass\n", "other.py": ""}),
    ("modules that are not there", {"main.py": "from .lost import x\nfrom . import gone, here\nfrom .here import y\n", "here.py": "from . import *\n"},
     "later* script/main.py:1: imports .lost, which is not in the zip. Add it to the folder, which is uploaded as a whole",
     "later* script/main.py:2: imports .gone, which is not in the zip. Add it to the folder, which is uploaded as a whole"),
    ("folders", {"main.py": "from .modules import a\nfrom .modules.a import x\nfrom .modules.b import y\n", **MODULES},
     "later* script/main.py:3: imports .modules.b, which is not in the zip. Add it to the folder, which is uploaded as a whole",
     "later* script/modules/a.py:3: imports ..., which is not in the zip. Add it to the folder, which is uploaded as a whole"),
    ("a module that only an unused one lacks", {"unused.py": "from .lost import x\n"},
     "warninglater script/unused.py:1: imports .lost, which is not in the zip. Add it to the folder, which is uploaded as a whole"),
    ("requirements", {"requirements.txt": "# none\n\nnumpy\nnumpy==1.0  # old\nnumpy>=1.0\n-e .\ngit+https://x/y\n./wheel\nx @ git+https://x\n--find-links x\n-r other.txt\na b c\nPillow==1; python_version < '3'\nscipy==9 \\\n  --hash=sha256:0\nhttps://x/y.whl\nsix>=99\nSIX==0.1"},
     "later* script/requirements.txt:4: asks for numpy==1.0, but EvalAI's worker pins numpy 1.26.4: it would never start. Allow 1.26.4",
     "later* script/requirements.txt:6: asks for -e ., but EvalAI's worker has neither git nor a compiler. Name a released package that has a wheel",
     "later* script/requirements.txt:7: asks for git+https://x/y, but EvalAI's worker has neither git nor a compiler. Name a released package that has a wheel",
     "later* script/requirements.txt:8: asks for ./wheel, but EvalAI's worker has neither git nor a compiler. Name a released package that has a wheel",
     "later* script/requirements.txt:9: asks for x @ git+https://x, but EvalAI's worker has neither git nor a compiler. Name a released package that has a wheel",
     "warning script/requirements.txt:10: has the option --find-links. Make sure that it also works on EvalAI's worker",
     "warning script/requirements.txt:11: has the option -r. Make sure that it also works on EvalAI's worker",
     "later* script/requirements.txt:12: is not a requirement (Expected semicolon (after name with no version specifier) or end). Write it as name>=version",
     "later* script/requirements.txt:14: asks for scipy==9, but EvalAI's worker pins scipy 1.11.4: it would never start. Allow 1.11.4",
     "later* script/requirements.txt:15: asks for https://x/y.whl, but EvalAI's worker has neither git nor a compiler. Name a released package that has a wheel"),
]  # fmt: skip

LABELS = ["J&F-Mean", "J-Mean"]
OURS = alter(
    ("leaderboard.0.schema", {"labels": LABELS, "default_order_by": "J-Mean"}),
    ("challenge_phases.0.test_annotation_file", "truth.zip"),
)
PHASES_TEXT = """from .files import UNIT_LIMITS
from .scoring import Phase, PhaseSplit
from .scoring.phase import Notify

LABELS = ("J&F-Mean", "J-Mean")
PHASES = (
    Phase("first", "truth.zip", (PhaseSplit("dev", "davis2017", LABELS),)),
)
"""
SPLIT = 'PhaseSplit("dev", "davis2017", LABELS)'
#: What is written otherwise in `phases.py`: the text that is replaced, and the other one.
PHASES: list[tuple[str, ...]] = [
    ("as the YAML", "", ""),
    ("a syntax error", "PHASES = (", "PHASES = ((", "later* script/phases.py:6: is not Python 3.9. Correct it",
     "later* phases.py: cannot be read (evaluation_script/phases.py, line 6: SyntaxError). Correct it"),
    ("an error", "LABELS = ", "LABELS = 1 / 0, ",
     "later* phases.py: cannot be read (evaluation_script/phases.py, line 5: ZeroDivisionError: division by zero). Correct it"),
    ("no phases", "PHASES", "OTHERS", "later* phases.py: cannot be read (evaluation_script/phases.py: PHASES is not a tuple of phases). Correct it"),
    ("phases in a list", "PHASES = (", "PHASES = list, (", "later* phases.py: cannot be read (evaluation_script/phases.py: PHASES is not a tuple of phases). Correct it"),
    ("another codename", '"first"', '"fist"', "later* phases.py: lacks the phase first. Add a row, or remove it from the YAML",
     "later* phases.py: has the phase fist, which the YAML lacks. Remove it, or add it there"),
    ("another file", '"truth.zip"', '"annotations/other.zip"', "later* phases.py, first: reads annotations/other.zip, not the file of the YAML. Make them agree"),
    ("another detail", "),)),", '),), detail="much"),', "later* phases.py, first: has detail='much'. Write one of means, sequences, all"),
    ("another report", "),)),", '),), report="yes"),', "later* phases.py, first: has report='yes'. Write True or False"),
    ("a report", "),)),", "),), report=True),"),
    ("other metrics", "LABELS),", '("J&F-Mean", "J-Meen")),',
     "later* phases.py, first: the metrics of dev differ from the labels of its leaderboard in the YAML. Write the same names, in the same order, in both files",
     "later* phases.py, first: davis2017 has no metric J-Meen, only J&F-Mean, J-Mean, J-Recall, J-Decay, F-Mean, F-Recall, F-Decay, J-Volume, F-Volume, J-Visible, F-Visible, False-Alarm; did you mean J-Mean?. Use one of its metrics"),
    ("another order of metrics", "LABELS),", '("J-Mean", "J&F-Mean")),',
     "later* phases.py, first: the metrics of dev differ from the labels of its leaderboard in the YAML. Write the same names, in the same order, in both files"),
    ("another protocol", '"davis2017"', '"davis2071"',
     "later* phases.py, first: there is no protocol 'davis2071'; did you mean davis2017? (`segjudge benchmarks` lists all). Name one, or install its plug-in, which the `requirements.txt` of the challenge lists"),
    ("a protocol of another family", '"davis2017"', '"places2017"',
     "later* phases.py, first: places2017 has no metric J&F-Mean, J-Mean, only AP, AP50, AP75, APs, APm, APl, AR@1, AR@50, AR@255, ARs, ARm, ARl. Use one of its metrics",
     "later* phases.py, first: VALUE holds sequences, not instances. Name another file or protocol"),
    ("a split that the truth lacks", f"{SPLIT},", f'{SPLIT}, PhaseSplit("test", "davis2017", LABELS),',
     "later* phases.py, first: its splits differ from the YAML's (dev). Make them agree",
     "later* phases.py, first: VALUE has only the splits dev. Pack the missing splits"),
    ("a hidden split", "LABELS),", "LABELS, hidden=True),",
     "later* phases.py, first: hides the scores of dev, but visibility: 3 in the YAML shows them to everybody. Set visibility: 1 in the YAML, or remove hidden=True"),
    ("a notification", "),)),", '),), notify=Notify("dev", "J-Mean", 0.5)),'),
    ("a notification without a metric", "),)),", "),), notify=Notify(threshold=0.5)),",
     "later* phases.py, first: notify names no metric of any split, which participants may not see. Name one of the phase's splits and metrics"),
    ("a notification of another metric", "),)),", '),), notify=Notify("dev", "AP", 0.5)),',
     "later* phases.py, first: notify names AP of dev, which participants may not see. Name one of the phase's splits and metrics"),
    ("a notification of another split", "),)),", '),), notify=Notify("test", "J-Mean", 0.5)),',
     "later* phases.py, first: notify names J-Mean of test, which participants may not see. Name one of the phase's splits and metrics"),
    ("a notification of a hidden split", "LABELS),)),", 'LABELS, hidden=True),), notify=Notify("", "J-Mean", 0.5)),',
     "later* phases.py, first: notify names J-Mean of any split, which participants may not see. Name one of the phase's splits and metrics",
     "later* phases.py, first: hides the scores of dev, but visibility: 3 in the YAML shows them to everybody. Set visibility: 1 in the YAML, or remove hidden=True"),
    ("a notification of all", "),)),", "),), notify=Notify()),"),
]  # fmt: skip

#: The YAML beside a `phases.py` that is right.
BESIDE: list[tuple[Any, ...]] = [
    ("a split that participants may not see", put(OURS, "challenge_phase_splits.0.visibility", 1),
     'later* phases.py, first: shows the scores of dev, but the visibility in the YAML hides them from participants. Write PhaseSplit("dev", …, hidden=True), or set visibility: 3'),
    ("a visibility in quotes", put(OURS, "challenge_phase_splits.0.visibility", "3")),
    ("remote evaluation, and a report", put(OURS, "remote_evaluation", True),
     "warning challenge_phases[0].test_annotation_file: would upload truth.zip to EvalAI, which does not need it. Remove it, as segjudge build --variant does",
     "warning phases.py, first: has report=True, but EvalAI accepts no result file from a remote worker, so nobody sees the page. Remove it, and make pages with `segjudge report`; the remote worker ignores it"),
    ("no annotation file", put(OURS, "challenge_phases.0.test_annotation_file", None),
     "later* challenge_phases[0].test_annotation_file: is missing, so EvalAI's worker dies at every start. Name a file of annotations/",
     "form challenge_phases[0].test_annotation_file: is missing, but the form requires an annotation file for every phase. Push the bundle | There is no key for test annotation file for challenge phase First in yaml file. Please add it and  then try again!"),
    ("an annotation file that is none", put(OURS, "challenge_phases.0.test_annotation_file", "truth.txt"),
     "later* phases.py, first: reads truth.zip, not the file of the YAML. Make them agree"),
    ("an old Python", put(OURS, "worker_python_version", "3.8"), "later* worker_python_version: is older than the scorers' 3.9. Write 3.9, or remove the line"),
    ("code", put(OURS, "is_docker_based", True),
     "warning challenge_phases[0].test_annotation_file: would upload truth.zip to EvalAI, which does not need it. Remove it, as segjudge build --variant does",
     "later* challenge_phases[0].environment_image: is missing, so no pod can start. Name the image of your environment"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, with one cache of what scripts import."""
    monkeypatch.chdir(tmp_path_factory.mktemp("damages"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def name_rows(rows: list[Any]) -> list[Any]:
    return [pytest.param(row, id=str(row[0])) for row in rows]


@pytest.mark.long
@pytest.mark.parametrize("row", name_rows(DAMAGES))
def test_a_damaged_value_is_reported_with_its_remedy_and_the_servers_words(row: tuple[str, ...]) -> None:
    path, names, *expected = row
    for name in names.split(", "):
        assert examine(put(CONFIG, path, OTHERS.get(name, name)), path=path) == expected, name


@pytest.mark.long
@pytest.mark.parametrize("row", name_rows(CHALLENGES))
def test_values_that_do_not_agree_are_reported(row: Any) -> None:
    _, config, *expected = row
    assert examine(config) == expected


@pytest.mark.parametrize("row", name_rows(UPDATES))
def test_an_update_is_compared_with_the_state_of_the_server(row: Any) -> None:
    _, state, config, *expected = row
    assert examine(config, state) == expected


@pytest.mark.parametrize("row", name_rows([*TEXTS, *ZIPS]))
def test_a_damaged_zip_or_config_is_reported(row: Any) -> None:
    _, damage, *expected = row
    assert (examine(damage) if isinstance(damage, bytes) else examine(CONFIG, files=damage)) == expected


@pytest.mark.parametrize("row", name_rows(SCRIPTS))
def test_what_the_worker_cannot_load_is_reported(row: Any) -> None:
    _, files, *expected = row
    assert examine(CONFIG, files={"script.zip": zipped({**SCRIPT, **files})}) == expected


@pytest.mark.long
@pytest.mark.parametrize("row", name_rows(PHASES))
def test_phases_that_contradict_the_yaml_or_the_annotations_are_reported(row: tuple[str, ...]) -> None:
    _, old, new, *expected = row
    assert examine_ours(OURS, PHASES_TEXT.replace(old, new)) == expected


@pytest.mark.long
@pytest.mark.parametrize("row", name_rows(BESIDE))
def test_a_config_that_contradicts_the_phases_is_reported(row: Any) -> None:
    _, config, *expected = row
    assert examine_ours(config, PHASES_TEXT.replace("),)),", "),), report=True),")) == expected


def test_phases_that_score_otherwise_than_at_the_last_push_are_reported() -> None:
    scoring = "dev by davis2017, revision 1; from 0 to 1"
    for before, expected in (
        (scoring, []),
        ("by hand", [(f"warning phases.py, first: has been scored differently since the last push ({scoring}; before: by hand). "
                     "The leaderboard sorts old scores among new ones: re-run every submission of the phase after the push")]),
    ):  # fmt: skip
        state = ServerState.after_push(OURS, source="a test", scoring={"first": before, "gone": "x"})
        assert examine_ours(OURS, PHASES_TEXT, state) == expected


def test_a_file_that_holds_no_annotations_is_reported() -> None:
    (line,) = examine_ours(BESIDE[4][1], PHASES_TEXT.replace('"truth.zip"', '"truth.txt"'))
    assert line == (
        "later* truth.txt: is neither a zip nor a tar archive nor JSON. Every submission would fail. Write the file with `segjudge pack`"
    )


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("title", None, 'refused 8: challenge_config.yaml:2:2: title: is missing. Give the challenge a title. EvalAI says: "Please add the challenge title"'),
        ("tags", 7, "refused 64: challenge_config.yaml:24:2: tags: is 7, not a list; EvalAI answers with error 500 and no reason. Begin each tag with -, or remove the line."),
        ("max_team_members", -1, "refused 24: challenge_config.yaml:12:2: max_team_members: is -1. Write 0 or more. EvalAI says: \"ERROR: Unable to serialize the challenge because of the following errors: {'max_team_members': [ErrorDetail(string='Ensure this value is greater than or equal to 0.', code='min_value')]}.\""),
        ("challenge_phases.0.name", None, "refused 44: challenge_config.yaml:59:4: challenge_phases[0].name: is empty. Give it a value, or remove the line. EvalAI says: \"ERROR: Challenge phase 1 has the following schema errors:\\n {'name': [ErrorDetail(string='This field may not be null.', code='null')]}\""),
    ],
)  # fmt: skip
def test_a_problem_has_its_place_and_the_whole_words_of_the_server(path: str, value: Any, expected: str) -> None:
    examine(put(CONFIG, path, value))
    assert [show(problem) for problem in check("b.zip")] == [expected]


#: No file at all (1), never reached after 2 (6), never an error by itself (9), configured by 24 (23), not tested at all (67).
ELSEWHERE = {1, 6, 9, 23, 67}


def test_each_rule_of_the_server_has_a_bundle_that_breaks_it() -> None:
    rows = [*DAMAGES, *CHALLENGES, *UPDATES, *TEXTS, *ZIPS, *SCRIPTS]
    marks = [re.match(r"(\d+)[*+-]? ", line) for row in rows for line in row[1:] if isinstance(line, str)]
    assert {int(mark[1]) for mark in marks if mark} | ELSEWHERE >= set(range(1, 68))
