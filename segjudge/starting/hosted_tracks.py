"""What a new challenge has of its track's own: samples, texts and limits; each track is a row of `HOSTED`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from segjudge.evaluation_script.instance_protocols import InstanceProtocol
from segjudge.evaluation_script.panoptic_protocols import PanopticProtocol
from segjudge.evaluation_script.semantic_protocols import SemanticProtocol
from segjudge.evaluation_script.sequence_protocols import SequenceProtocol
from segjudge.evaluation_script.tracks_protocols import TracksProtocol

from . import facts, samples, unit_samples
from .moving import Members


@dataclass(frozen=True)
class HostedTrack:
    """What makes challenges of a track; `files/track_….jinja` holds their texts."""

    #: The files of a sample: of the truths of all splits, a protocol, and how far masks are moved.
    files: Callable[[list[Any], Any, float], Members]
    #: What the texts say of the truths.
    facts: Callable[[list[Any], Any], dict[str, Any]]
    #: The limits of a phase, where they are others than those of mask sequences.
    limits: str = ""


_UNITS = "UNIT_LIMITS"
HOSTED = {
    SequenceProtocol.track: HostedTrack(samples.sequence_files, facts.sequence_facts),
    InstanceProtocol.track: HostedTrack(samples.instance_files, facts.instance_facts, "INSTANCE_LIMITS"),
    PanopticProtocol.track: HostedTrack(unit_samples.panoptic_files, facts.unit_facts, _UNITS),
    SemanticProtocol.track: HostedTrack(unit_samples.semantic_files, facts.unit_facts, _UNITS),
    TracksProtocol.track: HostedTrack(unit_samples.track_files, facts.unit_facts, _UNITS),
}
