"""How a call is refused: a status and a sentence, for the agent and for the submission's stderr."""

from __future__ import annotations

from typing import Any

import grpc

from segjudge.code_upload.environments.tasks import Labels, Observation

#: Characters of a refusal, which is kept in the submission's stderr.
LONGEST_REFUSAL = 500


class CallRefusedError(Exception):
    """A call that is answered with a status and a sentence."""

    def __init__(self, code: grpc.StatusCode, words: str) -> None:
        super().__init__(words)
        self.code = code


def sentence(words: str) -> str:
    """An agent's or a library's words, short enough and fit for a log, with a full stop."""
    text = "".join(character if character.isprintable() else " " for character in words[:LONGEST_REFUSAL])
    return text.rstrip(" .") + "."


def bounded(value: Any, sight: Observation) -> Any:
    """An action whose masks have the sizes of what was shown; raises RefusedError before anything is made of them."""
    sizes = iter(sight.sizes)

    def look(one: Any) -> None:
        if isinstance(one, Labels):
            wanted = next(sizes, None)
            if wanted is None or one.size != wanted:
                told = f"the mask is {one.size[0]} × {one.size[1]}, and "
                told += f"the frame {wanted[0]} × {wanted[1]}" if wanted else "no more masks are due"
                raise CallRefusedError(grpc.StatusCode.INVALID_ARGUMENT, f"{sight.where}: {told} (height × width).")
        elif isinstance(one, (list, dict)):
            for part in one.values() if isinstance(one, dict) else one:
                look(part)

    look(value)
    return value
