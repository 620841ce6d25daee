"""The metric for torch's loops with only the part of torch that it needs, since torch is not installed everywhere."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from segjudge.scoring.arrays import FrameAccumulator
from tests.families.contract import examples


class Tensor:
    """An array that pretends to be in another memory."""

    layout, is_cpu = "of its own", False

    def __init__(self, values: Any, device: str = "gpu") -> None:
        self.values, self.device = np.asarray(values), device

    def item(self) -> Any:
        return self.values.item()

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return Tensor(self.values, "cpu")

    def to(self, device: str) -> Tensor:
        return Tensor(self.values, device)

    def numpy(self) -> Any:
        assert self.device == "cpu"
        return self.values

    def __array__(self, *_: object, **__: object) -> Any:
        return self.numpy()

    def __iter__(self) -> Iterator[Tensor]:
        return iter(Tensor(value, self.device) for value in self.values)


class Metric:
    """Keeps states, and forgets them."""

    def __init__(self, **options: object) -> None:
        self.device, self.options, self.reductions = "gpu", options, dict[str, str]()

    def add_state(self, name: str, default: list[object], dist_reduce_fx: str) -> None:
        assert default == []
        self.reductions[name] = dist_reduce_fx

    def reset(self) -> None:
        for name in self.reductions:
            setattr(self, name, [])


@pytest.fixture
def face(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield the module, imported with that part of torch."""
    torch, metrics, utilities = (ModuleType(name) for name in ("torch", "torchmetrics", "torchmetrics.utilities"))
    vars(torch).update(
        Tensor=Tensor, strided="strided", uint8=np.uint8, float64=np.float64, from_numpy=lambda values: Tensor(values, "cpu"),
        zeros=lambda size, dtype, device: Tensor(np.zeros(size, dtype), device),
        tensor=lambda value, dtype: Tensor(np.array(value, dtype), "cpu"),
    )  # fmt: skip
    vars(metrics)["Metric"] = Metric
    vars(utilities)["dim_zero_cat"] = lambda vectors: Tensor(
        np.concatenate([vector.values for vector in vectors]), "gpu"
    )
    for module in (torch, metrics, utilities):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, "segjudge.torch", raising=False)
    yield importlib.import_module("segjudge.torch")
    sys.modules.pop("segjudge.torch", None)


def masks(seed: int) -> tuple[Any, Any]:
    draw = np.random.default_rng(seed)
    truth = np.kron(draw.integers(0, 3, (3, 4)), np.ones((5, 6), int)).astype(np.uint8)
    return np.roll(truth, seed, axis=1), truth


def numbers_of(values: dict[str, Tensor]) -> dict[str, float | None]:
    return {name: None if math.isnan(value.item()) else value.item() for name, value in values.items()}


def test_ranks_with_more_fewer_and_the_same_frames_give_the_numbers_of_one_run(face: Any) -> None:
    whole = FrameAccumulator("davis2017")
    for seed in range(5):
        whole.update("a" if seed < 3 else "b", f"{seed:05d}", *masks(seed))
    ranks = [face.SegmentationMetric("davis2017", sync_on_compute=False) for _ in range(3)]
    assert ranks[0].options == {"sync_on_compute": False}
    assert ranks[0].reductions == {"frames": "cat"}
    assert [(frame.values.tolist(), frame.values.dtype, frame.device) for frame in ranks[2].frames] == [
        ([], np.uint8, "gpu")
    ]
    for seed in (0, 1):
        ranks[0].update(*map(Tensor, masks(seed)), "a", f"{seed:05d}")
    pairs = [masks(seed) for seed in (1, 2, 3, 4)]
    names = ["a", "a", "b", "b"]
    ranks[1].update(
        [pair[0] for pair in pairs],
        Tensor([pair[1] for pair in pairs]),
        names,
        [f"{seed:05d}" for seed in (1, 2, 3, 4)],
    )
    assert [frame.device for rank in ranks for frame in rank.frames] == ["gpu"] * 6
    gathered = face.SegmentationMetric("davis2017")
    gathered.frames = [frame for rank in ranks for frame in rank.frames]
    values = gathered.compute()
    assert numbers_of(values) == whole.values()
    assert {value.values.dtype for value in values.values()} == {np.dtype(np.float64)}
    gathered.reset()
    assert all(math.isnan(value.item()) for value in gathered.compute().values())


def test_images_without_frames_names_of_numbers_and_mappings_are_taken(face: Any) -> None:
    protocol = examples("lists")[-1]
    whole, metric = FrameAccumulator(protocol), face.SegmentationMetric(protocol)
    with pytest.raises(ValueError, match="zip"):
        metric.update([masks(1)[0]] * 2, [masks(1)[1]], ["a", "b"], ["0", "1"])
    assert len(metric.frames) == 1, "nothing of a batch that does not fit is kept"
    for name in ("c", "d"):
        whole.update(name, None, *masks(3))
    metric.update([masks(3)[0]] * 2, [masks(3)[1]] * 2, ("c", "d"))
    for seed in (1, 2):
        whole.update("7", str(seed), *masks(seed))
        metric.update(*map(Tensor, masks(seed)), Tensor(7), Tensor(seed))
    assert numbers_of(metric.compute()) == whole.values()
    (shown,) = face._copy_to_cpu([{"masks": [Tensor([1])], "pair": (Tensor([2]), 3)}])
    assert [shown["masks"][0].device, shown["pair"][0].device, shown["pair"][1]] == ["cpu", "cpu", 3]
    assert face._plain_value("name") == "name"


def test_a_protocol_that_no_masks_in_memory_have_is_refused_at_once(face: Any) -> None:
    with pytest.raises(Exception, match="nothing"):
        face.SegmentationMetric("nothing")
    segmentationmetric = face.SegmentationMetric
    assert (
        segmentationmetric.full_state_update,
        segmentationmetric.higher_is_better,
        segmentationmetric.is_differentiable,
    ) == (False, True, False)
