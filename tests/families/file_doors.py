"""What files score, how they are refused, and what is read of truths, by families of few files each.

    python -m tests.families.file_doors

writes it to `tests/golden/file_doors.txt`, for changes that are meant to be seen.
"""

from __future__ import annotations

import json
import re
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import segjudge
from segjudge.evaluation_script.families import PROTOCOLS, engine_of
from segjudge.evaluation_script.families.base.units import UnitTruth
from segjudge.evaluation_script.families.instances.keypoints import TrueKeypoints
from segjudge.evaluation_script.families.instances.records import KnownImages
from segjudge.evaluation_script.files.limits import LOCAL_LIMITS
from segjudge.evaluation_script.masks.run_lengths import MaskTexts
from segjudge.families.truths import TruthSource, open_truth
from segjudge.masks.tiff import encode_tiff
from tests.builders import png, run_length_text, written, zipped
from tests.calls import labels, run_calls
from tests.pages import digest
from tests.scoring.memory_doors import describe

FILE = Path(__file__).parents[1] / "golden/file_doors.txt"

SESSION = """
# Phrases in pictures
T = L("00000000 01100220 01100220 00000333"); P = L("00000000 01100022 01100022 00000300"); O = T == 9
def pair(number, **more): return {"id": number, "height": 4, "width": 8, "is_instance_exhaustive": 1, "text_input": f"a {number}", **more}
def seen(number, pair, mask, **more): return {"id": number, "image_id": pair, "category_id": 1, "segmentation": R(mask), **more}
def sides(*annotations, pairs=(1, 2, 3), **more): return {"images": [pair(number) for number in pairs], "annotations": list(annotations), "categories": [{"id": 1}, {"id": 4}], **more}
one = sides(seen(1, 1, T == 1), seen(2, 1, T == 2), seen(3, 3, T == 3, iscrowd=1))
other = sides(seen(1, 1, T == 1), seen(2, 3, T == 2), seen(3, 3, O))
gold = Door({"toy_a.json": one, "toy_b.json": other}, "sa-co-gold", "sa-co-gold-official"); alone = Door({"toy.json": one}, "sa-co-gold", "sa-co-gold-official")
def sent(pair, mask, **more): return {"image_id": pair, "category_id": 1, "segmentation": R(mask), "score": 0.9, "bbox": [0, 0, 1, 1], **more}
gold.truth()
gold.shapes([])
gold([])
gold([sent(1, P == 1), sent(1, P == 2), sent(2, P == 3), sent(3, P == 3)])
gold([sent(1, P == 1), sent(1, P == 2), sent(1, P > 0), sent(3, O)])
gold([sent(1, P == 2), sent(2, P == 3, score=0.5), sent(3, P == 3, score=0.49)])
alone([sent(1, T == 1), sent(1, T == 2), sent(3, T == 3), sent(3, T == 1)])
alone([sent(1, T == 1, category_id=9), sent(1, T == 2), sent(1, T == 1, category_id=4), sent(7, T == 1, category_id="x")])
alone([sent(3, T[:2] == 1), sent(1, T == 1), sent(1, np.zeros((9, 9))), sent(3, T == 3), sent(1, T == 2)])
boxed = {"image_id": 1, "category_id": 1, "score": 0.9}
alone([{**boxed, "bbox": [1, 1, 2, 2]}, {**boxed, "bbox": [5.4, 1, 2, 2]}])
alone([{**boxed, "bbox": [1, 1, 1, 3]}, {**boxed, "bbox": [3, 1, 5, 2]}, {**boxed, "bbox": [0, 0, 8, 4]}])
alone([{**boxed, "bbox": 5}, {**boxed, "bbox": [1, 1, 2]}, {**boxed, "bbox": [1, 1, 2, "x"]}, {**boxed, "bbox": {"a": 1, "b": 2, "c": 3, "d": 4}}])
alone([{**boxed, "bbox": []}, sent(1, T == 1, bbox=None)])
alone([sent(1, T == 1), sent(1, T == 2, bbox=None), sent(3, T == 3, bbox=None), sent(3, T == 1)])
gold([sent(1, T == 1, bbox=None), sent(3, T == 1)])
alone([5, sent(1, T == 1), {"image_id": 1}, sent(1, T == 2, score="x"), sent("1", T == 2), sent(8, T == 1), sent(1, T == 1, segmentation={"size": [4, 8], "counts": "5"})])
alone([sent(1, T == 1, category_id=...), sent(1, T == 1, segmentation={"size": [4, 8], "counts": [40]}), sent(3, T == 1, segmentation={"size": [1 << 13, (1 << 13) + 1], "counts": "0"})])
alone([sent(1, T == 1, segmentation={"size": [1 << 13, 1 << 13], "counts": [1 << 26]}), sent(1, T == 1, segmentation={"size": [1, 40], "counts": [40]})])
at_most("phrases.files", _MOST_PREDICTIONS=2)
alone([sent(1, T == 1)] * 2 + [sent(3, T == 3)]); alone([sent(1, T == 1)] * 3)
as_usual()
at_most("phrases.files", _MOST_PROBLEMS=2)
alone([sent(8, T == 1)]); alone([sent(8, T == 1), 5] + [sent(1, T == 1)]); alone([sent(8, T == 1), 5, 6])
as_usual()
at_most("instances.submission", CHUNK_BYTES=300); at_most("phrases.files", _MOST_PROBLEMS=2)
alone([sent(8, T == 1)] * 9)
as_usual()
at_most("instances.submission", CHUNK_BYTES=300)
alone([sent(1, T == 1), 5, sent(1, T == 2), sent(3, T == 3), 6, 7, sent(8, T == 3)])
as_usual()
alone([sent(1, T == 1), sent(1, T == 2), sent(3, T == 3), sent(1, O), sent(3, P == 2), sent(1, P == 3)])
at_most(records=2)
alone([sent(1, T == 1), sent(1, T == 2)]); alone([sent(1, T == 1)] * 3)
as_usual()
parts = {"gold_a_merged_a_release_test.json": one, "gold_b_merged_a_release_test.json": sides(seen(1, 5, T == 1), pairs=(5, 6))}
two = Door(parts, "sa-co-gold", "sa-co-gold-official"); two.truth(); two.truth("b")
two({"a.json": [sent(1, T == 1)], "b.json": [sent(5, T == 1)]}); two({"x/a/r.json": [sent(1, T == 1)], "x/b/r.json": [sent(5, T == 2)]})
two({"a.json": [sent(5, T == 1)], "b.json": [sent(1, T == 1), 5]}); two({"a.json": [], "c.json": []}); two({"a/1.json": [], "a/2.json": [], "b.json": []}); two([])
Door({"t.json": sides(pairs=(1, 1))}, "sa-co-gold").truth()
Door({"t.json": sides(seen(7, 1, T[:2] == 1))}, "sa-co-gold").truth()
Door({"t.json": sides(seen(6, 1, T == 2), seen(7, 1, T, segmentation={"size": [4, 8], "counts": [3, 4, 5]}))}, "sa-co-gold").truth()
Door({"t.json": sides(seen(7, 1, T, segmentation={"size": [4, 8], "counts": [9, 3, 20]}), seen(9, 1, O), seen(8, 2, T > 0), seen(8, 3, T > 0))}, "sa-co-gold").truth()
Door({"t_a.json": one, "t_b.json": {**one, "images": [pair(1), pair(2), pair(3, height=5)]}}, "sa-co-gold").truth()
uneven = Door({"t_a.json": one, "t_b.json": sides(seen(1, 4, T == 2), pairs=(1, 4, 3))}, "sa-co-gold", "sa-co-gold-official"); uneven.truth(); uneven([sent(4, T == 2)])
left = Door({"t.json": {**one, "images": [pair(1), pair(2), pair(3, is_instance_exhaustive=0)]}}, "sa-co-gold", "sa-co-gold-official"); left.truth(); left([sent(3, T == 1), sent(1, T == 1), sent(1, T == 2)])
Door({"t.txt": "x"}, "sa-co-gold").truth(); Door({"t.json": "["}, "sa-co-gold").truth(); Door({"t.json": "[5]"}, "sa-co-gold").truth()

# Phrases in videos
def video(number, folder, **more): return {"id": number, "height": 4, "width": 8, "file_names": [f"{folder}/{k}.jpg" for k in range(2)], **more}
def asked(video, phrase, **more): return {"video_id": video, "category_id": phrase, "noun_phrase": f"a {phrase}", **more}
def track(number, video, phrase, *masks, **more): return {"id": number, "video_id": video, "category_id": phrase, "segmentations": [R(mask) if mask is not None else None for mask in masks], **more}
def tubes(*tracks, videos=(video(1, "x"), video(2, "y")), pairs=((1, 1), (1, 2), (2, 1)), **more): return {"videos": list(videos), "annotations": list(tracks), "video_np_pairs": [asked(*pair) for pair in pairs], "categories": [{"id": k} for k in (1, 2, 3)], **more}
shown = tubes(track(1, 1, 1, T == 1, T == 1), track(2, 1, 1, T == 2, None), track(3, 1, 2, T == 3, T == 3, iscrowd=1), track(4, 2, 1, O, O))
veval = Door({"v.json": shown}, "sa-co-veval", "sa-co-veval-official"); veval.truth()
def told(video, phrase, *masks, score=0.9, **more): return {"video_id": video, "category_id": phrase, "score": score, "segmentations": [R(mask) if mask is not None else None for mask in masks], "areas": [1] * len(masks), "bboxes": [[0, 0, 1, 1]] * len(masks), **more}
veval([])
veval([told(1, 1, P == 1, P == 1), told(1, 1, P == 2, None), told(1, 2, P == 3, P == 3), told(2, 1, T == 1, O)])
veval([told(1, 1, T == 1, P == 2), told(1, 1, T == 2, None, score=0.5), told(1, 2, T == 3, T == 2, score=0.4), told(2, 1, O, O)])
stray = [told(1, 1, T == 1, T == 1), told(1, 3, T == 2, T == 2), told(1, 1, T == 2, P == 2, score=0.8), told(1, 4, P == 3, None, score=0.7), told(2, 2, T == 1, P == 1), told(1, 3, P == 1, P == 1, score=0.6), told(2, 2, T == 3, T == 3, score=0.95)]
veval.shapes(stray[:1])
veval(stray)
veval(stray[1:]); veval(stray[:1] + stray[3:5]); veval(stray[4:5]); veval(stray[:1]); veval([stray[0], told(1, 3, O, O), told(1, 4, T == 2, None, score=0.5), told(1, 1, T == 2, None, score=0.5), told(1, 2, O, O)])
veval([told(9, 1, T == 1, T == 1), told(1, 1 << 53, T == 1, T == 1), told(1, 1, T == 1, T == 1)])
veval([told(1, 1, T == 1, T == 1, areas=[0, 1]), told(1, 1, T == 2, T == 2, bboxes=[[0, 0, 1, 1], None]), told(1, 2, O, T == 1, bboxes=[[0, 0, 0, 0], []], areas=[1, None])])
veval([told(1, 1, T == 1, T == 1, areas=[1]), told(1, 1, T == 1, T == 1, bboxes=None), told(1, 1, T == 1, T == 1, areas=["x", 1]), told(1, 1, T == 1, T == 1, bboxes=[[1], ["x"]]), told(1, 1, T == 1, T == 1, bboxes=[[1], 5])])
veval([5, told(1, 1, T == 1), told(1, 1, None, T[:2] == 1), told("1", 1, T == 1, None), told(1, 1.0, T == 1, None), told(1, 1, T == 1, None, score=None), {"video_id": 1, "score": 1}, told(1, 1, segmentations=5), told(1, 1, segmentations=[None, {"size": [4, 8], "counts": "5"}]), told(1, 1, segmentations=[{"size": [4, 8]}, None])])
at_most("phrases.videos", _MOST_TRACKS=2)
veval(stray[:1] * 2); veval(stray[:1] * 3)
as_usual()
at_most("phrases.videos", _MOST_STRAYS=1)
veval(stray[:2]); veval(stray[:5])
as_usual()
at_most("phrases.tubes", _MOST_IN_VIDEO=3)
veval(stray[:3]); veval(stray[:4]); veval([*stray[:3], {**stray[3], "score": 0.49}, stray[4]])
as_usual()
at_most("phrases.tubes", _RANKED=1)
veval(stray[:4])
as_usual()
at_most("phrases.videos", _MOST_PROBLEMS=2); at_most("instances.submission", CHUNK_BYTES=300)
veval([told(9, 1, T == 1, T == 1)] * 9)
as_usual()
at_most("instances.submission", CHUNK_BYTES=300)
veval([stray[0], 5, *stray[1:], 6, told(1, 1, None, T[:2] == 1), told(1, 1, segmentations=[None, {"size": [4, 8], "counts": "5"}])]); veval(stray)
as_usual()
at_most(records=2)
veval(stray[:2]); veval(stray[:3])
as_usual()
A, B, D = L("11110000 11110000") > 0, L("01111000 01111000") > 0, L("00111100 00111100") > 0
def plain(number, **more): return {**video(number, "xy"[number - 1]), "height": 2, **more}
rivals = Door({"v.json": tubes(track(1, 1, 1, A, A), track(2, 1, 2, B, B), track(3, 2, 1, D, None), videos=(plain(1), plain(2)))}, "sa-co-veval", "sa-co-veval-official")
for tracks in ([(1, B, A)], [(2, A, B)], [(1, B, A), (2, A, B)], [(2, B, A), (1, A, B)], [(1, B, A), (1, A, A), (2, B, None)], [(2, B, A), (2, D, B), (1, D, D)], [(1, D, A), (2, A, A), (1, B, B)], [(2, D, D), (1, B, B), (2, A, D)], [(2, A, A), (1, B, B)]): show(rivals([told(1, phrase, *masks) for phrase, *masks in tracks]))
shown_all()
same = Door({"v.json": {**shown, "videos": [video(1, "x/1"), video(2, "x/2")]}}, "sa-co-veval-official"); same.truth(); same(stray); same([told(2, 1, T == 1, O), told(1, 1, T == 1, T == 1)])
Door({"v.json": {**shown, "video_np_pairs": ...}}, "sa-co-veval").truth(); Door({"v.json": tubes(pairs=((1, 1), (1, 1)))}, "sa-co-veval").truth(); Door({"v.json": shown, "w.json": shown}, "sa-co-veval").truth()
Door({"v.json": tubes(track(8, 2, 2, None, None))}, "sa-co-veval").truth(); Door({"v.json": tubes(track(8, 2, 1, None))}, "sa-co-veval").truth()
Door({"v.json": tubes(track(8, 2, 1, None, T[:2]))}, "sa-co-veval").truth(); Door({"v.json": tubes(track(7, 2, 1, None, T), track(9, 2, 1, None, T), track(8, 2, 1, segmentations=[None, {"size": [4, 8], "counts": "5"}]))}, "sa-co-veval").truth()
Door({"v.json": tubes(track(8, 2, 1, T, T), track(9, 1, 1, T, T), track(9, 1, 2, T, T))}, "sa-co-veval").truth(); Door({"v.json": tubes()}, "sa-co-veval").truth()

# Expressions
def kept(number, mask, image=1, **more): return {"id": number, "image_id": image, "segmentation": R(mask), **more}
def said(number, split, *sentences, image=1): return {"image_id": image, "split": split, "ann_id": number, "sentences": [{"sent_id": one, "sent": f"the {one}"} for one in sentences]}
crowded = {"images": [{"id": 1, "height": 4, "width": 8}, {"id": 2, "height": 4, "width": 8}], "annotations": [kept(1, T == 1), kept(2, T == 2), kept(3, T == 3, iscrowd=1), kept(4, O), kept(5, T == 1, image=2)]}
several = Door({"grefs(unc).json": [said([1], "val", 1, 2), said([1, 2], "val", 3), said([-1], "val", 4), said([3], "val", 5), said([2], "train", 9), said([4, 3, 2], "val", 6), said([5], "val", 7, image=2)], "instances.json": crowded}, "grefcoco", "grefcoco-official"); several.truth(); several.truth("train"); several.truth("test")
def answer(number, mask, **more): return {"sent_id": number, "segmentation": R(mask), **more}
def lines(*records): return "\\n".join(record if isinstance(record, str) else dumps(record) for record in records)
rest = [answer(3, T > 1), answer(4, O), answer(5, T == 3), answer(6, T == 3), answer(7, T == 1)]
several(lines(answer(1, T == 1), answer(2, P == 2), *rest))
several(lines(answer(9, T == 1), answer(1, P == 1, no_target=True), "", answer(2, P == 2, no_target=False), {"sent_id": 3, "no_target": True}, answer(4, P == 1), *rest[2:4], answer(7, O, no_target=False)))
several(lines("{}", answer(1, T == 1), answer(1, T == 2), answer(8, T == 1), answer(2, T == 1, no_target=1), answer(3, T[:2]), answer(4, T, segmentation={"size": [4, 8], "counts": "5"}), {"sent_id": 5}, {"sent_id": "6"}, "5"))
several({"a.jsonl": lines(answer(1, T == 1)), "b.json": ""}); several({"a.txt": ""}); several(lines(answer(1, T == 1), *rest, answer(6, O)))
at_most("referring.submission", _LINES_AT_ONCE=2)
several(lines(answer(1, T == 1), answer(2, P == 2), *rest)); several(lines(answer(1, T == 1), "5", *rest, "6", answer(4, O)))
as_usual()
at_most("referring.submission", CHUNK_BYTES=100)
several(lines(answer(1, T == 1), answer(2, P == 2), *rest)); several(lines(answer(1, T == 1), "5", *rest, "6", answer(4, O)))
as_usual()
at_most("referring.submission", _LINES_AT_ONCE=2, _MOST_PROBLEMS=2)
several(lines("{}", "6", "7", "8")); several(lines("{}", answer(1, T == 1), "7", "8", "9"))
as_usual()
at_most("referring.submission", _LONGEST_LINE=200)
several(lines(answer(1, T == 1), answer(2, P == 2), *rest)); several(lines(answer(1, T == 1, note="x" * 150))); several(lines(answer(1, T == 1, note="x" * 151), *rest))
as_usual()
at_most(records=7)
several(lines(answer(1, T == 1), answer(2, P == 2), *rest)); several(lines(answer(1, T == 1), "", answer(2, P == 2), *rest))
as_usual()
single = Door({"refs(u).json": [said(1, "testA", 1), said(2, "testA", 2), said(3, "train", 3), said(4, "testA", 4)], "instances.json": crowded}, "refcoco", "refcocog"); single.truth(); single.truth("train"); single.truth("testB")
single(lines(answer(1, P == 1), answer(2, P == 2), answer(4, O))); single(lines(answer(1, T == 1, no_target=True), answer(2, P == 2, no_target=False), answer(4, T == 1, no_target=False))); single(lines(answer(1, T == 1, no_target=False), answer(3, O), answer(2, P == 2), answer(4, T == 1)))
Door({"refs(u).json": [said(1, "testA", 1), said(2, "testB", 2)], "instances.json": crowded}, "refcoco").truth(); Door({"refs(u).json": [said(3, "train", 1)], "instances.json": crowded}, "refcoco").truth()
Door({"refs(u).json": [said(1, "train", 1), said(2, "val", 2), said(2, "testA", 3)], "instances.json": crowded}, "refcoco").truth(); Door({"x/refs(u).json": [said(1, "val", 1)], "x/instances.json": crowded}, "refcoco").truth()
Door({"refs(u).json": [said(1, "val", 1, 1)], "instances.json": crowded}, "refcoco").truth(); Door({"refs(u).json": [said(5, "val", 1)], "instances.json": crowded}, "refcoco").truth(); Door({"refs(u).json": [], "instances.json": crowded}, "refcoco").truth()
Door({"refs(u).json": {}, "instances.json": crowded}, "refcoco").truth(); Door({"refs(u).json": [], "grefs.json": []}, "refcoco").truth(); Door({"refs(u).json": [said(1, "val", 1)]}, "refcoco").truth(); Door({"refs(u).json": [said(1, "val", 1)], "instances.json": crowded}, "refcoco", at="refs(u).json").truth()
def instances(segmentation, **size): return {"images": [{"id": 1, "height": 4, "width": 8, **size}], "annotations": [{"id": 8, "image_id": 1, "segmentation": segmentation}]}
def meant(segmentation, **size): return Door({"refs(u).json": [said(8, "val", 1)], "instances.json": instances(segmentation, **size)}, "refcoco").truth()
meant([]); meant([[1, 1, 3, 1, 3, 3]]); meant([R(T == 1), R(T == 2)]); meant({"size": [4, 8], "counts": [0, 2, 30]}); meant([{"size": [4, 8], "counts": [30, 2]}]); meant(R(T[:2])); meant([R(T == 1), {"size": [4, 8], "counts": "5"}])
meant([], height=0); meant([], width=1 << 29); meant([], height=4.0); meant([], height=1, width=1)
withdrawn = Door({"grefs(unc).json": [said([-1], "val", 1), said([-1], "val", 2)], "instances.json": crowded}, "grefcoco", "grefcoco-official"); withdrawn(lines(answer(1, O), answer(2, T == 1)))

# Outlined pictures
def shapes(*outlines, sentence=False, **more): return {"text": ["find it", "or that"], "is_sentence": sentence, "imageHeight": 8, "imageWidth": 9, "shapes": [{"label": label, "points": points} for label, *points in outlines], **more}
square = ["target", [1, 1], [5, 1], [5, 5], [1, 5]]
outlined = Door({"val/b.json": shapes(square, ["ignore", [3.9, 3], [8, 3], [8, 7]], ["flag", [0, 0], [8, 0], [8, 8]]), "val/a.json": shapes(sentence=True, text="x"), "val/c.json": shapes(["Target", [0, 0], [3, 7]], ["target", [7, 2]], text=[]), "train/z.json": shapes(square), "sizes.json": {"c": [9, 8], "q": [1, 1]}, "val/other.json": {}}, "reasonseg", "reasonseg-official"); outlined.truth("val"); outlined.truth("train"); outlined.truth()
Door({"a.json": shapes(square), "x/a.json": shapes(square)}, "reasonseg").truth(); Door({"a.json": {}}, "reasonseg").truth(); Door({"x/a.json": shapes(square, imageHeight=...)}, "reasonseg").truth(); Door({"x/a.json": shapes(["target", [1, 2], [1 << 20, 3]], ["target", [2, (1 << 20) + 1]])}, "reasonseg").truth(); Door({"x/a.json": shapes(["target", [1, 2], [1 << 20, 3]])}, "reasonseg").truth()
Door({"x/a.json": shapes(square), "x/a.jpg": picture(7, 6), "sizes.json": {"b": [1, 1]}}, "reasonseg").truth(); Door({"x/a.json": shapes(square), "x/a.png": picture(7, 6)}, "reasonseg").truth(); Door({"x/a.json": shapes(square), "x/a.jpg": b""}, "reasonseg").truth()
Door({"sizes.json": {"a": [3, 4]}, "x/a.json": shapes(square)}, "reasonseg", at="x").truth(); Door({"x/a.json": dumps(shapes(square, text=["caf\u00e9"])).encode().replace(b"\\\\u00e9", b"\\xe9")}, "reasonseg").truth(); Door({"x/a.json": b"\\xef\\xbb\\xbf" + dumps(shapes(square)).encode()}, "reasonseg").truth()
Door({"x/a.json": shapes(["target", [-5, 3], [4, -6], [14, 3], [4, 12]])}, "reasonseg").truth(); Door({"x/a.json": shapes(["target", [-5, 30], [-9, -6], [0, 12]], ["ignored", [20, 20], [1, 6], [20, -20]])}, "reasonseg").truth(); Door({"x/a.json": shapes(["target", [0, 0], [8, 1], [8, 7]], ["target", [2, 7], [7, 7], [2, 1]], ["ignore", [1, 2], [4, 2], [4, 4]], ["ignore", [5, 5], [8, 5], [8, 7]])}, "reasonseg").truth()
Z = np.zeros((8, 9)); Y = Z + 0; Y[1:5, 1:4] = 1; X = np.zeros((9, 8)); X[0:3, 1:4] = 1
def saw(name, mask, **more): return {"image": name, "segmentation": R(mask), **more}
outlined.shapes(lines(saw("b", Y), saw("a", Z), saw("c", X), saw("z.JPG", Y))); outlined(lines(saw("b", Y), saw("a", Z), saw("c", X), saw("z.JPG", Y))); outlined(lines(saw("b.jpeg", Y), saw("a.png", Y), saw("c", X * 0), saw("z", Z))); outlined(lines(saw("b.gif", Y), saw(5, Y), saw("b", Y, no_target=True), saw("b.jpg", Y), saw("q", Y)))

# Panoptic images
I = L("00110022 00110022 00333322 44330022"); J = L("00111022 00110022 00330022 44330055")
CATS = [{"id": 5, "name": "cat", "isthing": 1}, {"id": 6, "name": "sky", "isthing": 0}, {"id": 7, "name": "dog", "isthing": 1}]
def listed(rows, ids): return [{"id": number, "category_id": category, "iscrowd": crowd, "area": int((ids == number).sum())} for number, category, crowd in rows]
def entry(name, rows, ids, **more): return {"image_id": name, "file_name": f"{name}.png", "segments_info": listed(rows, ids), **more}
whole = {"categories": CATS, "annotations": [entry("a", [(1, 5, 0), (2, 6, 0), (3, 7, 1), (4, 7, 0)], I), entry("b", [(1, 5, 0), (2, 5, 1), (3, 5, 1), (4, 6, 0)], I)]}
images = Door({"pan.json": whole, "pan/a.png": C(I), "pan/b.png": C(I)}, "coco-panoptic", "coco-panoptic-boundary"); images.truth(); images.truth("pan")
right = [entry("a", [(1, 5, 0), (2, 6, 0), (3, 7, 0), (4, 7, 0), (5, 5, 0)], J), entry("b", [(1, 5, 0), (2, 5, 0), (3, 5, 0), (4, 6, 0), (5, 5, 0)], J)]
def upload(*entries, **files): return {"r.json": {"annotations": list(entries)}, "r/a.png": C(J), "r/b.png": C(J), **files}
images.shapes(upload(*right)); images(upload(*right)); images(upload(*right[::-1], {**right[0], "image_id": 7})); images(upload(right[0])); images(upload(right[0], right[0])); images(upload(right[0], {**right[1], "image_id": 1.5}))
images(upload(right[0], {**right[1], "file_name": 5})); images(upload({**right[0], "segments_info": {}}, {**right[1], "file_name": "x/a.png"})); images(upload(right[0], {**right[1], "file_name": "c.png"}))
images(upload(right[0], {**right[1], "segments_info": [{"id": 1, "category_id": 9}]})); images(upload({**right[0], "segments_info": [{"id": 1, "category_id": 5}, 3]}, {**right[1], "segments_info": [{"id": 1 << 24, "category_id": 5}]}))
images(upload({**right[0], "segments_info": listed([(1, 5, 0), (2, 6, 0), (3, 7, 0), (4, 7, 0)], J)}, {**right[1], "segments_info": listed([(1, 5, 0), (2, 5, 0), (3, 5, 0), (4, 6, 0), (5, 5, 0), (77, 5, 0), (78, 5, 0)], J)}))
images({**upload(*right), "r/b.png": C(J[:2])}); images({**upload(*right), "r/b.png": G(J)}); images({**upload(*right), "r.json": {"annotations": {}}}); images({**upload(*right), "r.json": [5]}); images({**upload(*right), "r.json": {"annotations": [5]}}); images({**upload(*right), "s.json": {}}); images({**upload(*right), "s.json": {}, "s/a.png": C(J)}); images({"r/a.png": C(J)})
at_most("panoptic.files", _MOST_SEGMENTS=5)
images(upload(*right)); images(upload(right[0], {**right[1], "segments_info": listed([(1, 5, 0), (2, 5, 0), (3, 5, 0), (4, 6, 0), (5, 5, 0), (5, 5, 0)], J)}))
as_usual()
Door({"x.json": {}, "y.json": whole, "y/a.png": C(I), "y/b.png": C(I)}, "coco-panoptic").truth(); Door({"x.json": {}, "y.json": {}}, "coco-panoptic").truth(); Door({"x.json": {}, "y.json": whole, "y/a.png": C(I), "y/b.png": C(I)}, "coco-panoptic").truth("y"); Door({"x.json": whole, "a.png": C(I), "b.png": C(I)}, "coco-panoptic", at="x.json").truth(); Door({"x.json": {**whole, "categories": ...}}, "coco-panoptic").truth(); Door({"pan.json": whole, "pan/a.png": C(I)}, "coco-panoptic").truth()

# Panoptic videos
def clip(name, *frames): return {"video_id": name, "annotations": [{"file_name": f"{number}.png", "segments_info": listed(rows, ids)} for number, (rows, ids) in enumerate(frames)]}
first, then = ([(2, 6, 0), (1, 5, 0), (3, 7, 0), (4, 7, 1)], I), ([(1, 5, 0), (2, 6, 0), (3, 7, 0), (4, 7, 1), (5, 5, 0)], J)
stuff = {"categories": CATS, "videos": [], "annotations": [clip("v", first, then, first), clip("w", then, first)]}
def frames(folder, *maps): return {f"{folder}/{number}.png": C(ids) for number, ids in enumerate(maps)}
videos = Door({"pan.json": stuff, **frames("pan/v", I, J, I), **frames("pan/w", J, I)}, "vipseg", "vipseg-official"); videos.truth()
good = [clip("v", then, then, first), clip("w", then, then)]
def film(*entries, **more): return {"r.json": {"annotations": list(entries)}, **frames("r/v", J, J, I), **frames("r/w", J, J), **more}
videos.shapes(film(*good)); videos(film(*good)); videos(film(*good[::-1])); videos({**film(clip("v", first, then, first), good[1]), **frames("r/v", I, J, I)})
videos(film(good[0], clip("w", then))); videos(film(good[0], {"video_id": "w"})); videos(film({**good[0], "annotations": good[0]["annotations"][::-1]}, good[1])); videos(film({**good[0], "annotations": [{**frame, "file_name": ...} for frame in good[0]["annotations"]]}, good[1])); videos(film({**good[0], "annotations": [good[0]["annotations"][0], 5, {}]}, good[1])); videos(film(good[0], clip("w", then, first)))
at_most("panoptic.counting", _MOST_PAIRS=18)
videos(film(*good))
as_usual()
coded = Door({**{f"v/{number}.png": C(number_classes(ids, (10, 11, 13, 13, 255, 11))) for number, ids in enumerate((I, J, I))}, "w/0.png": C(number_classes(J, (10, 11, 13, 13, 255, 11)))}, "kitti-step", "kitti-step-official"); coded.truth()
steps = {**{f"v/{number}.png": C(number_classes(ids, (10, 11, 13, 12, 10, 11))) for number, ids in enumerate((J, J, I))}, "w/0.png": C(number_classes(I, (10, 255, 13, 13, 0, 11)))}
coded.shapes(steps); coded(steps); coded({**steps, "w/0.png": C(number_classes(I, (10, 11, 19, 20, 255, 0)))}); coded({"v/0.png": steps["v/0.png"], "w/1.png": steps["w/0.png"]}); coded({"v/0.png": steps["v/0.png"], "v/2.png": C(I[:3]), "w/0.png": steps["w/0.png"]}); coded({"v/0.png": steps["v/0.png"]}); coded({**steps, "w/0.png": C(I[:3])})
at_most("panoptic.counting", _MOST_PAIRS=18)
coded(steps)
as_usual()
at_most("panoptic.counting", _MOST_PAIRS=17)
coded(steps)
as_usual()
at_most("panoptic.counting", _MOST_PAIRS=8)
coded(steps)
as_usual()
at_most("panoptic.files", _MOST_SEGMENTS=4)
coded(steps)
as_usual()

# Cells
E1 = L("11000220 11000220 00000000 33000000"); E2 = L("01100022 01100022 00000000 33000000"); E3 = L("01100445 01100445 00000000 30000000")
rows = "1 0 2 0\\n2 0 1 0\\n\\n3 0 2 0\\n4 2 2 2\\n5 2 2 2\\n"
def tracked(name, *maps, text=rows, outlines=(0, 2)): return {**{f"{name}_GT/TRA/man_track{number:03d}.tif": tif(ids) for number, ids in enumerate(maps)}, **{f"{name}_GT/SEG/man_seg{number:03d}.tif": tif(maps[number]) for number in outlines}, f"{name}_GT/TRA/man_track.txt": text}
def followed(name, *maps, text=rows): return {**{f"{name}_RES/mask{number:03d}.tif": tif(ids) for number, ids in enumerate(maps)}, f"{name}_RES/res_track.txt": text}
cells = Door(tracked("01", E1, E2, E3), "ctc"); cells.truth(); pairs = Door({**tracked("01", E1, E2, E3), **tracked("02", E1, E1, text="1 0 1 0\\n2 0 1 0\\n3 0 1 0", outlines=(1,))}, "ctc", "ctc-official")
found = followed("01", E1, E1 * (E1 != 3), E3, text="1 0 2 0\\n2 0 1 0\\n3 0 0 0\\n6 2 2 3\\n4 2 2 2\\n5 2 2 2")
cells.shapes(followed("01", E1, E2, E3)); cells(followed("01", E1, E2, E3)); cells(followed("01", E2, E1, E3)); cells(found); cells({**found, "01_RES/mask002.tif": tif(np.where(E3 == 3, 6, E3))}); cells({name.replace("01_RES/", ""): data for name, data in followed("01", E2, E2, E3).items()})
cells({**followed("01", E1, E2, E3), "x/01_RES/mask001.tif": tif(E1), "01_RES/note.txt": "x", "x/02_RES/mask001.tif": b""}); cells({**followed("01", E1, E2, E3), "01_RES/mask1.tif": tif(E1), "01_RES/mask01.TIFF": tif(E1), "01_RES/RES_TRACK.TXT": rows})
cells(followed("01", E1, E2)); cells(followed("01", E1, E2, E3, E3, E3)); cells(followed("01")); cells({"01_RES/res_track.txt": rows, "01_RES/mask001.tif": b"II*", "01_RES/mask002.tif": tif(E3)}); cells({"01_RES/res_track.txt": rows, "01_RES/mask001.tif": tif(E2), "01_RES/mask007.tif": b"", "01_RES/mask005.tif": b""}); cells({**followed("01", E1, E2, E3), "01_RES/res_track.txt": ...}); cells({"a.tif": b""}); cells({"mask000.tif": b"", "x/mask000.tif": b""})
cells(followed("01", E1, E2, E3, text="1 0 2 0\\n2 0 1\\n")); cells(followed("01", E1, E2, E3, text="\\n\\n1 0 2 0\\n" + "x" * 70)); cells(followed("01", E1, E2, E3, text=rows.replace("3 0 2 0", "3 0 2 0.5"))); cells(followed("01", E1, E2, E3, text=rows.encode() + b"\\xff 1 2 3")); cells(followed("01", E1, E2, E3, text=""))
cells(followed("01", E1, E2, E3, text="1 0 2 0\\n1 0 2 0\\n0 1 2 0\\n65536 0 0 0\\n2 2 1 0\\n3 0 3 0\\n4 2 2 -1\\n5 2 2 9\\n7 2 2 3")); cells(followed("01", E1, E2, E3, text=rows.replace("3 0 2 0", "65535 0 2 0"))); cells(followed("01", E1, E2[:3], E3)); cells({**followed("01", E1, E2, E3), "01_RES/mask002.tif": b"II*"}); cells(followed("01", E1, E2, E2 + 9)); cells(followed("01", E1, E1 * 0, E3))
at_most("cells.files", LABELS_END=6)
cells(followed("01", E1, E2, E3)); cells(followed("01", E1, E2, E3, text=rows + "6 0 0 0"))
as_usual()
at_most("cells.files", _TRACK_BYTES=41)
cells(followed("01", E1, E2, E3)); cells(followed("01", E1, E2, E3, text=rows + "\\n"))
as_usual()
pairs({**followed("01", E1, E2, E3), **followed("02", E1, E1, text="1 0 1 0\\n2 0 1 0\\n3 0 1 0")}); pairs({**followed("01", E2, E2, E3), **followed("02", E1, E2, text="1 0 1 0\\n2 0 1 0\\n3 0 1 0"), "mask000.tif": b"", "res_track.txt": b"", "03_RES/res_track.txt": b""}); pairs(followed("02", E1, E1)); pairs({"mask000.tif": b""})
cubes = Door({"01_GT/TRA/man_track000.tif": tif(E1, E2), "01_GT/TRA/man_track001.tif": tif(E2, E2), "01_GT/TRA/man_track.txt": "1 0 1 0\\n2 0 1 0\\n3 0 1 0", "01_GT/SEG/man_seg_000_001.tif": tif(E2), "01_GT/SEG/man_seg_001_000.tif": tif(E1), "01_GT/SEG/man_seg_001_001.tif": tif(E2)}, "ctc", "ctc-official"); cubes.truth()
cubes({"01_RES/mask000.tif": tif(E1, E2), "01_RES/mask001.tif": tif(E1, E2), "01_RES/res_track.txt": "1 0 1 0\\n2 0 1 0\\n3 0 1 0"}); cubes({"01_RES/mask000.tif": tif(E1), "01_RES/mask001.tif": tif(E1, E2, E2), "01_RES/res_track.txt": "1 0 1 0\\n2 0 1 0\\n3 0 1 0"})
Door({**tracked("01", E1, E2, E3), "01_GT/TRA/man_track02.tif": b""}, "ctc").truth(); Door({**tracked("01", E1, E2, E3), "01_GT/SEG/man_seg_002.tif": b""}, "ctc").truth(); Door({**tracked("01", E1, E2, E3, text=rows + "x")}, "ctc").truth(); Door({**tracked("01", E1, E2, E3, text=rows + "9 2 1 0")}, "ctc").truth(); Door({"x": ""}, "ctc").truth(); Door({"a/TRA/man_track000.tif": b"", "b_GT/XYZ/man_track000.tif": b""}, "ctc").truth()
Door({**{f"x/{name}": data for name, data in tracked("01", E1, E2, E3).items()}, **{f"y/{name}": data for name, data in tracked("01", E1, E2, E3, outlines=()).items()}}, "ctc").truth(); Door(tracked("01", E1, E2, E3, text="1 0 2 0\\n2 0 1 0"), "ctc")(followed("01", E1, E2, E3))
twins = Door({**{f"x/{name}": data for name, data in tracked("01", E1, E2, E3).items()}, **{f"y/{name}": data for name, data in tracked("01", E1, E2, E3).items()}}, "ctc"); twins({**{f"x/{name}": data for name, data in followed("01", E1, E2, E3).items()}, **{f"r/y/{name}": data for name, data in followed("01", E2, E2, E3).items()}}); twins(followed("01", E1, E2, E3))

# Instances
KINDS = [{"id": 1, "name": "cat", "frequency": "r"}, {"id": 4, "name": "dog", "frequency": "c"}]
def photo(number, **more): return {"id": number, "height": 4, "width": 8, **more}
def thing(number, image, mask, category=1, **more): return {"id": number, "image_id": image, "category_id": category, "segmentation": R(mask), "area": int((mask > 0).sum()), "iscrowd": 0, **more}
def photos(*things, images=(photo(3), photo(1), photo(2)), **more): return {"t.json": {"images": list(images), "annotations": list(things), "categories": KINDS[::-1], **more}}
three = photos(thing(5, 1, T == 1), thing(6, 1, T == 2, 4), thing(7, 2, T == 3, iscrowd=1), thing(0, 2, T == 1, area=2000), thing(9, 3, T > 1, 4))
masks = Door(three, "coco", "lvis", at="t.json"); masks.truth(); others = Door(three, "places2017", "places2017-official", "coco-boundary", at="t.json")
def found(image, mask, category=1, score=0.9, **more): return {"image_id": image, "category_id": category, "segmentation": R(mask), "score": score, **more}
guesses = [found(1, P == 1), found(1, P == 2, 4, 0.8), found(2, T == 3, 1, 0.7), found(2, T == 1, 1, 0.6), found(3, P > 1, 4, 0.5), found(3, P == 3, 9, 0.4), found(3, P == 3, 1, 0.3), found(1, P == 2, 1, 0.2), found(2, P == 3, 1, 0.1)]
masks([]); masks(guesses); others(guesses); masks(guesses[::-1]); masks([{**guess, "bbox": [0, 0, 1, 1]} for guess in guesses]); masks([*guesses[1:], {**guesses[0], "bbox": [0, 0, 1, 1]}]); masks({"a/r.json": guesses}); masks({"a.json": [], "b.json": []}); masks({"a.txt": "x"}); masks({})
masks([found(1, P == 1, segmentation=[[1, 1, 3, 1, 3, 3, 1, 3]]), *guesses[1:]]); masks([found(1, P == 1, segmentation={"size": [4, 8], "counts": [5, 2, 2, 2, 21]}), *guesses[1:]])
masks([5, {}, found(1, O, score="x"), found(1, O, score=True), found("1", O), found(1.0, O), found(1 << 63, O), found(8, O), found(1, O, "x"), found(1, O, -(1 << 63) - 1)])
masks([found(1, O, segmentation=5), found(1, O, segmentation={"size": [4, 8]}), found(1, O, segmentation={"size": [8, 4], "counts": "P1"}), found(1, O, segmentation={"size": 8, "counts": "P1"}), found(1, O, segmentation={"size": [4, 8.0], "counts": "P1"}), found(1, O, segmentation={"size": [4, 8], "counts": 5}), found(1, O, segmentation={"size": [4, 8], "counts": [5]}), found(2, O, segmentation={"size": [4, 8], "counts": "5"}), found(1, O, segmentation=[[1, 2]]), found(1, O, segmentation=[])])
masks("[5"); masks("[]]"); masks("{}"); masks(b"[\\xff]"); masks(dumps(guesses)[:-1] + ","); masks(dumps(guesses)[:-9]); masks("\\ufeff [ ] \\0"); masks(dumps(guesses).replace(", ", " ,\\t"))
masks([found(8, T == 1), *guesses], jobs=2); masks([*guesses[:5], 5, *guesses[5:], found(1, O, segmentation={"size": [4, 8], "counts": "5"})], jobs=2)
at_most("instances.submission", CHUNK_BYTES=200)
masks(guesses); masks([5, *guesses[:5], 5, *guesses[5:], found(1, O, segmentation={"size": [4, 8], "counts": "5"})]); masks([found(1, P == 1, note="}, {" * 9), *guesses[1:], found(9, O), found(1, P == 1, note=[{"a": 1}] * 30)]); masks(dumps(guesses)[:-1]); masks(dumps(guesses).replace("}, {", "} {")); masks(dumps(guesses) + "x"); masks([*guesses[:-1], found(2, T == 1, segmentation=[[1, 1, 3, 1, 3, 3, 1, 3]])], jobs=2)
as_usual()
at_most("instances.submission", CHUNK_BYTES=200, _MOST_PROBLEMS=3)
masks([5, 6, *guesses, 7, 8, *guesses]); masks([5, 6])
as_usual()
at_most("instances.submission", CHUNK_BYTES=200, _LONGEST_RECORD=400)
masks([found(1, P == 1, note="x" * 400), *guesses]); masks([found(1, P == 1, note="x" * 900), *guesses])
as_usual()
at_most("instances.submission", CHUNK_BYTES=200, _FEW=2)
masks([found(1, P == 1, note={"x": 1}), *guesses[1:]]); masks("[" + "5," * 3 + "5]")
as_usual()
at_most("instances.submission", CHUNK_BYTES=200, _MOST_BEYOND=2, _MOST_GROUPS=2)
masks(guesses)
as_usual()
at_most(records=8)
masks(guesses[1:]); masks(guesses)
as_usual()
at_most("instances.submission", _BYTES_OF_PASS=900)
masks(guesses)
as_usual()
many = photos(thing(1, 1, T == 1), images=[photo(1), photo(2)]); crowd = Door(many, "places2017", "coco", "lvis", at="t.json"); crowd([found(1, P == 1, score=0.5 + k / 1000) for k in range(260)] + [found(2, P == 2, 1 + 3 * (k % 2), 0.5) for k in range(202)] + [found(2, P == 2, 7, 0.4)] * 101)
Door(photos(thing(1, 1, T == 1), thing(1, 1, T == 2)), "coco", at="t.json").truth(); Door(photos(thing(1, 8, T == 1), thing(2, 9, T == 1)), "coco", at="t.json").truth(); Door(photos(images=[photo(1), photo(1)]), "coco", at="t.json").truth(); Door(photos(categories=[KINDS[0], KINDS[0]]), "coco", at="t.json").truth(); Door(photos(images=[photo(1), {"id": 2, "height": 3}]), "coco", at="t.json").truth()
Door(photos(thing(4, 1, T[:2] == 1)), "coco", at="t.json").truth(); Door(photos(thing(4, 1, T, segmentation={"size": [4, 8], "counts": [30, 2]}), thing(8, 1, T, segmentation={"size": [4, 8], "counts": "5"})), "coco", at="t.json").truth(); Door(photos(thing(4, 1, T, segmentation=...)), "coco", at="t.json").truth(); Door(photos(thing(4, 1, T, segmentation=[[1, 2]])), "coco", at="t.json").truth(); Door({"t.json": []}, "coco", at="t.json").truth(); Door({"t.json": {"images": []}}, "coco", at="t.json").truth()
Door(photos(thing(4, 1, T == 1, 7, area=..., iscrowd=..., bbox=[1, 2, 3, 4]), thing(5, 2, T == 1, segmentation=[[1, 1, 3, 1, 3, 3, 1, 3]], bbox=...), images=[photo(1, file_name="a.jpg", neg_category_ids=[4, 9]), photo(2, not_exhaustive_category_ids=[1, 4])]), "lvis", at="t.json").truth()
spare = Door(photos(thing(4, 1, T == 1), thing(5, 2, T == 2, 4), images=[photo(1, neg_category_ids=[4]), photo(2, neg_category_ids=[], not_exhaustive_category_ids=[4]), photo(3)]), "lvis", "lvis-boundary", at="t.json"); spare([found(1, P == 1), found(1, P == 2, 4), found(2, P == 1), found(2, P == 1, 4), found(2, P == 2, 4), found(3, P == 3), found(2, P == 2, 9)])

# Boxes and keypoints
def boxed(number, image, box, category=1, **more): return {"id": number, "image_id": image, "category_id": category, "bbox": box, "area": box[2] * box[3], "iscrowd": 0, "segmentation": R(T == 1), **more}
boxes = Door(photos(boxed(1, 1, [0, 0, 4, 2]), boxed(2, 1, [4, 2, 4, 2], 4), boxed(3, 2, [0, 0, 8, 4], iscrowd=1)), "coco-box", at="t.json"); boxes.truth()
def guess(image, box, category=1, score=0.9): return {"image_id": image, "category_id": category, "bbox": box, "score": score}
boxes([guess(1, [0, 0, 4, 2]), guess(1, [4, 2, 4, 1.5], 4, 0.5), guess(2, [1, 1, 2, 2]), guess(2, [-3, 0, 2, 2], 1, 0.1)]); boxes([guess(1, 5), guess(1, [1, 2, 3]), guess(1, [1, 2, 3, "4"]), guess(1, [1, 2, -3, 4]), guess(1, [1, 2, 3, -4]), guess(1, [1, 2, 3, 1e400]), guess(1, [1, 2, 3, 1e300]), guess(1, [-1e15, 2, 3, 0]), {"image_id": 1}])
at_most("instances.submission", _BYTES_OF_PASS=9000)
boxes([guess(1, [0, 0, 4, 2]), guess(1, [4, 2, 4, 1.5], 4, 0.5), guess(2, [1, 1, 2, 2])])
as_usual()
BODY = [{"id": 1, "name": "cat", "keypoints": ["nose", "tail"], "sigmas": [0.1, 0.2], "skeleton": [[1, 2]]}]
def body(number, image, points, **more): return {"id": number, "image_id": image, "category_id": 1, "keypoints": points, "num_keypoints": sum(flag > 0 for flag in points[2::3]), "bbox": [0, 0, 4, 2], "area": 8, "iscrowd": 0, **more}
bodies = Door(photos(body(0, 1, [1, 1, 2, 3, 2, 1]), body(2, 1, [0, 0, 0, 5, 3, 2]), body(3, 2, [0, 0, 0, 0, 0, 0]), categories=BODY), "coco-keypoints", "coco-keypoints-official", at="t.json"); bodies.truth()
def pose(image, points, score=0.9, **more): return {"image_id": image, "category_id": 1, "keypoints": points, "score": score, **more}
poses = [pose(1, [1, 1, 1, 3, 2.5, 1]), pose(1, [0, 1, 0, 5, 3, 0], 0.5), pose(2, [1, 1, 1, 2, 2, 1], 0.7), pose(2, [90, 90, 1, 99, 99, 1], 0.4)]
bodies(poses); bodies([{**one, "bbox": [0, 0, 40 * k, 40 * k]} for k, one in enumerate(poses, 1)]); bodies([{**one, "bbox": [0, 0, 40 * k, 40 * k] if k > 1 else []} for k, one in enumerate(poses, 1)]); bodies([{**one, "bbox": [0, 0, 40 * k, 40 * k] if k < 3 else None} for k, one in enumerate(poses, 1)])
bodies([pose(1, 5), pose(1, [1, 2, 3]), pose(1, [1, 1, 1, "x", 2, 1]), pose(1, [1, 1, 1, 2, 2, 1e400]), pose(1, [1, 1, 1, 2, (1 << 24) + 1, 1]), pose(1, [1, 1, 1, 2, 1 << 24, 1]), {"image_id": 1, "score": 1}, pose(1, [1] * 6, bbox=5), pose(1, [1] * 6, bbox=[])])
Door(photos(body(0, 1, [1, 1, 2, 3, 2, 1]), body(2, 1, [0, 0, 0]), categories=BODY), "coco-keypoints", at="t.json").truth(); Door(photos(body(0, 1, [1, 1, 2, 3, 2, 1], num_keypoints=1), categories=BODY), "coco-keypoints", "coco-keypoints-official", at="t.json")(poses); Door(photos(body(0, 1, [1, 1, 2, 3, 2, 1], num_keypoints=...), categories=BODY), "coco-keypoints", at="t.json").truth(); Door(three, "coco-keypoints", at="t.json")(poses); Door(photos(body(4, 1, [0] * 6, bbox=...), categories=BODY), "coco-keypoints", at="t.json")(poses); Door(photos(body(4, 1, [1] * 6), categories=[{**BODY[0], "sigmas": [1]}]), "coco-keypoints", at="t.json")(poses); Door(photos(body(4, 1, [1] * 6), categories=[{"id": 1, "name": "cat"}]), "coco-keypoints", at="t.json")(poses); Door(photos(body(4, 1, [1, 1, 1, 1 << 25, 1, 1]), categories=BODY), "coco-keypoints", at="t.json")(poses); Door(photos(body(4, 1, [1] * 6, keypoints=...), body(5, 1, [1] * 6), categories=BODY), "coco-keypoints", at="t.json")(poses); Door(photos(body(4, 1, [1] * 6), categories=BODY), "coco", at="t.json")(poses)

# Instances in videos
def clip(number, length=2, **more): return {"id": number, "height": 4, "width": 8, "length": length, "file_names": [], **more}
def seen(number, video, *masks, category=1, **more): return {"id": number, "video_id": video, "category_id": category, "iscrowd": 0, "segmentations": [mask if mask is None else R(mask) for mask in masks], "areas": [None if mask is None else int((mask > 0).sum()) for mask in masks], "occlusion": ["no_occlusion", "severe_occlusion"], **more}
def clips(*things, videos=(clip(2), clip(1, 3)), **more): return {"v.json": {"videos": list(videos), "annotations": list(things), "categories": KINDS, **more}}
shots = Door(clips(seen(3, 1, T == 1, None, P == 1), seen(0, 1, None, T == 2, P == 2, category=4, occlusion=[None, "slight_occlusion", None]), seen(5, 2, T == 3, T == 3, iscrowd=1), seen(6, 2, T == 1, T == 1, areas=[2000, 3000]), seen(7, 2, O, O, occlusion=None)), "ovis", "youtube-vis-2019", at="v.json"); shots.truth()
def told(video, *masks, category=1, score=0.9, **more): return {"video_id": video, "category_id": category, "score": score, "segmentations": [mask if mask is None else R(mask) for mask in masks], **more}
takes = [told(1, T == 1, None, T == 1), told(1, None, T == 2, None, category=4, score=0.8), told(2, T == 3, None, score=0.7), told(2, P == 1, T == 1, score=0.6), told(2, P == 3, O, category=4, score=0.4), told(1, P == 3, O, None, category=9)]
shots([]); shots(takes); shots([{**take, "bbox": [0, 0, 1, 1]} for take in takes]); shots([told(1, T == 1, None, T == 1, note={"x": 1}), *takes[1:]]); shots([told(2, T == 1, None, segmentations=[{"size": [4, 8], "counts": [5, 2, 2, 2, 21]}, None]), *takes]); shots([told(2, None), *takes[:2]]); shots([told(2, None, None, None), *takes[:2]]); shots([told(2, None, None)])
shots([told(1, T == 1, None), told(2, T == 1, None, None), told(2, None, T[:2]), told(2, segmentations=5), told(2, segmentations=[None, 5]), told(2, segmentations=[None, [[1, 1, 3, 1, 3, 3]]]), told(2, segmentations=[None, {"size": [4, 8], "counts": "5"}]), told(2, segmentations=[{"size": [4, 8], "counts": [3, 3]}, None]), told(2, segmentations=[{"size": [8, 4], "counts": "P1"}, None]), told(5, None, None), told("1", None), {"video_id": 1}, told(2, segmentations=[None, {"size": [4, 8], "counts": "\\u00e9"}])])
at_most("instances.submission", CHUNK_BYTES=300)
shots(takes); shots([*takes, told(2, T == 1)])
as_usual()
Door(clips(seen(3, 1, T == 1, None)), "ovis", at="v.json").truth(); Door(clips(seen(3, 7, T == 1, None)), "ovis", at="v.json").truth(); Door(clips(seen(3, 2, T[:2], None)), "ovis", at="v.json").truth(); Door(clips(seen(3, 2, None, None, segmentations=5)), "ovis", at="v.json").truth(); Door(clips(seen(3, 2, None, None, segmentations=[None, [[1, 1, 3, 1, 3, 3]]])), "ovis", at="v.json").truth(); Door(clips(videos=[clip(1), clip(1)]), "ovis", at="v.json").truth(); Door(clips(videos=[clip(1, 0), clip(2), clip(3, height=0)]), "ovis", at="v.json").truth(); Door({"v.json": {**clips()["v.json"], "annotations": None}}, "ovis", at="v.json").truth(); Door(clips(seen(3, 2, T == 1, P == 1, areas=..., occlusion=...)), "youtube-vis-2021", at="v.json").truth(); Door(clips(), "ovis", at="v.json").truth(); shots({"a.json": [], "b.json": []})
masks([told(1, None)]); Door(three, "ovis", at="t.json")(takes); Door(clips(), "coco", at="v.json")(takes)

# Street scenes
def street(*columns): return np.repeat([[number for number, width in columns for _ in range(width)]], 20, axis=0)
towns = {"gtFine/val/a/a_000000_000019_gtFine_instanceIds.png": encode_ids(street((26000, 10), (7, 4), (26001, 12), (24000, 60), (26, 6), (29001, 5), (4, 3))), "gtFine/val/b/b_000000_000019_gtFine_instanceIds.png": encode_ids(street((24000, 8), (26000, 70), (24, 2), (33000, 20)))}
distances = {"a_000000_000019_gtFine_instanceIds.png": {"car": [{"instID": 26000, "medDist": 50, "distConf": 0.5}, {"instID": 26001, "medDist": 101, "distConf": 1}], "person": [{"instID": 24000, "medDist": 50, "distConf": 0.9}]}, "b_000000_000019_gtFine_instanceIds.png": {"car": [{"instID": 26000, "medDist": 100, "distConf": 0.5}], "bicycle": [{"instID": 33000, "medDist": 20, "distConf": 0.4}]}}
near = Door({**towns, "gtFine/distances.json": distances}, "cityscapes-instance", "cityscapes-instance-official"); near.truth(); plain = Door(towns, "cityscapes-instance", "cityscapes-instance-official"); plain.truth()
def car(*columns): return G(street(*columns))
sent = {"a_000000_000019.txt": "a0.png 26 0.9\\na1.png 26 0.8\\n\\n a2.png 24 0.7\\na3.png 26 0.6\\na4.png 25 0.5\\na1.png 29 0.4\\na5.png 26 .3\\n", "a0.png": car((255, 10), (0, 90)), "a1.png": car((0, 12), (9, 14), (0, 74)), "a2.png": car((0, 26), (1, 60), (0, 14)), "a3.png": car((0, 84), (1, 8), (0, 8)), "a4.png": car((0, 95), (1, 5)), "a5.png": car((0, 100)), "b_000000_000019_leftImg8bit.txt": "x/b0.png 26 1e-1\\r\\nx\\\\b0.png 26 2\\nx/b1.PNG 33 -0.5\\nx/../x/b0.png 24 0.5", "x/b0.png": car((0, 8), (1, 60), (0, 32)), "x/b1.png": car((0, 76), (1, 24))}
near(sent); plain(sent); near({**sent, "c_0_0.txt": "5", "d_0_0.txt": ""}); near({name: data for name, data in sent.items() if name[0] != "b"}); near({"c.txt": "", "d.txt": ""}); plain({**sent, "a_000000_000019.txt": "a0.png 13 0.9", "b_000000_000019_leftImg8bit.txt": "x/b0.png 12 1\\nx/b1.png 18 1"}); plain({**sent, "a_000000_000019.txt": "", "b_000000_000019_leftImg8bit.txt": "\\n"}); plain({**sent, "a_000000_000019.txt": "a0.png 11 0.9", "b_000000_000019_leftImg8bit.txt": "x/b0.png 10 1"})
near({**sent, "a_000000_000019.txt": "a0.png 26 nan\\na0.png 26 1_0\\n\\na0.png 26\\na0.png car 1\\na0.png 34 1\\na0.png -2 1\\na0.png -1 1\\na9.png 26 1\\na6.png 26 1\\na7.png 26 1\\na8.png 26 1\\na0.png 26 " + "9" * 400, "a6.png": car((1, 99)), "a7.png": picture(100, 20), "a8.png": b"x", "b_000000_000019.txt": ""}); near({**sent, "a_000000_000019.txt": b"\\xff", "b_000000_000019_leftImg8bit.txt": "\\ufeffx/b0.png 26 1"})
at_most("instances.mask_files", _LONGEST_TEXT=98)
near({**sent, "a_000000_000019.txt": "", "b_000000_000019_leftImg8bit.txt": "x/b0.png 26 1" + " " * 85}); near({**sent, "a_000000_000019.txt": "", "b_000000_000019_leftImg8bit.txt": "x/b0.png 26 1" + " " * 86})
as_usual()
at_most("instances.mask_files", _MOST_OF_IMAGE=20)
near({**sent, "b_000000_000019_leftImg8bit.txt": ""}); near({**sent, "a_000000_000019.txt": "a0.png 26 1\\na2.png 26 1"})
as_usual()
at_most(records=7)
near(sent); near({**sent, "b_000000_000019_leftImg8bit.txt": "x/b0.png 26 1\\n" * 7, "a_000000_000019.txt": ""}); near({**sent, "b_000000_000019_leftImg8bit.txt": "x/b0.png 26 1\\n" * 4, "a_000000_000019.txt": "a0.png 26 1\\n" * 4})
as_usual()
"""


class _Door:
    """A truth, and the protocols that score against it."""

    def __init__(self, folder: Path, protocols: Sequence[str], at: str) -> None:
        self._folder, self._path, self._protocols = folder, folder / at, protocols
        self._said = set[str]()

    def __call__(self, sent: Any, **options: Any) -> str:
        """Say what files by name score, or one: text, bytes or a document."""
        path, lines = self._write(sent), dict[str, list[str]]()
        for protocol in self._protocols:
            said = _hear(partial(self._score, path, protocol, **options))
            lines.setdefault(said.replace(str(path), "SENT").replace(str(self._path), "TRUTH"), []).append(protocol)
        return "\n".join(f"{', '.join(names)}: {self._shorten(said)}" for said, names in lines.items())

    def _write(self, sent: Any) -> Path:
        path = self._folder.with_suffix(".sent")
        several = isinstance(sent, dict)
        files = _fill(sent if several else {path.name: sent})
        written(path.parent, {path.name: zipped(files, zipfile.ZIP_STORED)} if several else files)
        return path

    def _shorten(self, said: str) -> str:
        """Write what costs much text as a digest, and what was said before by its mark."""
        mark = digest(said.encode())[:5]
        if mark in self._said:
            return f"as {mark}"
        self._said.add(mark)
        losses = re.compile(r"; lost (.{120,}?)(?=; without)")
        return f"{mark} {losses.sub(lambda match: f'; lost {digest(match[1].encode())}', said)}"

    def shapes(self, sent: Any) -> str:
        """Say what other shapes of what a unit counts are taken from a part."""
        path = self._write(sent)
        reports = [segjudge.score(path, self._path, protocol).reports[0] for protocol in self._protocols]
        return "\n".join(f"{report.protocol.name}: {_list_shapes(report)}" for report in reports)

    def _score(self, path: Path, protocol: str, **options: Any) -> str:
        return _describe(segjudge.score(path, self._path, protocol, **options))

    def truth(self, subset: str = "") -> str:
        """Say what is read of the truth."""
        protocol = PROTOCOLS[self._protocols[0]]
        said = _hear(lambda: "\n".join(_list_truth(open_truth(TruthSource(str(self._path), subset=subset), protocol))))
        return said.replace(str(self._path), "TRUTH").replace(str(self._folder), "FOLDER")


def _list_shapes(report: Any) -> str:
    engine, tables = engine_of(report.protocol.family), report.counts.complete_counts()[0].tables
    engine.check(report.counts)
    said = []
    for key, table in list(tables.items()):
        others = [
            (*table.shape[:axis], side + more, *table.shape[axis + 1 :])
            for axis, side in enumerate(table.shape)
            for more in (-1, 1)
            if side + more >= 0
        ]
        taken = []
        for shape in [*others, (*table.shape, 1)]:
            tables[key] = np.resize(table, shape)
            with suppress(ValueError):
                engine.check(report.counts)
                taken.append(shape)
        tables[key] = table
        said.append(f"{key} {table.shape}, and {taken}")
    return "; ".join(said)


def _describe(scores: Any) -> str:
    """Add a digest of what the metrics are without each unit or group of them."""
    (report,) = scores.reports
    without = {name: np.round(values, 5).tolist() for name, values in report.without_each().items()}
    return f"{describe(scores)}; without {digest(repr(without).encode())}"


def _hear(say: Callable[[], str]) -> str:
    try:
        return say()
    except Exception as error:  # noqa: BLE001 - whatever is raised is what is looked for
        return f"{type(error).__name__}: {error}"


def _fill(files: dict[str, Any]) -> dict[str, Any]:
    """Leave out of documents what is `...`, and write bytes as they are."""
    kept = {name: data for name, data in files.items() if data is not ...}
    return {name: data if isinstance(data, (bytes, str)) else json.dumps(_drop(data)) for name, data in kept.items()}


def _drop(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop(one) for key, one in value.items() if one is not ...}
    return [_drop(one) for one in value] if isinstance(value, (list, tuple)) else value


def _list_truth(file: Any) -> Iterator[str]:
    for split, truth in file.splits.items():
        if not isinstance(truth, UnitTruth):
            yield f"{split}: {file.notes}, {truth.form}, {truth.read_through()}"
            texts = {name: _settle(value) for name, value in vars(truth).items()}
            yield from (f"  {name}: {text}" for name, text in texts.items() if text not in ("", "None", "[]", "{}"))
            continue
        yield f"{split}: {truth.form}, {truth.facts}, elsewhere {sorted(truth.elsewhere)}, notes {[*file.notes, *truth.notes]}"
        for unit in truth.units:
            yield f"  {unit.name}: {unit.cost}, {unit.facts}"
            yield from (f"    {frame.name} {frame.size} {frame.rows}" for frame in unit.load())


def _settle(value: Any) -> str:
    """Write arrays as lists, and of classes their fields."""
    if isinstance(value, np.ndarray):
        return str(value.tolist())
    if isinstance(value, (KnownImages, TrueKeypoints)):
        return ", ".join(f"{name} {_settle(field)}" for name, field in vars(value).items() if name[0] != "_")
    return str(list(value)) if isinstance(value, MaskTexts) else str(value)


def write_doors() -> str:
    """Return what the session says; numpy's warnings of strange numbers are of no interest here."""
    with tempfile.TemporaryDirectory(prefix="segjudge-") as root, ExitStack() as usual, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numbers = count()

        def make_door(files: dict[str, Any], *protocols: str, at: str = "") -> _Door:
            return _Door(written(Path(root, str(next(numbers))), _fill(files)), protocols, at)

        def at_most(module: str = "", **most: int) -> None:
            if module:
                usual.enter_context(mock.patch.multiple(f"segjudge.evaluation_script.families.{module}", **most))
            else:
                usual.enter_context(mock.patch("segjudge.scoring.scores.LOCAL_LIMITS", replace(LOCAL_LIMITS, **most)))

        listed = list[str]()
        return run_calls(SESSION.lstrip(), {
            "show": listed.append, "shown_all": lambda: ("\n".join(listed), listed.clear())[0],
            "np": np, "L": labels, "R": _encode, "Door": make_door, "at_most": at_most, "as_usual": usual.close,
            "C": _colour, "G": lambda ids: png(ids.astype(np.uint8)), "tif": lambda *pages: encode_tiff(np.stack(pages).astype(np.uint16)),
            "encode_ids": lambda numbers: png(numbers.astype(np.uint16)), "dumps": lambda value: json.dumps(_drop(value)), "picture": lambda *size: png(np.zeros((*size[::-1], 3), np.uint8)),
            "number_classes": lambda ids, classes: np.asarray(classes)[ids] | np.asarray(ids, np.int64) << 16 | 0,
        }).replace(root, "FOLDER")  # fmt: skip


def _colour(ids: Any) -> bytes:
    return png(np.stack([ids & 255, ids >> 8 & 255, ids >> 16 & 255], axis=-1).astype(np.uint8))


def _encode(mask: Any) -> dict[str, Any]:
    return {"size": list(mask.shape), "counts": run_length_text(np.asarray(mask) > 0)}


if __name__ == "__main__":
    FILE.write_text(write_doors())
