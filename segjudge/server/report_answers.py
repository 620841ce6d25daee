"""Answers of the page program, read as untrusted, since it reads untrusted files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: The maximum number of sentences in a verdict, of characters in a text, and of pictures in a film.
_SENTENCES, _CHARACTERS, _PICTURES = 6, 400, 8
#: The style of a colour in a legend.
_STYLE = re.compile("[a-z0-9-]{1,20}( [a-z0-9-]{1,20})?")
#: The data URL of a small picture.
_PICTURE = re.compile(r"data:image/(?:webp|jpeg);base64,[A-Za-z0-9+/]{1,200000}={0,2}")


@dataclass(frozen=True)
class SplitSummary:
    """The summary of a submission's page for one split."""

    #: The sentences of the verdict as plain text: the score, the largest cost, its place.
    verdict: Sequence[str] = ()
    #: The sequence or image of the film.
    subject: str = ""
    #: Names of frames, and the data URLs of their pictures.
    film: Sequence[tuple[str, str]] = ()
    #: The styles and meanings of the colours in these pictures.
    legend: Sequence[tuple[str, str]] = ()

    @property
    def cause(self) -> str:
        """Return the costliest cause; "" if the verdict names none."""
        return self.verdict[1] if len(self.verdict) > 1 else ""

    @property
    def picture(self) -> tuple[str, str] | None:
        """Return what the middle picture of the film shows, and its data URL; None without a film."""
        if not self.film:
            return None
        frame, picture = self.film[len(self.film) // 2]
        return f"{self.subject}, frame {frame}" if frame else self.subject, picture


@dataclass(frozen=True)
class ProgramAnswer:
    """A made page with the summaries of its splits, or the levels of phases."""

    page: str = ""
    split_summaries: Mapping[str, SplitSummary] = field(default_factory=dict)
    levels: Mapping[str, object] = field(default_factory=dict)


def read_answer(text: str) -> ProgramAnswer:
    """Read the program's answer; raises ValueError for anything else."""
    try:
        answer = _mapping(json.loads(text))
        page = _text(answer.get("page", ""))
        split_summaries = {
            split: _read_split_summary(_mapping(fields))
            for split, fields in _mapping(answer.get("split_summaries", {})).items()
        }
        return ProgramAnswer(page, split_summaries, _mapping(answer.get("levels", {})))
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def _read_split_summary(fields: Mapping[str, Any]) -> SplitSummary:
    sentences = [_text(sentence)[:_CHARACTERS] for sentence in _require_list(fields.get("verdict"))[:_SENTENCES]]
    pictures = [_require_list(pair) for pair in _require_list(fields.get("film"))[:_PICTURES]]
    film = [(_text(frame)[:_CHARACTERS], _text(picture)) for frame, picture in pictures]
    if not all(_PICTURE.fullmatch(picture) for _, picture in film):
        raise ValueError("has a film of something other than pictures")
    colours = [_require_list(pair) for pair in _require_list(fields.get("legend", []))[:_PICTURES]]
    legend = [(_text(style), _text(meaning)[:_CHARACTERS]) for style, meaning in colours]
    if not all(_STYLE.fullmatch(style) for style, _ in legend):
        raise ValueError("has a legend with something other than styles")
    return SplitSummary(sentences, _text(fields.get("subject"))[:_CHARACTERS], film, legend)


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("has a value that is not a mapping")
    return value


def _require_list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("has a value that is not a list")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("has a value that is not text")
    return value.encode("utf-8", "replace").decode("utf-8")  # a name may contain a lone surrogate
