"""The refusal that every rule of the rehearsal is said with."""

from .column_types import JsonObject

#: EvalAI's words for what only a host may do.
NOT_AUTHORIZED = "Sorry, you are not authorized to make this request!"


class Refusal(Exception):
    """Raised when a rule forbids a request: a status of HTTP and a body in EvalAI's words."""

    def __init__(self, status: int, body: str | JsonObject) -> None:
        super().__init__(str(body))
        self.status = status
        self.body: JsonObject = {"error": body} if isinstance(body, str) else body
