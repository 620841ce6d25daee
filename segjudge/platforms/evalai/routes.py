"""The paths of EvalAI's REST API, with or without a final slash as in its server's URL table."""

LOGIN = "/api/auth/login"
AUTH_TOKEN = "/api/accounts/user/get_auth_token"  # noqa: S105 - a path

# Challenges
CHALLENGES = "/api/challenges/challenge/{time}/{approved}/{published}"
CHALLENGE = "/api/challenges/challenge/{challenge:int}/"
CHALLENGE_OF_QUEUE = "/api/challenges/challenge/queues/{queue}/"
CHALLENGES_OF_HOST = "/api/challenges/challenge_host_team/{team:int}/challenge"
CHALLENGES_OF_PARTICIPANT = "/api/participants/participant_team/{team:int}/challenge"
PHASES = "/api/challenges/challenge/{challenge:int}/challenge_phase"
PHASE = "/api/challenges/challenge/{challenge:int}/challenge_phase/{phase:int}"
PHASES_OF_HOST = "/api/challenges/{challenge:int}/phases/"
PHASE_ALONE = "/api/challenges/challenge/phase/{phase:int}/"
PHASE_BY_SLUG = "/api/challenges/phase/{slug}/"
PHASE_SPLITS = "/api/challenges/{challenge:int}/challenge_phase_split"
PHASE_SPLIT = "/api/challenges/challenge/create/challenge_phase_split/{split:int}/"
LEADERBOARD_SCHEMA = "/api/challenges/challenge/create/leaderboard/{leaderboard:int}/"
DATASET_SPLIT = "/api/challenges/challenge/create/dataset_split/{split:int}/"
CHALLENGE_OF_HOST = "/api/challenges/challenge_host_team/{team:int}/challenge/{challenge:int}"
PRIZES = "/api/challenges/challenge/{challenge:int}/prizes/"
SPONSORS = "/api/challenges/challenge/{challenge:int}/sponsors/"
TEAMS_OF_CHALLENGE = "/api/challenges/challenge/{challenge:int}/get_participant_teams/"
AWS_CREDENTIALS = "/api/challenges/phases/{phase:int}/participant_team/aws/credentials/"
REQUEST_APPROVAL = "/api/challenges/{challenge:int}/request_approval"
WORKER_LOGS = "/api/challenges/{challenge:int}/get_worker_logs/"
MANAGE_WORKER = "/api/challenges/{challenge:int}/manage_worker/{action}/"
SCALE_RESOURCES = "/api/challenges/{challenge:int}/scale_resources/"
VALIDATE = "/api/challenges/challenge/challenge_host_team/{team:int}/validate_challenge_config/"
CREATE_OR_UPDATE = "/api/challenges/challenge/challenge_host_team/{team:int}/create_or_update_github_challenge/"
ANNOTATION_URLS = "/api/challenges/phases/{phase:int}/get_annotation_file_presigned_url/"
ANNOTATION_FINISHED = "/api/challenges/phases/{phase:int}/finish_annotation_file_upload/"

# Teams
PARTICIPATE = "/api/challenges/challenge/{challenge:int}/participant_team/{team:int}"
PARTICIPANT_TEAMS = "/api/participants/participant_team"
HOST_TEAMS = "/api/hosts/challenge_host_team/"
CREATE_HOST_TEAM = "/api/hosts/create_challenge_host_team"

# Submissions
SUBMISSIONS = "/api/jobs/challenge/{challenge:int}/challenge_phase/{phase:int}/submission/"
SUBMISSIONS_OF_CHALLENGE = "/api/jobs/challenge/{challenge:int}/submission/"
SUBMISSIONS_OF_PHASE = "/api/challenges/{challenge:int}/challenge_phase/{phase:int}/submissions"
SUBMISSION_COUNTS = "/api/jobs/phases/{phase:int}/submission_count_by_status/"
SUBMISSION = "/api/jobs/submission/{submission:int}"
SUBMISSION_STARTED = "/api/jobs/submission/{submission:int}/update_started_at/"
SUBMISSION_META = "/api/jobs/challenges/{challenge:int}/submissions/{submission:int}/update_submission_meta/"
SUBMISSION_RERUN = "/api/jobs/submissions/{submission:int}/re-run/"
SUBMISSION_RESUME = "/api/jobs/submissions/{submission:int}/resume/"
SUBMISSION_FILES = "/api/jobs/submission_files/"
UPLOAD_URLS = "/api/jobs/phases/{phase:int}/get_submission_file_presigned_url/"
UPLOAD_FINISHED = "/api/jobs/phases/{phase:int}/finish_submission_file_upload/{submission:int}/"
UPLOAD_SEND = "/api/jobs/phases/{phase:int}/send_submission_message/{submission:int}/"
LEADERBOARD = "/api/jobs/challenge_phase_split/{split:int}/leaderboard/"
LEADERBOARD_OF_HOST = "/api/jobs/phase_split/{split:int}/public_leaderboard_all_entries/"
LEADERBOARD_DATA = "/api/jobs/leaderboard_data/{row:int}/"

# Workers
QUEUE = "/api/jobs/challenge/queues/{queue}/"
QUEUE_DELETE = "/api/jobs/queues/{queue}/"
UPDATE_SUBMISSION = "/api/jobs/challenge/{challenge:int}/update_submission/"
UPDATE_PARTIAL = "/api/jobs/challenges/{challenge:int}/update_partially_evaluated_submission/"


def path(route: str, **values: int | str) -> str:
    """Fill in the parameters of a route."""
    return route.replace(":int", "").format(**values)
