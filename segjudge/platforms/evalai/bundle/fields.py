"""The keys that EvalAI reads from the YAML, and the values that its serializers accept.

The serializers' rules, the JSON Schema for editors and the search for ignored keys come from this table; values are
validated as leniently as on the server, and rejected in its words.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

#: The kinds of values; files are given by their path in the bundle.
TEXT, FLAG, WHOLE, MOMENT, URL, LIST, _ANY = "text", "flag", "whole number", "date and time", "URL", "list", "anything"
SLUG, JSON = "name as in an address", "list or mapping"
_HTML, _PICTURE, SCRIPT, DATA = ".html file", "picture", "evaluation script", "annotation file"
FILES = (_HTML, _PICTURE, SCRIPT, DATA)


@dataclass(frozen=True)
class Field:
    """One key of the YAML."""

    kind: str
    about: str
    required: bool = False
    #: Whether null is allowed.
    null: bool = False
    #: The maximum characters of text, or the largest number.
    limit: int = 0
    #: The smallest number.
    least: int | None = None
    choices: tuple[Any, ...] = ()
    #: Whether text may be empty; whether a list holds text.
    blank: bool = False
    words: bool = False
    #: Keys of the items, for a list of mappings.
    items: dict[str, Field] | None = None


@dataclass(frozen=True)
class FieldError:
    """The server's error about one field."""

    field: str
    message: str
    code: str
    #: Further messages about the same field, with their codes.
    more: tuple[tuple[str, str], ...] = ()
    #: For a list: all messages as the server prints them, by the index of the item.
    list_text: str = ""

    @property
    def text(self) -> str:
        """Return all messages about the field, as the server prints them."""
        errors = ((self.message, self.code), *self.more)
        details = ", ".join(f"ErrorDetail(string={message!r}, code={code!r})" for message, code in errors)
        return self.list_text or f"[{details}]"

    def __str__(self) -> str:
        return f"{self.field!r}: {self.text}"


#: The allowed values for the retention of submissions.
_RETENTION = ("keep_forever", "days_14", "days_30", "months_3", "months_6", "months_12")

PRIZE = {
    "rank": Field(WHOLE, "1 for the winner", required=True, least=1),
    "amount": Field(TEXT, "as 100.00USD", required=True, limit=10),
    "description": Field(TEXT, "what it is; required by the server", required=True, null=True, blank=True, limit=25),
}
SPONSOR = {
    "name": Field(TEXT, "who", required=True, null=True, blank=True, limit=200),
    "website": Field(URL, "their page", required=True, null=True, blank=True, limit=200),
}
ATTRIBUTE = {
    "name": Field(TEXT, "what participants are asked", required=True),
    "description": Field(TEXT, "a sentence about it", required=True),
    "type": Field(TEXT, "how it is asked", required=True, choices=("boolean", "text", "radio", "checkbox")),
    "options": Field(LIST, "for radio and checkbox"),
    "required": Field(FLAG, "whether an answer is required"),
}
SCHEMA = {
    "labels": Field(LIST, "names of the metrics, in the order of the columns", required=True),
    "default_order_by": Field(TEXT, "the label that ranks", required=True),
    "metadata": Field(_ANY, "sort_ascending and description of each label"),
}
LEADERBOARD = {
    "id": Field(WHOLE, "any unique number", required=True),
    "schema": Field(JSON, "labels, default_order_by and metadata", required=True),
}
SPLIT = {
    "id": Field(WHOLE, "any unique number", required=True),
    "name": Field(TEXT, "name shown to visitors", required=True, limit=100),
    "codename": Field(TEXT, "as in phases.py and in the annotation file", required=True, limit=100),
}
MAPPING = {
    "challenge_phase_id": Field(WHOLE, "id of a phase", required=True),
    "leaderboard_id": Field(WHOLE, "id of a leaderboard", required=True),
    "dataset_split_id": Field(WHOLE, "id of a dataset split", required=True),
    "visibility": Field(WHOLE, "1 host, 2 owner and host, 3 public", required=True, choices=(1, 2, 3)),
    "leaderboard_decimal_precision": Field(WHOLE, "number of decimals shown", required=True, least=0),
    "is_leaderboard_order_descending": Field(FLAG, "whether higher is better", required=True),
}
PHASE = {
    "id": Field(WHOLE, "any unique number", required=True),
    "name": Field(TEXT, "name shown to visitors", required=True, limit=100),
    "description": Field(_HTML, "text about the phase, for visitors", required=True),
    "codename": Field(TEXT, "as in phases.py; evaluate() gets it", required=True, limit=100),
    "start_date": Field(MOMENT, "UTC, unquoted and with the time", required=True),
    "end_date": Field(MOMENT, "UTC, unquoted and with the time", required=True),
    "test_annotation_file": Field(DATA, "the truth; without one EvalAI's worker cannot start", null=True),
    "max_submissions_per_day": Field(WHOLE, "for each team", least=0),
    "max_submissions_per_month": Field(WHOLE, "for each team (max_submissions without it)", least=0),
    "max_submissions": Field(WHOLE, "for each team, in total", least=0),
    "max_concurrent_submissions_allowed": Field(WHOLE, "of a team, waiting or running (3)", least=0),
    "is_public": Field(FLAG, "whether people other than hosts see it and submit"),
    "is_submission_public": Field(FLAG, "whether a submission is shown unless its team says otherwise"),
    "leaderboard_public": Field(FLAG, "whether the leaderboard is shown"),
    "is_restricted_to_select_one_submission": Field(FLAG, "whether a team shows only one submission"),
    "is_partial_submission_evaluation_enabled": Field(FLAG, "whether results may arrive in parts"),
    "allowed_submission_file_types": Field(TEXT, "shown to visitors, not checked", limit=200),
    "allowed_email_ids": Field(LIST, "the only users who may submit", null=True, words=True),
    "environment_image": Field(TEXT, "code upload: image of the environment", null=True, blank=True, limit=2128),
    "submission_meta_attributes": Field(JSON, "what participants are asked", null=True, items=ATTRIBUTE),
    "default_submission_meta_attributes": Field(JSON, "which standard questions are asked", null=True),
    "disable_logs": Field(FLAG, "whether stdout and stderr are discarded"),
    "is_submission_paused": Field(FLAG, "whether submissions are paused"),
    "submission_artifact_retention_policy": Field(TEXT, "how long submissions are kept", choices=_RETENTION),
    "annotations_uploaded_using_cli": Field(FLAG, "set by the evalai client; do not write it"),
}
CHALLENGE = {
    "title": Field(TEXT, "up to 100 characters", required=True, limit=100),
    "short_description": Field(TEXT, "one sentence for the list of challenges", null=True, blank=True),
    "description": Field(_HTML, "the first page", required=True),
    "evaluation_details": Field(_HTML, "how it is scored", required=True),
    "terms_and_conditions": Field(_HTML, "the rules", required=True),
    "submission_guidelines": Field(_HTML, "how to submit", required=True),
    "leaderboard_description": Field(TEXT, "a text, not a file", null=True, blank=True),
    "image": Field(_PICTURE, "the logo, .png or .jpg", null=True),
    "evaluation_script": Field(SCRIPT, "evaluation_script.zip, which the build makes", required=True),
    "start_date": Field(MOMENT, "UTC, unquoted and with the time", required=True),
    "end_date": Field(MOMENT, "UTC, unquoted and with the time", required=True),
    "published": Field(FLAG, "whether visitors see the challenge"),
    "remote_evaluation": Field(FLAG, "whether your own machine scores"),
    "is_docker_based": Field(FLAG, "whether participants upload code"),
    "is_static_dataset_code_upload": Field(FLAG, "whether that code reads a fixed dataset"),
    "submission_time_limit": Field(WHOLE, "seconds; code upload only (86400)", least=0),
    "max_docker_image_size": Field(WHOLE, "bytes; checked by the evalai client", null=True, limit=2**63 - 1),
    "cli_version": Field(TEXT, "for information", null=True, blank=True, limit=20),
    "challenge_usage_type": Field(TEXT, "internal shortens how long files are kept", choices=("paid", "internal")),
    "is_registration_open": Field(FLAG, "whether teams may join"),
    "enable_forum": Field(FLAG, "whether there is a forum"),
    "forum_url": Field(URL, "address of the forum", null=True, blank=True, limit=100),
    "anonymous_leaderboard": Field(FLAG, "whether team names are hidden"),
    "require_complete_profile": Field(FLAG, "whether a profile must be complete"),
    "max_team_members": Field(WHOLE, "without it, no limit", null=True, least=0),
    "allowed_email_domains": Field(LIST, "the only addresses that may take part", limit=50, words=True),
    "blocked_email_domains": Field(LIST, "who may not take part", limit=50, words=True),
    "banned_email_ids": Field(LIST, "who may not take part", null=True, words=True),
    "allow_resuming_submissions": Field(FLAG, "whether failed ones may be resumed (remote)"),
    "allow_host_cancel_submissions": Field(FLAG, "whether hosts may cancel"),
    "allow_cancel_running_submissions": Field(FLAG, "whether running ones may be cancelled"),
    "allow_participants_resubmissions": Field(FLAG, "whether participants may resubmit"),
    "worker_python_version": Field(TEXT, "of the hosted worker; quote it", blank=True, choices=("3.7", "3.8", "3.9")),
    "worker_image_url": Field(TEXT, "an ami-… or an image of EvalAI's own registry", null=True, blank=True, limit=200),
    "uses_ec2_worker": Field(FLAG, "a larger machine, by arrangement"),
    "ec2_storage": Field(WHOLE, "GB of such a machine", least=0),
    "ephemeral_storage": Field(WHOLE, "GB of the hosted worker's disk (21)", least=0),
    "sqs_retention_period": Field(WHOLE, "seconds that a submission may wait (345600)", least=0),
    "use_fifo_sqs": Field(FLAG, "first in, first out; cannot be changed later"),
    "cpu_only_jobs": Field(FLAG, "code upload without a GPU"),
    "job_cpu_cores": Field(TEXT, "code upload, as 2000m", null=True, blank=True, limit=256),
    "job_memory": Field(TEXT, "code upload, as 8Gi", null=True, blank=True, limit=256),
    "worker_instance_type": Field(TEXT, "code upload (g4dn.xlarge)", null=True, blank=True, limit=256),
    "worker_ami_type": Field(TEXT, "code upload", null=True, blank=True, limit=256),
    "worker_disk_size": Field(WHOLE, "code upload, GB (100)", null=True),
    "min_worker_instance": Field(WHOLE, "code upload (1)", null=True),
    "max_worker_instance": Field(WHOLE, "code upload (10)", null=True),
    "desired_worker_instance": Field(WHOLE, "code upload (1)", null=True),
    "vpc_cidr": Field(TEXT, "code upload", null=True, blank=True, limit=200),
    "subnet_1_cidr": Field(TEXT, "code upload", null=True, blank=True, limit=200),
    "subnet_2_cidr": Field(TEXT, "code upload", null=True, blank=True, limit=200),
    "tags": Field(LIST, "up to four words"),
    "domain": Field(TEXT, "the field of research", choices=("CV", "NLP", "RL", "MM", "AUD", "TAB")),
    "prizes": Field(LIST, "the prizes", items=PRIZE),
    "sponsors": Field(LIST, "the sponsors; read docs/hosts.md before you use it", items=SPONSOR),
    "leaderboard": Field(LIST, "the leaderboards", required=True, items=LEADERBOARD),
    "challenge_phases": Field(LIST, "the phases", required=True, items=PHASE),
    "dataset_splits": Field(LIST, "the parts of the data", required=True, items=SPLIT),
    "challenge_phase_splits": Field(LIST, "which leaderboard shows each phase and split", required=True, items=MAPPING),
}
#: The keys of the challenge's texts, which are files.
TEXTS = [key for key, field in CHALLENGE.items() if field.kind == _HTML]

#: Keys that the server's serializers validate, although the server does not store the host's value.
UNKEPT = {
    "slug": Field(SLUG, "", null=True, limit=200),
    "github_branch": Field(TEXT, "", null=True, blank=True, limit=200),
    "evaluation_module_error": Field(TEXT, "", null=True, blank=True),
}
UNKEPT_OF_PHASE = {"slug": Field(SLUG, "", null=True, limit=200)}
UNKEPT_OF_MAPPING = {
    "show_leaderboard_by_latest_submission": Field(FLAG, ""),
    "show_execution_time": Field(FLAG, ""),
    "show_scores_on_leaderboard": Field(FLAG, ""),
}
#: The default image, until the host names one in a registry.
DEFAULT_IMAGE = "segjudge-environment:latest"
#: The order in which a serializer names its fields.
ORDER = re.findall(
    r"\w+",
    """
    id title name short_description description terms_and_conditions submission_guidelines leaderboard_public
    start_date end_date evaluation_details published challenge_usage_type submission_time_limit is_registration_open
    enable_forum anonymous_leaderboard leaderboard_description image evaluation_script allowed_email_domains
    blocked_email_domains banned_email_ids require_complete_profile max_team_members forum_url remote_evaluation
    allow_resuming_submissions allow_host_cancel_submissions allow_cancel_running_submissions
    allow_participants_resubmissions is_docker_based is_static_dataset_code_upload max_submissions_per_day
    max_submissions_per_month max_submissions submission_artifact_retention_policy is_public is_submission_public
    annotations_uploaded_using_cli codename test_annotation slug max_docker_image_size cli_version github_branch
    vpc_cidr subnet_1_cidr subnet_2_cidr worker_instance_type worker_ami_type worker_disk_size max_worker_instance
    min_worker_instance desired_worker_instance cpu_only_jobs job_cpu_cores job_memory uses_ec2_worker ec2_storage
    ephemeral_storage evaluation_module_error worker_image_url worker_python_version sqs_retention_period
    use_fifo_sqs max_concurrent_submissions_allowed environment_image is_restricted_to_select_one_submission
    submission_meta_attributes is_partial_submission_evaluation_enabled schema config_id
    allowed_submission_file_types default_submission_meta_attributes allowed_email_ids disable_logs
    is_submission_paused visibility leaderboard_decimal_precision is_leaderboard_order_descending
    show_leaderboard_by_latest_submission show_execution_time show_scores_on_leaderboard non_field_errors
    """,
)

#: Keys that hosts copy from some guide and that this server does not read, with the reason.
IGNORED = {
    "slug": "the server makes it from the title",
    "worker_cpu_cores": "CPU and memory are set by the API once a worker runs, up to 1 vCPU",
    "worker_memory": "CPU and memory are set by the API once a worker runs, up to 2048 MiB",
    "is_submission_paused": "write it in each phase",
    "queue": "the server makes it",
    "aws_access_key_id": "and it is a secret: remove it, and renew it",
    "aws_secret_access_key": "and it is a secret: remove it, and renew it",
    "is_static_dataset_code_upload_submission": "the key is is_static_dataset_code_upload",
    "challenge": "the server knows it",
    "is_active": "it follows from the dates",
    **dict.fromkeys(
        ("max_concurrent_submission_evaluation", "featured", "approved_by_admin", "use_host_credentials"),
        "EvalAI's staff set it",
    ),
    **dict.fromkeys(
        (*UNKEPT_OF_MAPPING, "manual_participant_approval", "is_multi_metric_leaderboard"), "it is set on the web page"
    ),
}
#: The path of the published schema.
SCHEMA_PATH = "docs/challenge_config.schema.json"
_TYPES = {FLAG: "boolean", WHOLE: "integer", LIST: "array"}


def json_schema() -> str:
    document = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "EvalAI challenge configuration",
        **_object_schema(CHALLENGE),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _object_schema(fields: dict[str, Field]) -> dict[str, Any]:
    properties = {key: _field_schema(field) for key, field in fields.items()}
    if fields is LEADERBOARD:
        properties["schema"] = {"description": fields["schema"].about, **_object_schema(SCHEMA)}
    return {
        "type": "object",
        "properties": properties,
        "required": [key for key, field in fields.items() if field.required],
        "additionalProperties": False,
    }


def _field_schema(field: Field) -> dict[str, Any]:
    kind = _TYPES.get(field.kind, "string")
    schema: dict[str, Any] = {"description": field.about}
    if field.kind != _ANY:
        schema["type"] = [kind, "null"] if field.null else kind
    if field.kind == MOMENT:
        # Editors parse an unquoted date as a string.
        schema["pattern"] = r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2})?"
    if field.kind == URL:
        schema["format"] = "uri"
    if field.limit and field.kind != LIST:
        schema["maximum" if field.kind == WHOLE else "maxLength"] = field.limit
    if field.words:
        schema["items"] = {"type": "string", **({"maxLength": field.limit} if field.limit else {})}
    if field.least is not None:
        schema["minimum"] = field.least
    if field.choices:
        schema["enum"] = [*field.choices, None] if field.null else list(field.choices)
    if field.items:
        schema["items"] = _object_schema(field.items)
    return schema


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────

TRUE = ("t", "T", "y", "Y", "yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "1", 1, True)
FALSE = ("f", "F", "n", "N", "no", "NO", "false", "False", "FALSE", "off", "Off", "OFF", "0", 0, 0.0, False)
_FORMAT = "YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]"
#: The server's messages about a value, each with its code; empty for a valid value.
_Messages = list[tuple[str, str]]
_NULL = ("This field may not be null.", "null")
_BLANK = ("This field may not be blank.", "blank")
SLUG_MESSAGE = ('Enter a valid "slug" consisting of letters, numbers, underscores or hyphens.', "invalid")
#: The largest number of a column in the server's database.
INTEGER_LIMIT = 2**31 - 1
#: Longer texts are not parsed as numbers.
_DIGITS = 1000
#: The number of shown characters of a value.
_SHOWN_CHARACTERS = 80


def validate(key: str, value: object, field: Field) -> FieldError | None:
    """Return the serializer's error; None for a valid value."""
    if field.kind == LIST and field.words and value is not None:
        return _validate_list(key, value, field)
    if value is None:
        messages = [] if field.null else [_NULL]
    elif field.choices:
        is_choice = str(value) in map(str, field.choices) or (value == "" and field.blank)
        messages = [] if is_choice else [(f'"{value}" is not a valid choice.', "invalid_choice")]
    else:
        validator = _VALIDATORS.get(field.kind)
        messages = validator(value, field) if validator else []
    return FieldError(key, *messages[0], more=tuple(messages[1:])) if messages else None


def as_datetime(value: object) -> datetime.datetime | None:
    """Return a value as a datetime in UTC; None for anything else."""
    if isinstance(value, str):
        value = _parse_date(value)
    if not isinstance(value, datetime.datetime):
        return None
    try:
        return value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value.astimezone(datetime.UTC)
    except OverflowError:
        return None


def as_integer(value: object) -> int | None:
    """Return the number that the server reads in a value, or None."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(re.sub(r"\.0*\s*$", "", str(value)))
    except ValueError:
        return None


def as_flag(value: object) -> bool | None:
    """Return the boolean that the server reads in a flag, or None."""
    if not isinstance(value, (str, int, float)):
        return None
    return True if value in TRUE else False if value in FALSE else None


def _validate_text(value: object, field: Field) -> _Messages:
    text = str(value).strip()
    if text == "":
        return [] if field.blank else [_BLANK]
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return [("Not a valid string.", "invalid")]
    messages = []
    if field.limit and len(text) > field.limit:
        messages.append((f"Ensure this field has no more than {field.limit} characters.", "max_length"))
    if "\0" in text:
        messages.append(("Null characters are not allowed.", "null_characters_not_allowed"))
    return messages


def _validate_text_form(value: object, field: Field) -> _Messages:
    text, messages = str(value).strip(), _validate_text(value, field)
    if field.kind == SLUG:
        is_valid, message = bool(re.fullmatch(r"[-a-zA-Z0-9_]+", text)), SLUG_MESSAGE
    else:
        is_valid, message = not text or _is_url(text), ("Enter a valid URL.", "invalid")
    codes = [code for _, code in messages]
    if "invalid" in codes:
        return [message]  # the server reports the same about other values than texts
    return messages if "blank" in codes or is_valid else [*messages, message]


_SCHEMES = ("http", "https", "ftp", "ftps")
_LETTERS = "\u00a1-\uffff"
_BYTE = r"(25[0-5]|2[0-4]\d|[0-1]?\d?\d)"
_NAME = rf"[a-z{_LETTERS}0-9]([a-z{_LETTERS}0-9-]{{0,61}}[a-z{_LETTERS}0-9])?"
_DOMAINS = rf"(\.(?!-)[a-z{_LETTERS}0-9-]{{1,63}}(?<!-))*"
_TOP = rf"\.(?!-)([a-z{_LETTERS}-]{{2,63}}|xn--[a-z0-9]{{1,59}})(?<!-)\.?"
_HOST = rf"({_BYTE}(\.{_BYTE}){{3}}|\[[0-9a-f:.]+\]|{_NAME}{_DOMAINS}{_TOP}|localhost)"
_ADDRESS = rf"[a-z0-9.+-]*://([^\s:@/]+(:[^\s:@/]*)?@)?{_HOST}(:\d{{2,5}})?([/?#]\S*)?"
_IPV6 = re.compile(r"\[(.+)\](:\d{2,5})?")
#: The maximum characters of a host name.
_HOST_LENGTH = 253


def _is_url(text: str) -> bool:
    """Return whether a value is a URL by Django's rules."""
    import ipaddress

    if text.split("://", maxsplit=1)[0].lower() not in _SCHEMES:
        return False
    try:
        parts = urlsplit(text)
        if not _is_address(text):
            name = parts.netloc.encode("idna").decode("ascii")
            return _is_address(urlunsplit(parts._replace(netloc=name))) and len(parts.netloc) <= _HOST_LENGTH
        bracketed = _IPV6.fullmatch(parts.netloc)
        if bracketed:
            ipaddress.IPv6Address(bracketed.group(1))
    except ValueError:
        return False
    return len(parts.netloc) <= _HOST_LENGTH


def _is_address(text: str) -> bool:
    return re.fullmatch(_ADDRESS, text, re.IGNORECASE) is not None  # compiled when first needed: it takes 30 ms


def _validate_integer(value: object, field: Field) -> _Messages:
    if isinstance(value, str) and len(value) > _DIGITS:
        return [("String value too large.", "max_string_length")]
    number = as_integer(value)
    if number is None:
        return [("A valid integer is required.", "invalid")]
    limit = field.limit or INTEGER_LIMIT
    least = -limit - 1 if field.least is None else field.least
    if number > limit:
        return [(f"Ensure this value is less than or equal to {limit}.", "max_value")]
    return [(f"Ensure this value is greater than or equal to {least}.", "min_value")] if number < least else []


_DATE = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})[T ](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6})\d{0,6})?)?"
    r"(?:Z|([+-]\d{2}(?::?\d{2})?))?\n?"
)


def _parse_date(text: str) -> datetime.datetime | None:
    """Return a date as the server reads it, or None."""
    match = _DATE.fullmatch(text)
    if not match:
        return None
    *parts, fraction, zone = match.groups()
    year, month, day, hour, minute, second = (int(text or 0) for text in parts)
    try:
        microsecond = int((fraction or "").ljust(6, "0"))
        return datetime.datetime(year, month, day, hour, minute, second, microsecond, _time_zone(zone))
    except ValueError:
        return None


def _time_zone(text: str | None) -> datetime.tzinfo | None:
    if text is None:
        return None  # also Z: `as_datetime` reads times without a zone as UTC
    minutes = 60 * int(text[1:3]) + (int(text[-2:]) if len(text) > 3 else 0)
    return datetime.timezone(datetime.timedelta(minutes=-minutes if text[0] == "-" else minutes))


def _validate_date(value: object, _field: Field) -> _Messages:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return [("Expected a datetime but got a date.", "date")]
    date = _parse_date(value) if isinstance(value, str) else value
    if not isinstance(date, datetime.datetime):
        return [(f"Datetime has wrong format. Use one of these formats instead: {_FORMAT}.", "invalid")]
    return [] if as_datetime(date) else [("Datetime value out of range.", "overflow")]


def _validate_list(key: str, value: Any, field: Field) -> FieldError | None:
    if isinstance(value, (str, Mapping)) or not hasattr(value, "__iter__"):
        message = f'Expected a list of items but got type "{type(value).__name__}".'
        return FieldError(key, message, "not_a_list")
    item_field = Field(TEXT, "", limit=field.limit, blank=True, null=field.null)
    validated = {index: validate("", item, item_field) for index, item in enumerate(value)}
    errors = {index: error for index, error in validated.items() if error}
    if not errors:
        return None
    texts = ", ".join(f"{index}: {error.text}" for index, error in errors.items())
    earliest = next(iter(errors.values()))
    return FieldError(key, earliest.message, earliest.code, list_text=f"{{{texts}}}")


def _validate_json(value: object, _field: Field) -> _Messages:
    """Return the error of a value that JSON cannot represent."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return [("Value must be valid JSON.", "invalid")]
    return []


_VALIDATORS: dict[str, Callable[[Any, Field], _Messages]] = {
    TEXT: _validate_text,
    FLAG: lambda value, _field: [("Must be a valid boolean.", "invalid")] if as_flag(value) is None else [],
    WHOLE: _validate_integer,
    MOMENT: _validate_date,
    URL: _validate_text_form,
    SLUG: _validate_text_form,
    JSON: _validate_json,
}


def as_written(value: object) -> str:
    """Return a value as a host would write it, shortened."""
    try:
        text = str(value) if isinstance(value, (datetime.date, datetime.datetime)) else repr(value)
    except ValueError:  # more digits than Python prints
        text = "a number with thousands of digits"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
