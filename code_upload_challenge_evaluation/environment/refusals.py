"""Refusals of calls: a gRPC status and a sentence, for the agent and for the submission's stderr."""

import grpc

from segjudge.code_upload.environments.tasks import Labels, Observation

#: Characters of a refusal, which is kept in the submission's stderr.
LONGEST_REFUSAL = 500


class CallRefusedError(Exception):
    """Raised to refuse a call with a status and a sentence."""

    def __init__(self, code: grpc.StatusCode, words: str) -> None:
        super().__init__(words)
        self.code = code


def sentence(words: str) -> str:
    """Return untrusted text as one printable sentence of bounded length."""
    text = "".join(character if character.isprintable() else " " for character in words[:LONGEST_REFUSAL])
    return text.rstrip(" .") + "."


def check_sizes(value: object, observation: Observation) -> None:
    """Check the sizes of an action's masks, before any is decoded; raises CallRefusedError."""
    sizes = iter(observation.sizes)
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, (list, dict)):
            pending += reversed([*part.values()] if isinstance(part, dict) else part)
        elif isinstance(part, Labels):
            size = next(sizes, None)
            if part.size != size:
                found = f"the mask is {part.size[0]} × {part.size[1]}, and "
                found += f"the frame {size[0]} × {size[1]}" if size else "no more masks are due"
                words = f"{observation.where}: {found} (height × width)."
                raise CallRefusedError(grpc.StatusCode.INVALID_ARGUMENT, words)
