"""The metric for torch: alone, in two processes with a sampler that repeats, and on a rank without frames."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score_arrays
from tests.families.contract import examples
from tests.scoring.test_arrays import PREDICTIONS, TRUTHS

torch = pytest.importorskip("torch", reason="TORCH ABSENT: pip install '.[torch]' to test the metric")
pytest.importorskip("torchmetrics", reason="TORCHMETRICS ABSENT: pip install '.[torch]' to test the metric")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")

FRAMES = [(name, frame) for name, labels in TRUTHS.items() for frame in range(len(labels))]


def tensor(masks: Any) -> Any:
    return torch.from_numpy(np.ascontiguousarray(masks))


def filled(places: Any, protocol: str = "davis2017") -> Any:
    from segjudge.torch import SegmentationMetric

    metric = SegmentationMetric(protocol)
    for place in places:
        name, frame = FRAMES[place]
        metric.update(tensor(PREDICTIONS[name][frame]), tensor(TRUTHS[name][frame]), name, frame)
    return metric


def numbers(values: Any) -> Any:
    return {name: None if value.isnan() else value.item() for name, value in values.items()}


def gathered(rank: int, folder: str, shares: list[list[int]]) -> None:
    """Score as one of several processes, and write the scores."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=len(shares)
    )
    metric = filled(shares[rank])
    Path(f"{folder}/{rank}").write_bytes(pickle.dumps(numbers(metric.compute())))
    metric.reset()
    metric.update(tensor(PREDICTIONS["dog"]), tensor(TRUTHS["dog"]), ["dog"] * 6, list(range(6)))
    assert numbers(metric.compute()) == score_arrays(PREDICTIONS["dog"], TRUTHS["dog"]).metrics["all"]
    torch.distributed.destroy_process_group()


def sampled() -> list[list[int]]:
    """Return the places that torch's sampler gives to two processes: of 15 frames one twice."""
    samplers = [
        torch.utils.data.DistributedSampler(range(len(FRAMES)), num_replicas=2, rank=rank, seed=4) for rank in (0, 1)
    ]
    return [list(sampler) for sampler in samplers]


@pytest.mark.parametrize("kind", ["padded", "empty"])
def test_two_processes_have_the_bits_of_one(kind: str, tmp_path: Path) -> None:
    shares = sampled() if kind == "padded" else [list(range(len(FRAMES))), []]
    assert sum(map(len, shares)) == (16 if kind == "padded" else 15)
    expected = score_arrays(PREDICTIONS, TRUTHS).metrics["all"]
    torch.multiprocessing.spawn(gathered, (str(tmp_path), shares), nprocs=2)
    assert [pickle.loads((tmp_path / str(rank)).read_bytes()) for rank in (0, 1)] == [expected] * 2


@pytest.mark.parametrize("protocol", examples("frames"))
def test_a_metric_scores_what_arrays_score_however_it_is_used(protocol: str) -> None:
    expected = score_arrays(PREDICTIONS, TRUTHS, protocol).metrics["all"]
    whole = filled(range(len(FRAMES)), protocol)
    assert numbers(whole.compute()) == expected
    first, rest = filled(range(4), protocol), filled(range(3, len(FRAMES)), protocol)
    rest.merge_state(first)
    assert numbers(pickle.loads(pickle.dumps(rest)).compute()) == numbers(rest.compute()) == expected
    whole.reset()
    assert whole.compute().keys() == expected.keys()
    assert all(torch.isnan(value) for value in whole.compute().values())
    for name, frame in FRAMES:  # forward: the value of a batch, and the state of all
        whole(tensor(PREDICTIONS[name][frame]), tensor(TRUTHS[name][frame]), name, torch.tensor(frame))
    assert numbers(whole.compute()) == expected
    saved = filled(range(9), protocol)
    saved.persistent(mode=True)
    fresh = filled([], protocol)
    fresh.load_state_dict(saved.state_dict())
    assert numbers(fresh.compute()) == numbers(saved.compute())


def test_a_batch_on_a_device_is_copied_once_for_each_type(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = []
    copy = torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "is_cpu", False, raising=False)  # as on a device; there is none here
    monkeypatch.setattr(torch.Tensor, "cpu", lambda self: copies.append(self.dtype) or copy(self))
    metric = filled([])
    sides = [list(map(tensor, masks["dog"])) for masks in (PREDICTIONS, TRUTHS)]
    metric.update(*sides, ["dog"] * 6, torch.arange(6))
    assert sorted(map(str, copies)) == ["torch.int64", "torch.uint8"]
    copies.clear()
    metric.update(torch.stack(sides[0]), torch.stack(sides[1]), ["dog"] * 6, list(range(6)))
    assert len(copies) == 1
    monkeypatch.undo()
    assert numbers(metric.compute()) == score_arrays(PREDICTIONS["dog"], TRUTHS["dog"]).metrics["all"]
