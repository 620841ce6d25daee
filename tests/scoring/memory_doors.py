"""What masks in memory score, and how they are refused, by every family's door.

    python -m tests.scoring.memory_doors

writes it to `tests/golden/memory_doors.txt`, for changes that are meant to be seen.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import segjudge
from segjudge import FrameAccumulator
from segjudge.evaluation_script.families import PROTOCOLS, engine_of
from segjudge.families import tools_of
from segjudge.families.base.tools import UnitTools
from segjudge.masks.run_lengths import runs_of_mask
from segjudge.testing.checks import empty_like
from tests.calls import labels, run_calls
from tests.pages import digest

FILE = Path(__file__).parents[1] / "golden/memory_doors.txt"

SESSION = """
# Mask sequences: label maps, objects and videos
T = L("0000000 0110000 0110220 0000220"); P = L("0000000 0111000 0110200 0000200"); N = L("0000000 0110000 0000330 0000330")
score([P, P, N], [T, T, T * 0], "davis2017")
score([P, P, N], [T, T, T], *all_of("sequences"))
score([P, N, N, P], [T, T, N, T], *all_of("sequences"))
score({"b": [P, N, P], "a": [T, T, T]}, {"b": [T, T, T], "a": [T, T, P]}, "davis2017")
score({7: [P, N, P], "a": [T, T, T]}, {"7": [T, T, T], "a": [T, T, P]}, "davis2017")
score({7: [P, N, P], "7": [T, T, T]}, {"7": [T, T, T]}, "davis2017")
score({"1": [P == 1, P == 1, None], "2": [P == 2, R(P == 2), None]}, [T, T, T], "davis2017")
every = "vos-benchmark-all-frames"
score({1: P[None] == 1, 2: P[None] == 2, 0: P[None] == 0}, {1: T[None] == 1, 2: T[None] == 2}, every)
score({1: (P == 1)[None] * 255, 2: (P == 2)[None] * 255}, {1: (T == 1)[None] * 255, 2: (T == 2)[None] * 255}, every)
score({1: (P == 1)[None] * 255, 2: (P == 2)[None] * 255}, [T], every)
score([P], {1: (T == 1)[None] * 255, 2: (T == 2)[None] * 255}, every)
score({"v": {1: [P == 1]}}, {"v": [T]}, every)
score({"v": {1: [P == 1]}}, {"v": (T == 1)[None]}, every)
score({"v": (P == 1)[None] * 9}, {"v": (T == 1)[None] * 9}, every)
score({"v": [(P == 1) * 9]}, {"v": [(T == 1) * 9]}, every)
score({"v": [P * 1.5]}, {"v": [T]}, every)
score({"v": (P == 1)[None]}, {"v": T[None]}, every)
score({"v": T[None]}, {"v": (T == 1)[None]}, every)
score({}, [T, T], every)
score([], [T, T], every)
score({1: [], 2: []}, [], every)
score({1: [P], 2: [P, P]}, [T, T], every)
score({1: [P == 1], 2: [P == 2, P == 2]}, [T, T], every)
score([P], [T, T], every)
score({"a": [P, P]}, {"a": [T, T], "b": [T], "c": [T], 1: [T], 2: [T], 3: [T], 4: [T]}, every)
score({"a": [P], "b": [P]}, {"a": [T]}, every)
score(5, [T], every)
score([P], 5, every)
score(memoryview(P[None]), memoryview(T[None]), every)
score([P[:2]], [T], every)
score([P.astype("i8") - 1], [T], every)
score([P.astype("u8") + (1 << 63)], [T], every)
score([(P == 1).astype("u8") << 63], [T], every)
score([P.astype("u8") + (1 << 62)], [T], every)
score([P.astype("u8") + ((1 << 63) - 9)], [T.astype("u8") + ((1 << 63) - 9)], every)
score([P / 2], [T], every)
score([P[None]], [T], every)
score([P[:0]], [T], every)
score([P > 0], [T > 0], every)
score([np.ma.masked_equal(P, 1)], [T], every)
score([np.ma.masked_equal(P, 9)], [T], every)
score([[[1, 2], [3]]], [T], every)
score({1: [P]}, {1: [T == 1]}, every)
score({1: [{"size": [4, 7]}]}, [T], every)
score({1: [{"size": [4], "counts": [28]}]}, [T], every)
score({1: [{"size": "4x7", "counts": [28]}]}, [T], every)
score({1: [{"counts": [28]}]}, [T], every)
score({1: [{"size": [0, 7], "counts": []}]}, [T], every)
score({1: [{"size": [1 << 16, 1 << 15], "counts": [1 << 31]}]}, [T], every)
score({1: [{"size": [4, 7], "counts": [27]}]}, [T], every)
score({1: [{"size": [4, 7], "counts": "zz"}]}, [T], every)
score({1: [{"size": [4, 7], "counts": b"5b0"}]}, [T], every)
score({1: [R(P == 1)]}, [T], every)
score({1: [{"size": np.array([4, 7]), "counts": R(P == 1)["counts"]}]}, [T], every)
score({"x": [T == 1], "z": [T == 2]}, [T], "davis2017-unsupervised")
score([L("0000 0055 0055")], [L("0110 0110 0022")], "davis2017-unsupervised")
score([L("0000 0055 0055"), L("1100 1100 0000")], [L("0110 0110 0022")] * 2, "davis2017-unsupervised")
score([L("0110 0110 0000")], [L("0110 0110 0022")], "lvos-unsupervised-single")
score([P], [T], "davis2018")
score([P], [T], "mevis")
score([P], [T], "long-rvos")

# Frames one by one
A = FrameAccumulator("davis2017", expected={"dog": [0, 1, 10], "cat": range(1)})
A.compute()
A.values()
A.update("x", 0, None, T); A.update("x", 0, "text", T); A.update("x", 0, memoryview(b"text"), T); A.update("x", 0, P, 5)
A.update("x", 0, {1: {}}, T); A.update("x", 0, {1: {"size": 5, "counts": "0"}}, T); A.update("x", 0, {1: {"size": [-4, -7], "counts": "0"}}, T)
A.update("x", 0, {1: {"size": [4, 7], "counts": 5}}, T); A.update("x", 0, {1: np.zeros(5, bool)}, T); A.update("x", 0, {1: np.array([[-1, 0, 1]])}, T)
A.update("x", 0, {1: T}, T); A.update("x", 0, {1: T == 1, "1": T == 2}, T); A.update("x", 0, {1: np.ma.masked_equal(T == 1, True)}, T)
A.update("dog", 10, P, T)
A.update("dog", "2.5", T, T)
A.update("dog", 0, P, T)
A.update("dog", np.float32(0), P, T)
A.update("dog", 0, T, T)
A.update("dog", float("nan"), T, T)
A.compute()
A.update("dog", 1.0, N, T)
A.update("cat", "00", N, N)
A.update("cat", "000000", N, N)
list(A.state_dict()["frames"]["dog"]), list(A.state_dict()["frames"]["cat"])
A.compute()
B = FrameAccumulator("davis2017", expected={"dog": [0, 1, 10], "cat": ["00"]}, unseen=["dog"])
B.merge(FrameAccumulator("mosev2"))
B.update("owl", "b", T, T); B.update("owl", "a", P, T); B.update("owl", -1, N, T); B.update("owl", "10.25", N, T)
B.merge(FrameAccumulator("davis2017")).values()
show(B)
B.compute()
for name, frame, prediction in (("dog", 10, T), ("dog", 1, P), ("dog", 0, P), ("cat", 0, T)): B.update(name, frame, prediction, T)
show(B)
B.load_state_dict({"protocol": "davis2017", "frames": {"dog": {"00000": b""}}})
B.load_state_dict({"protocol": "davis2016", "frames": {}})
B.load_state_dict({"protocol": "davis2017"})
B.load_state_dict(B.state_dict()); show(B)
B.reset(); B.values()
U = FrameAccumulator("lvos", unseen=["dog"])
for name in ("dog", "cat"): U.update(name, 0, P if name == "dog" else T, T); U.update(name, 1, P, T); U.update(name, 2, P, T); U.update(name, 3, P, T)
show(U)

# Instances: columns, records and polygons
M = np.stack([T == 1, T == 2]); Q = np.stack([P == 1, P == 2, N == 3])
truth = {"masks": M, "labels": [3, 4]}; sent = {"masks": Q, "labels": [3, 4, 4], "scores": [0.9, 0.8, 0.7]}
score([sent], [truth], *all_of("instances"))
score(sent, truth, "coco", "lvis")
score({"masks": Q, "labels": [3, 4, 9], "scores": [0.9, 0.8, 0.7]}, truth, "coco", categories=[{"id": 4, "name": "dog"}, {"id": 3, "name": "cat"}])
score({"masks": Q, "labels": [3, 4, 9], "scores": [0.9, 0.8, 0.7]}, truth, "lvis", categories=[{"id": 4, "name": "dog", "frequency": "c"}, {"id": 3, "name": "cat", "frequency": "r"}])
score([sent, sent], [{**truth, "iscrowd": [0, 1], "area": [4, 4], "ids": [8, 9]}, truth], "coco")
score([{"masks": Q[:0], "labels": [], "scores": []}], [truth], "coco")
score([[]], [{"annotations": [], "height": 4, "width": 7}], "coco")
score({5: []}, {5: truth}, "coco")
boxes = {"boxes": [[1, 1, 3, 3], [4, 2, 6, 4]], "labels": [3, 4]}
score({**boxes, "scores": [0.5, 0.6]}, boxes, "coco-box")
score({**boxes, "boxes": [[1, 1, 3.5, 3], [4, 2, 6, 5]], "scores": [0.5, 0.6]}, boxes, "coco-box")
score({**boxes, "scores": [0.5, 0.6]}, {**boxes, "area": [2000, 20000]}, "coco-box")
large = {"boxes": [[10, 10, 60, 50], [0, 0, 150, 90]], "labels": [3, 4]}; score({**large, "scores": [0.5, 0.6]}, large, "coco-box")
square = [[1, 1, 3, 1, 3, 3, 1, 3]]
score([[{"category_id": 3, "segmentation": square, "score": 0.5}]], [{"annotations": [{"category_id": 3, "segmentation": R(T == 1)}]}], "coco")
score([[{"category_id": 3, "segmentation": square, "score": 0.5}]], [{"annotations": [{"category_id": 3, "segmentation": square}]}], "coco")
score([[{"category_id": 3, "segmentation": square, "score": 0.5}]], [{"annotations": [{"category_id": 3, "segmentation": square}], "width": 7, "height": 4}], "coco")
score([[{"category_id": 3, "segmentation": R(T == 1), "score": 0.5}]], [{"annotations": [{"category_id": 4, "segmentation": R(T == 1)}], "neg_category_ids": [3], "not_exhaustive_category_ids": []}], "lvis")
score([sent], [{**truth, "height": 5, "width": 7}], "coco")
score([[{"category_id": 3, "segmentation": M[:1], "score": 0.5}]], [[{"category_id": 3, "segmentation": M[0]}]], "coco")
score([{**sent, "scores": [0.5]}], [truth], "coco")
score([{**sent, "labels": ["a", "b", "c"]}], [truth], "coco")
score([{**sent, "labels": [3.0, 4.0, 4.5]}], [truth], "coco")
score([{"masks": Q, "labels": [3, 4, 4]}], [truth], "coco")
score([{**sent, "masks": Q * 1.5}], [truth], "coco")
score([{**sent, "masks": np.zeros((3, 7, 7), bool)}], [truth], "coco")
score([{**sent, "masks": Q * np.arange(7)}], [truth], "coco")
score([{**sent, "scores": [0.5, float("nan"), 1]}], [truth], "coco")
score([5], [truth], "coco")
score([[5]], [truth], "coco")
score([P], [T], "coco")
score([sent], [{**truth, "ids": [1, 1]}], "coco")
score([sent], [{"masks": M}], "coco")
C = FrameAccumulator("coco"); C.update("a", 0, sent, truth); C.update("a", 10, sent, truth); C.update(2, None, [], truth)
C.update("a", 0, [5], truth)
show(C)
C.load_state_dict({"protocol": "coco", "frames": {"a": {"": b"123"}}})
C.load_state_dict({"protocol": "coco", "frames": {"a": {"": bytes(20)}}})
points = [[1, 1, 2], [3, 3, 1], [0, 0, 0]]
score({"labels": [1], "scores": [0.5], "keypoints": [points]}, {"labels": [1], "keypoints": [points], "area": [9.0]}, "coco-keypoints")
score([[{"category_id": 1, "keypoints": np.array(points) + 1, "score": 0.5}]], [[{"category_id": 1, "keypoints": points, "bbox": [1, 1, 2, 2], "area": 4, "num_keypoints": 2, "segmentation": 5}]], "coco-keypoints", "coco-keypoints-official")
people = [point for k in range(17) for point in (k, 2 * k, 2)]
score([[{"category_id": 1, "keypoints": np.array(people) + 1, "score": 0.5}]], [[{"category_id": 1, "keypoints": people, "bbox": [0, 0, 16, 32], "area": 400, "num_keypoints": 17}]], "coco-keypoints", "coco-keypoints-official")
tube = {"category_id": 1, "segmentations": [T == 1, None, R(T == 1)]}
score({"v": [{**tube, "score": 0.5}]}, {"v": [tube, {"category_id": 1, "segmentations": [None, T == 2, None]}]}, "ovis", "youtube-vis-2021")
score({"v": [{**tube, "segmentations": [P == 1, None, P == 1], "score": 0.5}]}, {"v": [{**tube, "segmentations": [T == 1, None, P == 1]}]}, "ovis")
score({"v": [{**tube, "score": 0.5, "segmentations": [T == 1]}]}, {"v": [tube]}, "ovis")
V = FrameAccumulator("ovis"); V.update("v", 3, [], [])
grow = np.ones((9, 9), np.uint8); S, Z = np.kron(T, grow), np.kron(P, grow)
street = [{"category_id": 26, "segmentation": R(S == 1), "score": 0.9}, {"category_id": 24, "segmentation": R(Z == 2), "score": 0.9}]
score([street], [[{"category_id": 26, "segmentation": R(Z == 1)}, {"category_id": 24, "segmentation": R(S == 2)}]], "cityscapes-instance", "cityscapes-instance-official")

# Panoptic maps
things = [{"id": 5, "name": "cat", "isthing": 1}, {"id": 6, "isthing": 0}]
score([(P, {1: 5, 2: 6})], [(T, {1: 5, 2: 6})], *all_of("panoptic"), categories=things)
score([(P, {1: 5, 2: 6})] * 2, [(T, [{"id": 1, "category_id": 5, "iscrowd": 1}, {"id": 2, "category_id": 6}]), (T, {1: 5, 2: 6})], "coco-panoptic", "coco-panoptic-boundary", "vipseg", categories=things)
score([(P, {1: 5, 2: 6})], [(T, [{"id": 1, "category_id": 5, "area": 4}, {"id": 2, "category_id": 6, "area": 40}])], "coco-panoptic", categories=things)
score({"b": (P, {1: 5, 2: 6}), "a": (T, {1: 5, 2: 5})}, {"b": (T, {1: 5, 2: 6}), "a": (T, {1: 5, 2: 6})}, "coco-panoptic", categories=things)
score([(P, {1: 5, 2: 6})], [(T, {1: 5, 2: 6})], "coco-panoptic")
score([P], [T], "coco-panoptic", "kitti-step", categories=things)
score([(P,)], [(T, {1: 5, 2: 6})], "coco-panoptic", categories=things)
score([(P, {1: 5, 2: 7})], [(T, {1: 5, 2: 6})], "coco-panoptic", categories=things)
score([(P, {1: 5})], [(T, {1: 5, 2: 6})], "coco-panoptic", categories=things)
score([(P, {1: 5, 2: 6, 3: 6})], [(T, {1: 5, 2: 6})], "coco-panoptic", categories=things)
score([(P, {1: 5, 2: 6})], [(T, {1: 5})], "coco-panoptic", categories=things)
score([(P.astype(int) << 24, {1 << 24: 5, 2 << 24: 6})], [(T, {1: 5, 2: 6})], "coco-panoptic", categories=things)
score([(P.astype(int) * ((1 << 24) - 1), {(1 << 24) - 1: 5})], [(T, {1: 5, 2: 6})], "coco-panoptic", categories=things)
score([((P == 1).astype(int) * ((1 << 24) - 1), {(1 << 24) - 1: 5})], [(T, {1: 5, 2: 6})], "coco-panoptic", categories=things)
score([(P[:2], {1: 5, 2: 6})], [(T, {1: 5, 2: 6})], "coco-panoptic", categories=things)
D = FrameAccumulator("coco-panoptic", categories=things); D.update(10, None, (P, {1: 5, 2: 6}), (T, {1: 5, 2: 6})); D.update(9, "x", (T, {1: 5, 2: 6}), (T, {1: 5, 2: 6}))
show(D)
D.load_state_dict({"protocol": "coco-panoptic", "frames": {"a": {"": FrameAccumulator_state("vspw")}}})
score([(T % 2 * 13, T)] * 3, [(T % 2 * 13, P)] * 3, "kitti-step", "kitti-step-official", "motchallenge-step")
score([(T * 0 + 255, T * 0)], [(T % 2 * 13, P)], "kitti-step")
score([((T == 1) * 18 + (T == 0) * 255, T * 0)], [(T % 2 * 18, P)], "kitti-step", "kitti-step-official")
score([(T.astype(int) * 200, T * 0)], [(T, P)], "kitti-step")
score([(T, T.astype(int) << 16)], [(T, P)], "kitti-step")
score([(T * 20, T * 0)], [(T, P)], "kitti-step")
score([(T, T.astype(int) << 15)], [(T, P)], "kitti-step")
score([(T, (T > 0) * 65535)], [(T, P)], "kitti-step")
score([(T, (T > 0) * 65536)], [(T, P)], "kitti-step")
score([((T > 0) * 256, T)], [(T, P)], "kitti-step")
score([(T, T[:1])], [(T, P)], "kitti-step")
score([(T,)], [(T, P)], "kitti-step")

# Label maps
score([P, N, T], [T, T, T], *all_of("semantic"))
score({"b": [P + 92, P + 92], "a": [T + 92]}, {"b": [T + 92, T + 92], "a": [T + 92]}, "coco-stuff", "vspw", categories=[{"id": k, "name": f"stuff {k}", "supercategory": f"group {k % 2}"} for k in range(92, 184)])
still, changing = [T + 1] * 8, [T % 2 + 1, T % 2 + 2] * 4; score({"a": [P + 1] * 8, "b": changing}, {"a": still, "b": changing}, "vspw")
score(changing, changing, "vspw")
score([T.astype(int) << 15], [T], "vspw")
score([P], [T.astype(int) << 16], "vspw", "semantic")
score([P[:2]], [T], "vspw", "ade20k")
score([P + 200], [T], "bdd100k", "ade20k", "cityscapes", "vspw")
score([np.array([[0, 0, 1, 13]])], [np.array([[7, 7, 8, 26]])], "cityscapes", "bdd100k")
E = FrameAccumulator("vspw"); E.update("v", 3, P, T); E.update("v", 1, N, T); E.update("v", 2, N, N); E.update("u", 2, N, N)
show(E)
E.load_state_dict({"protocol": "vspw", "frames": {"v": {"0": b"1"}}})
E.load_state_dict({"protocol": "vspw", "frames": {"v": {"0": b"12345678abc"}}})

# Tracks
def track(number, category, mask, **more): return {"track_id": number, "category_id": category, "segmentation": R(mask), **more}
one, two = [track(1, 2, T == 1), track(2, 2, T == 2)], [track(7, 2, P == 1, score=0.5), track(8, 2, P == 2)]
score([two, two, two], [one, one, one], *all_of("tracks"))
score([two, one, two], [{"annotations": one, "neg_category_ids": [9], "not_exhaustive_category_ids": [2]}, one, one], "burst", "mots", categories=[{"id": 2, "name": "cat", "merged": [{"id": 3}]}])
score([[track(1, 3, P == 1), track(9, 2, P == 2)]] * 2, [one, one], "burst", "burst-exemplar-guided", categories=[{"id": 2, "name": "cat", "merged": [{"id": 3}]}])
score([T.astype(int) + 2000 * (T > 0)] * 2, [P.astype(int) + 2000 * (P > 0)] * 2, "mots", "kitti-mots")
score([T], [P], "burst")
score([[track(1, 2, T == 1), track(2, 2, T > 0)]], [one], "mots", "burst")
score([[track(1, 2, T == 1), track(1, 2, T == 2)]], [one], "mots", "burst")
score([one], [[track(1, 2, T[:2] == 1)]], "mots")
score([[{"track_id": 1}]], [one], "mots")
score([5], [one], "mots")
score([[{**one[0], "segmentation": {"size": [4, 7], "counts": "zz"}}]], [one], "mots")
F = FrameAccumulator("mots"); F.update("v", 2, one, one); F.update("v", 1, two, one); F.update("u", 1, two, one); F.update("u", 2, [], one); F.update("u", 3, one, [])
show(F)
F.load_state_dict({"protocol": "mots", "frames": {"v": {"0": b"5"}}})
F.load_state_dict({"protocol": "mots", "frames": {"v": {"0": b"[[1, 2], 5, [], {}]"}}})

# Phrases
score([[P == 1, P == 2]], [[T == 1, T == 2]], *all_of("phrases"))
score([{"masks": [P == 1, P == 2, N == 3], "scores": [0.9, 0.5, 0.49]}], [{"masks": [T == 1, T == 2], "iscrowd": [0, 1]}], "sa-co-gold", "sa-co-gold-official")
score([[P == 1], []], [{"annotators": [[T == 1], [T == 2]]}, {"annotators": [[], [T == 2]]}], "sa-co-gold", "sa-co-gold-official")
score([[P == 9, R(P == 1)]], [[T == 1]], "sa-co-gold", "sa-co-gold-official")
score([{"scores": [1]}], [[T == 1]], "sa-co-gold")
score([{"masks": [P == 1], "scores": [1, 2]}], [[T == 1]], "sa-co-gold")
score([{"masks": [P == 1], "scores": ["x"]}], [[T == 1]], "sa-co-gold")
score([5], [[T == 1]], "sa-co-gold")
score([[P]], [[T == 1]], "sa-co-gold")
score([[{"size": [4, 7]}]], [[T == 1]], "sa-co-gold")
score([[{"size": [4, 7], "counts": [20, 7]}]], [[T == 1]], "sa-co-gold")
score([[{"size": [4, 7], "counts": [20, 8]}]], [[T == 1]], "sa-co-gold")
score([[{"counts": [20, 7]}]], [[T == 1]], "sa-co-gold")
score([[(P == 1)[:2]]], [[T == 1]], "sa-co-gold")
asked = {"tracks": [[T == 1, None, T == 1], [T == 2, T == 2, T == 2]], "category_id": 3}
score([{"tracks": [[P == 1, None, T == 1], [None, P == 9, P == 2]], "scores": [0.5, 0.9]}], [asked], "sa-co-veval")
score([{"tracks": [[P == 1, None, T == 1], [None, P == 9, P == 2]]}], [{**asked, "iscrowd": [1, 0]}], "sa-co-veval")
score([{"tracks": []}], [{"tracks": []}], "sa-co-veval")
score([{"tracks": [[P == 1]]}], [asked], "sa-co-veval")
score([{"tracks": [[P == 1] * 3], "scores": [0.5, 0.5]}], [asked], "sa-co-veval")
score([{"tracks": [[P == 1] * 3], "scores": [float("inf")]}], [asked], "sa-co-veval")
score([{"tracks": [5]}], [asked], "sa-co-veval")
score([[P == 1]], [asked], "sa-co-veval")

# Answers to expressions
score([P == 1, P == 2, None], [T == 1, T == 2, T == 2], *all_of("referring"))
score([{"mask": P == 1, "no_target": np.bool_(False)}, {"mask": None, "no_target": True}, P == 9, None, P == 1, {"mask": P == 1, "no_target": True}], [{"mask": T == 1}, {"mask": None}, None, {"no_target": True}, {"mask": T == 1, "no_target": True}, T == 1], "grefcoco", "refcoco")
score([P > 0, R(P == 1)], [{"mask": T == 1, "ignore": T == 2}, {"mask": T == 1, "ignore": T == 9}], *all_of("referring"))
score([{"mask": P == 1, "flag": 1}], [T == 1], "refcoco")
score([{"mask": P == 1, "no_target": 1}], [T == 1], "refcoco")
score([(P == 1)[:2]], [T == 1], "refcoco")
score([P], [T == 1], "refcoco")
score([(P == 1)[None]], [T == 1], "refcoco")
for protocol, sides in {"grefcoco": (P == 1, T == 1), "reasonseg": (P == 1, T == 1), "sa-co-gold": ([P == 1], [T == 1]), "sa-co-veval": ({"tracks": [[P == 1, None, None]]}, asked), "sod": (P * 100, T > 0), "cellpose-ap": (P, T)}.items(): reload(protocol, *sides)
reloaded()

# Scans, grey maps, cells
own, other = np.array([10, 40, 10 | 1 << 16, 252 | 2 << 16, 0] * 20), np.array([10, 40, 10, 252, 44] * 20)
score([other, own], [own, own], *all_of("scans"))
score([other[:2]], [own], "semantic-kitti")
score([other.astype(float)], [own], "semantic-kitti")
score([other[:, None]], [own], "semantic-kitti")
score([other[:0]], [own], "semantic-kitti")
score([other - 1], [own], "semantic-kitti")
score([other - 1], [own - 1], "semantic-kitti")
score([np.array([-1])], [np.array([10])], "semantic-kitti")
score([np.array([1 << 32])], [np.array([10])], "semantic-kitti")
score([np.array([5])], [np.array([10])], "semantic-kitti")
score([P * 100, T > 0, P > 9], [T > 0, (T > 0) * np.uint8(255), T > 0], *all_of("saliency"))
score([P / 2], [T > 0], "sod")
score([P[None]], [T > 0], "sod")
score([P[:0]], [T > 0], "sod")
score([P.astype(int) - 1], [T > 0], "sod")
score([P.astype(int) * 128], [T > 0], "sod")
score([P.astype(int) * 127], [T > 0], "sod")
score([P], [T], "sod")
score([P], [P * 0], "sod")
score([P], [(T > 0)[:2]], "sod")
score([P.astype("u2") * 300, N], [T.astype("u2") * 300, T], *all_of("microscopy"))
score([T == 1, T * 0, T == 1], [T == 1, T == 1, T * 0], "cellpose-ap")
score([T % 2], [T], "cellpose-ap")
score([P.astype(int) << 15], [T], "cellpose-ap")
score([P.astype(int) << 16], [T], "cellpose-ap")
score([P - np.int8(1)], [T], "cellpose-ap")
score([P[:2]], [T], "cellpose-ap")
rows = [[1, 0, 2, 0], [2, 0, 2, 0]]
score({"s": {"masks": np.stack([P, P, P]), "tracks": rows}}, {"s": {"masks": np.stack([T, T, T]), "tracks": rows, "cells": {1: T, 2: P}}}, *all_of("cells"))
score({"s": {"masks": np.stack([P, P])[:, None], "tracks": [[1, 0, 1, 0], [2, 0, 1, 1]]}}, {"s": {"masks": np.stack([T, T])[:, None], "tracks": [[1, 0, 1, 0], [2, 0, 1, 0]], "cells": {(1, 0): T}}}, "ctc", "ctc-official")
score({"s": {"masks": np.stack([P, P])[:, None], "tracks": np.array([1.0, 0, 1, 0, 2, 0, 1, 0])}}, {"s": {"masks": np.stack([T, T])[:, None], "tracks": [[1, 0, 1, 0], [2, 0, 1, 0]], "cells": {(0, -1): T[None]}}}, "ctc")
cells = {"masks": np.stack([T, T, T]), "tracks": rows}
score([cells], [{**cells, "cells": {3: T}}], "ctc")
score([cells], [{**cells, "cells": {(1, 1): T}}], "ctc")
score([cells], [{**cells, "cells": {1: T[:2]}}], "ctc")
score([cells], [{**cells, "cells": {1: T / 2}}], "ctc")
score([{**cells, "masks": np.stack([P, P])}], [cells], "ctc")
score([{"masks": np.stack([P, P])}], [cells], "ctc")
score([{**cells, "masks": P}], [cells], "ctc")
score([{**cells, "masks": np.stack([P, P, P]).astype(int) << 15}], [cells], "ctc")
score([{**cells, "masks": np.stack([P, P, P]).astype(int) - 1}], [cells], "ctc")
score([{**cells, "masks": P[:0]}], [cells], "ctc")
score([{**cells, "tracks": [1, 0, 2]}], [cells], "ctc")
score([{**cells, "tracks": [1.5, 0, 2, 0]}], [cells], "ctc")
score([{**cells, "tracks": [[1, 0, 3, 0], [2, 0, 2, 5]]}], [cells], "ctc")
score([{**cells, "tracks": [[1, 0, 2, 0]]}], [cells], "ctc")
score([5], [cells], "ctc")

# Tables that a part may bring of a unit: their sides, "n" where those may be longer, and "±" where numbers may be below zero
forms([(P, {1: 5, 2: 6})], [(T, {1: 5, 2: 6})], "coco-panoptic", "coco-panoptic-boundary", "vipseg", categories=things)
forms([(T % 2 * 13, T)] * 3, [(T % 2 * 13, P)] * 3, "kitti-step", "kitti-step-official")
forms([P, N, T], [T, T, T], "vspw", "semantic", "cityscapes")
forms([two, one, two], [one, one, one], "mots", "kitti-mots", "burst")
forms([[P == 1, P == 2]], [[T == 1, T == 2]], "sa-co-gold")
forms([P == 1, P == 2, None], [T == 1, T == 2, T == 2], "refcoco", "grefcoco")
forms([other, own], [own, own], *all_of("scans"))
forms([P * 100, T > 0, P > 9], [T > 0, (T > 0) * np.uint8(255), T > 0], "sod")
forms([P, N], [T, T], "cellpose-ap")
forms({"s": {"masks": np.stack([P, P, P]), "tracks": rows}}, {"s": {"masks": np.stack([T, T, T]), "tracks": rows, "cells": {1: T, 2: P}}}, *all_of("cells"))
"""


def write_doors() -> str:
    """Return what the session says; numpy's warnings of strange numbers are of no interest here."""
    reloaded = list[str]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run_calls(SESSION.lstrip(), {
            "np": np, "L": labels, "R": _encode, "score": _score, "forms": _list_forms, "show": _show, "FrameAccumulator": FrameAccumulator,
            "all_of": lambda family: [name for name, rules in PROTOCOLS.items() if rules.family == family],
            "FrameAccumulator_state": _count_one, "reload": lambda *sides: reloaded.append(_reload(*sides)), "reloaded": lambda: "\n".join(reloaded),
        })  # fmt: skip


def _encode(mask: Any) -> dict[str, Any]:
    return {"size": list(mask.shape), "counts": [int(run) for run in runs_of_mask(np.asarray(mask))]}


def _score(prediction: Any, truth: Any, *protocols: str, **options: Any) -> str:
    """Score by protocols; a line for each, and what is refused in the same words once."""
    lines: dict[str, list[str]] = {}
    for protocol in protocols:
        try:
            said = describe(segjudge.score_arrays(prediction, truth, protocol, **options))
        except Exception as error:  # noqa: BLE001 - whatever is raised is what is looked for
            said = f"{type(error).__name__}: {error}"
        lines.setdefault(said, []).append(protocol)
    return "\n".join(f"{', '.join(names)}: {said}" for said, names in lines.items())


def _list_forms(prediction: Any, truth: Any, *protocols: str, **options: Any) -> str:
    lines: dict[str, list[str]] = {}
    for protocol in protocols:
        counts = segjudge.score_arrays(prediction, truth, protocol, **options).reports[0].counts
        lines.setdefault("; ".join(_name_forms(counts)), []).append(protocol)
    return "\n".join(f"{', '.join(names)}: {said}" for said, names in lines.items())


def _name_forms(counts: Any) -> Iterator[str]:
    """Say what each table of the first unit may be, by what is refused of others in its place."""
    unit = counts.all_counts()[0]

    def refuse(**tables: Any) -> str:
        changed = empty_like(counts)
        changed.update(replace(unit, tables=tables))
        try:
            return str(engine_of(counts.protocol.family).check(changed) or "")
        except ValueError as error:
            return str(error)

    for key, table in unit.tables.items():
        grown = [np.pad(table, [(0, int(side == axis)) for side in range(table.ndim)]) for axis in range(table.ndim)]
        taken = [not refuse(**{**unit.tables, key: more}) for more in grown]
        sides = ["n" if any_size else f"{size}" for size, any_size in zip(table.shape, taken, strict=True)]
        below = -np.ones_like(grown[taken.index(True)] if any(taken) else table)
        yield f"{key} {' × '.join(sides)}{'' if refuse(**{**unit.tables, key: below}) else ' ±'}"
    yield refuse(**{**unit.tables, "more": np.zeros(1)})


def _reload(protocol: str, prediction: Any, truth: Any) -> str:
    """Say what is scored of counts that were kept, and why no others are taken: those of another family, and no counts."""
    kept, other, said = FrameAccumulator(protocol), FrameAccumulator("davis2017"), [protocol]
    kept.update("v", None, prediction, truth)
    other.update("v", 0, np.eye(3, dtype=np.uint8), np.eye(3, dtype=np.uint8))
    state = kept.state_dict()
    for frames in (state["frames"], {"v": {"": b"no counts"}}, other.state_dict()["frames"]):
        try:
            taken = FrameAccumulator(protocol)
            taken.load_state_dict({**state, "frames": frames})
            said.append(_show(taken))
        except Exception as error:  # noqa: BLE001 - whatever is raised is what is looked for
            said.append(f"{type(error).__name__}: {error}")
    return "\n  ".join(said)


def _show(accumulator: FrameAccumulator) -> str:
    return describe(accumulator.compute())


def describe(scores: Any) -> str:
    """Write the metrics, the warnings, and a digest of all rows that tables have."""
    (report,) = scores.reports
    values = ", ".join(f"{name} {value if value is None else f'{value:.5g}'}" for name, value in report.values.items())
    rows = json.dumps(json.loads(json.dumps(report.rows()), parse_float=lambda text: f"{float(text):.5g}"))
    return "; ".join([values, *report.warnings, digest(rows.encode()), *_list_losses(report)])


def _list_losses(report: Any) -> list[str]:
    """Write what costs the metrics of a family that counts by unit: by unit and kind, and by category and kind."""
    tools = tools_of(report.protocol.family)
    if not isinstance(tools, UnitTools):
        return []
    losses = tools.measure_losses(tools.counts_of(report))
    tables = (losses.by_unit, losses.by_category)
    return [f"lost {' '.join(str((np.asarray(table) + 0.0).round(4).tolist()) for table in tables)}"]


def _count_one(protocol: str) -> bytes:
    accumulator = FrameAccumulator(protocol)
    accumulator.update("v", 0, np.eye(3, dtype=np.uint8), np.eye(3, dtype=np.uint8))
    (data,) = accumulator.state_dict()["frames"]["v"].values()
    return bytes(data)


if __name__ == "__main__":
    FILE.write_text(write_doors())
