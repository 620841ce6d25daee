"""What the server's words consist of: JSON, and the refusal that every rule of the rehearsal is said with."""

from typing import Any

#: A mapping that came as JSON or YAML: its keys are known, its values may be anything.
JsonObject = dict[str, Any]
#: EvalAI's words for what only a host may do.
NOT_AUTHORIZED = "Sorry, you are not authorized to make this request!"


class Refusal(Exception):
    """Raised when a rule forbids a request: a status of HTTP and a body in EvalAI's words."""

    def __init__(self, status: int, body: str | JsonObject) -> None:
        super().__init__(str(body))
        self.status = status
        self.body: JsonObject = {"error": body} if isinstance(body, str) else body
