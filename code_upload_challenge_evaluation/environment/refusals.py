"""Refusals of calls: a gRPC status and a sentence, for the agent and for the submission's stderr."""

import grpc

from segjudge.code_upload.environments.tasks import ActionError, Labels

#: Characters of a refusal, which is kept in the submission's stderr.
LONGEST_REFUSAL = 500


class CallRefusedError(Exception):
    """Raised to refuse a call with a sentence and a status."""

    def __init__(self, words: str, code: grpc.StatusCode = grpc.StatusCode.FAILED_PRECONDITION) -> None:
        super().__init__(words)
        self.code = code


def sentence(words: str) -> str:
    """Return untrusted text as one printable sentence of bounded length."""
    text = "".join(character if character.isprintable() else " " for character in words[:LONGEST_REFUSAL])
    return text.rstrip(" .") + "."


def check_sizes(value: object, sizes: list[tuple[int, int]]) -> None:
    """Check the sizes of an action's masks, before any is decoded; raises ActionError."""
    due = iter(sizes)
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, (list, dict)):
            pending += reversed([*part.values()] if isinstance(part, dict) else part)
        elif isinstance(part, Labels):
            size = next(due, None)
            if part.size != size:
                wanted = f"the frame {size[0]} × {size[1]}" if size else "no more masks are due"
                raise ActionError(f"the mask is {part.size[0]} × {part.size[1]}, and {wanted} (height × width)")
