"""Small competitions for Codabench, each damaged in one place, and all that `check` says about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from segjudge.platforms.codabench import opened_competition, pitfalls
from segjudge.platforms.codabench.check import check
from segjudge.system.errors import UsageError
from tests.builders import written, zipped
from tests.platforms.damages import GONE, VALUES, Config, brief, change, grow, new_folder, plain, put, show, write_yaml

from .competitions import CONFIG, DOCUMENT, FILES, PROGRAM, UUID, encrypt


@pytest.fixture(scope="module", autouse=True)
def folder() -> Iterator[None]:
    """Work beside the files of a small competition."""
    with new_folder():
        Path("c").mkdir()
        written(Path("c"), FILES)
        yield


def examine(config: Any, files: Mapping[str, bytes] | None = None, path: str = "") -> list[str]:
    """Return what is said about the competition with some files changed."""
    written(
        Path("c"), {"competition.yaml": config if isinstance(config, bytes) else write_yaml(config), **(files or {})}
    )
    try:
        return [brief(problem, path) for problem in check("c")]
    except UsageError as error:
        return [str(error)]
    finally:
        written(Path("c"), {name: FILES[name] for name in files or {}})


OTHERS = VALUES | {
    "1": 1, "1.5": 1.5, "'0'": "0", "'2'": "2", "[0]": [0], "[1]": [1], "[9]": [9], "10": 10, "11": 11, "601": 601,
    "200 letters": "x" * 200, "240 letters": "x" * 240, "400 letters": f"{'x' * 400}@example.org",
    "the key of something": UUID, "past": "2020-01-01", "nan in it": {"size": {"selection": [plain(".nan")]}},
    "half in it": {"size": {**CONFIG["fact_sheet"]["size"], "title": "a\ud800"}},
    "NUL in it": {"size": {**CONFIG["fact_sheet"]["size"], "title": "a\0"}},
}  # fmt: skip


def alter(*changes: tuple[str, Any], config: Config = CONFIG) -> Config:
    return change(config, *changes)


def extend(block: str, **values: Any) -> Config:
    return grow(CONFIG, block, **values)


def follow(**values: Any) -> Config:
    """Return the config with a second phase, which comes after the first."""
    phase = CONFIG["phases"][0]
    first, second = {**phase, "end": "2030-01-01"}, {**phase, "index": 1, "name": "Q", "start": "2030-01-02"}
    return {**CONFIG, "phases": [first, {**second, **values}]}


COLUMN = CONFIG["leaderboards"][0]["columns"][0]
#: A key, the values that are put there (`OTHERS` has what they stand for), and what is said of each.
DAMAGES: list[tuple[str, ...]] = [
    ("version", "gone", "4 is missing, so Codabench reads it as a CodaLab bundle. Write version: 2 | HTML pages could not be found in the yaml file"),
    ("version", "null, 7, text", "4 is VALUE. Write version: 2 | A suitable version could not be found for this competition. Make sure one is supplied in the yaml."),
    ("version", "1, 1.5", "4 is VALUE, so Codabench reads it as a CodaLab bundle. Write version: 2 | HTML pages could not be found in the yaml file"),
    ("title", "gone, null", "9 is VALUE, but Codabench expects a text of up to 256 characters. Correct title | title: This field may not be null."),
    ("title", "true, []", "9 is VALUE, but Codabench expects a text of up to 256 characters. Correct title | title: Not a valid string."),
    ("title", "empty, blank", "9 is VALUE, but Codabench expects a text of up to 256 characters. Correct title | title: This field may not be blank."),
    ("title", "300 letters", "9 is VALUE, but Codabench expects a text of up to 256 characters. Correct title | title: Ensure this field has no more than 256 characters.",
     "warning9 has 300 characters; with a long user name, creation fails halfway. Keep it below 182"),
    ("title", "NUL", "9 is VALUE, but Codabench expects a text of up to 256 characters. Correct title | title: Null characters are not allowed."),
    ("title", "half a character", "9 is VALUE, but Codabench expects a text of up to 256 characters. Correct title | title: Surrogate characters are not allowed: U+D800."),
    ("title", "date", "9 is VALUE, 1, 1), but Codabench expects a text of up to 256 characters. Correct title | title: Not a valid string."),
    ("title", "240 letters",
     "9 has 240 characters; creation fails halfway, and the competition remains. Shorten it | Unpacking the bundle failed. Here is the error log: value too long for type character varying(255)",
     "warning9 has 240 characters; with a long user name, creation fails halfway. Keep it below 182"),
    ("description", "NUL", "9 is VALUE, but Codabench expects a text. Correct description | description: Null characters are not allowed."),
    ("description", "[]", "9 is VALUE, but Codabench expects a text. Correct description | description: Not a valid string."),
    ("image", "gone", "10 is missing. Name a picture | An image for this competition could not be found in the yaml"),
    ("image", "null",
     "10 is VALUE, not the path of a file. Write a path, or omit the key | Unpacking the bundle failed. Here is the error log: join() argument must be str, bytes, or os.PathLike object, not 'NoneType'"),
    ("image", "empty",
     "10 an empty path is a folder. Name a picture | Unpacking the bundle failed. Here is the error log: [Errno 21] Is a directory: '<temporary folder>/'"),
    ("image", "text", "10 text is not in the bundle. Put it there, or correct the path | Unable to find image: text"),
    ("image", "folder",
     "10 folder is a folder. Name a picture | Unpacking the bundle failed. Here is the error log: [Errno 21] Is a directory: '<temporary folder>/folder'"),
    ("image", "empty.md, nul.md, latin.md, logo.bmp, text.md", "10 VALUE is not a picture. Save it as PNG or JPEG | logo: Please upload a valid image."),
    ("image", "../text.md", "10 VALUE is not in the bundle. Put it there, or correct the path | Unable to find image: ../text.md",
     "warning5 ../text.md leads out of the bundle, to the site's files. Put it into the bundle"),
    ("image", "/etc", "10 /etc is a folder. Name a picture | Unpacking the bundle failed. Here is the error log: [Errno 21] Is a directory: '<temporary folder>//etc'",
     "warning5 /etc leads out of the bundle, to the site's files. Put it into the bundle"),
    ("image", "wide.png",
     "11 VALUE is more than 100 times as wide as it is high. Cut it | Unpacking the bundle failed. Here is the error log: height and width must be > 0"),
    ("image", "picture.bmp", "10 VALUE is bmp. Save it as PNG or JPEG | logo: The type of the image couldn't be determined."),
    ("image", "half.png", "10 half.png cannot be made smaller. Save it as PNG or JPEG | Unpacking the bundle failed. Here is the error log: image file is truncated"),
    ("terms", "gone", "12 is missing. Name a text file | A file containing the terms of this competition has not been supplied in the required location"),
    ("terms", "empty", "12 an empty path is a folder. Name a file | Unpacking the bundle failed. Here is the error log: [Errno 21] Is a directory: '<temporary folder>/'"),
    ("terms", "text", "12 text is not in the bundle. Put it there, or correct the path | Unable to find page: text"),
    ("terms", "folder", "12 folder is a folder. Name a file | Unpacking the bundle failed. Here is the error log: [Errno 21] Is a directory: '<temporary folder>/folder'"),
    ("terms", "empty.md", "12 VALUE is empty. Write something | empty.md is empty, it must contain content."),
    ("terms", "nul.md", "12 VALUE holds a NUL character, in line 2. Remove it | terms: Null characters are not allowed."),
    ("terms", "latin.md",
     "12 VALUE is not UTF-8. Save it as UTF-8 | Unpacking the bundle failed. Here is the error log: 'utf-8' codec can't decode byte 0xe9 in position 0: unexpected end of data"),
    ("terms", "../text.md", "12 VALUE is not in the bundle. Put it there, or correct the path | Unable to find page: ../text.md",
     "warning5 ../text.md leads out of the bundle, to the site's files. Put it into the bundle"),
    ("terms", "/etc", "12 /etc is a folder. Name a file | Unpacking the bundle failed. Here is the error log: [Errno 21] Is a directory: '<temporary folder>//etc'",
     "warning5 /etc leads out of the bundle, to the site's files. Put it into the bundle"),
    ("docker_image", "gone",
     "warning14 is missing, so programs run in codalab/codalab-legacy:py37, which has Python 3.7. Write docker_image: codalab/codalab-legacy:py312, or your own"),
    ("docker_image", "null", "14 is VALUE, but Codabench expects a text of up to 128 characters. Correct docker_image | docker_image: This field may not be null.",
     "warning14 None is unknown; the worker pulls it again for each run. Make sure that it is in a public registry and has the program's imports"),
    ("docker_image", "empty", "14 is VALUE, but Codabench expects a text of up to 128 characters. Correct docker_image | docker_image: This field may not be blank.",
     "warning14  is unknown; the worker pulls it again for each run. Make sure that it is in a public registry and has the program's imports"),
    ("docker_image", "300 letters",
     "14 is VALUE, but Codabench expects a text of up to 128 characters. Correct docker_image | docker_image: Ensure this field has no more than 128 characters.",
     "warning14 300 x is unknown; the worker pulls it again for each run. Make sure that it is in a public registry and has the program's imports"),
    ("docker_image", "[]", "14 is VALUE, but Codabench expects a text of up to 128 characters. Correct docker_image | docker_image: Not a valid string.",
     "warning14 [] is unknown; the worker pulls it again for each run. Make sure that it is in a public registry and has the program's imports"),
    ("registration_auto_approve", "gone", "warning19 is missing, so you must approve each participant by hand. Write it, true or false"),
    ("registration_auto_approve", "null",
     "17 is VALUE, but Codabench expects a flag. Correct registration_auto_approve | registration_auto_approve: This field may not be null."),
    ("auto_run_submissions", "text, nan", "17 is VALUE, but Codabench expects a flag. Correct auto_run_submissions | auto_run_submissions: Must be a valid boolean."),
    ("competition_type", "null", "16 is VALUE, but Codabench expects competition or benchmark. Correct competition_type | competition_type: This field may not be null."),
    ("competition_type", "7", '16 is VALUE, but Codabench expects competition or benchmark. Correct competition_type | competition_type: "7" is not a valid choice.'),
    ("reward", "300 letters",
     "16 is VALUE, but Codabench expects a text of up to 256 characters. Correct reward | reward: Ensure this field has no more than 256 characters."),
    ("contact_email", "gone, null, empty, a@é.org, a@[1.2.3.4], a@localhost"),
    ("contact_email", '7, text, a@b, a@[x], a b@c.org, a@é..org, "a b"@c.org',
     "16 is VALUE, but Codabench expects an e-mail of up to 256 characters. Correct contact_email | contact_email: Enter a valid email address."),
    ("contact_email", "400 letters",
     "16 is VALUE, but Codabench expects an e-mail of up to 256 characters. Correct contact_email | contact_email: Ensure this field has no more than 256 characters."),
    ("contact_email", "[]", "16 is VALUE, but Codabench expects an e-mail of up to 256 characters. Correct contact_email | contact_email: Not a valid string."),
    ("fact_sheet", "7, text", "18 is not a mapping. Write name: {…} | fact_sheet: Not valid JSON"),
    ("fact_sheet", "{a: 1}",
     "18 fact_sheet.a: is not a mapping. Write exactly is_on_leaderboard, is_required, key, selection, title, type | Unpacking the bundle failed. Here is the error log: 'int' object has no attribute 'keys'"),
    ("fact_sheet", "date", "18 is VALUE, 1, 1), but Codabench expects a JSON. Correct fact_sheet | fact_sheet: Value must be valid JSON."),
    ("fact_sheet", "nan in it",
     "18 fact_sheet.size: lacks a key or has one too many. Write exactly is_on_leaderboard, is_required, key, selection, title, type | fact_sheet: Missing {'is_on_leaderboard', 'is_required', 'key', 'title', 'type'} values for size",
     '18 fact_sheet.size: holds nan, which JSON lacks. Write a number or a text | Unpacking the bundle failed. Here is the error log: invalid input syntax for type json\\nDETAIL:  Token "NaN" is invalid.'),
    ("fact_sheet", "half in it",
     "18 fact_sheet.size: holds half a character (a surrogate). Write the whole character | Unpacking the bundle failed. Here is the error log: invalid input syntax for type json"),
    ("fact_sheet", "NUL in it",
     "18 fact_sheet.size: holds a NUL character. Remove it | Unpacking the bundle failed. Here is the error log: unsupported Unicode escape sequence\\nDETAIL:  \\u0000 cannot be converted to text."),
    ("fact_sheet.size.key", "gone",
     "18 fact_sheet.size: lacks a key or has one too many. Write exactly is_on_leaderboard, is_required, key, selection, title, type | fact_sheet: Missing {'key'} values for size"),
    ("fact_sheet.size.key", "7", "18 is not its name. Write key: size | fact_sheet: key:7  does not match JSON key:size"),
    ("fact_sheet.size.type", "gone",
     "18 fact_sheet.size: lacks a key or has one too many. Write exactly is_on_leaderboard, is_required, key, selection, title, type | fact_sheet: Missing {'type'} values for size"),
    ("fact_sheet.size.type", "null", "18 None is not a valid question type. Write checkbox, text or select | fact_sheet: None is not a valid question type"),
    ("fact_sheet.size.is_required", "true", 'warning18 fact_sheet.size: its flags are not text, so they have no effect. Write "true" or "false"'),
    ("fact_sheet.size.is_required", "null"),
    ("queue", "text",
     "15 'text' is not the UUID of a queue. Copy the vhost from the page of queues | Unpacking the bundle failed. Here is the error log: ['“text” is not a valid UUID.']"),
    ("queue", "the key of something", "warning15 is on the site and cannot be checked here. Make sure that it exists, and that you may use it"),
    ("pages", "gone, null", "13 is not a list. Write a list: - key: value | Unpacking the bundle failed. Here is the error log: 'NoneType' object is not iterable"),
    ("pages", "text, [text, null], {a: 1}",
     "13 is not a list of mappings. Write a list: - key: value | Unpacking the bundle failed. Here is the error log: string indices must be integers, not 'str'"),
    ("pages", "[{}]", "13 pages[0].file: is missing. Name a file | Unpacking the bundle failed. Here is the error log: 'file'",
     "13 pages[0].title: is VALUE, but Codabench expects a text of up to 255 characters. Correct title | pages: title: This field may not be null."),
    ("pages.0.title", "gone, null", "13 is VALUE, but Codabench expects a text of up to 255 characters. Correct title | pages: title: This field may not be null."),
    ("pages.0.title", "empty", "13 is VALUE, but Codabench expects a text of up to 255 characters. Correct title | pages: title: This field may not be blank."),
    ("pages.0.title", "300 letters",
     "13 is VALUE, but Codabench expects a text of up to 255 characters. Correct title | pages: title: Ensure this field has no more than 255 characters."),
    ("pages.0.title", "[]", "13 is VALUE, but Codabench expects a text of up to 255 characters. Correct title | pages: title: Not a valid string."),
    ("pages.0.file", "gone", "13 is missing. Name a file | Unpacking the bundle failed. Here is the error log: 'file'"),
    ("pages.0.file", "null",
     "13 is VALUE, not the path of a file. Write a path, or omit the key | Unpacking the bundle failed. Here is the error log: join() argument must be str, bytes, or os.PathLike object, not 'NoneType'"),
    ("pages.0.file", "empty",
     "13 an empty path is a folder. Name a file | Unpacking the bundle failed. Here is the error log: [Errno 21] Is a directory: '<temporary folder>/'"),
    ("pages.0.file", "folder",
     "13 folder is a folder. Name a file | Unpacking the bundle failed. Here is the error log: [Errno 21] Is a directory: '<temporary folder>/folder'"),
    ("pages.0.file", "empty.md", "13 VALUE is empty. Write something | Page 'empty.md' is empty, it must contain content."),
    ("pages.0.file", "nul.md", "13 VALUE holds a NUL character, in line 2. Remove it | pages: content: Null characters are not allowed."),
    ("pages.0.file", "../text.md", "13 VALUE is not in the bundle. Put it there, or correct the path | Unable to find page: ../text.md",
     "warning5 ../text.md leads out of the bundle, to the site's files. Put it into the bundle"),
    ("pages.0.file", "/etc", "13 /etc is a folder. Name a file | Unpacking the bundle failed. Here is the error log: [Errno 21] Is a directory: '<temporary folder>//etc'",
     "warning5 /etc leads out of the bundle, to the site's files. Put it into the bundle"),
    ("pages.0.file", "/proc/self/mem",
     "13 /proc/self/mem cannot be read (Input/output error). Make it readable | Unpacking the bundle failed. Here is the error log: [Errno 5] Input/output error: '<temporary folder>//proc/self/mem'",
     "warning5 /proc/self/mem leads out of the bundle, to the site's files. Put it into the bundle"),
    ("tasks", "gone", "20 is missing. Add at least one task | No tasks listed in this competition",
     "24 solutions[0].tasks: names a task that does not exist. Write indexes of tasks | Unpacking the bundle failed. Here is the error log: 'key'",
     "32 phases[0].tasks: 0 is not the index of a task: . Write it as the task does | Unpacking the bundle failed. Here is the error log: 0"),
    ("tasks.0.index", "gone", "21 is missing. Number the tasks | ERROR: No index for task: T",
     "24 solutions[0].tasks: names a task that does not exist. Write indexes of tasks | Unpacking the bundle failed. Here is the error log: 'key'",
     "32 phases[0].tasks: 0 is not the index of a task: None. Write it as the task does | Unpacking the bundle failed. Here is the error log: 0"),
    ("tasks.0.index", "7, 7",
     "24 solutions[0].tasks: names a task that does not exist. Write indexes of tasks | Unpacking the bundle failed. Here is the error log: 'key'",
     "32 phases[0].tasks: 0 is not the index of a task: 7. Write it as the task does | Unpacking the bundle failed. Here is the error log: 0",
     "warning27 tasks[0]: is in no phase. Name its index in a phase, or remove it"),
    ("tasks.0.index", "'1'", "24 solutions[0].tasks: names a task that does not exist. Write indexes of tasks | Unpacking the bundle failed. Here is the error log: 'key'",
     "32 phases[0].tasks: 0 is not the index of a task: '1'. Write it as the task does | Unpacking the bundle failed. Here is the error log: 0",
     "warning27 tasks[0]: is in no phase. Name its index in a phase, or remove it"),
    ("tasks.0.index", "[], [{}]", "21 is not a number. Number the tasks | Unpacking the bundle failed. Here is the error log: unhashable type: 'list'",
     "24 solutions[0].tasks: names a task that does not exist. Write indexes of tasks | Unpacking the bundle failed. Here is the error log: 'key'",
     "32 phases[0].tasks: 0 is not the index of a task: . Write it as the task does | Unpacking the bundle failed. Here is the error log: 0",
     "warning27 tasks[0]: is in no phase. Name its index in a phase, or remove it"),
    ("tasks.0.key", "null",
     "21 is VALUE. Write the key of a task on the site, as text | Unpacking the bundle failed. Here is the error log: 'NoneType' object is not subscriptable"),
    ("tasks.0.key", "the key of something", "warning21 is a key on the site, which cannot be checked here. Make sure that it exists"),
    ("tasks.0.name", "gone, null", "22 is VALUE, but Codabench expects a text of up to 256 characters. Correct name | name: This field may not be null."),
    ("tasks.0.scoring_program", "gone", '23 is missing. Name the zip of the scoring program | ERROR: Task "T" does not have a scoring program'),
    ("tasks.0.scoring_program", "null",
     "24 is VALUE, not the path of a file. Write a path, or omit the key | Unpacking the bundle failed. Here is the error log: join() argument must be str, bytes, or os.PathLike object, not 'NoneType'"),
    ("tasks.0.scoring_program", "text", '24 text is not in the bundle. Build it, or correct the path | Cannot find dataset: "text"'),
    ("tasks.0.scoring_program", "odd.zip", "warning6 is not a zip; every submission would fail with 'Bad or empty zip file' after 200 seconds. Zip it"),
    ("tasks.0.scoring_program", "folder",
     "warning6 is a folder. Unless the path ends in a slash, the site zips it into a place shared by all uploads. Ship a finished zip",
     "warning25 has no metadata.yaml at its root: nothing runs, and each submission fails with 'Could not find scores file…'. Write metadata.yaml with command: python3 FILE.py"),
    ("tasks.0.scoring_program", "/",
     "24 / is the root folder of the site's server, which would zip all of it. Name a finished zip in the bundle | Unpacking the bundle failed. Here is the error log:",
     "warning5 / leads out of the bundle, to the site's files. Put it into the bundle"),
    ("tasks.0.scoring_program", "NUL", '24 a\\0b is not in the bundle. Build it, or correct the path | Cannot find dataset: "a\\0b"'),
    ("tasks.0.scoring_program", "../truth.zip", '24 VALUE is not in the bundle. Build it, or correct the path | Cannot find dataset: "../truth.zip"',
     "warning5 ../truth.zip leads out of the bundle, to the site's files. Put it into the bundle"),
    ("tasks.0.reference_data", "gone"),
    ("tasks.0.reference_data", "folder", "warning6 is a folder. Unless the path ends in a slash, the site zips it into a place shared by all uploads. Ship a finished zip"),
    ("tasks.0.input_data", "the key of something", "warning24 is the key of a input_data on the site, which cannot be checked here. Check that it exists there"),
    ("solutions", "7, 7", "24 is not a list. Write a list: - key: value | Unpacking the bundle failed. Here is the error log: 'int' object is not iterable"),
    ("solutions", "[{}]", "24 solutions[0].index: is missing. See the documentation of bundles | ERROR: No index for solution: None"),
    ("solutions.0.index", "gone", "24 is missing. See the documentation of bundles | ERROR: No index for solution: S"),
    ("solutions.0.key", "text",
     "21 text is not a UUID. Copy the key of a task from the site, or omit the key | Unpacking the bundle failed. Here is the error log: ['“text” is not a valid UUID.']"),
    ("solutions.0.tasks", "gone", "24 is missing. See the documentation of bundles | Could not find tasks for solution: S"),
    ("solutions.0.tasks", "null",
     "24 is not a list. Write the indexes of tasks as a list | Unpacking the bundle failed. Here is the error log: 'NoneType' object is not iterable"),
    ("solutions.0.tasks", "text, '1', [text, null], [{}], {a: 1}",
     "24 names a task that does not exist. Write indexes of tasks | Unpacking the bundle failed. Here is the error log: 'key'"),
    ("solutions.0.path", "gone", '24 is missing. Name a zip | Solution S missing "path"'),
    ("solutions.0.path", "the key of something", "warning24 is the key of a solution on the site, which cannot be checked here. Check that it exists there"),
    ("solutions.0.path", "half a character", '24 a\\ud800b is not in the bundle. Build it, or correct the path | Cannot find dataset: "a\\ud800b"'),
    ("phases", "gone", "30 is missing. Add at least one phase | Unable to find any phases for this competition",
     "warning27 tasks[0]: is in no phase. Name its index in a phase, or remove it"),
    ("phases", "empty, [], {}", "30 is empty. Add at least one phase | Unpacking the bundle failed. Here is the error log: list index out of range",
     "warning27 tasks[0]: is in no phase. Name its index in a phase, or remove it"),
    ("phases", "text, [text, null], {a: 1}",
     "30 is not a list of mappings. Write a list: - key: value | Unpacking the bundle failed. Here is the error log: 'str' object has no attribute 'get'",
     "warning27 tasks[0]: is in no phase. Name its index in a phase, or remove it"),
    ("phases", "[{}]", "31 phases[0].tasks: is missing. List the indexes of tasks | Phases must contain at least one task to be valid",
     "31 phases[0].start: is missing. Say when the phase starts, in UTC | Unpacking the bundle failed. Here is the error log: '<' not supported between instances of 'NoneType' and 'datetime.datetime'",
     "31 phases[0].name: is VALUE, but Codabench expects a text of up to 256 characters. Correct name | phases: name: This field may not be null.",
     "warning27 tasks[0]: is in no phase. Name its index in a phase, or remove it",
     "warning40 phases[0].max_submissions_per_day: is missing, which means 5. Write it, null for no limit",
     "warning40 phases[0].max_submissions: is missing, which means 100. Write it, null for no limit"),
    ("phases.0.index", "gone, null, 7, text, '1', [], [text, 7, null], [{}], {a: 1}"),
    ("phases.0.name", "gone, null", "31 is VALUE, but Codabench expects a text of up to 256 characters. Correct name | phases: name: This field may not be null."),
    ("phases.0.name", "empty", "31 is VALUE, but Codabench expects a text of up to 256 characters. Correct name | phases: name: This field may not be blank."),
    ("phases.0.name", "300 letters",
     "31 is VALUE, but Codabench expects a text of up to 256 characters. Correct name | phases: name: Ensure this field has no more than 256 characters."),
    ("phases.0.name", "[]", "31 is VALUE, but Codabench expects a text of up to 256 characters. Correct name | phases: name: Not a valid string."),
    ("phases.0.start", "gone, null, empty, []",
     "31 is missing. Say when the phase starts, in UTC | Unpacking the bundle failed. Here is the error log: '<' not supported between instances of 'NoneType' and 'datetime.datetime'"),
    ("phases.0.start", "text",
     "35 is VALUE, which is not a date. Write it as '2026-01-31 12:00:00', in quotes | Unpacking the bundle failed. Here is the error log: Unknown string format: text"),
    ("phases.0.start", "date, moment, moment in quotes"),
    ("phases.0.start", "moment with a zone", "warning33 loses its time of day, because it is not in quotes. Write '2026-01-01 12:30:00+02:00'",
     "warning34 its time zone is ignored, not converted. Write the time in UTC"),
    ("phases.0.start", "01/02/2026", "warning35 01/02/2026 is read month first. Write year-month-day"),
    ("phases.0.end", "date, past, 2026-01-01", "warning39 is not after its start, so the phase accepts nothing. Correct it",
     "warning39 phases: have all ended. Correct their dates"),
    ("phases.0.tasks", "gone", "31 is missing. List the indexes of tasks | Phases must contain at least one task to be valid",
     "warning27 tasks[0]: is in no phase. Name its index in a phase, or remove it"),
    ("phases.0.tasks", "null", "32 is not a list. Write a list: [0] | Unpacking the bundle failed. Here is the error log: 'NoneType' object is not iterable",
     "warning27 tasks[0]: is in no phase. Name its index in a phase, or remove it"),
    ("phases.0.tasks", "'1'", "32 '1' is not the index of a task: 0. Write it as the task does | Unpacking the bundle failed. Here is the error log: '1'",
     "warning27 tasks[0]: is in no phase. Name its index in a phase, or remove it"),
    ("phases.0.tasks", "[]", "warning27 tasks[0]: is in no phase. Name its index in a phase, or remove it",
     "warning32 is empty, so nothing can be scored. Name a task"),
    ("phases.0.tasks", "[text", "32 '[' is not the index of a task: 0. Write it as the task does | Unpacking the bundle failed. Here is the error log: '['",
     "32 't' is not the index of a task: 0. Write it as the task does | Unpacking the bundle failed. Here is the error log: 't'",
     "32 'e' is not the index of a task: 0. Write it as the task does | Unpacking the bundle failed. Here is the error log: 'e'",
     "32 'x' is not the index of a task: 0. Write it as the task does | Unpacking the bundle failed. Here is the error log: 'x'",
     "32 't' is not the index of a task: 0. Write it as the task does | Unpacking the bundle failed. Here is the error log: 't'",
     "warning27 tasks[0]: is in no phase. Name its index in a phase, or remove it"),
    ("phases.0.tasks", "null]", "32 'n' is not the index of a task: 0. Write it as the task does | Unpacking the bundle failed. Here is the error log: 'n'",
     "32 'u' is not the index of a task: 0. Write it as the task does | Unpacking the bundle failed. Here is the error log: 'u'",
     "32 'l' is not the index of a task: 0. Write it as the task does | Unpacking the bundle failed. Here is the error log: 'l'",
     "32 'l' is not the index of a task: 0. Write it as the task does | Unpacking the bundle failed. Here is the error log: 'l'",
     "32 ']' is not the index of a task: 0. Write it as the task does | Unpacking the bundle failed. Here is the error log: ']'",
     "warning27 tasks[0]: is in no phase. Name its index in a phase, or remove it"),
    ("phases.0.tasks", "[{}]",
     "32 {} is not the index of a task: 0. Write it as the task does | Unpacking the bundle failed. Here is the error log: unhashable type: 'dict'",
     "warning27 tasks[0]: is in no phase. Name its index in a phase, or remove it"),
    ("phases.0.execution_time_limit", "gone, null, 0, 7, empty, '1', []"),
    ("phases.0.execution_time_limit", "-1",
     "41 is VALUE, but Codabench expects a natural number. Correct execution_time_limit | phases: execution_time_limit: Ensure this value is greater than or equal to 0.",
     "warning41 is VALUE, but its task may take 0 seconds. Write 120"),
    ("phases.0.execution_time_limit", "2.5, true, text",
     "41 is VALUE, but Codabench expects a natural number. Correct execution_time_limit | phases: execution_time_limit: A valid integer is required."),
    ("phases.0.execution_time_limit", "2147483648",
     "41 is VALUE, but Codabench expects a natural number. Correct execution_time_limit | phases: execution_time_limit: Ensure this value is less than or equal to 2147483647.",
     "warning41 is VALUE, but the public queue allows 600 seconds. Name your own queue, or lower it"),
    ("phases.0.max_submissions_per_day", "gone", "warning40 is missing, which means 5. Write it, null for no limit"),
    ("phases.0.max_submissions_per_day", "-1",
     "40 is VALUE, but Codabench expects a natural number. Correct max_submissions_per_day | phases: max_submissions_per_day: Ensure this value is greater than or equal to 0."),
    ("phases.0.max_submissions", "gone", "warning40 is missing, which means 100. Write it, null for no limit"),
    ("phases.0.max_submissions", "text",
     "40 is VALUE, but Codabench expects a natural number. Correct max_submissions | phases: max_submissions_per_person: A valid integer is required."),
    ("phases.0.max_submissions", "-1",
     "40 is VALUE, but Codabench expects a natural number. Correct max_submissions | phases: max_submissions_per_person: Ensure this value is greater than or equal to 0."),
    ("phases.0.auto_migrate_to_this_phase", "null",
     "42 is VALUE, but Codabench expects a flag. Correct auto_migrate_to_this_phase | phases: auto_migrate_to_this_phase: This field may not be null."),
    ("phases.0.auto_migrate_to_this_phase", "7, text, []",
     "42 is VALUE, but Codabench expects a flag. Correct auto_migrate_to_this_phase | phases: auto_migrate_to_this_phase: Must be a valid boolean."),
    ("phases.0.auto_migrate_to_this_phase", "yes", "42 is VALUE, but no phase comes before. Remove it | phases: You cannot auto migrate in a competition with one phase"),
    ("phases.0.starting_kit", "null",
     "44 is VALUE, not the path of a file. Write a path, or omit the key | Unpacking the bundle failed. Here is the error log: join() argument must be str, bytes, or os.PathLike object, not 'NoneType'"),
    ("phases.0.starting_kit", "the key of something", "warning44 is the key of a starting_kit on the site, which cannot be checked here. Check that it exists there"),
    ("leaderboards", "gone", "45 is missing. Add one leaderboard | Could not find leaderboards in the competition yaml"),
    ("leaderboards", "null", "45 is not a list. Write a list: - title: … | Unpacking the bundle failed. Here is the error log: 'NoneType' object is not iterable"),
    ("leaderboards", "empty", "45 is empty. Add one leaderboard | Unpacking the bundle failed. Here is the error log: string index out of range"),
    ("leaderboards", "text, [text, null], {a: 1}",
     "45 holds items that are not mappings. Write - title: … | non_field_errors: Invalid data. Expected a dictionary, but got str."),
    ("leaderboards", "[]", "45 is empty. Add one leaderboard | Unpacking the bundle failed. Here is the error log: list index out of range"),
    ("leaderboards", "[{}]", "46 leaderboards[0].title: is missing, but Codabench expects a text of up to 64 characters. Correct title | title: This field is required.",
     "46 leaderboards[0].key: is missing, but Codabench expects a text of up to 36 characters. Correct key | key: This field is required.",
     "48 leaderboards[0].columns: is missing, but Codabench expects a list. Correct columns | columns: This field is required.",
     "warning47 leaderboards[0].submission_rule: is VALUE, so the leaderboard stays empty until participants add submissions. Write Force_Best, as EvalAI does"),
    ("leaderboards", "{}", "45 is empty. Add one leaderboard | Unpacking the bundle failed. Here is the error log: 0"),
    ("leaderboards.0.title", "gone", "46 is missing, but Codabench expects a text of up to 64 characters. Correct title | title: This field is required."),
    ("leaderboards.0.key", "gone", "46 is missing, but Codabench expects a text of up to 36 characters. Correct key | key: This field is required."),
    ("leaderboards.0.primary_index", "null", "53 is VALUE, but Codabench expects a natural number. Correct primary_index | primary_index: This field may not be null.",
     "warning53 no visible column has the index None, so the leaderboard breaks. Name the index of a visible column"),
    ("leaderboards.0.primary_index", "-1",
     "53 is VALUE, but Codabench expects a natural number. Correct primary_index | primary_index: Ensure this value is greater than or equal to 0.",
     "warning53 no visible column has the index -1, so the leaderboard breaks. Name the index of a visible column"),
    ("leaderboards.0.primary_index", "2147483648",
     "53 is VALUE, but Codabench expects a natural number. Correct primary_index | primary_index: Ensure this value is less than or equal to 2147483647.",
     "warning53 no visible column has the index 2147483648, so the leaderboard breaks. Name the index of a visible column"),
    ("leaderboards.0.primary_index", "empty", "53 is VALUE, but Codabench expects a natural number. Correct primary_index | primary_index: A valid integer is required.",
     "warning53 no visible column has the index , so the leaderboard breaks. Name the index of a visible column"),
    ("leaderboards.0.submission_rule", "gone, Add",
     "warning47 is VALUE, so the leaderboard stays empty until participants add submissions. Write Force_Best, as EvalAI does"),
    ("leaderboards.0.submission_rule", "null",
     "47 is VALUE, but Codabench expects Add or Add_And_Delete or Add_And_Delete_Multiple or Force_Last or Force_Latest_Multiple or Force_Best. Correct submission_rule | submission_rule: This field may not be null."),
    ("leaderboards.0.submission_rule", "text",
     '47 is VALUE, but Codabench expects Add or Add_And_Delete or Add_And_Delete_Multiple or Force_Last or Force_Latest_Multiple or Force_Best. Correct submission_rule | submission_rule: "text" is not a valid choice.'),
    ("leaderboards.0.hidden", "null", "46 is VALUE, but Codabench expects a flag. Correct hidden | hidden: This field may not be null."),
    ("leaderboards.0.hidden", "yes", "warning58 hides it only on the page; the API shows it to anybody. Do not rely on it to keep scores secret"),
    ("leaderboards.0.columns", "gone", "48 is missing, but Codabench expects a list. Correct columns | columns: This field is required."),
    ("leaderboards.0.columns", "null", "48 is VALUE, but Codabench expects a list. Correct columns | columns: This field may not be null."),
    ("leaderboards.0.columns", "0, 7, empty, text, [text, 7, null], {}, {a: 1}", "48 is not a list. Write - title: … | columns: non_field_errors"),
    ("leaderboards.0.columns", "[]", "48 is empty. Add a column | columns: Leaderboards require at least 1 column"),
    ("leaderboards.0.columns", "[{}]",
     "48 leaderboards[0].columns[0].title: is missing, but Codabench expects a text of up to 36 characters. Correct title | columns: title: This field is required.",
     "48 leaderboards[0].columns[0].key: is missing, but Codabench expects a text of up to 36 characters. Correct key | columns: key: This field is required.",
     "48 leaderboards[0].columns[0].index: is missing, but Codabench expects a natural number. Correct index | columns: index: This field is required.",
     "warning53 leaderboards[0].primary_index: no visible column has the index 0, so the leaderboard breaks. Name the index of a visible column"),
    ("leaderboards.0.columns.0.title", "gone",
     "48 is missing, but Codabench expects a text of up to 36 characters. Correct title | columns: title: This field is required."),
    ("leaderboards.0.columns.0.title", "null",
     "48 is VALUE, but Codabench expects a text of up to 36 characters. Correct title | columns: title: This field may not be null."),
    ("leaderboards.0.columns.0.title", "empty",
     "48 is VALUE, but Codabench expects a text of up to 36 characters. Correct title | columns: title: This field may not be blank."),
    ("leaderboards.0.columns.0.title", "300 letters",
     "48 is VALUE, but Codabench expects a text of up to 36 characters. Correct title | columns: title: Ensure this field has no more than 36 characters."),
    ("leaderboards.0.columns.0.key", "gone", "48 is missing, but Codabench expects a text of up to 36 characters. Correct key | columns: key: This field is required."),
    ("leaderboards.0.columns.0.index", "gone", "48 is missing, but Codabench expects a natural number. Correct index | columns: index: This field is required.",
     "warning53 leaderboards[0].primary_index: no visible column has the index 0, so the leaderboard breaks. Name the index of a visible column"),
    ("leaderboards.0.columns.0.index", "null", "48 is VALUE, but Codabench expects a natural number. Correct index | columns: index: This field may not be null.",
     "warning53 leaderboards[0].primary_index: no visible column has the index 0, so the leaderboard breaks. Name the index of a visible column"),
    ("leaderboards.0.columns.0.index", "7",
     "52 leaderboards[0].columns[1].computation_indexes: there is no column 0. Name the indexes of columns | columns: Column index 0 does not exist in available indexes [7, 1]",
     "warning53 leaderboards[0].primary_index: no visible column has the index 0, so the leaderboard breaks. Name the index of a visible column"),
    ("leaderboards.0.columns.0.index", "-1",
     "48 is VALUE, but Codabench expects a natural number. Correct index | columns: index: Ensure this value is greater than or equal to 0.",
     "warning53 leaderboards[0].primary_index: no visible column has the index 0, so the leaderboard breaks. Name the index of a visible column"),
    ("leaderboards.0.columns.0.index", "2.5, true, empty, text, []",
     "48 is VALUE, but Codabench expects a natural number. Correct index | columns: index: A valid integer is required.",
     "warning53 leaderboards[0].primary_index: no visible column has the index 0, so the leaderboard breaks. Name the index of a visible column"),
    ("leaderboards.0.columns.0.index", "2147483648",
     "48 is VALUE, but Codabench expects a natural number. Correct index | columns: index: Ensure this value is less than or equal to 2147483647.",
     "warning53 leaderboards[0].primary_index: no visible column has the index 0, so the leaderboard breaks. Name the index of a visible column"),
    ("leaderboards.0.columns.0.index", "'1', 1", "49 leaderboards[0].columns: two columns have the same index. Number them | columns: Columns must have unique indexes!",
     "52 leaderboards[0].columns[1].computation_indexes: there is no column 0. Name the indexes of columns | columns: Column index 0 does not exist in available indexes [1, 1]",
     "warning53 leaderboards[0].primary_index: no visible column has the index 0, so the leaderboard breaks. Name the index of a visible column"),
    ("leaderboards.0.columns.0.sorting", "null", "50 is VALUE, but Codabench expects desc or asc. Correct sorting | columns: sorting: This field may not be null."),
    ("leaderboards.0.columns.0.sorting", "text", '50 is VALUE, but Codabench expects desc or asc. Correct sorting | columns: sorting: "text" is not a valid choice.'),
    ("leaderboards.0.columns.0.precision", "null",
     "51 is VALUE, but Codabench expects a whole number. Correct precision | columns: precision: This field may not be null."),
    ("leaderboards.0.columns.0.precision", "2.5, true, empty, text, []",
     "51 is VALUE, but Codabench expects a whole number. Correct precision | columns: precision: A valid integer is required."),
    ("leaderboards.0.columns.0.precision", "2147483648",
     "51 is VALUE, but Codabench expects a whole number. Correct precision | columns: precision: Ensure this value is less than or equal to 2147483647.",
     "warning51 is VALUE; ten decimals are stored. Write 0 to 10"),
    ("leaderboards.0.columns.0.hidden", "null", "48 is VALUE, but Codabench expects a flag. Correct hidden | columns: hidden: This field may not be null."),
    ("leaderboards.0.columns.0.hidden", "yes",
     "warning53 leaderboards[0].primary_index: no visible column has the index 0, so the leaderboard breaks. Name the index of a visible column",
     "warning58 hides it only on the page. Remove secret columns"),
    ("leaderboards.0.columns.0.hidden", "[]", "48 is VALUE, but Codabench expects a flag. Correct hidden | columns: hidden: Must be a valid boolean."),
    ("leaderboards.0.columns.0.computation_indexes", "[text, null]",
     "52 has no computation. Add computation: avg | columns: non_field_errors: Cannot add computation columns without a computation function set"),
    ("leaderboards.0.columns.0.computation_indexes", "7, 7",
     "52 is not a list. List the indexes of columns | Unpacking the bundle failed. Here is the error log: 'int' object is not iterable"),
    ("leaderboards.0.columns.0.computation_indexes", "blank", "52 is empty. List the indexes of columns | columns: computation_indexes: This field may not be blank."),
    ("leaderboards.0.columns.1.computation", "gone",
     "52 leaderboards[0].columns[1].computation_indexes: has no computation. Add computation: avg | columns: non_field_errors: Cannot add computation columns without a computation function set"),
    ("leaderboards.0.columns.1.computation", "text",
     '52 is VALUE, but Codabench expects avg or sum or min or max. Correct computation | columns: computation: "text" is not a valid choice.'),
    ("leaderboards.0.columns.1.computation_indexes", "gone",
     "52 is missing. List the indexes of columns | columns: non_field_errors: Column with computation must have at least 1 column selected for the computation to act upon"),
    ("leaderboards.0.columns.1.computation_indexes", "'1', [1]",
     "52 names the column itself. Name others | columns: non_field_errors: Column with index 1 referencing itself. Cannot self-reference, must be other columns."),
    ("leaderboards.0.columns.1.computation_indexes", "[9]",
     "52 there is no column 9. Name the indexes of columns | columns: Column index 9 does not exist in available indexes [0, 1]"),
    ("leaderboards.0.columns.1.computation_indexes", "[text",
     "52 '[' is not a number. Name the indexes of columns | columns: Bad value for index, should be an integer but received: [.",
     "52 't' is not a number. Name the indexes of columns | columns: Bad value for index, should be an integer but received: t.",
     "52 'e' is not a number. Name the indexes of columns | columns: Bad value for index, should be an integer but received: e.",
     "52 'x' is not a number. Name the indexes of columns | columns: Bad value for index, should be an integer but received: x.",
     "52 't' is not a number. Name the indexes of columns | columns: Bad value for index, should be an integer but received: t."),
    ("leaderboards.0.columns.1.computation_indexes", "null]",
     "52 'n' is not a number. Name the indexes of columns | columns: Bad value for index, should be an integer but received: n.",
     "52 'u' is not a number. Name the indexes of columns | columns: Bad value for index, should be an integer but received: u.",
     "52 'l' is not a number. Name the indexes of columns | columns: Bad value for index, should be an integer but received: l.",
     "52 'l' is not a number. Name the indexes of columns | columns: Bad value for index, should be an integer but received: l.",
     "52 ']' is not a number. Name the indexes of columns | columns: Bad value for index, should be an integer but received: ]."),
]  # fmt: skip

#: Competitions whose values do not agree.
COMPETITIONS: list[tuple[Any, ...]] = [
    ("nothing", CONFIG),
    ("two tasks of one index", extend("tasks"), "21 tasks[1].index: 0 is also another task's. Number the tasks | ERROR: Duplicate task indexes. Index: 0"),
    ("data out of the bundle", put(CONFIG, "tasks.0.reference_data", "../out.zip"),
     '24 tasks[0].reference_data: VALUE is not in the bundle. Build it, or correct the path | Cannot find dataset: "../out.zip"',
     "warning5 tasks[0].reference_data: ../out.zip leads out of the bundle, to the site's files. Put it into the bundle"),
    ("a task that no phase has", extend("tasks", index=1), "warning27 tasks[1]: is in no phase. Name its index in a phase, or remove it"),
    ("two tasks in a phase", put(extend("tasks", index=1), "phases.0.tasks", [0, 1]),
     "warning43 phases[0].tasks: has several tasks, and the leaderboard shows the last score, or sums. Score everything in one task, in separate columns"),
    ("a task without a name and an index", alter(("tasks.0.name", GONE), ("tasks.0.index", GONE)),
     "21 tasks[0].index: is missing. Number the tasks | ERROR: No index for task: None",
     "24 solutions[0].tasks: names a task that does not exist. Write indexes of tasks | Unpacking the bundle failed. Here is the error log: 'key'",
     "22 tasks[0].name: is VALUE, but Codabench expects a text of up to 256 characters. Correct name | name: This field may not be null.",
     "32 phases[0].tasks: 0 is not the index of a task: None. Write it as the task does | Unpacking the bundle failed. Here is the error log: 0"),
    ("a task without a name and a program", alter(("tasks.0.name", GONE), ("tasks.0.scoring_program", GONE)),
     '23 tasks[0].scoring_program: is missing. Name the zip of the scoring program | ERROR: Task "0" does not have a scoring program',
     "22 tasks[0].name: is VALUE, but Codabench expects a text of up to 256 characters. Correct name | name: This field may not be null."),
    ("a solution of the site for a task that there is not", alter(("solutions.0.key", UUID), ("solutions.0.tasks", [9]), ("solutions.0.path", GONE)),
     "24 solutions[0].tasks: names a task that does not exist. Write indexes of tasks | ERROR: Solution: 01234567-89ab-cdef-0123-456789abcdef missing task index pointers",
     "warning21 solutions[0].key: is a key on the site, which cannot be checked here. Make sure that it exists"),
    ("a phase after another", follow()),
    ("phases that overlap", follow(start="2029-12-31"),
     "37 phases[1].start: starts at 2029-12-31 00:00:00, and P ends at 2030-01-01 00:00:00. Make the phases consecutive, or split them into two competitions | Phases must be sequential. Phase: Qstarts before Phase: P has ended"),
    ("phases that touch", follow(start="2030-01-01"),
     "38 phases[1].start: is when P ends. Start it one second later | Phases dates conflict. Phase: Q should start after Phase: P has ended"),
    ("a phase after one without an end", put(follow(), "phases.0.end", None),
     "36 phases[0].end: is missing, and another phase follows. Say when it ends, in UTC | Phase: P must have an end time because it has a phase after it."),
    ("a phase without a start after another", follow(start=None),
     "31 phases[1].start: is missing. Say when the phase starts, in UTC | Unpacking the bundle failed. Here is the error log: '<' not supported between instances of 'NoneType' and 'datetime.datetime'"),
    ("phases in another order", put(follow(), "phases.0.index", 2),
     "37 phases[0].start: starts at 2026-01-01 00:00:00, and Q ends at 2046-01-01 00:00:00. Make the phases consecutive, or split them into two competitions | Phases must be sequential. Phase: Pstarts before Phase: Q has ended"),
    ("phases whose indexes cannot be compared", follow(index="a"),
     "30 phases[0].index: the phases' indexes have different types. Write whole numbers everywhere, or omit them | Unpacking the bundle failed. Here is the error log: '<' not supported between instances of 'str' and 'int'"),
    ("a second phase that takes submissions over", follow(auto_migrate_to_this_phase=True)),
    ("a first phase that takes submissions over", put(follow(), "phases.0.auto_migrate_to_this_phase", "yes"),
     "42 phases[0].auto_migrate_to_this_phase: is VALUE, but no phase comes before. Remove it | phases: You cannot auto migrate to the first phase of a competition"),
    ("phases of the past", alter(("phases.0.start", "2019-01-01"), ("phases.0.end", "2020-01-01")), "warning39 phases: have all ended. Correct their dates"),
    ("a phase that ends before it starts", alter(("phases.0.start", "2027-01-01"), ("phases.0.end", "2026-01-01")),
     "warning39 phases[0].end: is not after its start, so the phase accepts nothing. Correct it",
     "warning39 phases: have all ended. Correct their dates"),
    ("a long run on a queue of one's own", alter(("phases.0.execution_time_limit", 3600), ("queue", UUID)),
     "warning15 queue: is on the site and cannot be checked here. Make sure that it exists, and that you may use it"),
    ("two leaderboards", extend("leaderboards", key="b"),
     "warning45 leaderboards[1]: belongs to no phase: only the first leaderboard counts. Create a separate competition for it"),
    ("two columns of one index and key", put(CONFIG, "leaderboards.0.columns", [COLUMN, COLUMN]),
     "49 leaderboards[0].columns: two columns have the same index. Number them | columns: Columns must have unique indexes!",
     "49 leaderboards[0].columns: two columns have the same key. Rename one | columns: Columns must have unique keys!"),
    ("columns that are all hidden", put(CONFIG, "leaderboards.0.columns", [{**COLUMN, "hidden": True}]),
     "warning53 leaderboards[0].primary_index: no visible column has the index 0, so the leaderboard breaks. Name the index of a visible column",
     "warning54 leaderboards[0].columns: are all hidden. Show one",
     "warning58 leaderboards[0].columns[0].hidden: hides it only on the page. Remove secret columns"),
    ("keys that nobody reads", {**CONFIG, "leaderbords": 1, "leaderboard": 1, "published": 1, "odd": 1, "phases": [{**CONFIG["phases"][0], "max_submissions_per_person": 1, "nam": 1}], "leaderboards": [{**CONFIG["leaderboards"][0], "columns": [{**COLUMN, "sort": "asc", "rank": 1}]}]},
     "warning8 leaderbords: is not used. Did you mean leaderboards?",
     "warning8 leaderboard: is not used. Write leaderboards, a list",
     "warning8 published: is not used. Publish it on its page",
     "warning8 odd: is not used. Remove it",
     "warning8 phases[0].max_submissions_per_person: is not used. Write max_submissions",
     "warning8 phases[0].nam: is not used. Did you mean name?",
     "warning8 leaderboards[0].columns[0].sort: is not used. Write sorting: asc or desc",
     "warning8 leaderboards[0].columns[0].rank: is not used. Write primary_index in the leaderboard"),
    ("a bundle of CodaLab's", alter(("version", 1), ("html", {})),
     "c: is a CodaLab bundle (competition.yaml has no version: 2), and Codabench reads it by other rules, which this check does not know. Rewrite it for version 2"),
    ("an old image", put(CONFIG, "docker_image", "codalab/codalab-legacy:py37")),
]  # fmt: skip

WRITTEN = write_yaml(CONFIG)
#: YAML as it is written.
TEXTS: list[tuple[Any, ...]] = [
    ("no text", b"",
     "3 competition.yaml: is empty or not a mapping. Write it as key: value | Unpacking the bundle failed. Here is the error log: 'NoneType' object has no attribute 'get'"),
    ("a list", b"- a\n",
     "3 competition.yaml: is empty or not a mapping. Write it as key: value | Unpacking the bundle failed. Here is the error log: 'list' object has no attribute 'get'"),
    ("an open bracket", b"title: [x\n",
     "3 competition.yaml: is not YAML in UTF-8: expected ',' or ']', but got '<stream end>'. Correct that line or the one above | Unpacking the bundle failed. Here is the error log: while parsing a flow sequence\\n  in \"<unicode string>\", line 1, column 8:\\n    title: [x\\n           ^\\nexpected ',' or ']', but got '<stream end>'\\n  in \"<unicode string>\", line 2, column 1:\\n    \\n    ^"),
    ("a tab", b"title: x\n\ty: 1",
     "3 competition.yaml: is not YAML in UTF-8: found character '\\t' that cannot start any token. Correct that line or the one above | Unpacking the bundle failed. Here is the error log: while scanning for the next token\\nfound character '\\t' that cannot start any token\\n  in \"<unicode string>\", line 2, column 1:\\n    \ty: 1\\n    ^"),
    ("half of UTF-8", b"title: \xe9\n",
     "3 competition.yaml: is not YAML in UTF-8: 'utf-8' codec can't decode byte 0xe9 in position 7: invalid continuation byte. Correct that line or the one above | Unpacking the bundle failed. Here is the error log: 'utf-8' codec can't decode byte 0xe9 in position 7: invalid continuation byte"),
    ("a tag of Python's", b"title: !!python/object:os.system x\n",
     "3 competition.yaml: is not YAML in UTF-8: could not determine a constructor for the tag 'tag:yaml.org,2002:python/object:os.system'. Correct that line or the one above | Unpacking the bundle failed. Here is the error log: could not determine a constructor for the tag 'tag:yaml.org,2002:python/object:os.system'\\n  in \"<unicode string>\", line 1, column 8:\\n    title: !!python/object:os.system x\\n           ^"),
    ("keys that are written twice", WRITTEN.replace(b'"index": 0,', b'"index": 3, "index": 0,'), "warning8 tasks[0].index: occurs twice; the last one counts. Remove one",
     "warning8 solutions[0].index: occurs twice; the last one counts. Remove one",
     "warning8 phases[0].index: occurs twice; the last one counts. Remove one",
     "warning8 leaderboards[0].columns[0].index: occurs twice; the last one counts. Remove one"),
]  # fmt: skip


def make_program(**files: str | None) -> dict[str, bytes]:
    every = {**PROGRAM, **{name.replace("__", "/").replace("_", "."): text for name, text in files.items()}}
    return {"program.zip": zipped({name: text for name, text in every.items() if text is not None})}


def make_command(text: str) -> dict[str, bytes]:
    return make_program(metadata_yaml=f"command: {text}")


#: Files that are others.
OTHER_FILES: list[tuple[Any, ...]] = [
    ("a program in a folder", {"program.zip": zipped({f"program/{name}": text for name, text in PROGRAM.items()})},
     "warning29 tasks[0].scoring_program: everything in it is in the folder program. Zip the files themselves, not the folder around them",
     "warning25 tasks[0].scoring_program: has no metadata.yaml at its root: nothing runs, and each submission fails with 'Could not find scores file…'. Write metadata.yaml with command: python3 FILE.py"),
    ("a program without a command", make_program(metadata_yaml="title: x"),
     "warning25 tasks[0].scoring_program: has no command: nothing runs, and each submission fails with 'Could not find scores file…'. Write metadata.yaml with command: python3 FILE.py"),
    ("a program whose command is a number", make_command("7"),
     "warning25 tasks[0].scoring_program: has no command: nothing runs, and each submission fails with 'Could not find scores file…'. Write metadata.yaml with command: python3 FILE.py"),
    ("a program without metadata", make_program(metadata_yaml=None),
     "warning25 tasks[0].scoring_program: has no metadata.yaml at its root: nothing runs, and each submission fails with 'Could not find scores file…'. Write metadata.yaml with command: python3 FILE.py"),
    ("a program with other metadata", make_program(metadata_yaml=None, metadata="command: python3 /app/program/score.py")),
    ("metadata that is no YAML", make_program(metadata_yaml="a: ["),
     "warning25 tasks[0].scoring_program: has no command: nothing runs, and each submission fails with 'Could not find scores file…'. Write metadata.yaml with command: python3 FILE.py"),
    ("a command for a shell", make_command("python3 score.py && ls"),
     "warning26 tasks[0].scoring_program: its command needs a shell, but Codabench starts none: python3 score.py && ls. Put it into a script"),
    ("a command with an open quote", make_command("python3 'score.py"),
     "warning26 tasks[0].scoring_program: its command cannot be split into words (No closing quotation). Correct its quotes"),
    ("a command whose script is not there", make_command("python3 $program/lost.py score.py"),
     "warning26 tasks[0].scoring_program: its command runs lost.py, which is not in it. Correct the command"),
    ("a command whose script is elsewhere", make_command("python3 /usr/lost.py")),
    ("a command without a script", make_command("ls")),
    ("a program that is not Python", make_program(score_py="a b"),
     "warning28 tasks[0].scoring_program: VALUE is not Python 3.12, which codalab/codalab-legacy:py312 has. Name a newer image in docker_image"),
    ("a program that imports what there is not", make_program(score_py="import torch, cv2, PIL.Image\nfrom helper import x\ntry:\n    import lost\nexcept ImportError:\n    pass\n"),
     "warning28 tasks[0].scoring_program: imports cv2, torch, which codalab/codalab-legacy:py312 lacks. Put it into the program's zip, or name another image"),
    ("a truth that says its columns", {"truth.zip": zipped({"task.json": DOCUMENT})}),
    ("a truth of other columns", {"truth.zip": zipped({"task.json": DOCUMENT.replace('"a"', '"b"')})},
     "warning55 leaderboards[0].columns: no scoring program writes a. Remove it",
     "warning57 leaderboards[0].columns: b is both computed and written. Remove one of them"),
    ("a truth of a column more", {"truth.zip": zipped({"task.json": DOCUMENT.replace('"a"}', '"a"}, {"key": "c"}')})},
     "warning56 leaderboards[0].columns: lacks c, which the scoring program writes. Add it"),
    ("a truth that takes long", {"truth.zip": zipped({"task.json": DOCUMENT.replace("300", "601")})},
     "warning41 phases[0].execution_time_limit: is VALUE, but its task may take 601 seconds. Write 721"),
    ("a truth whose columns are no list", {"truth.zip": zipped({"task.json": '{"columns": 7}'})}),
    ("a truth in a folder", {"truth.zip": zipped({"data/truth.txt": "1", "data/more/x": ""})},
     "warning29 tasks[0].reference_data: everything in it is in the folder data. Zip the files themselves, not the folder around them"),
]  # fmt: skip


def name_rows(rows: list[Any]) -> list[Any]:
    return [pytest.param(row, id=str(row[0])) for row in rows]


def hold_damage(row: tuple[str, ...]) -> None:
    path, names, *expected = row
    for name in names.split(", "):
        assert examine(put(CONFIG, path, OTHERS.get(name, name)), path=path) == expected, name


@pytest.mark.parametrize("row", name_rows([row for row in DAMAGES if row[1].startswith("gone")]))
def test_a_missing_value_is_reported_with_its_remedy_and_the_servers_words(row: tuple[str, ...]) -> None:
    hold_damage(row)


@pytest.mark.parametrize("row", name_rows([row for row in DAMAGES if not row[1].startswith("gone")]))
def test_a_damaged_value_is_reported_with_its_remedy_and_the_servers_words(row: tuple[str, ...]) -> None:
    hold_damage(row)


@pytest.mark.parametrize("row", name_rows([*COMPETITIONS, *TEXTS]))
def test_values_that_do_not_agree_and_broken_yaml_are_reported(row: Any) -> None:
    _, config, *expected = row
    assert examine(config) == expected


@pytest.mark.parametrize("row", name_rows(OTHER_FILES))
def test_programs_and_truths_that_would_not_work_are_reported(row: Any) -> None:
    _, files, *expected = row
    assert examine(CONFIG, files) == expected


WHOLE = {"competition.yaml": WRITTEN, **FILES}
NO_ZIP = ["2 c.zip: is not a zip. Zip it again | Bad zip file uploaded."]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (zipped(WHOLE), []),
        (zipped({f"c/{name}": data for name, data in WHOLE.items()}), ["1 competition.yaml: is missing at the top of the bundle. Zip the files themselves"]),
        (zipped({"competition.yaml/x": ""}), ["1 competition.yaml: is a folder. Replace it by the file itself | Unpacking the bundle failed. Here is the error log: [Errno 21]"]),
        (encrypt(zipped(WHOLE)), ["2 c.zip: cannot be unpacked (File <ZipInfo"]),
        *((data, NO_ZIP) for data in (b"odd", b"", zipped(WHOLE)[:-40])),
    ],
    ids=("whole", "in a folder", "a folder as config", "a password", "no zip", "nothing", "cut"),
)  # fmt: skip
def test_a_zip_is_opened_as_codabench_does(data: bytes, expected: list[str]) -> None:
    Path("c.zip").write_bytes(data)
    lines = [brief(problem) for problem in check("c.zip")]
    assert [line[: len(beginning)] for line, beginning in zip(lines, expected)] == expected
    assert len(lines) == len(expected)


SOLUTIONS = [
    {"index": index, "tasks": [0], "path": path} for index, path in enumerate(("truth.zip", "folder", "odd.zip"))
]
LARGE = {"competition.yaml": write_yaml({**CONFIG, "solutions": SOLUTIONS}), **FILES}


@pytest.mark.parametrize(
    ("module", "name", "limit", "expected"),
    [
        (pitfalls, "_LARGE", len(zipped(LARGE)), "warning7 c.zip: has 0 MB; unpacking takes a long time, and an account may hold 15 GB. Remove files that are not needed"),
        (pitfalls, "_LARGE_SOLUTIONS", len(FILES["truth.zip"]) + len(FILES["odd.zip"]), "warning7 solutions: are large, so unpacking takes a long time. Put samples into starting_kit"),
        (opened_competition, "_UNPACKED_BYTES", sum(map(len, LARGE.values())), "7 c.zip: unpacks to more than 0 GiB, above the quota of an account. Remove files that are not needed"),
    ],
)  # fmt: skip
def test_what_is_larger_than_a_limit_is_reported(
    module: Any, name: str, limit: int, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("c.zip").write_bytes(zipped(LARGE))
    for value in (limit, limit - 1):
        monkeypatch.setattr(module, name, value)
        assert (expected in [brief(problem) for problem in check("c.zip")]) == (value < limit)


def test_a_problem_has_its_place_and_the_whole_words_of_the_server() -> None:
    Path("c/competition.yaml").write_bytes(write_yaml(put(CONFIG, "phases.0.name", None)))
    (problem,) = check("c")
    assert show(problem) == (
        "refused 31: competition.yaml:47:4: phases[0].name: is None, but Codabench expects a text of up to 256 characters. "
        'Correct name. Codabench says: "phases: name: This field may not be null."'
    )
