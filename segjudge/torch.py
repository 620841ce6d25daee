"""A torchmetrics metric for training loops: synchronised, exact, and unaffected by repeated frames."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from segjudge.evaluation_script.families.base.family import FamilyProtocol
from segjudge.scoring.arrays import FrameAccumulator
from segjudge.system.extras import make_error

try:
    import torch
    from torchmetrics import Metric
    from torchmetrics.utilities import dim_zero_cat
except ModuleNotFoundError as error:
    raise make_error("torch", __name__, error.name or "") from None


class SegmentationMetric(Metric):  # type: ignore[misc] # torch is not installed everywhere
    """The metrics of a protocol as a dictionary of numbers; NaN for empty means.

    Its state is one byte vector with the counts of all frames, so ranks may have different numbers of frames, or none.
    A frame on several ranks counts once.
    """

    full_state_update = False
    higher_is_better = True
    is_differentiable = False
    frames: list[torch.Tensor]

    def __init__(
        self,
        protocol: str | FamilyProtocol = "davis2017",
        *,
        unseen: Iterable[str] = (),
        categories: Sequence[Mapping[str, Any]] = (),
        **kwargs: Any,
    ) -> None:
        """Score by a protocol; `kwargs` are those of `torchmetrics.Metric`."""
        super().__init__(**kwargs)
        self._accumulator = partial(FrameAccumulator, protocol, unseen=tuple(unseen), categories=list(categories))
        self._accumulator()  # refuses protocols that cannot be scored in memory
        self.add_state("frames", default=[], dist_reduce_fx="cat")
        self.reset()

    def reset(self) -> None:
        """Reset the metric; one empty vector remains, so that ranks without frames can gather."""
        super().reset()
        self.frames.append(torch.zeros(0, dtype=torch.uint8, device=self.device))

    def update(self, preds: object, target: object, sequence: object, frame: object = None) -> None:
        """Count a frame, or, where `sequence` is a list or tuple, a batch of them."""
        counted = self._accumulator()
        batch = _copy_to_cpu([sequence, frame, preds, target])
        frames: Iterable[Sequence[Any]] = [batch]
        if isinstance(sequence, (list, tuple)):
            batch[1] = [None] * len(sequence) if frame is None else batch[1]
            frames = zip(*batch, strict=True)
        for name, frame_name, prediction, truth in frames:
            counted.update(_plain_value(name), _plain_value(frame_name), prediction, truth)
        data = b"".join(_encode_frames(counted.state_dict()))
        self.frames.append(torch.from_numpy(np.frombuffer(data, np.uint8).copy()).to(self.device))

    def compute(self) -> dict[str, torch.Tensor]:
        """Return the metrics of all frames of all processes; NaN before the first frame."""
        accumulator = self._accumulator()
        for state in _decode_frames(dim_zero_cat(self.frames).cpu().numpy().tobytes()):
            loaded = self._accumulator()
            loaded.load_state_dict(state)
            accumulator.merge(loaded)
        values = accumulator.values()
        numbers = {name: float("nan") if value is None else float(value) for name, value in values.items()}
        return {name: torch.tensor(number, dtype=torch.float64) for name, number in numbers.items()}


def _plain_value(name: object) -> object:
    """Return a name or number; numbers that a loader turned into tensors become plain again."""
    return name.item() if isinstance(name, torch.Tensor) else name


def _copy_to_cpu(values: list[Any]) -> list[Any]:
    """Return nested values with their tensors in the CPU's memory, copied together by type."""
    copies: dict[int, torch.Tensor] = {}
    types: dict[torch.dtype, list[torch.Tensor]] = {}
    for tensor in _list_tensors(values):
        is_plain = type(tensor) is torch.Tensor and tensor.layout is torch.strided  # others have data of their own
        if tensor.is_cpu or not is_plain:
            copies[id(tensor)] = tensor.detach().cpu()
        else:
            types.setdefault(tensor.dtype, []).append(tensor)
    for tensors in types.values():
        joined = torch.cat([tensor.detach().reshape(-1) for tensor in tensors]).cpu()
        parts = joined.split([tensor.numel() for tensor in tensors])
        copies.update((id(tensor), part.view(tensor.shape)) for tensor, part in zip(tensors, parts, strict=True))
    return [_replace_tensors(value, copies) for value in values]


def _list_tensors(value: object) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _list_tensors(item)


def _replace_tensors(value: object, copies: Mapping[int, torch.Tensor]) -> object:
    """Return a value whose tensors are replaced by their copies."""
    if isinstance(value, torch.Tensor):
        return copies[id(value)]
    if isinstance(value, Mapping):
        return {key: _replace_tensors(item, copies) for key, item in value.items()}
    return [_replace_tensors(item, copies) for item in value] if isinstance(value, (list, tuple)) else value


def _encode_frames(state: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield each frame as bytes: lengths, header and counts."""
    for name, frames in state["frames"].items():
        for frame, data in frames.items():
            head = json.dumps([state["protocol"], name, frame]).encode()
            yield len(head).to_bytes(4, "little") + len(data).to_bytes(4, "little") + head + data


def _decode_frames(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the state of each frame that `_encode_frames` wrote."""
    start = 0
    while start < len(data):
        head, body = (int.from_bytes(data[start + offset : start + offset + 4], "little") for offset in (0, 4))
        middle = start + 8 + head
        protocol, name, frame = json.loads(data[start + 8 : middle])
        start = middle + body
        yield {"protocol": protocol, "frames": {name: {frame: data[middle:start]}}}
