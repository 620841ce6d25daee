"""With the worker's interpreter, run only the tests of the uploaded folder."""

from __future__ import annotations

import functools
import gc
import hashlib
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from .drawing import QUICK
from .everything import FOLDER_VARIABLE, NEWER_FOLDERS, descendants, needs_toolkit

HERE = Path(__file__).parent

#: The files and folders that the worker's interpreter leaves alone.
NEEDS_TOOLKIT = (
    {HERE.parent / folder for folder in NEWER_FOLDERS}
    | {path for path in HERE.rglob("test_*.py") if needs_toolkit(path)}
    if sys.version_info < (3, 10)
    else set[Path]()
)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Skip what needs the toolkit; pytest would compare each path with every row of a list `collect_ignore`."""
    return True if collection_path in NEEDS_TOOLKIT else None


# Processes that a shell starts in the background ignore Ctrl-C, those that `nohup` starts ignore a closed terminal, and
# so would all processes that the tests start and interrupt. Children inherit an ignored signal, but not a handler.
# Interrupted tests end the processes that they started.
for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if _number == signal.SIGINT or signal.getsignal(_number) is not signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler)
    else:
        signal.signal(_number, lambda *_: None)
# Containers often set it, and it hides the effect of a full buffer at a program's end.
os.environ.pop("PYTHONUNBUFFERED", None)
# What pip installs for a test is compiled when it is imported, which most of it never is.
os.environ["PIP_COMPILE"] = "0"
# What git says where it finds no repository would depend on the file system of temporary files.
os.environ["GIT_DISCOVERY_ACROSS_FILESYSTEM"] = "1"
# `run.sh` sets it to its name, which commands then print; tests set it where they need it.
os.environ.pop("SEGJUDGE_BUNDLE", None)


# Imported modules stay: searching them for garbage again and again took a quarter of a part's start.
gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage from here on, without `gc.freeze`: each scoring would count all frozen objects."""
    gc.enable()


interruptions: list[Any] = []


def pytest_keyboard_interrupt(excinfo: Any) -> None:
    """Remember the interruption."""
    interruptions.append(excinfo)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove what the fixtures of a part made: a run need not do it at its end; and collect garbage once.

    pytest would pass ten times over all that a part has read, which takes seconds.
    """
    gc.collect()
    gc.freeze()
    base = session.config.getoption("basetemp")
    if base and FOLDER_VARIABLE in os.environ:
        shutil.rmtree(base, ignore_errors=True)


def pytest_unconfigure() -> None:
    """End the leftovers of interrupted tests."""
    for pid in descendants() if interruptions else ():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


#: Number → tests whose cases take long together: only so many cases of each, spread evenly, run among the quick tests
#: on this Python. The others take the same path.
_NAMES = {
    1: """
        test_a_benchmark_is_described_with_all_that_is_needed_to_use_it test_a_challenge_becomes_competitions
        test_a_challenge_passes_the_step_that_it_names_next test_a_comparison_begins_as_reports_do
        test_a_disk_off_its_centre_is_grown_as_opencv_does test_a_duel_ends_with_an_outcome
        test_a_hidden_split_says_nothing_and_strict_refuses_nobody test_a_length_that_cannot_be_is_refused
        test_a_look_at_the_head_alone_is_answered test_a_mistake_is_found_and_told
        test_a_notebook_and_a_comparison_name_the_cause_of_the_page
        test_a_page_has_a_small_picture_of_its_worst_mistakes test_a_part_reads_any_manifest_without_a_crash
        test_a_participant_reads_nothing_of_a_hidden_split test_a_phase_scores_an_upload_of_the_published_form
        test_a_reader_that_goes_away_is_no_error test_a_region_alone_is_joined_by_tissues_of_which_it_has_no_label
        test_a_report_changes_no_score test_a_result_that_a_leaderboard_cannot_show_is_found_and_run_goes_on
        test_a_scorer_that_dies_is_an_incident test_a_script_gets_no_environment_no_descriptor_and_no_folder_of_ours
        test_a_script_that_cannot_be_loaded_scores_nothing test_a_script_that_takes_too_much_is_ended
        test_a_session_is_played test_a_session_over_lvos_and_vost
        test_a_split_may_be_called_what_yaml_reads_as_something_else
        test_a_token_that_may_do_too_much_or_too_little_is_no_secret_of_the_space
        test_a_truth_that_was_used_before_gives_the_same_scores test_addresses_are_taken_as_django_takes_them
        test_an_agents_log_fills_no_disk_and_its_end_is_kept test_an_evaluate_that_never_answers_is_ended
        test_an_unreadable_picture_leaves_the_report_whole test_any_executor_gives_the_bits_of_one_process
        test_closed_streams_are_no_errors test_coco_scores_as_the_official_code_says
        test_cocoeval_has_the_numbers_of_pycocotools_on_its_own_data
        test_damaged_numbers_end_with_scores_or_in_a_sentence test_each_has_the_scores_that_it_has_alone
        test_every_kind_of_submission_scores_as_the_platform_mounts_it test_every_variant_is_accepted
        test_expressions_score_as_the_official_evaluator_and_the_safe_rule_say
        test_expressions_score_as_the_official_evaluator_says test_hidden_scores_are_never_in_public_data_sets
        test_hidden_scores_reach_no_door test_it_opens_from_disk_and_fits
        test_means_are_taken_in_the_order_of_the_list_as_those_of_files
        test_metrics_of_videos_have_errors_from_leaving_each_out test_mevis_scores_as_its_script_does
        test_modules_beside_and_in_the_repository_are_found test_no_odd_value_is_a_defect test_no_terminal_is_too_old
        test_nothing_of_an_agent_outlives_its_evaluation test_odd_values_in_a_bundle_are_problems
        test_odd_values_in_a_competition_are_problems test_pages_have_the_masks_of_both_sides_and_what_is_wrong
        test_places_scores_as_the_official_script_says test_processes_that_score_whole_submissions_give_the_same
        test_run_scores_a_foreign_bundles_solutions test_scores_stay_whatever_happens_to_the_report
        test_sequences_are_chosen_by_the_names_of_the_tables test_show_writes_the_player_of_other_families
        test_standard_errors_are_of_scoring_without_each_of_twenty_groups test_static_submissions_that_fail
        test_the_container_scores_images_of_jobs_as_files test_the_report_of_a_demo_has_a_picture_below_all_masks
        test_the_report_says_what_costs_most test_the_robot_begins_with_most_objects_and_then_with_the_largest
        test_two_commands_lead_from_published_data_to_a_leaderboard
        test_visitors_and_other_teams_read_nothing_that_is_not_public test_what_is_shown_of_mistakes_is_what_was_noted
        test_what_the_yaml_hides_and_phases_py_shows_or_the_reverse_is_built_for_no_platform
        test_whatever_zlib_writes_is_read test_who_may_not_send_is_refused_before_the_body_is_read
    """,
    2: """
        test_a_failed_installation_is_a_sentence_with_its_log
        test_a_large_submission_is_read_in_passes_with_the_same_bits
        test_a_name_in_another_unicode_form_is_the_same_name test_a_room_without_its_extra_says_so_when_it_is_imported
        test_a_sample_method_finds_its_golden_numbers test_a_truth_of_another_family_is_a_sentence
        test_a_weak_method_is_not_suspected test_a_wrong_form_gets_a_sentence test_all_end_with_a_worker_that_was_killed
        test_all_four_golden_runs_are_reached test_every_case_scores_as_it_should
        test_every_case_scores_as_the_script_does test_hostile_labels_get_a_sentence
        test_hostile_masks_are_refused_shortly_and_may_be_fixed test_merged_parts_print_what_one_run_prints
        test_no_door_takes_a_truth_that_no_scorer_opens test_packages_that_the_image_lacks_are_in_the_program
        test_parts_and_processes_say_the_same test_random_sets_score_as_by_hand_and_losses_sum_to_what_is_lacking
        test_the_robots_regions_skeletons_and_lines test_two_truths_give_the_same_bytes_where_the_split_is_hidden
        test_verdict_strip_player_and_table_begin_with_the_same_case test_what_a_public_name_cannot_use_is_a_sentence
        test_what_all_causes_cost_is_what_the_first_share_lacks test_what_failed_or_was_cancelled_uses_up_no_limit
        test_what_no_scorer_can_open_is_a_problem_in_every_family test_what_units_and_categories_cost_sums_to_the_loss
        test_what_units_of_made_data_cost_sums_to_the_loss test_whatever_is_sent_costs_memory_and_cpu_in_proportion
    """,
    3: """
        test_a_backslash_in_a_name_of_the_truth_is_a_letter_in_every_form
        test_a_broken_truth_is_a_sentence_and_leaves_nothing test_a_family_of_ours_keeps_its_promises
        test_a_file_that_cannot_be_written_whole_stays_as_it_was test_a_file_that_is_no_report
        test_a_line_that_lies_costs_tries_and_no_byte test_a_line_that_lies_for_ever_is_left_with_one_error
        test_a_name_from_a_file_makes_no_path test_a_number_never_moves_within_a_revision
        test_a_packed_truth_reads_back_the_same test_a_perfect_submission_scores_one
        test_a_sample_is_as_good_as_its_masks_are_near test_a_script_gets_what_it_asks_for
        test_a_slip_is_named_next_to_the_score test_a_strange_file_name_is_scored_like_any_other
        test_a_subset_that_there_is_not_is_refused_in_every_family test_a_truth_of_another_form_is_refused
        test_a_wrong_root_is_told_with_where_the_right_one_is_shown test_an_answer_is_an_outcome
        test_an_empty_truth_is_told_to_a_host_and_not_to_a_participant test_any_parameters_give_what_pycocotools_gives
        test_arrays_score_as_files_do test_children_end_with_whoever_shares_the_work
        test_cocoeval_has_the_verbs_and_numbers_of_pycocotools test_counts_of_other_rules_or_strictness_are_not_merged
        test_errors_are_those_that_tide_finds test_every_answer_of_a_hosts_evaluate_has_a_sentence
        test_every_case_has_the_safe_numbers test_every_family_records_and_verifies
        test_every_form_of_results_is_the_same_submission test_grefcocos_official_numbers_are_those_of_rela
        test_hostile_rounds_get_a_sentence_soon_and_in_little_memory
        test_hostile_submissions_get_a_sentence_soon_and_in_little_memory test_instances_in_memory_score_as_files_do
        test_matches_and_similarities_of_keypoints_are_those_of_pycocotools
        test_no_message_is_lost_to_a_clock_that_jumps test_nothing_of_it_is_left test_only_exchanged_answers_are_named
        test_problems_are_told_alike_by_any_number_of_processes test_records_are_read_as_python_reads_them
        test_refcocos_numbers_are_those_of_lavt_and_rela test_results_of_every_protocol_are_saved_and_have_tables
        test_scores_leave_by_a_door_only_if_their_split_is_published test_scores_of_every_track_are_ranked
        test_segments_are_matched_as_numpy_and_a_plain_loop_match_them test_surplus_names_are_listed_in_order
        test_the_commands_of_a_page_run_on_its_example test_the_example_scores_as_the_page_says
        test_the_exit_code_is_the_commands test_the_family_keeps_its_promises test_the_form_is_read_from_the_first_name
        test_the_loops_of_its_users_run_unchanged test_the_order_of_annotators_and_of_records_changes_nothing
        test_what_is_no_form_of_results_is_told_what_its_family_sends
        test_what_is_written_scores_the_same_for_every_protocol test_what_mistakes_cost_never_moves_either
        test_what_scans_and_classes_cost_sums_to_the_loss test_what_the_demo_holds_can_be_missed
    """,
    4: """
        test_a_bad_submission_is_refused_with_a_sentence test_a_challenge_that_becomes_no_competition
        test_a_slip_is_named test_a_thousand_bad_records_are_enough_and_are_one_sentence
        test_every_layout_that_people_send_scores_the_same
        test_keypoints_have_the_numbers_of_pycocotools_with_any_parameters
        test_many_queries_far_from_few_places_are_transformed test_nothing_that_a_child_started_outlives_it
        test_perfect_results_lose_nothing test_results_with_a_slip_are_compared_with_good_ones
        test_runs_along_rows_are_named_though_large_areas_match_and_poor_maps_are_not
        test_the_end_of_a_child_is_a_sentence test_the_first_sentence_names_the_fault
    """,
    5: """
        test_a_case_is_answered_as_was_noted test_a_file_that_nothing_reads_is_named test_every_number_is_the_scripts
        test_no_odd_address_is_a_defect test_what_is_no_answer_is_no_fault_of_the_participant
    """,
    6: """
        test_misplaced_records_are_named test_weak_records_are_not_suspected test_where_a_list_stops_being_one_is_said
    """,
    7: """
        test_components_of_both_sides_share_the_voxels_that_scipy_finds test_each_number_of_the_official_evaluators
    """,
    8: """
        test_a_program_ends_as_on_codabench test_a_slip_is_named_in_each_kind_of_data
        test_an_image_far_larger_than_any_of_its_size_is_refused test_files_and_values_give_what_pycocotools_gives
    """,
    10: """
        test_good_results_are_not_suspected test_images_score_as_files_do
    """,
    12: """
        test_a_damaged_value_is_reported_with_its_remedy_and_the_servers_words
        test_a_missing_value_is_reported_with_its_remedy_and_the_servers_words
        test_sequences_score_as_the_official_evaluator_says
    """,
    14: """
        test_volumes_are_measured_as_numpy_measures_them
    """,
    16: """
        test_a_hostile_volume_gets_a_sentence
    """,
    18: """
        test_a_hostile_submission_is_a_sentence test_the_sentence_names_the_fault
        test_what_no_honest_tool_writes_is_a_sentence
    """,
    20: """
        test_check_refuses_what_codabench_refuses_in_its_words test_keypoints_have_the_bits_of_the_json_parser
        test_lesion_wise_scores_are_those_of_brats
    """,
    29: """
        test_tiny_videos_score_as_the_official_evaluator_says
    """,
    30: """
        test_measures_are_those_of_the_evaluator
    """,
    34: """
        test_every_golden_number_is_that_of_pycocotools
    """,
    46: """
        test_scorers_use_no_arithmetic_that_varies
    """,
}
QUICK_CASES = {name: most for most, names in _NAMES.items() for name in names.split()}
#: On the worker's interpreter so many are, and more of what a hostile upload or a child that dies can do: each is a kind of its own.
OLD_CASES, KINDS = 3, 12


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Mark repeated cases as long, and hostile uploads and the guard unless the worker's interpreter runs them."""
    suites = [*HERE.rglob("test_hostile*.py"), HERE / "runner" / "test_guard.py"]
    hostile = [path for path in suites if not needs_toolkit(path)]
    elsewhere = hostile if sys.version_info >= (3, 10) and os.environ.get("SEGJUDGE_WORKER_PYTHON") else []
    tests: dict[Any, list[Any]] = {}
    for item in items:
        tests.setdefault((item.path, getattr(item, "originalname", item.name)), []).append(item)
    for (path, name), cases in tests.items():
        quick = [] if path in elsewhere else [item for item in cases if not item.get_closest_marker("long")]
        most = QUICK_CASES.get(name, KINDS if path in hostile else len(cases))
        if path not in hostile and sys.version_info < (3, 10):
            most = min(most, OLD_CASES)
        quick = spread(quick, most)
        for item in set(cases) - set(quick):
            item.add_marker(pytest.mark.long)


def spread(cases: list[Any], most: int) -> list[Any]:
    """Return one case from each of equally large blocks, so that two parameters both vary."""
    if len(cases) <= most:
        return cases
    size = len(cases) // most
    return [cases[number * len(cases) // most + number % size] for number in range(most)]


# A slow machine is not a failure. Quick tests and CI draw the same examples every time, so that they fail only because of
# changes.
settings.register_profile(
    "here",
    derandomize=QUICK or os.environ.get("CI", "").lower() in ("true", "bare"),
    suppress_health_check=[HealthCheck.too_slow],
    deadline=None,
    database=None,
)
settings.load_profile("here")


@pytest.fixture
def without_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test the rules in the Python code; other tests compare it with the kernel."""
    from .backends import use_numpy

    use_numpy(monkeypatch)


def _compress_wheels_once() -> None:
    """Keep the zips of wheels by their content: every new challenge holds the same wheel of the running Segjudge."""
    lock = sys.modules.get("segjudge.starting.lock")  # which other tests do not import
    if lock is None or hasattr(lock.zip_files, "__wrapped__"):
        return
    zips: dict[Any, bytes] = {}

    @functools.wraps(lock.zip_files)
    def zip_files(files: dict[str, bytes]) -> bytes:
        key = tuple((name, hashlib.sha256(data).digest()) for name, data in files.items())
        if key not in zips:
            zips[key] = zip_files.__wrapped__(files)
        return zips[key]

    lock.zip_files = zip_files


#: The seconds after which a test is considered stuck on any machine.
DEADLINE = 1200


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: Any) -> Iterator[None]:
    """Fail a hanging test instead of hanging with it; again every minute, since its leftovers may hang too."""

    def fail(*_: object) -> None:
        raise TimeoutError(f"{item.nodeid} did not end in {DEADLINE} seconds")

    _compress_wheels_once()
    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, DEADLINE, 60)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def _end_servers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Kill the servers of a failed test, whose data lie in its folder; otherwise the next test would be blamed."""
    yield
    module = sys.modules.get(f"{__package__}.rehearsals")
    folder = (request.node.funcargs or {}).get("tmp_path")  # None if the run is stopped
    for server in list(module.running) if module and folder else ():
        if server.data.is_relative_to(folder):
            server.end(signal.SIGKILL)
