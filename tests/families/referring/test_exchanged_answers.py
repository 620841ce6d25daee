"""Answers that are exchanged between the expressions of an image are named; those of weak methods are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segjudge import score
from tests.published import rle

SIZE, IMAGES = (30, 80), 12
#: The answers to the expressions of an image, from their targets.
Answers = list[Any]


def write_truth(folder: Path, *, symmetric: bool = False) -> tuple[Path, list[Answers]]:
    """Write images of four objects with an expression each, or of two whose left one has one; return the targets."""
    generator, targets, annotations, references = np.random.default_rng(1), list[Answers](), list[Any](), list[Any]()
    for image in range(1, IMAGES + 1):
        targets.append([])
        for column in [0] if symmetric else generator.permutation(4).tolist():
            mask = np.zeros(SIZE, np.uint8)
            mask[generator.integers(8) : generator.integers(15, 30), 20 * column : 20 * column + 15] = 1
            targets[-1].append(mask)
            number = len(annotations) + 1
            fields = {"image_id": image, "category_id": 1}
            annotations.append(
                {"id": number, "iscrowd": 0, "segmentation": rle(mask), "area": int(mask.sum()), **fields}
            )
            sentence = {"sent_id": number, "sent": "", "raw": "", "tokens": []}
            references.append({
                "ref_id": number, "ann_id": number, "split": "val", "sent_ids": [number], "sentences": [sentence], **fields,
            })  # fmt: skip
    images = [{"id": image, "height": SIZE[0], "width": SIZE[1], "file_name": ""} for image in range(1, IMAGES + 1)]
    document = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": ""}]}
    (folder / "instances.json").write_text(json.dumps(document))
    (folder / "refs(demo).json").write_text(json.dumps(references))
    return folder, targets


@pytest.mark.parametrize(("others", "is_named"), [(0, True), (0.5, False), (0.8, False)])
def test_the_other_object_of_a_symmetric_image_is_no_mirrored_one(
    others: float, is_named: bool, tmp_path: Path
) -> None:
    """A method takes the right object for the left one, or masks are mirrored as they are saved."""
    truth, targets = write_truth(tmp_path, symmetric=True)
    generator = np.random.default_rng(1)
    answers = [
        mask[:, ::-1] if is_named or generator.random() < others else mask for image in targets for mask in image
    ]
    lines = [line for line in answer(truth, answers, tmp_path) if "look mirrored" in line]
    assert len(lines) == is_named


def answer(truth: Path, answers: Answers, folder: Path) -> Any:
    """Return the warnings about answers to all expressions."""
    results = folder / "results.jsonl"
    results.write_text(
        "".join(f"{json.dumps({'sent_id': k, 'segmentation': rle(m)})}\n" for k, m in enumerate(answers, 1))
    )
    return score(results, truth, "refcoco").warnings


METHODS: dict[str, Callable[[Answers, Any], Answers]] = {
    "exchanged": lambda targets, _: targets[::-1],
    "right": lambda targets, _: targets,
    "always one object": lambda targets, _: targets[:1] * 4,
    "any object": lambda targets, generator: [targets[k] for k in generator.integers(0, 4, 4)],
    "half of them any object": lambda targets, generator: [
        target if generator.random() < 0.5 else targets[generator.integers(4)] for target in targets
    ],
    "all objects": lambda targets, _: [np.maximum.reduce(targets)] * 4,
    "noise": lambda targets, generator: [generator.integers(0, 2, SIZE).astype(np.uint8) for _ in targets],
    "empty": lambda targets, _: [mask * 0 for mask in targets],
}


@pytest.mark.parametrize("method", METHODS)
def test_only_exchanged_answers_are_named(method: str, tmp_path: Path) -> None:
    truth, targets = write_truth(tmp_path)
    generator = np.random.default_rng(4)
    answers = [mask for image in targets for mask in METHODS[method](image, generator)]
    lines = [line for line in answer(truth, answers, tmp_path) if "which sample each" in line]
    assert len(lines) == (method == "exchanged")


#: The order of answers to all expressions, by the sentence that names it.
ORDERS: dict[str, Callable[[Answers, Any], Answers]] = {
    "masks: each looks as if it belonged to the sample after its own: corrected, the IoU over all pixels would be 1.00": lambda answers, _: (
        answers[1:] + answers[:1]
    ),
    "": lambda answers, _: answers,
}


@pytest.mark.parametrize("named", ORDERS)
def test_answers_in_another_order_are_named(named: str, tmp_path: Path) -> None:
    truth, targets = write_truth(tmp_path)
    answers = ORDERS[named]([mask for image in targets for mask in image], np.random.default_rng(3))
    lines = answer(truth, answers, tmp_path)
    assert [line.startswith(f"val: {named}") for line in lines] == [True] * bool(named)
