"""Under the worker's interpreter only the tests of the uploaded folder run."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from .everything import NEWER_FOLDERS, descendants, needs_toolkit

HERE = Path(__file__).parent

NEEDS_TOOLKIT = (
    [str(path) for path in HERE.rglob("test_*.py") if needs_toolkit(path)] if sys.version_info < (3, 11) else []
)
collect_ignore = [*NEEDS_TOOLKIT, *[os.path.basename(folder) for folder in NEWER_FOLDERS if NEEDS_TOOLKIT]]

# What a shell starts in the background ignores Ctrl-C, what `nohup` starts that a terminal was closed, and with them all
# that the tests start and interrupt: unlike a signal that is ignored, one with a handler is a child's as usual.  Whatever
# interrupts the tests, they end what they started.
for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if _number == signal.SIGINT or signal.getsignal(_number) is not signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler)
    else:
        signal.signal(_number, lambda *_: None)
# Containers often set it, and it hides what a full buffer does at a program's end.
os.environ.pop("PYTHONUNBUFFERED", None)
# `run.sh` says with it that it was typed, and commands answer with its name: tests say so themselves where they mean it.
os.environ.pop("SEGJUDGE_BUNDLE", None)


interruptions: list[Any] = []


def pytest_keyboard_interrupt(excinfo: Any) -> None:
    """Remember it."""
    interruptions.append(excinfo)


def pytest_unconfigure() -> None:
    """End what interrupted tests have left."""
    for pid in descendants() if interruptions else ():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


#: So many cases of a test are quick, spread over all, since the others walk the same path.
CASES = 3
#: Of what a hostile upload or a child that dies can do, each case is a kind of its own.
KINDS = 12
#: On this Python, since rules of the house, those of archives and official numbers are about all that their cases name.
WHOLE = re.compile(r"house/|/files/|golden")
#: Tests with another number: fewer where a case takes seconds.
QUICK_CASES = {
    "test_a_challenge_passes_the_step_that_it_names_next": 1,
    "test_a_family_of_ours_keeps_its_promises": 20,
    "test_a_flood_of_words_fills_no_disk": 1,
    "test_a_generated_set_scores_by_each_of_its_protocols": 4,
    "test_a_job_may_print_a_gigabyte": 1,
    "test_a_large_submission_is_read_in_passes_with_the_same_bits": 2,
    "test_a_length_that_cannot_be_is_refused": 2,
    "test_a_long_text_is_read_as_a_short_one": 4,
    "test_a_path_may_be_written_in_many_ways": 1,
    "test_a_program_runs_without_an_edit_where_that_is_asked_for": 1,
    "test_a_reader_that_goes_away_is_no_error": 2,
    "test_a_rehearsal_that_cannot_begin_says_why": 1,
    "test_a_result_that_a_leaderboard_cannot_show_is_found_and_run_goes_on": 2,
    "test_a_sample_method_finds_its_golden_numbers": 5,
    "test_a_script_cannot_exhaust_the_machine": 2,
    "test_a_script_gets_no_environment_no_descriptor_and_no_folder_of_ours": 1,
    "test_a_script_that_takes_too_much_is_ended": 2,
    "test_a_session_on_the_frameworks_kind_of_root": 1,
    "test_a_split_may_be_called_what_yaml_reads_as_something_else": 2,
    "test_a_state_folder_that_cannot_be_one_is_said": 2,
    "test_a_table_that_is_wrong": 1,
    "test_a_truth_of_another_family_is_a_sentence": 2,
    "test_an_agents_log_fills_no_disk_and_its_end_is_kept": 1,
    "test_an_evaluate_that_cannot_be_loaded_ends_the_start": 1,
    "test_an_evaluate_that_never_answers_is_ended": 1,
    "test_an_executors_workers_give_the_same_scores": 2,
    "test_an_interpreter_that_does_not_run_is_said": 1,
    "test_both_sides_end_with_the_arena": 1,
    "test_cocoeval_has_the_numbers_of_pycocotools_on_its_own_data": 1,
    "test_davis_evaluation_returns_the_dictionary_of_davis2017": 1,
    "test_every_byte_is_parsed_a_few_times_at_the_most": 5,
    "test_faults_are_asked_for_in_words": 1,
    "test_in_the_arena": 1,
    "test_it_opens_from_disk_and_fits": 1,
    "test_merged_parts_print_what_one_run_prints": 2,
    "test_modules_beside_and_in_the_repository_are_found": 1,
    "test_no_terminal_is_too_old": 1,
    "test_nothing_of_an_agent_outlives_its_evaluation": 1,
    "test_refusals_are_explained": 2,
    "test_run_scores_a_foreign_bundles_solutions": 1,
    "test_samples_score_in_the_extracted_bundle_as_here": 1,
    "test_sequences_are_chosen_by_the_names_of_the_tables": 2,
    "test_static_submissions_that_fail": 2,
    "test_the_robots_regions_skeletons_and_lines": 5,
    "test_two_commands_lead_from_published_data_to_a_leaderboard": 2,
    "test_two_truths_give_the_same_bytes_where_the_split_is_hidden": 2,
    "test_what_is_missing_is_said_before_anything_is_touched": 2,
    "test_what_is_no_file_is_not_followed": 2,
    "test_what_is_shown_of_mistakes_is_what_was_noted": 40,
    "test_whatever_evaluate_answers_is_taken_as_evalai_does": 2,
    "test_whatever_is_sent_costs_memory_and_cpu_in_proportion": 5,
    "test_without_a_sandbox_an_agent_that_takes_too_much_is_ended": 1,
}


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Count as long what repeats a path; hostile uploads and the guard are quick on the worker's interpreter alone."""
    suites = [*HERE.rglob("test_hostile*.py"), HERE / "runner" / "test_guard.py"]
    hostile = [path for path in suites if not needs_toolkit(path)]
    elsewhere = hostile if sys.version_info >= (3, 11) and os.environ.get("SEGJUDGE_WORKER_PYTHON") else []
    tests: dict[Any, list[Any]] = {}
    for item in items:
        tests.setdefault((item.path, getattr(item, "originalname", item.name)), []).append(item)
    for (path, name), cases in tests.items():
        quick = [] if path in elsewhere else [item for item in cases if not item.get_closest_marker("long")]
        is_whole = WHOLE.search(cases[0].nodeid) or cases[0].get_closest_marker("whole")
        whole = sys.version_info >= (3, 11) and is_whole
        most = KINDS if path in hostile else len(cases) if whole else CASES
        quick = spread(quick, QUICK_CASES.get(name, most))
        for item in set(cases) - set(quick):
            item.add_marker(pytest.mark.long)


def spread(cases: list[Any], most: int) -> list[Any]:
    """Some of the cases: one of each of as many blocks, another in each, so that of two parameters both change."""
    if len(cases) <= most:
        return cases
    size = len(cases) // most
    return [cases[number * len(cases) // most + number % size] for number in range(most)]


# A slow machine is no failure; CI draws the same examples every time, so that it fails for what was changed.
settings.register_profile(
    "here",
    derandomize=os.environ.get("CI", "").lower() == "true",
    suppress_health_check=[HealthCheck.too_slow],
    deadline=None,
    database=None,
)
settings.load_profile("here")


@pytest.fixture
def without_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test the rules as the Python code has them; that the kernel agrees with it is tested elsewhere."""
    from .backends import use_numpy

    use_numpy(monkeypatch)


#: No test takes this long, in seconds, on any machine: what waits for longer waits for ever.
DEADLINE = 1200


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: Any) -> Iterator[None]:
    """Fail a test that hangs instead of hanging with it; again every minute, since what it leaves may hang too."""

    def fail(*_: object) -> None:
        raise TimeoutError(f"{item.nodeid} did not end in {DEADLINE} seconds")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, DEADLINE, 60)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
