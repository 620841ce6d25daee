"""Challenges, phases, submissions and leaderboards as EvalAI's API shows them."""

from collections.abc import Callable

from segjudge.platforms.evalai.bundle.fields import PHASE, TEXTS
from segjudge.platforms.rules.fields import FLAG, TRUE, WHOLE

from .leaderboards import RankedBoard
from .models import Challenge, ChallengePhase, ChallengePhaseSplit, Submission, Team
from .store import Store
from .stored_files import FileStore
from .wire import JsonObject, format_date, format_moment

#: EvalAI's defaults of a challenge.
_CHALLENGE_DEFAULTS: JsonObject = {
    "submission_time_limit": 86400,
    "max_docker_image_size": 42949672960,
    "cli_version": None,
    "is_registration_open": True,
    "enable_forum": True,
    "forum_url": None,
    "short_description": None,
    "leaderboard_description": None,
    "max_team_members": None,
    "domain": None,
    "job_cpu_cores": "2000m",
    "job_memory": "8Gi",
    "worker_python_version": "3.9",
}
_CHALLENGE_FLAGS = (
    "remote_evaluation", "is_docker_based", "is_static_dataset_code_upload", "cpu_only_jobs", "anonymous_leaderboard",
    "allow_resuming_submissions", "allow_host_cancel_submissions", "allow_cancel_running_submissions",
    "allow_participants_resubmissions",
)  # fmt: skip
#: Numbers and flags of a phase.
NUMBERS, _PHASE_FLAGS = (
    [key for key, field in PHASE.items() if field.kind == kind and key != "id"] for kind in (WHOLE, FLAG)
)
#: The texts that participants write about a submission.
TEXT_FIELDS = ("method_name", "method_description", "project_url", "publication_url")


class EvalAIJson:
    """Makes the mappings that EvalAI's serializers make, with signed addresses of files."""

    def __init__(self, store: Store, files: FileStore, clock: Callable[[], float]) -> None:
        self._store, self._files, self._clock = store, files, clock

    def challenge(self, challenge: Challenge, base: str, *, host: bool = False) -> JsonObject:
        """Return a challenge; only hosts see its script's URL."""
        config = {**_CHALLENGE_DEFAULTS, **challenge.config}
        team = self._store.require(Team, challenge.host_team)
        copied = ("title", *TEXTS, *_CHALLENGE_DEFAULTS)
        return {
            "id": challenge.id,
            **{key: config.get(key) for key in copied},
            **{key: config.get(key) in TRUE for key in _CHALLENGE_FLAGS},
            "image": self._files.url(challenge.image, base),
            "start_date": format_date(config["start_date"]),
            "end_date": format_date(config["end_date"]),
            "creator": {"id": team.id, "team_name": team.team_name, "team_url": ""},
            "list_tags": config.get("tags") or [],
            "has_prize": bool(config.get("prizes")),
            "has_sponsors": bool(config.get("sponsors")),
            # EvalAI's staff approves, and the host publishes; here both have happened.
            "published": True,
            "approved_by_admin": True,
            "is_active": challenge.is_open(self._clock()),
            "evaluation_script": self._files.url(challenge.script, base) if host else None,
            "slug": f"{challenge.slug}-{challenge.id}",
            "queue": challenge.queue,
            "github_repository": challenge.repository,
        }

    def phase(self, phase: ChallengePhase, base: str, *, host: bool) -> JsonObject:
        """Return a phase; only hosts see its truth's URL."""
        config = phase.config
        fields = {
            "id": phase.id,
            "challenge": phase.challenge_id,
            "config_id": phase.config_id,
            "codename": phase.codename,
            "slug": phase.slug,
            "name": phase.name,
            "description": config["description"],
            "start_date": format_date(config["start_date"]),
            "end_date": format_date(config["end_date"]),
            "is_active": phase.is_open(self._clock()),
            **{key: None if config.get(key) is None else int(float(config[key])) for key in NUMBERS},
            **{key: phase.flag(key) for key in _PHASE_FLAGS},
            **{key: config.get(key) for key in ("allowed_submission_file_types", "submission_meta_attributes")},
            "default_submission_meta_attributes": config.get("default_submission_meta_attributes"),
            "annotations_uploaded_using_cli": phase.by_client,
        }
        if host:
            fields["test_annotation"] = self._files.url(phase.annotation, base)
            fields["environment_image"] = config.get("environment_image")
        return fields

    def submission(self, submission: Submission, base: str, *, host: bool = False) -> JsonObject:
        """Return a submission; only hosts see the environment's log and the metadata."""
        file_keys = ("input_file", "submission_input_file")
        # The team may see less of their output than hosts do.
        written = ("stdout_file", "stderr_file", "submission_result_file")
        reader = 0 if host else submission.id
        moments = ("started_at", "completed_at", "submitted_at", "rerun_resumed_at")
        fields = {
            "id": submission.id,
            "participant_team": submission.team_id,
            "participant_team_name": self._store.require(Team, submission.team_id).team_name,
            "execution_time": "None" if submission.execution_time is None else submission.execution_time,
            "challenge_phase": submission.phase_id,
            "created_by": submission.created_by,
            "status": submission.status,
            **{key: self._files.url(getattr(submission, key), base) for key in file_keys},
            **{key: self._files.url(getattr(submission, key), base, reader) for key in written},
            **{key: format_moment(getattr(submission, key)) for key in moments},
            **{key: getattr(submission, key) for key in TEXT_FIELDS},
            **{key: getattr(submission, key) for key in ("is_public", "is_flagged", "is_baseline")},
            "ignore_submission": False,
            "when_made_public": None,
            "is_verified_by_host": False,
            "job_name": submission.job_name,
            "submission_metadata": submission.attributes,
            "environment_log_file": self._files.url(submission.environment_log_file, base) if host else None,
        }
        if host:
            fields["submission_metadata_file"] = self._files.url(submission.metadata_file, base)
        return fields


def phase_split_json(split: ChallengePhaseSplit, phase: ChallengePhase) -> JsonObject:
    return {
        "id": split.id,
        "challenge_phase": phase.id,
        "challenge_phase_name": phase.name,
        "dataset_split": split.split_id,
        "dataset_split_name": split.dataset_split.name,
        "visibility": split.visibility,
        "leaderboard_decimal_precision": split.decimals,
        "is_leaderboard_order_descending": split.descending,
        "show_execution_time": False,
        "show_leaderboard_by_latest_submission": False,
        "leaderboard_schema": split.leaderboard.schema,
    }


def board_json(board: RankedBoard, split: int) -> list[JsonObject]:
    """Return the rows of a leaderboard with the keys that EvalAI's client reads."""
    return [
        {
            "id": row.id,
            "submission__id": row.submission,
            "submission__participant_team": row.team_id,
            "submission__participant_team__team_name": row.team_name,
            "submission__submitted_at": format_moment(row.submitted_at),
            "submission__is_baseline": row.is_baseline,
            "submission__method_name": row.method_name,
            "challenge_phase_split": split,
            "leaderboard__schema": {"labels": board.labels, "default_order_by": board.order},
            "filtering_score": row.result.get(board.order, 0.0),
            "result": [row.result.get(label, "#") for label in board.labels],
            "error": bars if any(bar is not None for bar in bars) else None,
        }
        for row in board.rows
        for bars in [[row.error_bar(label) for label in board.labels]]
    ]
