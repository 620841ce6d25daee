"""Run the official evaluators, each in its own process, and print their numbers under our names.

A script gets the evaluator's folder and the folder of the data.  What old code expects of numpy is put back first; no
number depends on it.
"""

from __future__ import annotations

COMPAT = """
import builtins, importlib.util, json, os, runpy, sys, types
import numpy as np
sys.path.insert(0, sys.argv[1])
checkout, data = sys.argv[1:3]
builtins.unicode = str
for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object)):
    if name not in np.__dict__:
        setattr(np, name, kind)
linspace = np.linspace
np.linspace = lambda start, stop, num=50, **more: linspace(start, stop, int(num), **more)
say, sys.stdout = sys.stdout, sys.stderr

def number(value):
    return None if value is None or value != value or value == -1 else float(value)

def answer(values):
    print(json.dumps({name: number(value) for name, value in values.items()}), file=say)
"""

QUALITIES = """
def qualities(results):
    groups = (("All", ""), ("Things", "-Things"), ("Stuff", "-Stuff"))
    answer({f"{one.upper()}{suffix}": results[name][one] for name, suffix in groups for one in ("pq", "sq", "rq")})
"""

PANOPTICAPI = f"""{COMPAT}{QUALITIES}
from panopticapi.evaluation import pq_compute
qualities(pq_compute(f"{{data}}/truth.json", f"{{data}}/results/results.json"))
"""

BOUNDARY_PANOPTIC = f"""{COMPAT}{QUALITIES}
from boundary_iou.coco_panoptic_api.evaluation import pq_compute
qualities(pq_compute(f"{{data}}/truth.json", f"{{data}}/results/results.json", iou_type="boundary"))
"""

VIPSEG = f"""{COMPAT}
os.chdir(f"{{checkout}}/ClipPanoFCN")
sys.path.insert(0, os.getcwd())
import eval_vpq_vspw as vpq
import eval_stq_vspw as stq
means, compute = [], vpq.vpq_compute_parallel
def kept(*given):
    means.append(compute(*given))
    return means[-1]
vpq.vpq_compute_parallel = kept
sys.argv = ["", "-i", f"{{data}}/results", "--truth_dir", f"{{data}}/truth"]
sys.argv += ["--pan_gt_json_file", f"{{data}}/truth.json"]
ends, result = {{}}, stq.numpy_stq.STQuality.result
stq.numpy_stq.STQuality.result = lambda self: ends.update(result(self)) or ends
stq.main()
sys.argv += ["--num_processes", "1"]
vpq.main()
values = {{"VPQ" + group: sum(one[at] for one in means) / 500 for at, group in enumerate(("", "-Things", "-Stuff"))}}
values.update({{f"VPQ{{frames}}": one[0] / 100 for frames, one in zip((1, 2, 4, 6, 8), means)}})
answer({{**values, **{{name: ends[name] for name in ("STQ", "AQ", "IoU")}}}})
for name in os.listdir(f"{{data}}/results"):
    if name.endswith(".txt"):
        os.remove(f"{{data}}/results/{{name}}")
"""

CITYSCAPES = f"""{COMPAT}
os.environ["CITYSCAPES_DATASET"], os.environ["CITYSCAPES_RESULTS"] = f"{{data}}/truth", f"{{data}}/results"
from glob import glob
from cityscapesscripts.evaluation import evalPixelLevelSemanticLabeling as script
script.args.JSONOutput, script.args.quiet = False, True
truths = glob(script.args.groundTruthSearch)
predictions = [script.getPrediction(script.args, truth) for truth in truths]
found = script.evaluateImgLists(predictions, truths, script.args)
answer({{f"{{weighted}}IoU{{groups}}": found[f"averageScore{{'Inst' if weighted else ''}}{{kind}}"]
        for weighted in ("", "i") for groups, kind in (("", "Classes"), ("-categories", "Categories"))}})
"""

CITYSCAPES_INSTANCES = f"""{COMPAT}
os.environ["CITYSCAPES_DATASET"], os.environ["CITYSCAPES_RESULTS"] = f"{{data}}/truth", f"{{data}}/results"
from glob import glob
from cityscapesscripts.evaluation import evalInstanceLevelSemanticLabeling as script
os.chdir(data)  # where it writes its matches
script.args.JSONOutput, script.args.quiet, script.args.gtInstancesFile = False, True, f"{{data}}/instances.json"
truths = glob(script.args.groundTruthSearch)
found = script.evaluateImgLists([script.getPrediction(truth, script.args) for truth in truths], truths, script.args)
os.remove(script.args.gtInstancesFile)
answer({{"AP": found["averages"]["allAp"], "AP50%": found["averages"]["allAp50%"]}})
"""

STEP = f"""{COMPAT}
import glob
from PIL import Image
sys.path[:0] = [f"{{checkout}}/evaluation/numpy"]
from segmentation_and_tracking_quality import STQuality
metric = STQuality(19, [11, 13], 255, 16, 1 << 24)
for path in sorted(glob.glob(f"{{data}}/truth/*/*.png")):
    sides = [np.array(Image.open(path.replace("/truth/", f"/{{side}}/"))).astype(np.int32) for side in ("truth", "results")]
    codes = [side[..., 0] << 16 | side[..., 1] << 8 | side[..., 2] for side in sides]
    metric.update_state(*codes, path.split("/")[-2])
values = metric.result()
answer({{name: values[name] for name in ("STQ", "AQ", "IoU")}})
"""

COCO_STUFF = f"""{COMPAT}
for name in ("cocostuffhelper", "cocostuffeval"):
    path = f"{{checkout}}/PythonAPI/pycocotools/{{name}}.py"
    specification = importlib.util.spec_from_file_location(f"pycocotools.{{name}}", path)
    sys.modules[f"pycocotools.{{name}}"] = script = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(script)
from pycocotools.coco import COCO
truth = COCO(f"{{data}}/truth.json")
evaluation = script.COCOStuffeval(truth, truth.loadRes(f"{{data}}/results.json"))
evaluation.evaluate()
names = [f"{{name}}{{suffix}}" for suffix in ("", "-super") for name in ("mIoU", "fwIoU", "Acc_class", "Acc")]
answer(dict(zip(names, evaluation.summarize()[0])))
"""

VSPW = f"""{COMPAT}
torch = sys.modules["torch"] = types.ModuleType("torch")
torch.nn = sys.modules["torch.nn"] = types.ModuleType("torch.nn")
sys.argv = ["", f"{{data}}/truth", f"{{data}}/results"]
found = runpy.run_path(f"{{checkout}}/evaluator_test.py")
values = {{"mIoU": found["mIoU"], "Acc": found["Acc"], "Acc_class": found["Acc_class"], "fwIoU": found["FWIoU"]}}
for frames in (8, 16):
    with open(f"{{checkout}}/VC_perclip.py") as file:
        text = file.read().replace("clip_num=16", f"clip_num={{frames}}")
    space = {{}}
    exec(text, space)
    values[f"VC{{frames}}"] = space["Acc"]
answer(values)
"""

MEVIS = f"""{COMPAT}
sys.path.insert(0, f"{{checkout}}/tools")
out = f"{{data}}/official.json"
sys.argv = ["", "--mevis_exp_path", f"{{data}}/truth/meta_expressions.json"]
sys.argv += ["--mevis_mask_path", f"{{data}}/truth/mask_dict.json"]
sys.argv += ["--mevis_pred_path", f"{{data}}/results", "--save_name", out]
runpy.run_path(f"{{checkout}}/tools/eval_mevis.py", run_name="__main__")
with open(out) as file:
    pairs = np.array(list(json.load(file).values()))
j, f = pairs.mean(0)
answer({{"J&F-Mean": (j + f) / 2, "J-Mean": j, "F-Mean": f}})
"""

VIDEO = """
import pycocotools
pycocotools.__path__.append(f"{checkout}/PythonAPI/pycocotools")
def stats(load, evaluator):
    truth = load(f"{data}/truth.json")
    run = evaluator(truth, truth.loadRes(f"{data}/results.json"), "segm")
    run.evaluate(); run.accumulate(); run.summarize()
    return run.stats
"""

YOUTUBE_VIS = f"""{COMPAT}{VIDEO}
from pycocotools.ytvos import YTVOS
from pycocotools.ytvoseval import YTVOSeval
names = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR@1", "AR@10", "AR@100", "ARs", "ARm", "ARl")
answer(dict(zip(names, stats(YTVOS, YTVOSeval))))
"""

OVIS = f"""{COMPAT}{VIDEO}
from pycocotools.ovis import OVIS
from pycocotools.oviseval import OVISeval
names = ["AP", "AP50", "AP75", "APs", "APm", "APl", "AP-light", "AP-medium", "AP-heavy"]
names += ["AR@1", "AR@10", "AR@100", "ARs", "ARm", "ARl", "AR-light", "AR-medium", "AR-heavy"]
answer(dict(zip(names, stats(OVIS, OVISeval))))
"""


LVIS = f"""{COMPAT}
from lvis import LVIS, LVISEval, LVISResults
truth = LVIS(f"{{data}}/truth.json")
run = LVISEval(truth, LVISResults(truth, f"{{data}}/results.json"), "segm")
run.run()
answer(dict(run.get_results()))
"""

BOUNDARY_LVIS = f"""{COMPAT}
from boundary_iou.lvis_instance_api.eval import LVISEval
run = LVISEval(f"{{data}}/truth.json", f"{{data}}/results.json", "boundary")
run.run()
answer(dict(run.get_results()))
"""

BOUNDARY = f"""{COMPAT}
from boundary_iou.coco_instance_api.coco import COCO
from boundary_iou.coco_instance_api.cocoeval import COCOeval
truth = COCO(f"{{data}}/truth.json", get_boundary=True)
run = COCOeval(truth, truth.loadRes(f"{{data}}/results.json"), "boundary")
run.evaluate(); run.accumulate(); run.summarize()
names = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR@1", "AR@10", "AR@100", "ARs", "ARm", "ARl")
answer(dict(zip(names, run.stats)))
"""

TRACKEVAL = f"""{COMPAT}
import trackeval
quiet = {{"PRINT_RESULTS": False, "PRINT_CONFIG": False, "OUTPUT_SUMMARY": False, "OUTPUT_DETAILED": False}}
quiet.update({{"PLOT_CURVES": False, "TIME_PROGRESS": False, "LOG_ON_ERROR": None}})
paths = {{"GT_FOLDER": f"{{data}}/truth", "TRACKERS_FOLDER": f"{{data}}/trackers", "PRINT_CONFIG": False}}
def results(kind, metrics, **more):
    dataset = kind({{**paths, **more}})
    res, _ = trackeval.Evaluator(quiet).evaluate([dataset], metrics)
    return res[dataset.get_name()]["results"]["COMBINED_SEQ"]
HOTA = ("HOTA", "DetA", "AssA", "DetRe", "DetPr", "AssRe", "AssPr", "LocA", "OWTA")
def singles(found):
    values = {{name: found["HOTA"][name].mean() for name in HOTA}}
    clear = {{"sMOTSA": "sMOTA", "MOTSA": "MOTA", "MOTSP": "MOTP", "IDSW": "IDSW"}}
    values.update({{name: found["CLEAR"][other] for name, other in clear.items()}})
    return {{**values, "IDF1": found["Identity"]["IDF1"]}}
three = [trackeval.metrics.HOTA(), trackeval.metrics.CLEAR({{"PRINT_CONFIG": False}}),
         trackeval.metrics.Identity({{"PRINT_CONFIG": False}})]
"""

MOTS = f"""{TRACKEVAL}
answer(singles(results(trackeval.datasets.MOTSChallenge, three, SKIP_SPLIT_FOL=True)["pedestrian"]))
"""

KITTI_MOTS = f"""{TRACKEVAL}
found = results(trackeval.datasets.KittiMOTS, three, GT_LOC_FORMAT="{{gt_folder}}/instances_txt/{{seq}}.txt")
answer({{f"{{name}}-{{kind}}": value for kind in ("car", "pedestrian") for name, value in singles(found[kind]).items()}})
"""

BURST = f"""{TRACKEVAL}
from trackeval.datasets.burst_helpers import burst_base
found = results(trackeval.datasets.BURST, [three[0], trackeval.metrics.TrackMAP({{"PRINT_CONFIG": False}})])
classes = [one for name, one in found.items() if name not in ("all", "cls_comb_cls_av", "cls_comb_det_av")]
values = {{name: np.mean([one["HOTA"][name].mean() for one in classes]) for name in ("HOTA", "DetA", "AssA")}}
answer({{**values, "AP": np.mean([one["TrackMAP"]["AP_all"].mean() for one in classes])}})
"""
