"""Pushed bundles: rejected by EvalAI's rules, or stored as a challenge."""

from __future__ import annotations

import datetime
import json
import secrets
from dataclasses import replace

from segjudge.platforms.evalai.bundle.check import refusal
from segjudge.platforms.evalai.bundle.fields import TEXTS
from segjudge.platforms.evalai.bundle.opened_bundle import Bundle, BundleRefusedError
from segjudge.platforms.evalai.bundle.rules import UNSAVED, check_server_rules, first_word, phase_slug
from segjudge.platforms.evalai.bundle.server_state import ServerState
from segjudge.platforms.rules.fields import TRUE, as_integer
from segjudge.platforms.rules.problems import mappings_in

from .accounts import PARTICIPANT
from .evalai_json import NUMBERS
from .models import (
    Challenge,
    ChallengePhase,
    ChallengePhaseSplit,
    DatasetSplit,
    Leaderboard,
    Membership,
    Participation,
    Team,
)
from .services import Services
from .store import Model
from .wire import JsonObject

#: EvalAI's default limits of a phase.
_LIMIT = 100_000
_PHASE_DEFAULTS: JsonObject = {
    "max_submissions_per_day": _LIMIT,
    "max_concurrent_submissions_allowed": 3,
    "allowed_submission_file_types": ".json, .zip, .txt, .tsv, .gz, .csv, .h5, .npy",
    "allowed_email_ids": [],
    "submission_artifact_retention_policy": "keep_forever",
    "environment_image": None,
    "submission_meta_attributes": None,
    "default_submission_meta_attributes": None,
}
#: The keys that an update resets if they are missing; all others are kept.
_RESET = ("tags", "domain", "prizes", "sponsors")
_RESET_OF_PHASE = ("submission_meta_attributes", "default_submission_meta_attributes", "max_submissions_per_month")


def find_challenge(services: Services, repository: str) -> Challenge | None:
    """Return the challenge that was pushed from a repository."""
    return services.store.find_first(Challenge, Challenge.repository == repository)


def refuse_bundle(services: Services, bundle: str, repository: str, *, saving: bool = True) -> str:
    """Return EvalAI's reason to reject a bundle when it validates or saves it; "" if it accepts it."""
    challenge = find_challenge(services, repository)
    state: ServerState | None = None
    if challenge:
        slugs = [phase.slug.rpartition("-")[0] for phase in services.store.phases(challenge.id)]
        state = replace(ServerState.after_push(challenge.config, source="here"), slugs=slugs)
    try:
        with Bundle(bundle) as opened:
            return refusal(list(check_server_rules(opened, state)), saving=saving)
    except BundleRefusedError as error:
        return refusal([error.problem]) or str(error.problem)


def create_or_update(services: Services, bundle: str, repository: str, team: int) -> tuple[int, bool]:
    """Store a bundle that was not refused; return the challenge's number and whether it is new."""
    with Bundle(bundle) as opened, services.store.write() as session:
        existing = find_challenge(services, repository)
        config = _read_texts(opened)
        if existing is not None and existing.config.get("sponsors") and config.get("sponsors"):
            raise ValueError(UNSAVED.format(None))
        merged = _to_json({**_leave_out(existing.config if existing else {}, _RESET), **config})
        image = _keep_file(services, opened, config.get("image"), "image")
        script = _keep_file(services, opened, config.get("evaluation_script"), "script") or ""
        if existing is not None:
            existing.config, existing.image, existing.script = merged, image or existing.image, script
            existing.version += 1
            challenge = existing
        else:
            challenge = Challenge(
                host_team=team, repository=repository, queue="", config=merged, image=image, script=script
            )
            session.add(challenge)
            session.flush()
            challenge.queue = f"{challenge.slug[:40]}-{challenge.id}-rehearsal-{secrets.token_hex(4)}"
            if not challenge.flag("is_docker_based"):
                _let_host_participate(services, challenge)
        _save_blocks(services, challenge.id, merged, opened)
    return challenge.id, existing is None


def _let_host_participate(services: Services, challenge: Challenge) -> None:
    """Add a participant team of the hosts to a new challenge, as EvalAI does."""
    creator = services.store.require(Team, challenge.host_team).created_by
    members = services.store.find(Membership, Membership.team_id == challenge.host_team)
    name = f"Host_{secrets.randbelow(10**5):05d}_Team"
    with services.store.write() as session:
        team = Team(kind=PARTICIPANT, team_name=name, created_by=creator)
        session.add(team)
        session.flush()
        session.add_all(Membership(team_id=team.id, user_id=member.user_id) for member in members)
        session.add(Participation(challenge_id=challenge.id, team_id=team.id))


def _save_blocks(services: Services, challenge: int, config: JsonObject, bundle: Bundle) -> None:
    with services.store.write() as session:
        boards, splits, phases = {}, {}, {}
        for block in mappings_in(config, "leaderboard"):
            board = _find_row(services, Leaderboard, challenge_id=challenge, config_id=_to_integer(block["id"]))
            board.schema = block["schema"]
            session.add(board)
            boards[board.config_id] = board
        for block in mappings_in(config, "dataset_splits"):
            split = _find_row(services, DatasetSplit, challenge_id=challenge, config_id=_to_integer(block["id"]))
            split.name, split.codename = str(block["name"]), str(block["codename"])
            session.add(split)
            splits[split.config_id] = split
        for block in mappings_in(config, "challenge_phases"):
            phase = _find_row(services, ChallengePhase, challenge_id=challenge, config_id=_to_integer(block["id"]))
            _fill_phase(services, phase, first_word(config["title"]), block, bundle)
            session.add(phase)
            phases[phase.config_id] = phase
        session.flush()
        for block in mappings_in(config, "challenge_phase_splits"):
            row = _find_row(
                services,
                ChallengePhaseSplit,
                phase_id=phases[_to_integer(block["challenge_phase_id"])].id,
                leaderboard_id=boards[_to_integer(block["leaderboard_id"])].id,
                split_id=splits[_to_integer(block["dataset_split_id"])].id,
            )
            row.visibility = _to_integer(block["visibility"])
            row.decimals = _to_integer(block["leaderboard_decimal_precision"])
            row.descending = block["is_leaderboard_order_descending"] in TRUE
            session.add(row)


def _keep_file(services: Services, bundle: Bundle, path: object, kind: str) -> str | None:
    return services.files.keep(bundle.read(str(path)), str(path), kind) if bundle.has(path) else None


def _find_row(services: Services, model: type[Model], **keys: int) -> Model:
    """Return the row with these keys, or a new unstored one."""
    return services.store.find_first(model, *(getattr(model, key) == keys[key] for key in keys)) or model(**keys)


def _fill_phase(services: Services, phase: ChallengePhase, word: str, block: JsonObject, bundle: Bundle) -> None:
    merged = {**_PHASE_DEFAULTS, **_leave_out(phase.config or {}, _RESET_OF_PHASE), **block}
    merged.setdefault("max_submissions", _LIMIT)
    if merged.get("max_submissions_per_month") is None:
        merged["max_submissions_per_month"] = merged["max_submissions"]
    page = str(block.get("description"))
    has_page = bundle.has(page) and page.endswith(".html")
    merged["description"] = bundle.read(page).decode("utf-8") if has_page else str(merged.get("description", ""))
    for key in [key for key in NUMBERS if merged.get(key) is not None]:
        merged[key] = int(float(merged[key]))  # "5" and "5.0" are accepted too
    at_once = merged["max_concurrent_submissions_allowed"]
    merged["max_concurrent_submissions_allowed"] = min(at_once, merged["max_submissions_per_day"])
    if not phase.by_client:
        phase.annotation = (
            _keep_file(services, bundle, block.get("test_annotation_file"), "annotation") or phase.annotation
        )
    phase.by_client = phase.by_client or merged.get("annotations_uploaded_using_cli") in TRUE
    phase.codename = str(merged["codename"])
    phase.slug = phase.slug or phase_slug(word, phase.codename, phase.challenge_id)  # kept permanently once it exists
    phase.config = _to_json(merged)


def _to_integer(value: object) -> int:
    """Return a number that the server's rules have accepted."""
    number = as_integer(value)
    assert number is not None  # noqa: S101 - `refusal` was asked before
    return number


def _leave_out(config: JsonObject, keys: tuple[str, ...]) -> JsonObject:
    return {key: value for key, value in config.items() if key not in keys}


def _read_texts(bundle: Bundle) -> JsonObject:
    """Return the config with texts in the place of their paths."""
    config = dict(bundle.config)
    for key in TEXTS:
        if bundle.has(config.get(key)):
            config[key] = bundle.read(str(config[key])).decode("utf-8")
    return config


def _to_json(config: JsonObject) -> JsonObject:
    """Return a config of the YAML as JSON keeps it: dates as texts, keys as texts."""
    plain: JsonObject = json.loads(json.dumps(config, default=_format_value))
    return plain


def _format_value(value: object) -> str:
    return value.isoformat() if isinstance(value, (datetime.datetime, datetime.date)) else str(value)
