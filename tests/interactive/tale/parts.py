"""The parts of the tale, in their order."""

from .files import (
    datasets_and_what_is_wrong_with_them,
    programs_of_the_framework,
    runs_and_their_page,
    where_the_robot_begins,
)
from .methods import a_method_step_by_step, a_method_that_is_asked_again, a_video_step_by_step
from .pieces import lines_become_pixels, masks_are_compared_and_packed, the_robot_draws
from .servers import (
    a_program_that_plays_on_a_server,
    a_server_in_trouble,
    a_session_over_the_wire,
    the_clock_of_a_server,
    what_a_server_allows,
)
from .sessions import sessions_of_this_process, the_service_and_its_storage

PARTS = (
    the_robot_draws, lines_become_pixels, masks_are_compared_and_packed, sessions_of_this_process, the_service_and_its_storage,
    a_session_over_the_wire, a_program_that_plays_on_a_server, what_a_server_allows, runs_and_their_page,
    datasets_and_what_is_wrong_with_them, where_the_robot_begins, programs_of_the_framework,
    a_method_step_by_step, a_method_that_is_asked_again, a_video_step_by_step,
    a_server_in_trouble, the_clock_of_a_server,
)  # fmt: skip
