"""The issue forms of a board, and how their untrusted answers are read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from segjudge.evaluation_script.files.problems import printable

#: The questions of the forms, which GitHub writes as headings into an issue.
SUBMISSION = METHOD, PHASE, FILE, CHECKSUM = "Method", "Phase", "File", "SHA-256"
WITHDRAWAL = (NUMBER,) = ("Submission to withdraw",)
#: GitHub's text for a question without an answer.
_EMPTY = "_No response_"
_MOST_CHARACTERS = 100
_URL = re.compile(r"https?://[^\s()<>\[\]\"'`]{1,2000}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BY_FORM = 'Use the form "Submit" without changing its headings.'


@dataclass(frozen=True)
class Submit:
    """A submission by the form."""

    method: str
    phase: str
    address: str
    sha256: str


@dataclass(frozen=True)
class Withdraw:
    """A withdrawal by the form."""

    number: int


class FormError(Exception):
    """Raised for an issue that answers a form wrongly; the text is for its author."""


def read_issue(issue: Mapping[str, Any], server: str) -> Submit | Withdraw | None:
    """Return what an issue asks for; None for an issue without a form. Raises FormError."""
    body = str(issue.get("body") or "").replace("\r\n", "\n")
    if body.startswith(f"### {METHOD}\n"):
        return _read_submission(_split(body, SUBMISSION), server)
    if body.startswith(f"### {NUMBER}\n"):
        number = _split(body, WITHDRAWAL)[NUMBER].lstrip("#")
        if not re.fullmatch(r"[0-9]{1,9}", number):
            raise FormError("The number of the submission is that of its issue, such as 12.")
        return Withdraw(int(number))
    return None


def _split(body: str, questions: Sequence[str]) -> dict[str, str]:
    """Return the answers by their questions, each of which is a heading once, in this order."""
    headings = "|".join(map(re.escape, questions))
    parts = re.split(rf"^### ({headings})$", body, flags=re.MULTILINE)
    if tuple(parts[1::2]) != tuple(questions):
        raise FormError(_BY_FORM)
    answers = [answer.strip() for answer in parts[2::2]]
    return {name: "" if answer == _EMPTY else answer for name, answer in zip(questions, answers, strict=True)}


def _read_submission(answers: dict[str, str], server: str) -> Submit:
    method = printable(" ".join(answers[METHOD].split()))[:_MOST_CHARACTERS]
    addresses = _URL.findall(answers[FILE])
    if len(addresses) != 1:
        raise FormError("Under File, drop one file into the box, or write one link.")
    address, sha256 = addresses[0], answers[CHECKSUM].lower()
    if not address.startswith(("https://", f"{server}/")):
        raise FormError("The link to the file must begin with https://.")
    is_attachment = re.fullmatch(
        rf"{re.escape(server)}/(user-attachments/files|[\w.-]+/[\w.-]+/files)/\d+/[^/]+", address
    )
    if sha256 and not _SHA256.fullmatch(sha256):
        raise FormError("The SHA-256 has 64 digits of 0-9 and a-f; sha256sum FILE prints it.")
    if not sha256 and not is_attachment:
        raise FormError("A link needs the SHA-256 of its file; sha256sum FILE prints it.")
    return Submit(method, answers[PHASE], address, sha256)
