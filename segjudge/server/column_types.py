"""The column types of the rehearsal's database."""

import json
from typing import Any

from sqlalchemy import BigInteger, Dialect, Double, Integer, Text, TypeDecorator
from sqlalchemy.orm import DeclarativeBase

from .refusal import JsonObject


class JsonText(TypeDecorator[Any]):
    """JSON kept as text, so that every database keeps exactly the same characters."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str:  # noqa: ARG002
        return json.dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> object:  # noqa: ARG002
        return None if value is None else json.loads(value)


class PlainText(TypeDecorator[str]):
    """Text without NUL characters, which PostgreSQL refuses even in a comparison."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if value is not None and "\0" in value else value


class Base(DeclarativeBase):
    """What all tables share: how Python's types are kept."""

    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy's name
        # SQLite numbers rows by itself only where the type is called INTEGER.
        int: BigInteger().with_variant(Integer(), "sqlite"),
        float: Double(),
        str: PlainText(),
        JsonObject: JsonText(),
        list[str]: JsonText(),
    }
