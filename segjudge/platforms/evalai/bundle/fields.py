"""The keys that EvalAI reads from the YAML.

The serializers' rules, the JSON Schema for editors and the search for ignored keys come from this table.
"""

from __future__ import annotations

import json
import re
from typing import Any

from segjudge.platforms.rules.fields import FLAG, JSON, LIST, MOMENT, SLUG, TEXT, URL, WHOLE, Field

#: Further kinds of values; files are given by their path in the bundle.
_ANY = "anything"
_HTML, _PICTURE, SCRIPT, DATA = ".html file", "picture", "evaluation script", "annotation file"
FILES = (_HTML, _PICTURE, SCRIPT, DATA)

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
    "allowed_email_ids": Field(LIST, "the only users who may submit", null=True, holds_text=True),
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
    "allowed_email_domains": Field(LIST, "the only addresses that may take part", limit=50, holds_text=True),
    "blocked_email_domains": Field(LIST, "who may not take part", limit=50, holds_text=True),
    "banned_email_ids": Field(LIST, "who may not take part", null=True, holds_text=True),
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
    if field.holds_text:
        schema["items"] = {"type": "string", **({"maxLength": field.limit} if field.limit else {})}
    if field.least is not None:
        schema["minimum"] = field.least
    if field.choices:
        schema["enum"] = [*field.choices, None] if field.null else list(field.choices)
    if field.items:
        schema["items"] = _object_schema(field.items)
    return schema
