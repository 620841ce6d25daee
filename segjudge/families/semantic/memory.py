"""Semantic maps in memory; where consistency needs all frames, they are stored compressed."""

import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from segjudge.evaluation_script.families import engine_of
from segjudge.evaluation_script.families.base.unit_counts import join_cells
from segjudge.evaluation_script.families.base.units import UnitAccumulator, UnitCounts, decode_unit
from segjudge.evaluation_script.families.semantic.engine import check_labels, count_maps
from segjudge.evaluation_script.families.semantic.protocols import VIDEOS, SemanticProtocol
from segjudge.evaluation_script.masks.overlaps import sum_by_key
from segjudge.evaluation_script.masks.stack import Array
from segjudge.families.base.memory import UnitFrames, UnitsInMemory, common_size, read_labels, refusal, refuse_flaws

#: The maximum labels of 8 and 16 bits.
_MOST_BYTE, _MOST_LABEL = (1 << 8) - 1, (1 << 16) - 1


class SemanticInMemory(UnitsInMemory):
    """A counter of label maps (height, width)."""

    protocol: SemanticProtocol

    def __init__(self, protocol: SemanticProtocol, categories: Sequence[Mapping[str, Any]] = ()) -> None:
        self.protocol, self.in_videos = protocol, protocol.form == VIDEOS
        self._categories = [
            [category["id"], str(category["name"]), str(category.get("supercategory", ""))] for category in categories
        ]

    def count(self, sequence: str, frame: str, prediction: object, truth: object) -> bytes:
        location = f"{sequence}, frame {frame}" if self.in_videos else sequence
        labels, predicted = (
            read_labels(truth, f"truth of {location}"),
            read_labels(prediction, f"prediction of {location}"),
        )
        common_size((labels.shape, predicted.shape), "maps", location)
        if max(labels.max(), predicted.max()) > _MOST_LABEL:
            raise refusal(location, f"has a label beyond {_MOST_LABEL}", "Use small numbers for classes, 255 for void")
        with refuse_flaws(f"prediction of {location}"):
            check_labels(predicted, labels, self.protocol)
        maps = np.stack((labels, predicted)).astype("<u2" if max(labels.max(), predicted.max()) > _MOST_BYTE else "u1")
        if not self.protocol.windows:
            return UnitCounts("", count_maps([(maps[0], maps[1])], 1, self.protocol)).encode()
        # Runs alone take half of the time where labels are noisy, and less room.
        compressor = zlib.compressobj(1, strategy=zlib.Z_RLE)
        return struct.pack("<II", *labels.shape) + compressor.compress(maps.tobytes()) + compressor.flush()

    def check(self, data: bytes) -> None:
        if self.protocol.windows:
            _decode_maps(data)
            return
        counts = decode_unit(data)
        accumulator = UnitAccumulator(self.protocol, self.facts({}), [counts.name])
        accumulator.update(counts)
        engine_of(self.protocol.family).check(accumulator)

    def facts(self, units: Mapping[str, UnitFrames]) -> dict[str, Any]:
        return {"categories": self._categories} if self._categories else {}

    def tables(self, frames: UnitFrames, facts: Mapping[str, Any]) -> dict[str, Array]:
        if not self.protocol.windows:
            return {"cells": np.stack(sum_by_key(*join_cells(list(map(decode_unit, frames.values())))))}
        pairs = ((maps[0], maps[1]) for maps in map(_decode_maps, frames.values()))
        return count_maps(pairs, len(frames), self.protocol)


def _decode_maps(data: bytes) -> Array:
    try:
        height, width = struct.unpack_from("<II", data)
        numbers = zlib.decompress(data[8:])
        return np.frombuffer(numbers, "<u2" if len(numbers) == 4 * height * width else "u1").reshape(2, height, width)
    except (struct.error, zlib.error) as error:
        raise ValueError(f"is not a pair of maps ({error})") from None
