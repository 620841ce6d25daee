"""The parts of the tale, in their order."""

from .files import (
    datasets_and_what_is_wrong_with_them,
    programs_of_the_framework,
    runs_and_their_page,
)
from .servers import (
    a_program_that_plays_on_a_server,
    a_server_in_trouble,
    a_session_over_the_wire,
    the_clock_of_a_server,
    what_a_server_allows,
)

PARTS = (
    a_session_over_the_wire, a_program_that_plays_on_a_server, what_a_server_allows, runs_and_their_page,
    datasets_and_what_is_wrong_with_them, programs_of_the_framework, a_server_in_trouble, the_clock_of_a_server,
)  # fmt: skip
