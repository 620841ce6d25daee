"""Drop-in replacements of other evaluators, with their names, arguments and results.

The contract is the modules, named after the modules that they replace: `coco` for `pycocotools.coco`, `cocoeval` for
`pycocotools.cocoeval`, `faster_coco_eval` and `lvis` for the packages of these names, `davis2017` for
`davis2017.evaluation`, `vos_benchmark` for `vos_benchmark.benchmark`.  Users import them; nothing of ours does.
"""

__all__ = ["coco", "cocoeval", "davis2017", "faster_coco_eval", "lvis", "vos_benchmark"]
