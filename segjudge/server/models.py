"""The server's data: a typed class for each table, named as EvalAI names its models."""

import re
from typing import Any

from sqlalchemy import JSON, Dialect, ForeignKey, Index, Text, TypeDecorator, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from segjudge.platforms.rules.fields import TRUE

from .wire import JsonObject, parse_moment


class _PlainText(TypeDecorator[str]):
    """Text without NUL characters, which EvalAI's PostgreSQL refuses even in a comparison."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if value is not None and "\0" in value else value


class Base(DeclarativeBase):
    """The base of all tables, which maps Python's types."""

    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy's name
        str: _PlainText(),
        JsonObject: JSON(),
        list[str]: JSON(),
    }


class _ConfiguredMixin:
    """A row with the mapping of the YAML that it was made from."""

    config: Mapped[JsonObject]

    def flag(self, key: str) -> bool:
        """Return whether a flag of the config is set, however the YAML writes it."""
        return self.config.get(key) in TRUE

    def is_open(self, moment: float) -> bool:
        return parse_moment(self.config["start_date"]) <= moment <= parse_moment(self.config["end_date"])


class _NumberedMixin:
    """A row that the database numbers."""

    id: Mapped[int] = mapped_column(primary_key=True, sort_order=-1)


class _BlockMixin(_NumberedMixin):
    """A row that was made from a block of the YAML."""

    __table_args__ = (UniqueConstraint("challenge_id", "config_id"),)
    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id"))
    #: Its number in the YAML.
    config_id: Mapped[int]


class Setting(Base):
    """A value that the server keeps for itself: its secret, its schema version, its folders."""

    __tablename__ = "settings"
    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str]


class Membership(Base):
    """A user in a team."""

    __tablename__ = "members"
    team_id: Mapped[int] = mapped_column(ForeignKey("teams.id"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True, index=True)


class User(_NumberedMixin, Base):
    """An account."""

    __tablename__ = "users"
    username: Mapped[str] = mapped_column(unique=True)
    email: Mapped[str]
    #: Salt and hash, joined by `$`.
    password: Mapped[str]


class AccessToken(Base):
    """A token, of which only the hash is kept."""

    __tablename__ = "tokens"
    hash: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    kind: Mapped[str]
    expires_at: Mapped[float]


class Team(_NumberedMixin, Base):
    """A host team or a participant team, by its kind."""

    __tablename__ = "teams"
    __table_args__ = (UniqueConstraint("kind", "team_name"),)
    kind: Mapped[str]
    team_name: Mapped[str]
    team_url: Mapped[str] = mapped_column(default="", server_default="")
    created_by: Mapped[int] = mapped_column(ForeignKey("users.id"))


class Participation(Base):
    """A team that takes part in a challenge."""

    __tablename__ = "participants"
    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id"), primary_key=True)
    team_id: Mapped[int] = mapped_column(ForeignKey("teams.id"), primary_key=True)


class Challenge(_ConfiguredMixin, _NumberedMixin, Base):
    """A challenge, made from a bundle."""

    __tablename__ = "challenges"
    host_team: Mapped[int] = mapped_column(ForeignKey("teams.id"))
    repository: Mapped[str] = mapped_column(unique=True)
    queue: Mapped[str]
    image: Mapped[str | None]
    #: The file of the evaluation script.
    script: Mapped[str]
    #: The number of changes after which a worker must reload the script and the truths.
    version: Mapped[int] = mapped_column(default=1)

    @property
    def slug(self) -> str:
        """Return the title as used in URLs."""
        return re.sub(r"[^a-z0-9]+", "-", str(self.config["title"]).lower()).strip("-") or "challenge"


class ChallengePhase(_ConfiguredMixin, _BlockMixin, Base):
    """A phase of a challenge."""

    __tablename__ = "phases"
    codename: Mapped[str]
    slug: Mapped[str]
    #: The file of the truth.
    annotation: Mapped[str | None]
    #: Whether the truth was uploaded with EvalAI's client, so that a push does not change it.
    by_client: Mapped[bool] = mapped_column(default=False)

    @property
    def name(self) -> str:
        return str(self.config["name"])


class Leaderboard(_BlockMixin, Base):
    """The labels and the order of a leaderboard."""

    __tablename__ = "leaderboards"
    schema: Mapped[JsonObject]


class DatasetSplit(_BlockMixin, Base):
    """A dataset split of a challenge."""

    __tablename__ = "splits"
    name: Mapped[str]
    codename: Mapped[str]


class ChallengePhaseSplit(_NumberedMixin, Base):
    """A phase, a dataset split and their leaderboard."""

    __tablename__ = "phase_splits"
    __table_args__ = (UniqueConstraint("phase_id", "leaderboard_id", "split_id"),)
    phase_id: Mapped[int] = mapped_column(ForeignKey("phases.id"))
    leaderboard_id: Mapped[int] = mapped_column(ForeignKey("leaderboards.id"))
    split_id: Mapped[int] = mapped_column(ForeignKey("splits.id"))
    #: EvalAI's numbers: 1 for hosts, 2 for its owner and hosts, 3 for everybody.
    visibility: Mapped[int]
    decimals: Mapped[int]
    descending: Mapped[bool]
    dataset_split: Mapped[DatasetSplit] = relationship(lazy="joined", innerjoin=True)
    leaderboard: Mapped[Leaderboard] = relationship(lazy="joined", innerjoin=True)

    @property
    def challenge_id(self) -> int:
        """Return the id of the challenge of phase, split and leaderboard."""
        return self.dataset_split.challenge_id

    @property
    def labels(self) -> list[str]:
        labels: list[str] = self.leaderboard.schema["labels"]
        return labels


class Submission(_NumberedMixin, Base):
    """A submission of a team to a phase; its files are named by their ids."""

    __tablename__ = "submissions"
    __table_args__ = (Index("submissions_of_phase", "phase_id", "team_id", "status"),)
    phase_id: Mapped[int] = mapped_column(ForeignKey("phases.id"))
    team_id: Mapped[int] = mapped_column(ForeignKey("teams.id"))
    created_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    status: Mapped[str]
    input_file: Mapped[str | None]
    #: The output of a static code upload, which is scored instead of the input file.
    submission_input_file: Mapped[str | None]
    stdout_file: Mapped[str | None]
    stderr_file: Mapped[str | None]
    environment_log_file: Mapped[str | None]
    submission_result_file: Mapped[str | None]
    metadata_file: Mapped[str | None]
    method_name: Mapped[str] = mapped_column(default="")
    method_description: Mapped[str] = mapped_column(default="")
    project_url: Mapped[str] = mapped_column(default="")
    publication_url: Mapped[str] = mapped_column(default="")
    #: The answers to the phase's questions.
    attributes: Mapped[Any] = mapped_column(JSON(), nullable=True)
    is_public: Mapped[bool] = mapped_column(default=False)
    is_flagged: Mapped[bool] = mapped_column(default=False)
    is_baseline: Mapped[bool] = mapped_column(default=False)
    submitted_at: Mapped[float]
    started_at: Mapped[float | None]
    completed_at: Mapped[float | None]
    rerun_resumed_at: Mapped[float | None]
    job_name: Mapped[list[str]] = mapped_column(default=list)
    #: The number of workers that died on it, weighted by time.
    deaths: Mapped[int] = mapped_column(default=0)

    @property
    def execution_time(self) -> float | None:
        """Return the seconds from start to completion; 0 if the clock was set back, None before completion."""
        return max(0.0, self.completed_at - self.started_at) if self.completed_at and self.started_at else None


class LeaderboardData(_NumberedMixin, Base):
    """The scores of a submission on a phase split; disabled when a later run replaced them."""

    __tablename__ = "results"
    __table_args__ = (Index("results_of_split", "phase_split_id", "disabled"),)
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id"), index=True)
    phase_split_id: Mapped[int] = mapped_column(ForeignKey("phase_splits.id"))
    result: Mapped[JsonObject]
    error: Mapped[JsonObject | None] = mapped_column(JSON())
    disabled: Mapped[bool] = mapped_column(default=False)


class StoredFile(Base):
    """A file of the server's folder: the id is its name there, `name` is the sender's name."""

    __tablename__ = "files"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    size: Mapped[int]
    kind: Mapped[str]


class StoredMessage(_NumberedMixin, Base):
    """A message in a queue."""

    __tablename__ = "messages"
    __table_args__ = (Index("messages_of_queue", "queue", "visible_at"),)
    queue: Mapped[str]
    body: Mapped[JsonObject]
    #: Whether EvalAI's own worker takes it; otherwise the one that runs code uploads.
    hosted: Mapped[bool]
    visible_at: Mapped[float]
    sent_at: Mapped[float]
    received: Mapped[int] = mapped_column(default=0)


class MessageReceipt(Base):
    """A handle under which a message was received."""

    __tablename__ = "receipts"
    handle: Mapped[str] = mapped_column(primary_key=True)
    message_id: Mapped[int] = mapped_column(ForeignKey("messages.id", ondelete="CASCADE"), index=True)


class MultipartUpload(Base):
    """An unfinished upload in parts: of a submission's file, or of a truth if `submission_id` is None."""

    __tablename__ = "uploads"
    id: Mapped[str] = mapped_column(primary_key=True)
    phase_id: Mapped[int] = mapped_column(ForeignKey("phases.id"))
    submission_id: Mapped[int | None]
    user_id: Mapped[int]
    name: Mapped[str]


class UploadPart(Base):
    """A part of a large upload; it has a file and a tag once it has arrived."""

    __tablename__ = "parts"
    upload_id: Mapped[str] = mapped_column(ForeignKey("uploads.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    file: Mapped[str | None]
    etag: Mapped[str | None]


class LogLine(_NumberedMixin, Base):
    """A line of the hosted worker's log; challenge 0 means none."""

    __tablename__ = "log"
    challenge_id: Mapped[int]
    written_at: Mapped[float] = mapped_column("at")
    line: Mapped[str]
